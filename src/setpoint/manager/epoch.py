"""Whether this process may act as the leader right now.

An epoch is the time for which one process leads.  It is good until a moment that the election puts off with
each renewal; once that moment has passed, or the epoch was ended, it is over for good.  Nothing has to run
for it to end: a process that was paused wakes up in an epoch that is over.

Asked before each reconcile (``is_valid``) and, as the guard of the manager's client, before each try of each
write.  Fed by ``lease.py``.
"""

from __future__ import annotations

import asyncio
import time

from setpoint.api.requests import Call
from setpoint.errors import LeadershipLost

_STAND_BY = (
    "wait until it does; what every replica may write goes through Manager.plain_client, or is written by a "
    "controller with needs_leadership=False"
)


class SteadyClock:
    """The running loop's time, which also goes on where that stands still.

    While the machine sleeps the loop's time does not pass; and uvloop's does not within one turn, in which a
    process can be paused as well.  It never goes back, and between two sleeps it is the loop's own time and a
    constant.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_virtual = abs(self._loop.time() - time.monotonic()) > 60  # the loop of a test
        self._sleeps = _Sleeps()

    def now(self) -> float:
        awake = self._loop.time() if self._is_virtual else time.monotonic()
        return awake + self._sleeps.seconds()


class _Sleeps:
    """How long the machine has slept since it started.

    That is the difference of two clocks which cannot be read at one moment, so a reading may be off by a
    little; and if we are paused between the two, it is too small by as much.  Only what is clearly more than
    was known is taken for a sleep.
    """

    NOTICED = 0.5

    def __init__(self) -> None:
        self._known = self._read()

    def seconds(self) -> float:
        reading = self._read()
        if reading > self._known + self.NOTICED:
            self._known = reading
        return self._known

    @staticmethod
    def _read() -> float:
        if not hasattr(time, "CLOCK_BOOTTIME"):
            return 0.0  # not on this system
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


class Epoch:
    """The time for which we lead.  Before it begins, and after it ends, writes are refused."""

    def __init__(self, lease: str) -> None:
        self._lease = lease
        self._clock: SteadyClock | None = None
        self._until = float("-inf")
        self._why_not = "this process does not lead yet"
        self._is_over = False

    def __repr__(self) -> str:
        return f"<Epoch of {self._lease}: {'valid' if self.is_valid else self._why_not}>"

    @property
    def is_valid(self) -> bool:
        """Whether we may act as the leader."""
        if self._clock is None or self._is_over:
            return False
        if self._clock.now() >= self._until:
            self.end("the lease was not renewed in time")
        return not self._is_over

    def extend(self, until: float, clock: SteadyClock) -> None:
        """It is good until then, by that clock; once over, it stays over."""
        self._until, self._clock = until, clock

    def end(self, why: str) -> None:
        """It is over."""
        if not self._is_over:
            self._is_over, self._why_not = True, why

    def __call__(self, call: Call) -> None:
        """Refuse the call unless we may act as the leader."""
        if not self.is_valid:
            # Who has never led has nothing to lose, and must not end because of it.
            raise LeadershipLost(
                call.doing,
                f"not sent, for {self._why_not} (lease {self._lease})",
                advice=None if self._clock is not None or self._is_over else _STAND_BY,
            )
