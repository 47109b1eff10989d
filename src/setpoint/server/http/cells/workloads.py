"""The cells of what runs pods and of what scales and guards them: apps, batch, autoscaling, policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from setpoint.server.http.cells.reading import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Printer,
    age,
    at,
    containers,
    created,
    human,
    is_deleting,
    is_true,
    items,
    joined,
    labels,
    moment,
    name,
    number,
    selector,
    text,
)
from setpoint.server.registry.resources import Object


def replication_controller(obj: Object, now: datetime) -> Cells:
    return [*_replicas(obj, now), *_template(obj), labels(at(obj, "spec", "selector"))]


def replica_set(obj: Object, now: datetime) -> Cells:
    return [*_replicas(obj, now), *_template(obj), selector(at(obj, "spec", "selector"))]


def _replicas(obj: Object, now: datetime) -> Cells:
    desired, current = number(obj, "spec", "replicas"), number(obj, "status", "replicas")
    return [name(obj), desired, current, number(obj, "status", "readyReplicas"), created(obj, now)]


def _template(obj: Object, *path: str) -> tuple[str, str]:
    return containers(items(obj, "spec", *path, "template", "spec", "containers"))


def deployment(obj: Object, now: datetime) -> Cells:
    return [
        name(obj),
        f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        created(obj, now),
        *_template(obj),
        selector(at(obj, "spec", "selector"), otherwise=""),
    ]


def stateful_set(obj: Object, now: datetime) -> Cells:
    ready = f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"
    return [name(obj), ready, created(obj, now), *_template(obj)]


def daemon_set(obj: Object, now: datetime) -> Cells:
    return [
        name(obj),
        number(obj, "status", "desiredNumberScheduled"),
        number(obj, "status", "currentNumberScheduled"),
        number(obj, "status", "numberReady"),
        number(obj, "status", "updatedNumberScheduled"),
        number(obj, "status", "numberAvailable"),
        labels(at(obj, "spec", "template", "spec", "nodeSelector")),
        created(obj, now),
        *_template(obj),
        selector(at(obj, "spec", "selector")),
    ]


def controller_revision(obj: Object, now: datetime) -> Cells:
    owner = next((one for one in items(obj, "metadata", "ownerReferences") if one.get("controller")), None)
    if owner is None:
        shown = NONE
    else:
        group, _, _ = text(owner, "apiVersion").rpartition("/")
        kind = joined(filter(None, (text(owner, "kind"), group)), ".").lower()
        shown = f"{kind}/{text(owner, 'name')}"
    return [name(obj), shown, number(obj, "revision"), created(obj, now)]


# ── batch ───────────────────────────────────────────────────────────────────────────────────────────

_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def job(obj: Object, now: datetime) -> Cells:
    return [
        name(obj),
        _job_state(obj),
        _completions(obj),
        _lasted(obj, now),
        created(obj, now),
        *_template(obj),
        selector(at(obj, "spec", "selector")),
    ]


def _job_state(obj: Object) -> str:
    if is_true(obj, "Complete"):
        return "Complete"
    if is_true(obj, "Failed"):
        return "Failed"
    if is_deleting(obj):
        return "Terminating"
    return next((state for state in _JOB_STATES if is_true(obj, state)), "Running")


def _completions(obj: Object) -> str:
    done, wanted = number(obj, "status", "succeeded"), at(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    at_once = number(obj, "spec", "parallelism")
    return f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"


def _lasted(obj: Object, now: datetime) -> str:
    began = moment(at(obj, "status", "startTime"))
    if began is None:
        return ""
    ended = moment(at(obj, "status", "completionTime")) or now
    return human((ended - began).total_seconds())


def cron_job(obj: Object, now: datetime) -> Cells:
    suspended, last = at(obj, "spec", "suspend"), at(obj, "status", "lastScheduleTime")
    zone = at(obj, "spec", "timeZone")
    return [
        name(obj),
        text(obj, "spec", "schedule"),
        NONE if zone is None else zone,
        UNSET if suspended is None else str(bool(suspended)),
        len(items(obj, "status", "active")),
        NONE if last is None else age(last, now),
        created(obj, now),
        *_template(obj, "jobTemplate", "spec"),
        selector(at(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


# ── autoscaling ─────────────────────────────────────────────────────────────────────────────────────

_MOST_METRICS: Final = 2
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def autoscaler(obj: Object, now: datetime) -> Cells:
    least = at(obj, "spec", "minReplicas")
    return [
        name(obj),
        f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/{text(obj, 'spec', 'scaleTargetRef', 'name')}",
        _metrics(obj),
        UNSET if least is None else str(least),
        number(obj, "spec", "maxReplicas"),
        number(obj, "status", "currentReplicas"),
        created(obj, now),
    ]


def _metrics(obj: Object) -> str:
    wanted, seen = items(obj, "spec", "metrics"), items(obj, "status", "currentMetrics")
    old_target = at(obj, "spec", "targetCPUUtilizationPercentage")
    if not wanted and old_target is not None:  # autoscaling/v1
        current = at(obj, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{old_target}%"
    if not wanted:
        return NONE
    shown = [
        _metric(one, seen[position] if position < len(seen) else {}) for position, one in enumerate(wanted)
    ]
    more = f" + {len(shown) - _MOST_METRICS} more..." if len(shown) > _MOST_METRICS else ""
    return joined(shown[:_MOST_METRICS], ", ") + more


def _metric(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
    kind = text(wanted, "type")
    source = _SOURCES.get(kind)
    if source is None:
        return "<unknown type>"
    target, current = at(wanted, source, "target") or {}, at(seen, source, "current")
    if kind == "Pods":
        return f"{_value(current, 'averageValue', '0')}/{text(target, 'averageValue')}"
    average = target.get("averageValue")
    if kind in ("External", "Object"):
        if average is not None:
            return f"{_value(current, 'averageValue', UNKNOWN)}/{average} (avg)"
        return f"{_value(current, 'value', '0')}/{text(target, 'value', otherwise='0')}"
    if average is not None:
        return f"{text(wanted, source, 'name')}: {_value(current, 'averageValue', '0')}/{average}"
    used, wish = at(current, "averageUtilization"), target.get("averageUtilization")
    return (
        f"{text(wanted, source, 'name')}: {UNKNOWN if used is None else f'{used}%'}/"
        f"{'<auto>' if wish is None else f'{wish}%'}"
    )


def _value(current: Any, field: str, otherwise: str) -> str:
    """Unknown while nothing was measured; ``otherwise`` where something else was."""
    return UNKNOWN if current is None else text(current, field, otherwise=otherwise)


def disruption_budget(obj: Object, now: datetime) -> Cells:
    least, most = at(obj, "spec", "minAvailable"), at(obj, "spec", "maxUnavailable")
    return [
        name(obj),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        number(obj, "status", "disruptionsAllowed"),
        created(obj, now),
    ]


def scale(obj: Object, now: datetime) -> Cells:
    return [
        name(obj),
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        created(obj, now),
    ]


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "ReplicationController"): replication_controller,
    ("apps", "ControllerRevision"): controller_revision,
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "Deployment"): deployment,
    ("apps", "ReplicaSet"): replica_set,
    ("apps", "StatefulSet"): stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaler,
    ("autoscaling", "Scale"): scale,
    ("batch", "CronJob"): cron_job,
    ("batch", "Job"): job,
    ("policy", "PodDisruptionBudget"): disruption_budget,
}
