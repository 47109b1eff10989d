"""Decides which key may be worked on next.

1. A key added many times before it is taken is taken once.
2. A key is never taken twice at once.  Added while taken, it waits until its worker is done with it.
3. Asked for at several times, the earliest wins; with several priorities, the highest.
4. What is due goes by priority, the highest first, and within a priority in the order in which it fell due.
5. Nothing starves: the key that has been due longest is passed over at most ``patience`` times, whatever its
   priority; then it is next.  With k keys due before it, a key is thus taken within
   ``(k + 1) * (patience + 1)`` takes, however much of a higher priority keeps coming.

A priority is any integer.  Ageing counts turns, not seconds: were a key to rise with the time it waits, a
flood of low keys (ten thousand objects at start-up) would after a while stand before every fresh change: what
priorities are there to prevent.  This way old work has a share, one turn in ten, and fresh work the rest.

Every call costs O(log n), over time.  No clock, task or lock lives here: time comes in as an argument, so
every rule can be tested without waiting.  ``workqueue.py`` puts asyncio around it.

Fed by ``controller/mapping.py``; drained by ``controller/worker.py``.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

PATIENCE = 9

_DELAYED, _GONE = 0, -1  # in place of the order in which a key fell due
_SLACK = 64  # outdated hints that are not worth a clean-up


@dataclass(slots=True, eq=False)
class Asked(Generic[K]):
    """That a key be worked on: since or from when, and how urgently."""

    key: K
    at: float
    priority: int
    order: int = _DELAYED  # of falling due, among all keys

    @property
    def is_due(self) -> bool:
        return self.order > _DELAYED


@dataclass(frozen=True, slots=True)
class ScheduleStats:
    """How many keys are in each state."""

    due: Mapping[int, int]  # by priority
    delayed: int
    taken: int
    fell_due: int  # since the beginning
    due_since: float | None  # the key longest due


class Schedule(Generic[K]):
    """The keys that need work: delayed, then due, then taken."""

    def __init__(self, *, patience: int = PATIENCE) -> None:
        if patience < 0:
            raise ValueError(f"patience is how often a key lets others go first: 0 or more, not {patience}")
        # The truth.  A key is in _waiting or in _taken, never in both; in _again only while in _taken.
        self._waiting: dict[K, Asked[K]] = {}
        self._taken: set[K] = set()
        self._again: dict[K, Asked[K]] = {}
        # Hints into _waiting.
        self._by_time = _Hints[K](lambda at, asked: asked.order == _DELAYED and asked.at == at)
        self._by_rank = _Hints[K](lambda below, asked: asked.order > _DELAYED and asked.priority == -below)
        self._by_age = _Hints[K](lambda _, asked: asked.order > _DELAYED)
        # Sums over _waiting, and what came before.
        self._depth = Counter[int]()  # how many are due, by priority
        self._fell_due = 0
        self._arrival = count()
        self._patience = patience
        self._passed_over = 0  # how often in a row the key longest due was

    def __repr__(self) -> str:
        due = self._depth.total()
        waiting = f"{due} due, {len(self._waiting) - due} delayed"
        return f"<Schedule {waiting}, {len(self._taken)} taken, {len(self._again)} of them again>"

    def __len__(self) -> int:
        """How many keys are still to be taken."""
        return len(self._waiting) + len(self._again)

    def __contains__(self, key: object) -> bool:
        """Whether ``key`` is still to be taken."""
        return key in self._waiting or key in self._again

    @property
    def taken(self) -> int:
        """How many keys are in workers' hands."""
        return len(self._taken)

    def stats(self, now: float) -> ScheduleStats:
        self._fall_due(now)
        longest = self._by_age.first()
        return ScheduleStats(
            due=dict(self._depth),
            delayed=len(self._waiting) - self._depth.total(),
            taken=len(self._taken),
            fell_due=self._fell_due,
            due_since=None if longest is None else longest.at,
        )

    def add(self, key: K, at: float, priority: int = 0) -> None:
        """Ask for ``key`` to be worked on, no sooner than ``at``."""
        if (asked := self._waiting.get(key)) is not None:
            self._merge(asked, at, priority)
        elif key not in self._taken:
            self._delay(Asked(key, at, priority))
        elif (again := self._again.get(key)) is not None:
            again.at, again.priority = min(at, again.at), max(priority, again.priority)
        else:
            self._again[key] = Asked(key, at, priority)

    def take(self, now: float) -> Asked[K] | None:
        """Hand out the key that is next at ``now``; None if nothing is due."""
        self._fall_due(now)
        longest, highest = self._by_age.first(), self._by_rank.first()
        if longest is None or highest is None:
            return None
        asked = highest if self._passed_over < self._patience else longest
        self._passed_over = 0 if asked is longest else self._passed_over + 1
        self._leave(asked)
        self._taken.add(asked.key)
        return asked

    def done(self, key: K) -> None:
        """Give back a taken key, so that it may be taken again."""
        if key not in self._taken:
            raise ValueError(f"{key} is not taken: give back each key once, after it was taken")
        self._taken.remove(key)
        if (again := self._again.pop(key, None)) is not None:
            self._delay(again)

    def remove(self, key: K) -> None:
        """No longer ask for ``key``; if it is taken, its worker still has it."""
        self._again.pop(key, None)
        if (asked := self._waiting.get(key)) is not None:
            self._leave(asked)

    def remove_after(self, moment: float) -> None:
        """No longer ask for anything that was asked for at a time after ``moment``."""
        for asked in [*self._waiting.values(), *self._again.values()]:
            if asked.at > moment:
                self.remove(asked.key)

    def next_due(self) -> float | None:
        """When the next key falls due, or fell due; None if no key waits."""
        first = self._by_age.first() or self._by_time.first()
        return None if first is None else first.at

    # How a key passes from one state to the next.

    def _delay(self, asked: Asked[K]) -> None:
        self._waiting[asked.key] = asked
        self._hint_at_time(asked)

    def _merge(self, asked: Asked[K], at: float, priority: int) -> None:
        """Bring forward, or up, what waits already, if that is what is asked."""
        if at < asked.at:
            asked.at = at
            if not asked.is_due:
                self._hint_at_time(asked)
        if priority > asked.priority:
            before, asked.priority = asked.priority, priority
            if asked.is_due:
                self._count(before, -1)
                self._rank(asked)

    def _fall_due(self, now: float) -> None:
        while (asked := self._by_time.first()) is not None and asked.at <= now:
            self._fell_due += 1
            asked.order = self._fell_due  # with this, it is due
            self._by_age.push(asked.order, 0, asked, len(self._waiting))
            self._rank(asked)

    def _rank(self, asked: Asked[K]) -> None:
        self._count(asked.priority, +1)
        self._by_rank.push(-asked.priority, asked.order, asked, len(self._waiting))

    def _leave(self, asked: Asked[K]) -> None:
        del self._waiting[asked.key]
        if asked.is_due:
            self._count(asked.priority, -1)
        asked.order = _GONE

    def _hint_at_time(self, asked: Asked[K]) -> None:
        self._by_time.push(asked.at, next(self._arrival), asked, len(self._waiting))

    def _count(self, priority: int, change: int) -> None:
        due = self._depth[priority] = self._depth.get(priority, 0) + change
        if not due:
            del self._depth[priority]


class _Hints(Generic[K]):
    """A heap that is not told when what it points to changes: what does not hold any more is skipped."""

    def __init__(self, holds: Callable[[float, Asked[K]], bool]) -> None:
        self._holds = holds
        self._heap: list[tuple[float, int, Asked[K]]] = []

    def push(self, place: float, tie: int, asked: Asked[K], live: int) -> None:
        """``live`` is how many hints can hold at most: where most do not, they go."""
        if len(self._heap) > 2 * live + _SLACK:
            self._heap = [hint for hint in self._heap if self._holds(hint[0], hint[2])]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (place, tie, asked))

    def first(self) -> Asked[K] | None:
        while self._heap:
            place, _, asked = self._heap[0]
            if self._holds(place, asked):
                return asked
            heapq.heappop(self._heap)
        return None
