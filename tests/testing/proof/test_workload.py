"""The rules of ``proof/workload.py``: a life of an object, from its schema."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import crd_of
from setpoint.testing.proof.workload import (
    Field,
    another,
    fields,
    misoperation,
    others,
    sample,
    undone,
    usual_steps,
)
from tests.mutants.widgets import Widget

INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
PORTS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "a"),
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "string", "format": "ipv4"}, "192.0.2.1"),
        ({"type": "integer", "minimum": 4}, 4),
        ({"type": "integer", "default": 9}, 9),
        ({"type": "integer", "minimum": 4, "exclusiveMinimum": True}, 5),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": True}, 0),
        ({"type": "integer", "minimum": 4, "multipleOf": 5}, 5),
        (
            {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "exclusiveMinimum": True,
                "exclusiveMaximum": True,
            },
            0.5,
        ),
        ({"type": "string", "format": "byte"}, "YQ=="),
        ({"type": "string", "pattern": r"^[0-9]{2}\.[0-9]{1,2}$", "maxLength": 5}, "11.1"),
        ({"type": "string", "pattern": "^[0-9]*$"}, "1"),
        ({"type": "string", "pattern": "^[0-9]+$", "minLength": 3}, "111"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "a"),
        ({"type": "string", "pattern": "(?P>unread)"}, "a"),
        ({"enum": ["x", "y"]}, "x"),
        ({"type": "boolean"}, False),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {}}}, {"a": "a"}),
    ],
)
def test_a_sample_is_what_a_schema_allows(schema: dict[str, Any], value: Any) -> None:
    assert sample(schema) == value


@pytest.mark.parametrize(
    ("schema", "value", "other"),
    [
        ({"type": "integer", "maximum": 3}, 3, 2),
        ({"type": "integer"}, 3, 4),
        ({"type": "integer", "maximum": 4, "exclusiveMaximum": True}, 3, 2),
        ({"type": "integer", "minimum": 2, "maximum": 3, "exclusiveMinimum": True}, 3, 3),
        ({"type": "integer", "multipleOf": 5, "maximum": 10}, 10, 5),
        ({"type": "number", "minimum": 0, "maximum": 1}, 0.5, 0.75),
        (INT_OR_STRING, 1, 2),
        (INT_OR_STRING, "25%", "26%"),
        ({**INT_OR_STRING, "pattern": "^[0-9]+(Gi)?$"}, "1Gi", "2Gi"),
        ({"type": "boolean"}, True, False),
        ({"enum": ["x", "y"]}, "x", "y"),
        ({"type": "string"}, "a", "ab"),
        ({"type": "string", "pattern": "^a$"}, "a", "a"),
        ({"type": "string", "pattern": r"^\d+\.\d+$"}, "17.2", "17.21"),
        ({"type": "string", "pattern": r"^\d+\.\d$"}, "17.2", "17.3"),
        ({"type": "string", "pattern": "^[a-z]$"}, "a", "b"),
        ({"type": "string", "pattern": "(?P>unread)"}, "a", "a"),
        ({"type": "string", "format": "ipv4"}, "192.0.2.1", "192.0.2.2"),
        ({"type": "string", "format": "ipv4"}, "192.0.2.2", "192.0.2.1"),
        ({"type": "string", "format": "of its own"}, "a", "a"),
        ({"type": "array", "items": {"type": "integer"}}, [1], [1, 1]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, [1], []),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 1}, [1], [2]),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, ["a"], ["a", "ab"]),
        (
            {"type": "array", "items": {"type": "boolean"}, "x-kubernetes-list-type": "set"},
            [True, False],
            [True],
        ),
        (PORTS, [{"name": "a"}], [{"name": "a"}, {"name": "ab"}]),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, {}, {"another": False}),
    ],
)
def test_another_value_is_allowed_too(schema: dict[str, Any], value: Any, other: Any) -> None:
    assert another(schema, value) == other


def test_what_may_not_change_is_left_alone() -> None:
    fixed = {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    schema = {"properties": {"a": fixed, "b": {"type": "object", "properties": {"c": {"type": "boolean"}}}}}
    assert list(others(schema, {"a": 1, "b": {"c": True}})) == [{"b": {"c": False}}]


@pytest.mark.parametrize(
    ("value", "patches"),
    [
        ([], [[{"name": "a"}], [{"name": "ab"}], [{"name": "a", "port": 2}]]),
        (
            [{"name": "x", "port": 5}, {"name": "y"}],
            [
                [{"name": "x", "port": 5}, {"name": "y"}, {"name": "a"}],
                [{"name": "xb", "port": 5}, {"name": "y"}],
                [{"name": "x", "port": 6}, {"name": "y"}],
            ],
        ),
    ],
)
def test_the_fields_of_an_item_of_a_list_are_changed_one_by_one(value: list[Any], patches: list[Any]) -> None:
    assert list(others({"properties": {"ports": PORTS}}, {"ports": value})) == [
        {"ports": patch} for patch in patches
    ]


def test_the_fields_of_an_item_of_a_map_are_changed_one_by_one() -> None:
    sites = {"type": "object", "additionalProperties": PORTS["items"]}
    found = list(fields({"properties": {"sites": sites}}, {}))
    assert found == [
        Field("sites", {"sites": {"another": {"name": "a"}}}),
        Field("sites.*.name", {"sites": {"another": {"name": "ab"}}}),
        Field("sites.*.port", {"sites": {"another": {"name": "a", "port": 2}}}),
    ]


def test_of_an_item_with_very_many_fields_some_are_changed_and_that_is_told() -> None:
    items = {"type": "object", "properties": {f"f{number}": {"type": "boolean"} for number in range(30)}}
    found = list(fields({"properties": {"all": {"type": "array", "items": items}}}, {}))
    assert [each.path for each in found if each.patch] == [
        "all",
        *(f"all[].f{number}" for number in range(20)),
    ]
    assert found[-1] == Field("all[]", None, "of the fields of an item the first 20 are changed")


def test_what_must_be_there_is_made_with_what_is_changed() -> None:
    inner = {
        "type": "object",
        "required": ["host"],
        "properties": {"host": {"type": "string"}, "tls": {"type": "boolean"}},
    }
    schema = {"properties": {"site": inner}}
    assert list(others(schema, {})) == [{"site": {"host": "ab"}}, {"site": {"host": "a", "tls": True}}]
    assert list(others(schema, {"site": {"host": "x"}})) == [
        {"site": {"host": "xb"}},
        {"site": {"tls": True}},
    ]


def test_why_a_field_is_left_alone_is_said() -> None:
    fixed = {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    schema = {
        "properties": {
            "fixed": fixed,
            "own": {"type": "string", "format": "of its own"},
            "any": {"x-kubernetes-preserve-unknown-fields": True},
            "size": {"type": "integer"},
        }
    }
    said = {path: why_not for path, patch, why_not in fields(schema, {}) if patch is None}
    assert said == {
        "fixed": "a rule holds it against its old value",
        "own": "the schema does not say what else it may be",
        "any": "the schema does not say what else it may be",
    }


@pytest.mark.parametrize(
    ("spec", "patch", "back"),
    [
        ({"a": 1}, {"a": 2}, {"a": 1}),
        ({}, {"a": 2}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 1}}),
        ({}, {"a": {"b": 3}}, {"a": None}),
        ({"a": {"b": "x"}}, {"a": {"b": "x", "another": "y"}}, {"a": {"b": "x", "another": None}}),
    ],
)
def test_a_patch_is_taken_back(spec: dict[str, Any], patch: dict[str, Any], back: dict[str, Any]) -> None:
    assert undone(patch, spec) == back


@pytest.mark.parametrize(
    ("field", "patch"),
    [
        ({"type": "string"}, {"a": "bad"}),
        ({"type": "string", "pattern": "^x"}, {}),
        ({"type": "string", "maxLength": 2}, {}),
        ({"enum": ["x", "y"]}, {}),
        ({"type": "integer", "default": 3}, {"a": 0}),
        ({"type": "integer", "default": 3, "minimum": 2}, {"a": 2}),
        ({"type": "integer", "minimum": 2}, {}),
        ({"type": "number", "default": 0.5, "minimum": 0, "exclusiveMinimum": True, "maximum": 0.9}, {}),
    ],
)
def test_a_misoperation_is_what_the_schema_allows(field: dict[str, Any], patch: dict[str, Any]) -> None:
    assert misoperation({"properties": {"a": field}}, {}) == patch


def test_an_object_is_made_changed_and_back_misused_deleted_and_made_again() -> None:
    steps = [str(step) for step in usual_steps(crd_of(Widget))]
    assert steps == [
        "create Widget sample",
        'change Widget sample: {"spec":{"replicas":2}}',
        'change Widget sample: {"spec":{"replicas":1}}',
        'change Widget sample: {"spec":{"text":"ab"}}',
        'change Widget sample: {"spec":{"text":"a"}}',
        'change Widget sample: {"spec":{"text":"bad"}}, which may fail',
        'change Widget sample: {"spec":{"text":"a"}}',
        "delete Widget sample",
        "create Widget sample",
        "delete Widget sample while the operator is down",
    ]
