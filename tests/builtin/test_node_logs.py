"""What the containers of the node stand-in have written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from setpoint.api.logs import LogLine, LogPart, chosen_lines
from setpoint.api.meta import ObjectMeta
from setpoint.builtin.node_logs import LOGS
from setpoint.builtin.node_pods import EXITS_AFTER, OUTCOME, STARTS_AFTER
from setpoint.client.client import Client
from setpoint.cluster.cluster import Cluster
from setpoint.errors import BadRequest
from setpoint.kube.core.v1 import Container, Pod, PodSpec
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import START, LoopClock

pytestmark = pytest.mark.virtual_time


@asynccontextmanager
async def running() -> AsyncIterator[Client]:
    async with Cluster(controllers=["node-stand-in"], clock=LoopClock(START)) as cluster:
        yield cluster.client


async def start(client: Client, policy: str | None = None, **annotations: str) -> None:
    """Have a pod named web, whose only container is told to be something."""
    spec = PodSpec(containers=[Container(name="app", image="web:1")], restart_policy=policy)
    metadata = ObjectMeta(name="web", namespace="default", annotations=annotations)
    await client.create(Pod(metadata=metadata, spec=spec))

    async def is_told() -> bool:
        return bool((await client.get(Pod, "web", namespace="default")).status.container_statuses)

    await eventually(is_told)


async def log(
    client: Client, *, follow: bool = False, previous: bool = False, limit_bytes: int | None = None
) -> list[str]:
    async with client.log(
        "web", namespace="default", follow=follow, previous=previous, limit_bytes=limit_bytes
    ) as lines:
        return [line.decode() async for line in lines]


STARTED = "app: started (web:1; nothing really runs here)"


async def test_a_container_says_that_it_started_and_is_ready_and_its_own_lines() -> None:
    async with running() as client:
        await start(client, **{LOGS: "hello\nworld"})
        assert await log(client) == [STARTED, "hello", "world", "app: ready"]
        assert await log(client, limit_bytes=3) == ["app"]


async def test_one_that_is_never_ready_does_not_say_so() -> None:
    async with running() as client:
        await start(client, **{OUTCOME: "never-ready"})
        assert await log(client) == [STARTED]


async def test_a_log_is_followed_until_the_container_exits() -> None:
    async with running() as client:
        await start(client, policy="Never", **{OUTCOME: "exits:3", EXITS_AFTER: "30"})
        assert await log(client, follow=True) == [STARTED, "app: ready", "app: exited with code 3"]


async def test_a_log_is_followed_until_the_pod_is_deleted() -> None:
    async with running() as client:
        await start(client)
        following = asyncio.create_task(log(client, follow=True))
        await asyncio.sleep(5)
        await client.delete(Pod, "web", namespace="default")
        assert await following == [STARTED, "app: ready", "app: exited with code 0"]


async def test_the_container_before_has_a_log_too() -> None:
    async with running() as client:
        await start(client, **{OUTCOME: "exits:1"})
        await asyncio.sleep(2)
        crashed = [STARTED, "app: exited with code 1"]
        assert await log(client, previous=True) == crashed
        assert await log(client) == crashed, "of one that waits to be restarted, too"
        assert await log(client, follow=True) == crashed


@pytest.mark.parametrize(
    ("annotation", "said", "told"),
    [
        (STARTS_AFTER, "100", 'container "app" in pod "web" is waiting to start: ContainerCreating'),
        (
            OUTCOME,
            "waits:ImagePullBackOff",
            'container "app" in pod "web" is waiting to start: trying and failing to pull image',
        ),
        (
            OUTCOME,
            "waits:ErrImagePull",
            'container "app" in pod "web" is waiting to start: image can\'t be pulled',
        ),
    ],
)
async def test_a_container_that_waits_has_no_log(annotation: str, said: str, told: str) -> None:
    async with running() as client:
        await start(client, **{annotation: said})
        with pytest.raises(BadRequest) as caught:
            await log(client)
        assert caught.value.message == told


async def test_a_container_that_was_not_restarted_has_no_log_before() -> None:
    async with running() as client:
        await start(client)
        with pytest.raises(BadRequest, match='previous terminated container "app" in pod "web" not found'):
            await log(client, previous=True)


# ---- which lines -----------------------------------------------------------------------------------

LINES = [LogLine(datetime(2030, 1, 1, hour, tzinfo=UTC), f"at {hour}") for hour in (1, 2, 3)]


@pytest.mark.parametrize(
    ("part", "hours"),
    [
        (LogPart(), [1, 2, 3]),
        (LogPart(tail_lines=2), [2, 3]),
        (LogPart(tail_lines=0), []),
        (LogPart(tail_lines=9), [1, 2, 3]),
        (LogPart(since=LINES[1].time), [2, 3]),
        (LogPart(since=LINES[1].time, tail_lines=1), [3]),
    ],
)
def test_the_part_that_is_asked_for(part: LogPart, hours: list[int]) -> None:
    assert [line.time.hour for line in chosen_lines(LINES, part)] == hours


def test_a_time_stands_before_a_line_in_nanoseconds() -> None:
    line = LogLine(datetime(2030, 1, 1, 1, 2, 3, 4, tzinfo=UTC), "hello")
    assert line.encode(timestamps=True) == b"2030-01-01T01:02:03.000004000Z hello\n"
    assert line.encode() == b"hello\n"
