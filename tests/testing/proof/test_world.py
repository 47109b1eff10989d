"""The promises of ``proof/world.py``: a run depends on its plan; faults strike where they are placed."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from contextlib import suppress
from typing import Literal

import msgspec
import pytest

from setpoint.api import MergePatch
from setpoint.controller import Result
from setpoint.controller.context import Context
from setpoint.controller.sync_context import SyncContext
from setpoint.errors import AlreadyExists, AnswerLost, RetryLater, TransportError
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request as HttpRequest
from setpoint.operator import Operator
from setpoint.testing.proof import world
from setpoint.testing.proof.director import Director
from setpoint.testing.proof.oracles import Reference, Rules, View, judge
from setpoint.testing.proof.pace import world_time
from setpoint.testing.proof.plans import (
    Alter,
    AnyFault,
    At,
    Break,
    Change,
    ClockStep,
    Compact,
    Crash,
    Cut,
    Delete,
    Double,
    Freeze,
    Interfere,
    LeaseDeleted,
    Lose,
    Merge,
    Overlap,
    Pass,
    Plan,
    Refuse,
    Restart,
    Rotate,
    Silence,
    Slow,
    SlowClock,
    Swap,
    Throttle,
    Travel,
    Unadmitted,
    Uncollected,
    Unrenewed,
    Unwritable,
)
from setpoint.testing.proof.process import current
from setpoint.testing.proof.seam import Seam
from setpoint.testing.proof.sweep import NOBODY
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.world import Prepared, World
from setpoint.testing.virtual_time import VirtualTimeLoop
from tests.mutants.widgets import Longhand, Widget, change, child, config_map, create, delete, operator_of

STEPS = (create(), change(text="b"), delete())
APPLY = At("apply configmaps default/w")
SEEN = At("ADDED widgets.test.setpoint.dev default/w")


async def reconcile(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))
    widget.status.done = widget.spec.text


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return Prepared.of(lambda: operator_of(reconcile))


FAULTS: list[AnyFault] = [
    Crash(at=APPLY),
    Crash(at=APPLY, when="after"),
    Refuse(at=APPLY, code=500, times=5),
    Refuse(at=APPLY, code=0),
    Lose(at=APPLY),
    Lose(at=APPLY, code=504),
    Throttle(at=APPLY),
    Slow(at=APPLY),
    Freeze(at=APPLY, resources=("configmaps",)),
    Merge(at=SEEN),
    Double(at=SEEN),
    Swap(at=SEEN),
    Cut(at=SEEN),
    Cut(at=SEEN, away=0.0),
    Cut(at=SEEN, expire=True),
    Silence(at=SEEN),
    Break(at=SEEN),
    Travel(at=APPLY),
    Restart(at=APPLY),
    Compact(at=APPLY),
    Unwritable(at=APPLY),
    Unadmitted(at=APPLY),
    Unadmitted(at=APPLY, is_slow=True),
    Unadmitted(at=APPLY, policy="Ignore", is_slow=True),
    Alter(at=APPLY, step=Change("v1", "ConfigMap", "w", {"metadata": {"ownerReferences": None}})),
    Uncollected(at=APPLY),
    Overlap(at=APPLY),
    Unrenewed(at=APPLY),
    LeaseDeleted(at=APPLY),
    ClockStep(at=APPLY),
    ClockStep(at=APPLY, seconds=3600.0, clock="steady"),
    SlowClock(at=APPLY),
    Rotate(at=APPLY),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.id}-{type(fault).__name__}")
def test_a_fault_strikes_and_the_same_plan_gives_the_same_run(prepared: Prepared, fault: AnyFault) -> None:
    plan = Plan(STEPS, (fault,))
    run, again = prepared.run(plan), prepared.run(plan)
    assert run.fired == [str(fault)]
    assert run.digest == again.digest
    assert all(point.is_settled for point in run.checkpoints), [point.why_not for point in run.checkpoints]
    assert run.errors == []


def test_another_seed_gives_another_run(prepared: Prepared) -> None:
    assert prepared.run(Plan(STEPS)).digest != prepared.run(Plan(STEPS, seed=1)).digest


def test_a_fault_without_a_place_does_not_strike(prepared: Prepared) -> None:
    assert prepared.run(Plan(STEPS, (Crash(at=At("apply pods default/none")),))).fired == []


def test_what_was_lost_was_done_and_what_was_refused_was_not(prepared: Prepared) -> None:
    lost = prepared.run(Plan(STEPS, (Lose(at=APPLY),)))
    refused = prepared.run(Plan(STEPS, (Refuse(at=APPLY, code=409),)))
    assert lost.effects[0].is_done
    assert not refused.effects[0].is_done


def test_a_dead_process_has_no_effect(prepared: Prepared) -> None:
    run = prepared.run(Plan(STEPS, (Crash(at=APPLY),)))
    crash = next(line.time for line in run.lines if line.lane == "fault")
    assert [write for write in run.writes if write.by == "operator 1" and write.time >= crash] == []


def test_a_run_ends_early_when_all_is_as_it_would_be_without_the_fault(prepared: Prepared) -> None:
    reference = prepared.run(Plan(STEPS))
    plan = Plan(STEPS, (Crash(at=APPLY),))
    assert len(prepared.run(plan, reference=reference).checkpoints) < len(prepared.run(plan).checkpoints)


def test_what_is_left_when_its_owner_goes_is_collected(prepared: Prepared) -> None:
    run = prepared.run(Plan(STEPS))
    assert run.checkpoints[-1].state == {}
    assert run.writes[-1].by == "collector"


def test_what_cannot_be_collected_yet_is_collected_later(prepared: Prepared) -> None:
    """Its owner goes in the last moment before nothing can be written."""
    acts = Interfere(at=APPLY, steps=(delete(),), when="after")
    full = Unwritable(at=At("patch widgets.test.setpoint.dev/status default/w"))
    run = prepared.run(Plan(STEPS[:1], (acts, full)))
    assert run.fired == [str(acts), str(full)]
    assert run.checkpoints[-1].state == {}


def test_an_owner_that_never_was_is_taken_off_or_its_child_goes(prepared: Prepared) -> None:
    nobody = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": NOBODY}
    spoil = Change("v1", "ConfigMap", "w", {"metadata": {"ownerReferences": [nobody]}})
    run = prepared.run(Plan(STEPS, (Alter(at=APPLY, step=spoil),)))
    reference = prepared.run(Plan(STEPS))
    assert [point.state for point in run.checkpoints] == [point.state for point in reference.checkpoints]


def test_a_webhook_that_is_away_refuses_in_the_words_of_kubernetes(prepared: Prepared) -> None:
    run = prepared.run(Plan(STEPS, (Unadmitted(at=APPLY),)))
    refused = next(look.error for look in run.looks if look.error)
    assert 'failed calling webhook "guard-1.proof.setpoint.dev": failed to call webhook: Post' in refused
    assert "connection refused" in refused
    assert not any("webhook" in called for called in run.checkpoints[-1].state)


def test_a_slow_webhook_that_is_ignored_costs_time_and_nothing_else(prepared: Prepared) -> None:
    run = prepared.run(Plan(STEPS, (Unadmitted(at=APPLY, policy="Ignore", is_slow=True),)))
    first = next(effect for effect in run.effects if effect.at == APPLY)
    assert (first.came_to, round(first.ended - first.time)) == ("201", 10)


def test_kinds_are_seen_in_the_other_order() -> None:
    steps = (config_map("x"), create(), delete())
    at = At("ADDED configmaps default/x")
    run = Prepared.of(lambda: operator_of(reconcile)).run(Plan(steps, (Swap(at=at),)))
    seen = [line.what for line in run.lines if line.lane == "view 1" and "held" not in line.what]
    assert seen.index("ADDED widgets.test.setpoint.dev default/w #1") < seen.index(f"{at.what} #2")


def test_a_plain_reconciler_runs_in_virtual_time_too() -> None:
    def plain(widget: Widget, ctx: SyncContext) -> None:
        ctx.apply(child(widget, text=widget.spec.text))

    def make() -> Operator:
        operator = Operator("widgets")
        operator.controller(Widget, owns=[ConfigMap])(plain)
        return operator

    prepared = Prepared.of(make)
    plan = Plan(STEPS, (Crash(at=APPLY, when="after"),))
    run, again = prepared.run(plan), prepared.run(plan)
    assert run.digest == again.digest
    assert run.checkpoints[1].state["configmaps default/w"]["data"] == {"text": "a"}


def test_a_reconcile_that_never_waits_and_never_ends_is_noticed() -> None:
    async def spin(widget: Widget, ctx: Context) -> None:
        del widget, ctx
        while True:
            await asyncio.sleep(0)

    run = Prepared.of(lambda: operator_of(spin)).run(Plan(STEPS))
    assert "turns of the loop" in run.spins


def test_a_plain_reconcile_that_does_not_come_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_STALL", 0.1)
    goes_on = threading.Event()

    def blocked(widget: Widget, ctx: SyncContext) -> None:
        del widget, ctx
        goes_on.wait()

    def make() -> Operator:
        operator = Operator("widgets")
        operator.controller(Widget)(blocked)
        return operator

    try:
        run = Prepared.of(make).run(Plan(STEPS))
    finally:
        goes_on.set()
    found = judge(run, Reference(run))
    assert found[0].oracle == "O1"
    assert "has not come back" in found[0].what
    assert not run.checkpoints[-1].is_settled


def test_a_task_that_swallows_its_cancellation_is_told_of_and_ended() -> None:
    async def deaf() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(5)

    async def begins(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        tasks.append(asyncio.create_task(deaf()))

    tasks: list[asyncio.Task[None]] = []
    prepared = Prepared.of(lambda: operator_of(begins))
    plan = Plan(STEPS, (Crash(at=APPLY, when="after"),))
    run, again = prepared.run(plan), prepared.run(plan)
    found = judge(run, Reference(prepared.run(Plan(STEPS))))
    assert run.digest == again.digest
    assert found[0].oracle == "O1"
    assert "deaf" in found[0].what
    assert "CancelledError" in found[0].what
    assert all(task.done() for task in tasks)


@pytest.mark.parametrize("fault", [Lose(at=APPLY), Restart(at=APPLY)], ids=lambda fault: fault.id)
def test_what_was_done_and_not_answered_is_told_as_a_lost_answer(fault: AnyFault) -> None:
    told: list[type[Exception]] = []

    async def creates(widget: Widget, ctx: Context) -> None:
        obj = child(widget, text=widget.spec.text)
        ctx.set_controller_reference(obj)
        with suppress(AlreadyExists):
            try:
                await ctx.client.create(obj)
            except TransportError as error:
                told.append(type(error))
                raise

    plan = Plan(STEPS, (msgspec.structs.replace(fault, at=At("create configmaps default/w")),))
    run = Prepared.of(lambda: operator_of(creates)).run(plan)
    assert run.fired
    assert told[0] is AnswerLost, "and not ConnectionFailed, which may be tried again whatever the verb"
    assert next(effect.at.nth for effect in run.effects if effect.is_done) == 1


def test_a_step_that_the_server_refuses_proves_nothing(prepared: Prepared) -> None:
    wrong = Change("test.setpoint.dev/v1", "Widget", "w", {"spec": {"replicas": "many"}})
    plan = Plan((create(), wrong, delete()))
    run = prepared.run(plan)
    found = judge(run, Reference(run))
    assert [finding.oracle for finding in found] == ["O13"]
    assert "replicas" in found[0].what


async def nothing(widget: Widget, ctx: Context) -> None:
    pass


def made_by_the_user(run: Run) -> list[str]:
    return [f"{each.type} {each.name}" for each in run.writes if each.by == "user" and each.type == "ADDED"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_deleted_and_made_anew_is_made_when_its_finalizer_lets_the_old_one_go(
    when: Literal["before", "after"],
) -> None:
    with_finalizer = Prepared.of(lambda: operator_of(reconcile, nothing))
    fault = Interfere(at=APPLY, steps=(delete(), create(), change(text="c")), when=when)
    run = with_finalizer.run(Plan((create(),), (fault,)))
    assert run.fired == [str(fault)]
    assert made_by_the_user(run) == ["ADDED w", "ADDED w"]
    assert run.checkpoints[-1].is_settled
    assert run.checkpoints[-1].state["configmaps default/w"]["data"] == {"text": "c"}, (
        "and then comes the rest"
    )
    assert run.digest == with_finalizer.run(run.plan).digest


def test_who_makes_something_anew_does_not_wait_for_ever_for_the_old_one_to_go() -> None:
    async def never(widget: Widget, ctx: Context) -> None:
        raise RetryLater(3600)

    fault = Interfere(at=APPLY, steps=(delete(), create()), when="after")
    run = Prepared.of(lambda: operator_of(reconcile, never)).run(Plan((create(),), (fault,)))
    assert made_by_the_user(run) == ["ADDED w"]
    assert any("gives up after 120 s: create Widget w" in line.what for line in run.lines)


@pytest.mark.parametrize(
    "fault",
    [
        Interfere(at=APPLY, steps=(create(),)),
        Interfere(at=APPLY, steps=(change("other", text="c"),), when="after"),
        Alter(at=APPLY, step=Change("v1", "ConfigMap", "other", {"data": None})),
    ],
    ids=str,
)
def test_a_fault_of_which_every_step_is_refused_has_not_struck(prepared: Prepared, fault: AnyFault) -> None:
    run = prepared.run(Plan(STEPS, (fault,)))
    assert run.fired == []
    assert "O13" in [finding.oracle for finding in judge(run, Reference(prepared.run(Plan(STEPS))))]


def test_who_is_told_to_wait_is_told_for_how_long_from_the_first_on(prepared: Prepared) -> None:
    what = At("create configmaps default/c")
    run = Run(Plan((), (Throttle(at=what, retry_after=7),)))
    target, body = "/api/v1/namespaces/default/configmaps", b'{"metadata":{"name":"c"}}'

    async def told() -> list[str | None]:
        there = World(prepared, run.plan, run, random.Random(0))
        async with there.running():
            seam = Seam(there.transport(), 1, Director(run.plan, run, there))
            requests = [HttpRequest("POST", target, {"Content-Type": "application/json"}, body)] * 2
            answers = [await seam(request) for request in requests]
            assert [answer.status for answer in answers] == [429, 429]
            await asyncio.sleep(60)  # it is over
            return [answer.headers.get("Retry-After") for answer in answers]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(told()) == ["7", "7"]
    assert len(run.early) == 1, "and who does not wait then is told of"


def test_rules_see_what_was_there_before() -> None:
    there = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}, "data": {}}
    run = Prepared.of(lambda: operator_of(reconcile), objects=[there]).run(Plan(STEPS))
    seen: list[int] = []

    def always(view: View) -> bool:
        seen.append(len(view.of("ConfigMap")))
        return True

    assert judge(run, Reference(run, Rules(always=(always,), at_most=(("ConfigMap", 2),)))) == []
    assert (min(seen), max(seen)) == (1, 2)


async def applies_twice(widget: Widget, ctx: Context) -> None:
    """Ten seconds apart, by its own clock."""
    if widget.status.done != widget.spec.text:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await ctx.apply(child(widget, text=widget.spec.text))
        await asyncio.sleep(10)
        await ctx.apply(child(widget, "-2", text=f"{loop.time() - began:.0f} s"))
        widget.status.done = widget.spec.text


@pytest.mark.parametrize(
    ("fault", "apart", "noticed"),
    [
        (SlowClock(at=APPLY), 20.0, "10 s"),
        (ClockStep(at=APPLY, seconds=3600.0, clock="steady"), 10.0, "3610 s"),
    ],
    ids=["slow", "ahead"],
)
def test_the_clock_of_one_process_goes_wrong_and_the_worlds_does_not(
    fault: AnyFault, apart: float, noticed: str
) -> None:
    run = Prepared.of(lambda: operator_of(applies_twice)).run(Plan(STEPS[:1], (fault,)))
    made = [write for write in run.writes if write.resource == "configmaps" and write.type == "ADDED"]
    assert [msgspec.json.decode(write.data)["data"]["text"] for write in made] == ["a", noticed]
    assert made[1].time - made[0].time == pytest.approx(apart, abs=0.01)
    assert [line.time for line in run.lines] == sorted(line.time for line in run.lines)


def test_who_is_paused_hears_and_does_nothing_until_it_wakes_up_and_all_is_due() -> None:
    heard: list[tuple[int, float]] = []

    async def later(widget: Widget, ctx: Context) -> None:
        await asyncio.sleep(5)
        process = current.get()
        heard.append((process.number if process else 0, world_time()))
        await ctx.apply(child(widget, "-2", text=widget.spec.text))

    def make() -> Operator:
        operator = operator_of(reconcile)
        operator.controller(Widget, owns=[ConfigMap], name="later")(later)
        return operator

    prepared = Prepared.of(make)
    fault = Overlap(at=APPLY)
    run, again = (prepared.run(Plan(STEPS[:1], (fault,))) for _ in range(2))
    (struck,) = (line.time for line in run.lines if line.lane == "fault")
    paused = run.effects[0].process
    woken = struck + fault.seconds
    of_paused = [line.time for line in run.lines if line.lane in (f"operator {paused}", f"view {paused}")]
    assert not [time for time in of_paused if struck < time < woken]
    assert min(time for number, time in heard if number == paused) == pytest.approx(woken), "its timer"
    assert min(time for time in of_paused if time > struck) == pytest.approx(woken), "and then its watches"
    made = [write for write in run.writes if write.resource == "configmaps"]
    assert {write.by for write in made if write.time > struck} == {f"operator {3 - paused}"}, "who took over"
    assert run.checkpoints[-1].is_settled
    assert run.digest == again.digest


def test_who_looks_again_by_a_slow_clock_comes_to_rest() -> None:
    async def looks(widget: Widget, ctx: Context) -> Result:
        await reconcile(widget, ctx)
        return Result(requeue_after=10)

    prepared = Prepared.of(lambda: operator_of(looks))
    reference = prepared.run(Plan(STEPS))
    for fault in (SlowClock(at=APPLY), ClockStep(at=APPLY, seconds=3600.0, clock="steady")):
        run = prepared.run(Plan(STEPS, (fault,), replicas=fault.replicas), reference=reference)
        assert judge(run, Reference(reference)) == [], fault


def test_an_operator_that_cannot_be_added_to_a_manager_says_so_itself() -> None:
    def make() -> Operator:
        operator = operator_of(reconcile, reconcile)
        operator.controller(Widget, name="another")(reconcile)
        return operator

    with pytest.raises(ValueError, match="which of them is to clean up"):
        Prepared.of(make)


def test_an_operator_that_ends_as_soon_as_it_starts_is_told_of_by_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(world, "PATIENCE", 10.0)
    added = itertools.count()

    def add(manager: Manager) -> object:
        if next(added):
            raise RuntimeError("no such thing")
        return operator_of(reconcile).add_to(manager)

    run = Prepared.of(lambda: Longhand(add)).run(Plan(STEPS))
    assert "RuntimeError: no such thing" in run.checkpoints[0].why_not
    assert [finding.oracle for finding in judge(run, Reference(run))][:2] == ["O1", "O11"]


class Ticks:
    """Writes every ten minutes, though nothing has changed."""

    needs_leadership = True

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client

    async def run(self) -> None:
        for number in itertools.count():
            await asyncio.sleep(600)
            for each in await self._client.list(Widget, namespace="default"):
                patch = MergePatch({"metadata": {"annotations": {"tick": str(number)}}})
                await self._client.patch(Widget, each.metadata.name or "", patch, namespace="default")


def ticking() -> Operator:
    operator = operator_of(reconcile)
    adds = operator.add_to

    def add_to(manager: Manager) -> object:
        manager.add(Ticks(manager))
        return adds(manager)

    operator.add_to = add_to  # type: ignore[method-assign, assignment]
    return operator


@pytest.mark.parametrize("faults", [(), (Crash(at=APPLY),)], ids=["no fault", "a fault"])
def test_what_is_written_every_ten_minutes_is_seen(faults: tuple[AnyFault, ...]) -> None:
    run = Prepared.of(ticking).run(Plan(STEPS, faults), probe_always=not faults)
    found = judge(run, Reference(run))
    assert [finding.oracle for finding in found][:1] == ["O2"]
    assert "an hour later" in found[0].what


def test_an_hour_without_faults_passes_second_by_second(prepared: Prepared) -> None:
    run = prepared.run(Plan(STEPS[:1]), probe_always=True)
    assert run.checkpoints[-1].restless == []
    assert run.lines[-1].time - run.checkpoints[-1].time > 3600


async def never_content(widget: Widget, ctx: Context) -> None:
    if widget.spec.text == "bad":
        raise ValueError("no such thing")
    await reconcile(widget, ctx)


def test_what_may_fail_is_not_judged_and_what_follows_is() -> None:
    prepared = Prepared.of(lambda: operator_of(never_content))
    wrong = Change("test.setpoint.dev/v1", "Widget", "w", {"spec": {"text": "bad"}}, may_fail=True)
    run = prepared.run(Plan((create(), wrong, change(text="c"), delete())), probe_always=True)
    assert [point.is_blind for point in run.checkpoints] == [False, False, True, False, False]
    assert judge(run, Reference(run)) == []
    assert run.checkpoints[3].state["configmaps default/w"]["data"] == {"text": "c"}
    without_a_word = msgspec.structs.replace(wrong, may_fail=False)
    run = prepared.run(Plan((create(), without_a_word, delete())))
    assert judge(run, Reference(run))[0].oracle == "O1"


def test_what_is_deleted_while_the_operator_is_down_is_seen_to_when_it_is_back(prepared: Prepared) -> None:
    last = Delete("test.setpoint.dev/v1", "Widget", "w", while_down=True)
    run = prepared.run(Plan((create(), last)))
    told = [(line.lane, line.what) for line in run.lines]
    assert told.index(("user", str(last))) < told.index(("operator 2", "starts"))
    assert run.checkpoints[-1].state == {}


def test_who_looks_every_ten_seconds_is_not_accused_of_it_after_an_hour() -> None:
    async def looks(widget: Widget, ctx: Context) -> Result:
        await reconcile(widget, ctx)
        return Result(requeue_after=10)

    prepared = Prepared.of(lambda: operator_of(looks))
    run = prepared.run(Plan(STEPS), probe_always=True)
    assert judge(run, Reference(prepared.run(Plan(STEPS)))) == []


def test_a_day_in_which_nothing_happens_costs_a_fraction_of_a_turn_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Watches are opened again every few minutes and bookmarks come every one; nothing polls."""
    turns = 0

    class Counted(VirtualTimeLoop):
        def _run_once(self) -> None:
            nonlocal turns
            turns += 1
            super()._run_once()  # type: ignore[misc]

    monkeypatch.setattr(world, "VirtualTimeLoop", Counted)
    day = 86_400
    run = Prepared.of(lambda: operator_of(reconcile)).run(Plan((create(), Pass(day))))
    assert run.checkpoints[-1].time > day
    assert turns < day / 3, turns
