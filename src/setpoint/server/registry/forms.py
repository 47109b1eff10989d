"""What a single value of each form may be, and how Go has it where nothing was said.

``LOOKS``: by form, whether a value is as it should be: of the right type, and where that is text, canonical.
``zero(type)``: what stands for nothing.  ``recoded`` and ``first_illegal`` know base64 as Go does.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Final

from setpoint.server.registry import instants, quantities
from setpoint.server.registry.doubled import Doubled
from setpoint.server.registry.types import Type


def _string(value: Any) -> bool:
    return value.__class__ is str


def _bool(value: Any) -> bool:
    return value.__class__ is bool


def is_int32(value: Any) -> bool:
    return value.__class__ is int and -(2**31) <= value < 2**31


def _int64(value: Any) -> bool:
    return value.__class__ is int and -(2**63) <= value < 2**63


def _float(value: Any) -> bool:
    # Go writes a whole number without a point.
    return value.__class__ is int or (value.__class__ is float and not value.is_integer())


def _int_or_string(value: Any) -> bool:
    return value.__class__ is str or is_int32(value)


def _quantity(value: Any) -> bool:
    try:
        return value.__class__ is str and quantities.canonical(value) == value
    except ValueError:
        return False


def are_resources(value: Any) -> bool:
    if value.__class__ is not dict:
        return False
    try:
        return all(inner.__class__ is str and quantities.to_milli(inner) == inner for inner in value.values())
    except ValueError:
        return False


def _time(value: Any) -> bool:
    try:
        return value.__class__ is str and instants.canonical(value, False) == value
    except ValueError:
        return False


def _microtime(value: Any) -> bool:
    try:
        return value.__class__ is str and instants.canonical(value, True) == value
    except ValueError:
        return False


def _bytes(value: Any) -> bool:
    try:
        return value.__class__ is str and recoded(value) == value
    except ValueError:
        return False


def _anything(value: Any) -> bool:
    if value.__class__ is dict:
        return all(map(_anything, value.values()))
    if value.__class__ is list:
        return all(map(_anything, value))
    return not isinstance(value, Doubled)


LOOKS: Final[dict[str, Callable[[Any], bool]]] = {
    "string": _string,
    "bool": _bool,
    "int32": is_int32,
    "int64": _int64,
    "float": _float,
    "int-or-string": _int_or_string,
    "quantity": _quantity,
    "time": _time,
    "microtime": _microtime,
    "bytes": _bytes,
    "duration": _string,
    "any": _anything,
}


def recoded(text: str) -> str:
    """Base64 as Go writes it; ValueError for what is none."""
    coded = binascii.b2a_base64(binascii.a2b_base64(text, strict_mode=True), newline=False).decode()
    if len(coded) != len(text):
        raise ValueError("there is more of it than it says")
    return coded


_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def first_illegal(text: str) -> int:
    """Where Go's base64 decoder gives up: where something cannot be, or where the last group begins."""
    at, group = 0, 0
    while at < len(text):
        character = text[at]
        at += 1
        if character in _ALPHABET:
            group = (group + 1) % 4
        elif character == "=" and group >= 2:
            at = _line_end(text, at)
            if group == 2:
                if text[at : at + 1] != "=":
                    return at - 1 if at < len(text) else at
                at = _line_end(text, at + 1)
            return at
        elif character not in "\r\n":
            return at - 1
    return at - group


def _line_end(text: str, at: int) -> int:
    while text[at : at + 1] in ("\r", "\n"):
        at += 1
    return at


# --- nothing

_ZEROS: Final[dict[str, Callable[[], Any]]] = {
    "string": str,
    "bytes": str,
    "int32": int,
    "int64": int,
    "int-or-string": int,
    "float": float,
    "bool": bool,
    "quantity": lambda: "0",
    "duration": lambda: "0s",
    "struct": dict,
}


def zero(type: Type) -> Any:  # noqa: A002
    """What Go has where nothing was said; None where JSON writes null for it."""
    make = _ZEROS.get(type.form)
    return None if make is None else make()
