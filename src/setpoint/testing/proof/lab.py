"""A cluster for one test, in virtual time and without ``await``: the fixture ``cluster``.

    def test_a_lost_deployment_comes_back(cluster: Lab) -> None:
        cluster.run(operator)
        cluster.apply("webapp.yaml")
        cluster.delete(Deployment, "web")
        assert cluster.get(Deployment, "web")
        cluster.assert_quiescent()

Every call waits until all is still again, which takes no time: a minute, or an hour, passes at once.  Faults
are placed by hand (``fault``), as a sweep places them.  The same test does the same each time.  What fails in
the ``with`` block of a lab is told with the story of what happened there; for the fixture pytest tells it.

Driven by ``plugin.py`` and by tests; ``real_lab.py`` is the same on a real cluster.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import cache, partial
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, cast, overload

import msgspec

from setpoint.api.forms import Form, form_of, form_of_object, key_of
from setpoint.api.model import Object, to_wire
from setpoint.api.names import Key
from setpoint.api.patches import MergePatch
from setpoint.client.client import Client
from setpoint.errors import NotFound
from setpoint.net.transport import Transport
from setpoint.testing.conditions import why_not
from setpoint.testing.golden import assert_matches
from setpoint.testing.isolation import Allowed, Isolation
from setpoint.testing.manifests import Manifest, objects_in
from setpoint.testing.proof.calendar import controlled_calendar
from setpoint.testing.proof.chance import seeded
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers, chosen
from setpoint.testing.proof.pace import PacedLoop, world_time
from setpoint.testing.proof.plans import NEEDS_LEADER, AnyFault, At, Freeze, Hide, Plan, redacted_patch
from setpoint.testing.proof.process import Subject, make_task, maker
from setpoint.testing.proof.redaction import Redactor, redacted_object
from setpoint.testing.proof.report import causal, story
from setpoint.testing.proof.store import actor
from setpoint.testing.proof.trace import USER, Run, State
from setpoint.testing.proof.world import PATIENCE, Prepared, World
from setpoint.testing.waiting import TIMEOUT, look_until, name_of

T = TypeVar("T")

_TOLD = 60  # lines of a story


class ByHand(Protocol):
    """What a lab asks of the world that it is in."""

    def transport(self) -> Transport: ...
    async def host(self, make: Callable[[], Subject]) -> None: ...
    async def restart(self) -> None: ...
    def stepped(self) -> None: ...
    async def let_pass(self, seconds: float) -> None: ...
    def place(self, faults: Iterable[AnyFault]) -> None: ...
    async def freeze(self, fault: Freeze) -> None: ...
    async def settle(self, patience: float) -> str: ...
    async def probe(self) -> list[str]: ...
    def state(self, *, whole: bool = False) -> State: ...


class Lab:
    """A cluster, and operators in it; a context manager.

    With ``controllers``, those of every cluster run in it, by their names, or all: a Deployment makes pods.
    Of each operator there are ``replicas``, which elect a leader if they are several.  Paths begin in
    ``folder``; ``update`` has snapshots written where they would be compared.

    Operators reach nothing outside, and a test in which one wants to fails: ``clouds`` stand for what they
    use.  ``allow_network`` names addresses that they may reach all the same (``HOST``, ``HOST:PORT``, the
    path of a Unix socket), ``allow_program`` programs that they may run.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        clouds: tuple[Cloud, ...] = (),
        controllers: Controllers = False,
        replicas: int = 1,
        allow_network: Sequence[str] = (),
        allow_program: Sequence[str] = (),
        folder: Path = Path(),
        update: bool = False,
    ) -> None:
        self._seed = seed
        self._allowed = Allowed.of(allow_network, allow_program)
        self._clouds = clouds
        self._controllers = controllers
        self._folder = folder
        self._update = update
        self._stack = ExitStack()
        self._open = AsyncExitStack()
        self._world: ByHand
        self._placed: list[AnyFault] = []
        self._looked_at: set[str] = set()  # since the user last did something
        self.trace = Run(Plan((), (), seed, replicas=replicas))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self.trace.writes)} writes>"

    def __enter__(self) -> Self:
        prepared = replace(
            _prepared(chosen(self._controllers)), clouds=self._clouds, allowed=self._allowed, refused={}
        )
        names: random.Random = self._stack.enter_context(seeded(self._seed))
        self._stack.enter_context(controlled_calendar())
        self._start(asyncio.Runner(loop_factory=PacedLoop), self._begin(prepared, names))
        return self

    def _start(self, runner: asyncio.Runner, begin: Coroutine[Any, Any, Client]) -> None:
        self._runner = self._stack.enter_context(runner)
        self._runner.get_loop().set_task_factory(make_task)
        try:
            self.client = self.wait(begin)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    async def _begin(self, prepared: Prepared, names: random.Random) -> Client:
        self._world = self._memory = World(prepared, self.trace.plan, self.trace, names)
        self._open.enter_context(self._memory.with_token())
        await self._open.enter_async_context(self._memory.running())
        return Client(transport=self._world.transport(), field_manager=USER)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            error.add_note(self.story())
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
        make = partial(Isolation(self._allowed, self.trace.external).call, maker(operator))
        if crds and (defined := make().crds()):
            self._define(defined)
        self.wait(self._world.host(make))
        self.settle()

    def apply(self, manifest: Manifest, *, force: bool = False) -> None:
        """Have objects be as they are described, as ``kubectl apply --server-side`` does.

        They are in a file, in a folder of files, in YAML text, or given.  Definitions are served before the
        next object is applied.  ApplyConflict where others manage a field, unless ``force`` takes it over.
        """
        for obj in objects_in(manifest, self._folder):
            if form_of_object(obj).gvk.kind == "CustomResourceDefinition":
                self._define([to_wire(obj)])
            else:
                self._act("apply", obj, self.client.apply(cast("Any", obj), force=force))
        self.settle()

    def _define(self, crds: list[dict[str, Any]]) -> None:
        """Have the server serve kinds."""
        for crd in crds:
            self._act("apply", crd, self.client.apply(crd, force=True))
        self._let_pass(1)
        self._memory.look_up()

    def create(self, obj: Object | dict[str, Any]) -> None:
        """Make an object, as a user does."""
        self._act("create", obj, self.client.create(cast("Any", obj)))
        self.settle()

    def change(
        self, kind: type[Any] | Form[Any], name: str, patch: dict[str, Any], *, namespace: str | None = None
    ) -> None:
        """Change an object by a merge patch."""
        called = form_of(kind).gvk.kind
        what = f"{called} {name}: {msgspec.json.encode(redacted_patch(called, patch)).decode()}"
        self._act("change", what, self.client.patch(kind, name, MergePatch(patch), namespace=namespace))
        self.settle()

    def delete(self, kind: type[Any] | Form[Any], name: str, *, namespace: str | None = None) -> None:
        """Delete an object; NotFound if it is not there."""
        asked = self.client.delete(kind, name, namespace=namespace, propagation="Background")
        self._act("delete", f"{form_of(kind).gvk.kind} {name}", asked)
        self.settle()

    def _act(self, verb: str, what: object, asked: Coroutine[Any, Any, T]) -> T:
        """Have something done that the story tells of as the user's."""
        told = what if isinstance(what, str) else f"{form_of_object(what).gvk.kind} {key_of(what).name}"

        async def act() -> T:
            self._looked_at.clear()
            self._world.stepped()
            self.trace.line(self.now(), USER, f"{verb} {told}")
            token = actor.set(USER)
            try:
                return await asked
            except Exception as error:
                self.trace.line(self.now(), USER, f"refused: {error}")
                raise
            finally:
                actor.reset(token)

        return self.wait(act())

    def pass_time(self, seconds: float) -> None:
        """Let time pass; what falls due meanwhile happens, and an operator that dies is started again."""
        self._world.stepped()
        self._let_pass(seconds)

    def _let_pass(self, seconds: float) -> None:
        self.wait(self._world.let_pass(seconds))
        self.assert_isolated()

    def restart(self) -> None:
        """Have every operator die and start again."""
        self.wait(self._world.restart())
        self.settle()

    def fault(self, *faults: AnyFault) -> None:
        """Place faults: they strike when it comes to what they wait for.

        ValueError for one that could do nothing here, however often it struck.
        """
        for each in faults:
            self._check(each)
        self._placed += faults
        self._world.place(faults)

    def _check(self, fault: AnyFault) -> None:
        if isinstance(fault, NEEDS_LEADER) and self.trace.plan.replicas == 1:
            raise ValueError(
                f"{fault}: an operator that is alone is not elected, and has no lease to lose; have two of "
                "it, with Lab(replicas=2) or @pytest.mark.cluster(replicas=2)"
            )
        if isinstance(fault, Hide) and not any(
            fault.at.what.startswith(f"create {cloud.name} ") for cloud in self._clouds
        ):
            raise ValueError(
                f"{fault}: only what is made in a cloud can be hidden, and in one that this cluster was told "
                "of; have a fixture `cluster` of your own, with Lab(clouds=(cloud,))"
            )

    def freeze(self, *resources: str, seconds: float = 60.0) -> None:
        """Have the operators see nothing new of these resources (``deployments.apps``) for a while; of all,
        if none is said.
        """
        self.wait(self._world.freeze(Freeze(at=At("now"), resources=resources, seconds=seconds)))

    # How it is.

    def get(self, kind: type[T] | Form[T], name: str, *, namespace: str | None = None) -> T:
        """An object as it is now; NotFound if it is not there."""

        async def read() -> T:
            await self._look(kind, Key(namespace or self.client.config.namespace, name))
            return await self.client.get(kind, name, namespace=namespace)

        return self.wait(read())

    def list(self, kind: type[T] | Form[T], *, namespace: str | None = None) -> list[T]:
        """All objects of a kind, in all namespaces or in one."""

        async def read() -> list[T]:
            found = list(await self.client.list(kind, namespace=namespace))
            await self._look(kind, *map(key_of, found))
            return found

        return self.wait(read())

    def now(self) -> float:
        """Seconds, of this cluster's time."""
        return world_time(self._runner.get_loop())

    @overload
    def eventually(
        self, check: Callable[[], Awaitable[T | None]], *, timeout: float = TIMEOUT, what: str = ""
    ) -> T: ...

    @overload
    def eventually(self, check: Callable[[], T | None], *, timeout: float = TIMEOUT, what: str = "") -> T: ...

    def eventually(
        self, check: Callable[[], Awaitable[T | None] | T | None], *, timeout: float = TIMEOUT, what: str = ""
    ) -> T:
        """Let time pass until ``check`` gives something true, and give that.

        False, None, a failed assertion and NotFound mean: not yet.  AssertionError, with what the last look
        saw, if it is not so within ``timeout`` seconds of the cluster's time.
        """
        __tracebackhide__ = True

        def look() -> T | None:
            given = check()
            return self.wait(_of(given)) if isawaitable(given) else given

        return look_until(look, self.now, self._let_pass, timeout=timeout, what=what or name_of(check))

    @overload
    def wait_for(
        self,
        kind: type[T] | Form[T],
        name: str,
        condition: str | Callable[[T], object] = "Ready",
        *,
        namespace: str | None = None,
        timeout: float = TIMEOUT,
    ) -> T: ...

    @overload
    def wait_for(
        self,
        kind: type[T] | Form[T],
        name: str,
        *,
        deleted: Literal[True],
        namespace: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None: ...

    def wait_for(
        self,
        kind: type[T] | Form[T],
        name: str,
        condition: str | Callable[[T], object] = "Ready",
        *,
        deleted: bool = False,
        namespace: str | None = None,
        timeout: float = TIMEOUT,
    ) -> T | None:
        """Let time pass until an object is in a condition, as ``kubectl wait`` does; give the object.

        ``condition`` is ``"Ready"``, ``"Ready=False"``, or a function of the object; with ``deleted``, that
        it is gone.  AssertionError, with what was seen last, if that does not come.
        """
        __tracebackhide__ = True
        called = f"{form_of(kind).gvk.kind} {name}"

        def is_gone() -> bool:
            try:
                seen = self.get(kind, name, namespace=namespace)
            except NotFound:
                return True
            raise AssertionError(f"it is there: {_shown(seen)}")

        def look() -> tuple[T]:
            seen = self.get(kind, name, namespace=namespace)
            if isinstance(condition, str):
                unmet = why_not(to_wire(seen), condition)
            else:
                unmet = "" if condition(seen) else _shown(seen)
            if unmet:
                raise AssertionError(unmet)
            return (seen,)  # an object may be anything, also false

        if deleted:
            self.eventually(is_gone, timeout=timeout, what=f"{called} is deleted")
            return None
        said = condition if isinstance(condition, str) else f"as {name_of(condition)} asks"
        return self.eventually(look, timeout=timeout, what=f"{called} is {said}")[0]

    def settle(self) -> None:
        """Wait until nothing stirs; AssertionError if it never comes to that."""
        __tracebackhide__ = True
        why = self.wait(self._world.settle(PATIENCE))
        self.assert_isolated()
        if why:
            raise AssertionError(f"it does not come to rest: {why}")

    def snapshot(self) -> State:
        """All objects, with uids, times and generated names said in words that are the same in every run."""
        return self._world.state(whole=True)

    def assert_matches(self, path: Path | str) -> None:
        """The snapshot is what the file says; ``pytest --setpoint-update`` writes it."""
        __tracebackhide__ = True
        assert_matches(self.snapshot(), self._folder / path, update=self._update)

    def assert_quiescent(self) -> None:
        """Nothing is written: not 2 seconds later, not an hour later, not after a restart."""
        __tracebackhide__ = True
        if found := self.wait(self._world.probe()):
            raise AssertionError(f"written though nothing has changed: {'; '.join(found)}")

    def assert_struck(self) -> None:
        """Every fault that was placed has struck; for the fixture, pytest sees to that itself."""
        __tracebackhide__ = True
        left = [str(fault) for fault in self._placed if str(fault) not in self.trace.fired]
        if left:
            raise AssertionError(
                f"placed, but what it waits for did not happen, or was refused: {'; '.join(left)} (the story "
                "says what did)"
            )

    def assert_isolated(self) -> None:
        """No operator wanted to reach anything outside; every call that waits sees to that itself."""
        __tracebackhide__ = True
        for refused in self.trace.external:
            raise AssertionError(refused)

    def story(self) -> str:
        """What has happened, in four columns: the user, the operator, what it saw, the server.

        It is about what was looked at last, and what belongs to that: owners, and what they own.  Of much, it
        is what happened around the faults that struck, or else the last.
        """
        lines = causal(self.trace, self._looked_at)
        told = replace(self.trace, lines=lines if self.trace.fired else lines[-_TOLD:])
        told = Redactor(self.trace).run(told)
        return "\n".join(story(told, _TOLD))

    async def _look(self, kind: type[Any] | Form[Any], *found: Key) -> None:
        """Note what a test is about, for its story."""
        resource = await self.client.resource_of(kind)
        places = (f"{namespace}/{name}" if resource.namespaced else name for namespace, name in found)
        self._looked_at.update(f"{resource} {place}" for place in places)


class Nothing:
    """No operator yet."""

    name = "nothing"
    kinds: list[Any] = []

    def crds(self) -> list[dict[str, Any]]:
        return []

    def add_to(self, manager: Any, /) -> object:
        return manager


@cache
def _prepared(controllers: tuple[str, ...]) -> Prepared:
    """A server that has begun: every lab goes on from its snapshot, which nobody changes."""
    return Prepared.of(Nothing, controllers=controllers)


async def _of(given: Awaitable[T]) -> T:
    return await given


def _shown(obj: object) -> str:
    """An object in one line, without the records of who wrote what, and without what is in a Secret."""
    wire = redacted_object(to_wire(obj))
    metadata = {name: each for name, each in wire.get("metadata", {}).items() if name != "managedFields"}
    return msgspec.json.encode({**wire, "metadata": metadata}).decode()
