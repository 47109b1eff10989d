"""Decides where a pod may be brought, and whether a budget lets it be moved: bindings and evictions.

Pure: pods, bindings, budgets and the options of deletions as plain JSON.  Refusals are Kubernetes', with its
words.  ``subresources.py`` reads and writes what this decides about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from setpoint.server.golang import quoted
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation.texts import subdomain
from setpoint.server.statuses import StatusError, forbidden, too_many_requests

EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED: Final = 2000  # pods that a budget's controller has yet to notice
_INIT_CONTAINERS: Final = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{what}"
    for stage in ("alpha", "beta")
    for what in ("s", "-statuses")
)  # annotations of before there were fields for it


# ── Binding ─────────────────────────────────────────────────────────────────────────────────────────


def target_refusal(target: Mapping[str, str]) -> str:
    """Why a pod is not brought there: it is no node, or nothing could be called so.  "" if it is."""
    kind, name = target.get("kind") or "", target.get("name") or ""
    told = []
    if kind not in ("", "Node"):
        told.append(f'target.kind: Unsupported value: {quoted(kind)}: supported values: "Node", "<empty>"')
    if not name:
        told.append("target.name: Required value")
    elif kind in ("", "Node"):
        told += [f"target.name: Invalid value: {quoted(name)}: {wrong}" for wrong in subdomain(name)]
    return f"[{', '.join(told)}]" if len(told) > 1 else "".join(told)


def unbindable(pod: Object) -> str:
    """Why a pod cannot be assigned to a node; "" if it can."""
    name = pod["metadata"]["name"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if already := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{already}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def copy_metadata(binding: Object, pod: Object) -> None:
    """What a scheduler says about a pod as it assigns it."""
    if labels := binding.get("labels"):
        pod["labels"] = {**(pod.get("labels") or {}), **labels}
    annotations = {**(pod.get("annotations") or {}), **(binding.get("annotations") or {})}
    if left := {name: one for name, one in annotations.items() if name not in _INIT_CONTAINERS}:
        pod["annotations"] = left
    else:
        pod.pop("annotations", None)


def set_condition(status: Object, condition: Object, now: str) -> None:
    """In its place, or after the others; with the time of the last one, where that says the same."""
    conditions = status.setdefault("conditions", [])
    found = (at for at, one in enumerate(conditions) if one.get("type") == condition["type"])
    place = next(found, len(conditions))
    before = conditions[place] if place < len(conditions) else {}
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else now
    conditions[place : place + 1] = [{**condition, "lastProbeTime": None, "lastTransitionTime": since}]


# ── Evictions ───────────────────────────────────────────────────────────────────────────────────────


def is_free(pod: Object) -> tuple[bool, bool]:
    """Whether budgets do not count a pod; and whether they may, as soon as it changes."""
    phase, is_going = (pod.get("status") or {}).get("phase"), bool(pod["metadata"].get("deletionTimestamp"))
    is_ended = is_going or phase in ("Succeeded", "Failed")
    return is_ended or phase == "Pending", not is_ended and phase == "Pending"


def is_spared(pod: Object, budget: Object) -> bool:
    """Whether a budget loses nothing by an eviction: the pod is not ready, and not missed."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy") or 0
    return 0 < wanted <= (status.get("currentHealthy") or 0)


def only_as(options: Object, version: str) -> Object:
    """Options of a deletion that is of one version only."""
    if not version:
        return options
    return {**options, "preconditions": {**(options.get("preconditions") or {}), "resourceVersion": version}}


def check_room(budget: Object) -> None:
    status, name = budget.setdefault("status", {}), budget["metadata"]["name"]
    if (status.get("observedGeneration") or 0) < budget["metadata"].get("generation", 0):
        raise still_processed(name)
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        refused = forbidden(
            "poddisruptionbudget",
            "policy",
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
        told = "too many pending evictions not confirmed by PDB controller"
        cause = _cause(f"The disruption budget {name} does not allow evicting pods currently: {told}")
        refused.details = {**(refused.details or {}), "causes": [cause]}
        raise refused
    if status.get("disruptionsAllowed", 0) <= 0:
        raise too_many_requests(_VIOLATED, 0, causes=[_cause(_without_room(name, status))])


def still_processed(name: str) -> StatusError:
    told = f"The disruption budget {name} is still being processed by the server."
    return too_many_requests(_VIOLATED, 10, causes=[_cause(told)])


def tried(options: Object, *, is_dry_run: bool) -> Object:
    """The options of an eviction's deletion: it is only tried where the request or the eviction says so."""
    said = options.get("dryRun") or []
    if is_dry_run and said and said != ["All"]:
        told = f"Non-matching dry-run options in request and content: [All] and [{' '.join(said)}]"
        raise StatusError(500, "", told)
    return {**options, "dryRun": ["All"]} if is_dry_run else options


def _without_room(name: str, status: Object) -> str:
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    reason, why = _disallowed(status.get("conditions") or ())
    refused = f"The disruption budget {name} does not allow evicting pods currently"
    if why and reason == "SyncFailed":  # then the numbers say nothing
        return f"{refused} because it failed sync: {why}"
    if has <= needs:
        return f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    return f"{refused} ({reason}): {why}" if why else refused


def _disallowed(conditions: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """For what reason a budget says that it has no room, and its message."""
    found = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), {})
    if found.get("status") != "False":
        return "", ""
    return found.get("reason") or "", found.get("message") or ""


def spend(status: Object, now: str) -> None:
    """Have a budget say that it has no room left."""
    others = [each for each in status.get("conditions") or () if each.get("type") != "DisruptionAllowed"]
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration"),
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    status["conditions"] = [*others, condition]


def _cause(message: str) -> Object:
    return {"reason": "DisruptionBudget", "message": message}
