"""One watch, the store it fills, and who must hear of its changes.

The promises:

1. A listener hears of every object there is (ADDED, ``initial``), then of every change, in order, once.  One
   that comes late is told of what is there before anything else.
2. When it is told, the store already has the change.
3. A listener that raises is logged and counted; the others, and the watch, never notice.
4. ``wait_synced`` ends when the first list is in the store and every listener has heard of it.
5. A resync tells listeners of every object again (RESYNC).  It asks the server nothing.

Listeners are called in the loop, one after the other: they turn a change into keys for a queue, and must not
take long.  Fed by ``reflector.py``; ``cache.py`` owns the informers and hands them out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from setpoint.api.forms import Form
from setpoint.api.names import GroupVersionKind
from setpoint.cache.history import History
from setpoint.cache.index import Index
from setpoint.cache.reflector import Reflector
from setpoint.cache.scope import Problem, Scope
from setpoint.cache.sharing import Sharing
from setpoint.cache.store import Seen, Store, Writer, is_impossible
from setpoint.cache.versions import is_older
from setpoint.cache.watch_state import (
    Doubt,
    Drop,
    Effect,
    Forget,
    Put,
    Reach,
    Replaced,
    Stage,
    Swap,
    Timing,
    Unstage,
)
from setpoint.client.client import PAGE_SIZE, Client
from setpoint.errors import NotSynced
from setpoint.metrics import CacheMetrics, Metrics

Listener: TypeAlias = Callable[[Seen], None]

RESYNC = 36_000.0  # ten hours, as controller-runtime
SYNC_TIMEOUT = 120.0

log = logging.getLogger("setpoint.cache")


@dataclass(frozen=True, slots=True)
class Shared:
    """What all informers of a cache have in common."""

    client: Client
    metrics: Metrics
    timing: Timing
    resync: float
    page_size: int
    stream_lists: bool
    sharing: Sharing
    unstreamable: set[GroupVersionKind]  # kinds that turned out to be listed page by page only
    history: History

    @classmethod
    def of(
        cls,
        client: Client,
        metrics: Metrics | None = None,
        *,
        timing: Timing = Timing(),  # noqa: B008 - it is frozen
        resync: float = RESYNC,
        page_size: int = PAGE_SIZE,
        stream_lists: bool = True,
    ) -> Shared:
        return cls(
            *(client, metrics or Metrics(), timing, resync, page_size, stream_lists),
            *(Sharing(), set(), History()),
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """What an informer holds, and how it is."""

    scope: Scope
    objects: int
    bytes: int
    version: str
    is_synced: bool
    last_event_age_seconds: float
    problem: Problem | None


class Informer:
    """One scope, as the server has it."""

    def __init__(self, shared: Shared, form: Form[Any], scope: Scope) -> None:
        self.scope = scope
        self._writer = Writer()
        self._reflector = Reflector(
            shared.client,
            form,
            scope,
            self._carry_out,
            timing=shared.timing,
            sharing=shared.sharing,
            unstreamable=shared.unstreamable,
            stream_lists=shared.stream_lists,
            page_size=shared.page_size,
            on_problem=self._problem_changed,
        )
        self._on_problem: dict[object, Callable[[], None]] = {}
        self._history = shared.history
        self._resync = shared.resync
        self._all_metrics = shared.metrics
        self._metrics: CacheMetrics | None = None
        self._listeners: dict[object, Listener] = {}
        self._synced = asyncio.Event()
        self._waiters: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started_at = 0.0

    def __repr__(self) -> str:
        return f"<Informer {self.scope}: {self.store!r}, {len(self._listeners)} listeners>"

    @property
    def store(self) -> Store:
        return self._writer.store

    @property
    def problem(self) -> Problem | None:
        """What stands in the way just now."""
        return self._reflector.problem

    @property
    def silence(self) -> str:
        """Why nothing may have been heard yet, where there is no problem."""
        return "no answer yet" if self._loop is not None else "the cache is not running (async with cache)"

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    def stats(self) -> Stats:
        now = self._loop.time() if self._loop is not None else 0.0
        heard = self._reflector.heard_at
        return Stats(
            self.scope,
            len(self.store),
            self.store.bytes,
            self.store.version,
            self.is_synced,
            now - (self._started_at if heard is None else heard),
            self.problem,
        )

    async def run(self) -> NoReturn:
        """List and watch, until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._started_at = self._loop.time()
        gvk = self.scope.gvk
        self._metrics = self._all_metrics.cache(gvk.group, gvk.version, gvk.kind, self.stats)
        unfollow = self._history.follow(self._start_over)
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._resync > 0:
                    tasks.create_task(self._tell_again(), name=f"resync {self.scope}")
                await self._reflector.run()
        finally:
            unfollow()
            self._metrics.close()
        raise AssertionError("a reflector ends only by being cancelled")

    def add_index(self, index: Index, *, anew: bool = False) -> None:
        index.on_error = self._count_error
        self._writer.add_index(index, anew=anew)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a listener told of everything from now on, what is there first; the answer ends that."""
        me = object()
        if self.store.is_synced:
            for snapshot in list(self.store):
                self._call(listener, Seen("ADDED", None, snapshot, initial=True))
        self._listeners[me] = listener
        return lambda: self._listeners.pop(me, None) and None

    def on_problem(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have a function called whenever ``problem`` changes; calling the result ends that."""
        me = object()
        self._on_problem[me] = call
        return lambda: self._on_problem.pop(me, None) and None

    def _problem_changed(self) -> None:
        for call in list(self._on_problem.values()):
            call()

    async def wait_synced(self) -> None:
        """Wait until all of the scope is in the store, and every listener was told."""
        await self._synced.wait()

    async def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition on the store holds; False if it takes longer."""
        if condition():
            return True
        holds: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[holds] = condition
        try:
            async with asyncio.timeout(timeout):
                await holds
        except TimeoutError:
            return condition()
        finally:
            del self._waiters[holds]
        return True

    def measure_lag(self, seconds: float) -> None:
        """A write of ours was seen this long after it was answered."""
        if self._metrics is not None:
            self._metrics.lag_seconds.observe(seconds)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Put(snapshots):
                self._deliver(self._writer.put(*snapshots))
            case Drop(snapshot):
                self._deliver(self._writer.drop(snapshot))
            case Stage(snapshots):
                self._writer.stage(snapshots)
                return
            case Reach(version):
                self._writer.reach(version)
            case Swap(version):
                self._swap(version)
            case Replaced(evidence):
                self._history.replace(f"{self.scope}: {evidence}")
            case Unstage(key):
                self._writer.unstage(key)
            case Forget() | Doubt():
                self._writer.forget()
        for holds, condition in list(self._waiters.items()) if self._waiters else ():
            if not holds.done() and condition():
                holds.set_result(None)

    def _swap(self, version: str) -> None:
        if self.is_synced and self._metrics is not None:
            self._metrics.relists.inc()
        reached = self.store.version
        if self._writer.is_distrusting or is_older(version, reached):  # known already, or told by Replaced
            reached = ""
        changes = self._writer.swap(version)
        self._deliver(changes)
        self._synced.set()
        if found := next((change for change in changes if is_impossible(change, reached)), None):
            version = found.snapshot.metadata.resource_version
            self._history.replace(
                f"{self.scope}: {found.key} is there at resourceVersion {version}, and was not at {reached}"
            )

    def _start_over(self) -> None:
        """Have nobody read what is held until it is listed again: the server has another past."""
        self._writer.distrust()
        self._synced.clear()
        self._reflector.start_over()

    def _deliver(self, changes: list[Seen]) -> None:
        listeners = list(self._listeners.items())  # one that comes meanwhile is told by listen()
        for change in changes:
            for me, listener in listeners:
                if me in self._listeners:
                    self._call(listener, change)

    def _call(self, listener: Listener, change: Seen) -> None:
        try:
            listener(change)
        except BaseException:  # not async: no cancellation is meant for us
            log.exception("a listener raised when told of %s %s %s", change.type, self.scope.gvk, change.key)
            self._count_error()

    def _count_error(self) -> None:
        if self._metrics is not None:
            self._metrics.callback_errors.inc()

    async def _tell_again(self) -> NoReturn:
        while True:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311 - no secret
            self._deliver([Seen("RESYNC", snapshot, snapshot) for snapshot in self.store])


async def wait_all_synced(informers: Iterable[Informer], timeout: float) -> None:
    """Wait until all are synced; NotSynced names those that are not, and why."""
    waited_for = [informer for informer in informers if not informer.is_synced]
    if not waited_for:
        return
    try:
        async with asyncio.timeout(timeout):
            for informer in waited_for:
                await informer.wait_synced()
    except TimeoutError:
        late = [informer for informer in waited_for if not informer.is_synced]
        if late:
            reasons = "; ".join(f"{each.scope}: {each.problem or each.silence}" for each in late)
            raise NotSynced("wait for the cache", f"after {timeout:g} s still missing: {reasons}") from None
