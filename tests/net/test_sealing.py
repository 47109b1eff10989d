"""The promises of ``net/sealing.py``, against TLS servers over real sockets."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net import listen
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.sealing import Sealed
from setpoint.net.transport import Request
from tests.net.peers import (
    OK,
    client_context,
    failure,
    for_server,
    get,
    head,
    peer,
    pump,
    server_context,
    whole,
)

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def to(port: int, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> HttpTransport:
    context = client_context()
    context.minimum_version = context.maximum_version = version
    return HttpTransport(Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context))


@asynccontextmanager
async def in_small_pieces(port: int, size: int) -> AsyncIterator[int]:
    """A way to the port on which nothing comes in one piece."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            for at in range(0, len(data), size):
                writer.write(data[at : at + size])
                await writer.drain()
                await asyncio.sleep(0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", port)
        back = asyncio.ensure_future(pass_on(there, writer))
        try:
            await pass_on(reader, to_there)
        finally:
            to_there.transport.abort()
            back.cancel()
            await asyncio.wait([back])

    async with peer(talk) as between:
        yield between


async def echo(request: Request) -> Answer:
    return Answer(body=request.body or b"nothing")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 16 * 2**10, 16 * 2**10 + 1, 3 * 2**20])
async def test_what_is_said_arrives_as_it_was_said(
    version: ssl.TLSVersion, size: int, tmp_path: Path
) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    async with (
        serve(echo, ssl_context=server_context(for_server(), tmp_path)) as address,
        to(address.port, version) as transport,
    ):
        for _ in range(3):
            assert await whole(transport, Request("POST", "/", {}, body)) == (body or b"nothing")
        assert len(transport._connections) == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 100])
async def test_it_does_not_matter_in_what_pieces_bytes_come(
    version: ssl.TLSVersion, size: int, tmp_path: Path
) -> None:
    async with (
        serve(echo, ssl_context=server_context(for_server(), tmp_path)) as address,
        in_small_pieces(address.port, size) as port,
        to(port, version) as transport,
    ):
        for _ in range(2):
            assert await whole(transport, Request("POST", "/", {}, b"x" * 3_000)) == b"x" * 3_000


async def test_an_end_that_nobody_vouches_for_is_none(tmp_path: Path) -> None:
    """Without a length, whoever can cut the connection could choose where the answer ends."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nonly a part")
        await writer.drain()  # and then the connection is cut, without a goodbye

    async with peer(talk, server_context(for_server(), tmp_path)) as port:
        error = await failure(to(port))
    assert isinstance(error, AnswerLost)
    assert "before the whole answer" in str(error)


async def test_bytes_that_were_changed_on_the_way_are_not_believed(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", server.port)
        back = asyncio.ensure_future(_spoil(there, writer, spoil))
        try:
            while data := await reader.read(65536):
                to_there.write(data)
        finally:
            to_there.transport.abort()
            back.cancel()
            await asyncio.wait([back])

    spoil = asyncio.Event()
    async with (
        serve(echo, ssl_context=server_context(for_server(), tmp_path)) as server,
        peer(talk) as port,
        to(port) as transport,
    ):
        assert await whole(transport, get()) == b"nothing"
        spoil.set()
        with pytest.raises(AnswerLost):
            await whole(transport, get())


async def _spoil(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, spoil: asyncio.Event) -> None:
    while data := await reader.read(65536):
        writer.write(data[:-1] + bytes([data[-1] ^ 1]) if spoil.is_set() else data)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_connection_that_is_not_needed_any_more_ends_with_a_goodbye(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        context = server_context(for_server(), tmp_path)
        serving = asyncio.ensure_future(asyncio.to_thread(_answer_and_wait_for_the_end, listening, context))
        async with to(listening.getsockname()[1], version) as transport:
            assert await whole(transport, get()) == b"ok"
            transport._close_idle()
            assert await serving == b"", "an end without a goodbye is an error"


def _answer_and_wait_for_the_end(listening: socket.socket, context: ssl.SSLContext) -> bytes:
    connection, _ = listening.accept()
    with context.wrap_socket(connection, server_side=True, suppress_ragged_eofs=False) as wrapped:
        wrapped.recv(65536)
        wrapped.sendall(OK)
        return wrapped.recv(65536)


@pytest.mark.parametrize("said", [b"", b"\x15\x03\x01\x00\x02\x02\x28"], ids=["goodbye", "an alert"])
async def test_a_handshake_that_does_not_come_about_has_sent_nothing(said: bytes) -> None:
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(65536))
        writer.write(said)
        await writer.drain()

    async with peer(talk) as port:
        error = await failure(to(port), Request("POST", "/", {}, b"body"))
    assert isinstance(error, ConnectionFailed)
    assert b"POST" not in b"".join(heard)


async def test_what_came_whole_is_given_though_what_follows_it_is_broken(tmp_path: Path) -> None:
    broken = b"\x17\x03\x03\x00\x20" + bytes(32)  # a record that nobody has encrypted

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", server.port)
        back = asyncio.ensure_future(pass_back(there, writer))
        try:
            while data := await reader.read(65536):
                to_there.write(data)
        finally:
            to_there.transport.abort()
            back.cancel()
            await asyncio.wait([back])

    async def pass_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data + broken if spoil.is_set() else data)

    spoil = asyncio.Event()
    async with (
        serve(echo, ssl_context=server_context(for_server(), tmp_path)) as server,
        peer(talk) as port,
        to(port) as transport,
    ):
        assert await whole(transport, get()) == b"nothing"
        spoil.set()
        assert await whole(transport, Request("POST", "/", {}, b"whole")) == b"whole"
        async with asyncio.timeout(10):
            while transport._connections:
                await asyncio.sleep(0)


async def test_who_gives_up_as_the_handshake_begins_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor an error that nobody awaits, which the loop would report."""

    class GivenUp(Sealed):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            asking.cancel()

    monkeypatch.setattr("setpoint.net.dialing.Sealed", GivenUp)
    async with (
        serve(echo, ssl_context=server_context(for_server(), tmp_path)) as address,
        to(address.port) as transport,
    ):
        asking = asyncio.ensure_future(transport(get()))
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not transport._connections


# ── What is agreed on anew ──────────────────────────────────────────────────────────────────────────


class OpensslServer:
    """Shows what it hears, says what it is told to, and on command agrees on new keys."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._shown = b""

    async def say(self, words: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(words)
        await self._process.stdin.drain()

    async def shows(self, what: bytes, times: int = 1) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(20):
            while self._shown.count(what) < times:
                self._shown += await self._process.stdout.read(65536)


@asynccontextmanager
async def openssl_server(version: str, tmp_path: Path) -> AsyncIterator[tuple[OpensslServer, int]]:
    identity, file = for_server(), tmp_path / "server.pem"
    file.write_bytes(identity.certificate_pem + identity.key_pem)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", str(file), version, "-msg"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    server = OpensslServer(process)
    try:
        await server.shows(b"ACCEPT")
        yield server, port
    finally:
        process.kill()
        await process.communicate()


has_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl command")


@has_openssl
async def test_new_keys_are_agreed_on_between_two_requests(tmp_path: Path) -> None:
    async with openssl_server("-tls1_3", tmp_path) as (server, port), to(port) as transport:
        for number in (1, 2, 3, 4):
            asking = asyncio.ensure_future(whole(transport, get()))
            await server.shows(b"GET / HTTP", number)
            # What was asked for before the last answer is agreed to by now; what came after it, perhaps not.
            await server.shows(b"<<< TLS 1.3, Handshake [length 0005], KeyUpdate", number - 2)
            await server.say(OK)
            assert await asking == b"ok"
            await server.say(b"K\n")
            await server.shows(b">>> TLS 1.3, Handshake [length 0005], KeyUpdate", number)
        assert len(transport._connections) == 1


@has_openssl
async def test_what_is_asked_in_the_middle_of_a_handshake_is_sent_after_it(tmp_path: Path) -> None:
    opened, held = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", port)
        back = asyncio.ensure_future(pump(there, writer))
        try:
            while data := await reader.read(65536):
                if not opened.is_set():
                    held.set()
                    await opened.wait()
                to_there.write(data)
        finally:
            to_there.transport.abort()
            back.cancel()
            await asyncio.wait([back])

    body = b"x" * 600_000 + b"the last of it"
    async with (
        openssl_server("-tls1_2", tmp_path) as (server, port),
        peer(talk) as between,
        to(between, ssl.TLSVersion.TLSv1_2) as transport,
    ):
        opened.set()
        asking = asyncio.ensure_future(whole(transport, get()))
        await server.shows(b"GET / HTTP")
        await server.say(OK)
        assert await asking == b"ok"
        opened.clear()
        await server.say(b"r\n")
        await held.wait()  # our half of the first step is on its way
        asking = asyncio.ensure_future(whole(transport, Request("POST", "/", {}, body)))
        await asyncio.sleep(0)
        (connection,) = transport._connections
        assert connection.transport.get_write_buffer_size() > 0
        opened.set()
        await server.shows(b"the last of it")
        await server.say(OK)
        assert await asking == b"ok"
        assert len(transport._connections) == 1


async def test_who_breaks_tls_and_takes_nothing_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrying: list[asyncio.Transport] = []
    made = listen._Securing.connection_made

    def remember(self: listen._Securing, transport: asyncio.BaseTransport) -> None:
        carrying.append(cast("asyncio.Transport", transport))
        made(self, transport)

    monkeypatch.setattr(listen._Securing, "connection_made", remember)

    async def body() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    async with serve(app, ssl_context=server_context(for_server(), tmp_path)) as address:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(2**16))
        client.write(b"GET / HTTP/1.1\r\n\r\n")
        writer.write(outgoing.read())
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads, too
        while carrying[0].get_write_buffer_size() < 2**16:
            await asyncio.sleep(0)
        writer.write(b"\x17\x03\x03\x00\x20" + bytes(32))  # a record that nobody sealed
        while carrying[0].get_extra_info("socket").fileno() != -1:
            await asyncio.sleep(0.01)
        writer.transport.abort()


async def test_what_comes_on_many_connections_at_once_is_not_mixed_up(tmp_path: Path) -> None:
    bodies = [bytes([number]) * (500_000 + number) for number in range(20)]
    async with AsyncExitStack() as stack:
        context = server_context(for_server(), tmp_path)
        address = await stack.enter_async_context(serve(echo, ssl_context=context))
        asked = [
            whole(await stack.enter_async_context(to(address.port)), Request("POST", "/", body=body))
            for body in bodies
        ]
        assert await asyncio.gather(*asked) == bodies


def test_all_connections_of_a_loop_share_the_room_for_what_comes() -> None:
    async def two() -> tuple[memoryview, memoryview]:
        one, other = (Sealed(asyncio.Protocol(), client_context(), "localhost") for _ in range(2))
        return one._buffer, other._buffer

    one, other = asyncio.run(two())
    elsewhere, _ = asyncio.run(two())
    assert one is other
    assert one is not elsewhere, "loops may run in threads of their own"
