"""Who owns what after a create, an update or a patch: one test to a promise.

What the real server does with thousands of writes is in ``test_managed_recorded.py``.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.managed.managers import keep_times, resets, track_update
from setpoint.server.registry.managed.scale import from_scale, to_scale
from setpoint.server.registry.types import Field, Type
from tests.server.registry.managed_steps import thing_type

Object = dict[str, Any]
CONFIG_MAP = type_of("", "v1", "ConfigMap")


def config_map(data: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "u", **metadata},
        "data": data,
    }


def written(new: Object, old: Object | None, manager: str, *, at: int = 0, **options: Any) -> Object:
    """The object after a write by a manager, at a second of the day."""
    new = copy.deepcopy(new)
    if old is not None and "managedFields" not in new["metadata"]:
        new["metadata"]["managedFields"] = old["metadata"].get("managedFields")
    settings = {"api_version": "v1", "subresource": "", "type": CONFIG_MAP, **options}
    track_update(new, old, manager=manager, now=f"2026-01-01T00:00:{at:02}Z", **settings)
    return new


def owners(obj: Object) -> dict[str, Object]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_a_creator_owns_what_it_wrote_but_not_the_identity() -> None:
    created = written(config_map({"x": "1"}, labels={"l": "1"}), None, "m")
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]  # fmt: skip


def test_who_changes_a_field_owns_it_and_nobody_else_does() -> None:
    one = written(config_map({"x": "1", "y": "1"}), None, "a")
    two = written(config_map({"x": "2", "y": "1"}), one, "b", at=1)
    assert owners(two) == {"a": {"f:data": {".": {}, "f:y": {}}}, "b": {"f:data": {"f:x": {}}}}
    times = [entry["time"] for entry in two["metadata"]["managedFields"]]
    assert times == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"], "a wrote nothing just now"


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    one = written(config_map({"x": "1"}), None, "a")
    assert written(config_map({"x": "1"}), one, "b", at=9) == one


@pytest.mark.parametrize(
    "sent", [None, [{"manager": "x", "operation": "Nonsense"}], [{"fieldsV1": {"f": 1}}], "x"]
)
def test_what_cannot_be_read_changes_nothing(sent: Any) -> None:
    one = written(config_map({"x": "1"}), None, "a")
    two = written(config_map({"x": "1"}, managedFields=sent), one, "b")
    assert two["metadata"]["managedFields"] == one["metadata"]["managedFields"]


def test_one_empty_entry_clears_and_nothing_is_tracked_until_an_apply() -> None:
    one = written(config_map({"x": "1"}), None, "a")
    clearing: list[list[Object]] = [[{}], []]
    for sent in clearing:
        cleared = written(config_map({"x": "2"}, managedFields=sent), one, "b")
        assert "managedFields" not in cleared["metadata"]
        assert "managedFields" not in written(config_map({"x": "3"}), cleared, "b")["metadata"]


def test_entries_that_a_client_edited_are_taken_in_their_one_form() -> None:
    one = written(config_map({"x": "1"}), None, "a")
    entry = {"manager": "z", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:data": {".": {}, "f:x": {".": {}}}}}  # fmt: skip
    two = written(config_map({"x": "1"}, managedFields=[entry]), one, "b")
    assert owners(two) == {"z": {"f:data": {".": {}, "f:x": {}}}}


def test_the_oldest_of_more_than_ten_updaters_become_one() -> None:
    obj = written(config_map({"k0": "0"}), None, "m0")
    for number in range(1, 14):
        obj = written(config_map({**obj["data"], f"k{number}": "1"}), obj, f"m{number}", at=number)
    assert list(owners(obj)) == ["ancient-changes", *[f"m{number}" for number in range(5, 14)]]
    assert list(owners(obj)["ancient-changes"]["f:data"]) == [".", "f:k0", "f:k1", "f:k2", "f:k3", "f:k4"]


def test_nobody_owns_what_the_request_could_not_have_written() -> None:
    thing = thing_type()
    options: Object = {"type": thing, "api_version": "test.setpoint.dev/v1"}
    body: Object = {
        "kind": "Thing",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"text": "a"},
        "status": {"phase": "x"},
    }
    created = written(body, None, "m", **options)
    assert owners(created) == {"m": {"f:spec": {".": {}, "f:text": {}}}}
    plain = resets("test.setpoint.dev", "Thing", "", has_status=False)
    assert "f:status" in owners(written(body, None, "m", **options, only=plain))["m"]
    changed = {**body, "spec": {"text": "b"}, "status": {"phase": "y"}}
    two = written(changed, created, "s", **options, subresource="status", at=1)
    assert owners(two)["s"] == {"f:status": {"f:phase": {}}}
    assert two["metadata"]["managedFields"][1]["subresource"] == "status"


def test_true_and_one_are_two_values_where_the_type_says_nothing() -> None:
    options: Object = {"type": thing_type(), "api_version": "test.setpoint.dev/v1"}
    body: Object = {
        "kind": "Thing",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"any": 1, "open": {"a": [1]}},
    }
    one = written(body, None, "m", **options)
    two = written({**body, "spec": {"any": True, "open": {"a": [True]}}}, one, "n", **options, at=1)
    assert owners(two)["n"] == {"f:spec": {"f:any": {}, "f:open": {"f:a": {}}}}


def test_what_became_atomic_is_owned_as_a_whole() -> None:
    thing = thing_type()
    options: Object = {"type": thing, "api_version": "test.setpoint.dev/v1"}
    body: Object = {
        "kind": "Thing",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"map": {"a": "1"}, "text": "x"},
    }
    one = written(body, None, "m", **options)
    spec = thing.fields["spec"].type
    changed = Type("map", item=Type("string"), is_atomic=True)
    later = Type("struct", fields={**spec.fields, "map": Field("map", changed)})
    options["type"] = Type("struct", fields={**thing.fields, "spec": Field("spec", later)})
    two = written({**body, "spec": {"map": {"a": "1"}, "text": "y"}}, one, "n", **options, at=1)
    assert owners(two) == {"m": {"f:spec": {".": {}, "f:map": {}}}, "n": {"f:spec": {"f:text": {}}}}


def test_times_stay_where_nothing_else_changed() -> None:
    one = written(config_map({"x": "1"}), None, "a")
    again = copy.deepcopy(one)
    again["metadata"]["managedFields"][0]["time"] = "2026-01-01T00:00:09Z"
    keep_times(again, one)
    assert again == one
    again["data"]["x"] = "2"
    again["metadata"]["managedFields"] = [
        {**one["metadata"]["managedFields"][0], "time": "2026-01-01T00:00:09Z"}
    ]
    keep_times(again, one)
    assert again["metadata"]["managedFields"][0]["time"] == "2026-01-01T00:00:09Z"


def test_who_scales_takes_the_replicas_and_leaves_the_rest() -> None:
    paths = {"apps/v1": ("f:spec", "f:replicas")}
    fields: Object = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
    applier = {"manager": "a", "operation": "Apply", "apiVersion": "apps/v1", "time": "t",
               "fieldsType": "FieldsV1", "fieldsV1": fields}  # fmt: skip
    scaled = to_scale([applier], paths)
    assert scaled == [{**applier, "apiVersion": "autoscaling/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]
    assert from_scale(scaled, [applier], paths, "apps/v1") == [applier]
    taken = {**scaled[0], "manager": "b", "subresource": "scale"}
    entries = from_scale([taken], [applier], paths, "apps/v1")
    assert {entry["manager"]: entry["fieldsV1"] for entry in entries} == {
        "a": {"f:spec": {"f:paused": {}}},
        "b": {"f:spec": {"f:replicas": {}}},
    }


def test_who_owns_fields_in_a_version_that_is_not_served_is_gone_with_the_next_write() -> None:
    one = written(config_map({"x": "1", "y": "1"}), None, "a")
    [entry] = one["metadata"]["managedFields"]
    for manager, version in (("old", "v0"), ("other", "apps/v1")):
        one["metadata"]["managedFields"].append({**entry, "manager": manager, "apiVersion": version})
    two = written(config_map({"x": "2", "y": "1"}), one, "b", at=1)
    assert owners(two) == {"a": {"f:data": {".": {}, "f:y": {}}}, "b": {"f:data": {"f:x": {}}}}


def test_an_event_is_owned_in_both_groups_that_serve_it() -> None:
    event = type_of("", "v1", "Event")
    made = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "r"}
    one = written(made, None, "a", type=event)
    [entry] = one["metadata"]["managedFields"]
    newer = {**entry, "manager": "b", "apiVersion": "events.k8s.io/v1"}
    one["metadata"]["managedFields"].append(newer)
    two = written({**made, "count": 2}, one, "c", at=1, type=event)
    assert set(owners(two)) == {"a", "b", "c"}
