"""The node stand-in on a real cluster: its controllers find their pods running."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from setpoint.api import LabelSelector, ObjectMeta, is_true
from setpoint.builtin.node_pods import Exits, Outcome, Waits, usual_outcome
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import NotFound
from setpoint.kube import core
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec
from setpoint.kube.batch.v1 import Job, JobSpec
from setpoint.kube.core.v1 import Container, Namespace, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from setpoint.testing.kube import ControlPlane
from setpoint.testing.node import Node
from setpoint.testing.waiting import eventually


def by_image(pod: Pod) -> Outcome:
    """What becomes of a pod, by what it runs."""
    match pod.spec.containers[0].image:
        case "missing":
            return Waits("ImagePullBackOff")
        case "broken":
            return Exits(1)
        case _:
            return usual_outcome(pod)


@asynccontextmanager
async def shop(cluster: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    """A client of a cluster with a node, and a namespace of its own."""
    async with Client(Config.load(cluster.kubeconfig)) as client, Node(client, outcome=by_image):
        namespace = f"shop-{secrets.token_hex(4)}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await eventually(lambda: client.get(ServiceAccount, "default", namespace=namespace))
        yield client, namespace


def template(image: str = "web:1", policy: str | None = None) -> PodTemplateSpec:
    spec = PodSpec(containers=[Container(name="web", image=image)], restart_policy=policy)
    return PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}), spec=spec)


SELECTOR = LabelSelector(match_labels={"app": "web"})


async def test_a_deployment_becomes_available_and_its_pods_go_with_it(cluster: ControlPlane) -> None:
    async with shop(cluster) as (client, namespace):
        web = Deployment(
            metadata=ObjectMeta(name="web", namespace=namespace),
            spec=DeploymentSpec(replicas=3, selector=SELECTOR, template=template()),
        )
        await client.create(web)

        async def is_available() -> bool:
            return is_true(
                (await client.get(Deployment, "web", namespace=namespace)).status.conditions, "Available"
            )

        await eventually(is_available)
        pods = await client.list(Pod, namespace=namespace)
        assert len({pod.status.pod_ip for pod in pods}) == 3, "each has an address of its own"
        assert {pod.spec.node_name for pod in pods} == {"node-1"}

        await client.delete(Deployment, "web", namespace=namespace)

        async def is_empty() -> bool:
            return not await client.list(Pod, namespace=namespace)

        await eventually(is_empty, what="the pods, which had 30 s of grace, are gone")


async def test_a_stateful_set_grows_ordinal_by_ordinal(cluster: ControlPlane) -> None:
    async with shop(cluster) as (client, namespace):
        spec = StatefulSetSpec(replicas=3, service_name="db", selector=SELECTOR, template=template())
        await client.create(StatefulSet(metadata=ObjectMeta(name="db", namespace=namespace), spec=spec))

        async def are_ready() -> list[Pod]:
            pods = await client.list(Pod, namespace=namespace)
            assert sum(is_true(pod.status.conditions, "Ready") for pod in pods) == 3
            return list(pods)

        pods = {pod.metadata.name: pod for pod in await eventually(are_ready)}
        started = [pods[f"db-{ordinal}"].status.start_time for ordinal in range(3)]
        versions = [int(pods[f"db-{ordinal}"].metadata.resource_version or "") for ordinal in range(3)]
        assert None not in started
        assert versions == sorted(versions), "each was ready before the next one was made"


async def test_a_job_completes_or_fails_as_its_pods_do(cluster: ControlPlane) -> None:
    async with shop(cluster) as (client, namespace):
        for name, image in (("good", "tool"), ("bad", "broken")):
            spec = JobSpec(template=template(image, "Never"), backoff_limit=0)
            await client.create(Job(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec))

        async def have_ended() -> bool:
            good, bad = [await client.get(Job, name, namespace=namespace) for name in ("good", "bad")]
            return is_true(good.status.conditions, "Complete") and is_true(bad.status.conditions, "Failed")

        await eventually(have_ended)


async def test_a_pod_whose_image_cannot_be_had_never_starts(cluster: ControlPlane) -> None:
    async with shop(cluster) as (client, namespace):
        pod = Pod(metadata=ObjectMeta(name="a", namespace=namespace), spec=template("missing").spec)
        await client.create(pod)

        async def waits() -> bool:
            statuses = (await client.get(Pod, "a", namespace=namespace)).status.container_statuses or []
            return [each.state.waiting and each.state.waiting.reason for each in statuses] == [
                "ImagePullBackOff"
            ]

        await eventually(waits)
        await client.delete(Pod, "a", namespace=namespace)
        await eventually(lambda: _is_gone(client, namespace))


async def test_there_is_a_node_that_is_ready_and_afterwards_there_is_none(cluster: ControlPlane) -> None:
    async with Client(Config.load(cluster.kubeconfig)) as client:
        async with Node(client, "here"):
            node = await client.get(core.v1.Node, "here")
            assert is_true(node.status.conditions, "Ready")
        with pytest.raises(NotFound):
            await client.get(core.v1.Node, "here")


async def _is_gone(client: Client, namespace: str) -> bool:
    try:
        await client.get(Pod, "a", namespace=namespace)
    except NotFound:
        return True
    return False
