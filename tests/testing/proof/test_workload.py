"""The rules of ``proof/workload.py``: a life of an object, from its schema."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import crd_of
from setpoint.testing.proof.workload import (
    another,
    misoperation,
    others,
    sample,
    undone,
    usual_steps,
)
from tests.mutants.widgets import Widget


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "a"),
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "string", "format": "ipv4"}, "192.0.2.1"),
        ({"type": "integer", "minimum": 4}, 4),
        ({"type": "integer", "default": 9}, 9),
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
        ({"type": "boolean"}, True, False),
        ({"enum": ["x", "y"]}, "x", "y"),
        ({"type": "string"}, "a", "ab"),
        ({"type": "string", "pattern": "^a$"}, "a", "a"),
        ({"type": "string", "pattern": r"^\d+\.\d+$"}, "17.2", "17.21"),
        ({"type": "string", "pattern": r"^\d+\.\d$"}, "17.2", "17.3"),
        ({"type": "string", "pattern": "^[a-z]$"}, "a", "b"),
        ({"type": "string", "pattern": "(?P>unread)"}, "a", "a"),
        ({"type": "string", "format": "ipv4"}, "192.0.2.1", "192.0.2.2"),
        ({"type": "string", "format": "of its own"}, "a", "a"),
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
