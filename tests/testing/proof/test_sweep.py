"""The promises of ``proof/sweep.py``: which plans there are, and which are left when few are asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from setpoint.cache.informer import SYNC_TIMEOUT
from setpoint.cache.watch_state import TIMING
from setpoint.client.client import TIMEOUT
from setpoint.manager.lease_state import LeaderElection
from setpoint.testing.proof.plans import (
    AnyFault,
    At,
    Change,
    ClockStep,
    Crash,
    Create,
    Delete,
    Freeze,
    Interfere,
    LeaseDeleted,
    Lose,
    Overlap,
    Plan,
    Refuse,
    SlowClock,
    Starve,
    Step,
    Travel,
    Unrenewed,
)
from setpoint.testing.proof.sweep import (
    READS,
    TWICE,
    combinable,
    in_turn,
    outcomes,
    pairs,
    parts,
    singles,
    thinned,
)
from setpoint.testing.proof.trace import Checkpoint, Effect, Looked, Run, Written
from tests.mutants.widgets import change, create, delete

WIDGETS = "widgets.test.setpoint.dev"
STEPS = (create(), delete())


def written(by: str, revision: int, resource: str, obj: dict[str, Any]) -> Written:
    name = obj["metadata"]["name"]
    data = msgspec.json.encode(obj)
    return Written(float(revision), by, "ADDED", resource, "default", name, revision, data, None)


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "ownerReferences": [{"uid": "u"}], **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": "a"}}


def reference(*, watches: tuple[str, ...] = (WIDGETS, "configmaps")) -> Run:
    """A widget, then three ConfigMaps that the operator made, and a thing outside."""
    run = Run(Plan(STEPS))
    run.writes.append(written("user", 1, WIDGETS, create().object))  # type: ignore[union-attr]
    for number in (2, 3, 4):
        at_ = At(f"apply configmaps default/c-{number}")
        run.writes.append(written("operator 1", number, "configmaps", config_map(f"c-{number}")))
        run.effects.append(Effect(number - 1, at_, 1, float(number), ended=float(number), revision=number))
    thing = Written(5.0, "operator 1", "ADDED", "cloud", "", "id", 5, b"{}", None)
    run.writes.append(thing)
    run.events += [At(f"ADDED {resource} default/w") for resource in watches]
    return run


def faults(*ids: str, **how: Any) -> list[AnyFault]:
    return [plan.faults[0] for plan in singles(reference(**how), STEPS, only=frozenset(ids))]


def at(number: int) -> At:
    return At("create pods default/a", number)


def test_few_plans_of_each_class_are_spread_over_its_places() -> None:
    crashes = [Plan((), (Crash(at=at(number)),)) for number in range(9)]
    lost = [Plan((), (Lose(at=at(number)),)) for number in range(2)]
    taken = [plan.faults[0] for plan in thinned([*crashes, *lost], 3)]
    assert [(fault.id, fault.at.nth) for fault in taken] == [
        ("E1", 0),
        ("E1", 3),
        ("E1", 6),
        ("E4", 0),
        ("E4", 1),
    ]


def test_a_few_of_every_class_come_first_and_then_all_others_in_order() -> None:
    crashes = [Plan((), (Crash(at=at(number)),)) for number in range(5)]
    lost = [Plan((), (Lose(at=at(number)),)) for number in range(2)]
    twice = [Plan((), (Crash(at=at(number)), Crash(at=at(9)))) for number in range(3)]
    found = [(plan.id, plan.faults[0].at.nth) for plan in in_turn([*crashes, *lost], twice, first=2)]
    assert found[:6] == [("E1", 0), ("E1", 2), ("E4", 0), ("E4", 1), ("E7", 0), ("E7", 1)]
    assert found[6:] == [("E1", 1), ("E1", 3), ("E1", 4), ("E7", 2)]


def test_a_crash_upon_a_crash_is_a_class_of_its_own() -> None:
    assert Plan((), (Crash(at=at(1)), Crash(at=at(2), when="after"))).id == "E7"
    assert Plan((), (Crash(at=at(1)), Lose(at=at(2)))).id == "E1+E4"


def test_the_answer_of_a_write_is_lost_by_a_broken_connection_and_by_a_proxy() -> None:
    assert {fault.code for fault in faults("E4") if isinstance(fault, Lose)} == {0, 504}


def unread(*reads: tuple[str, bool]) -> list[Refuse]:
    """How reads are refused; each told by what it is, and whether it is outside."""
    run = reference()
    for what, is_external in reads:
        nth = 1 + sum(each.at.what == what for each in run.reads)
        run.reads.append(Effect(0, At(what, nth), 1, 1.0, is_external))
    found = [plan.faults[0] for plan in singles(run, STEPS, only=frozenset({"E3"}))]
    known = {what for what, _is_external in reads}
    return [fault for fault in found if isinstance(fault, Refuse) and fault.at.what in known]


def test_what_is_read_is_refused_by_a_server_that_fails_that_forbids_it_and_that_is_away() -> None:
    inside, outside = "get configmaps default/x", "get cloud id"
    found = unread((inside, False), (outside, True))
    assert {(fault.at.what, fault.code) for fault in found} == {
        (what, code) for what in (inside, outside) for code in (500, 503, 403, 0)
    }
    again = {(fault.at.what, fault.code) for fault in found if fault.times == TWICE}
    assert again == {(inside, code) for code in (500, 503, 0)}, "what the client tries again by itself"


def test_of_many_reads_of_a_kind_only_a_few_are_refused() -> None:
    names = [(f"get configmaps default/{number}", False) for number in range(20)]
    found = [fault.at.what for fault in unread(*names, ("list configmaps default", False)) if not fault.code]
    assert len(found) == READS + 1
    assert found[:2] == ["get configmaps default/0", "get configmaps default/5"]


def test_a_user_deletes_and_makes_anew_at_every_effect() -> None:
    anew = [
        fault for fault in faults("I1") if isinstance(fault, Interfere) and fault.steps[1:] == (create(),)
    ]
    assert [fault.at.what for fault in anew] == [
        f"apply configmaps default/c-{number}" for number in (2, 3, 4)
    ]
    assert all(fault.is_racy for fault in anew)


def test_others_change_and_delete_the_children_that_the_operator_watches() -> None:
    found = [fault for fault in faults("I2") if isinstance(fault, Interfere) and fault.is_racy]
    assert [type(fault.steps[0]).__name__ for fault in found[:2]] == ["Change", "Delete"]
    assert {fault.by for fault in found} == {"other"}
    assert [fault for fault in faults("I2", watches=(WIDGETS,)) if fault.is_racy] == []


def test_the_label_of_another_is_no_race() -> None:
    marks = [fault for fault in faults("I2") if not fault.is_racy]
    assert all(isinstance(fault, Interfere) and not isinstance(fault.steps[0], Delete) for fault in marks)


def test_a_view_stands_still_for_longer_than_an_hour_once_for_each_resource() -> None:
    long = [fault for fault in faults("V1") if isinstance(fault, Freeze) and fault.seconds > 3600]
    assert [(fault.at.what, fault.resources) for fault in long] == [
        ("apply configmaps default/c-2", ("configmaps",))
    ]


def test_a_leader_is_paused_at_every_effect_for_longer_than_any_wait_of_the_runtimes() -> None:
    found = [(fault.at.what[-1], fault.seconds) for fault in faults("L1") if isinstance(fault, Overlap)]
    assert [what for what, _seconds in found] == ["2", "3", "4"]
    longest = max(LeaderElection("l").lease_duration, TIMEOUT, SYNC_TIMEOUT, TIMING.liveness, TIMING.quiet)
    assert all(seconds > longest for _what, seconds in found)


def test_who_takes_over_has_not_seen_the_last_thing_that_the_leader_did() -> None:
    run = reference()
    for effect, look in zip(run.effects, ("a", "a", "b"), strict=True):
        effect.look = look
    found = [plan.faults for plan in pairs(run, STEPS) if plan.id == "V1+L1"]
    assert [(freeze.at.what[-1], pause.at.what[-1]) for freeze, pause in found] == [
        ("2", "2"),
        ("2", "3"),
        ("4", "4"),
    ]
    for freeze, pause in found:
        assert isinstance(freeze, Freeze)
        assert isinstance(pause, Overlap)
        assert freeze.seconds > pause.seconds, "nor has the first, when it wakes up"


def test_calendars_are_set_by_a_minute_and_by_an_hour() -> None:
    found = {fault.seconds for fault in faults("C1") if isinstance(fault, ClockStep)}
    assert found == {-3600.0, -60.0, 60.0, 3600.0}


def test_the_past_is_every_state_before_the_last_writes_each_once() -> None:
    travels = [fault for fault in faults("V9") if isinstance(fault, Travel)]
    last = [fault for fault in travels if fault.at.what == "apply configmaps default/c-4"]
    assert [fault.back for fault in last if not fault.resources] == [1, 2, 3, 4]
    assert [fault.back for fault in last if fault.resources == (WIDGETS,)] == [4]
    assert [fault.back for fault in last if fault.resources == ("configmaps",)] == [1, 2, 3]


def test_what_never_ends_and_what_takes_two_processes_stand_alone() -> None:
    alone = LeaseDeleted | Overlap | SlowClock | Starve | Unrenewed
    found = [fault for column in combinable(reference(), STEPS) for fault in column]
    assert all(isinstance(fault, alone) for fault in faults("V10", "L1", "L2", "L3"))
    assert not any(isinstance(fault, alone) for fault in found)


def test_nothing_strikes_in_a_life_that_does_not_come_to_rest() -> None:
    run = reference()
    run.checkpoints.append(Checkpoint(1, "create", 0.0, 0.0, False, "it fails", {}, 0, 0, 0))
    assert combinable(run, STEPS) == []


def test_a_part_of_a_life_begins_as_it_does_and_takes_back_what_may_fail() -> None:
    wrong = Change("v1", "Widget", "w", {"spec": {"text": "bad"}}, may_fail=True)
    steps = (create(), wrong, change(text="a"), delete())
    assert parts(steps) == [
        (create(), change(text="a"), delete()),
        (create(), delete()),
        (create(),),
        (create(), wrong, change(text="a")),
    ]


def test_the_outcomes_of_a_run_are_what_came_of_effects_and_looks() -> None:
    run = Run(Plan())
    run.effects += [Effect(1, at(1), 1, 0.0, came_to="200"), Effect(2, at(2), 1, 0.0, came_to="200")]
    run.looks.append(Looked(0.0, 1, "widget", "default/w", "error", "Conflict: another was faster", False))
    assert outcomes(run) == {("create pods default/a", "200"), ("widget", "Conflict")}


def other(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "test.setpoint.dev/v1", "kind": "Gadget", "metadata": {"name": "g", **metadata}}


def test_of_several_kinds_the_one_that_the_user_is_about_is_deleted_and_none_is_starved() -> None:
    steps: tuple[Step, ...] = (create(), Create(other()), delete())
    run = Run(Plan(steps))
    run.writes.append(written("user", 1, WIDGETS, create().object))  # type: ignore[union-attr]
    run.writes.append(written("user", 2, "gadgets.test.setpoint.dev", other(namespace="default")))
    for number in range(4):  # the start, and each step
        run.checkpoints.append(Checkpoint(number, "", 10.0 * number, 0.0, True, "", {}, 0, 0, 0))
        run.effects.append(Effect(number + 1, at(number + 1), 1, 10.0 * number + 1))
    run.events += [
        At("ADDED widgets.test.setpoint.dev default/w"),
        At("ADDED gadgets.test.setpoint.dev default/g"),
    ]
    deleted = [
        fault.down[0].kind  # type: ignore[union-attr]
        for plan in singles(run, steps)
        for fault in plan.faults
        if isinstance(fault, Crash) and fault.down
    ]
    assert deleted == ["Widget", "Widget", "Gadget", "Widget"]
    assert list(singles(run, steps, only=frozenset({"V10"}))) == []
