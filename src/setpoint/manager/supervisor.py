"""Starts what is due and stops what is due, never without an end: the shell around ``lifecycle.py``.

1. When something fails, everything is stopped, and ``run`` raises the error; of several, a group.  What was
   raised while stopping counts too.
2. Stopping takes ``graceful_shutdown`` seconds, in which work in hand is finished.  Then it is cancelled,
   again and again; what does not end even so is named in the log and left behind.
3. Cancelled, ``run`` stops in order; cancelled again, at once.
4. When leadership is lost there is no grace: another may be at work.

What runs is anything with an ``async def run(self)`` that goes on until it is cancelled.  Cancelled once, it
may finish what it has in hand; cancelled again, it must end.  It may also have

- ``needs_leadership`` (True where nothing is said, as in controller-runtime) or ``group``: when it starts;
- ``async def wait_ready(self)``: what starts later waits for this;
- ``def stop(self)``: called in place of the first cancellation;
- ``def abandon(self)``: called before that, where something that started later did not end in time;
- ``name``: for the log.

Driven by ``manager.py``.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from setpoint.clock import Deadline
from setpoint.controller.worker import describe
from setpoint.errors import LeadershipLost
from setpoint.manager.lifecycle import Group, Lifecycle

CANCEL_AGAIN = 0.1  # seconds between two cancellations of what does not end
CANCEL_FOR = 5.0  # seconds until what does not end is left behind

log = logging.getLogger("setpoint.manager")


class Runnable(Protocol):
    """What a manager runs."""

    async def run(self) -> None: ...


@runtime_checkable
class _HasReadiness(Protocol):
    async def wait_ready(self) -> None: ...


@runtime_checkable
class _HasStop(Protocol):
    def stop(self) -> None: ...


@runtime_checkable
class _HasAbandon(Protocol):
    def abandon(self) -> None: ...


@dataclass(eq=False, slots=True)
class Slot:
    """One thing that runs, and its tasks."""

    runnable: Runnable
    group: Group
    task: asyncio.Task[None] | None = None
    getting_ready: asyncio.Task[None] | None = None
    is_told_to_stop: bool = False

    def __repr__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return str(getattr(self.runnable, "name", None) or type(self.runnable).__name__)


def group_of(runnable: Runnable) -> Group:
    """When it starts: as it says; else, as in controller-runtime, only where we lead."""
    group = getattr(runnable, "group", None)
    if isinstance(group, Group):
        return group
    return Group.LEADERS if getattr(runnable, "needs_leadership", True) else Group.OTHERS


class Supervisor:
    """Runs everything until stopped."""

    def __init__(self, graceful_shutdown: float) -> None:
        if not 0 <= graceful_shutdown < float("inf"):
            raise ValueError(
                f"graceful_shutdown={graceful_shutdown}: every wait has an end; 0 is none at all"
            )
        self.slots: list[Slot] = []
        self.lifecycle = Lifecycle[Slot]()
        self._graceful_shutdown = graceful_shutdown
        self._changed = asyncio.Event()
        self._started = asyncio.Event()
        self._errors: list[BaseException] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline: float | None = None  # once stopping: when what was told to stop is cancelled

    def __repr__(self) -> str:
        return f"<Supervisor {self.lifecycle!r}>"

    def add(self, runnable: Runnable) -> None:
        """Run it when its time comes; now, if that is past."""
        slot = Slot(runnable, group_of(runnable))
        self.lifecycle.add(slot, slot.group)
        self.slots.append(slot)
        self._changed.set()

    async def remove(self, runnable: Runnable, grace: float) -> None:
        """Stop one of them and wait until it has ended; after ``grace`` seconds it is cancelled again."""
        slot = next((slot for slot in self.slots if slot.runnable is runnable), None)
        if slot is None:
            raise ValueError(f"{runnable!r} was not added, or is removed already")
        if slot.task is not None:
            self._stop(slot)
            _, late = await asyncio.wait({slot.task}, timeout=grace)
            if await self._cancel(late):
                log.error("%s does not end, and is left behind", slot.name)
        self.slots.remove(slot)
        self.lifecycle.remove(slot)
        self._changed.set()

    def stop(self) -> None:
        """Begin to stop in order.  In the thread of the event loop."""
        if not self.lifecycle.is_stopping:
            self.lifecycle.stop()
            if self._loop is not None:
                self._deadline = self._loop.time() + self._graceful_shutdown
            self._changed.set()

    async def wait_started(self) -> None:
        """Wait until all is ready that need not be elected first, or all is being stopped."""
        await self._started.wait()

    async def run(self) -> None:
        """Run everything until stopped, or until something fails."""
        if self._loop is not None:
            raise RuntimeError("it has run: make a new one")
        self._loop = asyncio.get_running_loop()
        cancelled: asyncio.CancelledError | None = None
        while not self.lifecycle.is_over:
            try:
                await self._turn()
            except asyncio.CancelledError as error:
                self.stop()
                if cancelled is not None:
                    self._deadline = self._now()
                cancelled = error
        self._started.set()  # whoever waits for it waits in vain
        if cancelled is not None:
            raise cancelled
        if errors := _distinct(self._errors):
            raise (
                errors[0]
                if len(errors) == 1
                else BaseExceptionGroup("several parts of the manager failed", errors)
            )

    async def _turn(self) -> None:
        """Start and stop what is due, and wait until something changes."""
        self._changed.clear()
        for slot in self.lifecycle.start_due():
            self._start(slot)
        for slot in self.lifecycle.stop_due():
            self._stop(slot)
        if self.lifecycle.is_stopping or not self.lifecycle.unready(self._upto()):
            self._started.set()
        if self.lifecycle.is_over or self._changed.is_set():
            return
        try:
            with Deadline(asyncio.get_running_loop(), self._deadline):
                await self._changed.wait()
        except TimeoutError:
            await self._force()

    def _upto(self) -> Group:
        has_election = any(slot.group is Group.ELECTION for slot in self.slots)
        return Group.OTHERS if has_election else Group.LEADERS

    def _start(self, slot: Slot) -> None:
        slot.task = asyncio.create_task(self._attend(slot), name=slot.name)
        if isinstance(slot.runnable, _HasReadiness):
            waiting = self._await_ready(slot, slot.runnable)
            slot.getting_ready = asyncio.create_task(waiting, name=f"{slot.name} gets ready")
        else:
            self.lifecycle.ready(slot)
            self._changed.set()

    async def _await_ready(self, slot: Slot, runnable: _HasReadiness) -> None:
        try:
            await runnable.wait_ready()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - run() raises it
            self._fail(slot, error)
        self.lifecycle.ready(slot)
        self._changed.set()

    async def _attend(self, slot: Slot) -> None:
        try:
            await slot.runnable.run()
        except asyncio.CancelledError:
            if not slot.is_told_to_stop:  # it, or somebody else, cancelled it: an end like any other
                log.exception("%s was cancelled, though nobody stopped it, and has ended", slot.name)
        except BaseException as error:  # noqa: BLE001 - run() raises it, SystemExit too: after an orderly end
            self._fail(slot, error)
        finally:
            if slot.getting_ready is not None:
                slot.getting_ready.cancel()
            if slot in self.slots:  # and not left behind when it was removed
                self.lifecycle.ended(slot)
            self._changed.set()

    def _fail(self, slot: Slot, error: BaseException) -> None:
        log.error("%s failed, and so everything stops: %s", slot.name, describe(error))
        self._errors.append(error)
        self.stop()
        if isinstance(error, LeadershipLost):
            self._deadline = self._now()

    def _stop(self, slot: Slot) -> None:
        slot.is_told_to_stop = True
        if isinstance(slot.runnable, _HasStop):
            slot.runnable.stop()
        elif slot.task is not None:
            slot.task.cancel()

    async def _force(self) -> None:
        """Time is up: cancel what was told to stop, until it ends or is left behind."""
        for other in self.lifecycle.running() if self.lifecycle.late() else ():
            if isinstance(other.runnable, _HasAbandon):
                other.runnable.abandon()  # what is cut short may leave a thread behind that works on
        await self._cancel({slot.task for slot in self.lifecycle.late() if slot.task is not None})
        for slot in self.lifecycle.late():
            log.error("%s does not end, and is left behind", slot.name)
            self.lifecycle.ended(slot)
        self._deadline = self._now() + CANCEL_FOR  # for the next group
        self._changed.set()

    async def _cancel(self, tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        """Cancel them until they end; those that do not."""
        until = self._now() + CANCEL_FOR
        while tasks and self._now() < until:
            for task in tasks:
                task.cancel()
            _, tasks = await asyncio.wait(tasks, timeout=CANCEL_AGAIN)
        return tasks

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _distinct(errors: list[BaseException]) -> list[BaseException]:
    """The errors; of those that say that leadership was lost, one: the others follow from it."""
    lost = [error for error in errors if isinstance(error, LeadershipLost)]
    return [*lost[:1], *(error for error in errors if error not in lost)]
