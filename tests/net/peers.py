"""What the tests of this folder talk to: servers that do as told, certificates, a transport's failure."""

from __future__ import annotations

import asyncio
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from setpoint.errors import TransportError
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer
from setpoint.net.tls import Authority, Identity
from setpoint.net.transport import Request

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def peer(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that does with each connection exactly what ``talk`` says, HTTP or not.  Gives its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (EOFError, ConnectionError):
            pass  # the client hung up
        finally:
            writer.transport.abort()

    async with asyncio.TaskGroup() as group:

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(group.create_task(one(reader, writer)))

        server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=tls)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in tasks:
                task.cancel()


async def head(reader: asyncio.StreamReader) -> bytes:
    """One request's head, as it came."""
    return await reader.readuntil(b"\r\n\r\n")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def says(*pieces: bytes) -> Talk:
    """Reads one request, says this, hangs up properly."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    return talk


def at(port: int, scheme: str = "http") -> HttpTransport:
    return HttpTransport(Endpoint(f"{scheme}://127.0.0.1:{port}"))


def get(target: str = "/") -> Request:
    return Request("GET", target)


async def echo(request: Request) -> Answer:
    shown = {name.lower(): value for name, value in request.headers.items()}
    said = f"{request.method} {request.target} {sorted(shown.items())}".encode()
    return Answer(200, {"X-Seen": "yes"}, said + (request.body or b""))


def counting(connections: list[int]) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while True:
            await head(reader)
            writer.write(OK)

    return talk


def proxying(seen: list[bytes], answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> Talk:
    """A proxy that knows CONNECT and nothing else."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await head(reader)
        seen.append(asked)
        writer.write(answer)
        if b" 200 " not in answer:
            await writer.drain()
            return
        host, _, port = asked.split(b" ")[1].decode().rpartition(":")
        there, to_there = await asyncio.open_connection(host, int(port))
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, to_there))
            group.create_task(pump(there, writer))

    return talk


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


async def whole(transport: HttpTransport, request: Request) -> bytes:
    return await (await transport(request)).read()


async def failure(transport: HttpTransport, request: Request | None = None) -> TransportError:
    async with transport:
        with pytest.raises(TransportError) as caught:
            await whole(transport, request or get("/api?secret=1"))
    assert "secret" not in str(caught.value)
    return caught.value


def assert_no_secret(error: BaseException) -> None:
    """Neither in the error nor in anything that a log could reach from it."""
    assert "hush" not in "".join(traceback.format_exception(error))
    chained: BaseException | None = error
    while chained is not None:
        assert "hush" not in repr(chained)
        assert "hush" not in repr(chained.__dict__)
        chained = chained.__cause__ or chained.__context__


@cache
def authority() -> Authority:
    return Authority.create()


def server_context(identity: Identity, tmp_path: Path, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, identity, tmp_path)
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority().certificate_pem.decode())
    return context


def client_context(trusted: Authority | None = None) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=(trusted or authority()).certificate_pem.decode())


def load(context: ssl.SSLContext, identity: Identity, tmp_path: Path) -> None:
    """OpenSSL reads certificates from files alone."""
    file = tmp_path / "identity.pem"
    file.write_bytes(identity.certificate_pem + identity.key_pem)
    context.load_cert_chain(file)


def for_server(*hosts: str, valid_for: timedelta = timedelta(days=1)) -> Identity:
    return authority().issue("server", hosts=hosts or ("127.0.0.1",), server=True, valid_for=valid_for)
