"""The clocks of one machine in a world of several: they may be ahead of the world's, or slower.

All processes of a proof share one loop, and so one time.  In a ``PacedLoop``, who asks for the time on a
machine whose clocks are wrong is told the wrong time, and what it waits for falls due by its own clocks.
Everybody else goes by the world's: ``world_time``.

What a machine waits for when its clocks go wrong falls due as it would have: only what it asks for from then
on goes by what they say.

Which machine's tasks these are, ``machine`` says; set by ``world.py``, which also has clocks go wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, Final

from setpoint.testing.virtual_time import LoopClock, VirtualTimeLoop

_HAIR: Final = 1e-6  # seconds that a timer is late: by its own clock, too, it is due then


class Pace:
    """How the clocks of one machine go, against the world's."""

    def __init__(self) -> None:
        self._since = self._said = 0.0  # what they said at a moment of the world's
        self._pace = 1.0

    def __repr__(self) -> str:
        return f"<Pace {self._pace:g}, {self._said - self._since:+g} s at {self._since:g} s>"

    def change(self, now: float, *, ahead: float, pace: float) -> None:
        """Have them jump ahead, and go at this pace from now on."""
        self._said, self._since, self._pace = self.said(now) + ahead, now, pace

    def said(self, moment: float) -> float:
        """What they say at a moment of the world's."""
        return self._said + (moment - self._since) * self._pace

    def moment(self, said: float) -> float:
        """When it is, in the world, that they say this."""
        if self._pace == 1.0 and self._said == self._since:
            return said
        return self._since + (said - self._said) / self._pace + _HAIR


machine: ContextVar[Pace | None] = ContextVar("setpoint_proof_machine", default=None)


class PacedLoop(VirtualTimeLoop):
    """A loop in which each machine has clocks of its own."""

    def time(self) -> float:
        pace = machine.get()
        return self.world_time() if pace is None else pace.said(self.world_time())

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        pace = machine.get()
        at = when if pace is None else pace.moment(when)
        return super().call_at(at, callback, *args, context=context)

    def world_time(self) -> float:
        return super().time()


def world_time(of: asyncio.AbstractEventLoop | None = None) -> float:
    """What the time is, of this loop or of the one that runs, whatever the clocks of who asks say."""
    loop = of or asyncio.get_running_loop()
    return loop.world_time() if isinstance(loop, PacedLoop) else loop.time()


def moment(said: float) -> float:
    """When it is, in the world, that the clocks of who asks say this."""
    pace = machine.get() if isinstance(asyncio.get_running_loop(), PacedLoop) else None
    return said if pace is None else pace.moment(said)


class WorldClock(LoopClock):
    """The world's time, whoever asks: that of the server, which answers in the task of who asks."""

    def now(self) -> float:
        return world_time()
