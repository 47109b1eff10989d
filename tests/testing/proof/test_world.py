"""The promises of ``proof/world.py``: a run depends on its plan; faults strike where they are placed."""

from __future__ import annotations

import pytest

from setpoint.controller.context import Context
from setpoint.controller.sync_context import SyncContext
from setpoint.kube.core.v1 import ConfigMap
from setpoint.operator import Operator
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
    Double,
    Freeze,
    Lose,
    Merge,
    Overlap,
    Plan,
    Refuse,
    Restart,
    Rotate,
    Silence,
    Slow,
    Swap,
    Throttle,
    Travel,
    Unadmitted,
    Uncollected,
    Unrenewed,
    Unwritable,
)
from setpoint.testing.proof.sweep import NOBODY
from setpoint.testing.proof.world import Prepared
from tests.mutants.widgets import Widget, change, child, config_map, create, delete, operator_of

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
    ClockStep(at=APPLY),
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
    import asyncio

    async def spin(widget: Widget, ctx: Context) -> None:
        del widget, ctx
        while True:
            await asyncio.sleep(0)

    run = Prepared.of(lambda: operator_of(spin)).run(Plan(STEPS))
    assert "turns of the loop" in run.spins
