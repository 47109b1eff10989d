"""Who runs when, and what becomes of a round that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.peers.process import Failed
from bench.peers.rounds import Figures, alternate, turns, whole


def test_every_round_begins_with_another() -> None:
    assert list(turns(["a", "b", "c"], 4)) == [*"abc", *"bca", *"cab", *"abc"]


@pytest.mark.parametrize("error", [Failed("it hung; asked for /a/path"), KeyError("/a/path"), TimeoutError()])
def test_a_round_that_fails_for_whatever_reason_is_told_and_the_rest_counts(error: Exception) -> None:
    rounds: Iterator[float | Exception] = iter([1.0, error, 3.0])

    def sometimes() -> Figures:
        found = next(rounds)
        if isinstance(found, Exception):
            raise found
        return {"cpu": found}

    flaky, steady = alternate("work", "case", {"flaky": sometimes, "steady": lambda: {"cpu": 7.0}})
    assert flaky["cpu"] == 2.0
    assert flaky["rounds"] == {"cpu": [1.0, 3.0]}
    assert len(flaky["failed_rounds"]) == 1
    assert "/a/path" not in str(flaky)
    assert steady["rounds"] == {"cpu": [7.0, 7.0, 7.0]}
    assert "failed_rounds" not in steady


def test_who_has_fewer_than_two_good_rounds_has_failed_and_is_not_run_again() -> None:
    calls = []

    def never() -> Figures:
        calls.append(1)
        raise Failed("it hung; asked for much")

    (result,) = alternate("work", "case", {"never": never})
    assert result == {"work": "work", "case": "case", "contestant": "never", "failed": "it hung"}
    assert len(calls) == 2


def test_what_a_start_costs_is_not_multiplied() -> None:
    assert whole(part=5.0, one=2.0, times=4) == 14.0
    assert whole(part=5.0, one=2.0, times=1) == 5.0
