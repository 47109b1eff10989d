"""The promises of ``proof/pace.py``: clocks that are wrong deceive only who goes by them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial

import pytest

from setpoint.testing.proof.pace import Pace, PacedLoop, WorldClock, machine, moment, world_time


def on_a_machine(pace: Pace, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    context = copy_context()
    context.run(machine.set, pace)

    async def run() -> None:
        await work()

    return asyncio.get_running_loop().create_task(run(), context=context)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await main()

    with asyncio.Runner(loop_factory=PacedLoop) as runner:
        runner.run(whole())


def test_clocks_that_are_right_say_what_the_worlds_say() -> None:
    pace = Pace()
    assert (pace.said(7.5), pace.moment(7.5)) == (7.5, 7.5)


def test_what_clocks_say_goes_on_from_where_they_were() -> None:
    pace = Pace()
    pace.change(10.0, ahead=0.0, pace=0.5)
    assert pace.said(20.0) == 15.0
    pace.change(20.0, ahead=100.0, pace=1.0)
    assert pace.said(30.0) == 125.0
    assert pace.moment(125.0) == pytest.approx(30.0)


def test_who_goes_by_a_slow_clock_waits_longer_and_does_not_notice() -> None:
    async def main() -> None:
        pace, said = Pace(), list[float]()

        async def waits() -> None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.sleep(10)
            said.append(loop.time() - began)
            said.append(world_time())

        pace.change(0.0, ahead=0.0, pace=0.5)
        await on_a_machine(pace, waits)
        assert said == pytest.approx([10.0, 20.0], abs=0.01)

    run(main)


def test_what_is_due_by_a_wrong_clock_is_due_when_it_wakes() -> None:
    async def main() -> None:
        pace = Pace()
        pace.change(0.0, ahead=3600.1, pace=0.3)

        async def waits() -> None:
            loop = asyncio.get_running_loop()
            for number in range(100):
                until = loop.time() + number / 7
                await asyncio.sleep(until - loop.time())
                assert loop.time() >= until

        await on_a_machine(pace, waits)

    run(main)


def test_what_falls_due_in_a_pause_does_so_when_it_is_over_in_its_order() -> None:
    async def main() -> None:
        pace, done = Pace(), list[tuple[str, float]]()

        async def waits(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            done.append((name, world_time()))

        wanted = [("b", 20.0), ("a", 10.0), ("c", 200.0)]
        paused = [on_a_machine(pace, partial(waits, *each)) for each in wanted]
        await asyncio.sleep(5)
        pace.pause()
        await waits("elsewhere", 25)
        assert done == [("elsewhere", 30.0)], "whoever is on another machine hears its clocks"
        await asyncio.sleep(70)
        pace.resume()
        await asyncio.gather(*paused)
        assert done[1:] == [("a", 100.0), ("b", 100.0), ("c", 200.0)]

    run(main)


def test_what_is_taken_back_when_a_pause_is_over_is_not_done() -> None:
    async def main() -> None:
        pace, done = Pace(), list[str]()

        async def sets() -> None:
            loop = asyncio.get_running_loop()
            others = [loop.call_later(seconds, done.append, f"{seconds} s") for seconds in (20, 200)]

            def first() -> None:
                done.append("first")
                for other in others:
                    other.cancel()

            loop.call_later(10, first)

        await on_a_machine(pace, sets)
        pace.pause()
        await asyncio.sleep(100)
        pace.resume()
        await asyncio.sleep(200)
        assert done == ["first"]

    run(main)


def test_a_jump_is_seen_by_who_has_the_clock_and_by_nobody_else() -> None:
    async def main() -> None:
        pace, clock = Pace(), WorldClock()

        async def looks() -> None:
            assert asyncio.get_running_loop().time() == 3600.0
            assert (world_time(), clock.now()) == (0.0, 0.0)
            assert moment(3600.0) == pytest.approx(0.0, abs=0.01)

        pace.change(0.0, ahead=3600.0, pace=1.0)
        await on_a_machine(pace, looks)
        assert asyncio.get_running_loop().time() == 0.0

    run(main)
