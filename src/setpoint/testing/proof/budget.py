"""The time that a proof may take: a deadline that is checked wherever the time is spent.

The event loop of every run checks it after every few turns, and so does whatever lists plans or makes them
smaller.  Once the budget is spent, ``check`` raises ``OutOfBudget``: a run that is under way is cut off, and
counts as not tried.  Each check is also a tick, by which progress is shown before any plan has ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class OutOfBudget(BaseException):
    """The budget is spent.  Not an Exception, which an operator or Hypothesis would catch."""


class Budget:
    """So many seconds, by default of this process's CPU; it starts when it is made."""

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        clock: Callable[[], float] = time.process_time,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.seconds = seconds
        self.on_tick = on_tick
        self._clock = clock
        self._began = clock()
        self._reserved = 0.0

    def __repr__(self) -> str:
        return f"<Budget: {self.spent:.1f} of {self.seconds:g} s spent, {self._reserved:g} s reserved>"

    @property
    def spent(self) -> float:
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds until ``check`` raises."""
        return self.seconds - self._reserved - self.spent

    def reserve(self, seconds: float) -> None:
        """Keep the last seconds of it for later; instead of those that were kept before."""
        self._reserved = seconds

    def limit(self, seconds: float) -> None:
        """Have ``check`` raise after so many seconds from now, if not sooner."""
        if self.seconds - self.spent > seconds:
            self._reserved = self.seconds - self.spent - seconds
        else:
            self._reserved = 0.0

    def check(self) -> None:
        """Raise OutOfBudget if it is spent."""
        self.on_tick()
        if self.left <= 0:
            raise OutOfBudget
