"""What is wrong with admission policies and their bindings; their expressions are compiled here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.admission import check_conditions, check_rule
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.selectors import check_selector

if TYPE_CHECKING:
    from setpoint.server.admission.cel import Scope

Json = dict[str, Any]
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_CHANGES: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE: Final = 5 * 1024
_NAME: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


# ── Policies ────────────────────────────────────────────────────────────────────────────────────────


def check_validating_policy(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    scope = _check_common(spec, found)
    rules, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not rules and not annotations:
        detail = "validations or auditAnnotations must contain at least one item"
        found.required("spec.validations", detail)
        found.required("spec.auditAnnotations", detail)
        return
    for index, rule in enumerate(rules):
        _check_validation(rule, f"spec.validations[{index}]", scope, found)
    if len(annotations) > _MOST_ANNOTATIONS:
        told = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        found.invalid("spec.auditAnnotations", annotations, told)
    keys: set[str] = set()
    for index, one in enumerate(annotations[:_MOST_ANNOTATIONS]):
        path, key = f"spec.auditAnnotations[{index}]", one.get("key", "")
        found.told(f"{path}.key", f"{obj['metadata'].get('name', '')}/{key}", _qualified(obj, key))
        _check_value(one.get("valueExpression") or "", f"{path}.valueExpression", scope, found)
        found.unique(f"{path}.key", key, keys)


def check_mutating_policy(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    scope = _check_common(spec, found)
    _check_operations(spec.get("matchConstraints") or {}, "spec.matchConstraints", found)
    mutations = spec.get("mutations") or []
    if not mutations:
        found.required("spec.mutations", "mutations must contain at least one item")
    for index, one in enumerate(mutations):
        _check_mutation(one, f"spec.mutations[{index}]", scope, found)
    policy = spec.get("reinvocationPolicy")
    if not policy:
        found.required("spec.reinvocationPolicy")
    else:
        found.one_of("spec.reinvocationPolicy", policy, ("IfNeeded", "Never"))


def _qualified(obj: Object, key: str) -> list[str]:
    return texts.qualified(f"{obj['metadata'].get('name', '')}/{key}")


def _check_common(spec: Json, found: Found) -> Scope:
    """What both kinds have; and the names that their expressions may use."""
    from setpoint.server.admission.cel import Scope  # noqa: PLC0415 - the engine is large

    policy = spec.get("failurePolicy")
    if policy is None:
        found.required("spec.failurePolicy")
    else:
        found.one_of("spec.failurePolicy", policy, ("Fail", "Ignore"))
    kind = spec.get("paramKind")
    if kind is not None:
        _check_kind(kind, "spec.paramKind", found)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.required("spec.matchConstraints")
    else:
        _check_resources(constraints, "spec.matchConstraints", found)
        if not constraints.get("resourceRules"):
            found.required("spec.matchConstraints.resourceRules")
    conditions = spec.get("matchConditions") or []
    check_conditions(conditions, "spec.matchConditions", found, has_params=kind is not None)
    variables = spec.get("variables") or []
    scope = Scope(has_params=kind is not None, has_variables=bool(variables))
    for index, one in enumerate(variables):
        _check_variable(one, f"spec.variables[{index}]", scope, found)
    return scope


def _check_kind(kind: Json, path: str, found: Found) -> None:
    said, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not said:
        found.required(f"{path}.apiVersion")
    elif said.count("/") > 1:
        found.invalid(f"{path}.apiVersion", said, f"unexpected GroupVersion string: {said}")
    else:
        group, _, version = said.rpartition("/")
        if group and (errors := texts.subdomain(group)):
            found.invalid(f"{path}.apiVersion", group, ",".join(errors))
        if not version:
            found.invalid(f"{path}.apiVersion", said, "version must be specified")
        elif errors := texts.label_1035(version):
            found.invalid(f"{path}.apiVersion", version, ",".join(errors))
    if not name:
        found.required(f"{path}.kind")
    elif errors := texts.label_1035(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(errors)}"
        found.invalid(f"{path}.kind", name, detail)


def _check_resources(constraints: Json, path: str, found: Found) -> None:
    policy = constraints.get("matchPolicy")
    if policy is None:
        found.required(f"{path}.matchPolicy")
    else:
        found.one_of(f"{path}.matchPolicy", policy, ("Equivalent", "Exact"))
    for field in ("namespaceSelector", "objectSelector"):
        check_selector(constraints.get(field), f"{path}.{field}", found)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(constraints.get(field) or ()):
            at, names = f"{path}.{field}[{index}]", set[str]()
            for place, name in enumerate(rule.get("resourceNames") or ()):
                found.told(f"{at}.resourceNames[{place}]", name, texts.path_segment(name))
                found.unique(f"{at}.resourceNames[{place}]", name, names)
            check_rule(rule, at, found)


def _check_operations(constraints: Json, path: str, found: Found) -> None:
    for rule in constraints.get("resourceRules") or ():
        for one in rule.get("operations") or ():
            found.one_of(f"{path}.resourceRules.operations", one, _CHANGES)


# ── Expressions ─────────────────────────────────────────────────────────────────────────────────────


def _compile(text: str, path: str, scope: Scope, found: Found, *results: str) -> None:
    from setpoint.server.admission.cel import compile_error  # noqa: PLC0415

    if told := compile_error(text, scope, *results):
        found.invalid(path, text, told)


def _check_variable(one: Json, path: str, scope: Scope, found: Found) -> None:
    from setpoint.server.admission.cel import CompileError  # noqa: PLC0415

    name, text = one.get("name", ""), one.get("expression", "")
    if not name.strip():
        found.required(f"{path}.name", "name is not specified")
    elif _NAME.fullmatch(name) is None:
        found.invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if not text.strip():
        found.required(f"{path}.expression", "expression is not specified")
        return
    _compile(text, f"{path}.expression", scope, found)
    try:
        scope.declare(name, scope.compile(text).type)
    except CompileError:
        return  # as was told


def _check_validation(rule: Json, path: str, scope: Scope, found: Found) -> None:
    from setpoint.server.admission.cel import compile_error  # noqa: PLC0415

    text, message = rule.get("expression", ""), rule.get("message", "")
    composed = rule.get("messageExpression", "")
    if not text.strip():
        found.required(f"{path}.expression", "expression is not specified")
    else:
        _compile(text, f"{path}.expression", scope, found, "bool")
    if composed and not composed.strip():
        found.invalid(f"{path}.messageExpression", composed, "must be non-empty if specified")
    elif composed:
        told = compile_error(composed, scope, "string", has_authorizer=False)
        if told:
            found.invalid(f"{path}.messageExpression", composed, told)
    if message and not message.strip():
        found.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        found.invalid(f"{path}.message", message, "must not contain line breaks")
    if (reason := rule.get("reason")) is not None:
        found.one_of(f"{path}.reason", reason, _REASONS)


def _check_value(text: str, path: str, scope: Scope, found: Found) -> None:
    if not text.strip():
        found.required(path, "valueExpression is not specified")
    elif len(text.strip().encode()) > _LONGEST_VALUE:
        found.required(path, f"must not exceed {_LONGEST_VALUE} bytes in length")
    else:
        _compile(text.strip(), path, scope, found, "string", "null_type")


def _check_mutation(one: Json, path: str, scope: Scope, found: Found) -> None:
    kind, patch, applied = one.get("patchType"), one.get("jsonPatch"), one.get("applyConfiguration")
    if not kind:
        found.required(f"{path}.patchType")
    elif kind == "JSONPatch":
        if patch is None:
            found.required(f"{path}.jsonPatch", "must be specified when patchType is JSONPatch")
        else:
            _check_patch(patch, f"{path}.jsonPatch", scope, found, "list(JSONPatch)")
        if applied is not None:
            told = "must not be specified when patchType is JSONPatch"
            found.invalid(f"{path}.applyConfiguration", "{applyConfiguration}", told)
    elif kind == "ApplyConfiguration":
        if applied is None:
            told = "must be specified when patchType is ApplyConfiguration"
            found.required(f"{path}.applyConfiguration", told)
        else:
            _check_patch(applied, f"{path}.applyConfiguration", scope, found, "Object")
        if patch is not None:
            told = "must not be specified when patchType is ApplyConfiguration"
            found.invalid(f"{path}.jsonPatch", "{jsonPatch}", told)
    else:
        found.one_of(f"{path}.patchType", kind, ("ApplyConfiguration", "JSONPatch"))


def _check_patch(one: Json, path: str, scope: Scope, found: Found, result: str) -> None:
    from setpoint.server.admission.cel import CompileError, compile_text, patch_expression  # noqa: PLC0415

    text = one.get("expression", "").strip()
    if not text:
        found.required(f"{path}.expression")
        return
    try:
        patch_expression(text, scope, result)
    except CompileError as error:
        found.invalid(f"{path}.expression", text, compile_text(error))


# ── Bindings ────────────────────────────────────────────────────────────────────────────────────────


def check_validating_binding(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    _check_binding(spec, found)
    path, actions = "spec.validationActions", spec.get("validationActions") or []
    seen: set[str] = set()
    for index, one in enumerate(actions):
        found.one_of(f"{path}[{index}]", one, _ACTIONS)
        found.unique(f"{path}[{index}]", one, seen)
    if {"Deny", "Warn"} <= set(actions):
        found.invalid(
            path,
            actions,
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)",
        )
    if not actions:
        found.required(path)


def check_mutating_binding(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    _check_binding(spec, found)
    _check_operations(spec.get("matchResources") or {}, "spec.matchResources", found)


def _check_binding(spec: Json, found: Found) -> None:
    name = spec.get("policyName", "")
    if not name:
        found.required("spec.policyName")
    else:
        found.told("spec.policyName", name, texts.subdomain(name))
    if (ref := spec.get("paramRef")) is not None:
        _check_params(ref, "spec.paramRef", found)
    if (resources := spec.get("matchResources")) is not None:
        _check_resources(resources, "spec.matchResources", found)


def _check_params(ref: Json, path: str, found: Found) -> None:
    name, selector = ref.get("name", ""), ref.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        found.told(f"{path}.name", name, texts.path_segment(name))
        if selector is not None:
            found.forbidden(f"{path}.name", exclusive)
    if selector is not None:
        check_selector(selector, f"{path}.selector", found)
        if name:
            found.forbidden(f"{path}.selector", exclusive)
    if not name and selector is None:
        found.required(path, "one of name or selector must be specified")
    action = ref.get("parameterNotFoundAction")
    if not action:
        found.required(f"{path}.parameterNotFoundAction")
    else:
        found.one_of(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))
