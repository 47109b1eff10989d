"""The node stand-in on the embedded server: what pods say of themselves in annotations."""

from __future__ import annotations

import asyncio

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.builtin.node_pods import OUTCOME, STARTS_AFTER, STOPS_AFTER
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import Container, Event, Pod, PodSpec
from setpoint.kube.core.v1 import Node as NodeObject
from setpoint.testing.node import Node
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster
from tests.builtin.workloads import START, LoopClock

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


async def test_a_crashing_pod_is_restarted_and_its_restarts_are_counted() -> None:
    async with cluster([]) as client, Node(client):
        await client.create(pod("crashes", **{OUTCOME: "exits:1"}))

        async def has_restarted(times: int) -> bool:
            known = await client.get(Pod, "crashes", namespace="default")
            return (known.status.container_statuses or [])[0].restart_count == times

        await eventually(lambda: has_restarted(1))
        await asyncio.sleep(9)
        assert await has_restarted(1)
        await asyncio.sleep(2)
        assert await has_restarted(2)
        await asyncio.sleep(15)
        assert await has_restarted(2)
        await asyncio.sleep(6)
        assert await has_restarted(3)


async def test_a_reason_that_no_longer_holds_is_taken_back() -> None:
    async with cluster([]) as client, Node(client, delay=10.0):
        await client.create(pod("one"))

        async def ready() -> tuple[str | None, ...]:
            known = await client.get(Pod, "one", namespace="default")
            found = next(each for each in known.status.conditions or () if each.type == "Ready")
            return found.status, found.reason, found.message

        waiting = ("False", "ContainersNotReady", "containers with unready status: [c]")
        await eventually(lambda: is_in(client, "one", "Pending", "waiting"))
        assert await ready() == waiting
        await eventually(lambda: is_in(client, "one", "Running", "running"))
        assert await ready() == ("True", None, None)


async def test_a_cordoned_node_takes_new_pods_when_it_is_uncordoned() -> None:
    async with cluster([]) as client, Node(client):
        await client.patch(NodeObject, "node-1", MergePatch({"spec": {"unschedulable": True}}))
        await asyncio.sleep(1)
        await client.create(pod("waits"))
        await asyncio.sleep(60)
        assert (await client.get(Pod, "waits", namespace="default")).spec.node_name is None
        await client.patch(NodeObject, "node-1", MergePatch({"spec": {"unschedulable": None}}))
        await eventually(lambda: is_in(client, "waits", "Running", "running"))


async def test_with_all_controllers_there_is_a_node_on_which_pods_run() -> None:
    async with cluster() as client:
        await client.create(pod("one"))
        await eventually(lambda: is_in(client, "one", "Running", "running"))
        node = await client.get(NodeObject, "node-1")
        assert node.spec.taints is None
        assert node.metadata.labels is not None
        assert node.status.node_info.operating_system == node.metadata.labels["kubernetes.io/os"] == "linux"


async def test_the_time_that_a_pod_tells_is_the_clocks() -> None:
    clock = LoopClock(START)
    async with cluster(clock=clock) as client:
        await client.create(pod("one"))
        await eventually(lambda: is_in(client, "one", "Running", "running"))
        started = (await client.get(Pod, "one", namespace="default")).status.start_time
        assert started is not None
        assert started.year == START.year


async def test_events_tell_what_a_scheduler_and_a_kubelet_would() -> None:
    async with cluster([]) as client, Node(client):
        await client.create(pod("runs"))
        await client.create(pod("crashes", **{OUTCOME: "exits:1"}))
        await eventually(lambda: is_in(client, "runs", "Running", "running"))
        await client.delete(Pod, "runs", namespace="default")
        await asyncio.sleep(5)
        events = await client.list(Event, namespace="default")
        told = {
            (each.involved_object.name, each.reporting_component, each.reason, each.message)
            for each in events
        }
        started = 'Container image "i" already present on machine and can be accessed by the pod'
        assert told >= {
            ("runs", "default-scheduler", "Scheduled", "Successfully assigned default/runs to node-1"),
            ("runs", "kubelet", "Pulled", started),
            ("runs", "kubelet", "Created", "Container created"),
            ("runs", "kubelet", "Started", "Container started"),
            ("runs", "kubelet", "Killing", "Stopping container c"),
        }
        back_off = [each for each in events if each.reason == "BackOff"]
        assert [(each.type, each.involved_object.name) for each in back_off] == [("Warning", "crashes")]


async def test_of_very_many_pods_only_some_are_told_of() -> None:
    async with cluster([]) as client, Node(client):
        for number in range(150):
            await client.create(pod(f"p-{number}"))
        await eventually(lambda: is_in(client, "p-149", "Running", "running"))
        await asyncio.sleep(1)
        assert 0 < len(await client.list(Event, namespace="default")) < 300


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
