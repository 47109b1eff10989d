"""The place of a proof on a cluster, here one in this process: what is there before it begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.api import MergePatch, crd_of, to_wire
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import AlreadyExists
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.testing import EmbeddedControlPlane
from setpoint.testing.proof.real_site import Site
from setpoint.testing.proof.real_world import LABEL
from tests.mutants.operators import marked_before
from tests.mutants.widgets import Widget, delete
from tests.mutants.widgets import create as made

NAME = "widgets.test.setpoint.dev"


def site(config: Config) -> Site:
    return Site(lambda: marked_before(wrong=False), config, (made(), delete()), ())


async def test_a_definition_that_is_being_deleted_is_not_there_and_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused, ask = asyncio.Event(), Client.create

    async def create(client: Client, obj: Any, **how: Any) -> Any:
        try:
            return await ask(client, obj, **how)
        except AlreadyExists:
            refused.set()
            raise

    monkeypatch.setattr(Client, "create", create)
    async with EmbeddedControlPlane(controllers=["namespace-controller"]) as plane:
        config = Config.load(plane.kubeconfig)
        async with Client(config) as client:
            held = to_wire(crd_of(Widget))
            held["metadata"] |= {"labels": {LABEL: "former"}, "finalizers": ["test.setpoint.dev/held"]}
            await client.create(held)
            await client.delete(CustomResourceDefinition, NAME)
            former = await client.get(CustomResourceDefinition, NAME)
            assert former.metadata.deletion_timestamp is not None

            async def release() -> None:
                await refused.wait()
                patch = MergePatch({"metadata": {"finalizers": None}})
                await client.patch(CustomResourceDefinition, NAME, patch)

            async with asyncio.TaskGroup() as group:
                group.create_task(release())
                async with site(config).ground():
                    found = await client.get(CustomResourceDefinition, NAME)
                    assert found.metadata.uid != former.metadata.uid
                    assert found.metadata.deletion_timestamp is None
            assert [each.metadata.name for each in await client.list(CustomResourceDefinition)] == []
