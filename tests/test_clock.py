"""The rules of ``clock.py``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from setpoint.clock import Clock, Deadline, ManualClock, SystemClock, within


def test_the_system_clock_never_goes_back_and_knows_its_zone() -> None:
    clock: Clock = SystemClock()
    assert clock.now() <= clock.now()
    assert clock.utc().utcoffset() == timedelta(0)


def test_a_manual_clock_moves_only_when_turned_and_both_readings_move_together() -> None:
    clock = ManualClock(datetime(2031, 5, 1, tzinfo=UTC))
    before = clock.now()
    assert clock.now() == before
    clock.turn(90)
    assert clock.now() - before == 90
    assert clock.utc() == datetime(2031, 5, 1, 0, 1, 30, tzinfo=UTC)


def test_a_manual_clock_cannot_be_turned_back() -> None:
    with pytest.raises(ValueError, match="turned back"):
        ManualClock().turn(-1)


@pytest.mark.virtual_time
async def test_who_is_late_is_told_also_where_it_was_cancelled_before_and_cleans_up() -> None:
    async def cleans_up() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(TimeoutError), within(3):
                await asyncio.Event().wait()
            told.append(asyncio.get_running_loop().time())
        raise AssertionError

    told: list[float] = []
    task = asyncio.create_task(cleans_up())
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled(), "and then it ends as it was told to"
    assert told == [began + 3]


@pytest.mark.virtual_time
async def test_who_is_cancelled_and_late_at_once_is_cancelled() -> None:
    async def waits() -> None:
        with within(3):
            await asyncio.Event().wait()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(3, task.cancel)
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.virtual_time
async def test_without_a_moment_there_is_no_end() -> None:
    with Deadline(asyncio.get_running_loop(), None):
        await asyncio.sleep(100_000)
