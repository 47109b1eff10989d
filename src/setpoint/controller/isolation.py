"""Runs an author's coroutine so that, however it ends, only its own task ends.

1. It runs in a task of its own.  What it does to that task ends with it: cancelling it, or leaving
   ``cancelling()`` above 0, as a failed ``asyncio.TaskGroup`` does on Python 3.11 and 3.12.
2. Whatever it raises is returned as a value, ``SystemExit`` and ``KeyboardInterrupt`` included.
3. The tasks that it starts cannot end the process either.  asyncio passes ``SystemExit`` and
   ``KeyboardInterrupt`` of any task on to whoever runs the event loop; in these tasks they become a
   ``RuntimeError``.
4. Whoever waits may be cancelled: each cancellation is passed on to the coroutine, and when that has ended,
   the wait raises ``CancelledError``.
5. After ``timeout`` seconds the coroutine is cancelled, once.

A callback that the coroutine gives to the loop (``loop.call_soon(sys.exit)``) is in no task, and still ends
the process.  Used by ``worker.py`` for reconciles and by ``controller.py`` for sources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_is_isolated: ContextVar[bool] = ContextVar("setpoint_is_isolated", default=False)


@dataclass(slots=True)
class Ended:
    """How a coroutine ended: what it returned, or the exception."""

    value: object = None
    error: BaseException | None = None
    timed_out: bool = False  # it was cancelled because of its timeout, whatever it made of that


async def run_isolated(
    call: Callable[[], Awaitable[object]], *, name: str, timeout: float | None = None
) -> Ended:
    """Call an async function, wait until it ends, and return how."""
    waiting = asyncio.current_task()
    if waiting is None:
        raise AssertionError("a coroutine is awaited in a task")
    loop = asyncio.get_running_loop()
    if not isinstance(loop.get_task_factory(), _TaskFactory):
        loop.set_task_factory(_TaskFactory(loop.get_task_factory()))
    # A task that is cancelled before its first step, or in its last, has no result: it goes in here.
    ended = Ended(error=asyncio.CancelledError("cancelled before it began"))
    task = loop.create_task(_run(call, ended), name=name)

    def expire() -> None:
        ended.timed_out = True
        task.cancel()

    timer = None if timeout is None else loop.call_later(timeout, expire)
    try:
        await task  # whoever cancels this task cancels that one
    except asyncio.CancelledError:
        pass  # of either task: told apart below
    finally:
        if timer is not None:
            timer.cancel()
    if waiting.cancelling():
        raise asyncio.CancelledError from ended.error
    return ended


async def _run(call: Callable[[], Awaitable[object]], ended: Ended) -> None:
    _is_isolated.set(True)  # in the context of this task
    try:
        ended.value = await call()
        ended.error = None
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is how the call ended
        ended.error = error
    finally:
        del ended  # the traceback holds this frame: together they would be a cycle


class _TaskFactory:
    """Creates tasks as before, and contains those that an isolated coroutine starts."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        context = options.get("context")
        is_inherited = _is_isolated.get() if context is None else context.get(_is_isolated, False)
        if (is_inherited or _is_isolated.get()) and asyncio.iscoroutine(coro):
            coro = _Contained(coro)
            if context is not None and not is_inherited:
                context.run(_is_isolated.set, True)  # so that the tasks which it starts are contained, too
        if self._inner is None:
            return asyncio.Task(coro, loop=loop, **options)
        return self._inner(loop, coro, **options)


class _Contained(Coroutine[Any, Any, Any]):
    """A coroutine whose ``SystemExit`` and ``KeyboardInterrupt`` are an ordinary error of its task."""

    def __init__(self, coro: Coroutine[Any, Any, Any]) -> None:
        self._coro = coro

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coro, name)  # cr_frame and the like, for stacks and names

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._coro.__await__())

    def send(self, value: Any) -> Any:
        try:
            return self._coro.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise as_failure(error) from error

    def throw(self, *error: Any) -> Any:
        try:
            return self._coro.throw(*error)
        except (SystemExit, KeyboardInterrupt) as raised:
            raise as_failure(raised) from raised

    def close(self) -> None:
        self._coro.close()


def as_failure(error: SystemExit | KeyboardInterrupt) -> RuntimeError:
    """The error that stands for an attempt to end the process."""
    what = (
        f"called sys.exit({_shown(error.code)})"
        if isinstance(error, SystemExit)
        else "raised KeyboardInterrupt"
    )
    return RuntimeError(f"the reconciler {what}, which does not end the process; raise an exception instead")


def _shown(value: object) -> str:
    try:
        return repr(value)
    except BaseException:  # noqa: BLE001 - an author's object may have any __repr__
        return f"<{type(value).__name__}>"
