"""observedGeneration where a kind has several controllers: nobody claims what another has yet to process."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from setpoint.api import CustomResource, Key, Model, Object, ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.api.wire import Snapshot
from setpoint.cache.store import Seen
from setpoint.client.client import Client
from setpoint.controller.context import Context
from setpoint.controller.generations import GenerationTracker
from setpoint.controller.predicates import annotations_changed, generation_changed, selected
from setpoint.controller.result import Result
from setpoint.errors import SetpointError, TerminalError
from setpoint.manager.manager import Manager
from setpoint.operator import Operator
from setpoint.server.server import ApiServer
from tests.controller.cluster import Cluster, Parent, quiet, running, until
from tests.controller.world import GROUP, Spec

WEB = Key("shop", "web")


def cluster(**more: Any) -> Cluster:
    made = Cluster()
    made.put("parents", "web", **more)
    return made


def observed(server: Cluster) -> int | None:
    found: int | None = server.of("parents").get("status", {}).get("observedGeneration")
    return found


def paint(server: Cluster, colour: str) -> int:
    """Change the spec; the generation that it then has."""
    generation: int = server.change("parents", "web", {"spec": {"colour": colour}})["metadata"]["generation"]
    return generation


@pytest.mark.virtual_time
@pytest.mark.parametrize("slow_first", [True, False])
async def test_a_generation_is_observed_when_every_controller_has_processed_it(slow_first: bool) -> None:
    server, operator, gate = cluster(), Operator("op"), asyncio.Event()
    gate.set()
    quick_runs: list[int | None] = []

    async def slow(parent: Parent, ctx: Context) -> None:
        await gate.wait()
        ctx.set_condition("Slow", True, "Done", parent.spec.colour)

    async def quick(parent: Parent, ctx: Context) -> None:
        quick_runs.append(parent.metadata.generation)
        ctx.set_condition("Quick", True, "Done", parent.spec.colour)

    for function in (slow, quick) if slow_first else (quick, slow):
        operator.controller(Parent, name=function.__name__)(function)
    async with running(operator, server):
        await until(lambda: observed(server) == 1)
        gate.clear()
        generation = paint(server, "blue")
        await until(lambda: generation in quick_runs)
        await quiet(server)
        assert observed(server) == 1, "the other is still at it"
        gate.set()
        await until(lambda: observed(server) == generation)
        said = {each["type"]: each["message"] for each in server.of("parents")["status"]["conditions"]}
        assert said == {"Slow": "blue", "Quick": "blue"}
        await quiet(server)
        count = len(server.writes())
        await asyncio.sleep(3600)
        assert len(server.writes()) == count, "and then it rests"


@pytest.mark.virtual_time
async def test_a_controller_that_fails_holds_the_generation_back_until_no_retry_helps() -> None:
    server, operator, errors = cluster(), Operator("op"), [SetpointError("", "not yet")] * 3
    errors.append(TerminalError("never"))
    before: list[int | None] = []

    @operator.controller(Parent, name="good", when=generation_changed)
    async def good(parent: Parent, ctx: Context) -> None: ...

    @operator.controller(Parent, name="bad", when=generation_changed)
    async def bad(parent: Parent, ctx: Context) -> None:
        before.append(observed(server))
        raise errors.pop(0)

    async with running(operator, server):
        await until(lambda: not errors)
        await until(lambda: observed(server) == 1)
    assert before == [None] * 4


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "leaves_out",
    [
        {"when": selected({"colour": "blue"})},
        {"build": lambda builder, _: builder.when(selected({"colour": "blue"}))},
    ],
    ids=["when", "build"],
)
async def test_a_controller_whose_filter_leaves_an_object_out_holds_nothing_back(leaves_out: Any) -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, name="all")
    async def everything(parent: Parent, ctx: Context) -> None: ...

    @operator.controller(Parent, name="some", **leaves_out)
    async def some(parent: Parent, ctx: Context) -> None:
        raise AssertionError("it is not for this one")

    async with running(operator, server):
        await until(lambda: observed(server) == 1)
        generation = paint(server, "blue")
        await until(lambda: observed(server) == generation)


@pytest.mark.virtual_time
@pytest.mark.parametrize("verify", [True, False], ids=["ahead of the watch", "as the watch is"])
async def test_a_controller_that_ignores_changes_of_the_spec_holds_nothing_back(verify: bool) -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, name="all", verify=verify)
    async def everything(parent: Parent, ctx: Context) -> None: ...

    @operator.controller(Parent, name="notes", labels="!hidden", when=annotations_changed)
    async def notes(parent: Parent, ctx: Context) -> None: ...

    async with running(operator, server):
        await until(lambda: observed(server) == 1)
        for colour in ("blue", "green"):
            paint(server, colour)
            await until(lambda: observed(server) == server.of("parents")["metadata"]["generation"])


class JarSpec(Model):
    size: int = 1


class JarStatus(Model):
    observed_generation: int | None = None


class Jar(CustomResource, group=GROUP, version="v1"):
    spec: JarSpec = JarSpec()
    status: JarStatus = JarStatus()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "leaves_out",
    [{"labels": {"colour": "blue"}}, {"namespaces": ["elsewhere"]}],
    ids=["labels", "namespaces"],
)
async def test_a_controller_whose_watch_leaves_an_object_out_holds_nothing_back(leaves_out: Any) -> None:
    operator = Operator("op")

    @operator.controller(Jar, name="all")
    async def everything(jar: Jar, ctx: Context) -> None: ...

    @operator.controller(Jar, name="some", **leaves_out)
    async def some(jar: Jar, ctx: Context) -> None:
        raise AssertionError("it is not for this one")

    async with ApiServer() as server, Client(transport=server.transport()) as client:
        for definition in operator.crds():
            await client.create(definition)
        manager = Manager(client=client)
        operator.add_to(manager)
        async with manager, asyncio.timeout(20):
            jar = await client.create(Jar(metadata=ObjectMeta(name="web", namespace="default")))
            for generation in (1, 2):
                while jar.status.observed_generation != generation:
                    await asyncio.sleep(0.01)
                    jar = await client.get(Jar, "web", namespace="default")
                size = MergePatch({"spec": {"size": generation + 1}})
                jar = await client.patch(Jar, "web", size, namespace="default")


class Plain(Model):
    phase: str | None = None


class ParentWithout(
    Object, group=GROUP, version="v1", kind="Parent", plural="parents", subresources=["status"]
):
    """The same kind, by somebody whose class of it has no observedGeneration."""

    spec: Spec = Spec()
    status: Plain = Plain()


@pytest.mark.virtual_time
async def test_the_last_to_process_a_generation_need_not_be_able_to_write_it() -> None:
    server, operator, gate = cluster(), Operator("op"), asyncio.Event()

    @operator.controller(Parent, name="writes", when=generation_changed)
    async def writes(parent: Parent, ctx: Context) -> None: ...

    @operator.controller(ParentWithout, name="cannot", when=generation_changed)
    async def cannot(parent: ParentWithout, ctx: Context) -> None:
        await gate.wait()

    async with running(operator, server):
        await quiet(server)
        assert observed(server) is None
        gate.set()
        await until(lambda: observed(server) == 1)


@pytest.mark.virtual_time
async def test_a_controller_that_asks_to_run_again_has_processed_the_generation() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, name="again")
    async def again(parent: Parent, ctx: Context) -> Result:
        return Result(requeue_after=60)

    @operator.controller(Parent, name="once")
    async def once(parent: Parent, ctx: Context) -> None: ...

    async with running(operator, server):
        await until(lambda: observed(server) == 1, within=30)


# Every order of events.


def snapshot(uid: int, generation: int, *, labelled: bool) -> Snapshot:
    metadata = {
        "name": "web",
        "namespace": "shop",
        "uid": str(uid),
        "generation": generation,
        "labels": {"mine": "yes"} if labelled else {},
    }
    return Snapshot.of(json.dumps({"metadata": metadata}).encode())


@dataclass
class World:
    """One object, and controllers that hear of it late, take their time, and write its status."""

    chance: random.Random
    uid: int = 1
    generation: int = 1
    labelled: bool = True
    observed: int = 0
    history: list[Snapshot] = field(default_factory=list)
    controllers: list[Simulated] = field(default_factory=list)

    def change(self) -> None:
        what = self.chance.random()
        if what < 0.1:
            self.uid, self.generation, self.observed = self.uid + 1, 1, 0
        elif what < 0.3:
            self.labelled = not self.labelled
        else:
            self.generation += 1
        self.record()

    def record(self) -> None:
        self.history.append(snapshot(self.uid, self.generation, labelled=self.labelled))


@dataclass
class Simulated:
    """One controller: what it has heard, its queue, its reconcile under way, and what it has processed."""

    world: World
    tracker: GenerationTracker
    by_label: bool  # its watch selects by label
    ignores: bool  # its ``when`` ignores changes of the generation
    can_write: bool
    heard: int = 0
    held: Snapshot | None = None
    is_queued: bool = False
    running: tuple[Snapshot, bool | None] | None = None
    finished: dict[int, int] = field(default_factory=dict)  # by uid, the generation whose status is written
    relevant: dict[int, int] = field(default_factory=dict)  # by uid, the generation it was to process

    def selects(self, found: Snapshot) -> bool:
        return not self.by_label or bool(found.metadata.labels)

    def wake(self, _: Key) -> None:
        self.is_queued = True

    def hear(self) -> None:
        new, old = self.world.history[self.heard], self.held
        self.heard += 1
        if old is not None and (not self.selects(new) or new.metadata.uid != old.metadata.uid):
            self.held = None
            self.tracker.on_change(Seen("DELETED", old, None), True)
            old = None
        if not self.selects(new):
            return
        self.held = new
        matters = old is None or not self.ignores
        if matters:
            self.relevant[int(new.metadata.uid)] = new.metadata.generation
        self.tracker.on_change(Seen("ADDED" if old is None else "UPDATED", old, new), matters)
        self.is_queued |= matters

    def steps(self) -> list[Any]:
        may = []
        if self.heard < len(self.world.history):
            may.append(self.hear)
        if self.running is not None:
            may.append(self.check if self.running[1] is None else self.finish)
        elif self.is_queued:
            may.append(self.start)
        return may

    def start(self) -> None:
        self.is_queued = False
        if self.held is not None:
            self.running = (self.held, None)

    def check(self) -> None:
        """The author's function returned, or failed and is retried."""
        assert self.running is not None
        if self.world.chance.random() < 0.2:
            self.running, self.is_queued = None, True
            return
        found = self.running[0].metadata
        may = self.tracker.may_observe(WEB, found.uid, found.generation)
        self.running = (self.running[0], may)
        for other in self.world.controllers:
            if may and other is not self:
                wanted = other.obligation(self.held or self.running[0], int(found.uid), found.generation)
                assert other.finished.get(int(found.uid), 0) >= wanted

    def finish(self) -> None:
        """The status is written, or that failed and all is retried."""
        assert self.running is not None
        (found, may), self.running = self.running, None
        if self.world.chance.random() < 0.2:
            self.is_queued = True
            return
        uid, generation = int(found.metadata.uid), found.metadata.generation
        self.finished[uid] = max(generation, self.finished.get(uid, 0))
        is_written = self.can_write and uid == self.world.uid and (may or self.world.observed == generation)
        if is_written and may:
            self.world.observed = max(self.world.observed, generation)  # see write_status
        self.tracker.processed(
            WEB,
            found.metadata.uid,
            generation,
            is_written=bool(is_written),
            is_withheld=self.can_write and not may and not is_written,
        )

    def obligation(self, seen: Snapshot, uid: int, generation: int) -> int:
        """What it has to have processed before another, who sees the object so, claims a generation."""
        mine = self.held
        if mine is not None and int(mine.metadata.uid) == uid and mine.metadata.generation >= generation:
            return min(self.relevant[uid], generation)
        return generation if self.selects(seen) and not self.ignores else 0


@pytest.mark.parametrize("block", range(8))
def test_in_every_order_of_events_nobody_claims_for_another_and_the_last_generation_is_observed(
    block: int,
) -> None:
    for seed in range(block * 250, (block + 1) * 250):
        chance = random.Random(seed)
        world, peers = World(chance), list[GenerationTracker]()
        world.record()
        for number in range(chance.choice((2, 2, 3))):
            made = Simulated(
                world,
                GenerationTracker(peers),
                by_label=number > 0 and chance.random() < 0.5,
                ignores=number > 0 and chance.random() < 0.3,
                can_write=number == 0 or chance.random() < 0.7,
            )
            made.tracker.connect(selects=made.selects, reconcile=made.wake)
            world.controllers.append(made)
        changes = chance.randrange(6)
        while steps := [step for each in world.controllers for step in each.steps()] + (
            [world.change] if changes else []
        ):
            step = chance.choice(steps)
            changes -= step == world.change
            step()
        assert world.observed == world.generation, f"seed {seed}: nobody wrote the last generation"
