"""The promises of ``proof/fresh.py``: which states are held against a fresh start, and what that costs."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.testing.proof.fresh import FreshStarts, fresh_plans, is_comparable
from setpoint.testing.proof.oracles import Finding, Reference
from setpoint.testing.proof.plans import AnyFault, At, Crash, Create, Interfere, Overlap, Plan, Starve, Step
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.world import Prepared
from tests.mutants.operators import LIFE, marked_before, prunes
from tests.mutants.widgets import change, change_map, child, config_map, create, delete, operator_of, widget

CHILD = At("apply configmaps default/w")
OVERLAP = Overlap(at=CHILD)


def prepared(*, wrong: bool) -> Prepared:
    return Prepared.of(lambda: marked_before(wrong=wrong))


def judged(
    world: Prepared,
    *faults: AnyFault,
    steps: tuple[Step, ...] = LIFE,
    without: frozenset[str] = frozenset(),
) -> list[Finding]:
    reference = Reference(world.run(Plan(steps)), primaries=world.primaries)
    run = world.run(Plan(steps, faults), reference=reference.run)
    assert len(run.fired) == len(faults)
    return FreshStarts(world).judge(run, reference, without)


def test_what_a_leader_left_undone_and_its_successor_takes_for_done_is_found() -> None:
    (found,) = judged(prepared(wrong=True), OVERLAP)
    assert found.oracle == "O4"
    assert "against a fresh start: configmaps default/w: missing" in found.what
    assert judged(prepared(wrong=True), OVERLAP, without=frozenset(["O4"])) == []
    assert judged(prepared(wrong=False), OVERLAP) == []


def test_a_user_who_comes_in_between_leads_to_no_state_that_a_fresh_start_does_not() -> None:
    steps = (delete(), create(text="c"))
    for when in ("before", "after"):
        assert judged(prepared(wrong=False), Interfere(at=CHILD, steps=steps, when=when)) == []
    assert judged(prepared(wrong=False), Interfere(at=CHILD, steps=(change(text="c"),))) == []


def test_to_whom_the_way_matters_without_faults_is_not_told_so_again_with_each() -> None:
    world = Prepared.of(lambda: prunes(wrong=True))
    fewer = Interfere(at=At("apply configmaps default/w-1"), steps=(change(replicas=1),))
    up, down = (create(replicas=2), delete()), (create(replicas=2), change(replicas=1), delete())
    (found,) = judged(world, fewer, steps=up)
    assert found.oracle == "O4"
    assert judged(world, fewer, steps=down) == []


@pytest.mark.parametrize(
    ("fault", "is_held"),
    [
        (OVERLAP, True),
        (Crash(at=CHILD, down=(delete(),)), True),
        (Interfere(at=CHILD, steps=(delete(),)), True),
        (Interfere(at=CHILD, steps=(change_map("w", {"data": {"text": "x"}}),), by="other"), False),
        (Starve(at=CHILD, resources=("configmaps",)), False),
        (Crash(at=CHILD), False),
    ],
    ids=str,
)
def test_only_where_users_and_leaders_act_is_the_way_compared(fault: AnyFault, is_held: bool) -> None:
    assert is_comparable(Plan(LIFE, (fault,))) == is_held


def test_a_fresh_start_is_made_once_for_each_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    world = prepared(wrong=False)
    reference = Reference(world.run(Plan(LIFE)), primaries=world.primaries)
    started: list[Plan] = []
    run = Prepared.run

    def counted(self: Prepared, plan: Plan, **how: Any) -> Run:
        started.append(plan)
        return run(self, plan, **how)

    monkeypatch.setattr(Prepared, "run", counted)
    fresh = FreshStarts(world)
    for _ in range(2):
        assert fresh.judge(reference.run, reference) == []
    assert [plan.faults for plan in started] == [(), (), ()]
    specs = [step.object["spec"] for plan in started for step in plan.steps if isinstance(step, Create)]
    assert specs == [widget(text="a")["spec"], widget(text="b")["spec"], widget(text="b", replicas=2)["spec"]]


def test_what_a_user_helped_with_or_is_being_deleted_is_held_against_nothing() -> None:
    async def stuck(*_args: object) -> None:
        raise RuntimeError("not yet")

    async def nothing(found: Any, ctx: Any) -> None:
        await ctx.apply(child(found))

    world = Prepared.of(lambda: operator_of(nothing, stuck))
    alone, helped, going = (
        Reference(world.run(Plan(steps)), primaries=world.primaries)
        for steps in ((create(),), (config_map("x"), create()), (create(), delete()))
    )
    going.run.checkpoints[-1].is_settled = True  # as if it waited quietly
    assert [point.step for point, _ in fresh_plans(alone.run, alone)] == [1]
    assert list(fresh_plans(helped.run, helped)) == []
    assert [point.step for point, _ in fresh_plans(going.run, going)] == [1]
