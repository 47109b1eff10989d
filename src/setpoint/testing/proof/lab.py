"""A cluster for one test, in virtual time and without ``await``: the fixture ``cluster``.

    def test_a_lost_deployment_comes_back(cluster: Lab) -> None:
        cluster.run(operator)
        cluster.create(webapp)
        cluster.delete(Deployment, "web")
        assert cluster.get(Deployment, "web")
        cluster.assert_quiescent()

Every call waits until all is still again, which takes no time: a minute, or an hour, passes at once.  Faults
are placed by hand (``fault``), as a sweep places them.  The same test does the same each time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from setpoint.api.forms import Form, form_of
from setpoint.api.model import Object
from setpoint.api.patches import MergePatch
from setpoint.client.client import Client
from setpoint.testing.proof.chance import seeded
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers
from setpoint.testing.proof.plans import AnyFault, At, Create, Delete, Freeze, Plan
from setpoint.testing.proof.process import Subject, make_task, maker
from setpoint.testing.proof.report import story
from setpoint.testing.proof.trace import USER, Run, State
from setpoint.testing.proof.world import PATIENCE, Prepared, World
from setpoint.testing.virtual_time import VirtualTimeLoop

T = TypeVar("T")


class Lab:
    """A cluster, and operators in it; a context manager.

    With ``controllers``, those of every cluster run in it, by their names, or all: a Deployment makes pods.
    """

    def __init__(
        self, *, seed: int = 0, clouds: tuple[Cloud, ...] = (), controllers: Controllers = False
    ) -> None:
        self._seed = seed
        self._clouds = clouds
        self._controllers = controllers
        self._stack = ExitStack()
        self._open = AsyncExitStack()
        self.trace = Run(Plan((), (), seed))

    def __repr__(self) -> str:
        return f"<Lab {len(self.trace.writes)} writes>"

    def __enter__(self) -> Self:
        prepared = Prepared.of(Nothing, clouds=self._clouds, controllers=self._controllers)
        names: random.Random = self._stack.enter_context(seeded(self._seed))
        self._runner = self._stack.enter_context(asyncio.Runner(loop_factory=VirtualTimeLoop))
        self._runner.get_loop().set_task_factory(make_task)
        self._world = self.wait(self._make(prepared, names))
        self.wait(self._open.enter_async_context(self._world.running()))
        self.client = Client(transport=self._world.transport())
        return self

    async def _make(self, prepared: Prepared, names: random.Random) -> World:
        return World(prepared, self.trace.plan, self.trace, names)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.wait(self._open.aclose())
        finally:
            self._stack.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done, and give what came of it: ``cluster.wait(cluster.client.list(Pod))``."""
        return self._runner.run(work)

    # What happens.

    def run(self, operator: Subject | Callable[[], Subject], *, crds: bool = True) -> None:
        """Start an operator, with the definitions of its kinds."""
        make = maker(operator)
        for crd in make().crds() if crds else ():
            self.wait(self._world.act((Create(crd),), USER))
        self.pass_time(1)
        self._world.look_up()
        self.wait(self._world.host(make))
        self.settle()

    def create(self, obj: Object | dict[str, Any]) -> None:
        """Make an object, as a user does."""
        self.wait(self.client.create(cast("Any", obj)))
        self.settle()

    def change(
        self, kind: type[Any] | Form[Any], name: str, patch: dict[str, Any], *, namespace: str = "default"
    ) -> None:
        """Change an object by a merge patch."""
        self.wait(self.client.patch(kind, name, MergePatch(patch), namespace=namespace))
        self.settle()

    def delete(self, kind: type[Any] | Form[Any], name: str, *, namespace: str = "default") -> None:
        gvk = form_of(kind).gvk
        step = Delete(f"{gvk.group}/{gvk.version}".lstrip("/"), gvk.kind, name, namespace)
        self.wait(self._world.act((step,), USER))
        self.settle()

    def get(self, kind: type[T] | Form[T], name: str, *, namespace: str = "default") -> T:
        return self.wait(self.client.get(kind, name, namespace=namespace))

    def list(self, kind: type[T] | Form[T], *, namespace: str | None = None) -> list[T]:
        async def read() -> list[T]:
            return list(await self.client.list(kind, namespace=namespace))

        return self.wait(read())

    def pass_time(self, seconds: float) -> None:
        """Let time pass; what falls due meanwhile happens."""
        self.wait(asyncio.sleep(seconds))

    def restart(self) -> None:
        """Have every operator die and start again."""
        self.wait(self._world.restart())
        self.settle()

    def fault(self, *faults: AnyFault) -> None:
        """Place faults: they strike when it comes to what they wait for."""
        self._world.place(faults)

    def freeze(self, *resources: str, seconds: float = 60.0) -> None:
        """Have the operators see nothing new of these resources (``deployments.apps``) for a while; of all,
        if none is said.
        """
        self.wait(self._world.freeze(Freeze(at=At("now"), resources=resources, seconds=seconds)))

    # How it is.

    def settle(self) -> None:
        """Wait until nothing stirs; AssertionError if it never comes to that."""
        why_not = self.wait(self._world.settle(PATIENCE))
        assert not why_not, f"it does not come to rest: {why_not}\n{self.story()}"  # noqa: S101

    def snapshot(self) -> State:
        """All objects, with uids, times and generated names said in words that are the same in every run."""
        return self._world.state(whole=True)

    def assert_quiescent(self) -> None:
        """Nothing is written: not 2 seconds later, not an hour later, not after a restart."""
        found = self.wait(self._world.probe())
        assert not found, f"written though nothing has changed: {'; '.join(found)}\n{self.story()}"  # noqa: S101

    def story(self) -> str:
        """What has happened, as lines."""
        return "\n".join(story(self.trace, 200))


class Nothing:
    """No operator yet."""

    name = "nothing"
    kinds: list[Any] = []

    def crds(self) -> list[dict[str, Any]]:
        return []

    def add_to(self, manager: Any, /) -> object:
        return manager
