"""Server-side apply: one test to a promise.

What the real server does with thousands of applies is in ``test_managed_recorded.py``.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.managed.apply import LAST_APPLIED, apply
from setpoint.server.statuses import StatusError

Object = dict[str, Any]
CONFIG_MAP = type_of("", "v1", "ConfigMap")


def intent(data: Object, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": data}


def applied(
    live: Object | None, wanted: Object, manager: str = "a", *, force: bool = False, at: int = 0
) -> Object:
    before = copy.deepcopy((live, wanted))
    result = apply(
        live, wanted, manager=manager, api_version="v1", subresource="", force=force,
        now=f"2026-01-01T00:00:{at:02}Z", type=CONFIG_MAP,
    )  # fmt: skip
    assert (live, wanted) == before, "what came in is as it was"
    return result


def owners(obj: Object) -> dict[str, Object]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def refusal(*args: Any, **options: Any) -> Object:
    with pytest.raises(StatusError) as refused:
        applied(*args, **options)
    return refused.value.status


def test_an_applier_owns_what_it_applies() -> None:
    live = applied(None, intent({"x": "1"}))
    assert live["data"] == {"x": "1"}
    assert live["metadata"]["managedFields"] == [
        {
            "manager": "a", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}},
        }
    ]  # fmt: skip


def test_a_value_that_another_owns_is_a_conflict_unless_forced() -> None:
    live = applied(None, intent({"x": "1", "y": "1"}))
    status = refusal(live, intent({"x": "2"}), "b")
    assert (status["code"], status["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "a": .data.x',
    )
    several = refusal(live, intent({"x": "2", "y": "2"}), "b")
    assert several["message"] == 'Apply failed with 2 conflicts: conflicts with "a":\n- .data.x\n- .data.y'
    assert [cause["field"] for cause in several["details"]["causes"]] == [".data.x", ".data.y"]
    forced = applied(live, intent({"x": "2"}), "b", force=True)
    assert owners(forced) == {"a": {"f:data": {"f:y": {}}}, "b": {"f:data": {"f:x": {}}}}


def test_the_same_value_is_owned_together_and_stays_until_the_last_owner_drops_it() -> None:
    live = applied(applied(None, intent({"x": "1"})), intent({"x": "1"}), "b")
    assert owners(live) == {"a": {"f:data": {"f:x": {}}}, "b": {"f:data": {"f:x": {}}}}
    assert "time" not in live["metadata"]["managedFields"][0], "b has changed nothing yet"
    live = applied(live, intent({}))
    assert live["data"] == {"x": "1"}
    assert "data" not in {name for name, value in applied(live, intent({}), "b").items() if value}


def test_what_is_no_longer_applied_is_removed() -> None:
    live = applied(None, intent({"x": "1", "y": "1"}))
    assert applied(live, intent({"y": "1"}))["data"] == {"y": "1"}


def test_applied_again_nothing_changes_not_even_the_time() -> None:
    live = applied(None, intent({"x": "1"}))
    assert applied(live, intent({"x": "1"}), at=9) == live


def test_what_was_written_before_the_first_apply_has_an_owner() -> None:
    live: Object = {**intent({"x": "1"}), "metadata": {"name": "a", "uid": "u"}}
    status = refusal(live, intent({"x": "2"}))
    assert status["message"].endswith('conflict with "before-first-apply" using v1: .data.x')
    assert list(owners(applied(live, intent({"y": "1"})))) == ["a", "before-first-apply"]


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    said = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}'
    entry = {"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:x": {}, "f:y": {}}}}  # fmt: skip
    live = intent({"x": "1", "y": "1"}, uid="u", annotations={LAST_APPLIED: said}, managedFields=[entry])
    assert refusal(live, intent({"x": "2"}), "other")["code"] == 409
    assert refusal(live, intent({"y": "2"}), "kubectl")["code"] == 409, "that it did not apply"
    result = applied(live, intent({"x": "2"}), "kubectl")
    assert result["data"] == {"x": "2", "y": "1"}
    wrote = '{"apiVersion":"v1","data":{"x":"2"},"kind":"ConfigMap","metadata":{"name":"a"}}\n'
    assert result["metadata"]["annotations"] == {LAST_APPLIED: wrote}


def test_what_does_not_fit_is_refused_as_kubernetes_refuses_it() -> None:
    assert refusal(None, {**intent({}), "foo": 1}) == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
        "message": "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
        ".foo: field not declared in schema",
    }  # fmt: skip
    assert refusal(intent({}), {"metadata": {}})["message"] == "invalid object type: /, Kind="
    assert refusal(intent({}), {"apiVersion": 1, "kind": []})["message"] == "invalid object type: /, Kind="
    assert refusal(None, intent({}, managedFields=[]))["message"] == "metadata.managedFields must be nil"
