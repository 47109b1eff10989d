"""How much an object uses, in the names of limit ranges and quotas: ``requests.cpu``, ``pods``, ``count/…``.

Pure; objects are plain JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from setpoint.api.quantity import Quantity
from setpoint.api.scopes import is_meant
from setpoint.server.registry.beginnings import qos_class
from setpoint.server.registry.resources import Object, Resource

Usage = dict[str, Quantity]
_CLASS: Final = ".storageclass.storage.k8s.io/"
_POD_LEVEL: Final = ("cpu", "memory")
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_OLD_NAMES: Final = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")  # before count/
_OF_PODS: Final = frozenset(
    [
        "count/pods",
        "pods",
        *_COMPUTE,
        *(f"{what}.{one}" for what in ("requests", "limits") for one in _COMPUTE),
    ]
)
_OF_SERVICES: Final = frozenset(
    ["count/services", "services", "services.nodeports", "services.loadbalancers"]
)
_OF_CLAIMS: Final = ("persistentvolumeclaims", "requests.storage")
# Names that a container must say something about, where a quota limits them.
_SAID: Final = frozenset(["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"])


def amounts(found: Mapping[str, Any] | None) -> Usage:
    return {name: Quantity(amount) for name, amount in (found or {}).items()}


def add(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    found = dict(one)
    _add_to(found, other)
    return found


def _add_to(found: Usage, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        found[name] = found[name] + amount if name in found else amount


def _raise_to(found: Usage, least: Mapping[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in found or found[name] < amount:
            found[name] = amount


# ── Pods ────────────────────────────────────────────────────────────────────────────────────────────


def pod_demand(spec: Object, what: str, *, has_overhead: bool = True) -> Usage:
    """What a pod asks for at most at once: its containers, or an init container, with its sidecars."""
    running: Usage = {}
    for container in spec.get("containers") or ():
        _add_to(running, asked(container, what))
    sidecars: Usage = {}
    highest: Usage = {}
    for container in spec.get("initContainers") or ():
        own = asked(container, what)
        at_once = {name: sidecars[name] + one if name in sidecars else one for name, one in own.items()}
        if container.get("restartPolicy") == "Always":
            _add_to(running, own)
            sidecars |= at_once
        _raise_to(highest, at_once)  # of the rest, what sidecars ask for was counted as they began
    found = running
    _raise_to(found, highest)
    whole = amounts((spec.get("resources") or {}).get(what))
    found |= {name: amount for name, amount in whole.items() if _is_pod_level(name)}
    if has_overhead:
        overhead = amounts(spec.get("overhead"))
        found = add(
            found, {name: one for name, one in overhead.items() if what == "requests" or found.get(name)}
        )
    return found


def asked(container: Object, what: str) -> Usage:
    return amounts((container.get("resources") or {}).get(what))


def _compute(requests: Usage, limits: Usage) -> Usage:
    used: Usage = {"pods": Quantity(1)}
    for name, amount in requests.items():
        is_huge = name.startswith("hugepages-")
        if name in _COMPUTE or is_huge:
            used[name] = amount
        if name in _COMPUTE or is_huge or "/" in name:
            used[f"requests.{name}"] = amount
    used |= {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}
    return used


def _pod(obj: Object) -> Usage:
    counted: Usage = {"count/pods": Quantity(1)}
    if (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return counted
    spec = obj["spec"]
    return counted | _compute(pod_demand(spec, "requests"), pod_demand(spec, "limits"))


def unsaid(pod: Object, names: Iterable[str]) -> str:
    """Which containers say nothing about what a quota limits; "" if all do, or the pod does for them."""
    if _is_whole(pod["spec"]):
        return ""
    wanted = sorted(_SAID.intersection(names))
    missing: dict[str, set[str]] = {}
    for container in (*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())):
        said = _compute(asked(container, "requests"), asked(container, "limits"))
        for name in wanted:
            if name not in said:
                missing.setdefault(name, set()).add(container["name"])
    told = [f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)]
    return f"must specify {'; '.join(told)}" if told else ""


def _is_whole(spec: Object) -> bool:
    """Whether a pod says what it asks for as a whole."""
    resources = spec.get("resources") or {}
    return any(_is_pod_level(name) for what in ("requests", "limits") for name in resources.get(what) or ())


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def is_ending(pod: Object) -> bool:
    """Whether it is to end by itself."""
    return int((pod.get("spec") or {}).get("activeDeadlineSeconds") or -1) >= 0


def is_in_scope(term: Mapping[str, Any], obj: Object, resource: Resource) -> bool:
    """Scopes are of pods and of claims: nothing else is in one."""
    if resource.stored == "persistentvolumeclaims":
        return term["scopeName"] == "VolumeAttributesClass" and _is_meant(term, _attribute_classes(obj))
    return resource.stored == "pods" and _is_pod_in_scope(term, obj)


def _is_pod_in_scope(term: Mapping[str, Any], pod: Object) -> bool:
    spec = pod["spec"]
    name: str = term["scopeName"]
    match name:
        case "Terminating" | "NotTerminating":
            return is_ending(pod) == (name == "Terminating")
        case "BestEffort" | "NotBestEffort":
            is_best = qos_class(spec) == "BestEffort"
            return is_best == (name == "BestEffort")
        case "PriorityClass":
            return _is_meant(term, {spec["priorityClassName"]} if spec.get("priorityClassName") else ())
        case "CrossNamespacePodAffinity":
            return _is_across_namespaces(spec)
    return False


def _is_meant(term: Mapping[str, Any], names: Collection[str]) -> bool:
    return is_meant(term["operator"], term.get("values") or (), names)


def _attribute_classes(claim: Object) -> set[str]:
    """What a claim is to have, has, and is on its way to."""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    found = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in found if name}


def _is_across_namespaces(spec: Object) -> bool:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        one = affinity.get(kind) or {}
        terms = list(one.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = one.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


# ── Other kinds ─────────────────────────────────────────────────────────────────────────────────────


def _service(obj: Object) -> Usage:
    spec, one = obj["spec"], Quantity(1)
    used: Usage = {
        "count/services": one,
        "services": one,
        "services.loadbalancers": Quantity(0),
        "services.nodeports": Quantity(0),
    }
    kind, ports = spec.get("type"), spec.get("ports") or []
    if kind in ("NodePort", "LoadBalancer"):
        allocates = kind == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        number = len(ports) if allocates else sum(bool(each.get("nodePort")) for each in ports)
        used["services.nodeports"] = Quantity(number)
    if kind == "LoadBalancer":
        used["services.loadbalancers"] = one
    return used


def _claim(obj: Object) -> Usage:
    one = Quantity(1)
    used: Usage = {"persistentvolumeclaims": one, "count/persistentvolumeclaims": one}
    wanted = amounts((obj["spec"].get("resources") or {}).get("requests")).get("storage")
    allocated = amounts((obj.get("status") or {}).get("allocatedResources")).get("storage")
    if wanted is not None:
        used["requests.storage"] = max(wanted, allocated) if allocated is not None else wanted
    old = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if name := old or obj["spec"].get("storageClassName"):
        used |= {f"{name}{_CLASS}{what}": used[what] for what in _OF_CLAIMS if what in used}
    return used


# ── Any kind ────────────────────────────────────────────────────────────────────────────────────────


def used_by(obj: Object, resource: Resource) -> Usage:
    match resource.stored:
        case "pods":
            return _pod(obj)
        case "services":
            return _service(obj)
        case "persistentvolumeclaims":
            return _claim(obj)
    return {name: Quantity(1) for name in _counts(resource)}


def _counts(resource: Resource) -> tuple[str, ...]:
    count = f"count/{resource.qualified}"
    return (count, resource.plural) if resource.stored in _OLD_NAMES else (count,)


def limited(names: Iterable[str], resource: Resource) -> list[str]:
    """Those names that have to do with objects of this kind."""
    match resource.stored:
        case "pods":
            return [name for name in names if name in _OF_PODS or _is_extended(name)]
        case "services":
            return [name for name in names if name in _OF_SERVICES]
        case "persistentvolumeclaims":
            return [name for name in names if name == "count/persistentvolumeclaims" or _is_of_claims(name)]
    counts = _counts(resource)
    return [name for name in names if name in counts]


def _is_extended(name: str) -> bool:
    is_ours = "kubernetes.io/" in name and "deviceclass.resource.kubernetes.io/" not in name
    return name.startswith(("hugepages-", "requests.hugepages-")) or (
        name.startswith("requests.") and "/" in name and not is_ours
    )


def _is_of_claims(name: str) -> bool:
    return name in _OF_CLAIMS or any(name.endswith(_CLASS + one) for one in _OF_CLAIMS)
