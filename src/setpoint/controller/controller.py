"""Sources, a queue and workers, started and stopped as one.

1. Workers begin when all sources are synced.  What is still awaited after ``sync_timeout`` is said in the
   log, again and again; nothing ends because of it.
2. A permission or a kind that is missing stops this controller and nobody else: no reconcile starts while a
   watch is refused.  It is said once, loudly, with verb, kind and what to add; when the watch works again, so
   does the controller, and what happened meanwhile is looked at.
3. When ``run`` is cancelled, no reconcile starts any more.  Those that run have ``grace`` seconds to finish,
   then they are cancelled.  Cancelled again, ``run`` does not wait, and passes each further cancellation on:
   a thread that is stuck is left behind at the next.
4. A source that raises is logged, counted and begun anew, backing off.
5. A worker that ends although nobody stopped it is logged, counted and restarted, backing off; until then
   ``ended_workers`` says so, for the health of the process.
6. Every task it starts ends with it.

The order of things is here; how a key is worked on is in ``worker.py``, where keys come from is in
``sources.py``.  Run by the manager.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial

from setpoint.api.names import GroupVersionKind
from setpoint.cache.cache import Cache
from setpoint.cache.consistency import CachedReader
from setpoint.cache.informer import SYNC_TIMEOUT
from setpoint.cache.reflector import how_it_failed
from setpoint.cache.scope import Problem, Scope
from setpoint.cache.watch_state import How
from setpoint.controller.isolation import run_isolated
from setpoint.controller.mapping import Reason
from setpoint.controller.result import Reconciler, Request
from setpoint.controller.sources import Feed, Kind, Source
from setpoint.controller.worker import Look, Looked, Queue, Worker, describe
from setpoint.errors import NotSynced
from setpoint.metrics import Metrics
from setpoint.queue.backoff import delay_after
from setpoint.queue.workqueue import QueueStats, WorkQueue

GRACE = 30.0  # as controller-runtime's manager
LOOK_EVERY = 1.0  # seconds between two looks at sources that do not tell when their problems change
LONGEST_REST = 60.0  # of a source that raised, and of a worker that ended
SHOWN_ERRORS = 10

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ControllerStats:
    """How a controller is: for people, tests and debug pages alike."""

    name: str
    is_working: bool  # it takes keys
    problems: tuple[str, ...]  # why not
    workers: int
    running: Mapping[Request, float]  # what is being reconciled, and for how many seconds
    errors: Mapping[Request, Looked]  # the keys whose last look failed, the newest last
    queue: QueueStats


@dataclass(eq=False, slots=True)
class _WorkerSlot:
    """One worker: its task, and how often in a row it ended unexpectedly."""

    number: int
    task: asyncio.Task[None] | None = None
    started_at: float = 0.0
    failures: int = 0
    is_due: bool = True  # to be started
    error: str = ""  # why it ended; "" while it runs


class Controller:
    """Keeps the objects of its sources as a reconciler wants them.

    ``workers`` keys are reconciled at once, each for at most ``timeout`` seconds if that is said.
    ``backoff`` is a function from the failures of a key in a row to seconds.  ``may_start`` is asked before
    each reconcile.
    """

    def __init__(
        self,
        name: str,
        reconciler: Reconciler,
        sources: Iterable[Source],
        *,
        cache: Cache,
        metrics: Metrics,
        workers: int = 1,
        timeout: float | None = None,
        grace: float = GRACE,
        backoff: Callable[[int], float] | None = None,
        sync_timeout: float = SYNC_TIMEOUT,
        needs_leadership: bool = True,
        may_start: Callable[[], bool] = lambda: True,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a controller: use a-z, 0-9, '-', '.' and '_'")
        if workers < 1:
            raise ValueError(f"workers={workers}: a controller has at least one")
        self.name = name
        self.needs_leadership = needs_leadership
        self._log = logging.getLogger(f"setpoint.controller.{name}")
        self._sources = list(sources)
        self._workers = workers
        self._slots: list[_WorkerSlot] = []
        self._grace = grace
        self._sync_timeout = sync_timeout
        self._counts = counts = metrics.controller(name, workers=workers)
        self._queue: Queue = WorkQueue(
            name, metrics, backoff=partial(_safely, backoff or _backoff, self._log)
        )
        self.reader = CachedReader(cache, metrics=counts)
        self._worker = Worker(
            name,
            self._queue,
            reconciler,
            self.reader,
            counts,
            kind=next(iter(self.kinds), None),
            timeout=timeout,
            needs_leadership=needs_leadership,
            may_start=may_start,
        )
        self._feed = Feed(name, self._add, metrics, counts.callback_errors.inc, self._log)
        self._tasks: asyncio.TaskGroup | None = None
        self._has_run = False
        self._is_synced = False
        self._refused: dict[Scope, Problem] = {}
        self._problems_changed = asyncio.Event()
        self._polled: list[Source] = []  # which do not tell when their problems change
        for source in self._sources:
            self._follow(source)

    def __repr__(self) -> str:
        state = "working" if self.is_working else "stopped" if self._refused else "not working"
        return f"<Controller {self.name}, {state}: {self._queue!r}>"

    # How it is.

    @property
    def kinds(self) -> tuple[GroupVersionKind, ...]:
        """What it watches, the kind it is for first."""
        return tuple(dict.fromkeys(source.form.gvk for source in self._sources if isinstance(source, Kind)))

    @property
    def primary(self) -> Kind | None:
        """The source of the kind it is for, if it has one."""
        return next((source for source in self._sources if isinstance(source, Kind)), None)

    @property
    def is_working(self) -> bool:
        """Whether it takes keys."""
        if self._slots and all(slot.error for slot in self._slots):
            return False
        return self._tasks is not None and self._worker.gate.is_set() and not self._worker.is_leaving

    @property
    def ended_workers(self) -> tuple[str, ...]:
        """Workers that ended unexpectedly and are not restarted yet: each with the reason."""
        return tuple(
            f"worker {slot.number} of {self._workers} ended: {slot.error}"
            for slot in self._slots
            if slot.error
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it runs and does not work; for the readiness of the process."""
        if self._tasks is None or self.is_working:
            return ()
        late = [source for source in self._sources if not source.is_synced]
        known = {problem.scope: problem for source in late for problem in source.problems} | self._refused
        silent = [f"{source!r}: no answer yet" for source in late if not source.problems]
        return (*map(str, known.values()), *silent, *self.ended_workers)

    def stats(self) -> ControllerStats:
        now = asyncio.get_running_loop().time()
        failed = [(key, looked) for key, looked in self._worker.looked.items() if looked.came_to == "error"]
        return ControllerStats(
            self.name,
            self.is_working,
            self.problems,
            self._workers,
            {key: now - since for key, since in self._worker.running.items()},
            dict(failed[-SHOWN_ERRORS:]),
            self._queue.stats(),
        )

    def waiting(self, most: int = 10) -> list[tuple[Request, float]]:
        """The keys that wait, the soonest first: each with the seconds until it is due, below 0 if it is."""
        return self._queue.first(most)

    def last_look(self, request: Request) -> Looked | None:
        """What came of the last reconcile of a key, if it is remembered."""
        return self._worker.looked.get(request)

    def around_look(self, around: Callable[[Look], AbstractContextManager[object]]) -> None:
        """Have every reconcile, and what is told of it, happen inside of what the function gives."""
        self._worker.around = around

    def on_look(self, tell: Callable[[str, Request, Looked], None]) -> None:
        """Have a function told of what came of each reconcile: the controller's name, the key, and that."""
        self._worker.tell.append(tell)

    # What it does.

    def look_at(
        self, request: Request, *, after: float = 0.0, priority: int = 0, reason: Reason | None = None
    ) -> None:
        """Have a key reconciled, ``after`` so many seconds."""
        self._queue.add(request, after=after, priority=priority, reason=reason)

    def add_source(self, source: Source) -> Callable[[], None]:
        """Have keys from one more source, from now on; calling the answer ends that, and closes it."""
        self._sources.append(source)
        self._follow(source)
        task = None if self._tasks is None else self._start(self._tasks, source)

        def end() -> None:
            if source in self._sources:
                self._sources.remove(source)
                source.close()
                if source in self._polled:
                    self._polled.remove(source)
                self._problems_changed.set()
                if task is not None:
                    task.cancel()

        return end

    async def run(self) -> None:
        """Work until cancelled."""
        if self._has_run:
            raise RuntimeError(f"controller {self.name} has run: make a new one")
        self._has_run = True
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for source in self._sources:
                    self._start(self._tasks, source)
                try:
                    await self._wait_synced()
                    self._slots = [_WorkerSlot(number) for number in range(1, self._workers + 1)]
                    while True:
                        self._start_workers(self._tasks)
                        await self._wait_for_problems()
                        self._open_or_close()
                finally:
                    await self._leave([slot.task for slot in self._slots if slot.task is not None])
        finally:
            self._tasks = None
            for source in self._sources:
                source.close()

    def _start(self, tasks: asyncio.TaskGroup, source: Source) -> asyncio.Task[None]:
        return tasks.create_task(self._read(source), name=f"{source!r} of {self.name}")

    async def _read(self, source: Source) -> None:
        """Run a source; one that raises is begun anew."""
        failures = 0
        while True:
            began = _now()
            ended = await run_isolated(lambda: source.run(self._feed), name=f"run {source!r} of {self.name}")
            if ended.error is None:
                self._log.info("%r has ended", source)
                return
            failures = 1 if _now() - began > LONGEST_REST else failures + 1
            rest = delay_after(failures, first=1.0, longest=LONGEST_REST, jitter=random.random)
            self._feed.count_error()
            self._log.error("%r raised; restarting in %.3g s", source, rest, exc_info=ended.error)
            await asyncio.sleep(rest)

    def _start_workers(self, tasks: asyncio.TaskGroup) -> None:
        """Start the workers, and restart those that ended and are due."""
        for slot in self._slots:
            if not slot.is_due:
                continue
            if slot.error:
                self._log.warning("controller %r: restarting worker %d", self.name, slot.number)
            slot.is_due, slot.error, slot.started_at = False, "", _now()
            slot.task = tasks.create_task(self._work(slot), name=f"worker {slot.number} of {self.name}")

    async def _work(self, slot: _WorkerSlot) -> None:
        """Run a worker; where it ends and should not, see to it that it is restarted."""
        error: BaseException = RuntimeError("it returned, and the queue is open")
        try:
            await self._worker.run()
        except BaseException as raised:  # noqa: BLE001 - logged below, with its traceback
            error = raised
        if self._worker.is_leaving:
            return  # cancelled or not: this is its end
        slot.failures = 1 if _now() - slot.started_at > LONGEST_REST else slot.failures + 1
        rest = delay_after(slot.failures, first=1.0, longest=LONGEST_REST, jitter=random.random)
        slot.error = describe(error)
        asyncio.get_running_loop().call_later(rest, self._restart, slot)
        self._counts.worker_restarts.inc()
        self._log.error(
            "controller %r: worker %d ended unexpectedly: %s; restarting in %.3g s",
            self.name,
            slot.number,
            slot.error,
            rest,
            exc_info=error,
        )

    def _restart(self, slot: _WorkerSlot) -> None:
        slot.is_due = True
        self._problems_changed.set()

    def _add(self, key: Request, priority: int, reason: Reason) -> None:
        self._queue.add(key, priority=priority, reason=reason)

    def _follow(self, source: Source) -> None:
        if not source.on_problem(self._problems_changed.set):
            self._polled.append(source)
        self._problems_changed.set()

    # When it works.

    async def _wait_for_problems(self) -> None:
        """Wait until the problems of a source may have changed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY if self._polled else None):
                await self._problems_changed.wait()
        self._problems_changed.clear()

    async def _wait_synced(self) -> None:
        began = told_at = _now()
        while late := [source for source in self._sources if not source.is_synced]:
            with suppress(NotSynced):
                await late[0].wait_synced(LOOK_EVERY)
            self._open_or_close()
            if _now() - told_at >= self._sync_timeout:
                told_at = _now()
                awaited = "; ".join(self.problems)
                self._log.error("%s has waited %.0f s, and goes on: %s", self.name, told_at - began, awaited)
        self._is_synced = True
        self._open_or_close()

    def _open_or_close(self) -> None:
        """Let reconciles start, or not, by how the sources are."""
        problems = [problem for source in self._sources for problem in source.problems]
        broken = {problem.scope for problem in problems}
        refused = {problem.scope: problem for problem in problems if _is_refusal(problem)}
        for scope in refused.keys() - self._refused.keys():
            self._log.error("%s stops until this is mended: %s", self.name, refused[scope])
        # Refused and then, say, out of reach is still refused, as far as is known.
        still = {scope: problem for scope, problem in self._refused.items() if scope in broken} | refused
        if self._refused and not still:
            self._log.info("%s goes on: nothing is refused any more", self.name)
        self._refused = still
        if self._is_synced and not still:
            self._worker.gate.set()
        else:
            self._worker.gate.clear()

    async def _leave(self, workers: list[asyncio.Task[None]]) -> None:
        """Let those who work finish, in time; nobody begins."""
        self._queue.shut_down()
        self._worker.is_leaving = True
        self._worker.gate.set()
        if not workers:
            return
        with suppress(asyncio.CancelledError):
            _, late = await asyncio.wait(workers, timeout=self._grace)
            if late:
                keys = ", ".join(map(str, self._worker.running))
                self._log.warning("%s stops, and %s took longer than %g s", self.name, keys, self._grace)
        while stuck := [worker for worker in workers if not worker.done()]:
            for worker in stuck:
                worker.cancel()
            with suppress(asyncio.CancelledError):  # told once more, and so are they
                await asyncio.wait(stuck)


def _is_refusal(problem: Problem) -> bool:
    """Whether somebody must change something, in the cluster, before it can go on."""
    return how_it_failed(problem.error) is How.DENIED


def _safely(backoff: Callable[[int], float], log: logging.Logger, failures: int) -> float:
    """A backoff that always gives some seconds: the key it is asked for must not be lost."""
    try:
        seconds = float(backoff(failures))
        if not math.isfinite(seconds):
            raise ValueError(f"{seconds} is no number of seconds to wait")  # noqa: TRY301 - logged as the rest
    except BaseException:  # not async: no cancellation is meant for us
        log.exception("the backoff failed at %d failures; the usual one is used", failures)
        return _backoff(failures)
    return seconds


_backoff = partial(delay_after, jitter=random.random)


def _now() -> float:
    return asyncio.get_running_loop().time()
