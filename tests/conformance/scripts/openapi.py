"""The schemas of every kind, built-in and custom: names, types, what is required, lists, patches and kinds.

Descriptions are left out of both servers' answers; so are the paths that a real server lists once more, for
watches of an old kind.
"""

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


SCRIPTS = [Script("schemas", _schemas())]
