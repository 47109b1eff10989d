"""Whether a schema is structural: whether the shape of a value can be told without evaluating anything.

``structural_errors`` gives what is wrong, in Kubernetes' words and order; ``unsupported_word`` the first
word of OpenAPI that Kubernetes does not know at all.  Pure.  ``definition.py`` asks before anything else is
made of a schema, and everything else in this folder may trust what passed here.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from setpoint.server.registry.crd.patterns import BadPattern, NoEngine, compiled
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    Schema,
    everywhere,
    extra,
    has_extra,
    items,
    junctions,
    key,
    properties,
)
from setpoint.server.statuses import FieldError

Level = Literal["root", "item", "field"]
_EMPTY_TYPE: Final[dict[Level, str]] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)


def unsupported_word(schema: Schema) -> str:
    """What cannot even be read as a structural schema, or nothing."""
    for one in everywhere(schema):
        for word, name in _UNSUPPORTED:
            if one.get(word) or (word == "additionalItems" and one.get(word) is not None):
                return f"OpenAPIV3Schema '{name}' is not supported"
        if one.get(PRESERVE) is False:
            return f"internal error: '{PRESERVE}' must be true or undefined"
        if isinstance(one.get("items"), list) and one["items"]:
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return ""


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """All that keeps a schema from being structural, sorted by text."""
    return sorted([*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)], key=str)


# ── What the shape may say ──────────────────────────────────────────────────────────────────────────


def _invariants(schema: Schema, level: Level, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type") or ""
    inner = items(schema)
    if kind == "array" and inner is None:
        errors.append(FieldError("required", f"{path}.items", "must be specified"))
    if inner is not None:
        errors += _invariants(inner, "item", f"{path}.items")
    for name, one in properties(schema).items():
        errors += _invariants(one, "field", key(f"{path}.properties", name))
    if has_extra(schema):
        where = f"{path}.additionalProperties"
        if level == "root":
            errors.append(FieldError("forbidden", where, "must not be used at the root"))
        rest = extra(schema)
        if rest is not None:
            errors += _invariants(rest, "field", where)
    errors += _extensions(schema, path)
    errors += _values(
        schema, path, skips_any_of=_is_either(schema.get("anyOf")), skips_first=_is_first(schema)
    )
    errors += _type(schema, kind, level, path)
    if level == "root" or schema.get(EMBEDDED):
        for name in ("kind", "apiVersion"):
            found = properties(schema).get(name)
            if found is not None and found.get("type") != "string":
                where = f"{key(f'{path}.properties', name)}.type"
                errors.append(FieldError("invalid", where, "must be string", found.get("type") or ""))
    if "metadata" in properties(schema):
        errors += _metadata(schema, level, path)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not properties(schema):
        told = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        errors.append(FieldError("required", f"{path}.properties", told))
    return errors


def _extensions(schema: Schema, path: str) -> list[FieldError]:
    if not schema.get(INT_OR_STRING):
        return []
    return [
        FieldError("invalid", f"{path}.{word}", f"must be false if {INT_OR_STRING} is true", True)
        for word in (PRESERVE, EMBEDDED)
        if schema.get(word)
    ]


def _type(schema: Schema, kind: str, level: Level, path: str) -> list[FieldError]:
    where, errors = f"{path}.type", []
    if schema.get(EMBEDDED) and kind != "object":
        told = f"must be object if {EMBEDDED} is true"
        errors.append(
            FieldError("invalid", where, told, kind) if kind else FieldError("required", where, told)
        )
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        errors.append(FieldError("required", where, _EMPTY_TYPE[level]))
    if schema.get(EMBEDDED) and has_extra(schema):
        told = f"must not be used if {EMBEDDED} is set"
        errors.append(FieldError("forbidden", f"{path}.additionalProperties", told))
    if level == "root" and kind and kind != "object":
        errors.append(FieldError("invalid", where, "must be object at the root", kind))
    return errors


def _metadata(schema: Schema, level: Level, path: str) -> list[FieldError]:
    found, where = properties(schema)["metadata"], key(f"{path}.properties", "metadata")
    errors = []
    if (level == "root" or schema.get(EMBEDDED)) and found.get("type") != "object":
        errors.append(FieldError("invalid", f"{where}.type", "must be object", found.get("type") or ""))
    if level == "root":
        named = set(properties(found))
        allowed = {"type", "default"} | ({"properties"} if named <= {"name", "generateName"} else set[str]())
        if {word for word, value in found.items() if value not in (None, "", [], {}, False)} - allowed:
            told = (
                "must not specify anything other than name and generateName, "
                "but metadata is implicitly specified"
            )
            errors.append(FieldError("forbidden", where, told))
    return errors


def _is_either(alternatives: Any) -> bool:
    """The one thing that may be said of types in a junction: integer or string."""
    return bool(alternatives) and alternatives == _INT_OR_STRING


def _is_first(schema: Schema) -> bool:
    parts: list[Schema] = schema.get("allOf") or []
    return bool(parts) and _is_either(parts[0].get("anyOf"))


# ── What junctions may say ──────────────────────────────────────────────────────────────────────────


def _values(schema: Schema, path: str, *, skips_any_of: bool, skips_first: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, one in junctions(schema):
        if place.startswith("anyOf") and skips_any_of:
            continue
        errors += _nested(one, f"{path}.{place}", skips_any_of=skips_first and place == "allOf[0]")
    if pattern := schema.get("pattern"):
        try:
            compiled(pattern)
        except NoEngine as error:
            errors.append(FieldError("invalid", f"{path}.pattern", str(error), pattern))
        except BadPattern as error:
            told = f"must be a valid regular expression, but isn't: {error}"
            errors.append(FieldError("invalid", f"{path}.pattern", told, pattern))
    return errors


_FORBIDDEN: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)


def _nested(schema: Schema, path: str, *, skips_any_of: bool = False) -> list[FieldError]:
    errors = _values(schema, path, skips_any_of=skips_any_of, skips_first=False)
    inner = items(schema)
    if inner is not None:
        errors += _nested(inner, f"{path}.items")
    for name, one in properties(schema).items():
        errors += _nested(one, key(f"{path}.properties", name))
    for word, told in _FORBIDDEN:
        found = schema.get(word)
        if (
            found
            or (word == "additionalProperties" and isinstance(found, dict))
            or (word == "default" and found is not None)
        ):
            errors.append(FieldError("forbidden", f"{path}.{word}", told))
    if "metadata" in properties(schema):
        where = key(f"{path}.properties", "metadata")
        errors.append(FieldError("forbidden", where, "must not be specified in a nested context"))
    return errors


def _completeness(schema: Schema, shape: Schema | None, at: str, path: str) -> list[FieldError]:
    """Whatever a junction speaks of is in the shape as well."""
    errors: list[FieldError] = []
    for place, one in junctions(schema):
        errors += _nested_completeness(one, shape, at, f"{path}.{place}")
    return errors


def _nested_completeness(schema: Schema, shape: Schema | None, at: str, path: str) -> list[FieldError]:
    if shape is None:
        return [FieldError("required", at, f"because it is defined in {path}")]
    errors = _completeness(schema, shape, at, path)
    inner = items(schema)
    if inner is not None:
        errors += _nested_completeness(inner, items(shape), f"{at}.items", f"{path}.items")
    for name, one in properties(schema).items():
        where, from_ = key(f"{at}.properties", name), key(f"{path}.properties", name)
        errors += _nested_completeness(one, properties(shape).get(name), where, from_)
    return errors
