"""The promises of ``controller/worker.py``, in virtual time."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.names import Key
from setpoint.cache.consistency import CachedReader
from setpoint.controller.builder import as_reconciler
from setpoint.controller.mapping import Reason
from setpoint.controller.result import Request, Result
from setpoint.controller.worker import REMEMBERED, Look, Queue, Worker, current_look
from setpoint.errors import RetryLater, TerminalError
from setpoint.queue.workqueue import LOW_PRIORITY, WorkQueue
from tests.controller.world import Process, Server, until

pytestmark = pytest.mark.virtual_time

WEB, API = Key("shop", "web"), Key("shop", "api")
Answer = Result | BaseException | None


class Scripted:
    """Answers as a test says, in turn, then with Result(); and remembers when it was asked."""

    def __init__(self, *answers: Answer, seconds: float = 0.0) -> None:
        self.answers = list(answers)
        self.seconds = seconds
        self.asked: list[tuple[Request, float]] = []
        self.looks: list[Look] = []
        self.now: set[Request] = set()

    async def __call__(self, request: Request) -> Result | None:
        assert request not in self.now, "a key is never reconciled twice at once"
        self.now.add(request)
        self.asked.append((request, asyncio.get_running_loop().time()))
        look = current_look()
        assert look is not None
        self.looks.append(look)
        try:
            await asyncio.sleep(self.seconds)
            answer = self.answers.pop(0) if self.answers else Result()
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            self.now.remove(request)

    def times(self, key: Request = WEB) -> list[float]:
        return [at for asked, at in self.asked if asked == key]


class Shop:
    """Workers on a queue."""

    def __init__(self, reconcile: Callable[[Request], Awaitable[Any]], **options: Any) -> None:
        self.process = Process(Server())
        metrics = self.process.metrics
        self.queue: Queue = WorkQueue("shop", metrics, backoff=lambda failures: 2.0**failures)
        reader = CachedReader(self.process.cache)
        self.worker = Worker(
            "shop", self.queue, as_reconciler(reconcile), reader, metrics.controller("shop"), **options
        )
        self.worker.gate.set()

    def count(self, name: str, **labels: str) -> float:
        return self.process.value(f"controller_runtime_{name}", controller="shop", **labels)


@asynccontextmanager
async def working(
    reconcile: Callable[[Request], Awaitable[Any]], *, workers: int = 1, **options: Any
) -> AsyncIterator[Shop]:
    shop = Shop(reconcile, **options)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(shop.worker.run())
        yield shop
        shop.queue.shut_down()


# The contract's first two lines.


async def test_a_key_is_never_reconciled_twice_at_once() -> None:
    reconcile = Scripted(seconds=1)  # asserts it
    async with working(reconcile, workers=4) as shop:
        for _ in range(100):
            shop.queue.add(WEB)
            shop.queue.add(API)
            await asyncio.sleep(0.1)
        await until(lambda: not reconcile.now)
    assert 10 <= len(reconcile.times(WEB)) <= 12


async def test_any_number_of_changes_while_a_key_is_worked_on_mean_exactly_one_more_look() -> None:
    reconcile = Scripted(seconds=10)
    async with working(reconcile, workers=4) as shop:
        shop.queue.add(WEB)
        await until(lambda: reconcile.now)
        for _ in range(1000):
            shop.queue.add(WEB)
        await asyncio.sleep(100)
    assert reconcile.times() == [0, 10]


async def test_a_change_seen_after_a_reconcile_began_leads_to_another() -> None:
    reconcile = Scripted(seconds=10)
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(9.999)
        shop.queue.add(WEB)
        await asyncio.sleep(100)
    assert reconcile.times() == [0, 10]


# What follows an outcome.


@pytest.mark.parametrize(
    ("answer", "again", "counted"),
    [
        (Result(), [], "success"),
        (None, [], "success"),
        (Result(requeue_after=30), [30], "requeue_after"),
        (Result(requeue=True), [2], "requeue"),
        (RetryLater(7), [7], "requeue_after"),
        (TerminalError("no such image"), [], "error"),
        (errors.Conflict("update x", "it has changed"), [2], "error"),
        (ValueError("no"), [2], "error"),
    ],
    ids=repr,
)
async def test_each_outcome_is_carried_out(answer: Answer, again: list[float], counted: str) -> None:
    reconcile = Scripted(answer)
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(1000)
        assert reconcile.times() == [0, *again]
        assert shop.count("reconcile_total", result=counted) == 1 + (counted == "success" and len(again))
        assert shop.count("reconcile_errors_total") == (counted == "error")
        assert shop.queue.failures(WEB) == 0


async def test_a_failing_key_backs_off_alone() -> None:
    asked: list[tuple[Request, float]] = []

    async def reconcile(request: Request) -> None:
        asked.append((request, asyncio.get_running_loop().time()))
        if request == WEB:
            raise OSError("no")

    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(3)
        shop.queue.add(API)
        await asyncio.sleep(20)
    assert asked == [(WEB, 0), (WEB, 2), (API, 3), (WEB, 6), (WEB, 14)]


async def test_a_terminal_error_forgets_the_failures_and_waits_for_a_change() -> None:
    reconcile = Scripted(OSError("a"), OSError("b"), TerminalError("c"), OSError("d"))
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(1000)
        assert reconcile.times() == [0, 2, 6]
        assert shop.count("terminal_reconcile_errors_total") == 1

        shop.queue.add(WEB)
        await asyncio.sleep(1000)
        assert reconcile.times() == [0, 2, 6, 1000, 1002], "its next failure is the first"


async def test_waiting_for_something_outside_is_no_failure() -> None:
    reconcile = Scripted(OSError("a"), RetryLater(5, "the bucket is being made"), OSError("b"))
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(1000)
        assert reconcile.times() == [0, 2, 7, 9]
        assert shop.count("reconcile_errors_total") == 2


async def test_a_retry_keeps_the_priority_and_says_why_it_is_one() -> None:
    reconcile = Scripted(OSError("a"), Result(requeue_after=5))
    async with working(reconcile) as shop:
        shop.queue.add(WEB, priority=LOW_PRIORITY, reason=Reason("resync"))
        await asyncio.sleep(1)
        taken = shop.queue._schedule._waiting[WEB]
        assert taken.priority == LOW_PRIORITY
        await asyncio.sleep(100)
    assert [str(reason) for look in reconcile.looks for reason in look.reasons] == [
        "resync",
        "retry",
        "requeue",
    ]


# 1. Nothing that is raised ends a worker.


async def test_nothing_that_a_reconciler_raises_ends_a_worker() -> None:
    recursive = ExceptionGroup("two", [KeyError("spec"), errors.QueueShutDown("take", "not this queue")])
    raised = [recursive, StopAsyncIteration(), errors.QueueShutDown("take", "another queue"), TimeoutError()]
    reconcile = Scripted(*raised)
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(1000)
        assert len(reconcile.asked) == 5
        assert shop.count("reconcile_panics_total") == 1, "the KeyError was not meant"
        assert shop.count("reconcile_timeouts_total") == 0, "and that timeout was not ours"


async def test_the_cancellation_of_what_a_reconciler_awaited_is_a_failure_like_any_other() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    asked = 0

    async def reconcile(_: Request) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            task = asyncio.create_task(forever())
            task.cancel()
            await task

    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: asked == 1 and not shop.worker.running)
        assert shop.worker.looked[WEB].error == "CancelledError"
        await until(lambda: asked == 2)


async def test_the_cancellation_of_the_worker_passes_through() -> None:
    reconcile = Scripted(seconds=100)
    shop = Shop(reconcile)
    task = asyncio.create_task(shop.worker.run())
    shop.queue.add(WEB)
    await until(lambda: reconcile.now)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert not reconcile.now
    assert not shop.worker.running
    assert shop.count("active_workers") == 0
    assert shop.queue.stats().taken == 0


async def test_a_reconciler_cannot_end_the_process() -> None:
    reconcile = Scripted(SystemExit("enough"))
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: len(reconcile.asked) == 1 and not shop.worker.running)
        assert shop.worker.looked[WEB].error == (
            "RuntimeError: the reconciler called sys.exit('enough'), which does not end the process; "
            "raise an exception instead"
        )
        await until(lambda: len(reconcile.asked) == 2)


async def test_a_key_whose_worker_ends_is_tried_again_by_another() -> None:
    reconcile, may_start = Scripted(), iter([OSError("no epoch")])

    def ask() -> bool:
        if (error := next(may_start, None)) is not None:
            raise error
        return True

    shop = Shop(reconcile, may_start=ask)
    shop.queue.add(WEB)
    with pytest.raises(OSError, match="no epoch"):
        await shop.worker.run()
    task = asyncio.create_task(shop.worker.run())
    await until(lambda: reconcile.asked)
    shop.queue.shut_down()
    await task
    assert reconcile.asked[0][0] == WEB


class Sudden(BaseException):
    """Not an Exception."""


class Unprintable:
    def __repr__(self) -> str:
        raise Sudden


class Mute(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise Sudden

    __repr__ = __str__


class Bare(RetryLater):
    """A subclass that does not call ``super().__init__``."""

    def __init__(self) -> None:
        pass


class BareConflict(errors.Conflict):
    """The same of an error of the server."""

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    "answer",
    [
        Unprintable(),
        Mute(),
        Bare(),
        BareConflict(),
        SystemExit(Unprintable()),
        BaseExceptionGroup("a", [Bare()]),
    ],
    ids=lambda answer: type(answer).__name__,
)
async def test_nothing_that_is_odd_about_an_answer_or_error_ends_a_worker(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reconcile = Scripted(answer)
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: len(reconcile.asked) == 2)
        assert shop.count("reconcile_errors_total") == 1
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


@pytest.mark.parametrize("answer", [5, "done", True], ids=repr)
async def test_an_answer_that_is_no_result_is_a_failure_that_says_so(answer: Any) -> None:
    async def reconcile(_: Request) -> Any:
        return answer

    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
        assert f"not {answer!r}" in shop.worker.looked[WEB].error


async def test_a_reconciler_that_is_not_async_is_a_failure_that_says_so() -> None:
    def reconcile(_: Request) -> Any:
        return Result()

    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
        assert "await" in shop.worker.looked[WEB].error


# 2. The timeout.


async def test_a_reconcile_that_takes_too_long_is_cancelled_where_it_waits() -> None:
    reconcile = Scripted(seconds=100)
    async with working(reconcile, timeout=5) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
        assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.5)
        assert not reconcile.now
        assert "longer than 5 s" in shop.worker.looked[WEB].error
        assert shop.count("reconcile_timeouts_total") == 1
        assert shop.count("reconcile_errors_total") == 1
        reconcile.seconds = 0
        await asyncio.sleep(10)
        assert reconcile.times() == [0, 7], "and backs off"


async def test_a_reconciler_that_will_not_be_cancelled_still_counts_as_late() -> None:
    async def reconcile(_: Request) -> Result:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        return Result()

    async with working(reconcile, timeout=5) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
        assert shop.count("reconcile_timeouts_total") == 1
        assert shop.worker.looked[WEB].came_to == "success"


def test_a_timeout_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="needs some seconds"):
        Shop(Scripted(), timeout=0)


# 3. The gate.


async def test_while_the_gate_is_closed_no_reconcile_starts_and_one_that_runs_goes_on() -> None:
    reconcile = Scripted(seconds=10)
    async with working(reconcile, workers=2) as shop:
        shop.queue.add(WEB)
        await until(lambda: reconcile.now)
        shop.worker.gate.clear()
        shop.queue.add(API)
        await asyncio.sleep(100)
        assert reconcile.asked == [(WEB, 0)]
        assert shop.worker.looked[WEB].came_to == "success"

        shop.worker.gate.set()
        await asyncio.sleep(100)
        assert reconcile.times(API) == [pytest.approx(100, abs=1)]


async def test_what_may_not_start_just_now_is_kept_for_later_with_its_reasons() -> None:
    may_start, reconcile = False, Scripted()
    async with working(reconcile, may_start=lambda: may_start) as shop:
        shop.queue.add(WEB, reason=Reason("resync"))
        shop.queue.add(API)
        await asyncio.sleep(10)
        assert not reconcile.asked

        may_start = True
        await asyncio.sleep(10)
        assert {key for key, _ in reconcile.asked} == {WEB, API}
    assert {look.reasons for look in reconcile.looks} == {(Reason("resync"),), ()}


# 4. Others.


async def test_between_two_looks_everything_else_may_run() -> None:
    looked = 0
    seen: list[int] = []

    async def reconcile(_: Request) -> None:
        nonlocal looked
        looked += 1

    async with working(reconcile) as shop:
        for number in range(100):
            shop.queue.add(Key("shop", f"web-{number}"))
        while looked < 100:
            await asyncio.sleep(0)
            seen.append(looked)
    assert len(seen) >= 100


# 5. What is known of a look, meanwhile and afterwards.


async def test_code_knows_the_look_it_is_part_of_also_in_tasks_and_threads() -> None:
    seen: list[Look | None] = []

    async def reconcile(_: Request) -> None:
        async def inner() -> None:
            seen.append(current_look())

        await asyncio.create_task(inner())
        await asyncio.to_thread(lambda: seen.append(current_look()))
        seen.append(current_look())

    shop = Shop(reconcile)
    loop = asyncio.get_running_loop()
    loop.slow_callback_duration = 10
    task = asyncio.create_task(shop.worker.run())
    shop.queue.add(WEB, reason=Reason("resync"))
    while len(seen) < 3:
        await asyncio.sleep(0)  # a thread takes real time
    shop.queue.shut_down()
    await task

    (look,) = {id(each): each for each in seen}.values()
    assert look is not None
    assert (look.controller, look.request, look.reasons, look.failures) == (
        "shop",
        WEB,
        (Reason("resync"),),
        0,
    )
    assert current_look() is None


async def test_each_look_has_an_id_and_knows_how_often_its_key_failed() -> None:
    reconcile = Scripted(OSError("a"), OSError("b"))
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(100)
    assert [look.failures for look in reconcile.looks] == [0, 1, 2]
    assert len({look.id for look in reconcile.looks}) == 3


async def test_what_came_of_a_look_is_remembered_of_the_newest_keys() -> None:
    reconcile = Scripted(OSError("no room"), Result(requeue_after=1e6))
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
        looked = shop.worker.looked[WEB]
        assert (looked.came_to, looked.error, looked.failures, looked.again_in) == (
            "error",
            "OSError: no room",
            1,
            2.0,
        )
        await asyncio.sleep(10)
        looked = shop.worker.looked[WEB]
        assert (looked.came_to, looked.error, looked.again_in) == ("requeue_after", "", 1e6)
        for number in range(REMEMBERED):
            shop.queue.add(Key("shop", f"web-{number}"))
        await asyncio.sleep(10)
        assert len(shop.worker.looked) == REMEMBERED
        assert WEB not in shop.worker.looked


async def test_a_line_of_the_log_says_which_look_at_which_object_it_is_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def reconcile(_: Request) -> None:
        look = current_look()
        assert look is not None
        look.log.warning("hm", extra={"colour": "red"})
        raise errors.Conflict("update v1 ConfigMap shop/web", "it has changed")

    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
    said, failed = caplog.records[:2]
    for record in (said, failed):
        assert record.name == "setpoint.controller.shop"
        words = vars(record)
        assert (words["controller"], words["namespace"], words["object_name"]) == ("shop", "shop", "web")
        assert words["reconcile_id"] == shop.worker.looked[WEB].id
    assert vars(said)["colour"] == "red"
    assert failed.levelno == logging.ERROR
    assert "update v1 ConfigMap shop/web: it has changed" in failed.getMessage()
    assert failed.exc_info is None, "what is raised on purpose says enough"


async def test_an_error_that_nobody_raised_on_purpose_shows_where_it_came_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with working(Scripted(KeyError("spec"))) as shop:
        shop.queue.add(WEB)
        await until(lambda: WEB in shop.worker.looked)
    assert "Scripted" in caplog.text or "__call__" in caplog.text
    assert "KeyError: 'spec'" in caplog.text


async def test_a_traceback_is_logged_the_first_time_and_again_when_the_error_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raised: list[Callable[[], object]] = []

    async def reconcile(_: Request) -> None:
        if raised:
            raised.pop(0)()

    def one() -> None:
        raise KeyError("spec")

    def other() -> None:
        raise KeyError("spec")

    raised += [one, one, one, other, other, one, lambda: None, one, sys.exit, sys.exit]
    async with working(reconcile) as shop:
        while raised:
            shop.queue.add(WEB)
            await asyncio.sleep(0.1)
    failed = [record for record in caplog.records if "failed" in record.getMessage()]
    assert [record.exc_info is not None for record in failed] == [
        *(True, False, False),
        *(True, False),
        True,
        True,  # it had succeeded
        *(True, False),
    ]
    counted = [f"failed ({number} in a row)" for number in (1, 2, 3, 4, 5, 6, 1, 2, 3)]
    for record, words in zip(failed, counted, strict=True):
        said = record.getMessage()
        assert said.startswith(words)
        assert ("the same as before" in said) == (record.exc_info is None)
        assert "\n" not in said


async def test_each_key_has_its_own_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(_: Request) -> None:
        raise KeyError("spec")

    async with working(reconcile) as shop:
        for key in (WEB, API):
            shop.queue.add(key)
        await until(lambda: shop.count("reconcile_errors_total") >= 6)
    assert sum(record.exc_info is not None for record in caplog.records) == 2


async def test_something_may_be_put_around_every_look_and_is_told_what_came_of_it() -> None:
    happened: list[str] = []

    @contextmanager
    def around(look: Look) -> Iterator[None]:
        happened.append(f"begin {look.request}")
        yield
        happened.append("end")

    shop = Shop(Scripted(errors.TerminalError("no")))
    shop.worker.around = around
    shop.worker.tell.append(lambda name, key, looked: happened.append(f"{name} {key} {looked.came_to}"))
    shop.queue.add(WEB)
    task = asyncio.create_task(shop.worker.run())
    await until(lambda: len(happened) == 3)
    shop.queue.shut_down()
    await task
    assert happened == ["begin shop/web", "shop shop/web error", "end"]


@pytest.mark.parametrize("when", ["made", "before", "after", "told"])
async def test_those_who_are_told_of_looks_cannot_end_a_worker(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def around(_: Look) -> Iterator[None]:
        if when == "before":
            raise OSError("no traces today")
        yield
        if when == "after":
            raise OSError("no traces today")

    def make(look: Look) -> AbstractContextManager[None]:
        if when == "made":
            raise OSError("no traces today")
        return around(look)

    def tell(*_: object) -> None:
        if when == "told":
            raise OSError("no traces today")

    reconcile = Scripted()
    async with working(reconcile) as shop:
        shop.worker.around = make
        shop.worker.tell.append(tell)
        for key in (WEB, API):
            shop.queue.add(key)
        await until(lambda: len(shop.worker.looked) == 2)
        assert [looked.came_to for looked in shop.worker.looked.values()] == ["success", "success"]
    assert "no traces today" in caplog.text


async def test_what_is_put_around_a_look_hears_of_its_end() -> None:
    ends: list[str] = []

    @contextmanager
    def around(_: Look) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    shop = Shop(Scripted(seconds=100))
    shop.worker.around = around
    task = asyncio.create_task(shop.worker.run())
    shop.queue.add(WEB)
    await until(lambda: shop.worker.running)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert ends == ["cancelled"]


async def test_what_runs_is_shown_with_its_age() -> None:
    reconcile = Scripted(seconds=10)
    async with working(reconcile) as shop:
        shop.queue.add(WEB)
        await asyncio.sleep(4)
        assert shop.worker.running == {WEB: 0.0}
        assert shop.count("active_workers") == 1
        assert repr(shop.worker) == "<Worker of shop: 1 running>"
        await asyncio.sleep(10)
        assert not shop.worker.running
        assert shop.count("reconcile_time_seconds_sum") == 10
