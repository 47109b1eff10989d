"""An operator as its author writes it: what is called when, and what is written for it."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from setpoint.api import Condition, CustomResource, Key, Model
from setpoint.api.forms import untyped
from setpoint.client.client import Client
from setpoint.controller.builder import Builder
from setpoint.controller.children import Ready
from setpoint.controller.context import LABEL, Context
from setpoint.controller.mapping import to_itself
from setpoint.controller.predicates import selected
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Kind
from setpoint.controller.sync_context import SyncContext
from setpoint.controller.worker import Looked
from setpoint.errors import Conflict, RetryLater, SetpointError, TerminalError
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.logs import JsonFormatter, TextFormatter
from setpoint.manager.manager import Manager
from setpoint.operator import Operator, label_value
from tests.controller.cluster import Child, Cluster, Parent, Room, child, quiet, running, until
from tests.peer import status

WEB = Key("shop", "web")
FINALIZER = "op.setpoint.dev/cleanup"


def cluster(**more: Any) -> Cluster:
    made = Cluster()
    made.put("parents", "web", **more)
    return made


def touch(server: Cluster) -> None:
    """Have the Parent looked at again."""
    server.change("parents", "web", {"metadata": {"annotations": {"touched": str(server.version)}}})


async def looked(manager: Manager) -> Looked:
    """What came of the first look at the Parent."""
    (controller,) = manager.controllers
    await until(lambda: controller.last_look(WEB))
    found = controller.last_look(WEB)
    assert found is not None
    return found


# The whole of it.


@pytest.mark.virtual_time
async def test_at_its_fixed_point_a_reconcile_writes_nothing() -> None:
    server, operator, looks = cluster(), Operator("op"), list[Key]()

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> None:
        looks.append(ctx.request)
        applied = await ctx.apply(child(colour=parent.spec.colour))
        parent.status.phase = f"painted {applied.spec.colour}"
        ctx.set_condition("Ready", True, "Painted")

    async with running(operator, server):
        await quiet(server)
        assert server.writes() == ["apply children shop/web", "patch parents/status shop/web"]
        assert server.of("children")["metadata"]["labels"] == {LABEL: "op.parent"}
        for seconds in (3, 60, 3600):
            looks.clear()
            touch(server)
            await until(lambda: looks)
            await asyncio.sleep(seconds)
        assert len(server.writes()) == 2, "not one more, whatever the clock says"
        server.change("parents", "web", {"spec": {"colour": "blue"}})
        await until(lambda: server.of("parents")["status"]["phase"] == "painted blue")


@pytest.mark.virtual_time
async def test_an_operator_that_starts_anew_writes_nothing() -> None:
    server = cluster()

    def operator() -> Operator:
        made = Operator("op")

        @made.controller(Parent, owns=[Child])
        async def reconcile(parent: Parent, ctx: Context) -> None:
            await ctx.apply(child())
            ctx.set_condition("Ready", True, "Done")

        return made

    async with running(operator(), server):
        await quiet(server)
    count = len(server.writes())
    async with running(operator(), server):
        await quiet(server)
    assert len(server.writes()) == count


@pytest.mark.virtual_time
async def test_what_is_changed_or_deleted_by_hand_comes_back() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> None:
        await ctx.apply(child())

    async with running(operator, server):
        await until(lambda: server.names("children"))
        server.change("children", "web", {"spec": {"colour": "green"}})
        await until(lambda: server.of("children")["spec"]["colour"] == "red")
        server.delete("children", "web")
        await until(lambda: server.names("children"))


@pytest.mark.virtual_time
async def test_the_reasons_say_what_changed() -> None:
    server, operator, reasons = cluster(), Operator("op"), list[str]()

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> None:
        reasons.extend(map(str, ctx.reasons))
        await ctx.apply(child())

    async with running(operator, server):
        await quiet(server)
        reasons.clear()
        server.change("children", "web", {"spec": {"colour": "green"}})
        await until(lambda: reasons)
    assert reasons[0] == "demo.setpoint.dev/v1 Child shop/web MODIFIED"


# Status.


@pytest.mark.virtual_time
async def test_a_changed_status_is_written_also_when_reconcile_raised() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        parent.status.phase = "Trying"
        ctx.set_condition("Ready", False, "Failed", "it broke")
        raise SetpointError("", "it broke")

    async with running(operator, server) as manager:
        assert (await looked(manager)).error == "it broke"
        await until(lambda: "status" in server.of("parents"))
        told = server.of("parents")["status"]
        assert told["phase"] == "Trying"
        assert told["conditions"][0]["observedGeneration"] == 1
        assert "observedGeneration" not in told, "it is tried again: not done with this generation"
        await asyncio.sleep(10)
        assert server.writes() == ["patch parents/status shop/web"], "and the next failure is the same"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("error", "is_done"), [(TerminalError("never"), True), (RetryLater(60, "wait"), False)]
)
async def test_only_an_error_that_no_retry_mends_is_done_with_the_generation(
    error: SetpointError, is_done: bool
) -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        parent.status.phase = "Tried"
        raise error

    async with running(operator, server) as manager:
        await looked(manager)
        assert server.of("parents")["status"].get("observedGeneration") == (1 if is_done else None)


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [None, TerminalError("hopeless")])
async def test_a_status_that_cannot_be_written_fails_the_reconcile(error: Exception | None) -> None:
    server, operator = cluster(), Operator("op")
    server.refuse = lambda request: status(422, "Invalid", "bad") if request.method == "PATCH" else None

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        parent.status.phase = "x"
        if error is not None:
            raise error

    async with running(operator, server) as manager:
        found = await looked(manager)
        assert found.again_in is not None, "what was not written must be tried again"
        assert "patch demo.setpoint.dev/v1 Parent/status shop/web: bad" in found.error
        assert error is None or "hopeless; then writing the status failed" in found.error


@pytest.mark.virtual_time
async def test_an_object_that_does_not_fit_its_class_is_not_tried_again_until_it_changes() -> None:
    server, operator, looks = cluster(), Operator("op"), list[str]()
    server.change("parents", "web", {"spec": {"colour": 7}})

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        looks.append(parent.spec.colour)

    async with running(operator, server) as manager:
        found = await looked(manager)
        assert "spec.colour: expected `str`, got `int`" in found.error
        assert found.again_in is None
        server.change("parents", "web", {"spec": {"colour": "red"}})
        await until(lambda: looks)


@pytest.mark.virtual_time
async def test_an_author_may_change_anything_in_the_object_without_harm() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        parent.status.phase = "x"
        parent.metadata.uid = parent.metadata.resource_version = "nonsense"
        parent.metadata.generation = 99
        parent.spec.colour = "changed in memory"

    async with running(operator, server):
        await quiet(server)
        assert server.of("parents")["status"] == {"phase": "x", "looks": 0, "observedGeneration": 1}
        assert server.of("parents")["spec"] == {"colour": "red"}


@pytest.mark.virtual_time
async def test_plain_objects_are_reconciled_as_well_as_typed_ones() -> None:
    server, operator = cluster(), Operator("op")
    kind = untyped("demo.setpoint.dev/v1", "Parent")
    kind.resource = Parent.resource

    @operator.controller(kind)
    async def reconcile(parent: dict[str, Any], ctx: Context) -> None:
        parent.setdefault("status", {})["phase"] = "plain"
        ctx.set_condition("Ready", True, "Done")

    async with running(operator, server):
        await quiet(server)
        told = server.of("parents")["status"]
        assert (told["phase"], told["conditions"][0]["type"]) == ("plain", "Ready")
        assert server.writes() == ["patch parents/status shop/web"]


# Finalizers.


class Cleaned:
    """An operator with a clean-up that does as it is told, and what happened in which order."""

    def __init__(self, server: Cluster) -> None:
        self.operator = Operator("op")
        self.happened: list[str] = []
        self.answers: list[Result | Exception | None] = []
        self.server = server
        self.operator.controller(Parent, owns=[Child])(self.reconcile)
        self.operator.finalizer(Parent)(self.clean_up)

    async def reconcile(self, parent: Parent, ctx: Context) -> None:
        assert FINALIZER in self.server.of("parents")["metadata"]["finalizers"], "added before"
        assert FINALIZER in (parent.metadata.finalizers or [])
        self.happened.append("reconcile")
        await ctx.apply(child())

    async def clean_up(self, parent: Parent, ctx: Context) -> Result | None:
        assert FINALIZER in self.server.of("parents")["metadata"]["finalizers"], "still held"
        self.happened.append("clean up")
        ctx.set_condition("Cleaned", False, "Cleaning")
        parent.status.looks += 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.virtual_time
async def test_a_finalizer_is_added_before_the_first_side_effect_and_removed_after_the_clean_up() -> None:
    server = cluster()
    cleaned = Cleaned(server)
    async with running(cleaned.operator, server):
        await quiet(server)
        assert server.writes()[:2] == ["patch parents shop/web", "apply children shop/web"]
        server.mark_deleted("parents", "web")
        await until(lambda: not server.names("parents"))
    assert cleaned.happened[-1] == "clean up"
    assert cleaned.happened.count("clean up") == 1


@pytest.mark.virtual_time
async def test_an_object_is_held_until_its_clean_up_succeeded() -> None:
    server = cluster()
    cleaned = Cleaned(server)
    cleaned.answers = [SetpointError("", "no"), Result(requeue_after=5), RetryLater(5), RuntimeError("no")]
    async with running(cleaned.operator, server):
        await quiet(server)
        server.mark_deleted("parents", "web")
        await until(lambda: not server.names("parents"))
    assert cleaned.happened.count("clean up") == 5
    assert "patch parents/status shop/web" in server.requests, "and the status told how it went"


@pytest.mark.virtual_time
async def test_whatever_a_clean_up_does_to_the_object_in_hand_it_goes() -> None:
    server, operator = cluster(), Operator("op")

    @operator.finalizer(Parent)
    async def clean_up(parent: Parent, ctx: Context) -> None:
        parent.metadata.finalizers = None
        parent.metadata.name = parent.metadata.uid = "nonsense"

    async with running(operator, server):
        await until(lambda: server.of("parents")["metadata"].get("finalizers"))
        server.mark_deleted("parents", "web")
        await until(lambda: not server.names("parents"))


@pytest.mark.virtual_time
async def test_the_finalizers_of_others_stay() -> None:
    server = cluster(finalizers=["theirs.example/x"])
    cleaned = Cleaned(server)
    async with running(cleaned.operator, server):
        await quiet(server)
        assert server.of("parents")["metadata"]["finalizers"] == ["theirs.example/x", FINALIZER]
        server.mark_deleted("parents", "web")
        await until(lambda: cleaned.happened.count("clean up") == 1)
        await quiet(server)
        assert server.of("parents")["metadata"]["finalizers"] == ["theirs.example/x"]
        assert cleaned.happened.count("clean up") == 1, "ours is done"


@pytest.mark.virtual_time
async def test_nothing_is_cleaned_up_for_an_object_that_is_another_by_now() -> None:
    server = cluster()
    cleaned = Cleaned(server)
    async with running(cleaned.operator, server) as manager:
        await quiet(server)
        server.mark_deleted("parents", "web")
        server.is_late = True
        server.delete("parents", "web")
        server.put("parents", "web", finalizers=[FINALIZER])
        (controller,) = manager.controllers
        controller.look_at(WEB)
        await asyncio.sleep(60)
        assert "clean up" not in cleaned.happened


@pytest.mark.virtual_time
async def test_a_reconcile_does_not_run_when_the_finalizer_cannot_be_added() -> None:
    server = cluster()
    cleaned = Cleaned(server)
    server.refuse = lambda request: status(500) if request.method == "PATCH" else None
    async with running(cleaned.operator, server):
        await asyncio.sleep(300)
        assert cleaned.happened == []
        server.refuse = lambda _: None
        await until(lambda: cleaned.happened)


@pytest.mark.virtual_time
async def test_an_object_that_is_being_deleted_is_not_reconciled() -> None:
    server, operator, looks = cluster(finalizers=["theirs.example/x"]), Operator("op"), list[str]()
    server.mark_deleted("parents", "web")

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        looks.append("reconcile")

    async with running(operator, server):
        await quiet(server)
    assert looks == []
    assert server.writes() == []


@pytest.mark.virtual_time
async def test_a_clean_up_alone_is_enough_for_an_operator() -> None:
    server, operator, gone = cluster(), Operator("op"), list[str]()

    @operator.finalizer(Parent, name="demo.example/last")
    async def clean_up(parent: Parent, ctx: Context) -> None:
        gone.append(ctx.request.name)

    async with running(operator, server):
        await until(lambda: server.of("parents")["metadata"].get("finalizers") == ["demo.example/last"])
        server.mark_deleted("parents", "web")
        await until(lambda: not server.names("parents"))
    assert gone == ["web"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [OSError("no"), SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_the_status_is_written_whatever_a_reconcile_raises(error: BaseException) -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        del ctx
        parent.status.phase = "Failed"
        raise error

    async with running(operator, server):
        await until(lambda: server.of("parents").get("status", {}).get("phase") == "Failed")


# The log.


@pytest.mark.virtual_time
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
async def test_a_line_of_the_log_names_its_object_once(formatter: logging.Formatter) -> None:
    server, operator = cluster(), Operator("op")
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record).splitlines()[0])

    outcomes: list[Callable[[], object]] = [
        lambda: dict[str, str]()["spec"],
        lambda: dict[str, str]()["spec"],
        lambda: _raise(Conflict("update it", "it has changed")),
        lambda: _raise(RetryLater(1, "not there yet")),
        lambda: _raise(TerminalError("no such image")),
    ]

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> AsyncIterator[Child | Ready]:
        if outcomes:
            outcomes.pop(0)()
        if parent.spec.colour == "red":
            yield child("first", colour=parent.spec.colour)
        yield Ready(child("second", colour=parent.spec.colour))

    keep, logger = Keep(), logging.getLogger("setpoint.controller")
    keep.setFormatter(formatter)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(keep)
    try:
        async with running(operator, server) as manager:
            for _ in range(8):
                manager.controllers[0].look_at(Key("shop", "web"))
                await quiet(server)
            server.change("parents", "web", {"spec": {"colour": "blue"}})
            await quiet(server)
            for _ in range(8):
                server.change("children", "second", {"spec": {"colour": "green"}}, manager="rival")
                await quiet(server, 2)
    finally:
        logger.removeHandler(keep)
        logger.setLevel(level)
    for words in ("failed (1 in a row)", "(2 in a row)", "not there yet", "is not retried", "hot loop"):
        assert any(words in line for line in lines), (words, lines)
    assert any("no longer wanted" in line for line in lines), lines
    for line in lines:
        if isinstance(formatter, JsonFormatter):
            said = json.loads(line)
            assert said.get("name") == "web", line
            assert "shop/web" not in said["msg"], line
        else:
            assert line.count("shop/web") == 1, line


def _raise(error: Exception) -> None:
    raise error


# Hot loops.


@pytest.mark.virtual_time
@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["at once", "seen to be gone"])
async def test_an_object_that_is_deleted_and_created_again_is_no_hot_loop(
    pause: float, caplog: pytest.LogCaptureFixture
) -> None:
    server, operator = cluster(), Operator("op")
    time = asyncio.get_running_loop().time

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> None:
        await ctx.apply(child(colour=parent.spec.colour))
        parent.status.phase = "Ready"

    async with running(operator, server) as manager:
        for _ in range(12):
            began = time()
            await until(lambda: server.names("children") == ["web"])
            await until(lambda: server.of("parents").get("status", {}).get("phase") == "Ready")
            assert time() - began < 0.5, "it is not slowed"
            server.delete("parents", "web")
            server.delete("children", "web")  # as the garbage collector does
            await asyncio.sleep(pause)
            server.put("parents", "web")
        hot_loops = manager.metrics.registry.get_sample_value
        assert hot_loops("setpoint_hot_loops_total", {"controller": "parent"}) == 0
    assert "hot loop" not in caplog.text


@pytest.mark.virtual_time
async def test_a_hot_loop_is_slowed_and_never_stopped() -> None:
    server, operator = cluster(), Operator("op")
    time = asyncio.get_running_loop().time

    @operator.controller(Parent, owns=[Child])
    async def reconcile(parent: Parent, ctx: Context) -> None:
        await ctx.apply(child(colour=parent.spec.colour))

    async def round_of_the_fight() -> float:
        """Undo what it wants; for how many seconds that stays so."""
        count, began = len(server.writes()), time()
        server.change("children", "web", {"spec": {"colour": "green"}}, manager="rival")
        await until(lambda: len(server.writes()) > count)
        return time() - began

    async with running(operator, server) as manager:
        await quiet(server)
        took = [await round_of_the_fight() for _ in range(15)]
        assert max(took[:5]) < 0.5
        assert [round(seconds) for seconds in took[6:10]] == [1, 2, 4, 8]
        assert 55 < took[-1] < 65, "never more than a minute"
        hot_loops = manager.metrics.registry.get_sample_value
        assert hot_loops("setpoint_hot_loops_total", {"controller": "parent"}) == 1

        began = time()
        server.change("parents", "web", {"spec": {"colour": "blue"}})
        await until(lambda: server.of("children")["spec"]["colour"] == "blue")
        assert time() - began < 1, "what is asked for anew is not held back"


# Plain functions.


async def test_a_plain_function_runs_in_a_thread_and_its_context_works_there() -> None:
    server, operator, seen = cluster(), Operator("op"), list[Any]()
    server.put("parents", "broken")

    @operator.controller(Parent, owns=[Child])
    def reconcile(parent: Parent, ctx: SyncContext) -> Result | None:
        if parent.metadata.name == "broken":
            raise TerminalError("no")
        made = ctx.apply(child())
        ctx.create_or_patch(child("b"), lambda _: None)
        ctx.event("Normal", "Made", "a child")
        ctx.set_condition("Ready", True, "Done")
        ctx.log.info("made %s", made.metadata.name)
        listed = sorted(each.metadata.name or "" for each in ctx.list(Child, owned=True))
        other = child("c")
        ctx.set_controller_reference(other)
        ctx.wait(ctx.client.create(other))
        ctx.delete(Child, "c")
        seen.append((threading.current_thread().name, ctx.get(Child, "web").spec.colour, listed))
        return Result(requeue_after=1000)

    async with running(operator, server) as manager:
        await until(lambda: seen, within=20)
        (controller,) = manager.controllers
        await until(lambda: controller.last_look(WEB), within=20)
        found = controller.last_look(WEB)
        assert found is not None
        assert found.again_in == 1000
        await until(lambda: controller.last_look(Key("shop", "broken")), within=20)
    assert seen[0] == ("parent shop/web", "red", ["b", "web"])
    assert server.of("parents")["status"]["conditions"][0]["type"] == "Ready"
    assert [event["reason"] for event in server.events.values()] == ["Made"]


async def test_a_plain_function_that_takes_too_long_is_cancelled_where_it_waits() -> None:
    server, operator, seen = cluster(), Operator("op"), list[str]()
    ended = threading.Event()

    @operator.controller(Parent, timeout=0.05)
    def reconcile(parent: Parent, ctx: SyncContext) -> None:
        try:
            ctx.wait(asyncio.sleep(60))
        finally:
            seen.append("ended")
            ended.set()

    async with running(operator, server) as manager:
        (controller,) = manager.controllers
        await until(lambda: controller.last_look(WEB), within=20)
        found = controller.last_look(WEB)
    assert found is not None
    assert "took longer" in found.error
    assert ended.is_set()


@pytest.mark.virtual_time
async def test_a_reconcile_that_is_cancelled_writes_nothing_more() -> None:
    server, operator = cluster(), Operator("op")

    @operator.controller(Parent, timeout=5)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        parent.status.phase = "half-way"
        await asyncio.sleep(60)

    async with running(operator, server) as manager:
        assert "took longer than 5 s" in (await looked(manager)).error
        assert server.writes() == []


async def test_what_is_to_be_awaited_must_be_async() -> None:
    server, operator = cluster(), Operator("op")

    async def later() -> None: ...

    def reconcile(parent: Parent, ctx: SyncContext) -> Any:
        coroutine = later()
        coroutine.close()
        return coroutine

    operator.controller(Parent)(reconcile)
    async with running(operator, server) as manager:
        assert "write it as `async def`" in (await looked(manager)).error


@pytest.mark.virtual_time
async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    seen: list[str] = []

    class Reconciler:
        async def reconcile(self, _parent: Parent, _ctx: Context) -> None:
            seen.append("method")

        async def __call__(self, _parent: Parent, _ctx: Context) -> None:
            seen.append("object")

    async def named(name: str, parent: Parent, ctx: Context) -> None:
        seen.append(name)

    server, operator = cluster(), Operator("op")
    operator.controller(Parent, name="a")(Reconciler().reconcile)
    operator.controller(Parent, name="b")(Reconciler())
    operator.controller(Parent, name="c")(partial(named, "partial"))
    async with running(operator, server):
        await until(lambda: set(seen) == {"method", "object", "partial"})


# Describing.


@pytest.mark.virtual_time
async def test_other_kinds_can_be_watched_and_mapped_with_or_without_the_client() -> None:
    server, operator, looks = cluster(), Operator("op"), list[str]()
    server.put("parents", "other")

    def by_name(room: Room) -> list[Request]:
        return [Request("shop", room.metadata.name or "")]

    async def all_of_them(_: Child, client: Client) -> list[Request]:
        return [Request("shop", each.metadata.name or "") for each in await client.list(Parent)]

    @operator.controller(Parent, watches={Room: by_name, Child: all_of_them})
    async def reconcile(parent: Parent, ctx: Context) -> None:
        looks.append(parent.metadata.name or "")

    async with running(operator, server):
        await until(lambda: set(looks) == {"other", "web"})
        looks.clear()
        server.put("rooms", "web", namespace="")
        await until(lambda: looks)
        assert set(looks) == {"web"}
        server.put("children", "x")
        await until(lambda: set(looks) == {"other", "web"})


@pytest.mark.virtual_time
async def test_options_reach_the_controller_and_the_builder() -> None:
    server, operator, looks = cluster(), Operator("op"), list[float]()
    server.put("parents", "blue", labels={"colour": "blue"})

    def more(built: Builder, manager: Manager) -> None:
        built.watches(Child, lambda _: [Request("shop", "blue")])
        assert manager.client

    @operator.controller(
        Parent, name="blues", every=60, workers=3, timeout=9, when=selected({"colour": "blue"}), build=more
    )
    async def reconcile(parent: Parent, ctx: Context) -> None:
        looks.append(asyncio.get_running_loop().time())
        assert parent.metadata.name == "blue"

    async with running(operator, server) as manager:
        (controller,) = manager.controllers
        assert (controller.name, controller.stats().workers) == ("blues", 3)
        await until(lambda: len(looks) == 3)
        assert looks[2] - looks[1] == pytest.approx(60, abs=1)
        count = len(looks)
        server.put("children", "x")
        await until(lambda: len(looks) > count, within=5)


def test_the_rules_include_every_kind_that_build_adds() -> None:
    operator, given = Operator("op"), set[str]()

    def more(built: Builder, manager: Manager) -> None:
        built.owns(Child)
        built.watches(Room, lambda _: [])
        built.reads(Kind(manager.cache, ConfigMap, to_itself))
        given.update(("owns", "watches", "reads"))

    operator.controller(Parent, build=more)(nothing)
    rules = {each["resources"][0]: each["verbs"] for each in operator.rules()}
    read = ["get", "list", "watch"]
    assert rules["children"] == [*read, "create", "patch", "delete"], "as with owns="
    assert (rules["rooms"], rules["configmaps"]) == (read, read)
    (controller,) = operator.add_to(Manager(client=Client(transport=Cluster())))
    assert {gvk.kind for gvk in controller.kinds} == {"Parent", "Child", "Room", "ConfigMap"}
    takes_kinds = {
        name
        for name, method in inspect.getmembers(Builder, inspect.isfunction)
        if not name.startswith("_") and {"kind", "source"} & inspect.signature(method).parameters.keys()
    }
    assert takes_kinds == {"for_", *given}, "a new way to watch a kind is to be in the rules too"


class PotSpec(Model):
    size: int = 1


class PotStatus(Model):
    conditions: list[Condition] = []


class Pot(CustomResource, group="demo.setpoint.dev", version="v1"):
    spec: PotSpec = PotSpec()
    status: PotStatus = PotStatus()


class OldPot(CustomResource, group="demo.setpoint.dev", version="v1beta1", kind="Pot", storage=False):
    spec: PotSpec = PotSpec()
    status: PotStatus = PotStatus()


async def nothing(obj: object, ctx: Context) -> None: ...


def test_an_operator_gives_the_definitions_of_its_own_kinds() -> None:
    operator = Operator("op")
    operator.controller(Pot)(nothing)
    operator.controller(ConfigMap)(nothing)
    operator.finalizer(Pot)(nothing)
    operator.controller(OldPot, name="old")(nothing)
    (definition,) = operator.crds()
    assert definition["metadata"]["name"] == "pots.demo.setpoint.dev"
    assert [each["name"] for each in definition["spec"]["versions"]] == ["v1", "v1beta1"]
    assert (
        repr(operator)
        == "<Operator op of demo.setpoint.dev/v1 Pot, v1 ConfigMap, demo.setpoint.dev/v1beta1 Pot>"
    )


def test_a_decorated_function_stays_what_it_was() -> None:
    operator = Operator("op")
    assert operator.controller(Pot)(nothing) is nothing
    assert operator.finalizer(Pot)(nothing) is nothing


def test_a_name_that_kubernetes_would_refuse_is_refused() -> None:
    for name in ("", "Web", "a_b", "-a", "a.b", "x" * 64):
        with pytest.raises(ValueError, match="cannot name an operator"):
            Operator(name)


def test_what_contradicts_itself_is_refused() -> None:
    operator = Operator("op")
    operator.controller(Pot)(nothing)
    with pytest.raises(ValueError, match="give this one another"):
        operator.controller(Pot)(nothing)
    operator.finalizer(Pot)(nothing)
    with pytest.raises(ValueError, match=r"a finalizer for .* Pot already"):
        operator.finalizer(Pot)(nothing)
    with pytest.raises(ValueError, match="cannot name a finalizer"):
        operator.finalizer(ConfigMap, name="cleanup")
    with pytest.raises(TypeError, match="cannot reconcile"):
        operator.controller(ConfigMap)(Pot)  # type: ignore[arg-type,type-var]


def test_a_second_controller_of_a_kind_with_a_finalizer_is_refused_where_it_is_declared() -> None:
    operator = Operator("op")
    operator.controller(Parent, name="a")(nothing)
    operator.finalizer(Parent)(nothing)
    with pytest.raises(ValueError, match="a and b: which of them is to clean up"):
        operator.controller(Parent, name="b")(nothing)
    operator = Operator("op")
    operator.controller(Parent, name="a")(nothing)
    operator.controller(Parent, name="b")(nothing)
    with pytest.raises(ValueError, match="a and b: which of them is to clean up"):
        operator.finalizer(Parent)(nothing)


@pytest.mark.virtual_time
async def test_what_cannot_run_is_told_when_it_is_added() -> None:
    manager = Manager(client=Client(transport=Cluster()))
    with pytest.raises(ValueError, match="has no controller"):
        Operator("op").add_to(manager)
    operator = Operator("op")
    operator.controller(untyped("demo.setpoint.dev/v1", "Parent"))(nothing)
    operator.finalizer(Parent)(nothing)
    with pytest.raises(ValueError, match="in one form and cleaned up in another"):
        operator.add_to(manager)


def test_the_label_of_a_controller_is_short_enough_and_its_own() -> None:
    assert label_value("op", "webapp") == "op.webapp"
    one, other = label_value("x" * 63, "a" * 63), label_value("x" * 63, "b" * 63)
    assert len(one) <= 63
    assert one != other
