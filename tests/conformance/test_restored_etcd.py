"""An etcd that is restored from a backup, under a cache that has seen more than the backup has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from setpoint.api.forms import form_of
from setpoint.api.names import Key
from setpoint.cache import Cache, CachedReader, Timing
from setpoint.client import Client
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.kube import ControlPlane
from setpoint.testing.waiting import eventually
from tests.conformance.test_cache import connected, lose, proxied, settings

FORM = form_of(ConfigMap)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as own:
        yield own


async def change(client: Client, namespace: str, name: str, text: str) -> ConfigMap:
    found = await client.get(ConfigMap, name, namespace=namespace)
    found.data = {"text": text}
    return await client.update(found)


def version_of(obj: ConfigMap) -> int:
    return int(obj.metadata.resource_version or 0)


async def versions(client: Client, namespace: str) -> dict[Key, str | None]:
    found = await client.list(ConfigMap, namespace=namespace)
    return {Key(namespace, each.metadata.name or ""): each.metadata.resource_version for each in found}


@pytest.mark.deadline(180)
@pytest.mark.parametrize("is_beyond", [False, True], ids=["behind", "beyond"])
async def test_after_a_restore_the_cache_is_as_the_server_is_and_mixes_no_two_pasts(
    plane: ControlPlane, is_beyond: bool
) -> None:
    """When the watch is back the server may be behind what was seen, or new writes have come beyond it."""
    async with connected(plane) as (client, namespace), proxied(plane) as (far, proxy):
        for name in ("changed", "deleted", "kept"):
            await client.create(settings(name, text="backup"), namespace=namespace)
        backup = await asyncio.to_thread(plane.back_up)
        async with Cache(far, timing=Timing(first_wait=0.05, longest_wait=0.5)) as cache:
            cache.declare(ConfigMap, namespaces=[namespace])
            await cache.wait_synced()
            reader = CachedReader(cache)
            gone = await client.get(ConfigMap, "deleted", namespace=namespace)
            await client.delete(ConfigMap, "deleted", namespace=namespace)
            reader.deleted(ConfigMap, Key(namespace, "deleted"), gone.metadata.uid or "", is_gone=True)
            await client.create(settings("late"), namespace=namespace)
            written = await change(client, namespace, "changed", "lost")
            reader.wrote(ConfigMap, Key(namespace, "changed"), written.metadata.resource_version or "")
            assert (await reader.get(ConfigMap, "changed", namespace=namespace)).data == {"text": "lost"}

            lose(proxy)
            await asyncio.to_thread(plane.restore, backup)
            newest = await change(client, namespace, "changed", "restored")
            while is_beyond and version_of(newest) <= version_of(written):
                newest = await change(client, namespace, "kept", f"after {version_of(newest)}")
            await proxy.resume()

            def held() -> dict[Key, str | None]:
                (informer,) = cache.informers(FORM, namespace)
                return {each.key: each.metadata.resource_version for each in informer.store}

            expected = await versions(client, namespace)
            await eventually(lambda: held() == expected, timeout=60, what="all is listed again")
            assert (await reader.get(ConfigMap, "changed", namespace=namespace)).data == {"text": "restored"}
            assert (await reader.get(ConfigMap, "deleted", namespace=namespace)).data == {"text": "backup"}
            assert cache.history == 1
            assert len(reader.writes) == 0, "what was written in the other past no longer counts"
            kept = await change(client, namespace, "kept", "and on")
            await eventually(lambda: held()[Key(namespace, "kept")] == kept.metadata.resource_version)
