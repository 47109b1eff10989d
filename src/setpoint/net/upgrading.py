"""Hands a connection whose request asked for a WebSocket over to aiohttp, which speaks it.

The request was read already and is read again, by aiohttp, which does the handshake.  From then on the
connection is its own.  In a file apart, since a server that talks to nobody need not load it.

Used by ``listen.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from setpoint.errors import SetpointError
from setpoint.net.headers import lines
from setpoint.net.messages import CLOSE_TIMEOUT, MAX_MESSAGE, MessageStream
from setpoint.net.transport import Request, WebSocket

log = logging.getLogger("setpoint.listen")

Talk = Callable[[WebSocket], Awaitable[None]]


async def hand_over(
    transport: asyncio.Transport,
    request: Request,
    talk: Talk,
    *,
    subprotocol: str,
    headers: Mapping[str, str],
) -> None:
    """Let ``talk`` have the connection until it is gone."""
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handle(asked: web.BaseRequest) -> web.StreamResponse:
        try:
            return await _talk(asked, talk, subprotocol, headers)
        finally:
            protocol.close()  # after this answer

    server = web.Server(handle, handler_cancellation=True, access_log=None)
    protocol = _Handler(server, gone)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(_written(request))
    try:
        await gone
    finally:
        transport.abort()
        await server.shutdown(CLOSE_TIMEOUT)


class _Handler(web.RequestHandler):
    """aiohttp's side of a connection; it says when that is gone."""

    __slots__ = ("_gone",)

    def __init__(self, server: web.Server, gone: asyncio.Future[None]) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), logger=log)
        self._gone = gone

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if not self._gone.done():
            self._gone.set_result(None)


def _written(request: Request) -> bytes:
    """The head of a request, as it came."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in lines(request.headers))
    return f"{request.method} {request.target} HTTP/1.1\r\n{fields}\r\n".encode("utf-8", "surrogateescape")


async def _talk(
    asked: web.BaseRequest, talk: Talk, subprotocol: str, headers: Mapping[str, str]
) -> web.StreamResponse:
    stream = web.WebSocketResponse(
        protocols=(subprotocol,) if subprotocol else (),
        timeout=CLOSE_TIMEOUT,
        autoclose=False,
        autoping=False,
        max_msg_size=MAX_MESSAGE,
    )
    stream.headers.update(headers)
    await stream.prepare(asked)
    messages = MessageStream(stream, stream.ws_protocol, f"{asked.method} {asked.path}")
    try:
        await talk(messages)
    except SetpointError as error:
        log.info("%s", error)
    finally:
        await messages.close()
    return stream
