"""The promises of ``proof/matching.py``: a text that a pattern matches, and always the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.server.registry.crd.patterns import compiled
from setpoint.testing.proof.matching import matching


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^[0-9]{2}\.[0-9]{1,2}$", "11.1"),
        ("^[a-z_][a-z0-9_]*$", "a"),
        ("^(https?|ftp)://[^a/]+", "http://1"),
        ("[A-Z]{3}-[^0-9]{2}x?", "AAA-aa"),
        ("^([0-9]+?[smh])+$", "1h"),
        ("^[[:upper:]]$", "A"),
        (r"^\d\D\w\W\S\s.$", "1aa!a a"),
        ("^[^a]b|c$", "1b"),
        (r"\bfoo\b", "foo"),
    ],
)
def test_the_text_is_plain_and_short_and_matches(pattern: str, text: str) -> None:
    assert matching(pattern, compiled(pattern)) == text


@pytest.mark.parametrize(
    ("pattern", "least", "text"),
    [("^[a-z]+$", 3, "aaa"), ("^([0-9]+[smh])+$", 5, "11h11h"), ("^[a-z]{1,2}$", 3, None), ("^x$", 2, None)],
)
def test_what_may_be_repeated_is_so_until_it_is_right(pattern: str, least: int, text: str | None) -> None:
    assert matching(pattern, lambda found: len(found) >= least) == text


@pytest.mark.parametrize("pattern", ["(?P>unread)", r"^\pL$", "(?=a)b", "[[:unknown:]]", "^(a", "^[é-ü]$"])
def test_where_a_pattern_is_not_understood_none_comes_to_mind(pattern: str) -> None:
    assert matching(pattern, lambda _: True) is None


def test_repetitions_within_repetitions_end_in_time() -> None:
    assert matching("^((((a+)+)+)+)+$", lambda found: len(found) > 100_000) is None


letters = st.sampled_from(["a", "[b-d]", "[^a-y]", r"\d", r"\.", "x"])
patterns = st.recursive(
    letters,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"({'|'.join(each)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,3}"])).map(
            lambda each: f"({each[0]}){each[1]}"
        ),
    ),
    max_leaves=6,
)


@given(patterns)
def test_whatever_is_found_matches(pattern: str) -> None:
    found = matching(f"^{pattern}$", lambda _: True)
    assert found is not None
    assert re.fullmatch(pattern, found)
