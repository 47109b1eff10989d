"""The node stand-in on the embedded server: what pods say of themselves in annotations."""

from __future__ import annotations

import asyncio

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import Container, Pod, PodSpec
from setpoint.testing.node import Node
from setpoint.testing.pod_steps import OUTCOME, STARTS_AFTER, STOPS_AFTER
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

pytestmark = pytest.mark.virtual_time


def pod(name: str, **annotations: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", annotations=annotations),
        spec=PodSpec(containers=[Container(name="c", image="i")]),
    )


async def state(client: Client, name: str) -> tuple[str | None, list[str]]:
    """The phase of a pod, and in which states its container is."""
    known = await client.get(Pod, name, namespace="default")
    status = (known.status.container_statuses or [])[0]
    words = ("waiting", "running", "terminated")
    return known.status.phase, [word for word in words if getattr(status.state, word) is not None]


async def is_in(client: Client, name: str, phase: str, *states: str) -> bool:
    return await state(client, name) == (phase, list(states))


async def test_a_pod_starts_and_stops_when_it_says() -> None:
    async with cluster([]) as client, Node(client):
        await client.create(pod("slow", **{STARTS_AFTER: "20", STOPS_AFTER: "20"}))
        await eventually(lambda: is_in(client, "slow", "Pending", "waiting"))
        await asyncio.sleep(15)
        assert await is_in(client, "slow", "Pending", "waiting")
        await eventually(lambda: is_in(client, "slow", "Running", "running"))
        await client.delete(Pod, "slow", namespace="default")
        await asyncio.sleep(15)
        assert await is_in(client, "slow", "Running", "running")

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(Pod, "slow", namespace="default")) is None

        await eventually(is_gone)


async def test_a_pod_fails_as_it_says() -> None:
    async with cluster([]) as client, Node(client):
        await client.create(pod("crashes", **{OUTCOME: "exits:1"}))
        await client.create(pod("hangs", **{OUTCOME: "waits:ImagePullBackOff"}))
        await eventually(lambda: is_in(client, "crashes", "Running", "waiting"))
        await eventually(lambda: is_in(client, "hangs", "Pending", "waiting"))


async def test_a_node_may_take_its_time_with_every_pod() -> None:
    async with cluster([]) as client, Node(client, delay=10.0):
        await client.create(pod("one"))
        await asyncio.sleep(5)
        assert await is_in(client, "one", "Pending", "waiting")
        await eventually(lambda: is_in(client, "one", "Running", "running"))
