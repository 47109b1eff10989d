"""Decides what is logged about an event loop that is blocked.

1. When the loop has not turned for ``report_after`` seconds, that is logged with the stack of its thread.
   The stack is logged once for each place: a chain of functions, as a busy one is at many lines.
2. When it has not turned for ``stuck_after`` seconds, that is logged as an error: /healthz fails by then.
3. When it goes on, it is logged for how long it was blocked, if anything was logged before.
4. A loop that waits for events is not blocked: the whole process was stopped, and has just gone on.

No clock and no thread here: ``probes.py`` says for how long the loop was silent, and logs the answers.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import NamedTuple

_REMEMBERED = 1_000  # places


class Line(NamedTuple):
    """A line for the log."""

    level: int
    text: str


class BlockedLoop:
    """What was logged, and what is new."""

    def __init__(self, report_after: float, stuck_after: float, *, remembered: int = _REMEMBERED) -> None:
        self._report_after = min(report_after, stuck_after)
        self._stuck_after = stuck_after
        self._remembered = remembered
        self._places: dict[tuple[tuple[str, str], ...], None] = {}  # the newest last
        self._level = 0  # of what was logged of this block
        self._seconds = 0.0  # for how long the loop was last found blocked
        self._is_seen = False  # this block, whether logged or not

    def __repr__(self) -> str:
        return f"<BlockedLoop at {len(self._places)} places so far>"

    def look(self, silent: float, stack: Callable[[], traceback.StackSummary]) -> Line | None:
        """What to log, if anything, of a loop that last turned ``silent`` seconds ago."""
        if silent < self._report_after:
            return self._go_on()
        self._seconds = silent
        is_stuck = silent >= self._stuck_after
        if self._is_seen and not (is_stuck and self._level < logging.ERROR):
            return None
        here = stack()
        if here and here[-1].name == "select" and here[-1].filename.endswith("selectors.py"):
            return None
        is_new, self._is_seen = self._is_new(here), True
        if not is_new and not is_stuck:
            return None
        self._level = logging.ERROR if is_stuck else logging.WARNING
        said = f"the event loop has been blocked for {silent:.1f} s, and nothing else runs meanwhile"
        if is_stuck:
            said += "; /healthz fails"
        if is_new:
            said += "; await something, or use a thread; it is here:\n" + "".join(here.format())
        else:
            said += f"; it is in {here[-1].name}, {here[-1].filename}:{here[-1].lineno}, as logged before"
        return Line(self._level, said)

    def _go_on(self) -> Line | None:
        level, self._level, self._is_seen = self._level, 0, False
        if not level:
            return None
        return Line(
            logging.WARNING, f"the event loop goes on; it was blocked for {self._seconds:.1f} s or more"
        )

    def _is_new(self, stack: traceback.StackSummary) -> bool:
        place = tuple((frame.filename, frame.name) for frame in stack)
        is_new = place not in self._places
        self._places.pop(place, None)
        self._places[place] = None
        if len(self._places) > self._remembered:
            del self._places[next(iter(self._places))]
        return is_new
