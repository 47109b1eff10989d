"""What becomes of a pod where its writer has no say: what all of it asks for, whom it keeps away, its gates.

``fill_resources`` and ``add_label_keys`` complete the spec of a new pod, ``gated`` says why it is not brought
to a node; ``keep_resources``, ``keep_status`` and ``resize`` are for one that takes another's place.  Nobody
owns what is filled in here: managedFields are set before.  Pure; in place.

Used by ``beginnings.py`` and ``builtins.py``.  Not here: defaults, as templates have them (``defaults/``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from setpoint.api.quantity import Quantity
from setpoint.server.registry.metadata import keep
from setpoint.server.registry.resources import Object

_SHARED: Final = ("cpu", "memory")  # of which more may be promised than there is
HUGE: Final = "hugepages-"
_CONTAINERS: Final = ("containers", "initContainers")
_RESIZED: Final = ("resources", "resizePolicy")

Amounts = dict[str, Quantity]
Json = dict[str, Any]


# ── What all of it asks for ─────────────────────────────────────────────────────────────────────────


def fill_resources(spec: Object) -> None:
    """A pod that says what all of it asks for says so of everything that its containers ask for."""
    own: Json = spec.get("resources") or {}
    requests, limits = dict(own.get("requests") or {}), dict(own.get("limits") or {})
    if not requests and not limits:
        return
    most = together(spec, "limits")
    for name, amount in most.items():
        if name.startswith(HUGE) and name not in requests:
            limits.setdefault(name, str(amount))
    for name, amount in together(spec, "requests").items():
        if name in _SHARED:
            requests.setdefault(name, str(amount))
    for name, limit in limits.items():
        if _is_whole(name):
            requests.setdefault(name, limit)
    for name, request in requests.items():
        if _is_whole(name) and name in most and name not in limits and _is_limited(spec, name):
            limits[name] = request if Quantity(request) > most[name] else str(most[name])
    spec["resources"] = own | {
        side: amounts for side, amounts in (("requests", requests), ("limits", limits)) if amounts
    }


def all_requests(spec: Object) -> Amounts:
    """What a node must have for it."""
    found = together(spec, "requests")
    found |= {name: amount for name, amount in amounts_of(spec, "requests").items() if _is_whole(name)}
    _add(found, {name: Quantity(amount) for name, amount in (spec.get("overhead") or {}).items()})
    return found


def keep_resources(spec: Object, before: Object) -> None:
    """Who does not know of them does not take them away."""
    if spec.get("resources") is None and before.get("resources") is not None:
        spec["resources"] = before["resources"]


def _is_whole(name: str) -> bool:
    """Whether a pod can ask for it as a whole."""
    return name in _SHARED or name.startswith(HUGE)


def _is_limited(spec: Object, name: str) -> bool:
    """Whether each of its containers has a limit of it."""
    containers = [one for field in (*_CONTAINERS, "ephemeralContainers") for one in spec.get(field) or ()]
    return all(name in amounts_of(one, "limits") for one in containers)


def together(spec: Object, side: str) -> Amounts:
    """Containers run at once; those that initialize one after another, beside the sidecars before them."""
    running: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, amounts_of(container, side))
    for container in spec.get("initContainers") or ():
        amounts = amounts_of(container, side)
        if container.get("restartPolicy") == "Always":
            _add(running, amounts)
            _add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            _add(amounts, sidecars)
        _raise(peak, amounts)
    _raise(running, peak)
    return running


def amounts_of(container: Object, side: str) -> Amounts:
    """What it has of everything."""
    amounts: Mapping[str, Any] = (container.get("resources") or {}).get(side) or {}
    return {name: Quantity(amount) for name, amount in amounts.items()}


def _add(amounts: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        amounts[name] = amounts[name] + amount if name in amounts else amount


def _raise(amounts: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in amounts or amount > amounts[name]:
            amounts[name] = amount


# ── Whom it keeps away, and its gates ───────────────────────────────────────────────────────────────


def add_label_keys(spec: Object, labels: Mapping[str, str]) -> None:
    """Keys of labels that select select by the values that the pod itself has."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for when in ("preferred", "required"):
            for term in (affinity.get(kind) or {}).get(f"{when}DuringSchedulingIgnoredDuringExecution") or ():
                wanted = term.get("podAffinityTerm") or {} if when == "preferred" else term
                _select(wanted, wanted.get("matchLabelKeys"), "In", labels)
                _select(wanted, wanted.get("mismatchLabelKeys"), "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _select(constraint, constraint.get("matchLabelKeys"), "In", labels)


def _select(term: Object, keys: Iterable[str] | None, operator: str, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return  # it selects none
    known = [key for key in keys or () if key in labels]
    more = [{"key": key, "operator": operator, "values": [labels[key]]} for key in known]
    if more:
        term["labelSelector"] = {
            **selector,
            "matchExpressions": [*(selector.get("matchExpressions") or ()), *more],
        }


def gated(spec: Object, now: str) -> list[Json]:
    """The conditions of a new pod: one that has gates waits for somebody to open them."""
    if not spec.get("schedulingGates"):
        return []
    told = "Scheduling is blocked due to non-empty scheduling gates"
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": told}
    return [{**condition, "lastTransitionTime": now}]


# ── In another's place ──────────────────────────────────────────────────────────────────────────────


def keep_status(new: Object, old: Object) -> None:
    """What who reports on a pod may leave out, and does not take away by that."""
    keep(new["metadata"], old["metadata"], "ownerReferences")
    status, before = new.get("status") or {}, old.get("status") or {}
    new["status"] = status
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name):
            keep(status, before, name)
    for name in _CLAIMED:
        if status.get(name) is None:
            keep(status, before, name)
    seen: dict[str, list[int]] = {}
    for one in before.get("conditions") or ():
        seen.setdefault(one.get("type", ""), []).append(one.get("observedGeneration") or 0)
    for one in status.get("conditions") or ():
        generations = seen.get(one.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and not one.get("observedGeneration"):
            one["observedGeneration"] = generation


_CLAIMED: Final = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)


def resize(new: Object, old: Object) -> None:
    """What it asks for is taken, and nothing else; containers that are others are left to validation."""
    said, before = new.get("spec") or {}, old["spec"]
    if any(len(said.get(field) or ()) != len(before.get(field) or ()) for field in _CONTAINERS):
        return
    new["spec"] = spec = {**before}
    for field in _CONTAINERS:
        if before.get(field):
            spec[field] = _resized(said[field], before[field])
    spec.pop("resources", None)
    if said.get("resources") is not None:
        spec["resources"] = said["resources"]
    keep_resources(spec, before)
    fill_resources(spec)


def _resized(containers: list[Json], before: list[Json]) -> list[Json]:
    if any(one.get("name") != old.get("name") for one, old in zip(containers, before, strict=True)):
        return containers
    return [
        {name: value for name, value in old.items() if name not in _RESIZED}
        | {name: one[name] for name in _RESIZED if one.get(name) is not None}
        for one, old in zip(containers, before, strict=True)
    ]
