"""Which watch serves whom, and what is said when one cannot run."""

from __future__ import annotations

from dataclasses import replace

from setpoint.api import yaml
from setpoint.api.names import GroupVersionKind, Resource
from setpoint.api.selectors import FieldSelection, LabelSelection
from setpoint.cache.scope import Problem, Scope
from setpoint.errors import Forbidden, KindNotServed

POD = Scope(GroupVersionKind("", "v1", "Pod"))
PODS = Resource("", "v1", "Pod", "pods")


def test_a_scope_says_what_it_is() -> None:
    scope = replace(
        POD,
        namespace="shop",
        labels=LabelSelection.parse("app=web"),
        fields=FieldSelection.parse("spec.nodeName=n1"),
        metadata_only=True,
    )
    assert str(scope) == "v1 Pod in namespace shop with app=web where spec.nodeName=n1 (metadata only)"
    assert not scope.is_whole
    assert replace(POD, namespace="shop").is_whole


def test_whole_objects_serve_those_who_want_less() -> None:
    less = replace(POD, metadata_only=True, strip_managed_fields=True)
    assert POD.serves(POD)
    assert POD.serves(less)
    assert not less.serves(POD)
    assert not POD.serves(replace(POD, namespace="shop"))
    assert not POD.serves(replace(POD, labels=LabelSelection.parse("app=web")))


def test_a_missing_permission_is_told_as_the_rule_that_is_missing() -> None:
    forbidden = Forbidden("list v1 Pod", 'User "me" cannot list resource "pods"')
    told = str(Problem(POD, "list", forbidden, PODS))
    assert told == (
        'list v1 Pod: User "me" cannot list resource "pods"; add to the rules of a ClusterRole: '
        '- {apiGroups: [""], resources: ["pods"], verbs: [get, list, watch]}'
    )
    told = str(Problem(replace(POD, namespace="shop"), "list", forbidden, PODS))
    assert "add to the rules of a Role in namespace shop: - {" in told


def test_the_rule_can_be_pasted_into_a_role() -> None:
    problem = Problem(POD, "list", Forbidden("list v1 Pod", "no"), PODS)
    role = yaml.load(f"rules:\n{problem.rule}\n")
    assert role == {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]}


def test_another_problem_is_told_as_it_is() -> None:
    problem = Problem(POD, "list", KindNotServed("list v1 Pod", "404 page not found"), PODS)
    assert problem.rule == ""
    assert "CustomResourceDefinition" in str(problem)
