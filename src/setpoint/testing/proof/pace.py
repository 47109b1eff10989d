"""The clocks of one machine in a world of several: they may be ahead of the world's, or slower, or not heard.

All processes of a proof share one loop, and so one time.  In a ``PacedLoop``, who asks for the time on a
machine whose clocks are wrong is told the wrong time, and what it waits for falls due by its own clocks.
Everybody else goes by the world's: ``world_time``.

What a machine waits for when its clocks go wrong falls due as it would have: only what it asks for from then
on goes by what they say.

On a machine that is paused they go on, and nobody hears them: what falls due meanwhile does so when it goes
on, all at once and in its order, unless it is taken back in that very moment.

Which machine's tasks these are, ``machine`` says; set by ``world.py``, which also has clocks go wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Final

from setpoint.testing.virtual_time import LoopClock, VirtualTimeLoop

_HAIR: Final = 1e-6  # seconds that a timer is late: by its own clock, too, it is due then


class Pace:
    """How the clocks of one machine go, against the world's."""

    def __init__(self) -> None:
        self._since = self._said = 0.0  # what they said at a moment of the world's
        self._pace = 1.0
        self._missed: list[_Timer] | None = None  # what fell due in a pause, while there is one

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

    def pause(self) -> None:
        """Have nothing fall due from now on."""
        self._missed = []

    def resume(self) -> None:
        """Have all fall due that has been missed."""
        missed, self._missed = self._missed or [], None
        for timer in missed:
            timer.fall_due()

    def misses(self, timer: _Timer) -> bool:
        """Whether something cannot fall due now, and does so later."""
        if self._missed is None:
            return False
        self._missed.append(timer)
        return True


class _Timer:
    """What is to be done at some time on a machine, which may be paused by then."""

    handle: asyncio.TimerHandle  # by which it can be taken back, also when its time has come in a pause

    def __init__(self, pace: Pace, do: Callable[[], object], context: Context) -> None:
        self._pace = pace
        self._do = do
        self._context = context

    def __call__(self) -> None:
        if not self.handle.cancelled() and not self._pace.misses(self):
            self._do()

    def fall_due(self) -> None:
        asyncio.get_running_loop().call_soon(self, context=self._context)


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
        if pace is None:
            return super().call_at(when, callback, *args, context=context)
        context = copy_context() if context is None else context
        timer = _Timer(pace, partial(callback, *args), context)
        timer.handle = super().call_at(pace.moment(when), timer, context=context)
        return timer.handle

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
