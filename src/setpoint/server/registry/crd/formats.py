"""Which strings have which format: the ``format`` words that Kubernetes checks, and how strictly.

Decides yes or no for a string.  What a schema says with another word is not checked, as in Kubernetes.
Not here: int32, int64, float and double, which are ranges of numbers (``validate.py``).
"""

from __future__ import annotations

import binascii
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import date
from typing import Final

_HEX = re.compile(r"[0-9a-fA-F]+")
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SHORT = re.compile(_LABEL)
_LONG = re.compile(rf"{_LABEL}(?:\.{_LABEL})*+")
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))++)")
_WORDED = re.compile(r"(?<![0-9])[0-9]++\s*([A-Za-zµ]+)", re.ASCII)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+"
_ADDRESS = re.compile(
    rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\x00-\x1f]|\\.)*")@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\]\[\\ ]*\])'
)
_DISPLAY_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|[^"<>@,;:\\()\[\]]*')
_CARD = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|(?:2131|1800|35\d{3})\d{11}",
    re.ASCII,
)
_COLOUR = r"(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_RGB = re.compile(rf"rgb\(\s*{_COLOUR}\s*,\s*{_COLOUR}\s*,\s*{_COLOUR}\s*\)", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST = re.compile(r"[A-Za-z0-9_.~!$&'()*+,;=:<>\"\[\]-]*")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _is_uuid(version: str, variant: str) -> Callable[[str], bool]:
    shape = re.compile(
        rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}-?{variant}-?[0-9a-f]{{12}}", re.IGNORECASE | re.ASCII
    )
    return lambda text: shape.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    """An absolute address or path, as a request line may carry it."""
    if not text or any(ord(one) < 0x20 or ord(one) == 0x7F for one in text):
        return False
    if text == "*":
        return True
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None and ":" not in text[: scheme.start()]
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        return _is_authority(authority) and _PERCENT.search(slash + path) is None
    return _PERCENT.search(rest) is None


def _is_authority(text: str) -> bool:
    _, _, host = text.rpartition("@")
    if host.startswith("["):
        end = host.rfind("]")
        return end >= 0 and _is_port(host[end + 1 :])
    name, colon, port = host.rpartition(":")
    if colon and not _is_port(colon + port):
        return False
    name = name if colon else host
    plain = re.sub(r"%[0-9A-Fa-f]{2}|[\u0080-\U0010ffff]", "", name)
    return _HOST.fullmatch(plain) is not None


def _is_port(text: str) -> bool:
    return text == "" or re.fullmatch(r":[0-9]*", text) is not None


def _is_email(text: str) -> bool:
    """``a@b.c``, or ``A Name <a@b.c>``."""
    address = text.strip()
    if address.endswith(">"):
        name, _, address = address[:-1].rpartition("<")
        if _DISPLAY_NAME.fullmatch(name.strip()) is None:
            return False
        address = address.strip()
    return _ADDRESS.fullmatch(address) is not None


def _is_host_letter(one: str) -> bool:
    return (
        (one.isascii() and one.isalnum())
        or (not one.isascii() and unicodedata.category(one)[0] in "LS")
        or one in "$+<=>^`|~"
    )


def _is_hostname(text: str) -> bool:
    if not text or len(text.encode()) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    *labels, last = text.split(".")
    if not labels:  # one label has at most one dash, after its first letter
        return all(map(_is_host_letter, last[:1] + last[1:].removeprefix("-")))
    if not 2 <= len(last) <= 63 or not all(
        unicodedata.category(one)[0] == "L" if not one.isascii() else one.isalpha() for one in last
    ):
        return False
    return all(
        label
        and _is_host_letter(label[0])
        and _is_host_letter(label[-1])
        and all(one == "-" or _is_host_letter(one) for one in label)
        for label in labels
    )


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Leading zeros in IPv4 are decimal, as in old Go."""
    if "%" in text:
        return None
    if ":" not in text:
        text = ".".join(
            part.lstrip("0") or "0" if part.isascii() and part.isdecimal() and len(part) < 10 else part
            for part in text.split(".")
        )
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_ipv6(text: str) -> bool:
    return ":" in text and _address(text) is not None


def _is_cidr(text: str) -> bool:
    host, slash, prefix = text.partition("/")
    found = _address(host)
    if not slash or found is None or not (prefix.isascii() and prefix.isdecimal()) or len(prefix) > 9:
        return False
    return int(prefix) <= found.max_prefixlen


def _is_mac(text: str) -> bool:
    for sign, width in ((":", 2), ("-", 2), (".", 4)):
        parts = text.split(sign)
        if len(parts) > 1 and all(len(part) == width and _HEX.fullmatch(part) for part in parts):
            return len(parts) * width // 2 in (6, 8, 20)
    return False


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    values = [10 if one == "X" else int(one) for one in digits]
    return sum(place * value for place, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum(int(one) * (3 if place % 2 else 1) for place, one in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = [int(one) * (2 if place % 2 else 1) for place, one in enumerate(reversed(digits))]
    return sum(one // 10 + one % 10 for one in doubled) % 10 == 0


def _is_ssn(text: str) -> bool:
    return len(text) == 11 and re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None


def _is_base64(text: str) -> bool:
    if not text or len(text) % 4:
        return False
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def is_date(text: str) -> bool:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return False
    try:
        date.fromisoformat(text if text[:4] != "0000" else f"2000{text[4:]}")
    except ValueError:
        return False
    return True


def is_datetime(text: str) -> bool:
    day, letter, clock = text.lower().partition("t")
    found = _CLOCK.fullmatch(clock.partition("t")[0])
    return (
        bool(letter)
        and is_date(day)
        and found is not None
        and found[1] <= "23"
        and max(found[2], found[3]) <= "59"
    )


_UNITS = (
    ("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min"),
    ("h", "hr", "hour"), ("d", "day"), ("w", "wk", "week"),
)  # fmt: skip


def is_go_duration(text: str) -> bool:
    return _GO_DURATION.fullmatch(text) is not None


def is_duration(text: str) -> bool:
    """As Go writes it, or in words: ``3 weeks``."""
    if is_go_duration(text):
        return True
    for word in _WORDED.findall(text):
        unit = word.lower()
        if any(unit in variants or unit.startswith(variants[-1]) for variants in _UNITS):
            return True
    return False


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": lambda text: len(text) == 24 and _HEX.fullmatch(text) is not None,
    "byte": _is_base64,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": is_date,
    "datetime": is_datetime,
    "duration": is_duration,
    "email": _is_email,
    "hexcolor": lambda text: re.fullmatch(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})", text) is not None,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and _address(text) is not None,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: len(text) <= 253 and _LONG.fullmatch(text) is not None,
    "k8sshortname": lambda text: len(text) <= 63 and _SHORT.fullmatch(text) is not None,
    "mac": _is_mac,
    "password": lambda _: True,
    "rgbcolor": lambda text: _RGB.fullmatch(text) is not None,
    "ssn": _is_ssn,
    "uri": _is_uri,
    "uuid": _is_uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _is_uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _is_uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _is_uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}  # by name without dashes


def checker(name: str) -> Callable[[str], bool] | None:
    """None where the word means nothing."""
    return FORMATS.get(name.replace("-", ""))


def is_recognized(name: str, kind: str) -> bool:
    """Does Kubernetes check this format on this type?  It warns of a definition that uses another."""
    match kind:
        case "" | "string":
            return checker(name) is not None
        case "integer":
            return name in ("int32", "int64")
        case "number":
            return name in ("float", "double")
    return False
