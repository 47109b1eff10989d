"""The promises of ``net/dialing.py``, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from setpoint.errors import ConnectionFailed
from setpoint.net.http import Endpoint, HttpTransport
from tests.net.peers import (
    OK,
    at,
    client_context,
    counting,
    failure,
    for_server,
    forever,
    get,
    head,
    peer,
    proxying,
    says,
    server_context,
    whole,
)


@pytest.mark.parametrize("by_tls", [False, True])
@pytest.mark.parametrize("name", ["kubernetes", "elsewhere"])
async def test_behind_a_proxy_it_is_the_servers_name_that_is_verified(
    name: str, by_tls: bool, tmp_path: Path
) -> None:
    """And the proxy's is the proxy's own."""
    context = client_context()
    proxys = server_context(for_server("127.0.0.1"), tmp_path) if by_tls else None
    async with (
        peer(proxying([]), proxys) as proxy,
        peer(counting([]), server_context(for_server("kubernetes"), tmp_path)) as port,
    ):
        endpoint = Endpoint(
            f"https://127.0.0.1:{port}",
            ssl_context=lambda: context,
            server_hostname=name,
            proxy=f"http{'s' * by_tls}://127.0.0.1:{proxy}",
        )
        if name == "kubernetes":
            async with HttpTransport(endpoint) as transport:
                assert await whole(transport, get()) == b"ok"
        else:
            error = await failure(HttpTransport(endpoint))
            assert isinstance(error, ConnectionFailed)
            assert "is not for elsewhere" in str(error)


async def test_a_proxy_whose_certificate_is_not_its_own_is_told_nothing(tmp_path: Path) -> None:
    seen: list[bytes] = []
    context = client_context()
    async with peer(proxying(seen), server_context(for_server("kubernetes"), tmp_path)) as proxy:
        endpoint = Endpoint(
            "https://kubernetes:1", ssl_context=lambda: context, proxy=f"https://me:pw@127.0.0.1:{proxy}"
        )
        error = await failure(HttpTransport(endpoint))
    assert isinstance(error, ConnectionFailed)
    assert not seen


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\npart", b"rubbish\r\n\r\n", b""]
)
@pytest.mark.parametrize("gives_up", [False, True])
async def test_no_connection_is_left_to_a_proxy_that_does_not_connect(answer: bytes, gives_up: bool) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        asked.set()
        if not gives_up:
            writer.write(answer)
        assert await reader.read() == b""
        gone.set()

    context = client_context()
    async with peer(talk) as proxy:
        endpoint = Endpoint(
            "https://127.0.0.1:1",
            ssl_context=lambda: context,
            proxy=f"http://127.0.0.1:{proxy}",
            connect_timeout=30 if answer else 0.05,
        )
        async with HttpTransport(endpoint) as transport:
            asking = asyncio.ensure_future(transport(get()))
            await asked.wait()
            if gives_up:
                asking.cancel()
            with pytest.raises((ConnectionFailed, asyncio.CancelledError)):
                await asking
            async with asyncio.timeout(10):
                await gone.wait()


@pytest.mark.parametrize("gives_up", [False, True])
async def test_no_connection_is_left_to_a_server_that_never_agrees_on_tls(gives_up: bool) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read(1)
        asked.set()
        await reader.read()
        gone.set()

    context = client_context()
    async with peer(talk) as port:
        endpoint = Endpoint(
            f"https://127.0.0.1:{port}",
            ssl_context=lambda: context,
            connect_timeout=30 if gives_up else 0.05,
        )
        async with HttpTransport(endpoint) as transport:
            asking = asyncio.ensure_future(transport(get()))
            await asked.wait()
            if gives_up:
                asking.cancel()
            with pytest.raises((ConnectionFailed, asyncio.CancelledError)):
                await asking
            async with asyncio.timeout(10):
                await gone.wait()


async def test_a_machine_that_is_gone_is_noticed() -> None:
    async with peer(counting([])) as port, at(port) as transport:
        assert await whole(transport, get()) == b"ok"
        (connection,) = transport._connections
        connected = connection.transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 90_000
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


async def test_an_address_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the next one tried beside it."""

    async def addresses(*_: object, **__: object) -> list[object]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")
        ]

    async def connected(one: socket.socket, address: tuple[str, int]) -> None:
        if address[0] == "127.0.0.2":
            await forever()
        await connect(one, address)

    loop = asyncio.get_running_loop()
    connect = loop.sock_connect
    async with peer(says(OK)) as port:
        monkeypatch.setattr(loop, "getaddrinfo", addresses)
        monkeypatch.setattr(loop, "sock_connect", connected)
        async with HttpTransport(Endpoint(f"http://several.example:{port}", connect_timeout=10)) as transport:
            assert await whole(transport, get()) == b"ok"
