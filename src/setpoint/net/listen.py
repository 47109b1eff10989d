"""Accepts connections and hands their requests to an app: one function, request in, answer out.

Promises:

1. The app sees a ``Request`` as ``transport.py`` has it, with a whole body of at most ``max_body`` bytes
   (else 413), as it was sent: nothing is unpacked.  It answers with a value and never sees a socket.
2. A body that is an iterator is sent piece by piece as it comes.  If it fails midway the connection is cut,
   so that a part is never taken for the whole.
3. Who asked and went away is not worked for: the app's task is cancelled.
4. Leaving ``serve`` ends everything it began: nothing new is accepted, requests under way have ``grace``
   seconds to finish, the rest is cancelled.
5. With ``most_connections`` there are never more at a time, those that have not agreed on TLS yet among
   them: further ones are cut as they come.  With ``longest_connection`` none lasts longer, whatever it is
   doing: who sends nothing takes nobody's place.  With ``longest_idle`` one that is between two requests is
   closed after that many seconds, or up to twice as many.
6. With ``slowest`` a connection has that many seconds to send its first request's head (else it is cut), and
   a request as many from its first byte to its last (else 408, or cut where not even its head is there): who
   sends a byte a minute holds nothing for long.
7. What is answered here and not by the app (408, 413, 500) is worded by ``refuse``.
8. Requests that were sent at once are answered in turn; while many wait, or much, no more are read.
9. With ``most_body`` a request is asked about by its head, before its body is kept: who is not known cannot
   make us hold what it sends.
10. With ``slowest``, who is slow to take what is sent is cut: an answer, or a piece of one that goes on, has
   twice as many seconds, and so has what is left of it when the connection is to end.  So pieces are small.

Not here: where a request ends (``arriving.py``), WebSockets (``upgrading.py``), routes, Kubernetes, who may
ask.  Fed by sockets; drained by the app it is given.  The library that sends is not loaded to listen: that
would take longer than all else that a server does before it is ready.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Final, TypeAlias, cast

from setpoint.net.arriving import Arrived, Arriving
from setpoint.net.headers import lines
from setpoint.net.sealing import Sealed
from setpoint.net.transport import Request, WebSocket

log = logging.getLogger("setpoint.listen")

_LINGER: Final = 5.0  # seconds in which a refused body may go on coming before the connection is cut
_AGREED_WITHIN: Final = 60.0  # seconds to agree on TLS, where ``slowest`` says nothing else
_FAREWELL: Final = 1.0  # seconds that a connection has to close when the server leaves
_TAKEN_WITHIN: Final = 2  # times ``slowest``: an answer may be larger than any request
_LARGE: Final = 64 * 2**10  # a body that is not copied behind its head
_MOST_WAITING: Final = 16  # requests of one connection: then no more are read
_MUCH_WAITING: Final = 64 * 2**10  # bytes of them
_BODILESS: Final = frozenset({HTTPStatus.NO_CONTENT.value, HTTPStatus.NOT_MODIFIED.value})
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


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
    ssl_context: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
    grace: float = 5.0,
    max_body: int = 16 * 2**20,
    most_connections: int | None = None,
    longest_connection: float | None = None,
    longest_idle: float | None = None,
    slowest: float | None = None,
    most_body: Callable[[Request], int] | None = None,
    refuse: Refuse = refuse_plainly,
    leaving: Callable[[], None] = lambda: None,
) -> AsyncIterator[Address]:
    """Listen for the time of an ``async with`` block; ``port=0`` takes a free one.

    ``ssl_context`` may be a function, which is asked with each connection: certificates are renewed.
    ``most_body`` says how long a request's body may be, up to ``max_body``; it sees the head alone, and is
    asked where the body is not small.  ``leaving`` is called once nothing new comes in: time to end what
    would not end by itself.
    """
    server = _Server(app, refuse, max_body, most_body, slowest, longest_idle)
    loop = asyncio.get_running_loop()

    def accept() -> asyncio.BaseProtocol:
        if most_connections is not None and len(server.connections) >= most_connections:
            return _TurnedAway()
        connection = _Connection(server)
        server.connections.add(connection)
        if longest_connection is not None:
            loop.call_later(longest_connection, connection.cut)
        if ssl_context is None:
            return connection
        context = ssl_context if isinstance(ssl_context, ssl.SSLContext) else ssl_context()
        return _Securing(connection, context, slowest)

    listening = await loop.create_server(accept, host, port)  # TLS is ours, else who delays it is not counted
    bound = listening.sockets[0].getsockname()
    try:
        yield Address(bound[0], bound[1], "https" if ssl_context else "http")
    finally:
        listening.close()
        server.leave()
        leaving()
        await server.finish(grace)
        await listening.wait_closed()


class _TurnedAway(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _Securing(Sealed):
    """A connection whose peer has to agree on TLS in time, and takes a place meanwhile."""

    def __init__(self, connection: _Connection, context: ssl.SSLContext, slowest: float | None) -> None:
        super().__init__(connection, context, None)
        self._connection = connection
        self._within = _AGREED_WITHIN if slowest is None else slowest
        self._late: asyncio.TimerHandle | None = None
        self.opened.add_done_callback(self._agreed)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        self._connection.accepted(plain)
        self._late = asyncio.get_running_loop().call_later(self._within, plain.abort)
        super().connection_made(transport)

    def _agreed(self, opened: asyncio.Future[None]) -> None:
        if self._late is not None:
            self._late.cancel()
        if (error := opened.exception()) is not None:
            log.debug("%s did not agree on TLS: %s", self.get_extra_info("peername"), error)
            self._connection.connection_lost(None)


class _Server:
    """What the connections of one ``serve`` share."""

    def __init__(  # noqa: PLR0917 - what serve was given
        self,
        app: App,
        refuse: Refuse,
        max_body: int,
        most_body: Callable[[Request], int] | None,
        slowest: float | None,
        longest_idle: float | None,
    ) -> None:
        self.app = app
        self.refuse = refuse
        self.max_body = max_body
        self.most_body = most_body
        self.slowest = slowest
        self.taken_within = None if slowest is None else _TAKEN_WITHIN * slowest
        self.longest_idle = longest_idle
        self.connections: set[_Connection] = set()
        self.is_leaving = False

    def leave(self) -> None:
        """Idle connections end here, the others after the answer that they are about."""
        self.is_leaving = True
        for connection in list(self.connections):
            connection.leave()

    async def finish(self, grace: float) -> None:
        under_way = [connection.task for connection in self.connections if connection.task is not None]
        if under_way:
            _, late = await asyncio.wait(under_way, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=grace)
        closing = [connection.gone for connection in self.connections]
        if closing:
            await asyncio.wait(closing, timeout=_FAREWELL)
        for connection in list(self.connections):
            connection.cut()

    async def answer(self, request: Request) -> Answer:
        try:
            return await self.app(request)
        except Exception:
            log.exception("%s %s: the app failed", request.method, _path(request))
            return self.refuse(request, 500, "internal error")


class _Connection(asyncio.Protocol):
    """One connection: its requests in turn, each in a task of its own."""

    _arriving: Arriving  # once it is connected

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Arrived] = deque()  # whole, and to be answered in turn
        self._size = 0  # of those
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None  # runs while a request is coming in
        self._look: asyncio.TimerHandle | None = None  # whether it is idle; not each request starts one anew
        self._is_idle = False  # nothing came since the last look
        self._is_held = False  # nothing is read, for there is enough
        self._is_over = False  # no further request is looked at
        self._is_full = False  # nothing is written, for the peer does not read
        self._drained: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None  # that answers; the next begins when it is done
        self.gone: asyncio.Future[None] = self._loop.create_future()

    def accepted(self, transport: asyncio.Transport) -> None:
        """There is a peer, and no word of it can be read yet."""
        self._transport = transport

    # ── What the loop tells ─────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's is none by its type
        secured = transport.get_extra_info("ssl_object")
        certificate = secured.getpeercert(binary_form=True) if secured is not None else None
        self._arriving = Arriving(self._server.max_body, certificate, self._server.most_body)
        if (connected := transport.get_extra_info("socket")) is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # the dead are noticed, if late
        self._start_timer()
        self._look_later()

    def data_received(self, data: bytes) -> None:
        self._is_idle = False
        arrived = self._arriving.feed(data)
        if self._is_over:
            if arrived and self._transport is not None:  # the body that was refused has come to its end
                self._transport.close()
            return
        if arrived:
            self._stop_timer()
            self._waiting += arrived
            self._size += sum(each.size for each in arrived)
        if self.task is None:
            self._next()
        if self._is_enough() and not self._is_held and self._transport is not None:
            self._is_held = True
            self._transport.pause_reading()
        if self._timer is None and self._is_midway():
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        self._transport = None
        self._stop_timer()
        if self._look is not None:
            self._look.cancel()
        if self.task is not None:
            self.task.cancel()
        self._forget()

    def _forget(self) -> None:
        self._server.connections.discard(self)
        if not self.gone.done():
            self.gone.set_result(None)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _is_enough(self) -> bool:
        return len(self._waiting) >= _MOST_WAITING or self._size >= _MUCH_WAITING

    # ── Time ────────────────────────────────────────────────────────────────────────────────────────

    def _is_midway(self) -> bool:
        """A request is coming in, and nothing of ours holds it up."""
        return (self._arriving.is_in_head or self._arriving.is_in_body) and not self._is_held

    def _start_timer(self) -> None:
        if self._server.slowest is not None:
            self._timer = self._loop.call_later(self._server.slowest, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        if self._server.longest_idle is not None:
            self._look = self._loop.call_later(self._server.longest_idle, self._look_now)

    def _look_now(self) -> None:
        if self._is_idle and self.task is None:
            self.leave()
        else:
            self._is_idle = True
            self._look_later()

    def _too_slow(self) -> None:
        self._timer = None
        if self._arriving.is_in_body and self.task is None and not self._is_over:
            self._refuse(408, f"the body took longer than {self._server.slowest:g} s")
        else:
            self.cut()

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        if self.task is None:
            self._close()

    def _close(self) -> None:
        """End it once all that was written is taken; and at last in any case."""
        if self._transport is None:
            return
        self._is_over = True
        self._stop_timer()
        self._transport.close()
        if self._server.taken_within is not None:
            self._timer = self._loop.call_later(self._server.taken_within, self.cut)

    # ── One after another ───────────────────────────────────────────────────────────────────────────

    def _next(self) -> None:
        """Nothing is being answered: see to what is there."""
        if self._transport is None or self._is_over:
            return
        if self._waiting:
            first = self._waiting.popleft()
            self._size -= first.size
            self.task = self._loop.create_task(self._respond(first))
            if self._is_held and not self._is_enough():
                self._is_held = False
                self._transport.resume_reading()
        elif self._arriving.broken:
            log.info("%s sent no HTTP: %s", self._transport.get_extra_info("peername"), self._arriving.broken)
            self._close_with(Answer(400, {"Content-Type": "text/plain; charset=utf-8"}, b"400 Bad Request"))
            self._close()
        elif self._arriving.is_in_body and self._arriving.is_too_long:
            self._refuse(413, self._too_long())
        elif self._arriving.expects_leave:
            self._arriving.expects_leave = False
            self._transport.write(_CONTINUE)

    def _refuse(self, code: int, why: str) -> None:
        """Answer a request before all of it is there.  What still comes of it is dropped, for a while."""
        self._close_with(self._server.refuse(self._arriving.request, code, why))
        self._loop.call_later(_LINGER, self.cut)

    def _close_with(self, answer: Answer) -> None:
        self._is_over = True
        self._stop_timer()
        if self._transport is not None and isinstance(answer.body, bytes):
            length = f"Content-Length: {len(answer.body)}"
            self._transport.write(_head(answer, length, "Connection: close") + answer.body)

    def _too_long(self) -> str:
        return f"the body is longer than {self._server.max_body} bytes"

    async def _respond(self, arrived: Arrived) -> None:
        try:
            is_last = await self._answer(arrived)
        except asyncio.CancelledError:
            self.cut()
            raise
        except ConnectionError:
            is_last = True
        except Exception:
            log.exception("%s %s: no answer could be sent", arrived.request.method, _path(arrived.request))
            is_last = True
            self.cut()
        finally:
            self.task = None
            self._is_idle = False  # from now on it may be
        if self._transport is None:
            return
        if is_last or self._server.is_leaving:
            self._close()
        else:
            self._next()
            if self._timer is None and self._is_midway():
                self._start_timer()

    async def _answer(self, arrived: Arrived) -> bool:
        """Was it the last of this connection?"""
        request = arrived.request
        if arrived.is_too_long:
            answer = self._server.refuse(request._replace(body=None), 413, self._too_long())
        else:
            answer = await self._server.answer(request)
        if answer.talk is not None:
            await self._talk(request, answer, answer.talk)
            return True
        body = answer.body
        if not isinstance(body, bytes):
            return await self._stream(arrived, answer, body)
        is_last = arrived.is_last or self._server.is_leaving
        ending = "Connection: close" if is_last else "Connection: keep-alive" if arrived.is_old else ""
        if answer.status in _BODILESS:
            head, body = _head(answer, ending), b""
        else:
            head = _head(answer, f"Content-Length: {len(body)}", ending)
        if request.method == "HEAD":
            body = b""
        if self._transport is None:
            return True
        if len(body) < _LARGE:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        if self._is_full:
            await self._drain()
        return is_last

    async def _stream(self, arrived: Arrived, answer: Answer, body: AsyncIterable[bytes]) -> bool:
        request = arrived.request
        is_last = (
            arrived.is_last or arrived.is_old
        )  # what has no length and no chunks ends with the connection
        framing = "" if arrived.is_old else "Transfer-Encoding: chunked"
        pieces = aiter(body)
        try:
            await self._write(_head(answer, framing, "Connection: close" if is_last else ""))
            if request.method == "HEAD":
                return is_last
            async for piece in pieces:
                if arrived.is_old:
                    await self._write(piece)
                elif piece:  # an empty chunk would be the last
                    await self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
            if not arrived.is_old:
                await self._write(b"0\r\n\r\n")
        except BaseException as error:
            self.cut()
            if not isinstance(error, ConnectionError | asyncio.CancelledError):
                log.exception("%s %s: the body failed midway", request.method, _path(request))
                return True
            raise
        finally:
            if (closing := getattr(pieces, "aclose", None)) is not None:
                await closing()
        return is_last

    async def _write(self, data: bytes) -> None:
        if self._transport is None:
            raise ConnectionResetError("the connection is gone")
        self._transport.write(data)
        if self._is_full:
            await self._drain()

    async def _drain(self) -> None:
        """Wait until the peer has taken enough.  Who is too slow is cut; who goes away cancels this."""
        self._drained = self._loop.create_future()
        try:
            async with asyncio.timeout(self._server.taken_within):
                await self._drained
        except TimeoutError:
            self.cut()
            raise ConnectionAbortedError("the peer is too slow to take what is sent") from None
        finally:
            self._drained = None

    async def _talk(
        self, request: Request, answer: Answer, talk: Callable[[WebSocket], Awaitable[None]]
    ) -> None:
        from setpoint.net.upgrading import hand_over  # noqa: PLC0415 - few servers talk, and it is large

        if self._transport is None:
            return
        self._stop_timer()
        transport, self._transport = self._transport, None
        if self._is_held:
            transport.resume_reading()
        try:
            await hand_over(transport, request, talk, subprotocol=answer.subprotocol, headers=answer.headers)
        finally:
            self._forget()


# ── The head of an answer ───────────────────────────────────────────────────────────────────────────


def _head(answer: Answer, *more: str) -> bytes:
    """Its status and fields; ``more`` are fields of ours, those that are empty are left out."""
    fields = [_status_line(answer.status), _date(int(time.time()))]
    fields += [f"{name}: {value}" for name, value in lines(answer.headers)]
    fields += [each for each in more if each]
    text = "\r\n".join(fields)
    if text.count("\r") != len(fields) - 1 or text.count("\n") != len(fields) - 1:
        raise ValueError("a header has a line's end in it")  # what follows would be taken for another
    return f"{text}\r\n\r\n".encode("utf-8", "surrogateescape")


@lru_cache(maxsize=64)
def _status_line(code: int) -> str:
    try:
        return f"HTTP/1.1 {code} {HTTPStatus(code).phrase}"
    except ValueError:
        return f"HTTP/1.1 {code} "


_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    """In English, whatever the locale."""
    now = time.gmtime(second)
    day = f"{_DAYS[now.tm_wday]}, {now.tm_mday:02} {_MONTHS[now.tm_mon - 1]} {now.tm_year}"
    return f"Date: {day} {now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} GMT"


def _path(request: Request) -> str:
    return request.target.partition("?")[0]  # a query may hold what is nobody's business
