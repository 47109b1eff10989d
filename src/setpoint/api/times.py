"""Decides how points in time and lengths of time are read and written.

Promises:

1. ``Time`` and ``MicroTime`` are datetimes: they compare with and subtract from any aware datetime.
   On the wire they are UTC: ``2006-01-02T15:04:05Z``, and ``MicroTime`` with exactly six digits of
   fraction, which the server insists on.
2. ``of()`` and ``parse()`` drop what the wire would not carry, so a value set equals the value read
   back.  Arithmetic drops nothing: ``created + timedelta(seconds=0.5)`` is half a second later.
3. Every RFC 3339 text that Go reads is read: any fraction, any offset, an hour of one digit; a
   ``MicroTime`` also without its six digits.  Only years outside 1 to 9999 are not: Python has none.
4. ``Duration`` is Go's: 64 bits of nanoseconds, exact, printed as Go prints it (``1h30m0s``).

There is no clock here: the present comes in as ``Time.of(now)``.

Read and written by the model layer through ``from_wire`` and ``to_wire``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, total_ordering
from typing import Any, ClassVar, Final, Self, TypeVar, overload

# Newer Pythons read hour 24 as the next midnight; Go does not.
_TO_THE_SECOND: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}"
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_WRITTEN: Final = "%04d-%02d-%02dT%02d:%02d:%02d"  # half the time of isoformat, and of an f-string


class _Instant(datetime):
    """What Time and MicroTime share; they differ in how finely they are written."""

    OPENAPI: ClassVar[dict[str, object]] = {"type": "string", "format": "date-time"}
    _HAS_FRACTION: ClassVar[bool]
    _WIRE: ClassVar[re.Pattern[str]]

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """The same moment, in UTC and as finely as the wire carries it."""
        if moment.utcoffset() is None:
            raise ValueError(f"{moment!r} has no time zone; write datetime.now(UTC), not datetime.now()")
        at = moment.astimezone(UTC)
        fraction = at.microsecond if cls._HAS_FRACTION else 0
        return cls(at.year, at.month, at.day, at.hour, at.minute, at.second, fraction, UTC)

    @classmethod
    def now(cls, tz: tzinfo | None = UTC) -> Self:
        """The present moment, in UTC whatever the zone of the machine."""
        return cls.of(datetime.now(tz or UTC))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From RFC 3339, with any fraction and any offset."""
        if cls._WIRE.fullmatch(text):  # what a server sends, the short way
            try:
                return cls.fromisoformat(text)
            except ValueError:
                pass  # a month 13; said below, in one form for all
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise ValueError(
                f"cannot parse '{text}' as a time (RFC 3339 is needed, as in 2006-01-02T15:04:05Z)"
            )
        *date_and_time, fraction, sign, hours, minutes = match.groups()
        micros = int((fraction or "")[:6].ljust(6, "0"))
        try:
            year, month, day, hour, minute, second = map(int, date_and_time)
            moment = datetime(year, month, day, hour, minute, second, micros, UTC)
            if sign:
                moment -= _offset(sign, int(hours), int(minutes))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"cannot parse '{text}' as a time: {error}") from None
        return cls.of(moment)

    @classmethod
    def from_wire(cls, value: object) -> Self:
        if not isinstance(value, str):
            raise ValueError(f"a time is text, as in '2006-01-02T15:04:05Z', not {value!r}")  # noqa: TRY004
        kind: Any = cls
        moment: Self = _parsed(kind, value)
        return moment

    def to_wire(self) -> str:
        if self.tzinfo is not UTC:
            return self.of(self).to_wire()
        text = _WRITTEN % (self.year, self.month, self.day, self.hour, self.minute, self.second)
        return f"{text}.{self.microsecond:06}Z" if self._HAS_FRACTION else f"{text}Z"

    def __str__(self) -> str:
        return self.to_wire() if self.tzinfo else self.isoformat()


@lru_cache(maxsize=1_000)  # an object says few moments, and says the same ones each time that it is read
def _parsed(cls: type[_Instant], text: str) -> Any:
    return cls.parse(text)


class Time(_Instant):
    """A moment, to the second: ``Time.of(datetime.now(UTC))``, ``Time.parse("2006-01-02T15:04:05Z")``."""

    _HAS_FRACTION = False
    _WIRE = re.compile(rf"{_TO_THE_SECOND}Z")


class MicroTime(_Instant):
    """A moment, to the microsecond, as leases and events carry it."""

    _HAS_FRACTION = True
    _WIRE = re.compile(rf"{_TO_THE_SECOND}\.[0-9]{{6}}Z")


def _offset(sign: str, hours: int, minutes: int) -> timedelta:
    if hours > 24 or minutes > 60:  # as far as Go goes
        raise ValueError("time zone offset out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if sign == "-" else offset


_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, the micro sign
    "μs": 10**3,  # U+03BC, the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PIECE: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_INT64: Final = range(-(2**63), 2**63)
_Datetime = TypeVar("_Datetime", bound=datetime)


@total_ordering
class Duration:
    """A length of time: ``Duration("1h30m")``, ``Duration(timedelta(hours=2))``, ``Duration(nanoseconds=1)``.

    Compares with and adds to timedelta and datetime; ``as_timedelta()`` where a real one is needed.
    """

    OPENAPI: ClassVar[dict[str, object]] = {"type": "string"}

    __slots__ = ("_nanoseconds",)  # a dataclass would be taken for an object by msgspec

    def __init__(self, value: str | timedelta | Duration = "0", *, nanoseconds: int = 0) -> None:
        whole = _parse(value) if isinstance(value, str) else _nanoseconds(value)
        if whole is None:
            raise TypeError(
                f"cannot make a duration of {value!r}; write it as text or a timedelta, as in '1h30m'"
            )
        if whole + nanoseconds not in _INT64:
            raise OverflowError("a duration holds 64 bits of nanoseconds: at most about 292 years")
        self._nanoseconds = whole + nanoseconds

    @classmethod
    def from_wire(cls, value: object) -> Self:
        if not isinstance(value, str):
            raise ValueError(f"a duration is text, as in '1h30m', not {value!r}")  # noqa: TRY004
        return cls(value)

    def to_wire(self) -> str:
        return str(self)

    @property
    def nanoseconds(self) -> int:
        return self._nanoseconds

    def as_timedelta(self) -> timedelta:
        """The same length without what is below a microsecond."""
        micros = abs(self.nanoseconds) // 1000
        return timedelta(microseconds=micros if self.nanoseconds >= 0 else -micros)

    def total_seconds(self) -> float:
        return self.nanoseconds / 10**9

    def __str__(self) -> str:
        length = abs(self.nanoseconds)
        sign = "-" if self.nanoseconds < 0 else ""
        if length == 0:
            return "0s"
        if length < 10**9:
            digits, unit = (0, "ns") if length < 10**3 else (3, "µs") if length < 10**6 else (6, "ms")
            return f"{sign}{_decimal(length, digits)}{unit}"
        minutes, rest = divmod(length, _UNITS["m"])
        hours, minutes = divmod(minutes, 60)
        text = f"{_decimal(rest, 9)}s"
        if hours or minutes:
            text = f"{minutes}m{text}"
        return f"{sign}{hours}h{text}" if hours else sign + text

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self.as_timedelta())  # equal timedeltas must hash alike

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __eq__(self, other: object) -> bool:
        length = _nanoseconds(other)
        return NotImplemented if length is None else self.nanoseconds == length

    def __lt__(self, other: timedelta | Duration) -> bool:
        length = _nanoseconds(other)
        return NotImplemented if length is None else self.nanoseconds < length

    def __add__(self, other: timedelta | Duration) -> Duration:
        length = _nanoseconds(other)
        return NotImplemented if length is None else Duration(nanoseconds=self.nanoseconds + length)

    def __sub__(self, other: timedelta | Duration) -> Duration:
        length = _nanoseconds(other)
        return NotImplemented if length is None else Duration(nanoseconds=self.nanoseconds - length)

    @overload
    def __radd__(self, other: timedelta) -> Duration: ...
    @overload
    def __radd__(self, other: _Datetime) -> _Datetime: ...
    def __radd__(self, other: timedelta | _Datetime) -> Duration | _Datetime:
        return other + self.as_timedelta() if isinstance(other, datetime) else self + other

    @overload
    def __rsub__(self, other: timedelta) -> Duration: ...
    @overload
    def __rsub__(self, other: _Datetime) -> _Datetime: ...
    def __rsub__(self, other: timedelta | _Datetime) -> Duration | _Datetime:
        return other - self.as_timedelta() if isinstance(other, datetime) else -self + other

    def __mul__(self, times: int) -> Duration:
        return Duration(nanoseconds=self.nanoseconds * times) if isinstance(times, int) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Duration:
        return Duration(nanoseconds=-self.nanoseconds)

    def __abs__(self) -> Duration:
        return -self if self.nanoseconds < 0 else self


def _nanoseconds(value: object) -> int | None:
    """How long a Duration or timedelta is; None for anything else."""
    if isinstance(value, Duration):
        return value.nanoseconds
    return value // timedelta(microseconds=1) * 1000 if isinstance(value, timedelta) else None


def _decimal(number: int, digits: int) -> str:
    """``number`` with the point ``digits`` from its end, and no zeros after it that say nothing."""
    whole, rest = divmod(number, 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".") if rest else str(whole)


def _parse(text: str) -> int:
    """Nanoseconds from Go's text, with Go's words where it cannot be read."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    pieces = _PIECE.findall(rest)[:-1]  # the last is always the empty one at the end
    length = 0
    for whole, fraction, unit in pieces:
        number = int(whole.lstrip("0")[:20] or "0")  # 20 digits are already too many
        if number > 2**63 or not (whole or fraction):
            raise _unreadable("invalid duration", text)
        if not unit:
            raise _unreadable("missing unit in duration", text)
        if unit not in _UNITS:
            raise _unreadable(f"unknown unit {_quoted(unit)} in duration", text)
        length += number * _UNITS[unit] + _part(fraction, _UNITS[unit])
        if length > 2**63:
            raise _unreadable("invalid duration", text)
    if text[:1] == "-":
        length = -length
    if not pieces or length not in _INT64:
        raise _unreadable("invalid duration", text)
    return length


def _part(fraction: str, unit: int) -> int:
    """The digits after the point, in nanoseconds.  In floats, so that we round where Go rounds."""
    number, scale = 0, 1.0
    for digit in fraction:
        if number * 10 + int(digit) >= 2**63:
            break
        number, scale = number * 10 + int(digit), scale * 10
    return int(number * (unit / scale))


def _unreadable(problem: str, text: str) -> ValueError:
    return ValueError(f"time: {problem} {_quoted(text)}")


def _quoted(text: str) -> str:
    """As Go's package time quotes: what is not printable ASCII byte by byte, in hexadecimal."""
    quoted = "".join(
        f"\\x{byte:02x}" if byte < 0x20 or byte >= 0x80 else f"\\{byte:c}" if byte in b'"\\' else f"{byte:c}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return f'"{quoted}"'
