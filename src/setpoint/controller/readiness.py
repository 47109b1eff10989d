"""Decides whether an object is ready, from the object alone.

The rules are those of kstatus, which kubectl plugins and GitOps tools use too:

1. What is being deleted is ``Terminating``.
2. A status of an older generation says nothing yet: ``InProgress``.
3. The conditions ``Reconciling`` and ``Stalled``, where an object has them True, mean ``InProgress`` and
   ``Failed``.
4. The workload kinds, Pod, PersistentVolumeClaim, Service, Job and CustomResourceDefinition have rules of
   their own.
5. Anything else with a ``Ready`` condition is as ready as that says; without one, it is ready.

We are stricter in four places, because what asks here waits for it: a Job is ready when it is complete (not
when it has started), a pod that failed has failed, a load balancer needs an address, and a kind that is known
to have conditions is not ready before it has one.

Typed objects and plain dicts in wire form.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from setpoint.api.forms import Untyped
from setpoint.api.model import Object, as_read, merged, to_wire
from setpoint.api.names import GroupVersionKind
from setpoint.api.patches import apply_merge

State: TypeAlias = Literal["Current", "InProgress", "Failed", "Terminating"]
Wire: TypeAlias = Mapping[str, Any]

_NO_DEADLINE = 2**31 - 1  # a Deployment with this progress deadline has no Progressing condition


@dataclass(frozen=True, slots=True)
class Readiness:
    """How far an object is, and why; true where it is ready."""

    state: State
    reason: str = ""

    def __bool__(self) -> bool:
        return self.state == "Current"

    def __str__(self) -> str:
        return f"{self.state}: {self.reason}" if self.reason else self.state


def is_ready(obj: object) -> Readiness:
    """Whether the object is what its spec asks for, as far as its status tells."""
    wire = to_wire(obj)
    if isinstance(obj, Object) and as_read(obj) is not None:
        # With what its class does not know; and what its class adds stays.
        wire = apply_merge(Untyped(obj.gvk).decode(merged(obj)), wire)
    if not isinstance(wire, dict):
        raise TypeError(f"{type(obj).__name__} is no Kubernetes object: give a model or a dict in wire form")
    gvk = GroupVersionKind.of(wire.get("apiVersion") or "", wire.get("kind") or "")
    found = _generic(wire)
    if found is not None:
        return found
    rule = _RULES.get((gvk.group, gvk.kind), _by_condition)
    return rule(wire)


def _generic(wire: Wire) -> Readiness | None:
    metadata, status = wire.get("metadata") or {}, _status(wire)
    if metadata.get("deletionTimestamp"):
        return Readiness("Terminating", "it is being deleted")
    seen, generation = status.get("observedGeneration"), metadata.get("generation")
    if seen is not None and generation is not None and seen != generation:
        return _waits(f"generation {generation} has not been looked at yet, only {seen}")
    reconciling, stalled = _condition(wire, "Reconciling"), _condition(wire, "Stalled")
    if _is(reconciling, "True"):
        return _waits(_said(reconciling))
    if _is(stalled, "True"):
        return Readiness("Failed", _said(stalled))
    return None


def _by_condition(wire: Wire) -> Readiness:
    ready = _condition(wire, "Ready")
    if ready is not None:
        return _CURRENT if _is(ready, "True") else _waits(_said(ready))
    if _status(wire).get("conditions") == []:
        return _waits("it has no conditions yet")
    return _CURRENT


# One kind each.


def _deployment(wire: Wire) -> Readiness:
    spec, status = wire.get("spec") or {}, _status(wire)
    progressing = _condition(wire, "Progressing")
    if progressing is not None and progressing.get("reason") == "ProgressDeadlineExceeded":
        return Readiness("Failed", _said(progressing))
    wanted = _replicas(spec)
    late = _first(
        _too_few("replicas", status.get("replicas"), wanted),
        _too_few("updated", status.get("updatedReplicas"), wanted),
        _too_many(status.get("replicas"), wanted),
        _too_few("available", status.get("availableReplicas"), status.get("updatedReplicas")),
        _too_few("ready", status.get("readyReplicas"), wanted),
    )
    if late is not None:
        return late
    has_deadline = spec.get("progressDeadlineSeconds", _NO_DEADLINE) != _NO_DEADLINE
    if has_deadline and not (_is(progressing, "True") and _reason(progressing) == "NewReplicaSetAvailable"):
        return _waits("its newest ReplicaSet is not available yet")
    return _CURRENT if _is(_condition(wire, "Available"), "True") else _waits("it is not available yet")


def _stateful_set(wire: Wire) -> Readiness:
    spec, status = wire.get("spec") or {}, _status(wire)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return _CURRENT
    wanted = _replicas(spec)
    late = _first(
        _too_few("replicas", status.get("replicas"), wanted),
        _too_few("ready", status.get("readyReplicas"), wanted),
        _too_many(status.get("replicas"), wanted),
    )
    if late is not None:
        return late
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if partition:
        late = _too_few("updated", status.get("updatedReplicas"), wanted - partition)
        return _CURRENT if late is None else late
    late = _too_few("current", status.get("currentReplicas"), wanted)
    if late is not None:
        return late
    if status.get("currentRevision") != status.get("updateRevision"):
        return _waits("not all of it is of the newest revision")
    return _CURRENT


def _daemon_set(wire: Wire) -> Readiness:
    status = _status(wire)
    wanted = status.get("desiredNumberScheduled")
    if wanted is None or status.get("observedGeneration") is None:
        return _waits("its controller has not looked at it yet")
    late = _first(
        _too_few("scheduled", status.get("currentNumberScheduled"), wanted),
        _too_few("updated", status.get("updatedNumberScheduled"), wanted),
        _too_few("available", status.get("numberAvailable"), wanted),
        _too_few("ready", status.get("numberReady"), wanted),
    )
    return _CURRENT if late is None else late


def _replica_set(wire: Wire) -> Readiness:
    status, wanted = _status(wire), _replicas(wire.get("spec") or {})
    failure = _condition(wire, "ReplicaFailure")
    if _is(failure, "True"):
        return _waits(_said(failure))
    late = _first(
        _too_few("labelled", status.get("fullyLabeledReplicas"), wanted),
        _too_few("available", status.get("availableReplicas"), wanted),
        _too_few("ready", status.get("readyReplicas"), wanted),
        _too_many(status.get("replicas"), wanted),
    )
    return _CURRENT if late is None else late


def _job(wire: Wire) -> Readiness:
    status = _status(wire)
    failed = _condition(wire, "Failed")
    if _is(failed, "True"):
        return Readiness("Failed", _said(failed))
    if _is(_condition(wire, "Complete"), "True"):
        return _CURRENT
    if not status.get("startTime"):
        return _waits("it has not started")
    counts = ", ".join(f"{status.get(name) or 0} {name}" for name in ("succeeded", "active", "failed"))
    return _waits(f"it runs: {counts}")


def _pod(wire: Wire) -> Readiness:
    status = _status(wire)
    match status.get("phase"):
        case "Succeeded":
            return Readiness("Current", "it has completed")
        case "Failed":
            return Readiness("Failed", status.get("message") or status.get("reason") or "it has failed")
        case "Running":
            if _is(_condition(wire, "Ready"), "True"):
                return _CURRENT
            crashing = _crashing(status)
            if crashing:
                return Readiness("Failed", f"containers crash again and again: {', '.join(crashing)}")
            return _waits("it runs and is not ready")
        case phase:
            scheduled = _condition(wire, "PodScheduled")
            if _is(scheduled, "False"):
                return _waits(_said(scheduled))
            return _waits(f"its phase is {phase or 'not known'}")


def _crashing(status: Wire) -> list[str]:
    containers = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
    return [
        each.get("name") or ""
        for each in containers
        if ((each.get("state") or {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"
    ]


def _claim(wire: Wire) -> Readiness:
    phase = _status(wire).get("phase")
    return _CURRENT if phase == "Bound" else _waits(f"it is not bound: {phase or 'no phase yet'}")


def _service(wire: Wire) -> Readiness:
    if (wire.get("spec") or {}).get("type") != "LoadBalancer":
        return _CURRENT
    has_address = (_status(wire).get("loadBalancer") or {}).get("ingress")
    return _CURRENT if has_address else _waits("the load balancer has no address yet")


def _definition(wire: Wire) -> Readiness:
    accepted, established = _condition(wire, "NamesAccepted"), _condition(wire, "Established")
    if _is(accepted, "False"):
        return Readiness("Failed", _said(accepted))
    if _is(established, "True"):
        return _CURRENT
    if _is(established, "False") and _reason(established) != "Installing":
        return Readiness("Failed", _said(established))
    return _waits("it is not established yet")


def _always(_: Wire) -> Readiness:
    return _CURRENT


_RULES: dict[tuple[str, str], Callable[[Wire], Readiness]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _always,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
    ("", "ConfigMap"): _always,
    ("", "Secret"): _always,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}


# Words.

_CURRENT = Readiness("Current")


def _waits(reason: str) -> Readiness:
    return Readiness("InProgress", reason)


def _first(*found: Readiness | None) -> Readiness | None:
    """The first that was found; not by ``or``, for what is not ready is false."""
    return next((each for each in found if each is not None), None)


def _too_few(what: str, there: int | None, wanted: int | None) -> Readiness | None:
    has, needs = there or 0, wanted or 0
    return _waits(f"{what}: {has} of {needs}") if has < needs else None


def _too_many(there: int | None, wanted: int) -> Readiness | None:
    more = (there or 0) - wanted
    return _waits(f"{more} more than wanted, and still to end") if more > 0 else None


def _replicas(spec: Wire) -> int:
    replicas = spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def _status(wire: Wire) -> Wire:
    status = wire.get("status")
    return status if isinstance(status, dict) else {}


def _condition(wire: Wire, kind: str) -> Wire | None:
    conditions = _status(wire).get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and each.get("type") == kind:
            return each
    return None


def _is(condition: Wire | None, status: str) -> bool:
    return condition is not None and condition.get("status") == status


def _reason(condition: Wire | None) -> str:
    return str((condition or {}).get("reason") or "")


def _said(condition: Wire | None) -> str:
    condition = condition or {}
    words = (condition.get("reason"), condition.get("message"))
    return (
        ": ".join(word for word in words if word) or f"{condition.get('type')} is {condition.get('status')}"
    )
