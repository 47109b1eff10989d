"""The promises of ``proof/oracles.py`` that no mutant stands for: who is not accused."""

from __future__ import annotations

from typing import Any

import msgspec

from setpoint.testing.proof.oracles import Finding, Reference, Rules, fresh_start, judge
from setpoint.testing.proof.plans import At, Crash, Interfere, Plan
from setpoint.testing.proof.trace import Checkpoint, Run, Written
from tests.mutants.widgets import change, create, delete

STEPS = (create(), change(text="b"), delete())
CRASH = Crash(at=At("apply configmaps default/c"))


def run_of(*writes: Written, faults: tuple[Any, ...] = ()) -> Run:
    run = Run(Plan(STEPS, faults), writes=list(writes), fired=[str(fault) for fault in faults])
    run.checkpoints.append(point(writes=len(writes)))
    return run


def point(*, is_blind: bool = False, writes: int = 0) -> Checkpoint:
    return Checkpoint(0, "start", 0.0, 0.0, True, "", {}, 0, 0, writes, is_blind)


def write(by: str, type_: str, uid: str, *, owner: str = "", **metadata: Any) -> Written:
    meta: dict[str, Any] = {"name": uid, "namespace": "default", "uid": uid, **metadata}
    if owner:
        meta["ownerReferences"] = [{"uid": owner}]
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    data = msgspec.json.encode(obj)
    before = data if type_ == "MODIFIED" else None
    return Written(0.0, by, type_, "configmaps", "default", uid, 1, data, before)


def oracles(run: Run, reference: Reference) -> list[str]:
    return [finding.oracle for finding in judge(run, reference)]


def test_what_waits_for_the_collector_is_not_counted() -> None:
    rules = Rules(at_most=(("ConfigMap", 2),))
    made = [write("user", "ADDED", "owner"), write("operator 1", "ADDED", "a", owner="owner")]
    gone = write("user", "DELETED", "owner")
    anew = [write("user", "ADDED", "other"), write("operator 1", "ADDED", "b", owner="other")]
    orphaned, both = run_of(*made, gone, *anew), run_of(*made, *anew)
    assert oracles(orphaned, Reference(orphaned, rules)) == []
    assert oracles(both, Reference(both, rules)) == ["O8"]


def test_a_deletion_is_the_deed_of_who_asked_for_it() -> None:
    made = write("operator 1", "ADDED", "c")
    asked = write("user", "MODIFIED", "c", deletionTimestamp="2030-01-01T00:00:00Z")
    reference = Reference(run_of(made, asked, write("user", "DELETED", "c")))
    by_the_operator = run_of(made, asked, write("operator 1", "DELETED", "c"), faults=(CRASH,))
    of_its_own = run_of(made, write("operator 1", "DELETED", "c"), faults=(CRASH,))
    assert oracles(by_the_operator, reference) == []
    assert oracles(of_its_own, reference) == ["O5"]


def test_a_step_that_is_refused_without_faults_too_is_told_of_once() -> None:
    reference, struck = run_of(), run_of(faults=(CRASH,))
    reference.refused.append("a step (422)")
    struck.refused.append("a step (422)")
    assert oracles(reference, Reference(reference)) == ["O13"]
    assert oracles(struck, Reference(reference)) == []


def test_where_others_act_a_step_may_come_too_late() -> None:
    early = run_of(faults=(Interfere(at=CRASH.at, steps=(delete(),)),))
    early.refused.append("a step (404)")
    assert oracles(early, Reference(run_of())) == []


def test_a_state_that_was_not_waited_for_is_held_against_nothing() -> None:
    fresh = run_of()
    fresh.checkpoints[0].state["configmaps default/c"] = {}
    assert list(fresh_start(point(is_blind=True), fresh)) == []
    assert [type(each) for each in fresh_start(point(), fresh)] == [Finding]
