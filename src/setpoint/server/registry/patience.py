"""How long the event loop waits for one step: what takes longer is done again in a thread.

Rules and policies are evaluated on the event loop, since nearly all take microseconds.  Kubernetes
allows more than that: what takes a tenth of a second in Go takes seconds in Python, in which nobody else
would be answered.  So whoever evaluates counts against what is ``left``, and raises ``TooLong`` when it
is spent; ``in_time`` then does the step again in a thread, with all that Kubernetes allows.

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
    """What may still be spent."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


PATIENCE: Final[ContextVar[Patience | None]] = ContextVar("patience", default=None)  # None: without end
_HOME: Final[ContextVar[asyncio.AbstractEventLoop | None]] = ContextVar("home", default=None)


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
    try:
        return await asyncio.to_thread(step)
    finally:
        _HOME.reset(home)


def at_home(call: Callable[[], T]) -> T:
    """What only the event loop may do, wherever the step runs."""
    loop = _HOME.get()
    if loop is None or asyncio._get_running_loop() is loop:  # noqa: SLF001 - without an error where there is none
        return call()

    async def answer() -> T:
        return call()

    return asyncio.run_coroutine_threadsafe(answer(), loop).result(_ANSWER)
