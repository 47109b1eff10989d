"""Accepts connections and hands their requests to an app: one function, request in, answer out.

Promises:

1. The app sees a ``Request`` as ``transport.py`` has it, with a whole body of at most ``max_body`` bytes
   (else 413), as it was sent: nothing is unpacked.  It answers with a value and never sees a socket.
2. A body that is an iterator is sent piece by piece as it comes.  If it fails midway the connection is cut,
   so that a part is never taken for the whole.
3. Who asked and went away is not worked for: the app's task is cancelled.
4. Leaving ``serve`` ends everything it began: nothing new is accepted, requests under way have ``grace``
   seconds to finish, the rest is cancelled.
5. With ``most_connections`` there are never more at a time: further ones are cut as they come.  With
   ``longest_connection`` none lasts longer, whatever it is doing: who sends nothing takes nobody's place.
6. With ``slowest`` a connection has that many seconds to send its first request's head (else it is cut), and
   a request as many to send its body (else 408): who sends a byte a minute holds nothing for long.
7. What is answered here and not by the app (408, 413, 500) is worded by ``refuse``.

Not here: routes, Kubernetes, who may ask.  Fed by sockets; drained by the app it is given.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict

from setpoint.errors import SetpointError
from setpoint.net.messages import CLOSE_TIMEOUT, MAX_MESSAGE, Headers, MessageStream
from setpoint.net.transport import Request, WebSocket

log = logging.getLogger("setpoint.listen")

_MAX_HEADER = 64 * 2**10


@dataclass(frozen=True, slots=True)
class Answer:
    """What an app gives back.  ``talk`` takes over the connection where the request asked for an upgrade."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # several of one name: on lines of their own
    body: bytes | AsyncIterable[bytes] = field(default=b"", repr=False)
    talk: Callable[[WebSocket], Awaitable[None]] | None = None
    subprotocol: str = ""  # of those offered in ``Request.upgrade``, the one that ``talk`` speaks


App: TypeAlias = Callable[[Request], Awaitable[Answer]]
Refuse: TypeAlias = Callable[
    [Request, int, str], Answer
]  # of the request (without its body), a code, and why


def refuse_plainly(_: Request, code: int, why: str) -> Answer:
    return Answer(code, {"Content-Type": "text/plain; charset=utf-8"}, f"{why}\n".encode())


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int
    scheme: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@asynccontextmanager
async def serve(
    app: App,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
    grace: float = 5.0,
    max_body: int = 16 * 2**20,
    most_connections: int | None = None,
    longest_connection: float | None = None,
    slowest: float | None = None,
    refuse: Refuse = refuse_plainly,
    leaving: Callable[[], None] = lambda: None,
) -> AsyncIterator[Address]:
    """Listen for the time of an ``async with`` block; ``port=0`` takes a free one.

    ``leaving`` is called once nothing new comes in: time to end what would not end by itself.
    """
    handler = _Handler(app, refuse, max_body, slowest)
    server = web.Server(
        handler,
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        max_line_size=_MAX_HEADER,
        max_field_size=_MAX_HEADER,
        logger=_ConnectionLog(log),
    )
    loop = asyncio.get_running_loop()

    def accept() -> asyncio.Protocol:
        if most_connections is not None and len(server.connections) >= most_connections:
            return _TurnedAway()
        connection = server()
        if longest_connection is not None:
            loop.call_later(longest_connection, _cut, connection)
        if slowest is not None:
            handler.expect(connection, slowest)
        return connection

    listening = await loop.create_server(accept, host, port, ssl=ssl_context)
    bound = listening.sockets[0].getsockname()
    try:
        yield Address(bound[0], bound[1], "https" if ssl_context else "http")
    finally:
        listening.close()
        server.pre_shutdown()  # idle connections end here
        leaving()
        await handler.finish(grace)
        await server.shutdown(grace)
        await listening.wait_closed()


class _ConnectionLog(logging.LoggerAdapter[logging.Logger]):
    """What aiohttp has to say.  That a client sent no HTTP is no fault of ours: a word, and no trace."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        if isinstance(exc_info, HttpProcessingError):
            self.info(f"{msg}: it sent no HTTP (%s)", *args, type(exc_info).__name__)
        else:
            super().exception(msg, *args, exc_info=exc_info, **more)


class _TurnedAway(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _cut(connection: web.RequestHandler) -> None:
    if connection.transport is not None:
        connection.transport.abort()


class _Handler:
    """The app, as aiohttp wants it called."""

    def __init__(self, app: App, refuse: Refuse, max_body: int, slowest: float | None) -> None:
        self._app = app
        self._refuse = refuse
        self._max_body = max_body
        self._slowest = slowest
        self._under_way: set[asyncio.Task[object]] = set()
        # Connections that sent nothing yet, each with the moment when it is cut.
        self._silent: dict[object, asyncio.TimerHandle] = {}

    def expect(self, connection: web.RequestHandler, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._silent[connection] = loop.call_later(seconds, self._cut_silent, connection)

    def _cut_silent(self, connection: web.RequestHandler) -> None:
        del self._silent[connection]
        _cut(connection)

    async def finish(self, grace: float) -> None:
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=grace)

    async def __call__(self, asked: web.BaseRequest) -> web.StreamResponse:
        if (task := asyncio.current_task()) is None:
            raise AssertionError("a handler runs in a task")
        self._under_way.add(task)
        try:
            return await self._respond(asked)
        finally:
            self._under_way.discard(task)

    async def _respond(self, asked: web.BaseRequest) -> web.StreamResponse:
        if (silent := self._silent.pop(asked.protocol, None)) is not None:
            silent.cancel()
        request = Request(asked.method, asked.raw_path, Headers(asked.headers), None, _offers(asked))
        try:
            answer = await self._asked(asked, request)
        except Exception:
            log.exception("%s %s: the app failed", asked.method, asked.path)
            answer = self._refuse(request, 500, "internal error")
        if answer.talk is not None:
            return await _talk(asked, answer, answer.talk)
        if isinstance(answer.body, bytes):
            return web.Response(status=answer.status, headers=_fields(answer.headers), body=answer.body)
        return await _stream(asked, answer, answer.body)

    async def _asked(self, asked: web.BaseRequest, request: Request) -> Answer:
        if asked.body_exists:
            try:
                async with asyncio.timeout(self._slowest):
                    body = await self._read(asked)
            except TimeoutError:
                return self._refuse(request, 408, f"the body took longer than {self._slowest:g} s")
            if body is None:
                return self._refuse(request, 413, f"the body is longer than {self._max_body} bytes")
            request = request._replace(body=body or None)
        return await self._app(request)

    async def _read(self, asked: web.BaseRequest) -> bytes | None:
        pieces, size = [], 0
        async for piece in asked.content.iter_any():
            size += len(piece)
            if size > self._max_body:
                return None
            pieces.append(piece)
        return b"".join(pieces)


def _fields(headers: Mapping[str, str]) -> Mapping[str, str] | CIMultiDict[str]:
    """What is on lines of its own is a field of its own."""
    if not any("\n" in value for value in headers.values()):
        return headers
    return CIMultiDict((name, value) for name, values in headers.items() for value in values.split("\n"))


def _offers(asked: web.BaseRequest) -> tuple[str, ...]:
    if asked.headers.get("Upgrade", "").lower() != "websocket":
        return ()
    return tuple(offer.strip() for offer in asked.headers.get("Sec-WebSocket-Protocol", "").split(","))


async def _stream(asked: web.BaseRequest, answer: Answer, body: AsyncIterable[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=_fields(answer.headers))
    pieces = aiter(body)
    try:
        await response.prepare(asked)
        async for piece in pieces:
            await response.write(piece)
        await response.write_eof()
    except BaseException as error:
        if asked.transport is not None:
            asked.transport.abort()
        if not isinstance(error, ConnectionError | asyncio.CancelledError):
            log.exception("%s %s: the body failed midway", asked.method, asked.path)
            return response
        raise
    finally:
        if (closing := getattr(pieces, "aclose", None)) is not None:
            await closing()
    return response


async def _talk(
    asked: web.BaseRequest, answer: Answer, talk: Callable[[WebSocket], Awaitable[None]]
) -> web.StreamResponse:
    stream = web.WebSocketResponse(
        protocols=(answer.subprotocol,) if answer.subprotocol else (),
        timeout=CLOSE_TIMEOUT,
        autoclose=False,
        autoping=False,
        max_msg_size=MAX_MESSAGE,
    )
    stream.headers.update(answer.headers)
    await stream.prepare(asked)
    messages = MessageStream(stream, stream.ws_protocol, f"{asked.method} {asked.path}")
    try:
        await talk(messages)
    except SetpointError as error:
        log.info("%s", error)
    finally:
        await messages.close()
    return stream
