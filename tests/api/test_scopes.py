"""The promises of ``api/scopes.py``."""

from __future__ import annotations

import pytest

from setpoint.api.scopes import is_meant

NAMED = ((), ("a",), ("b",), ("a", "b"))


@pytest.mark.parametrize(
    ("operator", "values", "meant"),
    [
        ("Exists", (), [("a",), ("b",), ("a", "b")]),
        ("DoesNotExist", (), [()]),
        ("In", ("a",), [("a",), ("a", "b")]),
        ("NotIn", ("a",), [(), ("b",), ("a", "b")]),
    ],
)
def test_objects_are_meant_by_the_classes_that_they_name(
    operator: str, values: tuple[str, ...], meant: list[tuple[str, ...]]
) -> None:
    assert [names for names in NAMED if is_meant(operator, values, names)] == meant
