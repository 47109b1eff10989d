"""Types as OpenAPI component schemas, under the names that Kubernetes gives them.

One walk serves every built-in kind: a struct becomes a component, what it holds a reference to one.  List
types, map keys and patch strategies are told, for ``kubectl apply`` computes its patches from them.  There
are no descriptions.

Pure.  Used by ``openapi.py`` and ``swagger.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from setpoint.server.registry.facts import kinds, type_of
from setpoint.server.registry.types import NONE, Field, Type

Json = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PLACES: Final = {  # of the groups that are not in io.k8s.api.<first word>
    "": "io.k8s.api.core",
    "meta.k8s.io": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_META_TYPES: Final = frozenset(
    {
        "APIResource", "APIResourceList", "Condition", "DeleteOptions", "FieldsV1", "GroupResource",
        "GroupVersionForDiscovery", "GroupVersionKind", "GroupVersionResource", "LabelSelector",
        "LabelSelectorRequirement", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "Patch",
        "PatchOptions", "Preconditions", "ShardInfo", "Status", "StatusCause", "StatusDetails", "TypeMeta",
        "WatchEvent", "FieldSelectorRequirement",
    }
)  # fmt: skip
# Structs of one group that kinds of another hold, by what their names begin with.
_ELSEWHERE: Final = {
    "v1alpha3.": "io.k8s.api.scheduling.v1alpha3",
    "v1.TopologySelector": "io.k8s.api.core.v1",
}

_PLAIN: Final[Mapping[str, Json]] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "duration": {"type": "string"},
}
# Forms that have a component of their own.
_SHARED: Final[Mapping[str, tuple[str, Json]]] = {
    "time": (f"{META}.Time", {"type": "string", "format": "date-time"}),
    "microtime": (f"{META}.MicroTime", {"type": "string", "format": "date-time"}),
    "quantity": (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "int-or-string": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
}
# Anything may stand there; what is not listed is a RawExtension.
_OPEN: Final[Mapping[str, tuple[str, Json]]] = {
    "FieldsV1": (f"{META}.FieldsV1", {"type": "object"}),
    **{
        name: (f"{_PLACES['apiextensions.k8s.io']}.v1.{name}", {})
        for name in ("JSON", *(f"JSONSchemaPropsOr{one}" for one in ("Array", "Bool", "StringArray")))
    },
}
_ANY: Final = ("io.k8s.apimachinery.pkg.runtime.RawExtension", {"type": "object"})


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


class Names:
    """What each struct is called: by the group whose kinds hold it, the core group's first."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}  # by the struct's fields, which its copies share
        self._kinds: dict[int, Json] = {}
        found = sorted(kinds(), key=lambda one: (one[0] != "meta.k8s.io", one[0] != "", one))
        for group, version, kind in found:
            type_ = type_of(group, version, kind)
            self._name(type_, f"{_place(group)}.{version}")
            shown = "" if group == "meta.k8s.io" else group
            self._kinds.setdefault(id(type_.fields), {"group": shown, "version": version, "kind": kind})

    def of(self, type_: Type) -> str:
        return self._names[id(type_.fields)]

    def kind_of(self, type_: Type) -> Json | None:
        """The kind that a struct is, if it is one."""
        return self._kinds.get(id(type_.fields))

    def _name(self, type_: Type, place: str) -> None:
        if type_.form != "struct":
            if type_.item is not None:
                self._name(type_.item, place)
            return
        if id(type_.fields) in self._names:
            return
        short = type_.name.rpartition(".")[2]
        elsewhere = (there for start, there in _ELSEWHERE.items() if type_.name.startswith(start))
        where = META if short in _META_TYPES else next(elsewhere, place)
        self._names[id(type_.fields)] = f"{where}.{short}"
        for one in type_.fields.values():
            self._name(one.type, place)


def _place(group: str) -> str:
    return _PLACES.get(group) or f"io.k8s.api.{group.partition('.')[0]}"


class Components:
    """The schemas of one document; what is asked for brings in what it holds."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.schemas: dict[str, Json] = {}

    def add(self, type_: Type, *, kind: Json | None = None) -> Json:
        """A reference to a struct, which is there from now on."""
        name = self._names.of(type_)
        if name not in self.schemas:
            schema: Json = {"type": "object"}
            self.schemas[name] = schema  # before its fields: it may hold itself
            if required := [one.name for one in type_.fields.values() if one.is_required]:
                schema["required"] = required
            if type_.fields:
                fields = sorted(type_.fields.values(), key=lambda one: one.name)
                is_plain = type_.name.endswith(".JSONSchemaProps")  # whose fields nothing is said of
                schema["properties"] = {
                    one.name: self._field(one, is_plain=is_plain and one.name != "default") for one in fields
                }
            if type_.is_atomic:
                schema["x-kubernetes-map-type"] = "atomic"
            if name.partition(".v")[0] != META.partition(".v")[0] and (own := self._names.kind_of(type_)):
                schema["x-kubernetes-group-version-kind"] = [own]
        if kind is not None:
            told = self.schemas[name].setdefault("x-kubernetes-group-version-kind", [])
            if kind not in told:
                told.append(kind)
        return ref(name)

    def meta(self, kind: str, *places: tuple[str, str]) -> Json:
        """Of a kind that many groups have, with those that are named: group and version."""
        type_ = type_of("", "v1", kind)
        made = self.add(type_)
        for group, version in places:
            self.add(type_, kind={"group": group, "version": version, "kind": kind})
        return made

    def _field(self, one: Field, *, is_plain: bool) -> Json:
        found = self._of(one.type)
        more: Json = {}
        if one.default is not NONE:
            more["default"] = one.default
        elif one.type.form == "struct" and not one.is_pointer:
            more["default"] = {}
        if one.enum:
            inside = {"list": "items", "map": "additionalProperties"}.get(one.type.form, "")
            (found[inside] if inside else more)["enum"] = list(one.enum)
        if one.type.form == "list" and (one.type.list_type != "atomic" or one.is_told):
            more["x-kubernetes-list-type"] = one.type.list_type
            if one.type.map_keys:
                more["x-kubernetes-list-map-keys"] = list(one.type.map_keys)
        elif one.is_told:
            is_list = one.type.form == "bytes"  # of which Go thinks as a list
            more["x-kubernetes-list-type" if is_list else "x-kubernetes-map-type"] = (
                "atomic" if is_list else "granular"
            )
        elif one.type.is_atomic and one.type.form == "map":
            more["x-kubernetes-map-type"] = "atomic"
        if one.patch_strategy:
            more["x-kubernetes-patch-strategy"] = ",".join(sorted(one.patch_strategy))
        if one.merge_key:
            more["x-kubernetes-patch-merge-key"] = one.merge_key
        if is_plain and not more:
            return found
        if "$ref" in found:  # nothing may stand beside a reference
            return {**more, "allOf": [found]}
        return {**found, **more}

    def _of(self, type_: Type) -> Json:
        if type_.form in _PLAIN:
            return dict(_PLAIN[type_.form])
        if type_.form in _SHARED or type_.form == "any":
            name, schema = _SHARED.get(type_.form) or _OPEN.get(type_.name.rpartition(".")[2], _ANY)
            self.schemas.setdefault(name, schema)
            return ref(name)
        inner = self._of(type_.item) if type_.item is not None else {}
        if type_.form == "list":
            return {"type": "array", "items": inner}
        if type_.form == "map":
            return {"type": "object", "additionalProperties": inner}
        return self.add(type_)


def custom_schema(schema: Json, kind: Json, metadata: Json) -> Json:
    """A definition's own schema, with what every object has; its words are kept."""
    shown = _explicit(schema, metadata)
    shown["type"] = "object"
    shown["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **shown.get("properties", {}),
        "metadata": {"allOf": [metadata]},
    }
    shown["x-kubernetes-group-version-kind"] = [kind]
    return shown


def _explicit(schema: Json, metadata: Json) -> Json:
    """What Kubernetes' own words imply, said in those of OpenAPI too."""
    shown = dict(schema)
    if schema.get("properties"):
        shown["properties"] = {name: _explicit(one, metadata) for name, one in schema["properties"].items()}
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            shown[word] = _explicit(schema[word], metadata)
    if schema.get("x-kubernetes-int-or-string") and not any(schema.get(one) for one in ("anyOf", "allOf")):
        shown["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("x-kubernetes-embedded-resource"):
        shown["properties"] = {
            **shown.get("properties", {}),
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [metadata]},
        }
        shown["required"] = [*schema.get("required", ()), "kind", "apiVersion"]
    return shown


def selectable(schema: Json, fields: Sequence[str]) -> Json:
    """A custom kind's schema, or its list's, with the fields that selectors may name."""
    told = [{"fieldPath": one.lstrip(".")} for one in fields]
    return {**schema, "x-kubernetes-selectable-fields": told} if told else schema


def list_schema(item: Json, kind: Json, metadata: Json) -> Json:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": item},
            "kind": {"type": "string"},
            "metadata": {"allOf": [metadata]},
        },
        "x-kubernetes-group-version-kind": [kind],
    }


def camel(group: str) -> str:
    """``RbacAuthorization``, ``ExampleCom``; the core group is ``Core``."""
    words = group.removesuffix(".k8s.io").replace("-", ".").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words) or "Core"


def reversed_name(group: str, version: str, kind: str) -> str:
    """``com.example.v1.Foo``: how a custom kind's component is called."""
    return ".".join((*_turned(group.split(".")), version, kind))


def _turned(words: Iterable[str]) -> list[str]:
    return list(words)[::-1]
