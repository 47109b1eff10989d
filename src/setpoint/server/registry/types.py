"""What is known of a type: its fields, how lists merge, what is written when empty.  Values, no walking.

One description serves built-in kinds (made from the shipped facts, ``facts.py``) and custom ones (made from
their structural schema, ``crd/``): unknown-field checks, type checks, emission of empty values, strategic
merge, managed fields, apply and protobuf all walk it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

Form = Literal[
    "string", "int32", "int64", "float", "bool", "bytes", "time", "microtime", "duration", "quantity",
    "int-or-string", "any", "map", "list", "struct",
]  # fmt: skip
ListType = Literal["atomic", "set", "map"]

NONE: Final = object()  # no default is known


@dataclass(slots=True, eq=False)
class Type:
    """A type.  Structs may hold themselves (JSONSchemaProps does), so equality is identity."""

    form: Form
    name: str = ""  # as Go prints it: v1.Container, v1.PullPolicy, []string
    fields: dict[str, Field] = field(
        default_factory=dict, repr=False
    )  # of a struct, by JSON name, in Go's order
    item: Type | None = None  # of a list's items, of a map's values; JSONSchemaProps for what may hold one
    list_type: ListType = "atomic"
    map_keys: tuple[str, ...] = ()  # of a list with ``list_type`` map
    is_atomic: bool = False  # a map or struct that is owned as a whole
    is_open: bool = False  # fields that are not declared are kept
    is_nullable: bool = False
    is_message: bool = False  # a list that protobuf wraps in a message of its own: ExtraValue


@dataclass(slots=True, eq=False)
class Field:
    """A struct's field."""

    name: str
    type: Type
    number: int = 0  # in protobuf; 0 for custom kinds
    default: Any = NONE  # as the schema declares it; map keys are filled with it
    is_required: bool = False
    is_emitted_empty: bool = (
        False  # written also when zero: neither omitempty nor omitzero, or a plain struct
    )
    is_pointer: bool = False
    is_told: bool = False  # its schema says atomic of a list or granular of a map, which they are in any case
    enum: tuple[str, ...] = ()
    patch_strategy: frozenset[str] = frozenset()  # merge, replace, retainKeys
    merge_key: str = ""
    within: tuple[
        tuple[int, str], ...
    ] = ()  # the embedded structs around it, outermost first: (number, Go's name)
