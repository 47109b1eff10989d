"""Python types to structural OpenAPI v3 schemas, the only kind that a CustomResourceDefinition may have.

1. Every type has one schema, or a SchemaError that names the class and field and says what to write instead.
2. A field without default is required; a default is the schema's default too; ``T | None = None`` is neither.
3. The markers of ``Annotated`` add what types cannot say; docstrings become descriptions.
4. A default that its own schema would refuse is an error here, as it is on the server.
5. The same classes give the same schema, field by field in the order they are written in.

A class with an attribute ``OPENAPI`` has said its schema itself; the scalars and ``Condition`` do.

Asked by ``crd.py`` when a CustomResource is defined, without descriptions, and again for its definition.
"""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

import msgspec
from msgspec import NODEFAULT, StructMeta

from setpoint.api.docs import class_doc, field_docs
from setpoint.api.int_or_string import OPENAPI as INT_OR_STRING
from setpoint.api.markers import Description, ListType, Marker, Schema
from setpoint.api.meta import Condition
from setpoint.api.metaclass import bare
from setpoint.api.model import Model, Object, to_wire
from setpoint.errors import SchemaError

_SIMPLE: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "format": "byte"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
}

# What people write first, and what to write instead.
_INSTEAD: dict[Any, str] = {
    list: "write list[T], so that the items have a type",
    dict: "write dict[str, T], or dict[str, Any] for anything",
    object: "write Any",
    set: 'write Annotated[list[T], ListType("set")]',
    frozenset: 'write Annotated[list[T], ListType("set")]',
    tuple: "write list[T], or a Model with a field for each item",
    bytearray: "write bytes",
    Sequence: "write list[T]",
    Mapping: "write dict[str, T], or dict[str, Any] for anything",
    dt.datetime: "write setpoint.api.Time or MicroTime",
    dt.timedelta: "write setpoint.api.Duration",
    dt.date: 'write Annotated[str, Format("date")]',
    decimal.Decimal: "write setpoint.api.Quantity",
    uuid.UUID: 'write Annotated[str, Format("uuid")]',
    NoneType: "a field that is only ever None says nothing; give it a type",
}


def schema_of(hint: Any, *, descriptions: bool = True) -> Schema:
    """The structural schema of a type: a Model, a scalar, or a list or map of these."""
    return _Builder(descriptions=descriptions).schema(hint, str(getattr(hint, "__name__", hint)))


def object_schema(model: type[Object], *, descriptions: bool = True) -> Schema:
    """The schema of a kind, in which the server has its own ideas of metadata, and owns the status."""
    schema = _Builder(descriptions=descriptions).fields(model, model.__name__)
    _leave_to_the_server(schema)
    if "status" in schema["properties"]:
        schema["properties"]["status"].pop("default", None)  # it is the controller's to write
    return schema


class _Builder:
    """Builds schemas, and knows which classes it is in the middle of."""

    def __init__(self, *, descriptions: bool) -> None:
        self._descriptions = descriptions
        self._within: list[Any] = []

    def schema(self, hint: Any, where: str) -> Schema:
        """The schema of a type; ``where`` is the field it was found at."""
        if get_origin(hint) is Annotated:
            inner, *notes = get_args(hint)
            return self._marked(self.schema(inner, where), notes, where)
        if hasattr(hint, "__value__"):
            return self.schema(bare(hint), where)
        origin, arguments = get_origin(hint), get_args(hint)
        if isinstance(openapi := getattr(hint, "OPENAPI", None), Mapping):
            return copy.deepcopy(dict(openapi))
        if isinstance(origin or hint, StructMeta):
            return self._model(hint, where)
        if origin in (Union, UnionType):
            return self._union(arguments, where)
        if origin is list:
            return self._list(arguments[0], where)
        if origin is dict:
            return self._dict(arguments[0], arguments[1], where)
        if origin is Literal or (isinstance(hint, type) and issubclass(hint, enum.Enum)):
            return _enum(arguments if origin is Literal else [member.value for member in hint], where)
        try:
            return dict(_SIMPLE[hint])
        except (KeyError, TypeError):
            raise _refused(
                where, f"{_name(hint)} has no structural schema; {_instead(origin or hint)}"
            ) from None

    def fields(self, model: Any, where: str) -> Schema:
        """The schema of a class, field by field."""
        if model in self._within:
            raise _refused(where, f"{_name(model)} contains itself, and no structural schema can; write Any")
        self._within.append(model)
        try:
            return self._fields(model)
        finally:
            self._within.pop()

    def _fields(self, model: Any) -> Schema:
        schema: Schema = {"type": "object", "properties": {}}
        docs: Mapping[str, str] = field_docs(model) if self._descriptions else {}
        if self._descriptions and (doc := class_doc(model)):
            schema["description"] = doc
        required = []
        for known in _known_fields(model):
            where = f"{_name(model)}.{known.name}"
            part = self.schema(known.type, where)
            if known.name in docs:
                part["description"] = docs[known.name]
            if known.required:
                required.append(known.encode_name)
            elif not _is_generated(model):  # whose defaults are Go's zeros, not the API's
                _add_default(part, known, where)
            schema["properties"][known.encode_name] = part
        if required:
            schema["required"] = required
        return self._marked(schema, _rules(model), _name(model))

    def _model(self, model: Any, where: str) -> Schema:
        cls = get_origin(model) or model
        if not issubclass(cls, Model):
            raise _refused(where, f"{_name(cls)} is a plain Struct; make it a setpoint.api.Model")
        try:
            schema = self.fields(model, where)
        except SchemaError as error:
            if not _is_generated(cls):
                raise
            raise _refused(where, f"{_name(cls)} has no structural schema; write dict[str, Any]") from error
        if issubclass(cls, Object):
            _leave_to_the_server(schema)
            schema["x-kubernetes-embedded-resource"] = True
        return schema

    def _union(self, choices: tuple[Any, ...], where: str) -> Schema:
        rest = [choice for choice in choices if choice is not NoneType]
        if len(rest) == 1:
            return self.schema(rest[0], where)
        if set(rest) == {int, str}:
            return copy.deepcopy(dict(INT_OR_STRING))
        if all(get_origin(choice) is Literal for choice in rest):
            return _enum([value for choice in rest for value in get_args(choice)], where)
        names = " | ".join(_name(choice) for choice in rest)
        raise _refused(where, f"{names} is one of several types; write an optional field for each, or Any")

    def _list(self, item: Any, where: str) -> Schema:
        schema: Schema = {"type": "array", "items": self._inner(item, where)}
        if bare(item) is Condition:
            ListType("map", keys=["type"]).write(schema)
        return schema

    def _dict(self, key: Any, value: Any, where: str) -> Schema:
        if bare(key) is not str:
            raise _refused(where, f"the keys of a JSON object are str, not {_name(key)}; write dict[str, T]")
        if bare(value) is Any:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", "additionalProperties": self._inner(value, where)}

    def _inner(self, hint: Any, where: str) -> Schema:
        """What a list or map holds: there a None cannot be left out, so null must be allowed."""
        schema = self.schema(hint, where)
        if NoneType in get_args(bare(hint)):
            schema["nullable"] = True
        return schema

    def _marked(self, schema: Schema, notes: Any, where: str) -> Schema:
        for note in notes:
            if isinstance(note, msgspec.Meta):
                note = _from_meta(note, where)  # noqa: PLW2901
            if isinstance(note, Marker) and (self._descriptions or not isinstance(note, Description)):
                try:
                    note.write(schema)
                except ValueError as error:
                    raise _refused(where, str(error)) from error
        return schema


def _leave_to_the_server(schema: Schema) -> None:
    """What every object has the server knows itself: a definition may say no more of it."""
    properties = schema["properties"]
    properties |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }


@lru_cache(maxsize=1024)
def _known_fields(model: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    try:
        return msgspec.structs.fields(model)
    except NameError as error:
        raise _refused(
            _name(model), f"the name {error.name!r} in its annotations is not known in {model.__module__}"
        ) from error


def _is_generated(model: Any) -> bool:
    return str(model.__module__).startswith("setpoint.kube.")


def _rules(model: Any) -> list[object]:
    classes = reversed((get_origin(model) or model).__mro__)
    return [rule for cls in classes for rule in vars(cls).get("__rules__", ())]


def _enum(values: Any, where: str) -> Schema:
    texts, numbers = all(isinstance(v, str) for v in values), all(type(v) is int for v in values)
    if not values or not (texts or numbers):
        raise _refused(where, "the values of an enum must be all str or all int")
    return {**(_SIMPLE[str] if texts else _SIMPLE[int]), "enum": list(dict.fromkeys(values))}


def _from_meta(note: msgspec.Meta, where: str) -> object:
    bounds = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "min_length", "max_length")
    if any(getattr(note, bound) is not None for bound in bounds):
        raise _refused(
            where,
            "msgspec.Meta would refuse to read what the server has stored; write Bounds, Length or Pattern",
        )
    return Description(note.description) if note.description else None


# Defaults.


def _add_default(schema: Schema, known: msgspec.structs.FieldInfo, where: str) -> None:
    if known.default_factory is NODEFAULT:  # then it is None, which is left out
        return
    default = known.default_factory()
    if default != known.default_factory():
        raise _refused(where, "its default is another each time; write `| None = None` and set it yourself")
    # Whole, to the depth: the server tries the rules on a default before it fills in what is inside it.
    schema["default"] = to_wire(default)
    if problem := _problem(schema["default"], schema):
        raise _refused(where, f"its default is refused by its own schema: {problem}")


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def _problem(value: Any, schema: Schema) -> str | None:
    """Why a schema refuses a value; None if it does not."""
    if value is None and schema.get("nullable"):
        return None
    wanted = schema.get("type")
    if wanted is not None and not _is_json(value, wanted):
        return f"{value!r} is no {wanted}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        inner = [_problem(item, known.get(name, other)) for name, item in value.items()]
        return _outside(len(value), schema, "Properties") or next(filter(None, inner), None)
    if isinstance(value, list):
        inner = [_problem(item, schema.get("items", {})) for item in value]
        return _outside(len(value), schema, "Items") or next(filter(None, inner), None)
    if isinstance(value, str):
        if not re.search(schema.get("pattern", ""), value):
            return f"{value!r} does not match {schema['pattern']}"
        return _outside(len(value), schema, "Length")
    if isinstance(value, int | float) and schema.get("type") in ("integer", "number"):
        return _outside(value, schema, "imum")
    return None


def _is_json(value: Any, wanted: str) -> bool:
    return isinstance(value, _JSON_TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def _outside(size: float, schema: Schema, noun: str) -> str | None:
    """Whether a number, or a length, is out of the schema's bounds, in its own words."""
    low, high, step = schema.get(f"min{noun}"), schema.get(f"max{noun}"), schema.get("multipleOf")
    if low is not None and (size < low or (size == low and "exclusiveMinimum" in schema)):
        return f"{size} is below min{noun} {low}"
    if high is not None and (size > high or (size == high and "exclusiveMaximum" in schema)):
        return f"{size} is above max{noun} {high}"
    if step is not None and noun == "imum" and not math.isclose(size / step, round(size / step)):
        return f"{size} is no multiple of {step}"
    return None


# Words.


def _refused(where: str, why: str) -> SchemaError:
    return SchemaError(f"schema of {where}", why)


def _instead(hint: Any) -> str:
    if is_typeddict(hint):
        return "make it a setpoint.api.Model"
    for base in getattr(hint, "__mro__", (hint,)):
        if base in _INSTEAD and (base is not object or hint is object):
            return _INSTEAD[base]
    if isinstance(hint, type):
        return "make it a setpoint.api.Model"
    return "write a Model, list[T], dict[str, T] or a scalar"


def _name(hint: Any) -> str:
    return (
        str(getattr(hint, "__name__", hint)) if isinstance(hint, type) else str(hint).replace("typing.", "")
    )
