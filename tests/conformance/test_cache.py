"""The cache against the real kube-apiserver: syncing, following, and all that goes wrong on the way."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from setpoint import errors
from setpoint.api import CustomResource, Model, ObjectMeta, crd_of
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.meta import OwnerReference
from setpoint.api.names import Key
from setpoint.cache import Cache, CachedReader, Seen, Timing
from setpoint.client import Client, Config
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.core.v1 import ConfigMap, Namespace, Secret
from setpoint.kube.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from setpoint.testing.kube import ControlPlane
from setpoint.testing.proxy import Proxy
from setpoint.testing.waiting import eventually
from tests.conformance.planes import NewPlane

QUICK = Timing(first_wait=0.05, longest_wait=0.5)


class LampSpec(Model):
    colour: str = "white"


class Lamp(CustomResource, group="light.setpoint.dev", version="v1"):
    """A kind that comes and goes."""

    spec: LampSpec


@asynccontextmanager
async def connected(kube: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    """An admin's client, and a namespace of its own."""
    async with Client(Config.from_kubeconfig(kube.kubeconfig)) as client:
        yield client, await new_namespace(client)


async def new_namespace(client: Client) -> str:
    namespace = f"test-{secrets.token_hex(4)}"
    await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    return namespace


def settings(name: str, labels: dict[str, str] | None = None, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels), data=data)


def lose(proxy: Proxy) -> None:
    """Break every connection and let nobody in."""
    proxy.refuse()
    proxy.cut()


def brief(heard: list[Seen]) -> list[str]:
    return [f"{each.type} {each.key.name}" for each in heard]


def names(objects: list[ConfigMap]) -> list[str | None]:
    return [each.metadata.name for each in objects]


@asynccontextmanager
async def proxied(kube: ControlPlane) -> AsyncIterator[tuple[Client, Proxy]]:
    """A client whose connections pass through a proxy."""
    config = Config.from_kubeconfig(kube.kubeconfig)
    async with Proxy.of(config) as proxy, Client(proxy.config(config)) as client:
        yield client, proxy


# Syncing and following


@pytest.mark.parametrize("stream_lists", [True, False], ids=["streamed", "paged"])
async def test_a_cache_holds_what_is_there_and_follows_it(kube: ControlPlane, stream_lists: bool) -> None:
    async with connected(kube) as (client, namespace):
        for number in range(25):
            await client.create(settings(f"c-{number:02}", x="1"), namespace=namespace)
        heard: list[Seen] = []
        async with Cache(client, stream_lists=stream_lists, page_size=10) as cache:
            declaration = cache.declare(ConfigMap, namespaces=[namespace])
            declaration.listen(heard.append)
            await declaration.wait_synced(timeout=30)
            assert all(each.initial for each in heard)
            assert names(await cache.list(ConfigMap)) == [
                each.metadata.name for each in await client.list(ConfigMap, namespace=namespace)
            ]
            heard.clear()
            made = await client.create(settings("new"), namespace=namespace)
            made.data = {"x": "2"}
            updated = await client.update(made)
            await client.delete(ConfigMap, "c-00", namespace=namespace)
            await eventually(lambda: len(heard) == 3)
            assert brief(heard) == ["ADDED new", "UPDATED new", "DELETED c-00"]
            read = await cache.get(ConfigMap, "new", namespace=namespace)
            assert read == updated
            read.data = {"x": "3"}
            assert (await client.update(read)).data == {"x": "3"}, "what was read can be written"


@pytest.mark.parametrize("stream_lists", [True, False], ids=["streamed", "paged"])
async def test_every_form_and_selection_is_read_from_one_watch(
    kube: ControlPlane, stream_lists: bool
) -> None:
    async with connected(kube) as (client, namespace):
        owner = await client.create(settings("owner"), namespace=namespace)
        reference = OwnerReference(
            api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid or ""
        )
        child = settings("child", {"app": "web"}, colour="red")
        child.metadata.owner_references = [reference]
        await client.create(child, namespace=namespace)
        async with Cache(client, stream_lists=stream_lists) as cache:
            cache.declare(ConfigMap, namespaces=[namespace], indexes=["data.colour"])
            await cache.wait_synced()
            assert names(await cache.list(ConfigMap, labels="app=web")) == ["child"]
            assert names(await cache.list(ConfigMap, owner=owner.metadata.uid)) == ["child"]
            assert names(await cache.list(ConfigMap, index={"data.colour": "red"})) == ["child"]
            assert names(await cache.list(ConfigMap, fields="metadata.name=owner")) == ["owner"]
            plain = await cache.get(untyped("v1", "ConfigMap"), "child", namespace=namespace)
            assert plain == await client.get(untyped("v1", "ConfigMap"), "child", namespace=namespace)
            partial = await cache.get(metadata_only(ConfigMap), "child", namespace=namespace)
            live = await client.get(metadata_only(ConfigMap), "child", namespace=namespace)
            assert partial == live
            assert len(cache.stats()) == 1


async def test_secrets_are_held_without_their_data(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        secret = Secret(metadata=ObjectMeta(name="s"), string_data={"password": "hidden"})
        await client.create(secret, namespace=namespace)
        async with Cache(client) as cache:
            cache.declare(Secret, namespaces=[namespace])
            await cache.wait_synced()
            held = cache.peek(metadata_only(Secret), Key(namespace, "s"))
            assert held is not None
            assert b"password" not in held.data.replace(b"f:password", b"")
            assert (await cache.get(Secret, "s", namespace=namespace)).data == {"password": b"hidden"}


async def test_an_object_held_without_its_managed_fields_can_be_updated(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        await client.apply(untyped_settings("a", x="1"), namespace=namespace, field_manager="first")
        async with Cache(client) as cache:
            cache.declare(ConfigMap, namespaces=[namespace], strip_managed_fields=True)
            await cache.wait_synced()
            read = await cache.get(ConfigMap, "a", namespace=namespace)
            assert read.metadata.managed_fields is None
            read.metadata.labels = {"app": "web"}
            updated = await client.update(read, field_manager="second")
            managers = {entry.manager for entry in updated.metadata.managed_fields or []}
            assert managers == {"first", "second"}, "the server keeps what it knew"


def untyped_settings(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_namespaces_come_and_go_while_running(kube: ControlPlane) -> None:
    async with connected(kube) as (client, first):
        second = await new_namespace(client)
        for namespace in (first, second):
            await client.create(settings("a"), namespace=namespace)
        heard: list[Seen] = []
        async with Cache(client) as cache:
            declaration = cache.declare(ConfigMap, namespaces=[first])
            declaration.listen(heard.append)
            await declaration.wait_synced()
            declaration.add_namespace(second)
            await declaration.wait_synced()
            assert Key(second, "a") in {each.key for each in heard}
            declaration.remove_namespace(first)
            heard.clear()
            for namespace in (first, second):
                await client.create(settings("b"), namespace=namespace)
            await eventually(lambda: len(heard) == 1)
            assert heard[0].key == Key(second, "b")
            assert {each.metadata.namespace for each in await cache.list(ConfigMap)} == {second}


# What goes wrong


async def test_a_connection_that_is_cut_goes_on_where_it_was(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace), proxied(kube) as (far, proxy):
        heard: list[Seen] = []
        async with Cache(far, timing=QUICK) as cache:
            cache.declare(ConfigMap, namespaces=[namespace]).listen(heard.append)
            await cache.wait_synced()
            heard.clear()
            lose(proxy)
            await client.create(settings("meanwhile"), namespace=namespace)
            await eventually(lambda: cache.stats()[0].problem is not None)
            await proxy.resume()
            await eventually(lambda: brief(heard) == ["ADDED meanwhile"])
            assert cache.stats()[0].problem is None


@pytest.mark.parametrize("stream_lists", [True, False], ids=["streamed", "paged"])
async def test_a_watch_that_dies_silently_is_noticed(kube: ControlPlane, stream_lists: bool) -> None:
    """Half open: the proxy passes nothing more on, and closes nothing."""
    timing = replace(QUICK, liveness=2.0)
    async with (
        connected(kube) as (client, namespace),
        proxied(kube) as (far, proxy),
        Cache(far, timing=timing, stream_lists=stream_lists) as cache,
    ):
        cache.declare(ConfigMap, namespaces=[namespace])
        await cache.wait_synced()
        proxy.strand()
        await client.create(settings("unheard"), namespace=namespace)
        await eventually(lambda: cache.peek(ConfigMap, Key(namespace, "unheard")) is not None)


async def test_a_list_that_dies_silently_is_noticed(kube: ControlPlane) -> None:
    """The connection is lost before the first answer."""
    async with (
        connected(kube) as (client, namespace),
        proxied(kube) as (far, proxy),
        Cache(far, timing=replace(QUICK, progress=2.0)) as cache,
    ):
        await client.create(settings("a"), namespace=namespace)
        await far.get(ConfigMap, "a", namespace=namespace)  # a connection, to be used again
        proxy.strand()
        cache.declare(ConfigMap, namespaces=[namespace])
        await cache.wait_synced(timeout=30)


@pytest.mark.deadline(120)
@pytest.mark.parametrize("stream_lists", [True, False], ids=["streamed", "paged"])
async def test_an_expired_watch_is_swapped_in_whole_and_missed_deletions_are_delivered(
    new_plane: NewPlane, stream_lists: bool
) -> None:
    with new_plane() as own:
        async with connected(own) as (client, namespace), proxied(own) as (far, proxy):
            for name in ("gone", "again", "stays"):
                await client.create(settings(name), namespace=namespace)
            heard: list[Seen] = []
            async with Cache(far, timing=QUICK, stream_lists=stream_lists) as cache:
                cache.declare(ConfigMap, namespaces=[namespace]).listen(heard.append)
                await cache.wait_synced()
                before = int(cache.stats()[0].version)
                heard.clear()
                lose(proxy)
                await client.delete(ConfigMap, "gone", namespace=namespace)
                await client.delete(ConfigMap, "again", namespace=namespace)
                await client.create(settings("again"), namespace=namespace)
                await client.create(settings("new"), namespace=namespace)
                await asyncio.to_thread(own.compact)
                await asyncio.to_thread(own.stop_api_server)
                await asyncio.to_thread(own.start_api_server)
                await proxy.resume()
                await eventually(lambda: len(heard) >= 4)
                assert sorted(brief(heard)) == ["ADDED again", "ADDED new", "DELETED again", "DELETED gone"]
                assert brief(heard).index("DELETED again") < brief(heard).index("ADDED again")
                held = names(await cache.list(ConfigMap))
                assert held == names(await client.list(ConfigMap, namespace=namespace))
                assert int(cache.stats()[0].version) > before
                await client.create(settings("after"), namespace=namespace)
                await eventually(lambda: brief(heard)[-1] == "ADDED after")
                assert len(heard) == 5


@pytest.mark.deadline(120)
async def test_a_restart_of_the_server_loses_nothing(new_plane: NewPlane) -> None:
    with new_plane() as own:
        async with connected(own) as (client, namespace):
            heard: list[Seen] = []
            async with Cache(client, timing=QUICK) as cache:
                cache.declare(ConfigMap, namespaces=[namespace]).listen(heard.append)
                await cache.wait_synced()
                heard.clear()
                await client.create(settings("before"), namespace=namespace)
                await asyncio.to_thread(own.stop_api_server)
                await eventually(lambda: cache.stats()[0].problem is not None)
                await asyncio.to_thread(own.start_api_server)
                await client.create(settings("after"), namespace=namespace)
                await eventually(lambda: len(heard) == 2)
                assert brief(heard) == ["ADDED before", "ADDED after"]


async def test_a_missing_permission_is_named_and_its_grant_is_noticed(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        user = f"user-{secrets.token_hex(4)}"
        config = Config.from_kubeconfig(kube.kubeconfig_for(kube.client_certificate(user)))
        async with Client(config) as limited, Cache(limited, timing=QUICK) as cache:
            forbidden = cache.declare(ConfigMap, namespaces=[namespace])
            with pytest.raises(errors.NotSynced) as caught:
                await forbidden.wait_synced(timeout=1)
            said = str(caught.value)
            assert f'User "{user}" cannot watch resource "configmaps"' in said
            rule = '- {apiGroups: [""], resources: ["configmaps"], verbs: [get, list, watch]}'
            assert f"add to the rules of a Role in namespace {namespace}: {rule}" in said
            await grant(client, user, PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["watch"]))
            await forbidden.wait_synced(timeout=30)
            assert forbidden.problems == ()
            assert await cache.list(ConfigMap) == []


async def test_list_without_watch_is_named_too(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        user = f"user-{secrets.token_hex(4)}"
        await grant(client, user, PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["list"]))
        config = Config.from_kubeconfig(kube.kubeconfig_for(kube.client_certificate(user)))
        async with Client(config) as limited, Cache(limited, timing=QUICK, stream_lists=False) as cache:
            declaration = cache.declare(ConfigMap, namespaces=[namespace])
            await declaration.wait_synced(timeout=30)
            await eventually(lambda: bool(declaration.problems))
            assert "cannot watch" in str(declaration.problems[0])


async def grant(client: Client, user: str, rule: PolicyRule) -> None:
    await client.create(ClusterRole(metadata=ObjectMeta(name=user), rules=[rule]))
    await client.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name=user),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=user),
            subjects=[Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")],
        )
    )


async def test_a_kind_that_is_not_installed_is_named_and_its_coming_and_going_is_noticed(
    kube: ControlPlane,
) -> None:
    async with connected(kube) as (client, namespace):
        heard: list[Seen] = []
        async with Cache(client, timing=QUICK) as cache:
            lamps = cache.declare(Lamp)
            plain = cache.declare(untyped("light.setpoint.dev/v1", "Lamp"), labels="app=web")
            lamps.listen(heard.append)
            with pytest.raises(errors.NotSynced, match="CustomResourceDefinition"):
                await lamps.wait_synced(timeout=1)
            await client.create(crd_of(Lamp))
            try:
                await lamps.wait_synced(timeout=30)
                await plain.wait_synced(timeout=30)
                await client.create(
                    Lamp(metadata=ObjectMeta(name="desk"), spec=LampSpec(colour="red")), namespace=namespace
                )
                await eventually(lambda: brief(heard) == ["ADDED desk"])
                assert (await cache.get(Lamp, "desk", namespace=namespace)).spec.colour == "red"
            finally:
                await client.delete(CustomResourceDefinition, "lamps.light.setpoint.dev")
            await eventually(lambda: brief(heard)[-1:] == ["DELETED desk"])
            await eventually(lambda: bool(lamps.problems))


# Reading one's own writes


async def test_reads_never_go_behind_our_own_writes(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace), Cache(client) as cache:
        cache.declare(ConfigMap, namespaces=[namespace])
        await cache.wait_synced()
        reader = CachedReader(cache)
        key = Key(namespace, "mine")
        stale = 0
        for number in range(100):
            wish = untyped_settings("mine", n=str(number))
            made = await client.apply(wish, namespace=namespace)
            reader.wrote(ConfigMap, key, made["metadata"]["resourceVersion"])
            held = cache.peek(ConfigMap, key)
            stale += held is None or f'"n":"{number}"'.encode() not in held.data
            read = await reader.get(ConfigMap, "mine", namespace=namespace)
            assert read.data == {"n": str(number)}
        assert stale, "without waiting, some reads would have been behind"
        listed = await reader.list(ConfigMap, namespace=namespace)
        uid = next(each.metadata.uid or "" for each in listed if each.metadata.name == "mine")
        await client.delete(ConfigMap, "mine", namespace=namespace)
        reader.deleted(ConfigMap, key, uid)
        with pytest.raises(errors.NotFound):
            await reader.get(ConfigMap, "mine", namespace=namespace)
        assert len(reader.writes) == 0


async def test_a_write_that_changes_nothing_holds_no_read_back(kube: ControlPlane) -> None:
    async with connected(kube) as (client, namespace):
        made = await client.create(settings("a", x="1"), namespace=namespace)
        async with Cache(client) as cache:
            cache.declare(ConfigMap, namespaces=[namespace])
            await cache.wait_synced()
            reader = CachedReader(cache, patience=0.0)
            again = await client.update(made)
            reader.wrote(ConfigMap, Key(namespace, "a"), again.metadata.resource_version or "")
            assert await reader.caught_up([ConfigMap], timeout=0)
