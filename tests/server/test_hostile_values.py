"""Values that take long to match elsewhere hold nobody up here."""

from __future__ import annotations

import asyncio
import json

from setpoint.net.transport import Request
from setpoint.server.server import ApiServer
from tests.server.deadlines import within
from tests.server.hooks import ask, made

_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
_GROUP = "rbac.authorization.k8s.io"


async def test_a_user_who_may_only_create_pods_cannot_stop_the_server() -> None:
    async with ApiServer() as server:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}
        await made(server, f"{_RBAC}/roles", {"metadata": {"name": "creator"}, "rules": [rule]})
        bound = {
            "metadata": {"name": "creator"},
            "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": "jane"}],
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "creator"},
        }
        await made(server, f"{_RBAC}/rolebindings", bound)
        limits = {"limits": {"cpu": "0" * 1_200 + "x"}}
        pod = {
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": limits}]},
        }
        sent = Request(
            "POST",
            "/api/v1/namespaces/default/pods",
            {"Content-Type": "application/json", "Impersonate-User": "jane"},
            json.dumps(pod).encode(),
        )
        with within(20):
            created, health = await asyncio.gather(
                server.transport()(sent), server.transport()(Request("GET", "/healthz"))
            )
        assert (await health.read(), health.status) == (b"ok", 200)
        assert created.status == 400
        assert b"quantities must match the regular expression" in await created.read()


async def test_a_value_that_a_pattern_of_a_definition_takes_long_over_is_refused_at_once() -> None:
    async with ApiServer() as server:
        text = {"type": "string", "pattern": "^([a-z0-9]{1,63}[.]?){1,10}$"}
        schema = {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"a": text}}},
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        spec = {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "hosts", "kind": "Host"},
            "versions": [version],
        }
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await made(server, definitions, {"metadata": {"name": "hosts.example.com"}, "spec": spec})
        while "Established" not in str((await ask(server, "GET", f"{definitions}/hosts.example.com"))[1]):
            await asyncio.sleep(0)
        host = {"apiVersion": "example.com/v1", "kind": "Host", "metadata": {"name": "a"}}
        with within(20):
            status, found = await ask(
                server,
                "POST",
                "/apis/example.com/v1/namespaces/default/hosts",
                {**host, "spec": {"a": "a" * 120 + "!"}},
            )
        assert (status, found["reason"]) == (422, "Invalid"), found
