"""What Kubernetes' own CEL functions do, in Python, for the engine to call.

A quantity, an address, a version are no values of the engine's; here they are maps with one key that says
what they are, which ``==`` compares rightly because what they hold is canonical.  ``checking.py`` keeps
their types apart.

``FUNCTIONS`` is what ``engine.py`` registers: a name, whether it is called on a value, how many arguments.
Each raises ``ValueError`` with cel-go's text where it has no value.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from setpoint.api.quantity import Quantity
from setpoint.server.golang import encoded, quoted
from setpoint.server.registry.crd.formats import checker
from setpoint.server.registry.crd.patterns import BadPattern, quick_pattern

Value = dict[str, Any]


class Function(NamedTuple):
    name: str
    is_member: bool
    size: int  # how many arguments, with the one that it is called on
    call: Callable[..., Any]
    on_list: bool = False  # the engine has one of this name, for texts


# ── Lists and sets ──────────────────────────────────────────────────────────────────────────────────


def _token(value: Any) -> str:
    """Equal values have equal tokens: 1 and 1.0 do."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return encoded(value)


def _contains(values: list[Any], wanted: list[Any]) -> bool:
    return {_token(one) for one in wanted} <= {_token(one) for one in values}


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return {_token(value) for value in one} == {_token(value) for value in other}


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return bool({_token(value) for value in one} & {_token(value) for value in other})


def _same(one: Any, other: Any, keys: list[str]) -> bool:
    """Two lists of type set or map are equal in any order."""
    if not isinstance(one, list) or not isinstance(other, list):
        return bool(one == other)
    del keys
    return len(one) == len(other) and sorted(map(_token, one)) == sorted(map(_token, other))


def _union(one: list[Any], other: list[Any], keys: list[str]) -> list[Any]:
    """Sets are united; of two items of a map with one key, the second takes the place of the first."""
    if not keys:
        there = {_token(value) for value in one}
        return [*one, *(value for value in other if _token(value) not in there)]
    found = {_token([value.get(name) for name in keys]): value for value in one}
    found |= {_token([value.get(name) for name in keys]): value for value in other}
    return list(found.values())


def _is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def _least(values: list[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return min(values)


def _most(values: list[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return max(values)


def _place(values: list[Any], wanted: Any) -> int:
    tokens = [_token(one) for one in values]
    return tokens.index(_token(wanted)) if _token(wanted) in tokens else -1


def _last_place(values: list[Any], wanted: Any) -> int:
    found = _place(values[::-1], wanted)
    return -1 if found < 0 else len(values) - 1 - found


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise ValueError("cannot slice(%d, %d), negative indexes not supported" % (start, end))  # noqa: UP031
    if start > end:
        raise ValueError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    flat: list[Any] = []
    for one in values:
        flat += _flatten(one, depth - 1) if isinstance(one, list) and depth else [one]
    return flat


def _distinct(values: list[Any]) -> list[Any]:
    return list({_token(one): one for one in reversed(values)}.values())[::-1]


# ── Text ────────────────────────────────────────────────────────────────────────────────────────────


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return quick_pattern(text)
    except BadPattern as error:
        raise ValueError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [one[0] for one in _pattern(pattern).finditer(text)]
    return found if most < 0 else found[:most]


# ── Addresses ───────────────────────────────────────────────────────────────────────────────────────


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    failed = f"IP Address {quoted(text)} parse error during conversion from string: "
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{failed}ParseAddr({quoted(text)}): unable to parse IP") from None
    if isinstance(found, ipaddress.IPv6Address) and (found.ipv4_mapped or found.scope_id):
        raise ValueError(f"{failed}IP address with zone or IPv4-mapped is not allowed")
    return found


def _network(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    host, slash, prefix = text.partition("/")
    why = f"bad bits after slash: {quoted(prefix)}" if slash else "no '/'"
    try:
        return ipaddress.ip_interface(f"{_address(host)}/{int(prefix) if prefix.isdecimal() else 'x'}")
    except ValueError:
        failed = "network address parse error during conversion from string: "
        raise ValueError(f"{failed}netip.ParsePrefix({quoted(text)}): {why}") from None


def _works(make: Callable[..., Any]) -> Callable[..., bool]:
    def test(*arguments: Any) -> bool:
        try:
            make(*arguments)
        except ValueError:
            return False
        return True

    return test


def _ip(value: str) -> Value:
    return {"@ip": str(_address(value))}


def _cidr(value: str) -> Value:
    return {"@cidr": str(_network(value))}


def _of_ip(name: str) -> Callable[[Value], bool]:
    def test(value: Value) -> bool:
        found = ipaddress.ip_address(value["@ip"])
        match name:
            case "isLinkLocalMulticast":
                local = ipaddress.ip_network("224.0.0.0/24" if found.version == 4 else "ff02::/16")
                return found in local
            case "isLinkLocalUnicast":
                return found.is_link_local
            case "isGlobalUnicast":
                broadcast = str(found) == "255.255.255.255"
                return not (
                    found.is_unspecified
                    or found.is_loopback
                    or found.is_multicast
                    or found.is_link_local
                    or broadcast
                )
            case "isLoopback":
                return found.is_loopback
        return found.is_unspecified

    return test


def _contains_ip(value: Value, other: Value | str) -> bool:
    text = other if isinstance(other, str) else other["@ip"]
    return _address(text) in ipaddress.ip_interface(value["@cidr"]).network


def _contains_cidr(value: Value, other: Value | str) -> bool:
    inner = _network(other if isinstance(other, str) else other["@cidr"]).network
    outer = ipaddress.ip_interface(value["@cidr"]).network
    return (
        inner.version == outer.version
        and inner.prefixlen >= outer.prefixlen
        and inner.network_address in outer
    )


def _string(value: Value) -> str:
    return str(next(iter(value.values())))


def _url(text: str) -> Value:
    check = checker("uri")
    if check is None or not check(text):
        raise ValueError(
            f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        )
    return {"@url": text}


def _of_url(name: str) -> Callable[[Value], Any]:
    def read(value: Value) -> Any:
        found = urlsplit(value["@url"])
        host = found.netloc.rpartition("@")[2]
        match name:
            case "getScheme":
                return found.scheme
            case "getHost":
                return host
            case "getHostname":
                return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            case "getPort":
                return host.rpartition("]")[2].partition(":")[2]
            case "getEscapedPath":
                return quote(found.path, safe="/%:@!$&'()*+,;=~-._")
        return parse_qs(found.query, keep_blank_values=True)

    return read


# ── Quantities and versions ─────────────────────────────────────────────────────────────────────────


def _amount(value: Value) -> Decimal:
    return Decimal(value["@quantity"])


def _quantity_of(amount: Decimal) -> Value:
    text = format(amount.normalize(), "f")
    return {"@quantity": "0" if amount == 0 else text}


def _quantity(text: str) -> Value:
    try:
        return _quantity_of(Quantity(text).as_decimal())
    except (ValueError, ArithmeticError):
        told = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise ValueError(told) from None


def _added(sign: int) -> Callable[[Value, Value | int], Value]:
    def add(value: Value, other: Value | int) -> Value:
        return _quantity_of(
            _amount(value) + sign * (Decimal(other) if isinstance(other, int) else _amount(other))
        )

    return add


def _as_integer(value: Value) -> int:
    amount = _amount(value)
    if amount != amount.to_integral_value() or not -(2**63) <= amount < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _is_integer(value: Value) -> bool:
    return _works(_as_integer)(value)


_SEMVER: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


def _semver(text: str, normalize: bool = False) -> Value:
    said = text
    if normalize:
        body, sign, rest = (
            text.removeprefix("v").partition("-") if "-" in text else text.removeprefix("v").partition("+")
        )
        numbers = [one.lstrip("0") or "0" for one in body.split(".")]
        text = ".".join([*numbers, "0", "0"][: max(3, len(numbers))]) + sign + rest
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ValueError(f'No Major.Minor.Patch elements found in "{said}"')
    return {"@semver": text}


def _parts(value: Value) -> tuple[int, int, int, str]:
    numbers, _, rest = value["@semver"].partition("+")[0].partition("-")
    major, minor, patch = map(int, numbers.split("."))
    return major, minor, patch, rest


def _compared(one: Value, other: Value) -> int:
    if "@quantity" in one:
        return (_amount(one) > _amount(other)) - (_amount(one) < _amount(other))
    a, b = _parts(one), _parts(other)
    if a[:3] != b[:3]:
        return 1 if a[:3] > b[:3] else -1
    if a[3] == b[3]:
        return 0
    if not a[3] or not b[3]:
        return 1 if not a[3] else -1
    return 1 if _pieces(a[3]) > _pieces(b[3]) else -1


def _pieces(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(one), "") if one.isdecimal() else (1, 0, one) for one in text.split(".")]


def _bytes(value: Any) -> Any:
    return base64.b64decode(value) if isinstance(value, str) else value


def _sign(value: Value) -> int:
    amount = _amount(value)
    return (amount > 0) - (amount < 0)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("sets.contains", False, 2, _contains),
    Function("sets.equivalent", False, 2, _equivalent),
    Function("sets.intersects", False, 2, _intersects),
    Function("@same", False, 3, _same),
    Function("@union", False, 3, _union),
    Function("@bytes", False, 1, _bytes),
    Function("isSorted", True, 1, _is_sorted),
    Function("sum", True, 1, sum),
    Function("min", True, 1, _least),
    Function("max", True, 1, _most),
    Function("indexOf", True, 2, _place, on_list=True),
    Function("lastIndexOf", True, 2, _last_place, on_list=True),
    Function("slice", True, 3, _slice),
    Function("flatten", True, 1, _flatten),
    Function("flatten", True, 2, _flatten),
    Function("distinct", True, 1, _distinct),
    Function("sort", True, 1, sorted),
    Function("reverse", True, 1, lambda values: values[::-1], on_list=True),
    Function("lists.range", False, 1, lambda count: list(range(min(count, 10_000)))),
    Function("find", True, 2, _find),
    Function("findAll", True, 2, _find_all),
    Function("findAll", True, 3, _find_all),
    Function("ip", False, 1, _ip),
    Function("@ip", False, 1, lambda value: _ip(value["@cidr"].partition("/")[0])),
    Function("isIP", False, 1, _works(_ip)),
    Function("ip.isCanonical", False, 1, lambda text: str(_address(text)) == text),
    Function("family", True, 1, lambda value: ipaddress.ip_address(value["@ip"]).version),
    *(
        Function(name, True, 1, _of_ip(name))
        for name in (
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        )
    ),
    Function("cidr", False, 1, _cidr),
    Function("isCIDR", False, 1, _works(_cidr)),
    Function("containsIP", True, 2, _contains_ip),
    Function("containsCIDR", True, 2, _contains_cidr),
    Function("masked", True, 1, lambda value: {"@cidr": str(ipaddress.ip_interface(value["@cidr"]).network)}),
    Function("prefixLength", True, 1, lambda value: int(value["@cidr"].rpartition("/")[2])),
    Function("@string", False, 1, _string),
    Function("url", False, 1, _url),
    Function("isURL", False, 1, _works(_url)),
    *(
        Function(name, True, 1, _of_url(name))
        for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery")
    ),
    Function("quantity", False, 1, _quantity),
    Function("isQuantity", False, 1, _works(_quantity)),
    Function("sign", True, 1, _sign),
    Function("add", True, 2, _added(1)),
    Function("sub", True, 2, _added(-1)),
    Function("asInteger", True, 1, _as_integer),
    Function("isInteger", True, 1, _is_integer),
    Function("asApproximateFloat", True, 1, lambda value: float(_amount(value))),
    Function("isGreaterThan", True, 2, lambda one, other: _compared(one, other) > 0),
    Function("isLessThan", True, 2, lambda one, other: _compared(one, other) < 0),
    Function("compareTo", True, 2, _compared),
    Function("semver", False, 1, _semver),
    Function("semver", False, 2, _semver),
    Function("isSemver", False, 1, _works(_semver)),
    Function("isSemver", False, 2, _works(_semver)),
    Function("major", True, 1, lambda value: _parts(value)[0]),
    Function("minor", True, 1, lambda value: _parts(value)[1]),
    Function("patch", True, 1, lambda value: _parts(value)[2]),
)
