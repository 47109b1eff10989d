"""How Go prints and parses a value: the texts of refusals quote values, and clients compare texts.

Promises: ``quoted`` prints as ``%q``, ``printed`` as ``%v`` and ``encoded`` as ``json.Marshal`` does;
``parse_int`` takes what ``strconv.ParseInt`` takes; ``valid_text`` is text that can be written at all.
Not here: which value is printed where (``statuses.py`` and the registry).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_HALVES: Final = re.compile("[\ud800-\udfff]")  # of a character; and bytes that were no text
_INT: Final = re.compile(r"[+-]?[0-9]+")
_MAX_DIGITS: Final = 20  # of 64 bits
# json.Marshal writes these so that a page may hold them
_HTML: Final = ((b"&", b"\\u0026"), (b"<", b"\\u003c"), (b">", b"\\u003e"))


def quoted(text: str) -> str:
    """``%q``."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escaped(one) for one in text) + '"'


def _escaped(one: str) -> str:
    if one in _ESCAPES:
        return _ESCAPES[one]
    if one.isprintable():
        return one
    code = ord(one)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printed(value: Any) -> str:
    """``%v`` of a plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value, 6)
    if value is None:
        return "<nil>"
    if isinstance(value, list):
        return "[" + " ".join(printed(one) for one in value) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{printed(value[key])}" for key in sorted(value)) + "]"
    return str(value)


def float_text(value: float, large: int) -> str:
    """The shortest digits, with an exponent from ten to the ``large``th on: the 21st in JSON, else 6th."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    mantissa, _, exponent = f"{value!r}".lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    power = point - 1
    small = -6 if large == 21 else -4
    if power < small or power >= large:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        width = 1 if large == 21 and -10 < power < 0 else 2  # JSON writes e-9, %v writes e-09
        return f"{sign}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):0{width}d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


class Struct(dict[str, Any]):
    """A Go struct: its fields are written in their own order, not in that of their names."""


def encoded(value: Any) -> str:
    """``json.Marshal``: keys in order, the signs of HTML escaped."""
    if type(value) is Struct:
        return "{" + ",".join(f'"{name}":{encoded(one)}' for name, one in value.items()) + "}"
    if type(value) is dict and any(type(one) is Struct for one in value.values()):
        return "{" + ",".join(f"{encoded(name)}:{encoded(value[name])}" for name in sorted(value)) + "}"
    if type(value) is list and value and type(value[0]) is Struct:
        return "[" + ",".join(map(encoded, value)) + "]"
    data = msgspec.json.encode(_plain(value), order="deterministic")
    for sign, escape in _HTML:
        if sign in data:
            data = data.replace(sign, escape)
    return data.decode().replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: Any) -> Any:
    """The value with its floats as Go writes them."""
    if type(value) is float:
        return msgspec.Raw(float_text(value, 21).encode())
    if type(value) is dict:
        return {key: _plain(one) for key, one in value.items()}
    if type(value) is list:
        return [_plain(one) for one in value]
    return value


def shown(value: Any) -> str:
    """The value of a field as a refusal shows it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool | float):
        return printed(value)
    return encoded(value)


def same(one: Any, other: Any) -> bool:
    """``reflect.DeepEqual`` of two JSON values: 1, 1.0 and true are three things."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return len(one) == len(other) and all(
            key in other and same(value, other[key]) for key, value in one.items()
        )
    if type(one) is list:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def parse_int(text: str, bits: int = 64, *, function: str = "ParseInt") -> int:
    """``strconv.ParseInt(text, 10, bits)``.  Raises ``ValueError`` in Go's words.

    Python's ``int`` also takes underscores, spaces and the digits of every script, and is slow with many.
    """
    if _INT.fullmatch(text) is None:
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("+-0")
    number = int(digits or "0") if len(digits) <= _MAX_DIGITS else 2**64
    if text[0] == "-":
        number = -number
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: value out of range")
    return number


def valid_text(text: str) -> str:
    """Text that can be written: what came from bytes that are no UTF-8 is U+FFFD, as Go writes it."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def joined(errors: Sequence[str]) -> str:
    """Several errors as one: what is said twice is said once."""
    once = list(dict.fromkeys(errors))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"
