"""Every mistake is found by the class of faults that it names, and nobody is accused who has not made it."""

from __future__ import annotations

import pytest

from setpoint.testing.proof import plans
from setpoint.testing.proof.oracles import MEANINGS
from setpoint.testing.proof.plans import At, Fault
from setpoint.testing.proof.prove import prove
from tests.mutants.correct import CORRECT, Correct
from tests.mutants.mutants import ALL, Mutant
from tests.mutants.operators import cloud
from tests.mutants.sole import CLASSES, EVERY, ORACLES, killers, mutant_of, others, tried
from tests.mutants.table import row

# One mutant of each oracle is quick enough for every run; the others take two minutes together.
_ROWS = [
    pytest.param(mutant, id=str(mutant), marks=() if mutant.number in ORACLES.values() else pytest.mark.slow)
    for mutant in ALL
]


@pytest.mark.parametrize("mutant", _ROWS)
def test_the_mutant_is_killed_and_its_twin_lives(mutant: Mutant) -> None:
    found = row(mutant, most_plans=8)  # all of them: make prove
    assert not found.killed.broken, found.killed
    assert found.oracle, f"{mutant.bug}: {mutant.killer} does not find it\n{found.killed}"
    assert found.twin.is_good, f"the twin of {mutant.number} is accused\n{found.twin}"
    assert not found.killed.inconclusive, "a fault that does not strike proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("number", ["20", "21"])
def test_what_depends_on_the_way_is_found_by_what_a_user_does_where_nobody_says(number: str) -> None:
    mutant = mutant_of(number)
    found = prove(mutant.mutant, clouds=[cloud], only=["none"], budget=60, shrink=False)
    twin = prove(mutant.twin, clouds=[cloud], only=["none"], budget=60)
    assert [finding.oracle for failure in found.failures for finding in failure.findings] == ["O4"], found
    assert twin.is_good, twin
    assert not twin.inconclusive, twin


# Of what is dropped, the nearest relatives are tried, a plan of each; ``make prove`` tries all, and more.


@pytest.mark.slow
@pytest.mark.parametrize("dropped", CLASSES)
def test_without_the_class_of_faults_its_mutant_lives(dropped: str) -> None:
    mutant = mutant_of(CLASSES[dropped])
    assert mutant.killer == dropped, f"{mutant.number} is to be killed by {mutant.killer}"
    letters = [each[0] for each in dropped.split("+")]
    relatives = [each for each in others(dropped) if each[0] in letters] or ["E1", "I1"]
    found = killers(tried(mutant, relatives, most=1), mutant)
    assert found == {}, f"{dropped} is not needed to find that {mutant.bug}"


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
def test_without_the_oracle_its_mutant_lives(oracle: str) -> None:
    mutant = mutant_of(ORACLES[oracle])
    found = killers(tried(mutant, [mutant.killer], without=[oracle], most=8), mutant)
    assert found == {}, f"{oracle} is not needed to find that {mutant.bug}"


def test_every_class_and_every_oracle_has_a_mutant_of_its_own() -> None:
    assert set(ORACLES) == set(MEANINGS)
    assert set(EVERY) == {"none", *CLASSES, "E4+V1"}
    at = At("create pods default/a")
    step = plans.Change("v1", "Pod", "a", {})
    needs: dict[str, dict[str, object]] = {
        "Interfere": {"steps": (step,)},
        "Linger": {"api_version": "v1", "kind": "Pod", "name": "a"},
        "Alter": {"step": step},
    }
    for kind in Fault.__subclasses__():
        assert kind(at=at, **needs.get(kind.__name__, {})).id in CLASSES, kind


@pytest.mark.slow
@pytest.mark.parametrize("correct", CORRECT, ids=str)
def test_an_operator_without_a_mistake_is_not_accused(correct: Correct) -> None:
    report = correct.proven()
    assert report.is_good, f"{correct.what}\n{report}"
    assert not report.failures, report
