"""The real transport: HTTP/1.1 and WebSocket over TCP and TLS, on a pool of connections.

Promises:

1. ``ConnectionFailed`` is raised only where the server cannot have acted on the request: no connection was
   made, or TLS was refused.  From the first byte sent on, a failure is ``AnswerLost``; what is not HTTP, or
   longer than agreed, is ``BadAnswer``.  Which failure is which: ``failures.py``.
2. A request is sent at most once.  (aiohttp repeats a GET, PUT or DELETE by itself when a kept connection
   turns out to be dead; that is prevented here, for who asks decides what may be repeated.)
3. Any number of requests run at once; none ends by a clock but the opening of its connection.
4. Redirects are answers, cookies are forgotten, the environment is not read.
5. ``ssl_context`` is asked before each request.  As long as it gives the same object connections are kept and
   reused; a new object (a rotated certificate) means new connections, and the old ones age out.
6. A body is never unpacked past ``max_body``, however small it was on the wire.
7. Credentials appear in no error and no ``repr``.

Not here: deadlines, retries, credentials, Kubernetes.  Fed by ``client/sender.py``.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

import aiohttp
from yarl import URL

from setpoint.errors import BadAnswer, ConfigError, TransportError
from setpoint.net.failures import Way, cut_short, not_answered, not_connected, system_error
from setpoint.net.headers import Headers
from setpoint.net.messages import CLOSE_TIMEOUT, MAX_MESSAGE, MessageStream
from setpoint.net.transport import Request, Response, WebSocket

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.client_middlewares import ClientHandlerType
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import AddrInfoType, Connection

KEPT_FOR = 30.0  # seconds a connection may idle; servers and load balancers give up after 60 or 90
_MAX_HEADER = 64 * 2**10  # a server's warnings come as headers, and some are long
_TURNS = 10  # of the loop, until an aborted connection is known to be lost; with TLS it takes four
_BUFFER = 256 * 2**10  # what one read of a socket brings at most
_LARGE_BODY = 2**20  # from here on aiohttp wants a body as a file, to send it piece by piece


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is, and how its connections are opened."""

    server: str  # "https://host:6443", or with a path that stands before every target
    ssl_context: Callable[[], ssl.SSLContext] | None = (
        None  # cheap, and the same object while nothing changed
    )
    server_hostname: str | None = None  # the name to ask for and to verify, where it is not the host's
    proxy: str | None = field(default=None, repr=False)  # may hold a password
    user_agent: str = "setpoint"
    max_body: int = 512 * 2**20
    connect_timeout: float = 30.0


class HttpTransport:
    """Sends requests to one server.  Opened by its first request; ``close`` it, or use ``async with``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._server = _server_url(endpoint.server)
        self._prefix = str(self._server).rstrip("/")
        self._proxy = _proxy_url(endpoint.proxy)
        self._way = Way(
            where=f"{self._server.host}:{self._server.port}",
            name=endpoint.server_hostname or self._server.host or "",
            proxy=f"{self._proxy.host}:{self._proxy.port}" if self._proxy else "",
            connect_timeout=endpoint.connect_timeout,
        )
        self._headers = {"User-Agent": endpoint.user_agent, "Accept": "*/*", "Accept-Encoding": "gzip"}
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<HttpTransport {self._prefix}{' closed' if self._is_closed else ''}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection, in use or not: whoever waits for an answer is told that it is lost."""
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await self._connector.cut_all()
            await session.close()

    async def __call__(self, request: Request) -> Response:
        session = self._session or self._open(request)
        url = URL(self._prefix + request.target, encoded=True)
        headers = self._headers_of(request)
        context = self._endpoint.ssl_context
        tls = True if context is None else context()
        if request.upgrade:
            return await self._upgrade(session, request, url, headers, tls)
        try:
            answer = await self._send(session, request, url, headers, tls)
        except _Failed as caught:
            failed = caught
        else:
            return _HttpResponse(answer, request, self._endpoint.max_body)
        raise self._explained(request, failed) from system_error(failed.error)

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        url: URL,
        headers: dict[str, str] | list[tuple[str, str]],
        tls: ssl.SSLContext | bool,
    ) -> aiohttp.ClientResponse:
        """Send and wait for an answer to begin.

        The steps that aiohttp's own session takes, less those for what is not wanted here (cookies,
        redirects, repetition, a total timeout), which cost a fifth of the whole.
        """
        body = request.body
        kind = aiohttp.ClientRequest if request.check is None else _Checked
        asked = kind(
            request.method,
            url,
            headers=headers,
            data=io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body,
            loop=asyncio.get_running_loop(),
            session=session,
            proxy=self._proxy,
            ssl=tls,
            server_hostname=self._endpoint.server_hostname,
        )
        connection = await self._connector.connect(asked, traces=[], timeout=session.timeout)
        protocol = connection.protocol
        if protocol is None:
            raise AssertionError("a connection that was just got has its protocol")
        answer = None
        try:
            protocol.set_response_params(
                skip_payload=request.method == "HEAD",
                read_until_eof=True,
                read_bufsize=_BUFFER,
                max_line_size=_MAX_HEADER,
                max_field_size=_MAX_HEADER,
            )
            if request.check is not None and isinstance(asked, _Checked):
                request.check()
                asked.check = request.check
            answer = await asked.send(connection)
            return await answer.start(connection)
        except BaseException as error:
            _cut(connection)  # an answer that still comes must not be taken for the next one's
            if answer is not None:
                answer.close()
            if isinstance(error, aiohttp.ClientError | OSError):
                raise _NotAnswered(error) from None
            raise

    async def _upgrade(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        url: URL,
        headers: dict[str, str] | list[tuple[str, str]],
        tls: ssl.SSLContext | bool,
    ) -> Response:
        try:
            stream = await session.ws_connect(
                url,
                method=request.method,
                protocols=request.upgrade,
                headers=headers,
                proxy=self._proxy,
                ssl=tls,
                server_hostname=self._endpoint.server_hostname,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT),
                autoclose=False,  # so that a close frame can be told from a cut connection
                autoping=False,  # so that pongs are seen, see MessageStream.receive
                max_msg_size=MAX_MESSAGE,
            )
        except _Refused as refused:
            return _HttpResponse(refused.answer, request, self._endpoint.max_body)
        except (_Failed, aiohttp.WSServerHandshakeError) as caught:
            failed = caught if isinstance(caught, _Failed) else _NotAnswered(caught)
        else:
            return _Upgraded(MessageStream(stream, stream.protocol, _doing(request)))
        raise self._explained(request, failed) from system_error(failed.error)

    def _headers_of(self, request: Request) -> dict[str, str] | list[tuple[str, str]]:
        headers = {**self._headers, **request.headers}
        if "\n" not in "".join(request.headers.values()):
            return headers
        return [(name, line) for name, value in headers.items() for line in value.split("\n")]

    def _open(self, request: Request) -> aiohttp.ClientSession:
        if self._is_closed:
            raise RuntimeError(f"{_doing(request)}: this client is closed; open a new one")  # never retried
        self._connector = _Connector(limit=0, keepalive_timeout=KEPT_FOR, socket_factory=_socket)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._endpoint.connect_timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=(_once,),
            read_bufsize=_BUFFER,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        return self._session

    def _explained(self, request: Request, failed: _Failed) -> TransportError:
        explain = not_connected if isinstance(failed, _NotConnected) else not_answered
        return explain(_doing(request), self._way, failed.error)


class _Checked(aiohttp.ClientRequest):
    """A request that is asked about once more: before Python 3.12 a body is sent a turn of the loop later."""

    check: Callable[[], None]

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        try:
            self.check()
        except Exception as refused:  # noqa: BLE001 - raised to whoever waits for the answer
            if conn.protocol is not None:
                conn.protocol.set_exception(refused)
            return
        await super().write_bytes(writer, conn, content_length)


class _HttpResponse:
    __slots__ = ("_answer", "_max_body", "_request", "headers", "status")

    websocket: WebSocket | None = None

    def __init__(self, answer: aiohttp.ClientResponse, request: Request, max_body: int) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = Headers(answer.headers.items())
        self._answer = answer
        self._request = request
        self._max_body = max_body

    def __repr__(self) -> str:
        return f"<{self.status} to {_doing(self._request)}>"

    async def read(self) -> bytes:
        body = await self._piece()
        if not self._answer.content.at_eof():
            pieces, size = [body], len(body)
            while size <= self._max_body and (piece := await self._piece()):
                pieces.append(piece)
                size += len(piece)
            body = b"".join(pieces)
        if len(body) > self._max_body:
            _let_go(self._answer)
            raise BadAnswer(
                _doing(self._request),
                f"the answer is longer than {self._max_body} bytes",
                advice="ask for less at once, or raise max_body",
            )
        return body

    def chunks(self) -> AsyncIterator[bytes]:
        return _Chunks(self._piece)

    async def close(self) -> None:
        _let_go(self._answer)

    async def _piece(self) -> bytes:
        try:
            return await self._answer.content.readany()
        except (aiohttp.ClientError, OSError, aiohttp.http_exceptions.HttpProcessingError) as error:
            _let_go(self._answer)
            raise cut_short(_doing(self._request), error) from error
        except BaseException:  # cancelled: what is left unread must not be taken for the next answer
            _let_go(self._answer)
            raise


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


class _Upgraded:
    """The answer 101: there is no body, the connection is now a message stream."""

    status = 101
    headers: Mapping[str, str] = MappingProxyType({})  # none that the handshake has not used up

    def __init__(self, websocket: MessageStream) -> None:
        self.websocket: WebSocket | None = websocket
        self._websocket = websocket

    async def read(self) -> bytes:
        return b""

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError("an upgraded connection has no body: use its websocket")

    async def close(self) -> None:
        await self._websocket.close()


def _let_go(answer: aiohttp.ClientResponse) -> None:
    """Close the answer's connection, unless the answer was read whole and gave it back already.

    At once: closing TLS in order waits for the peer's goodbye, half a minute from one that is no longer
    there, and nobody stays to see the socket closed.
    """
    if answer.connection is not None:
        _cut(answer.connection)
    elif answer.closed:
        return
    answer.close()


def _cut(connection: Connection) -> None:
    if connection.transport is not None:
        connection.transport.abort()
    connection.close()


class _Failed(Exception):
    """Carries aiohttp's error past aiohttp, which would otherwise act on it."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _NotConnected(_Failed):
    """Nothing was sent."""


class _NotAnswered(_Failed):
    """Something may have been sent, and no answer began."""


class _Refused(Exception):
    """An upgrade was asked for and another answer came: keep it, with its body."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        super().__init__()
        self.answer = answer


class _Connector(aiohttp.TCPConnector):
    """Knows the moment up to which nothing can have been sent, and every connection there is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._protocols: WeakSet[ResponseHandler] = WeakSet()

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:
        try:
            connection = await super().connect(*args, **kwargs)
            if connection.protocol is not None:
                self._protocols.add(connection.protocol)
            return connection
        except (aiohttp.ClientError, OSError) as error:  # OSError includes TimeoutError
            raise _NotConnected(error) from None

    async def cut_all(self) -> None:
        """Cut them all.  Closed by aiohttp, one in use would leave its reader waiting for ever."""
        protocols = list(self._protocols)
        for protocol in protocols:
            if protocol.transport is not None:
                protocol.transport.abort()
        for _ in range(_TURNS):
            if all(protocol.transport is None for protocol in protocols):
                return
            await asyncio.sleep(0)


async def _once(request: aiohttp.ClientRequest, send: ClientHandlerType) -> aiohttp.ClientResponse:
    """The middleware around every request: keeps aiohttp from sending it again, or from losing a refusal."""
    try:
        answer = await send(request)
    except (aiohttp.ClientError, OSError) as error:
        raise _NotAnswered(error) from None
    if answer.status != 101 and "Sec-WebSocket-Key" in request.headers:
        raise _Refused(answer)
    return answer


def _socket(address: AddrInfoType) -> socket.socket:
    """A socket that notices, within a minute and a half, that the other machine is gone."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 30),
        ("TCP_KEEPINTVL", 15),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", 90_000),  # the same for what was sent and never acknowledged, in milliseconds
    ):
        if hasattr(socket, option):  # which of them exist depends on the system
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _doing(request: Request) -> str:
    """Without the query, which may hold the command of an exec."""
    return f"{request.method} {request.target.partition('?')[0]}"


def _server_url(server: str) -> URL:
    url = _url("server", server)
    if url.scheme not in {"http", "https"}:
        raise ConfigError("server address", f"{_shown(url)} must begin with https:// or http://")
    if url.user is not None or url.password is not None or url.query_string or url.fragment:
        raise ConfigError(
            "server address", f"{_shown(url)} may be a host, a port and a path, and nothing else"
        )
    return url


def _proxy_url(proxy: str | None) -> URL | None:
    if not proxy:
        return None
    url = _url("proxy", proxy)
    if url.scheme not in {"http", "https"}:
        raise ConfigError(
            "proxy address", f"{_shown(url)} must begin with http:// or https://; others are not supported"
        )
    return url


def _url(what: str, text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if not url.host:
        raise ConfigError(f"{what} address", "not a URL with a host, such as https://10.0.0.1:6443")
    return url


def _shown(url: URL) -> str:
    return str(url.with_user(None)) if url.user is not None else str(url)
