"""What a field may say about itself beyond its type, for the schema of a CustomResource.

Markers stand in ``Annotated``::

    replicas: Annotated[int, Bounds(ge=0)] = 1
    ports: Annotated[list[Port], ListType("map", keys=["name"])] = []
    host: Annotated[str, Format("hostname"), Immutable()]

They become words of the OpenAPI schema, which the server enforces.  Nothing is enforced here: what the
server has stored must stay readable when a bound has since become narrower.

Each marker knows which schemas it fits (``write``); ``schema.py`` finds out which field that is about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from setpoint.api.metaclass import words

Schema: TypeAlias = dict[str, Any]

Reason: TypeAlias = Literal[
    "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"
]

_SCALARS = ("string", "integer", "number", "boolean")


class Marker(Struct, frozen=True):
    """Something said about a value beyond its type."""

    def write(self, schema: Schema) -> None:
        """Add it to the schema of the value; ValueError if it does not fit."""
        raise NotImplementedError


class Bounds(Marker, frozen=True, kw_only=True):
    """Between what a number must be: ``Bounds(ge=1, le=65535)``."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None

    def __post_init__(self) -> None:
        if (self.ge is not None and self.gt is not None) or (self.le is not None and self.lt is not None):
            raise ValueError("Bounds takes one of ge and gt, and one of le and lt")
        if not all(
            math.isfinite(bound) for bound in (self.ge, self.gt, self.le, self.lt) if bound is not None
        ):
            raise ValueError("Bounds takes numbers that JSON has: leave out what has no bound")
        if self.multiple_of is not None and self.multiple_of <= 0:
            raise ValueError("Bounds(multiple_of=...) must be above 0")

    def write(self, schema: Schema) -> None:
        if schema.get("type") not in ("integer", "number"):
            raise ValueError(f"Bounds is for int and float, not for {_shown(schema)}; write a Rule")
        if (low := self.ge if self.gt is None else self.gt) is not None:
            schema["minimum"] = low
        if self.gt is not None:
            schema["exclusiveMinimum"] = True
        if (high := self.le if self.lt is None else self.lt) is not None:
            schema["maximum"] = high
        if self.lt is not None:
            schema["exclusiveMaximum"] = True
        if self.multiple_of is not None:
            schema["multipleOf"] = self.multiple_of


class Length(Marker, frozen=True):
    """How long a text, how many items a list, how many entries a map may have."""

    min: int | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        if (self.min or 0) < 0 or (self.max is not None and self.max < (self.min or 0)):
            raise ValueError(f"Length(min={self.min}, max={self.max}) fits nothing")

    def write(self, schema: Schema) -> None:
        noun = {"string": "Length", "array": "Items", "object": "Properties"}.get(schema.get("type", ""))
        if noun is None or schema.get("format") == "byte" or "properties" in schema:
            raise ValueError(f"Length is for str, list and dict, not for {_shown(schema)}")
        if self.min is not None:
            schema[f"min{noun}"] = self.min
        if self.max is not None:
            schema[f"max{noun}"] = self.max


class Pattern(Marker, frozen=True):
    """What a text must match somewhere (in the RE2 dialect); write ``^...$`` for the whole of it."""

    regex: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.regex)
        except re.error as error:
            raise ValueError(f"Pattern({self.regex!r}) is no regular expression: {error}") from error
        if found := re.search(r"(?<!\\)(?:\\\\)*(\(\?(?:=|!|<=|<!|P=|>)|\\[1-9]|[*+?}]\+)", self.regex):
            raise ValueError(f"Pattern({self.regex!r}) uses {found[1]}, which the server's RE2 does not know")

    def write(self, schema: Schema) -> None:
        if schema.get("type") != "string":
            raise ValueError(f"Pattern is for str, not for {_shown(schema)}")
        schema["pattern"] = self.regex


class Format(Marker, frozen=True):
    """Which known form a text has (``uri``, ``ipv4``, ``cidr``, ``uuid``, …) or how wide a number is."""

    name: str

    def write(self, schema: Schema) -> None:
        if schema.get("type") not in ("string", "integer", "number"):
            raise ValueError(f"Format is for str, int and float, not for {_shown(schema)}")
        schema["format"] = self.name


class Description(Marker, frozen=True):
    """What the field means; a text right below the field says the same."""

    text: str

    def write(self, schema: Schema) -> None:
        schema["description"] = self.text


class Nullable(Marker, frozen=True):
    """Null may be sent and is kept; without this the server takes null as absent."""

    def write(self, schema: Schema) -> None:
        schema["nullable"] = True


class PreserveUnknown(Marker, frozen=True):
    """Fields that the schema does not know are kept; without this the server drops them."""

    def write(self, schema: Schema) -> None:
        if schema.get("type", "object") != "object":
            raise ValueError(f"PreserveUnknown is for Model and dict[str, Any], not for {_shown(schema)}")
        schema["x-kubernetes-preserve-unknown-fields"] = True


class EmbeddedResource(Marker, frozen=True):
    """The value is a whole object with apiVersion, kind and metadata, which the server checks."""

    def write(self, schema: Schema) -> None:
        if schema.get("type", "object") != "object" or "additionalProperties" in schema:
            raise ValueError(f"EmbeddedResource is for dict[str, Any], not for {_shown(schema)}")
        schema["type"] = "object"
        schema["x-kubernetes-embedded-resource"] = True
        if "properties" not in schema:
            schema["x-kubernetes-preserve-unknown-fields"] = True


class ListType(Marker, frozen=True):
    """How apply merges a list: ``atomic`` as a whole, ``set`` by item, ``map`` by the keys of its items."""

    type: Literal["atomic", "set", "map"]
    keys: Iterable[str] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "keys", words("keys", self.keys))
        if (self.type == "map") != bool(self.keys):
            raise ValueError('ListType takes keys with "map", and only then: ListType("map", keys=["name"])')

    def write(self, schema: Schema) -> None:
        if schema.get("type") != "array":
            raise ValueError(f"ListType is for list, not for {_shown(schema)}")
        items: Schema = schema["items"]
        if self.type == "set" and not _is_atomic(items):
            raise ValueError(
                'ListType("set") is for lists of str, int, float and bool; write "map" for models'
            )
        for key in self.keys:
            self._check_key(key, items)
        schema["x-kubernetes-list-type"] = self.type
        if self.keys:
            schema["x-kubernetes-list-map-keys"] = list(self.keys)

    def _check_key(self, key: str, items: Schema) -> None:
        known = items.get("properties", {})
        if key not in known:
            names = ", ".join(sorted(known)) or "none: the items are no models"
            raise ValueError(
                f'ListType("map") has the key {key!r}, the items have (by their wire names): {names}'
            )
        if known[key].get("type") not in _SCALARS:
            raise ValueError(f'ListType("map") needs a key that is str, int, float or bool; {key!r} is not')
        if key not in items.get("required", ()) and "default" not in known[key]:
            raise ValueError(
                f'ListType("map") needs {key!r} in every item: let it not be None, or give a default'
            )


class MapType(Marker, frozen=True):
    """How apply merges a map or model: ``granular`` by entry (unless told), ``atomic`` as a whole."""

    type: Literal["granular", "atomic"]

    def write(self, schema: Schema) -> None:
        if schema.get("type") != "object":
            raise ValueError(f"MapType is for dict and Model, not for {_shown(schema)}")
        schema["x-kubernetes-map-type"] = self.type


class Rule(Marker, frozen=True):
    """A condition in CEL that must hold: ``Rule("self.min <= self.max", message="min is above max")``.

    ``self`` is the value and ``oldSelf`` what it was; a rule that names ``oldSelf`` is checked on updates
    only, unless ``optional_old_self``.  Names in a rule are those on the wire.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: Reason | None = None
    field_path: str = ""
    optional_old_self: bool | None = None

    def __post_init__(self) -> None:
        if not self.rule.strip():
            raise ValueError("a Rule needs a CEL expression")
        if "\n" in self.message:
            raise ValueError("a Rule's message is one line")
        if "\n" in self.rule.strip() and not self.message:
            raise ValueError("a Rule of several lines needs a message")

    def write(self, schema: Schema) -> None:
        if "type" not in schema and "x-kubernetes-int-or-string" not in schema:
            raise ValueError("a Rule needs a typed value, not Any: CEL could not see what is in it")
        said = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
        }
        written: Schema = {word: value for word, value in said.items() if value}
        if self.optional_old_self is not None:
            written["optionalOldSelf"] = self.optional_old_self
        schema.setdefault("x-kubernetes-validations", []).append(written)


class Immutable(Marker, frozen=True):
    """Once set it cannot be changed; short for ``Rule("self == oldSelf")``.

    It can be left unset at first, and it can be removed: for a field that must stay, give it no None.
    """

    message: str = "this field is immutable"

    def write(self, schema: Schema) -> None:
        Rule("self == oldSelf", message=self.message).write(schema)


def _is_atomic(items: Schema) -> bool:
    if items.get("type") in _SCALARS or "x-kubernetes-int-or-string" in items:
        return True
    return "atomic" in (items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type"))


def _shown(schema: Schema) -> str:
    """A schema in the words of Python."""
    if "x-kubernetes-int-or-string" in schema:
        return "an int or str"
    if schema.get("format") == "byte":
        return "bytes"
    if schema.get("type") == "object":
        return "a Model" if "properties" in schema else "a dict"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "a list"}.get(
        schema.get("type", ""), "Any"
    )
