"""The promises of ``storage/thread.py``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from setpoint.server.storage.thread import DiskThread


@contextmanager
def running() -> Iterator[DiskThread]:
    thread = DiskThread("disk")
    try:
        yield thread
    finally:
        thread.end()


async def test_things_are_done_in_another_thread_in_the_order_they_were_given() -> None:
    with running() as thread:
        done: list[int] = []
        await asyncio.gather(*(thread.do(done.append, number) for number in range(100)))
        assert done == list(range(100))
        assert await thread.do(threading.current_thread) is not threading.current_thread()


async def test_what_is_raised_there_is_raised_here_and_the_next_is_done() -> None:
    with running() as thread:
        with pytest.raises(ZeroDivisionError):
            await thread.do(divmod, 1, 0)
        assert await thread.do(divmod, 7, 2) == (3, 1)


async def test_who_stops_waiting_has_not_stopped_it() -> None:
    with running() as thread:
        go_on, done = threading.Event(), list[str]()

        def work() -> None:
            go_on.wait(30)
            done.append("done")

        waiting = asyncio.ensure_future(thread.do(work))
        await asyncio.sleep(0)
        waiting.cancel()
        go_on.set()
        await thread.do(lambda: None)
        assert done == ["done"]
        assert waiting.cancelled()


def test_a_loop_that_is_closed_meanwhile_hurts_nobody() -> None:
    with running() as thread:
        go_on = threading.Event()

        async def leave() -> None:
            asyncio.get_running_loop().call_soon(asyncio.ensure_future(thread.do(go_on.wait, 30)).cancel)

        asyncio.run(leave())
        go_on.set()
        assert asyncio.run(thread.do(lambda: "still here")) == "still here"
