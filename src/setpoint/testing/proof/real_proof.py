"""Proves an operator on a real cluster: the same faults on its way there, and real time.

    report = prove_on_cluster(make, Config.load(), budget=300)
    assert report.is_good, str(report)

As in process: the reference, what is so without any fault (O4 too), every single fault, then pairs; and what
failed is made smaller, in the last part of the budget.  What needs our own server, or time that can be put
forward, is left out, and ``report.skipped`` says so.  A plan takes seconds here and milliseconds in process:
prove there first, and then here what a model of the cluster may have got wrong.

Promises:

1. Nothing of anyone else's is written to, and nothing is left: each plan has a namespace of its own
   (``real_world.py``), and definitions that were not there are taken away again (``real_site.py``).
2. A cluster that is not on this machine is not touched unless ``anywhere`` says so.
3. It does not begin where another operator already sees to objects of the kind, for the two would fight.
4. Real clusters are not deterministic: what fails is run again, and is a failure only if it fails again; so
   does each plan that is smaller.

``replay_on_cluster`` runs one plan in just the same way.  What is right and wrong is ``oracles.py``'s; which
plans there are, what came of one, and what may be smaller, ``prove.py``'s.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from setpoint.client.addresses import is_on_this_machine
from setpoint.client.config import Config
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.fresh import fresh_plans
from setpoint.testing.proof.kept import How, told_again
from setpoint.testing.proof.options import Options
from setpoint.testing.proof.oracles import Finding, Reference, Rules, fresh_start, ids, judge
from setpoint.testing.proof.plans import AnyFault, Create, Freeze, Plan, Step
from setpoint.testing.proof.process import Subject, make_task, maker
from setpoint.testing.proof.prove import (
    CHANCE,
    CLASSES,
    FOR_SHRINKING,
    can_strike,
    checked,
    conclude,
    does_something,
    fails_alike,
    go_on_from,
    idleness,
    is_enough,
    is_settled,
    kept_of,
    outside,
    plans_of,
    real,
    smaller_than,
    told_once,
)
from setpoint.testing.proof.real_site import LONGEST, Site
from setpoint.testing.proof.real_world import Ground
from setpoint.testing.proof.report import Failure, Report
from setpoint.testing.proof.states import varying
from setpoint.testing.proof.sweep import cell_of
from setpoint.testing.proof.trace import CONTROLLERS, Run, State
from setpoint.testing.proof.usual import usual
from setpoint.testing.proof.world import Prepared

BUDGET: Final = 300.0
_OUR_SERVER, _OUR_TIME = "needs Setpoint's own server", "needs time that can be put forward"
SKIPPED: Final = {
    "E6": _OUR_TIME,
    "V7": _OUR_TIME,
    "V9": _OUR_SERVER,
    "V9a": _OUR_SERVER,
    "I3": _OUR_SERVER,
    "S4": "would need a webhook of the whole cluster",
    "L1": _OUR_TIME,
    "L2": _OUR_TIME,
    "L3": _OUR_TIME,
    "C1": _OUR_TIME,
}
_UNJUDGED: Final = {
    "O2 an hour later": _OUR_TIME,
    "O4 in the status of children": "the cluster's own controllers write it",
    "O12": "one process runs there, and nobody is elected",
}


def why_not(fault: AnyFault) -> tuple[str, str] | None:
    """What of a fault cannot be had on a real cluster, and why; None if it can be had."""
    if fault.id in SKIPPED:
        return fault.id, SKIPPED[fault.id]
    if isinstance(fault, Freeze) and fault.seconds > LONGEST:
        return f"{fault.id} for {fault.seconds:g} s", _OUR_TIME
    return None


def prove_on_cluster(
    operator: Subject | Callable[[], Subject],
    config: Config,
    *,
    anywhere: bool = False,
    steps: Sequence[Step] | None = None,
    example: dict[str, Any] | None = None,
    budget: float = BUDGET,
    seed: int = 0,
    clouds: Sequence[Cloud] = (),
    always: Sequence[Callable[..., object]] = (),
    never: Sequence[Callable[..., object]] = (),
    at_most: Sequence[tuple[str, int]] = (),
    keeps: Sequence[str] = (),
    history: Sequence[str] = (),
    only: Iterable[str] = (),
    without: Iterable[str] = (),
    most_failures: int = 3,
    most_plans: int | None = None,
    most_of_class: int | None = None,
    allow_network: Sequence[str] = (),
    allow_program: Sequence[str] = (),
    shrink: bool = True,
    at_once: int = 1,
    on_plan: Callable[[Report], None] = lambda _report: None,
) -> Report:
    """Look for a plan that the operator does not survive, on a cluster that runs.

    As ``prove``; ``budget`` is in seconds of the clock on the wall.  ``at_once`` plans are under way at a
    time, each in its namespace: more than one only where ``operator`` is a function whose operators share
    nothing.
    """
    _check(config, anywhere=anywhere)
    if at_once > 1 and clouds:
        raise ValueError("plans share their clouds: with clouds, only one is run at once")
    told = Options(
        budget=budget,
        seed=seed,
        clouds=clouds,
        always=always,
        never=never,
        at_most=at_most,
        keeps=keeps,
        history=history,
        only=checked(only, CLASSES, "class of faults"),
        without=checked(without, ids(), "oracle"),
        most_failures=most_failures,
        most_plans=most_plans,
        most_of_class=most_of_class,
        allow_network=allow_network,
        allow_program=allow_program,
        shrink=shrink,
        on_plan=on_plan,
    )
    make, skipped = maker(operator), dict[str, str]()
    if steps is None:
        prepared = Prepared.of(make, clouds=clouds, allowed=told.how.allowed)
        made = usual(prepared, example, seed=seed)
        steps, skipped = made.steps, made.skipped
    site = Site(make, config, tuple(steps), tuple(clouds), told.how.allowed)
    proof = _Proof(site, told.rules, told.how, told, at_once=at_once)
    proof.report.skipped.update(skipped)
    return _run(proof, proof.run())


def replay_on_cluster(
    operator: Subject | Callable[[], Subject],
    config: Config,
    plan: Plan | str | bytes | Path,
    *,
    anywhere: bool = False,
    clouds: Sequence[Cloud] = (),
    always: Sequence[Callable[..., object]] = (),
    never: Sequence[Callable[..., object]] = (),
    at_most: Sequence[tuple[str, int]] | None = None,
    keeps: Sequence[str] | None = None,
    history: Sequence[str] | None = None,
    without: Iterable[str] | None = None,
) -> Report:
    """Run one plan on a cluster that runs, twice, and judge it as ``prove_on_cluster`` did.

    As ``replay``; ValueError says what of the plan cannot be had there.
    """
    _check(config, anywhere=anywhere)
    kept = kept_of(plan)
    for fault in kept.faults:
        if (missing := why_not(fault)) is not None:
            raise ValueError(f"{fault}: {' '.join(missing)}; replay it in process, without a cluster")
    how = told_again(
        kept,
        has_rules=bool(always or never),
        at_most=None if at_most is None else tuple(at_most),
        keeps=None if keeps is None else tuple(keeps),
        history=None if history is None else tuple(history),
        without=None if without is None else tuple(checked(without, ids(), "oracle")),
    )
    if how.objects:
        raise ValueError(
            "it was found among objects that are not on a cluster (objects=…): replay it in process"
        )
    rules = Rules(tuple(always), tuple(never), how.at_most, how.keeps, how.history)
    proof = _Proof(Site(maker(operator), config, kept.steps, tuple(clouds), how.allowed), rules, how)
    return _run(proof, proof.once(kept))


def _check(config: Config, *, anywhere: bool) -> None:
    if not anywhere and not is_on_this_machine(config.server):
        raise ValueError(
            f"{config.server} is not on this machine: a proof makes namespaces and definitions there and "
            "deletes them again; if that is meant, say anywhere=True"
        )


def _run(proof: _Proof, work: Coroutine[Any, Any, None]) -> Report:
    began, disabled = time.monotonic(), logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with asyncio.Runner() as runner:
            runner.get_loop().set_task_factory(make_task)
            runner.get_loop().set_exception_handler(lambda _loop, _context: None)
            runner.run(work)
    except ExceptionGroup as group:  # of those who run plans at once; the first says what happened
        error: Exception = group
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from group
    finally:
        logging.disable(disabled)
        proof.report.seconds = time.monotonic() - began
    return proof.report


class _Proof:
    def __init__(
        self, site: Site, rules: Rules, how: How, options: Options | None = None, *, at_once: int = 1
    ) -> None:
        self._site = site
        self._rules = rules
        self._seed = how.seed or 0
        self._without = frozenset(how.without)
        self._options = options or Options()
        self._only = frozenset(self._options.only)
        self._at_once = at_once
        self._gate = asyncio.Semaphore(at_once)
        self._references: dict[bytes, Reference] = {}
        self.report = Report(
            site.make().name,
            site.steps,
            how=msgspec.structs.replace(how, is_on_cluster=True),
            cluster=site.server,
            skipped={name: why for name, why in _UNJUDGED.items() if name.split(" ")[0] not in self._without},
            external=site.refused,
        )

    async def run(self) -> None:
        told, report = self._options, self.report
        deadline = time.monotonic() + told.budget
        if not self._only or CHANCE in self._only:
            report.skipped[CHANCE] = "a plan takes seconds there"
        async with self._site.ground() as ground:
            await self._begin(ground)
            plans = plans_of(
                report, self._site.steps, only=self._only, most_of_class=told.most_of_class, can=self._can
            )

            report.doing = "trying plans"

            async def work() -> None:
                for plan in plans:
                    if is_enough(report, told, deadline - time.monotonic()):
                        return
                    if report.cells.get(cell_of(plan)) != "failed":
                        await self._try(ground, plan)

            await self._together(work)
            if told.shrink:
                now = time.monotonic()
                await self._shrink_all(ground, min(deadline, now + told.budget * FOR_SHRINKING))
        report.inconclusive += self._site.left

    async def once(self, plan: Plan) -> None:
        """One plan alone."""
        async with self._site.ground() as ground:
            reference = await self._learn(ground)
            self.report.reference = reference.run
            if reference.run.external:
                pass
            elif plan.faults:
                await self._try(ground, plan, twice=True)
            else:
                await self._undisturbed(ground, plan, reference)
        self.report.inconclusive += self._site.left

    # ---- without faults

    async def _begin(self, ground: Ground) -> None:
        """What is so without any fault."""
        report, reference = self.report, await self._learn(ground)
        if reference.run.external:
            return
        can_go_on = is_settled(reference.run) and does_something(reference.run, self._without)
        if not can_go_on or not self._only or "none" in self._only:
            await self._undisturbed(ground, reference.run.plan, reference)
        go_on_from(report, reference.run if can_go_on else None)

    async def _learn(self, ground: Ground) -> Reference:
        """The reference: whether it is alone there, where something happens, and what it draws by chance."""
        steps, plan = self._site.steps, Plan(self._site.steps, (), self._seed)
        await self._be_alone(ground)
        first = await self._run(ground, plan)
        if ground.strayed:
            raise ValueError(
                "the operator wrote outside of its namespace, and was kept from it: "
                f"{ground.strayed[0]}: prove it in process"
            )
        ground.followed = ground.primaries | {write.resource for write in first.writes}
        second = await self._run(ground, plan)
        points = zip(first.checkpoints, second.checkpoints, strict=False)
        ground.masked = frozenset[Any]().union(*(varying([one.state, other.state]) for one, other in points))
        self.report.plans += 2
        if not ground.masked:
            known = Reference(second, self._rules, ground.primaries)
            self._references[msgspec.json.encode(steps)] = known
        return await self._reference(ground, steps)

    async def _be_alone(self, ground: Ground) -> None:
        """See that nobody else is for the same kinds (promise 3)."""
        ours = {(kind.api_version, kind.kind) for kind in self._site.make().kinds}
        made = [step for step in self._site.steps if isinstance(step, Create)]
        firsts = {(step.object["apiVersion"], step.object["kind"]): step for step in reversed(made)}
        for kind in ours & firsts.keys():
            if who := await ground.is_operated(firsts[kind]):
                raise ValueError(
                    f"somebody already sees to {kind[1]} objects on {self._site.server} ({who}): stop that "
                    "operator first, or prove this one elsewhere"
                )

    async def _undisturbed(self, ground: Ground, plan: Plan, reference: Reference) -> None:
        if idle := idleness(plan, reference.run, self._without):
            self.report.failures.append(idle)
        else:
            await self._try(ground, plan)

    async def _reference(self, ground: Ground, steps: tuple[Step, ...]) -> Reference:
        key = msgspec.json.encode(steps)
        if key not in self._references:
            run = await self._run(ground, Plan(steps, (), self._seed))
            self._references[key] = Reference(run, self._rules, ground.primaries)
        return self._references[key]

    async def _fresh_starts(self, ground: Ground, run: Run) -> list[Finding]:
        """O4: each state that the steps lead to, against a fresh start with the same spec."""
        held = list(fresh_plans(run, Reference(run, self._rules, ground.primaries)))
        fresh: dict[bytes, Run] = {}

        async def start(key: bytes, plan: Plan) -> None:
            fresh[key] = await self._run(ground, plan)

        async with asyncio.TaskGroup() as group:
            for key, plan in {msgspec.json.encode(plan): plan for _, plan in held}.items():
                group.create_task(start(key, plan))
        for point, plan in held:
            other = fresh[msgspec.json.encode(plan)]
            points = [replace(each, state=self._own(ground, other, each.state)) for each in other.checkpoints]
            reached = replace(point, state=self._own(ground, run, point.state))
            if found := list(fresh_start(reached, replace(other, checkpoints=points), self._rules)):
                return found
        return []

    def _own(self, ground: Ground, run: Run, state: State) -> State:
        """A state without what the cluster's own controllers keep and say, and what is meant to stay.

        A Deployment tells in its status which way it went, and a StatefulSet leaves its claims behind.
        """
        theirs = {write.place for write in run.writes if write.by == CONTROLLERS}
        found: State = {}
        for called, obj in state.items():
            resource = called.partition(" ")[0]
            if called not in theirs and resource not in self._rules.keeps:
                is_ours = resource in ground.primaries or "apiVersion" not in obj
                found[called] = obj if is_ours else {name: obj[name] for name in obj if name != "status"}
        return found

    # ---- with faults

    def _can(self, plan: Plan) -> bool:
        missing = [why for why in map(why_not, plan.faults) if why is not None]
        self.report.skipped.update(missing)
        never = [SKIPPED[fault.id] for fault in plan.faults if fault.id in SKIPPED]
        if never and len(plan.faults) > 1:
            self.report.skipped[plan.id] = never[0]  # of a pair, what one of them lacks
        return not missing

    async def _try(self, ground: Ground, plan: Plan, *, twice: bool = False) -> None:
        """Run a plan, ``twice`` or if it fails, and note what came of it (promise 4)."""
        report, reference = self.report, await self._reference(ground, plan.steps)
        plan = Plan(plan.steps, plan.faults, plan.seed)  # one process, and no election
        run, findings = await self._tried(ground, plan, reference)
        report.plans += 1
        if twice or real(findings):
            first, (run, findings) = real(findings), await self._tried(ground, plan, reference)
            report.plans += 1
            wrong = real(findings)
            if (first or wrong) and not {each.oracle for each in first} & {each.oracle for each in wrong}:
                said = f"two runs of it came to different ends: {(first or wrong)[0]}"
                findings = [Finding("O13", said)]
        conclude(report, run, findings, reference)
        self._options.on_plan(report)

    async def _tried(self, ground: Ground, plan: Plan, reference: Reference) -> tuple[Run, list[Finding]]:
        """One run, and what is wrong with it; without faults it is probed after every step."""
        if plan.faults:
            run = await self._run(ground, plan, reference=reference.run)
        else:
            run = await self._run(ground, plan, probe_always=True)
        if refused := outside(run):
            return run, refused
        findings = judge(run, reference, without=self._without)
        if not plan.faults and "O4" not in self._without:
            findings += await self._fresh_starts(ground, run)
        return run, findings

    async def _run(self, ground: Ground, plan: Plan, **how: Any) -> Run:
        async with self._gate:
            return await ground.run(plan, **how)

    async def _together(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have as many do this as may at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(work())

    # ---- smaller

    async def _shrink_all(self, ground: Ground, deadline: float) -> None:
        """Make what failed smaller, what is more than a warning first; what is the same then is told once."""
        failures = sorted(self.report.failures, key=lambda each: each.is_warning)
        numbers = iter(range(len(failures)))

        async def work() -> None:
            for number in numbers:
                while found := await self._next(ground, failures[number], deadline):
                    failures[number] = found

        await self._together(work)
        self.report.failures[:] = told_once(failures)

    async def _next(self, ground: Ground, failure: Failure, deadline: float) -> Failure | None:
        """A smaller plan that fails by the same oracle, twice; None if there is none, or no time."""
        for plan in smaller_than(failure):
            if time.monotonic() > deadline:
                return None
            if found := await self._fails(ground, plan, failure):
                return found
        return None

    async def _fails(self, ground: Ground, plan: Plan, failure: Failure) -> Failure | None:
        reference, found = await self._reference(ground, plan.steps), None
        for _ in range(2 if can_strike(plan, reference.run) else 0):
            run, findings = await self._tried(ground, plan, reference)
            found = fails_alike(failure, run, findings, reference)
            if found is None:
                break
        return found
