"""The rules of ``api/int_or_string.py``; it refuses in the words of Kubernetes' own code."""

from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.int_or_string import scaled_value


@given(st.integers(-1000, 1000), st.integers(0, 10**6))
def test_a_percentage_is_its_part_of_the_total_rounded_as_asked(percent: int, total: int) -> None:
    part = Fraction(percent * total, 100)
    assert scaled_value(f"{percent}%", total, round_up=True) == ceil(part)
    assert scaled_value(f"{percent}%", total, round_up=False) == floor(part)


@given(st.integers())
def test_a_number_is_taken_as_it_is(value: int) -> None:
    assert scaled_value(value, 10, round_up=True) == value


NINES = "9" * 20
NO_PERCENTAGE = "invalid type: string is not a percentage"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("5", NO_PERCENTAGE),
        ("", NO_PERCENTAGE),
        ("5% ", NO_PERCENTAGE),
        ("%", 'invalid value "%": strconv.Atoi: parsing "": invalid syntax'),
        ("x%", 'invalid value "x%": strconv.Atoi: parsing "x": invalid syntax'),
        ("1.5%", 'invalid value "1.5%": strconv.Atoi: parsing "1.5": invalid syntax'),
        ("1_0%", 'invalid value "1_0%": strconv.Atoi: parsing "1_0": invalid syntax'),
        (f"{NINES}%", f'invalid value "{NINES}%": strconv.Atoi: parsing "{NINES}": value out of range'),
    ],
)
def test_what_is_neither_is_refused_in_kubernetes_words(value: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        scaled_value(value, 10, round_up=True)
    assert str(refused.value) == f"invalid value for IntOrString: {words}"


def test_a_missing_value_is_refused_in_kubernetes_words() -> None:
    with pytest.raises(ValueError, match="nil value for IntOrString"):
        scaled_value(None, 10, round_up=True)


@pytest.mark.parametrize("value", [True, 2.5, b"5%"])
def test_a_bool_or_a_float_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="a number or a percentage is needed"):
        scaled_value(value, 10, round_up=True)
