"""What is wrong with one text or number: names, ports, keys, addresses, quantities.  In Kubernetes' words.

Every function takes a value and answers with texts, none if nothing is wrong.  Where a text is allowed and
which field it stands in is the caller's to know.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

from setpoint.api.quantity import Quantity
from setpoint.api.selectors import label_key_errors

_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_LINEAR_SUBDOMAIN: Final = _SUBDOMAIN_FORM.replace("(", "(?:") + "+"  # the same, without backtracking
_LABEL: Final = re.compile(_LABEL_FORM).fullmatch
_LABEL_1035: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?").fullmatch
_SUBDOMAIN: Final = re.compile(_LINEAR_SUBDOMAIN).fullmatch
_WILDCARD: Final = re.compile(rf"\*\.{_LINEAR_SUBDOMAIN}").fullmatch
_CONFIG_KEY: Final = re.compile("[-._a-zA-Z0-9]+").fullmatch
_USUAL_CONFIG_KEY: Final = re.compile("[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}").fullmatch
_HEADER: Final = re.compile("[-A-Za-z0-9]+").fullmatch
_PORT_NAME: Final = re.compile("[-a-z0-9]+").fullmatch
_PERCENT: Final = re.compile("[0-9]+%").fullmatch
_HTTP_PATH_FORM: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_HTTP_PATH: Final = re.compile(_HTTP_PATH_FORM).fullmatch
_REASON_FORM: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON: Final = re.compile(_REASON_FORM).fullmatch

_WRONG_LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    f"validation is '{_LABEL_FORM}')"
)
_WRONG_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN_FORM}')"
)
_WRONG_UNDERSCORED: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)
_UNDERSCORED: Final = re.compile(
    r"_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:\._?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*+"
).fullmatch
_WRONG_LABEL_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_WRONG_WILDCARD: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
    rf"'*.example.com', regex used for validation is '\*\.{_SUBDOMAIN_FORM}')"
)
_WRONG_CONFIG_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_WRONG_HEADER: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used "
    "for validation is '[-A-Za-z0-9]+')"
)
_WRONG_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    "used for validation is '[0-9]+%')"
)
_WRONG_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  "
    "or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON_FORM}')"
)
_WRONG_ENV: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
WRONG_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
WRONG_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
WRONG_PORT: Final = "must be between 1 and 65535, inclusive"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
LARGEST: Final = 2**63 - 1  # of Go's numbers


def _length(text: str, most: int) -> list[str]:
    too_long = len(text) > most if text.isascii() else len(text.encode()) > most
    return [f"must be no more than {most} characters"] if too_long else []


# ── Names ───────────────────────────────────────────────────────────────────────────────────────────


def subdomain(text: str) -> list[str]:
    errors = _length(text, 253)
    return errors if _SUBDOMAIN(text) else [*errors, _WRONG_SUBDOMAIN]


def subdomain_with_underscores(text: str) -> list[str]:
    errors = _length(text, 253)
    return errors if _UNDERSCORED(text) else [*errors, _WRONG_UNDERSCORED]


def wildcard(text: str) -> list[str]:
    errors = _length(text, 253)
    return errors if _WILDCARD(text) else [*errors, _WRONG_WILDCARD]


def label(text: str) -> list[str]:
    errors = _length(text, 63)
    if not _LABEL(text):
        errors.append("must not contain dots" if _SUBDOMAIN(text) else _WRONG_LABEL)
    return errors


def label_1035(text: str) -> list[str]:
    errors = _length(text, 63)
    return errors if _LABEL_1035(text) else [*errors, _WRONG_LABEL_1035]


def path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{one}'" for one in "/%" if one in text]


def qualified(text: str) -> list[str]:
    return label_key_errors(text)


def config_key(text: str) -> list[str]:
    if _USUAL_CONFIG_KEY(text):
        return []
    errors = _length(text, 253)
    if not _CONFIG_KEY(text):
        errors.append(_WRONG_CONFIG_KEY)
    if text in (".", ".."):
        errors.append(f"must not be '{text}'")
    elif text.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def env_name(text: str) -> list[str]:
    fine = text.isascii() and text.isprintable() and "=" not in text
    return [] if fine else [_WRONG_ENV]


def header_name(text: str) -> list[str]:
    return [] if _HEADER(text) else [_WRONG_HEADER]


def condition_reason(text: str) -> list[str]:
    return [] if _REASON(text) else [_WRONG_REASON]


def http_path(text: str) -> list[str]:
    return [] if _HTTP_PATH(text) else [f"Invalid path (regex used for validation is '{_HTTP_PATH_FORM}')"]


# ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────


def port(number: int) -> list[str]:
    return [] if 1 <= number <= 65535 else [WRONG_PORT]


def port_name(text: str) -> list[str]:
    errors = _length(text, 15)
    if not _PORT_NAME(text):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= one <= "z" for one in text):
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def port_or_name(value: int | str) -> list[str]:
    return port_name(value) if isinstance(value, str) else port(value)


def user_id(number: int) -> list[str]:
    return [] if 0 <= number < 2**31 else ["must be between 0 and 2147483647, inclusive"]


def whole(text: str) -> int | None:
    """Decimal digits as the number that they are; None for anything else, and for more than Go's hold."""
    digits = text.lstrip("0")
    if not text.isascii() or not text.isdecimal() or len(digits) > 18:
        return None
    return int(digits or "0")


def percent(text: str) -> list[str]:
    return [] if _PERCENT(text) else [_WRONG_PERCENT]


def amount(value: int | str | None) -> int:
    """A number, or the number of percents; 0 for what is neither."""
    if isinstance(value, str):
        if not _PERCENT(value):
            return 0
        number = whole(value[:-1])
        return LARGEST if number is None else number
    return value or 0


@lru_cache(maxsize=4096)
def _quantity(text: str) -> Quantity:
    return Quantity(text)


def quantity(value: str | int) -> Quantity:
    """Of a text that was read as a quantity before."""
    return _quantity(str(value))


# ── Addresses ───────────────────────────────────────────────────────────────────────────────────────

_ZEROS: Final = re.compile(r"(?<![0-9.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def address(text: str) -> Address | None:
    """As Go reads it: zeros may lead."""
    try:
        plain = text if ":" in text else _ZEROS.sub("", text)
        found = ipaddress.ip_address(plain)
    except ValueError:
        return None
    return None if "%" in text else found


def network(text: str) -> Network | None:
    head, slash, bits = text.partition("/")
    found = address(head) if slash else None
    length = whole(bits)
    if found is None or length is None or length > found.max_prefixlen:
        return None
    return ipaddress.ip_network(f"{found}/{length}", strict=False)


def ip(text: str) -> list[str]:
    found = address(text)
    if found is None:
        return [WRONG_IP]
    errors = []
    if not _is_plain(text):
        errors.append("must not have leading 0s")
    if _is_mapped(found):
        errors.append("must not be an IPv4-mapped IPv6 address")
    return errors


def cidr(text: str) -> list[str]:
    found = network(text)
    if found is None:
        return [WRONG_CIDR]
    head, _, bits = text.partition("/")
    first = address(head)
    if not _is_plain(head) or (len(bits) > 1 and bits.startswith("0")):
        return ["must not have leading 0s in IP or prefix length"]
    if first is not None and _is_mapped(first):
        return ["must not have an IPv4-mapped IPv6 address"]
    if first != found.network_address:
        return ["must not have bits set beyond the prefix length"]
    return []


def _is_plain(text: str) -> bool:
    return ":" in text or not _ZEROS.search(text)


def _is_mapped(found: Address) -> bool:
    return isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None


def endpoint_ip(text: str) -> list[str]:
    """An address that traffic can be sent to."""
    found = address(text)
    if found is None:
        return ["must be a valid IP address"]
    errors = []
    if found.is_unspecified:
        errors.append(f"may not be unspecified ({text})")
    if found.is_loopback:
        errors.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        errors.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if found in _LOCAL_MULTICAST[found.version]:
        errors.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return errors


_LOCAL_MULTICAST: Final[dict[int, Network]] = {
    4: ipaddress.ip_network("224.0.0.0/24"),
    6: ipaddress.ip_network("ff02::/16"),
}
