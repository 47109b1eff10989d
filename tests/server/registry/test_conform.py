"""The rules of ``registry/conform.py`` that recorded bodies do not show (``test_bodies.py`` has those)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.server.registry.conform import WrongType, conform, restore, strict_error
from setpoint.server.registry.doubled import Doubled
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.forms import zero
from setpoint.server.registry.types import Type
from tests.server.registry.recordings import rows, type_of_object

_POD = type_of("", "v1", "Pod")
_CRD = type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}


def test_what_conforms_is_the_same_object() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    assert conform(pod, _POD).object is pod


def test_a_field_that_is_null_is_dropped_without_a_closer_look() -> None:
    conditions = [{"type": "Ready", "status": "True", "lastProbeTime": None}]
    pod: dict[str, Any] = {"metadata": {"name": "a"}, "spec": None, "status": {"conditions": conditions}}
    decoded = conform(pod, _POD)
    assert decoded.object is pod
    assert pod == {
        "metadata": {"name": "a"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    assert conform({"spec": {"nodeName": None, "foo": None}}, _POD).unknown == ['unknown field "spec.foo"']


def test_fields_that_are_not_known_are_dropped_and_named_in_order() -> None:
    pod = {"spec": {"b": 1, "containers": [{"a": 1}, {"name": "x"}, {"c": {"d": 1}}]}, "z": 1}
    decoded = conform(pod, _POD)
    assert decoded.object == {"spec": {"containers": [{}, {"name": "x"}, {}]}}
    assert decoded.unknown == [
        'unknown field "spec.b"',
        'unknown field "spec.containers[0].a"',
        'unknown field "spec.containers[2].c"',
        'unknown field "z"',
    ]


def test_no_more_than_a_hundred_are_named() -> None:
    assert len(conform({f"f{n}": 1 for n in range(200)}, _POD).unknown) == 100


def test_inside_a_schema_that_may_be_something_simpler_nothing_is_named() -> None:
    crd = _schema(
        {"type": "array", "foo": 1, "items": {"type": "string", "bar": 1}, "additionalProperties": False}
    )
    decoded = conform(crd, _CRD)
    assert decoded.unknown == ['unknown field "spec.versions[0].schema.openAPIV3Schema.foo"']
    assert decoded.object == _schema(
        {"type": "array", "items": {"type": "string"}, "additionalProperties": False}
    )


def test_a_schema_or_something_simpler_is_one_of_them() -> None:
    assert conform(_schema({"items": [{"type": "string"}]}), _CRD).object == _schema(
        {"items": [{"type": "string"}]}
    )
    dependencies = {"dependencies": {"a": ["b"], "c": {"type": "string"}}}
    assert conform(_schema(dependencies), _CRD).object == _schema(dependencies)
    with pytest.raises(WrongType, match="boolean or JSON schema expected"):
        conform(_schema({"additionalProperties": "x"}), _CRD)


def test_raw_json_is_kept_whatever_it_is() -> None:
    raw = {"metadata": {"name": "a"}, "revision": 1, "data": {"spec": {"x": [1, None, {"y": 1.5}]}}}
    revision = type_of("apps", "v1", "ControllerRevision")
    assert conform(copy.deepcopy(raw), revision).object == raw
    doubled = {**raw, "data": Doubled([("a", 1), ("a", 2)])}
    decoded = conform(doubled, revision)
    assert decoded.object["data"] == {"a": 2}
    assert type(decoded.object["data"]) is dict


def test_a_whole_number_where_go_has_a_float_is_written_without_a_point() -> None:
    done = conform(_schema({"minimum": 1.0, "maximum": 2.5, "multipleOf": 3}), _CRD).object
    schema = done["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert [repr(schema[name]) for name in ("minimum", "maximum", "multipleOf")] == ["1", "2.5", "3"]


def test_bytes_may_be_a_list_of_numbers() -> None:
    secret = type_of("", "v1", "Secret")
    assert conform({"data": {"a": [104, 105, None]}}, secret).object == {"data": {"a": "aGkA"}}
    with pytest.raises(WrongType, match=r"number 256 into Go struct field Secret\.data of type uint8"):
        conform({"data": {"a": [256]}}, secret)


def test_strictness_names_all_of_them_at_once() -> None:
    refused = strict_error(['unknown field "a"', 'unknown field "b"'], "Pod", "v1")
    assert refused.code == 400
    assert refused.message == (
        'Pod in version "v1" cannot be handled as a Pod: '
        'strict decoding error: unknown field "a", unknown field "b"'
    )


def test_what_a_strategic_merge_left_is_refused_in_the_converters_words() -> None:
    config_map, deployment = type_of("", "v1", "ConfigMap"), type_of("apps", "v1", "Deployment")

    def refused(obj: dict[str, Any], kind_type: Type) -> str:
        with pytest.raises(WrongType) as wrong:
            restore(obj, kind_type)
        return str(wrong.value)

    assert refused({"data": {"a": 1}}, config_map) == "cannot convert int64 to string"
    assert refused({"data": 1}, config_map) == "cannot restore map from int64"
    assert refused({"data": []}, config_map) == "cannot restore map from slice"
    assert refused({"immutable": "x"}, config_map) == "unrecognized type: bool"
    assert refused({"metadata": {"labels": {"a": True}}}, config_map) == "unrecognized type: string"
    assert refused({"spec": {"replicas": "x"}}, deployment) == "unrecognized type: int32"
    assert refused({"spec": {"replicas": 1.5}}, deployment) == "cannot convert float64 to int32"
    assert refused({"spec": 1}, deployment) == "cannot restore struct from: int64"
    surge = {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}}
    assert refused(surge, deployment) == "json: cannot unmarshal bool into Go value of type int32"
    both = {"metadata": {"labels": 1}, "kind": 1}
    assert refused(both, config_map) == "cannot convert int64 to string", "kind comes before metadata"
    assert restore({"spec": {"replicas": 3.0}}, deployment).object["spec"]["replicas"] == 3
    assert restore({"spec": {"foo": 1}}, deployment).unknown == ['unknown field "spec.foo"']


# --- any damage to any object

_OBJECTS = [row["object"] for row in rows("messages")]
_DAMAGE: list[Any] = [None, True, 1, -(2**40), 1.5, "x", "", [], {}, [None], {"a": None}, [[1]], {"name": 1}]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Everything that can be put something else into: (container, key)."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        for key in one if isinstance(one, dict) else range(len(one)):
            found.append((one, key))
            if isinstance(one[key], dict | list):
                waiting.append(one[key])
    return found


@given(st.sampled_from(_OBJECTS), st.data())
def test_whatever_is_wrong_is_mended_or_refused_and_what_is_mended_conforms(
    obj: dict[str, Any], data: st.DataObject
) -> None:
    damaged, kind_type = copy.deepcopy(obj), type_of_object(obj)
    places = [place for place in _places(damaged) if place[1] not in ("kind", "apiVersion")]
    for container, key in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        container[key] = copy.deepcopy(data.draw(st.sampled_from(_DAMAGE)))
    try:
        mended = conform(damaged, kind_type).object
    except WrongType:
        return
    again = conform(copy.deepcopy(mended), kind_type)
    assert again.object == mended
    assert again.unknown == []


def test_every_form_has_a_zero() -> None:
    assert zero(Type("string")) == ""
    assert zero(Type("quantity")) == "0"
    assert zero(Type("struct")) == {}
    assert zero(Type("time")) is None
    assert zero(Type("list")) is None
