"""Where time comes from, so that tests can turn the clock.

Two readings, because they answer two questions: ``now`` says how long something took and never jumps;
``utc`` says what the calendar says and is what certificates and servers speak of.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the time is."""

    def now(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    def utc(self) -> datetime:
        """The calendar's time, with its zone."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.monotonic()

    def utc(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """Time that passes only when told to: both readings move together."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._passed = 0.0

    def __repr__(self) -> str:
        return f"<ManualClock {self.utc().isoformat()}>"

    def now(self) -> float:
        return self._passed

    def utc(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def turn(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        if seconds < 0:
            raise ValueError(f"a clock cannot be turned back ({seconds:g} s)")
        self._passed += seconds
