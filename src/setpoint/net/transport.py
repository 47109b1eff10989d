"""The seam between asking and sending: one request in, one response out.

``Transport`` is a function.  The real one is ``http.HttpTransport``; an in-memory server, a recorder or
a fault stands in its place by being such a function, or by wrapping one.  Nothing above this file
knows the HTTP library.

A transport raises ``ConnectionFailed`` when nothing was sent, ``AnswerLost`` when something was and the
answer did not arrive whole, ``BadAnswer`` when what arrived is not HTTP.  An HTTP error status is not an
error here: it is a response.  Deadlines are the caller's: cancelling the call abandons the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias


class Request(NamedTuple):
    """A value: what would be sent.  ``target`` is path and query, percent-encoded, from the server's root.

    A header that is to be sent several times has its values on lines of their own.
    """

    method: str
    target: str
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes | None = None
    upgrade: tuple[str, ...] = ()  # WebSocket subprotocols to offer, best first; () asks for plain HTTP
    # Asked at the last moment, when there is a connection; what it raises is raised, and nothing is sent.
    check: Callable[[], None] | None = None
    certificate: bytes | None = None  # the client's, in DER: seen by who listens, and verified by TLS

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.target}>"  # headers hold credentials, the body may hold Secrets


class WebSocket(Protocol):
    """A message stream that took the place of a response's body (status 101)."""

    @property
    def subprotocol(self) -> str: ...

    async def send(self, message: bytes) -> None: ...

    async def send_text(self, message: bytes) -> None:
        """One that is marked as text, which it must be, in UTF-8."""

    async def receive(self) -> bytes | None:
        """The next binary or text message as bytes; None once the peer has closed."""

    async def close(self) -> None: ...


class Response(Protocol):
    """What came back.  Read it whole or chunk by chunk, then close it; closing twice is fine."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Case-insensitive; a header that came several times is joined by ", "."""

    @property
    def websocket(self) -> WebSocket | None:
        """The stream, where ``upgrade`` was asked for and granted."""

    async def read(self) -> bytes:
        """The whole body; the connection is free again afterwards."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, in pieces of any size."""

    async def close(self) -> None:
        """Let go of the connection, whatever is left unread."""


class Whole:
    """A response whose body is there."""

    websocket: WebSocket | None = None

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body

    async def close(self) -> None:
        pass


Transport: TypeAlias = Callable[[Request], Awaitable[Response]]
