"""Proves an operator: runs it without faults, then with every single one, then with several, and judges.

    report = prove(operator, steps=[create(webapp), ...], budget=60)
    assert report.is_good, str(report)

In this order, until the budget is spent:

1. the reference, twice: two runs of one plan must be the same, or nothing that follows means anything;
2. the reference with other seeds, which shows what the operator draws by chance, and with probes after every
   step: what is wrong here is wrong without any fault;
3. a fresh start for every state that the steps lead to, and later for those that others lead to (O4); and
   the steps beside other objects (O14);
4. ``FIRST`` plans of every class, alone and in pairs; then every single fault, then chosen pairs, then what
   Hypothesis draws, where it is installed (``drawn.py``);
5. what failed is made smaller, in the last part of the budget.

A plan that fails is run once more before it counts, and so are the first of each class of faults and one in
``AGAIN`` of the others: all runs of one plan must be the same.  A cell that has failed is not tried again:
one failure of a kind says as much as ten.  A warning hides nothing: other plans of its cell are still tried.
Whatever did not strike is counted as inconclusive and never as good, and where nothing was conclusive nothing
is good; only what Hypothesis drew and did not strike counts neither way, for it draws another in its place.
Nor is anything drawn tried of which a fault alone has failed: it would show the same.

The budget holds for all of it, from the first step on (``budget.py``): a run that is under way when it is
spent is cut off, and counts as not tried.

``replay`` runs one plan in just the same way.  What is right is ``oracles.py``'s to say; which plans there
are, ``sweep.py``'s; what can be told, ``options.py``'s.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from setpoint.testing.proof.budget import Budget, OutOfBudget
from setpoint.testing.proof.bystanders import Bystanders, grouped
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.controllers import Controllers, chosen
from setpoint.testing.proof.fresh import FreshStarts
from setpoint.testing.proof.kept import How, Kept, keep, read_kept, told_again
from setpoint.testing.proof.options import Options, Question, by_keywords
from setpoint.testing.proof.oracles import Finding, Reference, Rules, ids
from setpoint.testing.proof.plans import AnyFault, At, Plan, Step
from setpoint.testing.proof.process import Subject, maker
from setpoint.testing.proof.repeatability import explain
from setpoint.testing.proof.report import Failure, Report
from setpoint.testing.proof.states import Masked, varying
from setpoint.testing.proof.sweep import (
    cell_of,
    cells_of,
    combinable,
    in_turn,
    outcomes,
    pairs,
    singles,
    thinned,
)
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.usual import usual
from setpoint.testing.proof.world import Prepared

AGAIN: Final = 25  # one plan in so many is run twice, to see that it is the same
FIRST: Final = 2  # plans of every class, before any others: a short budget has seen something of each
FOR_SHRINKING: Final = 0.2  # of the budget, at most, where something has failed
CHECK_EVERY: Final = 1_000  # plans that are listed
BUDGET: Final = Options().budget
CHANCE: Final = "chance"  # what Hypothesis draws: no class, but it can be asked for like one
CLASSES: Final = (
    "none",
    *("E1", "E2", "E3", "E4", "E5", "E6", "E7"),
    *("V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V9a", "V10"),
    *("S1", "S2", "S3", "S4"),
    *("I1", "I2", "I3"),
    *("L1", "L2", "L3"),
    *("C1", "C2"),
    *("X1",),
    *("M1",),
    *("I1+V2", "E4+V1", "V1+L1"),
    CHANCE,
)
_MOST_REFERENCES = 100  # that are remembered; any can be made again


@by_keywords(Question)
def prove(question: Question) -> Report:
    """Look for a plan that the operator does not survive.

    ``operator``, or a function that makes one: then what it keeps in memory is lost with each crash, as in
    life.  ``steps`` are what the user does; unless told, they are made from the schemas of the operator's
    kinds, beginning with ``example``: the spec of the first kind, or specs by kind.  ``budget`` is in seconds
    of CPU.  ``objects`` are there from the beginning.  ``clouds`` are what it uses outside of the cluster.
    ``controllers`` are those of every cluster that run in this one, by their names, or True for all: then a
    Deployment makes pods, and a plan costs more.  ``always``, ``never`` and ``at_most`` are rules of your own
    (``oracles.py``); objects of the resources that it ``keeps`` (``persistentvolumeclaims``) are meant to
    stay.  Objects of the ``history`` resources (``controllerrevisions.apps``) record the past, so they may
    depend on it.

    Sockets, name lookups and programs of the operator are refused, and a proof in which it wanted any is not
    good: what it uses outside is a ``Cloud`` here.  ``allow_network`` lets it reach some addresses all the
    same (``HOST``, ``HOST:PORT``, the path of a Unix socket), ``allow_program`` run some programs.

    ``only`` these classes of faults, and judged ``without`` these oracles; ``seed`` is of all chance.  It
    ends early after ``most_failures`` failures or ``most_plans`` plans; when all single faults are through,
    if ``is_exhaustive``.  With ``most_of_class``, so many plans of each class are tried, spread over the
    places where it can strike: little of everything, for a test that must be quick.  Failing plans are made
    smaller, unless ``shrink`` is False.  ``on_plan`` is called with the report after each plan, and
    ``on_progress`` many times a second: ``report.doing`` says what is done just now.
    """
    checked(question.only, CLASSES, "class of faults")
    checked(question.without, ids(), "oracle")
    budget, make = Budget(question.budget), maker(question.operator)
    report = Report("the operator", how=question.how)
    budget.on_tick = lambda: question.on_progress(report)

    def made() -> tuple[_Proof, tuple[Step, ...] | None]:
        prepared = Prepared.of(
            make,
            clouds=question.clouds,
            objects=question.objects,
            controllers=question.controllers,
            allowed=question.how.allowed,
            budget=budget,
        )
        proof = _Proof(prepared, question.rules, report, question)
        if question.steps is not None:
            return proof, tuple(question.steps)
        try:
            found = usual(prepared, question.example, seed=question.seed)
        except ValueError:
            if not prepared.refused:
                raise
        if prepared.refused:  # what it did without that says nothing
            return proof, None
        report.skipped.update(found.skipped)
        return proof, found.steps

    report.doing = "preparing the steps"
    budget.on_tick()
    try:
        proof, steps = made()
    except OutOfBudget:
        report.cut_off = report.doing
    else:
        if steps is not None:
            proof.run(steps)
    report.seconds = budget.spent
    return report


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
    history: Sequence[str] | None = None,
    without: Iterable[str] | None = None,
    controllers: Controllers | None = None,
) -> Report:
    """Run one plan, twice, and judge it as ``prove`` did.

    ``plan`` is a plan, its JSON, or the file in which it is kept.  What the proof was told is in the file,
    and counts unless it is said again here; rules (``always``, ``never``) and ``clouds`` are in no file.
    """
    kept = kept_of(plan)
    how = told_again(
        kept,
        has_rules=bool(always or never),
        objects=None if objects is None else tuple(objects),
        at_most=None if at_most is None else tuple(at_most),
        keeps=None if keeps is None else tuple(keeps),
        history=None if history is None else tuple(history),
        without=None if without is None else tuple(checked(without, ids(), "oracle")),
        controllers=None if controllers is None else chosen(controllers),
    )
    prepared = Prepared.of(
        maker(operator),
        clouds=clouds,
        objects=how.objects,
        controllers=how.controllers,
        allowed=how.allowed,
    )
    rules = Rules(tuple(always), tuple(never), how.at_most, how.keeps, how.history)
    return _Proof(prepared, rules, Report("the operator", how=how)).once(kept)


def kept_of(plan: Plan | str | bytes | Path) -> Kept:
    """A plan as it is kept: itself, its JSON, or the file that it is in."""
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
    return usual(prepared, example, seed=seed).steps


class _Enough(BaseException):
    """Nothing more is to be tried.  No Exception, which Hypothesis would take for a test that fails."""


class _Proof:
    def __init__(
        self, prepared: Prepared, rules: Rules, report: Report, options: Options | None = None
    ) -> None:
        how = report.how
        self._prepared = prepared
        self._rules = rules
        self._seed = how.seed or 0
        self._without = frozenset(how.without)
        self._options = options or Options()
        self._only = frozenset(self._options.only)
        self._budget = prepared.budget
        self._listed = 0  # plans
        self._references: dict[bytes, Reference] = {}
        self._fresh = FreshStarts(prepared)
        self._bystanders = Bystanders(prepared)
        self._met: set[str] = set()  # the classes of faults of which a plan was run twice
        self.report = report
        report.operator, report.external = prepared.make().name, prepared.refused

    def run(self, steps: tuple[Step, ...]) -> None:
        told, report = self._options, self.report
        report.steps = steps
        gc.collect()
        gc.freeze()  # what is there by now stays: runs need not look at it
        try:
            try:
                self._sweep(steps)
            except OutOfBudget:
                report.cut_off = report.doing
            if told.shrink and report.failures:
                report.doing = "making failures smaller"
                self._budget.limit(told.budget * FOR_SHRINKING)
                self._shrink_all()
        finally:
            gc.unfreeze()

    def _sweep(self, steps: tuple[Step, ...]) -> None:
        told, report = self._options, self.report
        report.doing = "running it without faults"
        self._begin(steps)
        report.doing = "listing plans"
        plans = plans_of(
            report,
            steps,
            only=self._only,
            most_of_class=told.most_of_class,
            is_exhaustive=told.is_exhaustive,
            can=self._has_time,
        )
        with suppress(_Enough):
            report.doing = "trying plans"
            for plan in plans:
                self._go_on(plan)
            report.doing = "trying drawn plans"
            self._by_chance(steps)

    def _has_time(self, _plan: Plan) -> bool:
        self._listed += 1
        if self._listed % CHECK_EVERY == 0:
            self._budget.check()
        return True

    def _go_on(self, plan: Plan, *, is_drawn: bool = False) -> Run | None:
        """Try a plan, unless its cell has failed, or of a drawn one that of a fault alone."""
        # What is kept for making failures smaller is not spent on plans that are under way, either.
        kept = kept_for_shrinking(self.report, self._options)
        self._budget.reserve(kept)
        if is_enough(self.report, self._options, self._budget.left + kept):
            raise _Enough
        cells = {cell_of(plan), *(cells_of(plan) if is_drawn else ())}
        if any(self.report.cells.get(cell) == "failed" for cell in cells):
            return None
        return self._try(plan, is_drawn=is_drawn)

    def _by_chance(self, steps: tuple[Step, ...]) -> None:
        """What Hypothesis draws, until the budget is spent; where nothing is drawn, the report says why."""
        skipped, is_asked = self.report.skipped, CHANCE in self._only
        if self.report.reference is None or (self._only and not is_asked):
            return
        if self._options.is_exhaustive or self._options.most_of_class is not None:
            if is_asked:
                skipped[CHANCE] = "there is no end of it: leave out most_of_class and is_exhaustive"
            return
        try:
            from setpoint.testing.proof.drawn import by_chance  # noqa: PLC0415 - Hypothesis may be missing
        except ImportError as missing:
            skipped[CHANCE] = str(missing)
            return

        def attempt(plan: Plan) -> set[tuple[str, str]] | None:
            run = self._go_on(plan, is_drawn=True)
            return None if run is None or len(run.fired) < len(plan.faults) else outcomes(run)

        skipped[CHANCE] = by_chance(
            steps,
            lambda life: combinable(self._reference(life).run, life),
            attempt,
            seed=self._seed,
        )

    def _begin(self, steps: tuple[Step, ...]) -> None:
        """What is so without any fault."""
        if not self._learn(steps):
            return
        report, reference = self.report, self._reference(steps)
        can_go_on = is_settled(reference.run) and does_something(reference.run, self._without)
        if not can_go_on or not self._only or "none" in self._only:
            self._undisturbed(Plan(steps, (), self._seed), reference)
            if can_go_on and "O14" not in self._without:
                self._beside_others(reference)
        go_on_from(report, reference.run if can_go_on else None)

    def _learn(self, steps: tuple[Step, ...]) -> bool:
        """See that it keeps to itself, that two runs are the same, and what it draws by chance; whether it
        does, and they are.
        """
        plan = Plan(steps, (), self._seed)
        # What is made once and kept, wherever in the interpreter, is made here.
        if self._prepared.run(plan).external:
            return False
        first, again = self._prepared.run(plan), self._prepared.run(plan)
        if first.digest != again.digest:
            self.report.broken.append(explain(first, again))
            return False
        if masked := masked_by_chance(self._prepared, steps, first):
            self._prepared = replace(self._prepared, masked=masked)
            self._fresh = FreshStarts(self._prepared)
            self._bystanders = Bystanders(self._prepared)
        else:
            known = Reference(again, self._rules, self._prepared.primaries)
            self._references[msgspec.json.encode(steps)] = known
        return True

    def _undisturbed(self, plan: Plan, reference: Reference) -> None:
        """Judge a plan without faults: with probes after every step, and against fresh starts."""
        if idle := idleness(plan, reference.run, self._without):
            self.report.failures.append(idle)
            return
        self.report.plans += 4  # twice as it is, and with other seeds
        self._try(plan)

    def _beside_others(self, reference: Reference) -> None:
        """Judge the steps where there are other objects, which must end as they would alone."""
        plan = self._bystanders.plan(reference, self.report.skipped)
        if plan is not None:
            self._try(plan)

    def _reference(self, steps: tuple[Step, ...]) -> Reference:
        key = msgspec.json.encode(steps)
        found = self._references.get(key)
        if found is None:
            if len(self._references) >= _MOST_REFERENCES:
                self._references.clear()
            run = self._prepared.run(Plan(steps, (), self._seed))
            found = self._references[key] = Reference(run, self._rules, self._prepared.primaries)
        return found

    def _try(self, plan: Plan, *, twice: bool = False, is_drawn: bool = False) -> Run:
        reference = self._reference(plan.steps)
        run = self._run(plan, reference)
        findings = self._found(run, reference)
        if not is_drawn or real(findings) or not findings:
            self.report.plans += 1
            self.report.drawn += is_drawn
        is_first = plan.id in CLASSES and plan.id not in self._met
        twice = twice or is_first or self.report.plans % AGAIN == 0
        self._met.add(plan.id)
        twice = twice or _is_new(self.report, plan, real(findings))
        if not twice or self._is_the_same(run, reference):
            conclude(self.report, run, findings, reference, is_drawn=is_drawn)
        self._options.on_plan(self.report)
        if self.report.plans % 200 == 0:
            gc.collect()
        return run

    def _run(self, plan: Plan, reference: Reference) -> Run:
        """One run; without faults it is probed after every step."""
        if plan.faults:
            return self._prepared.run(plan, reference=reference.run)
        return self._prepared.run(plan, probe_always=not plan.bystanders)

    def _found(self, run: Run, reference: Reference) -> list[Finding]:
        if run.plan.bystanders:
            return [] if "O14" in self._without else self._bystanders.judge(run, reference)
        return outside(run) or self._fresh.judge(run, reference, self._without)

    def _is_the_same(self, run: Run, reference: Reference) -> bool:
        """Whether another run of the same plan is the same; said to be broken, if not."""
        again = self._run(run.plan, reference)
        if again.digest != run.digest:
            self.report.broken.append(explain(run, again))
        return again.digest == run.digest

    def once(self, plan: Plan) -> Report:
        """One plan alone."""
        self.report.steps = plan.steps
        if self._learn(plan.steps):
            reference = self._reference(plan.steps)
            self.report.reference = reference.run
            if plan.faults or plan.bystanders:
                self._try(plan, twice=True)
            else:
                self._undisturbed(plan, reference)
        self.report.seconds = self._budget.spent
        return self.report

    # ---- smaller

    def _shrink_all(self) -> None:
        """Make what failed smaller, what is more than a warning first; what is the same then is told once."""
        failures = sorted(self.report.failures, key=lambda each: each.is_warning)
        self.report.failures[:] = told_once(map(self._shrunk, failures))

    def _shrunk(self, failure: Failure) -> Failure:
        """The same failure, with as few faults and steps as show it."""
        best = failure
        with suppress(OutOfBudget):
            while smaller := self._next(best):
                best = smaller
        return best

    def _next(self, failure: Failure) -> Failure | None:
        for plan in smaller_than(failure):
            self._budget.check()
            if found := self._fails(plan, failure):
                return found
        return None

    def _fails(self, plan: Plan, failure: Failure) -> Failure | None:
        """How it fails by the same oracle, and because of the faults; None if it does not."""
        reference = self._reference(plan.steps)
        if not can_strike(plan, reference.run):
            return None
        run = self._run(plan, reference)
        found = fails_alike(failure, run, self._found(run, reference), reference)
        return found if found and self._is_the_same(run, reference) else None


def is_enough(report: Report, told: Options, left: float) -> bool:
    """Whether nothing more is to be tried: of the budget only so much is ``left``, or there is enough."""
    kept = kept_for_shrinking(report, told)
    is_full = told.most_plans is not None and report.plans >= told.most_plans
    return left < kept or is_full or len(report.alarms) >= told.most_failures


def kept_for_shrinking(report: Report, told: Options) -> float:
    """So many seconds of the budget are kept for making failures smaller."""
    return told.budget * FOR_SHRINKING if told.shrink and report.failures else 0.0


def plans_of(
    report: Report,
    steps: tuple[Step, ...],
    *,
    only: frozenset[str],
    most_of_class: int | None = None,
    is_exhaustive: bool = False,
    can: Callable[[Plan], bool] = lambda _plan: True,
) -> Iterator[Plan]:
    """Single faults and pairs that there ``can`` be, a few of every class first; the report is told which
    cells to cover: all of single faults, and of pairs those that come first.
    """
    reference = report.reference
    if reference is None:
        return iter(())
    listed = [plan for plan in singles(reference, steps, only=only) if can(plan)]
    two = () if is_exhaustive else pairs(reference, steps)
    paired = [plan for plan in two if (not only or plan.id in only) and can(plan)]
    report.total = len(listed)
    for plan in (*listed, *thinned(paired, FIRST)):
        report.cells.setdefault(cell_of(plan), "open")
    if most_of_class is not None and not is_exhaustive:
        chosen = [*thinned(listed, most_of_class), *thinned(paired, most_of_class)]
        report.planned = len(chosen)
        return iter(chosen)
    report.planned = len(listed) + len(paired)
    return in_turn(listed, paired, first=FIRST)


def conclude(
    report: Report, run: Run, findings: Sequence[Finding], reference: Reference, *, is_drawn: bool = False
) -> None:
    """Note what came of a plan: a failure, nothing that can be said, or that it is survived.

    Of those that are drawn there is no end: what did not strike counts neither way, and what was survived is
    no cell of those that there are to cover.
    """
    plan, cell, wrong = run.plan, cell_of(run.plan), real(findings)
    report.attempted += bool(plan.faults) and not is_drawn
    if findings and not wrong:
        if not is_drawn:
            report.inconclude(plan, cell, findings[0].what)
        return
    report.proven += 1
    is_warning = is_excused(plan, wrong)
    if _is_new(report, plan, wrong):
        report.failures.append(Failure(plan, wrong, run, is_warning, (cell,), reference.run))
    if wrong or not is_drawn:
        report.mark(plan, cell, "ok" if not wrong else "warned" if is_warning else "failed")


def _is_new(report: Report, plan: Plan, wrong: Sequence[Finding]) -> bool:
    """Whether something is wrong, and not yet known of this cell."""
    known = report.cells.get(cell_of(plan))
    return bool(wrong) and known != "failed" and not (known == "warned" and is_excused(plan, wrong))


def masked_by_chance(prepared: Prepared, steps: tuple[Step, ...], first: Run | None = None) -> Masked:
    """What the operator draws by chance: it is another with another seed."""
    first = first or prepared.run(Plan(steps))
    others = [prepared.run(Plan(steps, (), first.plan.seed + more)) for more in (1, 2)]
    masked: Masked = frozenset()
    for number, point in enumerate(first.checkpoints):
        runs = [run for run in others if len(run.checkpoints) > number]
        masked |= varying([point.state, *(run.checkpoints[number].state for run in runs)])
    return masked


def outside(run: Run) -> list[Finding]:
    """That the operator was refused what it wanted outside of the cluster: then the run shows nothing."""
    return [Finding("O13", refused) for refused in run.external][:1]


def real(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What is wrong with the operator, and not with the plan."""
    return tuple(finding for finding in findings if finding.oracle != "O13")


def is_excused(plan: Plan, findings: Sequence[Finding]) -> bool:
    """Whether it is a warning only: more than an operator must bear, and nothing was destroyed."""
    return bool(findings) and plan.is_hostile and not any(finding.is_grave for finding in findings)


def does_something(run: Run, without: frozenset[str]) -> bool:
    """Whether there is anything to be proven; where O13 is left out, that is for others to say."""
    return bool(run.effects) or "O13" in without


def idleness(plan: Plan, run: Run, without: frozenset[str]) -> Failure | None:
    """That an operator came to rest and has done nothing, in a run without faults; None if it did not."""
    if not is_settled(run) or does_something(run, without):
        return None
    steps = "; ".join(map(str, plan.steps))
    return Failure(plan, (Finding("O13", f"it does nothing at all in these steps: {steps}"),), run)


def go_on_from(report: Report, reference: Run | None) -> None:
    """Have plans be made from this run without faults; where there is none, nothing else can be learned."""
    report.reference = reference
    if reference is None:
        report.proven = 0


def is_settled(run: Run) -> bool:
    """Whether it came to rest after every step."""
    return all(point.is_settled for point in run.checkpoints)


def smaller_than(failure: Failure) -> Iterator[Plan]:
    """Plans that may show the same: by the proof's own seed, so that what was drawn with another is told once
    with what was listed; up to where it shows; then with a fault less, or a step less.
    """
    plan, usual = failure.plan, failure.reference
    if failure.first.oracle == "O13":
        return
    if usual is not None and plan.seed != usual.plan.seed:
        yield msgspec.structs.replace(plan, seed=usual.plan.seed)
    if 0 < (shown := _shown_at(failure)) < len(plan.steps):
        yield msgspec.structs.replace(plan, steps=plan.steps[:shown])
    yield from smaller(plan)


def _shown_at(failure: Failure) -> int:
    """After how many steps the state shows it; 0 where it never does."""
    usual = {} if failure.reference is None else {each.step: each for each in failure.reference.checkpoints}
    for point in failure.run.checkpoints:
        is_other = point.step in usual and not point.is_blind and point.state != usual[point.step].state
        if is_other or not point.is_settled or point.restless:
            return point.step
    return 0


def fails_alike(
    failure: Failure, run: Run, findings: Sequence[Finding], reference: Reference
) -> Failure | None:
    """How a smaller plan fails: by the same oracle, and because of its faults; None if it does not."""
    plan, wrong = run.plan, real(findings)
    is_same = any(each.oracle == failure.first.oracle for each in wrong)
    has_struck = wrong == tuple(findings) and len(run.fired) == len(plan.faults)
    if not is_same or not has_struck or is_excused(plan, wrong) != failure.is_warning:
        return None
    return Failure(plan, wrong, run, failure.is_warning, failure.cells, reference.run)


def told_once(failures: Iterable[Failure]) -> list[Failure]:
    """Failures of one plan by one oracle are one, in all the cells in which it was found."""
    found: dict[tuple[bytes, str], Failure] = {}
    for failure in failures:
        key = (msgspec.json.encode(failure.plan), failure.first.oracle)
        known = found.get(key)
        found[key] = failure if known is None else replace(known, cells=known.cells + failure.cells)
    return list(found.values())


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with a fault less, or a step less.

    What happened in a step no longer happens without it, so what a fault waits for may come sooner: it is
    tried at all places up to its own.
    """
    if len(plan.bystanders) > 1:
        for group in grouped(plan.bystanders):
            rest = tuple(each for each in plan.bystanders if each not in group)
            yield msgspec.structs.replace(plan, bystanders=rest or group)
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


def can_strike(plan: Plan, reference: Run) -> bool:
    """Whether it has no faults; or all is well without them, and it comes to the first of them."""
    places = {*(each.at for each in (*reference.effects, *reference.reads)), *reference.events}
    return not plan.faults or (is_settled(reference) and any(fault.at in places for fault in plan.faults))
