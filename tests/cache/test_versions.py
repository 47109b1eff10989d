"""Which of two versions is the later one."""

from __future__ import annotations

import pytest

from setpoint.cache.versions import is_older, later, number


@pytest.mark.parametrize(
    ("version", "value"), [("12", 12), ("0", 0), ("", None), ("abc", None), ("-1", None), ("²", None)]
)
def test_a_version_is_a_number_or_cannot_be_compared(version: str, value: int | None) -> None:
    assert number(version) == value


def test_numbers_are_compared_as_numbers() -> None:
    assert is_older("9", "10")
    assert not is_older("10", "9")
    assert not is_older("9", "9")
    assert later("9", "10") == later("10", "9") == "10"


def test_what_is_no_number_is_never_older_and_the_last_word_counts() -> None:
    assert not is_older("a", "b")
    assert not is_older("b", "a")
    assert not is_older("", "5")
    assert (later("a", "b"), later("b", "a"), later("", "5")) == ("b", "a", "5")
