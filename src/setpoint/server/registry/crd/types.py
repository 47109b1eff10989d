"""The ``Type`` of a custom kind, made from its schema, for what walks types: managed fields, apply, patches.

Pure; a version's type is made once, when it is served.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from setpoint.server.registry import facts
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    Schema,
    extra,
    has_extra,
    items,
    properties,
)
from setpoint.server.registry.types import NONE, Field, Form, ListType, Type

_SCALARS: Final[dict[str, Form]] = {
    "string": "string",
    "integer": "int64",
    "number": "float",
    "boolean": "bool",
}
_LISTS: Final[dict[str, ListType]] = {"atomic": "atomic", "set": "set", "map": "map"}


@cache
def object_meta() -> Type:
    """The type of ``metadata``, which every kind shares."""
    return facts.type_of("", "v1", "ConfigMap").fields["metadata"].type


def type_of_schema(schema: Schema, *, is_root: bool = True) -> Type:
    """A root, like an object inside an object, has apiVersion, kind and metadata whatever its schema says."""
    kind = schema.get("type", "")
    is_nullable = bool(schema.get("nullable"))
    if schema.get(INT_OR_STRING):
        return Type("int-or-string", is_nullable=is_nullable)
    if kind == "array":
        return _list(schema, is_nullable=is_nullable)
    if kind in _SCALARS:
        return Type(_SCALARS[kind], is_nullable=is_nullable)
    if is_root or schema.get(EMBEDDED) or properties(schema):
        return _struct(schema, is_root=is_root, is_nullable=is_nullable)
    is_atomic = schema.get(MAP_TYPE) == "atomic"
    if has_extra(schema):
        rest = extra(schema)
        item = Type("any") if rest is None else type_of_schema(rest, is_root=False)
        return Type("map", item=item, is_atomic=is_atomic, is_nullable=is_nullable)
    if kind == "object" and not schema.get(PRESERVE):
        return Type("struct", is_atomic=is_atomic, is_nullable=is_nullable)
    return Type("any", is_atomic=is_atomic, is_open=True, is_nullable=is_nullable)


def _list(schema: Schema, *, is_nullable: bool) -> Type:
    inner = items(schema)
    return Type(
        "list",
        item=Type("any") if inner is None else type_of_schema(inner, is_root=False),
        list_type=_LISTS.get(schema.get(LIST_TYPE) or "atomic", "atomic"),
        map_keys=tuple(schema.get(LIST_KEYS) or ()),
        is_nullable=is_nullable,
    )


def _struct(schema: Schema, *, is_root: bool, is_nullable: bool) -> Type:
    required = frozenset(schema.get("required") or ())
    made = Type(
        "struct",
        is_atomic=schema.get(MAP_TYPE) == "atomic",
        is_open=bool(schema.get(PRESERVE)),
        is_nullable=is_nullable,
    )
    if is_root or schema.get(EMBEDDED):
        made.fields["apiVersion"] = Field("apiVersion", Type("string"))
        made.fields["kind"] = Field("kind", Type("string"))
        made.fields["metadata"] = Field("metadata", object_meta())
    for name, one in properties(schema).items():
        if name not in made.fields:
            default = one.get("default")
            made.fields[name] = Field(
                name,
                type_of_schema(one, is_root=False),
                default=NONE if default is None else default,
                is_required=name in required,
            )
    return made
