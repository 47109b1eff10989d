"""What a new object of a built-in kind begins with, beside defaults: its first status, what admission adds.

Nobody owns these fields: they are set after managedFields are.  Pure; in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from setpoint.api.quantity import Quantity
from setpoint.server.registry import allocation, pods, volumes
from setpoint.server.registry.resources import Object

PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TOLERATED_SECONDS: Final = 300
_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def begin(stored: str, obj: Object) -> None:
    """Kinds that begin with nothing of their own stay as they are."""
    found = _BEGINNINGS.get(stored)
    if found is not None:
        found(obj)


# ── Pods ────────────────────────────────────────────────────────────────────────────────────────────


def add_tolerations(spec: Object) -> None:
    """Every pod stays for a while on a node that is in trouble."""
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_tolerates(one, key) for one in spec.get("tolerations") or []):
            toleration = {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _TOLERATED_SECONDS,
            }
            spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]


def _pod(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("priority", PRIORITIES.get(spec.get("priorityClassName", ""), 0))
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    pods.add_label_keys(spec, obj["metadata"].get("labels") or {})
    pods.fill_resources(spec)
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if conditions := pods.gated(spec, obj["metadata"]["creationTimestamp"]):
        obj["status"]["conditions"] = conditions


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def qos_class(spec: Object) -> str:
    """How a pod fares when memory runs short, from what its containers ask for."""
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    asked = [one.get("resources") or {} for one in containers]
    if spec.get("resources"):
        asked = [spec["resources"]]
    requests = [_compute(one.get("requests")) for one in asked]
    limits = [_compute(one.get("limits")) for one in asked]
    if not any(requests) and not any(limits):
        return "BestEffort"
    is_guaranteed = all(
        set(limit) == {"cpu", "memory"} and (not request or request == limit)
        for request, limit in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _compute(amounts: Mapping[str, Any] | None) -> dict[str, Quantity]:
    found = {name: Quantity(amount) for name, amount in (amounts or {}).items() if name in ("cpu", "memory")}
    return {name: amount for name, amount in found.items() if amount}


# ── The others ──────────────────────────────────────────────────────────────────────────────────────


def _namespace(obj: Object) -> None:
    finalizers = obj.setdefault("spec", {}).get("finalizers") or []
    if "kubernetes" not in finalizers:
        obj["spec"]["finalizers"] = [*finalizers, "kubernetes"]
    obj["status"] = {"phase": "Active"}


def add_taint(obj: Object) -> None:
    """A new node takes no pods until somebody says that it is ready."""
    spec = obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(one.get("key") == _NOT_READY for one in taints):
        spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


def _volume(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}


def _claim(obj: Object) -> None:
    volumes.fill_sources(obj.setdefault("spec", {}))
    obj["status"] = {"phase": "Pending"}


def name_secrets(obj: Object) -> None:
    """Of the Secrets of a ServiceAccount only the names are kept: they are in its namespace."""
    if obj.get("secrets"):
        obj["secrets"] = [{"name": one["name"]} if one.get("name") else {} for one in obj["secrets"]]


def drop_topology(obj: Object) -> None:
    """What an older version of EndpointSlices had in its place is not written any more."""
    for one in obj.get("endpoints") or ():
        one.pop("deprecatedTopology", None)


def protect(obj: Object, finalizer: str) -> None:
    """It is not deleted while it is used."""
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def _definition(obj: Object) -> None:
    versions = obj["spec"].get("versions") or []
    stored = [one["name"] for one in versions if one.get("storage")][:1]
    names = {"plural": "", "kind": ""}
    obj["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored or None}


def _api_service(obj: Object) -> None:
    """One without a Service is served here; whether another one is there is for others to find out."""
    if (obj.get("spec") or {}).get("service") is None:
        condition = {"type": "Available", "status": "True", "reason": "Local"}
        told = "Local APIServices are always available"
        since = obj["metadata"]["creationTimestamp"]
        obj["status"] = {"conditions": [{**condition, "message": told, "lastTransitionTime": since}]}


_BEGINNINGS: Final[Mapping[str, Callable[[Object], None]]] = {
    "apiservices.apiregistration.k8s.io": _api_service,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
    "endpointslices.discovery.k8s.io": drop_topology,
    "namespaces": _namespace,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": _pod,
    "serviceaccounts": name_secrets,
    "services": allocation.fill,
}
