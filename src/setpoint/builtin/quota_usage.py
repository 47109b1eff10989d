"""Decides how much of a ResourceQuota an object uses.  Pure.

The names are those of Kubernetes: ``pods``, ``requests.cpu`` (also ``cpu``), ``limits.memory``,
``services.nodeports``, ``requests.storage``, ``<class>.storageclass.storage.k8s.io/…`` and, for any kind,
``count/<plural>.<group>``.  A pod that has ended uses nothing but its ``count/pods``.

Where a quota has scopes, only pods of all of them count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from setpoint.api.quantity import Quantity
from setpoint.kube.core.v1 import (
    Container,
    PersistentVolumeClaim,
    Pod,
    ResourceQuota,
    ScopedResourceSelectorRequirement,
    Service,
)

COUNT: Final = "count/"
_CLASS: Final = ".storageclass.storage.k8s.io/"
_COMPUTE: Final = {"cpu", "memory", "ephemeral-storage"}
_SERVICES: Final = {"services", "services.nodeports", "services.loadbalancers"}
OBJECTS: Final = {  # names from before count/
    "configmaps": ("", "configmaps"),
    "replicationcontrollers": ("", "replicationcontrollers"),
    "resourcequotas": ("", "resourcequotas"),
    "secrets": ("", "secrets"),
}

Usage = dict[str, Quantity]


def counted_resource(name: str) -> tuple[str, str] | None:
    """The group and plural whose objects a name counts, if it does no more than that."""
    if name.startswith(COUNT):
        plural, _, group = name.removeprefix(COUNT).partition(".")
        return group, plural
    return OBJECTS.get(name)


def is_of_pods(name: str) -> bool:
    return name == "pods" or name in _COMPUTE or name.partition(".")[0] in ("requests", "limits")


def is_of_services(name: str) -> bool:
    return name in _SERVICES


def is_of_claims(name: str) -> bool:
    return name in ("persistentvolumeclaims", "requests.storage") or _CLASS in name


# ---- pods ------------------------------------------------------------------------------------------


def pod_usage(pod: Pod) -> Usage:
    """What a pod uses; nothing once it has ended."""
    if (pod.status.phase or "") in ("Succeeded", "Failed"):
        return {}
    requests, limits = _demand(pod, "requests"), _demand(pod, "limits")
    used: Usage = {"pods": Quantity(1)}
    for name, amount in requests.items():
        used[f"requests.{name}"] = amount
        if name in _COMPUTE:
            used[name] = amount
    used |= {f"limits.{name}": amount for name, amount in limits.items()}
    return used


def _demand(pod: Pod, what: str) -> Usage:
    """What a pod asks for at most at once: its containers, or an init container, with its sidecars."""
    running: Usage = {}
    for container in pod.spec.containers:
        running = add(running, _asked(container, what))
    sidecars: Usage = {}
    highest: Usage = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            sidecars = add(sidecars, _asked(container, what))
            highest = _higher(highest, sidecars)
        else:
            highest = _higher(highest, add(sidecars, _asked(container, what)))
    found = _higher(add(running, sidecars), highest)
    overhead = pod.spec.overhead or {}
    return add(
        found, {name: value for name, value in overhead.items() if what == "requests" or name in found}
    )


def _asked(container: Container, what: str) -> Mapping[str, Quantity]:
    if container.resources is None:
        return {}
    return (container.resources.requests if what == "requests" else container.resources.limits) or {}


def add(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    found = dict(one)
    for name, amount in other.items():
        found[name] = found[name] + amount if name in found else amount
    return found


def _higher(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    found = dict(one)
    for name, amount in other.items():
        if name not in found or found[name] < amount:
            found[name] = amount
    return found


def in_scopes(quota: ResourceQuota, pod: Pod) -> bool:
    """Whether a quota is about a pod."""
    selector = quota.spec.scope_selector
    terms = [
        ScopedResourceSelectorRequirement(operator="Exists", scope_name=each)
        for each in quota.spec.scopes or ()
    ]
    terms += (selector.match_expressions if selector is not None else None) or []
    return all(_is_in(each, pod) for each in terms)


def has_scopes(quota: ResourceQuota) -> bool:
    return bool(quota.spec.scopes) or quota.spec.scope_selector is not None


def _is_in(term: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    match term.scope_name:
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "PriorityClass":
            return _has_class(term, pod.spec.priority_class_name or "")
        case "CrossNamespacePodAffinity":
            return _is_across_namespaces(pod)
    return False


def _is_best_effort(pod: Pod) -> bool:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    return not any(
        name in ("cpu", "memory") and amount
        for each in containers
        for name, amount in [*_asked(each, "requests").items(), *_asked(each, "limits").items()]
    )


def _has_class(term: ScopedResourceSelectorRequirement, name: str) -> bool:
    match term.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in (term.values or ())
    return bool(name) and name not in (term.values or ())


def _is_across_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    for each in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if each is None:
            continue
        terms = [*(each.required_during_scheduling_ignored_during_execution or ())]
        preferred = each.preferred_during_scheduling_ignored_during_execution or ()
        terms += [weighted.pod_affinity_term for weighted in preferred]
        if any(term.namespaces or term.namespace_selector is not None for term in terms):
            return True
    return False


# ---- other kinds -----------------------------------------------------------------------------------


def service_usage(service: Service) -> Usage:
    """What a Service uses."""
    spec, used = service.spec, {"services": Quantity(1)}
    if spec.type not in ("NodePort", "LoadBalancer"):
        return used
    ports = spec.ports or []
    allocates = spec.type == "NodePort" or spec.allocate_load_balancer_node_ports is not False
    number = len(ports) if allocates else sum(bool(each.node_port) for each in ports)
    used["services.nodeports"] = Quantity(number)
    if spec.type == "LoadBalancer":
        used["services.loadbalancers"] = Quantity(1)
    return used


def claim_usage(claim: PersistentVolumeClaim) -> Usage:
    """What a claim uses."""
    resources = claim.spec.resources
    asked = ((resources.requests if resources is not None else None) or {}).get("storage", Quantity(0))
    used: Usage = {"persistentvolumeclaims": Quantity(1), "requests.storage": asked}
    if claim.spec.storage_class_name:
        used |= {f"{claim.spec.storage_class_name}{_CLASS}{name}": value for name, value in used.items()}
    return used


def total(names: Iterable[str], uses: Iterable[Mapping[str, Quantity]]) -> Usage:
    """How much of each name is used; nothing, where nobody uses any."""
    sums: Usage = {}
    for use in uses:
        sums = add(sums, use)
    return {name: sums.get(name, Quantity(0)) for name in names}
