"""Looking into a schema: the few words of OpenAPI that say what lies below what.

A schema is the plain JSON of ``openAPIV3Schema``, as it was written.  Everything in this folder reads it
through these functions, or compiles it once into closures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

Schema = dict[str, Any]

META: Final = frozenset({"apiVersion", "kind", "metadata"})
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_TYPE: Final = "x-kubernetes-map-type"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
RULES: Final = "x-kubernetes-validations"


def properties(schema: Schema) -> dict[str, Schema]:
    return schema.get("properties") or {}


def has_extra(schema: Schema) -> bool:
    """Does it say anything about fields that it does not name?"""
    return schema.get("additionalProperties") is not None


def extra(schema: Schema) -> Schema | None:
    """The schema of fields that it does not name."""
    found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def items(schema: Schema) -> Schema | None:
    found = schema.get("items")
    return found if isinstance(found, dict) else None


def below(schema: Schema) -> Iterator[Schema]:
    """The schemas of what lies directly inside a value."""
    yield from properties(schema).values()
    for one in (extra(schema), items(schema)):
        if one is not None:
            yield one


def junctions(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas under allOf, anyOf, oneOf and not, each with where it stands."""
    for word in ("allOf", "anyOf", "oneOf"):
        for index, one in enumerate(schema.get(word) or ()):
            yield f"{word}[{index}]", one
    if isinstance(schema.get("not"), dict):
        yield "not", schema["not"]


def has(schema: Schema, found: Callable[[Schema], bool]) -> bool:
    """Is it, or anything in it, such a schema?"""
    return any(found(one) for one in everywhere(schema))


def everywhere(schema: Schema) -> Iterator[Schema]:
    """The schema and all that are inside it, junctions too."""
    yield schema
    for one in below(schema):
        yield from everywhere(one)
    for _, one in junctions(schema):
        yield from everywhere(one)
    if isinstance(schema.get("items"), list):
        for one in schema["items"]:
            yield from everywhere(one)
    for word in ("patternProperties", "definitions", "dependencies"):
        for one in (schema.get(word) or {}).values():
            if isinstance(one, dict):
                yield from everywhere(one)


def spine(schema: Schema) -> Iterator[Schema]:
    """The schema and those of all that may lie inside a value, without junctions."""
    yield schema
    for one in below(schema):
        yield from spine(one)


def copied(value: Any) -> Any:
    """A JSON value of one's own."""
    if type(value) is dict:
        return {key: copied(one) for key, one in value.items()}
    if type(value) is list:
        return [copied(one) for one in value]
    return value


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"
