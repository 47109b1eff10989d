"""Waits until something is so, and says what it saw last if it never was.

Promises:

1. The answer is what the check gave, once that is true.  False, None and what is empty mean: not yet.
2. So do a failed assertion, a thing that is not there (NotFound, a missing key), and failures that pass by
   themselves: a server that is away, busy or behind.  Any other error is the check's own and ends the wait.
3. There is a deadline, for a check that hangs as well.  Past it an AssertionError tells what was waited for,
   for how long, and what the last look saw.

A check that only asserts gives None: let it ``return True``, for a None that means "not there yet" would
else be taken for success.

``eventually`` is for who is in a loop; ``look_until`` for who runs one from outside (``proof/lab.py``).
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
    __tracebackhide__ = True
    deadline = asyncio.timeout(timeout)
    looks = _Looks(what or name_of(check), timeout)
    try:
        async with deadline:
            while True:
                try:
                    given = check()
                    found = await given if inspect.isawaitable(given) else given
                except _NOT_YET as error:
                    looks.saw(error)
                else:
                    if found:
                        return found
                    looks.saw(found)
                await asyncio.sleep(looks.pause())
    except TimeoutError:
        if not deadline.expired():
            raise  # the check's own
    raise AssertionError(str(looks))


def look_until(
    check: Callable[[], T | None],
    now: Callable[[], float],
    pass_time: Callable[[float], object],
    *,
    timeout: float = TIMEOUT,
    what: str = "",
) -> T:
    """``eventually`` without ``await``: ``pass_time`` waits between two looks, ``now`` tells the time."""
    __tracebackhide__ = True
    looks, until = _Looks(what or name_of(check), timeout), now() + timeout
    while True:
        try:
            found = check()
        except _NOT_YET as error:
            looks.saw(error)
        else:
            if found:
                return found
            looks.saw(found)
        if now() >= until:
            raise AssertionError(str(looks))
        pass_time(min(looks.pause(), until - now()))


class _Looks:
    """What was waited for, and what was seen so far; its text is what to say if it never comes."""

    def __init__(self, what: str, timeout: float) -> None:
        self._what, self._timeout = what, timeout
        self._count, self._seen, self._pause = 0, "", _SOONEST

    def saw(self, found: object) -> None:
        self._count += 1
        seen = f"{type(found).__name__}: {found}" if isinstance(found, Exception) else repr(found)
        self._seen = seen if len(seen) <= _SHOWN else f"{seen[:_SHOWN]}… ({len(seen)} characters)"

    def pause(self) -> float:
        """Seconds until the next look: first few, then more."""
        pause, self._pause = self._pause, min(_LATEST, self._pause * 1.5)
        return pause

    def __str__(self) -> str:
        said = f"after {self._count} looks, the last saw {self._seen}"
        if not self._count:
            said = "the first look did not end"
        return f"{self._what}: not so within {self._timeout:g} s; {said}"


def name_of(check: object) -> str:
    """What a function is called where it was written."""
    return str(getattr(check, "__qualname__", check)).rpartition("<locals>.")[2]
