"""A schedule that workers can wait on, with backoff, reasons and an orderly end.

1. Waiting workers are served in the order in which they began to wait, one key each.
2. A key taken with ``next_key()`` is given back however the block ends.  A worker that is cancelled before
   its key reached it leaves the key in the queue.
3. A failing key backs off alone, twice as long each time, until ``forget``.
4. What was said about why a key is added (``reason``) is handed out with it: the first 8 that differ.
5. After ``shut_down`` nothing is added, and nothing that is delayed is waited for.  Draining, it still hands
   out what is due; dropping, it does not.  Then workers get ``QueueShutDown``.

Which key is next is ``schedule.py``'s business.  No lock, because nothing waits between looking and changing;
no polling, because what changes hands out what is due at once, and one timer stands for all that is delayed.
A queue belongs to the thread of its event loop: adding, taking and giving back elsewhere is a RuntimeError.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

from setpoint.errors import QueueShutDown
from setpoint.metrics import Metrics
from setpoint.queue.backoff import delay_after
from setpoint.queue.schedule import PATIENCE, Asked, Schedule

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

LOW_PRIORITY = -100  # of what is only looked at in case: the first list, and resyncs
MOST_REASONS = 8

_BACKOFF = partial(delay_after, jitter=random.random)


class Taken(NamedTuple, Generic[K, R]):
    """A key in a worker's hands, and what is known about why."""

    key: K
    priority: int
    reasons: tuple[R, ...]  # advisory: what is true now is for the worker to find out
    due_since: float  # in the loop's time


@dataclass(frozen=True, slots=True)
class QueueStats:
    """What a queue holds now, and has done so far."""

    depth: Mapping[int, int]  # keys that are due, by priority
    delayed: int
    taken: int
    failing: int  # keys that failed and are not forgotten
    adds: int  # times that a key fell due; many adds of a waiting key are one
    retries: int
    oldest_waiting_seconds: float
    longest_running_seconds: float
    unfinished_seconds: float  # of all that is taken, together


class _State(Enum):
    OPEN = "open"
    DRAINING = "draining"
    DROPPED = "shut down"


_OPEN = _State.OPEN  # by a name of its own, because every call looks at it


class WorkQueue(Generic[K, R]):
    """The keys ``K`` that need work, and the reasons ``R`` why."""

    def __init__(
        self,
        name: str,
        metrics: Metrics,
        *,
        backoff: Callable[[int], float] = _BACKOFF,
        patience: int = PATIENCE,
    ) -> None:
        """``backoff``: failures of a key in a row → seconds; ``patience``: see ``schedule.py``, promise 5."""
        self.name = name
        self._schedule = Schedule[K](patience=patience)
        self._backoff = backoff
        self._state = _OPEN
        self._loop: asyncio.AbstractEventLoop | None = None  # the one it is first used in
        self._waiters: deque[asyncio.Future[Taken[K, R]]] = deque()  # while there are any, nothing is due
        self._timer: asyncio.TimerHandle | None = None  # only while someone waits for what is delayed
        self._rings_at: float | None = None
        self._drained = asyncio.Event()
        self._failures: dict[K, int] = {}
        self._reasons: dict[K, list[R]] = {}
        self._retries = 0
        self._metrics = metrics.queue(name, self.stats)

    def __repr__(self) -> str:
        waiting, taken = len(self._schedule), self._schedule.taken
        return f"<WorkQueue {self.name}, {self._state.value}: {waiting} waiting, {taken} taken>"

    def stats(self) -> QueueStats:
        now = 0.0 if self._loop is None else self._loop.time()
        schedule = self._schedule.stats(now)
        running = [now - since for since in self._schedule.taken_since.values()]
        return QueueStats(
            depth=schedule.due,
            delayed=schedule.delayed,
            taken=schedule.taken,
            failing=len(self._failures),
            adds=schedule.fell_due,
            retries=self._retries,
            oldest_waiting_seconds=0.0 if schedule.due_since is None else now - schedule.due_since,
            longest_running_seconds=max(running, default=0.0),
            unfinished_seconds=sum(running),
        )

    def first(self, most: int) -> list[tuple[K, float]]:
        """The keys that wait, the soonest first: each with the seconds until it is due, below 0 if it is."""
        now = 0.0 if self._loop is None else self._loop.time()
        return [(key, at - now) for key, at in self._schedule.first(most)]

    # Asking for work.

    def add(self, key: K, *, after: float = 0.0, priority: int = 0, reason: R | None = None) -> None:
        """Ask for ``key`` to be worked on, ``after`` so many seconds.

        Asked for several times before it is taken, it is taken once: at the earliest of the times, with
        the highest of the priorities.  Asked for while it is taken, it is taken again.
        """
        now = self._now()
        if self._state is not _OPEN:
            return
        at = now
        if after:
            if not math.isfinite(after):
                raise ValueError(f"add {key} to queue {self.name}: it cannot wait for {after} seconds")
            at += max(0.0, after)
        self._schedule.add(key, at, priority, now)
        if reason is not None:
            self._remember(key, reason)
        if self._waiters:
            self._hand_out(now)

    def add_rate_limited(
        self, key: K, *, not_before: float = 0.0, priority: int = 0, reason: R | None = None
    ) -> float:
        """Ask for ``key`` again because it failed; the answer is for how many seconds it is left alone: for
        ``not_before``, and for its backoff.
        """
        self._failures[key] = self._failures.get(key, 0) + 1
        self._retries += 1
        delay = not_before + self._backoff(
            self._failures[key]
        )  # together, for what was asked of many ends at once
        self.add(key, after=delay, priority=priority, reason=reason)
        return delay

    def forget(self, key: K) -> None:
        """``key`` succeeded, or must not be retried: its next failure is the first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often in a row ``key`` failed."""
        return self._failures.get(key, 0)

    # Working.

    def next_key(self) -> _Held[K, R]:
        """Wait for a key and hold it; it is given back however the block ends.

        Raises QueueShutDown where there will be no more.
        """
        return _Held(self)

    def joined(self, taken: Taken[K, R]) -> Taken[K, R]:
        """For a worker about to begin: with what was asked for since it was given the key, which then need
        not be taken again.
        """
        again = self._schedule.join(taken.key, self._now())
        if again is None:
            return taken
        since = [each for each in self._reasons.pop(taken.key, ()) if each not in taken.reasons]
        reasons = (*taken.reasons, *since)[:MOST_REASONS]
        return taken._replace(priority=max(taken.priority, again.priority), reasons=reasons)

    async def get(self) -> K:
        """The longhand of ``next_key()``: call ``done`` with what you got, once, whatever happens."""
        now = self._now()
        if self._waiters or (asked := self._schedule.take(now)) is None:
            return (await self._wait()).key
        if self._reasons:
            self._reasons.pop(asked.key, None)
        self._took(asked, now)
        return asked.key

    def done(self, key: K) -> None:
        """Give back a key; if it was asked for meanwhile, it may now be taken again."""
        now = self._now()
        worked = now - self._schedule.done(key)
        self._metrics.worked_seconds.observe(max(0.0, worked))
        if self._waiters or self._state is not _OPEN:
            self._hand_out(now)

    # The end.

    def shut_down(self, *, drain: bool = False) -> None:
        """Take no more adds, and hand out what is due (``drain``) or nothing."""
        now = self._now()
        if self._state is not _State.DROPPED:
            self._state = _State.DRAINING if drain else _State.DROPPED
        self._schedule.remove_after(now if self._state is _State.DRAINING else -math.inf)
        self._reasons = {key: said for key, said in self._reasons.items() if key in self._schedule}
        self._hand_out(now)

    async def wait_drained(self) -> None:
        """Wait until the queue is shut down, nothing waits in it and every key was given back."""
        await self._drained.wait()

    # How a key reaches a worker.

    def _take_due(self) -> Taken[K, R] | None:
        """What is due, if nobody waits for it; a worker that finds work needs no future."""
        now = self._now()
        if self._waiters or (asked := self._schedule.take(now)) is None:
            return None
        taken = self._told(asked)
        self._took(asked, now)
        return taken

    def _took(self, asked: Asked[K], now: float) -> None:
        self._metrics.waited_seconds.observe(now - asked.at)
        if self._state is not _OPEN:
            self._hand_out(now)  # it may have been the last

    async def _wait(self) -> Taken[K, R]:
        now = self._now()
        waiter: asyncio.Future[Taken[K, R]] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._hand_out(now)
        try:
            taken = await waiter
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        self._metrics.waited_seconds.observe(self._schedule.taken_since[taken.key] - taken.due_since)
        return taken

    def _leave(self, waiter: asyncio.Future[Taken[K, R]]) -> None:
        """A waiter is cancelled; its key, if it was just given one, goes back."""
        if waiter.cancelled():
            with suppress(ValueError):  # a hand-out since then threw it out
                self._waiters.remove(waiter)
            self._set_timer()
        elif waiter.exception() is None:
            self._put_back(waiter.result())

    def _put_back(self, taken: Taken[K, R]) -> None:
        if self._state is not _State.DROPPED:
            self._schedule.add(taken.key, taken.due_since, taken.priority)
            since = self._reasons.pop(taken.key, [])
            for reason in (*taken.reasons, *since):
                self._remember(taken.key, reason)
        self._schedule.done(taken.key)
        self._hand_out(self._now())

    def _hand_out(self, now: float) -> None:
        """Give what is due at ``now`` to who waits; then see to it that this happens again in time."""
        while self._waiters:
            if self._waiters[0].done():  # cancelled, and not yet here to say so
                self._waiters.popleft()
            elif (asked := self._schedule.take(now)) is not None:
                self._waiters.popleft().set_result(self._told(asked))
            else:
                break
        if self._state is not _OPEN and not self._schedule:
            self._end()
        self._set_timer()

    def _told(self, asked: Asked[K]) -> Taken[K, R]:
        """With what is known about why."""
        reasons = tuple(self._reasons.pop(asked.key, ())) if self._reasons else ()
        return Taken(asked.key, asked.priority, reasons, asked.at)

    def _end(self) -> None:
        """Nothing will be handed out any more."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(
                    QueueShutDown(f"take the next key of queue {self.name}", "the queue was shut down")
                )
        if not self._schedule.taken:
            self._drained.set()

    def _set_timer(self) -> None:
        when = self._schedule.next_due() if self._waiters else None
        if when == self._rings_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = when
        self._timer = self._loop.call_at(when, self._ring, when) if self._loop and when is not None else None

    def _ring(self, when: float) -> None:
        self._timer = self._rings_at = None
        self._hand_out(max(when, self._now()))  # a loop may ring a little early

    def _remember(self, key: K, reason: R) -> None:
        said = self._reasons.setdefault(key, [])
        if len(said) < MOST_REASONS and reason not in said:
            said.append(reason)

    def _now(self) -> float:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is None or loop is not self._loop:
            loop = self._adopt(loop)
        return loop.time()

    def _adopt(self, loop: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        """The first loop it is used in is its own."""
        if loop is None or self._loop is not None:
            raise RuntimeError(
                f"queue {self.name} belongs to the thread of its event loop; "
                "from another, use loop.call_soon_threadsafe(queue.add, key)"
            )
        self._loop = loop
        return loop


class _Held(Generic[K, R]):
    """``async with`` a key.  A class, because a generator costs as much as all else that is done to a key."""

    __slots__ = ("_key", "_queue")

    def __init__(self, queue: WorkQueue[K, R]) -> None:
        self._queue = queue

    async def __aenter__(self) -> Taken[K, R]:
        queue = self._queue
        taken = queue._take_due() or await queue._wait()  # noqa: SLF001 - its longhand gives the key alone
        self._key = taken.key
        return taken

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.done(self._key)
