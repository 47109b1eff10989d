"""APIServices: who answers for each version of a group, which is always this server.

Those of built-in groups are there from the beginning; those of custom ones come and go with the definitions
that serve them.  Pure: ``bootstrap.py`` and ``crds.py`` write what is told here.

Not here: whether an APIService that names a Service can be reached.  Nothing is handed on to others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from setpoint.server.registry.resources import Object

GROUP: Final = "apiregistration.k8s.io"
STORED: Final = f"apiservices.{GROUP}"
_MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
# Kubernetes' own, in their order: how far up a group is listed.
_GROUPS: Final = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "storagemigration.k8s.io": 15800,
}
_VERSIONS: Final = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}
_VERSION: Final = 15
_CUSTOM_GROUP, _CUSTOM_VERSION = 1000, 100


def built_in(served: Iterable[tuple[str, str]]) -> list[Object]:
    """Of each (group, version) that is served; the group of APIServices has none itself."""
    return [
        _made(group, version, _GROUPS[group], _VERSIONS.get((group, version), _VERSION), "onstart")
        for group, version in dict.fromkeys(served)
        if group in _GROUPS
    ]


def of_definitions(definitions: Iterable[Object]) -> dict[str, Object]:
    """By name, those of the versions that definitions serve."""
    found = [
        _made(one["spec"]["group"], version["name"], _CUSTOM_GROUP, _CUSTOM_VERSION, "true")
        for one in definitions
        for version in one["spec"].get("versions") or ()
        if version.get("served")
    ]
    return {one["metadata"]["name"]: one for one in found}


def is_of_definitions(obj: Object) -> bool:
    """Whether it goes with the last definition that serves its version: others' are left alone."""
    return bool((obj["metadata"].get("labels") or {}).get(_MANAGED) == "true")


def _made(group: str, version: str, minimum: int, priority: int, managed: str) -> Object:
    return {
        "metadata": {"name": f"{version}.{group}", "labels": {_MANAGED: managed}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": minimum,
            "versionPriority": priority,
        },
    }
