"""Says why an object is not in a condition yet, by the rules of ``kubectl wait``.

A condition is named as there: ``Ready``, or ``Ready=False``; case does not matter.  One that was written for
an older generation of the object says nothing about this one.  Pure; asked by ``proof/lab.py``.
"""

from __future__ import annotations

from typing import Any


def why_not(obj: dict[str, Any], condition: str) -> str:
    """What keeps an object in wire form from being in the condition; "" if it is."""
    name, _, wanted = condition.partition("=")
    status = obj.get("status") or {}
    conditions = status.get("conditions") or []
    found = next((each for each in conditions if each.get("type", "").lower() == name.lower()), None)
    if found is None:
        has = ", ".join(f"{each.get('type')}={each.get('status')}" for each in conditions)
        return f"it has no condition {name}; it has {has or 'none at all'}"
    generation = obj["metadata"].get("generation") or 0
    observed = found.get("observedGeneration", status.get("observedGeneration"))
    if observed is not None and observed < generation:
        return f"{_told(found)} is of generation {observed}, and the object's is {generation}"
    return "" if str(found.get("status", "")).lower() == (wanted or "True").lower() else _told(found)


def _told(condition: dict[str, Any]) -> str:
    reason = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return f"{condition.get('type')}={condition.get('status')}" + (f" ({reason})" if reason else "")
