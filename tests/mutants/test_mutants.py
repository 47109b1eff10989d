"""Every mistake is found by the class of faults that it names, and nobody is accused who has not made it."""

from __future__ import annotations

import pytest

from setpoint.testing.proof.prove import prove
from tests.mutants.operators import Mutant, cloud
from tests.mutants.table import ALL, row

# Oracles, each with a mutant that no other accuses; O9 and O13 have tests of their own.
SOLE = {
    "O1": "25",
    "O2": "09",
    "O3": "04",
    "O4": "20",
    "O5": "23",
    "O6": "02",
    "O7": "O7",
    "O8": "14",
    "O10": "15",
    "O11": "O11",
    "O12": "17",
}


@pytest.mark.parametrize("mutant", ALL, ids=str)
def test_the_mutant_is_killed_and_its_twin_lives(mutant: Mutant) -> None:
    found = row(mutant, most_plans=8)  # all of them: make prove
    assert not found.killed.broken, found.killed
    assert found.oracle, f"{mutant.bug}: {mutant.killer} does not find it\n{found.killed}"
    assert found.twin.is_good, f"the twin of {mutant.number} is accused\n{found.twin}"
    assert not found.killed.inconclusive, "a fault that does not strike proves nothing"


@pytest.mark.parametrize("oracle", SOLE)
def test_without_the_oracle_its_mutant_lives(oracle: str) -> None:
    mutant = next(each for each in ALL if each.number == SOLE[oracle])
    with mutant.breaking():
        report = prove(
            mutant.mutant,
            steps=mutant.steps,
            clouds=[cloud],
            at_most=mutant.at_most,
            only=[mutant.killer],
            without=[oracle],
            most_plans=20,
        )
    assert report.failures == [], f"{oracle} is not needed to find that {mutant.bug}\n{report}"
