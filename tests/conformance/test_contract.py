"""The contract of DESIGN.md, line by line, on a real kube-apiserver and under faults.

Each test carries its line's sentence as its name.  Every fault is shown to have happened.  That every line
holds under every fault is shown in ``test_contract_faults.py``.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from setpoint.api import (
    Condition,
    CustomResource,
    MergePatch,
    Model,
    Object,
    ObjectMeta,
    crd_of,
    find_condition,
)
from setpoint.api.names import Key
from setpoint.cache import Cache, Timing
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.controller import (
    Controller,
    ReconcileClient,
    Request,
    Result,
    TerminalError,
    builder,
    set_owner_reference,
)
from setpoint.controller.context import Context
from setpoint.errors import LeadershipLost, SetpointError
from setpoint.kube.coordination.v1 import Lease
from setpoint.kube.core.v1 import ConfigMap, Namespace, Secret
from setpoint.kube.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager
from setpoint.metrics import Metrics
from setpoint.operator import Operator
from setpoint.testing.asked import Asked
from setpoint.testing.faults import Faults, Rule
from setpoint.testing.kube import ControlPlane
from setpoint.testing.proxy import Proxy
from setpoint.testing.waiting import eventually
from tests.conformance.planes import NewPlane
from tests.pages import ROOT


@dataclass
class World:
    """A namespace of one's own, a ``user`` who does what users do, and ``faults`` before the operator."""

    namespace: str
    user: Client
    operator: Client
    faults: Faults

    async def write(self, name: str, **data: str) -> ConfigMap:
        settings = ConfigMap(metadata=ObjectMeta(name=name, namespace=self.namespace), data=data)
        return await self.user.apply(settings, force=True)

    async def read(self, name: str) -> dict[str, str]:
        return (await self.user.get(ConfigMap, name, namespace=self.namespace)).data or {}

    @property
    def writes(self) -> int:
        """How many the operator has tried so far."""
        return sum(asked.is_write for asked in self.faults.requests)

    def asked(self) -> list[Asked]:
        """All that the operator has asked of the server, but for watches."""
        return [asked for asked in self.faults.requests if asked.verb != "watch"]

    def manager(self, **options: Any) -> Manager:
        return Manager(client=self.operator, **options)

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)


@asynccontextmanager
async def world(kube: ControlPlane) -> AsyncIterator[World]:
    config = Config.load(kube.kubeconfig)
    async with (
        Client(config) as user,
        Faults.of(config) as faults,
        Client(config, transport=faults, timeout=10) as operator,
    ):
        namespace = f"contract-{secrets.token_hex(4)}"
        await user.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield World(namespace, user, operator, faults)


class Looks:
    """A reconciler that remembers: which keys it was given, how many at once, and what it saw.

    While ``gate`` is closed, those that have begun do not end.
    """

    def __init__(
        self, client: Client, act: Callable[[Request], Awaitable[Result | None]] | None = None
    ) -> None:
        self.client = client
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.seen: dict[str, list[dict[str, str] | None]] = {}
        self.at_once: dict[str, int] = {}
        self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._act = act

    async def reconcile(self, request: Request) -> Result | None:
        name = request.name
        self.begun.append(name)
        self.at_once[name] = self.at_once.get(name, 0) + 1
        self.most_at_once = max(self.most_at_once, self.at_once[name])
        try:
            found = await ignore_not_found(self.client.get(ConfigMap, name, namespace=request.namespace))
            self.seen.setdefault(name, []).append(None if found is None else found.data or {})
            await self.gate.wait()
            return None if self._act is None else await self._act(request)
        finally:
            self.at_once[name] -= 1
            self.ended.append(name)


def watch_settings(manager: Manager | Process, world: World, reconciler: Looks, **options: Any) -> Controller:
    return (
        builder(manager)
        .for_(ConfigMap, namespaces=[world.namespace])
        .with_options(**options)
        .complete(reconciler)
    )


def is_idle(controller: Controller) -> bool:
    stats = controller.stats()
    return not stats.running and not sum(stats.queue.depth.values()) and not stats.queue.delayed


# 1


async def test_a_key_is_never_reconciled_twice_at_once_and_changes_meanwhile_mean_one_more_look(
    kube: ControlPlane,
) -> None:
    async with world(kube) as w:
        manager = w.manager()
        looks = Looks(manager.client)
        controller = watch_settings(manager, w, looks, workers=8)
        with w.faults.double(kind=ConfigMap) as doubled:
            async with manager:
                looks.gate.clear()
                await w.write("a", value="0")
                await eventually(lambda: looks.begun == ["a"])
                for value in range(1, 20):
                    await w.write("a", value=str(value))
                await w.write("fence")  # when this one is seen, so is all before it
                await eventually(lambda: "fence" in looks.begun)
                assert looks.begun.count("a") == 1, "it is in its worker's hands"

                looks.gate.set()
                await eventually(lambda: looks.seen["a"][-1] == {"value": "19"} and is_idle(controller))
                assert looks.begun.count("a") == 2, "nineteen changes, told twice each, mean one more look"
        assert looks.most_at_once == 1
        assert doubled.count >= 20


# 2


async def cut(w: World) -> int:
    return w.faults.cut(kind=ConfigMap)


async def expire(w: World) -> int:
    return w.faults.cut(410, kind=ConfigMap)


async def fail(w: World) -> int:
    w.faults.refuse(503, verb="watch", times=2)
    return w.faults.cut(500, kind=ConfigMap)


async def lag(w: World) -> int:
    rule = w.faults.hold(kind=ConfigMap)
    asyncio.get_running_loop().call_later(0.5, rule.remove)
    return 1


@pytest.mark.parametrize("fault", [cut, expire, fail, lag])
async def test_a_change_seen_after_a_reconcile_began_leads_to_another_and_nothing_is_lost_in_between(
    kube: ControlPlane, fault: Callable[[World], Awaitable[int]]
) -> None:
    async with world(kube) as w:
        manager = w.manager()
        looks = Looks(manager.client)
        watch_settings(manager, w, looks)
        async with manager:
            looks.gate.clear()
            await w.write("a", value="old")
            await eventually(lambda: looks.seen.get("a") == [{"value": "old"}])

            struck = await fault(w)
            await w.write("a", value="new")  # it has read, and has not ended
            looks.gate.set()

            await eventually(lambda: looks.seen["a"][-1] == {"value": "new"})
        assert struck


# 3


@pytest.mark.parametrize("answers_are_lost", [False, True])
async def test_a_reconcile_never_reads_state_older_than_its_own_controllers_last_write(
    kube: ControlPlane, answers_are_lost: bool
) -> None:
    """Children with names made up by the server, counted in the cache: a stale count makes too many."""
    async with world(kube) as w:
        manager = w.manager()

        async def count_to_three(request: Request) -> Result | None:
            mine = {"of": request.name}
            children = await manager.client.list(Secret, namespace=w.namespace, labels=mine)
            if len(children) < 3:
                named = ObjectMeta(generate_name=f"{request.name}-", namespace=w.namespace, labels=mine)
                await manager.client.create(Secret(metadata=named))
                return Result(requeue_after=0)
            return None

        looks = Looks(manager.client, count_to_three)
        builder(manager).named("count").for_(ConfigMap, namespaces=[w.namespace]).watches(
            Secret, lambda _: [], namespaces=[w.namespace], metadata_only=False
        ).complete(looks)
        async with manager:
            held = w.faults.hold(kind=Secret)
            lost = w.faults.lose_answer(verb="create", kind=Secret, times=1 if answers_are_lost else 0)
            await w.write("a")
            await eventually(lambda: held.count, what="the watch of the children lags behind")
            held.remove()

            async def children() -> int:
                return len(await w.user.list(Secret, namespace=w.namespace, labels={"of": "a"}))

            async def there_are_three() -> bool:
                return await children() == 3

            await eventually(there_are_three)
            controller = manager.controllers[0]
            await eventually(lambda: is_idle(controller))
            assert await children() == 3
        assert lost.count == answers_are_lost


async def test_what_the_server_named_is_not_made_again_when_the_answer_was_lost(kube: ControlPlane) -> None:
    async with world(kube) as w:
        manager = w.manager()

        async def have_one(request: Request) -> Result | None:
            if not await manager.client.list(Secret, namespace=w.namespace):
                named = ObjectMeta(generate_name="one-", namespace=w.namespace)
                await manager.client.create(Secret(metadata=named))
            return None

        looks = Looks(manager.client, have_one)
        controller = (
            builder(manager)
            .for_(ConfigMap, namespaces=[w.namespace])
            .watches(Secret, lambda _: [], namespaces=[w.namespace], metadata_only=False)
            .complete(looks)
        )
        async with manager:
            with (
                w.faults.hold(kind=Secret) as held,
                w.faults.lose_answer(verb="create", kind=Secret, times=1) as lost,
            ):
                await w.write("a")
                await eventually(lambda: len(looks.ended) == 2 and is_idle(controller), what="it looks again")
                assert held.count
            assert lost.count == 1
            assert len(await w.user.list(Secret, namespace=w.namespace)) == 1


# 4


@pytest.mark.parametrize("writes", range(4))
async def test_a_crash_at_any_point_loses_nothing_after_a_restart_everything_is_reconciled_again(
    kube: ControlPlane, writes: int
) -> None:
    """After so many writes the process dies; before it is back, the user changes and deletes things."""
    async with world(kube) as w:

        def start() -> Manager:
            manager = w.manager(graceful_shutdown=0)

            async def copy_thrice(request: Request) -> Result | None:
                original = await ignore_not_found(
                    manager.client.get(ConfigMap, "original", namespace=request.namespace)
                )
                for number in range(3):
                    named = ObjectMeta(name=f"copy-{number}", namespace=request.namespace)
                    if original is not None:
                        await manager.client.apply(ConfigMap(metadata=named, data=original.data), force=True)
                return None

            builder(manager).named("copies").watches(
                ConfigMap, lambda _: [w.key("all")], namespaces=[w.namespace]
            ).complete(Looks(manager.client, copy_thrice))
            return manager

        await w.write("original", value="old")
        async with start():
            with w.faults.drop(verb="write", skip=writes) as dying:
                await eventually(lambda: dying.count or w.writes == 3)
                w.faults.drop()  # the network first, so that nothing dies in order
        w.faults.clear()
        await w.write("original", value="new")
        if writes:
            await w.user.delete(ConfigMap, "copy-0", namespace=w.namespace)

        async with start():

            async def are_copied() -> bool:
                return [await w.read(f"copy-{number}") for number in range(3)] == [{"value": "new"}] * 3

            await eventually(are_copied)


# 5


async def test_a_failing_key_backs_off_alone_and_success_or_a_terminal_error_forgets_it(
    kube: ControlPlane,
) -> None:
    async with world(kube) as w:
        manager = w.manager()
        hopeless = True

        async def mark(request: Request) -> Result | None:
            if request.name == "hopeless" and hopeless:
                raise TerminalError("nothing can be done")
            patch = MergePatch({"data": {"seen": "yes"}})
            await manager.client.patch(ConfigMap, request.name, patch, namespace=request.namespace)
            return None

        looks = Looks(manager.client, mark)
        controller = watch_settings(manager, w, looks, workers=1)
        async with manager:
            with w.faults.refuse(500, verb="patch", name="bad") as refused:
                for name in ("bad", "hopeless"):
                    await w.write(name)
                await eventually(lambda: refused.count >= 4)
                for number in range(20):
                    await w.write(f"good-{number}")
                for number in range(20):
                    await eventually(partial(_is_seen, w, f"good-{number}"))

                last = controller.last_look(w.key("bad"))
                assert last is not None
                assert last.failures >= 4
                assert last.again_in is not None
                assert last.again_in >= 0.005 * 2 ** (last.failures - 1) / 2
                assert controller.stats().queue.failing == 1, "a terminal error is not counted"
                assert looks.begun.count("hopeless") == 1, "nor tried again"

            await eventually(lambda: _is_seen(w, "bad"))
            await eventually(lambda: controller.stats().queue.failing == 0, what="success forgets")
            hopeless = False
            await w.write("hopeless", changed="yes")
            await eventually(lambda: _is_seen(w, "hopeless"), what="it is tried when it changes")


async def _is_seen(w: World, name: str) -> bool:
    return (await w.read(name)).get("seen") == "yes"


# 6


async def test_start_up_work_has_low_priority_but_nothing_starves(kube: ControlPlane) -> None:
    async with world(kube) as w:
        names = [f"old-{number:03}" for number in range(100)]
        for name in names:
            await w.write(name)
        manager = w.manager()

        async def come_again(request: Request) -> Result | None:
            # What changes all the time is always more urgent than what only was there at the start.
            if request.name == "urgent" and set(names) - set(looks.ended):
                patch = MergePatch({"data": {"looks": str(len(looks.begun))}})
                await manager.client.patch(ConfigMap, "urgent", patch, namespace=request.namespace)
            return None

        looks = Looks(manager.client, come_again)
        looks.gate.clear()
        watch_settings(manager, w, looks, workers=1)
        async with manager:
            await eventually(lambda: looks.begun)
            await w.write("urgent")
            await eventually(lambda: manager.cache.peek(ConfigMap, w.key("urgent")))
            looks.gate.set()

            await eventually(lambda: len(looks.begun) > 1)
            assert looks.begun[1] == "urgent"
            await eventually(lambda: set(names) <= set(looks.ended), what="the others get their turn")


# 7


class Process:
    """What a manager is to a builder, with another timing of the cache."""

    is_leading = True

    def __init__(self, client: Client, timing: Timing) -> None:
        self.metrics = Metrics()
        self.cache = Cache(client, self.metrics, timing=timing)
        self.client = ReconcileClient(client, self.cache)
        self._controllers: list[Controller] = []

    def add(self, controller: Controller) -> None:
        self._controllers.append(controller)

    async def __aenter__(self) -> Self:
        self._tasks = asyncio.TaskGroup()
        await self.cache.__aenter__()
        await self._tasks.__aenter__()
        self._running = [self._tasks.create_task(each.run()) for each in self._controllers]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._running:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)
        await self.cache.__aexit__(None, None, None)


async def test_a_watch_that_dies_silently_is_noticed(kube: ControlPlane) -> None:
    async with (
        world(kube) as w,
        Proxy.of(w.user.config) as proxy,
        Client(proxy.config(w.user.config)) as client,
    ):
        process = Process(client, Timing(first_wait=0.05, liveness=1.0))
        looks = Looks(process.client)
        watch_settings(process, w, looks)
        async with process:
            await w.write("a", value="old")
            await eventually(lambda: looks.seen.get("a") == [{"value": "old"}])

            assert proxy.strand() > 0, "half-open for ever"
            await w.write("a", value="new")
            await eventually(lambda: looks.seen["a"][-1] == {"value": "new"})


async def test_an_expired_watch_is_listed_again_and_deletions_missed_meanwhile_are_delivered(
    kube: ControlPlane,
) -> None:
    async with world(kube) as w:
        manager = w.manager()
        looks = Looks(manager.client)
        watch_settings(manager, w, looks)
        async with manager:
            for name in ("stays", "goes", "comes-back"):
                await w.write(name, value="old")
            await eventually(lambda: len(looks.seen) == 3)

            away = w.faults.drop(verb="watch")
            assert w.faults.cut(kind=ConfigMap)
            await w.user.delete(ConfigMap, "goes", namespace=w.namespace)
            await w.user.delete(ConfigMap, "comes-back", namespace=w.namespace)
            await w.write("comes-back", value="new")
            await eventually(lambda: away.count)
            with w.faults.refuse(410, verb="watch", times=1) as expired:
                away.remove()
                await eventually(lambda: looks.seen["goes"][-1] is None)
                await eventually(lambda: looks.seen["comes-back"][-1] == {"value": "new"})
            assert expired.count == 1


# 8


async def test_a_missing_permission_stops_only_the_controller_that_needs_it_until_it_is_given(
    kube: ControlPlane, tmp_path: Path
) -> None:
    async with world(kube) as w:
        user = f"operator-of-{w.namespace}"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kube.kubeconfig_for(kube.client_certificate(user)))
        await allow(w, user, "configmaps")
        async with Client(Config.load(kubeconfig)) as client:
            manager = Manager(client=client)
            seeing, blind = Looks(manager.client), Looks(manager.client)
            watch_settings(manager, w, seeing)
            builder(manager).for_(Secret, namespaces=[w.namespace], metadata_only=False).complete(blind)
            async with manager:
                await w.user.create(Secret(metadata=ObjectMeta(name="s", namespace=w.namespace)))
                await w.write("a")
                await eventually(lambda: "a" in seeing.ended)
                stopped = next(each for each in manager.controllers if each.name == "secret")
                await eventually(lambda: stopped.problems)
                said = " ".join(stopped.problems)
                assert "list" in said
                assert (
                    f'a Role in namespace {w.namespace}: - {{apiGroups: [""], resources: ["secrets"]' in said
                )
                assert not blind.begun

                await allow(w, user, "secrets")
                await eventually(lambda: "s" in blind.begun, timeout=50)
                assert not stopped.problems


async def allow(w: World, user: str, resource: str) -> None:
    role = Role(
        metadata=ObjectMeta(name=resource, namespace=w.namespace),
        rules=[PolicyRule(api_groups=[""], resources=[resource], verbs=["get", "list", "watch"])],
    )
    binding = RoleBinding(
        metadata=ObjectMeta(name=resource, namespace=w.namespace),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=resource),
        subjects=[Subject(api_group="rbac.authorization.k8s.io", kind="User", name=user)],
    )
    await w.user.create(role)
    await w.user.create(binding)


async def test_a_kind_that_is_not_there_stops_only_its_controller_until_it_appears(
    kube: ControlPlane,
) -> None:
    class Unheard(CustomResource, group=f"g{secrets.token_hex(4)}.setpoint.dev", version="v1"):
        """A kind that nobody knows yet."""

        spec: dict[str, str] = {}

    async with world(kube) as w:
        manager = w.manager()
        looks, unheard = Looks(manager.client), Looks(manager.client)
        watch_settings(manager, w, looks)
        waiting = builder(manager).for_(Unheard).complete(unheard)
        async with manager:
            await w.write("a")
            await eventually(lambda: "a" in looks.ended)
            await eventually(lambda: waiting.problems)
            assert "Unheard" in " ".join(waiting.problems)

            await w.user.apply(crd_of(Unheard), force=True)
            first = Unheard(metadata=ObjectMeta(name="first", namespace=w.namespace))
            await eventually(lambda: w.user.create(first))
            await eventually(lambda: "first" in unheard.begun, timeout=50)


# 9 to 11 are about what an author writes


class LampSpec(Model):
    colour: str = "white"


class LampStatus(Model):
    shines: str = ""
    conditions: list[Condition] = []


class Lamp(CustomResource, group="contract.setpoint.dev", version="v1"):
    """Shines in its colour: a ConfigMap says so."""

    spec: LampSpec
    status: LampStatus = LampStatus()


@asynccontextmanager
async def lamps(kube: ControlPlane) -> AsyncIterator[World]:
    """A world in which there are lamps."""
    async with world(kube) as w:
        await w.user.apply(crd_of(Lamp), force=True)

        async def are_served() -> bool:
            await w.user.list(Lamp)
            return True

        await eventually(are_served)
        yield w


async def light(w: World, colour: str = "red") -> Lamp:
    named = ObjectMeta(name="lamp", namespace=w.namespace)
    return await w.user.create(Lamp(metadata=named, spec=LampSpec(colour=colour)))


async def lamp(w: World) -> Lamp:
    return await w.user.get(Lamp, "lamp", namespace=w.namespace)


async def paint(w: World, colour: str) -> None:
    patch = MergePatch({"spec": {"colour": colour}})
    await w.user.patch(Lamp, "lamp", patch, namespace=w.namespace)


async def shines(w: World, colour: str) -> bool:
    return (await lamp(w)).status.shines == colour and (await w.read("lamp"))["colour"] == colour


def shade(one: Lamp) -> ConfigMap:
    data = {"colour": one.spec.colour, "made-by": "lighting"}
    return ConfigMap(metadata=ObjectMeta(name=one.metadata.name), data=data)


def lighting(name: str = "lighting", **options: Any) -> Operator:
    operator = Operator(name)

    @operator.controller(Lamp, owns=[ConfigMap], **options)
    async def reconcile(one: Lamp, ctx: Context) -> None:
        await ctx.apply(shade(one))
        one.status.shines = one.spec.colour
        ctx.set_condition("Lit", True, "Shining", one.spec.colour)

    return operator


def run(w: World, operator: Operator, **options: Any) -> Manager:
    manager = w.manager(namespaces=[w.namespace], **options)
    operator.add_to(manager)
    return manager


# 9


async def test_at_its_fixed_point_a_reconcile_writes_nothing(kube: ControlPlane) -> None:
    async with lamps(kube) as w:
        operator = lighting()
        async with run(w, operator) as manager:
            await light(w)
            await eventually(lambda: shines(w, "red"))
            (controller,) = manager.controllers
            await eventually(lambda: is_idle(controller))
            before = w.asked()
            for _ in range(5):
                controller.look_at(w.key("lamp"))
                await eventually(lambda: is_idle(controller))
            assert w.asked() == before
        async with run(w, operator) as manager:  # and after a restart
            (controller,) = manager.controllers
            await eventually(lambda: controller.last_look(w.key("lamp")))
            await eventually(lambda: is_idle(controller))
        assert w.writes == sum(asked.is_write for asked in before)


async def test_a_hot_loop_is_detected_and_named_and_slowed_but_never_stopped(
    kube: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    async with lamps(kube) as w:
        manager = run(w, lighting())
        stubborn = True

        async def put_it_out(request: Request) -> Result | None:
            found = await ignore_not_found(w.user.get(ConfigMap, "lamp", namespace=w.namespace))
            if stubborn and found is not None and (found.data or {}).get("colour") == "red":
                patch = MergePatch({"data": {"colour": "black"}})
                await w.user.patch(found, patch, field_manager="darkness")
            return None

        other = Manager(client=w.user, namespaces=[w.namespace])
        builder(other).for_(ConfigMap).complete(put_it_out)
        async with manager, other:
            await light(w)
            await eventually(
                lambda: b'setpoint_hot_loops_total{controller="lamp"} 1' in manager.metrics.exposition()
            )
            (told,) = [record.getMessage() for record in caplog.records if "hot loop" in record.getMessage()]
            for named in (f"{w.namespace}/lamp", "data.colour", "darkness"):
                assert named in told
            stubborn = False
            await eventually(lambda: shines(w, "red"), what="it goes on, and wins")


# 10


async def test_status_is_written_only_when_it_changed_and_as_the_difference_alone(kube: ControlPlane) -> None:
    async with lamps(kube) as w, run(w, lighting()) as manager:
        made = await light(w)
        await eventually(lambda: shines(w, "red"))
        first = await lamp(w)
        lit = find_condition(first.status.conditions, "Lit")
        assert lit is not None
        assert (lit.status, lit.observed_generation) == ("True", made.metadata.generation)

        theirs = Condition(
            type="Theirs",
            status="True",
            reason="Because",
            message="",
            last_transition_time=lit.last_transition_time,
        )
        with w.faults.hold(kind=Lamp):  # the operator does not know yet
            first.status.conditions.append(theirs)
            await w.user.update_status(first)
            (controller,) = manager.controllers
            controller.look_at(w.key("lamp"))
            await eventually(lambda: is_idle(controller))
        with w.faults.refuse(409, subresource="status", times=2) as refused:
            await paint(w, "blue")
            await eventually(lambda: shines(w, "blue"))
        assert refused.count == 2
        after = await lamp(w)
        assert find_condition(after.status.conditions, "Theirs") == theirs
        now = find_condition(after.status.conditions, "Lit")
        assert now is not None
        assert (now.message, now.observed_generation) == ("blue", after.metadata.generation)
        assert now.last_transition_time == lit.last_transition_time, "it was lit all the time"


async def test_status_is_written_also_when_reconcile_raised(kube: ControlPlane) -> None:
    operator = Operator("lighting")

    @operator.controller(Lamp)
    async def reconcile(one: Lamp, ctx: Context) -> None:
        ctx.set_condition("Lit", False, "NoPower", "the fuse is gone")
        raise TerminalError("the fuse is gone")

    async with lamps(kube) as w, run(w, operator):
        with w.faults.refuse(500, subresource="status", times=1) as refused:
            await light(w)

            async def is_told() -> bool:
                lit = find_condition((await lamp(w)).status.conditions, "Lit")
                return lit is not None and lit.reason == "NoPower"

            await eventually(is_told)
        assert refused.count == 1


# 11


async def test_a_finalizer_is_added_before_the_first_side_effect_and_removed_only_after_clean_up_succeeded(
    kube: ControlPlane,
) -> None:
    operator = lighting()
    cleaned: list[bool] = []
    is_stuck = True

    @operator.finalizer(Lamp)
    async def switch_off(one: Lamp, ctx: Context) -> None:
        await ctx.delete(ConfigMap, one.metadata.name or "")
        cleaned.append(not is_stuck)
        if is_stuck:
            raise SetpointError("switch off the lamp", "the switch is stuck")

    async with lamps(kube) as w, run(w, operator):
        with w.faults.lose_answer(verb="patch", kind=Lamp, subresource="", times=1) as lost:
            await light(w)
            await eventually(lambda: shines(w, "red"))
        assert lost.count == 1
        writes = [asked for asked in w.faults.requests if asked.is_write]
        assert (writes[0].plural, writes[0].verb) == ("lamps", "patch"), "the finalizer first"
        assert (await lamp(w)).metadata.finalizers

        await w.user.delete(Lamp, "lamp", namespace=w.namespace)
        await eventually(lambda: len(cleaned) > 2)
        assert (await lamp(w)).metadata.finalizers, "it is held while the clean-up fails"
        is_stuck = False

        async def is_gone() -> bool:
            return await ignore_not_found(lamp(w)) is None

        await eventually(is_gone)
        assert cleaned.count(True) == 1
        assert cleaned[-1], "nothing is cleaned up twice once that succeeded"


@pytest.mark.parametrize("writes", range(3))
async def test_a_crash_between_finalizer_and_clean_up_leaves_nothing_behind(
    kube: ControlPlane, writes: int
) -> None:
    """The process dies after so many writes, and while it is down the object is deleted."""
    operator = lighting()
    switched_off = 0

    @operator.finalizer(Lamp)
    async def switch_off(one: Lamp, ctx: Context) -> None:
        nonlocal switched_off
        await ctx.delete(ConfigMap, one.metadata.name or "")
        switched_off += 1

    async with lamps(kube) as w:
        async with run(w, operator, graceful_shutdown=0):
            with w.faults.drop(verb="write", skip=writes) as dying:
                await light(w)
                await eventually(lambda: dying.count)
                w.faults.drop()
        w.faults.clear()
        await w.user.delete(Lamp, "lamp", namespace=w.namespace)

        async with run(w, operator) as manager:

            async def is_gone() -> bool:
                return await ignore_not_found(lamp(w)) is None

            await eventually(is_gone)
            (controller,) = manager.controllers
            await eventually(lambda: is_idle(controller))
            assert await ignore_not_found(w.read("lamp")) is None
        assert switched_off == (1 if writes else 0), "where it was never held, there was nothing to clean up"


# 12

SHORT: dict[str, Any] = {"lease_duration": 3, "renew_deadline": 2.0, "retry_period": 0.2}


async def holder(w: World) -> str:
    return (await w.user.get(Lease, "operator", namespace=w.namespace)).spec.holder_identity or ""


class Replica:
    """One of several processes; it says in everything it sees that it was there."""

    def __init__(self, w: World, client: Client, name: str) -> None:
        election = LeaderElection("operator", w.namespace, name, **SHORT)
        self.manager = Manager(client=client, leader_election=election, graceful_shutdown=10)

        async def sign(request: Request) -> Result | None:
            patch = MergePatch({"data": {"signed": name}})
            await self.manager.client.patch(ConfigMap, request.name, patch, namespace=request.namespace)
            return None

        self.looks = Looks(self.manager.client, sign)
        watch_settings(self.manager, w, self.looks)


async def is_signed(w: World, name: str, by: str) -> bool:
    return (await w.read(name)).get("signed") == by


async def test_no_reconcile_starts_after_the_lease_may_have_been_lost_and_writes_are_refused(
    kube: ControlPlane,
) -> None:
    async with world(kube) as w:
        first, second = Replica(w, w.operator, "first"), Replica(w, w.user, "second")
        leading = asyncio.create_task(first.manager.run())
        await w.write("a")
        await eventually(lambda: is_signed(w, "a", "first"))
        async with second.manager:
            first.looks.gate.clear()
            await w.write("in-hand")
            await eventually(lambda: "in-hand" in first.looks.begun)
            with w.faults.stall(kind=Lease) as stalled:  # all else still works
                with pytest.raises(LeadershipLost):
                    await leading
                begun = len(first.looks.begun)
                with pytest.raises(LeadershipLost):
                    await first.manager.client.create(
                        ConfigMap(metadata=ObjectMeta(name="late", namespace=w.namespace))
                    )
                await eventually(lambda: is_signed(w, "in-hand", "second"), what="another takes over")
                await w.write("b")
                await eventually(lambda: is_signed(w, "b", "second"))
            assert stalled.count
        assert len(first.looks.begun) == begun


async def test_on_shutdown_workers_finish_and_then_the_lease_is_released(kube: ControlPlane) -> None:
    async with world(kube) as w:
        first = Replica(w, w.operator, "first")
        leading = asyncio.create_task(first.manager.run())
        first.looks.gate.clear()
        await w.write("a")
        await eventually(lambda: "a" in first.looks.begun)

        first.manager.stop()
        await w.write("b")
        renewed = (await w.user.get(Lease, "operator", namespace=w.namespace)).spec.renew_time

        async def is_renewed() -> bool:
            lease = await w.user.get(Lease, "operator", namespace=w.namespace)
            return lease.spec.holder_identity == "first" and lease.spec.renew_time != renewed

        await eventually(is_renewed, what="the lease is kept while there is work in hand")
        first.looks.gate.set()
        await leading

        assert await is_signed(w, "a", "first"), "what was begun is finished"
        assert first.looks.begun == ["a"], "and nothing else is begun"
        assert await holder(w) == ""


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "paused"])
async def test_a_leader_that_is_killed_or_paused_is_followed_by_another_and_writes_no_more(
    kube: ControlPlane, fate: signal.Signals
) -> None:
    async with world(kube) as w, history(w, "a") as signed, replicas(kube, w) as processes:
        await w.write("a")
        leader = await eventually(lambda: holder(w))
        follower = next(name for name in processes if name != leader)
        await eventually(lambda: is_signed(w, "a", leader))

        processes[leader].send_signal(fate)
        await eventually(lambda: holder_is(w, follower))
        await w.write("a", signed="nobody")
        await eventually(lambda: is_signed(w, "a", follower))
        if fate is signal.SIGSTOP:
            processes[leader].send_signal(signal.SIGCONT)
            _, said = await processes[leader].communicate()
            assert b"LeadershipLost" in said
        await w.write("a", signed="the end")
        await eventually(lambda: is_signed(w, "a", follower))

        await eventually(lambda: signed[-2:] == ["the end", follower])
        assert leader not in signed[signed.index(follower) :]


async def holder_is(w: World, name: str) -> bool:
    return await holder(w) == name


@asynccontextmanager
async def history(w: World, name: str) -> AsyncIterator[list[str]]:
    """Who has signed, in order."""
    signed: list[str] = []

    async def follow() -> None:
        async with w.user.watch(ConfigMap, namespace=w.namespace, fields={"metadata.name": name}) as changes:
            async for change in changes:
                signed.append((change.object.data or {}).get("signed", ""))  # noqa: PERF401 - as it comes

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow())
        try:
            yield signed
        finally:
            following.cancel()


@asynccontextmanager
async def replicas(kube: ControlPlane, w: World) -> AsyncIterator[dict[str, asyncio.subprocess.Process]]:
    """Two processes of the same operator."""
    started: dict[str, asyncio.subprocess.Process] = {}
    try:
        for name in ("first", "second"):
            started[name] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.conformance.replica", w.namespace, name),
                cwd=ROOT,
                env={"KUBECONFIG": str(kube.kubeconfig)},
                stderr=asyncio.subprocess.PIPE,
            )
        yield started
    finally:
        for process in started.values():
            if process.returncode is None:
                process.kill()
                await process.communicate()


# 13


class Notes(Object, group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True):
    """A class that knows less of a ConfigMap than the server does: nothing but its metadata."""


async def test_unknown_fields_survive_an_update_and_a_conflict(kube: ControlPlane) -> None:
    async with world(kube) as w:
        manager = w.manager()

        async def annotate(request: Request) -> Result | None:
            notes = await manager.client.get(Notes, request.name, namespace=request.namespace)
            notes.metadata.annotations = {**(notes.metadata.annotations or {}), "seen": "yes"}
            await manager.client.update(notes)
            return None

        looks = Looks(manager.client, annotate)
        watch_settings(manager, w, looks)
        async with manager:
            with w.faults.refuse(409, verb="update", times=2) as refused:
                await w.write("a", value="kept")

                async def is_annotated() -> bool:
                    found = await w.user.get(ConfigMap, "a", namespace=w.namespace)
                    assert found.data == {"value": "kept"}
                    return (found.metadata.annotations or {}).get("seen") == "yes"

                await eventually(is_annotated)
            assert refused.count == 2


# 14


async def test_every_wait_has_a_deadline_and_every_task_a_parent(kube: ControlPlane) -> None:
    """On a network that has gone half-open, requests end by their deadline and a manager by its own.

    That no task is left is checked after every test (tests/conftest.py).
    """
    async with (
        world(kube) as w,
        Proxy.of(w.user.config) as proxy,
        Client(proxy.config(w.user.config), timeout=1.0) as client,
    ):
        manager = Manager(client=client, graceful_shutdown=2)

        async def write(request: Request) -> Result | None:
            patch = MergePatch({"data": {"seen": "yes"}})
            await client.patch(ConfigMap, request.name, patch, namespace=request.namespace)
            return None

        looks = Looks(manager.client, write)
        looks.gate.clear()
        controller = watch_settings(manager, w, looks)
        async with manager:
            await w.write("a")
            await eventually(lambda: looks.begun)
            proxy.freeze()
            looks.gate.set()
            await eventually(lambda: controller.stats().errors)
            assert "no answer within 1 s" in controller.stats().errors[w.key("a")].error


# Under all of them


def conflict(faults: Faults) -> Rule:
    return faults.refuse(409, verb="write", times=3)


def throttle(faults: Faults) -> Rule:
    return faults.refuse(429, verb="write", retry_after=1, times=2)


def fail_inside(faults: Faults) -> Rule:
    return faults.refuse(500, verb="write", times=3)


def go_away(faults: Faults) -> Rule:
    return faults.refuse(503, times=10)


def disconnect(faults: Faults) -> Rule:
    return faults.drop(times=20)


def lose_answers(faults: Faults) -> Rule:
    return faults.lose_answer(verb="write", times=2)


def time_out(faults: Faults) -> Rule:
    return faults.lose_answer(504, verb="write", times=2)


def answer_late(faults: Faults) -> Rule:
    return faults.delay(after=12, verb="write", times=1)


def any_of_them(faults: Faults) -> Rule:
    faults.refuse(500, chance=0.2, times=10)
    faults.lose_answer(verb="write", chance=0.2, times=10)
    faults.delay(before=0.05, after=0.05, chance=0.5, times=50)
    faults.double()
    return faults.refuse(409, verb="write", chance=0.3, times=10)


@pytest.mark.parametrize(
    "fault",
    [conflict, throttle, fail_inside, go_away, disconnect, lose_answers, time_out, answer_late, any_of_them],
    ids=lambda fault: fault.__name__,
)
async def test_whatever_becomes_of_its_requests_a_reconciler_ends_where_it_should_and_stays_there(
    kube: ControlPlane, fault: Callable[[Faults], Rule]
) -> None:
    async with world(kube) as w:
        manager = w.manager()

        async def copy(request: Request) -> Result | None:
            original = await ignore_not_found(
                manager.client.get(ConfigMap, request.name, namespace=request.namespace)
            )
            wanted = None if original is None else original.data
            held = await ignore_not_found(
                manager.client.get(Secret, request.name, namespace=request.namespace)
            )
            have = None if held is None else {key: value.decode() for key, value in (held.data or {}).items()}
            named = ObjectMeta(name=request.name, namespace=request.namespace)
            match wanted, held:
                case None, None:
                    pass
                case None, Secret():
                    await manager.client.delete(held)
                case dict(), None:
                    await manager.client.create(Secret(metadata=named, string_data=wanted))
                case dict(), Secret() if have != wanted:
                    held.data = {key: value.encode() for key, value in wanted.items()}
                    await manager.client.update(held)
            return None

        controller = (
            builder(manager)
            .for_(ConfigMap, namespaces=[w.namespace])
            .watches(Secret, to_same_name, namespaces=[w.namespace], metadata_only=False)
            .with_options(workers=4)
            .complete(Looks(manager.client, copy))
        )
        rule = fault(w.faults)
        async with manager:
            for number in range(5):
                await w.write(f"a-{number}", value="old")
            await eventually(lambda: rule.count)
            await w.write("a-0", value="new")
            await w.user.delete(ConfigMap, "a-1", namespace=w.namespace)

            async def are_copied() -> bool:
                secrets = await w.user.list(Secret, namespace=w.namespace)
                values = {each.metadata.name: (each.data or {}).get("value") for each in secrets}
                assert values == {"a-0": b"new", "a-2": b"old", "a-3": b"old", "a-4": b"old"}
                return True

            await eventually(are_copied, timeout=50)
            w.faults.clear()
            await eventually(lambda: is_idle(controller))
            writes = w.writes
            for informer in manager.cache.stats():
                assert informer.is_synced
            for key in ("a-0", "a-1", "a-2"):
                controller.look_at(w.key(key))
            await eventually(lambda: is_idle(controller))
            assert w.writes == writes, "at its fixed point it writes nothing"


def to_same_name(secret: Secret) -> list[Key]:
    return [Key(secret.metadata.namespace or "", secret.metadata.name or "")]


@pytest.mark.parametrize("late", [ConfigMap, Secret], ids=["child-before-parent", "parent-before-child"])
async def test_reordering_across_kinds_child_before_parent_or_the_reverse_leads_to_the_same_end(
    kube: ControlPlane, late: type[ConfigMap | Secret]
) -> None:
    """A parent and its child are made, changed and deleted by the user, and one of them is heard of late.

    The operator keeps a third object, which says what it knows of both.
    """
    async with world(kube) as w:
        manager = w.manager()
        told: list[str] = []

        async def tell(request: Request) -> Result | None:
            client, namespace = manager.client, request.namespace
            parent = await ignore_not_found(client.get(ConfigMap, request.name, namespace=namespace))
            child = await ignore_not_found(client.get(Secret, request.name, namespace=namespace))
            known = "-".join(
                "none" if each is None else (each.metadata.labels or {})["is"] for each in (parent, child)
            )
            told.append(known)
            report = Lease(metadata=ObjectMeta(name=request.name, namespace=namespace, labels={"is": known}))
            await client.apply(report, force=True)
            return None

        controller = (
            builder(manager)
            .for_(ConfigMap, namespaces=[w.namespace])
            .owns(Secret, namespaces=[w.namespace], any_owner=True, metadata_only=False)
            .complete(tell)
        )
        early = Secret if late is ConfigMap else ConfigMap

        async def are_told(known: str) -> None:
            async def so() -> bool:
                report = await w.user.get(Lease, "a", namespace=w.namespace)
                return (report.metadata.labels or {})["is"] == known

            await eventually(so, what=f"the operator has told of {known}")

        async def exchanged(known: str, between: str) -> None:
            """One kind's events have arrived, and then the other's do."""
            await eventually(lambda: told and told[-1] == between, what=f"only {early.__name__} arrives")
            await eventually(lambda: held.count)
            held.remove()
            await are_told(known)

        async with manager:
            held = w.faults.hold(kind=late)
            parent = ConfigMap(metadata=ObjectMeta(name="a", namespace=w.namespace, labels={"is": "new"}))
            parent = await w.user.create(parent)
            child = Secret(metadata=ObjectMeta(name="a", namespace=w.namespace, labels={"is": "new"}))
            set_owner_reference(parent, child)
            await w.user.create(child)
            await exchanged("new-new", "none-new" if late is ConfigMap else "new-none")

            held = w.faults.hold(kind=late)
            for kind in (late, early):  # the one that is heard of last is changed first
                patch = MergePatch({"metadata": {"labels": {"is": "old"}}})
                await w.user.patch(kind, "a", patch, namespace=w.namespace)
            await exchanged("old-old", "new-old" if late is ConfigMap else "old-new")

            held = w.faults.hold(kind=late)
            for kind in (late, early):
                await w.user.delete(kind, "a", namespace=w.namespace)
            await exchanged("none-none", "old-none" if late is ConfigMap else "none-old")
            await eventually(lambda: is_idle(controller))
            assert told[-1] == "none-none"


@pytest.mark.deadline(120)
async def test_an_api_server_that_is_killed_and_comes_back_costs_nothing_but_time(
    new_plane: NewPlane,
) -> None:
    async with new_plane() as kube, world(kube) as w:
        manager = w.manager()
        looks = Looks(manager.client)
        watch_settings(manager, w, looks)
        async with manager:
            for name in ("stays", "goes"):
                await w.write(name, value="old")
            await eventually(lambda: len(looks.seen) == 2)

            away = w.faults.drop()  # it must not see what happens before the server goes
            w.faults.cut()
            await w.user.delete(ConfigMap, "goes", namespace=w.namespace)
            await w.write("stays", value="new")
            await asyncio.to_thread(kube.compact)
            await asyncio.to_thread(kube.stop_api_server)
            away.remove()
            await asyncio.to_thread(kube.start_api_server)

            await eventually(lambda: looks.seen["goes"][-1] is None, timeout=50)
            await eventually(lambda: looks.seen["stays"][-1] == {"value": "new"})
            await w.write("stays", value="newer")
            await eventually(lambda: looks.seen["stays"][-1] == {"value": "newer"})
