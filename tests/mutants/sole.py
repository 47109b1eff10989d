"""Finds out which classes of faults, and which oracles, are needed: without which a mutant would live.

    python -m tests.mutants.sole [NUMBER…]

For every mutant, every class of faults is tried alone.  A class that is the only one to kill some mutant is
needed, and so is an oracle without which some mutant is not accused by any class.  This takes long: it is for
whoever changes the kit, and not for every change.
"""

from __future__ import annotations

import sys

from setpoint.testing.proof.prove import prove
from tests.mutants.operators import Mutant, cloud
from tests.mutants.table import ALL, say

CLASSES = (
    "none", "E1", "E2", "E3", "E4", "E5", "E6", "E2+E2", "V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9",
    "V9a", "V10", "S1", "S2", "S3", "I1", "I2", "I3", "L1", "L2", "C1", "C2", "X1",
)  # fmt: skip
PLANS = 60  # of a class, at most


def killers(mutant: Mutant) -> dict[str, list[set[str]]]:
    """The classes that kill it; by each failing plan, the oracles that accuse it."""
    found: dict[str, list[set[str]]] = {}
    for name in CLASSES:
        with mutant.breaking():
            report = prove(
                mutant.mutant,
                steps=mutant.steps,
                clouds=[cloud],
                at_most=mutant.at_most,
                only=[name],
                budget=30,
                most_plans=PLANS,
                most_failures=3,
                shrink=False,
            )
        # What is wrong without any fault is not the fault's to find.
        failures = [each for each in report.failures if each.plan.faults or name == "none"]
        if failures:
            found[name] = [{finding.oracle for finding in each.findings} for each in failures]
    return found


def main() -> None:
    alone: dict[str, list[str]] = {}
    oracles: dict[str, list[str]] = {}
    for mutant in ALL:
        if sys.argv[1:] and mutant.number not in sys.argv[1:]:
            continue
        found = killers(mutant)
        say(f"{mutant.number:>4}  killed by {', '.join(found) or 'nothing'}")
        if len(found) == 1:
            alone.setdefault(next(iter(found)), []).append(mutant.number)
        accused = [each for plans in found.values() for each in plans]
        for oracle in set.intersection(*accused) if accused else ():
            if all(each == {oracle} for each in accused):
                oracles.setdefault(oracle, []).append(mutant.number)
    say("")
    for name in CLASSES:
        say(f"{name:>6}  alone kills {', '.join(alone.get(name, [])) or '-'}")
    for name, numbers in sorted(oracles.items()):
        say(f"{name:>6}  alone accuses {', '.join(numbers)}")


if __name__ == "__main__":
    main()
