"""What a run does in any world, in virtual time or on a real cluster: processes die, steps are taken.

``world.py`` and ``real_world.py`` say how a process is started, how a step is asked for and when all is
still.  What a fault may ask for is ``director.Stage``.
"""

from __future__ import annotations

import asyncio
import contextvars
import tempfile
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from setpoint.controller.result import Request
from setpoint.server.storage.protocol import Place
from setpoint.testing.isolation import Allowed, Isolation, Refused
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.director import Director
from setpoint.testing.proof.pace import world_time
from setpoint.testing.proof.plans import (
    MARK,
    AnyFault,
    Change,
    Crash,
    Create,
    Delete,
    Freeze,
    Linger,
    Pass,
    Plan,
    Step,
    Travel,
)
from setpoint.testing.proof.process import Process, Subject
from setpoint.testing.proof.seam import Seam, Token
from setpoint.testing.proof.store import actor
from setpoint.testing.proof.trace import OTHER, USER, Run, Written

_HAIR: Final = 1e-6  # seconds, less than anything waits
_AGAIN: Final = 1.0  # seconds between two starts of what ends as soon as it starts


class AnyWorld(ABC):
    """One run."""

    def __init__(
        self,
        make: Callable[[], Subject],
        clouds: Sequence[Cloud],
        plan: Plan,
        run: Run,
        allowed: Allowed,
        *refused: Refused,
    ) -> None:
        self._make = make
        self._clouds = clouds
        self._plan = plan
        self._run = run
        self._isolation = Isolation(allowed, run.external, *refused)
        self._director: Director  # made by who is a whole world
        self._processes: list[Process] = []
        self._started = 0
        self._orders: deque[tuple[Seam, Crash | Travel]] = deque()
        self._ordered = asyncio.Event()
        self._fallen = asyncio.Event()  # a process has died, or is to
        self._spawned: set[asyncio.Task[None]] = set()
        self._over_at: int | None = None  # the step after which the faults were over
        self._token: Token | None = None
        self._is_probed = False
        self._is_last = False
        self._outside_writes = 0
        self._context = contextvars.copy_context()

    @property
    @abstractmethod
    def revision(self) -> int:
        """How much was written so far."""

    @abstractmethod
    def _start(self, make: Callable[[], Subject] | None = None) -> Process:
        """Start one more process: of this operator, or of the one that is proven."""

    @abstractmethod
    def _stir(self) -> None:
        """Something has changed."""

    @abstractmethod
    async def _take(self, step: Create | Change | Delete) -> int:
        """Ask the server for it, undisturbed; the status of its answer."""

    @abstractmethod
    def _is_primary(self, api_version: str, kind: str) -> bool:
        """Whether the operator is for objects of this kind."""

    @abstractmethod
    def _find(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object as it is; None if there is none."""

    @abstractmethod
    def _to_look_at(self) -> Iterable[tuple[str, Place]]:
        """All that a controller may be for: ``Kind.group``, and where it is."""

    # ---- the run

    def _is_of_primary(self, step: Step) -> bool:
        """Whether it makes or changes an object that the operator is for."""
        match step:
            case Create(object=obj):
                return self._is_primary(obj["apiVersion"], obj["kind"])
            case Change():
                return self._is_primary(step.api_version, step.kind)
            case _:
                return False

    def _is_as_ever(self, reference: Run) -> bool:
        """Whether nothing is left of the faults, so that all that follows would be as without them."""
        last = self._run.checkpoints[-1]
        if not last.is_settled or last.restless:
            return True  # it has failed, and what follows follows from that
        if not self._is_probed or self._plan.is_racy:
            return False
        return any(point.step == last.step and point.state == last.state for point in reference.checkpoints)

    @contextmanager
    def with_token(self) -> Iterator[None]:
        """Have processes that are started in the block show a token, which can be rotated."""
        with tempfile.TemporaryDirectory() as folder:
            self._token = Token(Path(folder) / "token")
            yield

    # ---- by hand (``lab.py``, ``real_lab.py``)

    async def let_pass(self, seconds: float) -> None:
        """Let time pass; who dies meanwhile is started again."""
        until = now() + seconds
        while (left := until - now()) > _HAIR:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._fallen.wait()
            self._fallen.clear()
            while self._orders:  # it may be away for longer than this lasts
                self._director.begin(self._obey(*self._orders.popleft()))
            if self._restart_ended():
                await asyncio.sleep(max(0.0, min(_AGAIN, until - now())))

    def stepped(self) -> None:
        """The user is about to do something."""
        self._director.stepped()

    async def restart(self) -> None:
        for process in list(self._processes):
            await self._replace(process)

    def place(self, faults: Iterable[AnyFault]) -> None:
        self._director.place(faults)

    async def freeze(self, fault: Freeze) -> None:
        self._director.freeze(fault)

    # ---- processes

    def crash(self, seam: Seam, fault: Crash | Travel) -> None:
        self._orders.append((seam, fault))
        self._ordered.set()
        self._fallen.set()

    @abstractmethod
    async def _obey(self, seam: Seam, fault: Crash | Travel) -> None:
        """Have a process die, and start again."""

    async def _kill(self, seam: Seam) -> Process | None:
        """Have the process of a seam die; None if it is gone already."""
        process = next((each for each in self._processes if each.seam is seam), None)
        if process is not None:
            self._run.line(now(), f"operator {process.number}", "dies")
            self._processes.remove(process)
            await process.kill()
        return process

    def _watch_over(self, process: Process) -> None:
        """Notice when a process ends that has just begun."""
        for task in process.tasks:
            task.add_done_callback(lambda _task: self._fallen.set())

    async def _replace(self, process: Process) -> None:
        await process.kill()
        self._processes.remove(process)
        self._start(process.make)

    def _restart_ended(self) -> bool:
        """Start again what has ended by itself, as a kubelet does; whether there was any."""
        ended = [each for each in self._processes if each.is_over and not each.seam.is_dead]
        for process in ended:
            if process.failure and process.failure not in self._run.errors:
                self._run.errors.append(process.failure)
            self._processes.remove(process)
            self._start(process.make).after = process.failure
        return bool(ended)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ordered.wait()
        self._ordered.clear()

    # ---- what faults may ask for

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # Faults strike in the operator's task, and their work must not die with it.
        task = asyncio.get_running_loop().create_task(work, context=self._context.copy())
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    async def take(self, step: Step) -> None:
        """Take a step of the plan, and note where the server would have none of it."""
        is_down = isinstance(step, Delete) and step.while_down
        # Who never sees some kind again could not even begin: that one runs on.
        stopped = [each for each in self._processes if is_down and not each.is_starved]
        for process in stopped:
            await process.kill()
            self._processes.remove(process)
        self._run.refused += await self.act((step,), USER)
        for process in stopped:
            self._start(process.make)

    async def act(self, steps: Iterable[Step], by: str) -> list[str]:
        """Have steps taken; which of them were refused.  That what is deleted is gone is no refusal."""
        token, refused = actor.set(by), []
        try:
            for step in steps:
                self._run.line(now(), by, str(step))
                if isinstance(step, Pass):
                    await asyncio.sleep(step.seconds)
                    continue
                status = await self._take(step)
                if status >= 400:
                    self._run.line(now(), by, f"refused with {status}: {step}")
                    if status != 404 or not isinstance(step, Delete):
                        refused.append(f"{step} ({status})")
        finally:
            actor.reset(token)
        return refused

    def is_there(self, step: Create) -> bool:
        """Whether there is an object of that name, and be it one that is being deleted."""
        obj, metadata = step.object, step.object["metadata"]
        place = metadata.get("namespace", "default"), metadata.get("name", "")
        return self._find(obj["apiVersion"], obj["kind"], *place) is not None

    def look_at_all(self) -> None:
        requests: dict[str, list[Request]] = {}
        for kind, place in self._to_look_at():
            requests.setdefault(kind, []).append(Request(place.namespace, place.name))
        for process in self._processes:
            process.look_at_all(requests)

    def step_clock(self, seam: Seam, seconds: float) -> None:
        for process in self._processes:
            if process.seam is seam:
                process.clock.step(seconds)

    def pace_clocks(self, seam: Seam, *, ahead: float = 0.0, pace: float = 1.0) -> bool:
        """Have the clocks of a process's machine jump ahead, and go at a pace; whether that can be done."""
        del seam, ahead, pace
        return False

    async def detain(self, fault: Linger) -> bool:
        """Put another program's finalizer on an object; whether it stands there."""
        metadata = self._metadata_of(fault)
        return "deletionTimestamp" not in metadata and await self._set_finalizers(
            fault, [*metadata.get("finalizers", ()), MARK]
        )

    def is_detained(self, fault: Linger, *, is_going: bool = False) -> bool:
        """Whether the finalizer stands on the object; and, if asked for, whether that is being deleted."""
        metadata = self._metadata_of(fault)
        return MARK in metadata.get("finalizers", ()) and ("deletionTimestamp" in metadata or not is_going)

    async def release(self, fault: Linger) -> bool:
        """Take the finalizer off again; whether that was done."""
        left = [each for each in self._metadata_of(fault).get("finalizers", ()) if each != MARK]
        return await self._set_finalizers(fault, left)

    def _metadata_of(self, fault: Linger) -> dict[str, Any]:
        found = self._find(fault.api_version, fault.kind, fault.namespace, fault.name)
        metadata: dict[str, Any] = {} if found is None else found["metadata"]
        return metadata

    async def _set_finalizers(self, fault: Linger, names: list[str]) -> bool:
        """Of the version that was read: who else changes them meanwhile is not overruled."""
        version = self._metadata_of(fault).get("resourceVersion")
        patch = {"metadata": {"finalizers": names or None, "resourceVersion": version}}
        step = Change(fault.api_version, fault.kind, fault.name, patch, fault.namespace)
        return version is not None and not await self.act((step,), OTHER)

    def starve(self) -> None:
        for process in self._processes:
            process.is_starved = True

    async def delete_lease(self, seam: Seam) -> bool:
        """Delete the Lease by which this process leads; whether there was one."""
        for process in self._processes:
            election = process.manager.election if process.seam is seam and process.manager else None
            if election is not None:
                lease = Delete("coordination.k8s.io/v1", "Lease", election.key.name, election.key.namespace)
                return not await self.act((lease,), OTHER)
        return False

    def rotate_token(self) -> None:
        if self._token is not None:
            self._token.rotate()

    def hide(self, what: str, seconds: float) -> bool:
        """Have what an effect has made outside not be found for a while; whether there is such a thing."""
        name, _, thing = what.partition(" ")[2].partition(" ")
        return any(cloud.hide(thing, seconds) for cloud in self._clouds if cloud.name == name)

    # ---- what happened

    def _written_outside(self, cloud: str, type_: str, id_: str, data: Mapping[str, Any]) -> None:
        self._outside_writes += 1
        self._stir()
        self._run.writes.append(
            Written(now(), actor.get(), type_, cloud, "", id_, self.revision, msgspec.json.encode(data), None)
        )
        self._run.line(now(), cloud, f"{type_} {self.called(id_)}")

    def called(self, id_: str) -> str:
        """What a thing outside is called in every run; by its id, where nobody knows whose uids there are."""
        return id_


def may_step_fail(plan: Plan, number: int) -> bool:
    """Whether the operator need not come to rest after this step, counted from 1."""
    step = plan.steps[number - 1] if 0 < number <= len(plan.steps) else None
    return isinstance(step, Change) and step.may_fail


def now() -> float:
    return world_time()
