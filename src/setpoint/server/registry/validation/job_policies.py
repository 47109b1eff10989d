"""What is wrong with what a Job calls a failure, and a success."""

from __future__ import annotations

from typing import Any, Final

from setpoint.api.selectors import label_key_errors
from setpoint.server.golang import quoted
from setpoint.server.registry.validation.found import Found, listed
from setpoint.server.registry.validation.texts import whole

Json = dict[str, Any]
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")
_OPERATORS: Final = ("In", "NotIn")


def check_failure_policy(policy: Json, spec: Json, path: str, found: Found) -> None:
    rules = policy.get("rules") or []
    if len(rules) > 20:
        found.too_many(f"{path}.rules", len(rules), 20)
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {one.get("name") for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        action = rule.get("action", "")
        if not action:
            found.required(f"{at}.action", f"valid values: {listed(_ACTIONS)}")
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                found.invalid(f"{at}.action", action, "requires the backoffLimitPerIndex to be set")
        else:
            found.one_of(f"{at}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _check_exit_codes(codes, names, f"{at}.onExitCodes", found)
        for place, pattern in enumerate(conditions):
            _check_pattern(pattern, f"{at}.onPodConditions[{place}]", found)
        if codes is not None and conditions:
            found.unnamed(at, "specifying both OnExitCodes and OnPodConditions is not supported")
        if codes is None and not conditions:
            found.unnamed(at, "specifying one of OnExitCodes and OnPodConditions is required")


def _check_exit_codes(codes: Json, names: set[str | None], path: str, found: Found) -> None:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if not operator:
        found.required(f"{path}.operator", f"valid values: {listed(_OPERATORS)}")
    else:
        found.one_of(f"{path}.operator", operator, _OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        found.invalid(f"{path}.containerName", name, detail)
    if not values:
        found.invalid(f"{path}.values", values, "at least one value is required")
    elif len(values) > 255:
        found.too_many(f"{path}.values", len(values), 255)
    seen: set[int] = set()
    for index, value in enumerate(values):
        at = f"{path}.values[{index}]"
        if operator == "In" and value == 0:
            found.invalid(at, value, "must not be 0 for the In operator")
        if value in seen:
            found.duplicate(at, value)
        seen.add(value)
    if values != sorted(values):
        found.invalid(f"{path}.values", values, "must be ordered")


def _check_pattern(pattern: Json, path: str, found: Found) -> None:
    kind, status = pattern.get("type", ""), pattern.get("status", "")
    found.told(f"{path}.type", kind, label_key_errors(kind))
    if not status:
        found.required(f"{path}.status", f"valid values: {listed(_STATUSES)}")
    else:
        found.one_of(f"{path}.status", status, _STATUSES)


def check_success_policy(policy: Json, completions: int, path: str, found: Found) -> None:
    rules = policy.get("rules") or []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        found.required(f"{path}.rules", detail)
    if len(rules) > 20:
        found.too_many(f"{path}.rules", len(rules), 20)
    for index, rule in enumerate(rules):
        at, indexes, count = (
            f"{path}.rules[{index}]",
            rule.get("succeededIndexes"),
            rule.get("succeededCount"),
        )
        if indexes is None and count is None:
            found.required(at, "at least one of succeededCount or succeededIndexes must be specified")
        total, error = indexes_total(indexes or "", completions)
        if error:
            detail = f"error parsing succeededIndexes: {error}"
            found.invalid(f"{at}.succeededIndexes", indexes, detail)
        if count is None:
            continue
        found.not_negative(f"{at}.succeededCount", count)
        for most, what in (
            (completions, "the number of specified completions"),
            (
                total if indexes is not None else count,
                "the number of indexes in the specified succeededIndexes field",
            ),
        ):
            if count > most:
                found.invalid(f"{at}.succeededCount", count, f"must be less than or equal to {most} ({what})")


def indexes_total(text: str, completions: int) -> tuple[int, str]:
    """How many indexes ``1,3-5`` names; or what is wrong with it."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            told = (
                "violates the requirement that an index interval can have at most two parts separated by '-'"
            )
            return 0, f"the fragment {quoted(part)} {told}"
        numbers = []
        for end in ends:
            number = whole(end)
            if number is None:
                return 0, f"cannot convert string to integer for index: {quoted(end)}"
            if number >= completions:
                return 0, f"too large index: {quoted(end)}"
            numbers.append(number)
        low, high = numbers[0], numbers[-1]
        if len(numbers) == 2 and low >= high:
            return 0, f"non-increasing order, previous: {low}, current: {high}"
        if last >= low:
            return 0, f"non-increasing order, previous: {last}, current: {low}"
        total, last = total + high - low + 1, high
    return total, ""
