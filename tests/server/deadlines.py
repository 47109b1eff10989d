"""An end for what must not take long: work that grows as a square or a product never comes to it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails what takes longer, in the middle of it.  Give it many times what it takes."""

    def fail(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"it was not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
