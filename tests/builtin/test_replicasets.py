"""ReplicaSets and ReplicationControllers, on a server in memory with a node that runs pods."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api.model import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.builtin.pods import (
    DELETION_COST,
    ConditionState,
    PodMeta,
    PodSpecState,
    PodState,
    PodStatusState,
    to_delete,
)
from setpoint.builtin.replicasets import add_replication_controllers_to, add_to, status_of
from setpoint.client.client import Client
from setpoint.kube.apps.v1 import ReplicaSet, ReplicaSetSpec
from setpoint.kube.core.v1 import (
    Namespace,
    Pod,
    PodSpec,
    ReplicationController,
    ReplicationControllerSpec,
)
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import START, cluster, conditions, named, pods, selecting, template, told

pytestmark = pytest.mark.virtual_time


def replica_set(replicas: int, *, min_ready_seconds: int | None = None) -> ReplicaSet:
    spec = ReplicaSetSpec(
        replicas=replicas,
        selector=selecting(app="web"),
        template=template(app="web"),
        min_ready_seconds=min_ready_seconds,
    )
    return ReplicaSet(metadata=named("web"), spec=spec)


async def having(client: Client, **status: int | None) -> ReplicaSet:
    """The ReplicaSet, once its status says this."""

    async def check() -> ReplicaSet | None:
        found = await client.get(ReplicaSet, "web", namespace="default")
        seen = {name: getattr(found.status, name) for name in status}
        assert seen == status
        return found

    return await eventually(check)


async def test_many_pods_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal looks
        looks += 1
        return status_of(*given, **named)

    monkeypatch.setattr("setpoint.builtin.replicasets.status_of", counted)
    async with cluster(add_to) as client:
        await client.create(replica_set(200))
        await having(client, available_replicas=200)
        assert looks < 20
        await client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 1}}), namespace="default")
        await having(client, available_replicas=1, terminating_replicas=0)
        assert looks < 40


async def test_as_many_pods_as_wanted_are_made_and_told() -> None:
    async with cluster(add_to) as client:
        made = await client.create(replica_set(3))
        found = await having(
            client, replicas=3, ready_replicas=3, available_replicas=3, terminating_replicas=0
        )
        assert found.status.observed_generation == 1
        assert found.status.fully_labeled_replicas == 3
        for pod in await pods(client, app="web"):
            (owner,) = pod.metadata.owner_references or []
            assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == (
                "ReplicaSet", made.metadata.uid, True, True,
            )  # fmt: skip
            assert pod.metadata.generate_name == "web-"
        names = sorted(pod.metadata.name or "" for pod in await pods(client))

        async def all_told() -> bool:
            return sorted(await told(client, "ReplicaSet")) == [
                ("SuccessfulCreate", f"Created pod: {name}") for name in names
            ]

        await eventually(all_told)


async def test_too_many_pods_are_deleted() -> None:
    async with cluster(add_to) as client:
        await client.create(replica_set(4))
        await having(client, ready_replicas=4)
        await client.scale(ReplicaSet, "web", 1, namespace="default")
        await having(client, replicas=1, ready_replicas=1, terminating_replicas=0)
        assert len(await pods(client)) == 1
        reasons = [reason for reason, _ in await told(client, "ReplicaSet")]
        assert reasons.count("SuccessfulDelete") == 3


async def test_a_pod_that_is_gone_is_replaced() -> None:
    async with cluster(add_to) as client:
        await client.create(replica_set(2))
        await having(client, ready_replicas=2)
        first, second = await pods(client)
        await client.delete(first, grace_period=0)

        async def replaced() -> bool:
            names = {pod.metadata.name for pod in await pods(client)}
            return len(names) == 2 and first.metadata.name not in names and second.metadata.name in names

        await eventually(replaced)


async def test_a_pod_whose_label_is_changed_is_let_go_and_one_that_matches_is_taken() -> None:
    async with cluster(add_to) as client:
        await client.create(replica_set(1))
        await having(client, ready_replicas=1)
        (pod,) = await pods(client)
        await client.patch(pod, MergePatch({"metadata": {"labels": {"app": "other"}}}))

        async def released() -> bool:
            (let_go,) = await pods(client, app="other")
            return not let_go.metadata.owner_references and len(await pods(client, app="web")) == 1

        await eventually(released)
        await client.patch(pod, MergePatch({"metadata": {"labels": {"app": "web"}}}))

        async def one_of_two() -> bool:
            left = await pods(client, app="web")
            return len(left) == 1 and bool(left[0].metadata.owner_references)

        await eventually(one_of_two)


async def test_an_orphan_that_matches_is_adopted() -> None:
    async with cluster(add_to) as client:
        bare = template(app="web")
        await client.create(
            Pod(metadata=named("mine", app="web"), spec=PodSpec(containers=bare.spec.containers))
        )
        made = await client.create(replica_set(1))
        await having(client, ready_replicas=1)
        (pod,) = await pods(client)
        assert pod.metadata.name == "mine"
        (owner,) = pod.metadata.owner_references or []
        assert owner.uid == made.metadata.uid


async def test_what_is_ready_is_available_after_min_ready_seconds() -> None:
    async with cluster(add_to) as client:
        await client.create(replica_set(2, min_ready_seconds=60))
        await having(client, ready_replicas=2, available_replicas=None)
        found = await having_slowly(client)
        assert found.status.available_replicas == 2


async def having_slowly(client: Client) -> ReplicaSet:
    async def check() -> ReplicaSet | None:
        found = await client.get(ReplicaSet, "web", namespace="default")
        return found if found.status.available_replicas == 2 else None

    return await eventually(check, timeout=120)


async def in_namespace(client: Client, name: str, **labels: str) -> None:
    """A namespace, and a ReplicaSet in it that wants no pods yet."""
    await client.create(Namespace(metadata=ObjectMeta(name=name, labels=labels)))
    inside = replica_set(0)
    inside.metadata.namespace = name
    await client.create(inside)


async def test_what_is_refused_is_told_in_a_condition_and_an_event() -> None:
    async with cluster(add_to) as client:
        await in_namespace(client, "strict", **{"pod-security.kubernetes.io/enforce": "restricted"})
        await client.scale(ReplicaSet, "web", 1, namespace="strict")

        async def failing() -> bool:
            found = await client.get(ReplicaSet, "web", namespace="strict")
            return conditions(found) == {"ReplicaFailure": ("True", "FailedCreate")}

        await eventually(failing)
        await client.scale(ReplicaSet, "web", 0, namespace="strict")

        async def no_longer() -> bool:
            return conditions(await client.get(ReplicaSet, "web", namespace="strict")) == {}

        await eventually(no_longer)


async def test_that_a_namespace_which_ends_takes_no_pods_is_no_failure() -> None:
    async with cluster(add_to) as client:
        await in_namespace(client, "doomed")
        await client.delete(Namespace, "doomed")  # nobody empties it here: it stays, and takes nothing new
        await client.scale(ReplicaSet, "web", 1, namespace="doomed")

        async def was_looked_at() -> ReplicaSet | None:
            found = await client.get(ReplicaSet, "web", namespace="doomed")
            return found if found.status.observed_generation == found.metadata.generation else None

        assert conditions(await eventually(was_looked_at)) == {}


async def test_a_replication_controller_is_kept_by_the_same_code() -> None:
    async with cluster(add_replication_controllers_to) as client:
        spec = ReplicationControllerSpec(replicas=2, selector={"app": "old"}, template=template(app="old"))
        await client.create(ReplicationController(metadata=named("old"), spec=spec))

        async def ready() -> bool:
            found = await client.get(ReplicationController, "old", namespace="default")
            return found.status.ready_replicas == 2 and conditions(found) == {}

        await eventually(ready)


def pod(
    name: str, *, node: str = "n1", phase: str = "Running", ready: bool = True, cost: str = ""
) -> PodState:
    status = PodStatusState(
        phase=phase, conditions=[ConditionState(type="Ready", status="True" if ready else "False")]
    )
    metadata = PodMeta(name=name, uid=name, annotations={DELETION_COST: cost} if cost else None)
    return PodState(metadata=metadata, spec=PodSpecState(node_name=node), status=status)


def test_the_pod_that_is_missed_least_goes_first() -> None:
    unbound = pod("unbound", node="", phase="Pending", ready=False)
    pending = pod("pending", phase="Pending", ready=False)
    unready = pod("unready", ready=False)
    cheap = pod("cheap", cost="-5")
    crowded, other, lonely = pod("crowded", node="n2"), pod("other", node="n2"), pod("lonely", node="n3")
    every = [lonely, crowded, other, cheap, unready, pending, unbound]
    order = to_delete(every, len(every) - 1, every, START)
    assert [each.metadata.name for each in order[:4]] == ["unbound", "pending", "unready", "cheap"]
    assert {each.metadata.name for each in order[4:]} == {"crowded", "other"}
