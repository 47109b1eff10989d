"""One connection to a server: a request goes out, its answer comes in, and then perhaps the next.

Promises:

1. A request is one write, and nothing is written by anyone else.
2. Who waits for an answer is told how it ended, whatever happens to the connection.  A part is never taken
   for the whole.
3. What nobody reads is not kept without end: past ``_MUCH`` bytes the server is made to wait.  A body that is
   read whole is kept up to ``max_body`` bytes, unpacked.
4. A connection goes on to another request only if the answer was whole, nothing came after it, and all of the
   request was sent.  Whatever a server says while it was asked nothing ends the connection.

Not here: where an answer ends (``answering.py``), which connection is used (``http.py``), how one comes to be
(``dialing.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, Self, cast

from setpoint.errors import TransportError
from setpoint.net.answering import SWITCHING, Answering
from setpoint.net.failures import Way, cut_short, not_answered, not_gzip, not_http, too_long
from setpoint.net.transport import Request, WebSocket
from setpoint.net.unpacking import NotGzip, Unpacking

if TYPE_CHECKING:
    import ssl

_MUCH: Final = 512 * 2**10  # bytes that wait for their reader
_LARGE: Final = 64 * 2**10  # a body that is not copied behind its head


class Owner(Protocol):
    """Who has the connections."""

    def freed(self, connection: Connection) -> None:
        """It can take another request."""

    def lost(self, connection: Connection) -> None:
        """It is no more."""


class Connection(asyncio.Protocol):
    """Asks one thing at a time."""

    transport: asyncio.Transport

    def __init__(self, owner: Owner, way: Way, tls: ssl.SSLContext | None, max_body: int) -> None:
        self.tls = tls  # that it was made with
        self.loss: Exception | None = None  # what the system said when it was lost, if it said something
        self.idle_since = 0.0
        self._owner = owner
        self._way = way
        self._max_body = max_body
        self._loop = asyncio.get_running_loop()
        self._answering = Answering()
        self._request: Request | None = None  # that is being answered
        self._waiter: asyncio.Future[HttpResponse] | None = None  # for the answer to begin
        self._response: HttpResponse | None = None  # that has begun and not ended
        self._has_answered = False  # ever
        self._is_paused = False
        self._is_over = False  # nothing that comes is listened to any more

    def __repr__(self) -> str:
        doing = "cut" if self._is_over else "idle" if self._request is None else doing_of(self._request)
        return f"<Connection to {self._way.where} {doing}>"

    def ask(self, request: Request, head: bytes) -> asyncio.Future[HttpResponse]:
        """Send it.  The answer is there when its head is; whoever gives up waiting has to ``abandon``."""
        self._request = request
        self._answering.expect(request.method)
        waiter = self._waiter = self._loop.create_future()
        body = request.body
        if not body:
            self.transport.write(head)
        elif len(body) < _LARGE:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        return waiter

    def cut(self, error: TransportError | None = None) -> None:
        """End it at once: closing TLS in order would wait for the peer's goodbye, half a minute from one
        that is no longer there.
        """
        self._is_over = True
        self.transport.abort()
        self._fail(error)

    def abandon(self, waiter: asyncio.Future[HttpResponse]) -> None:
        """Nobody waits for this any more.  The connection may have gone on to the next request already."""
        if self._waiter is waiter:
            self.cut()
        elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            waiter.result().let_go()
            if waiter.result().status == SWITCHING:  # whole, and the connection is nobody's
                self.cut()

    def close(self) -> None:
        """End it in order; for one that is idle."""
        self._is_over = True
        self.transport.close()

    @property
    def is_open(self) -> bool:
        """Whether it was still there when the loop last looked."""
        return not self._is_over and not self.transport.is_closing()

    def pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if not self._is_over:
                self.transport.resume_reading()

    def hand_over(self) -> tuple[asyncio.Transport, bytes]:
        """After an answer that granted an upgrade: what the connection goes on as is somebody else's.  With
        what came already; no more is read until the other resumes.
        """
        self._is_over = True
        self._owner.lost(self)
        return self.transport, self._answering.rest

    # ── What the loop tells ─────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._request is None:  # nothing was asked
            self.cut()
            return
        answering = self._answering
        answering.feed(data)
        response = self._response
        if response is None:
            if not answering.has_head:
                if answering.broken:
                    self.cut(not_http(doing_of(self._request), self._way, answering.broken))
                return
            response = self._begin()
            if response is None:
                return
        if answering.pieces:
            response.feed(answering.take())
        if answering.is_whole:
            self._end(response)
        elif answering.broken and not self._is_over:
            self.cut(not_http(doing_of(self._request), self._way, answering.broken))

    def eof_received(self) -> None:
        self._gone(None, is_end=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone(exc, is_end=False)
        self._owner.lost(self)

    # ── The answer ──────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> HttpResponse | None:
        request, answering, waiter = self._request, self._answering, self._waiter
        if request is None or waiter is None:
            raise AssertionError("an answer begins where one is waited for")
        if answering.status == SWITCHING and not request.upgrade:
            why = "it goes on in a protocol that was not asked for"
            self.cut(not_http(doing_of(request), self._way, why))
            return None
        if waiter.done():  # cancelled: nobody waits any more
            self.cut()
            return None
        self._waiter, self._has_answered = None, True
        self._response = response = HttpResponse(self, request, answering, self._max_body)
        waiter.set_result(response)
        return response

    def _end(self, response: HttpResponse) -> None:
        answering = self._answering
        self._response = self._request = None
        self.resume()
        if answering.status == SWITCHING:
            self.pause()  # what comes now is for whom the connection is handed over to
        elif self._is_over:
            pass
        elif answering.is_beyond or not answering.can_go_on or self.transport.get_write_buffer_size():
            self._is_over = True
            self.transport.abort()
        else:
            self._owner.freed(self)
        response.end()

    def _gone(self, error: Exception | None, *, is_end: bool) -> None:
        """The connection ended: for the system's reasons, or since the peer said so (``is_end``)."""
        if self._is_over:
            return
        self._is_over, self.loss = True, error
        if hasattr(self, "transport"):  # else a tunnel broke in the moment that TLS was agreed on
            self.transport.abort()
        request, response = self._request, self._response
        if request is None:
            return
        if response is None:
            is_first = not self._has_answered
            said: TransportError = not_answered(doing_of(request), self._way, error, is_first=is_first)
        elif is_end and self._answering.ends_with_connection:
            self._end(response)
            return
        else:
            said = cut_short(doing_of(request))
        said.__cause__ = error
        self._fail(said)

    def _fail(self, error: TransportError | None) -> None:
        waiter, response, request = self._waiter, self._response, self._request
        self._waiter = self._response = self._request = None
        if request is None:
            return
        error = error or cut_short(doing_of(request))
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        if response is not None:
            response.fail(error)


class HttpResponse:
    """An answer that began; its body is read as a whole or as it comes."""

    __slots__ = (
        "_error",
        "_has_ended",
        "_max_body",
        "_pieces",
        "_request",
        "_size",
        "_unpacking",
        "_waiter",
        "_wants_whole",
        "connection",
        "headers",
        "status",
    )

    websocket: WebSocket | None = None

    def __init__(self, connection: Connection, request: Request, answering: Answering, max_body: int) -> None:
        headers = answering.headers()
        self.status = answering.status
        self.headers: Mapping[str, str] = headers
        self.connection = connection
        self._request = request
        self._max_body = max_body
        self._unpacking = Unpacking() if headers.get("content-encoding", "").lower() == "gzip" else None
        self._pieces: list[bytes] = []  # still packed, unless the whole is wanted
        self._size = 0  # of the pieces
        self._wants_whole = False
        self._has_ended = False
        self._error: TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<{self.status} to {doing_of(self._request)}>"

    # ── For who asked ───────────────────────────────────────────────────────────────────────────────

    async def read(self) -> bytes:
        if self._has_ended and self._unpacking is None and not self._wants_whole:  # as most are
            if self._size > self._max_body:
                raise too_long(doing_of(self._request), self._max_body)
            return self._taken()
        if not self._wants_whole:
            self._wants_whole = True
            self._keep_unpacked()
        if not self._has_ended and self._error is None:
            self.connection.resume()
            await self._more()
        if self._error is not None:
            raise self._error
        self._check_end()
        pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def chunks(self) -> AsyncIterator[bytes]:
        return _Chunks(self._piece)

    async def close(self) -> None:
        self.let_go()

    def let_go(self) -> None:
        if not self._has_ended and self._error is None:
            self.connection.cut()

    async def _piece(self) -> bytes:
        while True:
            if piece := self._taken():
                return piece
            if self._pieces or (self._unpacking is not None and self._unpacking.has_more):
                continue  # so far, packed bytes that stand for nothing yet
            if self._error is not None:
                raise self._error
            if self._has_ended:
                self._check_end()
                return b""
            await self._more()

    def _taken(self) -> bytes:
        """What is there: all of it, or as much of it as may be unpacked at once."""
        unpacking = self._unpacking
        if unpacking is not None and unpacking.has_more and not self._wants_whole:
            return self._unpacked(unpacking, b"", _MUCH)
        pieces = self._pieces
        if not pieces:
            return b""
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces, self._size = [], 0
        if not self._has_ended:
            self.connection.resume()
        if unpacking is None or self._wants_whole:
            return piece
        return self._unpacked(unpacking, piece, _MUCH)

    async def _more(self) -> None:
        """Wait for something to happen."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except BaseException:  # cancelled: what is left unread must not be taken for the next answer
            self.let_go()
            raise
        finally:
            self._waiter = None

    def _unpacked(self, unpacking: Unpacking, packed: bytes, most: int) -> bytes:
        try:
            return unpacking.unpack(packed, most)
        except NotGzip:
            self._refuse(not_gzip(doing_of(self._request)))
            return b""

    def _keep_unpacked(self) -> None:
        """From now on the whole is wanted, of what came already, too."""
        pieces, self._pieces, self._size = self._pieces, [], 0
        for piece in pieces:
            self.feed(piece)
        if self._unpacking is not None and self._unpacking.has_more:
            self.feed(b"")

    def _check_end(self) -> None:
        if self._unpacking is not None and self._unpacking.is_cut_short:
            raise not_gzip(doing_of(self._request))

    def _refuse(self, error: TransportError) -> None:
        if self._has_ended:
            self._error = self._error or error
        else:
            self.connection.cut(error)

    # ── For the connection ──────────────────────────────────────────────────────────────────────────

    def feed(self, piece: bytes) -> None:
        if self._error is not None:
            return
        if self._wants_whole:
            if self._unpacking is not None:
                piece = self._unpacked(self._unpacking, piece, self._max_body - self._size + 1)
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > self._max_body:
                self._refuse(too_long(doing_of(self._request), self._max_body))
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > _MUCH:
            self.connection.pause()
        if self._waiter is not None:
            self._wake()

    def end(self) -> None:
        self._has_ended = True
        if self._waiter is not None:
            self._wake()

    def fail(self, error: TransportError) -> None:
        self._error = self._error or error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Chunks:
    """A body as it arrives.  A class, for a generator that is left early lingers until it is collected."""

    __slots__ = ("_next",)

    def __init__(self, next_piece: Callable[[], Awaitable[bytes]]) -> None:
        self._next = next_piece

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if piece := await self._next():
            return piece
        raise StopAsyncIteration


def doing_of(request: Request) -> str:
    """Without the query, which may hold the command of an exec."""
    return f"{request.method} {request.target.partition('?')[0]}"
