"""The promises of ``proof/sweep.py``: which plans there are, and which are left when few are asked for."""

from __future__ import annotations

from setpoint.testing.proof.plans import At, Crash, Lose, Plan
from setpoint.testing.proof.sweep import thinned


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


def test_a_crash_upon_a_crash_is_a_class_of_its_own() -> None:
    assert Plan((), (Crash(at=at(1)), Crash(at=at(2), when="after"))).id == "E7"
    assert Plan((), (Crash(at=at(1)), Lose(at=at(2)))).id == "E1+E4"
