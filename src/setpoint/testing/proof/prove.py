"""Proves an operator: runs it without faults, then with every single one, then with several, and judges.

    report = prove(operator, steps=[create(webapp), ...], budget=60)
    assert report.is_good, str(report)

In this order, until the budget is spent:

1. the reference, twice: two runs of one plan must be the same, or nothing that follows means anything;
2. the reference with other seeds, which shows what the operator draws by chance, and with probes after every
   step: what is wrong here is wrong without any fault;
3. a fresh start for every state that the steps lead to (O4);
4. every single fault, then pairs, then chance;
5. what failed is made smaller, in the last part of the budget.

A plan that fails is run once more before it counts, and so are the first of each class of faults and one in
``AGAIN`` of the others: all runs of one plan must be the same.  A cell that has failed is not tried again:
one failure of a kind says as much as ten.  A warning hides nothing: other plans of its cell are still tried.
Whatever did not strike is counted as inconclusive and never as good, and where nothing was conclusive nothing
is good.

``replay`` runs one plan in just the same way.  What is right is ``oracles.py``'s to say; which plans there
are, ``sweep.py``'s.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers, chosen
from setpoint.testing.proof.kept import How, Kept, keep, read_kept
from setpoint.testing.proof.oracles import Finding, Reference, Rules, fresh_start, ids, judge, words
from setpoint.testing.proof.plans import AnyFault, At, Create, Delete, Plan, Step
from setpoint.testing.proof.process import Subject, maker
from setpoint.testing.proof.report import Failure, Report
from setpoint.testing.proof.states import Masked, varying
from setpoint.testing.proof.sweep import by_chance, cell_of, pairs, singles, thinned
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.workload import usual_steps
from setpoint.testing.proof.world import Prepared

AGAIN: Final = 25  # one plan in so many is run twice, to see that it is the same
BUDGET: Final = 60.0
_FOR_SHRINKING = 0.2  # of the budget, at most, where something has failed
CLASSES: Final = (
    "none",
    *("E1", "E2", "E3", "E4", "E5", "E6", "E7"),
    *("V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V9a", "V10"),
    *("S1", "S2", "S3", "S4"),
    *("I1", "I2", "I3"),
    *("L1", "L2"),
    *("C1", "C2"),
    *("X1",),
    *("M1",),
    *("I1+V2", "E4+V1"),
)


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
    classes = checked(only, CLASSES, "class of faults")
    oracles = checked(without, ids(), "oracle")
    rules = Rules(tuple(always), tuple(never), tuple(at_most), tuple(keeps))
    given = tuple(objects)
    proof = _Proof(
        Prepared.of(maker(operator), clouds=clouds, objects=given, controllers=controllers),
        rules,
        How(
            seed,
            rules.keeps,
            tuple(sorted(oracles)),
            rules.at_most,
            chosen(controllers),
            given,
            tuple(words(rule) for rule in (*always, *never)),
        ),
        only=classes,
        most_of_class=most_of_class,
        on_plan=on_plan,
    )
    taken = tuple(steps) if steps is not None else proof.usual_steps(example)
    proof.report.steps = taken
    return proof.run(taken, budget, most_failures, most_plans, is_exhaustive=is_exhaustive, is_shrunk=shrink)


def replay(
    operator: Subject | Callable[[], Subject],
    plan: Plan | str | bytes | Path,
    *,
    clouds: Sequence[Cloud] = (),
    objects: Iterable[Any] | None = None,
    always: Sequence[Callable[..., object]] = (),
    never: Sequence[Callable[..., object]] = (),
    at_most: Sequence[tuple[str, int]] | None = None,
    keeps: Sequence[str] | None = None,
    without: Iterable[str] | None = None,
    controllers: Controllers | None = None,
) -> Report:
    """Run one plan, twice, and judge it as ``prove`` did.

    ``plan`` is a plan, its JSON, or the file in which it is kept.  What the proof was told is in the file,
    and counts unless it is said again here; rules (``always``, ``never``) and ``clouds`` are in no file.
    """
    kept = _read(plan)
    how = kept.how
    if how.rules and not (always or never):
        raise ValueError(
            f"the plan was judged by rules, which a file cannot hold ({'; '.join(how.rules)}): "
            "give always=… and never=… as they were given to prove"
        )
    told: dict[str, Any] = {
        "objects": None if objects is None else tuple(objects),
        "at_most": None if at_most is None else tuple(at_most),
        "keeps": None if keeps is None else tuple(keeps),
        "without": None if without is None else tuple(checked(without, ids(), "oracle")),
        "controllers": None if controllers is None else chosen(controllers),
    }
    told["seed"] = kept.seed if how.seed is None else how.seed
    how = msgspec.structs.replace(how, **{name: each for name, each in told.items() if each is not None})
    prepared = Prepared.of(maker(operator), clouds=clouds, objects=how.objects, controllers=how.controllers)
    return _Proof(prepared, Rules(tuple(always), tuple(never), how.at_most, how.keeps), how).once(kept)


def _read(plan: Plan | str | bytes | Path) -> Kept:
    if isinstance(plan, Kept):
        return plan
    if isinstance(plan, Plan):
        return keep(plan, How())
    return read_kept(plan.read_bytes() if isinstance(plan, Path) else plan)


def checked(named: Iterable[str], known: Iterable[str], what: str) -> frozenset[str]:
    """What was named; ValueError if there is no such thing, for a name that means nothing proves nothing."""
    found, there = frozenset(named), list(known)
    if unknown := sorted(found.difference(there)):
        raise ValueError(f"there is no {what} {', '.join(unknown)}: there are {', '.join(there)}")
    return found


def usual_steps_of(
    prepared: Prepared, example: dict[str, Any] | None = None, *, seed: int = 0
) -> tuple[Step, ...]:
    """What a user does, where nobody says: found by running the operator once without faults."""
    return _Proof(prepared, Rules(), How(seed)).usual_steps(example)


class _Proof:
    def __init__(
        self,
        prepared: Prepared,
        rules: Rules,
        how: How,
        *,
        only: frozenset[str] = frozenset(),
        most_of_class: int | None = None,
        on_plan: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self._prepared = prepared
        self._rules = rules
        self._seed = how.seed or 0
        self._without = frozenset(how.without)
        self._only = only
        self._most_of_class = most_of_class
        self._on_plan = on_plan
        self._references: dict[bytes, Reference] = {}
        self._met: set[str] = set()  # the classes of faults of which a plan was run twice
        self.report = Report(prepared.make().name, how=how)

    def usual_steps(self, example: dict[str, Any] | None) -> tuple[Step, ...]:
        crds = self._prepared.make().crds()
        if not crds:
            raise ValueError(
                "the operator defines no kind to make objects of: say what a user does, with steps=…"
            )
        steps = usual_steps(crds[0], example)
        run = self._prepared.run(Plan(steps, (), self._seed))
        refused = _refused(run)
        if 0 in refused:
            raise ValueError(
                f"{refused[0]}: the schema says too little to make one; give example={{…}} or steps=…"
            )
        # The end of its life stays, refused or not: that it cannot be made again is for oracles to judge.
        end = len(steps) - 3
        kept = [step for number, step in enumerate(steps[:end]) if number not in refused]
        return (*kept, *self._children(run), *steps[end:])

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
            for plan in self._plans(steps, is_exhaustive=is_exhaustive):
                left = budget * _FOR_SHRINKING if is_shrunk and report.failures else 0.0
                if time.process_time() > deadline - left or len(report.alarms) >= most_failures:
                    break
                if most_plans is not None and report.plans >= most_plans:
                    break
                if report.cells.get(cell_of(plan)) != "failed":
                    self._try(plan)
            if is_shrunk:
                self._shrink_all(min(deadline, time.process_time() + budget * _FOR_SHRINKING))
        finally:
            gc.unfreeze()
            report.seconds = time.process_time() - began
        return report

    def _begin(self, steps: tuple[Step, ...]) -> None:
        """What is so without any fault."""
        if not self._learn(steps):
            return
        report, reference = self.report, self._reference(steps)
        can_go_on = _is_settled(reference.run) and self._does_something(reference)
        if not can_go_on or not self._only or "none" in self._only:
            self._undisturbed(Plan(steps, (), self._seed), reference)
        if can_go_on:
            report.reference = reference.run
        else:
            report.proven = 0  # nothing else can be learned

    def _learn(self, steps: tuple[Step, ...]) -> bool:
        """See that two runs are the same, and what the operator draws by chance; whether they are."""
        plan = Plan(steps, (), self._seed)
        self._prepared.run(plan)  # what is made once and kept, wherever in the interpreter, is made here
        first, again = self._prepared.run(plan), self._prepared.run(plan)
        if first.digest != again.digest:
            self.report.broken.append(_differ(first, again))
            return False
        if masked := masked_by_chance(self._prepared, steps, first):
            self._prepared = replace(self._prepared, masked=masked)
        else:
            known = Reference(again, self._rules, self._prepared.primaries)
            self._references[msgspec.json.encode(steps)] = known
        return True

    def _does_something(self, reference: Reference) -> bool:
        return bool(reference.run.effects) or "O13" in self._without

    def _undisturbed(self, plan: Plan, reference: Reference) -> None:
        """Judge a plan without faults: with probes after every step, and against fresh starts."""
        if _is_settled(reference.run) and not self._does_something(reference):
            did = "; ".join(map(str, plan.steps))
            nothing = Finding("O13", f"it does nothing at all in these steps: {did}")
            self.report.failures.append(Failure(plan, (nothing,), reference.run))
            return
        self.report.plans += 4  # twice as it is, and with other seeds
        self._try(plan)

    def _reference(self, steps: tuple[Step, ...]) -> Reference:
        key = msgspec.json.encode(steps)
        found = self._references.get(key)
        if found is None:
            run = self._prepared.run(Plan(steps, (), self._seed))
            found = self._references[key] = Reference(run, self._rules, self._prepared.primaries)
        return found

    def _plans(self, steps: tuple[Step, ...], *, is_exhaustive: bool) -> Iterator[Plan]:
        reference = self.report.reference
        if reference is None:
            return iter(())
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

    def _try(self, plan: Plan, *, twice: bool = False) -> None:
        reference = self._reference(plan.steps)
        run = self._run(plan, reference)
        self.report.plans += 1
        twice = twice or plan.id not in self._met or self.report.plans % AGAIN == 0
        self._met.add(plan.id)
        self._judge(plan, run, reference, twice=twice)
        self._on_plan(self.report)
        if self.report.plans % 200 == 0:
            gc.collect()

    def _run(self, plan: Plan, reference: Reference) -> Run:
        """One run; without faults it is probed after every step."""
        if plan.faults:
            return self._prepared.run(plan, reference=reference.run)
        return self._prepared.run(plan, probe_always=True)

    def _found(self, run: Run, reference: Reference) -> list[Finding]:
        findings = judge(run, reference, without=self._without)
        if not run.plan.faults and "O4" not in self._without:
            findings += fresh_starts_of(self._prepared, reference)
        return findings

    def _judge(self, plan: Plan, run: Run, reference: Reference, *, twice: bool) -> None:
        report, cell = self.report, cell_of(plan)
        findings = self._found(run, reference)
        wrong = real(findings)
        is_warning = is_excused(plan, wrong)
        is_new = bool(wrong) and not (is_warning and report.cells.get(cell) == "warned")
        if (twice or is_new) and not self._is_the_same(run, reference):
            return
        if findings and not wrong:
            report.inconclude(plan, cell, findings[0].what)
            return
        report.proven += 1
        if is_new:
            report.failures.append(Failure(plan, wrong, run, is_warning, (cell,), reference.run))
        report.mark(plan, cell, "ok" if not wrong else "warned" if is_warning else "failed")

    def _is_the_same(self, run: Run, reference: Reference) -> bool:
        """Whether another run of the same plan is the same; said to be broken, if not."""
        again = self._run(run.plan, reference)
        if again.digest != run.digest:
            self.report.broken.append(_differ(run, again))
        return again.digest == run.digest

    def once(self, plan: Plan) -> Report:
        """One plan alone."""
        began = time.process_time()
        self.report.steps = plan.steps
        if self._learn(plan.steps):
            reference = self._reference(plan.steps)
            self.report.reference = reference.run
            if plan.faults:
                self._try(plan, twice=True)
            else:
                self._undisturbed(plan, reference)
        self.report.seconds = time.process_time() - began
        return self.report

    # ---- smaller

    def _shrink_all(self, deadline: float) -> None:
        """Make what failed smaller, what is more than a warning first; what is the same then is told once."""
        found: dict[tuple[bytes, str], Failure] = {}
        for failure in sorted(self.report.failures, key=lambda each: each.is_warning):
            small = self._shrunk(failure, deadline)
            key = (msgspec.json.encode(small.plan), small.first.oracle)
            known = found.get(key)
            found[key] = small if known is None else replace(known, cells=known.cells + small.cells)
        self.report.failures[:] = found.values()

    def _shrunk(self, failure: Failure, deadline: float) -> Failure:
        """The same failure, with as few faults and steps as show it."""
        best = failure
        while smaller := self._next(best, deadline):
            best = smaller
        if best is not failure and not self._is_the_same(best.run, self._reference(best.plan.steps)):
            return failure
        return best

    def _next(self, failure: Failure, deadline: float) -> Failure | None:
        for plan in smaller(failure.plan) if failure.first.oracle != "O13" else ():
            if time.process_time() > deadline:
                return None
            if found := self._fails(plan, failure):
                return found
        return None

    def _fails(self, plan: Plan, failure: Failure) -> Failure | None:
        """How it fails by the same oracle, and because of the faults; None if it does not."""
        reference = self._reference(plan.steps)
        if plan.faults and not _can_strike(plan, reference.run):
            return None
        run = self._run(plan, reference)
        findings = self._found(run, reference)
        wrong = real(findings)
        is_same = any(each.oracle == failure.first.oracle for each in wrong)
        has_struck = wrong == tuple(findings) and len(run.fired) == len(plan.faults)
        if not is_same or not has_struck or is_excused(plan, wrong) != failure.is_warning:
            return None
        return Failure(plan, wrong, run, failure.is_warning, failure.cells, reference.run)


def masked_by_chance(prepared: Prepared, steps: tuple[Step, ...], first: Run | None = None) -> Masked:
    """What the operator draws by chance: it is another with another seed."""
    first = first or prepared.run(Plan(steps))
    others = [prepared.run(Plan(steps, (), first.plan.seed + more)) for more in (1, 2)]
    masked: Masked = frozenset()
    for number, point in enumerate(first.checkpoints):
        runs = [run for run in others if len(run.checkpoints) > number]
        masked |= varying([point.state, *(run.checkpoints[number].state for run in runs)])
    return masked


def fresh_starts_of(prepared: Prepared, reference: Reference) -> list[Finding]:
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


def real(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What is wrong with the operator, and not with the plan."""
    return tuple(finding for finding in findings if finding.oracle != "O13")


def is_excused(plan: Plan, findings: Sequence[Finding]) -> bool:
    """Whether it is a warning only: more than an operator must bear, and nothing was destroyed."""
    return bool(findings) and plan.is_hostile and not any(finding.is_grave for finding in findings)


def _is_settled(run: Run) -> bool:
    return all(point.is_settled for point in run.checkpoints)


def _refused(run: Run) -> dict[int, str]:
    """Which of the user's steps were refused, and how."""
    refused: dict[int, str] = {}
    taken = 0
    for line in run.lines:
        if line.lane != "user":
            continue
        if line.what.startswith("refused with "):
            refused[taken - 1] = line.what
        else:
            taken += 1
    return refused


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with a fault less, or a step less.

    What happened in a step no longer happens without it, so what a fault waits for may come sooner: it is
    tried at all places up to its own.
    """
    if len(plan.faults) > 1:
        for number in range(len(plan.faults)):
            yield msgspec.structs.replace(plan, faults=plan.faults[:number] + plan.faults[number + 1 :])
    for number in reversed(range(1, len(plan.steps))):
        steps = plan.steps[:number] + plan.steps[number + 1 :]
        for by in range(max((fault.at.nth for fault in plan.faults), default=1)):
            faults = tuple(_sooner(fault, by) for fault in plan.faults)
            yield msgspec.structs.replace(plan, steps=steps, faults=faults)


def _sooner(fault: AnyFault, by: int) -> AnyFault:
    return msgspec.structs.replace(fault, at=At(fault.at.what, max(1, fault.at.nth - by)))


def _can_strike(plan: Plan, reference: Run) -> bool:
    """Whether all is well without the faults, and it comes to the first of them."""
    places = {*(effect.at for effect in reference.effects), *reference.events}
    return _is_settled(reference) and any(fault.at in places for fault in plan.faults)


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
