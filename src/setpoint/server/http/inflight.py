"""How many requests are answered at once, and how long one may take; the numbers are kube-apiserver's.

Promises:

1. Of requests that change something only so many are under way, and of those that read, apart from them, only
   so many; one more gets 429, and is told to come again in a second.  Administrators are let in, as in
   kube-apiserver: who is to mend a server that is too busy has to reach it.
2. A request that is not done in time is given up, and gets 504.  It may ask for less time: ``?timeout=5s``.
   What writes one object has less time than what reads, or deletes many.

Not here: what lasts by its nature.  Watches and logs are neither counted nor ended; a watch says itself how
long it lasts (``registry/watching.py``).  How long a request may take to arrive, and an answer to be taken,
is ``net/listen.py``'s.

Used by ``app.py``.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from setpoint.net.listen import Answer
from setpoint.server.authorization.authorizer import MASTERS
from setpoint.server.http.answers import plain
from setpoint.server.registry.requests import Ask
from setpoint.server.statuses import StatusError, bad_request

_READS: Final = frozenset({"get", "list"})
_WRITES_ONE: Final = frozenset({"create", "update", "patch", "delete"})
# kube-apiserver's words, of its two clocks.  Of the first's it leaves out the kind, and calls them text, so
# that clients do not read them.
_TOO_LONG: Final = "Timeout: request did not complete within the allotted timeout"
_TOO_LONG_TO_WRITE: Final = (
    "Timeout: request did not complete within requested timeout - context deadline exceeded"
)

Work: TypeAlias = Coroutine[Any, Any, Answer]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many requests that read, and that write, may be under way; and how many seconds each may take.

    ``write_seconds`` are those of a request that writes one object.
    """

    reads: int = 400
    writes: int = 200
    seconds: float = 60.0
    write_seconds: float = 34.0


class InFlight:
    """The requests that are under way."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reads = _Lane(limits.reads)
        self._writes = _Lane(limits.writes)

    def __repr__(self) -> str:
        return f"<InFlight {self._reads.taken} reads, {self._writes.taken} writes>"

    async def answered(self, ask: Ask, answer: Callable[[], Work]) -> Answer:
        """What ``answer`` gives, where there is room for it and it is done in time."""
        seconds = seconds_allowed(ask.query, self._limits.seconds)
        told = _TOO_LONG
        if ask.verb in _WRITES_ONE and seconds > self._limits.write_seconds:
            seconds, told = self._limits.write_seconds, _TOO_LONG_TO_WRITE
        lane = self._reads if ask.verb in _READS else self._writes
        if lane.taken >= lane.most and MASTERS not in ask.user.groups:
            return _one_too_many()
        lane.taken += 1
        try:
            work = answer()
            try:
                waited_for = work.send(None)
            except StopIteration as done:  # as most are: a limit would take half as long as all of the answer
                found: Answer = done.value
                return found
            return await _in_time(work, waited_for, seconds, told)
        finally:
            lane.taken -= 1


async def _in_time(work: Work, waited_for: Any, seconds: float, told: str) -> Answer:
    """The answer of work that was begun and waits for something.  Raises 504, which says what is ``told``."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _resumed(work, waited_for)
    except TimeoutError:
        if not limit.expired():
            raise
        raise StatusError(504, "Timeout", told, details={}) from None


@types.coroutine
def _resumed(work: Work, waited_for: Any) -> Generator[Any, Any, Answer]:
    """The rest of it, as ``await`` would go on with it."""
    while True:
        try:
            given = yield waited_for
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the work's
            step = partial(work.throw, error)
        else:
            step = partial(work.send, given)
        try:
            waited_for = step()
        except StopIteration as done:
            found: Answer = done.value
            return found


class _Lane:
    """Requests of one sort."""

    __slots__ = ("most", "taken")

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0


def seconds_allowed(query: Mapping[str, str], most: float) -> float:
    """How long a request may take: as long as it asks for, where that is less than all may.  Raises 400."""
    asked = query.get("timeout")
    if not asked:
        return most
    from setpoint.api.times import Duration  # noqa: PLC0415 - few ask

    try:
        seconds = Duration(asked).total_seconds()
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return seconds if 0 < seconds < most else most


def _one_too_many() -> Answer:
    """No Status, but text: clients know it by its code."""
    answer = plain(429, "Too many requests, please try again later.\n")
    return replace(answer, headers={**answer.headers, "Retry-After": "1"})
