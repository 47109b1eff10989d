"""``authorization/escalation.py``: what the registry asks of it; the words are in the conformance scripts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from setpoint.server.authorization import escalation
from setpoint.server.authorization.attributes import Attributes
from setpoint.server.authorization.authorizer import Decision, Held
from setpoint.server.authorization.rbac import GROUP
from setpoint.server.authorization.rules import EVERYTHING, Rule
from setpoint.server.registry.allocation import Allocations
from setpoint.server.registry.builtins import builtin_resources
from setpoint.server.registry.requests import Ask, User, Verb
from setpoint.server.registry.resources import Object
from setpoint.server.registry.served import Resources
from setpoint.server.statuses import StatusError

RESOURCES = Resources(builtin_resources(Allocations("10.0.0.0/24")))
JANE = User("jane")
PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
SECRETS = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}


class Has:
    """An authorizer by which everybody holds the same."""

    def __init__(self, *rules: Rule, may: Sequence[str] = ()) -> None:
        self._rules, self._may = rules, may

    def allows(self, user: User, asked: Attributes) -> bool:  # noqa: ARG002
        return asked.verb in self._may

    def decide(self, user: User, asked: Attributes) -> Decision:
        return Decision(self.allows(user, asked))

    def held(self, user: User, namespace: str) -> Held:  # noqa: ARG002
        return Held(self._rules)

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[Rule] | None:  # noqa: ARG002
        return None if name == "absent" else [Rule(("get",), ("",), ("secrets",))]


PODS_ONLY = Has(Rule(("get",), ("",), ("pods",)))


def ask(plural: str, *, verb: Verb = "create", user: User = JANE) -> Ask:
    return Ask(verb, RESOURCES.builtin(GROUP, "v1", plural), "shop", "x", user=user)


def role(*rules: Object, **more: object) -> Object:
    return {"metadata": {"name": "x"}, "rules": list(rules), **more}


def binding(name: str = "r") -> Object:
    return {"metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": GROUP}}


@pytest.mark.parametrize("plural", ["roles", "clusterroles"])
def test_a_role_gives_what_its_writer_has(plural: str) -> None:
    escalation.check(role(PODS), None, ask(plural), PODS_ONLY)
    escalation.check(role(), None, ask(plural), PODS_ONLY)
    escalation.check(role(PODS), role(), ask(plural, verb="patch"), PODS_ONLY)
    with pytest.raises(StatusError, match="not currently held") as refused:
        escalation.check(role(PODS, SECRETS), None, ask(plural), PODS_ONLY)
    assert refused.value.code == 403
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in refused.value.message


def test_who_may_escalate_or_bind_and_the_masters_give_what_they_like() -> None:
    escalation.check(role(SECRETS), None, ask("roles"), Has(may=["escalate"]))
    escalation.check(binding(), None, ask("rolebindings"), Has(may=["bind"]))
    chief = User("chief", ("system:masters",))
    escalation.check(role(SECRETS), None, ask("roles", user=chief), Has())
    for may in ("bind", "create"):
        with pytest.raises(StatusError):
            escalation.check(role(SECRETS), None, ask("roles"), Has(may=[may]))


@pytest.mark.parametrize("plural", ["rolebindings", "clusterrolebindings"])
def test_a_binding_gives_what_its_writer_has(plural: str) -> None:
    escalation.check(binding(), None, ask(plural), Has(Rule(("*",), ("",), ("secrets",))))
    with pytest.raises(StatusError, match="not currently held"):
        escalation.check(binding(), None, ask(plural), PODS_ONLY)
    with pytest.raises(StatusError) as refused:
        escalation.check(binding("absent"), None, ask(plural), PODS_ONLY)
    assert refused.value.code == 404


def test_only_who_has_everything_gathers() -> None:
    gathers: Object = {"aggregationRule": {"clusterRoleSelectors": [{}]}}
    escalation.check(role(**gathers), None, ask("clusterroles"), Has(*EVERYTHING))
    for new, old in ((role(**gathers), None), (role(**gathers), role()), (role(), role(**gathers))):
        with pytest.raises(StatusError, match="cluster-admin privileges"):
            escalation.check(new, old, ask("clusterroles", verb="update"), PODS_ONLY)


def test_the_garbage_collectors_fields_are_anyones_and_nothing_else_is() -> None:
    old = role(SECRETS)
    new = {**old, "metadata": {"name": "x", "finalizers": ["a/b"], "ownerReferences": [{"uid": "u"}]}}
    escalation.check(new, old, ask("roles", verb="patch"), PODS_ONLY)
    labelled = {**old, "metadata": {"name": "x", "labels": {"a": "b"}}}
    with pytest.raises(StatusError):
        escalation.check(labelled, old, ask("roles", verb="patch"), PODS_ONLY)
