"""How long the event loop waits for one step: what takes longer is done again in a thread.

Rules and policies are evaluated on the event loop, since nearly all take microseconds.  Kubernetes
allows more than that: what takes a tenth of a second in Go takes seconds in Python, in which nobody else
would be answered.  So whoever evaluates counts against what is ``left``, and raises ``TooLong`` when it
is spent; ``in_time`` then does the step again in a thread, with all that Kubernetes allows.

A thread cannot be stopped.  Where who asked goes away, or is told that it took too long, the step is
given up: the evaluation sees it when it next looks at the clock, and raises ``TooLong``.

The counting is ``crd/spending.py``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeVar

QUICK: Final = 10_000  # what may be spent on the event loop, in one step: about 10 ms
_ANSWER: Final = 30.0  # seconds that the event loop may take to do something for a thread

T = TypeVar("T")


class TooLong(BaseException):
    """No error: only ``in_time`` handles it, and whoever has to undo something on the way."""


class Patience:
    """What may still be spent in one step; None: all that Kubernetes allows."""

    __slots__ = ("is_given_up", "left")

    def __init__(self, left: int | None) -> None:
        self.left = left
        self.is_given_up = False  # set by the event loop, and seen by the step's thread


PATIENCE: Final[ContextVar[Patience | None]] = ContextVar("patience", default=None)  # None: without end
_HOME: Final[ContextVar[asyncio.AbstractEventLoop | None]] = ContextVar("home", default=None)


def spend(work: int) -> None:
    """Count work, about a microsecond each, against the current step.  Raises ``TooLong``."""
    patience = PATIENCE.get()
    if patience is None:
        return
    if patience.left is not None:
        patience.left -= work
        if patience.left < 0:
            raise TooLong
    elif patience.is_given_up:
        raise TooLong


async def in_time(step: Callable[[], T]) -> T:
    """The result of a step that may be done twice."""
    token = PATIENCE.set(Patience(QUICK))
    try:
        return step()
    except TooLong:
        pass
    finally:
        PATIENCE.reset(token)
    home = _HOME.set(asyncio.get_running_loop())
    patience = Patience(None)
    token = PATIENCE.set(patience)
    try:
        return await asyncio.to_thread(step)
    except asyncio.CancelledError:
        patience.is_given_up = True
        raise
    finally:
        PATIENCE.reset(token)
        _HOME.reset(home)


def at_home(call: Callable[[], T]) -> T:
    """What only the event loop may do, wherever the step runs."""
    loop = _HOME.get()
    if loop is None or asyncio._get_running_loop() is loop:  # noqa: SLF001 - without an error where there is none
        return call()

    async def answer() -> T:
        return call()

    return asyncio.run_coroutine_threadsafe(answer(), loop).result(_ANSWER)
