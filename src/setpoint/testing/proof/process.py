"""One life of an operator: its client, its manager, and every task it starts; it can be killed.

Killed means: nothing it does from then on reaches anybody (the seam is dead first), then all its tasks are
cancelled until none is left, in no time; one that will not be cancelled is told of (O1), and closed.  What
it had in memory is gone with it, as far as it was in the operator that ``make`` gave: so ``make`` should
build a new one each time.

It reaches its API server and its clouds, and nothing else: ``isolation.py``.

Started and killed by ``world.py``.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from setpoint.api.names import GroupVersionKind
from setpoint.client.auth import Credentials
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.result import BUGS, Request
from setpoint.controller.worker import Looked
from setpoint.errors import LeadershipLost
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager
from setpoint.testing.isolation import Isolation
from setpoint.testing.proof import cloud, trace
from setpoint.testing.proof.calendar import machine_time
from setpoint.testing.proof.pace import moment, world_time
from setpoint.testing.proof.seam import Seam
from setpoint.testing.proof.store import actor
from setpoint.testing.virtual_time import LoopClock

T = TypeVar("T")

_ROUNDS = 200  # of cancelling, before a task is said to be immortal


class Subject(Protocol):
    """What is proven: an ``Operator``, or anything that can be added to a manager as one can."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> list[GroupVersionKind]: ...

    def crds(self) -> list[dict[str, Any]]: ...

    def add_to(self, manager: Manager, /) -> object: ...


current: ContextVar[Process | None] = ContextVar("setpoint_proof_process", default=None)


class Process:
    """One life."""

    def __init__(
        self,
        number: int,
        make: Callable[[], Subject],
        seam: Seam,
        clock: LoopClock,
        run: trace.Run,
        *,
        stirred: Callable[[], int],
        elects: bool,
        isolation: Isolation,
    ) -> None:
        self.number = number
        self.seam = seam
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.manager: Manager | None = None
        self.after = ""  # why the one before it ended by itself
        self.is_starved = False  # a watch of its will never work again
        self.due: dict[tuple[str, Request], float] = {}  # keys that are to be looked at, and when
        self.failing: dict[tuple[str, Request], str] = {}
        self.make = make
        self.clock = clock  # the machine's, which may be set
        self._run = run
        self._stirred = stirred  # how often something has happened in the world
        self._looked_after: dict[tuple[str, Request], int] = {}
        self._effects = 0
        self._elects = elects
        self._isolation = isolation
        self._main: asyncio.Task[None] | None = None
        self._context = contextvars.copy_context()  # until it starts

    def __repr__(self) -> str:
        return f"<Process {self.number}: {len(self.tasks)} tasks>"

    def start(self) -> None:
        context = self._context = contextvars.copy_context()
        context.run(actor.set, f"operator {self.number}")
        context.run(current.set, self)
        context.run(cloud.way.set, self.seam)
        context.run(self._isolation.enter_context)
        loop = asyncio.get_running_loop()
        # Its threads ask, too, in which no loop runs.
        context.run(machine_time.set, lambda: self.clock.beginning.timestamp() + loop.time())
        self._main = loop.create_task(self._live(), name=f"process {self.number}", context=context)

    async def _live(self) -> None:
        operator = self.make()
        election = None
        if self._elects:
            election = LeaderElection(operator.name, namespace="default", identity=f"process-{self.number}")
        client = self._client(operator.name)
        manager = Manager(client=client, name=operator.name, clock=self.clock, leader_election=election)
        operator.add_to(manager)
        for controller in manager.controllers:
            controller.on_look(self._looked)
        self.manager = manager
        await manager.run()

    def _client(self, name: str) -> Client:
        """A client as in a pod: with a token in a file, where that is of interest."""
        if self.seam.token is None:
            return Client(transport=self.seam, field_manager=name)
        config = Config(server="http://localhost", token_file=str(self.seam.token.file))
        client = Client(config, transport=self.seam, field_manager=name)
        client._sender._credentials = Credentials(config, clock=self.clock)  # noqa: SLF001 - with a transport it has none
        return client

    @property
    def is_over(self) -> bool:
        return self._main is None or self._main.done()

    @property
    def is_leading(self) -> bool:
        manager = self.manager
        return not self.is_over and manager is not None and self._inside(lambda: manager.is_leading)

    @property
    def failure(self) -> str:
        """Why it ended by itself; "" where leadership was lost, which is no failure."""
        if self._main is None or not self._main.done() or self._main.cancelled():
            return ""
        error = self._main.exception()
        if error is None or isinstance(error, LeadershipLost):
            return ""
        return f"the operator ended: {type(error).__name__}: {error}"

    def _inside(self, ask: Callable[[], T]) -> T:
        """Ask something of it, as its own clocks have it."""
        return self._context.copy().run(ask)

    def why_busy(self) -> str:
        """What is still to do; "" if nothing is, or only in a long time."""
        return self._inside(self._why_busy)

    def _why_busy(self) -> str:
        if self.is_over or self.seam.is_dead or self.seam.is_paused:
            return ""
        if self.manager is None:
            return self.after or "it has not started"
        if self.seam.is_behind:
            return "it sees the past"
        if not self.manager.is_leading:
            return ""
        for each in self.manager.cache.stats():
            if each.problem is not None and not self.is_starved:
                return f"the cache waits: {each.problem}"
        for controller in self.manager.controllers:
            stats = controller.stats()
            if not controller.is_working:
                return f"{controller.name} does not work: {'; '.join(stats.problems) or 'not yet'}"
            if stats.queue.taken or stats.queue.depth:
                return f"{controller.name} is at work"
        if self.failing:
            (name, key), error = next(iter(self.failing.items()))
            return f"{name} {key} fails: {error}"
        now = world_time()
        soon = [at for at in self.due.values() if at - now <= 0]
        return "a look is due" if soon else ""

    def longest_wait(self, most: float, stirred: int) -> float:
        """For how long one must watch it to have seen every key looked at again since the world last stirred,
        of those that will be, soon.
        """
        now = world_time()
        late = [at for place, at in self.due.items() if self._looked_after.get(place, -1) < stirred]
        return max((at - now for at in late if at - now <= most), default=0.0)

    def look_at_all(self, requests: dict[str, list[Request]]) -> None:
        """Have every object looked at again, as a resync does; by the store's name of the kind."""
        if self.manager is None or self.seam.is_dead or self.seam.is_paused:
            return
        for controller in self.manager.controllers:
            kind = controller.kinds[0]
            for request in requests.get(f"{kind.kind}.{kind.group}", ()):
                self._inside(partial(controller.look_at, request))

    async def kill(self) -> None:
        self.seam.is_dead = True
        self.seam.is_paused = self.seam.is_dazed = False
        for _ in range(_ROUNDS):
            left = [task for task in self.tasks if not task.done()]
            if not left:
                break
            for task in left:
                task.cancel()
            await asyncio.sleep(0)
        else:
            await self._close([task for task in self.tasks if not task.done()])
        self.tasks.clear()

    async def _close(self, immortal: list[asyncio.Task[Any]]) -> None:
        """End what swallows CancelledError, as the kernel ends what does not hear SIGTERM."""
        names = ", ".join(sorted({_code_of(task) for task in immortal}))
        said = f"cancelled, it does not end: {names}; does it catch CancelledError, and not raise it again?"
        if said not in self._run.stuck:
            self._run.stuck.append(said)
        for task in immortal:
            coro = task.get_coro()
            if isinstance(coro, Coroutine):
                with suppress(RuntimeError):  # it does not even hear GeneratorExit
                    coro.close()
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)
        if self.seam.is_dead and not task.cancelled():
            task.exception()  # nobody else will look

    def _looked(self, controller: str, key: Request, looked: Looked) -> None:
        place = (controller, key)
        is_idle = len(self._run.effects) == self._effects  # nothing was asked for since the last look
        self._effects = len(self._run.effects)
        self._looked_after[place] = self._stirred() if is_idle else -1
        self.failing.pop(place, None)
        self.due.pop(place, None)
        if looked.again_in is not None:
            self.due[place] = moment(looked.at + looked.again_in)
            if looked.came_to == "error":
                self.failing[place] = looked.error
        at = world_time()
        self._run.looks.append(
            trace.Looked(
                at,
                self.number,
                controller,
                str(key),
                looked.came_to,
                looked.error,
                _is_bug(looked.raised),
                looked.id,
            )
        )
        said = f": {looked.error}" if looked.error else ""
        what = f"reconcile {controller} {key} → {looked.came_to}{said}"
        self._run.line(at, f"operator {self.number}", what)


def _is_bug(raised: Iterable[type[BaseException]]) -> bool:
    """Whether one of these is a mistake in the code, and not something that the world did to it."""
    return any(issubclass(each, (*BUGS, ValueError)) for each in raised)


def _code_of(task: asyncio.Task[Any]) -> str:
    """What a task runs; its name may be a number that is another in each run."""
    return getattr(task.get_coro(), "__qualname__", "a task")


def make_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    """A task factory that knows whose task it is."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    context = options.get("context")
    process = current.get() if context is None else context.get(current)
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(process.ended)
    return task


def maker(operator: Subject | Callable[[], Subject]) -> Callable[[], Subject]:
    """A function that gives the operator: itself, or what the function given makes."""
    if hasattr(operator, "add_to"):
        subject = cast("Subject", operator)
        return lambda: subject
    return operator
