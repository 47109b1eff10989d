"""Kinds that users define: a Python class, and the CustomResourceDefinition that makes a server know it.

    class WebApp(CustomResource, group="demo.setpoint.dev", version="v1", short_names=["wa"]):
        spec: WebAppSpec
        status: WebAppStatus = WebAppStatus()

    crd_of(WebApp)      # a dict in wire form, ready to be applied

1. What kube-apiserver would refuse is a SchemaError when the class is made, naming class and field: names,
   schema, defaults, columns, scale and selectable fields.  Annotations that name a class defined further
   down cannot be read by then; they are checked by ``crd_of``.
2. Several classes of one kind are its versions; exactly one of them is stored.
3. The same classes give the same definition, byte for byte.

Whether a server accepts it is shown in ``tests/conformance/test_crds.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args

from msgspec import Struct

from setpoint.api.markers import Schema
from setpoint.api.metaclass import ModelMeta, words
from setpoint.api.model import Object
from setpoint.api.schema import object_schema
from setpoint.errors import SchemaError

_Meta = TypeVar("_Meta", bound="CustomResourceMeta")

ColumnType: TypeAlias = Literal["string", "integer", "number", "boolean", "date"]

_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_APPROVED = "api-approved.kubernetes.io"
# Compiled when first used: most programs import this and define nothing.
_LABEL = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"  # DNS-1035
_DOMAIN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)++"
_PATH = r"(?:\.[A-Za-z_][A-Za-z0-9_-]*)++"


class PrinterColumn(Struct, frozen=True):
    """A column of ``kubectl get``: ``PrinterColumn("Ready", ".status.ready")``.

    The path uses names on the wire.  Its type is that of the field, unless given; columns of a priority
    above 0 are shown only with ``-o wide``.
    """

    name: str
    path: str
    type: ColumnType | None = None
    description: str = ""
    format: str = ""
    priority: int = 0


class ScalePaths(Struct, frozen=True, kw_only=True):
    """Where ``kubectl scale`` and autoscalers find the number of replicas, and the selector of their pods."""

    spec_path: str = ".spec.replicas"
    status_path: str = ".status.replicas"
    selector_path: str | None = None


class Definition(Struct, frozen=True, kw_only=True):
    """What a class says about its kind besides fields and names."""

    storage: bool = True
    served: bool = True
    deprecated: bool | str = False  # text: the warning that users of this version see
    printer_columns: tuple[PrinterColumn, ...] = ()
    scale: ScalePaths | None = None
    selectable_fields: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}


class CustomResourceMeta(ModelMeta):
    """Makes the classes of custom resources, and refuses those that no server would take."""

    def __new__(  # noqa: PYI019 (Self cannot be used in a metaclass)
        mcls: type[_Meta],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        *,
        storage: bool = True,
        served: bool = True,
        deprecated: bool | str = False,
        printer_columns: Iterable[PrinterColumn] = (),
        scale: ScalePaths | None = None,
        selectable_fields: Iterable[str] = (),
        annotations: Mapping[str, str] | None = None,
        **config: Any,
    ) -> _Meta:
        cls: Any = super().__new__(mcls, name, bases, namespace, **config)
        if "resource" in namespace:
            parts = {"status": "status" in cls.__struct_fields__, "scale": scale is not None}
            cls.resource = replace(cls.resource, subresources=tuple(part for part in parts if parts[part]))
            cls.__definition__ = Definition(
                storage=storage,
                served=served,
                deprecated=deprecated,
                printer_columns=tuple(printer_columns),
                scale=scale,
                selectable_fields=words("selectable_fields", selectable_fields),
                annotations=dict(annotations or {}),
            )
            _check(cls)
        return cast("_Meta", cls)


class CustomResource(Object, metaclass=CustomResourceMeta):
    """The base of kinds that are defined by a CustomResourceDefinition.

    Class keywords: ``group``, ``version``; ``kind`` (the class's name), ``plural``, ``singular``,
    ``short_names``, ``categories``, ``namespaced``; ``printer_columns``, ``scale``, ``selectable_fields``,
    ``rules``; ``storage``, ``served``, ``deprecated``; ``annotations`` of the definition.
    A field ``status`` makes it a subresource.
    """

    __definition__: ClassVar[Definition]


def crd_of(*versions: type[CustomResource]) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind, in wire form; several classes are its versions."""
    stored = _stored(versions)
    resource = stored.resource
    metadata: dict[str, Any] = {"name": f"{resource.plural}.{resource.group}"}
    if annotations := {k: v for cls in versions for k, v in cls.__definition__.annotations.items()}:
        metadata["annotations"] = annotations
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    if resource.categories:
        names["categories"] = list(resource.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(cls, descriptions=True) for cls in versions],
        },
    }


def _stored(versions: tuple[type[CustomResource], ...]) -> type[CustomResource]:
    """The one class of which objects are stored; SchemaError unless the classes are versions of one kind."""
    for cls in versions:
        if not (isinstance(cls, CustomResourceMeta) and hasattr(cls, "resource")):
            raise TypeError(f"{cls!r} is no CustomResource with a group and version")
    stored = [cls for cls in versions if cls.__definition__.storage]
    doing = f"define {versions[0].resource.kind}" if versions else "define a kind"
    if len(stored) != 1:
        raise SchemaError(
            doing, f"{len(stored)} of {len(versions)} versions are stored; say storage=False for all but one"
        )
    if len({cls.resource.version for cls in versions}) < len(versions):
        raise SchemaError(doing, "two classes have the same version")
    for word in ("group", "kind", "plural", "singular", "namespaced"):
        said = {getattr(cls.resource, word) for cls in versions}
        if len(said) > 1:
            raise SchemaError(doing, f"its versions differ in {word}: {sorted(map(str, said))}")
    return stored[0]


def _version(cls: type[CustomResource], *, descriptions: bool) -> dict[str, Any]:
    """One entry under ``versions``."""
    definition, schema = cls.__definition__, object_schema(cls, descriptions=descriptions)
    version: dict[str, Any] = {
        "name": cls.resource.version,
        "served": definition.served,
        "storage": definition.storage,
    }
    if definition.deprecated:
        version["deprecated"] = True
    if isinstance(definition.deprecated, str) and definition.deprecated:
        version["deprecationWarning"] = definition.deprecated
    version["schema"] = {"openAPIV3Schema": schema}
    if subresources := _subresources(cls, schema):
        version["subresources"] = subresources
    if definition.printer_columns:
        version["additionalPrinterColumns"] = [_column(cls, c, schema) for c in definition.printer_columns]
    if definition.selectable_fields:
        version["selectableFields"] = _selectable(cls, schema)
    return version


def _subresources(cls: type[CustomResource], schema: Schema) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}} if "status" in schema["properties"] else {}
    if scale := cls.__definition__.scale:
        places = {
            "specReplicasPath": (scale.spec_path, (".spec.",), ("integer",)),
            "statusReplicasPath": (scale.status_path, (".status.",), ("integer",)),
            "labelSelectorPath": (scale.selector_path, (".spec.", ".status."), ("string",)),
        }
        subresources["scale"] = {word: place[0] for word, place in places.items() if place[0] is not None}
        for path, roots, types in places.values():
            if path is not None:
                if not path.startswith(roots) or not re.fullmatch(_PATH, path):
                    raise _refused(cls, f"the scale path {path!r} must be plain and under {roots[0]!r}")
                _expect(cls, path, schema, types)
    return subresources


def _column(cls: type[CustomResource], column: PrinterColumn, schema: Schema) -> dict[str, Any]:
    if not column.path.startswith("."):
        raise _refused(cls, f"the path {column.path!r} of column {column.name!r} must begin with a dot")
    known = get_args(ColumnType)
    if column.type not in (None, *known):
        raise _refused(cls, f"column {column.name!r} has the type {column.type!r}; write one of {known}")
    found = _find(cls, column.path, schema) if re.fullmatch(_PATH, column.path) else {}
    guessed = "date" if found.get("format") == "date-time" else found.get("type")
    written: dict[str, Any] = {
        "name": column.name,
        "type": column.type or (guessed if guessed in known else "string"),
        "jsonPath": column.path,
        "description": column.description,
        "format": column.format,
        "priority": column.priority,
    }
    return {word: value for word, value in written.items() if value}


def _selectable(cls: type[CustomResource], schema: Schema) -> list[dict[str, str]]:
    paths = cls.__definition__.selectable_fields
    if len(paths) > 8 or len(set(paths)) < len(paths):
        raise _refused(cls, "selectable_fields takes up to 8 paths, each once")
    for path in paths:
        if not re.fullmatch(_PATH, path) or path.startswith(".metadata"):
            raise _refused(cls, f"the selectable field {path!r} must be a plain path such as '.spec.color'")
        _expect(cls, path, schema, ("string", "integer", "boolean"))
    return [{"jsonPath": path} for path in paths]


# Paths into a schema, by the names on the wire.


_METADATA: Schema = {"properties": {"creationTimestamp": {"format": "date-time"}}, _UNKNOWN: True}


def _find(cls: type[CustomResource], path: str, schema: Schema) -> Schema:
    """The schema at a path; an empty one where anything may be."""
    at = {**schema, "properties": {**schema["properties"], "metadata": _METADATA}}
    for name in path.split(".")[1:]:
        known = at.get("properties", {})
        if name in known:
            at = known[name]
        elif at.get(_UNKNOWN) or "additionalProperties" in at:
            return {}
        else:
            names = ", ".join(sorted(known)) or "none"
            raise _refused(cls, f"there is no {path} on the wire: no {name!r} among {names}")
    return at


def _expect(cls: type[CustomResource], path: str, schema: Schema, types: tuple[str, ...]) -> None:
    found = _find(cls, path, schema)
    if found.get("type") not in types:
        raise _refused(cls, f"{path} must be {' or '.join(types)} for this use")


# What a server would refuse.


def _check(cls: Any) -> None:
    """Refuse what no server would take, as far as it can be known by now."""
    _check_names(cls)
    try:
        _version(cls, descriptions=False)
    except SchemaError as error:
        if not isinstance(error.__cause__, NameError):  # a class further down: crd_of looks again
            raise


def _check_names(cls: type[CustomResource]) -> None:
    resource = cls.resource
    if not re.fullmatch(_DOMAIN, resource.group):
        raise _refused(cls, f"group {resource.group!r} must be a domain with a dot, as in 'shop.example.com'")
    reserved = resource.group.endswith((".k8s.io", ".kubernetes.io"))
    if reserved and _APPROVED not in cls.__definition__.annotations:
        raise _refused(
            cls,
            f"group {resource.group!r} is reserved; take another, or give the annotation {_APPROVED}",
        )
    words = {
        "version": [resource.version],
        "kind": [resource.kind.lower()],
        "plural": [resource.plural],
        "singular": [resource.singular],
        "short_names": resource.short_names,
        "categories": resource.categories,
    }
    for word, values in words.items():
        for value in values:
            if not re.fullmatch(_LABEL, value):
                raise _refused(
                    cls, f"{word} {value!r} must be made of a-z, 0-9 and -, up to 63, a letter first"
                )


def _refused(cls: type[CustomResource], why: str) -> SchemaError:
    return SchemaError(f"define {cls.__name__}", why)
