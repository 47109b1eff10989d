"""The promises of ``proof/oracles.py`` that no mutant stands for: who is accused, and who is not."""

from __future__ import annotations

from typing import Any

import msgspec

from setpoint.testing.proof.oracles import Finding, Reference, Rules, fresh_start, judge
from setpoint.testing.proof.plans import MARK, At, Crash, Interfere, Plan
from setpoint.testing.proof.trace import Checkpoint, Effect, Looked, Run, Written
from tests.mutants.widgets import change, create, delete

STEPS = (create(), change(text="b"), delete())
CRASH = Crash(at=At("apply configmaps default/c"))


def run_of(*writes: Written, faults: tuple[Any, ...] = ()) -> Run:
    run = Run(Plan(STEPS, faults), writes=list(writes), fired=[str(fault) for fault in faults])
    run.checkpoints.append(point(writes=len(writes)))
    return run


def point(*, is_blind: bool = False, writes: int = 0) -> Checkpoint:
    return Checkpoint(0, "start", 0.0, 0.0, True, "", {}, 0, 0, writes, is_blind)


def write(
    by: str, type_: str, uid: str, *, owner: str = "", before: dict[str, Any] | None = None, **metadata: Any
) -> Written:
    """A write of a ConfigMap; ``before`` is what its metadata had besides, and unless told what it has."""
    named: dict[str, Any] = {"name": uid, "namespace": "default", "uid": uid}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner}]
    had = before if before is not None else metadata if type_ == "MODIFIED" else None
    old = None if had is None else _config_map(named | had)
    return Written(0.0, by, type_, "configmaps", "default", uid, 1, _config_map(named | metadata), old)


def _config_map(metadata: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


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


def test_each_key_that_fails_is_tried_again_and_one_that_does_not_asks_for_little() -> None:
    reference = Reference(run_of())
    run = run_of(faults=(CRASH,))
    run.requests = 120
    for controller in ("first", "second"):
        assert oracles(run, reference) == ["O10"], "too much for one key, or for none"
        run.looks.append(Looked(0.0, 1, controller, "default/w", "error", "it is refused", False))
    assert oracles(run, reference) == []


def test_what_is_done_without_a_fault_is_not_held_against_itself() -> None:
    reference, probed = Reference(run_of()), run_of()
    probed.requests = 100_000
    probed.looks += [Looked(0.0, 1, "widget", "default/w", "success", "", False)] * 1_000
    assert oracles(probed, reference) == []


def test_history_may_depend_on_the_past_and_nothing_else_may() -> None:
    def reached(*names: str, faults: tuple[Any, ...] = ()) -> Run:
        run = run_of(faults=faults)
        run.checkpoints[-1].state = {name: {"apiVersion": "v1", "metadata": {}} for name in names}
        return run

    reference, first, second = "configmaps default/c", "revisions.apps default/1", "revisions.apps default/2"
    usual, struck = reached(reference, first), reached(reference, first, second, faults=(CRASH,))
    assert oracles(struck, Reference(usual)) == ["O3"]
    history = Rules(history=("revisions.apps",))
    assert oracles(struck, Reference(usual, history)) == []
    assert oracles(reached(first, faults=(CRASH,)), Reference(usual, history)) == ["O3"]
    assert [each.oracle for each in fresh_start(struck.checkpoints[-1], usual)] == ["O4"]
    assert not list(fresh_start(struck.checkpoints[-1], usual, history))


def test_a_loss_is_told_of_before_what_was_made_too_often() -> None:
    made = [write("operator 1", "ADDED", name) for name in ("a", "z")]
    extra = [write("operator 1", "ADDED", "z"), write("operator 1", "DELETED", "z")]  # taken away again
    lost = write("operator 1", "DELETED", "a")
    reference = Reference(run_of(*made))
    harmless = judge(run_of(*made, *extra, faults=(CRASH,)), reference)
    assert [(finding.oracle, finding.is_grave) for finding in harmless] == [("O5", False)]
    (grave,) = judge(run_of(*made, *extra, lost, faults=(CRASH,)), reference)
    assert grave.is_grave
    assert grave.what.startswith("configmaps default/a was deleted 1 times")
    assert [detail.split(" was ")[0] for detail in grave.details] == ["configmaps default/z"] * 2


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


# ---- finalizers


WIDGET = "configmaps default/w"
OWN, THEIRS = "example.com/own", "example.com/theirs"


def deleted(*finalizers: str, puts: str = OWN, step: int = len(STEPS), faults: tuple[Any, ...] = ()) -> Run:
    """A run at whose end an object is being deleted, and held by these; the operator has put one on."""
    run = run_of(
        write("user", "ADDED", "w"),
        write("operator 1", "MODIFIED", "w", before={}, finalizers=[puts]),
        faults=faults,
    )
    run.checkpoints[-1].step = step
    metadata = {"deletionTimestamp": "<time>", "finalizers": list(finalizers)}
    run.checkpoints[-1].state[WIDGET] = {"metadata": metadata}
    return run


def primary(run: Run) -> Reference:
    return Reference(run, primaries=frozenset(["configmaps"]))


def test_an_object_that_cannot_go_is_told_of_though_it_cannot_without_faults() -> None:
    run = deleted(OWN)
    assert oracles(run, primary(run)) == ["O7"]
    assert oracles(deleted(OWN, faults=(CRASH,)), primary(run)) == ["O7"]


def test_the_finalizer_of_another_is_not_the_operators_to_release() -> None:
    run = deleted(THEIRS)
    assert oracles(run, primary(run)) == []


def test_what_is_to_go_may_wait_for_what_the_user_does_next() -> None:
    usual = deleted(OWN, step=1)
    assert oracles(deleted(OWN, step=1, faults=(CRASH,)), primary(usual)) == []
    assert oracles(deleted(OWN, step=1, faults=(CRASH,)), primary(run_of())) == ["O3", "O7"]


def test_a_finalizer_of_anothers_is_not_lost() -> None:
    put = write("other", "MODIFIED", "c", before={}, finalizers=[THEIRS])
    off = write("operator 1", "MODIFIED", "c", before={"finalizers": [THEIRS]})
    gone = write("operator 1", "DELETED", "c", before={"finalizers": [THEIRS]})
    released = write("other", "MODIFIED", "c", before={"finalizers": [THEIRS]})
    made = write("user", "ADDED", "c")
    for lost in (off, gone):
        run = run_of(made, put, lost)
        assert oracles(run, Reference(run)) == ["O8"]
    run = run_of(made, put, released, write("operator 1", "DELETED", "c", before={}))
    assert oracles(run, Reference(run)) == []


# ---- what is left without faults


def left(*writes: Written, state: dict[str, Any], faults: tuple[Any, ...] = ()) -> Run:
    run = run_of(*writes, faults=faults)
    run.checkpoints[-1].state.update(state)
    return run


def judged(run: Run, *keeps: str) -> list[str]:
    return oracles(run, Reference(run, Rules(keeps=keeps), frozenset(["widgets"])))


ASKED = write("user", "ADDED", "w")._replace(resource="widgets")
ORPHAN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}


def test_a_child_that_nobody_owns_and_a_deletion_leaves_is_told_of() -> None:
    made = write("operator 1", "ADDED", "c")
    orphaned = left(ASKED, made, state={"configmaps default/c": ORPHAN})
    assert judged(orphaned) == ["O8"]
    assert judged(orphaned, "configmaps") == [], "it is meant to stay"
    assert judged(left(made, ASKED, state={"configmaps default/c": ORPHAN})) == [], "it is the operator's own"
    assert judged(left(ASKED, state={"configmaps default/c": ORPHAN})) == [], "it is the user's"
    assert judged(left(ASKED, made, state={"configmaps default/c-2": ORPHAN})) == [], "another's"
    still = {"configmaps default/c": ORPHAN, "widgets default/w": ORPHAN}
    assert judged(left(ASKED, made, state=still)) == [], "it is asked for yet"


def test_a_child_with_the_wrong_owner_is_told_of_by_that() -> None:
    obj = {**ORPHAN, "metadata": {"ownerReferences": [{"kind": "Secret", "name": "x", "uid": "<uid of x>"}]}}
    run = left(ASKED, write("operator 1", "ADDED", "c", owner="x"), state={"configmaps default/c": obj})
    found = judge(run, Reference(run, primaries=frozenset(["widgets"])))
    assert [finding.oracle for finding in found] == ["O8"]
    assert "is owned by x" in found[0].what


def test_an_object_of_no_namespace_can_be_left_too() -> None:
    made = write("operator 1", "ADDED", "c")._replace(resource="namespaces", namespace="")
    assert judged(left(ASKED, made, state={"namespaces c": ORPHAN})) == ["O8"]


def test_what_is_left_outside_is_told_of_though_it_is_without_faults() -> None:
    thing = Written(0.0, "operator 1", "ADDED", "cloud", "", "id", 2, b"{}", None)
    run = left(ASKED, thing, state={"cloud id": {}})
    assert judged(run) == ["O6"]
    assert judged(run, "cloud") == []


def test_what_was_made_outside_before_there_was_any_object_is_the_operators_own() -> None:
    def thing(id_: str) -> Written:
        return Written(0.0, "operator 1", "ADDED", "cloud", "", id_, 2, b"{}", None)

    assert judged(left(thing("root"), ASKED, state={"cloud root": {}})) == []
    both = left(thing("root"), ASKED, thing("w"), state={"cloud root": {}, "cloud w": {}})
    found = judge(both, Reference(both, primaries=frozenset(["widgets"])))
    assert [finding.what for finding in found] == ["cloud w is left when nobody asks for it any more"]


def test_a_child_that_is_left_is_told_of_though_it_is_of_one_of_the_operators_kinds() -> None:
    member = write("operator 1", "ADDED", "m")._replace(resource="members")
    run = left(ASKED, member, state={"members default/m": ORPHAN}, faults=(CRASH,))
    primaries = frozenset(["widgets", "members"])
    reference = run_of()
    reference.checkpoints[-1].step = 9  # what is compared is another step's

    def found(state: dict[str, Any]) -> list[str]:
        run.checkpoints[-1].state = state
        return [each for each in oracles(run, Reference(reference, primaries=primaries)) if each == "O6"]

    assert found({"members default/m": ORPHAN}) == ["O6"]
    assert found({"members default/m": ORPHAN, "members default/u": ORPHAN}) == [], "a user asks for one yet"
    assert found({"members default/m": ORPHAN, "widgets default/w": ORPHAN}) == [], "it is asked for yet"


# ---- swallowed errors


def failing(came_to: str, *, error: str = "", tries: int = 1, is_there: bool = False) -> Run:
    """An apply that failed, and what came of its reconcile."""
    run = run_of(faults=(CRASH,))
    for number in range(1, tries + 1):
        said, raised = (came_to, error) if number == 1 else ("201", "")
        run.effects.append(Effect(number, At(CRASH.at.what, number), 1, 0.0, came_to=said, look=f"{number}"))
        run.looks.append(Looked(0.0, 1, "c", "default/c", "", raised, False, f"{number}"))
    if is_there:
        run.checkpoints[-1].state["configmaps default/c"] = ORPHAN
    return run


def swallowed(run: Run) -> bool:
    reference = run_of()
    reference.checkpoints[-1].state["configmaps default/c"] = ORPHAN
    return "O11" in oracles(run, Reference(reference))


def test_an_error_that_is_caught_and_forgotten_is_told_of() -> None:
    assert swallowed(failing("500 (a fault)"))
    assert swallowed(failing("no connection (a fault)"))
    assert not swallowed(failing("500 (a fault)", is_there=True)), "nothing is missed"
    assert not swallowed(failing("500 (a fault)", tries=2)), "it was tried again"
    assert not swallowed(failing("500 (a fault)", error="ServerError: 500")), "it was raised"
    assert not swallowed(failing("done, but its answer is lost (a fault)")), "it was done"


def test_a_state_that_was_not_waited_for_is_held_against_nothing() -> None:
    fresh = run_of()
    fresh.checkpoints[0].state["configmaps default/c"] = {}
    assert list(fresh_start(point(is_blind=True), fresh)) == []
    assert [type(each) for each in fresh_start(point(), fresh)] == [Finding]


def test_what_is_meant_to_stay_and_the_marks_of_others_are_no_difference_to_a_fresh_start() -> None:
    reached = point()
    labelled = {"metadata": {"labels": {MARK: "was-here"}}}
    reached.state |= {"persistentvolumeclaims default/old": {}, "configmaps default/c": labelled}
    fresh = run_of()
    fresh.checkpoints[0].state["configmaps default/c"] = {"metadata": {}}
    assert list(fresh_start(reached, fresh, Rules(keeps=("persistentvolumeclaims",)))) == []
    (found,) = fresh_start(reached, fresh)
    assert "persistentvolumeclaims default/old: should not be there" in found.what
