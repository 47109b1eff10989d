"""What ``testing/waiting.py`` promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from setpoint.errors import BadRequest, ConnectionFailed, NotFound, ServiceUnavailable
from setpoint.testing.waiting import eventually

pytestmark = pytest.mark.virtual_time


def in_turn(*answers: object) -> Callable[[], object]:
    """A check that gives these, one at each look; an error among them is raised."""
    left: Iterator[object] = iter(answers)

    def look() -> object:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return look


@pytest.mark.parametrize("not_yet", [False, None, 0, "", []])
async def test_what_is_not_true_means_not_yet(not_yet: object) -> None:
    assert await eventually(in_turn(not_yet, not_yet, "here")) == "here"


@pytest.mark.parametrize(
    "not_yet",
    [
        AssertionError("2 pods"),
        NotFound("get Pod", "no such pod"),
        IndexError("list index out of range"),
        ConnectionFailed("get Pod", "refused"),
        ServiceUnavailable("get Pod", "starting"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_assertion_an_absence_and_what_passes_by_itself_mean_not_yet(not_yet: Exception) -> None:
    assert await eventually(in_turn(not_yet, True)) is True


async def test_an_async_check_is_awaited() -> None:
    look = in_turn(None, 7)

    async def check() -> object:
        await asyncio.sleep(0)
        return look()

    assert await eventually(check) == 7


async def test_any_other_error_ends_the_wait() -> None:
    with pytest.raises(BadRequest):
        await eventually(in_turn(BadRequest("get Pod", "what?"), True))


async def test_a_timeout_inside_the_check_is_the_checks_own() -> None:
    with pytest.raises(TimeoutError):
        await eventually(in_turn(TimeoutError(), True))


async def test_what_never_comes_is_told_with_what_was_seen_last() -> None:
    def check() -> bool:
        raise AssertionError("3 of 5 are ready")

    with pytest.raises(AssertionError) as failure:
        await eventually(check, timeout=5, what="all replicas are ready")

    assert str(failure.value).startswith("all replicas are ready: not so within 5 s; after ")
    assert str(failure.value).endswith("the last saw AssertionError: 3 of 5 are ready")


async def test_without_words_the_check_is_named() -> None:
    def is_ready() -> bool:
        return False

    with pytest.raises(AssertionError, match=r"^is_ready: not so within 1 s; .* the last saw False$"):
        await eventually(is_ready, timeout=1)


async def test_a_check_that_hangs_ends_with_the_deadline() -> None:
    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(AssertionError, match="hangs: not so within 2 s; the first look did not end"):
        await eventually(hangs, timeout=2)


async def test_what_was_seen_is_shown_in_part_if_it_is_long() -> None:
    def long() -> bool:
        raise AssertionError("x" * 5000)

    with pytest.raises(AssertionError) as failure:
        await eventually(long, timeout=1)

    assert len(str(failure.value)) < 1200
