"""An app as a transport: request in, answer out, in one process and without a socket.

Promises:

1. The app sees what it would see from ``listen.py``, and the caller what it would see from ``http.py``: an
   app that fails is a 500, a body that fails midway is ``AnswerLost``, and after ``close`` nothing is sent.
2. A body that is an iterator runs in a task of its own, at most ``_AHEAD`` pieces before its reader, and ends
   when the response is closed: a reader that gives up waiting has not stopped the writer.
3. No thread and no clock: in virtual time the same calls give the same answers in the same order.

Not here: WebSockets, which need a socket so far.  Fed by a client; drained by the app it is given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import suppress

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.headers import Headers, lines
from setpoint.net.listen import Answer, App, Refuse, refuse_plainly
from setpoint.net.transport import Request, Response, WebSocket, Whole

log = logging.getLogger("setpoint.listen")

_AHEAD = 64  # pieces of a stream; a socket's buffers hold about as many


class Loopback:
    """A ``Transport`` that calls an app."""

    def __init__(
        self,
        app: App,
        *,
        headers: Mapping[str, str] | None = None,
        max_body: int | None = None,
        refuse: Refuse = refuse_plainly,
    ) -> None:
        self._app = app
        self._headers = dict(headers or {})  # added where a request has none of that name
        self._max_body = max_body
        self._refuse = refuse
        self._open: set[_Streamed] = set()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<Loopback {len(self._open)} streams{', closed' if self._is_closed else ''}>"

    async def __call__(self, request: Request) -> Response:
        doing = f"{request.method} {request.target}"
        if self._is_closed:
            raise ConnectionFailed(doing, "the server in this process is closed")
        if request.check is not None:
            request.check()
        seen = request._replace(
            headers=self._fields(request.headers), body=request.body or None, check=None, certificate=None
        )
        answer = await self._answer(seen)
        if answer.talk is not None:
            raise ConnectionFailed(doing, "a WebSocket needs a socket: serve the app on a port")
        fields = Headers(lines(answer.headers))
        if request.method == "HEAD":
            await _closed(answer.body)
            return Whole(answer.status, fields, b"")
        if isinstance(answer.body, bytes):
            return Whole(answer.status, fields, answer.body)
        response = _Streamed(answer.status, fields, answer.body, doing, self._open)
        self._open.add(response)
        return response

    async def close(self) -> None:
        """Cut what is under way, as a server that goes away does."""
        self._is_closed = True
        for response in list(self._open):
            await response.close()

    async def _answer(self, request: Request) -> Answer:
        if self._max_body is not None and request.body and len(request.body) > self._max_body:
            return self._refuse(request, 413, f"the body is longer than {self._max_body} bytes")
        try:
            return await self._app(request)
        except Exception:
            log.exception("%s %s: the app failed", request.method, request.target.partition("?")[0])
            return self._refuse(request, 500, "internal error")

    def _fields(self, headers: Mapping[str, str]) -> Headers:
        fields = Headers(lines(headers))
        for name, value in self._headers.items():
            if name not in fields:
                fields.add(name, value)
        return fields


async def _closed(body: bytes | AsyncIterable[bytes]) -> None:
    """Of a body that nobody is to see, as much is read as over a socket: nothing."""
    if not isinstance(body, bytes) and (closing := getattr(aiter(body), "aclose", None)) is not None:
        await closing()


class _Streamed:
    """A response whose body comes piece by piece."""

    websocket: WebSocket | None = None

    def __init__(
        self,
        status: int,
        headers: Headers,
        body: AsyncIterable[bytes],
        doing: str,
        opened: set[_Streamed],
    ) -> None:
        self.status = status
        self.headers = headers
        self._doing = doing
        self._opened = opened
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        self._failed = False
        self._writer = asyncio.get_running_loop().create_task(self._write(body))

    async def _write(self, body: AsyncIterable[bytes]) -> None:
        pieces = aiter(body)
        try:
            async for piece in pieces:
                await self._pieces.put(piece)
        except Exception:
            log.exception("%s: the body failed midway", self._doing.partition("?")[0])
            self._failed = True
        finally:
            if (closing := getattr(pieces, "aclose", None)) is not None:
                await closing()
            self._opened.discard(self)
        await self._pieces.put(None)

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            if self._writer.cancelled() and self._pieces.empty():
                raise AnswerLost(self._doing, "the connection was cut")
            piece = await self._pieces.get()
            if piece is None:
                break
            if piece:
                yield piece
        if self._failed:
            raise AnswerLost(self._doing, "the answer ended in the middle")

    async def close(self) -> None:
        self._opened.discard(self)
        if not self._writer.done():
            self._writer.cancel()
            await asyncio.wait([self._writer])
            self._failed = True
            with suppress(asyncio.QueueFull):  # a reader that waits is told
                self._pieces.put_nowait(None)
