"""What fails is made as small as possible, within the budget, and told once."""

from __future__ import annotations

from importlib import import_module

import pytest

from setpoint.api.patches import MergePatch
from setpoint.controller.context import Context
from setpoint.testing.proof.oracles import Finding
from setpoint.testing.proof.plans import At, Crash, Plan
from setpoint.testing.proof.prove import prove, smaller, smaller_than
from setpoint.testing.proof.report import Failure
from setpoint.testing.proof.trace import Run
from tests.mutants.operators import MUTANTS, Mutant
from tests.mutants.widgets import Widget, change, child, create, delete, operator_of


def mutant(number: str) -> Mutant:
    return next(each for each in MUTANTS if each.number == number)


async def marks_c_before(widget: Widget, ctx: Context) -> None:
    """Says that it is done before it is, but only of one text."""
    text = widget.spec.text
    if text == "c" and widget.status.done == "c":
        return
    if text == "c":
        patch = MergePatch({"status": {"done": "c"}})
        await ctx.client.patch(
            Widget, widget.metadata.name or "", patch, namespace="default", subresource="status"
        )
    await ctx.apply(child(widget, text=text))


@pytest.mark.slow
def test_a_late_fault_is_found_at_its_earlier_place_when_steps_before_it_are_dropped() -> None:
    steps = [create(), change(text="b"), change(replicas=2), change(text="d"), change(text="c"), delete()]
    report = prove(lambda: operator_of(marks_c_before, owns=False), steps=steps, only=["E1"], most_failures=1)
    (failure,) = report.failures
    assert [str(step) for step in failure.plan.steps] == [str(steps[0]), str(steps[4])]
    assert failure.plan.faults[0].at == At("apply configmaps default/w", 2)


@pytest.mark.slow
def test_what_fails_without_faults_is_made_small_too() -> None:
    found = mutant("20")
    steps = [create(replicas=1), change(text="b"), change(replicas=2), change(text="c"), change(replicas=1)]
    report = prove(found.mutant, steps=steps, only=["none"])
    (failure,) = report.failures
    assert [str(step) for step in failure.plan.steps] == [str(steps[0]), str(steps[2]), str(steps[4])]


def test_a_budget_that_is_spent_leaves_it_as_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = mutant("20")
    monkeypatch.setattr(import_module("setpoint.testing.proof.prove"), "FOR_SHRINKING", 0.0)
    report = prove(found.mutant, steps=found.steps, only=["none"])
    assert report.failures[0].plan.steps == found.steps


@pytest.mark.slow
def test_what_is_the_same_when_it_is_small_is_told_once_and_in_all_its_cells() -> None:
    found = mutant("04")
    whole = prove(found.mutant, steps=found.steps, only=["E1", "E7"], shrink=False)
    small = prove(found.mutant, steps=found.steps, only=["E1", "E7"])
    told = [(failure.plan, failure.first.oracle) for failure in small.failures]
    assert len(told) == len(set(map(str, told))), told
    cells = [cell for failure in small.failures for cell in failure.cells]
    assert sorted(map(str, cells)) == sorted(str(failure.cells[0]) for failure in whole.failures)


def test_a_step_less_is_tried_with_the_fault_at_every_place_up_to_its_own() -> None:
    plan = Plan((create(), delete()), (Crash(at=At("apply configmaps default/w", 3)),))
    assert [each.faults[0].at.nth for each in smaller(plan)] == [3, 2, 1]
    assert all(each.steps == (create(),) for each in smaller(plan))


def test_what_was_drawn_with_another_seed_is_first_tried_with_that_of_the_proof() -> None:
    steps, faults = (create(), delete()), (Crash(at=At("apply configmaps default/w")),)
    drawn, usual = Plan(steps, faults, seed=9), Run(Plan(steps, seed=7))
    first, *others = smaller_than(Failure(drawn, (Finding("O3", "differs"),), Run(drawn), reference=usual))
    assert first == Plan(steps, faults, seed=7)
    same = Failure(first, (Finding("O3", "differs"),), Run(first), reference=usual)
    assert list(smaller_than(same)) == [Plan(each.steps, each.faults, seed=7) for each in others]
