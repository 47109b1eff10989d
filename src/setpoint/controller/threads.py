"""Runs a plain function in a thread of its own, for a reconciler that is not ``async``.

1. The function runs in the context of who asks: ``current_look`` works there, and so does what it logs.
2. A thread cannot be stopped.  When the one who waits is cancelled (a timeout, a shutdown), the thread is
   told so where it waits for the loop, and until it ends the wait goes on, so that nobody else gets its key.
   What it is stuck in is said in the log, again and again; of one that is merely slow, too.
3. Cancelled a second time, the wait ends.  The thread is left behind, and cannot reach the loop any more.

Threads are daemons: a process does not wait for them to end.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from setpoint.controller.worker import describe

T = TypeVar("T")

SOON = 1.0  # seconds after which a thread that should end, and does not, is told of
LONG = 60.0  # and one that is at work, or both, again
_TOO_LATE = "this reconcile was cancelled: it took too long, or the process stops"


class _AtWork:
    """How many threads run by themselves just now, and do not wait for their loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def change(self, by: int) -> None:
        with self._lock:
            self.count += by


_working = _AtWork()


def at_work() -> int:
    """How many threads run by themselves just now: a loop whose clock jumps must wait for them."""
    return _working.count


class Hop:
    """The way from a thread to the loop and back."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loops_thread = threading.get_ident()
        self._under_way: set[Future[Any]] = set()
        self._closed = threading.Event()

    def wait(self, asked: Coroutine[Any, Any, T]) -> T:
        """Have the loop do something, and wait for what comes of it."""
        if threading.get_ident() == self._loops_thread:
            asked.close()
            raise RuntimeError("this waits for the loop, and would wait for ever in the loop's own thread")
        if self._closed.is_set():
            asked.close()
            raise CancelledError(_TOO_LATE)
        future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        # From here on the loop has the thread's work, until it says otherwise, in its own time.
        future.add_done_callback(lambda _: _working.change(+1))
        self._under_way.add(future)
        if self._closed.is_set():  # just now
            future.cancel()
        try:
            _working.change(-1)
            return future.result()
        except CancelledError:
            raise CancelledError(_TOO_LATE) from None
        finally:
            self._under_way.discard(future)

    def call(self, function: Callable[[], object]) -> None:
        """Have the loop call something, some time soon."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Let nothing through any more."""
        self._closed.set()
        for future in list(self._under_way):
            future.cancel()


async def run_in_thread(
    function: Callable[[Hop], T], *, name: str, log: logging.LoggerAdapter[logging.Logger]
) -> T:
    """Call a function in a thread, and wait for it."""
    hop = Hop()
    thread = _Thread(function, hop, name)
    thread.start()
    try:
        await thread.wait_end(log, "has not ended yet", LONG)
        return thread.outcome.result()
    except asyncio.CancelledError:
        hop.close()
        try:
            await thread.wait_end(log, "was cancelled and does not end", SOON)
        except asyncio.CancelledError:
            log.error("%s does not end, and is left behind:\n%s", name, thread.stack())  # noqa: TRY400
        else:
            thread.outcome.exception()  # nobody else will look
        raise
    finally:
        hop.close()


class _Thread(threading.Thread, Generic[T]):
    def __init__(self, function: Callable[[Hop], T], hop: Hop, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._function = function
        self._hop = hop
        self._caller = contextvars.copy_context()
        self.outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def start(self) -> None:
        _working.change(+1)
        super().start()

    def run(self) -> None:
        try:
            self._run()
        finally:
            _working.change(-1)

    def _run(self) -> None:
        try:
            result = self._caller.run(self._function, self._hop)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            failed = error
            self._hop.call(lambda: self._settle(lambda: self.outcome.set_exception(_raised(failed))))
        else:
            self._hop.call(lambda: self._settle(lambda: self.outcome.set_result(result)))

    def _settle(self, settle: Callable[[], None]) -> None:
        if not self.outcome.done():
            settle()

    async def wait_end(self, log: logging.LoggerAdapter[logging.Logger], what: str, after: float) -> None:
        """Wait until it ends; after a while, tell what it is doing instead."""
        while not self.outcome.done():
            await asyncio.wait([self.outcome], timeout=after)
            if not self.outcome.done():
                log.warning("%s %s; it is here:\n%s", self.name, what, self.stack())
            after = max(after, LONG)

    def stack(self) -> str:
        frame = sys._current_frames().get(self.ident or 0)  # noqa: SLF001 - documented, for this
        return "".join(traceback.format_stack(frame)) if frame is not None else "(it has just ended)"


def _raised(error: BaseException) -> Exception:
    """An error as a future can hold it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    failure = RuntimeError(f"the thread ended with {describe(error)}")
    failure.__cause__ = error  # which knows the place
    return failure
