"""The promises of ``proof/drawn.py``: what is drawn, by which seed, and that nobody is accused by it.

``SETPOINT_SEEDS=200 pytest tests/testing/proof/test_drawn.py`` tries so many operators made by chance.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.operator import Operator
from setpoint.testing.proof.drawn import ROUND, by_chance, pick
from setpoint.testing.proof.plans import At, Plan, Step
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.sweep import combinable, parts
from setpoint.testing.proof.trace import Effect, Run
from setpoint.testing.proof.world import Prepared
from tests.mutants.operators import cloud
from tests.mutants.widgets import Widget, child, operator_of
from tests.pages import ROOT
from tests.testing.proof.test_sweep import STEPS, reference

SEEDS = int(os.environ.get("SETPOINT_SEEDS", "2"))
Outcomes = set[tuple[str, str]]


class Enough(BaseException):
    """So many were drawn."""


def drawn(
    most: int,
    *,
    seed: int = 0,
    run: Run | None = None,
    outcomes: Callable[[Plan], Outcomes | None] = lambda _plan: set(),
) -> list[Plan]:
    """So many plans, of a life that nobody lives."""
    found: list[Plan] = []
    usual = run or reference()

    def attempt(plan: Plan) -> Outcomes | None:
        if len(found) == most:
            raise Enough
        found.append(plan)
        return outcomes(plan)

    def faults_of(life: tuple[Step, ...]) -> Any:
        return combinable(usual, life)

    with pytest.raises(Enough):
        by_chance(STEPS, faults_of, attempt, seed=seed)
    return found


def test_the_same_seed_draws_the_same_plans_and_another_draws_others() -> None:
    plans = drawn(ROUND + 10)
    assert drawn(ROUND + 10) == plans
    assert drawn(10, seed=1) != plans[:10]


@pytest.mark.slow
def test_another_process_draws_the_same_whatever_it_has_read_and_writes_nothing(tmp_path: Path) -> None:
    numbers = ", ".join(map(str, range(300)))  # Hypothesis likes the numbers that code has in it
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "full_of_numbers.py").write_text(f"NUMBERS = [{numbers}]\n")
    (tmp_path / "work").mkdir()
    code = (
        "import sys, full_of_numbers, msgspec\n"
        "from tests.testing.proof.test_drawn import ROUND, drawn\n"
        "sys.stdout.buffer.write(msgspec.json.encode(drawn(ROUND)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "work",
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'read'}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
    )
    assert ran.stdout == msgspec.json.encode(drawn(ROUND))
    assert list((tmp_path / "work").iterdir()) == []


def test_up_to_three_faults_strike_each_at_a_place_of_its_own_in_the_life_or_a_part_of_it() -> None:
    plans = drawn(2 * ROUND)
    assert {len(plan.faults) for plan in plans} == {1, 2, 3}
    assert all(len({fault.at for fault in plan.faults}) == len(plan.faults) for plan in plans)
    assert {len(plan.steps) for plan in plans} == {len(STEPS), *map(len, parts(STEPS))}
    assert len({fault.id for plan in plans for fault in plan.faults}) > 20, "of almost every class"
    assert len({plan.seed for plan in plans}) > 1


def test_what_comes_to_something_new_is_gone_on_with() -> None:
    """The later its faults strike, the more comes of a plan, here."""
    run = reference()
    run.effects = [Effect(number, At("create pods default/a", number), 1, 0.0) for number in range(1, 65)]

    def outcomes(plan: Plan) -> Outcomes:
        return {("", f"{number}") for number in range(_lateness(plan))}

    led, unled = drawn(ROUND, run=run, outcomes=outcomes), drawn(ROUND, run=run)
    assert max(map(_lateness, led)) > max(map(_lateness, unled))


def _lateness(plan: Plan) -> int:
    return sum(fault.at.nth for fault in plan.faults)


@pytest.mark.slow
def test_for_what_did_not_strike_another_is_drawn_also_where_nothing_does() -> None:
    drawn(5 * ROUND, outcomes=lambda _plan: None)


def test_in_a_test_of_hypothesis_nothing_is_drawn() -> None:
    @settings(max_examples=1, database=None)
    @given(st.none())
    def inside(_nothing: None) -> None:
        assert "chance is that test's" in by_chance(STEPS, lambda _life: [], lambda _plan: set(), seed=0)

    inside()


def test_where_nothing_can_strike_nothing_is_drawn() -> None:
    assert "could strike" in by_chance(STEPS, lambda _life: [], lambda _plan: set(), seed=0)


def test_each_option_is_about_as_likely_and_the_first_is_the_simplest() -> None:
    counts = dict.fromkeys("abcde", 0)

    @settings(max_examples=400, database=None, derandomize=True)
    @given(pick("abcde"))
    def counted(letter: str) -> None:
        counts[letter] += 1

    counted()
    assert min(counts.values()) > 0.4 * max(counts.values()), counts


# ---- operators made by chance ------------------------------------------------------------------------


def tiny(source: random.Random) -> Callable[[], Operator]:
    """What makes an operator without mistakes, the same each time."""
    most = source.randint(1, 3)
    is_declared, is_scaled, is_told, is_outside = (source.random() < 0.5 for _ in range(4))

    async def reconcile(widget: Widget, ctx: Context) -> list[ConfigMap] | None:
        uid = widget.metadata.uid or ""
        if is_outside and await cloud.get(uid) is None:
            await cloud.create(uid)
        count = min(most, widget.spec.replicas) if is_declared and is_scaled else most
        children = [child(widget, f"-{number}", text=widget.spec.text) for number in range(count)]
        if is_told:
            widget.status.count = count
        if is_declared:
            return children
        for each in children:
            await ctx.apply(each)
        return None

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        await cloud.delete(widget.metadata.uid or "")

    return lambda: operator_of(reconcile, clean_up if is_outside else None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_drawn_is_the_same_twice_and_accuses_no_operator_without_mistakes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests: list[str] = []
    carry_out, make = Prepared.run, tiny(random.Random(seed))

    def run(prepared: Prepared, plan: Plan, **how: Any) -> Run:
        found = carry_out(prepared, plan, **how)
        digests.append(f"{found.digest} {plan}")
        return found

    def traced() -> list[str]:
        digests.clear()
        report = prove(make, clouds=[cloud], only=["chance"], seed=seed, budget=600, most_plans=15)
        assert report.is_good, report
        return list(digests)

    monkeypatch.setattr(Prepared, "run", run)
    assert traced() == traced()
