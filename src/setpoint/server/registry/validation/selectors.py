"""What is wrong with selectors: of labels, of nodes; and which labels one matches."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from setpoint.api.selectors import label_key_errors, label_value_errors
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found

_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_OPERATOR = "not a valid selector operator"
_LONGEST_KEY, _LONGEST_VALUE = 253 + 1 + 63, 63  # of a label; what is longer is not kept to be known again


@lru_cache(maxsize=4096)  # a cluster's objects repeat few labels
def _are_fine(key: str, value: str) -> bool:
    return not label_key_errors(key) and not label_value_errors(value)


def check_labels(labels: dict[str, str] | None, path: str, found: Found) -> None:
    for key, value in (labels or {}).items():
        if len(key) > _LONGEST_KEY or len(value) > _LONGEST_VALUE or not _are_fine(key, value):
            found.told(path, key, label_key_errors(key))
            found.told(path, value, label_value_errors(value))


def check_selector(selector: dict[str, Any] | None, path: str, found: Found) -> bool:
    """Whether it can be said what it selects."""
    if not selector:
        return True
    before = len(found.errors)
    check_labels(selector.get("matchLabels"), f"{path}.matchLabels", found)
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        values = one.get("values") or []
        match one.get("operator", ""):
            case "In" | "NotIn":
                if not values:
                    found.required(f"{at}.values", _VALUES)
            case "Exists" | "DoesNotExist":
                if values:
                    found.forbidden(f"{at}.values", _NO_VALUES)
            case other:
                found.invalid(f"{at}.operator", other, _OPERATOR)
        found.told(f"{at}.key", one.get("key", ""), label_key_errors(one.get("key", "")))
        for place, value in enumerate(values):
            found.told(f"{at}.values[{place}]", value, label_value_errors(value))
    return len(found.errors) == before


def is_empty(selector: dict[str, Any] | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def matches(selector: dict[str, Any] | None, labels: dict[str, str] | None) -> bool:
    """Whether it selects an object with these labels; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    there = labels or {}
    for key, value in (selector.get("matchLabels") or {}).items():
        if there.get(key) != value:
            return False
    for one in selector.get("matchExpressions") or ():
        value, values = there.get(one.get("key", "")), one.get("values") or ()
        match one.get("operator"):
            case "In":
                fits = value in values
            case "NotIn":
                fits = value not in values
            case "Exists":
                fits = value is not None
            case _:
                fits = value is None
        if not fits:
            return False
    return True


def check_node_selector(selector: dict[str, Any], path: str, found: Found) -> None:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        found.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", found)


def check_node_term(term: dict[str, Any], path: str, found: Found, *, checks_values: bool = True) -> None:
    for index, one in enumerate(term.get("matchExpressions") or ()):
        _check_node_expression(one, f"{path}.matchExpressions[{index}]", found, checks_values=checks_values)
    for index, one in enumerate(term.get("matchFields") or ()):
        _check_node_field(one, f"{path}.matchFields[{index}]", found)


def _check_node_expression(one: dict[str, Any], at: str, found: Found, *, checks_values: bool) -> None:
    values = one.get("values") or []
    match one.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                found.required(f"{at}.values", _VALUES)
        case "Exists" | "DoesNotExist":
            if values:
                found.forbidden(f"{at}.values", _NO_VALUES)
        case "Gt" | "Lt":
            if len(values) != 1:
                found.required(
                    f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
        case other:
            found.invalid(f"{at}.operator", other, _OPERATOR)
    found.told(f"{at}.key", one.get("key", ""), label_key_errors(one.get("key", "")))
    if checks_values:
        for place, value in enumerate(values):
            found.told(f"{at}.values[{place}]", value, label_value_errors(value))


def _check_node_field(one: dict[str, Any], at: str, found: Found) -> None:
    values, operator, key = one.get("values") or [], one.get("operator", ""), one.get("key", "")
    if operator not in ("In", "NotIn"):
        found.invalid(f"{at}.operator", operator, _OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.required(f"{at}.values", detail)
    if key != "metadata.name":
        found.invalid(f"{at}.key", key, "not a valid field selector key")
        return
    for place, value in enumerate(values):
        found.told(f"{at}.values[{place}]", value, texts.subdomain(value))
