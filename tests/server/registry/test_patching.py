"""The door for patches: what it takes, what it refuses, and that it shares nothing.

What patches do, directives and all, is in ``test_managed_recorded.py``, as a real server did it.
"""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.patching import patched, perform, read
from setpoint.server.registry.resources import Resource
from setpoint.server.statuses import StatusError
from tests.server.deadlines import within
from tests.server.registry.managed_steps import thing_type

Object = dict[str, Any]
BUILT_IN = cast("Resource", SimpleNamespace(is_custom=False, type=type_of("", "v1", "Pod")))
CUSTOM = cast("Resource", SimpleNamespace(is_custom=True, type=thing_type()))
JSON, MERGE, STRATEGIC = (
    f"application/{kind}+json" for kind in ("json-patch", "merge-patch", "strategic-merge-patch")
)
POD: Object = {
    "kind": "Pod",
    "metadata": {"name": "a", "finalizers": ["b", "a"]},
    "spec": {
        "containers": [{"name": "web", "image": "1"}, {"name": "side", "image": "1"}],
        "tolerations": [{"key": "k"}],
    },
}


def refusal(body: bytes, content_type: str = MERGE, resource: Resource = BUILT_IN) -> tuple[int, str]:
    with pytest.raises(StatusError) as refused:
        patched(POD, body, content_type, resource)
    return refused.value.code, refused.value.message


def test_a_resource_takes_the_media_types_that_it_takes() -> None:
    assert refusal(b"{}", "application/json") == (415, "415: Unsupported Media Type")
    code, message = refusal(b"{}", STRATEGIC, CUSTOM)
    assert code == 415
    assert message.endswith(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert patched(POD, b"{}", MERGE + "; charset=utf-8", CUSTOM) == POD


@pytest.mark.parametrize("body", [b"", b"{", b"x", b'{"a": NaN}'])
def test_what_is_no_json_is_no_patch(body: bytes) -> None:
    assert refusal(body) == (400, "invalid JSON patch")


def test_what_is_no_patch_is_refused() -> None:
    told = "json: cannot unmarshal array into Go value of type map[string]interface {}"
    assert refusal(b"[]") == (400, f"error decoding patch: {told}")
    assert refusal(b"[]", STRATEGIC) == (400, told)
    assert refusal(b"null") == (400, "Invalid JSON Patch")
    assert refusal(b"{}", JSON)[1].endswith(
        "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    )


def test_a_json_patch_has_at_most_ten_thousand_operations() -> None:
    operations = [{"op": "test", "path": "/kind", "value": "Pod"}] * 10_001
    code, message = refusal(json.dumps(operations).encode(), JSON)
    assert code == 413
    assert message.endswith("The allowed maximum operations in a JSON patch is 10000, got 10001")
    assert patched(POD, json.dumps(operations[1:]).encode(), JSON, BUILT_IN) == POD


def test_copies_that_grow_without_end_are_refused() -> None:
    operations = [{"op": "copy", "from": "/spec", "path": "/spec/containers/-"}] * 40
    assert refusal(json.dumps(operations).encode(), JSON)[0] == 422


def test_an_operation_that_cannot_be_performed_refuses_the_patch() -> None:
    body = b'[{"op": "remove", "path": "/kind"}, {"op": "remove", "path": "/kind"}]'
    assert refusal(body, JSON) == (422, "the server rejected our request due to an error in our request")


def test_lists_are_merged_by_their_keys_in_the_order_of_the_patch() -> None:
    patch = {
        "metadata": {"finalizers": ["c", "b"]},
        "spec": {"containers": [{"name": "side", "image": "2"}, {"name": "new"}], "tolerations": []},
    }
    result = patched(POD, json.dumps(patch).encode(), STRATEGIC, BUILT_IN)
    assert result["metadata"]["finalizers"] == ["c", "b", "a"]
    assert [one["name"] for one in result["spec"]["containers"]] == ["web", "side", "new"]
    assert result["spec"]["containers"][1]["image"] == "2"
    assert result["spec"]["tolerations"] == [], "an atomic list is replaced"


COUNT = 20_000
NAMES = [f"f{number}" for number in range(COUNT)]


def named(names: list[str], **more: Any) -> list[Object]:
    return [{"name": one, **more} for one in names]


@pytest.mark.parametrize(
    ("place", "old", "patch", "new"),
    [
        ("metadata", {"finalizers": NAMES}, {"finalizers": NAMES[::-1]}, {"finalizers": NAMES[::-1]}),
        (
            "metadata",
            {"finalizers": NAMES},
            {"$deleteFromPrimitiveList/finalizers": NAMES},
            {"finalizers": []},
        ),
        (
            "metadata",
            {"finalizers": NAMES},
            {"$setElementOrder/finalizers": NAMES[::-1]},
            {"finalizers": NAMES[::-1]},
        ),
        (
            "metadata",
            {"annotations": dict.fromkeys(NAMES, "1")},
            {"annotations": {**dict.fromkeys(NAMES[1:], "2"), "$retainKeys": NAMES[1:]}},
            {"annotations": dict.fromkeys(NAMES[1:], "2")},
        ),
        (
            "spec",
            {"containers": named(NAMES)},
            {"containers": named(NAMES[::-1], image="1")},
            {"containers": named(NAMES[::-1], image="1")},
        ),
        (
            "spec",
            {"containers": named(NAMES)},
            {"containers": named(NAMES[1:], **{"$patch": "delete"})},
            {"containers": named(NAMES[:1])},
        ),
    ],
    ids=["set", "deleted from", "ordered", "retained", "map", "deleted by key"],
)
def test_a_list_as_long_as_a_body_allows_is_merged_in_time(
    place: str, old: Object, patch: Object, new: Object
) -> None:
    body = json.dumps({place: patch}).encode()
    with within(20):
        assert patched({"kind": "Pod", place: old}, body, STRATEGIC, BUILT_IN)[place] == new


def test_what_nobody_ordered_stands_before_what_was_there_as_in_kubernetes() -> None:
    patch = {"$setElementOrder/finalizers": [], "finalizers": ["x", "y", "b", "z"]}
    result = patched(POD, json.dumps({"metadata": patch}).encode(), STRATEGIC, BUILT_IN)
    assert result["metadata"]["finalizers"] == ["z", "b", "a", "y", "x"]


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_a_patch_may_be_performed_again_and_shares_nothing(content_type: str) -> None:
    containers = [{"name": "web", "env": [{"name": "x"}]}]
    body = json.dumps({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": containers}}).encode()
    live, patch = copy.deepcopy(POD), read(body, content_type, BUILT_IN)
    first = perform(patch, live, BUILT_IN)
    again = copy.deepcopy(first)
    first["metadata"]["labels"]["a"] = first["spec"]["containers"][0]["env"] = first["metadata"]["name"] = (
        "changed"
    )
    assert live == POD
    assert perform(patch, live, BUILT_IN) == again


def test_keys_that_are_there_twice_are_told() -> None:
    assert read(b'{"a": 1, "a": 2}', MERGE, BUILT_IN).doubled == ['duplicate field "a"']
