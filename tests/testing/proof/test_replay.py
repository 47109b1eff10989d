"""The promises of ``replay`` and ``proof/kept.py``: what is kept comes to the same verdict."""

from __future__ import annotations

import secrets

import pytest

from setpoint.client.client import ignore_not_found
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.proof.kept import How, Kept, keep, read_kept
from setpoint.testing.proof.oracles import View
from setpoint.testing.proof.plans import At, Crash, Plan, write_plan
from setpoint.testing.proof.prove import prove, replay
from setpoint.testing.proof.report import Report
from tests.mutants.operators import MUTANTS, Mutant
from tests.mutants.widgets import Widget, change, child, create, delete, operator_of


def mutant(number: str) -> Mutant:
    return next(each for each in MUTANTS if each.number == number)


def written(report: Report) -> bytes:
    """The first failure, as it is kept in a file."""
    return write_plan(keep(report.failures[0].plan, report.how))


def test_a_failure_is_replayed_from_its_file() -> None:
    found = mutant("04")
    report = prove(found.mutant, steps=found.steps, only=["E1"], most_failures=1)
    again = replay(found.mutant, written(report))
    assert [each.first.what for each in again.failures] == [each.first.what for each in report.failures]
    assert replay(found.twin, written(report)).is_good


@pytest.mark.parametrize(("number", "oracle"), [("09", "O2"), ("20", "O4"), ("18", "O8")])
def test_what_fails_without_any_fault_fails_again(number: str, oracle: str) -> None:
    found = mutant(number)
    report = prove(found.mutant, steps=found.steps, only=["none"], shrink=False)
    again = replay(found.mutant, written(report))
    assert again.broken == []
    assert oracle in {finding.oracle for finding in again.failures[0].findings}
    assert replay(found.twin, written(report)).is_good


def test_what_the_operator_draws_by_chance_is_no_difference_either() -> None:
    async def password(widget: Widget, ctx: Context) -> None:
        if await ignore_not_found(ctx.get(ConfigMap, widget.metadata.name or "")) is None:
            await ctx.apply(child(widget, password=secrets.token_hex(8)))

    plan = Plan((create(), delete()), (Crash(at=At("apply configmaps default/w"), when="before"),))
    report = replay(lambda: operator_of(password), plan)
    assert report.is_good, report


def test_what_the_proof_was_told_is_kept_and_counts_unless_it_is_said_again() -> None:
    found = mutant("04")
    plan = Plan(found.steps, (Crash(at=At("apply configmaps default/w")),))
    kept = write_plan(keep(plan, How(without=("O3", "O2", "O5", "O9"), keeps=("secrets",))))
    assert read_kept(kept).how.keeps == ("secrets",)
    assert replay(found.mutant, kept).is_good
    assert not replay(found.mutant, kept, without=[]).is_good


def test_rules_are_in_no_file_and_are_asked_for() -> None:
    def no_widgets(view: View) -> bool:
        return not view.of("Widget")

    async def right(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    steps = [create(), change(text="b"), delete()]
    report = prove(lambda: operator_of(right), steps=steps, always=[no_widgets], only=["none"])
    with pytest.raises(ValueError, match=r"rules, which a file cannot hold \(no_widgets\): give always="):
        replay(lambda: operator_of(right), written(report))
    again = replay(lambda: operator_of(right), written(report), always=[no_widgets])
    assert again.failures[0].first.oracle == "O8"


def test_a_plan_of_another_seed_is_judged_against_the_reference_of_the_proof() -> None:
    found = mutant("04")
    plan = Plan(found.steps, (Crash(at=At("apply configmaps default/w")),), 7)
    for how, seed in ((How(seed=0), 0), (How(), 7)):
        reference = replay(found.twin, write_plan(keep(plan, how))).reference
        assert reference is not None
        assert reference.plan.seed == seed


def test_a_plan_alone_can_be_kept_too() -> None:
    plan = Plan((create(),), (), 7)
    assert read_kept(write_plan(plan)) == Kept(plan.steps, seed=7)
