"""Decides where a request ends and the next begins, in the bytes of one connection.

Promises:

1. What is given out is whole: its head, and its body of at most ``max_body`` bytes, as it was sent.
2. A request whose end is in doubt is none, and nothing after it is looked at (``broken`` says why).  llhttp
   decides what is in doubt, without any of its leniencies.
3. A body that is too long is known to be as soon as its length is, and what still comes of it is dropped.
4. Neither a head nor a body is kept beyond its limit, in however many pieces it comes.
5. What follows a body (trailers) is not taken for headers: whoever judges those has not seen it.
6. How long a body may be is asked of its head alone (``most_body``), before any of it is kept, wherever it
   is or may become longer than ``SMALL``.

No I/O here.  Fed and drained by ``listen.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from setpoint.net.headers import Headers
from setpoint.net.transport import Request

SMALL: Final = 4 * 2**10  # bytes of a body that anybody may send, whoever it is
_MOST_HEAD: Final = 128 * 2**10  # bytes of a request's head, and of what follows its body

_BESIDES: Final = len(b": \r\n")  # a header's name and value


class Arrived(NamedTuple):
    """A request, and what is to be known for its answer."""

    request: Request
    is_last: bool  # the connection is to be closed after the answer
    is_old: bool  # of HTTP/1.0 or before, which know no chunks
    is_too_long: bool  # the body, which is left out
    size: int = 0  # bytes of its head and its body, as they are kept


class Arriving:
    """The requests of one connection."""

    def __init__(
        self,
        max_body: int,
        certificate: bytes | None = None,
        most_body: Callable[[Request], int] | None = None,
    ) -> None:
        self._max_body = max_body
        self._most_body = most_body  # of this request, by its head
        self._certificate = certificate  # the client's, told with each request
        self._parser = HttpRequestParser(self)
        self._whole: list[Arrived] = []
        self.broken = ""  # why nothing more is read; "" while all is well
        self.is_in_head = self.is_in_body = False
        self.expects_leave = False  # to send its body: a client that asks first
        self.is_too_long = False  # the body that is coming, or came
        self._begin()

    def __repr__(self) -> str:
        where = "head" if self.is_in_head else "body" if self.is_in_body else "between two"
        return f"<Arriving {self.broken or where}>"

    def _begin(self) -> None:
        self._target = b""
        self._headers = Headers()
        self._head = 0  # bytes of it, as far as it was read
        self._unread = 0  # bytes that came since, of what the parser holds and has not told
        self._pieces: list[bytes] = []
        self._size = 0  # of the pieces
        self._most = self._max_body  # of them
        self.is_too_long = False
        self.request = Request("", "")  # as far as it is known: without its body

    def feed(self, data: bytes) -> list[Arrived]:
        """The requests that are whole now."""
        headers, size = self._headers, self._size
        while data and not self.broken:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                # What is wanted is for the app to say.  Until then, this goes on as any connection does.
                data = data[upgrade.args[0] :]
                self._parser = HttpRequestParser(self)
            except HttpParserError as error:
                self.broken = str(error) or "it is no HTTP"
            else:
                break
        if self._headers is headers and self._size == size and (self.is_in_head or self.is_in_body):
            self._unread += len(data)  # all of it was of one head, or of what follows one body
            if self._unread > _MOST_HEAD:
                self.broken = self.broken or "the head is too long"
        whole, self._whole = self._whole, []
        return whole

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _MOST_HEAD:
            self.broken = "the head is too long"

    # ── What the parser finds ───────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        self._begin()
        self.is_in_head = True

    def on_url(self, piece: bytes) -> None:
        self._target += piece
        self._count(len(piece))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _BESIDES)
        if self.is_in_head and not self.broken:
            self._headers.add(name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        self.is_in_head, self.is_in_body = False, True
        headers, parser = self._headers, self._parser
        self.request = Request(
            parser.get_method().decode("latin-1"),
            self._target.decode("utf-8", "surrogateescape"),
            headers,
            None,
            _offers(headers),
            certificate=self._certificate,
        )
        length, coding = headers.get("content-length", "0"), headers.get("transfer-encoding")
        has_body = length != "0" or coding is not None
        if coding is not None and (coding.lower() != "chunked" or parser.get_http_version() != "1.1"):
            self.broken = "a body is sent in chunks of HTTP/1.1, and in no other coding"
        elif has_body and parser.should_upgrade():
            self.broken = "an upgrade has no body"  # the parser would take it for the next request
        elif has_body:
            announced = int(length)  # the parser let nothing but digits through
            if self._most_body is not None and (announced > SMALL or coding is not None):
                self._most = min(self._max_body, self._most_body(self.request))
            self.is_too_long = announced > self._most
            self.expects_leave = not self.is_too_long and headers.get("expect", "").lower() == "100-continue"

    def on_body(self, piece: bytes) -> None:
        self._size += len(piece)
        self._unread = 0
        if self._size > self._most:
            self.is_too_long = True
            self._pieces.clear()
        elif not self.is_too_long:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self.is_in_body = self.expects_leave = False
        if self.broken:
            return
        request, pieces = self.request, self._pieces
        self._pieces = []  # a connection that waits for its next request holds none of the last
        if pieces:
            request = request._replace(body=pieces[0] if len(pieces) == 1 else b"".join(pieces))
        is_last = not self._parser.should_keep_alive() or request.method == "CONNECT"
        is_old = self._parser.get_http_version() != "1.1"
        size = self._head + len(request.body or b"")
        self._whole.append(Arrived(request, is_last, is_old, self.is_too_long, size))


def _offers(headers: Headers) -> tuple[str, ...]:
    if headers.get("upgrade", "").lower() != "websocket":
        return ()
    return tuple(offer.strip() for offer in headers.get("sec-websocket-protocol", "").split(","))
