"""What is wrong with roles and bindings."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.golang import same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.found import IMMUTABLE, Found
from setpoint.server.registry.validation.selectors import check_selector

Json = dict[str, Any]
_GROUP: Final = "rbac.authorization.k8s.io"


def check_role(obj: Object, found: Found) -> None:
    _check_rules(obj, found, is_namespaced=True)


def check_cluster_role(obj: Object, found: Found) -> None:
    rule = obj.get("aggregationRule")
    path = "aggregationRule.clusterRoleSelectors"
    late = Found()
    if rule is not None:
        selectors = rule.get("clusterRoleSelectors") or []
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            late.required(path, detail)
        for index, one in enumerate(selectors):
            if not check_selector(one, f"{path}[{index}]", late):
                late.invalid(f"{path}[{index}]", None, "invalid label selector.")
    _check_rules(obj, found, late, is_namespaced=False)


def _check_rules(obj: Object, found: Found, between: Found | None = None, *, is_namespaced: bool) -> None:
    rules = obj.get("rules") or []
    for index, rule in enumerate(rules):
        path, urls = f"rules[{index}]", rule.get("nonResourceURLs") or []
        if urls:
            if is_namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                found.invalid(f"{path}.nonResourceURLs", urls, detail)
            if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                found.invalid(f"{path}.nonResourceURLs", urls, detail)
            continue
        if not rule.get("apiGroups"):
            found.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            found.required(f"{path}.resources", "resource rules must supply at least one resource")
    if between is not None:
        found.errors += between.errors
    for index, rule in enumerate(rules):
        if not rule.get("verbs"):
            found.required(f"rules[{index}].verbs")


def check_role_binding(obj: Object, found: Found) -> None:
    _check_binding(obj, found, is_namespaced=True)


def check_cluster_role_binding(obj: Object, found: Found) -> None:
    _check_binding(obj, found, is_namespaced=False)


def _check_binding(obj: Object, found: Found, *, is_namespaced: bool) -> None:
    ref = obj.get("roleRef") or {}
    group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
    if group != _GROUP:
        found.unsupported("roleRef.apiGroup", group, (_GROUP,))
    found.one_of("roleRef.kind", kind, ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",))
    if name:
        found.told("roleRef.name", name, texts.path_segment(name))
    subjects = obj.get("subjects") or []
    for index, subject in enumerate(subjects):
        _check_subject(subject, f"subjects[{index}]", found, is_namespaced=is_namespaced)
    if not name:
        found.required("roleRef.name")
    for index, subject in enumerate(subjects):
        if not subject.get("name"):
            found.required(f"subjects[{index}].name")


def _check_subject(subject: Json, path: str, found: Found, *, is_namespaced: bool) -> None:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    match kind:
        case "ServiceAccount":
            if name:
                found.told(f"{path}.name", name, texts.subdomain(name))
            if group:
                found.unsupported(f"{path}.apiGroup", group, ("",))
            if not is_namespaced and not subject.get("namespace"):
                found.required(f"{path}.namespace")
        case "User" | "Group":
            if group != _GROUP:
                found.unsupported(f"{path}.apiGroup", group, (_GROUP,))
        case _:
            found.unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


def check_role_binding_update(new: Object, old: Object, found: Found) -> None:
    check_role_binding(new, found)
    _check_same_role(new, old, "RoleBinding", found)


def check_cluster_role_binding_update(new: Object, old: Object, found: Found) -> None:
    check_cluster_role_binding(new, found)
    _check_same_role(new, old, "ClusterRoleBinding", found)


def _check_same_role(new: Object, old: Object, kind: str, found: Found) -> None:
    ref = new.get("roleRef") or {}
    if not same(ref, old.get("roleRef") or {}):
        found.invalid("roleRef", internals.shown(ref, _GROUP, "v1", kind, "roleRef"), IMMUTABLE)
