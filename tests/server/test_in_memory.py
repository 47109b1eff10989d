"""Client and server in one process, without a socket and in virtual time: they meet as bytes all the same."""

from __future__ import annotations

import asyncio

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client
from setpoint.errors import Conflict, NotFound
from setpoint.kube.core.v1 import ConfigMap
from setpoint.server.server import ApiServer

pytestmark = pytest.mark.virtual_time


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


async def test_objects_are_written_read_changed_and_deleted() -> None:
    async with ApiServer() as server, Client(transport=server.transport()) as client:
        made = await client.create(config_map("a", k="v"))
        assert (await client.get(ConfigMap, "a", namespace="default")).metadata.uid == made.metadata.uid
        stale = await client.get(ConfigMap, "a", namespace="default")
        made.data = {"k": "w"}
        await client.update(made)
        stale.data = {"k": "x"}
        with pytest.raises(Conflict):
            await client.update(stale)
        applied = await client.apply(config_map("a", k="y"), force=True)
        assert applied.data == {"k": "y"}
        assert [one.metadata.name async for one in client.list(ConfigMap, namespace="default")] == ["a"]
        await client.delete(ConfigMap, "a", namespace="default")
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "a", namespace="default")


async def test_a_watch_outlives_its_connections() -> None:
    """The server ends each after half an hour or more; the client goes on from where it was."""
    async with ApiServer() as server, Client(transport=server.transport()) as client:
        began = asyncio.get_running_loop().time()
        async with client.watch(ConfigMap, namespace="default") as changes:
            for number in range(3):
                await asyncio.sleep(4000)
                await client.create(config_map(f"c{number}"))
                change = await anext(aiter(changes))
                assert (change.type, change.object.metadata.name) == ("ADDED", f"c{number}")
        assert asyncio.get_running_loop().time() - began >= 12_000
