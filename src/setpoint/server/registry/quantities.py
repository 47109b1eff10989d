"""How Kubernetes writes a quantity that it was sent.

Mostly in its canonical text (``setpoint.api.quantity``).  But what is nearly canonical already, Go keeps as
it was written: ``1.234``, ``+5``, ``5E3``.  Answers must be the same text, so this keeps it by the same
rule.

- ``canonical(value)``: the text that is stored and answered; ValueError, in Go's words, for what is no
  quantity.
- ``to_milli(value)``: the same in a list of resources, where anything finer than a thousandth is rounded
  up.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP
from functools import lru_cache
from typing import Final

from setpoint.api.quantity import Quantity

_TEXT: Final = re.compile(r"([+-]?)0*+([0-9]*+)(\.[0-9]*+)?([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_LONGEST: Final = 10_000  # characters: Python's arithmetic slows down with the square of the digits
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def canonical(value: object) -> str:
    return _canonical(_text(value))


def to_milli(value: object) -> str:
    return _to_milli(_text(value))


def _text(value: object) -> str:
    """The text between the quotes, or that of a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(_FORMAT)  # noqa: TRY004
    text = str(value).strip()
    if len(text) > _LONGEST:
        raise ValueError(_FORMAT)
    return text


@lru_cache(maxsize=4096)  # a cluster's objects repeat few texts
def _canonical(text: str) -> str:
    kept = _kept(text)
    return text if kept is not None else str(_parsed(text))


@lru_cache(maxsize=4096)
def _to_milli(text: str) -> str:
    scale = _kept(text)
    if scale is not None and scale >= -3:
        return text
    parsed = _parsed(text)
    in_milli = parsed.as_decimal().scaleb(3)
    if in_milli == in_milli.to_integral_value():
        return _canonical(text)
    rounded = in_milli.to_integral_value(ROUND_UP).scaleb(-3)
    return str(Quantity(rounded, parsed.format))


def _parsed(text: str) -> Quantity:
    try:
        return Quantity(text)
    except ValueError as error:
        raise ValueError(str(error).partition(": ")[2] or str(error)) from None


def _kept(text: str) -> int | None:
    """The power of ten below which the text says nothing, if Go keeps that text; else None."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    _, number, fraction, suffix = match.groups()
    digits = (number or "0") + (fraction or ".")[1:]
    if suffix in _BINARY:
        return _kept_binary(digits, fraction, _BINARY[suffix])
    exponent = _DECIMAL.get(suffix)
    if exponent is None:
        if not re.fullmatch(r"[eE][+-]?[0-9]{1,3}", suffix):
            return None
        exponent = int(suffix[1:])
    scale = exponent - len(digits) + len(number or "0")
    near = len(digits) <= 18 and scale >= -9 and scale % 3 == 0
    return scale if near and not digits.endswith("000") and digits[0] != "0" else None


def _kept_binary(digits: str, fraction: str | None, exponent: int) -> int | None:
    precise = 15 - len(digits) - int(exponent * 3 / 10) - 1 >= 0
    return 0 if precise and not (fraction or "").strip(".") and int(digits) & 7 else None
