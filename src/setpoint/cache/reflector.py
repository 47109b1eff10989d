"""Keeps one scope listed and watched over a client: does what ``watch_state.py`` decides.

It says to ``advance`` what comes over the wire, does what the state asks for next, and hands the effects on.
It ends only by being cancelled: whatever the server does is waited out, and ``problem`` says what is wrong.

The bytes of an object are not decoded here beyond its metadata.  Drained by ``informer.py``.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, NoReturn

from setpoint.api.forms import Form
from setpoint.api.names import GroupVersionKind, Resource
from setpoint.api.wire import Frame, Malformed, Metadata, Snapshot, read_metadata, strip_managed_fields
from setpoint.cache.scope import Problem, Scope
from setpoint.cache.sharing import Sharing
from setpoint.cache.watch_state import (
    Changed,
    Closed,
    Doubt,
    Effect,
    Failed,
    Forget,
    How,
    Known,
    Listed,
    Listing,
    Marked,
    Removed,
    Rested,
    Resting,
    Said,
    Sent,
    State,
    Streaming,
    Timing,
    Watching,
    advance,
    begin,
)
from setpoint.client.client import PAGE_SIZE, WATCH_SECONDS, Client, SelectOptions
from setpoint.errors import (
    ApiError,
    BadAnswer,
    BadRequest,
    DecodeError,
    Forbidden,
    Gone,
    KindNotServed,
    NotFound,
    ServerError,
    SetpointError,
    TooManyRequests,
    Unauthorized,
    UnknownKind,
    WatchStalled,
)

AT_ONCE = 1.0  # a connection that ends this soon and brings nothing is not worth opening again at once
WHOLE_LIST = 300.0  # seconds for a list that must come in one piece

log = logging.getLogger("setpoint.cache")


class Reflector:
    """One scope, listed and watched until cancelled."""

    def __init__(
        self,
        client: Client,
        form: Form[Any],
        scope: Scope,
        apply: Callable[[Effect], None],
        *,
        timing: Timing,
        sharing: Sharing,
        unstreamable: set[GroupVersionKind],
        stream_lists: bool = True,
        page_size: int = PAGE_SIZE,
        on_problem: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._form = form
        self._scope = scope
        self._apply = apply
        self._timing = timing
        self._sharing = sharing
        self._unstreamable = (
            unstreamable  # kinds that are listed page by page; shared by a cache's reflectors
        )
        self._page_size = page_size
        self._on_problem = on_problem  # called when ``problem`` has changed
        self._select: SelectOptions = {
            "namespace": scope.namespace or None,
            "labels": scope.labels if scope.selects_labels else None,
            "fields": scope.fields if scope.fields.requirements else None,
        }
        self._resource: Resource | None = form.resource
        self._moved_at = 0.0
        self._restart: asyncio.Timeout | None = None
        self.state: State = begin(Known(streams=stream_lists and scope.gvk not in unstreamable))
        self.problem: Problem | None = None
        self.heard_at: float | None = None  # when the server last said anything

    def __repr__(self) -> str:
        return f"<Reflector {type(self.state).__name__.lower()} {self._scope}>"

    async def run(self) -> NoReturn:
        while True:
            self._restart = restart = asyncio.timeout(None)
            try:
                async with restart:
                    await self._go_on()
            except TimeoutError:
                if not restart.expired():
                    raise
            self._apply(Forget())
            self.state = begin(Known(streams=self.state.known.streams))

    def start_over(self) -> None:
        """List everything again, and believe the list whatever its version."""
        if self._restart is not None and not self._restart.expired():
            self._restart.reschedule(_now())

    async def _go_on(self) -> NoReturn:
        while True:
            match self.state:
                case Resting(seconds):
                    await asyncio.sleep(seconds)
                    self._tell(Rested())
                case Listing() as state:
                    await self._attempt("list", state)
                case Streaming() | Watching() as state:
                    await self._attempt("watch", state)

    async def _attempt(self, verb: str, state: Listing | Streaming | Watching) -> None:
        try:
            await self._check_scope()
            if isinstance(state, Listing):
                await self._fetch(state)
            else:
                await self._connect(state)
        except SetpointError as error:
            self._fail(verb, error)

    async def _check_scope(self) -> None:
        if self._resource is None:
            self._resource = await self._client.resource_of(self._form)
        if self._scope.namespace and not self._resource.namespaced:
            raise BadRequest(
                f"watch {self._scope}", "objects of this kind are in no namespace; declare it without any"
            )

    async def _fetch(self, state: Listing) -> None:
        page = await self._client.list_page(
            self._form,
            state.token,
            page_size=self._page_size if state.is_paged else 0,
            timeout=None if state.is_paged else WHOLE_LIST,
            **self._select,
        )
        self._heard()
        try:
            snapshots = tuple(self._snapshot(read_metadata(item), item) for item in page.items)
        except Malformed as error:
            raise BadAnswer(f"list {self._scope}", str(error)) from error
        self._tell(Listed(snapshots, page.resource_version, page.continue_token))

    async def _connect(self, state: Streaming | Watching) -> None:
        opened_at = self._moved_at = _now()
        version = state.version if isinstance(state, Watching) else None
        connection = self._client.watch_once(
            self._form,
            resource_version=state.starts_at if isinstance(state, Watching) else None,
            initial_events=isinstance(state, Streaming),
            patience=self._patience,
            timeout=self._patience(),
            **self._select,
        )
        async with aclosing(connection):
            async for batch in connection:
                self._heard()
                if not self._tell_all(batch):
                    return
        is_fruitless = _now() - opened_at < AT_ONCE and (
            isinstance(self.state, Watching) and self.state.version == version
        )
        log.debug("watch %s: the server ended it in order", self._scope)
        is_early = _now() - opened_at < WATCH_SECONDS[0]
        self._tell(Closed(_now(), random.random(), is_fruitless, is_early))  # noqa: S311 - no secret

    def _patience(self) -> float:
        """How long nothing need arrive: a watch is kept alive by bookmarks, an initial stream by progress."""
        if isinstance(self.state, Watching):
            return self._timing.check if self.state.is_checking else self._timing.liveness
        left = self._moved_at + self._timing.progress - _now()
        if left <= 0:
            raise WatchStalled(
                f"watch {self._scope}",
                f"changes have been coming for {self._timing.progress:g} s, but not the end of the list",
            )
        return left

    def _heard(self) -> None:
        self._set_problem(None)
        self.heard_at = _now()
        if not (isinstance(self.state, Streaming) and self.state.is_settling):
            self._moved_at = self.heard_at

    def _set_problem(self, problem: Problem | None) -> None:
        if problem is not self.problem:
            self.problem = problem
            self._on_problem()

    def _tell_all(self, frames: Sequence[Frame]) -> bool:
        """Say each; whether the connection is still wanted then."""
        for said in self._said(frames):
            was_watching = isinstance(self.state, Watching)
            self._tell(said)
            if not isinstance(self.state, Watching if was_watching else Streaming | Watching):
                return False
        return True

    def _said(self, frames: Sequence[Frame]) -> Iterator[Said]:
        """What frames say; at once, what arrived at once and is of one sort."""
        held: list[Snapshot] = []
        sort: type[Sent | Changed] = Changed
        for frame in frames:
            kind = frame.type
            now = Sent if kind == "ADDED" and isinstance(self.state, Streaming) else Changed
            is_object = kind in {"ADDED", "MODIFIED"}
            if held and not (is_object and now is sort):
                yield sort(tuple(held))
                held = []
            if is_object:
                sort = now
                held.append(self._snapshot(frame.metadata, frame.object))
            elif kind == "DELETED":
                yield Removed(self._snapshot(frame.metadata, frame.object))
            else:
                yield Marked(frame.metadata.resource_version, frame.ends_initial_events)
        if held:
            yield sort(tuple(held))

    def _snapshot(self, metadata: Metadata, data: bytes) -> Snapshot:
        self._sharing.share(metadata)
        return Snapshot(metadata, strip_managed_fields(data) if self._scope.strip_managed_fields else data)

    def _tell(self, said: Said) -> None:
        self.state, effects = advance(self.state, said, self._timing)
        for effect in effects:
            if isinstance(effect, Doubt):
                self._doubt(effect)
            self._apply(effect)

    def _fail(self, verb: str, error: SetpointError) -> None:
        # A kind that has just gone: who watches it hears of that too, and may stop; else the next try tells.
        is_going = isinstance(error, KindNotServed) and self.heard_at is not None and self.problem is None
        self._set_problem(Problem(self._scope, verb, error, self._resource))
        asked = error.retry_after if isinstance(error, ApiError) else None
        self._tell(Failed(how_it_failed(error), _now(), random.random(), asked or 0.0))  # noqa: S311 - no secret
        rest = f"; trying again in {self.state.seconds:.1f} s" if isinstance(self.state, Resting) else ""
        log.log(logging.INFO if is_going else _level(error), "%s%s", self.problem, rest)
        if not self.state.known.streams and self._scope.gvk not in self._unstreamable:
            log.info("%s: its lists are not streamed from now on", self._scope.gvk)
            self._unstreamable.add(self._scope.gvk)

    def _doubt(self, doubt: Doubt) -> None:
        log.warning(
            "list %s: the server gave version %s, and %s was seen before; asking again",
            self._scope,
            doubt.version,
            doubt.known,
        )


def how_it_failed(error: SetpointError) -> How:
    """Which of the ways to fail an error is."""
    match error:
        case WatchStalled():
            return How.STALLED
        case Gone():
            return How.EXPIRED
        case Forbidden() | NotFound() | KindNotServed() | UnknownKind():
            return How.DENIED
        case ServerError() | TooManyRequests():
            return How.ERRED
        case Unauthorized():  # a new token may be on its way
            return How.BROKEN
        case ApiError() | BadAnswer() | DecodeError():
            return How.REFUSED
        case _:
            return How.BROKEN


def _level(error: SetpointError) -> int:
    match how_it_failed(error):
        case How.DENIED:
            return logging.ERROR
        case How.EXPIRED:
            return logging.INFO
        case _:
            return logging.WARNING


def _now() -> float:
    return asyncio.get_running_loop().time()
