"""One object, two versions: Events of two groups, autoscalers of two versions, custom kinds of several.

An object is stored as it was written and shown as it is asked for.  Pure.
"""

from __future__ import annotations

import json
from typing import Any

from setpoint.server.registry.resources import Object, Resource

_EVENT_FIELDS = {  # core/v1 → events.k8s.io/v1; the other names are the same
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"


def converted(obj: Object, resource: Resource) -> Object:
    """The object in the resource's version."""
    was = obj["apiVersion"]
    shown: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
    shown |= {name: value for name, value in obj.items() if name not in shown}
    if resource.is_custom:
        return resource.strategy.emit(resource.strategy.revive(shown))
    if was == resource.api_version:
        return shown
    if resource.kind == "Event":
        names = _EVENT_FIELDS if resource.group else {new: old for old, new in _EVENT_FIELDS.items()}
        shown = {names.get(name, name): value for name, value in shown.items()}
    elif resource.kind == "HorizontalPodAutoscaler":
        _to_v1(shown) if resource.version == "v1" else _to_v2(shown)
    return resource.strategy.emit(shown)


def _to_v1(obj: Object) -> None:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict(obj["metadata"].get("annotations") or {})
    others = []
    for metric in spec.pop("metrics", None) or []:
        target = _cpu_utilization(metric)
        if target is None:
            others.append(metric)
        else:
            spec["targetCPUUtilizationPercentage"] = target
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and "averageUtilization" in resource.get("current", {}):
            status["currentCPUUtilizationPercentage"] = resource["current"]["averageUtilization"]
    for key, value in (
        (_METRICS, others),
        (_BEHAVIOR, spec.pop("behavior", None)),
        (_CONDITIONS, status.pop("conditions", None)),
        (_CURRENT, current),
    ):
        if value:
            annotations[key] = json.dumps(value, separators=(",", ":"))
    _put(obj, spec, status, annotations)


def _to_v2(obj: Object) -> None:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict(obj["metadata"].get("annotations") or {})
    metrics: list[Any] = json.loads(annotations.pop(_METRICS, "[]"))
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": wanted}})
    if metrics:
        spec["metrics"] = metrics
    if _BEHAVIOR in annotations:
        spec["behavior"] = json.loads(annotations.pop(_BEHAVIOR))
    if _CONDITIONS in annotations:
        status["conditions"] = json.loads(annotations.pop(_CONDITIONS))
    status.pop("currentCPUUtilizationPercentage", None)
    status["currentMetrics"] = json.loads(annotations.pop(_CURRENT, "null"))
    _put(obj, spec, status, annotations)


def _cpu_utilization(metric: dict[str, Any]) -> int | None:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    if (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and target.get("type") == "Utilization"
    ):
        found: int | None = target.get("averageUtilization")
        return found
    return None


def _put(obj: Object, spec: Object, status: Object, annotations: dict[str, str]) -> None:
    obj["spec"], obj["status"] = spec, status
    metadata = dict(obj["metadata"])
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    obj["metadata"] = metadata
