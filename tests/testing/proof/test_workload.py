"""The rules of ``proof/workload.py``: a life of an object, from its schema."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import crd_of
from setpoint.testing.proof.workload import another, others, sample, usual_steps
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
    ],
)
def test_another_value_is_allowed_too(schema: dict[str, Any], value: Any, other: Any) -> None:
    assert another(schema, value) == other


def test_what_may_not_change_is_left_alone() -> None:
    fixed = {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    schema = {"properties": {"a": fixed, "b": {"type": "object", "properties": {"c": {"type": "boolean"}}}}}
    assert list(others(schema, {"a": 1, "b": {"c": True}})) == [{"b": {"c": False}}]


def test_an_object_is_made_changed_deleted_and_made_again() -> None:
    steps = [str(step) for step in usual_steps(crd_of(Widget))]
    assert steps == [
        "create Widget sample",
        'change Widget sample: {"spec":{"replicas":2}}',
        'change Widget sample: {"spec":{"text":"ab"}}',
        "delete Widget sample",
        "create Widget sample",
        "delete Widget sample",
    ]
