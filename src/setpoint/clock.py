"""Where time comes from, so that tests can turn the clock.

Two readings, because they answer two questions: ``now`` says how long something took and never jumps;
``utc`` says what the calendar says and is what certificates and servers speak of.

And how long a task may take: ``Deadline``.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from types import TracebackType
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


class Deadline:
    """Raises TimeoutError in the task that is late; ``asyncio.timeout_at``, without its coroutines.

    Nearly everything is in time, and then this is one timer, set and taken back.  A task that was cancelled
    and goes on to clean up has deadlines, too: Python 3.11.2, which Debian 12 has, cancels it there once more
    instead, so that what ends by ``asyncio.timeout`` would spin or leave without a word.
    """

    __slots__ = ("_cancelled_before", "_is_past", "_task", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, when: float | None) -> None:
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a deadline is that of a task")
        self._task = task
        self._cancelled_before = task.cancelling()
        self._is_past = False
        self._timer = None if when is None else loop.call_at(when, self._pass)

    def _pass(self) -> None:
        self._is_past = True
        self._task.cancel()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_past:
            # Whoever else cancelled the task meanwhile wants it to end, not to hear of a deadline.
            is_ours = self._task.uncancel() <= self._cancelled_before
            if is_ours and kind is asyncio.CancelledError:
                raise TimeoutError from error


def within(seconds: float) -> Deadline:
    """Has the running task take no longer than that."""
    loop = asyncio.get_running_loop()
    return Deadline(loop, loop.time() + seconds)
