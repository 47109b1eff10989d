"""Typed objects: one Python class per kind, read from JSON and written back without loss.

A *model* is a msgspec Struct under our own metaclass.  The promises:

1. Fields are keyword-only; ``snake_case`` here is ``camelCase`` on the wire (``from_`` is ``from``).
2. None is left out on the wire; every other value is written, even where it equals its default.
3. A default is never shared: every instance gets its own list, dict or model.
4. An *object* (a model with ``apiVersion``, ``kind`` and ``metadata``) remembers the bytes it was read
   from.  ``merged`` gives those bytes with what was changed since, so that fields which the class does
   not know survive an update.  Copies and pickles remember too; ``==`` and ``repr`` do not look.
5. JSON null is read as "absent" where the class has no room for it: Go writes null for an empty list.
6. Bytes that do not fit the class raise DecodeError, which names the kind, the object and the field.

Not here: how the classes are made (``metaclass.py``); schemas and CustomResourceDefinitions (``schema.py``,
``crd.py``); the other forms that an object can have (``forms.py``); the rest of meta/v1 (``meta.py``).  The
generated kinds in ``setpoint.kube`` and users' own classes build on this.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Struct, StructMeta, field

from setpoint.api.decoders import decoder
from setpoint.api.keywords import suggestion
from setpoint.api.metaclass import ModelMeta, bare
from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.api.patches import carry
from setpoint.api.times import Time
from setpoint.errors import DecodeError

T = TypeVar("T")
_Object = TypeVar("_Object", bound="Object")


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Model(
    Struct, metaclass=ModelMeta, rename="camel", omit_defaults=True, repr_omit_defaults=True, gc=False
):
    """A JSON object with known fields; the base of specs, statuses and whatever they hold.

    ``gc=False``: it is a tree, so Python need not look for cycles in it, which took longer than to read it.
    """


class OwnerReference(Model):
    """Whom an object belongs to: it is collected once all its owners are gone."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model):
    """Which fields one manager has set, as the server keeps the books for apply."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: Time | None = None
    fields_type: str | None = None
    fields_v1: dict[str, Any] | None = None
    subresource: str | None = None


class ObjectMeta(Model):
    """What every object says about itself."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
    managed_fields: list[ManagedFieldsEntry] | None = None

    # Inside another object (a template, say) only these mean anything.
    OPENAPI: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "generateName": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    }


class Object(Model, dict=True):
    """The base of every kind; a subclass that gives its version stands for one."""

    resource: ClassVar[Resource]
    gvk: ClassVar[GroupVersionKind]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview) -> Self:
        """Read one object, and remember the bytes."""
        data = bytes(data)
        obj = decode(cls, data)
        gvk = getattr(cls, "gvk", None)
        if gvk is not None and (obj.kind != gvk.kind or obj.api_version != gvk.api_version):
            raise DecodeError(_reading(cls, data), f"this is {obj.api_version} {obj.kind}, another kind")
        obj.__dict__["_read"] = data
        return obj

    def __repr__(self) -> str:
        if self.kind == "Secret" and self.api_version == "v1":
            return f"{type(self).__name__}({_shown_of_secret(self)})"
        return super().__repr__()

    if not TYPE_CHECKING:  # a type checker would take this to mean that any attribute may be set

        def __setattr__(self, name: str, value: object) -> None:
            if name not in self.__struct_fields__:
                meant = suggestion(name, self.__struct_fields__)
                raise AttributeError(f"{type(self).__name__} has no field {name!r}{meant}")
            super().__setattr__(name, value)

    def __copy__(self) -> Self:
        return _rebuild(type(self), _values(self), as_read(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return _rebuild(type(self), copy.deepcopy(_values(self), memo), as_read(self))

    def __replace__(self, /, **changes: Any) -> Self:
        return _rebuild(type(self), _values(self) | changes, as_read(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), _values(self), as_read(self))


# Between objects, bytes and plain JSON values.


def encode(obj: object) -> bytes:
    """The JSON text of a model, or of plain values that may hold models."""
    return _encoder.encode(obj)


def to_wire(obj: object) -> Any:
    """The plain JSON values of a model, in wire form: dicts with camelCase names."""
    return msgspec.to_builtins(obj, enc_hook=_to_json)


def decode(model: type[T], data: bytes) -> T:
    """Read a model, or any type made of models, from JSON text."""
    refused: Exception
    try:
        return _decoder(model).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refused = error
    try:
        if isinstance(refused, msgspec.ValidationError) and b"null" in data:
            return _decoder(model).decode(encode(_without_nulls(msgspec.json.decode(data), model)))
    except msgspec.DecodeError as error:
        refused = error
    raise DecodeError(_reading(model, data), _explain(refused)) from refused


def from_wire(model: type[T], value: object) -> T:
    """Read a model from plain JSON values, as ``to_wire`` gives them."""
    if isinstance(model, type) and issubclass(model, Object):
        return model.decode(encode(value))
    return decode(model, encode(value))


def as_read(obj: Object) -> bytes | None:
    """The bytes that an object was read from; None if it was made here."""
    read: bytes | None = obj.__dict__.get("_read")
    return read


def merged(obj: Object) -> bytes:
    """What to send as an update: the bytes it was read from, with what has changed since.

    A list item that moved takes along what its class does not know.  An object made here is sent as it is.
    """
    read = as_read(obj)
    after = encode(obj)
    if read is None:
        return after
    before, whole = encode(decode(type(obj), read)), _parts.decode(read)
    if before != after:
        whole = _with_changes(_parts.decode(before), _parts.decode(after), whole)
    # Items of a list come without these two; a body needs them.
    return encode({"apiVersion": obj.api_version, "kind": obj.kind, **whole})


def _with_changes(before: _Parts, after: _Parts, whole: _Parts) -> dict[str, Any]:
    """The whole with the parts that changed.  Only those are looked into; the others stay bytes."""
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}

    def values(parts: _Parts) -> dict[str, Any]:
        return {name: msgspec.json.decode(part) for name, part in parts.items() if name in changed}

    kept = {name: part for name, part in whole.items() if name not in changed}
    return {**kept, **carry(values(before), values(after), values(whole))}


def _to_json(value: Any) -> Any:
    try:
        write: Callable[[], Any] = value.to_wire
    except AttributeError:
        raise TypeError(f"a {type(value).__name__} cannot be written as JSON") from None
    return write()


def _from_json(wanted: Any, value: Any) -> Any:
    try:
        read: Callable[[Any], Any] = wanted.from_wire
    except AttributeError:
        raise TypeError(f"a {wanted!r} cannot be read from JSON") from None
    return read(value)


_encoder = msgspec.json.Encoder(enc_hook=_to_json)
_Parts: TypeAlias = dict[str, msgspec.Raw]  # an object's fields, each as its bytes
_parts = msgspec.json.Decoder(_Parts)


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(model: type[T]) -> msgspec.json.Decoder[T]:
    known = _decoders.get(model)
    if known is None:
        known = _decoders[model] = decoder(model, _from_json)
    return known


def _shown_of_secret(secret: Object) -> str:
    """Names and keys, no values: logs are read by more people than Secrets are.

    The annotations are left out too: kubectl keeps a copy of what was applied there.
    """
    keys = sorted({*(getattr(secret, "data", None) or ()), *(getattr(secret, "string_data", None) or ())})
    said = (f"{key}=…" for key in keys)
    return ", ".join([f"{secret.metadata.namespace or ''}/{secret.metadata.name or ''}", *said])


def _values(obj: Object) -> dict[str, Any]:
    return {name: getattr(obj, name) for name in obj.__struct_fields__}


def _rebuild(cls: type[_Object], values: dict[str, Any], read: bytes | None) -> _Object:
    obj = cls(**values)
    if read is not None:
        obj.__dict__["_read"] = read
    return obj


# Reading what does not fit at once.


def _without_nulls(value: Any, wanted: Any) -> Any:
    """The value, with null taken as absent (or as Go's zero value) where ``wanted`` has no room for it."""
    wanted = bare(wanted)
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        rest = [choice for choice in arguments if choice is not NoneType]
        if value is None and len(rest) < len(arguments):
            return None
        return _without_nulls(value, rest[0]) if len(rest) == 1 else value
    if isinstance(wanted, StructMeta) and isinstance(value, dict | None):
        return _fields_without_nulls(value or {}, wanted)
    if value is None:
        return _ZERO.get(origin or wanted, lambda: None)()
    if origin is list and isinstance(value, list):
        return [_without_nulls(item, arguments[0]) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: _without_nulls(item, arguments[1]) for name, item in value.items()}
    return value


_ZERO: dict[Any, Callable[[], Any]] = {kind: kind for kind in (list, dict, str, int, float, bool)}


def _fields_without_nulls(value: dict[str, Any], wanted: Any) -> dict[str, Any]:
    kept = dict(value)
    for known in msgspec.structs.fields(wanted):
        if known.encode_name in value:
            item = _without_nulls(value[known.encode_name], known.type)
            if value[known.encode_name] is None and not known.required:
                del kept[known.encode_name]
            else:
                kept[known.encode_name] = item
    return kept


def _reading(model: Any, data: bytes) -> str:
    """What was being read, as an error begins: kind, and name where the bytes have one."""
    gvk = getattr(model, "gvk", None)
    what = str(gvk) if gvk is not None else getattr(model, "__name__", str(model))
    try:
        key = _names.decode(data).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"read {what}"
    return f"read {what} {Key(key.namespace, key.name)}".rstrip()


class _Names(Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Named(Struct):
    metadata: _Names = _Names()


_names = msgspec.json.Decoder(_Named)


def _explain(error: Exception) -> str:
    """What msgspec said, with the path first: ``spec.replicas: expected `int`, got `str` ``."""
    said, at, path = str(error).rpartition(" - at `$")
    if not at:
        return str(error)
    return f"{path.strip('`').lstrip('.')}: {said[:1].lower()}{said[1:]}"
