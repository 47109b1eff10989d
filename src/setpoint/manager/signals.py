"""SIGTERM and SIGINT: the first asks for an orderly end, the second ends the process at once.

The handlers are Python's own and not the event loop's, so that the second signal works even while the loop is
stuck.  What was handled how before is put back afterwards.  Used by ``manager.py`` where it is asked to.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("setpoint.manager")


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """For the time of a block, have the first signal call ``stop`` in the loop, and the second end it all."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("signals reach the main thread only: handle them there")
    loop, received = asyncio.get_running_loop(), count(1)

    def handle(number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        if next(received) > 1:
            os.write(2, f"{name} again: ending at once\n".encode())
            os._exit(1)
        loop.call_soon_threadsafe(log.info, "%s: stopping in order", name)
        loop.call_soon_threadsafe(stop)

    before = {each: signal.signal(each, handle) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
