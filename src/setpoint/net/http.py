"""The real transport: HTTP/1.1 and WebSocket over TCP and TLS, on a pool of connections.

Promises:

1. ``ConnectionFailed`` is raised only where the server cannot have acted on the request: no connection was
   made, or TLS was refused.  From the first byte sent on, a failure is ``AnswerLost``; what is not HTTP, or
   longer than agreed, is ``BadAnswer``.  Which failure is which: ``failures.py``.
2. A request is sent at most once: who asks decides what may be repeated.  ``Request.check`` is asked when
   there is a connection, and between it and the first byte nothing else runs.
3. Any number of requests run at once; none ends by a clock but the opening of its connection.
4. Redirects are answers, cookies are forgotten, the environment is not read.
5. ``ssl_context`` is asked before each request.  As long as it gives the same object connections are kept and
   reused; a new object (a rotated certificate) means new connections, and the old ones are closed as soon as
   they are free.
6. A body that is read whole is never unpacked past ``max_body``, however small it was on the wire.
7. Credentials appear in no error and no ``repr``.
8. What a request says cannot become another request: a target or a header that would is a ``ValueError``.

Not here: one connection's bytes (``connection.py``), how it comes to be (``dialing.py``), deadlines, retries,
credentials, Kubernetes.  Fed by ``client/sender.py``.  WebSockets (``upgraded.py``) are loaded on the first
upgrade.
"""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote
from weakref import WeakSet

from setpoint.errors import BadAnswer, ConfigError, ConnectionFailed
from setpoint.net.answering import SWITCHING
from setpoint.net.connection import Connection, HttpResponse, doing_of
from setpoint.net.dialing import Url, dial, split_url, tls_wanted
from setpoint.net.failures import Way, not_connected
from setpoint.net.headers import lines
from setpoint.net.transport import Request, Response

if TYPE_CHECKING:
    from setpoint.net.upgraded import Upgraded

KEPT_FOR = 30.0  # seconds a connection may idle; servers and load balancers give up after 60 or 90
_TURNS: Final = 10  # of the loop, until a connection that was cut is known to be lost; with TLS it takes four
_REMEMBERED: Final = 64  # headers, as they are written: the same few come with every request

_FIRST_LINE: Final = re.compile(r"[A-Z]+ [\x21-\x7e]+").fullmatch
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_NOT_IN_VALUES: Final = re.compile(r"[\0\r\n]").search
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # by nature; the others say that they have none


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
    may_pack: bool = True  # whether gzip is asked for
    max_body: int = 512 * 2**20
    connect_timeout: float = 30.0


class HttpTransport:
    """Sends requests to one server.  Opened by its first request; ``close`` it, or use ``async with``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._server = server = _server_url(endpoint.server)
        self._proxy = proxy = _proxy_url(endpoint.proxy)
        self._way = Way(
            where=server.where,
            name=(endpoint.server_hostname or server.host).rstrip("."),  # as certificates have it
            proxy=proxy.where if proxy else "",
            connect_timeout=endpoint.connect_timeout,
        )
        self._is_tls = tls_wanted(server)
        self._may_use_tls = self._is_tls or (proxy is not None and tls_wanted(proxy))
        self._headers = {
            "Host": server.authority,
            "User-Agent": endpoint.user_agent,
            "Accept": "*/*",
            "Accept-Encoding": "gzip" if endpoint.may_pack else "identity",
        }
        self._prefix = server.path
        if proxy is not None and not self._is_tls:  # it is told where to, in each request
            self._prefix = server.shown
            if proxy.login is not None:
                self._headers["Proxy-Authorization"] = proxy.authorization
        self._written: dict[tuple[tuple[str, str], ...], bytes] = {}  # headers, by what they say
        self._connections: set[Connection] = set()
        self._idle: list[Connection] = []  # last used last
        self._upgraded: WeakSet[Upgraded] = WeakSet()
        self._tls: ssl.SSLContext | None = None  # of the idle connections
        self._aging: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<HttpTransport {self._server.shown}{' closed' if self._is_closed else ''}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection, in use or not: whoever waits for an answer is told that it is lost."""
        self._is_closed = True
        self._written.clear()
        self._idle.clear()
        if self._aging is not None:
            self._aging.cancel()
        for connection in list(self._connections):
            connection.cut()
        for upgraded in self._upgraded:
            upgraded.cut()
        for _ in range(_TURNS):
            if not self._connections:
                return
            await asyncio.sleep(0)

    async def __call__(self, request: Request) -> Response:
        if request.upgrade:
            return await self._upgrade(request)
        return await self._exchange(request, self._head_of(request, request.headers))

    async def _exchange(self, request: Request, head: bytes) -> HttpResponse:
        if self._is_closed:
            raise RuntimeError(f"{doing_of(request)}: this client is closed; open a new one")  # never retried
        connection = self._kept() or await self._open(request)
        if request.check is not None:
            try:
                request.check()
            except BaseException:
                self.freed(connection)  # nothing was asked
                raise
        waiter = connection.ask(request, head)
        try:
            return await waiter
        except BaseException:
            connection.abandon(waiter)
            raise

    async def _upgrade(self, request: Request) -> Response:
        from setpoint.net.upgraded import Offer, Upgraded  # noqa: PLC0415 - reading it takes a while

        offer = Offer(request.upgrade)
        head = self._head_of(request, {**request.headers, **offer.headers()})
        response = await self._exchange(request, head)
        if response.status != SWITCHING:
            return response
        connection = response.connection
        if why := offer.why_not_granted(response.headers):
            connection.cut()
            message = f"the WebSocket handshake with {self._way.where} went wrong: {why}"
            raise BadAnswer(doing_of(request), message)
        transport, rest = connection.hand_over()
        upgraded = Upgraded(transport, rest, offer.chosen(response.headers), doing_of(request))
        self._upgraded.add(upgraded)
        return upgraded

    # ── The pool ────────────────────────────────────────────────────────────────────────────────────

    def _kept(self) -> Connection | None:
        """A connection that is open and has nothing to do."""
        tls = self._current_tls()
        if tls is not self._tls:
            self._tls = tls
            self._close_idle()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _open(self, request: Request) -> Connection:
        tls, endpoint = self._tls, self._endpoint

        try:
            connection = await dial(
                lambda: Connection(self, self._way, tls, endpoint.max_body),
                self._server,
                proxy=self._proxy,
                tls=tls,
                doing=doing_of(request),
                way=self._way,
            )
        except OSError as error:  # TimeoutError is one
            failed: Exception = error
        else:
            if connection.is_open:
                self._connections.add(connection)
                if not self._is_closed:
                    return connection
                connection.cut()
                raise ConnectionFailed(doing_of(request), "this client was closed meanwhile")
            failed = connection.loss or ConnectionResetError(errno.ECONNRESET, "the peer hung up")
        raise not_connected(doing_of(request), self._way, failed) from failed

    def freed(self, connection: Connection) -> None:
        """Keep it for the next request."""
        if self._is_closed or connection.tls is not self._tls:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._aging is None:
            self._aging = loop.call_later(KEPT_FOR, self._age)

    def lost(self, connection: Connection) -> None:
        """Forget it."""
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _age(self) -> None:
        """Close what idled for long, and look again when the next will have."""
        loop = asyncio.get_running_loop()
        self._aging = None
        idle, now = self._idle, loop.time()
        self._idle = [connection for connection in idle if now - connection.idle_since < KEPT_FOR]
        for connection in idle:
            if now - connection.idle_since >= KEPT_FOR:
                connection.close()
        if self._idle:
            self._aging = loop.call_at(self._idle[0].idle_since + KEPT_FOR, self._age)

    def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _current_tls(self) -> ssl.SSLContext | None:
        if not self._may_use_tls:
            return None
        context = self._endpoint.ssl_context
        return _usual_tls() if context is None else context()

    # ── What is written ─────────────────────────────────────────────────────────────────────────────

    def _head_of(self, request: Request, headers: Mapping[str, str]) -> bytes:
        first = f"{request.method} {self._prefix}{request.target}"
        if not request.target.startswith("/") or not _FIRST_LINE(first):
            raise ValueError(f"{request.method}: the target is not a percent-encoded path and query")
        key = tuple(headers.items())
        written = self._written.get(key) or self._write(key, headers)
        body = request.body
        if body is not None:
            return b"%b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (first.encode(), written, len(body))
        if request.method in _WITHOUT_BODY:
            return b"%b HTTP/1.1\r\n%b\r\n" % (first.encode(), written)
        return b"%b HTTP/1.1\r\n%bContent-Length: 0\r\n\r\n" % (first.encode(), written)

    def _write(self, key: tuple[tuple[str, str], ...], headers: Mapping[str, str]) -> bytes:
        """The headers of a request behind our own, which they take the place of."""
        given = {name.lower() for name in headers}
        ours = [(name, value) for name, value in self._headers.items() if name.lower() not in given]
        fields = [*ours, *(line for line in lines(headers) if line[0].lower() != "content-length")]
        for name, value in fields:
            if not _NAME(name) or name.lower() == "transfer-encoding" or _NOT_IN_VALUES(value):
                raise ValueError(f"{name[:80]!r}: not a header that can be sent")
        written = "".join([f"{name}: {value}\r\n" for name, value in fields])
        made = written.encode("utf-8", "surrogateescape")
        if "upgrade" not in given:  # which has a key that never comes again
            if len(self._written) >= _REMEMBERED:
                self._written.clear()
            self._written[key] = made
        return made


@cache
def _usual_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _server_url(server: str) -> Url:
    url, extra = _url("server", server)
    if url.scheme not in {"http", "https"}:
        raise ConfigError("server address", f"{url.shown} must begin with https:// or http://")
    if url.login is not None or extra:
        raise ConfigError("server address", f"{url.shown} may be a host, a port and a path, and nothing else")
    path = quote(url.path.rstrip("/"), safe="/%!$&'()*+,;=:@~")
    return Url(url.scheme, url.host, url.port, path)


def _proxy_url(proxy: str | None) -> Url | None:
    if not proxy:
        return None
    url, _ = _url("proxy", proxy)
    if url.scheme not in {"http", "https"}:
        raise ConfigError(
            "proxy address", f"{url.shown} must begin with http:// or https://; others are not supported"
        )
    return url


def _url(what: str, text: str) -> tuple[Url, str]:
    found = split_url(text)
    if found is None:
        raise ConfigError(f"{what} address", "not a URL with a host, such as https://10.0.0.1:6443")
    return found
