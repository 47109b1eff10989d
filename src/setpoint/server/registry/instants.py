"""Reads a time as Go reads it, and writes it as Kubernetes does.

- ``canonical(text, micro)``: the text that is stored and answered, in UTC, to the second or to the
  microsecond; None for Go's zero time, which JSON writes as null.  ValueError, in Go's words, for what is
  no time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROS: Final = "2006-01-02T15:04:05.000000Z07:00"
_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)

# The pieces of the layout in turn: what Go calls each, and what it accepts for it.
_PIECES: Final = (
    ("2006", r"[0-9]{4}"),
    ("-", "-"),
    ("01", r"[0-9]{2}"),
    ("-", "-"),
    ("02", r"[0-9]{2}"),
    ("T", "T"),
    ("15", r"[0-9]{1,2}"),
    (":", ":"),
    ("04", r"[0-9]{2}"),
    (":", ":"),
    ("05", r"[0-9]{2}"),
)
_RANGES: Final = {
    "01": (1, 12, "month"),
    "15": (0, 23, "hour"),
    "04": (0, 59, "minute"),
    "05": (0, 59, "second"),
}
_ANY_FRACTION: Final = re.compile(r"(?:[.,][0-9]+)?")
_SIX_DIGITS: Final = re.compile(r"[.,][0-9]{6}")
_ZONE: Final = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})")


@lru_cache(maxsize=4096)  # one object says the same time often, and so do its neighbours
def canonical(text: str, micro: bool) -> str | None:
    moment = _parsed(text, micro)
    if moment == _ZERO:
        return None
    return moment.isoformat(timespec="microseconds" if micro else "seconds")[: -len("+00:00")] + "Z"


def _parsed(text: str, micro: bool) -> datetime:
    layout = _MICROS if micro else _SECONDS
    numbers: list[int] = []
    at = 0
    for piece, pattern in _PIECES:
        match = re.compile(pattern).match(text, at)
        if match is None:
            raise _unreadable(text, layout, text[at:], piece)
        at = match.end()
        if len(piece) > 1:
            numbers.append(_in_range(text, piece, int(match[0])))
    fraction = (_SIX_DIGITS if micro else _ANY_FRACTION).match(text, at)
    if fraction is None:
        raise _unreadable(text, layout, text[at:], ".000000")
    at = fraction.end()
    zone = _ZONE.match(text, at)
    if zone is None:
        raise _unreadable(text, layout, text[at:], "Z07:00")
    if zone.end() != len(text):
        raise ValueError(f"parsing time {_quoted(text)}: extra text: {_quoted(text[zone.end() :])}")
    hours, minutes = (int(one or 0) for one in zone.groups()[1:])
    if hours > 24 or minutes > 60:  # as far as Go goes
        part = "hour" if hours > 24 else "minute"
        raise ValueError(f"parsing time {_quoted(text)}: time zone offset {part} out of range")
    micros = int(fraction[0][1:7].ljust(6, "0")) if fraction[0] else 0
    try:
        moment = datetime(*numbers, micros, tzinfo=UTC)  # type: ignore[arg-type, misc]
        if zone[1]:
            offset = timedelta(hours=hours, minutes=minutes)
            moment = moment - offset if zone[1] == "+" else moment + offset
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None
    return moment


def _in_range(text: str, piece: str, number: int) -> int:
    low, high, name = _RANGES.get(piece, (0, 9999, ""))
    if not low <= number <= high:
        raise ValueError(f"parsing time {_quoted(text)}: {name} out of range")
    return number


def _unreadable(text: str, layout: str, rest: str, piece: str) -> ValueError:
    return ValueError(
        f"parsing time {_quoted(text)} as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(piece)}"
    )


def _quoted(text: str) -> str:
    """As Go's package time quotes: what is not printable ASCII byte by byte, in hexadecimal."""
    return '"' + "".join(_escaped(byte) for byte in text.encode("utf-8", "surrogatepass")) + '"'


def _escaped(byte: int) -> str:
    if byte < 0x20 or byte >= 0x80:
        return f"\\x{byte:02x}"
    return f"\\{byte:c}" if byte in b'"\\' else f"{byte:c}"
