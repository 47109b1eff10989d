"""The promises of ``builtin/namespaces.py``, on a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.api.forms import untyped
from setpoint.api.meta import ObjectMeta
from setpoint.api.names import Resource
from setpoint.api.patches import MergePatch
from setpoint.api.times import Time
from setpoint.builtin.namespaces import Left, conditions_of, deletable, merged
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, Secret
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster, serve_kind

pytestmark = pytest.mark.virtual_time

NAMES = ["namespace-controller"]
REASONS = {
    "NamespaceDeletionDiscoveryFailure": "ResourcesDiscovered",
    "NamespaceDeletionGroupVersionParsingFailure": "ParsedGroupVersions",
    "NamespaceDeletionContentFailure": "ContentDeleted",
    "NamespaceContentRemaining": "ContentRemoved",
    "NamespaceFinalizersRemaining": "ContentHasNoFinalizers",
}


async def make(client: Client, name: str = "shop") -> None:
    await client.create(Namespace(metadata=ObjectMeta(name=name)))


async def gone(client: Client, name: str = "shop") -> None:
    async def is_gone() -> bool:
        return await ignore_not_found(client.get(Namespace, name)) is None

    await eventually(is_gone)


async def reasons(client: Client) -> dict[str, Any]:
    namespace = await client.get(Namespace, "shop")
    return {each.type: each.reason for each in namespace.status.conditions or ()}


async def test_everything_in_it_goes_and_then_the_namespace() -> None:
    async with cluster(NAMES) as client:
        await make(client)
        await serve_kind(client, "Thing")
        thing = {"apiVersion": "example.com/v1", "kind": "Thing"}
        await client.create({**thing, "metadata": {"name": "t", "namespace": "shop"}})
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="shop")))
        await client.create(Secret(metadata=ObjectMeta(name="s", namespace="shop")))
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
        await client.delete(Namespace, "shop")
        await gone(client)
        assert not await client.list(untyped("example.com/v1", "Thing"))
        assert [each.metadata.namespace for each in await client.list(ConfigMap)] == ["default"]


async def test_what_has_finalizers_is_waited_for_and_the_conditions_say_so() -> None:
    async with cluster(NAMES) as client:
        await make(client)
        metadata = ObjectMeta(name="stuck", namespace="shop", finalizers=["x.y/z"])
        await client.create(ConfigMap(metadata=metadata))
        await client.delete(Namespace, "shop")

        async def says_why() -> bool:
            return await reasons(client) == {
                **REASONS,
                "NamespaceContentRemaining": "SomeResourcesRemain",
                "NamespaceFinalizersRemaining": "SomeFinalizersRemain",
            }

        await eventually(says_why)
        await asyncio.sleep(60)
        namespace = await client.get(Namespace, "shop")
        assert [each.message for each in namespace.status.conditions or ()][-2:] == [
            "Some resources are remaining: configmaps. has 1 resource instances",
            "Some content in the namespace has finalizers remaining: x.y/z in 1 resource instances",
        ]
        patch = MergePatch({"metadata": {"finalizers": []}})
        await client.patch(ConfigMap, "stuck", patch, namespace="shop")
        await gone(client)


async def test_pods_go_before_everything_else() -> None:
    async with cluster(NAMES) as client:
        await make(client)
        metadata = ObjectMeta(name="p", namespace="shop", finalizers=["x.y/z"])
        spec = PodSpec(containers=[Container(name="c", image="i")])
        await client.create(Pod(metadata=metadata, spec=spec))
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="shop")))
        await client.delete(Namespace, "shop")

        async def told() -> bool:
            return await reasons(client) == REASONS

        await eventually(told)
        await asyncio.sleep(30)
        assert await client.get(ConfigMap, "c", namespace="shop"), "the pod may need it still"
        await client.patch(Pod, "p", MergePatch({"metadata": {"finalizers": []}}), namespace="shop")
        await gone(client)


async def test_a_namespace_that_is_not_deleted_is_left_alone() -> None:
    async with cluster(NAMES) as client:
        await make(client)
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="shop")))
        await asyncio.sleep(60)
        assert await client.get(ConfigMap, "c", namespace="shop")


def test_the_time_of_a_condition_is_when_its_status_changed() -> None:
    first, later = Time.parse("2030-01-01T00:00:00Z"), Time.parse("2030-01-01T00:01:00Z")
    old = merged([], conditions_of(Left()), first)
    left = Left()
    left.objects["configmaps."] = 2
    new = {each.type: each for each in merged(old, conditions_of(left), later)}
    assert new["NamespaceContentRemaining"].last_transition_time == later
    assert new["NamespaceFinalizersRemaining"].last_transition_time == first


def test_an_error_is_a_condition_and_keeps_the_namespace() -> None:
    left = Left(errors=["no"])
    assert not left.is_empty
    failure = conditions_of(left)[2]
    assert (failure.status, failure.reason) == ("True", "ContentDeletionFailed")


def test_a_kind_in_several_versions_is_emptied_once() -> None:
    resources = [
        Resource("a", "v2", "Thing", "things", verbs=("delete", "list")),
        Resource("a", "v1", "Thing", "things", verbs=("delete", "list")),
        Resource("a", "v1", "Wide", "wides", namespaced=False, verbs=("delete", "list")),
    ]
    assert deletable(resources) == resources[:1]
