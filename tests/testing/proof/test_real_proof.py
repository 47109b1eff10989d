"""What a proof on a real cluster refuses before it asks anything of it, and shares with one in process.

What it does there is in ``tests/conformance/test_proof.py``.
"""

from __future__ import annotations

import msgspec
import pytest

from setpoint.client.config import Config
from setpoint.testing.proof.fresh import fresh_plans
from setpoint.testing.proof.kept import How, keep
from setpoint.testing.proof.oracles import Reference
from setpoint.testing.proof.plans import AnyFault, At, Crash, Freeze, Pass, Plan, Slow, Step, Travel
from setpoint.testing.proof.prove import prove, smaller_than
from setpoint.testing.proof.real_proof import prove_on_cluster, replay_on_cluster, why_not
from setpoint.testing.proof.real_site import namespace_of
from tests.mutants.operators import marked_before
from tests.mutants.widgets import change, create, delete, operator_of, widget

HERE, ELSEWHERE = Config(server="https://127.0.0.1:9"), Config(server="https://192.0.2.1:6443")
APPLIED = At("apply configmaps default/w")
PLAN = Plan((create(), delete()), (Crash(at=APPLIED),))


def test_a_cluster_elsewhere_is_not_touched_by_a_replay_either() -> None:
    with pytest.raises(ValueError, match="say anywhere=True"):
        replay_on_cluster(lambda: marked_before(wrong=True), ELSEWHERE, PLAN)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Slow(at=APPLIED), "E6 needs time that can be put forward"),
        (Travel(at=APPLIED), "V9 needs Setpoint's own server"),
        (Freeze(at=APPLIED, seconds=301.0), "V1 for 301 s needs time that can be put forward"),
    ],
)
def test_a_fault_that_cannot_be_had_on_a_cluster_is_named_with_why(fault: AnyFault, why: str) -> None:
    missing = why_not(fault)
    assert missing is not None
    assert " ".join(missing) == why
    with pytest.raises(ValueError, match=f"{why}; replay it in process"):
        replay_on_cluster(
            lambda: marked_before(wrong=True), HERE, msgspec.structs.replace(PLAN, faults=(fault,))
        )


def test_objects_that_were_there_before_are_not_on_a_cluster() -> None:
    kept = keep(PLAN, How(objects=(widget("other"),)))
    with pytest.raises(ValueError, match=r"among objects that are not on a cluster .*: replay it in process"):
        replay_on_cluster(lambda: marked_before(wrong=True), HERE, kept)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((create(), Pass(3601.0)), "3601 s pass: on a cluster they take as long as they say"),
        ((create(), msgspec.structs.replace(delete(), namespace="other")), "the steps are in default, other"),
    ],
)
def test_steps_that_cannot_be_taken_on_a_cluster_are_refused(steps: tuple[Step, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        namespace_of(steps)
    with pytest.raises(ValueError, match=why):
        prove_on_cluster(lambda: marked_before(wrong=True), HERE, steps=steps)


def test_a_plan_is_in_the_namespace_that_its_steps_speak_of() -> None:
    assert namespace_of((create(), Pass(5.0), delete())) == "default"
    assert namespace_of((msgspec.structs.replace(delete(), namespace="shop"),)) == "shop"


# ---- what it shares with a proof in process


def test_what_fails_is_first_tried_without_the_steps_after_it() -> None:
    steps = [create(), change(text="b"), change(replicas=2), change(text="c"), delete()]
    report = prove(lambda: marked_before(wrong=True), steps=steps, only=["E2"], shrink=False, most_failures=1)
    (failure,) = report.failures
    first, *others = smaller_than(failure)
    assert first.steps == failure.plan.steps[:1]
    assert first.faults == failure.plan.faults
    assert all(len(plan.steps) == len(steps) - 1 for plan in others)


def test_a_fresh_start_has_the_objects_of_the_state_and_nothing_of_how_it_came_about() -> None:
    async def idle(_widget: object, _ctx: object) -> None:
        pass

    steps = [create(), change(text="b"), create("other"), delete(), delete("other")]
    report = prove(lambda: operator_of(idle), steps=steps, without=["O13"], only=["E1"])
    assert report.reference is not None
    primaries = frozenset({"widgets.test.setpoint.dev"})
    reference = Reference(report.reference, primaries=primaries)
    found = [(point.step, plan.steps) for point, plan in fresh_plans(reference.run, reference)]
    assert found == [
        (1, (create(),)),
        (2, (create(text="b"),)),
        (3, (create(text="b"), create("other"))),
        (4, (create("other"),)),
    ]
