"""Waits until something is so, and says what it saw last if it never was.

Promises:

1. The answer is what the check gave, once that is true.  False, None and what is empty mean: not yet.
2. So do a failed assertion, a thing that is not there (NotFound, a missing key), and failures that pass by
   themselves: a server that is away, busy or behind.  Any other error is the check's own and ends the wait.
3. There is a deadline, for a check that hangs as well.  Past it an AssertionError tells what was waited for,
   for how long, and what the last look saw.

A check that only asserts gives None: let it ``return True``, for a None that means "not there yet" would
else be taken for success.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

from setpoint.errors import (
    KindNotServed,
    NotFound,
    NotSynced,
    ServerError,
    TooManyRequests,
    TransportError,
)

T = TypeVar("T")

TIMEOUT = 30.0
_SOONEST, _LATEST = 0.01, 0.2  # seconds between two looks: first, and after a while
_SHOWN = 1_000  # characters of what was seen

_NOT_YET = (
    AssertionError,
    LookupError,
    NotFound,
    KindNotServed,  # a definition is served a moment after it is established
    NotSynced,
    ServerError,
    TooManyRequests,
    TransportError,
)


@overload
async def eventually(
    check: Callable[[], Awaitable[T | None]], *, timeout: float = TIMEOUT, what: str = ""
) -> T: ...


@overload
async def eventually(check: Callable[[], T | None], *, timeout: float = TIMEOUT, what: str = "") -> T: ...


async def eventually(
    check: Callable[[], Awaitable[T | None] | T | None], *, timeout: float = TIMEOUT, what: str = ""
) -> T:
    """Call ``check``, a plain function or an async one, until it gives something true; give that.

        pod = await eventually(lambda: client.get(Pod, "web"), what="the pod is made")

    ``what`` is said if it never comes; without it, the name of the check.
    """
    deadline = asyncio.timeout(timeout)
    looks, seen, wait = 0, "", _SOONEST
    try:
        async with deadline:
            while True:
                try:
                    given = check()
                    found = await given if inspect.isawaitable(given) else given
                except _NOT_YET as error:
                    seen = f"{type(error).__name__}: {error}"
                else:
                    if found:
                        return found
                    seen = repr(found)
                looks += 1
                await asyncio.sleep(wait)
                wait = min(_LATEST, wait * 1.5)
    except TimeoutError:
        if not deadline.expired():
            raise  # the check's own
    said = f"after {looks} looks, the last saw {_shortened(seen)}" if looks else "the first look did not end"
    raise AssertionError(f"{what or _name(check)}: not so within {timeout:g} s; {said}")


def _name(check: object) -> str:
    return str(getattr(check, "__qualname__", check)).rpartition("<locals>.")[2]


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
