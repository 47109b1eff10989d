"""No rule and no policy stalls the server: others are answered while a costly one is evaluated."""

from __future__ import annotations

import asyncio
import threading
from typing import Never

import pytest

from setpoint.server.registry.crd import spending
from setpoint.server.registry.patience import PATIENCE, QUICK, Patience, TooLong, at_home, in_time
from setpoint.server.server import ApiServer
from tests.server.hooks import Json, ask, made

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_MAPS = "/api/v1/namespaces/default/configmaps"
_COSTLY = "lists.range(5000).all(i, i < 200000)"  # four times what the loop waits for
_DEAR = (
    f"{_COSTLY} && sets.contains(lists.range(1000), lists.range(1000))"  # beyond the limit, and soon there
)
_CHECK = "authorizer.group('').resource('pods').check('get').allowed()"


def _definition(text: str) -> Json:
    numbers = {"type": "array", "maxItems": 2000, "items": {"type": "integer"}}
    rules = [{"rule": text, "message": "no"}]
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"n": numbers}, "x-kubernetes-validations": rules}
        },
    }
    names = {"plural": "slows", "kind": "Slow"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": "slows.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


_SLOWS = "/apis/example.com/v1/namespaces/default/slows"


def _slow(name: str) -> Json:
    about = {"apiVersion": "example.com/v1", "kind": "Slow", "metadata": {"name": name}}
    return {**about, "spec": {"n": [1]}}


async def _defined(server: ApiServer, text: str) -> None:
    await made(server, _CRDS, _definition(text))
    path = f"{_CRDS}/slows.example.com"
    while "Established" not in str((await ask(server, "GET", path))[1]["status"]):
        await asyncio.sleep(0)


async def _answered_meanwhile(
    server: ApiServer, target: str, body: Json, method: str = "POST"
) -> tuple[int, Json, int]:
    """What is answered to a request, and how many others were until then."""
    slow = asyncio.create_task(ask(server, method, target, body))
    count = 0
    while not slow.done():
        await asyncio.sleep(0)
        assert (await ask(server, "GET", "/api/v1/namespaces/default"))[0] == 200
        count += 1
    return *slow.result(), count


async def test_a_costly_rule_holds_nobody_up() -> None:
    async with ApiServer() as server:
        await _defined(server, _COSTLY)
        status, found, count = await _answered_meanwhile(server, _SLOWS, _slow("a"))
        assert status == 201, found
        assert count > 1
        change = {"spec": {"n": [2]}}
        status, found, count = await _answered_meanwhile(server, f"{_SLOWS}/a", change, "PATCH")
        assert (status, found["metadata"]["generation"]) == (200, 2)
        assert count > 1


async def test_a_rule_that_costs_too_much_refuses_the_object_and_holds_nobody_up() -> None:
    async with ApiServer() as server:
        await _defined(server, _DEAR)
        status, found, count = await _answered_meanwhile(server, _SLOWS, _slow("a"))
        assert status == 422
        assert found["details"]["causes"][0]["message"] == (
            "Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further "
            "validation rules will be run due to call cost exceeds limit for rule: no"
        )
        assert count > 1


def _matched() -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {"resourceRules": [rule]}


async def _with_policy(server: ApiServer, **spec: Json | list[Json]) -> None:
    await made(
        server, _POLICIES, {"metadata": {"name": "p"}, "spec": {"matchConstraints": _matched(), **spec}}
    )
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    await made(server, _BINDINGS, {"metadata": {"name": "b"}, "spec": bound})


async def test_a_costly_policy_holds_nobody_up() -> None:
    async with ApiServer() as server:
        await _with_policy(server, validations=[{"expression": _COSTLY}])
        status, found, count = await _answered_meanwhile(server, _MAPS, {"metadata": {"name": "a"}})
        assert status == 201, found
        assert count > 1


_BIG: Json = {"metadata": {"name": "a"}, "data": {f"k{number}": "v" * 50 for number in range(10_000)}}


@pytest.mark.parametrize(
    "text",
    [
        "object == object",
        "'%s'.format([object.data]).size() > 0",
        "sets.contains([object.data], [object.data])",
        "lists.range(5).map(i, object.data.k1).join().size() > 0 && object.data.all(k, v, v != '')",
    ],
)
async def test_a_policy_that_costs_little_and_looks_at_much_holds_nobody_up(text: str) -> None:
    async with ApiServer() as server:
        await _with_policy(server, validations=[{"expression": text}])
        status, found, count = await _answered_meanwhile(server, _MAPS, _BIG)
        assert status == 201, found
        assert count > 1


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(900).all(i, object == object)",
        "lists.range(9000).map(i, object.data.s).join().size() > 0",
        "lists.range(9000).all(i, '%s'.format([object.data]).size() > 0)",
    ],
)
async def test_a_policy_that_costs_little_and_is_too_much_refuses_the_object_and_holds_nobody_up(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spending, "WORK_LIMIT", 300_000)
    async with ApiServer() as server:
        await _with_policy(server, validations=[{"expression": text}])
        body = {**_BIG, "data": {**_BIG["data"], "s": "s" * 100_000}}
        status, found, count = await _answered_meanwhile(server, _MAPS, body)
        assert status == 422
        assert "operation cancelled: actual cost limit exceeded" in found["message"]
        assert count > 1


async def test_the_expressions_of_a_policy_cost_so_much_together_and_no_more() -> None:
    async with ApiServer() as server:
        await _with_policy(server, validations=[{"expression": f"{_CHECK} && {_CHECK}"}] * 15)
        status, found = await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}})
        assert status == 422
        assert "validation failed due to running out of cost budget" in found["message"]


async def test_the_match_conditions_of_a_webhook_cost_so_much_together_and_no_more() -> None:
    conditions = [{"name": f"c{place}", "expression": f"{_CHECK} && {_CHECK}"} for place in range(4)]
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1"},
        "rules": _matched()["resourceRules"],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": conditions,
    }
    async with ApiServer() as server:
        await made(server, _HOOKS, {"metadata": {"name": "h"}, "webhooks": [hook]})
        status, found = await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}})
        assert status == 403
        assert "validation failed due to running out of cost budget" in found["message"]


async def test_a_question_to_the_authorizer_is_dear_and_yet_asked_at_once() -> None:
    async with ApiServer() as server:
        await _with_policy(server, validations=[{"expression": f"{_CHECK} && {_CHECK}"}])
        assert (await ask(server, "POST", _MAPS, {"metadata": {"name": "a"}}))[0] == 201
        await ask(
            server,
            "PATCH",
            f"{_POLICIES}/p",
            {"spec": {"validations": [{"expression": " && ".join([_CHECK] * 3)}]}},
        )
        status, found = await ask(server, "POST", _MAPS, {"metadata": {"name": "b"}})
        assert status == 422
        assert "operation cancelled: actual cost limit exceeded" in found["message"]


async def test_an_authorizer_is_asked_by_the_loop_and_by_no_thread() -> None:
    async with ApiServer() as server:
        await _with_policy(server, validations=[{"expression": f"{_COSTLY} && {_CHECK}"}])
        status, found, count = await _answered_meanwhile(server, _MAPS, {"metadata": {"name": "a"}})
        assert (status, count > 1) == (201, True), found


@pytest.mark.virtual_time
async def test_in_virtual_time_a_costly_rule_is_evaluated_at_once() -> None:
    async with ApiServer() as server:
        await _defined(server, _COSTLY)
        assert (await ask(server, "POST", _SLOWS, _slow("a")))[0] == 201


async def test_a_step_that_nobody_waits_for_any_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "WORK_LIMIT", 10**12)
    here, begun, ended = threading.get_ident(), threading.Event(), threading.Event()

    def evaluated(meter: spending.Meter) -> Never:
        if threading.get_ident() != here:
            begun.set()
        while True:
            meter.toil(1)

    def step() -> None:
        try:
            spending.metered(evaluated, {}, spending.Purse())
        finally:
            if threading.get_ident() != here:
                ended.set()

    waiting = asyncio.create_task(in_time(step))
    assert await asyncio.to_thread(begun.wait, 10)
    waiting.cancel()
    assert await asyncio.to_thread(ended.wait, 10), "no limit of its own would have ended it yet"
    await asyncio.wait([waiting])
    assert waiting.cancelled()


async def test_a_step_that_was_given_up_evaluates_nothing_more() -> None:
    patience = Patience(None)
    token = PATIENCE.set(patience)
    try:
        assert spending.metered(lambda _: 1, {}, spending.Purse()) == 1
        patience.is_given_up = True
        with pytest.raises(TooLong):
            spending.metered(lambda _: 1, {}, spending.Purse())
    finally:
        PATIENCE.reset(token)


async def test_a_step_that_is_quick_is_done_where_it_is() -> None:
    here = asyncio.current_task()
    assert await in_time(asyncio.current_task) is here
    assert at_home(lambda: QUICK) == QUICK
