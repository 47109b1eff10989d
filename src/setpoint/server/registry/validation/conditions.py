"""What is wrong with conditions of the common form."""

from __future__ import annotations

from typing import Any

from setpoint.api.selectors import label_key_errors
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found


def check_conditions(conditions: list[dict[str, Any]], path: str, found: Found) -> None:
    seen: set[str] = set()
    for index, one in enumerate(conditions):
        at, kind, status, reason = (
            f"{path}[{index}]",
            one.get("type", ""),
            one.get("status", ""),
            one.get("reason", ""),
        )
        found.unique(at, kind, seen)
        if not kind:
            found.required(f"{at}.type", "is required")
        else:
            found.told(f"{at}.type", kind, label_key_errors(kind))
        found.some_of(f"{at}.status", status, ("False", "True", "Unknown"))
        if one.get("observedGeneration", 0) < 0:
            generation = one["observedGeneration"]
            found.invalid(f"{at}.observedGeneration", generation, "must be greater than or equal to zero")
        if not one.get("lastTransitionTime"):
            found.required(f"{at}.lastTransitionTime")
        if not reason:
            found.required(f"{at}.reason")
        else:
            found.told(f"{at}.reason", reason, texts.condition_reason(reason))
            if len(reason) > 1024:
                found.too_long(f"{at}.reason", 1024)
        if len(one.get("message", "")) > 32 * 1024:
            found.too_long(f"{at}.message", 32 * 1024)
