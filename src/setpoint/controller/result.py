"""Decides what follows a reconcile: when its key is looked at again, and what is counted.

| the reconciler                      | the key is looked at again     | failures   | counted as    |
| ----------------------------------- | ------------------------------ | ---------- | ------------- |
| returned ``None`` or ``Result()``   | when something changes         | forgotten  | success       |
| ``Result(requeue_after=s)``         | after ``s`` seconds            | forgotten  | requeue_after |
| ``Result(requeue=True)``            | backing off                    | one more   | requeue       |
| raised ``TerminalError``            | when something changes         | forgotten  | error         |
| raised ``RetryLater(s)``            | after ``s`` seconds            | forgotten  | requeue_after |
| raised anything else                | backing off                    | one more   | error         |

A change that is seen meanwhile brings the next look forward, whatever is planned here.  Of several errors
(an ``ExceptionGroup``) one that may be retried decides; then one that waits; only all terminal is terminal.

No queue, clock or metric here: ``worker.py`` carries the plan out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Literal, Protocol, TypeAlias

from setpoint.api.names import Key
from setpoint.errors import ApiError, RetryLater, TerminalError

Request: TypeAlias = Key  # which object to look at: its place, never the event that brought it up


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconciler answers: done, or when to look again.

    ``Result()`` is done.  ``requeue_after`` looks again after so many seconds, ``requeue`` at once, and then
    later each time (with backoff).  Failures are raised, not returned.
    """

    requeue_after: float | None = None
    requeue: bool = False

    def __post_init__(self) -> None:
        if self.requeue_after is None:
            return
        if self.requeue:
            raise ValueError("requeue asks for backoff and requeue_after for a time: give one of them")
        if not isfinite(self.requeue_after) or self.requeue_after < 0:
            raise ValueError(f"requeue_after={self.requeue_after} is no number of seconds to wait")


class Reconciler(Protocol):
    """Brings the world to what one object asks for.  May be called for an object that is gone."""

    def reconcile(self, request: Request, /) -> Awaitable[Result | None]: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What follows."""

    counted: Literal["success", "error", "requeue", "requeue_after"]
    after: float | None = None  # look again after so many seconds
    backs_off: bool = False  # look again after the backoff of the key; else its failures are forgotten
    not_before: float = 0.0  # seconds that the server asked to be left alone for, where it did
    is_terminal: bool = False
    is_bug: bool = False  # an error of the sort that nobody raises on purpose

    @property
    def is_failure(self) -> bool:
        return self.counted == "error"


_SUCCESS = Plan("success")
_MOST_ASKED = 300.0  # seconds; a server that asks for more may be wrong about it


def plan(outcome: Result | BaseException | None) -> Plan:
    """What follows what the reconciler returned or raised."""
    if outcome is None:
        return _SUCCESS
    match outcome:
        case Result(requeue_after=None, requeue=False):
            return _SUCCESS
        case Result(requeue_after=None):
            return Plan("requeue", backs_off=True)
        case Result(requeue_after=seconds):
            return Plan("requeue_after", after=seconds)
    errors = list(leaves(outcome))
    if any(not isinstance(error, TerminalError | RetryLater) for error in errors):
        is_bug = any(isinstance(error, BUGS) for error in errors)
        asked = [error.retry_after or 0.0 for error in errors if isinstance(error, ApiError)]
        not_before = min(_MOST_ASKED, max(asked, default=0.0))
        return Plan("error", backs_off=True, not_before=not_before, is_bug=is_bug)
    waits = [error.seconds for error in errors if isinstance(error, RetryLater)]
    if waits:
        return Plan("requeue_after", after=min(waits))
    return Plan("error", is_terminal=True)


# What Python raises where the code is wrong; Go would panic.
BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """An error; of a group, each that is in it."""
    left = [error]
    while left:  # and no recursion: groups may be nested deeper than Python can call
        each = left.pop()
        if isinstance(each, BaseExceptionGroup):
            left.extend(reversed(each.exceptions))
        else:
            yield each
