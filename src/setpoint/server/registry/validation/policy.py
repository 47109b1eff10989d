"""What is wrong with budgets, quotas, limits and priorities."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.conditions import check_conditions
from setpoint.server.registry.validation.found import IMMUTABLE, Found
from setpoint.server.registry.validation.resources import (
    check_container_name,
    check_name,
    check_quantity,
    check_quota_name,
    is_overcommit_allowed,
    is_standard_quota,
)
from setpoint.server.registry.validation.selectors import check_selector
from setpoint.server.registry.validation.workloads import check_at_most_all, check_number_or_percent

Json = dict[str, Any]


# ── PodDisruptionBudget ─────────────────────────────────────────────────────────────────────────────


def check_budget(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    bounds = [one for one in ("minAvailable", "maxUnavailable") if spec.get(one) is not None]
    if len(bounds) == 2:
        shown = internals.shown(spec, "policy", "v1", "PodDisruptionBudget", "spec")
        found.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for field in bounds:
        check_number_or_percent(spec[field], f"spec.{field}", found)
        check_at_most_all(spec[field], f"spec.{field}", found)
    check_selector(spec.get("selector"), "spec.selector", found)
    if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
        found.one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def check_budget_status(new: Object, old: Object, found: Found) -> None:
    del old
    status = new.get("status") or {}
    check_conditions(status.get("conditions") or [], "status.conditions", found)
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        found.not_negative(f"status.{field}", status.get(field))


# ── ResourceQuota ───────────────────────────────────────────────────────────────────────────────────

_POD_COMPUTE: Final = frozenset(
    {"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
_SCOPES: Final[dict[str, frozenset[str]]] = {
    "Terminating": _POD_COMPUTE,
    "NotTerminating": _POD_COMPUTE,
    "NotBestEffort": _POD_COMPUTE,
    "PriorityClass": _POD_COMPUTE,
    "CrossNamespacePodAffinity": _POD_COMPUTE,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_ONLY_EXISTS: Final = frozenset(_SCOPES) - {"PriorityClass", "VolumeAttributesClass"}
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


def check_quota(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    _check_amounts(spec.get("hard"), "spec.hard", found)
    if scopes := spec.get("scopes"):
        _check_scopes(scopes, spec, found)
    if spec.get("scopeSelector") is not None:
        _check_scope_selector(spec, found)


def _check_amounts(amounts: dict[str, str] | None, path: str, found: Found) -> None:
    for name, value in sorted((amounts or {}).items()):
        check_quota_name(name, f"{path}[{name}]", found)
        check_quantity(name, value, f"{path}[{name}]", found)


def _misapplied(spec: Json) -> set[str]:
    """The scopes that say nothing about some resource that is limited."""
    limited = {one for one in spec.get("hard") or () if is_standard_quota(one)}
    return {scope for scope, known in _SCOPES.items() if not limited <= known}


def _check_scopes(scopes: list[str], spec: Json, found: Found) -> None:
    misapplied = _misapplied(spec)
    for scope in dict.fromkeys(scopes):
        if scope not in _SCOPES:
            found.invalid("spec.scopes", scopes, "unsupported scope")
        elif scope in misapplied:
            found.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for pair in _CONFLICTS:
        if pair <= set(scopes):
            found.invalid("spec.scopes", scopes, "conflicting scopes")


def _check_scope_selector(spec: Json, found: Found) -> None:
    path, selector = "spec.scopeSelector.matchExpressions", spec["scopeSelector"]
    names: set[str] = set()
    misapplied = _misapplied(spec)
    shown = internals.shown(selector, "", "v1", "ResourceQuota", "spec", "scopeSelector")
    for one in selector.get("matchExpressions") or ():
        scope, operator, values = one.get("scopeName", ""), one.get("operator", ""), one.get("values") or []
        names.add(scope)
        if scope not in _SCOPES:
            found.invalid(f"{path}.scopeName", scope, "unsupported scope")
        elif scope in misapplied:
            found.invalid(path, shown, "unsupported scope applied to resource")
        if scope in _ONLY_EXISTS and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            found.invalid(f"{path}.operator", operator, detail)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                found.required(f"{path}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                found.invalid(f"{path}.values", values, detail)
        else:
            found.invalid(f"{path}.operator", operator, "not a valid selector operator")
    for pair in _CONFLICTS:
        if pair <= names:
            found.invalid(path, spec.get("scopes"), "conflicting scopes")


def check_quota_update(new: Object, old: Object, found: Found) -> None:
    check_quota(new, found)
    now = (new.get("spec") or {}).get("scopes")
    if set(now or ()) != set((old.get("spec") or {}).get("scopes") or ()):
        found.invalid("spec.scopes", now, IMMUTABLE)


def check_quota_status(new: Object, old: Object, found: Found) -> None:
    del old
    for field in ("hard", "used"):
        _check_amounts((new.get("status") or {}).get(field), f"status.{field}", found)


# ── LimitRange ──────────────────────────────────────────────────────────────────────────────────────


def check_limit_range(obj: Object, found: Found) -> None:
    types: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        if errors := texts.qualified(kind):
            found.told(f"{path}.type", kind, errors)
        elif "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            found.invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        found.unique(f"{path}.type", kind, types)
        _check_limit(limit, kind, path, found)


def _check_limit(limit: Json, kind: str, path: str, found: Found) -> None:
    fields = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
    amounts = {field: limit.get(field) or {} for field in fields}
    for field in fields:
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if amounts[field]:
                found.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            amounts[field] = {}
        is_last = field == "maxLimitRequestRatio"
        if (
            is_last
            and kind == "PersistentVolumeClaim"
            and "storage" not in {*amounts["min"], *amounts["max"]}
        ):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            found.required(f"{path}.limits", detail)
        for name in sorted(amounts[field]):
            if kind in ("Pod", "Container"):
                check_container_name(name, f"{path}.{field}[{name}]", found)
            else:
                check_name(name, f"{path}.{field}[{name}]", found)
    for name in sorted({name for one in amounts.values() for name in one}):
        _compare(name, {field: one[name] for field, one in amounts.items() if name in one}, path, found)


# What must not be above what: the two, the field that is named, the value that is shown, words for both.
_ORDER: Final = (
    ("min", "max", "min", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value", "max value"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value",
        "default limit value",
    ),
    ("min", "default", "default", "min", "min value", "default value"),
    ("default", "max", "default", "max", "default value", "max value"),
)


def _compare(name: str, amounts: dict[str, str], path: str, found: Found) -> None:
    for low, high, field, shown, low_word, high_word in _ORDER:
        if (
            low in amounts
            and high in amounts
            and texts.quantity(amounts[low]) > texts.quantity(amounts[high])
        ):
            detail = f"{low_word} {amounts[low]} is greater than {high_word} {amounts[high]}"
            found.invalid(f"{path}.{field}[{name}]", amounts[shown], detail)
    ratio = amounts.get("maxLimitRequestRatio")
    if ratio is not None:
        at = f"{path}.maxLimitRequestRatio[{name}]"
        if texts.quantity(ratio) < 1:
            found.invalid(at, ratio, f"ratio {ratio} is less than 1")
        if "min" in amounts and "max" in amounts and texts.quantity(amounts["min"]) > 0:
            said, least, most = _values(ratio, amounts["min"], amounts["max"])
            if said > most / least:
                found.invalid(at, ratio, f"ratio {ratio} is greater than max/min = {most / least:f}")
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if default is None or request is None or is_overcommit_allowed(name):
        return
    if texts.quantity(default) != texts.quantity(request):
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        found.invalid(f"{path}.defaultRequest[{name}]", request, detail)


def _values(ratio: str, *others: str) -> tuple[float, ...]:
    """As Go calculates with them: in thousandths, unless one is too large for that."""
    first, *rest = map(texts.quantity, (ratio, *others))
    if all(one.value < texts.LARGEST // 1000 for one in (first, *rest)):
        return first.milli_value / 1000, *(float(one.milli_value) for one in rest)
    return tuple(float(min(one.value, texts.LARGEST)) for one in (first, *rest))


# ── PriorityClass ───────────────────────────────────────────────────────────────────────────────────

_SYSTEM: Final = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_MOST_PRIORITY: Final = 1_000_000_000


def check_priority_class(obj: Object, found: Found) -> None:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        if error := _system_error(name, value, is_default=bool(obj.get("globalDefault"))):
            told = (
                f"priority class names with 'system-' prefix are reserved for system use only. error: {error}"
            )
            found.forbidden("metadata.name", told)
    elif value > _MOST_PRIORITY:
        found.forbidden("value", f"maximum allowed value of a user defined priority is {_MOST_PRIORITY}")
    if (policy := obj.get("preemptionPolicy")) is not None:
        found.some_of("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _system_error(name: str, value: int, *, is_default: bool) -> str:
    known = _SYSTEM.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def check_priority_class_update(new: Object, old: Object, found: Found) -> None:
    if new.get("value", 0) != old.get("value", 0):
        found.forbidden("value", "may not be changed in an update.")
    found.unchanged("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
