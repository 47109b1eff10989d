"""Mutating policies of the embedded server, beside what ``tests/conformance`` compares with the real one."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from setpoint.server.server import ApiServer
from tests.server.hooks import Hooks, Json, ask, hooks_behind, made, served

_ROOT = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
_MAPS = "/api/v1/namespaces/default/configmaps"
_MAP = {"metadata": {"name": "a"}}
_SIZES = "/apis/example.com/{}/namespaces/default/sizes"


def _apply(expression: str) -> Json:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def _patch(expression: str) -> Json:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


_MISSPELT = _apply("Object{dataa: {'a': 'b'}}")
_UNREAD = _patch("[JSONPatch{op: 'remove', path: '/data'}]")
_LABELLED = _patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: {'by': 'policy'}}]")


def _policy(*mutations: Json, group: str = "", version: str = "v1", **spec: Any) -> Json:
    plural = "sizes" if group else "configmaps"
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [plural]}
    about = {"matchConstraints": {"resourceRules": [rule]}, "reinvocationPolicy": "Never"}
    return {"metadata": {"name": "p"}, "spec": {**about, "mutations": list(mutations), **spec}}


async def _bound(server: ApiServer, *mutations: Json, **spec: Any) -> None:
    await made(server, f"{_ROOT}ies", _policy(*mutations, **spec))
    await made(server, f"{_ROOT}ybindings", {"metadata": {"name": "b"}, "spec": {"policyName": "p"}})


async def test_a_field_that_there_is_not_is_the_failure_of_the_policy_that_applies_it() -> None:
    async with ApiServer() as server:
        await _bound(server, _MISSPELT)
        status, refusal = await ask(server, "POST", _MAPS, _MAP)
    assert (status, refusal["reason"]) == (403, "Invalid")
    told = "failed to convert patch object to typed object: .dataa: field not declared in schema"
    denied = "policy 'p' with binding 'b' denied request"
    assert refusal["message"] == f"{denied}: error applying patch: {told}"


async def test_a_policy_whose_failures_are_ignored_goes_on_with_its_next_mutation() -> None:
    async with ApiServer() as server:
        await _bound(server, _MISSPELT, _LABELLED, _UNREAD, failurePolicy="Ignore")
        new = await made(server, _MAPS, _MAP)
    assert new["metadata"]["labels"] == {"by": "policy"}


async def test_a_refusal_names_all_that_failed_of_a_policy() -> None:
    async with ApiServer() as server:
        await _bound(server, _MISSPELT, _LABELLED, _UNREAD)
        _, refusal = await ask(server, "POST", _MAPS, _MAP)
    causes = [one["message"] for one in refusal["details"]["causes"]]
    assert causes[0] == refusal["message"]
    assert [one.partition("denied request: ")[2].partition(":")[0] for one in causes] == [
        "error applying patch",
        "JSON Patch",
    ]


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
async def test_a_patch_of_a_policy_adds_no_field_that_there_is_not(failure: str) -> None:
    async with ApiServer() as server:
        await _bound(server, _patch("[JSONPatch{op: 'add', path: '/odd', value: 1}]"), failurePolicy=failure)
        status, refusal = await ask(server, "POST", _MAPS, _MAP)
    assert status == 500
    assert refusal["message"] == 'Internal error occurred: strict decoding error: unknown field "odd"'


async def test_a_patch_of_a_webhook_may_add_a_field_that_there_is_not(tmp_path: Path) -> None:
    patch = base64.b64encode(json.dumps([{"op": "add", "path": "/odd", "value": 1}]).encode()).decode()
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}
        target = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        await made(server, target, hooks.configuration())
        assert "odd" not in await made(server, _MAPS, _MAP)


async def test_a_policy_that_may_be_asked_again_is() -> None:
    """Whenever one of them did anything: whether that made a difference is not looked at."""
    count = "object.metadata.?labels.n.orValue('') + 'x'"
    counted = _patch(f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'n': {count}}}}}]")
    async with ApiServer() as server:
        await _bound(server, counted, reinvocationPolicy="IfNeeded")
        new = await made(server, _MAPS, _MAP)
    assert new["metadata"]["labels"] == {"n": "xx"}


@pytest.mark.parametrize(
    ("mutation", "told"),
    [
        (_patch("[{'op': 'add'}]"), "must evaluate to list(JSONPatch) but got list(map(string, string))"),
        (_patch("[Object{}]"), "must evaluate to list(JSONPatch) but got list(Object)"),
        (_apply("{'data': {'a': 'b'}}"), "must evaluate to Object but got map(string, map(string, string))"),
        (_apply("Object.data{a: 'b'}"), "must evaluate to Object but got Object.data"),
        (_patch("[Foo{op: 'add'}]"), "undeclared reference to 'Foo'"),
        (_patch("[JSONPatch{op: 1}]"), "expected type of field 'op' is 'string' but provided type is 'int'"),
        (_patch("[JSONPatch{operation: 'a'}]"), "expected type of field 'operation' is ''"),
        (_patch("[JSONPatch{path: jsonpatch.escapeKey(1)}]"), "found no matching overload for 'jsonpatch.e"),
    ],
)
async def test_what_is_no_patch_is_refused_when_it_is_written(mutation: Json, told: str) -> None:
    async with ApiServer() as server:
        status, refusal = await ask(server, "POST", f"{_ROOT}ies", _policy(mutation))
    assert status == 422
    assert told in refusal["message"]


async def test_a_message_stands_in_the_field_that_it_is_named_after() -> None:
    async with ApiServer() as server:
        await _bound(server, _apply("Object{metadata: Object.metadata{labels: Object.labels{a: 'b'}}}"))
        status, refusal = await ask(server, "POST", _MAPS, _MAP)
    assert (status, refusal["reason"]) == (403, "Invalid")
    named = 'unexpected type name "Object.labels", expected "Object.metadata.labels"'
    assert f"type mismatch: {named}" in refusal["message"]


# ── Versions ────────────────────────────────────────────────────────────────────────────────────────


def _definition(hooks: Hooks) -> Json:
    """A kind that nobody converts, though somebody is asked to."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    service = {"namespace": "default", "name": "hooks", "path": "/convert"}
    webhook = {"clientConfig": {"service": service, "caBundle": hooks.authority}}
    conversion = {"strategy": "Webhook", "webhook": {**webhook, "conversionReviewVersions": ["v1"]}}
    names = {"plural": "sizes", "kind": "Size"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "sizes.example.com"}, "spec": {**spec, "conversion": conversion}}


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
async def test_an_object_that_a_policy_cannot_see_in_its_version_is_the_policys_failure(
    tmp_path: Path, failure: str
) -> None:
    async with (
        hooks_behind(tmp_path) as hooks,
        ApiServer(services={"default/hooks": hooks.address}) as server,
    ):
        hooks.answer = lambda _: {"result": {"status": "Failed", "message": "not today"}}
        await made(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(hooks))
        await served(server, _SIZES.format("v2"))
        await _bound(server, _LABELLED, group="example.com", version="v2", failurePolicy=failure)
        body = {"apiVersion": "example.com/v1", "kind": "Size", **_MAP}
        status, answer = await ask(server, "POST", _SIZES.format("v1"), body)
    if failure == "Ignore":
        assert (status, answer["metadata"].get("labels")) == (201, None)
        return
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'policy "p" denied request: failed to configure policy: '
        "conversion webhook for example.com/v1, Kind=Size failed: not today"
    )
