"""The thread that waits for the disk, so that the event loop need not.

Promises:

1. What it is given it does one after another, in the order in which it was given.
2. What was begun is done to its end: who stops waiting for it has not stopped it.
3. It does not keep the process from ending; what is under way then is as if the process had been killed.

``concurrent.futures`` would do the same.  This takes a third off what a commit costs the event loop, and
every durable write waits for one.  Used by ``sqlite.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class DiskThread:
    """Runs until ``end``."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def do(self, function: Callable[..., T], *args: object) -> T:
        """What ``function`` returns or raises, in the thread."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            result, error = None, None
            try:
                result = function(*args)
            except BaseException as raised:  # noqa: BLE001 - it is for whoever waits
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_tell, done, result, error)

        self._work.put(work)
        return await done

    @property
    def is_wanted(self) -> bool:
        """Whether there is something else to do: for what is done there, and goes on for long."""
        return not self._work.empty()

    def end(self) -> None:
        """After what it was given.  Does not wait."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def _tell(done: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if done.done():  # whoever waited has gone
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)
