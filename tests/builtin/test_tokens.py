"""The promises of ``builtin/tokens.py``, on a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import Secret, ServiceAccount
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

pytestmark = pytest.mark.virtual_time

NAMES = ["serviceaccount-token-controller"]
TYPE = "kubernetes.io/service-account-token"
ACCOUNT, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


async def account_of(client: Client, name: str = "robot") -> ServiceAccount:
    return await client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace="default")))


async def secret_of(client: Client, account: str = "robot", **annotations: str) -> Secret:
    metadata = ObjectMeta(name="s", namespace="default", annotations={ACCOUNT: account, **annotations})
    return await client.create(Secret(metadata=metadata, type=TYPE))


async def read(client: Client) -> Secret:
    return await client.get(Secret, "s", namespace="default")


async def filled(client: Client) -> Secret:
    async def is_filled() -> Secret | None:
        secret = await read(client)
        return secret if {"token", "namespace", "ca.crt"} <= (secret.data or {}).keys() else None

    found = await eventually(is_filled)
    assert found is not None
    return found


async def is_gone(client: Client) -> bool:
    return await ignore_not_found(read(client)) is None


async def reviewed(client: Client, token: bytes) -> Any:
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token.decode()},
    }
    return (await client.create(review))["status"]


async def test_a_secret_is_filled_with_a_token_of_its_account() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        account = await account_of(client)
        await secret_of(client)
        secret = await filled(client)
        data = secret.data or {}
        assert (data["namespace"], data["ca.crt"]) == (b"default", b"PEM")
        assert (secret.metadata.annotations or {})[UID] == account.metadata.uid
        status = await reviewed(client, data["token"])
        assert status["user"]["username"] == "system:serviceaccount:default:robot"


async def test_what_is_taken_out_of_a_secret_comes_back_and_the_rest_stays() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        await account_of(client)
        await secret_of(client)
        secret = await filled(client)
        token = (secret.data or {})["token"]
        secret.data = {"token": token, "ca.crt": b"other", "mine": b"x"}
        await client.update(secret)

        async def is_back() -> bool:
            return (await read(client)).data == {
                "token": token, "ca.crt": b"PEM", "namespace": b"default", "mine": b"x",
            }  # fmt: skip

        await eventually(is_back)


async def test_a_secret_goes_with_its_account_and_its_token_is_worth_nothing() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        account = await account_of(client)
        await secret_of(client)
        token = ((await filled(client)).data or {})["token"]
        await client.delete(account)
        await eventually(lambda: is_gone(client))
        await account_of(client)
        assert not (await reviewed(client, token)).get("authenticated")


async def test_a_token_ends_with_its_secret() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        await account_of(client)
        await secret_of(client)
        secret = await filled(client)
        await client.delete(secret)
        assert not (await reviewed(client, (secret.data or {})["token"])).get("authenticated")


async def test_a_secret_of_no_account_goes() -> None:
    async with cluster(NAMES) as client:
        await secret_of(client)
        await eventually(lambda: is_gone(client))


async def test_a_secret_of_an_account_that_was_another_one_goes() -> None:
    async with cluster(NAMES) as client:
        await account_of(client)
        await secret_of(client, **{UID: "another"})
        await eventually(lambda: is_gone(client))


async def test_secrets_of_other_types_are_left_alone() -> None:
    async with cluster(NAMES, root_ca="PEM") as client:
        metadata = ObjectMeta(name="s", namespace="default", annotations={ACCOUNT: "nobody"})
        made = await client.create(Secret(metadata=metadata, type="Opaque"))
        await asyncio.sleep(10)
        assert (await read(client)).metadata.resource_version == made.metadata.resource_version
