"""Events go an hour after they were last told."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.times import MicroTime, Time
from setpoint.builtin.events import last_told
from setpoint.client.client import ignore_not_found
from setpoint.kube.core.v1 import Event, EventSeries, ObjectReference
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster
from tests.builtin.workloads import LoopClock


def event(**fields: object) -> Event:
    return Event(
        metadata=ObjectMeta(name="e", namespace="default"),
        involved_object=ObjectReference(kind="Pod", name="p", namespace="default"),
        reason="R",
        message="m",
        type="Normal",
        **fields,  # type: ignore[arg-type]  # each test names its own
    )


def test_the_last_of_its_times_is_when_it_was_told() -> None:
    series = EventSeries(count=2, last_observed_time=MicroTime.parse("2030-01-01T02:00:00.000000Z"))
    one = event(last_timestamp=Time.parse("2030-01-01T01:00:00Z"), series=series)
    assert last_told(one) == datetime(2030, 1, 1, 2, tzinfo=UTC)


@pytest.mark.virtual_time
async def test_an_event_is_deleted_after_an_hour_and_one_that_is_told_again_later() -> None:
    clock = LoopClock()
    async with cluster(["event-ttl-controller"], clock=clock) as client:
        made = await client.create(event(last_timestamp=Time.of(clock.utc())))

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(Event, "e", namespace="default")) is None

        await asyncio.sleep(3000)
        made.last_timestamp = Time.of(clock.utc())
        await client.update(made)
        await asyncio.sleep(3000)
        assert not await is_gone()
        await eventually(is_gone, timeout=700)
