"""The fixture ``cluster`` on a real kube-apiserver: the same calls, and real time.

    pytest --setpoint-cluster kube

Each test has a namespace of its own that is called ``default`` in it (``confined.py``), so that a test says
the same on both.  What cannot be had there, such as an hour that passes at once, is said to ``unavailable``,
which does not return: the fixture skips the test.

Definitions stay for the tests that follow: the control plane is the run's own, and a garbage collector takes
half a minute to hear of a new kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from setpoint.api.names import Resource
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.testing.faults import Faults
from setpoint.testing.node import Node
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.lab import Lab, Nothing
from setpoint.testing.proof.plans import AnyFault
from setpoint.testing.proof.real_proof import why_not
from setpoint.testing.proof.real_site import LONGEST, served
from setpoint.testing.proof.real_world import Ground, RealWorld
from setpoint.testing.proof.trace import USER


class RealLab(Lab):
    """A namespace of a cluster that runs, and operators in it."""

    def __init__(
        self,
        config: Config,
        *,
        unavailable: Callable[[str], NoReturn],
        clouds: tuple[Cloud, ...] = (),
        node: bool = False,
        allow_network: Sequence[str] = (),
        allow_program: Sequence[str] = (),
        folder: Path = Path(),
        update: bool = False,
    ) -> None:
        super().__init__(
            clouds=clouds,
            allow_network=allow_network,
            allow_program=allow_program,
            folder=folder,
            update=update,
        )
        self._config = config
        self._unavailable = unavailable
        self._has_node = node

    def __repr__(self) -> str:
        return f"<RealLab on {self._config.server}>"

    def __enter__(self) -> Self:
        self._start(asyncio.Runner(), self._begin_there())
        return self

    async def _begin_there(self) -> Client:
        way = await self._open.enter_async_context(Faults.of(self._config))
        admin = Client(self._config, transport=way, on_warning=lambda _text: None)
        resources: dict[tuple[str, str], Resource] = {}
        for each in await admin.discovery.resources():
            resources.setdefault((each.group, each.plural), each)
        self._ground = Ground(
            Nothing, way, admin, resources, frozenset(), clouds=self._clouds, allowed=self._allowed
        )
        if self._has_node:
            await self._open.enter_async_context(Node(admin))
        bounds = await self._open.enter_async_context(self._ground.namespace())
        self._world = self._real = RealWorld(self._ground, self.trace.plan, self.trace, bounds)
        self._open.enter_context(self._real.with_token())
        await self._open.enter_async_context(self._real.running())
        return Client(transport=self._real.transport(), field_manager=USER, on_warning=lambda _text: None)

    def _define(self, crds: list[dict[str, Any]]) -> None:
        self.wait(self._serve(crds))

    async def _serve(self, crds: list[dict[str, Any]]) -> None:
        admin = self._ground.client
        for crd in crds:
            await admin.apply(crd, force=True)
            await served(admin, crd["metadata"]["name"])
        await admin.discovery.refresh()
        new = [
            each
            for each in await admin.discovery.resources()
            if (each.group, each.plural) not in self._ground.resources
        ]
        for each in new:
            self._ground.resources.setdefault((each.group, each.plural), each)
        await self._real.follow(each for each in new if each.namespaced)

    def pass_time(self, seconds: float) -> None:
        if seconds > LONGEST:
            self._unavailable(f"on a real cluster {seconds:g} seconds take {seconds:g} seconds")
        super().pass_time(seconds)

    def fault(self, *faults: AnyFault) -> None:
        for each in faults:
            if (missing := why_not(each)) is not None:
                self._unavailable(f"{' '.join(missing)}: {each}")
        super().fault(*faults)

    def freeze(self, *resources: str, seconds: float = 60.0) -> None:
        if seconds > LONGEST:
            self._unavailable(f"on a real cluster {seconds:g} seconds take {seconds:g} seconds")
        super().freeze(*resources, seconds=seconds)
