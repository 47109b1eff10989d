"""Is a value as its schema says?  Only yes or no, compiled once per version, because most objects are fine.

Promise: a yes here is a yes of ``validate.py``.  A no is looked at again there, where the reasons are
found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.server.registry.crd.formats import checker
from setpoint.server.registry.crd.patterns import BadPattern, CannotMatch, compiled
from setpoint.server.registry.crd.schemas import Schema, extra, items, properties
from setpoint.server.registry.crd.validate import (
    LARGEST,
    format_of,
    is_one,
    problems,
    types_of,
)

Check = Callable[[Any], bool]


def check(schema: Schema) -> Check:
    """Compile a schema."""
    if any(schema.get(word) for word in ("anyOf", "oneOf", "allOf", "not")):
        return _with_junctions(schema)
    return _plain(schema)


def _with_junctions(schema: Schema) -> Check:
    own = _plain(schema)
    every = [check(one) for one in schema.get("allOf") or ()]
    any_of = [check(one) for one in schema.get("anyOf") or ()]
    one_of = [check(one) for one in schema.get("oneOf") or ()]
    against = schema.get("not")

    def test(value: Any) -> bool:
        if value is None:
            return own(value)
        return (
            own(value)
            and all(one(value) for one in every)
            and (not any_of or any(one(value) for one in any_of))
            and (
                not one_of
                or sum(
                    bool(one(value) or not problems(part, value))
                    for one, part in zip(one_of, schema["oneOf"], strict=True)
                )
                == 1
            )
            and (not isinstance(against, dict) or bool(problems(against, value)))
        )

    return test


def _plain(schema: Schema) -> Check:
    kinds, word = types_of(schema), format_of(schema)
    by_kind: dict[type, Check] = {}
    is_free = not kinds and not word
    if is_free or "string" in kinds:
        by_kind[str] = _string(schema, word)
    if is_free or "boolean" in kinds:
        by_kind[bool] = _constant
    if is_free or "integer" in kinds or "number" in kinds:
        by_kind[int] = _integer(schema, kinds, word)
        by_kind[float] = _float(schema, kinds, word)
    if is_free or "array" in kinds:
        by_kind[list] = _list(schema)
    if is_free or "object" in kinds:
        by_kind[dict] = _object(schema)
    allowed = schema.get("enum")
    takes_null = (not kinds or bool(schema.get("nullable"))) and not allowed

    def test(value: Any) -> bool:
        if value is None:
            return takes_null
        found = by_kind.get(type(value))
        return found is not None and found(value)

    if not allowed:
        return test
    return lambda value: test(value) and any(is_one(value, one) for one in allowed)


def _constant(_: Any) -> bool:
    return True


def _string(schema: Schema, word: str) -> Check:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    checks: list[Check] = []
    if longest is not None:
        checks.append(lambda value: len(value) <= longest)
    if shortest is not None:
        checks.append(lambda value: len(value) >= shortest)
    if pattern:
        checks.append(_pattern(pattern))
    if word and (found := checker(word)) is not None:
        checks.append(found)
    if not checks:
        return _constant
    return checks[0] if len(checks) == 1 else lambda value: all(one(value) for one in checks)


def _pattern(pattern: str) -> Check:
    try:
        matches = compiled(pattern)
    except BadPattern:
        return lambda _: False

    def test(value: str) -> bool:
        try:
            return matches(value)
        except CannotMatch:
            return False

    return test


def _integer(schema: Schema, kinds: tuple[str, ...], word: str) -> Check:
    """Within the limits; a schema whose own limits are odd is left to ``validate.py``."""
    low, high = (-(2**31), 2**31 - 1) if word == "int32" else (-(2**63), 2**63 - 1)
    if _is_odd(schema, kinds, word):
        return lambda value: not problems(schema, value)
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if minimum is not None:
        low = max(low, int(minimum) + bool(schema.get("exclusiveMinimum")))
    if maximum is not None:
        high = min(high, int(maximum) - bool(schema.get("exclusiveMaximum")))
    factor = schema.get("multipleOf")
    if factor is None:
        return lambda value: low <= value <= high
    return lambda value: low <= value <= high and value % int(factor) == 0


def _float(schema: Schema, kinds: tuple[str, ...], word: str) -> Check:
    if (
        "number" in kinds
        and not word
        and not any(schema.get(name) is not None for name in ("minimum", "maximum", "multipleOf"))
    ):
        return _constant
    return lambda value: not problems(schema, value)


def _is_odd(schema: Schema, kinds: tuple[str, ...], word: str) -> bool:
    if kinds not in (("integer",), ("integer", "string"), ()) or word == "float":
        return True
    limits = [schema.get(name) for name in ("minimum", "maximum", "multipleOf")]
    return (
        any(one is not None and (one != int(one) or abs(one) > LARGEST) for one in limits)
        or (limits[2] or 1) <= 0
    )


def _list(schema: Schema) -> Check:
    inner, least, most = items(schema), schema.get("minItems") or 0, schema.get("maxItems")
    if inner is None:
        each = None
    else:
        each = check(inner)

    def test(value: list[Any]) -> bool:
        if len(value) < least or (most is not None and len(value) > most):
            return False
        if each is not None:
            for one in value:
                if not each(one):
                    return False
        return True

    return test


def _object(schema: Schema) -> Check:
    least, most = schema.get("minProperties") or 0, schema.get("maxProperties")
    required = tuple(schema.get("required") or ())
    known = {name: check(one) for name, one in properties(schema).items()}
    rest = extra(schema)
    other = None if rest is None else check(rest)
    is_closed = schema.get("additionalProperties") is False

    def test(value: dict[str, Any]) -> bool:
        if len(value) < least or (most is not None and len(value) > most):
            return False
        for name in required:
            if name not in value:
                return False
        for name, one in value.items():
            found = known.get(name, other)
            if found is None:
                if is_closed:
                    return False
            elif not found(one):
                return False
        return True

    return test
