"""Sets of fields: what they hold, how they are calculated with, and how they are written."""

from __future__ import annotations

import random

import pytest

from setpoint.server.registry.managed.sets import (
    BadFieldsError,
    Fields,
    Path,
    difference,
    has,
    in_order,
    intersection,
    key_element,
    path_text,
    paths,
    read,
    single,
    union,
    value_element,
    without,
)

ELEMENTS = ("f:a", "f:b", 'k:{"name":"x"}', 'v:"x"')


def made_of(members: set[Path]) -> Fields:
    fields: Fields = {}
    for path in members:
        fields = union(fields, single(path))
    return fields


def some_paths(rng: random.Random) -> set[Path]:
    return {tuple(rng.choices(ELEMENTS, k=rng.randint(1, 3))) for _ in range(rng.randint(0, 8))}


def test_calculating_with_sets_is_calculating_with_their_paths() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        a, b = some_paths(rng), some_paths(rng)
        left, right = made_of(a), made_of(b)
        assert set(paths(union(left, right))) == a | b
        assert set(paths(difference(left, right))) == a - b
        assert set(paths(intersection(left, right))) == a & b
        kept = {path for path in a if not any(path[: len(root)] == root for root in b)}
        assert set(paths(without(left, right))) == kept
        assert all(has(left, path) == (path in a) for path in a | b)


def test_no_calculation_changes_what_it_was_given_nor_leaves_a_form_that_is_none() -> None:
    rng = random.Random(1)
    for _ in range(500):
        left, right = made_of(some_paths(rng)), made_of(some_paths(rng))
        before = str(left), str(right)
        for result in (f(left, right) for f in (union, difference, intersection, without)):
            assert read(result) == result
        assert (str(left), str(right)) == before


def test_elements_are_written_as_kubernetes_writes_them() -> None:
    assert key_element({"protocol": "TCP", "containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert value_element("a<b") == 'v:"a\\u003cb"'
    assert value_element(1.0) == "v:1"
    path = ("f:spec", 'k:{"name":"we\\"b","port":80}', "v:true", "i:3", "f:x")
    assert path_text(path) == '.spec[name="we\\"b",port=80][=true][3].x'


def test_elements_stand_in_their_order_and_the_set_itself_first() -> None:
    fields: Fields = {
        'k:{"port":443}': {},
        "f:b": {"v:10": {}, "v:2": {}, 'v:"a"': {}, ".": {}},
        "f:a": {},
        'k:{"port":80}': {},
    }
    ordered = in_order(fields)
    assert list(ordered) == ["f:a", "f:b", 'k:{"port":80}', 'k:{"port":443}']
    assert list(ordered["f:b"]) == [".", "v:2", "v:10", 'v:"a"']


def test_what_a_client_sends_is_brought_into_the_one_form() -> None:
    sent = {".": {}, "f:a": {".": {}}, 'k:{"b": 1, "a": "x"}': {"f:c": None}, "x:new": {}}
    assert read(sent) == {"f:a": {}, 'k:{"a":"x","b":1}': {"f:c": {}}}


@pytest.mark.parametrize("sent", [[], {"f": {}}, {"name": {}}, {"k:{": {}}, {"i:x": {}}, {"f:a": 1}])
def test_what_is_no_set_is_refused(sent: object) -> None:
    with pytest.raises(BadFieldsError):
        read(sent)
