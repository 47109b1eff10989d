"""``testing/privileges.py``: operators run with the rules that they declare, and what is missing is named."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.database import database
from examples.webapp import webapp
from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client
from setpoint.kube.apps.v1 import Deployment
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request
from setpoint.operator import Operator
from setpoint.server.server import ApiServer
from setpoint.testing.privileges import Privileges, Right, least_privilege
from setpoint.testing.waiting import eventually

pytestmark = pytest.mark.virtual_time

Rules = list[dict[str, Any]]
SHOP = webapp.WebApp(
    metadata=ObjectMeta(name="shop", namespace="default"), spec=webapp.WebAppSpec(image="nginx")
)


@asynccontextmanager
async def running(operator: Operator, rules: Rules) -> AsyncIterator[tuple[Client, Privileges]]:
    """The operator, with these rules and no others; and an administrator's client."""
    async with ApiServer() as server, Client(transport=server.transport()) as admin:
        for crd in operator.crds():
            await admin.create(crd)
        async with least_privilege(server, rules) as allowed, Client(transport=allowed) as client:
            manager = Manager(client=client, name=operator.name, graceful_shutdown=1.0)
            operator.add_to(manager)
            async with manager:
                yield admin, allowed


def without(rules: Iterable[dict[str, Any]], resource: str, *verbs: str) -> Rules:
    less = copy.deepcopy(list(rules))
    for rule in less:
        if resource in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb not in verbs]
    return [rule for rule in less if rule["verbs"]]


async def test_the_rules_that_an_operator_declares_are_enough_for_it() -> None:
    async with running(webapp.operator, webapp.operator.rules()) as (admin, allowed):
        await admin.create(SHOP)
        await eventually(lambda: admin.get(Deployment, "shop", namespace="default"))

        async def has_status() -> bool:
            found = await admin.get(webapp.WebApp, "shop", namespace="default")
            return bool(found.status.conditions)

        await eventually(has_status)
    assert not allowed.missing
    assert Right("apps", "deployments", "patch") in allowed.used
    assert Right("apps", "deployments", "patch") not in allowed.unused
    assert Right("apps", "deployments", "delete") in allowed.unused, "nothing was pruned"


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("apps", "deployments", "create"),
        ("apps", "deployments", "patch"),
        ("", "services", "patch"),
        ("demo.setpoint.dev", "webapps", "watch"),
        ("demo.setpoint.dev", "webapps/status", "patch"),
    ],
)
async def test_a_missing_verb_fails_the_test_with_the_rule_to_add(
    group: str, resource: str, verb: str
) -> None:
    async def run() -> None:
        rules = without(webapp.operator.rules(), resource, verb)
        async with running(webapp.operator, rules) as (admin, allowed):
            await admin.create(SHOP)

            async def is_refused() -> bool:
                return bool(allowed.refused)

            await eventually(is_refused)

    with pytest.raises(AssertionError) as failure:
        await run()
    said = str(failure.value)
    assert f"cannot {verb} {resource}" in said
    rule = f'- {{apiGroups: ["{group}"], resources: ["{resource}"], verbs: [{verb}]}}'
    assert said.endswith(f"add to the rules of its ClusterRole:\n  {rule}")


async def test_a_clean_up_writes_its_finalizer_and_says_so() -> None:
    rules = {rule["resources"][0]: rule["verbs"] for rule in database.operator.rules()}
    assert rules["databases"] == ["get", "list", "watch", "patch"]


async def test_who_asks_is_a_service_account_that_has_the_rules_everywhere_and_no_others() -> None:
    reads = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    async with ApiServer() as server, least_privilege(server, [reads], name="robot") as allowed:
        for namespace in ("default", "kube-system"):
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            assert (await allowed(Request("GET", path))).status == 200
        assert (await allowed(Request("GET", "/apis"))).status == 200, "discovery is everybody's"
        assert allowed.unused == []
        assert (await allowed(Request("GET", "/api/v1/secrets"))).status == 403
        assert allowed.missing == ['- {apiGroups: [""], resources: ["secrets"], verbs: [list]}']
        allowed.refused.clear()
