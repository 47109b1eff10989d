"""The promises of ``net/sealing.py``, against TLS servers over real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.transport import Request
from tests.net.peers import (
    OK,
    client_context,
    failure,
    for_server,
    get,
    head,
    peer,
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
