"""``/openapi``: what is served, told to programs.  A document for each group and version in v3, made from the
types of its resources, and one of all of them in v2 (``swagger.py``).

Enough for ``kubectl apply``, ``create``, ``diff`` and ``explain`` and for generators of clients: every
path with its verbs and kinds, the parameters of writes, the schemas of what is sent.  A document is made
when it is first asked for; its hash is known before, so that the index costs nothing.  Custom kinds bring
their own schema.

Pure.  Fed by ``registry/served.py``; used by ``app.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha512
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from setpoint.server.http.schemas import (
    META,
    Components,
    Json,
    Names,
    camel,
    custom_schema,
    list_schema,
    ref,
    reversed_name,
    selectable,
)
from setpoint.server.registry.facts import release, type_of
from setpoint.server.registry.resources import Resource, Subresource
from setpoint.server.registry.served import Resources

_JSON: Final = "application/json"
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "list": (
        "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
        "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
    ),
    "get": ("resourceVersion",),
    "create": _WRITE,
    "update": _WRITE,
    "patch": (*_WRITE, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
    "deletecollection": (
        "continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector", "limit",
        "orphanDependents", "propagationPolicy", "resourceVersion", "resourceVersionMatch",
    ),
}  # fmt: skip
_TYPES: Final = {
    "limit": "integer",
    "timeoutSeconds": "integer",
    "gracePeriodSeconds": "integer",
    "watch": "boolean",
    "allowWatchBookmarks": "boolean",
    "sendInitialEvents": "boolean",
    "force": "boolean",
    "orphanDependents": "boolean",
}
# A verb's method, the word its operation begins with, and what it is called in x-kubernetes-action.
_VERBS: Final[Mapping[str, tuple[str, str, str]]] = {
    "list": ("get", "list", "list"),
    "create": ("post", "create", "post"),
    "deletecollection": ("delete", "delete", "deletecollection"),
    "get": ("get", "read", "get"),
    "update": ("put", "replace", "put"),
    "patch": ("patch", "patch", "patch"),
    "delete": ("delete", "delete", "delete"),
}
_COLLECTION: Final = ("list", "create", "deletecollection")
_OBJECT: Final = ("get", "update", "patch", "delete")


@runtime_checkable
class HasSchema(Protocol):
    """A strategy of a custom kind: ``openapi_schema`` is its version's, as it was written."""

    @property
    def openapi_schema(self) -> Json: ...


class Document(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes = b""


class OpenApi:
    """The documents, each made once for each set of resources."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._names: Names | None = None
        self._generation = 0
        self._hashes: dict[str, str] = {}  # of every document there is, by its name
        self._documents: dict[str, bytes] = {}  # those that were asked for, by their hash
        self._old_hash = ""
        self._old_documents: dict[str, bytes] = {}  # of the older form, by media type

    def names(self) -> list[str]:
        """``api/v1``, ``apis/apps/v1``, …"""
        return [name for name, _, _ in self._versions()]

    def answer(
        self, path: tuple[str, ...], query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Document | None:
        """Of ``/openapi/…``; None where nothing is known."""
        self._refresh()
        if path == ("v2",):
            return self._old(headers)
        if path[0] != "v3":
            return None
        if len(path) == 1:
            return Document(200, {"Content-Type": "text/plain; charset=utf-8"}, self._index())
        name = "/".join(path[1:])
        known = self._hashes.get(name)
        if known is None:
            return Document(404, {"Content-Type": "text/plain; charset=utf-8"})
        told = {"ETag": f'"{known}"', "Vary": "Accept"}
        accept = headers.get("Accept", "")
        if accept and not any(one in accept for one in (_JSON, "*/*", "application/*")):
            return Document(406, {"Vary": "Accept"})
        asked = query.get("hash", "")
        if asked and asked.upper() != known:
            return Document(301, {**told, "Location": f"/openapi/v3/{name}?hash={known}"})
        if known in headers.get("If-None-Match", ""):
            return Document(304, told)
        if asked:
            told["Cache-Control"] = "public, immutable"
        return Document(200, {**told, "Content-Type": _JSON}, self._document(name, known))

    def _old(self, headers: Mapping[str, str]) -> Document:
        """All that is served, in one document of the older form."""
        form = _old_form(headers.get("Accept", ""))
        if form is None:
            return Document(406, {"Vary": "Accept"})
        known = sha512("".join(self._hashes.values()).encode()).hexdigest().upper()
        told = {"ETag": f'"{known}"', "Vary": "Accept"}
        if known in headers.get("If-None-Match", ""):
            return Document(304, told)
        if self._old_hash != known:
            self._old_hash, self._old_documents = known, {}
        if form not in self._old_documents:
            self._old_documents[form] = self._old_document(form)
        return Document(200, {**told, "Content-Type": form}, self._old_documents[form])

    def _old_document(self, form: str) -> bytes:
        from setpoint.server.http import swagger, swagger_protobuf  # noqa: PLC0415 - for older tools alone

        self._names = self._names or Names()
        made = swagger.document(self._resources, self._names)
        return msgspec.json.encode(made) if form == _JSON else swagger_protobuf.written(made)

    def _versions(self) -> Iterator[tuple[str, str, str]]:
        for group, versions in self._resources.groups():
            for version in versions:
                yield (f"apis/{group}/{version}" if group else f"api/{version}"), group, version

    def _refresh(self) -> None:
        if self._generation == self._resources.generation:
            return
        self._generation = self._resources.generation
        self._hashes = {
            name: _hash(self._resources.of(group, version)) for name, group, version in self._versions()
        }
        known = set(self._hashes.values())
        self._documents = {each: data for each, data in self._documents.items() if each in known}

    def _index(self) -> bytes:
        paths = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={known}"}
            for name, known in sorted(self._hashes.items())
        }
        return msgspec.json.encode({"paths": paths})

    def _document(self, name: str, known: str) -> bytes:
        if known not in self._documents:
            self._names = self._names or Names()
            group, version = next((g, v) for each, g, v in self._versions() if each == name)
            made = document(self._resources.of(group, version), f"/{name}", self._names)
            self._documents[known] = msgspec.json.encode(made)
        return self._documents[known]


def _hash(resources: list[Resource]) -> str:
    """Of what a document is made of, which is less than the document."""
    made_of = [release(), _GENERATOR]
    for one in resources:
        made_of += [one.api_version, one.plural, one.kind, str(one.verbs), str(one.subresources)]
        if isinstance(one.strategy, HasSchema):
            made_of.append(str(zlib.crc32(msgspec.json.encode(one.strategy.openapi_schema))))
            made_of += one.strategy.selectable_fields()
    return sha512("\n".join(made_of).encode()).hexdigest().upper()


_GENERATOR: Final = "4"  # counts up when documents of the same resources change


# ── The older form ──────────────────────────────────────────────────────────────────────────────────

_OLD: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_OLD_FORMS: Final[Mapping[str, str]] = {
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": _OLD,  # what clients have always said
    _OLD: _OLD,
    _JSON: _JSON,
    "application/*": _JSON,
    "*/*": _JSON,
}


def _old_form(accept: str) -> str | None:
    """The first that can be met, in the order given."""
    asked = (one.partition(";")[0].strip().lower() for one in accept.split(","))
    return next((_OLD_FORMS[one] for one in asked if one in _OLD_FORMS), None) if accept else _JSON


# ── A document ──────────────────────────────────────────────────────────────────────────────────────


def document(resources: list[Resource], root: str, names: Names) -> Json:
    """The whole document of one group and version, whose paths begin with ``root``."""
    components = Components(names)
    paths: Json = {}
    for resource in resources:
        paths |= _paths(resource, root, components)
    if any(not one.is_custom for one in resources):
        paths[f"{root}/"] = {"get": _discovery(resources[0], components)}
    if any("watch" in one.verbs and not one.is_custom for one in resources):
        components.meta("WatchEvent", *_places(resources[0]))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release().removeprefix("v").rpartition(".")[0]},
        "paths": paths,
        "components": {"schemas": dict(sorted(components.schemas.items()))},
    }


# ── Paths ───────────────────────────────────────────────────────────────────────────────────────────


class _Said(NamedTuple):
    """What operations on one path share."""

    resource: Resource
    item: Json
    listed: Json
    kind: Json
    scope: str  # Namespaced, or ""
    suffix: str  # of a subresource: Status


def _paths(resource: Resource, root: str, components: Components) -> Json:
    item, listed = _schemas(resource, components)
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    scope = "Namespaced" if resource.namespaced else ""
    said = _Said(resource, item, listed, kind, scope, "")
    within = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    collection, one = f"{within}/{resource.plural}", f"{within}/{resource.plural}/{{name}}"
    paths: Json = {}
    if resource.namespaced and "list" in resource.verbs:
        everywhere = said._replace(scope="", suffix="ForAllNamespaces")
        paths[f"{root}/{resource.plural}"] = _operations(("list",), ("list",), everywhere, components, ())
    namespace = ("namespace",) if resource.namespaced else ()
    if found := _operations(_COLLECTION, resource.verbs, said, components, namespace):
        paths[collection] = found
    if found := _operations(_OBJECT, resource.verbs, said, components, ("name", *namespace)):
        paths[one] = found
    for below in resource.subresources:
        found = {} if below.is_connection else _below(below, said, components, ("name", *namespace))
        if found:
            paths[f"{one}/{below.name}"] = found
    return paths


def _discovery(resource: Resource, components: Components) -> Json:
    listed = components.meta("APIResourceList", ("", "v1"))
    group, version = camel(resource.group), resource.version.capitalize()
    return {
        "tags": [f"{group[:1].lower()}{group[1:]}_{resource.version}"],
        "operationId": f"get{group}{version}APIResources",
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": listed}}}},
    }


def _places(resource: Resource) -> tuple[tuple[str, str], ...]:
    """Where kinds that every group has are, in the documents of this one."""
    own = () if resource.is_custom or not resource.group else ((resource.group, resource.version),)
    return (("", "v1"), *own)


def _below(below: Subresource, said: _Said, components: Components, places: tuple[str, ...]) -> Json:
    resource = said.resource
    group, version = (below.group, below.version) if below.version else (resource.group, resource.version)
    try:
        item = (
            said.item if below.kind == resource.kind else components.add(type_of(group, version, below.kind))
        )
    except KeyError:  # nothing that has a schema
        return {}
    kind = {"group": group, "version": version, "kind": below.kind}
    suffix = "".join(word.capitalize() for word in below.name.split("/"))
    return _operations(
        (*_OBJECT, "create"),
        below.verbs,
        said._replace(item=item, kind=kind, suffix=suffix),
        components,
        places,
    )


def _schemas(resource: Resource, components: Components) -> tuple[Json, Json]:
    """References to the object's schema and its list's."""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    list_kind = {**kind, "kind": resource.list_kind or f"{resource.kind}List"}
    if isinstance(resource.strategy, HasSchema):
        name = reversed_name(resource.group, resource.version, resource.kind)
        metadata = ref(f"{META}.ObjectMeta")
        components.add(type_of("", "v1", "Pod").fields["metadata"].type)
        fields = resource.strategy.selectable_fields()
        schema = custom_schema(resource.strategy.openapi_schema, kind, metadata)
        components.schemas[name] = selectable(schema, fields)
        listed = reversed_name(resource.group, resource.version, list_kind["kind"])
        components.add(type_of("", "v1", "PodList").fields["metadata"].type)
        schema = list_schema(ref(name), list_kind, ref(f"{META}.ListMeta"))
        components.schemas[listed] = selectable(schema, fields)
        return ref(name), ref(listed)
    item = components.add(resource.type, kind=kind)
    if "list" not in resource.verbs:
        return item, item
    return item, components.add(type_of(resource.group, resource.version, list_kind["kind"]), kind=list_kind)


def _operations(
    order: tuple[str, ...],
    verbs: tuple[str, ...],
    said: _Said,
    components: Components,
    places: tuple[str, ...],
) -> Json:
    found: Json = {}
    for verb in order:
        if verb in verbs:
            method, _, _ = _VERBS[verb]
            found[method] = _operation(verb, said, components)
    if found and places:
        found["parameters"] = [
            {"name": place, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
            for place in places
        ]
    return found


def _operation(verb: str, said: _Said, components: Components) -> Json:
    resource = said.resource
    _, word, action = _VERBS[verb]
    group, version = camel(resource.group), resource.version.capitalize()
    of_all = "Collection" if verb == "deletecollection" else ""
    answer = said.listed if verb == "list" else said.item
    if verb in ("delete", "deletecollection"):
        answer = components.meta("Status", ("", "v1"))
    operation: Json = {
        "tags": [f"{group[:1].lower()}{group[1:]}_{resource.version}"],
        "operationId": f"{word}{group}{version}{of_all}{said.scope}{resource.kind}{said.suffix}",
        "parameters": [_parameter(name) for name in _PARAMETERS[verb]],
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": answer}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": said.kind,
    }
    if verb in ("create", "update"):
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": said.item}}}
    elif verb == "patch":
        components.schemas.setdefault(f"{META}.Patch", {"type": "object"})
        patches = _PATCHES[:-1] if resource.is_custom else _PATCHES
        content = {one: {"schema": ref(f"{META}.Patch")} for one in patches}
        operation["requestBody"] = {"required": True, "content": content}
    elif verb in ("delete", "deletecollection"):
        options = components.meta("DeleteOptions", *_places(resource))
        operation["requestBody"] = {"content": {_JSON: {"schema": options}}}
    return operation


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}
