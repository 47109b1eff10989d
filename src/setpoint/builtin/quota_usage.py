"""Decides how much of a ResourceQuota an object uses.  Pure.

The names are those of Kubernetes: ``pods``, ``requests.cpu`` (also ``cpu``), ``limits.memory``,
``services.nodeports``, ``requests.storage``, ``<class>.storageclass.storage.k8s.io/…`` and, for any kind,
``count/<plural>.<group>``.  A pod that has ended uses nothing but its ``count/pods``.

Where a quota has scopes, only pods, or claims, of all of them count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from setpoint.api.quantity import Quantity
from setpoint.api.scopes import is_meant
from setpoint.kube.core.v1 import (
    Container,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    ResourceQuota,
    ScopedResourceSelectorRequirement,
    Service,
)

COUNT: Final = "count/"
_COUNT_PODS, _COUNT_CLAIMS = "count/pods", "count/persistentvolumeclaims"  # which scopes choose from
_CLASS: Final = ".storageclass.storage.k8s.io/"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
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
    if name in (_COUNT_PODS, _COUNT_CLAIMS):
        return None
    if name.startswith(COUNT):
        plural, _, group = name.removeprefix(COUNT).partition(".")
        return group, plural
    return OBJECTS.get(name)


def is_of_pods(name: str) -> bool:
    is_compute = name in _COMPUTE or name.partition(".")[0] in ("requests", "limits")
    return is_compute or name in ("pods", _COUNT_PODS)


def is_of_services(name: str) -> bool:
    return name in _SERVICES


def is_of_claims(name: str) -> bool:
    return name in ("persistentvolumeclaims", "requests.storage", _COUNT_CLAIMS) or _CLASS in name


# ---- pods ------------------------------------------------------------------------------------------


def pod_usage(pod: Pod) -> Usage:
    """What a pod uses; no more than its count once it has ended."""
    used: Usage = {_COUNT_PODS: Quantity(1)}
    if (pod.status.phase or "") in ("Succeeded", "Failed"):
        return used
    requests, limits = _demand(pod, "requests"), _demand(pod, "limits")
    used["pods"] = Quantity(1)
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
    found |= {name: amount for name, amount in _asked(pod.spec, what).items() if _is_pod_level(name)}
    overhead = pod.spec.overhead or {}
    return add(
        found, {name: value for name, value in overhead.items() if what == "requests" or found.get(name)}
    )


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _asked(one: Container | PodSpec, what: str) -> Mapping[str, Quantity]:
    """By a container, or by the pod for all of them."""
    if one.resources is None:
        return {}
    return (one.resources.requests if what == "requests" else one.resources.limits) or {}


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


def in_scopes(quota: ResourceQuota, obj: Pod | PersistentVolumeClaim) -> bool:
    """Whether a quota is about a pod, or a claim."""
    selector = quota.spec.scope_selector
    terms = [
        ScopedResourceSelectorRequirement(operator="Exists", scope_name=each)
        for each in quota.spec.scopes or ()
    ]
    terms += (selector.match_expressions if selector is not None else None) or []
    if isinstance(obj, Pod):
        return all(_is_in(each, obj) for each in terms)
    return all(_is_claim_in(each, obj) for each in terms)


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
            name = pod.spec.priority_class_name
            return is_meant(term.operator, term.values or (), {name} if name else ())
        case "CrossNamespacePodAffinity":
            return _is_across_namespaces(pod)
    return False


def _is_best_effort(pod: Pod) -> bool:
    asking: list[Container | PodSpec] = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    if pod.spec.resources is not None and (pod.spec.resources.requests or pod.spec.resources.limits):
        asking = [pod.spec]
    return not any(
        name in ("cpu", "memory") and amount
        for each in asking
        for name, amount in [*_asked(each, "requests").items(), *_asked(each, "limits").items()]
    )


def _is_claim_in(term: ScopedResourceSelectorRequirement, claim: PersistentVolumeClaim) -> bool:
    if term.scope_name != "VolumeAttributesClass":
        return False
    change = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        change.target_volume_attributes_class_name if change is not None else None,
    )
    return is_meant(term.operator, term.values or (), {name for name in names if name})


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
    allocated = (claim.status.allocated_resources or {}).get("storage", Quantity(0))
    used: Usage = {"persistentvolumeclaims": Quantity(1), "requests.storage": max(asked, allocated)}
    if name := (claim.metadata.annotations or {}).get(_OLD_CLASS) or claim.spec.storage_class_name:
        used |= {f"{name}{_CLASS}{what}": value for what, value in used.items()}
    return used | {_COUNT_CLAIMS: Quantity(1)}


def total(names: Iterable[str], uses: Iterable[Mapping[str, Quantity]]) -> Usage:
    """How much of each name is used; nothing, where nobody uses any."""
    sums: Usage = {}
    for use in uses:
        sums = add(sums, use)
    return {name: sums.get(name, Quantity(0)) for name in names}
