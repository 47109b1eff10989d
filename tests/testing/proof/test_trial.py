"""Plans that Hypothesis draws."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from setpoint.testing.proof.plans import At, Change, Crash, Create, Delete, Overlap, Pass, Plan, Refuse
from setpoint.testing.proof.trial import Trial
from tests.mutants.operators import LIFE, cloud, in_memory, marked_before, prunes

few = settings(
    deadline=None,
    max_examples=15,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.slow
def test_an_operator_that_survives_survives_what_is_drawn() -> None:
    trial = Trial(lambda: marked_before(wrong=False), clouds=[cloud])

    @few
    @given(trial.plans())
    def survives(plan: Plan) -> None:
        assert isinstance(plan.steps[0], Create)
        assert isinstance(plan.steps[-1], Delete)
        trial.check(plan)

    survives()


@pytest.mark.slow
def test_what_does_not_survive_is_made_small() -> None:
    trial = Trial(lambda: in_memory(wrong=True))

    @settings(few, max_examples=60)
    @given(trial.plans(steps=LIFE, most_faults=2))
    def survives(plan: Plan) -> None:
        trial.check(plan)

    with pytest.raises(AssertionError, match=r"FAIL O\d+(?s:.*)replay\(make, ") as failed:
        survives()
    assert "; then " not in str(failed.value), "one fault is enough"


def test_what_the_trial_was_told_goes_with_what_runs_a_failure_again() -> None:
    trial = Trial(lambda: in_memory(wrong=True), without=["O10"])
    plan = Plan(LIFE, (Refuse(at=At("apply configmaps default/w"), code=403),))
    with pytest.raises(AssertionError, match=r'replay\(make, (?s:.*)"without":\["O10"\]'):
        trial.check(plan)


def test_lives_are_drawn_from_the_schema() -> None:
    trial = Trial(lambda: marked_before(wrong=False))
    sorts = set[type]()

    @settings(few, max_examples=40)
    @given(trial.lives())
    def holds(life: tuple[object, ...]) -> None:
        for step in life:
            sorts.add(type(step))
            if isinstance(step, Change):
                assert set(step.patch["spec"]) <= {"replicas", "text"}

    holds()
    assert sorts == {Create, Change, Delete, Pass}


@pytest.mark.slow
def test_a_life_alone_shows_what_depends_on_the_way() -> None:
    trial = Trial(lambda: prunes(wrong=True))

    @settings(few, max_examples=40, phases=[Phase.generate])
    @given(trial.plans(most_faults=0))
    def survives(plan: Plan) -> None:
        trial.check(plan)

    with pytest.raises(AssertionError, match="O4"):
        survives()


def test_what_another_leader_began_is_held_against_a_fresh_start() -> None:
    plan = Plan(LIFE, (Overlap(at=At("apply configmaps default/w")),))
    with pytest.raises(AssertionError, match="FAIL O4"):
        Trial(lambda: marked_before(wrong=True)).check(plan)
    Trial(lambda: marked_before(wrong=False)).check(plan)


def test_a_plan_whose_fault_does_not_strike_is_never_green() -> None:
    trial = Trial(lambda: marked_before(wrong=False))
    plan = Plan(LIFE, (Crash(at=At("apply pods default/x")),))
    with pytest.raises(AssertionError, match="inconclusive: crash before apply pods default/x"):
        trial.check(plan)

    @few
    @given(st.just(plan))
    def survives(plan: Plan) -> None:
        trial.check(plan)

    with pytest.raises(Unsatisfiable):
        survives()
