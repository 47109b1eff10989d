"""Plain functions in threads: they reach the loop, and one that is stuck is told of and holds nobody up."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest

from setpoint.controller import threads
from setpoint.controller.threads import Hop, run_in_thread

log = logging.LoggerAdapter(logging.getLogger("test.threads"), {})
word: ContextVar[str] = ContextVar("word")


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


async def test_a_function_runs_in_a_thread_and_gives_its_result() -> None:
    here = threading.get_ident()
    there = await run_in_thread(lambda _: threading.get_ident(), name="t", log=log)
    assert there != here


async def test_what_it_raises_is_raised() -> None:
    def fail(_: Hop) -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await run_in_thread(fail, name="t", log=log)


async def test_an_exit_in_a_thread_does_not_end_the_loop() -> None:
    def leave(_: Hop) -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await run_in_thread(leave, name="t", log=log)


class Mute(BaseException):
    """Not an Exception, and it cannot be shown."""

    def __str__(self) -> str:
        raise GeneratorExit

    __repr__ = __str__


@pytest.mark.parametrize(
    "error", [SystemExit(3), StopIteration(), asyncio.CancelledError(), Mute()], ids=type
)
async def test_whatever_it_raises_the_wait_ends_and_the_cause_is_kept(error: BaseException) -> None:
    def fail(_: Hop) -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__) as caught:
        await run_in_thread(fail, name="t", log=log)
    assert caught.value.__cause__ is error, "it knows the place"


async def test_it_can_have_the_loop_do_things_and_both_know_the_same() -> None:
    word.set("hello")

    async def say() -> str:
        return word.get()

    def work(hop: Hop) -> tuple[int, str, str]:
        return hop.wait(double(21)), word.get(), hop.wait(say())

    assert await run_in_thread(work, name="t", log=log) == (42, "hello", "hello")


async def test_the_loop_cannot_wait_for_itself() -> None:
    with pytest.raises(RuntimeError, match="wait for ever"):
        Hop().wait(double(1))


async def test_one_that_is_cancelled_is_told_so_where_it_waits_for_the_loop() -> None:
    begun = asyncio.Event()
    seen: list[type[BaseException]] = []

    async def forever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def work(hop: Hop) -> None:
        for _ in range(2):
            try:
                hop.wait(forever())
            except CancelledError as error:
                seen.append(type(error))

    task = asyncio.create_task(run_in_thread(work, name="t", log=log))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [CancelledError, CancelledError], "under way, and afterwards"


async def test_a_timeout_waits_for_the_thread_and_tells_where_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "SOON", 0.01)
    go_on = threading.Event()

    def stuck_here(_: Hop) -> None:
        assert go_on.wait(30)

    async def let_go() -> None:
        while "it is here" not in caplog.text:
            await asyncio.sleep(0.01)
        go_on.set()

    letting_go = asyncio.create_task(let_go())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_in_thread(stuck_here, name="webapp shop/web", log=log)
    assert go_on.is_set(), "the thread had ended"
    assert "webapp shop/web was cancelled and does not end" in caplog.text
    assert "stuck_here" in caplog.text
    await letting_go


async def test_one_that_is_merely_slow_is_told_of_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "LONG", 0.01)
    go_on = threading.Event()

    def slow(_: Hop) -> int:
        assert go_on.wait(30)
        return 7

    task = asyncio.create_task(run_in_thread(slow, name="webapp shop/web", log=log))
    while "webapp shop/web has not ended yet" not in caplog.text:
        await asyncio.sleep(0.01)
    go_on.set()
    assert await task == 7


async def test_cancelled_twice_it_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def stuck(hop: Hop) -> None:
        begun.set()
        assert go_on.wait(30)
        hop.call(lambda: None)

    task = asyncio.create_task(run_in_thread(stuck, name="t", log=log))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done(), "it waits for its thread"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "is left behind" in caplog.text
    (thread,) = (each for each in threading.enumerate() if each.name == "t")
    assert thread.daemon, "and keeps no process from ending"
    go_on.set()
    await asyncio.to_thread(thread.join)
