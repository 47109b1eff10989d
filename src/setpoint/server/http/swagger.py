"""``/openapi/v2``: one document of all that is served, in the form that older tools read.

Its definitions are the schemas of ``schemas.py`` in OpenAPI 2's words, its paths say of every verb what is
sent and answered.  There are no descriptions but those of custom kinds, which are their authors'.  OpenAPI 2
cannot say all that a custom kind's schema says: what may be null or may hold anything is left open, and what
only validates in several ways is left out, as the real server does it, so that old clients refuse nothing
that is right.

Pure.  Used by ``openapi.py``; ``swagger_protobuf.py`` has the same document for who reads no JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from setpoint.server.http.schemas import (
    META,
    Components,
    Json,
    Names,
    camel,
    list_schema,
    reversed_name,
    selectable,
)
from setpoint.server.registry.facts import release, type_of
from setpoint.server.registry.resources import Resource, Subresource
from setpoint.server.registry.served import Resources

_JSON: Final = "application/json"
_FORMS: Final = (_JSON, "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAMS: Final = (f"{_JSON};stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_CUSTOM_FORMS: Final = _FORMS[:2]
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
    "application/apply-patch+yaml",
)
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE: Final = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_SELECT: Final = (
    "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch",
    "sendInitialEvents", "shardSelector", "timeoutSeconds",
)  # fmt: skip
_LIST: Final = ("allowWatchBookmarks", *_SELECT, "watch")
_LOG: Final = (
    "container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "previous", "sinceSeconds", "stream",
    "tailLines", "timestamps",
)  # fmt: skip
_INTEGERS: Final = frozenset(
    {"gracePeriodSeconds", "limit", "limitBytes", "sinceSeconds", "tailLines", "timeoutSeconds"}
)
_BOOLEANS: Final = frozenset(
    {
        "allowWatchBookmarks", "follow", "force", "insecureSkipTLSVerifyBackend", "orphanDependents",
        "ignoreStoreReadErrorWithClusterBreakingPotential", "previous", "sendInitialEvents", "timestamps",
        "watch",
    }
)  # fmt: skip
_IN_PATH: Final = frozenset({"name", "namespace"})


class _Verb(NamedTuple):
    """How a verb is told of; ``word`` is what its operation's name begins with."""

    method: str
    word: str
    action: str
    parameters: tuple[str, ...]
    codes: tuple[int, ...] = (200,)


_VERBS: Final[Mapping[str, _Verb]] = {
    "list": _Verb("get", "list", "list", _LIST),
    "create": _Verb("post", "create", "post", _WRITE, (200, 201, 202)),
    "deletecollection": _Verb("delete", "delete", "deletecollection", (*_DELETE, *_SELECT)),
    "get": _Verb("get", "read", "get", ()),
    "update": _Verb("put", "replace", "put", _WRITE, (200, 201)),
    "delete": _Verb("delete", "delete", "delete", _DELETE, (200, 202)),
    "patch": _Verb("patch", "patch", "patch", (*_WRITE, "force"), (200, 201)),
    "watch": _Verb("get", "watch", "watch", _LIST),
    "watchlist": _Verb("get", "watch", "watchlist", _LIST),
}
# What the real server says of custom kinds in other words.
_CUSTOM_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "get": ("resourceVersion",),
    "deletecollection": _LIST,
}
# Deleting one answers with it, and the real server's document says otherwise.
_SAID_TO_ANSWER_STATUS: Final = frozenset({"namespaces", "csistoragecapacities"})
_CODES: Final = {200: "OK", 201: "Created", 202: "Accepted", 401: "Unauthorized"}
_COLLECTION: Final = ("list", "create", "deletecollection")
_OBJECT: Final = ("get", "update", "delete", "patch")
_VERSION_INFO: Final = "io.k8s.apimachinery.pkg.version.Info"


def document(resources: Resources, names: Names) -> Json:
    """The whole of it."""
    components = Components(names)
    served = resources.all()
    places = sorted({(one.group, one.version) for one in served if not one.is_custom})
    definitions: Json = {}
    paths: Json = {}
    for one in served:
        if one.is_custom:
            definitions |= _custom_definitions(one)
        paths |= _paths(one, components)
    paths |= _beside(places, components)
    for kind in ("DeleteOptions", "WatchEvent"):
        components.meta(kind, *places)
    definitions |= {name: _definition(name, one) for name, one in components.schemas.items()}
    definitions[_VERSION_INFO] = _version_info()
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release().removeprefix("v").rpartition(".")[0]},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "parameters": {name: _parameter(name) for name in sorted(_ALL - _LOOKED_FOR)},
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    }


# ── Definitions ─────────────────────────────────────────────────────────────────────────────────────

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


def _ref(name: str) -> Json:
    return {"$ref": f"#/definitions/{name}"}


def _definition(name: str, schema: Json) -> Json:
    """A component's schema in the older words, which know no choice among types."""
    if name == _QUANTITY:
        return {"type": "string"}
    if name == _INT_OR_STRING:
        return {"type": "string", "format": "int-or-string"}
    return _older(schema)


def _older(schema: Json) -> Json:
    """Of a built-in kind: without defaults; what stands beside a reference is kept if it is Kubernetes'."""
    if "allOf" in schema or isinstance(schema.get("$ref"), str):
        (there,) = schema.get("allOf", [schema])
        told = {word: one for word, one in schema.items() if word.startswith("x-kubernetes-")}
        return {**_ref(there["$ref"].rpartition("/")[2]), **told}
    shown = {word: one for word, one in schema.items() if word != "default"}
    if "properties" in schema:
        shown["properties"] = {name: _older(one) for name, one in schema["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in schema:
            shown[word] = _older(schema[word])
    return shown


_ONLY_NEWER: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "default", "nullable"})


def _open(schema: Json) -> Json:
    """Of a custom kind: what may be null, or hold anything, has no type that old clients could check."""
    shown = {word: one for word, one in schema.items() if word not in _ONLY_NEWER}
    is_open = schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields")
    if is_open or schema.get("x-kubernetes-int-or-string"):
        for word in ("type", "items", "properties"):
            shown.pop(word, None)
    if "properties" in shown:
        shown["properties"] = {name: _open(one) for name, one in shown["properties"].items()}
    for word in ("items", "additionalProperties"):
        if isinstance(shown.get(word), dict):
            shown[word] = _open(shown[word])
    if schema.get("x-kubernetes-embedded-resource") and not is_open:
        shown["properties"] = {**shown.get("properties", {}), **_of_every_object()}
        shown["required"] = [*schema.get("required", ()), "kind", "apiVersion"]
    return shown


def _of_every_object() -> Json:
    text = {"type": "string"}
    return {"apiVersion": text, "kind": text, "metadata": _ref(f"{META}.ObjectMeta")}


def _custom_definitions(resource: Resource) -> Json:
    kind = _kind(resource)
    list_kind = {**kind, "kind": resource.list_kind or f"{resource.kind}List"}
    schema: Json = getattr(resource.strategy, "openapi_schema", {})
    shown: Json = {"type": "object"}
    if not schema.get("x-kubernetes-preserve-unknown-fields"):
        opened = _open(schema)
        shown = {**opened, "type": "object"}
        shown["properties"] = {**opened.get("properties", {}), **_of_every_object()}
    shown["x-kubernetes-group-version-kind"] = [kind]
    name, listed = (reversed_name(resource.group, resource.version, one["kind"]) for one in (kind, list_kind))
    told = _older(list_schema(_ref(name), list_kind, _ref(f"{META}.ListMeta")))
    fields = resource.strategy.selectable_fields()
    return {name: selectable(shown, fields), listed: selectable(told, fields)}


def _version_info() -> Json:
    """What ``/version`` answers."""
    required = (
        "major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler",
        "platform",
    )  # fmt: skip
    more = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")
    properties = {name: {"type": "string"} for name in sorted((*required, *more))}
    return {"type": "object", "required": list(required), "properties": properties}


# ── Paths ───────────────────────────────────────────────────────────────────────────────────────────


class _Said(NamedTuple):
    """What operations on one path share."""

    resource: Resource
    item: Json
    listed: Json
    kind: Json
    event: Json = {}
    scope: str = ""  # Namespaced, or ""
    suffix: str = ""  # of a subresource: Status


def _kind(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _paths(resource: Resource, components: Components) -> Json:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    said = _said(resource, components)
    namespace = ("namespace",) if resource.namespaced else ()
    within = "/namespaces/{namespace}" if resource.namespaced else ""
    collection, one = f"{within}/{resource.plural}", f"{within}/{resource.plural}/{{name}}"
    paths: Json = {}

    def add(path: str, verbs: Iterable[str], told: _Said, places: tuple[str, ...] = ()) -> None:
        operations = {_VERBS[verb].method: _operation(verb, told, places) for verb in verbs}
        if operations:
            paths[root + path] = _shared(operations)

    add(collection, (each for each in _COLLECTION if each in resource.verbs), said, namespace)
    add(one, (each for each in _OBJECT if each in resource.verbs), said, ("name", *namespace))
    everywhere = said._replace(scope="", suffix="ForAllNamespaces")
    if resource.namespaced and "list" in resource.verbs:
        add(f"/{resource.plural}", ("list",), everywhere)
    if "watch" in resource.verbs and not resource.is_custom:
        add(f"/watch{one}", ("watch",), said, ("name", *namespace))
        add(f"/watch{collection}", ("watchlist",), said._replace(suffix="List"), namespace)
        if resource.namespaced:
            of_all = everywhere._replace(suffix="ListForAllNamespaces")
            add(f"/watch/{resource.plural}", ("watchlist",), of_all)
    for below in resource.subresources:
        told = None if below.is_connection else _below(below, said, components)
        if told is not None:
            verbs = (each for each in (*_OBJECT, "create") if each in below.verbs)
            add(f"{one}/{below.name}", verbs, told, ("name", *namespace))
    return paths


def _said(resource: Resource, components: Components) -> _Said:
    scope = "Namespaced" if resource.namespaced else ""
    if resource.is_custom:
        for kind in ("Pod", "PodList"):  # for their metadata
            components.add(type_of("", "v1", kind).fields["metadata"].type)
        name = reversed_name(resource.group, resource.version, resource.kind)
        list_kind = resource.list_kind or f"{resource.kind}List"
        listed = reversed_name(resource.group, resource.version, list_kind)
        return _Said(resource, _ref(name), _ref(listed), _kind(resource), scope=scope)
    item = _older(components.add(resource.type, kind=_kind(resource)))
    listed_ = item
    if "list" in resource.verbs:
        list_kind = resource.list_kind or f"{resource.kind}List"
        of_list = type_of(resource.group, resource.version, list_kind)
        listed_ = _older(components.add(of_list, kind={**_kind(resource), "kind": list_kind}))
    return _Said(resource, item, listed_, _kind(resource), _ref(f"{META}.WatchEvent"), scope)


def _below(below: Subresource, said: _Said, components: Components) -> _Said | None:
    resource = said.resource
    suffix = "".join(word.capitalize() for word in below.name.split("/"))
    if below.name == "log":
        return said._replace(item={"type": "string"}, suffix=suffix)
    if below.kind == resource.kind:
        return said._replace(suffix=suffix)
    group, version = (below.group, below.version) if below.version else (resource.group, resource.version)
    try:
        item = _older(components.add(type_of(group, version, below.kind)))
    except KeyError:  # nothing that has a schema
        return None
    kind = {"group": group, "version": version, "kind": below.kind}
    return said._replace(item=item, suffix=suffix, kind=said.kind if resource.is_custom else kind)


def _operation(verb: str, said: _Said, places: tuple[str, ...]) -> Json:
    resource, told = said.resource, _VERBS[verb]
    group, version = camel(resource.group), resource.version.capitalize()
    of_all = "Collection" if verb == "deletecollection" else ""
    forms: tuple[str, ...] = _CUSTOM_FORMS if resource.is_custom else _FORMS
    produces: tuple[str, ...] = (
        (*forms, *_STREAMS) if verb in ("list", "watch", "watchlist") and said.event else forms
    )
    consumes: tuple[str, ...] = forms if resource.is_custom else ("*/*",)
    if verb == "patch":
        consumes = tuple(one for one in _PATCHES if not resource.is_custom or one != _STRATEGIC)
    more = told.parameters
    if resource.is_custom:
        more = _CUSTOM_PARAMETERS.get(verb, more)
    elif said.suffix == "Log":
        more, produces = _LOG, ("text/plain", *forms)
    answer = _answer(verb, said)
    codes = (200,) if verb == "patch" and resource.is_custom else told.codes
    responses: Json = {str(code): {"description": _CODES[code], "schema": answer} for code in codes}
    responses["401"] = {"description": _CODES[401]}
    return {
        "consumes": list(consumes),
        "produces": list(produces),
        "schemes": ["https"],
        "tags": [f"{_lower(group)}_{resource.version}"],
        "operationId": f"{told.word}{group}{version}{of_all}{said.scope}{resource.kind}{said.suffix}",
        "parameters": [
            *_body(verb, said),
            *(_shared_parameter(one) for one in sorted((*more, *places, "pretty"))),
        ],
        "responses": responses,
        "x-kubernetes-action": told.action,
        "x-kubernetes-group-version-kind": said.kind,
    }


def _answer(verb: str, said: _Said) -> Json:
    if verb in ("watch", "watchlist"):
        return said.event
    if verb == "list":
        return said.listed
    resource = said.resource
    returns_it = resource.strategy.returns_deleted and resource.plural not in _SAID_TO_ANSWER_STATUS
    if verb == "deletecollection" or (verb == "delete" and not returns_it):
        return _ref(f"{META}.Status")
    return said.item


def _body(verb: str, said: _Said) -> list[Json]:
    if verb in ("create", "update"):
        return [{"name": "body", "in": "body", "required": True, "schema": said.item}]
    if verb == "patch":
        return [{"name": "body", "in": "body", "required": True, "schema": _ref(f"{META}.Patch")}]
    if verb == "delete" or (verb == "deletecollection" and not said.resource.is_custom):
        return [{"name": "body", "in": "body", "schema": _ref(f"{META}.DeleteOptions")}]
    return []


def _shared(operations: dict[str, Json]) -> Json:
    """The operations of a path; what all of them take is told once."""
    lists = [each["parameters"] for each in operations.values()]
    common = [one for one in lists[0] if one.get("in") != "body" and all(one in each for each in lists)]
    for each in operations.values():
        own = [one for one in each["parameters"] if one not in common]
        if own:
            each["parameters"] = own
        else:
            del each["parameters"]
    return {**operations, "parameters": common}


# ── Parameters ──────────────────────────────────────────────────────────────────────────────────────

_ALL: Final = frozenset({*_WRITE, *_DELETE, *_LIST, *_LOG, *_IN_PATH, "force", "pretty"})


# kubectl looks for these at each operation, and follows no reference.
_LOOKED_FOR: Final = frozenset({"dryRun", "fieldValidation"})


def _shared_parameter(name: str) -> Json:
    return _parameter(name) if name in _LOOKED_FOR else {"$ref": f"#/parameters/{name}"}


def _parameter(name: str) -> Json:
    type_ = "integer" if name in _INTEGERS else "boolean" if name in _BOOLEANS else "string"
    told: dict[str, Any] = {"uniqueItems": True, "type": type_, "name": name, "in": "query"}
    return {**told, "in": "path", "required": True} if name in _IN_PATH else told


# ── Beside the resources ────────────────────────────────────────────────────────────────────────────


def _beside(places: list[tuple[str, str]], components: Components) -> Json:
    """Discovery, the version, and how tokens are checked."""
    for kind in ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"):
        components.meta(kind, ("", "v1"))
    components.schemas.setdefault(f"{META}.Patch", {"type": "object"})
    paths = {
        "/api/": _reading("core", "getCoreAPIVersions", _ref(f"{META}.APIVersions"), _FORMS),
        "/apis/": _reading("apis", "getAPIVersions", _ref(f"{META}.APIGroupList"), _FORMS),
        "/version/": _reading("version", "getCodeVersion", _ref(_VERSION_INFO), (_JSON,)),
    }
    for group, version in places:
        name = camel(group)
        root = f"/apis/{group}/" if group else "/api/"
        if group:
            about = _ref(f"{META}.APIGroup")
            paths[root] = _reading(_lower(name), f"get{name}APIGroup", about, _FORMS)
        operation = f"get{name}{version.capitalize()}APIResources"
        listed = _ref(f"{META}.APIResourceList")
        paths[f"{root}{version}/"] = _reading(f"{_lower(name)}_{version}", operation, listed, _FORMS)
    text: Json = {"type": "string"}
    for path, tag, operation, form in (
        (
            "/.well-known/openid-configuration/",
            "WellKnown",
            "getServiceAccountIssuerOpenIDConfiguration",
            _JSON,
        ),
        ("/openid/v1/jwks/", "openid", "getServiceAccountIssuerOpenIDKeyset", "application/jwk-set+json"),
    ):
        paths[path] = _reading(tag, operation, text, (form,))
        del paths[path]["get"]["consumes"]
    return paths


def _reading(tag: str, operation: str, answer: Json, forms: tuple[str, ...]) -> Json:
    responses = {"200": {"description": "OK", "schema": answer}, "401": {"description": "Unauthorized"}}
    told: Json = {"consumes": list(forms), "produces": list(forms), "schemes": ["https"], "tags": [tag]}
    return {"get": {**told, "operationId": operation, "responses": responses}}


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]
