"""Named places in the store where a test may make it die or fail.

A point does nothing until it is armed: by the environment variable ``SETPOINT_FAILPOINTS``, as in
``write.committed=kill@3;compaction.begin=error``, or by ``Failpoints.arm``.  ``kill`` is SIGKILL to this very
process, ``error`` is an error of the disk; ``@3`` means the third time that it is reached, and only then.

Unarmed, a point is a look into an empty dict.  Whoever adds a point names it in ``POINTS``; the crash tests
go through all of them.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping
from typing import Final

VARIABLE: Final = "SETPOINT_FAILPOINTS"

POINTS: Final = {
    "write.begin": "before anything of a batch is written",
    "write.committed": "it is durable, and nobody knows",
    "write.applied": "it can be read and watched, and its writers have no answer yet",
    "write.acknowledged": "its writers have their answer, and none has acted on it",
    "settle.truncated": "a failed commit was taken out of the log, and that is not durable yet",
    "compaction.begin": "before a step of compaction",
    "compaction.deleted": "its rows are deleted in the transaction, and nothing is committed",
    "compaction.committed": "after a step of compaction",
    "checkpoint.begin": "before the write-ahead log is moved into the database",
    "checkpoint.end": "after that",
    "fresh.written": "a restored or repaired database is written beside where it will be",
    "fresh.aside": "the damaged one was moved aside, and the new one is not in its place yet",
    "fresh.placed": "it is in its place",
}

Act = Callable[[], None]


class Failpoints:
    """Which points are armed, and with what."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._armed: dict[str, tuple[Act, int]] = {}
        self._times: dict[str, int] = {}
        for each in filter(None, environment.get(VARIABLE, "").split(";")):
            point, _, said = each.strip().partition("=")
            action, _, at = said.partition("@")
            if action not in _ACTIONS or not (at.isdigit() or not at):
                raise ValueError(f"{VARIABLE}: {each!r} is not as in write.committed=kill@3")
            self.arm(point, _ACTIONS[action], at=int(at or 1))

    def __repr__(self) -> str:
        return f"<Failpoints {', '.join(self._armed) or 'none'}>"

    def arm(self, point: str, act: Act, *, at: int = 1) -> None:
        """Let ``act`` be called the ``at``-th time from now on that ``point`` is reached."""
        if point not in POINTS:
            raise ValueError(f"there is no failpoint {point!r}; there are {', '.join(POINTS)}")
        self._armed[point] = act, at
        self._times[point] = 0

    def reached(self, point: str) -> None:
        if point not in self._armed:
            return
        self._times[point] += 1
        act, at = self._armed[point]
        if self._times[point] == at:
            act()


def kill() -> None:
    """Die at once: no handler, no flush, no goodbye."""
    os.kill(os.getpid(), signal.SIGKILL)


def error() -> None:
    """What a full disk says."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_ACTIONS: Final[dict[str, Act]] = {"kill": kill, "error": error}
