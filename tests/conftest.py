"""How tests run: ``async def`` tests in a loop of their own, each under a deadline.

Four promises:

1. An ``async def`` test runs to its end in a fresh event loop; hypothesis' ``@given`` may stand on it.
2. It fails after 60 seconds (``@pytest.mark.deadline(seconds)`` for the few that need another bound).
3. It fails if it leaves a task running behind it: every task has a parent.
4. It fails if the loop reported an error that nobody awaited (a task's lost exception, a failed callback).

``@pytest.mark.slow`` marks a test that takes seconds and whose promise a quicker test guards as well, if
less thoroughly: ``make test`` leaves it out, ``make test-all`` and CI run it.

Never-awaited coroutines and unclosed resources are warnings, and warnings are errors (pyproject.toml).
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import settings

from tests.virtual_time import loop_options

DEADLINE = 60.0

# How long one example takes says something about the machine, not about the code.
settings.register_profile("setpoint", deadline=None)
settings.load_profile("setpoint")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes seconds; left out by make test, run by make test-all")
    config.addinivalue_line("markers", "virtual_time: waits take no time (for tests without sockets)")
    config.addinivalue_line("markers", "deadline(seconds): how long this async test may take; 60 unless told")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    marker = pyfuncitem.get_closest_marker("deadline")
    virtual = pyfuncitem.get_closest_marker("virtual_time") is not None
    seconds = float(marker.args[0]) if marker else DEADLINE * (10_000 if virtual else 1)
    given = getattr(test, "hypothesis", None)
    if given is not None and inspect.iscoroutinefunction(given.inner_test):
        given.inner_test = _in_a_loop(given.inner_test, seconds, virtual=virtual)
        return None  # hypothesis calls it, once for each example
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    _in_a_loop(test, seconds, virtual=virtual)(**arguments)
    return True


def _in_a_loop(
    test: Callable[..., Coroutine[Any, Any, None]], seconds: float, *, virtual: bool
) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        reported: list[dict[str, Any]] = []
        with asyncio.Runner(**loop_options(virtual)) as runner:
            runner.get_loop().set_exception_handler(lambda _loop, context: reported.append(context))
            runner.run(_bounded(test(*args, **kwargs), seconds))
        gc.collect(1)  # a task that died unseen says so when it is collected
        if reported:
            first = reported[0].get("exception")
            raise AssertionError(f"the loop reported errors that nobody awaited: {reported}") from first

    return run


async def _bounded(test: Coroutine[Any, Any, None], seconds: float) -> None:
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            await test
    except TimeoutError:
        if deadline.expired():
            raise AssertionError(f"the test did not end within {seconds:g} s") from None
        raise
    for _ in range(3):  # what was cancelled or closed just now may finish
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"the test left tasks running: {sorted(map(repr, left))}"
