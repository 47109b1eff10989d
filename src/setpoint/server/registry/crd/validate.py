"""What is wrong with a value, told as kube-openapi tells it: every check, every text, every value.

``problems`` walks a schema and a value and finds everything; it is slow and thorough, and is asked only
about values that ``quick.py`` did not take.  On an update, what is as it was is not complained about.

Each complaint has a path below the value; ``field_errors`` makes of complaints what a ``Status`` carries.
However much is wrong, only so much is kept, and the rest is not looked at.  Paths may be long, and are
written out only for what is told.
Not here: duplicates in sets (``lists.py``), objects inside objects (``embedded.py``), rules (``cel.py``).
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, NamedTuple

from setpoint.server.golang import encoded, printed, quoted, same
from setpoint.server.registry.crd.formats import checker, is_recognized
from setpoint.server.registry.crd.patterns import CannotMatch, compiled
from setpoint.server.registry.crd.ratcheting import Correlated
from setpoint.server.registry.crd.schemas import INT_OR_STRING, Schema, extra, items, properties
from setpoint.server.registry.paths import Path
from setpoint.server.registry.validation.found import EACH, MOST
from setpoint.server.statuses import FieldError, unsupported

LARGEST: Final = 2**53 - 1  # of integers in JSON
_INT64: Final = (-(2**63), 2**63 - 1)
_INT32: Final = (-(2**31), 2**31 - 1)
_FLOAT32: Final = 3.4028234663852886e38

Complaint = Literal["type", "required", "enum", "too long", "too many", "invalid", "loose"]


class Problem(NamedTuple):
    """One complaint; a loose one belongs to no field."""

    what: Complaint
    path: Path
    text: str
    value: Any = None
    limit: Any = None


class _Result:
    """Problems, none twice, and how many checks went well: that chooses among alternatives."""

    __slots__ = ("_left", "found", "matches")

    def __init__(self, *found: Problem) -> None:
        self.found: dict[str, Problem] = {}  # by text
        self.matches = 0
        self._left = MOST
        for one in found:
            self.add(one)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is kept."""
        return self._left <= 0

    def add(self, problem: Problem) -> None:
        if self._left > 0 and problem.text not in self.found:
            self._left -= len(problem.text) + EACH
            self.found[problem.text] = problem

    def merge(self, other: _Result) -> None:
        for one in other.found.values():
            self.add(one)
        self.matches += other.matches


def problems(schema: Schema, value: Any, *, correlated: Correlated | None = None) -> list[Problem]:
    """Everything that is wrong with a value, as far as it is kept."""
    return list(_judged(schema, value, Path(), correlated).found.values())


def field_errors(found: list[Problem], path: str = "") -> list[FieldError]:
    """Complaints as a Status carries them, as far as they are kept; ``path`` leads to the judged value."""
    errors: list[FieldError] = []
    left = MOST
    for one in found:
        if left <= 0:
            break
        error = _field_error(one, path)
        left -= len(error.path) + len(error.detail) + EACH
        errors.append(error)
    return errors


def _field_error(problem: Problem, base: str) -> FieldError:
    name = problem.path.text
    path = (f"{base}.{name}" if base else name) if name else base
    path = path or "<nil>"
    match problem.what:
        case "loose":
            return FieldError("invalid", base or "<nil>", problem.text, "")
        case "required":
            return FieldError("required", path)
        case "enum":
            names = [one if isinstance(one, str) else encoded(one) for one in problem.limit]
            return unsupported(path, problem.value, names)
        case "too long":
            unit = "byte" if problem.limit == 1 else "bytes"
            return FieldError("too long", path, f"may not be more than {problem.limit} {unit}")
        case "too many":
            unit = "item" if problem.limit == 1 else "items"
            return FieldError("too many", path, f"must have at most {problem.limit} {unit}", problem.value)
        case "type":
            return FieldError("type", path, problem.text, "" if problem.value is None else problem.value)
    return FieldError("invalid", path, problem.text, "" if problem.value is None else problem.value)


# ── One value ───────────────────────────────────────────────────────────────────────────────────────


def _judged(schema: Schema, value: Any, path: Path, correlated: Correlated | None) -> _Result:
    if correlated is None or not correlated.is_equal:
        return _against(schema, value, path, correlated)
    result = _against(schema, value, path.silent(), correlated)
    result.found.clear()
    return result


def _against(schema: Schema, value: Any, path: Path, correlated: Correlated | None) -> _Result:
    result = _Result()
    kinds, word = types_of(schema), format_of(schema)
    if value is None:
        result.merge(_type(schema, kinds, word, value, path))
        result.merge(_enum(schema, value, path))
        return result
    if kinds or word:
        result.merge(_type(schema, kinds, word, value, path))
        result.matches += 1
    result.merge(_junctions(schema, value, path, correlated))
    result.matches += 1
    if isinstance(value, str):
        result.merge(_string(schema, value, path))
        result.matches += 1
        if word and checker(word):
            result.merge(_format(word, value, path))
            result.matches += 1
    elif type(value) in (int, float):
        result.merge(_number(schema, value, path, kinds, word))
        result.matches += 1
    elif type(value) is list:
        result.merge(_list(schema, value, path, correlated))
        result.matches += 1
    result.merge(_enum(schema, value, path))
    result.matches += 1
    if type(value) is dict:
        result.merge(_object(schema, value, path, correlated))
        result.matches += 1
    result.matches += 1
    return result


def types_of(schema: Schema) -> tuple[str, ...]:
    """What a value may be; int-or-string is two, and whatever ``type`` says beside it is nothing."""
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    kind = schema.get("type")
    return (kind,) if kind else ()


def format_of(schema: Schema) -> str:
    """The format, where it is one that is checked."""
    word = schema.get("format") or ""
    kinds = types_of(schema)
    return word if word and is_recognized(word, kinds[0] if len(kinds) == 1 else "") else ""


def kind_of(value: Any) -> str:
    """The JSON type of a value, as messages say it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer" if _INT64[0] <= value <= _INT64[1] else "number"
        case float():
            return "number"
        case list():
            return "array"
    return "object"


def is_whole(value: float) -> bool:
    """Is this float an integer, near enough?"""
    if not math.isfinite(value) or abs(value) > LARGEST:
        return False
    near = float(int(value))
    return value == near or (value != 0 and near != 0 and abs(value - near) / (abs(value) + abs(near)) < 1e-9)


def _wrong_type(path: Path, wanted: str, found: str) -> _Result:
    return _Result(Problem("type", path, f"{path} in body must be of type {wanted}: {quoted(found)}", found))


def _type(schema: Schema, kinds: tuple[str, ...], word: str, value: Any, path: Path) -> _Result:
    fine = _Result()
    fine.matches = 1
    if value is None:
        return fine if not kinds or schema.get("nullable") else _wrong_type(path, ",".join(kinds), "null")
    kind = kind_of(value)
    precise = {"integer": "int64", "number": "float64"}.get(kind, "")
    is_float_int = kind == "number" and "integer" in kinds and is_whole(float(value))
    is_int_float = kind == "integer" and "number" in kinds
    fits = kind in kinds or is_float_int or is_int_float
    if kind not in ("string", "array") and word and not fits and precise != word:
        return _wrong_type(path, word, precise)
    if word and kind in ("string", "array") and "number" not in kinds and "integer" not in kinds:
        return fine
    return fine if fits else _wrong_type(path, ",".join(kinds), kind)


def _string(schema: Schema, value: str, path: Path) -> _Result:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        text = f"{path} in body should be at most {longest} chars long"
        return _Result(Problem("too long", path, text, value, longest))
    if shortest is not None and len(value) < shortest:
        return _Result(
            Problem("invalid", path, f"{path} in body should be at least {shortest} chars long", value)
        )
    if pattern:
        text = f"{path} in body should match '{pattern}'"
        try:
            if not compiled(pattern)(value):
                return _Result(Problem("invalid", path, text, value))
        except CannotMatch as error:
            return _Result(Problem("invalid", path, f"{text}: {error}", value))
    return _Result()


def _format(word: str, value: str, path: Path) -> _Result:
    check = checker(word)
    if check is None or check(value):
        return _Result()
    return _Result(Problem("type", path, f"{path} in body must be of type {word}: {quoted(value)}", value))


def _enum(schema: Schema, value: Any, path: Path) -> _Result:
    allowed = schema.get("enum") or ()
    if not allowed or any(is_one(value, one) for one in allowed):
        return _Result()
    text = f"{path} in body should be one of {printed(list(allowed))}"
    return _Result(Problem("enum", path, text, value, list(allowed)))


def is_one(value: Any, allowed: Any) -> bool:
    """Is the value this one of an enum?  A number is first made of the other's sort; null is never any."""
    if value is None or allowed is None:
        return False
    if type(value) is float and type(allowed) is int:
        return math.isfinite(value) and int(value) == allowed
    if type(value) is int and type(allowed) is float:
        return float(value) == allowed
    return same(value, allowed)


def _number(schema: Schema, value: float, path: Path, kinds: tuple[str, ...], word: str) -> _Result:
    kind = kinds[0] if len(kinds) == 1 and kinds[0] in ("integer", "number") else ""
    word = word if kind else ""
    result = _Result()
    if (out := _out_of_range(value, kind, word, "Checked", path)) is not None:
        result.add(out)
    for limit, prefix, check in (
        (schema.get("multipleOf"), "MultipleOf", _multiple),
        (schema.get("minimum"), "Minimum boundary", _minimum),
        (schema.get("maximum"), "Maximum boundary", _maximum),
    ):
        if limit is None:
            continue
        one = _Result()
        if (out := _out_of_range(float(limit), kind, word, prefix, path)) is not None:
            one.add(out)
        native = out is None and _is_int64(value)
        if (
            wrong := check(
                schema, value if native else float(value), int(limit) if native else float(limit), path
            )
        ) is not None:
            one.add(wrong)
        result.merge(one)
    result.matches += 1
    return result


def _is_int64(value: float) -> bool:
    return type(value) is int and _INT64[0] <= value <= _INT64[1]


def _out_of_range(value: float, kind: str, word: str, prefix: str, path: Path) -> Problem | None:
    fits = True
    if kind == "integer":
        low, high = _INT32 if word == "int32" else _INT64
        whole = (
            value
            if type(value) is int
            else (int(value) if math.isfinite(value) and value == int(value) else None)
        )
        fits = whole is not None and low <= whole <= high
    elif word == "float":
        fits = abs(value) <= _FLOAT32
    if fits:
        return None
    suffix = f"with format {word}" if word else "(default format)"
    return Problem("loose", path, f"{prefix} value must be of type {kind} {suffix} in {path}")


def _multiple(_: Schema, value: float, factor: float, path: Path) -> Problem | None:
    if factor <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {printed(factor)}"
        return Problem("invalid", path, text, factor)
    if type(value) is int and type(factor) is int:
        fits = value % factor == 0
    else:
        fits = is_whole(1 / factor * value if factor < 1 else value / factor)
    if fits:
        return None
    return Problem("invalid", path, f"{path} in body should be a multiple of {printed(factor)}", value)


def _minimum(schema: Schema, value: float, limit: float, path: Path) -> Problem | None:
    is_open = bool(schema.get("exclusiveMinimum"))
    if value > limit or (value == limit and not is_open):
        return None
    words = "greater than" if is_open else "greater than or equal to"
    return Problem("invalid", path, f"{path} in body should be {words} {printed(limit)}", value)


def _maximum(schema: Schema, value: float, limit: float, path: Path) -> Problem | None:
    is_open = bool(schema.get("exclusiveMaximum"))
    if value < limit or (value == limit and not is_open):
        return None
    words = "less than" if is_open else "less than or equal to"
    return Problem("invalid", path, f"{path} in body should be {words} {printed(limit)}", value)


# ── What is inside ──────────────────────────────────────────────────────────────────────────────────


def _list(schema: Schema, value: list[Any], path: Path, correlated: Correlated | None) -> _Result:
    result = _Result()
    inner = items(schema)
    if inner is not None:
        for index, one in enumerate(value):
            if result.is_full:
                break
            below = correlated.index(index) if correlated else None
            result.merge(_judged(inner, one, path.below(f"[{index}]"), below))
    size, least, most = len(value), schema.get("minItems"), schema.get("maxItems")
    if least is not None and size < least:
        result.add(Problem("invalid", path, f"{path} in body should have at least {least} items", size))
    if most is not None and size > most:
        result.add(Problem("too many", path, f"{path} in body should have at most {most} items", size, most))
    result.matches += 1
    return result


def _object(schema: Schema, value: dict[str, Any], path: Path, correlated: Correlated | None) -> _Result:
    result = _Result()
    size, least, most = len(value), schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and size < least:
        result.add(Problem("invalid", path, f"{path} in body should have at least {least} properties", size))
    if most is not None and size > most:
        text = f"{path} in body should have at most {most} properties"
        result.add(Problem("too many", path, text, size, most))
    known = properties(schema)
    rest = extra(schema)
    if schema.get("additionalProperties") is False:
        for name in value:
            if result.is_full:
                break
            if name not in known:
                result.add(Problem("invalid", path, f"{path}.{name} in body is a forbidden property", name))
    elif rest is not None:
        for name, one in value.items():
            if result.is_full:
                break
            if name not in known:
                result.merge(_judged(rest, one, path.below(f".{name}"), _below(correlated, name, path)))
    for name, inner in known.items():
        if result.is_full:
            break
        if name in value:
            below = _below(correlated, name, path)
            step = name if path.is_empty else f".{name}"
            result.merge(_judged(inner, value[name], path.below(step), below))
    for name in schema.get("required") or ():
        if result.is_full:
            break
        if name not in value:
            result.add(Problem("required", path.below(f".{name}"), f"{path}.{name} in body is required"))
    return result


def _below(correlated: Correlated | None, name: str, path: Path) -> Correlated | None:
    """The kind and version of an object are never as they were: both sides were converted."""
    if correlated is None or (path.is_empty and name in ("kind", "apiVersion")):
        return None
    return correlated.key(name)


def _junctions(schema: Schema, value: Any, path: Path, correlated: Correlated | None) -> _Result:
    result = _Result()
    if alternatives := schema.get("anyOf"):
        _any_of(alternatives, value, path, correlated, result)
    if alternatives := schema.get("oneOf"):
        _one_of(alternatives, value, path, correlated, result)
    if parts := schema.get("allOf"):
        judged = [_against(one, value, path, correlated) for one in parts]
        for one in judged:
            result.merge(one)
        valid = sum(not one.found for one in judged)
        if valid != len(parts):
            none = "" if valid else ". None validated"
            result.add(_loose(path, f"{quoted(str(path))} must validate all the schemas (allOf){none}"))
    if (
        isinstance(schema.get("not"), dict)
        and not _against(schema["not"], value, path.silent(), correlated).found
    ):
        result.add(_loose(path, f"{quoted(str(path))} must not validate the schema (not)"))
    result.matches += 1
    return result


def _loose(path: Path, text: str) -> Problem:
    return Problem("loose", path, text)


def _any_of(
    alternatives: list[Schema], value: Any, path: Path, correlated: Correlated | None, result: _Result
) -> None:
    judged: list[_Result] = []
    for one in alternatives:
        judged.append(_against(one, value, path.silent(), correlated))
        if not judged[-1].found:
            result.merge(judged[-1])
            return
    result.add(_loose(path, f"{quoted(str(path))} must validate at least one schema (anyOf)"))
    result.merge(_nearest(alternatives, judged, value, path, correlated))


def _one_of(
    alternatives: list[Schema], value: Any, path: Path, correlated: Correlated | None, result: _Result
) -> None:
    judged = [_against(one, value, path.silent(), correlated) for one in alternatives]
    valid = [one for one in judged if not one.found]
    if len(valid) == 1:
        result.merge(valid[0])
        return
    found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    result.add(_loose(path, f"{quoted(str(path))} must validate one and only one schema (oneOf). {found}"))
    if not valid:
        result.merge(_nearest(alternatives, judged, value, path, correlated))


def _nearest(
    alternatives: list[Schema],
    judged: list[_Result],
    value: Any,
    path: Path,
    correlated: Correlated | None,
) -> _Result:
    """Of alternatives that were judged silently, and all do not fit: what is wrong with the best."""
    best = max(range(len(judged)), key=lambda place: judged[place].matches)
    return _against(alternatives[best], value, path, correlated) if path.is_told else judged[best]
