"""Carries out a plan: at each effect and event, decides which faults strike, and has them do so.

Promises:

1. A fault strikes at its place and nowhere else, and is noted in ``run.fired``; one that finds no place does
   nothing, and the run says so.  So does one in which others act, and all that they ask for is refused.
2. Faults end: ``is_busy`` is true while one of them still holds something back.  What lasts for ever
   (``Starve``) is not waited for.
3. What was refused has not been done; what was lost has.  The operator is told as a transport tells it: that
   nothing was sent (``ConnectionFailed``), or that no answer came (``AnswerLost``).

Asked by ``seam.py``; what needs the world as a whole (to kill a process, to act as the user) it has
``world.py`` do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from setpoint.controller.worker import current_look
from setpoint.errors import ConnectionFailed
from setpoint.net.transport import Response
from setpoint.testing.asked import Asked
from setpoint.testing.proof.pace import world_time
from setpoint.testing.proof.plans import (
    Alter,
    AnyFault,
    At,
    Break,
    ClockStep,
    Compact,
    Crash,
    Create,
    Cut,
    Double,
    Freeze,
    Hide,
    Interfere,
    LeaseDeleted,
    Linger,
    Lose,
    Merge,
    Overlap,
    Plan,
    Refuse,
    Restart,
    Rotate,
    Silence,
    Slow,
    SlowClock,
    Starve,
    Step,
    Swap,
    Throttle,
    Travel,
    Unadmitted,
    Uncollected,
    Unrenewed,
    Unwritable,
)
from setpoint.testing.proof.seam import Pulse, Seam, View, at_of, error_line, forever, refusal, resource_of
from setpoint.testing.proof.trace import OTHER, USER, Effect, Run

T = TypeVar("T")

_LOOK_EVERY = 10.0  # seconds between two looks at everything while a view stands still
_REOPENED = 180.0  # seconds that a broken watch is waited for: longer than a silent one takes to be noticed
_AFTERWARDS = 5.0  # seconds in which a watch that was opened may yet turn out to be too old
_SEEN_FIRST = 0.5  # seconds that the operator has for what it sees before what came earlier
_TAKE_OVER = 60.0  # seconds in which another takes over: longer than any lease
_NOTICED = 0.05  # seconds in which who was paused has noticed what it can by itself: that it leads no longer
_TRIES = 10  # to put something on an object that is not seen yet, or that others write to
_GOING = 120.0  # seconds that who makes an object anew waits for the old one to go


class Stage(Protocol):
    """What the world can do for a fault."""

    def crash(self, seam: Seam, fault: Crash | Travel) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    async def act(self, steps: tuple[Step, ...], by: str) -> list[str]: ...

    def is_there(self, step: Create) -> bool: ...

    def look_at_all(self) -> None: ...

    async def compact(self) -> None: ...

    def fill_disk(self, is_full: bool) -> None: ...

    async def guard(self, resource: str, fault: Unadmitted) -> Callable[[], Awaitable[None]]: ...

    def block_collector(self, is_blocked: bool) -> None: ...

    def step_clock(self, seam: Seam, seconds: float) -> None: ...

    def pace_clocks(self, seam: Seam, *, ahead: float = 0.0, pace: float = 1.0) -> bool: ...

    def pause(self, seam: Seam) -> None: ...

    def resume(self, seam: Seam) -> None: ...

    async def detain(self, fault: Linger) -> bool: ...

    def is_detained(self, fault: Linger, *, is_going: bool = False) -> bool: ...

    async def release(self, fault: Linger) -> bool: ...

    async def delete_lease(self, seam: Seam) -> bool: ...

    def rotate_token(self) -> None: ...

    def starve(self) -> None: ...

    def hide(self, what: str, seconds: float) -> bool: ...

    def template(self, resource: str, namespace: str, name: str) -> str: ...

    @property
    def revision(self) -> int: ...


class Director:
    """The faults of one plan, in one run."""

    def __init__(self, plan: Plan, run: Run, stage: Stage) -> None:
        self.run = run
        self.uncollected = 0  # steps for which the collector does nothing
        self.holding = 0  # events that wait for their successor
        self.changed = Pulse()  # something is no longer held back
        self._faults = list(plan.faults)
        self._repeated: list[Refuse] = []  # which strike several times in a row
        self._stage = stage
        self._elects = plan.replicas > 1
        self._counts: dict[str, int] = {}
        self._events: dict[str, int] = {}
        self._frozen: dict[int, tuple[str, ...]] = {}  # by the identity of the fault that does it
        self._swapped: set[str] = set()  # resources that wait for an event of another
        self._busy = 0
        self._closed_until: dict[str, float] = {}  # resources whose watches cannot be opened
        self._expire: set[str] = set()
        self._reopening: dict[str, float] = {}  # watches that broke, and how long they are waited for
        self._throttled_until = 0.0
        self._retry_after = 0
        self._told: dict[tuple[int, str], float] = {}  # when a request may be made again
        self._away_until = 0.0  # of the server
        self._cut_off: set[int] = set()  # processes that lost it with all their connections
        self._back: dict[float, set[str]] = {}  # who tried to come back, and when
        self._unrenewed: set[int] = set()
        self._unrenewed_code = 0
        self._detained: list[Linger] = []  # whose objects have another's finalizer

    @property
    def is_busy(self) -> bool:
        now = _now()
        return (
            self._busy > 0
            or any(now < until for until in self._reopening.values())
            or any(self._stage.is_detained(each, is_going=True) for each in self._detained)
        )

    @property
    def is_over(self) -> bool:
        """Whether every fault has struck and is over."""
        return not self._faults and not self.is_busy and not self.holding and not self.uncollected

    def place(self, faults: Iterable[AnyFault]) -> None:
        """Have more faults strike."""
        self._faults.extend(faults)

    def freeze(self, fault: Freeze) -> None:
        """Have the view stand still from now on."""
        self._frozen[id(fault)] = fault.resources
        self.begin(self._freeze(fault))

    # ---- effects

    def signature(self, asked: Asked, body: bytes | None) -> str:
        """What a write is called, with names that the server chose left open."""
        resource = resource_of(asked)
        name = asked.name or self._generated(body)
        name = self._stage.template(resource, asked.namespace, name)
        what = "/".join(filter(None, (resource, asked.subresource)))
        key = "/".join(filter(None, (asked.namespace, name)))
        return f"{asked.verb} {what} {key}".rstrip()

    @staticmethod
    def _generated(body: bytes | None) -> str:
        try:
            read = msgspec.json.decode(body or b"{}")
        except msgspec.DecodeError:
            return ""
        metadata = read.get("metadata") if isinstance(read, dict) else None
        prefix = metadata.get("generateName", "") if isinstance(metadata, dict) else ""
        return f"{prefix}*" if prefix else ""

    async def effect(
        self,
        seam: Seam,
        what: str,
        do: Callable[[], Awaitable[T]],
        refuse: Callable[[int], T],
        lose: Callable[[int], T],
        *,
        is_external: bool = False,
        is_read: bool = False,
    ) -> T:
        """Have an effect done, or whatever the plan says instead.

        What only reads is struck in the same way, and is no effect: it is kept apart and not told of.
        """
        look = current_look()
        effect = Effect(
            0 if is_read else len(self.run.effects) + 1,
            at_of(self._counts, what),
            seam.process,
            _now(),
            is_external,
            look="" if look is None else look.id,
        )
        (self.run.reads if is_read else self.run.effects).append(effect)
        struck = self._striking(effect.at)
        for fault in struck:
            code = await self._before(seam, effect, fault)
            if code is not None:
                self._note(seam, effect, f"{code or 'no connection'} (a fault)")
                return refuse(code)
        if seam.is_dead:
            await forever()
        revision = self._stage.revision
        try:
            answer = await do()
        except Exception as error:
            self._note(seam, effect, type(error).__name__)
            raise
        if self._stage.revision > revision:
            effect.revision = self._stage.revision
        for fault in struck:
            code = await self._after(seam, effect, fault)
            if code is not None:
                self._note(seam, effect, "done, but its answer is lost (a fault)")
                return lose(code)
        self._note(seam, effect, str(getattr(answer, "status", "done")))
        return answer

    def _note(self, seam: Seam, effect: Effect, came_to: str) -> None:
        effect.came_to = came_to
        effect.ended = _now()
        if not effect.number:
            return  # a read
        if came_to[:1] == "2" or came_to.startswith("done"):
            self.run.done.append((seam.process, effect.at.what))
        self.run.line(_now(), f"operator {seam.process}", f"{effect.at} → {came_to}")

    async def _before(self, seam: Seam, effect: Effect, fault: AnyFault) -> int | None:
        """What happens before it is done; a code: it is not done."""
        match fault:
            case Crash(when="before"):
                effect.came_to = "crash before"
                await self._crash(seam, fault)
            case Refuse(code=code):
                self._fire(fault)
                return code
            case Interfere(when="before", steps=steps, by=by):
                await self._interfere(fault, steps, by)
            case Freeze():
                self._fire(fault)
                self.begin(self._freeze(fault))
            case Starve(resources=resources):
                self._fire(fault)
                self._frozen[id(fault)] = resources
                self._stage.starve()
            case Throttle(seconds=seconds, retry_after=retry_after):
                self._fire(fault)
                self._throttled_until, self._retry_after = _now() + seconds, retry_after
                self.begin(asyncio.sleep(seconds))
                return 429
            case ClockStep(seconds=seconds, clock="calendar"):
                self._fire(fault)
                self._stage.step_clock(seam, seconds)
                if self._elects:
                    self.begin(asyncio.sleep(_TAKE_OVER))
            case ClockStep(seconds=seconds):
                if self._stage.pace_clocks(seam, ahead=seconds):
                    self._fire(fault)
                    self.leap()
            case SlowClock(pace=pace, seconds=seconds):
                if self._stage.pace_clocks(seam, pace=pace):
                    self._fire(fault)
                    self.begin(self._slow(seam, seconds))
            case Rotate():
                self._fire(fault)
                self._stage.rotate_token()
            case Unwritable(seconds=seconds):
                self._fire(fault)
                self._stage.fill_disk(True)
                self.begin(self._full(seconds))
            case Unadmitted(seconds=seconds):
                self._fire(fault)
                resource = effect.at.what.split(" ")[1].partition("/")[0]
                self.begin(self._unguarded(seconds, await self._stage.guard(resource, fault)))
            case Linger(when="before"):
                await self._detain(fault)
            case Alter(when="before", step=step):
                await self._interfere(fault, (step,), OTHER)
            case Uncollected(steps=steps):
                self._fire(fault)
                self.uncollected = steps
                self._stage.block_collector(True)
            case Overlap(seconds=seconds):
                self._fire(fault)
                self._stage.pause(seam)
                seam.is_paused = seam.is_dazed = True
                self.begin(self._wake_up(seam, seconds))
                await self.pauses(seam, is_external=effect.is_external)
            case Unrenewed(code=code):
                self._fire(fault)
                self._unrenewed.add(seam.process)
                self._unrenewed_code = code
                self.begin(asyncio.sleep(_TAKE_OVER))
            case LeaseDeleted():
                if await self._stage.delete_lease(seam):
                    self._fire(fault)
                    self.begin(asyncio.sleep(_TAKE_OVER))
        return None

    async def _after(self, seam: Seam, effect: Effect, fault: AnyFault) -> int | None:
        """What happens when it is done; a code: nobody hears of it."""
        match fault:
            case Crash(when="after") | Travel():
                effect.came_to = "done, then crash"
                await self._crash(seam, fault)
            case Lose(code=code):
                self._fire(fault)
                effect.came_to = "lost"
                return code
            case Slow(seconds=seconds):
                self._fire(fault)
                await asyncio.sleep(seconds)
            case Interfere(when="after", steps=steps, by=by):
                await self._interfere(fault, steps, by)
            case Linger(when="after"):
                await self._detain(fault)
            case Alter(when="after", step=step):
                await self._interfere(fault, (step,), OTHER)
            case Compact():
                self._fire(fault)
                await self._stage.compact()
                self._break_all(seam)
            case Restart(away=away):
                self._fire(fault)
                self._away_until = _now() + away
                self._cut_off.add(seam.process)
                self._break_all(seam)
                self.begin(asyncio.sleep(away))
                return 0
            case Hide(seconds=seconds):
                if self._stage.hide(effect.at.what, seconds):
                    self._fire(fault)
                    self.begin(asyncio.sleep(seconds))
        return None

    def _break_all(self, seam: Seam) -> None:
        for view in list(seam.views):
            self._wait_for(view.resource)
        seam.cut_views()

    def _wait_for(self, resource: str) -> None:
        self._reopening[resource] = _now() + _REOPENED

    def opened(self, resource: str) -> None:
        """A watch works again."""
        if resource in self._reopening:
            self._reopening[resource] = min(self._reopening[resource], _now() + _AFTERWARDS)

    async def _crash(self, seam: Seam, fault: Crash | Travel) -> None:
        self._fire(fault)
        seam.is_dead = True
        self._stage.crash(seam, fault)
        await forever()

    async def _interfere(self, fault: Interfere | Alter, steps: tuple[Step, ...], by: str) -> None:
        self._fire(fault)
        if not await self.act(steps, by):
            self.run.fired.remove(str(fault))  # nobody has done anything

    async def act(self, steps: tuple[Step, ...], by: str) -> bool:
        """Have others take steps; whether any was taken.

        What is deleted and made anew can be made only when the old one is gone.  That may need the very
        operator in whose task this is: it goes on, and they wait, as ``kubectl replace --force`` does.
        """
        is_taken = False
        for number, step in enumerate(steps):
            if not await self._stage.act((step,), by):
                is_taken = True
            elif is_taken and isinstance(step, Create):
                self.begin(self._make_anew(step, steps[number + 1 :], by))
                break
        return is_taken

    async def _make_anew(self, create: Create, steps: tuple[Step, ...], by: str) -> None:
        """Make an object as soon as its predecessor is gone, then go on."""
        until, pause = _now() + _GOING, 0.02
        while _now() < until:
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
            if not self._stage.is_there(create) and not await self._stage.act((create,), by):
                await self.act(steps, by)
                return
        self.run.line(_now(), by, f"gives up after {_GOING:g} s: {create}")

    async def _freeze(self, fault: Freeze) -> None:
        self._frozen[id(fault)] = fault.resources
        await self.act(fault.meanwhile, USER)
        left = fault.seconds
        while left > 0:
            await asyncio.sleep(min(left, _LOOK_EVERY))
            left -= _LOOK_EVERY
            if left > 0:
                self._stage.look_at_all()
        del self._frozen[id(fault)]
        self.changed.beat()

    async def _detain(self, fault: Linger) -> None:
        for _ in range(_TRIES):
            if await self._stage.detain(fault):
                self._fire(fault)
                self._detained.append(fault)
                self._stage.spawn(self._linger(fault))
                return
            await asyncio.sleep(0.1)

    async def _linger(self, fault: Linger) -> None:
        """Let the object go a while after it was deleted."""
        is_detained = self._stage.is_detained  # nobody tells when that changes
        while is_detained(fault) and not is_detained(fault, is_going=True):  # noqa: ASYNC110
            await asyncio.sleep(1.0)
        if is_detained(fault):
            await asyncio.sleep(fault.seconds)
        while is_detained(fault) and not await self._stage.release(fault):  # noqa: ASYNC110
            await asyncio.sleep(1.0)
        self._detained.remove(fault)

    async def _slow(self, seam: Seam, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._stage.pace_clocks(seam)

    async def _full(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._stage.fill_disk(False)

    async def _unguarded(self, seconds: float, unguard: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(seconds)
        await unguard()

    def stepped(self) -> None:
        """The user is about to take another step."""
        if self.uncollected:
            self.uncollected -= 1
            if not self.uncollected:
                self._stage.block_collector(False)

    def collect(self) -> None:
        """Have the garbage collected that was left."""
        self.uncollected = 0
        self._stage.block_collector(False)

    async def _wake_up(self, seam: Seam, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seam.is_paused = False
        self._stage.resume(seam)  # what has fallen due comes first, and then what has come
        self.changed.beat()
        await asyncio.sleep(_NOTICED)
        seam.is_dazed = False
        self.changed.beat()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that takes time, in the world and not in the process that it happens to."""

        async def counted() -> None:
            try:
                await work
            finally:
                self._busy -= 1

        self._busy += 1
        self._stage.spawn(counted())

    def _fire(self, fault: AnyFault) -> None:
        if fault in self._faults:
            self._faults.remove(fault)
            self.run.fired.append(str(fault))
            self.run.line(_now(), "fault", str(fault))

    def _striking(self, at: At) -> list[AnyFault]:
        """The faults for this place, in the plan's order."""
        struck = [each for each in self._faults if not each.strikes_events and each.at == at]
        again = [
            each
            for each in self._repeated
            if each.at.what == at.what and each.at.nth < at.nth < each.at.nth + each.times
        ]
        self._repeated += [each for each in struck if isinstance(each, Refuse) and each.times > 1]
        return [*struck, *again]

    # ---- requests

    async def pauses(self, seam: Seam, *, is_external: bool = False) -> None:
        """Wait where the process is paused.

        A write is held against the lease in the very moment in which it is sent.  Of what is outside nobody
        asks that: who wakes up there with a call in hand cannot but make it, and no operator could bear it,
        so it has a moment to notice.
        """
        while seam.is_paused or (is_external and seam.is_dazed):
            await self.changed.wait()

    def refuses(self, seam: Seam, asked: Asked) -> Response | None:
        """An answer to any request, where the server is away or has too much to do."""
        now = _now()
        if seam.process in self._cut_off and asked.verb in ("watch", "list") and current_look() is None:
            self._came_back(resource_of(asked), now)
        if now < self._away_until:
            raise ConnectionFailed(str(asked), "the server is away")
        told = (seam.process, str(asked))
        if now < self._told.get(told, 0.0) and asked.plural != "leases":
            self.run.early.append(f"{asked}: {self._told[told] - now:.1f} s before it was to ask again")
        if now < self._throttled_until:
            self._told[told] = now + self._retry_after
            return refusal(429, asked, self._retry_after)
        return None

    def leap(self) -> None:
        """Time leaps: what falls due together then, or too early, would not in life; nobody is told off."""
        self._cut_off.clear()
        self._told.clear()

    def _came_back(self, resource: str, now: float) -> None:
        """Who lost the server together must not come back together: a thousand of them would end it again."""
        together = self._back.setdefault(now, set())
        together.add(resource)
        if len(together) > 1:
            self.run.crowds.append(f"{' and '.join(sorted(together))} at {now:.3f} s")

    async def quiet(self, seam: Seam, asked: Asked, send: Callable[[], Awaitable[Response]]) -> Response:
        """What is no effect: Events, and the lease of an election."""
        if asked.plural == "leases" and asked.is_write and seam.process in self._unrenewed:
            return refusal(self._unrenewed_code, asked)
        return await send()

    # ---- views

    def is_frozen(self, seam: Seam, resource: str) -> bool:
        del seam
        return resource in self._swapped or any(
            not frozen or resource in frozen for frozen in self._frozen.values()
        )

    async def thawed(self, seam: Seam, resource: str) -> None:
        """Wait until this may be listed for a cache; who asks in a reconcile asks the server, which knows."""
        while current_look() is None and self.is_frozen(seam, resource):
            await self.changed.wait()

    async def opening(self, seam: Seam, resource: str) -> None:
        """A watch is to be opened."""
        del seam
        if _now() < self._closed_until.get(resource, 0.0):
            raise ConnectionFailed(f"watch {resource}", "the connection was refused")
        if resource in self._expire:
            self._expire.discard(resource)
            await self._stage.compact()

    def event(self, view: View, type_: str, key: tuple[str, str], line: bytes) -> bytes:
        """What a watch brings in place of an event."""
        namespace, name = key
        name = self._stage.template(view.resource, namespace, name)
        what = f"{type_} {view.resource} {'/'.join(filter(None, (namespace, name)))}"
        at = at_of(self._events, what)
        if view.is_listing:
            self.run.line(_now(), f"view {view.seam.process}", f"{at}, in a list")
            return line + b"\n"
        self.run.events.append(at)
        whole = line + b"\n"
        lane = f"view {view.seam.process}"
        for fault in [each for each in self._faults if each.strikes_events and each.at == at]:
            self._fire(fault)
            match fault:
                case Double():
                    self.run.line(_now(), lane, f"{at}, twice")
                    return whole + whole
                case Merge(seconds=seconds):
                    self.run.line(_now(), lane, f"{at} is held")
                    view.hold(key, line, seconds)
                    return b""
                case Swap(seconds=seconds):
                    self.run.line(_now(), lane, f"{at} is held, until something else is seen")
                    view.put_back(line)
                    self._swapped.add(view.resource)
                    self.holding += 1
                    self._stage.spawn(self._swap_back(view.resource, seconds))
                    return b""
                case Cut(expire=expire, away=away):
                    self.run.line(_now(), lane, f"{at} is not brought: the connection breaks")
                    self._closed_until[view.resource] = _now() + away
                    if expire:
                        self._expire.add(view.resource)
                    self._wait_for(view.resource)
                    view.cut()
                    return b""
                case Silence():
                    self.run.line(_now(), lane, f"{at} is not brought: silence")
                    view.put_back(line)
                    view.is_silent = True
                    self._wait_for(view.resource)
                    return b""
                case Break(code=code):
                    self.run.line(_now(), lane, f"{at} is not brought: error {code}")
                    self._wait_for(view.resource)
                    return error_line(code)
        self.run.line(_now(), lane, str(at))
        for other in sorted(self._swapped - {view.resource}):
            self.begin(self._swap_back(other, _SEEN_FIRST))
        return whole

    async def _swap_back(self, resource: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if resource in self._swapped:
            self._swapped.discard(resource)
            self.holding -= 1
            self.changed.beat()


def _now() -> float:
    return world_time()
