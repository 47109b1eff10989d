"""``"%s has %d".format([…])`` in CEL: read as cel-go reads it, to be evaluated and to be checked.

``formatted`` gives the text; ``clauses`` says what a format asks of its arguments, for ``checking.py``.
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any, Final, NamedTuple

from setpoint.server.golang import quoted
from setpoint.server.registry.crd.values import (
    Duration,
    EvaluationError,
    Key,
    Timestamp,
    TypeValue,
    UInt,
    duration_text,
    timestamp_text,
    to_string,
    type_name,
)

_DEFAULT: Final = 6  # digits after the point
_MOST: Final = 1000
_NO_CLAUSE: Final = "could not parse formatting clause"
_TOLD: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps, was given",
    "d": "decimal clause can only be used on integers, was given",
    "f": "fixed-point clause can only be used on doubles, was given",
    "e": "scientific clause can only be used on doubles, was given",
    "b": "only integers and bools can be formatted as binary, was given",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given",
    "o": "octal clause can only be used on integers, was given",
}
_NUMBER: Final = ("int", "uint")
TAKEN: Final[dict[str, frozenset[str]]] = {
    "s": frozenset({
        "list", "map", *_NUMBER, "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null",
    }),
    "d": frozenset(_NUMBER),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({*_NUMBER, "bool"}),
    "x": frozenset({*_NUMBER, "string", "bytes"}),
    "o": frozenset(_NUMBER),
}  # fmt: skip


class Clause(NamedTuple):
    letter: str  # s, d, f, e, b, x, X, o
    digits: int
    place: int  # of its argument


class BadFormat(ValueError):
    """The text is cel-go's."""


def clauses(text: str, count: int) -> Iterator[str | Clause]:
    """Texts and what stands between them, for so many arguments.  Raises ``BadFormat``."""
    place, found = 0, 0
    while place < len(text):
        sign = text.find("%", place)
        if sign < 0:
            yield text[place:]
            return
        yield text[place:sign]
        if text[sign + 1 : sign + 2] == "%":
            yield "%"
            place = sign + 2
            continue
        if found >= count:
            raise BadFormat(f"index {found} out of range")
        if sign + 1 >= len(text):
            raise BadFormat("unexpected end of string")
        digits, place = _digits(text, sign + 1)
        letter = text[place]
        if letter not in "sdfebxXo":
            raise BadFormat(f'{_NO_CLAUSE}: unrecognized formatting clause "{letter}"')
        yield Clause(letter, digits, found)
        place, found = place + 1, found + 1


def _digits(text: str, place: int) -> tuple[int, int]:
    if text[place] != ".":
        return _DEFAULT, place
    end = place + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    failed = f"{_NO_CLAUSE}: error while parsing precision"
    if end >= len(text):
        raise BadFormat(f"{failed}: could not find end of precision specifier")
    said = text[place + 1 : end]
    if not said:
        raise BadFormat(
            f'{failed}: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        )
    if len(said) > 4 or int(said) > _MOST:  # which is never meant, and would take long
        raise BadFormat(f"{failed}: precision {said} exceeds maximum allowed precision {_MOST}")
    return int(said), end


def wrong(letter: str, kind: str) -> str:
    """What is said of an argument of another type."""
    return f"error during formatting: {_TOLD[letter.lower() if letter == 'X' else letter]} {kind}"


def formatted(text: str, values: list[Any]) -> str:
    """Raises ``EvaluationError``."""
    parts: list[str] = []
    try:
        for one in clauses(text, len(values)):
            parts += [one if isinstance(one, str) else _written(one, values[one.place])]
    except BadFormat as error:
        raise EvaluationError(str(error)) from None
    return "".join(parts)


def _written(clause: Clause, value: Any) -> str:
    if isinstance(value, EvaluationError):
        raise value
    found = _WRITERS[clause.letter](value, clause.digits)
    if found is None:
        raise EvaluationError(wrong(clause.letter, type_name(value)))
    return found


# ── Each clause; None where the value is not for it ─────────────────────────────────────────────────


def _string(value: Any, _: int = 0) -> str | None:
    match value:
        case None:
            return "null"
        case list():
            return f"[{', '.join(_inside(one) for one in value)}]"
        case dict():
            pairs = sorted((_key(name), _inside(one)) for name, one in value.items())
            return "{" + ", ".join(f"{name}:{one}" for name, one in pairs) + "}"
        case bool() | int() | float() | str() | bytes() | Duration() | Timestamp() | TypeValue():
            return to_string(value)
    return None


def _key(name: Any) -> str:
    if isinstance(name, Key):
        return "true" if name.value else "false"
    return quoted(name) if isinstance(name, str) else str(int(name))


def _inside(value: Any) -> str:
    """Of a list or map."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(to_string(value))}"
        case float():
            if not math.isfinite(value):
                return quoted("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")
            return f"{value:.6f}"
        case Timestamp():
            return f"timestamp({quoted(timestamp_text(value))})"
        case Duration():
            return f"duration({quoted(duration_text(value))})"
    found = _string(value)
    if found is None:
        raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")
    return found


def _is_whole(value: Any) -> bool:
    return type(value) in (int, UInt)


def _decimal(value: Any, _: int) -> str | None:
    return str(int(value)) if _is_whole(value) else None


_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _double(value: Any) -> float | None:
    if isinstance(value, float):
        return value
    return _WORDS.get(value) if isinstance(value, str) else None


def _endless(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _fixed(value: Any, digits: int) -> str | None:
    number = _double(value)
    if number is None:
        return None
    return f"{number:,.{digits}f}" if math.isfinite(number) else _endless(number)


_RAISED: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _scientific(value: Any, _: int) -> str | None:
    """What is said of digits is the least width, which is never reached."""
    number = _double(value)
    if number is None or not math.isfinite(number):
        return None if number is None else _endless(number)
    with localcontext() as context:
        context.rounding = ROUND_HALF_EVEN
        mantissa, _e, power = f"{Decimal(number):.{_DEFAULT}e}".partition("e")
    raised = f"{int(power):03}" if int(power) < 0 else f"{int(power):02}"
    return f"{mantissa}×10{raised.translate(_RAISED)}"  # noqa: RUF001


def _based(letter: str) -> Callable[[Any, int], str | None]:
    def write(value: Any, _: int) -> str | None:
        if isinstance(value, bool):
            return ("1" if value else "0") if letter == "b" else None
        if _is_whole(value):
            return format(int(value), letter)
        if letter in "xX" and isinstance(value, str | bytes):
            data = value.encode() if isinstance(value, str) else value
            return data.hex() if letter == "x" else data.hex().upper()
        return None

    return write


_WRITERS: Final[dict[str, Callable[[Any, int], str | None]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    **{letter: _based(letter) for letter in "bxXo"},
}
