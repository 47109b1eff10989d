"""Decides where an answer begins and ends, in the bytes of one connection.

Promises:

1. An answer whose end is in doubt is none (``broken`` says why): llhttp decides, without its leniencies.
2. Answers on the way to the one that was asked for (100 Continue, 103 Early Hints) are passed over.
3. Whatever comes after the answer is not taken for another's: ``is_beyond`` says that something did, and
   then nothing on this connection can be trusted.
4. A head is not kept beyond its limit, in however many pieces it comes; nor what follows a body (trailers),
   which is dropped.
5. An answer whose end is that of its connection is whole only where it says neither length nor chunks
   (``ends_with_connection``), and only the end of the connection tells.

No I/O here.  Fed and drained by ``connection.py``, and by ``dialing.py`` for what a proxy says.
"""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from setpoint.net.headers import Headers

_MOST_HEAD: Final = 128 * 2**10  # bytes: a server's warnings come as headers, and some are long
_BESIDES: Final = len(b": \r\n")  # a header's name and value
_CODING: Final = len(b"Transfer-Encoding")
SWITCHING: Final = 101


class Answering:
    """The answer that is awaited on one connection, as far as it came."""

    __slots__ = (
        "_fields",
        "_method",
        "_own",
        "_parser",
        "_trailing",
        "_unread",
        "broken",
        "can_go_on",
        "has_head",
        "is_beyond",
        "is_whole",
        "on_body",
        "pieces",
        "rest",
        "status",
    )

    def __init__(self) -> None:
        self.pieces: list[bytes] = []  # of the body, until they are taken
        self.on_body = self.pieces.append  # an answer in small chunks has many, so not a function of ours
        self._parser = HttpResponseParser(self)
        self.expect("")

    def __repr__(self) -> str:
        where = "whole" if self.is_whole else "body" if self.has_head else "head"
        return f"<Answering {self.broken or where}>"

    def expect(self, method: str) -> None:
        """From now on, an answer to this."""
        self._method = method
        self._fields: list[tuple[bytes, bytes]] = []
        self._unread = self._trailing = 0  # bytes that came and told nothing; of what follows the body
        self._own = 0  # pieces that are the answer's, once it is whole
        self.status = 0
        self.has_head = self.is_whole = self.is_beyond = False
        self.can_go_on = False  # with another request, once this answer is whole
        self.broken = ""  # why nothing more is read; "" while all is well
        self.rest = b""  # what came after the head of an answer that granted an upgrade

    def feed(self, data: bytes) -> None:
        """More bytes of the connection; what they told is in the attributes."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self.rest = data[upgrade.args[0] :]
            self.is_whole = True
            return
        except HttpParserError as error:
            if self.is_whole:
                self.is_beyond = True
            else:
                self.broken = str(error) or "it is no HTTP"
            return
        if self.is_whole or self.broken:
            return
        if self._trailing > _MOST_HEAD:
            self.broken = "what follows its body is too long"
        elif self.has_head and self.pieces:
            self._unread = 0
        else:
            self._unread += len(data)
            if self._unread > _MOST_HEAD:
                self.broken = "its head is too long"

    def headers(self) -> Headers:
        return Headers.of(self._fields)

    def take(self) -> bytes:
        """What came of the body since the last time."""
        pieces = self.pieces
        if not pieces:
            return b""
        if self.is_whole and len(pieces) > self._own:
            self.is_beyond = True
            del pieces[self._own :]
        self._own = 0
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return body

    @property
    def ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self._fields}
        return self.has_head and b"content-length" not in names and b"transfer-encoding" not in names

    # ── What the parser finds ───────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        if self.is_whole:
            self.is_beyond = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:
            self._fields.append((name, value))
        elif not self.is_whole:
            self._trailing += len(name) + len(value) + _BESIDES

    def on_headers_complete(self) -> None:
        if self.is_whole or self.broken:
            return
        parser = self._parser
        status = parser.get_status_code()
        if status < 100:
            self.broken = f"it has the status {status}"
            return
        if status < 200 and status != SWITCHING:
            self._unread += sum([len(name) + len(value) for name, value in self._fields]) + _BESIDES
            self._fields = []
            return
        size = 0
        for name, value in self._fields:
            size += len(name) + len(value) + _BESIDES
            if len(name) == _CODING and name.lower() == b"transfer-encoding" and value.lower() != b"chunked":
                self.broken = "its body is in a coding that was not asked for"
                return
        if size > _MOST_HEAD:
            self.broken = "its head is too long"
            return
        self.status = status
        self.has_head = True
        if self._method == "HEAD" or (self._method == "CONNECT" and status < 300):
            # Whatever its headers say, no body follows; the parser would wait for one.
            self.can_go_on = parser.should_keep_alive()
            self.is_whole = True
            self._parser = HttpResponseParser(self)

    def on_message_complete(self) -> None:
        if self.has_head and not self.is_whole:
            self.is_whole = True
            self._own = len(self.pieces)
            self.can_go_on = self._parser.should_keep_alive()
