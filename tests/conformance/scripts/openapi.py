"""The schemas of every kind, built-in and custom: names, types, what is required, lists, patches and kinds.

Descriptions are left out of both servers' answers; so are the paths that a real server lists once more, for
watches of an old kind.
"""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from typing import Any

from tests.conformance.asking import Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, SCHEMA, definition

_GROUP = "openapi.example.com"
_DOCUMENTS = (
    "api/v1",
    *(
        f"apis/{group}/v1"
        for group in (
            "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
            "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
            "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
            "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io",
            "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
        )
    ),
    "apis/autoscaling/v2",
)  # fmt: skip


def shape(document: Json) -> Json:
    """The schemas without their descriptions, and the paths with their methods."""
    if not isinstance(document, dict) or "components" not in document:
        return document
    paths = {
        path: sorted(method for method in operations if method not in ("parameters", "description"))
        for path, operations in document["paths"].items()
        if "/watch/" not in path
    }
    return {"schemas": _without_descriptions(document["components"]["schemas"]), "paths": paths}


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_descriptions(one)
            for name, one in value.items()
            if name != "description" or not isinstance(one, str)
        }
    return [_without_descriptions(one) for one in value] if isinstance(value, list) else value


def _schemas() -> list[Step]:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    below = {"status": {}, "scale": scale}
    crd = definition("foos", "Foo", SCHEMA, group=_GROUP, subresources=below)
    return [
        *(Step("GET", f"/openapi/v3/{one}", name=one.replace(".", "-"), shape=shape) for one in _DOCUMENTS),
        Step("POST", CRDS, crd, is_quiet=True),
        Step("GET", f"/apis/{_GROUP}/v1/foos", until=200, is_quiet=True),
        Step("GET", f"/openapi/v3/apis/{_GROUP}/v1", until=200, name="a custom kind", shape=shape),
        Step("DELETE", f"{CRDS}/foos.{_GROUP}", is_quiet=True),
    ]


# ---- the older document ----------------------------------------------------------------------------------

_V2_GROUP = "older.example.com"
_OPEN = {
    "type": "object",
    "description": "what is wanted",
    "properties": {
        "limited": {"type": "integer", "format": "int32", "default": 1, "minimum": 0, "maximum": 9},
        "absent": {"type": "string", "nullable": True, "enum": ["a", "ab"], "maxLength": 5},
        "either": {"x-kubernetes-int-or-string": True, "pattern": "^1"},
        "both": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "more": {"type": "object", "required": ["a"], "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
        "whole": {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["spec"], "properties": {"spec": {"type": "object"}, "metadata": {"type": "object"}}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": True, "minLength": 1}},
        "lost map": {"type": "object", "nullable": True, "additionalProperties": {"type": "string"}},
        "any map": {"type": "object", "nullable": True, "additionalProperties": True},
        "list": {"type": "array", "nullable": True, "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
        "list of open": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "no": {"type": "string", "not": {"enum": ["q"]}, "allOf": [{"maxLength": 3}]},
        "told": {"type": "string", "example": "e", "title": "t", "externalDocs": {"url": "http://x"}, "format": "date-time"},
        "number": {"type": "number", "multipleOf": 2, "exclusiveMinimum": True, "minimum": 1, "format": "double"},
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "minProperties": 1, "maxProperties": 4, "additionalProperties": {"type": "object"}},
        "key": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]},
    },
}  # fmt: skip


def older_shape(document: Json) -> Json:
    """Definitions and paths without their descriptions, with each parameter where it is taken."""
    if not isinstance(document, dict) or "definitions" not in document:
        return document
    bare = _without_descriptions(document)
    known = {f"#/parameters/{name}": one for name, one in bare["parameters"].items()}
    for operations in bare["paths"].values():
        for told in ({"parameters": operations.get("parameters", [])}, *map(_dict, operations.values())):
            for number, one in enumerate(told.get("parameters", [])):
                told["parameters"][number] = known.get(one.get("$ref", ""), one)
    del bare["parameters"]
    return bare


def _dict(value: Json) -> Json:
    return value if isinstance(value, dict) else {}


def _of_group(group: str) -> Any:
    def shape(document: Json) -> Json:
        found = older_shape(document)
        start = ".".join(reversed(group.split(".")))
        return {
            "definitions": {
                name: one for name, one in found["definitions"].items() if name.startswith(start)
            },
            "paths": {path: one for path, one in found["paths"].items() if f"/{group}/" in path},
        }

    return shape


_V2 = "/openapi/v2"
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def _older() -> list[Step]:
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": _OPEN}}
    scale = {"specReplicasPath": ".spec.limited", "statusReplicasPath": ".status.n"}
    crds = [
        definition(
            "ones", "One", schema, group=_V2_GROUP, subresources={"status": {}, "scale": scale},
            selectableFields=[{"jsonPath": ".spec.key"}],
        ),
        definition("twos", "Two", {"type": "object"}, group=_V2_GROUP, scope="Cluster"),
        definition(
            "threes", "Three", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, group=_V2_GROUP
        ),
    ]  # fmt: skip
    return [
        Step("GET", _V2, name="all", shape=older_shape),
        Step("GET", _V2, name="protobuf", headers={"Accept": _V2_PROTOBUF}),
        Step("GET", _V2, name="json or protobuf", headers={"Accept": f"application/json,{_V2_PROTOBUF}"}, shape=lambda body: type(body).__name__),
        Step("GET", _V2, name="text", headers={"Accept": "text/plain"}),
        Step("GET", _V2, name="yaml", headers={"Accept": "application/yaml"}),
        Step("GET", f"{_V2}/more", name="more"),
        *(Step("POST", CRDS, crd, is_quiet=True) for crd in crds),
        Step("GET", _V2, is_quiet=True, until_has="v1.OneList"),
        Step("GET", _V2, is_quiet=True, until_has="v1.TwoList"),
        Step("GET", _V2, name="custom kinds", until_has="v1.ThreeList", shape=_of_group(_V2_GROUP)),
        *(Step("DELETE", f"{CRDS}/{one}.{_V2_GROUP}", is_quiet=True) for one in ("ones", "twos", "threes")),
    ]  # fmt: skip


SCRIPTS = [Script("schemas", _schemas()), Script("older schemas", _older())]
