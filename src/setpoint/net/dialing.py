"""Opens connections: TCP, the way through a proxy, TLS.

What fails here failed before anything was asked of the server.  What a proxy did is told as such; the other
errors are the system's own.

Used by ``http.py``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast
from urllib.parse import unquote, urlsplit

from setpoint.net.answering import Answering
from setpoint.net.failures import Way, proxy_not_reached, proxy_refused
from setpoint.net.sealing import Sealed

_PORTS: Final = {"http": 80, "https": 443}
_NEXT_ADDRESS: Final = 0.25  # seconds before the next address of a name is tried beside the first


@dataclass(frozen=True, slots=True)
class Url:
    """Of a server or a proxy, taken apart."""

    scheme: str
    host: str
    port: int
    path: str = ""
    login: str | None = field(default=None, repr=False)  # user:password

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """As a Host header has it."""
        return self._host if self.port == _PORTS.get(self.scheme) else self.where

    @property
    def where(self) -> str:
        return f"{self._host}:{self.port}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authorization(self) -> str:
        return f"Basic {base64.b64encode((self.login or '').encode()).decode()}"


def split_url(text: str) -> tuple[Url, str] | None:
    """A URL, and what of it is no part of ``Url``; None if it is none, or has no host."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        host = host.encode("idna").decode()
    except ValueError:  # a name that no name server could be asked for, too
        return None
    if not host or any(character <= " " for character in host):
        return None
    login = None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    extra = "?" * bool(parts.query) + "#" * bool(parts.fragment)
    return Url(parts.scheme, host, port, parts.path, login), extra


T = TypeVar("T", bound=asyncio.Protocol)


async def dial(
    make: Callable[[], T],
    server: Url,
    *,
    proxy: Url | None,
    tls: ssl.SSLContext | None,
    doing: str,
    way: Way,
) -> T:
    """What ``make`` makes, on a new connection to the server (with ``tls``, where it is https)."""
    async with asyncio.timeout(way.connect_timeout):
        if proxy is None:
            return await _connect(make, server, tls, way.name)
        by_tls = tls if tls_wanted(proxy) else None
        try:
            if tls is None or not tls_wanted(server):
                return await _connect(make, proxy, by_tls, proxy.host)
            tunnel = await _connect(_Tunnel, proxy, by_tls, proxy.host)
        except OSError as error:
            raise proxy_not_reached(doing, way, error) from error
        status = await tunnel.ask(server, proxy)
        if not 200 <= status < 300:
            raise proxy_refused(doing, way, status, tunnel.reason)
        return await tunnel.seal(make(), tls, way.name)


def tls_wanted(url: Url) -> bool:
    return url.scheme == "https"


async def _connect(make: Callable[[], T], to: Url, tls: ssl.SSLContext | None, name: str) -> T:
    talking = make()
    carried: asyncio.BaseProtocol = talking if tls is None else Sealed(talking, tls, name)
    loop = asyncio.get_running_loop()
    # uvloop takes one address after the other, and no word about it.
    is_pythons = isinstance(loop, asyncio.BaseEventLoop)
    options: dict[str, Any] = {"happy_eyeballs_delay": _NEXT_ADDRESS} if is_pythons else {}
    transport, _ = await loop.create_connection(lambda: carried, to.host, to.port, **options)
    if (connected := transport.get_extra_info("socket")) is not None:
        _notice_loss(connected)
    if isinstance(carried, Sealed):
        await _opened(carried)
    return talking


async def _opened(sealed: Sealed) -> None:
    try:
        await sealed.opened
    except BaseException:
        sealed.abort()
        raise


def _notice_loss(connected: socket.socket) -> None:
    """Notice, within a minute and a half, that the other machine is gone."""
    with contextlib.suppress(OSError):  # it is gone already, as who reads will hear
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", 30),
            ("TCP_KEEPINTVL", 15),
            ("TCP_KEEPCNT", 4),
            ("TCP_USER_TIMEOUT", 90_000),  # the same for what was sent and never acknowledged; milliseconds
        ):
            if hasattr(socket, option):  # which of them exist depends on the system
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Tunnel(asyncio.Protocol):
    """Asks a proxy to connect, and then is the way to what it has connected to."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._answering = _Reason()
        self._answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def reason(self) -> str:
        return self._answering.reason

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        answering = self._answering
        answering.feed(data)
        answering.take()  # its words about a refusal are not shown: who wrote them is not known
        if self._answered.done():
            self.transport.abort()
        elif answering.broken or answering.is_beyond:  # the server says nothing before it is spoken to
            self._answered.set_result(0)
        elif answering.has_head:
            self._answered.set_result(answering.status)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's
        if not self._answered.done():
            self._answered.set_result(0)

    async def ask(self, server: Url, proxy: Url) -> int:
        """The status of its answer; 0 if there is none."""
        lines = [f"CONNECT {server.where} HTTP/1.1", f"Host: {server.where}"]
        if proxy.login is not None:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        self._answering.expect("CONNECT")
        status = 0
        try:
            self.transport.write("\r\n".join([*lines, "", ""]).encode())
            status = await self._answered
        finally:
            if not 200 <= status < 300:
                self.transport.abort()
        return status

    async def seal(self, talking: T, tls: ssl.SSLContext, name: str) -> T:
        sealed = Sealed(talking, tls, name)
        self.transport.set_protocol(sealed)
        sealed.connection_made(self.transport)
        await _opened(sealed)
        return talking


class _Reason(Answering):
    """With the words that explain the status."""

    __slots__ = ("reason",)

    reason: str

    def expect(self, method: str) -> None:
        super().expect(method)
        self.reason = ""

    def on_status(self, words: bytes) -> None:
        self.reason += words.decode("latin-1")
