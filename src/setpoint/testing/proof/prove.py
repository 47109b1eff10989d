"""Proves an operator: runs it without faults, then with every single one, then with several, and judges.

    report = prove(operator, steps=[create(webapp), ...], budget=60)
    assert report.is_good, report

In this order, until the budget is spent:

1. the reference, twice: two runs of one plan must be the same, or nothing that follows means anything;
2. the reference with other seeds, which shows what the operator draws by chance, and with probes after every
   step: what is wrong here is wrong without any fault;
3. a fresh start for every state that the steps lead to (O4);
4. every single fault, then pairs, then chance.

A failing plan is run once more, made smaller, and kept.  A cell that has failed is not tried again: one
failure of a kind says as much as ten.  Whatever did not strike is counted as inconclusive and never as good.

What is right is ``oracles.py``'s to say; which plans there are, ``sweep.py``'s.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers
from setpoint.testing.proof.oracles import Finding, Reference, Rules, fresh_start, judge
from setpoint.testing.proof.plans import Create, Delete, Plan, Step, read_plan
from setpoint.testing.proof.process import Subject, maker
from setpoint.testing.proof.report import Failure, Report
from setpoint.testing.proof.states import Masked, varying
from setpoint.testing.proof.sweep import by_chance, cell_of, pairs, singles, thinned
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.workload import usual_steps
from setpoint.testing.proof.world import Prepared

AGAIN = 25  # one plan in so many is run twice, to see that it is the same
BUDGET = 60.0


def prove(
    operator: Subject | Callable[[], Subject],
    *,
    steps: Sequence[Step] | None = None,
    example: dict[str, Any] | None = None,
    budget: float = BUDGET,
    seed: int = 0,
    clouds: Sequence[Cloud] = (),
    objects: Iterable[Any] = (),
    always: Sequence[Callable[..., object]] = (),
    never: Sequence[Callable[..., object]] = (),
    at_most: Sequence[tuple[str, int]] = (),
    keeps: Sequence[str] = (),
    only: Iterable[str] = (),
    without: Iterable[str] = (),
    most_failures: int = 10,
    most_plans: int | None = None,
    most_of_class: int | None = None,
    controllers: Controllers = False,
    is_exhaustive: bool = False,
    shrink: bool = True,
    on_plan: Callable[[Report], None] = lambda _report: None,
) -> Report:
    """Look for a plan that the operator does not survive.

    ``operator``, or a function that makes one: then what it keeps in memory is lost with each crash, as in
    life.  ``steps`` are what the user does; unless told, they are made from the schema of the operator's
    first kind, beginning with ``example``.  ``budget`` is in seconds of CPU.  ``clouds`` are what it uses
    outside of the cluster.  ``controllers`` are those of every cluster that run in this one, by their names,
    or True for all: then a Deployment makes pods, and a plan costs more.  ``always``, ``never`` and
    ``at_most`` are rules of your own (``oracles.py``); objects of the resources that it ``keeps``
    (``persistentvolumeclaims``) are meant to stay.

    ``only`` these classes of faults, and judged ``without`` these oracles.  It ends early after
    ``most_failures`` failures or ``most_plans`` plans; when all single faults are through, if
    ``is_exhaustive``.  With ``most_of_class``, so many plans of each class are tried, spread over the places
    where it can strike: little of everything, for a test that must be quick.  Failing plans are made smaller,
    unless ``shrink`` is False.
    """
    make = maker(operator)
    rules = Rules(tuple(always), tuple(never), tuple(at_most), tuple(keeps))
    proof = _Proof(
        Prepared.of(make, clouds=clouds, objects=objects, controllers=controllers),
        rules,
        seed=seed,
        only=frozenset(only),
        without=frozenset(without),
        most_of_class=most_of_class,
        on_plan=on_plan,
    )
    chosen = tuple(steps) if steps is not None else proof.usual_steps(example)
    proof.report.steps = chosen
    return proof.run(chosen, budget, most_failures, most_plans, is_exhaustive=is_exhaustive, is_shrunk=shrink)


def replay(
    operator: Subject | Callable[[], Subject],
    plan: Plan | str | bytes | Path,
    *,
    clouds: Sequence[Cloud] = (),
    always: Sequence[Callable[..., object]] = (),
    never: Sequence[Callable[..., object]] = (),
    at_most: Sequence[tuple[str, int]] = (),
    controllers: Controllers = False,
) -> Report:
    """Run one plan, twice, and judge it; from a plan, its JSON, or the file in which it is kept."""
    if isinstance(plan, Path):
        plan = plan.read_bytes()
    if isinstance(plan, str | bytes):
        plan = read_plan(plan)
    rules = Rules(tuple(always), tuple(never), tuple(at_most))
    prepared = Prepared.of(maker(operator), clouds=clouds, controllers=controllers)
    return _Proof(prepared, rules, seed=plan.seed).once(plan)


def usual_steps_of(
    make: Callable[[], Subject], example: dict[str, Any] | None = None, *, seed: int = 0
) -> tuple[Step, ...]:
    """What a user does, where nobody says: found by running the operator once without faults."""
    return _Proof(Prepared.of(make), Rules(), seed=seed).usual_steps(example)


class _Proof:
    def __init__(
        self,
        prepared: Prepared,
        rules: Rules,
        *,
        seed: int,
        only: frozenset[str] = frozenset(),
        without: frozenset[str] = frozenset(),
        most_of_class: int | None = None,
        on_plan: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        made = prepared.make()
        self._prepared = prepared
        self._rules = rules
        self._only = only
        self._without = without
        self._most_of_class = most_of_class
        self._seed = seed
        self._on_plan = on_plan
        self._primaries = prepared.primaries
        self._references: dict[bytes, Reference] = {}
        self.report = Report(made.name)

    def usual_steps(self, example: dict[str, Any] | None) -> tuple[Step, ...]:
        crds = self._prepared.make().crds()
        if not crds:
            raise ValueError(
                "the operator defines no kind to make objects of: say what a user does, with steps=…"
            )
        steps = usual_steps(crds[0], example)
        run = self._prepared.run(Plan(steps, (), self._seed))
        refused = next(
            (line.what for line in run.lines if line.lane == "user" and "refused" in line.what), ""
        )
        if "create" in refused:
            raise ValueError(
                f"{refused}: the schema says too little to make one; give example={{…}} or steps=…"
            )
        kept = tuple(
            step
            for step in steps
            if not any(str(step) in line.what for line in run.lines if "refused" in line.what)
        )
        return (*kept[:-3], *self._children(run), *kept[-3:])

    def _children(self, run: Run) -> list[Step]:
        """Deletions of what the operator makes: each comes back."""
        kinds = {}
        for write in run.writes:
            if write.type == "ADDED" and write.by.startswith("operator") and write.namespace:
                obj = msgspec.json.decode(write.data)
                if not obj["metadata"].get("generateName"):
                    kinds[write.resource] = Delete(
                        obj["apiVersion"], obj["kind"], write.name, write.namespace
                    )
        return list(kinds.values())

    def run(
        self,
        steps: tuple[Step, ...],
        budget: float,
        most_failures: int,
        most_plans: int | None,
        *,
        is_exhaustive: bool,
        is_shrunk: bool,
    ) -> Report:
        report, began = self.report, time.process_time()
        deadline = began + budget
        gc.collect()
        gc.freeze()  # what is there by now stays: runs need not look at it
        try:
            self._begin(steps)
            if report.broken or report.reference is None:
                return report
            for plan in self._plans(report.reference, steps, is_exhaustive=is_exhaustive):
                if time.process_time() > deadline or len(report.failures) >= most_failures:
                    break
                if most_plans is not None and report.plans >= most_plans:
                    break
                if report.cells.get(cell_of(plan)) != "failed":
                    self._try(plan)
            if is_shrunk:
                report.failures[:] = [
                    self.shrink(failure) if failure.plan.faults else failure for failure in report.failures
                ]
        finally:
            gc.unfreeze()
            report.seconds = time.process_time() - began
        return report

    def _begin(self, steps: tuple[Step, ...]) -> None:
        """What is so without any fault."""
        report, plan = self.report, Plan(steps, (), self._seed)
        self._prepared.run(plan)  # what is made once and kept, wherever in the interpreter, is made here
        first, again = self._prepared.run(plan), self._prepared.run(plan)
        if first.digest != again.digest:
            report.broken.append(_differ(first, again))
            return
        masked = masked_by_chance(self._prepared, steps, first)
        self._prepared = replace(self._prepared, masked=masked)
        reference = self._reference(steps)
        report.reference = reference.run
        if not all(point.is_settled for point in reference.run.checkpoints):
            self._judge(plan, reference.run, reference)  # nothing else can be learned
            report.reference = None
            return
        if not reference.run.effects and "O13" not in self._without:
            nothing = Finding("O13", f"it does nothing at all in these steps: {'; '.join(map(str, steps))}")
            report.failures.append(Failure(plan, (nothing,), reference.run))
            report.reference = None
            return
        if self._only and "none" not in self._only:
            return
        probed = self._prepared.run(plan, probe_always=True)
        report.plans += 5
        self._judge(plan, probed, reference, also=self._fresh_starts(reference))

    def _reference(self, steps: tuple[Step, ...]) -> Reference:
        key = msgspec.json.encode(steps)
        found = self._references.get(key)
        if found is None:
            run = self._prepared.run(Plan(steps, (), self._seed))
            found = self._references[key] = Reference(run, self._rules, self._primaries)
        return found

    def _fresh_starts(self, reference: Reference) -> list[Finding]:
        return [] if "O4" in self._without else fresh_starts_of(self._prepared, reference, self.report)

    def _plans(self, reference: Run, steps: tuple[Step, ...], *, is_exhaustive: bool) -> Iterator[Plan]:
        report = self.report
        listed = list(singles(reference, steps, only=self._only))
        report.total = len(listed)
        for plan in listed:
            report.cells.setdefault(cell_of(plan), "open")
        if is_exhaustive:
            return iter(listed)
        more = pairs(reference, steps)
        if self._only:
            more = (plan for plan in more if plan.id in self._only)
        if self._most_of_class is not None:
            return chain(thinned(listed, self._most_of_class), thinned(list(more), self._most_of_class))
        return chain(listed, more, () if self._only else by_chance(reference, steps, seed=self._seed))

    def _try(self, plan: Plan) -> None:
        reference = self._reference(plan.steps)
        run = self._prepared.run(plan, reference=reference.run)
        self.report.plans += 1
        if self.report.plans % AGAIN == 0:
            again = self._prepared.run(plan, reference=reference.run)
            if again.digest != run.digest:
                self.report.broken.append(_differ(run, again))
        self._judge(plan, run, reference)
        self._on_plan(self.report)
        if self.report.plans % 200 == 0:
            gc.collect()

    def _judge(self, plan: Plan, run: Run, reference: Reference, also: Sequence[Finding] = ()) -> None:
        report, cell = self.report, cell_of(plan)
        findings = [*judge(run, reference, without=self._without), *also]
        wrong = [finding for finding in findings if finding.oracle != "O13"]
        if wrong:
            known = reference.run if plan.faults else None
            again = self._prepared.run(
                plan, reference=known, probe_always=run is not reference.run and not plan.faults
            )
            if again.digest != run.digest:
                report.broken.append(_differ(run, again))
                return
            report.cells[cell] = "failed"
            report.failures.append(Failure(plan, tuple(wrong), run, is_warning=_is_excused(plan, wrong)))
        elif findings:
            report.inconclusive.append(f"{plan}: {findings[0].what}")
            if report.cells.get(cell) == "open":
                report.cells[cell] = "inconclusive"
        elif plan.faults:
            report.cells[cell] = "ok"

    def once(self, plan: Plan) -> Report:
        """One plan alone."""
        began = time.process_time()
        self.report.steps = plan.steps
        self._prepared.run(plan)  # as ever, the first is not like the others
        reference = self._reference(plan.steps)
        run = self._prepared.run(plan, reference=reference.run if plan.faults else None)
        self.report.plans += 2
        self._judge(plan, run, reference)
        self.report.seconds = time.process_time() - began
        return self.report

    # ---- smaller

    def shrink(self, failure: Failure) -> Failure:
        """The same failure, with as few faults and steps as show it."""
        best, oracle = failure, failure.first.oracle
        changed = True
        while changed:
            changed = False
            for plan in _smaller(best.plan):
                found = self._fails(plan, oracle)
                if found is not None:
                    best, changed = found, True
                    break
        return best

    def _fails(self, plan: Plan, oracle: str) -> Failure | None:
        reference = self._reference(plan.steps)
        run = self._prepared.run(plan, reference=reference.run)
        findings = judge(run, reference, without=self._without)
        wrong = tuple(finding for finding in findings if finding.oracle != "O13")
        if any(finding.oracle == oracle for finding in wrong) and len(run.fired) == len(plan.faults):
            return Failure(plan, wrong, run, is_warning=_is_excused(plan, wrong))
        return None


def masked_by_chance(prepared: Prepared, steps: tuple[Step, ...], first: Run | None = None) -> Masked:
    """What the operator draws by chance: it is another with another seed."""
    first = first or prepared.run(Plan(steps))
    others = [prepared.run(Plan(steps, (), first.plan.seed + more)) for more in (1, 2)]
    masked: Masked = frozenset()
    for number, point in enumerate(first.checkpoints):
        runs = [run for run in others if len(run.checkpoints) > number]
        masked |= varying([point.state, *(run.checkpoints[number].state for run in runs)])
    return masked


def fresh_starts_of(prepared: Prepared, reference: Reference, report: Report | None = None) -> list[Finding]:
    """O4: each state that the steps lead to, against a fresh start with the same spec."""
    found: list[Finding] = []
    known: dict[bytes, Run] = {}
    for point in reference.run.checkpoints[1:]:
        wanted = tuple(
            Create(_as_new(msgspec.json.decode(write.data)))
            for write in _living(reference.run, point.time)
            if write.resource in prepared.primaries
        )
        if not wanted or not point.is_settled or _is_helped(reference.run, point.time, prepared.primaries):
            continue
        key = msgspec.json.encode(wanted)
        fresh = known.get(key)
        if fresh is None:
            fresh = known[key] = prepared.run(Plan(wanted, (), reference.run.plan.seed))
            if report is not None:
                report.plans += 1
        found += fresh_start(point, fresh)
        if found:
            break
    return found


def _is_helped(run: Run, moment: float, primaries: frozenset[str]) -> bool:
    """Whether the user had made or changed other objects by then, which a fresh start would not have."""
    return any(
        write.by == "user" and write.type != "DELETED" and write.resource not in primaries
        for write in run.writes
        if write.time <= moment
    )


def _is_excused(plan: Plan, findings: Iterable[Finding]) -> bool:
    return plan.is_hostile and not any(finding.is_grave for finding in findings)


def _smaller(plan: Plan) -> Iterator[Plan]:
    if len(plan.faults) > 1:
        for number in range(len(plan.faults)):
            yield msgspec.structs.replace(plan, faults=plan.faults[:number] + plan.faults[number + 1 :])
    for number in reversed(range(1, len(plan.steps))):
        yield msgspec.structs.replace(plan, steps=plan.steps[:number] + plan.steps[number + 1 :])


def _living(run: Run, moment: float) -> list[Any]:
    """What was there at a moment, as it was last written."""
    living: dict[str, Any] = {}
    for write in run.writes:
        if write.time > moment:
            break
        if write.type == "DELETED":
            living.pop(write.place, None)
        else:
            living[write.place] = write
    return list(living.values())


def _as_new(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as a user would write it."""
    metadata = obj["metadata"]
    kept = {
        name: metadata[name] for name in ("name", "namespace", "labels", "annotations") if name in metadata
    }
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": kept}


def _differ(one: Run, other: Run) -> str:
    """Where two runs of one plan part."""
    hint = (
        "does the operator read the machine's clock (use ctx.now()), or keep something between runs (give "
        "prove a function that makes it)?"
    )
    for mine, yours in zip(one.lines, other.lines, strict=False):
        if mine != yours:
            where = f"at {mine.time:.3f} s: {mine.lane}: {mine.what!r}, then {yours.lane}: {yours.what!r}"
            return f"two runs of {one.plan} differ {where}; {hint}"
    for first, second in zip(one.writes, other.writes, strict=False):
        if first.data != second.data:
            return f"two runs of {one.plan} write {first.place} differently at {first.time:.3f} s; {hint}"
    return f"two runs of {one.plan} differ in length; {hint}"
