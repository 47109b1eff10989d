"""A HorizontalPodAutoscaler in its two versions: what the first cannot say stands in its annotations.

v1 knows one target, the use of CPU.  Other metrics, the behavior, the conditions and the current metrics are
JSON in annotations, with the names that they have in v1 (metrics) or in Go (behavior).  Pure; part of
``conversion.py``.
"""

from __future__ import annotations

import json
from typing import Any, Final

from setpoint.server.registry.resources import Object

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_CONDITIONS, _CURRENT = f"{_PREFIX}conditions", f"{_PREFIX}current-metrics"
# Of each source, as v1 has it: its name there, and where it is in v2.  "!" is written even where it is empty.
_SPEC: Final[dict[str, dict[str, str]]] = {
    "object": {
        "target": "describedObject", "metricName": "metric.name", "targetValue!": "target.value",
        "selector": "metric.selector", "averageValue": "target.averageValue",
    },
    "pods": {
        "metricName": "metric.name", "targetAverageValue!": "target.averageValue",
        "selector": "metric.selector",
    },
    "resource": {
        "name": "name", "targetAverageUtilization": "target.averageUtilization",
        "targetAverageValue": "target.averageValue",
    },
    "containerResource": {
        "name": "name", "targetAverageUtilization": "target.averageUtilization",
        "targetAverageValue": "target.averageValue", "container": "container",
    },
    "external": {
        "metricName": "metric.name", "metricSelector": "metric.selector", "targetValue": "target.value",
        "targetAverageValue": "target.averageValue",
    },
}  # fmt: skip
_STATUS: Final[dict[str, dict[str, str]]] = {
    source: {
        name.replace("target", "current") if name.startswith("target") and name != "target" else name: (
            place.replace("target.", "current.")
        )
        for name, place in fields.items()
    }
    for source, fields in _SPEC.items()
} | {
    "resource": {
        "name": "name", "currentAverageUtilization": "current.averageUtilization",
        "currentAverageValue!": "current.averageValue",
    },
    "containerResource": {
        "name": "name", "currentAverageUtilization": "current.averageUtilization",
        "currentAverageValue!": "current.averageValue", "container": "container",
    },
    "external": {
        "metricName": "metric.name", "metricSelector": "metric.selector", "currentValue!": "current.value",
        "currentAverageValue": "current.averageValue",
    },
}  # fmt: skip
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


def to_v1(obj: Object) -> None:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict(obj["metadata"].get("annotations") or {})
    others = []
    for metric in spec.pop("metrics", None) or []:
        use = _cpu_use(metric)
        if use is None:
            others.append(_written(metric, _SPEC))
        else:
            spec["targetCPUUtilizationPercentage"] = use
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and "averageUtilization" in resource.get("current", {}):
            status["currentCPUUtilizationPercentage"] = resource["current"]["averageUtilization"]
    behavior = spec.pop("behavior", None)
    for key, value in (
        (_METRICS, others),
        (_BEHAVIOR, {"ScaleUp": _rules(behavior, "scaleUp"), "ScaleDown": _rules(behavior, "scaleDown")}),
        (_CONDITIONS, status.pop("conditions", None)),
        (_CURRENT, [_written(metric, _STATUS) for metric in current]),
    ):
        if value and (key != _BEHAVIOR or behavior):
            annotations[key] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    _put(obj, spec, status, annotations)


def to_v2(obj: Object) -> None:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict(obj["metadata"].get("annotations") or {})
    metrics = [_read(one, _SPEC) for one in _taken(annotations, _METRICS) or ()]
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": wanted}})
    if metrics:
        spec["metrics"] = metrics
    behavior = _taken(annotations, _BEHAVIOR)
    if behavior:
        spec["behavior"] = {_lower(name): _lowered(rules) for name, rules in behavior.items() if rules}
    conditions = _taken(annotations, _CONDITIONS)
    if conditions:
        status["conditions"] = conditions
    status.pop("currentCPUUtilizationPercentage", None)
    current = _taken(annotations, _CURRENT)
    status["currentMetrics"] = [_read(one, _STATUS) for one in current] if current else None
    _put(obj, spec, status, annotations)


def _taken(annotations: dict[str, str], name: str) -> Any:
    """What an annotation says; it is gone then, and says nothing where it is no JSON."""
    try:
        return json.loads(annotations.pop(name, "null"))
    except ValueError:
        return None


def _cpu_use(metric: dict[str, Any]) -> int | None:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    if (metric.get("type"), resource.get("name"), target.get("type")) != ("Resource", "cpu", "Utilization"):
        return None
    found: int | None = target.get("averageUtilization")
    return found


# ── Metrics ─────────────────────────────────────────────────────────────────────────────────────────


def _written(metric: dict[str, Any], forms: dict[str, dict[str, str]]) -> Object:
    made: Object = {"type": metric.get("type", "")}
    for source, fields in forms.items():
        if metric.get(source) is None:
            continue
        inner: Object = {}
        for name, place in fields.items():
            value = _at(metric[source], place)
            if value is not None:
                inner[name.rstrip("!")] = value
            elif name.endswith("!"):
                inner[name.rstrip("!")] = "0"
        made[source] = inner
    return made


def _read(metric: dict[str, Any], forms: dict[str, dict[str, str]]) -> Object:
    made: Object = {"type": metric.get("type", "")}
    for source, fields in forms.items():
        if metric.get(source) is None:
            continue
        inner: Object = {}
        for name, place in fields.items():
            value = metric[source].get(name.rstrip("!"))
            is_empty = forms is _SPEC and name.endswith("!") and value == "0"
            if value is not None and not is_empty:
                *above, last = place.split(".")
                holder = inner.setdefault(above[0], {}) if above else inner
                holder[last] = value
        target = inner.get("target")
        if isinstance(target, dict) and forms is _SPEC:
            inner["target"] = {"type": _kind_of(target), **target}
        made[source] = inner
    return made


def _kind_of(target: dict[str, Any]) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "AverageValue" if "averageValue" in target else "Value"


def _at(source: dict[str, Any], place: str) -> Any:
    found: Any = source
    for step in place.split("."):
        found = (found or {}).get(step)
    return found


# ── Behavior, in the names of Go ────────────────────────────────────────────────────────────────────


def _rules(behavior: dict[str, Any] | None, name: str) -> Object | None:
    rules = (behavior or {}).get(name)
    if rules is None:
        return None
    made = {_upper(word): rules.get(word) for word in _RULES}
    if made["Policies"] is not None:
        words = ("type", "value", "periodSeconds")
        made["Policies"] = [{_upper(word): one.get(word) for word in words} for one in made["Policies"]]
    return made


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {_lower(name): _lowered(one) for name, one in value.items() if one is not None}
    return [_lowered(one) for one in value] if isinstance(value, list) else value


def _upper(word: str) -> str:
    return word[:1].upper() + word[1:]


def _lower(word: str) -> str:
    return word[:1].lower() + word[1:]


def _put(obj: Object, spec: Object, status: Object, annotations: dict[str, str]) -> None:
    obj["spec"], obj["status"] = spec, status
    metadata = dict(obj["metadata"])
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    obj["metadata"] = metadata
