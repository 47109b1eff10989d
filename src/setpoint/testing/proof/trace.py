"""What happened in a run: the record that oracles judge and reports tell.

Everything here is data, and all of it goes into ``digest``: two runs of one plan have the same digest, or
the operator decides by something that is another each time (``repeatability.py``).  Times are the loop's.

Written by ``seam.py`` (what the operator asked and saw), ``store.py`` (what the server wrote) and
``world.py`` (what the user did); read by ``oracles.py`` and ``report.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from setpoint.testing.isolation import Refused
from setpoint.testing.proof.plans import At, Plan

State: TypeAlias = dict[str, Any]  # canonical objects, by what they are called

USER, OTHER, COLLECTOR = "user", "other", "collector"
CONTROLLERS = "controllers"  # those that every cluster has
CLAIMS = "persistentvolumeclaims"  # where data is: of what those make, the one thing that is compared


class Line(NamedTuple):
    """One thing that happened, as the story tells it."""

    time: float
    lane: str  # "user", "operator 1", "view 1", "server"
    what: str


@dataclass(slots=True)
class Effect:
    """Something the operator asked for that changes the world outside of it; or a look at that."""

    number: int  # in the run, from 1; 0: it only reads
    at: At
    process: int
    time: float
    is_external: bool = False
    ended: float = 0.0
    came_to: str = "under way"  # "200", "409", "lost", "crash"
    revision: int = 0  # of the write that it came to
    look: str = ""  # the id of the reconcile that it was part of

    @property
    def is_done(self) -> bool:
        """Whether the world has changed."""
        return bool(self.revision)

    @property
    def has_failed(self) -> bool:
        """Whether it was tried and, as far as the operator was told, not done."""
        return not self.came_to.startswith(("2", "done", "crash", "under way", "lost"))


class Written(NamedTuple):
    """One write of the server, or of a cloud."""

    time: float
    by: str
    type: str  # ADDED, MODIFIED, DELETED
    resource: str
    namespace: str
    name: str
    revision: int
    data: bytes
    before: bytes | None

    @property
    def place(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}"


class Looked(NamedTuple):
    """One reconcile that ended."""

    time: float
    process: int
    controller: str
    key: str
    came_to: str
    error: str
    is_bug: bool
    id: str = ""


@dataclass(slots=True)
class Checkpoint:
    """After a step of the user, when all was still again, or should have been."""

    step: int  # how many steps were taken
    what: str
    began: float
    time: float
    is_settled: bool
    why_not: str
    state: State
    looks: int
    requests: int
    writes: int  # so many of ``Run.writes`` were before it
    is_blind: bool = False  # an event is held back that may come with the next step, or the step may fail
    restless: list[str] = field(default_factory=list)  # what was written though nothing had changed

    @classmethod
    def of_standstill(cls, run: Run, now: float) -> Checkpoint:
        """Where a run broke off, because time stood still."""
        step = len(run.checkpoints)
        what = str(run.plan.steps[step - 1]) if 0 < step <= len(run.plan.steps) else "start"
        return cls(step, what, now, now, False, run.spins, {}, 0, 0, len(run.writes))


@dataclass(slots=True)
class Run:
    """One run of one plan."""

    plan: Plan
    lines: list[Line] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    reads: list[Effect] = field(default_factory=list)  # of reconciles, past all caches
    events: list[At] = field(default_factory=list)  # that watches brought
    done: list[tuple[int, str]] = field(default_factory=list)  # effects that were, by which process, in order
    writes: list[Written] = field(default_factory=list)
    looks: list[Looked] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    fired: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # that nobody handled
    early: list[str] = field(default_factory=list)  # requests that did not wait as Retry-After says
    crowds: list[str] = field(default_factory=list)  # that came back at one moment, when the server was away
    overlaps: list[str] = field(default_factory=list)  # when two led
    requests: int = 0
    refused: list[str] = field(default_factory=list)  # steps of the plan that the server did not take
    external: Refused = field(default_factory=dict)  # calls of the operator outside, all refused
    spins: str = ""  # why time stood still
    stuck: list[str] = field(default_factory=list)  # tasks that do not end when they are cancelled
    given: Mapping[str, Any] = field(default_factory=dict)  # objects that were there before, by their places
    digest: str = ""

    def line(self, time: float, lane: str, what: str) -> None:
        self.lines.append(Line(time, lane, what))

    def close(self) -> None:
        """Nothing more will happen: say what it was, in short."""
        hashed = hashlib.blake2b(digest_size=16)
        for time, lane, what in self.lines:
            hashed.update(f"{time:.6f} {lane} {what}\n".encode())
        for write in self.writes:
            hashed.update(f"{write.revision} {write.type} {write.place}\n".encode())
            hashed.update(write.data)
        self.digest = hashed.hexdigest()
