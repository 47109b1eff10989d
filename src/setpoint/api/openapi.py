"""Reads a server's OpenAPI v3 documents as a description of the classes that stand for its kinds.

Decides, for every kind of the groups asked for and for everything those kinds contain: which class it is, in
which module, with which fields, of which types, and which of them must be given.

1. A class has a name of its own in its module.  A schema with a name keeps it.  A nested schema without one
   (a CustomResourceDefinition has only those) is named after its parent and field; nested schemas that are
   the same within a kind are one class, named after the shallowest place.
2. A field is *optional* (may be None, and is then not written), *required* (must be given) or *always* there
   (written even if not given, with the zero of its type):
   - the metadata, spec and status of an object, and the metadata and spec of a template, are always there;
     a spec that cannot be made from nothing must be given;
   - a required list or map is always there: Go writes null for an empty one;
   - in what only the server writes (a status, and what nothing but a status contains), whatever it always
     writes is always there: such a class can be made from nothing;
   - any other required field must be given, unless the server fills it in itself.
3. The types of apimachinery are Setpoint's own (``setpoint.api``), also where a CustomResourceDefinition has
   written one of them out in full.
4. The same documents give the same description, whatever their order.

Lists of objects have no class: the client reads those.  Descriptions are left out.

No server is asked here; ``cli/models.py`` fetches the documents, ``cli/source.py`` writes the classes down.
"""

from __future__ import annotations

import json
import keyword
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from setpoint.api.names import GroupVersionKind, Resource
from setpoint.api.quantity import Quantity

Document: TypeAlias = Mapping[str, Any]
Schema: TypeAlias = Mapping[str, Any]
GroupVersion: TypeAlias = tuple[str, str]

KUBE = "setpoint.kube"  # where the built-in kinds live


class Presence(Enum):
    """Whether a field must be given, and what it is if it is not."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Type:
    """A Python type; ``module`` is "" for a builtin, and begins with a dot inside the package to write."""

    name: str
    module: str = ""
    arguments: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field, by its name on the wire."""

    wire: str
    type: Type
    presence: Presence


@dataclass(frozen=True, slots=True)
class Struct:
    """A class.  A kind has a ``gvk``, and a ``resource`` if the server keeps objects of it."""

    type: Type
    fields: tuple[Field, ...]
    gvk: GroupVersionKind | None = None
    resource: Resource | None = None


STR, INT, FLOAT, BOOL, BYTES = Type("str"), Type("int"), Type("float"), Type("bool"), Type("bytes")
ANY = Type("Any", "typing")
TIME = Type("Time", "setpoint.api.times")
MICRO_TIME = Type("MicroTime", "setpoint.api.times")
QUANTITY = Type("Quantity", "setpoint.api.quantity")
INT_OR_STRING = Type("IntOrString", "setpoint.api.int_or_string")


def list_of(item: Type) -> Type:
    return Type("list", arguments=(item,))


def dict_of(value: Type) -> Type:
    return Type("dict", arguments=(STR, value))


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_AGGREGATION = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."
_BUILTIN = ("io.k8s.api.", _EXTENSIONS, _AGGREGATION)

# Schemas that are no structs.
_SCALARS: dict[str, Type] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": dict_of(ANY),
    f"{_META}FieldsV1": dict_of(ANY),
    f"{_META}MicroTime": MICRO_TIME,
    f"{_META}Time": TIME,
}

_FORMATS = {"date-time": TIME, "byte": BYTES, "int-or-string": INT_OR_STRING}
_NUMBERS = {"integer": INT, "number": FLOAT, "boolean": BOOL}

# The types of meta/v1 as a CustomResourceDefinition writes them out, and what it must require of each.
_REQUIREMENT = {"key": "string", "operator": "string", "values": ["string"]}
_SELECTOR = {"matchExpressions": [_REQUIREMENT], "matchLabels": {"*": "string"}}
_CONDITION = {
    "lastTransitionTime": "date-time",
    "message": "string",
    "observedGeneration": "integer",
    "reason": "string",
    "status": "string",
    "type": "string",
}
_TWINS: tuple[tuple[str, object, set[str]], ...] = (
    ("LabelSelectorRequirement", _REQUIREMENT, {"key", "operator"}),
    ("LabelSelector", _SELECTOR, set()),
    ("Condition", _CONDITION, {"reason", "status", "type"}),
)

# msgspec can have no such field; it is left to the bytes that an object keeps.
_UNNAMEABLE = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')

_ZEROED = {STR, INT, FLOAT, BOOL, BYTES}

# With one of these a schema may refuse the zero of its type.
_LIMITS = {"enum", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minLength", "minimum", "pattern"}


def read(
    documents: Iterable[Document],
    resources: Iterable[Resource],
    wanted: Collection[GroupVersion],
    *,
    builtin: bool = False,
) -> list[Struct]:
    """The classes for every kind of the groups ``wanted``, sorted by module and name.

    ``builtin`` describes Setpoint's own models: modules are named after the first word of a group, and
    what the kinds contain of other built-in groups is described as well.  Otherwise modules are named
    after the whole group, and what is built in is taken from ``setpoint.kube``.
    """
    schemas: dict[str, Schema] = {}
    for document in documents:
        schemas |= document.get("components", {}).get("schemas", {})
    reader = _Reader(schemas, {r.gvk: r for r in resources}, wanted, builtin=builtin)
    reader.walk()
    return sorted(reader.describe(), key=lambda s: (s.type.module, s.type.name))


def stable(version: str) -> bool:
    """Whether a version promises to stay: v1, not v1beta1."""
    return re.fullmatch(r"v[1-9][0-9]*", version) is not None


def is_builtin(document: Document, served: GroupVersion) -> bool:
    """Whether the kinds of a group and version, which the document is about, come with Kubernetes."""
    schemas = document.get("components", {}).get("schemas", {})
    return any(name.startswith(_BUILTIN) for name, _ in _kinds(schemas, {served}))


@dataclass(slots=True)
class _Part:
    """A field, as the schema has it."""

    wire: str
    schema: Schema
    type: Type
    required: bool


@dataclass(slots=True)
class _Class:
    """A class in the making."""

    type: Type
    schema: Schema
    kind: str  # the kind within which nested schemas are compared
    named: bool
    gvk: GroupVersionKind | None = None
    parts: list[_Part] = field(default_factory=list)


class _Reader:
    """Finds the classes and their fields: promises 1 and 3."""

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        resources: Mapping[GroupVersionKind, Resource],
        wanted: Collection[GroupVersion],
        *,
        builtin: bool,
    ) -> None:
        self._schemas = schemas
        self._resources = resources
        self._builtin = builtin
        self._classes: dict[Type, _Class] = {}  # the truth
        self._unread: deque[_Class] = deque()
        self._nested: dict[tuple[str, str], Type] = {}  # (kind, nested schema) → its class
        self._aliases: dict[str, Type] = {}
        self._kinds = dict(_kinds(schemas, wanted))
        self._packages = {
            name.rpartition(".")[0]: (gvk.group, gvk.version) for name, gvk in self._kinds.items()
        }
        self._taken: set[Type] = {self._class_of(name) for name in schemas}

    def walk(self) -> None:
        """Find every class, breadth first: a nested schema is named after its shallowest place."""
        for name in sorted(self._kinds):
            self._named(name)
        while self._unread:
            one = self._unread.popleft()
            required = set(one.schema.get("required", ()))
            for wire, schema in sorted(one.schema.get("properties", {}).items()):
                if _UNNAMEABLE.search(wire):
                    continue
                whole = _unwrapped(schema)
                one.parts.append(_Part(wire, whole, self._type(whole, one, wire), wire in required))

    def _type(self, schema: Schema, owner: _Class, wire: str) -> Type:
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        if schema.get("x-kubernetes-int-or-string"):
            return QUANTITY if schema.get("pattern") == Quantity.OPENAPI["pattern"] else INT_OR_STRING
        if schema.get("x-kubernetes-embedded-resource"):
            return dict_of(ANY)
        match schema.get("type"):
            case "string":
                return _FORMATS.get(schema.get("format", ""), STR)
            case "integer" | "number" | "boolean" as number:
                return _NUMBERS[number]
            case "array":
                return list_of(self._type(_unwrapped(schema.get("items", {})), owner, wire))
            case "object" if schema.get("properties"):
                return self._anonymous(schema, owner, wire)
            case "object":
                values = schema.get("additionalProperties")
                inner = _unwrapped(values) if isinstance(values, Mapping) else {}
                return dict_of(self._type(inner, owner, wire))
        return ANY

    def _named(self, name: str) -> Type:
        if name in _SCALARS:
            return _SCALARS[name]
        if name.startswith(f"{_EXTENSIONS}JSONSchemaPropsOr"):
            return self._props_or(name.removeprefix(f"{_EXTENSIONS}JSONSchemaPropsOr"))
        schema = self._schemas.get(name, {})
        one = _Class(self._class_of(name), schema, name, named=True, gvk=self._kinds.get(name))
        if not one.gvk and (schema.get("type") != "object" or "additionalProperties" in schema):
            return self._alias(name, one)
        if one.type not in self._classes:
            self._add(one)
        return one.type

    def _alias(self, name: str, one: _Class) -> Type:
        """What a name for something other than a struct stands for."""
        if name not in self._aliases:
            self._aliases[name] = ANY  # what it holds of itself
            self._aliases[name] = self._type(_unwrapped(one.schema), one, "")
        return self._aliases[name]

    def _props_or(self, other: str) -> Type:
        """JSON Schema's "a schema, or …", which the documents leave open."""
        props = self._named(f"{_EXTENSIONS}JSONSchemaProps")
        or_else = {"Array": list_of(props), "Bool": BOOL, "StringArray": list_of(STR)}
        return Type("|", arguments=(props, or_else[other]))

    def _anonymous(self, schema: Schema, owner: _Class, wire: str) -> Type:
        if twin := _twin(schema):
            return Type(twin, "setpoint.api.meta")
        same = (owner.kind, _bare(schema))
        if same not in self._nested:
            type_ = self._free(Type(owner.type.name + _capitalized(wire), owner.type.module))
            self._nested[same] = type_
            self._add(_Class(type_, schema, owner.kind, named=False))
        return self._nested[same]

    def _add(self, one: _Class) -> None:
        self._classes[one.type] = one
        self._taken.add(one.type)
        self._unread.append(one)

    def _free(self, wish: Type) -> Type:
        type_, number = wish, 1
        while type_ in self._taken:
            number += 1
            type_ = Type(f"{wish.name}{number}", wish.module)
        return type_

    def _class_of(self, name: str) -> Type:
        package, _, short = name.rpartition(".")
        return Type(_identifier(_capitalized(short)), self._module_of(package))

    def _module_of(self, package: str) -> str:
        if f"{package}." == _META:
            return "setpoint.api.meta"
        *_, word, version = f".{package}".split(".")
        group, version = self._packages.get(package, (word, version))
        if self._builtin or (f"{package}.".startswith(_BUILTIN) and package not in self._packages):
            return f"{KUBE}.{_identifier(group.partition('.')[0] or 'core')}.{_identifier(version)}"
        return f".{_identifier(group or 'core')}.{_identifier(version)}"

    def describe(self) -> Iterator[Struct]:
        """The classes of the package being written, whole."""
        presences = _Presences(self._classes, self._resources)
        ours = f"{KUBE}." if self._builtin else "."
        for one in self._classes.values():
            if one.type.module.startswith(ours):
                inherited = {"apiVersion", "kind", "metadata"} if one.gvk else set()
                parts = [part for part in one.parts if part.wire not in inherited]
                fields = tuple(Field(part.wire, part.type, presences.of(part, one)) for part in parts)
                yield Struct(one.type, fields, one.gvk, self._resources.get(one.gvk) if one.gvk else None)


class _Presences:
    """Decides which fields must be given: promise 2."""

    def __init__(
        self, classes: Mapping[Type, _Class], resources: Mapping[GroupVersionKind, Resource]
    ) -> None:
        self._classes = classes
        self._resources = resources
        self._server_only = set(classes) - _written_by_users(classes)
        self._from_nothing: dict[Type, bool] = {}  # whether a class can be made so, once known

    def of(self, part: _Part, one: _Class) -> Presence:
        """Whether ``part`` of the class ``one`` must be given."""
        if one.gvk and part.wire == "status":
            return Presence.ALWAYS if self._is_safe_if_empty(part, one.gvk) else Presence.OPTIONAL
        if part.wire in {"metadata", "spec"} and _is_object(one):
            if part.type.name == "dict" or self._is_made_from_nothing(part.type):
                return Presence.ALWAYS
            expected = part.required or part.schema.get("default") == {}
            return Presence.REQUIRED if expected else Presence.OPTIONAL
        if one.type in self._server_only:
            return Presence.ALWAYS if self._is_always_written(part) else Presence.OPTIONAL
        if not part.required or part.schema.get("nullable") or part.schema.get("default"):
            return Presence.OPTIONAL
        return Presence.ALWAYS if part.type.name in {"list", "dict"} else Presence.REQUIRED

    def _is_safe_if_empty(self, status: _Part, gvk: GroupVersionKind) -> bool:
        """Whether an object may be created with an empty status: it is dropped, or nothing is missing."""
        if status.type not in self._classes:
            return False
        resource = self._resources.get(gvk)
        dropped = resource is not None and "status" in resource.subresources
        return dropped or self._classes[status.type].named or not status.schema.get("required")

    def _is_always_written(self, part: _Part) -> bool:
        """Whether the server writes a field of its own even if it is zero, and we can make that zero."""
        said_zero = "default" in part.schema and not part.schema["default"]
        if not (part.required or said_zero) or part.schema.get("nullable"):
            return False
        if part.type in _ZEROED:
            return said_zero or _LIMITS.isdisjoint(part.schema)
        return part.type.name in {"list", "dict"} or self._is_made_from_nothing(part.type)

    def _is_made_from_nothing(self, type_: Type) -> bool:
        """Whether a class can be made without an argument."""
        one = self._classes.get(type_)
        if one is None:
            return False
        if type_ not in self._from_nothing:
            self._from_nothing[type_] = False  # a class that always holds itself cannot
            self._from_nothing[type_] = all(self.of(part, one) is not Presence.REQUIRED for part in one.parts)
        return self._from_nothing[type_]


def _written_by_users(classes: Mapping[Type, _Class]) -> set[Type]:
    """The classes that occur in something other than a status."""
    found: set[Type] = set()
    todo = [one for one in classes.values() if one.gvk]
    while todo:
        one = todo.pop()
        if one.type in found:
            continue
        found.add(one.type)
        for part in one.parts:
            held = classes.get(_innermost(part.type))
            if held is not None and not (one.gvk and part.wire == "status"):
                todo.append(held)
    return found


def _kinds(
    schemas: Mapping[str, Schema], wanted: Collection[GroupVersion]
) -> Iterator[tuple[str, GroupVersionKind]]:
    """The schemas that are kinds of the groups wanted, lists excepted."""
    for name, schema in schemas.items():
        gvks = schema.get("x-kubernetes-group-version-kind", ())
        if name.startswith("io.k8s.apimachinery.") or len(gvks) != 1:
            continue
        gvk = GroupVersionKind(gvks[0]["group"], gvks[0]["version"], gvks[0]["kind"])
        metadata = _unwrapped(schema.get("properties", {}).get("metadata", {}))
        if (gvk.group, gvk.version) in wanted and not metadata.get("$ref", "").endswith(".ListMeta"):
            yield name, gvk


def _is_object(one: _Class) -> bool:
    """Whether a class has the metadata of an object: a kind, or a template for one."""
    return one.gvk is not None or any(
        part.wire == "metadata" and part.type == Type("ObjectMeta", "setpoint.api.meta") for part in one.parts
    )


def _unwrapped(schema: Schema) -> Schema:
    """The schema itself, where it stands alone in an allOf (a reference may have no siblings)."""
    match schema.get("allOf"):
        case [only] if "properties" not in schema and "type" not in schema:
            return {**schema, **only}
    return schema


def _innermost(type_: Type) -> Type:
    """What a list, map or union is of; its first argument but for a map."""
    while type_.arguments:
        type_ = type_.arguments[-1] if type_.name == "dict" else type_.arguments[0]
    return type_


def _twin(schema: Schema) -> str | None:
    """The type of meta/v1 that a nested schema writes out, if it is one."""
    outline, required = _outline(schema), set(schema.get("required", ()))
    return next((name for name, twin, needs in _TWINS if outline == twin and required >= needs), None)


def _outline(schema: Schema) -> object:
    """The bare shape of a schema: names and types."""
    if properties := schema.get("properties"):
        return {name: _outline(part) for name, part in properties.items()}
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return {"*": _outline(values)}
    if schema.get("type") == "array":
        return [_outline(schema.get("items", {}))]
    named_format = schema.get("format") if schema.get("type") == "string" else None
    return named_format or schema.get("type")


def _bare(schema: Schema) -> str:
    """A schema's content without its descriptions, to compare it by."""
    return json.dumps(_without_descriptions(schema), sort_keys=True)


def _without_descriptions(value: Any) -> Any:
    match value:
        case dict():
            # A property may itself be called "description": its schema is a dict, a text is not.
            return {
                name: _without_descriptions(inner)
                for name, inner in value.items()
                if not (name == "description" and isinstance(inner, str))
            }
        case list():
            return [_without_descriptions(inner) for inner in value]
    return value


def _capitalized(wire: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", wire))


def _identifier(name: str) -> str:
    """A name as Python takes it: ``cert-manager.io`` → ``cert_manager_io``."""
    plain = re.sub(r"[^A-Za-z0-9]", "_", name)
    return f"{plain}_" if keyword.iskeyword(plain) else re.sub(r"^(?=[0-9]|$)", "_", plain)
