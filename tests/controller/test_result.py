"""The rules of ``controller/result.py``, row by row."""

from __future__ import annotations

import pickle

import pytest

from setpoint.controller.result import Plan, Result, plan
from setpoint.errors import Conflict, RetryLater, SetpointError, TerminalError, TooManyRequests

CONFLICT = Conflict("update v1 ConfigMap shop/web", "it has changed")


@pytest.mark.parametrize(
    ("outcome", "follows"),
    [
        (None, Plan("success")),
        (Result(), Plan("success")),
        (Result(requeue_after=30), Plan("requeue_after", after=30)),
        (Result(requeue_after=0), Plan("requeue_after", after=0)),
        (Result(requeue=True), Plan("requeue", backs_off=True)),
        (TerminalError("no such image"), Plan("error", is_terminal=True)),
        (RetryLater(5, "the bucket is being made"), Plan("requeue_after", after=5)),
        (CONFLICT, Plan("error", backs_off=True)),
        (TooManyRequests("evict a", "busy", retry_after=10), Plan("error", backs_off=True, not_before=10)),
        (TooManyRequests("evict a", "busy", retry_after=9e9), Plan("error", backs_off=True, not_before=300)),
        (OSError("disk full"), Plan("error", backs_off=True)),
        (TimeoutError(), Plan("error", backs_off=True)),
        (KeyError("spec"), Plan("error", backs_off=True, is_bug=True)),
        (AttributeError("spec"), Plan("error", backs_off=True, is_bug=True)),
    ],
    ids=repr,
)
def test_each_outcome_has_its_row(outcome: Result | Exception | None, follows: Plan) -> None:
    assert plan(outcome) == follows


@pytest.mark.parametrize(
    ("errors", "follows"),
    [
        ([TerminalError("a"), TerminalError("b")], Plan("error", is_terminal=True)),
        ([TerminalError("a"), CONFLICT], Plan("error", backs_off=True)),
        ([RetryLater(5), CONFLICT], Plan("error", backs_off=True)),
        ([RetryLater(5), RetryLater(3)], Plan("requeue_after", after=3)),
        ([RetryLater(5), TerminalError("a")], Plan("requeue_after", after=5)),
        ([ExceptionGroup("inner", [TerminalError("a")])], Plan("error", is_terminal=True)),
        ([CONFLICT, TypeError("no")], Plan("error", backs_off=True, is_bug=True)),
    ],
    ids=repr,
)
def test_of_several_errors_one_that_may_be_retried_decides(errors: list[Exception], follows: Plan) -> None:
    assert plan(ExceptionGroup("two tasks failed", errors)) == follows


def test_only_errors_that_back_off_are_failures_that_are_retried() -> None:
    assert plan(CONFLICT).is_failure
    assert plan(TerminalError("no")).is_failure
    assert not plan(RetryLater(1)).is_failure
    assert not plan(Result(requeue=True)).is_failure


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused_where_it_is_said(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        Result(requeue_after=seconds)
    with pytest.raises(ValueError, match="seconds"):
        RetryLater(seconds)


def test_a_result_cannot_contradict_itself() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        Result(requeue_after=3, requeue=True)


def test_what_reconcilers_raise_is_pleasant_to_raise_and_to_read() -> None:
    assert str(TerminalError("no such image")) == "no such image"
    assert str(RetryLater(3, "the bucket is being made")) == "the bucket is being made"
    assert RetryLater(3).seconds == 3
    for error in (TerminalError("no such image"), RetryLater(3, "not yet")):
        assert isinstance(error, SetpointError)
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
