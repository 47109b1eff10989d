"""CEL's values in Python: what they are called, when two are equal, which is less, what one becomes.

JSON's own values are taken as they are: null, booleans, integers, texts, lists and maps.  What JSON
lacks has a class here: unsigned integers, times, durations, optionals, types.  ``Made`` and ``MadeMap``
are lists and maps that an expression made; those that were there before it are plain, and compare more
strictly, as Kubernetes' do.  An ``EvaluationError`` in the place of a value is one that cannot be had:
whoever looks at it raises it.

Errors are told in cel-go's words, since these are what Kubernetes' clients see.  Pure.  Used by
``evaluating.py`` and ``functions.py``; ``natives.py`` makes values of JSON and its schema.
"""

from __future__ import annotations

import base64
import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final

from setpoint.server.golang import encoded, float_text

SECOND: Final = 1_000_000_000  # nanoseconds
_FIRST, _LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1  # years 1 to 9999
_MOST, _LEAST = 2**63 - 1, -(2**63)
_MOST_UNSIGNED: Final = 2**64 - 1


class EvaluationError(ValueError):
    """The expression has no value on these data; the text is cel-go's."""


class UInt(int):
    __slots__ = ()


class Made(list[Any]):
    """A list that an expression made."""

    __slots__ = ()


class MadeMap(dict[Any, Any]):
    """A map that an expression made; its booleans are ``Key``s, lest they be taken for numbers."""

    __slots__ = ()


class Message(MadeMap):
    """A value of a type whose fields have names: ``Object.spec{replicas: 3}``."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name


class SetList(list[Any]):
    """A list of type set: equal in any order, and added to as a set."""

    __slots__ = ()


class MapList(list[Any]):
    """A list of type map: its items are told apart by ``keys``."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    ns: int  # since 1970
    offset: int = field(default=0, compare=False)  # seconds east of Greenwich, where it was told


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


@dataclass(frozen=True, slots=True)
class Key:
    """A boolean as the key of a map."""

    value: bool


class Optional:
    """A value or none."""

    __slots__ = ("is_there", "value")

    def __init__(self, value: Any = None, *, is_there: bool = True) -> None:
        self.value, self.is_there = value, is_there


NONE: Final = Optional(is_there=False)


class Opaque:
    """A value of Kubernetes' own: an address, a quantity, a version.  Equal only to its like."""

    __slots__ = ()
    type_name: ClassVar[str]


# ── Types ───────────────────────────────────────────────────────────────────────────────────────────

_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
    **dict.fromkeys((list, Made, SetList, MapList), "list"),
    **dict.fromkeys((dict, MadeMap), "map"),
}


def type_name(value: Any) -> str:
    known = _NAMES.get(type(value))
    return known if known is not None else str(value.type_name)


_SCALARS: Final = frozenset({type(None), bool, int, UInt, float, Duration, Timestamp, TypeValue})


def size_of(value: Any) -> int:
    """What the cost of looking at a value goes by."""
    kind = type(value)
    if kind in _SCALARS:
        return 1
    if kind is str or isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, Optional) and value.is_there:
        return size_of(value.value)
    return int(getattr(value, "size", 1))


def no_overload(function: str, *values: Any) -> EvaluationError:
    return EvaluationError(f"no such overload: {function}({', '.join(map(type_name, values))})")


def shown(value: Any) -> str:
    """As Go prints it in a text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value, 6)
    return str(value)


def key_of(value: Any) -> Any:
    """How a map holds a key."""
    return Key(value) if isinstance(value, bool) else value


def keys_of(value: dict[Any, Any]) -> list[Any]:
    if type(value) is dict:
        return list(value)
    return [one.value if type(one) is Key else one for one in value]


def plain(value: Any) -> Any:
    """As JSON, for whoever is not CEL."""
    match value:
        case list():
            return [plain(one) for one in value]
        case dict():
            return {to_string(getattr(name, "value", name)): plain(one) for name, one in value.items()}
        case bool() | float() | str() | None:
            return value
        case int():
            return int(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Optional():
            return plain(value.value) if value.is_there else None
        case EvaluationError():
            raise value
        case Duration() | Timestamp() | TypeValue():
            return to_string(value)
    return str(value)


# ── Equality ────────────────────────────────────────────────────────────────────────────────────────

_NUMBERS: Final = (int, UInt, float)
_PLAIN: Final = frozenset({str, int, bool, bytes, Duration, Timestamp, TypeValue, UInt, float})


def equal(one: Any, other: Any) -> bool:
    """Raises ``EvaluationError`` where the two cannot be compared."""
    kind, second = type(one), type(other)
    if kind is second and kind in _PLAIN:
        return bool(one == other)
    for value in (one, other):
        if isinstance(value, EvaluationError):
            raise value
    if one is None or other is None:
        return one is other
    if kind in _NUMBERS:
        return second in _NUMBERS and bool(one == other)
    if isinstance(one, list):
        return _equal_lists(one, other)
    if isinstance(one, dict):
        return _equal_maps(one, other)
    if isinstance(one, Optional):
        if not isinstance(other, Optional) or one.is_there != other.is_there:
            return False
        return not one.is_there or equal(one.value, other.value)
    if isinstance(one, Opaque):
        if kind is not second:
            raise EvaluationError("no such overload")
        return bool(one == other)
    return False


def _equal_lists(one: list[Any], other: Any) -> bool:
    if not isinstance(other, list):
        if type(one) is Made:
            return False
        raise EvaluationError("no such overload")
    if len(one) != len(other):
        return False
    if isinstance(one, SetList):
        return {token(value) for value in one} == {token(value) for value in other}
    if isinstance(one, MapList):
        return _equal_by_key(one, other)
    return all(equal(a, b) for a, b in zip(one, other, strict=True))


def _equal_by_key(one: MapList, other: list[Any]) -> bool:
    there = {item_token(value, one.keys): value for value in one}
    seen = set()
    for value in other:
        place = item_token(value, one.keys)
        if place not in there or not equal(there[place], value):
            return False
        seen.add(place)
    return len(seen) == len(there)


def _equal_maps(one: dict[Any, Any], other: Any) -> bool:
    if not isinstance(other, dict):
        if isinstance(one, MadeMap):
            return False
        raise EvaluationError("no such overload")
    if len(one) != len(other):
        return False
    return all(name in other and equal(value, other[name]) for name, value in one.items())


def item_token(value: Any, keys: tuple[str, ...]) -> str:
    return token([value.get(name) for name in keys]) if isinstance(value, dict) else token(value)


def token(value: Any) -> str:
    """Equal values have equal tokens: 1 and 1.0 do."""
    return encoded(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, EvaluationError):
        raise value
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    return {f"@{type_name(value)}": repr(value)}


# ── Order ───────────────────────────────────────────────────────────────────────────────────────────

_ORDERED: Final = frozenset({str, bool, bytes, Duration, Timestamp})
COMPARED: Final = frozenset({*_ORDERED, *_NUMBERS})


def compared(one: Any, other: Any) -> int:
    """Below, at or above zero.  Raises ``EvaluationError`` where there is no order."""
    kind = type(one)
    if kind in _NUMBERS and type(other) in _NUMBERS:
        if one != one or other != other:  # noqa: PLR0124 - not a number
            raise EvaluationError("NaN values cannot be ordered")
        if float in (kind, type(other)):
            one, other = float(one), float(other)
    elif kind is not type(other) or kind not in _ORDERED:
        raise EvaluationError("no such overload")
    return int(one > other) - int(one < other)


# ── Sums ────────────────────────────────────────────────────────────────────────────────────────────


def whole(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise EvaluationError("integer overflow")
    return value


def unsigned(value: int) -> UInt:
    if not 0 <= value <= _MOST_UNSIGNED:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def span(ns: int) -> Duration:
    if not _LEAST <= ns <= _MOST:
        raise EvaluationError("duration overflow")
    return Duration(ns)


def moment(ns: int, offset: int = 0) -> Timestamp:
    if not _FIRST <= ns <= _LAST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(ns, offset)


def as_datetime(value: Timestamp, east: int | None = None) -> datetime:
    """Without what is smaller than a microsecond.  ``east``: in seconds, instead of its own."""
    start = datetime(1970, 1, 1, tzinfo=UTC)
    seconds = value.ns // SECOND + (value.offset if east is None else east)
    return start + timedelta(seconds=seconds, microseconds=value.ns % SECOND // 1000)


# ── Conversions ─────────────────────────────────────────────────────────────────────────────────────


def _impossible(value: Any, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


_MOST_DIGITS: Final = 20  # of 64 bits


def read_digits(text: str) -> int | None:
    """None where it is more than 64 bits hold, which Python would take long to read, or refuse."""
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= _MOST_DIGITS else None


def to_int(value: Any) -> int:
    match value:
        case bool():
            pass
        case UInt() | int():
            return whole(int(value))
        case float():
            if not math.isfinite(value) or not _LEAST < value < 2.0**63:
                raise EvaluationError("integer overflow")
            return int(value)
        case str():
            if re.fullmatch(r"[+-]?[0-9]+", value) and (found := read_digits(value.lstrip("+-"))) is not None:
                found = -found if value[0] == "-" else found
                if _LEAST <= found <= _MOST:
                    return found
        case Timestamp():
            return value.ns // SECOND
        case Duration():
            return value.ns
    raise _impossible(value, "int")


def to_uint(value: Any) -> UInt:
    match value:
        case bool():
            pass
        case int():
            return unsigned(int(value))
        case float():
            if not math.isfinite(value) or not 0 <= value < 2.0**64:
                raise EvaluationError("unsigned integer overflow")
            return UInt(value)
        case str():
            found = read_digits(value) if re.fullmatch(r"[0-9]+", value) else None
            if found is not None and found <= _MOST_UNSIGNED:
                return UInt(found)
    raise _impossible(value, "uint")


_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)


def to_double(value: Any) -> float:
    match value:
        case bool():
            pass
        case int():
            return float(value)
        case float():
            return value
        case str() if _FLOAT.fullmatch(value):
            found = float(value)
            if math.isfinite(found) or "n" in value.lower():
                return found
    raise _impossible(value, "double")


_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _BOOLEANS:
        return _BOOLEANS[value]
    raise _impossible(value, "bool")


def to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    raise _impossible(value, "bytes")


def to_string(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return float_text(value, 6)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case TypeValue():
            return value.name
        case None:
            return "null"
        case Opaque() if type_name(value).startswith("net."):
            return str(value)
    raise _impossible(value, "string")


def duration_text(value: Duration) -> str:
    seconds = float(value.ns // SECOND if value.ns >= 0 else -(-value.ns // SECOND))
    seconds += math.copysign(abs(value.ns) % SECOND, value.ns) / SECOND
    return f"{format(Decimal(repr(seconds)), 'f').removesuffix('.0')}s"


def timestamp_text(value: Timestamp) -> str:
    at = as_datetime(value)
    fraction = f".{value.ns % SECOND:09}".rstrip("0").removesuffix(".")
    east = value.offset
    sign = "-" if east < 0 else "+"
    zone = "Z" if not east else f"{sign}{abs(east) // 3600:02}:{abs(east) // 60 % 60:02}"
    return (
        f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}{fraction}{zone}"
    )


_UNITS: Final = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND}
_UNITS["m"], _UNITS["h"] = 60 * SECOND, 3600 * SECOND
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str) and (found := read_duration(value)) is not None:
        return found
    raise _impossible(value, "google.protobuf.Duration")


def read_duration(text: str) -> Duration | None:
    """As Go's ParseDuration reads it."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, place = 0, 0
    while found := _PART.match(body, place):
        if not found[1] and not found[2]:
            return None
        unit = _UNITS[found[3]]
        if (count := read_digits(found[1])) is None:
            return None
        total += count * unit
        if fraction := (found[2] or "")[:_MOST_DIGITS]:
            total += int(fraction) * unit // 10 ** len(fraction)
        place = found.end()
    if not body or place != len(body) or total > _MOST + (text[0] == "-"):
        return None
    return Duration(-total if text[0] == "-" else total)


_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        return moment(value * SECOND)
    if isinstance(value, str) and (found := read_timestamp(value)) is not None:
        return moment(found.ns, found.offset)
    raise _impossible(value, "google.protobuf.Timestamp")


def read_timestamp(text: str) -> Timestamp | None:
    """As Go reads RFC 3339."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    east = 0
    if found[8]:
        hours, minutes = int(found[9]), int(found[10])
        if hours > 24 or minutes >= 60:
            return None
        east = (hours * 3600 + minutes * 60) * (-1 if found[8] == "-" else 1)
    try:  # the year 0 is one in Go, and none in Python: what is wrong with it is found out later
        at = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    if not year:
        seconds -= 4 * 366 * 24 * 3600
    fraction = int(f"{found[7]:0<9.9}") if found[7] else 0
    return Timestamp((seconds - east) * SECOND + fraction, east)
