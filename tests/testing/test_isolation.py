"""Code under test cannot reach anything outside of the process, whichever way it tries."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.testing.isolation import Allowed, ExternalCallRefused, Isolation, exempt

NOWHERE = "203.0.113.7"  # of the addresses that are for documentation
NOBODY = "nobody.example.invalid"


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A server on the loopback, which counts nobody: that somebody connected is seen by ``accept``."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def _connect(address: tuple[str, int]) -> None:
    with socket.socket() as client:
        client.connect(address)


def _connect_ex(address: tuple[str, int]) -> None:
    with socket.socket() as client:
        client.connect_ex(address)


def _over_asyncio(address: tuple[str, int]) -> None:
    async def connect() -> None:
        _reader, writer = await asyncio.open_connection(*address)
        writer.close()

    asyncio.run(connect())


def _over_sock_connect(address: tuple[str, int]) -> None:
    async def connect() -> None:
        with socket.socket() as client:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, address)

    asyncio.run(connect())


def _over_http(address: tuple[str, int]) -> None:
    urllib.request.urlopen(f"http://{address[0]}:{address[1]}/", timeout=1)


def _over_udp(address: tuple[str, int]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.sendto(b"x", address)


def _over_udp_message(address: tuple[str, int]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.sendmsg([b"x"], [], 0, address)


def _over_ipv6(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET6) as client:
        client.connect(("::1", address[1]))


def _over_unix(_address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("/var/run/docker.sock")


def _listens(_address: tuple[str, int]) -> None:
    socket.create_server(("127.0.0.1", 0)).close()


def _in_a_thread(address: tuple[str, int]) -> None:
    failed: list[BaseException] = []

    def connect() -> None:
        try:
            _connect(address)
        except ExternalCallRefused as error:
            failed.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    raise failed[0]


def _in_a_pool(address: tuple[str, int]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_connect, address).result()


SOCKETS = [
    _connect,
    _connect_ex,
    socket.create_connection,
    _over_asyncio,
    _over_sock_connect,
    _over_http,
    _over_udp,
    _over_udp_message,
    _over_ipv6,
    _over_unix,
    _listens,
    _in_a_thread,
    _in_a_pool,
]


@pytest.mark.parametrize("reach", SOCKETS, ids=lambda each: each.__name__)
def test_a_socket_is_refused_whichever_way_it_is_used(
    reach: Callable[[tuple[str, int]], object], listening: socket.socket
) -> None:
    isolation = Isolation()
    with isolation, pytest.raises(ExternalCallRefused, match=r"setpoint\.testing\.Cloud"):
        reach(listening.getsockname())
    assert isolation.refused, "it is known, also to who did not see the error"
    with pytest.raises(BlockingIOError):
        listening.accept()


def _lookup_over_asyncio() -> None:
    async def look_up() -> None:
        await asyncio.get_running_loop().getaddrinfo(NOBODY, 443)

    asyncio.run(look_up())


LOOKUPS: list[Callable[[], object]] = [
    lambda: socket.getaddrinfo(NOBODY, 443),
    lambda: socket.gethostbyname(NOBODY),
    lambda: socket.gethostbyname_ex(NOBODY),
    lambda: socket.gethostbyaddr(NOBODY),
    lambda: socket.create_connection((NOBODY, 443)),
    _lookup_over_asyncio,
]


@pytest.mark.parametrize("look_up", LOOKUPS)
def test_a_name_is_not_looked_up(look_up: Callable[[], object]) -> None:
    with Isolation(), pytest.raises(ExternalCallRefused, match=f"look up {NOBODY}.*--allow-network {NOBODY}"):
        look_up()


def _nothing() -> None:
    pass


def _spawned() -> None:
    multiprocessing.get_context("spawn").Process(target=_nothing).start()


def _forked() -> None:
    multiprocessing.get_context("fork").Process(target=_nothing).start()


def _over_a_loop() -> None:
    async def run() -> None:
        await asyncio.create_subprocess_exec("true")

    asyncio.run(run())


PROGRAMS: list[Callable[[], object]] = [
    lambda: subprocess.run(["true"], check=True),
    lambda: subprocess.run("true", shell=True, check=True),
    lambda: os.system("true"),
    lambda: os.popen("true"),
    lambda: os.posix_spawn("/bin/true", ["true"], {}),
    lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
    lambda: os.execv("/bin/true", ["true"]),
    os.fork,
    _over_a_loop,
    _forked,
    _spawned,
]


@pytest.mark.parametrize("run", PROGRAMS)
def test_a_program_is_refused_whichever_way_it_is_started(run: Callable[[], object]) -> None:
    with Isolation(), pytest.raises(ExternalCallRefused, match="--allow-program"):
        run()


def test_the_error_says_which_line_of_the_program_under_test_asked_for_what() -> None:
    isolation = Isolation()
    with isolation, pytest.raises(ExternalCallRefused) as caught:
        _over_http((NOWHERE, 443))
    assert str(caught.value).startswith(f"connect to {NOWHERE}:443 (test_isolation.py:")
    assert "in _over_http)" in str(caught.value)
    assert f"allow_network=['{NOWHERE}:443']" in str(caught.value)
    assert list(isolation.refused) == [str(caught.value)]


def test_others_in_the_process_connect_as_ever(listening: socket.socket) -> None:
    begin, done = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def elsewhere() -> None:
        begin.wait(10)
        try:
            _connect(listening.getsockname())
        except ExternalCallRefused as error:
            failed.append(error)
        done.set()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    with Isolation():
        begin.set()
        assert done.wait(10)
    thread.join()
    assert not failed
    listening.setblocking(True)
    listening.accept()[0].close()
    _connect(listening.getsockname())


def test_a_thread_that_outlives_the_block_is_still_refused(listening: socket.socket) -> None:
    isolation, go_on = Isolation(), threading.Event()
    failed: list[BaseException] = []

    def late() -> None:
        go_on.wait(10)
        try:
            _connect(listening.getsockname())
        except ExternalCallRefused as error:
            failed.append(error)

    with isolation:
        thread = threading.Thread(target=late)
        thread.start()
    go_on.set()
    thread.join()
    assert failed
    assert isolation.refused


def test_in_a_pool_that_others_use_too_each_has_its_own_bounds(listening: socket.socket) -> None:
    with ThreadPoolExecutor(1) as pool:
        with Isolation():
            pool.submit(_nothing).result()
        pool.submit(_connect, listening.getsockname()).result()
        with Isolation(), pytest.raises(ExternalCallRefused):
            pool.submit(_connect, listening.getsockname()).result()


def test_what_is_exempt_connects(listening: socket.socket) -> None:
    with Isolation(), exempt():
        _connect(listening.getsockname())


@pytest.mark.parametrize("said", ["127.0.0.1", "127.0.0.1:{}", "localhost", "localhost:{}"])
def test_what_is_allowed_connects_and_nothing_else(said: str, listening: socket.socket) -> None:
    host, port = listening.getsockname()
    with Isolation(Allowed.of([said.format(port)])):
        _connect((host, port))
        with pytest.raises(ExternalCallRefused):
            _connect((NOWHERE, port))
        if "{}" in said:
            with pytest.raises(ExternalCallRefused):
                _connect((host, port + 1))


def test_a_name_that_is_allowed_is_looked_up_and_connected_to(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    with Isolation(Allowed.of([f"localhost:{port}"])):
        socket.create_connection(("localhost", port)).close()


def test_a_unix_socket_and_a_program_are_allowed_by_name(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        with Isolation(Allowed.of([path], ["true"])):
            client.connect(path)
            subprocess.run(["true"], check=True)
            with pytest.raises(ExternalCallRefused):
                subprocess.run(["false"], check=True)


@pytest.mark.parametrize("said", ["", ":80", "host:", "host:http", "host:99999", "https://host/", "[::1"])
def test_what_is_no_address_is_not_allowed_silently(said: str) -> None:
    if said == "[::1":
        assert Allowed.of([said]).has("::1", 1)
        return
    with pytest.raises(ValueError, match="give HOST, HOST:PORT"):
        Allowed.of([said])


@given(st.ip_addresses(), st.integers(1, 65535), st.integers(1, 65535))
def test_an_address_allows_its_own_port_alone(ip: object, port: int, other: int) -> None:
    text = f"[{ip}]:{port}" if ":" in str(ip) else f"{ip}:{port}"
    allowed = Allowed.of([text])
    assert allowed.has(str(ip), port)
    assert allowed.has(str(ip), other) == (other == port)
    assert Allowed.of([str(ip)]).has(str(ip), other)


def test_what_the_machine_says_of_itself_is_no_call() -> None:
    with Isolation() as isolation:
        platform.processor()
        socket.gethostname()
        for each in socket.socketpair():
            each.close()
        asyncio.run(asyncio.sleep(0))
    assert not isolation.refused


def test_a_process_that_was_isolated_ends_quietly() -> None:
    code = "from setpoint.testing.isolation import Isolation\nwith Isolation(): pass\n"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
