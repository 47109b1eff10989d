"""All built-in controllers together: which there are, and that they leave each other in peace."""

from __future__ import annotations

import asyncio

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.builtin.controllers import ALL, add_controllers
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import ConfigMap, Namespace, Service, ServicePort, ServiceSpec
from setpoint.manager.manager import Manager
from setpoint.server.server import ApiServer
from setpoint.testing.waiting import eventually
from tests.builtin.running import NO_NODE, cluster


@pytest.mark.virtual_time
async def test_an_unknown_controller_is_refused_and_the_known_ones_are_named() -> None:
    async with ApiServer() as server, Client(transport=server.transport()) as client:
        manager = Manager(client=client)
        with pytest.raises(ValueError, match="no controller no-such: choose among clusterrole"):
            add_controllers(manager, ["no-such"])
        assert not manager.controllers


@pytest.mark.virtual_time
async def test_none_is_an_api_server_alone() -> None:
    async with cluster([]) as client:
        await asyncio.sleep(60)
        assert not await client.list(ConfigMap)


@pytest.mark.virtual_time
async def test_where_nothing_happens_nothing_is_written() -> None:
    async with cluster(NO_NODE) as client:
        web = ServiceSpec(selector={"app": "web"}, ports=[ServicePort(port=80)])
        await client.create(Service(metadata=ObjectMeta(name="web", namespace="default"), spec=web))
        await asyncio.sleep(120)
        before = (await client.list(Namespace)).resource_version
        await asyncio.sleep(3000)
        assert (await client.list(Namespace)).resource_version == before


@pytest.mark.virtual_time
async def test_a_namespace_ends_with_all_of_them_running() -> None:
    async with cluster(ALL) as client:
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        web = ServiceSpec(selector={"app": "web"}, ports=[ServicePort(port=80)])
        await client.create(Service(metadata=ObjectMeta(name="web", namespace="shop"), spec=web))
        await eventually(lambda: client.get(ConfigMap, "kube-root-ca.crt", namespace="shop"))
        await client.delete(Namespace, "shop")

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(Namespace, "shop")) is None

        await eventually(is_gone)
