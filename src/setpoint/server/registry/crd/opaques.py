"""``url``, ``quantity``, ``semver`` and ``format`` in CEL: what each reads, and in which words it refuses.

Pure.  The functions on them are in ``functions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Final
from urllib.parse import parse_qsl, quote, urlsplit

from setpoint.api import quantity as quantities
from setpoint.api.selectors import label_value_errors
from setpoint.server.golang import quoted
from setpoint.server.registry.crd.formats import checker
from setpoint.server.registry.crd.values import EvaluationError, Opaque, read_digits
from setpoint.server.registry.validation import texts

# ── Addresses of the web ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    text: str
    type_name: ClassVar[str] = "kubernetes.URL"

    @property
    def scheme(self) -> str:
        return urlsplit(self.text).scheme

    @property
    def host(self) -> str:
        return urlsplit(self.text).netloc.rpartition("@")[2]

    @property
    def hostname(self) -> str:
        host = self.host
        return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]

    @property
    def port(self) -> str:
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def escaped_path(self) -> str:
        return quote(urlsplit(self.text).path, safe="/%:@!$&'()*+,;=~-._")

    @property
    def query(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, value in parse_qsl(urlsplit(self.text).query, keep_blank_values=True):
            found.setdefault(name, []).append(value)
        return found


def url_problem(text: str) -> str:
    """What Go has against it; "" if nothing."""
    if any(one < " " or one == "\x7f" for one in text):
        return f"parse {quoted(text)}: net/url: invalid control character in URL"
    if not text:
        return 'parse "": empty url'
    check = checker("uri")
    if check is not None and check(text):
        return ""
    scheme, colon, rest = text.partition(":")
    if colon and not scheme:
        return f"parse {quoted(text)}: missing protocol scheme"
    if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) and rest.startswith("//"):
        host = rest[2:].partition("/")[0].partition("?")[0].rpartition("@")[2]
        if broken := re.search(r"%(?![0-9A-Fa-f]{2}).{0,2}", text):
            return f"parse {quoted(text)}: invalid URL escape {quoted(broken[0])}"
        if wrong := re.search(r'[ "<>\\^`{|}]', host):
            return f"parse {quoted(text)}: invalid character {quoted(wrong[0])} in host name"
        if port := re.search(r":([^:\]]*)$", host):
            return f"parse {quoted(text)}: invalid port {quoted(port[0])} after host"
    return f"parse {quoted(text)}: invalid URI for request"


def read_url(text: str) -> Url:
    """Raises ``EvaluationError``."""
    if problem := url_problem(text):
        raise EvaluationError(f"URL parse error during conversion from string: {problem}")
    return Url(text)


# ── Quantities ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Amount(Opaque):
    value: Decimal
    has_parts: bool = field(default=False, compare=False)  # it was said in parts of one: 1000m
    type_name: ClassVar[str] = "kubernetes.Quantity"

    def as_integer(self) -> int | None:
        if (
            self.has_parts
            or self.value != self.value.to_integral_value()
            or not -(2**63) <= self.value < 2**63
        ):
            return None
        return int(self.value)


_WRITTEN: Final = re.compile(r"[+-]?[0-9]*(?:\.([0-9]*))?(.*)")
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def _has_parts(text: str) -> bool:
    found = _WRITTEN.fullmatch(text)
    digits, suffix = ("", "") if found is None else (found[1] or "", found[2])
    if suffix.endswith("i"):
        return bool(digits)
    power = int(suffix[1:]) if suffix not in _POWERS else _POWERS[suffix]
    return power < len(digits)


def read_quantity(text: str) -> Amount:
    """Raises ``EvaluationError``."""
    try:
        return Amount(quantities.Quantity(text).as_decimal(), _has_parts(text))
    except (ValueError, ArithmeticError) as error:
        raise EvaluationError(str(error).partition("': ")[2] or str(error)) from None


# ── Versions ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Version(Opaque):
    numbers: tuple[int, int, int]
    pieces: tuple[tuple[int, int, str], ...]  # of the pre-release: numbers before words
    type_name: ClassVar[str] = "kubernetes.Semver"

    def compared(self, other: Version) -> int:
        mine, theirs = (self.numbers, not self.pieces), (other.numbers, not other.pieces)
        if mine == theirs:
            return (self.pieces > other.pieces) - (self.pieces < other.pieces)
        return 1 if mine > theirs else -1


_WORD: Final = re.compile(r"[0-9A-Za-z-]+")


def read_semver(text: str, normalize: bool = False) -> Version:
    """Raises ``EvaluationError``."""
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, before = patch.partition("-")
    names = ("major", "minor", "patch")
    major, minor, last = (_number(*one) for one in zip(names, [*parts[:2], patch], strict=True))
    pieces = tuple(_piece(one) for one in before.split(".")) if dash else ()
    for one in build.split(".") if plus else ():
        if not one:
            raise EvaluationError("Build meta data is empty")
        if _WORD.fullmatch(one) is None:
            raise EvaluationError(f"Invalid character(s) found in build meta data {quoted(one)}")
    return Version((major, minor, last), pieces)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for place, one in enumerate(parts):
        if len(one) > 1:
            short = one.lstrip("0")
            parts[place] = short if short[:1].isascii() and short[:1].isdecimal() else f"0{short}"
    if len(parts) < 3 and set(parts[-1]) & {"+", "-"}:
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _number(name: str, text: str) -> int:
    if not text.isascii() or (text and not text.isdecimal()):
        raise EvaluationError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    return _unsigned(text)


def _unsigned(text: str) -> int:
    found = read_digits(text)
    if found is None or found >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return found


def _piece(text: str) -> tuple[int, int, str]:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if text.isascii() and text.isdecimal():
        if len(text) > 1 and text[0] == "0":
            told = "Numeric PreRelease version must not contain leading zeroes"
            raise EvaluationError(f"{told} {quoted(text)}")
        return (0, _unsigned(text), "")
    if _WORD.fullmatch(text) is None:
        raise EvaluationError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return (1, 0, text)


# ── Formats of texts ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    name: str
    pattern_size: int  # of what it is checked by, for its cost
    type_name: ClassVar[str] = "kubernetes.NamedFormat"

    def problems(self, text: str) -> list[str]:
        return _CHECKS[self.name](text)


def _as_prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Of a name that more is to be added to."""
    return lambda text: check(f"{text[:-1]}a" if text.endswith("-") else text)


def _by_checker(name: str, told: str) -> Callable[[str], list[str]]:
    def check(text: str) -> list[str]:
        found = checker(name)
        return [] if found is not None and found(text) else [told]

    return check


_CHECKS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": texts.label,
    "dns1123Subdomain": texts.subdomain,
    "dns1035Label": texts.label_1035,
    "qualifiedName": texts.qualified,
    "dns1123LabelPrefix": _as_prefix(texts.label),
    "dns1123SubdomainPrefix": _as_prefix(texts.subdomain),
    "dns1035LabelPrefix": _as_prefix(texts.label_1035),
    "labelValue": lambda text: list(label_value_errors(text)),
    "uri": lambda text: [problem] if (problem := url_problem(text)) else [],
    "uuid": _by_checker("uuid", "does not match the UUID format"),
    "byte": _by_checker("byte", "invalid base64"),
    "date": _by_checker("date", "invalid date"),
    "datetime": _by_checker("datetime", "invalid datetime"),
}
_SIZES: Final = {
    "dns1123Label": 30, "dns1123Subdomain": 60, "dns1035Label": 30, "qualifiedName": 60,
    "dns1123LabelPrefix": 30, "dns1123SubdomainPrefix": 60, "dns1035LabelPrefix": 30, "labelValue": 40,
    "uri": 1103, "uuid": 70, "byte": 84, "date": 71, "datetime": 71,
}  # fmt: skip
FORMATS: Final = {name: NamedFormat(name, _SIZES[name]) for name in _CHECKS}
