"""StatefulSets: places, order, partitions, claims and revisions, on a server in memory with a node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from setpoint.api.model import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.api.quantity import Quantity
from setpoint.builtin.node_pods import Outcome, Runs, Waits
from setpoint.builtin.statefulsets import add_to
from setpoint.client.client import Client
from setpoint.kube.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from setpoint.kube.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    VolumeResourceRequirements,
)
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import cluster, named, pods, selecting, template, told

pytestmark = pytest.mark.virtual_time


def stateful_set(
    replicas: int = 3, *, policy: str | None = None, partition: int | None = None, claims: bool = False
) -> StatefulSet:
    rolling = RollingUpdateStatefulSetStrategy(partition=partition or 0)
    data = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data"),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
        ),
    )
    spec = StatefulSetSpec(
        replicas=replicas,
        service_name="db",
        selector=selecting(app="db"),
        template=template(app="db"),
        pod_management_policy=policy,
        update_strategy=StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling),
        volume_claim_templates=[data] if claims else None,
    )
    return StatefulSet(metadata=named("db"), spec=spec)


async def until(client: Client, check: Callable[[StatefulSet], bool]) -> StatefulSet:
    async def look() -> StatefulSet | None:
        found = await client.get(StatefulSet, "db", namespace="default")
        is_seen = found.status.observed_generation == found.metadata.generation
        return found if is_seen and check(found) else None

    return await eventually(look)


def all_ready(found: StatefulSet) -> bool:
    return (found.status.ready_replicas or 0) == (found.spec.replicas or 0) == found.status.replicas


def is_updated(found: StatefulSet) -> bool:
    return all_ready(found) and found.status.current_revision == found.status.update_revision


async def set_image(client: Client, image: str) -> None:
    patch = MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}})
    await client.patch(StatefulSet, "db", patch, namespace="default")


async def watched(client: Client, seen: list[tuple[str, str, str]]) -> None:
    async with client.watch(Pod, namespace="default") as changes:
        async for change in changes:
            ready = any(
                each.type == "Ready" and each.status == "True"
                for each in change.object.status.conditions or ()
            )
            state = "ready" if ready else ""
            seen.append((change.type, change.object.metadata.name or "", state))


async def test_pods_are_made_in_order_each_when_the_one_before_is_ready() -> None:
    async with cluster(add_to) as client:
        seen: list[tuple[str, str, str]] = []
        watching = asyncio.create_task(watched(client, seen))
        await asyncio.sleep(1)
        await client.create(stateful_set())
        found = await until(client, is_updated)
        watching.cancel()
        order = [(kind, name) for kind, name, state in seen if kind == "ADDED" or state]
        firsts = list(dict.fromkeys(("made" if kind == "ADDED" else "ready", name) for kind, name in order))
        assert firsts == [(state, name) for name in ("db-0", "db-1", "db-2") for state in ("made", "ready")]
        (revision,) = await client.list(ControllerRevision, namespace="default")
        assert found.status.current_revision == found.status.update_revision == revision.metadata.name
        assert (found.status.collision_count, found.status.current_replicas) == (0, 3)
        assert revision.revision == 1
        first = await client.get(Pod, "db-0", namespace="default")
        assert first.metadata.labels == {
            "app": "db",
            "apps.kubernetes.io/pod-index": "0",
            "controller-revision-hash": revision.metadata.name,
            "statefulset.kubernetes.io/pod-name": "db-0",
        }
        assert (first.spec.hostname, first.spec.subdomain) == ("db-0", "db")
        assert ("SuccessfulCreate", "Create Pod db-0 in StatefulSet db successful") in await told(
            client, "StatefulSet"
        )


async def test_in_order_nothing_is_made_above_a_pod_that_is_not_ready() -> None:
    def outcome(pod: Pod) -> Outcome:
        return Waits() if pod.metadata.name == "db-1" else Runs()

    async with cluster(add_to, outcome=outcome) as client:
        await client.create(stateful_set())
        await until(client, lambda found: found.status.replicas == 2)
        await asyncio.sleep(60)
        assert [pod.metadata.name for pod in await pods(client)] == ["db-0", "db-1"]


async def test_in_parallel_all_pods_are_made_at_once() -> None:
    def outcome(pod: Pod) -> Outcome:
        return Waits() if pod.metadata.name == "db-0" else Runs()

    async with cluster(add_to, outcome=outcome) as client:
        await client.create(stateful_set(policy="Parallel"))
        await until(client, lambda found: found.status.ready_replicas == 2)
        assert [pod.metadata.name for pod in await pods(client)] == ["db-0", "db-1", "db-2"]


async def test_a_set_that_shrinks_loses_the_highest_first() -> None:
    async with cluster(add_to) as client:
        await client.create(stateful_set())
        await until(client, is_updated)
        seen: list[tuple[str, str, str]] = []
        watching = asyncio.create_task(watched(client, seen))
        await asyncio.sleep(1)
        await client.scale(StatefulSet, "db", 1, namespace="default")
        await until(client, all_ready)
        watching.cancel()
        assert [name for kind, name, _ in seen if kind == "DELETED"] == ["db-2", "db-1"]
        assert ("SuccessfulDelete", "Delete Pod db-2 in StatefulSet db successful") in await told(
            client, "StatefulSet"
        )


async def test_an_update_goes_from_the_highest_down_one_at_a_time() -> None:
    async with cluster(add_to) as client:
        await client.create(stateful_set())
        before = await until(client, is_updated)
        seen: list[tuple[str, str, str]] = []
        watching = asyncio.create_task(watched(client, seen))
        await asyncio.sleep(1)
        await set_image(client, "app:2")
        found = await until(
            client,
            lambda found: is_updated(found) and found.status.update_revision != before.status.update_revision,
        )
        watching.cancel()
        moves = [(kind, name) for kind, name, _ in seen if kind in {"ADDED", "DELETED"}]
        assert [each for each in moves if each in moves[-6:]][-6:] == [
            ("DELETED", "db-2"), ("ADDED", "db-2"),
            ("DELETED", "db-1"), ("ADDED", "db-1"),
            ("DELETED", "db-0"), ("ADDED", "db-0"),
        ]  # fmt: skip
        assert (found.status.updated_replicas, found.status.current_replicas) == (3, 3)
        assert {pod.spec.containers[0].image for pod in await pods(client)} == {"app:2"}
        assert sorted(
            each.revision or 0 for each in await client.list(ControllerRevision, namespace="default")
        ) == [1, 2]


async def test_below_the_partition_pods_stay_and_come_back_at_the_old_revision() -> None:
    async with cluster(add_to) as client:
        await client.create(stateful_set(partition=2))
        await until(client, is_updated)
        await set_image(client, "app:2")
        found = await until(client, lambda found: found.status.updated_replicas == 1 and all_ready(found))
        assert found.status.current_revision != found.status.update_revision
        first = await client.get(Pod, "db-0", namespace="default")
        await client.delete(first)

        async def came_back() -> bool:
            found = await client.get(Pod, "db-0", namespace="default")
            return found.metadata.uid != first.metadata.uid

        await eventually(came_back)
        await until(client, all_ready)
        images = {pod.metadata.name: pod.spec.containers[0].image for pod in await pods(client)}
        assert images == {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}
        patch = MergePatch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await client.patch(StatefulSet, "db", patch, namespace="default")
        await until(client, is_updated)


async def test_going_back_renumbers_the_old_revision() -> None:
    async with cluster(add_to) as client:
        await client.create(stateful_set(1))
        first = await until(client, is_updated)
        await set_image(client, "app:2")
        await until(
            client,
            lambda found: is_updated(found) and found.status.update_revision != first.status.update_revision,
        )
        await set_image(client, "app:1")
        await until(
            client,
            lambda found: is_updated(found) and found.status.update_revision == first.status.update_revision,
        )
        revisions = await client.list(ControllerRevision, namespace="default")
        assert {each.metadata.name == first.status.update_revision: each.revision for each in revisions} == {
            True: 3, False: 2,
        }  # fmt: skip


async def test_each_pod_has_claims_of_its_own_that_stay_when_it_goes() -> None:
    async with cluster(add_to) as client:
        await client.create(stateful_set(2, claims=True))
        await until(client, is_updated)
        claims = await client.list(PersistentVolumeClaim, namespace="default")
        assert [claim.metadata.name for claim in claims] == ["data-db-0", "data-db-1"]
        assert all(claim.metadata.labels == {"app": "db"} for claim in claims)
        first = await client.get(Pod, "db-0", namespace="default")
        (volume,) = [each for each in first.spec.volumes or () if each.name == "data"]
        assert volume.persistent_volume_claim is not None
        assert volume.persistent_volume_claim.claim_name == "data-db-0"
        assert (
            "SuccessfulCreate",
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        ) in await told(client, "StatefulSet")
        await client.scale(StatefulSet, "db", 0, namespace="default")
        await until(client, all_ready)
        assert len(await client.list(PersistentVolumeClaim, namespace="default")) == 2


async def test_at_its_fixed_point_nothing_is_written() -> None:
    async with cluster(add_to) as client:
        await client.create(stateful_set())
        found = await until(client, is_updated)
        await asyncio.sleep(100)
        again = await client.get(StatefulSet, "db", namespace="default")
        assert again.metadata.resource_version == found.metadata.resource_version
