"""What the functions of CEL and of Kubernetes' libraries do.

``FUNCTIONS`` has them by name; each takes the values of its arguments, the one that it is called on
first, and raises ``EvaluationError`` in cel-go's words where it has no value.  That the arguments are of
types that it takes was seen to before: by ``checking.py``, or, where only the value tells, by
``evaluating.py``.

Operators that do not evaluate all their operands are ``evaluating.py``'s.  Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from setpoint.server.golang import parse_int
from setpoint.server.registry.crd import values
from setpoint.server.registry.crd.addresses import Cidr, Ip, read_cidr, read_ip
from setpoint.server.registry.crd.formatting import formatted
from setpoint.server.registry.crd.opaques import (
    FORMATS,
    Amount,
    NamedFormat,
    Url,
    Version,
    read_quantity,
    read_semver,
    read_url,
)
from setpoint.server.registry.crd.patterns import BadPattern, CannotMatch, compiled
from setpoint.server.registry.crd.searching import found_in
from setpoint.server.registry.crd.values import (
    NONE,
    SECOND,
    Duration,
    EvaluationError,
    Made,
    MadeMap,
    MapList,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    UInt,
    compared,
    equal,
    item_token,
    key_of,
    moment,
    shown,
    span,
    token,
    unsigned,
    whole,
)

_NO_OVERLOAD: Final = "no such overload"

# ── Operators ───────────────────────────────────────────────────────────────────────────────────────


def _without(a: Any, sign: str, *known: type) -> EvaluationError:
    """``known`` have such an operator, for others; texts and times always answer themselves."""
    is_known = type(a) in (*known, str, Duration, Timestamp)
    return EvaluationError(_NO_OVERLOAD if is_known else f"{_NO_OVERLOAD}: {sign}")


def _plus(a: Any, b: Any) -> Any:
    kind, second = type(a), type(b)
    if kind is second:
        if kind is int:
            return whole(a + b)
        if kind in (str, bytes, float):
            return a + b
        if kind is UInt:
            return unsigned(int(a) + int(b))
        if kind is Duration:
            return span(a.ns + b.ns)
    if isinstance(a, list) and isinstance(b, list):
        return _joined(a, b)
    if kind is Timestamp and second is Duration:
        return moment(a.ns + b.ns, a.offset)
    if kind is Duration and second is Timestamp:
        return moment(a.ns + b.ns, b.offset)
    raise _without(a, "_+_", int, float, UInt, bytes, list, Made, SetList, MapList)


def _joined(a: list[Any], b: list[Any]) -> list[Any]:
    """Sets are united; of two items of a map with one key, the second takes the place of the first."""
    if isinstance(a, SetList):
        there = {token(one) for one in a}
        return SetList([*a, *(one for one in b if token(one) not in there)])
    if isinstance(a, MapList):
        found = {item_token(one, a.keys): one for one in a}
        found |= {item_token(one, a.keys): one for one in b}
        return MapList(list(found.values()), a.keys)
    return Made([*a, *b])


def _minus(a: Any, b: Any) -> Any:
    kind, second = type(a), type(b)
    if kind is second:
        if kind is int:
            return whole(a - b)
        if kind is float:
            return a - b
        if kind is UInt:
            return unsigned(int(a) - int(b))
        if kind in (Duration, Timestamp):
            return span(a.ns - b.ns)
    if kind is Timestamp and second is Duration:
        return moment(a.ns - b.ns, a.offset)
    raise _without(a, "_-_", int, float, UInt)


def _times(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return whole(a * b)
        if kind is float:
            return a * b
        if kind is UInt:
            return unsigned(int(a) * int(b))
    raise _without(a, "_*_", int, float, UInt)


def _over(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is float:
            return _divided(a, b)
        if kind in (int, UInt):
            if b == 0:
                raise EvaluationError("division by zero")
            quotient = abs(int(a)) // abs(int(b))
            return UInt(quotient) if kind is UInt else whole(quotient if (a < 0) == (b < 0) else -quotient)
    raise _without(a, "_/_", int, float, UInt)


def _divided(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:  # noqa: PLR0124 - not a number
            return float("nan")
        return float("inf") if (a > 0) == (str(b)[0] != "-") else float("-inf")


def _rest(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b) and kind in (int, UInt):
        if b == 0:
            raise EvaluationError("modulus by zero")
        if kind is int and a == -(2**63) and b == -1:
            raise EvaluationError("integer overflow")
        left = abs(int(a)) % abs(int(b))
        return UInt(left) if kind is UInt else (left if a >= 0 else -left)
    raise _without(a, "_%_", int, UInt)


def _negative(a: Any) -> Any:
    match a:
        case bool() | UInt():
            pass
        case int():
            return whole(-a)
        case float():
            return -a
        case Duration():
            return span(-a.ns)
    raise _without(a, "-_", bool)


def _not(a: Any) -> bool:
    if isinstance(a, bool):
        return not a
    raise EvaluationError(_NO_OVERLOAD)


def _ordered(sign: str, test: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def compare(a: Any, b: Any) -> bool:
        if type(a) not in values.COMPARED:
            raise EvaluationError(f"{_NO_OVERLOAD}: {sign}")
        return test(compared(a, b))

    return compare


def _in(a: Any, b: Any) -> bool:
    if isinstance(b, list):
        return _holds(b, a)
    if isinstance(b, dict):
        if type(b) is dict and not isinstance(a, str):
            raise EvaluationError(_NO_OVERLOAD)
        return key_of(a) in b
    raise EvaluationError(_NO_OVERLOAD)


def _holds(items: list[Any], wanted: Any) -> bool:
    for one in items:
        try:
            if equal(wanted, one):
                return True
        except EvaluationError:
            if isinstance(one, EvaluationError):
                raise
    return False


def _size(a: Any) -> int:
    return len(a)


# ── Lists and sets ──────────────────────────────────────────────────────────────────────────────────


def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return {token(one) for one in wanted} <= {token(one) for one in items}


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return {token(value) for value in one} == {token(value) for value in other}


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return bool({token(value) for value in one} & {token(value) for value in other})


def _is_sorted(items: list[Any]) -> bool:
    return all(compared(a, b) <= 0 for a, b in pairwise(items))


def _sum(items: list[Any]) -> Any:
    total: Any = 0
    for place, one in enumerate(items):
        total = one if place == 0 else _plus(total, one)
    return total


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def find(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for one in items[1:]:
            if compared(best, one) == sign:
                best = one
        return best

    return find


def _includes(a: Any, b: Any) -> bool:
    return _holds(a, b) if isinstance(a, list) else equal(a, b)


def _index_of(a: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(a, str):
        if start < 0:
            raise EvaluationError(f"index out of range: {start}")
        if not wanted:
            return min(start, len(a))
        return a.find(wanted, start)
    return next((place for place, one in enumerate(a) if equal(one, wanted)), -1)


def _last_index_of(a: Any, wanted: Any, start: int | None = None) -> int:
    if isinstance(a, str):
        if start is None:
            return _found_last(a, wanted) if wanted else len(a)
        if start < 0:
            raise EvaluationError(f"index out of range: {start}")
        if not wanted:
            return min(start, len(a))
        return -1 if start >= len(a) else _found_last(a[: start + len(wanted)], wanted)
    return next((place for place in reversed(range(len(a))) if equal(a[place], wanted)), -1)


def _found_last(text: str, wanted: str) -> int:
    """As ``rfind``, in linear time: forwards through both, turned round."""
    place = text[::-1].find(wanted[::-1])
    return place if place < 0 else len(text) - len(wanted) - place


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        told = "start index must be less than or equal to end index"
        raise EvaluationError(f"cannot slice({start}, {end}), {told}")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return Made(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = Made()
    for one in items:
        if isinstance(one, list) and depth:
            flat.extend(_flatten(one, depth - 1))
        else:
            flat.append(one)
    return flat


def _distinct(items: list[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for one in items:
        found.setdefault(token(one), one)
    return Made(found.values())


class _Sortable:
    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Sortable) -> bool:
        return compared(self.key, other.key) < 0


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if keys:
        first = type(keys[0])
        if first not in values.COMPARED:
            raise EvaluationError("list elements must be comparable")
        if any(type(one) is not first for one in keys):
            raise EvaluationError("list elements must have the same type")
    order = sorted(range(len(items)), key=lambda place: _Sortable(keys[place]))
    return Made(items[place] for place in order)


def _range(count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    return Made(range(count))


def _insert(made: dict[Any, Any], *more: Any) -> dict[Any, Any]:
    """Into a map that only this expression knows."""
    pairs = [(key_of(more[0]), more[1])] if len(more) == 2 else list(more[0].items())
    for name, value in pairs:
        if name in made:
            raise EvaluationError(f"insert failed: key {shown(getattr(name, 'value', name))} already exists")
        made[name] = value
    return made


# ── Texts ───────────────────────────────────────────────────────────────────────────────────────────


def _matches(text: str, pattern: str) -> bool:
    try:
        return compiled(pattern)(text)
    except CannotMatch as error:
        raise EvaluationError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    return next(iter(_found(text, pattern, 1)), "")


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return Made(_found(text, pattern, most))


def _found(text: str, pattern: str, most: int) -> list[str]:
    try:
        return found_in(text, pattern, most)
    except BadPattern as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise EvaluationError(f"index out of range: {place}")
    return text[place : place + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if place is not None and not 0 <= place <= len(text):
            raise EvaluationError(f"index out of range: {place}")
    return text[start:end]


def _split(text: str, between: str, most: int = -1) -> list[str]:
    if most == 0:
        return Made()
    if between:
        return Made(text.split(between, most - 1 if most > 0 else -1))
    if most < 0 or len(text) <= most:
        return Made(text)
    return Made([*text[: most - 1], text[most - 1 :]])


def _join(items: list[Any], between: str = "") -> str:
    for one in items:
        if not isinstance(one, str):
            raise EvaluationError(f"join: invalid input: {shown(one)}")
    return between.join(items)


_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_QUOTED: Final = str.maketrans({
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
})  # fmt: skip


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


# ── Times ───────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name or "UTC")


def _east(at: Timestamp, zone: str) -> int:
    """Seconds."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        try:
            ahead, more = (parse_int(part, function="Atoi") for part in (hours, minutes))
        except ValueError as error:
            raise EvaluationError(str(error)) from None
        return (ahead * 60 + (-more if zone.startswith("-") else more)) * 60
    try:
        found = _zone(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    return int((values.as_datetime(at, 0).astimezone(found).utcoffset() or timedelta(0)).total_seconds())


def _part(read: Callable[[Any], int]) -> Callable[..., int]:
    def get(at: Timestamp, zone: str = "") -> int:
        return read(values.as_datetime(at, _east(at, zone) if zone else 0))

    return get


def _clock(read: Callable[[Any], int], unit: int) -> Callable[..., int]:
    """Of a time, or a whole duration in that unit."""
    of_time = _part(read)

    def get(at: Timestamp | Duration, *zone: str) -> int:
        if isinstance(at, Duration):
            return int(at.ns / unit) if unit >= SECOND else abs(at.ns) // unit * (-1 if at.ns < 0 else 1)
        return of_time(at, *zone)

    return get


# ── Optionals and types ─────────────────────────────────────────────────────────────────────────────


def _is_zero(value: Any) -> bool:
    match value:
        case None:
            return True
        case bool() | int() | float() | str() | bytes() | list() | dict():
            return not value
        case Duration():
            return value.ns == 0
        case Timestamp():
            return value.ns == -62_135_596_800 * SECOND
        case Optional():
            return not value.is_there or _is_zero(value.value)
    return False


def _value(a: Optional) -> Any:
    if not a.is_there:
        raise EvaluationError("optional.none() dereference")
    return a.value


def _unwrap(items: list[Any]) -> list[Any]:
    return Made(one.value for one in items if one.is_there)


def _end(place: int) -> Callable[[list[Any]], Optional]:
    return lambda items: Optional(items[place]) if items else NONE


# ── Kubernetes' own ─────────────────────────────────────────────────────────────────────────────────


def _works(make: Callable[..., Any]) -> Callable[..., bool]:
    def test(*arguments: Any) -> bool:
        try:
            make(*arguments)
        except EvaluationError:
            return False
        return True

    return test


def _ip(value: str | Cidr) -> Ip:
    return Ip(value.address) if isinstance(value, Cidr) else read_ip(value)


def _is_local_multicast(value: Ip) -> bool:
    return value.address in ipaddress.ip_network(
        "224.0.0.0/24" if value.address.version == 4 else "ff02::/16"
    )


def _is_local_unicast(value: Ip) -> bool:
    return value.address in ipaddress.ip_network(
        "169.254.0.0/16" if value.address.version == 4 else "fe80::/10"
    )


def _is_global(value: Ip) -> bool:
    address = value.address
    is_special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (is_special or _is_local_unicast(value) or str(address) == "255.255.255.255")


def _contains_ip(value: Cidr, other: Ip | str) -> bool:
    try:
        found = read_ip(other) if isinstance(other, str) else other
    except EvaluationError:
        raise EvaluationError(_NO_OVERLOAD) from None
    return value.covers(found.address)


def _contains_cidr(value: Cidr, other: Cidr | str) -> bool:
    inner = read_cidr(other) if isinstance(other, str) else other
    return inner.bits >= value.bits and value.covers(inner.address)


def _as_integer(value: Amount) -> int:
    found = value.as_integer()
    if found is None:
        raise EvaluationError("cannot convert value to integer")
    return found


def _compare(one: Amount | Version, other: Any) -> int:
    if isinstance(one, Version):
        return one.compared(other)
    return int(one.value > other.value) - int(one.value < other.value)


def _added(sign: int) -> Callable[[Amount, Amount | int], Amount]:
    def add(a: Amount, b: Amount | int) -> Amount:
        if isinstance(b, Amount):
            return Amount(a.value + sign * b.value, a.has_parts or b.has_parts)
        return Amount(a.value + sign * b, a.has_parts)

    return add


def _validate(format_: NamedFormat, text: str) -> Optional:
    found = format_.problems(text)
    return Optional(Made(found)) if found else NONE


def _escaped_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def _getter(name: str) -> Callable[[Url], Any]:
    return lambda value: getattr(value, name)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": _plus,
    "_-_": _minus,
    "_*_": _times,
    "_/_": _over,
    "_%_": _rest,
    "-_": _negative,
    "!_": _not,
    "_==_": equal,
    "_!=_": lambda a, b: not equal(a, b),
    "_<_": _ordered("_<_", lambda sign: sign < 0),
    "_<=_": _ordered("_<=_", lambda sign: sign <= 0),
    "_>_": _ordered("_>_", lambda sign: sign > 0),
    "_>=_": _ordered("_>=_", lambda sign: sign >= 0),
    "@in": _in,
    "size": _size,
    "type": lambda value: TypeValue(values.type_name(value)),
    "dyn": lambda value: value,
    "int": values.to_int,
    "uint": values.to_uint,
    "double": values.to_double,
    "bool": values.to_bool,
    "string": values.to_string,
    "bytes": values.to_bytes,
    "timestamp": values.to_timestamp,
    "duration": values.to_duration,
    "matches": _matches,
    "contains": lambda text, part: part in text,
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
    "getFullYear": _part(lambda at: at.year),
    "getMonth": _part(lambda at: at.month - 1),
    "getDayOfYear": _part(lambda at: at.timetuple().tm_yday - 1),
    "getDayOfMonth": _part(lambda at: at.day - 1),
    "getDate": _part(lambda at: at.day),
    "getDayOfWeek": _part(lambda at: at.isoweekday() % 7),
    "getHours": _clock(lambda at: at.hour, 3600 * SECOND),
    "getMinutes": _clock(lambda at: at.minute, 60 * SECOND),
    "getSeconds": _clock(lambda at: at.second, SECOND),
    "getMilliseconds": _clock(lambda at: at.microsecond // 1000, 1_000_000),
    "optional.of": Optional,
    "optional.ofNonZeroValue": lambda value: NONE if _is_zero(value) else Optional(value),
    "optional.none": lambda: NONE,
    "optional.unwrap": _unwrap,
    "unwrapOpt": _unwrap,
    "hasValue": lambda value: value.is_there,
    "value": _value,
    "first": _end(0),
    "last": _end(-1),
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "join": _join,
    "lowerAscii": lambda text: text.translate(_LOWER),
    "upperAscii": lambda text: text.translate(_UPPER),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: text.strip(_SPACE),
    "format": formatted,
    "strings.quote": lambda text: f'"{text.translate(_QUOTED)}"',
    "sets.contains": _contains,
    "sets.equivalent": _equivalent,
    "sets.intersects": _intersects,
    "find": _find,
    "findAll": _find_all,
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme("min", 1),
    "max": _extreme("max", -1),
    "includes": _includes,
    "slice": _slice,
    "flatten": _flatten,
    "distinct": _distinct,
    "reverse": lambda items: Made(items[::-1]),
    "sort": lambda items: _sort_by(items, items),
    "@sortByAssociatedKeys": _sort_by,
    "lists.range": _range,
    "cel.@mapInsert": _insert,
    "url": read_url,
    "isURL": _works(read_url),
    "getScheme": _getter("scheme"),
    "getHost": _getter("host"),
    "getHostname": _getter("hostname"),
    "getPort": _getter("port"),
    "getEscapedPath": _getter("escaped_path"),
    "getQuery": lambda value: MadeMap({name: Made(one) for name, one in value.query.items()}),
    "quantity": read_quantity,
    "isQuantity": _works(read_quantity),
    "sign": lambda value: (value.value > 0) - (value.value < 0),
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "compareTo": _compare,
    "asApproximateFloat": lambda value: float(value.value),
    "asInteger": _as_integer,
    "isInteger": lambda value: value.as_integer() is not None,
    "add": _added(1),
    "sub": _added(-1),
    "ip": _ip,
    "isIP": _works(read_ip),
    "ip.isCanonical": lambda text: str(read_ip(text)) == text,
    "family": lambda value: value.address.version,
    "isUnspecified": lambda value: value.address.is_unspecified,
    "isLoopback": lambda value: value.address.is_loopback,
    "isLinkLocalMulticast": _is_local_multicast,
    "isLinkLocalUnicast": _is_local_unicast,
    "isGlobalUnicast": _is_global,
    "cidr": read_cidr,
    "isCIDR": _works(read_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": lambda value: Cidr(value.network.network_address, value.bits),
    "prefixLength": lambda value: value.bits,
    "semver": read_semver,
    "isSemver": _works(read_semver),
    "major": lambda value: value.numbers[0],
    "minor": lambda value: value.numbers[1],
    "patch": lambda value: value.numbers[2],
    "validate": _validate,
    "format.named": lambda name: Optional(FORMATS[name]) if name in FORMATS else NONE,
    **{f"format.{name}": (lambda one=one: one) for name, one in FORMATS.items()},
    "jsonpatch.escapeKey": _escaped_key,
}
