"""``testing/privileges.py``: operators run with the rules that they declare, and what is missing is named."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.database import database
from examples.webapp import webapp
from setpoint.api import yaml
from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client
from setpoint.controller.builder import Builder
from setpoint.controller.context import Context
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request, Transport
from setpoint.operator import Operator
from setpoint.server.server import ApiServer
from setpoint.testing.privileges import Privileges, Right, least_privilege
from setpoint.testing.waiting import eventually
from tests.server.authorization import test_signers

pytestmark = pytest.mark.virtual_time

Rules = list[dict[str, Any]]
SHOP = webapp.WebApp(
    metadata=ObjectMeta(name="shop", namespace="default"), spec=webapp.WebAppSpec(image="nginx")
)


@asynccontextmanager
async def running(
    operator: Operator, rules: Rules, *, only: list[str] | None = None, watches: list[str] | None = None
) -> AsyncIterator[tuple[Client, Privileges]]:
    """The operator, with these rules and no others; and an administrator's client.

    ``only`` are the namespaces that it has them in, ``watches`` those that it watches.
    """
    async with ApiServer() as server, Client(transport=server.transport()) as admin:
        for crd in operator.crds():
            await admin.create(crd)
        async with (
            least_privilege(server, rules, namespaces=only) as allowed,
            Client(transport=allowed) as client,
        ):
            manager = Manager(client=client, name=operator.name, namespaces=watches, graceful_shutdown=1.0)
            operator.add_to(manager)
            async with manager:
                yield admin, allowed


async def post(transport: Transport, path: str, body: dict[str, Any]) -> int:
    headers = {"Content-Type": "application/json"}
    return (await transport(Request("POST", path, headers, json.dumps(body).encode()))).status


def on(resource: str, *verbs: str, group: str = "") -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


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


async def test_the_rules_are_enough_for_what_build_adds() -> None:
    operator = Operator("op")

    def watch_more(built: Builder, manager: Manager) -> None:
        built.owns(Deployment)
        built.watches(ConfigMap, lambda _: [])

    @operator.controller(webapp.WebApp, build=watch_more)
    async def reconcile(app: webapp.WebApp, ctx: Context) -> None:
        ctx.set_condition("Ready", True, "Done")

    async with running(operator, operator.rules()) as (admin, allowed):
        await admin.create(SHOP)

        async def has_status() -> bool:
            found = await admin.get(webapp.WebApp, "shop", namespace="default")
            return bool(found.status.conditions)

        await eventually(has_status)
    assert not allowed.missing


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


# ── Where the body raises ───────────────────────────────────────────────────────────────────────────


async def test_a_wait_that_ends_because_of_a_missing_verb_names_the_rule_to_add() -> None:
    async def run() -> None:
        rules = without(webapp.operator.rules(), "deployments", "create")
        async with running(webapp.operator, rules) as (admin, _):
            await admin.create(SHOP)
            await eventually(lambda: admin.get(Deployment, "shop", namespace="default"), what="the wait")

    with pytest.raises(AssertionError, match="the wait: not so") as failure:
        await run()
    (note,) = failure.value.__notes__
    assert "cannot create deployments" in note
    assert note.endswith('\n  - {apiGroups: ["apps"], resources: ["deployments"], verbs: [create]}')


async def test_a_time_out_from_outside_names_the_rule_to_add_too() -> None:
    async def run() -> None:
        async with asyncio.timeout(5), ApiServer() as server, least_privilege(server, []) as allowed:
            await allowed(Request("GET", "/api/v1/secrets"))
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError) as failure:
        await run()
    cancelled = failure.value.__cause__ or failure.value.__context__  # the latter before Python 3.11.3
    assert cancelled is not None
    (note,) = cancelled.__notes__
    assert "cannot list secrets" in note


async def test_an_error_of_a_body_that_was_refused_nothing_has_no_note() -> None:
    async with ApiServer() as server:
        with pytest.raises(RuntimeError) as failure:
            async with least_privilege(server, []):
                raise RuntimeError("something else")
    assert not hasattr(failure.value, "__notes__")


# ── Refusals in other words ─────────────────────────────────────────────────────────────────────────

RBAC = "rbac.authorization.k8s.io"
ROLES = f"/apis/{RBAC}/v1/namespaces/default/roles"


async def test_a_refused_path_is_missing_as_one() -> None:
    async with ApiServer() as server:
        with pytest.raises(AssertionError, match="cannot get path /metrics"):
            async with least_privilege(server, []) as allowed:
                assert (await allowed(Request("GET", "/metrics?verbose"))).status == 403
    assert allowed.missing == ['- {nonResourceURLs: ["/metrics"], verbs: [get]}']


async def test_a_role_that_gives_what_its_maker_has_not_names_that_and_the_verb_that_would_do() -> None:
    gives = [
        on("secrets", "get", "list"),
        {**on("deployments", "*", group="apps"), "resourceNames": ["shop"]},
        on("configmaps", "get"),
    ]
    held = [on("roles", "create", group=RBAC), on("configmaps", "get")]
    async with ApiServer() as server:
        with pytest.raises(AssertionError) as failure:
            async with least_privilege(server, held) as allowed:
                assert await post(allowed, ROLES, {"metadata": {"name": "x"}, "rules": gives}) == 403
    assert allowed.missing == [
        '- {apiGroups: [""], resources: ["secrets"], verbs: [get, list]}',
        '- {apiGroups: ["apps"], resources: ["deployments"], resourceNames: ["shop"], verbs: ["*"]}',
    ]
    assert "cannot give what it does not have: get secrets" in str(failure.value)
    assert str(failure.value).endswith("\nor: the verb escalate on roles")


async def test_a_binding_of_a_role_that_gives_more_names_the_verb_bind() -> None:
    gives = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, on("secrets", "get")]
    bindings = f"/apis/{RBAC}/v1/clusterrolebindings"
    binding = {
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "giver"},
    }
    async with ApiServer() as server, Client(transport=server.transport()) as admin:
        role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "giver"}}
        await admin.create({**role, "rules": gives})
        with pytest.raises(AssertionError, match=r"\nor: the verb bind on the role that it binds$"):
            async with least_privilege(server, [on("clusterrolebindings", "create", group=RBAC)]) as allowed:
                assert await post(allowed, bindings, binding) == 403
    assert allowed.missing == [
        '- {nonResourceURLs: ["/metrics"], verbs: [get]}',
        '- {apiGroups: [""], resources: ["secrets"], verbs: [get]}',
    ]


async def test_what_is_missing_is_enough_once_it_is_added() -> None:
    gives = {"metadata": {"name": "x"}, "rules": [on("secrets", "get", "list")]}
    rules = [on("roles", "create", group=RBAC)]
    async with ApiServer() as server:
        async with least_privilege(server, rules, name="before") as allowed:
            await post(allowed, ROLES, gives)
            added = yaml.load("\n".join(allowed.missing))
            allowed.refused.clear()
        async with least_privilege(server, [*rules, *added], name="after") as allowed:
            assert await post(allowed, ROLES, gives) == 201


async def test_an_aggregating_role_takes_the_verb_escalate() -> None:
    aggregates = {
        "metadata": {"name": "x"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    }
    rules = [on("clusterroles", "create", group=RBAC)]
    async with ApiServer() as server, least_privilege(server, rules) as allowed:
        assert await post(allowed, f"/apis/{RBAC}/v1/clusterroles", aggregates) == 403
        assert allowed.missing == [
            f'- {{apiGroups: ["{RBAC}"], resources: ["clusterroles"], verbs: [escalate]}}'
        ]
        allowed.refused.clear()


async def test_an_approval_takes_a_verb_on_its_signer() -> None:
    rules = [on("certificatesigningrequests/approval", "patch", group="certificates.k8s.io")]
    async with ApiServer() as server, least_privilege(server, rules) as allowed:
        await post(server.transport(), test_signers.REQUESTS, test_signers.request())
        approved = json.dumps(test_signers.APPROVED).encode()
        path = f"{test_signers.REQUESTS}/a/approval"
        assert (await allowed(Request("PATCH", path, test_signers.MERGE, approved))).status == 403
        (rule,) = yaml.load("\n".join(allowed.missing))
        signer = {"resourceNames": ["example.com/signer"]}
        assert rule == {**on("signers", "approve", group="certificates.k8s.io"), **signer}
        allowed.refused.clear()


async def test_a_refusal_that_is_not_of_rbac_is_no_missing_rule() -> None:
    spec = {"priorityClassName": "none-such", "containers": [{"name": "a", "image": "b"}]}
    async with ApiServer() as server, least_privilege(server, [on("pods", "create")]) as allowed:
        pods = "/api/v1/namespaces/default/pods"
        assert await post(allowed, pods, {"metadata": {"name": "x"}, "spec": spec}) == 403
        assert not allowed.refused


# ── In some namespaces ──────────────────────────────────────────────────────────────────────────────


async def test_an_operator_can_have_its_rules_in_some_namespaces_alone() -> None:
    rules = webapp.operator.rules()
    async with running(webapp.operator, rules, only=["default"], watches=["default"]) as (admin, allowed):
        await admin.create(SHOP)
        await eventually(lambda: admin.get(Deployment, "shop", namespace="default"))
    assert Right("apps", "deployments", "patch") not in allowed.unused


async def test_what_is_missing_in_a_namespace_is_to_be_added_to_its_role() -> None:
    rules = [on("configmaps", "list")]
    only = ["default", "kube-public"]
    async with ApiServer() as server, least_privilege(server, rules, namespaces=only) as allowed:
        for namespace in (*only, "kube-system"):
            await allowed(Request("GET", f"/api/v1/namespaces/{namespace}/configmaps"))
        await allowed(Request("GET", "/api/v1/namespaces/default/secrets"))
        refused, *rules_to_add = allowed.told.splitlines()
        allowed.refused.clear()
    assert "cannot list secrets of API group '' in namespace default (1 times)" in refused
    assert rules_to_add == [
        "add to the rules of its Role in namespace kube-system:",
        '  - {apiGroups: [""], resources: ["configmaps"], verbs: [list]}',
        "add to the rules of its Role in namespace default:",
        '  - {apiGroups: [""], resources: ["secrets"], verbs: [list]}',
    ]


async def test_a_role_that_gives_more_in_a_namespace_is_told_the_role_there() -> None:
    role = {"metadata": {"name": "x"}, "rules": [on("secrets", "get")]}
    rules = [on("roles", "create", group=RBAC)]
    async with ApiServer() as server, least_privilege(server, rules, namespaces=["default"]) as allowed:
        assert await post(allowed, ROLES, role) == 403
        assert "add to the rules of its Role in namespace default:" in allowed.told
        allowed.refused.clear()


async def test_who_is_confined_and_watches_everywhere_is_told_of_both_ways_out() -> None:
    async def run() -> None:
        rules = webapp.operator.rules()
        async with running(webapp.operator, rules, only=["default"]) as (_, allowed):
            await eventually(lambda: allowed.refused)

    with pytest.raises(AssertionError, match=r"a ClusterRole \(or, .* Manager\(namespaces=\.\.\.\)"):
        await run()


# ── What was not used ───────────────────────────────────────────────────────────────────────────────


async def test_rules_with_a_star_and_for_paths_are_used_by_what_they_allow() -> None:
    paths = {"nonResourceURLs": ["/healthz/*", "/metrics"], "verbs": ["get"]}
    rules = [on("*", "*"), on("jobs", "list", group="batch"), paths]
    async with ApiServer() as server, least_privilege(server, rules) as allowed:
        await allowed(Request("GET", "/api/v1/secrets"))
        await allowed(Request("GET", "/healthz/ping"))
        assert allowed.unused == [Right("", "", "get", path="/metrics"), Right("batch", "jobs", "list")]
