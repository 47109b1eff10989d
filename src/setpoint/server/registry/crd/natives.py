"""JSON as CEL sees it through its schema: numbers are doubles, some texts are times, some lists are sets.

``native`` compiles a schema into what makes values of JSON; None where JSON's own values are right,
which is most of the time.  A value that is not as its schema says becomes an error, which is raised if
it is looked at.

Pure.  Fed by ``cel.py`` and ``admission/cel.py``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    Schema,
    extra,
    items,
    properties,
)
from setpoint.server.registry.crd.values import (
    SECOND,
    Duration,
    EvaluationError,
    MapList,
    SetList,
    read_digits,
    read_duration,
    read_timestamp,
)

Native = Callable[[Any], Any]


def native(schema: Schema) -> Native | None:
    made = None if schema.get(INT_OR_STRING) else _by_type(schema)
    return None if made is None else _unless_null(made)


def _unless_null(made: Native) -> Native:
    return lambda value: None if value is None else made(value)


def _by_type(schema: Schema) -> Native | None:
    match schema.get("type"):
        case "number":
            return lambda value: float(value) if type(value) is int else value
        case "string":
            return _FORMATS.get(schema.get("format") or "")
        case "array":
            return _list(schema)
        case "object":
            return _object(schema)
    return None


def _list(schema: Schema) -> Native | None:
    inner = items(schema)
    each = None if inner is None else native(inner)
    match schema.get(LIST_TYPE):
        case "set":
            return lambda value: SetList(value if each is None else map(each, value))
        case "map":
            keys = tuple(schema.get(LIST_KEYS) or ())
            return lambda value: MapList(value if each is None else [each(one) for one in value], keys)
    return None if each is None else lambda value: [each(one) for one in value]


def _object(schema: Schema) -> Native | None:
    rest = extra(schema)
    known = properties(schema)
    if rest is not None and not known and not schema.get(EMBEDDED):
        each = native(rest)
        return None if each is None else lambda value: {name: each(one) for name, one in value.items()}
    fields = {name: made for name, one in known.items() if (made := native(one)) is not None}
    if not fields:
        return None

    def convert(value: Any) -> Any:
        return {name: fields[name](one) if name in fields else one for name, one in value.items()}

    return convert


def _bytes(text: str) -> Any:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return EvaluationError(f"Invalid byte formatted string {text}: illegal base64 data")


def _timestamp(text: str) -> Any:
    said = text.upper()
    found = read_timestamp(said) or read_timestamp(f"{said}Z")
    return found or EvaluationError(f"Invalid date-time formatted string {text}: it is none")


def _date(text: str) -> Any:
    found = read_timestamp(f"{text}T00:00:00Z")
    return found or EvaluationError(f"Invalid date formatted string {text}: it is none")


_DAY: Final = 24 * 3600
_WORDS: Final = (
    (("ns", "nano"), 1), (("us", "µs", "micro"), 1000), (("ms", "milli"), 10**6), (("s", "sec"), SECOND),
    (("m", "min"), 60 * SECOND), (("h", "hr", "hour"), 3600 * SECOND), (("d", "day"), _DAY * SECOND),
    (("w", "wk", "week"), 7 * _DAY * SECOND),
)  # fmt: skip
_WORDED: Final = re.compile(r"(?<!\d)(\d++)\s*([A-Za-zµ]+)")


def _duration(text: str) -> Any:
    """As Go reads it, or in words: ``3 weeks``."""
    if (found := read_duration(text)) is not None:
        return found
    total, is_any = 0, False
    for digits, word in _WORDED.findall(text):
        unit = word.lower()
        if (count := read_digits(digits)) is None:
            break
        for variants, length in _WORDS:
            if unit in variants or unit.startswith(variants[-1]):
                total, is_any = total + count * length, True
    else:
        if is_any:
            return Duration(total)
    return EvaluationError(f"Invalid duration {text}: unable to parse it")


_FORMATS: Final[dict[str, Native]] = {
    "byte": _bytes,
    "date": _date,
    "date-time": _timestamp,
    "duration": _duration,
}
