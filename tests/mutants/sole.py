"""Shows that every class of faults and every oracle is needed: without it, a mutant of its own would live.

    python -m tests.mutants.sole             drops each, and sees its mutant live: a part of ``make prove``
    python -m tests.mutants.sole --whole     the same, by every plan with a single fault
    python -m tests.mutants.sole --matrix    for every mutant, which classes kill it, and by which oracles

A class is dropped by trying all others, an oracle by not asking it.  ``CLASSES`` and ``ORACLES`` say whose
each mutant is; the matrix is for whoever looks for a new one.  A warning counts where the mutant names its
class.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import Report
from tests.mutants.mutants import ALL, Mutant, say
from tests.mutants.operators import cloud

CLASSES: Final = {
    "E1": "E1",
    "E2": "E2",
    "E3": "10",
    "E4": "E4",
    "E5": "15",
    "E6": "E6",
    "E7": "E7",
    "V1": "19",
    "V2": "V2",
    "V3": "V3",
    "V4": "V4",
    "V5": "V5",
    "V6": "08",
    "V7": "26",
    "V8": "V8",
    "V9": "23",
    "V9a": "27",
    "V10": "V10",
    "S1": "28",
    "S2": "S2b",
    "S3": "29",
    "S4": "S4",
    "I1": "O9",
    "I2": "14",
    "I3": "I3",
    "L1": "16",
    "L2": "L2b",
    "L3": "L3",
    "C1": "17",
    "C2": "25",
    "X1": "X1",
    "M1": "M1",
    "I1+V2": "24b",
    "V1+L1": "L1c",
}
ORACLES: Final = {
    "O1": "M1",
    "O2": "09",
    "O3": "V4",
    "O4": "20",
    "O5": "23",
    "O6": "E2",
    "O7": "O7",
    "O8": "14",
    "O9": "O9",
    "O10": "15",
    "O11": "O11",
    "O12": "17",
    "O13": "O13",
    "O14": "N3",
}
EVERY: Final = ("none", *CLASSES, "E4+V1")
MOST: Final = 8  # plans of a class, for ``make prove``


def mutant_of(number: str) -> Mutant:
    return next(each for each in ALL if each.number == number)


def others(dropped: str) -> list[str]:
    """Every class but one, alone or in pairs."""
    return [each for each in EVERY if dropped not in (each, *each.split("+"))]


def tried(
    mutant: Mutant, classes: Iterable[str], *, without: Iterable[str] = (), most: int | None = None
) -> Report:
    """A mutant, by so many plans of each of these classes."""
    with mutant.breaking():
        return prove(
            mutant.mutant,
            steps=mutant.steps,
            clouds=[cloud],
            at_most=mutant.at_most,
            only=classes,
            without=[*without, *mutant.without],
            budget=600,
            most_failures=1_000,
            most_of_class=most,
            shrink=False,
        )


def killers(report: Report, mutant: Mutant) -> dict[str, set[frozenset[str]]]:
    """By class, which oracles accuse; each set is one plan's."""
    found: dict[str, set[frozenset[str]]] = {}
    for failure in report.failures:
        if not failure.is_warning or failure.plan.id == mutant.killer:
            oracles = frozenset(finding.oracle for finding in failure.findings)
            found.setdefault(failure.plan.id, set()).add(oracles)
    return found


def told(found: dict[str, set[frozenset[str]]]) -> str:
    sets = {
        name: " or ".join("+".join(sorted(each)) for each in sorted(sets, key=sorted))
        for name, sets in found.items()
    }
    return ", ".join(f"{name} ({accused})" for name, accused in sets.items())


def matrix(numbers: Iterable[str]) -> None:
    for mutant in ALL:
        if not numbers or mutant.number in numbers:
            report = tried(mutant, EVERY, most=MOST)
            found = told(killers(report, mutant)) or "lives"
            say(f"{mutant.number:>4}  {report.plans:>4} plans, {report.seconds:4.1f} s  {found}")


def drop(names: Iterable[str], most: int | None) -> int:
    """Drop each, and see its mutant live; how many do not."""
    say(f"\n{'':>4}  {'dropped, and its mutant lives':<65}{'plans':>7}")
    bad = 0
    for name, number in {**CLASSES, **ORACLES}.items():
        if names and name not in names:
            continue
        mutant = mutant_of(number)
        is_class = name in CLASSES
        report = tried(
            mutant, others(name) if is_class else EVERY, without=() if is_class else [name], most=most
        )
        found = killers(report, mutant)
        bad += bool(found)
        lives = f"IS KILLED by {told(found)}" if found else "lives"
        counted = f"{report.plans:>7}   {report.seconds:5.1f} s"
        say(f"{name:>5} {mutant.number:>4} {mutant.bug:<52} {lives:<7}{counted}")
    say(f"{len(CLASSES)} classes and {len(ORACLES)} oracles, {bad} of them not needed")
    return bad


def main() -> int:
    options = {each for each in sys.argv[1:] if each.startswith("--")}
    names = [each for each in sys.argv[1:] if each not in options]
    if "--matrix" in options:
        matrix(names)
        return 0
    return min(1, drop(names, None if "--whole" in options else MOST))


if __name__ == "__main__":
    sys.exit(main())
