"""Decides what of a manager may start now, and what must stop now.

What runs belongs to a group, and the groups are in order: servers, webhooks, caches, others, the election,
leaders.  The promises:

1. Nothing starts before everything of the groups before its own, as far as it is known then, is ready (or has
   ended).
2. Nothing is stopped before everything of the groups after its own has ended.
3. Once stopping, nothing starts; what had not started never does.
4. What is added while all runs is due as soon as the groups before its own are ready.

That leader election is a group with one member, which is ready when it is elected and whose end gives the
lease back, is why nothing else here knows of leadership: leaders start when it is won, and it is given back
when they have ended.

No clock and no task: ``manager.py`` starts, waits and cancels.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum, IntEnum
from typing import Generic, TypeVar

R = TypeVar("R", bound=Hashable)


class Group(IntEnum):
    """What starts before what; it stops in reverse."""

    SERVERS = 1  # probes and metrics: first, so that one can ask how the start goes
    WEBHOOKS = 2  # a kind with several versions cannot be listed before its conversion answers
    CACHES = 3
    OTHERS = 4  # what every replica runs
    ELECTION = 5
    LEADERS = 6  # what only the leader runs


class _Phase(Enum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    ENDED = "ended"


class Lifecycle(Generic[R]):
    """The things that run, each with its group and how far it is."""

    def __init__(self) -> None:
        # The truth, in the order in which they were added.
        self._groups: dict[R, Group] = {}
        self._phases: dict[R, _Phase] = {}
        self._told_to_stop: set[R] = set()
        self._is_stopping = False

    def __repr__(self) -> str:
        counts = [f"{len(self._in(phase))} {phase.value}" for phase in _Phase if self._in(phase)]
        return f"<Lifecycle{' stopping' if self._is_stopping else ''}: {', '.join(counts) or 'nothing'}>"

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    @property
    def is_over(self) -> bool:
        """Whether it was stopped, and all has ended."""
        return self._is_stopping and all(phase is _Phase.ENDED for phase in self._phases.values())

    def add(self, runnable: R, group: Group) -> None:
        """Have one more thing to run."""
        if runnable in self._groups:
            raise ValueError(f"{runnable!r} was added before")
        if self._is_stopping:
            raise RuntimeError(f"cannot add {runnable!r}: everything is being stopped")
        self._groups[runnable] = group
        self._phases[runnable] = _Phase.WAITING

    def start_due(self) -> list[R]:
        """Those that may start now; they count as started."""
        if self._is_stopping:
            return []
        first = self._first_unready()
        due = [each for each in self._in(_Phase.WAITING) if self._groups[each] <= first]
        for each in due:
            self._phases[each] = _Phase.STARTING
        return due

    def ready(self, runnable: R) -> None:
        """It does what others wait for."""
        if self._phases[runnable] is _Phase.STARTING:
            self._phases[runnable] = _Phase.READY

    def ended(self, runnable: R) -> None:
        """It runs no longer, for whatever reason."""
        self._phases[runnable] = _Phase.ENDED

    def remove(self, runnable: R) -> None:
        """Know it no longer; it does not run, or not any more."""
        del self._groups[runnable], self._phases[runnable]
        self._told_to_stop.discard(runnable)

    def stop(self) -> None:
        """Begin to stop everything; a second time is as good as once."""
        self._is_stopping = True
        for each in self._in(_Phase.WAITING):
            self._phases[each] = _Phase.ENDED

    def stop_due(self) -> list[R]:
        """Those that must stop now; each is told once."""
        if not self._is_stopping:
            return []
        running = self.running()
        last = max((self._groups[each] for each in running), default=None)
        due = [each for each in running if self._groups[each] is last and each not in self._told_to_stop]
        self._told_to_stop.update(due)
        return due

    def late(self) -> list[R]:
        """Those that were told to stop and have not ended."""
        return [each for each in self.running() if each in self._told_to_stop]

    def running(self, group: Group | None = None) -> list[R]:
        """What has started and not ended, of one group or all."""
        live = (_Phase.STARTING, _Phase.READY)
        return [
            each
            for each, phase in self._phases.items()
            if phase in live and group in (None, self._groups[each])
        ]

    def unready(self, upto: Group = Group.LEADERS) -> list[R]:
        """What is not ready yet, up to and including a group."""
        late = (_Phase.WAITING, _Phase.STARTING)
        return [each for each, phase in self._phases.items() if phase in late and self._groups[each] <= upto]

    def _first_unready(self) -> Group:
        return min((self._groups[each] for each in self.unready()), default=Group.LEADERS)

    def _in(self, phase: _Phase) -> list[R]:
        return [each for each, current in self._phases.items() if current is phase]
