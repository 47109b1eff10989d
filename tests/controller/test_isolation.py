"""The promises of ``controller/isolation.py``: no way in which a reconcile ends is the end of a worker.

Each way is tried in each form a reconciler may have: ``async def``, a plain function (in a thread), and both
sorts of generators.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint import errors
from setpoint.api.names import Key
from setpoint.controller.context import Context
from setpoint.controller.isolation import run_isolated
from setpoint.controller.sync_context import SyncContext
from setpoint.manager.manager import Manager
from setpoint.operator import Operator
from tests.controller.cluster import Child, Cluster, Parent, child, running, until

pytestmark = pytest.mark.virtual_time

WEB = Key("shop", "web")
Raise = Callable[[], NoReturn]
Await = Callable[[], Awaitable[object]]


class Sudden(BaseException):
    """Not an Exception."""


class Wordless(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


def every_exception() -> Iterator[BaseException]:
    """One of every type that Python and we have; without its arguments, where it wants any."""
    ours = [*vars(errors).values(), Sudden, Wordless, asyncio.CancelledError, asyncio.InvalidStateError]
    for each in [*vars(builtins).values(), *ours]:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            continue
        if issubclass(each, errors.TerminalError | errors.RetryLater):
            continue  # which are not retried, or are no failure
        try:
            yield each()
        except TypeError:
            if not issubclass(each, BaseExceptionGroup):
                yield each.__new__(each)


def nested(error: BaseException, depth: int) -> BaseException:
    for _ in range(depth):
        error = BaseExceptionGroup("a group", [error])
    return error


def raising(error: BaseException) -> Raise:
    def end() -> NoReturn:
        raise error

    return end


# Ways to end that every function has.

RAISED = {type(error).__name__: raising(error) for error in every_exception()}
GROUPS = {
    "a group": raising(nested(OSError("no"), 1)),
    "a group of SystemExit": raising(nested(SystemExit(3), 2)),
    "a group of CancelledError": raising(nested(asyncio.CancelledError(), 1)),
    "a deep group": raising(nested(KeyError("spec"), 3000)),
    "a group of many": raising(BaseExceptionGroup("both", [Sudden(), nested(GeneratorExit(), 3)])),
}
EXITS: dict[str, Raise] = {"sys.exit()": sys.exit, "sys.exit(3)": lambda: sys.exit(3)}
PLAIN = RAISED | GROUPS | EXITS


# Ways to end that an async function has besides.


async def forever() -> None:
    await asyncio.Event().wait()


async def leaving() -> NoReturn:
    await asyncio.sleep(0.01)
    sys.exit(3)


async def interrupted() -> NoReturn:
    raise KeyboardInterrupt


async def failing() -> NoReturn:
    await asyncio.sleep(0.01)
    raise OSError("no")


def me() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def cancels_itself() -> None:
    me().cancel()
    await asyncio.sleep(0)


async def cancels_itself_often() -> None:
    for _ in range(3):
        me().cancel()
    await forever()


async def awaits_what_is_cancelled() -> None:
    task = asyncio.create_task(forever())
    task.cancel()
    await task


async def task_group_fails() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(failing())
        tasks.create_task(forever())


async def survives_a_task_group_and_awaits_what_is_cancelled() -> None:
    with suppress(ExceptionGroup):
        await task_group_fails()
    await awaits_what_is_cancelled()


async def a_task_group_in_a_task_group_fails() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(task_group_fails())
        tasks.create_task(survives_a_task_group_and_awaits_what_is_cancelled())


async def a_child_calls_sys_exit() -> None:
    await asyncio.create_task(leaving())


async def a_child_raises_keyboard_interrupt() -> None:
    await asyncio.create_task(interrupted())


async def a_child_in_a_task_group_calls_sys_exit() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(leaving())
        tasks.create_task(forever())


async def a_gathered_child_calls_sys_exit() -> None:
    await asyncio.gather(leaving(), leaving())


async def a_grandchild_calls_sys_exit() -> None:
    await asyncio.create_task(a_child_calls_sys_exit())


async def a_grandchild_in_another_context_calls_sys_exit() -> None:
    await asyncio.create_task(a_child_calls_sys_exit(), context=contextvars.Context())


async def a_child_that_is_cancelled_calls_sys_exit() -> None:
    async def stubborn() -> None:
        try:
            await forever()
        finally:
            sys.exit(3)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def a_child_that_nobody_awaits_calls_sys_exit() -> None:
    task = asyncio.create_task(leaving())
    task.add_done_callback(lambda ended: ended.exception())
    await asyncio.sleep(1)
    raise OSError("and it failed otherwise")


async def a_future_holds_system_exit() -> None:
    future = asyncio.get_running_loop().create_future()
    future.set_exception(SystemExit(3))
    await future


async def a_deadline_of_its_own_passes() -> None:
    async with asyncio.timeout(0.01):
        await forever()


async def an_async_generator_fails() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        sys.exit(3)

    async for _ in numbers():
        pass


WAITING: dict[str, Await] = {
    each.__name__: each
    for each in (
        cancels_itself,
        cancels_itself_often,
        awaits_what_is_cancelled,
        task_group_fails,
        survives_a_task_group_and_awaits_what_is_cancelled,
        a_task_group_in_a_task_group_fails,
        a_child_calls_sys_exit,
        a_child_raises_keyboard_interrupt,
        a_child_in_a_task_group_calls_sys_exit,
        a_gathered_child_calls_sys_exit,
        a_grandchild_calls_sys_exit,
        a_grandchild_in_another_context_calls_sys_exit,
        a_child_that_is_cancelled_calls_sys_exit,
        a_child_that_nobody_awaits_calls_sys_exit,
        a_future_holds_system_exit,
        a_deadline_of_its_own_passes,
        an_async_generator_fails,
    )
}
FORMS = ("coroutine", "plain", "generator", "async generator", "plain that waits")
AWAITED = [(form, name) for form in ("coroutine", "async generator", "plain that waits") for name in WAITING]
WAYS = AWAITED + [(form, name) for form in FORMS for name in PLAIN]


class Failing:
    """An operator whose reconciles of ``web`` end in the given ways, in turn, and then succeed."""

    def __init__(self, ways: list[tuple[str, str]], *, workers: int = 2) -> None:
        self.ways = list(ways)
        self.done: list[str] = []
        self.now = ("coroutine", "")
        self.operator = Operator("op")
        functions = {
            "coroutine": self.coroutine,
            "plain": self.plain,
            "plain that waits": self.plain,
            "generator": self.generator,
            "async generator": self.async_generator,
        }
        # One controller for each form, for the form is that of its function.
        self.forms = {functions[form].__name__ for form, _ in ways}
        for name in self.forms:
            options: Any = {"name": name, "workers": workers, "backoff": lambda _: 1.0, "owns": [Child]}
            self.operator.controller(Parent, **options)(getattr(self, name))

    def next_way(self, parent: Parent, *forms: str) -> str:
        """How this one ends; "" where it succeeds."""
        name = parent.metadata.name or ""
        mine = [way for way in self.ways if way[0] in forms]
        if name == "web" and mine:
            self.now = mine[0]
            self.ways.remove(self.now)
            return self.now[1]
        self.done.append(f"{forms[0].replace(' ', '_')} {name}")
        return ""

    async def end(self, way: str) -> None:
        if way in WAITING:
            await WAITING[way]()
        elif way:
            PLAIN[way]()

    async def coroutine(self, parent: Parent, _: Context) -> None:
        await self.end(self.next_way(parent, "coroutine"))

    async def async_generator(self, parent: Parent, _: Context) -> AsyncIterator[Child]:
        if way := self.next_way(parent, "async generator"):
            yield child("of-web")
        await self.end(way)

    def generator(self, parent: Parent, _: SyncContext) -> Iterator[Child]:
        if way := self.next_way(parent, "generator"):
            yield child("of-web-too")
            PLAIN[way]()

    def plain(self, parent: Parent, ctx: SyncContext) -> None:
        way = self.next_way(parent, "plain", "plain that waits")
        if way in WAITING or self.now[0] == "plain that waits":
            ctx.wait(self.end(way))
        elif way:
            PLAIN[way]()


def live_workers(controller: str) -> int:
    names = [task.get_name() for task in asyncio.all_tasks()]
    return sum(name.startswith("worker ") and name.endswith(f" of {controller}") for name in names)


@contextmanager
def logged() -> Iterator[list[logging.LogRecord]]:
    """The records of all controllers, formatted as a handler would."""
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            self.format(record)
            records.append(record)

    logger, keep = logging.getLogger("setpoint.controller"), Keep()
    logger.addHandler(keep)
    try:
        yield records
    finally:
        logger.removeHandler(keep)


async def ends_well(ways: list[tuple[str, str]]) -> None:
    """Have reconciles end in these ways: no worker is lost, and each is logged, counted and retried."""
    server, failing = Cluster(), Failing(ways)
    server.put("parents", "web")
    names = ("api", "db", "queue")  # more than there are workers
    with logged() as records:
        async with running(failing.operator, server) as manager:
            await until(lambda: not failing.ways and failing.done)  # in vain, where one was not tried again
            for name in names:
                server.put("parents", name)
            wanted = {f"{form} {name}" for form in failing.forms for name in ("web", *names)}
            await until(lambda: wanted <= {*failing.done})
            await until(lambda: not any(each.stats().running for each in manager.controllers))
            for controller in manager.controllers:
                assert live_workers(controller.name) == 2
                assert not controller.ended_workers
            assert _errors(manager) == len(ways)
            assert manager.probes.health["workers"]() is None
    failed = [record for record in records if record.levelno == logging.ERROR]
    assert len(failed) == len(ways), [record.getMessage() for record in records]


def _errors(manager: Manager) -> float:
    value = manager.metrics.registry.get_sample_value
    name = "controller_runtime_reconcile_errors_total"
    return sum(value(name, {"controller": each.name}) or 0 for each in manager.controllers)


@pytest.mark.parametrize("form", FORMS)
async def test_no_exception_that_a_reconciler_raises_ends_a_worker(form: str) -> None:
    await ends_well([(form, name) for name in PLAIN])


@pytest.mark.parametrize(("form", "way"), AWAITED)
async def test_nothing_that_happens_to_the_tasks_of_a_reconcile_ends_a_worker(form: str, way: str) -> None:
    await ends_well([(form, way)])


@settings(max_examples=20)
@given(st.lists(st.sampled_from(WAYS), min_size=2, max_size=8))
async def test_no_sequence_of_ways_to_end_does_either(ways: list[tuple[str, str]]) -> None:
    await ends_well(ways)


# What the function promises by itself.


async def test_what_is_returned_and_what_is_raised_come_back_as_values() -> None:
    async def answer() -> int:
        return 3

    ended = await run_isolated(answer, name="answer")
    assert (ended.value, ended.error, ended.timed_out) == (3, None, False)
    ended = await run_isolated(failing, name="fail")
    assert isinstance(ended.error, OSError)


async def test_a_cancellation_of_its_task_on_the_last_step_loses_no_result() -> None:
    async def answer() -> int:
        me().cancel()
        return 3

    ended = await run_isolated(answer, name="answer")
    assert (ended.value, ended.error) == (3, None)


async def test_whoever_waits_passes_each_cancellation_on_and_ends_when_the_coroutine_has() -> None:
    heard: list[int] = []

    async def stubborn() -> None:
        for number in range(3):
            try:
                await forever()
            except asyncio.CancelledError:
                heard.append(number)

    task = asyncio.create_task(run_isolated(stubborn, name="stubborn"))
    for number in range(3):
        await asyncio.sleep(1)
        assert heard == list(range(number))
        task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert heard == [0, 1, 2]


async def test_a_cancellation_that_came_before_the_first_step_is_not_lost() -> None:
    began: list[bool] = []

    async def begin() -> None:
        began.append(True)

    async def wait() -> None:
        me().cancel()
        await run_isolated(begin, name="begin")

    task = asyncio.create_task(wait())
    await asyncio.wait([task])
    assert task.cancelled()
    assert not began


async def test_the_timeout_cancels_once_and_says_so() -> None:
    ended = await run_isolated(forever, name="forever", timeout=5)
    assert asyncio.get_running_loop().time() == 5
    assert ended.timed_out
    assert isinstance(ended.error, asyncio.CancelledError)


async def test_after_a_failed_task_group_the_timeout_is_still_a_timeout() -> None:
    async def slow() -> None:
        with suppress(ExceptionGroup):
            await task_group_fails()
        await forever()

    ended = await run_isolated(slow, name="slow", timeout=5)
    assert ended.timed_out
    assert isinstance(ended.error, asyncio.CancelledError)


async def test_tasks_outside_of_it_are_what_they_were() -> None:
    made: list[Any] = []

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **options)

    async def starts_a_task() -> None:
        await asyncio.create_task(asyncio.sleep(0), name="mine")

    asyncio.get_running_loop().set_task_factory(factory)
    await run_isolated(starts_a_task, name="starts")
    inside = made[-1]
    assert inside.__qualname__ == "sleep", "a contained coroutine shows what it contains"
    assert inside.cr_code is asyncio.sleep.__code__
    outside = asyncio.sleep(0)
    await asyncio.create_task(outside)
    assert made[-1] is outside
