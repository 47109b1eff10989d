"""Our server asked without a socket: what a client of this process sends to it goes from memory to memory.

The server keeps its thread and its loop, so a test may still block; only the way there is another.  What
cannot go that way takes the socket: a WebSocket, and who shows a certificate instead of a token.  So do other
processes, and whoever goes through a proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pytest

from setpoint.errors import AnswerLost, ConnectionFailed, SetpointError
from setpoint.net.http import HttpTransport
from setpoint.net.loopback import Loopback
from setpoint.net.transport import Request, Response, WebSocket
from setpoint.server.http.app import MAX_BODY
from setpoint.testing.embedded import EmbeddedControlPlane

T = TypeVar("T")

_planes: dict[str, InMemoryPlane] = {}
_responses: WeakKeyDictionary[HttpTransport, set[_Bridged]] = WeakKeyDictionary()


class InMemoryPlane(EmbeddedControlPlane):
    """Ours, which clients in this process ask without a socket."""

    _loopback: Loopback | None = None

    def start(self) -> None:
        super().start()
        self._open()

    def stop(self) -> None:
        if self._running is not None:
            del _planes[self.url]
        super().stop()

    def stop_api_server(self) -> None:
        loopback, self._loopback = self._loopback, None
        if loopback is not None:
            self._started.do(loopback.close())
        super().stop_api_server()

    def start_api_server(self) -> None:
        super().start_api_server()
        self._open()

    async def send(self, request: Request) -> Response:
        """From any loop: the answer, whose body comes over as it is made."""
        doing = f"{request.method} {request.target}"
        if self._loopback is None:
            raise ConnectionFailed(doing, "the server is stopped")
        if request.check is not None:
            request.check()
        try:
            response = await self.there(self._loopback(request._replace(check=None)))
        except RuntimeError as error:
            raise AnswerLost(doing, str(error)) from error
        return _Bridged(self, doing, response)

    async def there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._started.loop

    def _open(self) -> None:
        app = self._started.server.app
        self._loopback = Loopback(app, max_body=MAX_BODY, refuse=app.refuse)
        _planes[self.url] = self


class _Bridged:
    """A response of another thread's loop."""

    websocket: WebSocket | None = None

    def __init__(self, plane: InMemoryPlane, doing: str, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._plane = plane
        self._doing = doing
        self._response = response
        self._pieces: asyncio.Queue[bytes | SetpointError | None] = asyncio.Queue()
        here = asyncio.get_running_loop()

        def put(piece: bytes | SetpointError | None) -> None:
            if not here.is_closed():
                here.call_soon_threadsafe(self._pieces.put_nowait, piece)

        async def pump() -> None:
            try:
                async for piece in response.chunks():
                    put(piece)
                put(None)
            except SetpointError as error:
                put(error)

        self._pump = asyncio.run_coroutine_threadsafe(pump(), plane.loop)

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            if isinstance(piece, SetpointError):
                raise piece
            yield piece

    async def close(self) -> None:
        self._pump.cancel()
        if not self._plane.loop.is_closed():
            await self._plane.there(self._response.close())
        self._pieces.put_nowait(AnswerLost(self._doing, "the connection was cut"))


@contextmanager
def without_sockets() -> Iterator[None]:
    """Have every client of this process reach in-memory planes without a socket."""
    by_socket, closed = HttpTransport.__call__, HttpTransport.close

    async def call(self: HttpTransport, request: Request) -> Response:
        plane = _planes.get(self._prefix)
        if plane is None or request.upgrade or "Authorization" not in request.headers:
            return await by_socket(self, request)
        if self._is_closed:
            raise ConnectionFailed(f"{request.method} {request.target}", "this client is closed")
        agent = {"User-Agent": self._headers["User-Agent"]}
        response = await plane.send(request._replace(headers={**agent, **request.headers}))
        assert isinstance(response, _Bridged)
        _responses.setdefault(self, set()).add(response)
        return response

    async def close(self: HttpTransport) -> None:
        for response in _responses.pop(self, ()):
            await response.close()
        await closed(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpTransport, "__call__", call)
        patch.setattr(HttpTransport, "close", close)
        yield
