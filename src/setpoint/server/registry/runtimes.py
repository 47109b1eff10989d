"""What a RuntimeClass makes of a pod that names it: its overhead, where it may run, what it tolerates.

Pure: the spec of a pod, and its RuntimeClass or None; a refusal in Kubernetes' words, or "", out.  Called by
``registry/admission.py``, which looks for the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from setpoint.api.quantity import Quantity
from setpoint.server.registry.resources import Object

_OTHER = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_ALONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def fill(spec: Object, runtime: Object | None) -> str:
    """What the class says, in place."""
    overhead, scheduling = (runtime or {}).get("overhead"), (runtime or {}).get("scheduling")
    if overhead is not None:
        fixed = overhead.get("podFixed") or {}
        if spec.get("overhead") and not _is_same(spec["overhead"], fixed):
            return _OTHER
        if fixed:
            spec["overhead"] = dict(fixed)
    return "" if scheduling is None else _schedule(spec, scheduling)


def overhead_refusal(spec: Object, runtime: Object | None) -> str:
    """Only a class gives a pod an overhead, and its own."""
    overhead = (runtime or {}).get("overhead")
    if overhead is None:
        return "" if spec.get("overhead") is None else _ALONE
    return "" if _is_same(spec.get("overhead"), overhead.get("podFixed")) else _OTHER


def _is_same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    return _amounts(one) == _amounts(other)


def _amounts(found: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: Quantity(amount) for name, amount in (found or {}).items()}


# ── Where it may run ────────────────────────────────────────────────────────────────────────────────


def _schedule(spec: Object, scheduling: Object) -> str:
    own, wanted = spec.get("nodeSelector") or {}, scheduling.get("nodeSelector") or {}
    for key, value in sorted(wanted.items()):
        if own.get(key, value) != value:
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    if wanted:
        spec["nodeSelector"] = {**own, **wanted}
    if found := merged([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]):
        spec["tolerations"] = found
    return ""


def merged(tolerations: Sequence[Object]) -> list[Object]:
    """Those that no other one, before or after, covers; of equal ones the first."""
    kept: list[Object] = []
    for place, one in enumerate(tolerations):
        later = (other for other in tolerations[place + 1 :] if _said(other) != _said(one))
        if not any(_covers(other, one) for other in (*kept, *later)):
            kept.append(one)
    return kept


def _said(toleration: Object) -> tuple[str, str, str, str, int | None]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    return key, operator, value, effect, toleration.get("tolerationSeconds")


def _covers(wide: Object, narrow: Object) -> bool:
    """Whether all that the one tolerates the other does too, for as long."""
    if _said(wide) == _said(narrow):
        return True
    key, operator, value, effect, seconds = _said(wide)
    own_key, own_operator, own_value, own_effect, own_seconds = _said(narrow)
    if key != own_key and (key or operator != "Exists"):
        return False
    if effect not in ("", own_effect):
        return False
    if effect == "NoExecute" and seconds is not None and (own_seconds is None or own_seconds > seconds):
        return False
    if operator in ("", "Equal"):
        return own_operator == "Equal" and own_value == value
    return operator == "Exists"
