"""Between an operator and everything outside of it: notes what passes, and lets the director strike.

``Seam`` is the transport of one process.  Every request of that process passes here as a value, and every
event of its watches as a line; what comes of each is for ``director.py`` to say.  A process that is dead gets
no answer any more and reaches nobody: what runs in it yet, while it is being cleared away, has no effect.

What is of no consequence is left alone: Events, reviews, discovery, and the lease of an election.  Of what is
only read, a reconcile asks for some and caches for the rest: the former passes as effects do, and is none; to
the latter belong faults of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import NoReturn, Protocol, Self, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from setpoint.api.wire import LineSplitter
from setpoint.controller.worker import current_look
from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.transport import Request, Response, Transport, WebSocket
from setpoint.testing.asked import Asked, read_request
from setpoint.testing.faults import Refuse, Refused, error_event
from setpoint.testing.proof.plans import At
from setpoint.testing.proof.trace import Run

T = TypeVar("T")

_QUIET = {"events", "leases", "selfsubjectaccessreviews", "subjectaccessreviews", "tokenreviews"}
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - the wire's


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Frame(msgspec.Struct):
    type: str
    object: _Named


_frames = msgspec.json.Decoder(_Frame)


def resource_of(asked: Asked) -> str:
    """As a store names it: ``deployments.apps``."""
    return f"{asked.plural}.{asked.group}" if asked.group else asked.plural


def refusal(code: int, asked: Asked, retry_after: int | None = None) -> Response:
    """An answer that no server gave; with code 0, no connection."""
    if not code:
        raise ConnectionFailed(str(asked), "the connection was refused")
    return Refused(Refuse(code, _REASONS.get(code, ""), "refused by a fault", retry_after), asked)


def loss(code: int, asked: Asked) -> Response:
    """An answer that no server gave to what it did; with code 0, none: the connection broke."""
    if not code:
        raise AnswerLost(str(asked), "the connection broke")
    return refusal(code, asked)


def _takes_any(request: Request) -> bool:
    """Whether an answer may be of any version, however old."""
    return "0" in parse_qs(urlsplit(request.target).query).get("resourceVersion", ())


class Pulse:
    """Wakes all who wait for something to change."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def beat(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


async def forever() -> NoReturn:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody answers")


class Token:
    """What a process shows, in a file that may change."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._number = 0
        self.rotate()

    def rotate(self) -> None:
        self._number += 1
        self.file.write_text(self.now)

    @property
    def now(self) -> str:
        return f"token-{self._number}"

    def is_shown(self, request: Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.now}"


class Directing(Protocol):
    """Who says what becomes of requests and events: ``director.py``."""

    run: Run
    changed: Pulse
    holding: int

    def signature(self, asked: Asked, body: bytes | None) -> str: ...

    async def effect(
        self,
        seam: Seam,
        what: str,
        do: Callable[[], Awaitable[T]],
        refuse: Callable[[int], T],
        lose: Callable[[int], T],
        *,
        is_external: bool = False,
        is_read: bool = False,
    ) -> T: ...

    async def pauses(self, seam: Seam, *, is_external: bool = False) -> None: ...

    def refuses(self, seam: Seam, asked: Asked) -> Response | None: ...

    async def quiet(self, seam: Seam, asked: Asked, send: Callable[[], Awaitable[Response]]) -> Response: ...

    def is_frozen(self, seam: Seam, resource: str) -> bool: ...

    async def thawed(self, seam: Seam, resource: str) -> None: ...

    async def opening(self, seam: Seam, resource: str) -> None: ...

    def opened(self, resource: str) -> None: ...

    def event(self, view: View, type_: str, key: tuple[str, str], line: bytes) -> bytes: ...


class Seam:
    """What one process can reach."""

    def __init__(self, inner: Transport, process: int, director: Directing) -> None:
        self._inner = inner
        self.process = process
        self._director = director
        self.is_dead = False
        self.is_paused = False
        self.is_dazed = False  # it is paused, or has not noticed yet that it was
        self.token: Token | None = None  # what must be shown, where that is looked at
        self.is_behind = False  # it sees the past
        self.old: Transport | None = None  # where lists and watches are answered while it sees the past
        self.is_old_allowed = False  # only where the request allows it
        self.old_resources: tuple[str, ...] = ()
        self.views: dict[View, None] = {}

    def __repr__(self) -> str:
        return f"<Seam of process {self.process}{', dead' if self.is_dead else ''}>"

    async def __call__(self, request: Request) -> Response:
        asked = read_request(request)
        if self.is_dead:
            await forever()
        await self._director.pauses(self)
        run = self._director.run
        run.requests += asked.plural not in _QUIET
        if self.token is not None and not self.token.is_shown(request):
            return refusal(401, asked)
        early = self._director.refuses(self, asked)
        if early is not None:
            return early
        if self.token is not None:
            shown = {name: value for name, value in request.headers.items() if name != "Authorization"}
            request = request._replace(headers=shown)
        if asked.verb == "watch":
            return await self._watch(request, asked)
        if asked.plural in _QUIET:
            return await self._director.quiet(self, asked, lambda: self._inner(request))
        if asked.is_write:
            return await self._ask(request, asked, self._inner)
        source = self._inner
        if asked.verb == "list":
            name = resource_of(asked)
            await self._director.thawed(self, name)
            source = self._source(name, request)
        if not asked.plural or current_look() is None:
            return await source(request)
        return await self._ask(request, asked, source)

    async def external(
        self, what: str, do: Callable[[], T], fail: Callable[[int], Exception], *, is_read: bool = False
    ) -> T:
        """Have something done, or looked at, outside of the cluster."""
        if self.is_dead:
            await forever()
        await self._director.pauses(self, is_external=True)

        async def now() -> T:
            return do()

        def refuse(code: int) -> T:
            raise fail(code)

        return await self._director.effect(self, what, now, refuse, refuse, is_external=True, is_read=is_read)

    def _source(self, resource: str, request: Request) -> Transport:
        if self.old is None or (self.old_resources and resource not in self.old_resources):
            return self._inner
        return self._inner if self.is_old_allowed and not _takes_any(request) else self.old

    async def _ask(self, request: Request, asked: Asked, source: Transport) -> Response:
        async def send() -> Response:
            return await source(request)

        def refuse(code: int) -> Response:
            # Who is told to wait is told for how long, as all are who ask while that lasts.
            told = self._director.refuses(self, asked) if code == 429 else None
            return told or refusal(code, asked)

        what = self._director.signature(asked, request.body)
        is_read = not asked.is_write
        return await self._director.effect(
            self, what, send, refuse, lambda code: loss(code, asked), is_read=is_read
        )

    async def _watch(self, request: Request, asked: Asked) -> Response:
        resource = resource_of(asked)
        await self._director.opening(self, resource)
        response = await self._source(resource, request)(request)
        if response.status != 200:
            return response
        self._director.opened(resource)
        view = View(response, resource, self, self._director)
        view.is_listing = "sendInitialEvents=true" in request.target
        self.views[view] = None
        return view

    def cut_views(self, resources: tuple[str, ...] = ()) -> None:
        """Break the connections of the watches of these resources, or of all."""
        for view in list(self.views):
            if not resources or view.resource in resources:
                view.cut()


class View:
    """The answer to a watch: its events pass one by one."""

    websocket: WebSocket | None = None

    def __init__(self, response: Response, resource: str, seam: Seam, director: Directing) -> None:
        self.resource = resource
        self.seam = seam
        self._response = response
        self._director = director
        self._splitter = LineSplitter()
        self._arrived: deque[bytes] = deque()
        self._held: dict[tuple[str, str], bytes] = {}  # events that wait for their successor
        self._is_over = self.is_silent = self._is_cut = False
        self.is_listing = False  # what it brings is the list, which is whole or does not count
        self._pulse = Pulse()
        self._reader = asyncio.get_running_loop().create_task(self._read(), name=f"watch {resource}")

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        return b"".join([line async for line in self])

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> Self:
        return self

    async def close(self) -> None:
        self.seam.views.pop(self, None)
        for key in list(self._held):
            self._let_go(key)
        if not self._reader.done():
            self._reader.cancel()
        await self._response.close()

    def cut(self) -> None:
        self._is_cut = True
        self._pulse.beat()

    async def _read(self) -> None:
        try:
            async for chunk in self._response.chunks():
                self._arrived.extend(self._splitter.feed(chunk))
                self._pulse.beat()
        except AnswerLost:
            self._is_cut = True
        self._is_over = True
        self._pulse.beat()

    async def __anext__(self) -> bytes:
        while True:
            if self.seam.is_paused:
                await self._director.pauses(self.seam)
            if self._is_cut:
                raise AnswerLost(f"watch {self.resource}", "the connection broke")
            if (
                self._arrived
                and not self.is_silent
                and not self._director.is_frozen(self.seam, self.resource)
            ):
                passed = self._pass(self._arrived.popleft())
                if passed:
                    return passed
                continue
            if self._is_over and not self._arrived:
                raise StopAsyncIteration
            if self._arrived and not self.is_silent:
                await self._director.changed.wait()
            else:
                await self._pulse.wait()

    def _pass(self, line: bytes) -> bytes:
        """What becomes of an event: it, nothing, or more."""
        frame = _frames.decode(line)
        if frame.type in ("BOOKMARK", "ERROR"):
            self.is_listing = self.is_listing and b"initial-events-end" not in line
            return line + b"\n"
        metadata = frame.object.metadata
        key = (metadata.namespace, metadata.name)
        self._let_go(key)
        return self._director.event(self, frame.type, key, line)

    def hold(self, key: tuple[str, str], line: bytes, seconds: float) -> None:
        """Bring the next event of the object in place of this one; this one, if none comes in time."""
        self._held[key] = line
        self._director.holding += 1
        asyncio.get_running_loop().call_later(seconds, self._release, key, line)

    def _release(self, key: tuple[str, str], line: bytes) -> None:
        if self._held.get(key) is line:
            self._let_go(key)
            self._arrived.appendleft(line)
            self._pulse.beat()

    def release(self, but: str = "") -> None:
        """Bring what is held, except what is of this name."""
        for key, line in list(self._held.items()):
            if f"{self.resource} {key[1]}" != but:
                self._release(key, line)

    def _let_go(self, key: tuple[str, str]) -> None:
        if self._held.pop(key, None) is not None:
            self._director.holding -= 1

    def put_back(self, line: bytes) -> None:
        self._arrived.appendleft(line)


def error_line(code: int) -> bytes:
    return error_event(Refuse(code, _REASONS.get(code, ""), "ended by a fault"))


def at_of(counts: dict[str, int], what: str) -> At:
    counts[what] = counts.get(what, 0) + 1
    return At(what, counts[what])
