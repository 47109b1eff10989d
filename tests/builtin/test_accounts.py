"""The promises of ``builtin/accounts.py``, on a server in memory."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.client.client import ignore_not_found
from setpoint.kube.core.v1 import ConfigMap, Namespace, ServiceAccount
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

pytestmark = pytest.mark.virtual_time

NAMES = ["serviceaccount-controller", "root-ca-certificate-publisher-controller"]


async def test_every_namespace_has_an_account_and_the_certificate() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        for namespace in ("default", "kube-system", "shop"):
            read = partial(client.get, namespace=namespace)
            config_map = await eventually(partial(read, ConfigMap, "kube-root-ca.crt"))
            assert config_map.data == {"ca.crt": "PEM"}
            assert list(config_map.metadata.annotations or ()) == ["kubernetes.io/description"]
            assert await eventually(partial(read, ServiceAccount, "default"))


async def test_what_is_deleted_or_changed_comes_back() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        account = await eventually(lambda: client.get(ServiceAccount, "default", namespace="default"))
        config_map = await eventually(
            lambda: client.get(ConfigMap, "kube-root-ca.crt", namespace="kube-public")
        )
        await client.delete(account)
        config_map.data = {"ca.crt": "other", "more": "x"}
        await client.update(config_map)

        async def is_back() -> bool:
            new = await client.get(ServiceAccount, "default", namespace="default")
            known = await client.get(ConfigMap, "kube-root-ca.crt", namespace="kube-public")
            return new.metadata.uid != account.metadata.uid and known.data == {"ca.crt": "PEM"}

        await eventually(is_back)


async def test_a_namespace_that_ends_gets_nothing_back() -> None:
    async with cluster([*NAMES, "namespace-controller"]) as client:
        await client.create(Namespace(metadata=ObjectMeta(name="shop", finalizers=None)))
        await eventually(lambda: client.get(ServiceAccount, "default", namespace="shop"))
        await client.delete(Namespace, "shop")

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(Namespace, "shop")) is None

        await eventually(is_gone)
        await asyncio.sleep(10)
        assert not await client.list(ServiceAccount, namespace="shop")
