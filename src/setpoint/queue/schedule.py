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

Every call costs O(log n), over time; for a key that is due at once, which is the rule, and taken in its turn,
O(1): only what is delayed, or raised while it waits, passes through a heap.  As long as all that is due has
one priority, which is the rule, too, what is due is one row; only when priorities differ is it kept by
priority as well, until nothing is due any more.

No clock, task or lock lives here: time comes in as an argument, so every rule can be tested
without waiting.  ``workqueue.py`` puts asyncio around it.

Fed by ``controller/mapping.py``; drained by ``controller/worker.py``.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)

PATIENCE = 9

_DELAYED, _GONE = 0, -1  # in place of the order in which a key fell due
_SLACK = 64  # outdated hints that are not worth a clean-up


class Asked(msgspec.Struct, Generic[K], eq=False, gc=False):
    """That a key be worked on: since or from when, and how urgently.

    A Struct, because every key has one; and nothing points back at it, so that the collector, which would
    look at all of them again and again, need not know of it.
    """

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
        self._taken: dict[K, float] = {}  # since when
        self._again: dict[K, Asked[K]] = {}
        # Hints into _waiting: they are not told when what they point to changes, and skipped where it did.
        self._by_time: list[tuple[float, int, Asked[K]]] = []  # what is delayed, as a heap
        self._by_age: deque[Asked[K]] = deque()  # what is due, the longest first
        self._priority = 0  # of all that is due, while there are no ranks
        self._ranks: dict[int, _Rank[K]] = {}  # what is due, by priority, since these differ
        self._urgent: list[int] = []  # the priorities of those, negated, as a heap
        # What came before.
        self._fell_due = 0
        self._left = 0  # of those that fell due
        self._arrival = count()
        self._patience = patience
        self._passed_over = 0  # how often in a row the key longest due was

    def __repr__(self) -> str:
        waiting = f"{self._due} due, {len(self._waiting) - self._due} delayed"
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

    @property
    def taken_since(self) -> Mapping[K, float]:
        """What is in workers' hands, and since when."""
        return self._taken

    @property
    def _due(self) -> int:
        return self._fell_due - self._left

    def stats(self, now: float) -> ScheduleStats:
        self._fall_due(now)
        longest = self._longest()
        depth = {self._priority: self._due}
        if self._ranks:
            depth = {priority: rank.due for priority, rank in self._ranks.items()}
        return ScheduleStats(
            due={priority: due for priority, due in depth.items() if due},
            delayed=len(self._waiting) - self._due,
            taken=len(self._taken),
            fell_due=self._fell_due,
            due_since=None if longest is None else longest.at,
        )

    def first(self, most: int) -> list[tuple[K, float]]:
        """The keys that wait, and from when they may be taken, the soonest first; at most so many."""
        soonest = heapq.nsmallest(most, self._waiting.values(), key=lambda asked: asked.at)
        return [(asked.key, asked.at) for asked in soonest]

    def add(self, key: K, at: float, priority: int = 0, now: float | None = None) -> None:
        """Ask for ``key`` to be worked on, no sooner than ``at``; who knows the time may say it."""
        if (asked := self._waiting.get(key)) is not None:
            self._merge(asked, at, priority)
        elif not self._taken or key not in self._taken:
            asked = self._waiting[key] = Asked(key, at, priority)
            if now is not None and at <= now and (not self._by_time or now < self._by_time[0][0]):
                self._now_due(asked)  # for nothing else is about to
            else:
                self._delay(asked)
        elif (again := self._again.get(key)) is not None:
            again.at, again.priority = min(at, again.at), max(priority, again.priority)
        else:
            self._again[key] = Asked(key, at, priority)

    def take(self, now: float) -> Asked[K] | None:
        """Hand out the key that is next at ``now``; None if nothing is due."""
        if self._by_time:
            self._fall_due(now)
        if self._fell_due == self._left:
            return None
        if self._ranks:
            asked = self._next()
            self._leave(asked)
        else:
            while (asked := self._by_age.popleft()).order <= _DELAYED:
                pass
            self._left += 1
            asked.order = _GONE
            del self._waiting[asked.key]
        self._taken[asked.key] = now
        return asked

    def done(self, key: K) -> float:
        """Give back a taken key, so that it may be taken again; since when it was taken is the answer."""
        since = self._taken.pop(key, None)
        if since is None:
            raise ValueError(f"{key} is not taken: give back each key once, after it was taken")
        if self._again and (again := self._again.pop(key, None)) is not None:
            self._waiting[key] = again
            self._delay(again)
        return since

    def join(self, key: K, now: float) -> Asked[K] | None:
        """What was asked of a taken key since, and is due: a worker that has not begun does it as well."""
        again = self._again.get(key)
        if again is None or again.at > now:
            return None
        return self._again.pop(key)

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
        first = self._longest() or self._soonest()
        return None if first is None else first.at

    # How a key passes from one state to the next.

    def _merge(self, asked: Asked[K], at: float, priority: int) -> None:
        """Bring forward, or up, what waits already, if that is what is asked."""
        if at < asked.at:
            asked.at = at
            if asked.order == _DELAYED:
                self._delay(asked)
        if priority > asked.priority:
            before, asked.priority = asked.priority, priority
            if asked.order > _DELAYED:
                if self._ranks:
                    self._ranks[before].lose()
                    self._rank(priority).raised(asked)
                else:
                    self._differ(priority)

    def _fall_due(self, now: float) -> None:
        while (asked := self._soonest()) is not None and asked.at <= now:
            self._now_due(asked)

    def _now_due(self, asked: Asked[K]) -> None:
        self._fell_due += 1
        asked.order = self._fell_due  # with this, it is due
        self._by_age.append(asked)
        if self._ranks:
            self._rank(asked.priority).append(asked)
        elif asked.priority != self._priority:
            self._differ(asked.priority)

    def _differ(self, priority: int) -> None:
        """One that is due has another priority than all the others."""
        if self._due == 1:
            self._priority = priority
            return
        for each in self._by_age:
            if each.order > _DELAYED:
                self._rank(each.priority).append(each)

    def _leave(self, asked: Asked[K]) -> None:
        """It waits no longer, but stands still in the rows: they are cleared when too much of them is old."""
        del self._waiting[asked.key]
        is_due, asked.order = asked.order > _DELAYED, _GONE
        if not is_due:
            return
        self._left += 1
        if self._fell_due == self._left:
            self._by_age.clear()
            self._ranks.clear()
            self._urgent.clear()
            self._passed_over = 0
            return
        if self._ranks:
            self._ranks[asked.priority].lose()
        if len(self._by_age) > 2 * len(self._waiting) + _SLACK:
            self._by_age = deque(each for each in self._by_age if each.order > _DELAYED)

    def _delay(self, asked: Asked[K]) -> None:
        if len(self._by_time) > 2 * len(self._waiting) + _SLACK:
            self._by_time = [hint for hint in self._by_time if _is_delayed_until(*hint)]
            heapq.heapify(self._by_time)
        heapq.heappush(self._by_time, (asked.at, next(self._arrival), asked))

    # The first of each hints.

    def _soonest(self) -> Asked[K] | None:
        hints = self._by_time
        while hints:
            if _is_delayed_until(*hints[0]):
                return hints[0][2]
            heapq.heappop(hints)
        return None

    def _longest(self) -> Asked[K] | None:
        hints = self._by_age
        while hints:
            if hints[0].order > _DELAYED:
                return hints[0]
            hints.popleft()
        return None

    def _next(self) -> Asked[K]:
        """Only where something is due, and there are ranks: the highest, or in its turn the longest due."""
        longest, highest = self._longest(), self._highest()
        if highest is longest or longest is None or self._passed_over == self._patience:
            self._passed_over = 0
            return longest or highest
        self._passed_over += 1
        return highest

    def _highest(self) -> Asked[K]:
        while not (rank := self._ranks[-self._urgent[0]]).due:
            del self._ranks[-heapq.heappop(self._urgent)]
        return rank.first()

    def _rank(self, priority: int) -> _Rank[K]:
        rank = self._ranks.get(priority)
        if rank is None:
            if len(self._ranks) > 2 * len(self._waiting) + _SLACK:
                self._ranks = {each: rank for each, rank in self._ranks.items() if rank.due}
                self._urgent = sorted(-each for each in self._ranks)  # which is a heap
            rank = self._ranks[priority] = _Rank(priority)
            heapq.heappush(self._urgent, -priority)
        return rank


class _Rank(Generic[K]):
    """What is due at one priority, in the order in which it fell due; hints again, skipped where outdated."""

    __slots__ = ("_came", "_raised", "due", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.due = 0  # how many hints hold
        self._came: deque[Asked[K]] = deque()  # as they fell due
        self._raised: list[tuple[int, Asked[K]]] = []  # what fell due at another priority, as a heap

    def append(self, asked: Asked[K]) -> None:
        if len(self._came) > 2 * self.due + _SLACK:
            self._came = deque(each for each in self._came if self._holds(each))
        self._came.append(asked)
        self.due += 1

    def raised(self, asked: Asked[K]) -> None:
        if len(self._raised) > 2 * self.due + _SLACK:
            self._raised = [hint for hint in self._raised if self._holds(hint[1])]
            heapq.heapify(self._raised)
        heapq.heappush(self._raised, (asked.order, asked))
        self.due += 1

    def lose(self) -> None:
        """One of them left, or rose."""
        self.due -= 1
        if not self.due:
            self._came.clear()
            self._raised.clear()

    def first(self) -> Asked[K]:
        """Only where something is due."""
        came, raised = self._came, self._raised
        while came and not self._holds(came[0]):
            came.popleft()
        while raised and not self._holds(raised[0][1]):
            heapq.heappop(raised)
        if raised and (not came or raised[0][0] < came[0].order):
            return raised[0][1]
        return came[0]

    def _holds(self, asked: Asked[K]) -> bool:
        return asked.order > _DELAYED and asked.priority == self.priority


def _is_delayed_until(at: float, _: int, asked: Asked[K]) -> bool:
    return asked.order == _DELAYED and asked.at == at
