"""LimitRanger: what containers of a namespace get where they say nothing, and how much they may say.

Pure; in place.  The limit ranges of the namespace are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from setpoint.api.quantity import Quantity
from setpoint.server.admission.usage import Usage, amounts, asked, pod_demand
from setpoint.server.golang import joined
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation.texts import LARGEST

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_MOST_MILLI: Final = LARGEST // 1000  # what can still be counted in thousandths


# ── Filling in ──────────────────────────────────────────────────────────────────────────────────────


def fill(pod: Object, ranges: Iterable[Object]) -> None:
    for one in ranges:
        _fill_by(pod, [limit for limit in _limits(one) if limit.get("type") == "Container"])


def _fill_by(pod: Object, limits: Sequence[Object]) -> None:
    requests: dict[str, str] = {}
    most: dict[str, str] = {}
    for limit in limits:
        requests |= limit.get("defaultRequest") or {}
        most |= limit.get("default") or {}
    told: list[str] = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            resources = dict(container.get("resources") or {})
            for what, wanted in (("requests", requests), ("limits", most)):
                said = resources.get(what) or {}
                missing = sorted(name for name in wanted if name not in said)
                if missing:
                    resources[what] = {**said, **{name: wanted[name] for name in missing}}
                    told.append(f"{', '.join(missing)} {what[:-1]} for {word} {container['name']}")
            container["resources"] = resources
    if told:
        annotations = pod["metadata"].get("annotations") or {}
        said = f"LimitRanger plugin set: {'; '.join(told)}"
        pod["metadata"]["annotations"] = {**annotations, _ANNOTATION: said}


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────


def pod_refusal(pod: Object, ranges: Iterable[Object]) -> str:
    """What the first limit range that is not kept says; "" if all are."""
    for one in ranges:
        errors: list[str] = []
        for limit in _limits(one):
            if limit.get("type") == "Container":
                spec = pod["spec"]
                for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                    errors += _errors(limit, asked(container, "requests"), asked(container, "limits"))
            elif limit.get("type") == "Pod":
                requests, limits = (
                    pod_demand(pod["spec"], what, has_overhead=False) for what in ("requests", "limits")
                )
                errors += _errors(limit, requests, limits)
        if errors:
            return joined(errors)
    return ""


def claim_refusal(claim: Object, ranges: Iterable[Object]) -> str:
    requests = amounts((claim["spec"].get("resources") or {}).get("requests"))
    for one in ranges:
        errors: list[str] = []
        for limit in _limits(one):
            if limit.get("type") == "PersistentVolumeClaim":
                for name, amount in _each(limit, "min"):
                    errors += _too_little("PersistentVolumeClaim", name, amount, requests, {})
                for name, amount in _each(limit, "max"):
                    errors += _too_much_asked("PersistentVolumeClaim", name, amount, requests)
        if errors:
            return joined(errors)
    return ""


def _limits(one: Object) -> Sequence[Object]:
    found: Sequence[Object] = (one.get("spec") or {}).get("limits") or ()
    return found


def _each(limit: Object, field: str) -> list[tuple[str, Quantity]]:
    return sorted(amounts(limit.get(field)).items(), key=lambda pair: pair[0])


def _errors(limit: Object, requests: Usage, limits: Usage) -> list[str]:
    kind, errors = limit["type"], []
    checks: tuple[tuple[str, Callable[..., list[str]]], ...] = (
        ("min", _too_little),
        ("max", _too_much),
        ("maxLimitRequestRatio", _too_far_apart),
    )
    for field, check in checks:
        for name, amount in _each(limit, field):
            errors += check(kind, name, amount, requests, limits)
    return errors


def _values(*found: Quantity | None) -> list[int]:
    """In thousandths where all of them can be."""
    there = [one if one is not None else Quantity(0) for one in found]
    if all(one.value <= _MOST_MILLI for one in there):
        return [one.milli_value for one in there]
    return [min(one.value, LARGEST) for one in there]


def _too_little(kind: str, name: str, least: Quantity, requests: Usage, limits: Usage) -> list[str]:
    request, limit = requests.get(name), limits.get(name)
    asked_for, allowed, wanted = _values(request, limit, least)
    told = f"minimum {name} usage per {kind} is {least}"
    if request is None:
        return [f"{told}.  No request is specified"]
    if asked_for < wanted:
        return [f"{told}, but request is {request}"]
    if limit is not None and allowed < wanted:
        return [f"{told}, but limit is {limit}"]
    return []


def _too_much(kind: str, name: str, most: Quantity, requests: Usage, limits: Usage) -> list[str]:
    request, limit = requests.get(name), limits.get(name)
    asked_for, allowed, wanted = _values(request, limit, most)
    told = f"maximum {name} usage per {kind} is {most}"
    if limit is None:
        return [f"{told}.  No limit is specified"]
    if allowed > wanted:
        return [f"{told}, but limit is {limit}"]
    if request is not None and asked_for > wanted:
        return [f"{told}, but request is {request}"]
    return []


def _too_much_asked(kind: str, name: str, most: Quantity, requests: Usage) -> list[str]:
    request = requests.get(name)
    told = f"maximum {name} usage per {kind} is {most}"
    if request is None:
        return [f"{told}.  No request is specified"]
    asked_for, wanted = _values(request, most)
    return [f"{told}, but request is {request}"] if asked_for > wanted else []


def _too_far_apart(kind: str, name: str, most: Quantity, requests: Usage, limits: Usage) -> list[str]:
    asked_for, allowed, _ = _values(requests.get(name), limits.get(name), most)
    told = f"{name} max limit to request ratio per {kind} is {most}, but"
    if not asked_for:
        return [f"{told} no request is specified or request is 0"]
    if not allowed:
        return [f"{told} no limit is specified or limit is 0"]
    ratio: Any = allowed / asked_for
    return [f"{told} provided ratio is {ratio:f}"] if ratio * 1000 > most.milli_value else []
