"""An event loop whose clock jumps: when nothing is left to do but wait, the wait is over at once.

For what runs without sockets.  Promises:

1. What waits for time waits none; what is ready runs before the clock moves.
2. What waits for something that never comes still hangs, and a deadline in the same time ends it.
3. What is done over and over at one moment, so that the next never comes, ends in an error.
4. While a plain reconciler runs in its thread, the clock stands; while it waits for the loop, it does not.
   One that does not come back in a while of the machine's time ends in an error too.
5. Nothing of the machine's clock is seen: ``LoopClock`` tells both readings from the loop's time.

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from setpoint.controller.threads import at_work

_MOST_TURNS: Final = 1_000_000
_CHECK_EVERY: Final = 64  # turns of the loop
_BLINK: Final = 0.002  # seconds, of the machine
_MOST_SECONDS: Final = 60.0  # of the machine
BEGINNING: Final = datetime(2030, 1, 1, tzinfo=UTC)


class _Jumping(selectors.DefaultSelector):
    """Asked to wait for so many seconds, puts the clock forward by as many."""

    left_behind = 0  # threads, of any loop, that did not come back

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self.turns = 0  # at this moment
        self.until_check = _CHECK_EVERY
        self.check: Callable[[], None] | None = None  # called after every few turns; may raise
        self.most_turns = _MOST_TURNS
        self.most_seconds = _MOST_SECONDS
        self.spun = ""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        self.until_check -= 1
        if not self.until_check:
            self._check()
        if ready or timeout is None or timeout <= 0:
            self.turns += 1
            if self.turns > self.most_turns:
                self.turns = 0
                self.spun = f"{self.most_turns} turns of the loop at {self.elapsed:.3f} s, and no end"
                raise RuntimeError(f"time stands still: {self.spun}")
            return ready
        began = time.monotonic()
        while self._at_work():  # they are in time that passes: the clock stands until they are back
            if ready := super().select(_BLINK):
                return ready
            if time.monotonic() - began > self.most_seconds:
                _Jumping.left_behind = at_work()
                self.spun = (
                    f"a plain function has not come back in {self.most_seconds:g} s of the machine's time: "
                    "does it call time.sleep, or something that does not answer? (return RetryLater, or give "
                    "what it calls a deadline)"
                )
                raise RuntimeError(f"time stands still: {self.spun}")
        if ready := super().select(0):
            return ready
        self.elapsed += timeout
        self.turns = 0
        return []

    def _check(self) -> None:
        self.until_check = _CHECK_EVERY
        check, self.check = self.check, None  # once it has raised, what runs is left to end
        if check is not None:
            check()
            self.check = check

    @staticmethod
    def _at_work() -> bool:
        count = at_work()
        _Jumping.left_behind = min(_Jumping.left_behind, count)
        return count > _Jumping.left_behind


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop in which time passes only where all wait for it."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.elapsed

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Have it done at once: a thread would be done at some time, and this loop's clock does not wait."""
        del executor
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            done.set_exception(error)
        return done

    def limit(self, turns: int, seconds: float = _MOST_SECONDS) -> None:
        """Have a RuntimeError raised after so many turns at one moment, or so many seconds of the machine in
        which a thread does not come back: time stands still.
        """
        self._jumping.most_turns = turns
        self._jumping.most_seconds = seconds

    def check_often(self, check: Callable[[], None]) -> None:
        """Have a function called after every few turns; what it raises ends the run of the loop."""
        self._jumping.check = check

    def leap(self, seconds: float) -> None:
        """Have so much time pass at once, as for a machine that was asleep: what was due in it is due now."""
        self._jumping.elapsed += seconds

    @property
    def spun(self) -> str:
        """That this has happened; "" if not."""
        return self._jumping.spun


class LoopClock:
    """The running loop's time, as a Clock; the calendar can be put forward and back, the rest cannot."""

    def __init__(self, start: datetime = BEGINNING) -> None:
        self._start = start
        self._stepped = 0.0

    def __repr__(self) -> str:
        return f"<LoopClock from {self._start.isoformat()}, stepped by {self._stepped:g} s>"

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def utc(self) -> datetime:
        return self._start + timedelta(seconds=self.now() + self._stepped)

    @property
    def beginning(self) -> datetime:
        """Another clock that begins here tells the same time."""
        return self._start + timedelta(seconds=self._stepped)

    def step(self, seconds: float) -> None:
        """Have the calendar jump, forward or back, as a machine's does when somebody sets it."""
        self._stepped += seconds
