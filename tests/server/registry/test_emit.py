"""The rules of ``registry/emit.py``, one test to a rule; recorded objects are in ``test_defaults.py``."""

from __future__ import annotations

from typing import Any

from setpoint.server.registry.emit import emit, told
from setpoint.server.registry.facts import type_of


def _emitted(group: str, version: str, kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return emit(obj, type_of(group, version, kind))


def test_fields_come_in_gos_order_and_keys_of_maps_sorted() -> None:
    sent = {
        "data": {"b": "2", "a": "1"},
        "metadata": {"labels": {"y": "", "x": ""}, "name": "n"},
        "apiVersion": "v1",
    }
    emitted = _emitted("", "v1", "ConfigMap", {**sent, "kind": "ConfigMap"})
    assert list(emitted) == ["kind", "apiVersion", "metadata", "data"]
    assert list(emitted["metadata"]) == ["name", "labels"]
    assert list(emitted["metadata"]["labels"]) == ["x", "y"]
    assert list(emitted["data"]) == ["a", "b"]


def test_a_field_without_omitempty_is_written_even_when_empty() -> None:
    assert _emitted("rbac.authorization.k8s.io", "v1", "ClusterRole", {})["rules"] is None
    assert _emitted("rbac.authorization.k8s.io", "v1", "ClusterRole", {"rules": []})["rules"] is None
    assert _emitted("autoscaling", "v2", "HorizontalPodAutoscaler", {})["spec"] == {
        "scaleTargetRef": {"kind": "", "name": ""},
        "maxReplicas": 0,
    }


def test_an_empty_list_that_was_said_is_there_for_who_asks_who_said_it() -> None:
    role = type_of("rbac.authorization.k8s.io", "v1", "Role")
    emitted, empty = told({"metadata": {}, "rules": []}, role)
    assert emitted["rules"] == []
    assert empty == [(emitted, "rules")]
    assert told({"metadata": {}, "rules": None}, role)[0]["rules"] is None
    limits, _ = told({"spec": {"limits": []}}, type_of("", "v1", "LimitRange"))
    assert limits["spec"] == {"limits": []}
    assert "data" not in told({"data": {}}, type_of("", "v1", "ConfigMap"))[0], "which is left out when empty"


def test_a_struct_that_is_no_pointer_is_written_with_what_it_always_has() -> None:
    deployment = _emitted("apps", "v1", "Deployment", {})
    assert deployment["status"] == {}
    assert deployment["spec"]["template"] == {"metadata": {}, "spec": {"containers": None}}
    assert deployment["spec"]["strategy"] == {}
    assert deployment["spec"]["selector"] is None, "a pointer, and no omitempty"


def test_empty_is_left_out_but_behind_a_pointer_only_null_is_empty() -> None:
    spec = {
        "replicas": 0,
        "paused": False,
        "minReadySeconds": 0,
        "template": {"spec": {"hostNetwork": False}},
    }
    emitted = _emitted("apps", "v1", "Deployment", {"spec": spec})["spec"]
    assert emitted["replicas"] == 0
    assert "paused" not in emitted
    assert "minReadySeconds" not in emitted
    assert "hostNetwork" not in emitted["template"]["spec"]
    assert _emitted("", "v1", "ConfigMap", {"immutable": False, "data": {}}) == {
        "metadata": {},
        "immutable": False,
    }


def test_times_that_were_not_said_are_null_or_left_out() -> None:
    event = _emitted("", "v1", "Event", {"metadata": {}})
    assert event["firstTimestamp"] is None
    assert event["eventTime"] is None
    assert "creationTimestamp" not in event["metadata"]


def test_the_object_that_was_given_is_not_changed() -> None:
    given = {"kind": "Pod", "spec": {"containers": [{"image": "b", "name": "a", "tty": False}]}}
    _emitted("", "v1", "Pod", given)
    assert given == {"kind": "Pod", "spec": {"containers": [{"image": "b", "name": "a", "tty": False}]}}
