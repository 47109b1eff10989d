"""What the JSON paths of columns and selectors find."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.server.registry.crd.fieldpath import InvalidPath, resolved
from setpoint.server.registry.crd.jsonpath import Unreadable, find, reader
from tests.server.registry.crd_cases import INT, TEXT, maps, obj

THING: dict[str, Any] = {
    "spec": {"size": 3, "my.field": "x", "list": [1, 2, 3], "empty": None},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 2},
            {"type": "Busy", "status": "False", "count": 5},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        ("spec.size", [3]),
        (".spec.nothing", []),
        (".spec.empty", [None]),
        (".spec['my.field']", ["x"]),
        (".spec.my\\.field", ["x"]),
        (".spec.list[0]", [1]),
        (".spec.list[-1]", [3]),
        (".spec.list[9]", []),
        (".spec.list[0:2]", [1, 2]),
        (".spec.list[*]", [1, 2, 3]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Busy')].status", ["False"]),
        (".status.conditions[?(@.count>3)].type", ["Busy"]),
        (".status.conditions[?(@.nothing)].type", []),
        (".status.conditions[*].type", ["Ready", "Busy"]),
        (".spec.size.deeper", []),
        ("..count", [2, 5]),
    ],
)
def test_a_path_finds_what_it_names(path: str, found: list[Any]) -> None:
    assert find(path, THING) == found


def test_a_path_that_is_none_finds_nothing_and_is_refused() -> None:
    assert find(".spec[", THING) == []
    with pytest.raises(Unreadable):
        reader(".spec[")


@pytest.mark.parametrize(
    ("text", "path"), [(".a.b", "a.b"), (".a['b']", "a.b"), (".m['x.y']", "m[x.y]"), (".m.z", "m[z]")]
)
def test_a_field_path_is_resolved_in_the_schema(text: str, path: str) -> None:
    assert resolved(text, obj(a=obj(b=INT), m=maps(TEXT))).path == path


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (".z", "does not refer to a valid field"),
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        (".a[b]", "expected single quoted string but got b"),
        (".a['b'", "unexpected end of JSON path"),
        (".a.b.c", "does not refer to a valid field"),
    ],
)
def test_a_field_path_that_leads_nowhere_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidPath) as refused:
        resolved(text, obj(a=obj(b=INT)))
    assert str(refused.value) == told
