"""Has the operator's code read the calendar of its own machine in a run: ``time.time``, ``datetime.now``.

An operator should ask ``ctx.now()``.  One that asks Python is told the same time for the length of the block,
so that two runs are the same; everybody else in the process is told the real one.  Not controlled: names that
were bound before (``from time import time``), and clocks that never go back (``time.monotonic``).

``datetime.datetime`` is a type of C's and takes no attributes, so its table of methods is changed underneath,
and put back.  Where a Python does not let that be done, it is left alone.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import partial, wraps
from typing import Any

machine_time: ContextVar[Callable[[], float] | None] = ContextVar("setpoint_machine_time", default=None)


@contextmanager
def controlled_calendar() -> Iterator[None]:
    """Whoever has a ``machine_time`` in its context reads that in the block."""
    with ExitStack() as stack:
        for name in ("gmtime", "localtime", "ctime"):
            stack.enter_context(_replaced(name, _with_default))
        for name in ("time", "time_ns", "strftime"):
            stack.enter_context(_replaced(name, _REPLACEMENTS[name]))
        stack.enter_context(_replaced_datetime())
        yield


@contextmanager
def _replaced(name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    real = getattr(time, name)
    setattr(time, name, wraps(real)(partial(replacement, real)))
    try:
        yield
    finally:
        setattr(time, name, real)


def _with_default(real: Callable[..., Any], seconds: float | None = None) -> Any:
    told = machine_time.get()
    return real(told() if told is not None and seconds is None else seconds)


def _time(real: Callable[[], float]) -> float:
    told = machine_time.get()
    return real() if told is None else told()


def _time_ns(real: Callable[[], int]) -> int:
    told = machine_time.get()
    return real() if told is None else round(told() * 1_000_000) * 1_000


def _strftime(real: Callable[..., str], form: str, *moment: Any) -> str:
    return real(form, *(moment or (time.localtime(),)))


_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "time": _time,
    "time_ns": _time_ns,
    "strftime": _strftime,
}


@contextmanager
def _replaced_datetime() -> Iterator[None]:
    """``today`` needs none: it asks ``time.time``."""
    (methods,) = gc.get_referents(datetime.__dict__)
    real_now, real_utcnow = datetime.__dict__["now"], datetime.__dict__["utcnow"]

    def now(cls: type[datetime], tz: tzinfo | None = None) -> datetime:
        told = machine_time.get()
        return real_now.__get__(None, cls)(tz) if told is None else cls.fromtimestamp(told(), tz)

    def utcnow(cls: type[datetime]) -> datetime:
        told = machine_time.get()
        if told is None:
            return cls.fromtimestamp(time.time(), UTC).replace(tzinfo=None)
        return cls.fromtimestamp(told(), UTC).replace(tzinfo=None)

    if not isinstance(methods, dict):
        yield
        return
    _change(methods, classmethod(now), classmethod(utcnow))
    try:
        yield
    finally:
        _change(methods, real_now, real_utcnow)


def _change(methods: dict[str, Any], now: Any, utcnow: Any) -> None:
    methods["now"], methods["utcnow"] = now, utcnow
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))  # which else remembers the old ones
