"""DaemonSets: a pod on every node that it belongs on, on a server in memory with stand-in nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from setpoint.api.int_or_string import IntOrString
from setpoint.api.model import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.builtin import nodes
from setpoint.builtin.daemonsets import add_to
from setpoint.builtin.daemonsets_nodes import fit
from setpoint.client.client import Client
from setpoint.kube.apps.v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from setpoint.kube.core.v1 import Node, NodeSpec, Pod, PodSpec, Taint, Toleration
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import cluster, named, pods, selecting, template, told

pytestmark = pytest.mark.virtual_time


def daemon_set(*, unavailable: IntOrString = 1, surge: IntOrString = 0) -> DaemonSet:
    rolling = RollingUpdateDaemonSet(max_unavailable=unavailable, max_surge=surge)
    spec = DaemonSetSpec(
        selector=selecting(app="log"),
        template=template(app="log"),
        update_strategy=DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling),
    )
    return DaemonSet(metadata=named("log"), spec=spec)


async def until(client: Client, check: Callable[[DaemonSet], bool]) -> DaemonSet:
    async def look() -> DaemonSet | None:
        found = await client.get(DaemonSet, "log", namespace="default")
        is_seen = found.status.observed_generation == found.metadata.generation
        return found if is_seen and check(found) else None

    return await eventually(look, timeout=120)


def everywhere(count: int) -> Callable[[DaemonSet], bool]:
    def check(found: DaemonSet) -> bool:
        status = found.status
        return (
            status.desired_number_scheduled == status.current_number_scheduled == count
            and status.number_ready == count
            and (status.number_available or 0) == (status.updated_number_scheduled or 0) == count
            and status.number_unavailable is None
        )

    return check


async def set_image(client: Client, image: str) -> None:
    patch = MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}})
    await client.patch(DaemonSet, "log", patch, namespace="default")


async def test_each_node_has_a_pod_of_its_own() -> None:
    async with cluster(add_to, nodes.add_to, nodes=3) as client:
        await client.create(daemon_set())
        await until(client, everywhere(3))
        there = await pods(client)
        assert sorted(pod.spec.node_name or "" for pod in there) == ["node-1", "node-2", "node-3"]
        (revision,) = await client.list(ControllerRevision, namespace="default")
        pod_hash = (revision.metadata.labels or {})["controller-revision-hash"]
        assert revision.metadata.name == f"log-{pod_hash}"
        for pod in there:
            assert pod.metadata.labels == {
                "app": "log", "controller-revision-hash": pod_hash, "pod-template-generation": "1",
            }  # fmt: skip
        reasons = {reason for reason, _ in await told(client, "DaemonSet")}
        assert reasons == {"SuccessfulCreate"}


async def test_a_new_node_gets_a_pod_and_a_tainted_one_loses_it() -> None:
    async with cluster(add_to, nodes.add_to, nodes=1) as client:
        await client.create(daemon_set())
        await until(client, everywhere(1))
        await client.create(Node(metadata=ObjectMeta(name="late")))  # nothing runs there, but pods are made
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(Node, "late", MergePatch({"status": ready}), subresource="status")
        await until(client, lambda found: found.status.desired_number_scheduled == 2)
        await client.patch(
            Node,
            "late",
            MergePatch({"spec": {"taints": [{"key": "out", "value": "", "effect": "NoExecute"}]}}),
        )
        await until(client, everywhere(1))

        async def one() -> bool:
            return [pod.spec.node_name for pod in await pods(client)] == ["node-1"]

        await eventually(one)


async def test_an_update_replaces_pods_with_no_more_missing_than_allowed() -> None:
    async with cluster(add_to, nodes.add_to, nodes=3) as client:
        await client.create(daemon_set(unavailable=1))
        await until(client, everywhere(3))
        fewest = 3

        async def watch() -> None:
            nonlocal fewest
            async with client.watch(Pod, namespace="default") as changes:
                async for _ in changes:
                    there = [pod for pod in await pods(client) if pod.metadata.deletion_timestamp is None]
                    fewest = min(fewest, len(there))

        watching = asyncio.create_task(watch())
        await asyncio.sleep(1)
        await set_image(client, "app:2")
        await until(client, everywhere(3))
        watching.cancel()
        assert fewest == 2
        assert {pod.spec.containers[0].image for pod in await pods(client)} == {"app:2"}
        assert len(await client.list(ControllerRevision, namespace="default")) == 2
        generations = {(pod.metadata.labels or {})["pod-template-generation"] for pod in await pods(client)}
        assert generations == {"2"}


async def test_in_a_surge_the_new_pod_is_there_before_the_old_one_goes() -> None:
    async with cluster(add_to, nodes.add_to, nodes=2) as client:
        await client.create(daemon_set(unavailable=0, surge=1))
        await until(client, everywhere(2))
        counts = set[int]()

        async def watch() -> None:
            async with client.watch(Pod, namespace="default") as changes:
                async for _ in changes:
                    there = [pod for pod in await pods(client) if pod.metadata.deletion_timestamp is None]
                    counts.add(len(there))

        watching = asyncio.create_task(watch())
        await asyncio.sleep(1)
        await set_image(client, "app:2")
        await until(client, everywhere(2))
        watching.cancel()
        assert counts == {2, 3}
        assert {pod.spec.containers[0].image for pod in await pods(client)} == {"app:2"}


async def test_a_pod_that_fails_is_replaced_and_told() -> None:
    async with cluster(add_to, nodes.add_to, nodes=1) as client:
        await client.create(daemon_set())
        await until(client, everywhere(1))
        (first,) = await pods(client)
        await client.patch(first, MergePatch({"status": {"phase": "Failed"}}), subresource="status")

        async def replaced() -> bool:
            names = [pod.metadata.name for pod in await pods(client)]
            return len(names) == 1 and names != [first.metadata.name]

        await eventually(replaced)
        note = f"Found failed daemon pod default/{first.metadata.name} on node node-1, will try to kill it"
        assert ("FailedDaemonPod", note) in await told(client, "DaemonSet")


def test_taints_and_selectors_say_where_a_pod_belongs() -> None:
    node = Node(metadata=ObjectMeta(name="n", labels={"disk": "ssd"}))
    assert fit(PodSpec(), node).should_run
    assert not fit(PodSpec(node_selector={"disk": "hdd"}), node).may_stay
    node.spec = NodeSpec(taints=[Taint(key="gpu", value="yes", effect="NoSchedule")])
    kept_away = fit(PodSpec(), node)
    assert (kept_away.should_run, kept_away.may_stay) == (False, True)
    assert fit(PodSpec(tolerations=[Toleration(key="gpu", operator="Equal", value="yes")]), node).should_run
    node.spec = NodeSpec(taints=[Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")])
    assert fit(PodSpec(), node).should_run, "daemons are for sick nodes, too"
    node.spec = NodeSpec(taints=[Taint(key="gpu", effect="NoExecute")])
    assert not fit(PodSpec(), node).may_stay
