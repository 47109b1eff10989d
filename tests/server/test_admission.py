"""Admission of the embedded server, beside what ``tests/conformance`` compares with the real one."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from setpoint.net.transport import Request
from setpoint.server.admission.admission import Admission
from setpoint.server.admission.security import policy_of
from setpoint.server.admission.security_checks import violations
from setpoint.server.registry.metadata import Names
from setpoint.server.server import ApiServer
from setpoint.server.storage.protocol import Encode, Place, Record
from tests.server.hooks import (
    DEFINITIONS,
    Answerer,
    Hooks,
    Json,
    ask,
    ask_text,
    converted,
    definition,
    hooks_behind,
    made,
    served,
)

_HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmission{}"
_MAPS = "/api/v1/namespaces/default/configmaps"
_PODS = "/api/v1/namespaces/default/pods"
_POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}


# ── Webhooks ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_service_is_found_where_the_server_was_told(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda request: {
            "allowed": request["name"] != "bad",
            "status": {"message": "not this one"},
        }
        await made(server, _HOOKS.format("validating"), hooks.configuration())
        await made(server, _MAPS, {"metadata": {"name": "good"}})
        status, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "bad"}})
    assert status == 400
    assert refusal["message"] == 'admission webhook "hooks.example.com" denied the request: not this one'
    assert [one["name"] for one in hooks.asked] == ["good", "bad"]


async def test_a_service_must_show_that_it_is_the_one(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path, "other.default.svc") as hooks,
        ApiServer(services={"default/hooks:443": hooks.address}) as server,
    ):
        await made(server, _HOOKS.format("validating"), hooks.configuration())
        status, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}})
    assert status == 500
    assert "hooks.default.svc" in refusal["message"]
    assert "tls: failed to verify certificate" in refusal["message"]
    assert not hooks.asked


async def test_a_webhook_may_be_trusted_by_its_own_certificate(tmp_path: Path) -> None:
    """What envtest configures: Go takes any certificate of the bundle as the end of a chain."""
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.authority = hooks.certificate
        await made(server, _HOOKS.format("validating"), hooks.configuration())
        await made(server, _MAPS, {"metadata": {"name": "a"}})
    assert [one["name"] for one in hooks.asked] == ["a"]


async def test_an_authority_that_is_none_is_told(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.authority = base64.b64encode(b"nonsense").decode()
        await made(server, _HOOKS.format("validating"), hooks.configuration())
        _, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}})
    assert "could not get REST client: unable to load root certificates" in refusal["message"]


async def test_writes_that_meet_while_a_webhook_thinks_are_both_kept(tmp_path: Path) -> None:
    """The second to come back finds the object changed, and asks again about what it now is."""
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        await made(server, _MAPS, {"metadata": {"name": "a"}})
        await made(server, _HOOKS.format("validating"), hooks.configuration())
        hooks.meeting = asyncio.Barrier(2)
        patches = [ask(server, "PATCH", f"{_MAPS}/a", {"data": {name: "1"}}) for name in ("x", "y")]
        answers = await asyncio.gather(*patches)
        _, found = await ask(server, "GET", f"{_MAPS}/a")
    assert [status for status, _ in answers] == [200, 200]
    assert found["data"] == {"x": "1", "y": "1"}
    assert len(hooks.asked) == 3


async def test_configurations_are_not_asked_about(tmp_path: Path) -> None:
    """Else one that refuses everything could never be taken away."""
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"allowed": False}
        await made(server, _HOOKS.format("validating"), hooks.configuration(rules=rules))
        assert (await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}}))[0] == 400
        status, _ = await ask(server, "DELETE", f"{_HOOKS.format('validating')}/hooks")
        assert status == 200
        await made(server, _MAPS, {"metadata": {"name": "a"}})


# ── Nobody has anything to say ──────────────────────────────────────────────────────────────────────


async def test_a_kind_that_nobody_asks_about_is_idle_until_somebody_does() -> None:
    async with ApiServer() as server:
        maps = server.registry.resources.builtin("", "v1", "configmaps")
        admission = server.registry.admission
        assert admission.is_idle(maps)
        hook = Hooks(authority="").configuration()
        await made(server, _HOOKS.format("mutating"), hook)
        assert not admission.is_idle(maps)
        await ask(server, "DELETE", f"{_HOOKS.format('mutating')}/hooks")
        assert admission.is_idle(maps)
        await made(
            server,
            "/api/v1/namespaces/default/resourcequotas",
            {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}},
        )
        assert not admission.is_idle(maps)
        assert admission.is_idle(server.registry.resources.builtin("", "v1", "nodes"))


# ── Built-in rules ──────────────────────────────────────────────────────────────────────────────────


async def test_a_pod_runs_as_the_default_account_and_finds_its_token() -> None:
    async with ApiServer(admission=["ServiceAccount"], token="t") as server:
        account = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]}
        await made(server, "/api/v1/namespaces/default/serviceaccounts", account)
        spec = (await made(server, _PODS, _POD))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    volume, mount = spec["volumes"][0], spec["containers"][0]["volumeMounts"][0]
    assert volume["name"] == mount["name"]
    assert volume["name"].startswith("kube-api-access-")
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    sources = [next(iter(one)) for one in volume["projected"]["sources"]]
    assert sources == ["serviceAccountToken", "configMap", "downwardAPI"]


async def test_a_pod_may_do_without_a_token() -> None:
    async with ApiServer(admission=["ServiceAccount"]) as server:
        account = {"metadata": {"name": "mine"}, "automountServiceAccountToken": False}
        await made(server, "/api/v1/namespaces/default/serviceaccounts", account)
        pod = {**_POD, "spec": {**_POD["spec"], "serviceAccountName": "mine"}}  # type: ignore[dict-item]
        assert "volumes" not in (await made(server, _PODS, pod))["spec"]


@pytest.mark.virtual_time
async def test_a_pod_of_an_account_that_is_not_there_is_refused() -> None:
    async with ApiServer(admission=["ServiceAccount"]) as server:
        status, refusal = await ask(server, "POST", _PODS, _POD)
    assert status == 403
    assert refusal["message"] == (
        'pods "p" is forbidden: error looking up service account default/default: '
        'serviceaccount "default" not found'
    )


@pytest.mark.virtual_time
async def test_the_default_account_is_waited_for() -> None:
    async with ApiServer(admission=["ServiceAccount"]) as server:
        pod = asyncio.create_task(made(server, _PODS, _POD))
        await asyncio.sleep(0.5)
        await made(server, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        assert (await pod)["spec"]["serviceAccountName"] == "default"


async def test_unless_told_pods_need_no_account() -> None:
    async with ApiServer() as server:
        assert "serviceAccountName" not in (await made(server, _PODS, _POD))["spec"]


def test_privileged_containers_are_not_for_the_baseline() -> None:
    spec = {"containers": [{"name": "a", "securityContext": {"privileged": True}}]}
    found = violations("baseline", 37, {}, spec)
    assert [one.reason for one in found] == ["privileged"]
    assert not violations("privileged", 37, {}, spec)


def test_processes_of_a_windows_host_are_not_for_the_baseline() -> None:
    spec = {"securityContext": {"windowsOptions": {"hostProcess": True}}, "containers": [{"name": "a"}]}
    told = "pod must not set securityContext.windowsOptions.hostProcess=true"
    assert violations("baseline", 37, {}, spec) == [("hostProcess", told)]


def test_who_enforces_a_level_is_warned_of_it_too() -> None:
    policy, errors = policy_of({"pod-security.kubernetes.io/enforce": "restricted"})
    assert not errors
    assert str(policy.warn) == "restricted:latest"


async def test_messages_that_cost_too_much_together_refuse_what_holds() -> None:
    dear = "sets.contains(lists.range(700), lists.range(700))"  # twice is what one expression may cost
    rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    validation = {"expression": "true", "messageExpression": f"{dear} && {dear} ? 'a' : 'b'"}
    spec = {"matchConstraints": {"resourceRules": [rules]}, "validations": [validation] * 11}
    async with ApiServer() as server:
        await made(server, _POLICIES.format("policies"), {"metadata": {"name": "dear"}, "spec": spec})
        bound = {"policyName": "dear", "validationActions": ["Deny"]}
        await made(server, _POLICIES.format("policybindings"), {"metadata": {"name": "dear"}, "spec": bound})
        status, said = await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}})
        assert status == 422
        assert "failed messageExpression: validation failed due to running out" in said["message"]


async def test_quotas_are_charged_once_by_writes_that_meet() -> None:
    async with ApiServer() as server:
        quotas = "/api/v1/namespaces/default/resourcequotas"
        await made(server, quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}})
        status = {"status": {"hard": {"configmaps": "5"}, "used": {"configmaps": "0"}}}
        await ask(server, "PATCH", f"{quotas}/q/status", status)
        wanted = [ask(server, "POST", _MAPS, {"metadata": {"name": f"m{place}"}}) for place in range(8)]
        answers = await asyncio.gather(*wanted)
        _, quota = await ask(server, "GET", f"{quotas}/q")
    assert sorted(status for status, _ in answers) == [201] * 5 + [403] * 3
    assert quota["status"]["used"] == {"configmaps": "5"}


async def test_of_two_quotas_neither_is_charged_twice_when_the_second_was_changed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ApiServer() as server:
        quotas = "/api/v1/namespaces/default/resourcequotas"
        status = {"status": {"hard": {"configmaps": "9"}, "used": {"configmaps": "0"}}}
        for name in ("a", "b"):
            await made(server, quotas, {"metadata": {"name": name}, "spec": {"hard": {"configmaps": "9"}}})
            await ask(server, "PATCH", f"{quotas}/{name}/status", status)
        update = server.registry.store.update
        beaten: list[Place] = []

        async def updated(place: Place, encode: Encode, seen: int) -> Record:
            if place == Place("resourcequotas", "default", "b") and not beaten:
                beaten.append(place)  # before its write comes somebody else's
                await ask(server, "PATCH", f"{quotas}/b", {"metadata": {"labels": {"a": "b"}}})
            return await update(place, encode, seen)

        monkeypatch.setattr(server.registry.store, "update", updated)
        await made(server, _MAPS, {"metadata": {"name": "m"}})
        used = [(await ask(server, "GET", f"{quotas}/{name}"))[1]["status"]["used"] for name in "ab"]
    assert beaten
    assert used == [{"configmaps": "1"}, {"configmaps": "1"}]


async def test_what_a_webhook_says_beside_the_point_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        configuration = hooks.configuration(failurePolicy="Ignore")
        await made(server, _HOOKS.format("validating"), configuration)
        answers: list[Answerer] = [
            lambda _: {"allowed": True, "uid": "a-secret"},
            lambda _: {"allowed": False, "status": {"code": "a-secret"}},
            lambda _: {"allowed": True, "patch": "a-secret"},
            lambda _: {"allowed": True, "status": {"code": "a-secret"}, "warnings": [1]},
        ]
        for place, answer in enumerate(answers):
            hooks.answer = answer
            await made(server, _MAPS, {"metadata": {"name": f"m{place}"}})
    assert caplog.text.count("is passed over, as its failurePolicy says") == len(answers)
    assert "a-secret" not in caplog.text


async def test_the_names_of_built_in_rules_are_shown() -> None:
    async with ApiServer(admission=["PodSecurity"]) as server:
        registry = server.registry
        admission = Admission(registry.store, registry.resources, names=Names(), now=registry.now, plugins=[])
        assert repr(registry.admission) == "<Admission by PodSecurity>"
        assert repr(admission) == "<Admission by nothing built in>"


# ── Conversion ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_list_in_another_version_is_converted_at_once(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = converted
        await made(server, DEFINITIONS, definition(hooks))
        old, new = (f"/apis/example.com/{version}/namespaces/default/sizes" for version in ("v1", "v2"))
        await served(server, new)
        for name in ("a", "b"):
            body = {"apiVersion": "example.com/v1", "kind": "Size", "metadata": {"name": name}}
            await made(server, old, {**body, "spec": {"size": 3}})
        assert not hooks.asked
        _, listed = await ask(server, "GET", new)
        assert [one["spec"] for one in listed["items"]] == [{"width": 3}, {"width": 3}]
        assert [len(one["objects"]) for one in hooks.asked] == [2]


async def test_a_watch_in_another_version_says_that_it_cannot_convert(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"result": {"status": "Failed", "message": "not today"}}
        await made(server, DEFINITIONS, definition(hooks))
        old, new = (f"/apis/example.com/{version}/namespaces/default/sizes" for version in ("v1", "v2"))
        await served(server, new)
        body = {"apiVersion": "example.com/v1", "kind": "Size", "metadata": {"name": "a"}}
        await made(server, old, {**body, "spec": {"size": 3}})
        status, lines = await ask_text(server, f"{new}?watch=true&resourceVersion=0&timeoutSeconds=5")
    assert status == 200
    event = json.loads(lines.splitlines()[0])
    assert event["type"] == "ERROR"
    assert event["object"]["message"].endswith("Kind=Size failed: not today")


# ── Connections ─────────────────────────────────────────────────────────────────────────────────────


def connecting(*subresources: str) -> Json:
    resources = [f"pods/{one}" for one in subresources]
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": resources}


async def test_a_connection_is_admitted_before_its_pod_is_looked_for(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda request: {
            "allowed": "rm" not in request["object"].get("command", []),
            "status": {"message": "not in here"},
        }
        rules = [connecting("exec", "attach")]
        await made(server, _HOOKS.format("validating"), hooks.configuration(rules=rules))
        status, refusal = await ask(server, "POST", f"{_PODS}/absent/exec?command=rm&command=-r&stdin=1")
        absent, _ = await ask(server, "POST", f"{_PODS}/absent/exec?command=ls")
        await ask(server, "POST", f"{_PODS}/absent/portforward?ports=80")
    assert (status, absent) == (400, 404)
    assert refusal["message"] == 'admission webhook "hooks.example.com" denied the request: not in here'
    asked, _ = hooks.asked
    assert asked["kind"] == asked["requestKind"] == {"group": "", "version": "v1", "kind": "PodExecOptions"}
    assert (asked["operation"], asked["subResource"], asked["name"]) == ("CONNECT", "exec", "absent")
    assert asked["object"]["kind"] == "PodExecOptions"
    assert asked["object"]["command"] == ["rm", "-r"]
    assert asked["options"] is asked["oldObject"] is None


async def test_what_a_webhook_makes_of_a_connection_is_what_is_connected(tmp_path: Path) -> None:
    patch = base64.b64encode(b'[{"op":"add","path":"/container","value":"other"}]').decode()
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}
        await made(server, _PODS, _POD)
        configuration = hooks.configuration(rules=[connecting("*")])
        await made(server, _HOOKS.format("mutating"), configuration)
        status, refusal = await ask(server, "POST", f"{_PODS}/p/attach")
    assert (status, refusal["message"]) == (400, "container other is not valid for pod p")


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("absent/exec?command=ls", 404, 'pods "absent" not found'),
        ("p/exec?command=ls", 400, "pod p does not have a host assigned"),
        ("p/exec?command=ls&container=z", 400, "container z is not valid for pod p"),
        ("p/exec?command=ls&dryRun=All", 400, "dryRun is not supported"),
        ("p/portforward?ports=80", 400, "pod p does not have a host assigned"),
        ("p/proxy/a/b", 400, "address not allowed"),
        ("p/exec/more", 404, "the server could not find the requested resource"),
    ],
)
async def test_a_connection_ends_where_a_server_that_reaches_no_node_ends(
    target: str, code: int, message: str
) -> None:
    async with ApiServer() as server:
        await made(server, _PODS, _POD)
        status, refusal = await ask(server, "GET", f"{_PODS}/{target}")
    assert (status, refusal["message"]) == (code, message)


# ── How deep what they make may be ──────────────────────────────────────────────────────────────────

_OPEN = "/apis/example.com/v1/namespaces/default/opens"
_COPY = {"op": "copy", "from": "/spec", "path": "/spec/a"}  # one level more


async def _open_kind(server: ApiServer) -> None:
    """A kind whose objects may hold anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "opens", "kind": "Open"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "opens.example.com"}, "spec": spec}
    await made(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    await served(server, _OPEN)


async def _changed_by(server: ApiServer, mutation: Json, **more: Any) -> None:
    """Whatever is made of that kind, by a policy."""
    rules = {
        "apiGroups": ["example.com"],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["opens"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rules]},
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
        **more,
    }
    root = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
    await made(server, f"{root}ies", {"metadata": {"name": "deep"}, "spec": spec})
    await made(server, f"{root}ybindings", {"metadata": {"name": "deep"}, "spec": {"policyName": "deep"}})


def _opened(levels: int) -> Json:
    spec: Json = {}
    for _ in range(levels):
        spec = {"a": spec}
    return {"apiVersion": "example.com/v1", "kind": "Open", "metadata": {"name": "o"}, "spec": spec}


def _patch_of(copies: int) -> Json:
    copy = "JSONPatch{op: 'copy', from: '/spec', path: '/spec/a'}"
    return {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": f"lists.range({copies}).map(one, {copy})"},
    }


_DEEPER = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {"expression": "Object{spec: Object.spec{a: object.spec}}"},
}


@pytest.mark.parametrize(
    ("mutation", "levels", "told"),
    [
        (_patch_of(300), 0, "JSON Patch: exceeded max depth"),
        (_patch_of(249), 0, "JSON Patch: exceeded max depth"),
        (_patch_of(3000), 0, "JSON Patch: exceeded max depth"),
        (_DEEPER, 248, "error applying patch: exceeded max depth"),
    ],
)
async def test_what_a_policy_makes_nests_no_deeper_than_a_body_may(
    mutation: Json, levels: int, told: str
) -> None:
    async with ApiServer() as server:
        await _open_kind(server)
        await _changed_by(server, mutation)
        status, refusal = await ask(server, "POST", _OPEN, _opened(levels))
        assert (await ask(server, "GET", f"{_OPEN}/o"))[0] == 404
    assert status == 403
    assert told in refusal["message"]


_ONCE = {"name": "new", "expression": "request.operation == 'CREATE'"}


@pytest.mark.parametrize(("mutation", "levels"), [(_patch_of(248), 0), (_DEEPER, 247)])
async def test_what_a_policy_makes_can_be_put_back_as_it_was_read(mutation: Json, levels: int) -> None:
    async with ApiServer() as server:
        await _open_kind(server)
        await _changed_by(server, mutation, matchConditions=[_ONCE])
        new = await made(server, _OPEN, _opened(levels))
        del new["metadata"]["managedFields"]  # which nest deeper than what is owned
        status, left = await ask(server, "PUT", f"{_OPEN}/o", new)
    assert (status, left["spec"]) == (200, new["spec"])


async def test_a_policy_that_fails_to_go_deeper_may_be_ignored() -> None:
    async with ApiServer() as server:
        await _open_kind(server)
        await _changed_by(server, _patch_of(300), failurePolicy="Ignore")
        assert (await made(server, _OPEN, _opened(1)))["spec"] == {"a": {}}


@pytest.mark.parametrize("copies", [300, 3000])
async def test_what_a_webhook_makes_nests_no_deeper_than_a_body_may(tmp_path: Path, copies: int) -> None:
    patch = base64.b64encode(json.dumps([_COPY] * copies).encode()).decode()
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        await _open_kind(server)
        hooks.answer = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}
        rule = {
            "apiGroups": ["example.com"],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["opens"],
        }
        await made(server, _HOOKS.format("mutating"), hooks.configuration(rules=[rule]))
        status, refusal = await ask(server, "POST", _OPEN, _opened(0))
    assert (status, refusal["message"]) == (500, "Internal error occurred: exceeded max depth")


# ── What webhooks may not change ────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def patched_by(tmp_path: Path, operations: list[Json]) -> AsyncIterator[ApiServer]:
    """A server whose ConfigMaps a webhook patches, but for ``old``, which was there before."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}
        await made(server, _MAPS, {"metadata": {"name": "old"}})
        await made(server, _HOOKS.format("mutating"), hooks.configuration())
        yield server


@pytest.mark.parametrize("field", ["uid", "creationTimestamp", "namespace", "resourceVersion"])
async def test_an_object_keeps_what_it_is_known_by_though_a_webhook_takes_it_away(
    tmp_path: Path, field: str
) -> None:
    async with patched_by(tmp_path, [{"op": "add", "path": f"/metadata/{field}", "value": None}]) as server:
        _, old = await ask(server, "GET", f"{_MAPS}/old")
        _, changed = await ask(
            server, "PUT", f"{_MAPS}/old", {"metadata": {"name": "old"}, "data": {"a": "b"}}
        )
        new = await made(server, _MAPS, {"metadata": {"name": "new"}})
        assert (await ask(server, "GET", f"{_MAPS}/new"))[1] == new
    for kept in ("uid", "creationTimestamp", "namespace"):
        assert changed["metadata"][kept] == old["metadata"][kept]
        assert new["metadata"][kept]
    assert int(changed["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])


async def test_a_webhook_does_not_move_an_object(tmp_path: Path) -> None:
    operations = [{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]
    async with patched_by(tmp_path, operations) as server:
        status, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "new"}})
        assert (await ask(server, "GET", f"{_MAPS}/new"))[0] == 404
    assert (status, refusal["message"]) == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )


async def test_owners_that_a_webhook_makes_unreadable_stay_who_they_were(tmp_path: Path) -> None:
    operations = [{"op": "add", "path": "/metadata/managedFields", "value": [{"operation": "Odd"}]}]
    async with patched_by(tmp_path, operations) as server:
        new = await made(server, _MAPS, {"metadata": {"name": "new"}, "data": {"a": "b"}})
    [entry] = new["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


async def test_an_object_that_lost_its_metadata_is_refused_for_its_name(tmp_path: Path) -> None:
    async with patched_by(tmp_path, [{"op": "remove", "path": "/metadata"}]) as server:
        status, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "new"}})
    assert status == 422
    assert "metadata.name: Required value: name or generateName is required" in refusal["message"]


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_version_that_a_webhook_takes_away_is_not_looked_at(tmp_path: Path, version: str) -> None:
    operation = {"op": "add", "path": "/metadata/resourceVersion", "value": version}
    async with patched_by(tmp_path, [operation]) as server:
        stale = {"metadata": {"name": "old", "resourceVersion": "1"}, "data": {"a": "b"}}
        put, _ = await ask(server, "PUT", f"{_MAPS}/old", stale)
        patched, found = await ask(server, "PATCH", f"{_MAPS}/old", {**stale, "data": {"a": "c"}})
    assert (put, patched, found["data"]) == (200, 200, {"a": "c"})


async def test_a_version_that_a_webhook_gives_is_the_one_that_must_be_there(tmp_path: Path) -> None:
    operation = {"op": "add", "path": "/metadata/resourceVersion", "value": "1"}
    async with patched_by(tmp_path, [operation]) as server:
        status, refusal = await ask(server, "PUT", f"{_MAPS}/old", {"metadata": {"name": "old"}})
    assert (status, refusal["reason"]) == (409, "Conflict")


async def test_only_what_is_stored_must_come_without_a_version(tmp_path: Path) -> None:
    operation = {"op": "add", "path": "/metadata/resourceVersion", "value": "5"}
    async with patched_by(tmp_path, [operation]) as server:
        new = {"metadata": {"name": "new"}}
        tried = await made(server, f"{_MAPS}?dryRun=All", new)
        status, refusal = await ask(server, "POST", _MAPS, new)
    assert tried["metadata"]["resourceVersion"] == "5"
    assert (status, refusal["message"]) == (500, "resourceVersion should not be set on objects to be created")


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (b"{}", "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (b"[1]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (b"[null]", "Unexpected kind: unknown"),
        (b'[{"op":"add","path":1}]', "add operation failed to decode path: missing value"),
        (b'[{"op":"copy","path":"/data"}]', "decode from: operation, missing from field: missing value"),
        (b"[" * 1000 + b"]" * 1000, "exceeded max depth"),
        (b'[{"op":"replace","path":"","value":[]}]', "couldn't get version/kind; json parse error"),
    ],
)
async def test_a_patch_that_is_none_is_told(tmp_path: Path, patch: bytes, message: str) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        encoded = base64.b64encode(patch).decode()
        hooks.answer = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
        await made(server, _HOOKS.format("mutating"), hooks.configuration())
        status, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "new"}})
    assert status == 500
    assert message in refusal["message"]


async def test_an_answer_for_nobody_is_none(tmp_path: Path) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"allowed": True, "uid": None}
        await made(server, _HOOKS.format("validating"), hooks.configuration())
        status, refusal = await ask(server, "POST", _MAPS, {"metadata": {"name": "new"}})
    assert status == 500
    assert "expected response.uid=" in refusal["message"]


async def test_who_may_only_get_streams_is_not_given_any() -> None:
    """They are created, though a WebSocket begins with a GET."""
    role = {
        "metadata": {"name": "looks"},
        "rules": [{"apiGroups": [""], "resources": ["pods/exec", "pods/proxy"], "verbs": ["get"]}],
    }
    binding = {
        "metadata": {"name": "looks"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looks"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    async with ApiServer() as server:
        await made(server, _PODS, _POD)
        await made(server, f"{rbac}/roles", role)
        await made(server, f"{rbac}/rolebindings", binding)
        headers = {"Impersonate-User": "looker"}
        answers = [
            await server.transport()(Request("GET", f"{_PODS}/p/{one}", headers)) for one in ("exec", "proxy")
        ]
        statuses = [one.status for one in answers]
    assert statuses == [403, 400]
