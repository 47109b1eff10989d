"""A cluster, its users and an operator in one process and in virtual time; runs one plan, and tells all.

    prepared = Prepared(make_operator)
    run = prepared.run(Plan(steps=(Create({...}),), faults=(Crash(at=At("create pods default/a")),)))

Promises:

1. A run depends on its plan and on nothing else: one loop, one clock, one source of chance, no thread, no
   socket.  The same plan twice gives the same ``digest``.
2. After each step of the user the world is left alone until it is still: nothing is at work, due or failing,
   no fault goes on, and whatever is looked at again within a while was looked at since the last write.
3. When the last fault is over, and all is still, it is shown that nothing stirs: an hour passes, everything
   is looked at again, the operator is restarted.  Without faults the first hour passes second by second; else
   at once, as for a machine that was asleep: whatever would have been due in it is due then.
4. Where the operator's own code ends the process, or fails in a way that nobody handles, the run says so.

Started by ``prove.py``; the faults are ``director.py``'s, what is right or wrong is ``oracles.py``'s to say.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from setpoint.client.client import Client
from setpoint.manager.manager import Manager
from setpoint.net import transport
from setpoint.net.loopback import Loopback
from setpoint.server.admission.calling import Caller, CallError, Target
from setpoint.server.registry.crd.fill import Fill
from setpoint.server.registry.resources import Resource
from setpoint.server.server import ApiServer
from setpoint.server.storage.protocol import Event, Place
from setpoint.testing.isolation import Allowed, Isolation, Refused
from setpoint.testing.proof.any_world import AnyWorld, may_step_fail, now
from setpoint.testing.proof.budget import Budget
from setpoint.testing.proof.calendar import controlled_calendar
from setpoint.testing.proof.chance import seeded
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.collector import Collector
from setpoint.testing.proof.controllers import BuiltIn, Controllers, chosen, needed
from setpoint.testing.proof.director import Director
from setpoint.testing.proof.pace import Pace, PacedLoop, WorldClock, machine
from setpoint.testing.proof.plans import (
    NEEDS_LEADER,
    Change,
    ClockStep,
    Crash,
    Create,
    Delete,
    Overlap,
    Plan,
    Rotate,
    SlowClock,
    Starve,
    Step,
    Travel,
    Unadmitted,
)
from setpoint.testing.proof.process import Process, Subject, make_task
from setpoint.testing.proof.seam import Seam
from setpoint.testing.proof.states import Masked, canonical, in_words, status_defaults
from setpoint.testing.proof.store import Snapshot, WorldStore, actor
from setpoint.testing.proof.trace import CLAIMS, COLLECTOR, CONTROLLERS, USER, Checkpoint, Run, State, Written
from setpoint.testing.virtual_time import LoopClock, VirtualTimeLoop

PATIENCE: Final = (
    900.0  # seconds after which a world that is not still will never be: twice the longest backoff
)
LONGEST: Final = 8_000.0  # seconds, with all that faults may take
_MISOPERATED: Final = 30.0  # seconds that an operator has with what it may never come to rest with
SEEN: Final = 65.0  # who is looked at again within this is waited for
_SHOWN = "proof"  # of a server that nobody outside can reach
_BEFORE = 30.0  # seconds that the built-in controllers have to begin with
_TURNS = 10_000  # of the loop at one moment; a busy one takes hundreds
_STALL = 5.0  # seconds of the machine in which a plain reconciler must come back, or ask for something
_RESTARTED = "after a restart"
_SOON = "2 s later"
_PROBES = ((_SOON, 2.0), ("an hour later", 3_600.0))
_SHORT = 60.0  # seconds that may as well pass one by one


@dataclass(frozen=True)
class Prepared:
    """What does not change from run to run: the operator, and a server that knows its kinds."""

    make: Callable[[], Subject]
    begin: Snapshot
    primaries: frozenset[str]  # the store's names of the kinds that the operator is for
    clouds: tuple[Cloud, ...] = ()
    masked: Masked = frozenset()
    controllers: tuple[str, ...] = ()  # of those that every cluster has
    given: Mapping[str, Any] = field(default_factory=dict)  # the ``objects`` there are besides, by place
    defaults: Mapping[str, Fill] = field(default_factory=dict)  # of the status of its kinds, by resource
    allowed: Allowed = field(default_factory=Allowed)  # what the operator may reach outside
    refused: Refused = field(default_factory=dict)  # what it tried to, in all runs
    budget: Budget = field(default_factory=Budget)  # checked in every run

    @classmethod
    def of(
        cls,
        make: Callable[[], Subject],
        *,
        clouds: Sequence[Cloud] = (),
        objects: Iterable[Any] = (),
        controllers: Controllers = False,
        allowed: Allowed | None = None,
        budget: Budget | None = None,
    ) -> Prepared:
        """Start a server once, and have it know what the operator defines; ``objects`` are there besides."""
        names, besides = tuple(dict.fromkeys((*chosen(controllers), *needed(make())))), list(objects)
        isolation = Isolation(allowed)
        make = partial(isolation.call, make)

        async def prepare() -> tuple[Snapshot, frozenset[str]]:
            store = WorldStore(Snapshot())
            clock = LoopClock()
            async with (
                ApiServer(clock=clock, source=_source(), token=_SHOWN, store=store) as server,
                BuiltIn(names).running(server.transport(), clock),
            ):
                user = _User(server)
                with isolation:
                    _check(make(), server, clock)
                crds = make().crds()
                for crd in crds:
                    if await user.act(Create(crd)) >= 400:
                        name = crd["metadata"]["name"]
                        raise ValueError(f"the server refuses the definition {name}: {user.refusal}")
                for obj in besides:
                    await user.act(Create(obj))
                for _ in range(100):
                    await asyncio.sleep(0.1)
                    if all(_is_established(store, crd["metadata"]["name"]) for crd in crds):
                        break
                if names:
                    await asyncio.sleep(_BEFORE)  # what they find to do by themselves is done
                kinds = {(kind.group, kind.kind) for kind in make().kinds}
                served = server.registry.resources.all()
                return store.snapshot(), frozenset(
                    each.stored for each in served if (each.group, each.kind) in kinds
                )

        budget = budget or Budget()
        loop = VirtualTimeLoop()
        loop.check_often(budget.check)
        with seeded(0), asyncio.Runner(loop_factory=lambda: loop) as runner:
            begin, primaries = runner.run(prepare())
        return cls(
            make,
            begin,
            primaries,
            tuple(clouds),
            controllers=names,
            given=_given(begin, map(_identity, besides)),
            defaults=status_defaults(make().crds()),
            allowed=isolation.allowed,
            refused=isolation.refused,
            budget=budget,
        )

    def run(self, plan: Plan, *, reference: Run | None = None, probe_always: bool = False) -> Run:
        """Carry out one plan.

        With a ``reference``, of the same steps without faults, it ends as soon as there is nothing more to
        learn: the faults are over, all is as it would be without them, and the operator was restarted.  Where
        others acted it cannot be the same, and only what is left of the deletions is done.
        OutOfBudget is raised when the budget is spent before it ends.
        """
        run = Run(plan, given=self.given)
        enabled = gc.isenabled()
        gc.disable()  # when it runs depends on what ran before
        disabled = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        has_clocks = any(isinstance(fault, ClockStep | SlowClock | Overlap) for fault in plan.faults)
        loop = PacedLoop() if has_clocks else VirtualTimeLoop()  # which is quicker
        loop.limit(_TURNS, _STALL)
        loop.check_often(self.budget.check)
        try:
            with (
                seeded(plan.seed) as names,
                controlled_calendar(),
                asyncio.Runner(loop_factory=lambda: loop) as runner,
            ):
                loop.set_task_factory(make_task)
                loop.set_exception_handler(lambda _loop, context: _note(context, run))
                runner.run(World(self, plan, run, names).carry_out(reference, probe_always=probe_always))
        except RuntimeError:
            if not loop.spun:
                raise
            run.spins = loop.spun
            run.checkpoints.append(Checkpoint.of_standstill(run, loop.time()))
        finally:
            logging.disable(disabled)
            if enabled:
                gc.enable()
        run.close()
        return run


class World(AnyWorld):
    """One run, in virtual time."""

    def __init__(self, prepared: Prepared, plan: Plan, run: Run, names: random.Random) -> None:
        super().__init__(prepared.make, prepared.clouds, plan, run, prepared.allowed, prepared.refused)
        self._prepared = prepared
        self._clock = WorldClock()
        self._paces: dict[Seam, Pace] = {}  # of the machines on which processes run
        self._store = WorldStore(prepared.begin, self._written)
        self._server = ApiServer(clock=self._clock, source=names, token=_SHOWN, store=self._store)
        self._director = Director(plan, run, self)
        self._collector = Collector(prepared.begin.records, self._collect)
        self._beginning = {record.place: record.revision for record in prepared.begin.records}
        self._elects = plan.replicas > 1 or any(isinstance(fault, NEEDS_LEADER) for fault in plan.faults)
        self._stirred = 0
        self._resources: dict[tuple[str, str], Resource] = {}
        self._stored: dict[str, Resource] = {}
        self._guards = 0
        self._built_in = BuiltIn(prepared.controllers)
        self._theirs: set[Place] = set()  # what the built-in controllers have made

    # ---- the run

    async def carry_out(self, reference: Run | None, *, probe_always: bool) -> None:
        """Take the steps of the plan, one after the other, and look after each."""
        async with AsyncExitStack() as stack:
            if any(isinstance(fault, Rotate) for fault in self._plan.faults):
                stack.enter_context(self.with_token())
            await stack.enter_async_context(self.running())
            for _ in range(2 if self._elects else 1):
                self._start()
            if self._plan.bystanders:
                self._run.refused += await self.act(self._plan.bystanders, USER)
            await self._checkpoint(0, "start", probe=False)
            for number, step in enumerate(self._plan.steps, 1):
                if self._is_probed and self._plan.is_racy and reference and self._is_of_primary(step):
                    continue
                await self._step(number, step, probe=probe_always)
                if reference is not None and self._is_as_ever(reference):
                    break

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The server and its collector, for the time of the block; what was started in it ends with it."""
        for cloud in self._prepared.clouds:
            cloud.reset()
            cloud.tell = partial(self._written_outside, cloud.name)
            cloud.called = self.called
        async with self._server, self._built_in.running(self._server.transport(), self._clock):
            self.look_up()
            self._user = _User(self._server, self._resources)
            collecting = asyncio.create_task(self._collector.run(), name="collector")
            try:
                yield
            finally:
                collecting.cancel()
                for process in self._processes:
                    await process.kill()
                for task in list(self._spawned):
                    task.cancel()
                await asyncio.wait([collecting, *self._spawned])

    def look_up(self) -> None:
        """What the server serves by now."""
        for resource in self._server.registry.resources.all():
            self._resources.setdefault((resource.api_version, resource.kind), resource)
            self._stored.setdefault(resource.stored, resource)

    def _is_primary(self, api_version: str, kind: str) -> bool:
        resource = self._resources.get((api_version, kind))
        return resource is not None and resource.stored in self._prepared.primaries

    async def _step(self, number: int, step: Step, *, probe: bool) -> None:
        if self._director.holding and not await self._let_go(step):
            return
        self._director.stepped()
        await asyncio.sleep(1.0)  # steps of a user are seen to be apart, also in timestamps
        await self.take(step)
        await self._checkpoint(number, str(step), probe=probe)

    async def _let_go(self, step: Step) -> bool:
        """Bring what was held back, unless this step is what it waits for: else it would come too late."""
        about = ""
        if isinstance(step, Change | Delete) and (
            found := self._resources.get((step.api_version, step.kind))
        ):
            about = f"{found.stored} {step.name}"
        for process in self._processes:
            for view in process.seam.views:
                view.release(about)
        if self._director.holding:
            return True
        last = self._run.checkpoints[-1]
        self._stirred += 1
        await self._checkpoint(last.step, last.what, probe=False)
        return self._run.checkpoints[-1].is_settled

    async def _checkpoint(self, number: int, what: str, *, probe: bool) -> None:
        began = now()
        looks, requests = len(self._run.looks), self._run.requests
        self._is_last = number == len(self._plan.steps)
        if self._is_last:
            self._director.collect()
        may_fail = may_step_fail(self._plan, number)
        why_not = await self._settle(_MISOPERATED if may_fail else PATIENCE)
        if self._is_last and self._director.uncollected:  # since this very step, and there is no other
            self._director.collect()
            why_not = await self._settle(_MISOPERATED if may_fail else PATIENCE)
        point = Checkpoint(
            number,
            what,
            began,
            now(),
            may_fail or not why_not,
            "" if may_fail else why_not,
            self.state(),
            len(self._run.looks) - looks,
            self._run.requests - requests,
            len(self._run.writes),
            bool(may_fail or self._director.holding or self._director.uncollected),
        )
        self._run.checkpoints.append(point)
        self._run.line(now(), "world", f"still after {what}" if not why_not else f"not still: {why_not}")
        if why_not or may_fail:
            return
        if number and (probe or (self._plan.faults and self._director.is_over)):
            point.restless = await self._probe(point, is_last=probe or self._is_last)

    async def _settle(self, patience: float = PATIENCE) -> str:
        """Wait until nothing stirs; why not, if it never comes to that."""
        until, at_last = now() + patience, now() + LONGEST
        step = 0.02
        while True:
            await self._pause(step)
            while self._orders:
                await self._obey(*self._orders.popleft())
                step = 0.02
            self._restart_ended()
            self._count_leaders()
            why = self._why_busy()
            if now() > at_last:
                return why or "it is never still"
            if not why:
                waits = [each.longest_wait(SEEN, self._stirred) for each in self._processes]
                wait = max(waits, default=0.0)
                if not wait:
                    return ""
                if now() > until:
                    return "something is looked at again and again, and each time there is something to do"
                step = wait + 0.01
                continue
            if self._director.is_busy or self._director.holding:
                until = now() + patience
                self._stirred += 1
            elif now() > until:
                return why
            elif self._director.uncollected and now() > until - patience + 30:
                return ""  # it may be waiting for just that
            step = min(1.0, step * 1.5)

    def _count_leaders(self) -> None:
        leading = [str(each.number) for each in self._processes if self._elects and each.is_leading]
        if len(leading) > 1 and not self._run.overlaps:
            self._run.overlaps.append(f"processes {' and '.join(leading)} lead at {now():.1f} s")

    def _why_busy(self) -> str:
        if self._director.is_busy or (self._is_last and self._director.holding):
            return "a fault goes on"
        if self._collector.is_busy and not self._collector.is_blocked:
            return "garbage is to be collected"
        if why := self._built_in.why_busy():
            return why
        if self._elects:
            led = {each.make for each in self._processes if each.is_leading}
            if not led or {each.make for each in self._processes} - led:
                return "nobody leads"
        return next(filter(None, (process.why_busy() for process in self._processes)), "")

    async def _probe(self, point: Checkpoint, *, is_last: bool) -> list[str]:
        """What is written though nothing has changed: after a while, after a long one, after a restart.

        The restart comes a step later: what is wrong in the operator's memory must have time to show.
        """
        if self._over_at is None:
            self._over_at = point.step
            if found := await self._later(is_whole=not self._plan.faults and point.step == 1):
                return found
        if self._is_probed or not (is_last or point.step > self._over_at):
            return []
        self._is_probed = not is_last
        self._over_at = None if is_last else self._over_at
        if any(process.is_starved for process in self._processes):
            return []  # one that begins anew needs to see all
        known = len(self._run.effects)
        await self.restart()
        return await self._stirs(_RESTARTED, known)

    async def _later(self, *, is_whole: bool) -> list[str]:
        for name, seconds in _PROBES:
            if seconds > _SHORT and any(process.is_starved for process in self._processes):
                break  # by then it may give up on what it never sees, as it may where a view stands still
            known = len(self._run.effects)
            await self._go_on(seconds, is_whole=is_whole)
            self.look_at_all()
            if found := await self._stirs(name, known):
                return found
        return []

    async def _go_on(self, seconds: float, *, is_whole: bool) -> None:
        loop = asyncio.get_running_loop()
        if is_whole or seconds <= _SHORT:
            requests, looks = self._run.requests, len(self._run.looks)
            await self.let_pass(seconds)
            # Watches are opened again and again, and keys looked at: that is no load, and no restlessness.
            self._run.requests = requests
            self._run.looks[looks:] = [look for look in self._run.looks[looks:] if look.error]
        elif self._elects or self._built_in.are_there or not isinstance(loop, VirtualTimeLoop):
            # Leases and nodes would be given up for dead: only the calendar moves.
            for clock in (self._clock, *(process.clock for process in self._processes)):
                clock.step(seconds)
        else:
            self._director.leap()
            loop.leap(seconds)

    async def _stirs(self, when: str, known: int) -> list[str]:
        """What was asked for since so many effects were known, when all is still again."""
        why_not = await self._settle(120.0)
        effects = self._run.effects[known:]
        if when != _SOON:  # it may ask, for it has forgotten that nothing would change
            effects = [effect for effect in effects if effect.is_done]
        found = [f"{when}: {effect.at.what}" for effect in effects]
        return [*found, f"{when}: {why_not}"] if why_not else found

    # ---- by hand (``lab.py``)

    def transport(self) -> Loopback:
        return self._server.transport()

    async def host(self, make: Callable[[], Subject]) -> None:
        """Run one more operator."""
        for _ in range(self._plan.replicas):
            self._start(make)

    async def settle(self, patience: float) -> str:
        return await self._settle(patience)

    async def probe(self) -> list[str]:
        if self._director.uncollected:
            self._director.collect()
            await self._settle()
        if found := await self._later(is_whole=not self._elects):  # renewals of an hour take their time
            return found
        known = len(self._run.effects)
        await self.restart()
        return await self._stirs(_RESTARTED, known)

    # ---- processes

    def _start(
        self,
        make: Callable[[], Subject] | None = None,
        *,
        past: Callable[[], Loopback] | None = None,
        fault: Travel | None = None,
    ) -> Process:
        self._started += 1
        seam = Seam(self._server.transport(), self._started, self._director)
        seam.token = self._token
        process = Process(
            self._started,
            make or self._make,
            seam,
            LoopClock(self._clock.beginning),
            self._run,
            stirred=lambda: self._stirred,
            elects=self._elects,
            isolation=self._isolation,
        )
        self._processes.append(process)
        if past is not None and fault is not None:
            seam.is_behind, seam.old = True, past()
            seam.old_resources, seam.is_old_allowed = fault.resources, fault.allowed
        process.is_starved = any(isinstance(fault, Starve) for fault in self._plan.faults)
        here = machine.set(self._paces.setdefault(seam, Pace()))
        process.start()
        machine.reset(here)
        self._watch_over(process)
        self._run.line(now(), f"operator {process.number}", "starts")
        return process

    async def _start_in_the_past(self, make: Callable[[], Subject], fault: Travel) -> None:
        """Start a process that sees how it was, for a while; its watches then go on from there."""
        store = WorldStore(self._store.at(self._store.revision - fault.back))
        old = ApiServer(clock=self._clock, source=_source(), token=_SHOWN, store=store)
        await old.__aenter__()
        seam = self._start(make, past=old.transport, fault=fault).seam
        self.spawn(self._come_back(seam, fault, old))

    async def _come_back(self, seam: Seam, fault: Travel, old: ApiServer) -> None:
        try:
            await asyncio.sleep(fault.seconds)
            seam.old = None
            seam.cut_views(fault.resources)
            await asyncio.sleep(0.05)  # they have noticed, before the server goes
        finally:
            await old.__aexit__(None, None, None)
            seam.is_behind = False

    async def _obey(self, seam: Seam, fault: Crash | Travel) -> None:
        process = await self._kill(seam)
        if process is None:
            return
        if isinstance(fault, Travel):
            await asyncio.sleep(1.0)
            await self._start_in_the_past(process.make, fault)
            return
        await self._director.act(fault.down, USER)
        await asyncio.sleep(fault.away)
        self._start(process.make)

    # ---- what faults may ask for

    async def _take(self, step: Create | Change | Delete) -> int:
        return await self._user.act(step)

    def _to_look_at(self) -> Iterable[tuple[str, Place]]:
        for record in self._store.snapshot().records:
            resource = self._stored.get(record.place.resource)
            if resource is not None and record.place not in self._beginning:
                yield f"{resource.kind}.{resource.group}", record.place

    def _find(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        resource = self._resources.get((api_version, kind))
        if resource is None:
            return None
        record = self._store.get(Place(resource.stored, namespace if resource.namespaced else "", name))
        return None if record is None else msgspec.json.decode(record.data)

    def pace_clocks(self, seam: Seam, *, ahead: float = 0.0, pace: float = 1.0) -> bool:
        self._paces[seam].change(now(), ahead=ahead, pace=pace)
        return True

    def pause(self, seam: Seam) -> None:
        """Have nothing fall due in a process."""
        self._paces[seam].pause()

    def resume(self, seam: Seam) -> None:
        """Have fall due what should have since it was paused."""
        self._paces[seam].resume()

    async def compact(self) -> None:
        await self._store.compact(self._store.revision)

    def fill_disk(self, is_full: bool) -> None:
        self._store.is_full = is_full

    async def guard(self, resource: str, fault: Unadmitted) -> Callable[[], Awaitable[None]]:
        """Have a webhook be asked before writes of a resource, in vain; gives what takes it away."""
        self._guards += 1
        name = f"guard-{self._guards}.proof.setpoint.dev"
        self._server.registry.admission._caller = _Deaf(is_slow=fault.is_slow)  # noqa: SLF001 - no sockets here
        await self._insist(Create(_webhook(name, resource, fault)))

        async def unguard() -> None:
            await self._insist(Delete(_ADMISSION, _WEBHOOKS, name))

        return unguard

    async def _insist(self, step: Create | Delete) -> None:
        """Have something done that is part of a fault, also while another fault goes on."""
        token = actor.set("other")
        try:
            while await self._user.act(step) >= 500:  # noqa: ASYNC110 - nobody tells when it is over
                await asyncio.sleep(1.0)
        finally:
            actor.reset(token)

    def block_collector(self, is_blocked: bool) -> None:
        if is_blocked:
            self._collector.is_blocked = True
        else:
            self._collector.unblock()

    def template(self, resource: str, namespace: str, name: str) -> str:
        return self._collector.template(resource, namespace, name)

    def called(self, id_: str) -> str:
        return in_words(id_, self._collector.names)

    @property
    def revision(self) -> int:
        return self._store.revision + self._outside_writes

    # ---- what happened

    def state(self, *, whole: bool = False) -> State:
        """How it is; what the built-in controllers have made is theirs, and told of only if asked for."""
        clouds = {cloud.name: cloud.things for cloud in self._prepared.clouds}
        records = self._store.snapshot().records
        if not whole:
            records = tuple(each for each in records if each.place not in self._theirs)
        return canonical(
            records,
            clouds,
            beginning=self._beginning,
            masked=self._prepared.masked,
            defaults=None
            if whole
            else self._prepared.defaults,  # who asks for all wants to see what is stored
        )

    def _written(self, by: str, event: Event, now: float) -> None:
        record = event.record
        self._built_in.told(record.place.resource, now)
        if event.type == "ADDED":
            is_theirs = by == CONTROLLERS and record.place.resource != CLAIMS
            (self._theirs.add if is_theirs else self._theirs.discard)(record.place)
        if by == CONTROLLERS and record.place.resource == "nodes":
            pass  # a node says all the time that it is well
        elif record.place.resource not in ("events", "leases.coordination.k8s.io"):
            self._stirred += 1
            before = None if event.previous is None else event.previous.data
            self._run.writes.append(
                Written(now, by, event.type, *record.place, record.revision, record.data, before)
            )
            self._run.line(now, "server", f"{event.type} {' '.join(record.place)} (by {by})")
        self._collector.told(event)

    def _stir(self) -> None:
        self._stirred += 1

    async def _collect(self, method: str, place: Place, body: Any) -> None:
        resource = self._stored.get(place.resource)
        if resource is None:
            return
        token = actor.set(COLLECTOR)
        try:
            status = await self._user.ask(method, resource, place.namespace, place.name, body)
        finally:
            actor.reset(token)
        if status >= 500:
            self._collector.wake()  # a fault goes on: it tries again


class _User:
    """Who asks the server straight, and is never disturbed."""

    def __init__(
        self, server: ApiServer, resources: Mapping[tuple[str, str], Resource] | None = None
    ) -> None:
        self._transport = server.transport()
        self._server = server
        self._resources = resources
        self.refusal = ""  # what the server said when it last refused something

    def _resource(self, api_version: str, kind: str) -> Resource:
        known = self._resources
        if known is None:
            known = {(each.api_version, each.kind): each for each in self._server.registry.resources.all()}
        if (api_version, kind) not in known:
            raise ValueError(
                f"the server has no {kind} of {api_version}: is its definition among the operator's?"
            )
        return known[api_version, kind]

    async def act(self, step: Create | Change | Delete) -> int:
        match step:
            case Create(object=obj):
                resource = self._resource(obj["apiVersion"], obj["kind"])
                return await self.ask("POST", resource, obj["metadata"].get("namespace", "default"), "", obj)
            case Change():
                resource = self._resource(step.api_version, step.kind)
                name = f"{step.name}/{step.subresource}" if step.subresource else step.name
                return await self.ask("PATCH", resource, step.namespace, name, step.patch)
            case Delete():
                resource = self._resource(step.api_version, step.kind)
                options = {"propagationPolicy": "Background"}
                return await self.ask("DELETE", resource, step.namespace, step.name, options)

    async def ask(self, method: str, resource: Resource, namespace: str, name: str, body: Any) -> int:
        path = f"/apis/{resource.group}" if resource.group else "/api"
        path += f"/{resource.version}"
        if resource.namespaced:
            path += f"/namespaces/{namespace}"
        path += f"/{resource.plural}" + (f"/{name}" if name else "")
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": content, "User-Agent": "user", "Accept": "application/json"}
        response = await self._transport(transport.Request(method, path, headers, msgspec.json.encode(body)))
        if response.status >= 400:
            self.refusal = msgspec.json.decode(await response.read()).get("message", "")
        await response.close()
        return response.status


_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_WEBHOOKS: Final = "ValidatingWebhookConfiguration"


def _webhook(name: str, resource: str, fault: Unadmitted) -> dict[str, Any]:
    plural, _, group = resource.partition(".")
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural, f"{plural}/*"],
    }
    hook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": fault.policy,
        "clientConfig": {"url": f"https://{name}/"},
        "rules": [rule],
    }
    return {"apiVersion": _ADMISSION, "kind": _WEBHOOKS, "metadata": {"name": name}, "webhooks": [hook]}


class _Deaf(Caller):
    """Asks webhooks that nobody reaches, or that never answer; in the words in which Go says so."""

    def __init__(self, *, is_slow: bool) -> None:
        super().__init__()
        self._is_slow = is_slow

    async def call(self, target: Target, body: bytes, seconds: int, *, agent: str = "") -> bytes:
        del body, agent
        posting = f'Post "{target.url}?timeout={seconds}s"'
        if self._is_slow:
            await asyncio.sleep(seconds)
            raise CallError(f"{posting}: context deadline exceeded")
        raise CallError(f"{posting}: dial tcp {target.address}: connect: connection refused")


def _identity(obj: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = obj["metadata"]
    return obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"]


def _given(begin: Snapshot, identities: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The objects of these names, by their places."""
    wanted = set(identities)
    wanted |= {(version, kind, "default", name) for version, kind, namespace, name in wanted if not namespace}
    found = ((record.place, msgspec.json.decode(record.data)) for record in begin.records if wanted)
    return {
        f"{place.resource} {place.namespace}/{place.name}": obj
        for place, obj in found
        if _identity(obj) in wanted
    }


def _check(subject: Subject, server: ApiServer, clock: LoopClock) -> None:
    """What cannot be added to a manager cannot be run: it says so itself, before any run."""
    client = Client(transport=server.transport(), field_manager=subject.name)
    subject.add_to(Manager(client=client, name=subject.name, clock=clock))


def _source() -> random.Random:
    """Of names and uids, where no run depends on them."""
    return random.Random(0)  # noqa: S311 - no secret


def _is_established(store: WorldStore, name: str) -> bool:
    record = store.get(Place("customresourcedefinitions.apiextensions.k8s.io", "", name))
    conditions = (
        [] if record is None else msgspec.json.decode(record.data).get("status", {}).get("conditions", [])
    )
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _note(context: dict[str, Any], run: Run) -> None:
    """An error that nobody awaited; that a thread was told to end when its process was killed is none."""
    if not isinstance(context.get("exception"), CancelledError):
        run.errors.append(_told(context))


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return (
        f"{context.get('message', '')}: {type(error).__name__}: {error}"
        if error
        else str(context.get("message"))
    )
