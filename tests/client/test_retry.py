"""The rules of ``client/retry.py``, one test to a promise."""

from __future__ import annotations

import pytest

from setpoint import errors
from setpoint.client.retry import ASKED_TRIES, OTHER_TRIES, wait_before_retry


def wait(
    error: errors.SetpointError, *, tries: int = 1, safe: bool = False, has_body: bool = True
) -> float | None:
    return wait_before_retry(error, tries=tries, safe=safe, has_body=has_body, jitter=lambda: 0.0)


@pytest.mark.parametrize("kind", [errors.TooManyRequests, errors.ServiceUnavailable])
@pytest.mark.parametrize("safe", [True, False])
def test_a_server_that_says_when_to_come_back_is_asked_again_then(
    kind: type[errors.ApiError], safe: bool
) -> None:
    assert wait(kind("", "", retry_after=7), safe=safe) == 7
    assert wait(kind("", "", retry_after=7), safe=safe, tries=ASKED_TRIES) is None


@pytest.mark.parametrize("safe", [True, False])
def test_a_connection_that_was_never_made_is_tried_again_whatever_the_verb(safe: bool) -> None:
    assert wait(errors.ConnectionFailed("", ""), safe=safe) is not None


PASSING = [
    errors.AnswerLost("", ""),
    errors.InternalError("", ""),
    errors.ServerError("", "", code=502),
    errors.ServerTimeout("", ""),
    errors.TooManyRequests("", ""),
]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_a_lost_answer_or_a_failing_server_is_tried_again_only_where_the_verb_is_safe_to_repeat(
    error: errors.SetpointError,
) -> None:
    assert wait(error, safe=True) is not None
    assert wait(error, safe=False) is None


LASTING = [
    errors.NotFound("", ""),
    errors.Conflict("", ""),
    errors.Forbidden("", ""),
    errors.Invalid("", ""),
    errors.BadAnswer("", ""),
    errors.InternalError("", "field not declared in schema", reason=""),
]


@pytest.mark.parametrize("error", LASTING, ids=lambda error: type(error).__name__)
def test_what_would_be_refused_again_is_not_tried_again(error: errors.SetpointError) -> None:
    assert wait(error, safe=True) is None


def test_a_failing_storage_is_asked_again_for_what_was_to_be_read() -> None:
    no_leader = errors.InternalError("", "etcdserver: leader changed", reason="")
    assert wait(no_leader, safe=True, has_body=False) is not None
    assert wait(no_leader, safe=False, has_body=False) is None


def test_waits_double_stay_bounded_and_end() -> None:
    waits = [wait(errors.AnswerLost("", ""), safe=True, tries=n) for n in range(1, OTHER_TRIES + 1)]
    assert waits[-1] is None
    numbers = [w for w in waits if w is not None]
    assert numbers == sorted(numbers)
    assert all(0 < number <= 5 for number in numbers)


def test_jitter_keeps_clients_that_failed_together_apart() -> None:
    error = errors.AnswerLost("", "")
    early = wait_before_retry(error, tries=1, safe=True, has_body=False, jitter=lambda: 0.0)
    late = wait_before_retry(error, tries=1, safe=True, has_body=False, jitter=lambda: 0.99)
    assert early is not None
    assert late is not None
    assert early < late
