"""Decides which Events are sent to the server, and which only counted.

As client-go does it, so that no controller floods a server with Events:

1. What happens again is no second Event but a *series*: the first is sent, the second turns it into a series,
   all further ones are counted here.  The count is sent every half hour, and once more when it has not
   happened for six minutes, which ends the series.
2. Of what differs only in its note, ten are sent within ten minutes; then they are combined into one series.
3. About one object, 25 requests may be made at once, and one more every five minutes; the rest is dropped.
4. What is remembered is bounded: the oldest is forgotten.

Time comes in as ``now`` (seconds) for deciding, and as ``time`` for saying it.  ``recorder.py`` sends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

from setpoint.api.times import MicroTime

K = TypeVar("K")
V = TypeVar("V")
EventType: TypeAlias = Literal["Normal", "Warning"]

FINISHED_AFTER = 360.0
REFRESHED_EVERY = 1800.0
COMBINED_ABOVE = 10
COMBINED_WITHIN = 600.0
BURST = 25
REFILL = 1 / 300  # a second
REMEMBERED = 4096

_COMBINED = "(combined from similar events): "


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """What is to be told, and by which controller: to people, about an object."""

    controller: str
    regarding: Reference
    type: EventType
    reason: str  # one word in CamelCase, for programs
    action: str  # what was done, likewise
    note: str
    related: Reference | None = None


@dataclass(frozen=True, slots=True)
class New:
    """An Event to be made; ``number`` tells it apart from all others of this process."""

    happening: Happening
    time: MicroTime
    number: int


@dataclass(frozen=True, slots=True)
class Again:
    """An Event that was made, and has happened so often by now."""

    first: New
    count: int
    time: MicroTime


@dataclass(slots=True)
class _Series:
    first: New
    last: MicroTime
    last_now: float
    count: int = 1
    sent_count: int = 1
    sent_now: float = 0.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    at: float
    notes: set[str] = field(default_factory=set)
    combined: Happening | None = None


class EventSeries:
    """What was told lately."""

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._series: dict[Happening, _Series] = {}
        self._similar: dict[Happening, _Similar] = {}
        self._buckets: dict[Reference, _Bucket] = {}
        self._number = 0
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<EventSeries {len(self._series)} told lately, {self.dropped} dropped>"

    @property
    def is_open(self) -> bool:
        """Whether there is anything to come back to."""
        return bool(self._series)

    def add(self, happening: Happening, *, now: float, time: MicroTime) -> New | Again | None:
        """It happened; what to send, if anything."""
        happening = self._combined(happening, now)
        known = self._series.get(happening)
        if known is not None and now - known.last_now < FINISHED_AFTER:
            known.count, known.last, known.last_now = known.count + 1, time, now
            if known.count > 2 or not self._may_send(happening.regarding, now):
                return None
            return _sent(known, now)
        if not self._may_send(happening.regarding, now):
            self.dropped += 1
            return None
        self._number += 1
        first = New(happening, time, self._number)
        self._series.pop(happening, None)
        self._series[happening] = _Series(first, time, now, sent_now=now)
        _trim(self._series, self._remembered)
        return first

    def due(self, *, now: float) -> Iterator[Again]:
        """The counts to be sent by now; series that are over are forgotten."""
        for happening, series in list(self._series.items()):
            is_over = now - series.last_now >= FINISHED_AFTER
            if is_over:
                del self._series[happening]
            if series.count > series.sent_count and (is_over or now - series.sent_now >= REFRESHED_EVERY):
                yield _sent(series, now)

    def finish(self, *, now: float) -> Iterator[Again]:
        """The counts that nobody was told yet: the process ends."""
        for series in self._series.values():
            if series.count > series.sent_count:
                yield _sent(series, now)
        self._series.clear()

    def _combined(self, happening: Happening, now: float) -> Happening:
        alike = replace(happening, note="")
        known = self._similar.pop(alike, None)
        if known is None or now - known.at > COMBINED_WITHIN:
            known = _Similar(now)
        self._similar[alike] = known
        _trim(self._similar, self._remembered)
        known.at = now
        if happening.note in known.notes or len(known.notes) < COMBINED_ABOVE:
            known.notes.add(happening.note)
            return happening
        if known.combined is None:  # the note of the first that is combined stands for all
            known.combined = replace(happening, note=_COMBINED + happening.note)
        return known.combined

    def _may_send(self, regarding: Reference, now: float) -> bool:
        bucket = self._buckets.pop(regarding, None) or _Bucket(BURST, now)
        self._buckets[regarding] = bucket
        _trim(self._buckets, self._remembered)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) * REFILL)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _sent(series: _Series, now: float) -> Again:
    series.sent_count, series.sent_now = series.count, now
    return Again(series.first, series.count, series.last)


def _trim(remembered: dict[K, V], limit: int) -> None:
    while len(remembered) > limit:
        del remembered[next(iter(remembered))]
