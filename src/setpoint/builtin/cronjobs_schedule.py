"""Reads a cron schedule, and says when it next comes to pass.

Five fields (minute, hour, day of month, month, day of week) of ``*``, ``?``, numbers, names (``jan``,
``mon``), ranges, lists and steps; or one of ``@yearly``, ``@monthly``, ``@weekly``, ``@daily``, ``@hourly``
and ``@every 1h30m``.  Where both days are given, either is enough; Sunday is 0, and 7 is nothing.  These are
the rules that kube-controller-manager follows, down to what it refuses: libraries for schedules know more.

Times are those of a clock on the wall in a time zone.  What a clock that is put forward leaps over does not
come to pass that day; what one that is put back shows twice comes to pass twice.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, Protocol

from setpoint.api.times import Duration

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS_AHEAD: Final = 366 * 9  # so far it is looked: the 29th of February comes within eight years, or never


class Schedule(Protocol):
    """When something is to happen."""

    def next(self, after: datetime) -> datetime | None:
        """The first time after this one; None if there is none."""


def parse(text: str, zone: tzinfo = UTC) -> Schedule:
    """The schedule that a text means; ValueError with a sentence if it means none."""
    text = text.strip()
    if text.startswith("@every "):
        every = Duration(text.removeprefix("@every ").strip()).total_seconds()
        return Every(max(1, int(every)))
    if text.startswith("@"):
        if text not in _SHORTHANDS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _SHORTHANDS[text]
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: {fields}")
    minute, hour, day, month, weekday = fields
    return Fields(
        minutes=_read(minute, 0, 59),
        hours=_read(hour, 0, 23),
        days=_read(day, 1, 31),
        months=_read(month, 1, 12, _MONTHS),
        weekdays=_read(weekday, 0, 6, _DAYS),
        either_day=not _is_any(day) and not _is_any(weekday),
        zone=zone,
    )


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again after so many seconds."""

    seconds: int

    def next(self, after: datetime) -> datetime:
        return after.replace(microsecond=0) + timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Fields:
    """Whenever a clock on the wall shows one of these."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first time after this one; None if there is none in years."""
        after = after.astimezone(UTC)
        shown = after.astimezone(self.zone)
        for each in self._dates(shown.date()):
            # An hour that a clock shows twice is done when the next one begins: hour by hour is in order.
            for hour in sorted(self.hours):
                if each > shown.date() or hour >= shown.hour:
                    found = [moment for moment in self._moments(each, hour) if moment > after]
                    if found:
                        return min(found)
        return None

    def _dates(self, first: date) -> Iterator[date]:
        for number in range(_DAYS_AHEAD):
            each = first + timedelta(days=number)
            if each.month in self.months and self._is_day(each):
                yield each

    def _is_day(self, each: date) -> bool:
        by_date, by_weekday = each.day in self.days, each.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday

    def _moments(self, each: date, hour: int) -> Iterator[datetime]:
        """The times of an hour, in UTC: some are twice, some never."""
        for minute in self.minutes:
            for fold in (0, 1):
                shown = datetime(each.year, each.month, each.day, hour, minute, fold=fold, tzinfo=self.zone)
                moment = shown.astimezone(UTC)
                if moment.astimezone(self.zone).replace(tzinfo=None) == shown.replace(tzinfo=None):
                    yield moment


# ---- one field -------------------------------------------------------------------------------------


def _is_any(field: str) -> bool:
    """Whether a field leaves it open; ``*/2`` counts as that too, as it does in Kubernetes."""
    return any(part.split("/")[0] in {"*", "?"} for part in field.split(","))


def _read(field: str, least: int, most: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    found = set[int]()
    for part in field.split(","):
        found |= _read_part(part, least, most, names or {})
    return frozenset(found)


def _read_part(part: str, least: int, most: int, names: Mapping[str, int]) -> set[int]:
    span, slash, step_text = part.partition("/")
    first_text, dash, last_text = span.partition("-")
    if "/" in step_text or "-" in last_text:
        raise ValueError(f"too many slashes or hyphens: {part}")
    if first_text in {"*", "?"}:
        if dash:
            raise ValueError(f"too many hyphens: {part}")
        first, last = least, most
    else:
        first = _number(first_text, names)
        last = _number(last_text, names) if dash else first
        if slash and not dash:
            last = most
    step = _number(step_text, {}) if slash else 1
    if first < least:
        raise ValueError(f"beginning of range ({first}) below minimum ({least}): {part}")
    if last > most:
        raise ValueError(f"end of range ({last}) above maximum ({most}): {part}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {part}")
    return set(range(first, last + 1, step))


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[0-9]+", text):
        raise ValueError(f"failed to parse int from {text}")
    return int(text)
