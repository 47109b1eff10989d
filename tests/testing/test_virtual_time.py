"""The promises of ``virtual_time.py``, one test to each."""

from __future__ import annotations

import asyncio
import time

import pytest

from setpoint.testing.virtual_time import BEGINNING, LoopClock, VirtualTimeLoop


def run(work: object) -> object:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)  # type: ignore[arg-type]


def test_what_waits_for_time_waits_none() -> None:
    began = time.monotonic()
    run(asyncio.sleep(1_000_000))
    assert time.monotonic() - began < 60


def test_what_is_ready_runs_before_the_clock_moves() -> None:
    async def main() -> list[float]:
        seen: list[float] = []
        loop = asyncio.get_running_loop()
        loop.call_later(5, lambda: seen.append(loop.time()))
        for _ in range(100):
            await asyncio.sleep(0)
        seen.append(loop.time())
        await asyncio.sleep(5)
        return seen

    assert run(main()) == [0.0, 5.0]


def test_what_a_thread_would_do_is_done_at_once() -> None:
    async def main() -> tuple[int, float]:
        return await asyncio.to_thread(lambda: 7), asyncio.get_running_loop().time()

    assert run(main()) == (7, 0.0)


def test_what_is_done_over_and_over_at_one_moment_ends_in_an_error() -> None:
    async def spin() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.limit(100)
        while True:
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="time stands still"):
        run(spin())


def test_the_calendar_goes_with_the_loop_and_can_be_set() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        await asyncio.sleep(60)
        before = (clock.utc() - BEGINNING).total_seconds()
        clock.step(-3600)
        return [before, (clock.utc() - BEGINNING).total_seconds(), clock.now()]

    assert run(main()) == [60.0, -3540.0, 60.0]
