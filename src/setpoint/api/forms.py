"""In which form an object is wanted: typed, a plain dict, or its metadata alone.

Every verb takes a form and gives objects of that form.  A model class is its own form; the others are
made here::

    await client.get(Deployment, "web")                          # a Deployment
    await client.get(untyped("apps/v1", "Deployment"), "web")    # a dict, as on the wire
    await client.get(metadata_only(Deployment), "web")           # a PartialObjectMetadata

A form knows the kind and how to read one object's bytes; it knows nothing of servers.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from setpoint.api.meta import PartialObjectMetadata
from setpoint.api.model import Object
from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.errors import DecodeError

T = TypeVar("T")

_JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"


class Form(Generic[T]):
    """A kind, and the Python form its objects take."""

    gvk: GroupVersionKind
    resource: Resource | None = None  # where it is kept, if that is known without asking a server
    accept: str = _JSON
    accept_list: str = _JSON

    def decode(self, data: bytes) -> T:
        """Read one object."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.gvk}>"


class Typed(Form[T]):
    """Objects of a model class."""

    def __init__(self, model: type[T]) -> None:
        if not (isinstance(model, type) and issubclass(model, Object)):
            raise TypeError(f"{model!r} is no kind: give a model class, untyped(...) or metadata_only(...)")
        if not hasattr(model, "resource"):
            raise TypeError(
                f"{model.__name__} has no group, version and plural: give a class that names a kind"
            )
        self.resource = model.resource
        self.gvk = model.resource.gvk
        self._decode = model.decode

    def decode(self, data: bytes) -> T:
        return self._decode(data)


class Untyped(Form[dict[str, Any]]):
    """Objects as plain dicts, as on the wire; for kinds that no class stands for."""

    def __init__(self, gvk: GroupVersionKind, resource: Resource | None = None) -> None:
        self.gvk = gvk
        self.resource = resource

    def decode(self, data: bytes) -> dict[str, Any]:
        try:
            return {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, **_objects.decode(data)}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DecodeError(f"read {self.gvk}", f"not a JSON object: {error}") from error


class MetadataOnly(Form[PartialObjectMetadata]):
    """Objects of any kind, of which the server sends nothing but the metadata."""

    accept = _PARTIAL.format("")
    accept_list = _PARTIAL.format("List")

    def __init__(self, of: Form[Any]) -> None:
        self.gvk = of.gvk
        self.resource = of.resource

    def decode(self, data: bytes) -> PartialObjectMetadata:
        partial = PartialObjectMetadata.decode(data)
        partial.api_version, partial.kind = _PARTIAL_KIND  # a whole object is read by its metadata too
        return partial


_objects = msgspec.json.Decoder(dict[str, Any])
_PARTIAL_KIND = ("meta.k8s.io/v1", "PartialObjectMetadata")


def untyped(api_version: str, kind: str) -> Form[dict[str, Any]]:
    """Ask for objects of this kind as plain dicts."""
    return Untyped(GroupVersionKind.of(api_version, kind))


def metadata_only(kind: type[T] | Form[T]) -> Form[PartialObjectMetadata]:
    """Ask for the metadata of objects of this kind, and nothing else."""
    return MetadataOnly(form_of(kind))


def form_of(kind: type[T] | Form[T]) -> Form[T]:
    """The form that a verb's first argument stands for."""
    if isinstance(kind, Form):
        return kind
    return _typed(kind)


def _typed(model: type[T]) -> Form[T]:
    form = _known.get(model)
    if form is None:
        form = _known[model] = Typed(model)
    return form


_known: dict[type[Any], Form[Any]] = {}


def form_of_object(obj: object) -> Form[Any]:
    """The form that an object in hand has."""
    if isinstance(obj, PartialObjectMetadata):
        raise TypeError(
            "metadata alone does not say of which kind it is: give metadata_only(Kind) and a name instead"
        )
    if isinstance(obj, Object):
        return _typed(type(obj))
    if isinstance(obj, dict):
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise ValueError(  # noqa: TRY004 - its type is right, its content is not
                'a plain object needs "apiVersion" and "kind", so that its resource can be found'
            )
        return untyped(api_version, kind)
    raise TypeError(f"{type(obj).__name__} is no Kubernetes object: give a model or a dict in wire form")


def key_of(obj: object) -> Key:
    """Where an object in hand says it lives; "" for what it does not say."""
    if isinstance(obj, Object):
        return Key(obj.metadata.namespace or "", obj.metadata.name or "")
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        return Key("", "")
    return Key(metadata.get("namespace") or "", metadata.get("name") or "")
