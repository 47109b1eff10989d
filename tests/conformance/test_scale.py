"""Many objects at once: the process reaches the fixed point, and is silent there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

import pytest

from examples.webapp.webapp import WebApp, WebAppSpec, operator
from setpoint.api import ObjectMeta, crd_of
from setpoint.api.names import Key
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller import Controller
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import Service
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager
from setpoint.testing.asked import Asked
from setpoint.testing.faults import Faults
from setpoint.testing.waiting import eventually
from tests.conformance.planes import NewPlane

COUNT = 2_000


async def all_of(work: Iterable[Coroutine[Any, Any, object]], *, at_once: int = 32) -> None:
    gate = asyncio.Semaphore(at_once)

    async def one(each: Coroutine[Any, Any, object]) -> None:
        async with gate:
            await each

    async with asyncio.TaskGroup() as tasks:
        for each in work:
            tasks.create_task(one(each))


def is_lease(asked: Asked) -> bool:
    return asked.plural == "leases"


def is_idle(controller: Controller) -> bool:
    stats = controller.stats()
    return not stats.running and not sum(stats.queue.depth.values()) and not stats.queue.delayed


async def is_served(client: Client) -> bool:
    await client.list(WebApp)
    return True


@pytest.mark.deadline(300)
async def test_two_thousand_webapps_reach_the_fixed_point_and_then_cost_only_watches_and_the_lease(
    new_plane: NewPlane,
) -> None:
    # A Service each: more addresses than a test needs otherwise.
    plane = new_plane(api_server_args=["--service-cluster-ip-range=10.0.0.0/16"])
    async with plane as kube, Client(Config.load(kube.kubeconfig)) as user:
        await user.apply(crd_of(WebApp), force=True)
        await eventually(lambda: is_served(user))
        names = [f"web-{number:04}" for number in range(COUNT)]
        spec = WebAppSpec(image="web:1")
        await all_of(
            user.create(WebApp(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
            for name in names
        )
        async with Faults.of(user.config) as faults, Client(user.config, transport=faults) as client:
            manager = Manager(client=client, leader_election=LeaderElection("operator", "default"))
            (controller,) = operator.add_to(manager)

            def costs() -> list[Asked]:
                return [asked for asked in faults.requests if asked.verb != "watch" and not is_lease(asked)]

            async with manager:

                def has_told_all() -> bool:
                    told = {asked.name for asked in faults.requests if asked.subresource == "status"}
                    return told == set(names) and is_idle(controller)

                await eventually(has_told_all, timeout=200)
                for kind in (Deployment, Service):
                    made = {each.metadata.name for each in await user.list(kind, namespace="default")}
                    assert made >= set(names)

                before = costs()
                for name in names:  # as a resync does
                    controller.look_at(Key("default", name))
                await eventually(lambda: is_idle(controller), timeout=60)
                renewed = sum(map(is_lease, faults.requests))
                await eventually(lambda: sum(map(is_lease, faults.requests)) >= renewed + 2)
                assert costs() == before
                assert faults.watches == 3
