"""What is wrong with a HorizontalPodAutoscaler."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import NOT_POSITIVE, Found
from setpoint.server.registry.validation.resources import check_container_name

Json = dict[str, Any]
_TYPES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES: Final = ("object", "external", "pods", "resource", "containerResource")  # as they are looked at


def check_autoscaler(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and most < least:
        found.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    _check_target_ref(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef", found)
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        _check_metric(metric, f"spec.metrics[{index}]", found)
    percent = spec.get("targetCPUUtilizationPercentage")  # version 1 has this one metric
    if percent is not None and percent < 1:
        path = "spec.metrics[0].resource.target.averageUtilization"
        found.invalid(path, percent, "must be greater than 0")
    if least == 0 and not any(one.get("type") in ("Object", "External") for one in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.forbidden("spec.metrics", detail)
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction) is not None:
            _check_rules(behavior[direction], f"spec.behavior.{direction}", found)
    found.not_negative("spec.minReplicas", least)
    if not most:
        found.required("spec.maxReplicas")
    elif most < 0:
        found.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")


def check_autoscaler_status(new: Object, old: Object, found: Found) -> None:
    del old
    for field in ("currentReplicas", "desiredReplicas"):
        found.not_negative(f"status.{field}", (new.get("status") or {}).get(field))


def _check_reference(ref: Json, path: str, found: Found) -> None:
    for field in ("kind", "name"):
        value = ref.get(field, "")
        if not value:
            found.required(f"{path}.{field}")
        else:
            found.told(f"{path}.{field}", value, texts.path_segment(value))


def _check_target_ref(ref: Json, path: str, found: Found) -> None:
    _check_reference(ref, path, found)
    version = ref.get("apiVersion", "")
    if version.count("/") > 1:
        found.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif "/" not in version and (version or ref.get("kind") != "ReplicationController"):
        found.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _check_metric(metric: Json, path: str, found: Found) -> None:
    kind = metric.get("type", "")
    if not kind:
        found.required(f"{path}.type", "must specify a metric source type")
    found.one_of(f"{path}.type", kind, _TYPES)
    named = [one for one in _SOURCES if metric.get(one) is not None]
    if named:
        _check_source(named[0], metric[named[0]], f"{path}.{named[0]}", found)
    wanted = kind[:1].lower() + kind[1:]
    if kind in _TYPES:
        if wanted not in named:
            found.required(f"{path}.{wanted}", "must populate information for the given metric source")
    else:
        found.one_of(f"{path}.type", kind, _TYPES)
    if len(named) != 1:
        for one in named:
            if one != wanted:
                found.forbidden(f"{path}.{one}", "must populate the given metric source only")


def _check_source(kind: str, source: Json, path: str, found: Found) -> None:
    target = source.get("target") or {}
    value, average = target.get("value"), target.get("averageValue")
    utilization, at = target.get("averageUtilization"), f"{path}.target"
    match kind:
        case "object":
            _check_reference(source.get("describedObject") or {}, f"{path}.describedObject", found)
            _check_identifier(source, path, found)
            _check_target(target, at, found)
            if value is None and average is None:
                found.required(f"{at}.averageValue", "must set either a target value or averageValue")
        case "external":
            _check_identifier(source, path, found)
            _check_target(target, at, found)
            if value is None and average is None:
                detail = "must set either a target value for metric or a per-pod target"
                found.required(f"{at}.averageValue", detail)
            if value is not None and average is not None:
                detail = "may not set both a target value for metric and a per-pod target"
                found.forbidden(f"{at}.value", detail)
        case "pods":
            _check_identifier(source, path, found)
            _check_target(target, at, found)
            if average is None:
                found.required(f"{at}.averageValue", "must specify a positive target averageValue")
        case _:
            _check_resource(kind, source, path, found)
            _check_target(target, at, found)
            if utilization is None and average is None:
                detail = "must set either a target raw value or a target utilization"
                found.required(f"{at}.averageUtilization", detail)
            if utilization is not None and average is not None:
                detail = "may not set both a target raw value and a target utilization"
                found.forbidden(f"{at}.averageValue", detail)


def _check_resource(kind: str, source: Json, path: str, found: Found) -> None:
    if not source.get("name"):
        found.required(f"{path}.name", "must specify a resource name")
    elif kind == "containerResource":
        check_container_name(source["name"], f"{path}.name", found)
    if kind == "containerResource":
        container = source.get("container", "")
        if not container:
            found.required(f"{path}.container", "must specify a container")
        else:
            found.told(f"{path}.container", container, texts.label(container))


def _check_identifier(source: Json, path: str, found: Found) -> None:
    name = (source.get("metric") or {}).get("name", "")
    if not name:
        found.required(f"{path}.metric.name", "must specify a metric name")
    else:
        found.told(f"{path}.metric.name", name, texts.path_segment(name))


def _check_target(target: Json, path: str, found: Found) -> None:
    kind = target.get("type", "")
    if not kind:
        found.required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        found.invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and texts.quantity(amount) <= 0:
            found.invalid(f"{path}.{field}", amount, "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        found.invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")


def _check_rules(rules: Json, path: str, found: Found) -> None:
    window, policy = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    at = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        found.invalid(at, window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        found.invalid(at, window, "must be less than or equal to 3600")
    if policy is not None:
        found.one_of(f"{path}.selectPolicy", policy, ("Disabled", "Max", "Min"))
    if not rules.get("policies"):
        found.required(f"{path}.policies", "must specify at least one Policy")
    for index, one in enumerate(rules.get("policies") or ()):
        at, period = f"{path}.policies[{index}]", one.get("periodSeconds", 0)
        found.one_of(f"{at}.type", one.get("type", ""), ("Percent", "Pods"))
        if one.get("value", 0) <= 0:
            found.invalid(f"{at}.value", one.get("value", 0), NOT_POSITIVE)
        if period <= 0:
            found.invalid(f"{at}.periodSeconds", period, NOT_POSITIVE)
        if period > 1800:
            found.invalid(f"{at}.periodSeconds", period, "must be less than or equal to 1800")
    tolerance = rules.get("tolerance")
    if tolerance is not None and texts.quantity(tolerance) < 0:
        found.invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0")
