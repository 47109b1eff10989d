"""Prints which mutants are killed, by what, that their twins and operators without a mistake live, and what
each class and oracle is needed for: ``make prove``.

    python -m tests.mutants.table [NUMBER…]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import Report
from tests.mutants import sole
from tests.mutants.correct import CORRECT
from tests.mutants.mutants import ALL, Mutant, say
from tests.mutants.operators import cloud

BUDGET = 60.0  # as ``setpoint prove`` has it
EVERYTHING = 1  # plans of every class, for a twin


@dataclass(frozen=True)
class Row:
    mutant: Mutant
    killed: Report
    twin: Report
    everything: Report | None  # the twin, by a little of every class
    seconds: float

    @property
    def oracle(self) -> str:
        """Which of those it names found it, and not by a mere warning where more can be said; "" for none."""
        failures = self.killed.failures if self.mutant.is_warned else self.killed.alarms
        found = [finding.oracle for failure in failures for finding in failure.findings]
        return next((oracle for oracle in found if oracle in self.mutant.oracles), "")

    @property
    def is_silent(self) -> bool:
        """Whether nobody accuses the twin."""
        return self.twin.is_good and (self.everything is None or self.everything.is_good)

    @property
    def is_good(self) -> bool:
        return bool(self.oracle) and self.is_silent and not self.killed.broken

    def __str__(self) -> str:
        said = "killed" if self.oracle else "LIVES"
        twin = "silent" if self.is_silent else "ALARM"
        plans = self.twin.plans + (0 if self.everything is None else self.everything.plans)
        return (
            f"{self.mutant.number:>4}  {self.mutant.bug:<52} {self.mutant.killer:<6} "
            f"{self.oracle or '-':<4} {said:<7}"
            f"{self.killed.plans:>4}   twin {twin} {plans:>4}   {self.seconds:5.1f} s"
        )


def row(mutant: Mutant, *, most_plans: int | None = None, is_whole: bool = False) -> Row:
    """Put one to the proof, by the class of faults that it names; its twin by so many plans of that, and if
    ``is_whole`` by a little of every class.
    """
    began = time.process_time()
    only = [mutant.killer]
    with mutant.breaking():
        killed = prove(
            mutant.mutant,
            steps=mutant.steps,
            clouds=[cloud],
            at_most=mutant.at_most,
            without=mutant.without,
            only=only,
            budget=BUDGET,
            most_failures=1,
            shrink=False,
        )
    prove_twin = partial(
        prove,
        mutant.twin,
        steps=mutant.steps,
        clouds=[cloud],
        at_most=mutant.at_most,
        without=mutant.without,
    )
    twin = prove_twin(only=only, budget=BUDGET, most_plans=most_plans)
    everything = None
    if is_whole:
        everything = prove_twin(only=sole.EVERY, budget=BUDGET, most_of_class=EVERYTHING)
    return Row(mutant, killed, twin, everything, time.process_time() - began)


def rows(numbers: list[str]) -> Iterator[Row]:
    for mutant in ALL:
        if not numbers or mutant.number in numbers:
            yield row(mutant, is_whole=True)


def accused(numbers: list[str]) -> int:
    """Prove the operators that have no mistake; how many of them are accused."""
    bad = 0
    for correct in CORRECT:
        if not numbers or correct.number in numbers:
            report = correct.proven(most_of_class=EVERYTHING)
            said = "silent" if report.is_good else "ALARM"
            say(f"{correct.number:>4}  {correct.what:<72} {said} {report.plans:>4}   {report.seconds:5.1f} s")
            if not report.is_good:
                say(report)
            bad += not report.is_good
    return bad


def main() -> int:
    say(f"{'':>4}  {'mistake':<52} {'faults':<6} {'by':<4} {'':<7}plans")
    bad = 0
    for each in rows(sys.argv[1:]):
        say(each)
        bad += not each.is_good
        for report in filter(None, (each.twin, each.everything)):
            if not report.is_good:
                say(report)
    say(f"{len(ALL)} mutants, {bad} of them not as they should be")
    bad += accused(sys.argv[1:])
    if not sys.argv[1:]:
        bad += sole.drop((), sole.MOST)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
