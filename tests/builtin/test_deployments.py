"""Deployments roll out, back and over, on a server in memory with a node that runs pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from setpoint.api.int_or_string import IntOrString
from setpoint.api.patches import MergePatch
from setpoint.builtin import deployments, replicasets
from setpoint.builtin.node_pods import Outcome, Runs, Waits
from setpoint.client.client import Client
from setpoint.kube.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from setpoint.kube.core.v1 import Pod
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import cluster, conditions, named, pods, selecting, template, told

pytestmark = pytest.mark.virtual_time

ADDS = (deployments.add_to, replicasets.add_to)
DONE = {"Available": ("True", "MinimumReplicasAvailable"), "Progressing": ("True", "NewReplicaSetAvailable")}


def deployment(
    replicas: int = 2,
    *,
    strategy: str = "RollingUpdate",
    surge: IntOrString = "25%",
    unavailable: IntOrString = "25%",
    deadline: int | None = None,
    history: int | None = None,
) -> Deployment:
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    spec = DeploymentSpec(
        replicas=replicas,
        selector=selecting(app="web"),
        template=template(app="web"),
        strategy=DeploymentStrategy(
            type=strategy, rolling_update=rolling if strategy == "RollingUpdate" else None
        ),
        progress_deadline_seconds=deadline,
        revision_history_limit=history,
    )
    return Deployment(metadata=named("web"), spec=spec)


async def read(client: Client) -> Deployment:
    return await client.get(Deployment, "web", namespace="default")


async def replica_sets(client: Client) -> dict[str, ReplicaSet]:
    """By revision."""
    found = await client.list(ReplicaSet, namespace="default")
    return {(each.metadata.annotations or {})["deployment.kubernetes.io/revision"]: each for each in found}


async def until(client: Client, check: Callable[[Deployment], bool], timeout: float = 30.0) -> Deployment:
    async def look() -> Deployment | None:
        found = await read(client)
        return found if check(found) else None

    return await eventually(look, timeout=timeout)


def is_done(found: Deployment) -> bool:
    replicas = found.spec.replicas or 0
    return (
        found.status.observed_generation == found.metadata.generation
        and (found.status.replicas or 0) == replicas
        and (found.status.updated_replicas or 0) == replicas
        and (found.status.available_replicas or 0) == replicas
        and conditions(found) == DONE
    )


def is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


async def set_image(client: Client, image: str) -> None:
    containers = [{"name": "app", "image": image}]
    patch = MergePatch({"spec": {"template": {"spec": {"containers": containers}}}})
    await client.patch(Deployment, "web", patch, namespace="default")


async def test_a_deployment_becomes_available_in_the_states_that_kubernetes_shows() -> None:
    async with cluster(*ADDS) as client:
        seen: list[list[tuple[str, str]]] = []

        async def watch() -> None:
            async with client.watch(Deployment, namespace="default") as changes:
                async for change in changes:
                    reasons = [
                        (each.type, each.reason or "") for each in change.object.status.conditions or ()
                    ]
                    if not seen or seen[-1] != reasons:
                        seen.append(reasons)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(1)
        await client.create(deployment())
        found = await until(client, is_done)
        await asyncio.sleep(1)
        watching.cancel()
        assert seen[0] == []
        assert seen[1] == [("Progressing", "NewReplicaSetCreated")]
        assert seen[2] == [
            ("Progressing", "NewReplicaSetCreated"),
            ("Available", "MinimumReplicasUnavailable"),
        ]
        assert seen[-1] == [
            ("Available", "MinimumReplicasAvailable"),
            ("Progressing", "NewReplicaSetAvailable"),
        ]
        assert {reason for states in seen for kind, reason in states if kind == "Progressing"} == {
            "NewReplicaSetCreated", "ReplicaSetUpdated", "NewReplicaSetAvailable",
        }  # fmt: skip
        assert (found.metadata.annotations or {})["deployment.kubernetes.io/revision"] == "1"
        ((revision, new),) = (await replica_sets(client)).items()
        assert revision == "1"
        pod_hash = (new.metadata.labels or {})["pod-template-hash"]
        assert new.metadata.name == f"web-{pod_hash}"
        assert new.spec.selector.match_labels == {"app": "web", "pod-template-hash": pod_hash}
        assert new.metadata.annotations == {
            "deployment.kubernetes.io/desired-replicas": "2",
            "deployment.kubernetes.io/max-replicas": "3",
            "deployment.kubernetes.io/revision": "1",
        }
        assert await told(client, "Deployment") == [
            ("ScalingReplicaSet", f"Scaled up replica set {new.metadata.name} from 0 to 2")
        ]


async def test_a_rolling_update_never_breaks_its_bounds_and_keeps_the_old_as_history() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment(4, surge=1, unavailable=1))
        await until(client, is_done)
        counts: list[tuple[int, int]] = []

        async def watch() -> None:
            async with client.watch(Pod, namespace="default") as changes:
                async for _ in changes:
                    there = [pod for pod in await pods(client) if pod.metadata.deletion_timestamp is None]
                    ready = [pod for pod in there if is_ready(pod)]
                    counts.append((len(there), len(ready)))

        watching = asyncio.create_task(watch())
        await asyncio.sleep(1)
        await set_image(client, "app:2")
        await until(client, is_done)
        watching.cancel()
        assert max(there for there, _ in counts) <= 5
        assert min(ready for _, ready in counts) >= 3
        both = await replica_sets(client)
        assert {revision: each.spec.replicas for revision, each in both.items()} == {"1": 0, "2": 4}
        images = {pod.spec.containers[0].image for pod in await pods(client)}
        assert images == {"app:2"}


async def test_the_old_template_brings_back_its_replica_set_with_a_new_revision() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment())
        await until(client, is_done)
        first = (await replica_sets(client))["1"]
        await set_image(client, "app:2")
        await until(client, is_done)
        await set_image(client, "app:1")
        found = await until(client, is_done)
        assert (found.metadata.annotations or {})["deployment.kubernetes.io/revision"] == "3"
        both = await replica_sets(client)
        assert both["3"].metadata.uid == first.metadata.uid
        annotations = both["3"].metadata.annotations or {}
        assert annotations["deployment.kubernetes.io/revision-history"] == "1"
        assert {revision: each.spec.replicas for revision, each in both.items()} == {"2": 0, "3": 2}


async def test_of_the_history_no_more_is_kept_than_wanted() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment(1, history=1))
        await until(client, is_done)
        for number in range(2, 5):
            await set_image(client, f"app:{number}")
            await until(client, is_done)

        async def kept() -> bool:
            return set(await replica_sets(client)) == {"3", "4"}

        await eventually(kept)


async def test_recreate_ends_all_old_pods_before_the_first_new_one() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment(3, strategy="Recreate"))
        await until(client, is_done)
        images: list[set[str | None]] = []

        async def watch() -> None:
            async with client.watch(Pod, namespace="default") as changes:
                async for _ in changes:
                    running = {pod.spec.containers[0].image for pod in await pods(client)}
                    images.append(running)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(1)
        await set_image(client, "app:2")
        await until(client, is_done)
        watching.cancel()
        assert {"app:1", "app:2"} not in images
        assert images[-1] == {"app:2"}


async def test_a_paused_deployment_scales_but_does_not_roll_out() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment(2, deadline=600))
        await until(client, is_done)
        await client.patch(Deployment, "web", MergePatch({"spec": {"paused": True}}), namespace="default")
        await until(client, lambda found: conditions(found)["Progressing"] == ("Unknown", "DeploymentPaused"))
        await set_image(client, "app:2")
        await client.scale(Deployment, "web", 3, namespace="default")
        await until(client, lambda found: found.status.available_replicas == 3)
        assert set(await replica_sets(client)) == {"1"}
        await client.patch(Deployment, "web", MergePatch({"spec": {"paused": False}}), namespace="default")
        await until(client, is_done)
        assert {revision: each.spec.replicas for revision, each in (await replica_sets(client)).items()} == {
            "1": 0, "2": 3,
        }  # fmt: skip


async def test_a_rollout_that_stands_still_is_told_after_its_deadline_and_the_old_pods_stay() -> None:
    def outcome(pod: Pod) -> Outcome:
        return Waits("ImagePullBackOff") if pod.spec.containers[0].image == "app:bad" else Runs()

    async with cluster(*ADDS, outcome=outcome) as client:
        await client.create(deployment(3, deadline=60, surge=1, unavailable=1))
        await until(client, is_done)
        await set_image(client, "app:bad")
        found = await until(
            client,
            lambda found: conditions(found)["Progressing"] == ("False", "ProgressDeadlineExceeded"),
            timeout=300,
        )
        assert found.status.available_replicas == 2
        assert conditions(found)["Available"] == ("True", "MinimumReplicasAvailable")
        await set_image(client, "app:1")
        await until(client, is_done)


async def test_a_new_size_reaches_the_pods() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment(1))
        await until(client, is_done)
        await client.scale(Deployment, "web", 5, namespace="default")
        await until(client, is_done)
        assert len(await pods(client)) == 5
        (new,) = (await replica_sets(client)).values()
        assert (new.metadata.annotations or {})["deployment.kubernetes.io/desired-replicas"] == "5"
        assert ("ScalingReplicaSet", f"Scaled up replica set {new.metadata.name} from 1 to 5") in await told(
            client, "Deployment"
        )


async def test_at_its_fixed_point_nothing_is_written() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment())
        found = await until(client, is_done)
        await asyncio.sleep(100)
        again = await read(client)
        assert again.metadata.resource_version == found.metadata.resource_version


async def test_a_replica_set_whose_name_is_taken_by_another_gets_another_name() -> None:
    async with cluster(*ADDS) as client:
        await client.create(deployment())
        await until(client, is_done)
        (first,) = (await replica_sets(client)).values()
        await client.delete(Deployment, "web", namespace="default", propagation="Background")
        await client.delete(first, propagation="Background")  # nobody collects garbage here
        other = ReplicaSet(
            metadata=named(first.metadata.name or ""),
            spec=ReplicaSetSpec(replicas=0, selector=selecting(app="other"), template=template(app="other")),
        )
        await client.create(other)
        await client.create(deployment())
        found = await until(client, is_done)
        assert found.status.collision_count == 1
        own = await client.list(ReplicaSet, namespace="default", labels={"app": "web"})
        assert [each.metadata.name == first.metadata.name for each in own] == [False]
