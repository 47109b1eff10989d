"""Which requests a webhook or a policy is about: rules and scopes, selectors, equivalent versions.

``Matching`` is read once from a configuration; ``matched`` says as which resource a request is meant, or
None.  Pure: the labels of a namespace are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from setpoint.api.selectors import LabelSelection
from setpoint.server.admission.attributes import Attributes
from setpoint.server.registry.resources import Object, Resource

LabelsOf = Callable[[str], Mapping[str, str]]  # of a namespace
Equivalents = Callable[[Resource], Sequence[Resource]]  # the same objects, in other versions


class Rule(NamedTuple):
    """One rule; ``*`` stands for anything."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # with the subresource
    scope: str = "*"
    names: frozenset[str] = frozenset()

    def matches(self, asked: Attributes, resource: Resource) -> bool:
        return (
            self._has_scope(asked, resource)
            and _has(self.operations, asked.operation)
            and _has(self.groups, resource.group)
            and _has(self.versions, resource.version)
            and any(
                one in ("*", resource.plural) and below in ("*", asked.subresource)
                for one, below in self.resources
            )
            and (not self.names or asked.name in self.names)
        )

    def _has_scope(self, asked: Attributes, resource: Resource) -> bool:
        if self.scope == "*":
            return True
        is_namespace = (resource.group, resource.version, resource.plural) == ("", "v1", "namespaces")
        is_inside = not is_namespace and bool(asked.namespace)
        return is_inside == (self.scope == "Namespaced")


def _has(values: frozenset[str], asked: str) -> bool:
    return asked in values or "*" in values


def read_rule(rule: Mapping[str, Any]) -> Rule:
    split = [one.partition("/") for one in rule.get("resources") or ()]
    return Rule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        tuple((resource, below) for resource, _, below in split),
        rule.get("scope") or "*",
        frozenset(rule.get("resourceNames") or ()),
    )


class Matching(NamedTuple):
    """What one webhook or policy is about."""

    rules: tuple[Rule, ...]
    is_equivalent: bool
    namespaces: LabelSelection
    objects: LabelSelection
    excluded: tuple[Rule, ...] = ()
    is_about_all: bool = False  # a policy that names no rules

    def matched(self, asked: Attributes, labels_of: LabelsOf, equivalents: Equivalents) -> Resource | None:
        """The resource, perhaps in another version, as which the request is meant."""
        if not self._selects_namespace(asked, labels_of) or not self._selects_object(asked):
            return None
        if self._among(self.excluded, asked, equivalents) is not None:
            return None
        return asked.resource if self.is_about_all else self._among(self.rules, asked, equivalents)

    def _among(self, rules: Sequence[Rule], asked: Attributes, equivalents: Equivalents) -> Resource | None:
        if any(rule.matches(asked, asked.resource) for rule in rules):
            return asked.resource
        if not self.is_equivalent or not rules:
            return None
        others = [one for one in equivalents(asked.resource) if one is not asked.resource]
        return next((one for rule in rules for one in others if rule.matches(asked, one)), None)

    def _selects_namespace(self, asked: Attributes, labels_of: LabelsOf) -> bool:
        if not self.namespaces.requirements:
            return True
        is_namespace = asked.resource.plural == "namespaces"
        if not asked.namespace and not is_namespace:
            return True  # what lies in no namespace is never left out
        if is_namespace and not asked.subresource and asked.operation != "DELETE":
            return self.namespaces.matches(labels(asked.object))
        return self.namespaces.matches(labels_of(asked.namespace))

    def _selects_object(self, asked: Attributes) -> bool:
        if not self.objects.requirements:
            return True
        if asked.operation == "CONNECT":
            return False  # what has no metadata is never selected
        both = (asked.object, asked.old)
        return any(one is not None and self.objects.matches(labels(one)) for one in both)


def labels(obj: Object | None) -> Mapping[str, str]:
    found: Mapping[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return found


def read_matching(hook: Mapping[str, Any], rules: str, excluded: str = "") -> Matching:
    """From a webhook, or the constraints of a policy."""
    return Matching(
        tuple(read_rule(one) for one in hook.get(rules) or ()),
        (hook.get("matchPolicy") or "Equivalent") == "Equivalent",
        LabelSelection.from_object(hook.get("namespaceSelector") or {}),
        LabelSelection.from_object(hook.get("objectSelector") or {}),
        tuple(read_rule(one) for one in hook.get(excluded) or ()) if excluded else (),
    )
