"""``ip`` and ``cidr`` in CEL: read as Go's netip reads them, and refused in its words.

Pure.  The functions on them are in ``functions.py``.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass
from typing import ClassVar, Final

from setpoint.server.golang import quoted
from setpoint.server.registry.crd.values import EvaluationError, Opaque

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_HEX: Final = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    address: Address
    type_name: ClassVar[str] = "net.IP"

    def __str__(self) -> str:
        return str(self.address)

    @property
    def size(self) -> int:
        return len(self.address.packed)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    address: Address
    bits: int
    type_name: ClassVar[str] = "net.CIDR"

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def size(self) -> int:
        return math.ceil(self.bits / 8)

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network(str(self), strict=False)

    def covers(self, address: Address) -> bool:
        return address.version == self.address.version and address in self.network


class _Unreadable(ValueError):
    def __init__(self, why: str, at: str = "") -> None:
        super().__init__(f"{why} (at {quoted(at)})" if at else why)


def read_ip(text: str) -> Ip:
    """Raises ``EvaluationError``."""
    try:
        address = _read(text)
    except _Unreadable as why:
        told = f"IP Address {quoted(text)} parse error during conversion from string"
        raise EvaluationError(f"{told}: ParseAddr({quoted(text)}): {why}") from None
    if "%" in text:
        raise EvaluationError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Ip(address)


def read_cidr(text: str) -> Cidr:
    """Raises ``EvaluationError``."""
    failed = "network address parse error during conversion from string: "
    try:
        found = _prefix(text)
    except _Unreadable as why:
        raise EvaluationError(f"{failed}{failed}netip.ParsePrefix({quoted(text)}): {why}") from None
    if _is_mapped(found.address):
        raise EvaluationError(f"{failed}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return found


def _is_mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _prefix(text: str) -> Cidr:
    host, slash, bits = text.rpartition("/")
    if not slash:
        raise _Unreadable("no '/'")
    try:
        address = _read(host)
    except _Unreadable as why:
        raise _Unreadable(f"ParseAddr({quoted(host)}): {why}") from None
    if "%" in host:
        raise _Unreadable("IPv6 zones cannot be present in a prefix")
    if not (bits.isascii() and bits.isdecimal()) or (len(bits) > 1 and bits[0] == "0"):
        raise _Unreadable(f"bad bits after slash: {quoted(bits)}")
    if int(bits) > address.max_prefixlen:
        raise _Unreadable("prefix length out of range")
    return Cidr(address, int(bits))


def _read(text: str) -> Address:
    for one in text:
        if one == ".":
            return ipaddress.IPv4Address(_fields(text))
        if one == ":":
            return _read_six(text)
        if one == "%":
            raise _Unreadable("missing IPv6 address")
    raise _Unreadable("unable to parse IP")


def _fields(text: str) -> bytes:
    """The four numbers of an IPv4 address."""
    found: list[int] = []
    value, digits = 0, 0
    for place, one in enumerate(text):
        if "0" <= one <= "9":
            if digits == 1 and value == 0:
                raise _Unreadable("IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(one), digits + 1
            if value > 255:
                raise _Unreadable("IPv4 field has value >255")
        elif one == ".":
            if place in (0, len(text) - 1) or text[place - 1] == ".":
                raise _Unreadable("IPv4 field must have at least one digit", text[place:])
            if len(found) == 3:
                raise _Unreadable("IPv4 address too long")
            found.append(value)
            value = digits = 0
        else:
            raise _Unreadable("unexpected character", text[place:])
    if len(found) < 3:
        raise _Unreadable("IPv4 address too short")
    return bytes([*found, value])


def _read_six(text: str) -> ipaddress.IPv6Address:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _Unreadable("zone must be a non-empty string")
    found = b""
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
    while rest and len(found) < 16:
        size = next((place for place, one in enumerate(rest) if one not in _HEX), len(rest))
        if size > 4:
            raise _Unreadable("each group must have 4 or less digits", rest)
        if not size:
            raise _Unreadable("each colon-separated field must have at least one digit", rest)
        if rest[size : size + 1] == ".":
            if ellipsis < 0 and len(found) != 12:
                told = "embedded IPv4 address must replace the final 2 fields of the address"
                raise _Unreadable(told, rest)
            if len(found) + 4 > 16:
                told = "too many hex fields to fit an embedded IPv4 at the end of the address"
                raise _Unreadable(told, rest)
            found, rest = found + _fields(rest), ""
            break
        found, rest = found + int(rest[:size], 16).to_bytes(2, "big"), rest[size:]
        if not rest:
            break
        if rest[0] != ":":
            raise _Unreadable("unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _Unreadable("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _Unreadable("multiple :: in address", rest)
            ellipsis, rest = len(found), rest[1:]
    if rest:
        raise _Unreadable("trailing garbage after address", rest)
    if len(found) < 16:
        if ellipsis < 0:
            raise _Unreadable("address string too short")
        found = found[:ellipsis] + bytes(16 - len(found)) + found[ellipsis:]
    elif ellipsis >= 0:
        raise _Unreadable("the :: must expand to at least one field of zeros")
    return ipaddress.IPv6Address(found)
