"""An event loop whose clock jumps: when nothing is left to do but wait, the wait is over at once.

For tests without sockets.  What waits for time waits none; what waits for something that never comes still
hangs, and the test's deadline, which is in the same time, ends it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any


class _Jumping(selectors.DefaultSelector):
    """Asked to wait for so many seconds, puts the clock forward by as many."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout is None or timeout <= 0:
            return ready
        self.elapsed += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.elapsed


def loop_options(virtual: bool) -> Mapping[str, Any]:
    return {"loop_factory": VirtualTimeLoop} if virtual else {}
