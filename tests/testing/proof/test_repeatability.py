"""What differs between two runs tells what in the operator's code is likely to be the reason."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.testing.proof.repeatability import likely_source

CASES: dict[str, list[tuple[object, object]]] = {
    "a counter": [("17", "18"), (3, 5), ("job-9", "job-10"), ("look 1 of 2", "look 2 of 2")],
    "a clock": [
        ("2026-11-18T02:00:00+00:00", "2026-11-18T02:00:01+00:00"),
        (1763431200.25, 1763431201.5),
        ("at 1763431200", "at 1763431201"),
    ],
    "the order of a set": [("a,b,c", "b,a,c"), ("{'x', 'y'}", "{'y', 'x'}")],
    "chance": [
        (str(uuid.UUID(int=7**40)), str(uuid.UUID(int=11**36))),
        ("web-x8k2q", "web-p0zzd"),
        (0.25, 0.5),
    ],
}


@pytest.mark.parametrize(("said", "one", "other"), [(said, *pair) for said in CASES for pair in CASES[said]])
def test_the_likely_source_is_named(said: str, one: object, other: object) -> None:
    assert likely_source(one, other).startswith(said)


@given(st.text() | st.integers() | st.floats() | st.booleans(), st.text() | st.integers() | st.none())
def test_any_two_values_are_said_something_of(one: object, other: object) -> None:
    assert likely_source(one, other)


@given(st.lists(st.integers(), min_size=2, unique=True), st.randoms())
def test_what_is_only_ordered_otherwise_is_a_set(items: list[int], source: random.Random) -> None:
    other = items.copy()
    source.shuffle(other)
    if other != items:
        assert likely_source(items, other).startswith("the order of a set")
