"""The promises of ``proof/budget.py``: a proof ends when its budget is spent, whatever it is about."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import pytest

from setpoint.controller import Result
from setpoint.controller.context import Context
from setpoint.testing.proof.budget import Budget, OutOfBudget
from setpoint.testing.proof.plans import Pass, Plan
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import Report
from setpoint.testing.proof.world import Prepared
from tests.mutants.operators import MUTANTS
from tests.mutants.widgets import Widget, change, child, create, delete, operator_of

STEPS = (create(), change(text="b"), delete())


async def right(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))
    widget.status.done = widget.spec.text


async def restless(widget: Widget, ctx: Context) -> Result:
    """Has something to look at every second, for ever: a day of it takes long."""
    await right(widget, ctx)
    return Result(requeue_after=1)


class Clock:
    """Says one second more each time it is read."""

    def __init__(self) -> None:
        self._seconds: Iterator[int] = count()

    def __call__(self) -> float:
        return float(next(self._seconds))


@pytest.fixture
def by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have budgets be spent by being checked, so that a proof is cut off at the same place in every run."""
    module = import_module("setpoint.testing.proof.prove")
    monkeypatch.setattr(module, "Budget", lambda seconds: Budget(seconds, clock=Clock()))


def proven(budget: float, **told: Any) -> Report:
    return prove(lambda: operator_of(right), steps=STEPS, budget=budget, most_of_class=1, **told)


def test_a_check_raises_once_the_seconds_are_spent() -> None:
    budget = Budget(3, clock=Clock())
    budget.check()
    budget.check()
    with pytest.raises(OutOfBudget):
        budget.check()


def test_what_is_reserved_is_there_for_what_comes_later() -> None:
    now = [0.0]
    budget = Budget(100, clock=lambda: now[0])
    budget.reserve(20)
    now[0] = 80.0
    with pytest.raises(OutOfBudget):
        budget.check()
    budget.limit(15)
    assert budget.left == 15
    budget.limit(50)
    assert budget.left == 20, "there is no more"


def test_every_check_is_a_tick() -> None:
    ticks: list[int] = []
    budget = Budget(on_tick=partial(ticks.append, 1))
    Prepared.of(lambda: operator_of(right), budget=budget).run(Plan(STEPS))
    assert len(ticks) > 1


@pytest.mark.usefixtures("by_reading")
@pytest.mark.parametrize("budget", [1, 5, 20, 40, 80, 160])
def test_wherever_the_budget_ends_the_proof_ends_and_says_how_much_was_tried(budget: int) -> None:
    disabled = logging.root.manager.disable
    report = proven(budget)
    assert (gc.isenabled(), logging.root.manager.disable) == (True, disabled), "all is put back"
    assert report.attempted <= report.planned
    if report.attempted < report.planned:
        assert report.seconds >= budget
    assert report.is_good == bool(report.attempted), report
    assert not report.failures, "what was cut off is not held against the operator"
    assert not report.broken
    text = str(report)
    assert f"{report.attempted} of {report.planned} plans with faults tried" in text or not report.planned
    assert report.attempted or "PROVEN" in text.splitlines()[0]


@pytest.mark.usefixtures("by_reading")
@pytest.mark.parametrize("budget", [200, 400])
def test_a_failure_that_was_found_is_told_however_little_time_is_left_to_make_it_small(budget: int) -> None:
    found = next(each for each in MUTANTS if each.number == "04")
    report = prove(found.mutant, steps=found.steps, only=["E1"], budget=budget)
    assert report.alarms, report
    assert {failure.first.oracle for failure in report.alarms} == {"O3"}


def test_a_run_that_would_take_longer_than_the_whole_budget_is_cut_off() -> None:
    steps = (create(), Pass(30 * 86_400), delete())
    report = prove(lambda: operator_of(restless), steps=steps, budget=1.0)
    assert report.seconds < 5, "of hours"
    assert report.cut_off == "running it without faults"
    assert str(report).startswith("NOTHING PROVEN")


def test_steps_that_are_made_from_the_schema_are_made_within_the_budget() -> None:
    report = prove(lambda: operator_of(right), budget=0.0)
    assert report.cut_off == "preparing the steps"
    assert not report.is_good


def test_progress_is_told_from_the_beginning_and_says_what_is_done() -> None:
    told: dict[str, int] = {}

    def note(report: Report) -> None:
        told[report.doing] = report.planned

    proven(600, only=["E1"], on_progress=note)
    assert list(told) == [
        "preparing the steps",
        "running it without faults",
        "trying plans",
    ]
    assert told["trying plans"] > 0, "so that what is left can be estimated"
