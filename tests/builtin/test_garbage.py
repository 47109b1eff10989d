"""The promises of ``builtin/garbage.py``, on a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.api.forms import untyped
from setpoint.api.meta import ObjectMeta, OwnerReference
from setpoint.api.model import to_wire
from setpoint.api.names import Resource
from setpoint.api.patches import MergePatch
from setpoint.builtin.garbage import collected
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import ConfigMap, Event, Namespace
from setpoint.net.transport import Request, Response, Transport
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster, serve_kind

pytestmark = pytest.mark.virtual_time

NAMES = ["garbage-collector-controller"]


def owner(obj: ConfigMap | dict[str, Any], *, blocks: bool | None = None) -> OwnerReference:
    if isinstance(obj, dict):
        metadata = obj["metadata"]
        return OwnerReference(
            api_version=obj["apiVersion"], kind=obj["kind"], name=metadata["name"], uid=metadata["uid"]
        )
    return OwnerReference(
        api_version="v1",
        kind="ConfigMap",
        name=obj.metadata.name or "",
        uid=obj.metadata.uid or "",
        block_owner_deletion=blocks,
    )


async def make(
    client: Client,
    name: str,
    *owners: OwnerReference,
    namespace: str = "default",
    finalizers: tuple[str, ...] = (),
) -> ConfigMap:
    metadata = ObjectMeta(name=name, namespace=namespace)
    metadata.owner_references = list(owners) or None
    metadata.finalizers = list(finalizers) or None
    return await client.create(ConfigMap(metadata=metadata))


async def read(client: Client, name: str, namespace: str = "default") -> ConfigMap | None:
    return await ignore_not_found(client.get(ConfigMap, name, namespace=namespace))


async def gone(client: Client, *names: str, namespace: str = "default") -> None:
    async def are_gone() -> bool:
        return [await read(client, name, namespace) for name in names] == [None] * len(names)

    await eventually(are_gone, what=f"{names} are gone")


async def settled(client: Client) -> None:
    """Long enough for the collector to have done whatever it wants to."""
    await asyncio.sleep(60)


async def test_dependents_go_after_their_owner_in_the_background() -> None:
    async with cluster(NAMES) as client:
        top = await make(client, "top")
        middle = await make(client, "middle", owner(top))
        await make(client, "leaf", owner(middle))
        await settled(client)
        assert await read(client, "leaf"), "nothing is collected while its owner is there"
        await client.delete(ConfigMap, "top", namespace="default")
        await gone(client, "top", "middle", "leaf")


async def test_an_object_whose_owner_never_was_is_collected() -> None:
    async with cluster(NAMES) as client:
        absent = OwnerReference(api_version="v1", kind="ConfigMap", name="nobody", uid="no-such-uid")
        await make(client, "child", absent)
        await gone(client, "child")


async def test_another_of_the_owners_name_is_not_the_owner() -> None:
    async with cluster(NAMES) as client:
        first = await make(client, "name")
        await client.delete(ConfigMap, "name", namespace="default")
        await make(client, "name")
        await make(client, "child", owner(first))
        await gone(client, "child")
        assert await read(client, "name")


async def test_an_object_with_an_owner_left_loses_only_the_reference() -> None:
    async with cluster(NAMES) as client:
        one, two = await make(client, "one"), await make(client, "two")
        await make(client, "child", owner(one), owner(two))
        await client.delete(ConfigMap, "one", namespace="default")

        async def has_one_owner() -> bool:
            child = await client.get(ConfigMap, "child", namespace="default")
            return [each.name for each in child.metadata.owner_references or ()] == ["two"]

        await eventually(has_one_owner)


async def test_in_the_foreground_an_owner_waits_for_those_that_block_it() -> None:
    async with cluster(NAMES) as client:
        top = await make(client, "top")
        await make(client, "blocking", owner(top, blocks=True), finalizers=("x.y/z",))
        await make(client, "idle", owner(top))
        await client.delete(ConfigMap, "top", namespace="default", propagation="Foreground")
        await gone(client, "idle")
        await settled(client)
        waiting = await read(client, "top")
        assert waiting
        assert waiting.metadata.finalizers == ["foregroundDeletion"]
        blocking = await read(client, "blocking")
        assert blocking
        assert blocking.metadata.deletion_timestamp
        await client.patch(blocking, MergePatch({"metadata": {"finalizers": []}}))
        await gone(client, "top", "blocking")


async def test_in_the_foreground_dependents_of_dependents_go_first() -> None:
    async with cluster(NAMES) as client:
        top = await make(client, "top")
        middle = await make(client, "middle", owner(top, blocks=True))
        await make(client, "leaf", owner(middle, blocks=True), finalizers=("x.y/z",))
        await client.delete(ConfigMap, "top", namespace="default", propagation="Foreground")
        await settled(client)
        assert await read(client, "top")
        assert await read(client, "middle")
        leaf = await read(client, "leaf")
        assert leaf
        await client.patch(leaf, MergePatch({"metadata": {"finalizers": []}}))
        await gone(client, "top", "middle", "leaf")


async def test_what_is_made_for_an_owner_that_waits_is_deleted_too() -> None:
    async with cluster(NAMES) as client:
        top = await make(client, "top")
        await make(client, "stuck", owner(top, blocks=True), finalizers=("x.y/z",))
        await client.delete(ConfigMap, "top", namespace="default", propagation="Foreground")
        await settled(client)
        await make(client, "late", owner(top, blocks=True))
        await gone(client, "late")
        assert await read(client, "top")


@pytest.mark.parametrize("change", ["lets it go", "blocks it no more"])
async def test_an_owner_that_waits_goes_when_a_dependent_no_longer_holds_it(change: str) -> None:
    async with cluster(NAMES) as client:
        top = await make(client, "top")
        child = await make(client, "child", owner(top, blocks=True), finalizers=("x.y/z",))
        await client.delete(ConfigMap, "top", namespace="default", propagation="Foreground")
        await settled(client)
        assert await read(client, "top")
        left = [] if change == "lets it go" else [to_wire(owner(top, blocks=False))]
        await client.patch(child, MergePatch({"metadata": {"ownerReferences": left}}))
        await gone(client, "top")
        assert await read(client, "child")


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
async def test_a_circle_of_owners_goes_with_any_of_them(policy: Any) -> None:
    async with cluster(NAMES) as client:
        a = await make(client, "a")
        b = await make(client, "b", owner(a, blocks=True))
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "b",
            "uid": b.metadata.uid,
            "blockOwnerDeletion": True,
        }
        await client.patch(a, MergePatch({"metadata": {"ownerReferences": [reference]}}))
        await settled(client)
        assert await read(client, "a")
        await client.delete(ConfigMap, "a", namespace="default", propagation=policy)
        await gone(client, "a", "b")


async def test_orphans_stay_and_name_their_owner_no_more() -> None:
    async with cluster(NAMES) as client:
        top, other = await make(client, "top"), await make(client, "other")
        for number in range(45):
            await make(client, f"child-{number}", owner(top, blocks=True), owner(other))
        await client.delete(ConfigMap, "top", namespace="default", propagation="Orphan")
        await gone(client, "top")
        await settled(client)
        for number in range(45):
            child = await client.get(ConfigMap, f"child-{number}", namespace="default")
            assert [each.name for each in child.metadata.owner_references or ()] == ["other"]


async def test_an_owner_in_another_namespace_is_none_and_a_warning_says_so() -> None:
    async with cluster(NAMES) as client:
        await client.create(Namespace(metadata=ObjectMeta(name="other")))
        top = await make(client, "own-x")
        await make(client, "dep-x", owner(top), namespace="other")
        await gone(client, "dep-x", namespace="other")

        async def told() -> list[Event]:
            return list(await client.list(Event, namespace="other"))

        (event,) = await eventually(told)
        uid = top.metadata.uid
        assert (event.type, event.reason) == ("Warning", "OwnerRefInvalidNamespace")
        assert event.message == (
            f"ownerRef [v1/ConfigMap, namespace: other, name: own-x, uid: {uid}] "
            'does not exist in namespace "other"'
        )
        assert event.involved_object.name == "dep-x"


async def test_what_belongs_to_no_namespace_is_never_collected_for_an_owner_in_one() -> None:
    async with cluster(NAMES) as client:
        top = await make(client, "top")
        metadata = ObjectMeta(name="cluster-wide")
        metadata.owner_references = [owner(top)]
        await client.create(Namespace(metadata=metadata))
        await client.delete(ConfigMap, "top", namespace="default")
        await settled(client)
        assert not (await client.get(Namespace, "cluster-wide")).metadata.deletion_timestamp


async def test_kinds_that_are_defined_later_own_and_are_owned() -> None:
    async with cluster(NAMES) as client:
        await serve_kind(client, "Thing")
        thing = untyped("example.com/v1", "Thing")

        async def made(name: str, **metadata: Any) -> dict[str, Any]:
            wire = {"apiVersion": "example.com/v1", "kind": "Thing"}
            return await client.create(
                {**wire, "metadata": {"name": name, "namespace": "default", **metadata}}
            )

        top = await made("top")
        await make(client, "child", owner(top))
        reference = {key: top["metadata"][key] for key in ("name", "uid")}
        await made("thing", ownerReferences=[{"apiVersion": "example.com/v1", "kind": "Thing", **reference}])
        await settled(client)
        assert await read(client, "child")
        await client.delete(thing, "top", namespace="default", propagation="Foreground")
        await gone(client, "child")

        async def things_are_gone() -> bool:
            return not await client.list(thing, namespace="default")

        await eventually(things_are_gone)


async def test_dependents_of_a_kind_that_is_no_longer_defined_are_kept_while_nothing_is_known() -> None:
    async with cluster(NAMES) as client:
        unknown = OwnerReference(api_version="example.com/v1", kind="Thing", name="x", uid="u")
        await make(client, "child", unknown)
        await settled(client)
        assert await read(client, "child")


async def test_a_start_finds_what_was_left_before() -> None:
    async with cluster([]) as client:
        absent = OwnerReference(api_version="v1", kind="ConfigMap", name="nobody", uid="no-such-uid")
        await make(client, "child", absent)
        assert await read(client, "child")
        async with cluster(NAMES, client=client):
            await gone(client, "child")


def slow_about_things(transport: Transport) -> Transport:
    async def send(request: Request) -> Response:
        if "/things" in request.target:
            await asyncio.sleep(5)
        return await transport(request)

    return send


async def test_no_owner_goes_before_every_kind_was_listed() -> None:
    """What it would orphan, or wait for, may be of the last kind of all."""
    async with cluster([]) as client:
        await serve_kind(client, "Thing")
        top = await make(client, "top")
        reference = to_wire(owner(top, blocks=True))
        metadata = {"name": "thing", "namespace": "default", "ownerReferences": [reference]}
        await client.create({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata})
        await client.delete(ConfigMap, "top", namespace="default", propagation="Orphan")
        async with cluster(NAMES, client=client.through(slow_about_things)):
            await gone(client, "top")
            await settled(client)
            thing = await client.get(untyped("example.com/v1", "Thing"), "thing", namespace="default")
            assert "ownerReferences" not in thing["metadata"]


def test_of_a_kind_in_several_versions_the_preferred_one_is_watched() -> None:
    verbs = ("create", "delete", "get", "list", "watch")
    resources = [
        Resource("", "v1", "Event", "events", verbs=verbs),
        Resource("a", "v2", "Thing", "things", verbs=verbs),
        Resource("a", "v1", "Thing", "things", verbs=verbs),
        Resource("a", "v1", "Review", "reviews", verbs=("create",)),
    ]
    assert [each.version for each in collected(resources).values()] == ["v2"]
