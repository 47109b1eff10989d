"""What is wrong with where a pod may run: affinity, tolerations, spreading."""

from __future__ import annotations

from typing import Any, Final

from setpoint.api.selectors import label_key_errors, label_value_errors
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.found import NOT_POSITIVE, Found
from setpoint.server.registry.validation.selectors import check_node_selector, check_node_term, check_selector

Json = dict[str, Any]
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_affinity(affinity: Json | None, path: str, found: Found) -> None:
    if not affinity:
        return
    if node := affinity.get("nodeAffinity"):
        at = f"{path}.nodeAffinity"
        if (required := node.get(_REQUIRED)) is not None:
            check_node_selector(required, f"{at}.{_REQUIRED}", found)
        for index, one in enumerate(node.get(_PREFERRED) or ()):
            _check_weight(one, f"{at}.{_PREFERRED}[{index}]", found)
            place = f"{at}.{_PREFERRED}[{index}].preference"
            check_node_term(one.get("preference") or {}, place, found, checks_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get(_REQUIRED) or ()):
            _check_pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]", found)
        for index, one in enumerate(rules.get(_PREFERRED) or ()):
            at = f"{path}.{kind}.{_PREFERRED}[{index}]"
            _check_weight(one, at, found)
            _check_pod_term(one.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm", found)


def _check_weight(one: Json, path: str, found: Found) -> None:
    weight = one.get("weight", 0)
    if not 1 <= weight <= 100:
        found.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _check_pod_term(term: Json, path: str, found: Found) -> None:
    check_selector(term.get("labelSelector"), f"{path}.labelSelector", found)
    check_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", found)
    for name in term.get("namespaces") or ():
        found.told(f"{path}.namespace", name, texts.label(name))
    _check_label_keys(term, path, found)
    key = term.get("topologyKey", "")
    if not key:
        found.required(f"{path}.topologyKey", "can not be empty")
    found.told(f"{path}.topologyKey", key, label_key_errors(key))


def _check_label_keys(term: Json, path: str, found: Found) -> None:
    selector = term.get("labelSelector")
    matched, others = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", others)):
        if keys and selector is None:
            found.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            found.told(f"{path}.{field}[{index}]", key, label_key_errors(key))
    if selector is not None:
        _check_named_twice(matched, selector, path, found)
    excluded = set(others)
    for index, key in enumerate(matched):
        if key in excluded:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def _check_named_twice(matched: list[str], selector: Json, path: str, found: Found) -> None:
    places = {key: index for index, key in enumerate(matched)}
    seen = set(selector.get("matchLabels") or {})
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in places and key in seen:
            at = f"{path}[{places[key]}]"
            found.invalid(at, key, "exists in both matchLabelKeys and labelSelector")
        seen.add(key)


def check_tolerations(tolerations: list[Json], path: str, found: Found) -> None:
    for index, one in enumerate(tolerations):
        at, key, value = f"{path}[{index}]", one.get("key", ""), one.get("value", "")
        operator, effect = one.get("operator", ""), one.get("effect", "")
        if key:
            if errors := label_key_errors(key):
                found.told(f"{at}.key", key, errors)
        elif operator != "Exists":
            detail = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            found.invalid(f"{at}.operator", operator, detail)
        if one.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.invalid(f"{at}.effect", effect, detail)
        match operator:
            case "Equal" | "":
                if errors := label_value_errors(value):
                    found.invalid(f"{at}.operator", value, ";".join(errors))
            case "Exists":
                if value:
                    detail = "value must be empty when `operator` is 'Exists'"
                    found.invalid(f"{at}.operator", value, detail)
            case "Lt" | "Gt":
                _check_integer(value, f"{at}.value", found)
            case _:
                found.unsupported(f"{at}.operator", operator, ("Equal", "Exists"))
        if effect:
            found.one_of(f"{at}.effect", effect, EFFECTS)


def _check_integer(value: str, path: str, found: Found) -> None:
    digits = value.removeprefix("-")
    if not value:
        found.invalid(path, value, "must be non-empty")
    elif not (digits.isascii() and digits.isdecimal()) or (digits[0] == "0" and value != "0"):
        found.invalid(path, value, "must be a valid decimal integer in canonical form")


def check_taints(taints: list[Json], path: str, found: Found) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        found.told(f"{at}.key", key, label_key_errors(key))
        if errors := label_value_errors(value):
            found.invalid(f"{at}.value", value, ";".join(errors))
        found.some_of(f"{at}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            shown = internals.shown(taint, "", "v1", "Node", "spec", "taints")
            found.duplicate(at, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def check_spread(constraints: list[Json], path: str, found: Found) -> None:
    last = {
        (one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")): index
        for index, one in enumerate(constraints)
    }
    for index, one in enumerate(constraints):
        at = f"{path}[{index}]"
        key, action = one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")
        if one.get("maxSkew", 0) <= 0:
            found.invalid(f"{at}.maxSkew", one.get("maxSkew", 0), NOT_POSITIVE)
        if not key:
            found.required(f"{at}.topologyKey", "can not be empty")
        found.one_of(f"{at}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if last[key, action] > index:
            found.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        domains = one.get("minDomains")
        if domains is not None:
            if domains <= 0:
                found.invalid(f"{at}.minDomains", domains, NOT_POSITIVE)
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                found.invalid(f"{at}.minDomains", domains, detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if one.get(field) is not None:
                found.one_of(f"{at}.{field}", one[field], ("Honor", "Ignore"))
        _check_label_keys(one, at, found)
        check_selector(one.get("labelSelector"), f"{at}.labelSelector", found)
