"""Proves an operator on a real cluster: the same faults on its way there, and real time.

    report = prove_on_cluster(make, Config.load(), budget=300)
    assert report.is_good, str(report)

What needs our own server, or time that can be put forward, is left out, and ``report.skipped`` says so by
class.  A plan takes seconds here and milliseconds in process: prove there first, and then here what a model
of the cluster may have got wrong.

Promises:

1. Nothing of anyone else's is written to, and nothing is left: each plan has a namespace of its own, and
   definitions that were not there are taken away again, unless somebody else has used them meanwhile.  Of
   several proofs at once on one cluster, the last to end takes them away.
2. A cluster that is not on this machine is not touched unless ``anywhere`` says so.
3. It does not begin where another operator already sees to objects of the kind, for the two would fight.
4. Real clusters are not deterministic: what fails is run again, and is a failure only if it fails again.

One run is ``real_world.py``'s; what is right and wrong is ``oracles.py``'s.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from setpoint.api.forms import untyped
from setpoint.api.names import Resource
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.errors import AlreadyExists, NotFound, SetpointError
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.kube.core.v1 import Namespace
from setpoint.testing.faults import Faults
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.oracles import Reference, Rules, ids, judge
from setpoint.testing.proof.plans import Create, Freeze, Pass, Plan, Step
from setpoint.testing.proof.process import Subject, make_task, maker
from setpoint.testing.proof.prove import CLASSES, checked, is_excused, real, usual_steps_of
from setpoint.testing.proof.real_world import LABEL, PREFIX, Ground
from setpoint.testing.proof.report import WIDTH, Failure, Report, as_text
from setpoint.testing.proof.states import varying
from setpoint.testing.proof.sweep import cell_of, singles
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.world import Prepared
from setpoint.testing.waiting import eventually

BUDGET: Final = 300.0
_PATIENCE = 60.0  # seconds until a definition is served, or a namespace gone
_LONGEST_FREEZE = 60.0
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
    "C1": _OUR_TIME,
}


@dataclass(slots=True, repr=False)
class RealReport(Report):
    """What came of it; ``seconds`` are of the clock on the wall."""

    cluster: str = ""
    skipped: dict[str, str] = field(default_factory=dict)  # classes of faults, and why they were left out

    def text(self, width: int = WIDTH) -> str:
        first, *rest = as_text(self, width).replace(" s of CPU ", f" s on {self.cluster} ", 1).split("\n")
        reasons: dict[str, list[str]] = {}
        for name, why in self.skipped.items():
            reasons.setdefault(why, []).append(name)
        left_out = [f"skipped: {', '.join(names)} ({why})" for why, names in reasons.items()]
        return "\n".join([first, *left_out, *rest])


def is_on_this_machine(server: str) -> bool:
    """Whether a server's address is of the loopback."""
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


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
    only: Iterable[str] = (),
    without: Iterable[str] = (),
    most_failures: int = 3,
    most_plans: int | None = None,
    at_once: int = 1,
    on_plan: Callable[[Report], None] = lambda _report: None,
) -> RealReport:
    """Look for a plan that the operator does not survive, on a cluster that runs.

    As ``prove``; ``budget`` is in seconds of the clock on the wall.  ``at_once`` plans are under way at a
    time, each in its namespace: more than one only where ``operator`` is a function whose operators share
    nothing.
    """
    if not anywhere and not is_on_this_machine(config.server):
        raise ValueError(
            f"{config.server} is not on this machine: a proof makes namespaces and definitions there and "
            "deletes them again; if that is meant, say anywhere=True"
        )
    if at_once > 1 and clouds:
        raise ValueError("plans share their clouds: with clouds, only one is run at once")
    make = maker(operator)
    classes, oracles = checked(only, CLASSES, "class of faults"), checked(without, ids(), "oracle")
    if steps is None:
        steps = usual_steps_of(Prepared.of(make, clouds=clouds), example, seed=seed)
    chosen = tuple(steps)
    proof = _Proof(
        make,
        config,
        chosen,
        Rules(tuple(always), tuple(never), tuple(at_most), tuple(keeps)),
        RealReport(make().name, chosen, cluster=config.server),
        clouds=tuple(clouds),
        seed=seed,
        only=classes,
        without=oracles,
    )
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with asyncio.Runner() as runner:
            runner.get_loop().set_task_factory(make_task)
            runner.get_loop().set_exception_handler(lambda _loop, _context: None)
            runner.run(proof.run(budget, most_failures, most_plans, at_once, on_plan))
    finally:
        logging.disable(disabled)
    return proof.report


class _Proof:
    def __init__(
        self,
        make: Callable[[], Subject],
        config: Config,
        steps: tuple[Step, ...],
        rules: Rules,
        report: RealReport,
        *,
        clouds: tuple[Cloud, ...],
        seed: int,
        only: frozenset[str],
        without: frozenset[str],
    ) -> None:
        self._make = make
        self._config = config
        self._steps = steps
        self._rules = rules
        self._clouds = clouds
        self._seed = seed
        self._only = only
        self._without = without
        self._id = secrets.token_hex(4)
        self.report = report

    async def run(
        self,
        budget: float,
        most_failures: int,
        most_plans: int | None,
        at_once: int,
        on_plan: Callable[[Report], None],
    ) -> None:
        began = time.monotonic()
        report = self.report
        try:
            async with Faults.of(self._config) as way, self._ground(way) as ground:
                reference = await self._begin(ground)
                if reference is None:
                    return
                plans = self._plans(reference.run)

                async def work() -> None:
                    for plan in plans:
                        if report.cells.get(cell_of(plan)) == "failed":
                            continue
                        await self._try(ground, plan, reference)
                        on_plan(report)
                        if (
                            time.monotonic() - began > budget
                            or len(report.alarms) >= most_failures
                            or (most_plans is not None and report.plans >= most_plans)
                        ):
                            return

                async with asyncio.TaskGroup() as group:
                    for _ in range(at_once):
                        group.create_task(work())
        finally:
            report.seconds = time.monotonic() - began

    # ---- before

    @asynccontextmanager
    async def _ground(self, way: Faults) -> AsyncIterator[Ground]:
        """The cluster, with the operator's definitions; afterwards as it was before."""
        client = Client(self._config, transport=way, on_warning=lambda _text: None)
        made: list[str] = []
        try:
            await client.create(self._sign())
            made += [
                crd["metadata"]["name"] for crd in self._make().crds() if await self._define(client, crd)
            ]
            for name in made:
                await self._is_served(client, name)
            await client.discovery.refresh()
            resources: dict[tuple[str, str], Resource] = {}
            for each in await client.discovery.resources():
                resources.setdefault((each.group, each.plural), each)
            kinds = {(kind.group, kind.kind) for kind in self._make().kinds}
            primaries = [each for each in resources.values() if (each.group, each.kind) in kinds]
            self._check(primaries)
            yield Ground(
                self._make,
                way,
                client,
                resources,
                frozenset(map(str, primaries)),
                inside=self._namespace(),
                clouds=self._clouds,
                proof=self._id,
            )
        finally:
            await self._leave(client, made)

    def _sign(self) -> Namespace:
        """An empty namespace, by which other proofs on the cluster know that this one goes on."""
        sign = Namespace()
        sign.metadata.name, sign.metadata.labels = f"{PREFIX}{self._id}", {LABEL: self._id}
        return sign

    async def _define(self, client: Client, crd: dict[str, Any]) -> bool:
        """Have a definition be there; whether a proof has made it.  Any other is used as it is, and stays."""
        metadata = crd["metadata"]
        labels = {**(metadata.get("labels") or {}), LABEL: self._id}
        try:
            await client.create({**crd, "metadata": {**metadata, "labels": labels}})
        except AlreadyExists:
            found = await client.get(CustomResourceDefinition, metadata["name"])
            return LABEL in (found.metadata.labels or {})
        return True

    @staticmethod
    async def _is_served(client: Client, name: str) -> None:
        async def established() -> bool:
            found = await client.get(CustomResourceDefinition, name)
            return any(
                each.type == "Established" and each.status == "True" for each in found.status.conditions or ()
            )

        await eventually(established, timeout=_PATIENCE, what=f"{name} is established")

    def _check(self, primaries: Iterable[Resource]) -> None:
        for each in primaries:
            if not each.namespaced:
                raise ValueError(
                    f"{each} belong to no namespace, so that a run could not be kept apart from the rest of "
                    "the cluster: prove this operator in process"
                )

    def _namespace(self) -> str:
        """The one that the steps speak of."""
        found = {
            step.object["metadata"].get("namespace", "default")
            if isinstance(step, Create)
            else step.namespace
            for step in self._steps
            if not isinstance(step, Pass)
        }
        if len(found) > 1:
            raise ValueError(
                f"the steps are in {', '.join(sorted(found))}: on a cluster a plan has one namespace"
            )
        return next(iter(found), "default")

    async def _leave(self, client: Client, made: Iterable[str]) -> None:
        """Wait until our namespaces are gone, and take our definitions away."""

        async def gone() -> bool:
            return not await client.list(Namespace, labels={LABEL: self._id})

        with suppress(AssertionError, SetpointError):
            await ignore_not_found(client.delete(Namespace, f"{PREFIX}{self._id}"))
            await eventually(gone, timeout=_PATIENCE, what="the namespaces of the proof are gone")
        if any(await client.list(Namespace, labels=LABEL)):
            return  # of another proof, which takes the definitions away when it ends
        for name in made:
            with suppress(NotFound):
                found = await client.get(CustomResourceDefinition, name)
                kind = untyped(f"{found.spec.group}/{found.spec.versions[0].name}", found.spec.names.kind)
                if others := [each for each in await client.list(kind) if not self._is_ours(each)]:
                    self.report.inconclusive.append(
                        f"the definition {name} stays: by now there are {len(others)} objects of others"
                    )
                    continue
                await client.delete(CustomResourceDefinition, name)
                await self._is_gone(client, name)

    def _is_ours(self, obj: dict[str, Any]) -> bool:
        return str(obj["metadata"].get("namespace", "")).startswith(f"{PREFIX}{self._id}")

    @staticmethod
    async def _is_gone(client: Client, name: str) -> None:
        async def gone() -> bool:
            return await ignore_not_found(client.get(CustomResourceDefinition, name)) is None

        await eventually(gone, timeout=_PATIENCE, what=f"{name} is gone")

    async def _begin(self, ground: Ground) -> Reference | None:
        """What is so without any fault."""
        report, plan = self.report, Plan(self._steps, (), self._seed)
        first_step = next((step for step in self._steps if isinstance(step, Create)), None)
        if first_step is not None and (who := await ground.is_operated(first_step)):
            raise ValueError(
                f"somebody already sees to {first_step.object['kind']} objects on {self._config.server} "
                f"({who}): stop that operator first, or prove this one elsewhere"
            )
        first = await ground.run(plan)
        if ground.strayed:
            raise ValueError(
                "the operator wrote outside of its namespace, and was kept from it: "
                f"{ground.strayed[0]}: prove it in process"
            )
        ground.followed = ground.primaries | {write.resource for write in first.writes}
        second = await ground.run(plan)
        ground.masked = frozenset[Any]().union(
            *(
                varying([one.state, other.state])
                for one, other in zip(first.checkpoints, second.checkpoints, strict=False)
            )
        )
        run = await ground.run(plan, probe_always=True)
        report.plans += 3
        report.reference = run
        reference = Reference(run, self._rules, ground.primaries)
        if found := real(judge(run, reference, without=self._without)):
            report.failures.append(Failure(plan, found, run))
            return None
        report.proven += not self._only or "none" in self._only
        return reference

    def _plans(self, reference: Run) -> Iterator[Plan]:
        report = self.report
        listed = []
        for plan in singles(reference, self._steps, only=self._only):
            (fault,) = plan.faults
            if fault.id in SKIPPED:
                report.skipped[fault.id] = SKIPPED[fault.id]
            elif isinstance(fault, Freeze) and fault.seconds > _LONGEST_FREEZE:
                report.skipped[f"{fault.id} for {fault.seconds:g} s"] = _OUR_TIME
            else:
                listed.append(_alone(plan))
        report.total = len(listed)
        for plan in listed:
            report.cells.setdefault(cell_of(plan), "open")
        return iter(listed)

    async def _try(self, ground: Ground, plan: Plan, reference: Reference) -> None:
        report, cell = self.report, cell_of(plan)
        run = await ground.run(plan, reference=reference.run)
        report.plans += 1
        findings = judge(run, reference, without=self._without)
        wrong = real(findings)
        if wrong:
            again = await ground.run(plan, reference=reference.run)
            report.plans += 1
            confirmed = real(judge(again, reference, without=self._without))
            if not {each.oracle for each in wrong} & {each.oracle for each in confirmed}:
                report.inconclude(plan, cell, f"it failed once and then no more: {wrong[0]}")
                return
            report.proven += 1
            is_warning = is_excused(plan, confirmed)
            if report.cells.get(cell) not in ("failed", "warned" if is_warning else "failed"):
                report.failures.append(Failure(plan, confirmed, again, is_warning, (cell,), reference.run))
            report.mark(plan, cell, "warned" if is_warning else "failed")
        elif findings:
            report.inconclude(plan, cell, findings[0].what)
        else:
            report.proven += 1
            report.mark(plan, cell, "ok")


def _alone(plan: Plan) -> Plan:
    """One process, and no election."""
    return Plan(plan.steps, plan.faults, plan.seed)
