"""Where pods may be brought, and whom budgets let go; what is written of it."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.server.registry.placement import (
    check_room,
    copy_metadata,
    is_spared,
    set_condition,
    target_refusal,
    unbindable,
)
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import StatusError
from tests.server.registry.test_registry import MERGE, Server, pod, serving

PODS, BUDGETS = "/v1/pods/default", "policy/v1/poddisruptionbudgets/default"


# --- binding


def test_a_pod_is_brought_to_a_node_that_could_be_called_so() -> None:
    assert target_refusal({"kind": "Node", "name": "n1"}) == target_refusal({"name": "n1"}) == ""
    assert target_refusal({"kind": "Node"}) == "target.name: Required value"
    assert target_refusal({"name": "Bad_Name"}).startswith(
        'target.name: Invalid value: "Bad_Name": a lowercase'
    )
    kind = 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'
    assert target_refusal({"kind": "Pod", "name": "Bad_Name"}) == kind
    assert target_refusal({"kind": "Pod"}) == f"[{kind}, target.name: Required value]"


def test_a_pod_that_goes_is_bound_or_waits_for_its_gates_is_not_bound() -> None:
    going = pod()
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert unbindable(going) == "pod p is being deleted, cannot be assigned to a host"
    assert unbindable(pod(nodeName="n")) == 'pod p is already assigned to node "n"'
    assert unbindable(pod(schedulingGates=[{"name": "g"}])) == "pod p has non-empty .spec.schedulingGates"
    assert unbindable(pod()) == ""


def test_what_a_binding_says_about_its_pod_the_pod_says_then() -> None:
    metadata: Object = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    old = "pod.beta.kubernetes.io/init-containers"
    copy_metadata({"labels": {"a": "new", "e": "f"}, "annotations": {"g": "h", old: "[]"}}, metadata)
    assert metadata == {"labels": {"a": "new", "e": "f"}, "annotations": {"c": "d", "g": "h"}}
    bare: Object = {}
    copy_metadata({}, bare)
    assert bare == {}


def test_a_condition_keeps_its_place_and_its_time_while_it_says_the_same() -> None:
    status: Object = {
        "conditions": [{"type": "A", "status": "False", "lastTransitionTime": "then"}, {"type": "B"}]
    }
    set_condition(status, {"type": "A", "status": "True"}, "now")
    set_condition(status, {"type": "A", "status": "True", "reason": "R"}, "later")
    set_condition(status, {"type": "C", "status": "True"}, "later")
    first, second, third = status["conditions"]
    assert (first["status"], first["reason"], first["lastTransitionTime"]) == ("True", "R", "now")
    assert (second["type"], third["type"]) == ("B", "C")


def binding(**metadata: str | dict[str, str]) -> Object:
    return {"metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": "n1"}}


async def test_a_binding_that_means_another_pod_or_version_is_refused() -> None:
    async with serving() as server:
        made = await server.do("create", PODS, pod())
        for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            refused = await server.refused("create", f"{PODS}/p/binding", binding(**{field: "1"}))
            assert refused.code == 409
            assert (
                f"Precondition failed: {what} in precondition: 1, {what} in object meta: " in refused.message
            )
        told = {field: made["metadata"][field] for field in ("uid", "resourceVersion")}
        assert (await server.ask("create", f"{PODS}/p/binding", binding(**told))).code == 201


async def test_a_bound_pod_has_what_its_binding_and_its_node_say_and_is_nominated_no_more() -> None:
    async with serving() as server:
        zone = "topology.kubernetes.io/zone"
        await server.do("create", "/v1/nodes", {"metadata": {"name": "n1", "labels": {zone: "z"}}})
        await server.do("create", PODS, pod())
        waiting = {"status": {"nominatedNodeName": "n9"}}
        await server.do("patch", f"{PODS}/p/status", waiting, content_type=MERGE)

        await server.do("create", f"{PODS}/p/binding", binding(labels={"a": "b"}, annotations={"c": "d"}))

        bound = await server.do("get", f"{PODS}/p")
        assert bound["metadata"]["labels"] == {"app": "x", "a": "b", zone: "z"}
        assert bound["metadata"]["annotations"] == {"c": "d"}
        assert "nominatedNodeName" not in bound["status"]


async def test_a_binding_names_its_pod_and_is_in_its_namespace() -> None:
    async with serving() as server:
        await server.do("create", PODS, pod())
        other = await server.refused("create", f"{PODS}/p/binding", binding(name="other"))
        elsewhere = await server.refused("create", f"{PODS}/p/binding", binding(namespace="other"))
        assert (other.code, other.message) == (400, "name in URL does not match name in Binding object")
        assert (elsewhere.code, elsewhere.message.startswith("the namespace of the provided object")) == (
            400,
            True,
        )


# --- evictions


def budget(wanted: int, healthy: int, policy: str = "", **status: Any) -> Object:
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    counted = {"desiredHealthy": wanted, "currentHealthy": healthy, "observedGeneration": 1, **status}
    return {"metadata": {"name": "b", "generation": 1}, "spec": spec, "status": counted}


def ready(*, is_ready: bool = True) -> Object:
    return {"status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]}}


@pytest.mark.parametrize(
    ("of", "is_let_go"),
    [
        (budget(1, 1), True),
        (budget(2, 1), False),
        (budget(0, 0), False),
        (budget(2, 1, "IfHealthyBudget"), False),
        (budget(2, 1, "AlwaysAllow"), True),
    ],
)
def test_an_unready_pod_is_let_go_where_it_is_not_missed(of: Object, *, is_let_go: bool) -> None:
    assert is_spared(ready(is_ready=False), of) is is_spared({}, of) is is_let_go
    assert is_spared(ready(), of) is False


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (budget(2, 1), "The disruption budget b needs 2 healthy pods and has 1 currently"),
        (budget(1, 2), "The disruption budget b does not allow evicting pods currently"),
        (
            budget(
                1,
                2,
                conditions=[
                    {"type": "DisruptionAllowed", "status": "False", "reason": "Odd", "message": "m"}
                ],
            ),
            "The disruption budget b does not allow evicting pods currently (Odd): m",
        ),
        (
            budget(
                2,
                1,
                conditions=[
                    {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "m"}
                ],
            ),
            "The disruption budget b does not allow evicting pods currently because it failed sync: m",
        ),
        (
            budget(1, 2, observedGeneration=0),
            "The disruption budget b is still being processed by the server.",
        ),
    ],
)
def test_a_budget_without_room_says_why(of: Object, told: str) -> None:
    with pytest.raises(StatusError) as refused:
        check_room(of)
    assert refused.value.code == 429
    assert (refused.value.details or {})["causes"] == [{"reason": "DisruptionBudget", "message": told}]


def test_a_budget_that_many_evictions_are_unknown_to_takes_no_more() -> None:
    many = budget(1, 9000, disruptionsAllowed=1, disruptedPods=dict.fromkeys(map(str, range(2001)), "now"))
    with pytest.raises(StatusError) as refused:
        check_room(many)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")


async def running(server: Server, name: str, *, is_ready: bool) -> None:
    await server.do("create", PODS, pod(name, nodeName="n1"))
    status = {"phase": "Running", **ready(is_ready=is_ready)["status"]}
    await server.do("patch", f"{PODS}/{name}/status", {"status": status}, content_type=MERGE)


async def test_an_unready_pod_is_evicted_without_charging_the_budget() -> None:
    async with serving() as server:
        await running(server, "well", is_ready=True)
        await running(server, "sick", is_ready=False)
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        await server.do("create", BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
        full = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 2}
        await server.do("patch", f"{BUDGETS}/b/status", {"status": full}, content_type=MERGE)
        before = (await server.do("get", f"{BUDGETS}/b"))["metadata"]["resourceVersion"]

        refused = await server.refused("create", f"{PODS}/well/eviction", {"metadata": {"name": "well"}})
        done = await server.ask("create", f"{PODS}/sick/eviction", {"metadata": {"name": "sick"}})

        assert (refused.code, done.code) == (429, 201)
        assert (await server.do("get", f"{BUDGETS}/b"))["metadata"]["resourceVersion"] == before
        assert (await server.do("get", f"{PODS}/sick"))["metadata"]["deletionTimestamp"]


async def test_an_evicted_pod_says_why_it_goes() -> None:
    async with serving() as server:
        await running(server, "p", is_ready=True)
        eviction = {"metadata": {"name": "p"}}
        await server.ask("create", f"{PODS}/p/eviction", eviction, dryRun="All")
        tried = await server.do("get", f"{PODS}/p")
        await server.ask("create", f"{PODS}/p/eviction", eviction)
        gone = await server.do("get", f"{PODS}/p")

        assert [one["type"] for one in tried["status"]["conditions"]] == ["Ready"]
        last = gone["status"]["conditions"][-1]
        assert (last["type"], last["status"], last["reason"]) == (
            "DisruptionTarget",
            "True",
            "EvictionByEvictionAPI",
        )


async def test_an_eviction_of_another_pod_or_version_is_refused() -> None:
    async with serving() as server:
        await running(server, "p", is_ready=False)
        for field in ("uid", "resourceVersion"):
            body = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {field: "1"}}}
            refused = await server.refused("create", f"{PODS}/p/eviction", body)
            assert (refused.code, refused.reason) == (409, "Conflict")
        assert "deletionTimestamp" not in (await server.do("get", f"{PODS}/p"))["metadata"]
