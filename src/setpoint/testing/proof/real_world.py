"""Runs one plan on a real cluster: the operator in this process, the server and its controllers out there.

The same plan, the same faults, the same trace as in ``world.py``; what differs is that time is real, so that
stillness is a matter of waiting, and that two runs are never the same to the last byte.

Promises:

1. Each run has a namespace of its own, which is gone afterwards, whatever came of the run; nothing else is
   written to (``confined.py``).
2. After each step the run waits until nothing is at work, due within seconds, or to be collected, and nothing
   has been written for a while.
3. When the faults are over it is shown that nothing stirs: everything is looked at again, and the operator is
   restarted.  The calendar cannot be put forward: the server's would not follow.

Started by ``real_proof.py``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from setpoint.api.names import Resource
from setpoint.client.client import Client
from setpoint.errors import NotFound, SetpointError
from setpoint.kube.core.v1 import Namespace
from setpoint.net.transport import Request as HttpRequest
from setpoint.net.transport import Response, Transport
from setpoint.server.registry.crd.fill import Fill
from setpoint.server.storage.protocol import Place
from setpoint.testing.asked import Asked
from setpoint.testing.isolation import Allowed, Refused, exempt
from setpoint.testing.proof.any_world import AnyWorld, may_step_fail, now
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.confined import Bounds, Confined, Told
from setpoint.testing.proof.director import Director
from setpoint.testing.proof.mirror import QUIET, Mirror
from setpoint.testing.proof.plans import (
    Change,
    Crash,
    Create,
    Delete,
    Plan,
    Rotate,
    Starve,
    Step,
    Travel,
    Unadmitted,
)
from setpoint.testing.proof.process import Process, Subject
from setpoint.testing.proof.seam import Seam
from setpoint.testing.proof.states import Masked, canonical
from setpoint.testing.proof.store import actor
from setpoint.testing.proof.trace import USER, Checkpoint, Run, State
from setpoint.testing.virtual_time import LoopClock

LABEL: Final = "proof.setpoint.dev/run"
PREFIX: Final = "setpoint-proof-"
_STILL = 1.0  # seconds without a write, after which it is still
_PATIENCE = 90.0  # seconds after which what is not still never will be
_SEEN = 5.0  # who is looked at again within this is waited for
_LONGEST = 600.0  # seconds, with all that faults may take


@dataclass
class Ground:
    """What does not change from run to run: the cluster, and the operator."""

    make: Callable[[], Subject]
    way: Transport
    client: Client  # the administrator's, of the whole cluster
    resources: dict[tuple[str, str], Resource]  # by group and plural, in the version that the server prefers
    primaries: frozenset[str]
    inside: str = "default"  # the namespace that the steps speak of
    clouds: tuple[Cloud, ...] = ()
    masked: Masked = frozenset()
    followed: frozenset[str] | None = None  # resources in which anything is known to happen; None: all
    strayed: list[str] = field(default_factory=list)
    allowed: Allowed = field(default_factory=Allowed)  # what the operator may reach besides the cluster
    refused: Refused = field(default_factory=dict)  # what it tried to
    proof: str = field(default_factory=lambda: secrets.token_hex(4))  # of several on one cluster, which
    defaults: Mapping[str, Fill] = field(default_factory=dict)  # of the status of its kinds, by resource

    @asynccontextmanager
    async def namespace(self) -> AsyncIterator[Bounds]:
        """A namespace for one run."""
        name = f"{PREFIX}{self.proof}-{secrets.token_hex(4)}"
        made = Namespace()
        made.metadata.name, made.metadata.labels = name, {LABEL: self.proof}
        await self.client.create(made)
        try:
            yield Bounds(self.inside, name, self.resources)
        finally:
            with suppress(NotFound):
                await self.client.delete(Namespace, name)

    def to_follow(self) -> list[Resource]:
        return [
            each
            for each in self.resources.values()
            if each.namespaced
            and {"list", "watch"} <= {*each.verbs}
            and str(each) not in QUIET
            and (self.followed is None or str(each) in self.followed)
        ]

    async def run(self, plan: Plan, *, reference: Run | None = None, probe_always: bool = False) -> Run:
        """Carry out one plan."""
        run, began = Run(plan), now()
        async with self.namespace() as bounds:
            try:
                await RealWorld(self, plan, run, bounds).carry_out(reference, probe_always=probe_always)
            finally:
                self.strayed += bounds.strayed
                run.lines[:] = [line._replace(time=line.time - began) for line in run.lines]
        return run

    async def is_operated(self, step: Create) -> str:
        """Who sees to such an object already, without our doing; "" if nobody does."""
        run = Run(Plan((step,)))
        async with self.namespace() as bounds:
            world = RealWorld(self, run.plan, run, bounds)
            async with world.running():
                await world.act((step,), USER)
                await asyncio.sleep(2 * _STILL)
                found = next((each for each in world.mirror.records()), None)
                return "" if found is None else _other_manager(found.data)


class RealWorld(AnyWorld):
    """One run, on a real cluster."""

    def __init__(self, ground: Ground, plan: Plan, run: Run, bounds: Bounds) -> None:
        super().__init__(ground.make, ground.clouds, plan, run, ground.allowed, ground.refused)
        self._ground = ground
        self._bounds = bounds
        self.mirror = Mirror(ground.make().name)
        self._director = Director(plan, run, self)
        self._kinds = {(each.api_version, each.kind): each for each in ground.resources.values()}

    # ---- the run

    async def carry_out(self, reference: Run | None, *, probe_always: bool) -> None:
        """Take the steps of the plan, one after the other, and look after each."""
        async with AsyncExitStack() as stack:
            if any(isinstance(fault, Rotate) for fault in self._plan.faults):
                stack.enter_context(self.with_token())
            await stack.enter_async_context(self.running())
            self._start()
            await self._checkpoint(0, "start", probe=False)
            for number, step in enumerate(self._plan.steps, 1):
                if self._is_probed and self._plan.is_racy and reference and self._is_of_primary(step):
                    continue
                await self._let_go(step)
                await self.take(step)
                await self._checkpoint(number, str(step), probe=probe_always)
                if not self._run.checkpoints[-1].is_settled:
                    break
                if reference is not None and self._is_as_ever(reference):
                    break

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the namespace for the time of the block; what was started in it ends with it."""
        for cloud in self._ground.clouds:
            cloud.reset()
            cloud.tell = partial(self._written_outside, cloud.name)
        self._observer = Client(transport=Confined(self._ground.way, self._bounds), on_warning=_unheard)
        self._user = Confined(self._ground.way, self._bounds, self._told)
        ready, following = [], []
        for resource in self._ground.to_follow():
            ready.append(asyncio.Event())
            following.append(asyncio.create_task(self.mirror.watch(self._observer, resource, ready[-1])))
        try:
            for each in ready:
                await each.wait()
            yield
        finally:
            for process in self._processes:
                await process.kill()
            left = [*following, *self._spawned]
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
            await self._release()

    async def _release(self) -> None:
        """Take off what would keep the namespace from going: who it waits for has been killed."""
        for place, each in list(self.mirror.live.items()):
            resource = self._ground.resources.get(_group_and_plural(place.resource))
            if resource is not None and msgspec.json.decode(each.record.data)["metadata"].get("finalizers"):
                with suppress(SetpointError):
                    await self._ask("DELETE", resource, place.name, {})
                    await self._ask("PATCH", resource, place.name, {"metadata": {"finalizers": None}})

    async def _let_go(self, step: Step) -> None:
        """Bring what was held back, unless this step is what it waits for: else it would come too late."""
        if not self._director.holding:
            return
        about = ""
        if isinstance(step, Change | Delete) and (found := self._kinds.get((step.api_version, step.kind))):
            about = f"{found} {step.name}"
        for process in self._processes:
            for view in process.seam.views:
                view.release(about)
        if not self._director.holding:
            last = self._run.checkpoints[-1]
            await self._checkpoint(last.step, last.what, probe=False)

    def _is_primary(self, api_version: str, kind: str) -> bool:
        return str(self._kinds.get((api_version, kind))) in self._ground.primaries

    async def _checkpoint(self, number: int, what: str, *, probe: bool) -> None:
        began, looks, requests = now(), len(self._run.looks), self._run.requests
        self._is_last = number == len(self._plan.steps)
        may_fail = may_step_fail(self._plan, number)
        why_not = await self._settle()
        self._note_writes()
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
            bool(may_fail or self._director.holding),
        )
        self._run.checkpoints.append(point)
        self._run.line(now(), "world", f"still after {what}" if not why_not else f"not still: {why_not}")
        if not (why_not or may_fail) and number and (probe or (self._plan.faults and self._director.is_over)):
            point.restless = await self._probe(point, is_last=probe or self._is_last)
            self._note_writes()

    async def _settle(self, patience: float = _PATIENCE) -> str:
        """Wait until nothing stirs; why not, if it never comes to that."""
        until, at_last = now() + patience, now() + _LONGEST
        still_since = now()
        while True:
            await self._pause(0.05)
            while self._orders:
                await self._obey(*self._orders.popleft())
            self._restart_ended()
            if self._bounds.strayed:
                return f"it was kept from what is not its own: {self._bounds.strayed[0]}"
            why = self._why_busy()
            if not why:
                wait = max(
                    (each.longest_wait(_SEEN, self.mirror.stirred) for each in self._processes), default=0
                )
                if wait:
                    why = "something is looked at again and again, and each time there is something to do"
            moment = now()
            if why:
                still_since = moment
            still_since = max(still_since, self.mirror.stirred_at)
            if moment - still_since >= _STILL:
                return ""
            if self._director.is_busy or self._director.holding:
                until = moment + patience
            if moment > min(until, at_last):
                return why or "it is never still"

    def _why_busy(self) -> str:
        if self._director.is_busy or (self._is_last and self._director.holding):
            return "a fault goes on"
        if garbage := self.mirror.garbage():
            return f"{garbage} is garbage, and nobody collects it: does kube-controller-manager run?"
        return next(filter(None, (process.why_busy() for process in self._processes)), "")

    async def _probe(self, point: Checkpoint, *, is_last: bool) -> list[str]:
        """What is written though nothing has changed: after another look, after a restart."""
        if self._over_at is None:
            self._over_at = point.step
            await asyncio.sleep(_STILL)
            self.look_at_all()
            if found := await self._stirs("a little later", self._run.effects):
                return found
        if self._is_probed or not (is_last or point.step > self._over_at):
            return []
        self._is_probed = not is_last
        self._over_at = None if is_last else self._over_at
        if any(process.is_starved for process in self._processes):
            return []  # one that begins anew needs to see all
        await self.restart()
        return await self._stirs("after a restart", None)

    async def _stirs(self, when: str, asked: list[Any] | None) -> list[str]:
        """After a restart it may ask, for it has forgotten that nothing would change; else it may not."""
        known = len(self._run.effects)
        why_not = await self._settle()
        effects = self._run.effects[known:]
        if asked is None:
            effects = [effect for effect in effects if effect.is_done]
        found = [f"{when}: {effect.at.what}" for effect in effects]
        return [*found, f"{when}: {why_not}"] if why_not else found

    # ---- by hand (``real_lab.py``)

    def transport(self) -> Transport:
        return self._user

    async def follow(self, resources: Iterable[Resource]) -> None:
        """Follow more than there was in the beginning."""
        ready: list[asyncio.Event] = []
        for resource in resources:
            self._kinds.setdefault((resource.api_version, resource.kind), resource)
            ready.append(asyncio.Event())
            self.spawn(self.mirror.watch(self._observer, resource, ready[-1]))
        for each in ready:
            await each.wait()

    async def host(self, make: Callable[[], Subject]) -> None:
        """Run one more operator."""
        self.mirror.manager = make().name
        self._start(make)

    async def settle(self, patience: float) -> str:
        del patience  # of a world in which an hour takes no time
        found = await self._settle()
        self._note_writes()
        return found

    async def probe(self) -> list[str]:
        await asyncio.sleep(_STILL)
        self.look_at_all()
        if found := await self._stirs("a little later", self._run.effects):
            return found
        await self.restart()
        return await self._stirs("after a restart", None)

    # ---- processes

    def _start(self, make: Callable[[], Subject] | None = None) -> Process:
        self._started += 1
        by = f"operator {self._started}"
        way = Confined(self._ground.way, self._bounds, self._told, is_disturbed=True)
        seam = Seam(_exempted(way), self._started, self._director)
        seam.token = self._token
        began = datetime.now(UTC) - timedelta(seconds=now())
        process = Process(
            self._started,
            make or self._make,
            seam,
            LoopClock(began),
            self._run,
            stirred=lambda: self.mirror.stirred,
            elects=False,
            isolation=self._isolation,
        )
        self._processes.append(process)
        process.is_starved = any(isinstance(fault, Starve) for fault in self._plan.faults)
        process.start()
        self._watch_over(process)
        self._run.line(now(), by, "starts")
        return process

    async def _obey(self, seam: Seam, fault: Crash | Travel) -> None:
        process = await self._kill(seam)
        if process is None:
            return
        if isinstance(fault, Crash):
            await self._director.act(fault.down, USER)
            await asyncio.sleep(fault.away)
        self._start(process.make)

    # ---- what faults may ask for

    async def _take(self, step: Create | Change | Delete) -> int:
        match step:
            case Create(object=obj):
                return await self._ask("POST", self._resource(obj["apiVersion"], obj["kind"]), "", obj)
            case Change():
                name = f"{step.name}/{step.subresource}" if step.subresource else step.name
                return await self._ask("PATCH", self._resource(step.api_version, step.kind), name, step.patch)
            case Delete():
                options = {"propagationPolicy": "Background"}
                return await self._ask(
                    "DELETE", self._resource(step.api_version, step.kind), step.name, options
                )

    def _resource(self, api_version: str, kind: str) -> Resource:
        found = self._kinds.get((api_version, kind))
        if found is None:
            raise ValueError(
                f"the cluster has no {kind} of {api_version}: is its definition among the operator's?"
            )
        if not found.namespaced:
            raise ValueError(
                f"{found} belong to no namespace, and on a cluster a plan keeps to one: prove it in process"
            )
        return found

    async def _ask(self, method: str, resource: Resource, name: str, body: Any) -> int:
        path = f"/apis/{resource.group}" if resource.group else "/api"
        path += f"/{resource.version}/namespaces/{self._ground.inside}/{resource.plural}"
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": content, "User-Agent": "user", "Accept": "application/json"}
        target = f"{path}/{name}" if name else path
        response = await self._user(HttpRequest(method, target, headers, msgspec.json.encode(body)))
        await response.close()
        return response.status

    def _to_look_at(self) -> Iterable[tuple[str, Place]]:
        for place in self.mirror.requests():
            resource = self._ground.resources.get(_group_and_plural(place.resource))
            if resource is not None:
                yield f"{resource.kind}.{resource.group}", place

    def _find(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        found = self.mirror.live.get(Place(str(self._resource(api_version, kind)), namespace, name))
        return None if found is None else msgspec.json.decode(found.record.data)

    async def compact(self) -> None:
        self._bounds.compacted = self.mirror.version

    def fill_disk(self, is_full: bool) -> None:
        self._bounds.is_full = is_full

    def pause(self, seam: Seam) -> None:
        raise NotImplementedError(f"{seam}: one process runs here, and nobody takes over while it is paused")

    def resume(self, seam: Seam) -> None:
        raise NotImplementedError(f"{seam} was never paused")

    def block_collector(self, is_blocked: bool) -> None:
        raise NotImplementedError("the collector of a real cluster is not ours to stop")

    async def guard(self, resource: str, fault: Unadmitted) -> Callable[[], Awaitable[None]]:
        raise NotImplementedError(f"{fault}: a webhook for {resource} would be of the whole cluster")

    def template(self, resource: str, namespace: str, name: str) -> str:
        return self.mirror.template(resource, namespace, name)

    @property
    def revision(self) -> int:
        return self.mirror.writes + self._outside_writes

    # ---- what happened

    def state(self, *, whole: bool = False) -> State:
        """How it is; what the cluster's own controllers have made is told of only if asked for."""
        clouds = {cloud.name: cloud.things for cloud in self._ground.clouds}
        return canonical(
            self.mirror.records(whole=whole),
            clouds,
            masked=self._ground.masked,
            defaults=None if whole else self._ground.defaults,
        )

    def _told(self, asked: Asked, answer: Told) -> None:
        self.mirror.told(actor.get(), asked, answer)

    def _note_writes(self) -> None:
        for write in self.mirror.take_writes():
            self._run.writes.append(write)
            self._run.line(
                write.time,
                "server",
                f"{write.type} {write.resource} {write.namespace} {write.name} (by {write.by})",
            )
        self._run.lines.sort(key=lambda line: line.time)

    def _stir(self) -> None:
        self.mirror.stirred += 1


def _exempted(way: Transport) -> Transport:
    """A way to the API server for an operator that may connect to nothing else."""

    async def send(request: HttpRequest) -> Response:
        with exempt():
            return await way(request)

    return send


def _unheard(_text: str) -> None:
    """What a server warns of is for who runs the operator, and not for who looks on."""


def _other_manager(data: bytes) -> str:
    """Who has written to an object that the user has only just made."""
    metadata = msgspec.json.decode(data)["metadata"]
    managers = {each.get("manager", "") for each in metadata.get("managedFields") or ()}
    return ", ".join(sorted(managers - {"user"}))


def _group_and_plural(resource: str) -> tuple[str, str]:
    plural, _, group = resource.partition(".")
    return group, plural
