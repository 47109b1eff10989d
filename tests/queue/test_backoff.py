"""The rules of ``queue/backoff.py``, one test to a promise."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.queue.backoff import FIRST, LONGEST, delay_after

longest_jitter = partial(delay_after, jitter=lambda: 1.0)
shortest_jitter = partial(delay_after, jitter=lambda: 0.0)


def test_the_first_failure_waits_5_ms_and_each_further_one_twice_as_long_5_min_at_most() -> None:
    waits = [longest_jitter(failures) for failures in range(1, 30)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[15] == pytest.approx(163.84)
    assert set(waits[16:]) == {300.0}


@given(failures=st.integers(1, 40), seed=st.integers())
def test_jitter_only_shortens_by_up_to_half(failures: int, seed: int) -> None:
    wait = delay_after(failures, jitter=random.Random(seed).random)
    assert longest_jitter(failures) / 2 <= wait <= longest_jitter(failures)
    assert shortest_jitter(failures) == longest_jitter(failures) / 2


@given(failures=st.integers(min_value=1))
def test_any_number_of_failures_has_an_answer(failures: int) -> None:
    assert FIRST / 2 <= shortest_jitter(failures) <= LONGEST


def test_the_first_and_the_longest_wait_can_be_set() -> None:
    waits = [longest_jitter(failures, first=1, longest=5) for failures in (1, 2, 3, 4)]
    assert waits == [1, 2, 4, 5]


def test_no_failure_has_no_wait() -> None:
    with pytest.raises(ValueError, match="0 is none"):
        longest_jitter(0)
