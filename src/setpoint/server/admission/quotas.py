"""ResourceQuota: what a write would use is added to what is used, and refused where that is too much.

Pure: a write and the quotas of its namespace in; the quotas with their new usage, or a refusal, out.  What
is used is in a quota's status, which its controller fills in; a quota without one limits nothing yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from setpoint.api.quantity import Quantity
from setpoint.server.admission.attributes import Attributes
from setpoint.server.admission.usage import (
    Usage,
    add,
    amounts,
    is_ending,
    is_in_scope,
    limited,
    unsaid,
    used_by,
)
from setpoint.server.registry.quantities import canonical
from setpoint.server.registry.resources import Object

IGNORED: Final = frozenset({"events", "bindings", "componentstatuses"})


def is_counted(asked: Attributes) -> bool:
    """Whether a write can change what is used."""
    if not asked.namespace or asked.object is None or asked.resource.stored in IGNORED:
        return False
    match asked.resource.stored, asked.operation, asked.subresource:
        case "pods", "UPDATE", "":
            return is_ending(asked.object) != is_ending(asked.old or {})
        case "pods", "UPDATE", "resize":
            return True
        case "services" | "persistentvolumeclaims", "UPDATE", "":
            return True
        case "persistentvolumeclaims", "UPDATE", "status":
            return True
        case _, "CREATE", "":
            return asked.body is None
    return False


def charged(quotas: Sequence[Object], asked: Attributes) -> list[Object]:
    """Those quotas whose usage changes, with it.  Raises a refusal."""
    obj = asked.object or {}
    resource = asked.resource
    about = [quota for quota in quotas if _is_about(quota, obj, asked)]
    for quota in about:
        _check(quota, obj, asked)
    used = used_by(obj, resource)
    changed = []
    for quota in about:
        delta = used
        if asked.operation == "UPDATE" and asked.old is not None and _is_about(quota, asked.old, asked):
            delta = _more(used, used_by(asked.old, resource))
        found = _charge(quota, {name: one for name, one in delta.items() if one}, asked)
        if found is not None:
            changed.append(found)
    return changed


def _hard(quota: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (quota.get("status") or {}).get("hard") or {}
    return found


def _is_about(quota: Object, obj: Object, asked: Attributes) -> bool:
    spec = quota.get("spec") or {}
    terms = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return bool(limited(_hard(quota), asked.resource)) and all(
        is_in_scope(term, obj, asked.resource) for term in terms
    )


def _check(quota: Object, obj: Object, asked: Attributes) -> None:
    names = limited(_hard(quota), asked.resource)
    name = quota["metadata"]["name"]
    if asked.resource.stored == "pods" and (told := unsaid(obj, names)):
        raise asked.refusal(f"failed quota: {name}: {told}")
    known = (quota.get("status") or {}).get("used") or {}
    if any(one not in known for one in names):
        raise asked.refusal(f"status unknown for quota: {name}, resources: {','.join(sorted(names))}")


def _more(now: Usage, before: Usage) -> Usage:
    """What is used in addition; what is no longer used is not given back here."""
    found = {name: amount - before[name] if name in before else amount for name, amount in now.items()}
    return {name: amount if amount > 0 else Quantity(0) for name, amount in found.items()}


def _charge(quota: Object, delta: Usage, asked: Attributes) -> Object | None:
    hard, used = amounts(_hard(quota)), amounts((quota.get("status") or {}).get("used"))
    wanted = {name: amount for name, amount in delta.items() if name in hard}
    if not wanted:
        return None
    total = add(used, wanted)
    over = sorted(name for name in wanted if total[name] > hard[name])
    if over and asked.subresource != "status":
        told = [",".join(f"{name}={one[name]}" for name in over) for one in (wanted, used, hard)]
        raise asked.refusal(
            f"exceeded quota: {quota['metadata']['name']}, "
            f"requested: {told[0]}, used: {told[1]}, limited: {told[2]}"
        )
    written = {name: canonical(str(amount)) for name, amount in sorted(total.items())}
    return {**quota, "status": {**(quota.get("status") or {}), "used": written}}
