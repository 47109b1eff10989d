"""What becomes of the conditions of a request for a certificate when it is approved or answered.

Pure; in place.  Used by ``flow.py``.
"""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.resources import Object

_DECIDED: Final = ("Approved", "Denied")

Json = dict[str, Any]


def settle_conditions(new: Object, old: Object, subresource: str, now: str) -> None:
    """Who answers leaves what was decided as it is; and each condition has its times."""
    conditions = _conditions(new)
    before = _conditions(old)
    if subresource == "status":
        for kind in _DECIDED:
            _keep(conditions, before, kind)
    for one in conditions:
        if not one.get("lastUpdateTime"):
            one["lastUpdateTime"] = now
        if not one.get("lastTransitionTime"):
            same = (
                was.get("lastTransitionTime")
                for was in before
                if (was.get("type"), was.get("status")) == (one.get("type"), one.get("status"))
            )
            one["lastTransitionTime"] = next(same, None) or now


def _conditions(obj: Object) -> list[Json]:
    found: list[Json] = (obj.get("status") or {}).get("conditions") or []
    return found


def _keep(conditions: list[Json], before: list[Json], kind: str) -> None:
    """As many of a kind as there were are those that there were; to refuse others is for validation."""
    here = [index for index, one in enumerate(conditions) if one.get("type") == kind]
    kept = [one for one in before if one.get("type") == kind]
    if len(here) == len(kept):
        for index, one in zip(here, kept, strict=True):
            conditions[index] = dict(one)
