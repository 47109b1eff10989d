"""Takes a key, has it reconciled, and plans the next look.

1. However a reconcile ends, the worker goes on (``isolation.py``); so it does whatever those raise who are
   told of its looks.  Only the cancellation of the worker itself ends it: that of the reconcile, or of
   something it awaited, is a failure like any other.  A worker that ends by any other error leaves no key
   behind: it is tried again.
2. A reconcile that takes longer than ``timeout`` is cancelled, where it waits, and counts as failed.
3. While the gate is closed no reconcile starts; one that runs goes on.
4. Between two looks everything else may run: the lease is renewed while ten thousand objects are looked at.
5. What came of the last look at a key is remembered, of the newest keys.
6. Every failure is one line in the log; the traceback is there the first time, and when the error changes
   (``tracebacks.py``).  Which key a line is about is in its fields, not in its words: it is shown once.

What follows an outcome is decided in ``result.py``; which key is next, in the queue.  ``controller.py`` runs
as many workers as it was told to, and opens and closes the gate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from secrets import token_hex
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from setpoint.api.names import GroupVersionKind, Key
from setpoint.cache.consistency import CachedReader
from setpoint.controller.isolation import as_failure, run_isolated
from setpoint.controller.mapping import Reason
from setpoint.controller.result import Plan, Reconciler, Request, Result, leaves, plan
from setpoint.controller.tracebacks import Tracebacks
from setpoint.errors import QueueShutDown, SetpointError
from setpoint.metrics import ControllerMetrics
from setpoint.queue.workqueue import Taken, WorkQueue

REMEMBERED = 1_000  # keys whose last look is known
MOST_WRITTEN = 20  # writes of one look that are told of
RETRY_LOST = 1.0  # seconds until a key is tried again whose worker ended

Queue: TypeAlias = WorkQueue[Request, Reason]
_Taken: TypeAlias = Taken[Request, Reason]


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger that says with every line which look at which object it is about."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **kwargs.get("extra", {})}}


class Written(NamedTuple):
    """A write that was made, or may have been."""

    verb: str  # as RBAC spells it, and "apply"
    kind: GroupVersionKind
    key: Key
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.kind}{self.subresource and f'/{self.subresource}'} {self.key}"


@dataclass(frozen=True, slots=True)
class Look:
    """One reconcile under way."""

    controller: str
    request: Request
    id: str
    reasons: tuple[Reason, ...]  # advisory, and the first few
    failures: int  # in a row, before this look
    reader: CachedReader  # the cache, never behind what this controller wrote
    log: Log
    needs_leadership: bool = True  # of its controller
    wrote: list[Written] = field(default_factory=list)  # so far, and the first few

    def note(self, written: Written) -> None:
        """Remember a write; told of when the look has ended."""
        if len(self.wrote) < MOST_WRITTEN:
            self.wrote.append(written)


_current: ContextVar[Look | None] = ContextVar("setpoint_look", default=None)


def current_look() -> Look | None:
    """The reconcile that this code runs in, also from its tasks and threads; None outside of any."""
    return _current.get()


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """Run a block as part of a reconcile."""
    token = _current.set(look)
    try:
        yield
    finally:
        _current.reset(token)


class Looked(NamedTuple):
    """What came of the last look at a key."""

    id: str
    reasons: tuple[Reason, ...]
    at: float  # in the loop's time, when it ended
    seconds: float
    came_to: str  # of metrics.RESULTS
    error: str = ""
    failures: int = 0  # in a row
    again_in: float | None = None  # seconds from ``at``; None: when something changes
    wrote: tuple[Written, ...] = ()  # the first ``MOST_WRITTEN``
    raised: tuple[type[BaseException], ...] = ()  # what sort the error is; of a group, each that is in it


class _Surrounding:
    """What was put around every look; if it fails, that is logged, and the look goes on without."""

    __slots__ = ("_inner", "_look", "_make")

    def __init__(self, make: Callable[[Look], AbstractContextManager[object]], look: Look) -> None:
        self._make = make
        self._look = look
        self._inner: AbstractContextManager[object] | None = None

    def __enter__(self) -> None:
        try:
            inner = self._make(self._look)
            inner.__enter__()
            self._inner = inner
        except BaseException:  # not async: no cancellation is meant for us
            self._look.log.exception("%r raised before a reconcile", self._make)

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inner is None:
            return
        try:
            self._inner.__exit__(kind, raised, None)
        except BaseException as error:
            if error is not raised:
                self._look.log.exception("%r raised after a reconcile", self._make)


class Worker:
    """What the workers of one controller share; each of them is a ``run``."""

    def __init__(
        self,
        name: str,
        queue: Queue,
        reconciler: Reconciler,
        reader: CachedReader,
        metrics: ControllerMetrics,
        *,
        kind: GroupVersionKind | None = None,
        timeout: float | None = None,
        needs_leadership: bool = True,
        may_start: Callable[[], bool] = lambda: True,
    ) -> None:
        """``kind`` is what the keys are keys of; ``may_start`` is asked last, before each reconcile."""
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout={timeout}: a reconcile needs some seconds, or None to have no limit")
        self._name = name
        self._queue = queue
        self._reconciler = reconciler
        self._reader = reader
        self._metrics = metrics
        self._timeout = timeout
        self._needs_leadership = needs_leadership
        self._may_start = may_start
        self._logger = logging.getLogger(f"setpoint.controller.{name}")
        self._kind = kind
        self._words = {"controller": name}  # of every line in the log
        if kind is not None:
            self._words |= {"controller_group": kind.group, "controller_kind": kind.kind}
        self._prefix, self._count = token_hex(4), count(1)
        self.gate = asyncio.Event()
        self.is_leaving = False  # with the gate opened, whoever waits there goes home
        self.running: dict[Request, float] = {}  # since when
        self.looked: dict[Request, Looked] = {}  # oldest first
        self._tracebacks = Tracebacks()
        self.tell: list[Callable[[str, Request, Looked], None]] = []  # who wants to know of each look
        self.around: Callable[[Look], AbstractContextManager[object]] = nullcontext  # of each look

    def __repr__(self) -> str:
        return f"<Worker of {self._name}: {len(self.running)} running>"

    async def run(self) -> None:
        """Work on one key after the other, until the queue is shut down."""
        try:
            while True:
                async with self._queue.next_key() as taken:
                    await self.gate.wait()
                    if not self.is_leaving:
                        try:
                            await self._work_on(taken)
                        except BaseException:
                            self._queue.add(taken.key, after=RETRY_LOST, priority=taken.priority)
                            raise
                await asyncio.sleep(0)  # a look that reads only the cache never waits; others must run too
        except QueueShutDown:
            pass

    async def _work_on(self, taken: _Taken) -> None:
        if self._kind is not None:
            await self._reader.catch_up_with(self._kind, taken.key)
        # What came meanwhile, our own write above all, is seen by this look: it needs no other.
        taken = self._queue.joined(taken)
        if not self._may_start():
            for reason in taken.reasons or (None,):
                self._queue.add(taken.key, after=1.0, priority=taken.priority, reason=reason)
            return
        look = self._look_at(taken)
        began = self.running[taken.key] = _now()
        self._metrics.active_workers.inc()
        with looking(look), _Surrounding(self.around, look):
            try:
                outcome = await self._reconcile(look)
            finally:
                seconds = _now() - self.running.pop(taken.key)
                self._metrics.active_workers.dec()
                self._metrics.seconds.observe(seconds)
            self._follow(look, taken.priority, outcome, began + seconds, seconds)

    def _look_at(self, taken: _Taken) -> Look:
        identity = f"{self._prefix}-{next(self._count)}"
        words = {
            **self._words,
            "namespace": taken.key.namespace,
            "object_name": taken.key.name,  # "name" is the logger's own
            "reconcile_id": identity,
        }
        return Look(
            self._name,
            taken.key,
            identity,
            taken.reasons,
            self._queue.failures(taken.key),
            self._reader,
            Log(self._logger, words),
            self._needs_leadership,
        )

    async def _reconcile(self, look: Look) -> Result | BaseException | None:
        """What the reconciler returned or raised."""
        try:
            ended = await run_isolated(
                partial(self._call, look.request),
                name=f"reconcile {look.request} of {self._name}",
                timeout=self._timeout,
            )
        except asyncio.CancelledError as cancelled:
            error = cancelled.__cause__
            if error is not None and not isinstance(error, asyncio.CancelledError):
                look.log.exception("cancelled, and failed meanwhile: %s", describe(error), exc_info=error)
            raise
        if ended.timed_out:
            self._metrics.timeouts.inc()
            if isinstance(ended.error, asyncio.CancelledError | TimeoutError):
                return TimeoutError(f"it took longer than {self._timeout:g} s and was cancelled")
        if isinstance(ended.error, SystemExit):
            failure = as_failure(ended.error)
            failure.__cause__ = ended.error  # which knows the place
            return failure
        if ended.error is not None:
            return ended.error
        return ended.value if isinstance(ended.value, Result) else None

    async def _call(self, request: Request) -> Result | None:
        """Call the reconciler and check its answer: an odd one may raise anything when it is looked at."""
        answer = await self._reconciler.reconcile(request)
        if answer is None or isinstance(answer, Result):
            return answer
        raise TypeError(f"a reconciler returns a Result or None, not {answer!r}")

    def _follow(
        self,
        look: Look,
        priority: int,
        outcome: Result | BaseException | None,
        now: float,
        seconds: float,
    ) -> None:
        """Count what came of it, and see to the next look."""
        outcome, follows = _planned(outcome)
        self._count_it(follows)
        key, again_in = look.request, follows.after
        if not follows.backs_off:
            self._queue.forget(key)
        if follows.backs_off:
            reason = Reason("retry" if follows.is_failure else "requeue")
            again_in = self._queue.add_rate_limited(
                key, not_before=follows.not_before, priority=priority, reason=reason
            )
        elif again_in is not None:
            self._queue.add(key, after=again_in, priority=priority, reason=Reason("requeue"))
        error = outcome if isinstance(outcome, BaseException) else None
        looked = Looked(
            look.id,
            look.reasons,
            now,
            seconds,
            follows.counted,
            "" if error is None else describe(error),
            self._queue.failures(key),
            again_in,
            tuple(look.wrote),
            () if error is None else tuple(type(each) for each in leaves(error)),
        )
        self._remember(key, looked)
        for tell in self.tell:
            try:
                tell(self._name, key, looked)
            except BaseException:
                look.log.exception("%r raised when told how a reconcile ended", tell)
        self._log_it(look, looked, follows, error)

    def _count_it(self, follows: Plan) -> None:
        self._metrics.reconciles[follows.counted].inc()
        if follows.is_failure:
            self._metrics.errors.inc()
        if follows.is_terminal:
            self._metrics.terminal_errors.inc()
        if follows.is_bug:
            self._metrics.panics.inc()

    def _remember(self, key: Request, looked: Looked) -> None:
        self.looked.pop(key, None)
        self.looked[key] = looked
        if len(self.looked) > REMEMBERED:
            del self.looked[next(iter(self.looked))]

    def _log_it(self, look: Look, looked: Looked, follows: Plan, error: BaseException | None) -> None:
        key, log = look.request, look.log
        if error is None or not follows.is_failure:
            self._tracebacks.forget(key)
        if error is None:
            log.debug("%s after %.3f s", looked.came_to, looked.seconds)
        elif not follows.is_failure:
            log.info("%s; again in %g s", looked.error, looked.again_in)
        elif follows.is_terminal:
            log.error("failed, and is not retried until something changes: %s", looked.error)
        else:
            # What is raised on purpose says enough; for the rest the place where it was raised is needed.
            is_on_purpose = isinstance(error, SetpointError | TimeoutError)
            is_new = self._tracebacks.is_new(key, error)
            log.error(
                "failed (%d in a row), again in %.3g s: %s%s",
                looked.failures,
                looked.again_in,
                looked.error,
                "" if is_new or is_on_purpose else " (the traceback is the same as before)",
                exc_info=error if is_new and not is_on_purpose else None,
            )


def _planned(outcome: Result | BaseException | None) -> tuple[Result | BaseException | None, Plan]:
    """What follows an outcome.  An error that ``plan`` cannot read is one that is retried."""
    try:
        return outcome, plan(outcome)
    except BaseException as error:  # noqa: BLE001 - an author's error may lack, or have, any attribute
        if isinstance(outcome, BaseException):
            error.__cause__ = outcome
        return error, Plan("error", backs_off=True, is_bug=True)


def describe(error: BaseException) -> str:
    """An error in one line: its words, and what sort it is where they do not say."""
    try:
        words = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001 - an author's error may have any __str__
        return f"{type(error).__name__}: (its __str__ failed)"
    return (
        words if isinstance(error, SetpointError) else f"{type(error).__name__}: {words}".removesuffix(": ")
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
