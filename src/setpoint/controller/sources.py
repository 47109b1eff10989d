"""Where the keys of a controller come from: watched kinds, streams of the author's own, timers.

1. A kind is synced when the cache has all of it, and each object was mapped or waits for its mapper.
2. A predicate that raises lets the change pass: a look too many does no harm.
3. A mapper that raises, whatever it raises, is logged and counted, and harms nobody else.  It is tried
   again, backing off, object by object, and at once when the object changes, until it answers.  Meanwhile
   each state that the object was in is kept once, for each may concern somebody else: the first and the
   latest of them, of so many objects.  What is lost beyond that is logged.
4. A ``Channel`` holds 1024 keys, then ``send`` waits.

Which keys, is decided in ``mapping.py``; which changes, in ``predicates.py``.  Drained by the queue of the
controller, through a ``Feed``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from typing import Any, TypedDict, TypeVar, Unpack, cast

from setpoint.api.forms import Form, form_of
from setpoint.api.names import Key
from setpoint.api.wire import Snapshot
from setpoint.cache.cache import Cache, Fields, Indexes, Labels
from setpoint.cache.declaration import Declaration
from setpoint.cache.scope import Problem
from setpoint.cache.store import Seen
from setpoint.controller.isolation import run_isolated
from setpoint.controller.mapping import (
    Mapper,
    Reason,
    ToKeys,
    ToOwner,
    checked,
    keys_of,
    objects_of,
    priority_of,
    reason_of,
)
from setpoint.controller.predicates import Predicate, anything
from setpoint.controller.result import Request
from setpoint.errors import NotSynced, SetpointError
from setpoint.metrics import Metrics
from setpoint.queue.workqueue import LOW_PRIORITY, WorkQueue

T = TypeVar("T")

BUFFER = 1024  # as controller-runtime
MAPPER_TIMEOUT = 60.0  # seconds for one change; then it is asked again
MOST_STATES = 16  # of one object that wait for a mapper
MOST_WAITING = 10_000  # objects that wait for a mapper
FIND_AGAIN = 2.0  # seconds until a kind that the server does not know is looked for again


@dataclass(frozen=True, slots=True)
class Feed:
    """What a source is given to feed."""

    controller: str
    add: Callable[[Request, int, Reason], None]  # a key, its priority, and why
    metrics: Metrics
    count_error: Callable[[], None]
    log: logging.Logger


class Source:
    """Where keys come from.  A subclass must have ``run``; the rest is for those that can be late."""

    async def run(self, feed: Feed) -> None:
        """Feed until cancelled, or until there is nothing more to come.  If it raises, it is begun anew."""
        raise NotImplementedError

    @property
    def is_synced(self) -> bool:
        """Whether what was there at the start has been fed."""
        return True

    async def wait_synced(self, timeout: float) -> None:
        """Wait until it is synced; NotSynced says why it is not."""
        if not self.is_synced:
            await asyncio.sleep(timeout)
        if not self.is_synced:
            raise NotSynced(f"wait for {self!r}", f"not synced after {timeout:g} s")

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What stands in the way just now."""
        return ()

    def on_problem(self, call: Callable[[], None]) -> bool:
        """Have a function called whenever ``problems`` changes.

        False: the source cannot tell, and ``problems`` must be read every second.
        """
        del call
        return type(self).problems is Source.problems  # there never are any

    def close(self) -> None:
        """Need it no longer."""


class KindOptions(TypedDict, total=False):
    """Which objects of a kind the cache keeps for this; all where nothing is said.  See ``Cache.declare``."""

    namespaces: Iterable[str] | None
    labels: Labels | None
    fields: Fields | None
    metadata_only: bool | None
    strip_managed_fields: bool
    indexes: Indexes[Any]


class Kind(Source):
    """The changes of a kind, each mapped to keys.  Declared at once, so that the cache can be warm before."""

    def __init__(
        self,
        cache: Cache,
        kind: type[Any] | Form[Any],
        mapper: Mapper,
        *,
        when: Predicate = anything,
        priority: int = 0,
        **options: Unpack[KindOptions],
    ) -> None:
        self.form = form_of(kind)
        self._cache = cache
        self._mapper = mapper
        self._when = when
        self._priority = priority
        self._is_heard = asyncio.Event()
        self.on_change: Callable[[Seen, bool], None] | None = None  # told of each, and whether it matters
        self.declaration: Declaration = cache.declare(kind, **options)

    def __repr__(self) -> str:
        return f"<Kind {self.declaration!r}, {self._when!r}>"

    @property
    def is_synced(self) -> bool:
        return self._is_heard.is_set() and self.declaration.is_synced

    async def wait_synced(self, timeout: float) -> None:
        until = asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(until):
                await self._is_heard.wait()
        except TimeoutError:
            raise NotSynced(f"watch {self.form.gvk}", "the kind of its owners is not served yet") from None
        await self.declaration.wait_synced(max(0.0, until - asyncio.get_running_loop().time()))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.declaration.problems

    def on_problem(self, call: Callable[[], None]) -> bool:
        self.declaration.on_problem(call)
        return True

    def close(self) -> None:
        self.declaration.close()

    def keys(self) -> list[Request]:
        """The keys of all objects that there are and that matter, without the mapper."""
        found: list[Seen] = []
        self.declaration.listen(found.append)()
        return [seen.key for seen in found if self._when(seen)]

    async def run(self, feed: Feed) -> None:
        mapper = await self._find_scope(feed)
        waits, waiting = _is_async(mapper), _Waiting()

        def hear(seen: Seen) -> None:
            answers: list[list[Request]] = []
            for state in objects_of(seen):
                try:
                    if not waits:
                        answers.append(checked(mapper(state)))
                        continue
                except BaseException as error:  # noqa: BLE001 - not async; logged there, with its traceback
                    self._tell_of(state, feed, error, "it is tried again")
                if lost := waiting.add(state, seen):
                    feed.log.error("mappers raise at too many %s: %s is given up", self.form.gvk, lost)
            self._feed(keys_of(answers), seen, feed)

        with self._listening(hear, feed):
            await waiting.wait_any()  # for most, that is never
            await self._map_waiting(mapper, waiting, feed)

    async def _find_scope(self, feed: Feed) -> Mapper:
        """The mapper; one to owners of a kind that no class describes asks the server about it."""
        mapper = self._mapper
        while isinstance(mapper, ToOwner) and mapper.namespaced is None:
            try:
                resource = await self._cache.client.resource_of(mapper.form)
                mapper = replace(mapper, namespaced=resource.namespaced)
            except SetpointError as error:
                feed.log.debug("%s: %s", feed.controller, error)
                await asyncio.sleep(FIND_AGAIN)
        return mapper

    @contextmanager
    def _listening(self, hear: Callable[[Seen], None], feed: Feed) -> Iterator[None]:
        """While it lasts, a function hears of the changes that matter."""

        def listen(seen: Seen) -> None:
            matters = self._when is anything or self._matters(seen, feed)
            if self.on_change is not None:
                self.on_change(seen, matters)
            if matters:
                hear(seen)

        end = self.declaration.listen(listen)
        self._is_heard.set()
        try:
            yield
        finally:
            end()

    def _matters(self, seen: Seen, feed: Feed) -> bool:
        try:
            return self._when(seen)
        except BaseException:  # not async: no cancellation is meant for us
            feed.count_error()
            feed.log.exception("%r raised at %s %s; the change passes", self._when, self.form.gvk, seen.key)
            return True

    def _feed(self, keys: list[Request], seen: Seen, feed: Feed) -> None:
        if not keys:
            return
        priority, reason = priority_of(seen, self._priority), reason_of(self.form.gvk, seen)
        for key in keys:
            feed.add(key, priority, reason)

    def _tell_of(self, state: Snapshot, feed: Feed, error: BaseException, what_now: str) -> None:
        feed.count_error()
        feed.log.error("a mapper raised at %s %s; %s", self.form.gvk, state.key, what_now, exc_info=error)

    # A mapper that waits, or has failed.

    async def _map_waiting(self, mapper: Mapper, waiting: _Waiting, feed: Feed) -> None:
        """Map what waits, one object at a time, until it works."""
        queue: WorkQueue[Key, None] = WorkQueue(f"{feed.controller}-{self.form.gvk.kind}", feed.metrics)
        waiting.on_add(lambda seen: queue.add(seen.key, priority=priority_of(seen, self._priority)))
        while True:
            async with queue.next_key() as taken:
                has_failed = False
                for state, seen in waiting.of(taken.key):
                    name = f"map {self.form.gvk.kind} {taken.key} of {feed.controller}"
                    ended = await run_isolated(
                        partial(_mapped, mapper, state), name=name, timeout=MAPPER_TIMEOUT
                    )
                    if ended.error is None:
                        self._feed(cast("list[Request]", ended.value), seen, feed)
                        waiting.end(state)
                        continue
                    if not has_failed:
                        wait = queue.add_rate_limited(taken.key, priority=taken.priority)
                        late = f"it took longer than {MAPPER_TIMEOUT:g} s; " if ended.timed_out else ""
                        self._tell_of(state, feed, ended.error, f"{late}again in {wait:.3g} s")
                    has_failed = True
                if not has_failed:
                    queue.forget(taken.key)
            await asyncio.sleep(0)  # one that reads only the cache never waits


class _Waiting:
    """The states of objects that are yet to be mapped, each with the change by which it was heard of."""

    def __init__(self) -> None:
        self._states: dict[Key, dict[tuple[str, str], tuple[Snapshot, Seen]]] = {}  # the oldest first
        self._some = asyncio.Event()
        self._tell: Callable[[Seen], None] = lambda _: None

    async def wait_any(self) -> None:
        """Wait until there was any."""
        await self._some.wait()

    def on_add(self, tell: Callable[[Seen], None]) -> None:
        """Have a function told of each change that is added, and now of those that are there."""
        self._tell = tell
        for states in list(self._states.values()):
            for _, seen in states.values():
                tell(seen)

    def add(self, state: Snapshot, seen: Seen) -> Key | None:
        """One more waits; the key of the object that is given up for it, if there are too many."""
        states = self._states.setdefault(state.key, {})
        states[_identity(state)] = state, seen
        if len(states) > MOST_STATES:
            del states[list(states)[1]]
        self._some.set()
        self._tell(seen)
        if len(self._states) <= MOST_WAITING:
            return None
        lost = next(iter(self._states))
        del self._states[lost]
        return lost

    def of(self, key: Key) -> list[tuple[Snapshot, Seen]]:
        """The states of an object that wait."""
        return list(self._states.get(key, {}).values())

    def end(self, state: Snapshot) -> None:
        """It no longer waits."""
        states = self._states.get(state.key, {})
        states.pop(_identity(state), None)
        if not states:
            self._states.pop(state.key, None)


def _identity(state: Snapshot) -> tuple[str, str]:
    return state.metadata.uid, state.metadata.resource_version


def _is_async(mapper: Mapper) -> bool:
    return isinstance(mapper, ToKeys) and mapper.is_async


async def _mapped(mapper: Mapper, state: Snapshot) -> list[Request]:
    return keys_of([checked(await _answer(mapper(state)))])


async def _answer(given: Iterable[Request] | Awaitable[Iterable[Request]]) -> Iterable[Request]:
    return await given if isawaitable(given) else given


# ---- the author's own ------------------------------------------------------------------------------


class Stream(Source):
    """Keys from a function that gives them one by one, ``async``: a generator, mostly."""

    def __init__(self, function: Callable[[], AsyncIterable[Request]], *, priority: int = 0) -> None:
        self._function = function
        self._priority = priority

    def __repr__(self) -> str:
        return f"<Stream {getattr(self._function, '__qualname__', self._function)}>"

    async def run(self, feed: Feed) -> None:
        async with _closing(keys := self._function()):
            async for key in keys:
                for each in checked([key]):
                    feed.add(each, self._priority, Reason("stream"))
                await asyncio.sleep(0)  # one that never waits must not keep others from running


def _closing(keys: AsyncIterable[Request]) -> AbstractAsyncContextManager[object]:
    return aclosing(keys) if isinstance(keys, AsyncGenerator) else nullcontext()


class Channel(Stream):
    """Keys that other code sends: ``await channel.send(Request(namespace, name))``.

    It belongs to one controller.  What is sent before that runs, waits.
    """

    def __init__(self, size: int = BUFFER, *, priority: int = 0) -> None:
        super().__init__(self._received, priority=priority)
        self._buffer: asyncio.Queue[Request] = asyncio.Queue(size)

    def __repr__(self) -> str:
        return f"<Channel {self._buffer.qsize()} of {self._buffer.maxsize} waiting>"

    async def send(self, key: Request) -> None:
        """Have a key looked at; waits while the channel is full."""
        (key,) = checked([key])
        await self._buffer.put(key)

    async def _received(self) -> AsyncIterator[Request]:
        while True:
            yield await self._buffer.get()


class Timer(Source):
    """The keys that a function gives, every so many seconds; it may be ``async``."""

    def __init__(
        self,
        seconds: float,
        keys: Callable[[], Iterable[Request] | Awaitable[Iterable[Request]]],
        *,
        priority: int = LOW_PRIORITY,
    ) -> None:
        if not 0 < seconds < float("inf"):
            raise ValueError(f"a timer needs some seconds between two looks, not {seconds}")
        self._seconds = seconds
        self._keys = keys
        self._priority = priority

    def __repr__(self) -> str:
        return f"<Timer every {self._seconds:g} s>"

    async def run(self, feed: Feed) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                keys = checked(await _answer(self._keys()))
            except Exception:
                feed.count_error()
                feed.log.exception("%r raised; the next time is in %g s", self, self._seconds)
                continue
            for key in dict.fromkeys(keys):
                feed.add(key, self._priority, Reason("timer"))
