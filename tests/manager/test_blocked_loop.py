"""The promises of ``manager/blocked_loop.py``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from traceback import FrameSummary, StackSummary

from hypothesis import given
from hypothesis import strategies as st

from setpoint.manager.blocked_loop import BlockedLoop, Line


def at(*functions: str, line: int = 1) -> Callable[[], StackSummary]:
    frames = [FrameSummary("/app/shop.py", line, name, lookup_line=False, line="…") for name in functions]
    return lambda: StackSummary.from_list(frames)


def blocked(loop: BlockedLoop, where: Callable[[], StackSummary], seconds: float = 3.0) -> list[Line]:
    """One block of the loop, looked at every quarter of a second; what is logged of it."""
    looks = [loop.look(number / 4, where) for number in range(int(seconds * 4))]
    return [line for line in [*looks, loop.look(0.0, where)] if line is not None]


def test_a_second_is_enough_and_the_stack_shows_where() -> None:
    loop = BlockedLoop(1, 10)
    assert loop.look(0.9, at("reconcile")) is None
    line = loop.look(1.1, at("reconcile", "sleep"))
    assert line is not None
    assert line.level == logging.WARNING
    assert line.text.startswith("the event loop has been blocked for 1.1 s, and nothing else runs meanwhile")
    assert 'File "/app/shop.py", line 1, in reconcile' in line.text
    assert loop.look(2.0, at("reconcile", "sleep")) is None
    ended = loop.look(0.1, at("reconcile"))
    assert ended is not None
    assert ended.text == "the event loop goes on; it was blocked for 2.0 s or more"


def test_a_place_is_logged_once_at_whichever_of_its_lines_it_is() -> None:
    loop = BlockedLoop(1, 10)
    assert len(blocked(loop, at("reconcile", line=1))) == 2, "that it is, and that it goes on"
    assert blocked(loop, at("reconcile", line=1)) == []
    assert blocked(loop, at("reconcile", line=7)) == []
    assert len(blocked(loop, at("reconcile", "helper"))) == 2


def test_a_loop_that_is_stuck_is_an_error_each_time_without_the_stack_again() -> None:
    loop = BlockedLoop(1, 10)
    first, stuck, _ = blocked(loop, at("reconcile"), 12)
    assert (first.level, stuck.level) == (logging.WARNING, logging.ERROR)
    assert stuck.text.endswith("; /healthz fails; it is in reconcile, /app/shop.py:1, as logged before")
    assert [line.level for line in blocked(loop, at("reconcile"), 12)] == [logging.ERROR, logging.WARNING]


def test_a_loop_that_waits_for_events_was_stopped_with_its_process() -> None:
    idle = [FrameSummary("/usr/lib/python3.11/selectors.py", 1, "select", lookup_line=False, line="…")]
    loop = BlockedLoop(1, 10)
    assert loop.look(500.0, lambda: StackSummary.from_list(idle)) is None
    assert loop.look(0.1, at("reconcile")) is None


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 9)), max_size=50))
def test_no_stack_is_logged_twice(blocks: list[tuple[str, float]]) -> None:
    loop, logged = BlockedLoop(1, 10), list[str]()
    for where, seconds in blocks:
        logged += [line.text for line in blocked(loop, at(where), seconds) if "File " in line.text]
    places = [text.rsplit("in ", 1)[1] for text in logged]
    assert len(places) == len({*places})


def test_what_is_remembered_is_bounded() -> None:
    loop = BlockedLoop(1, 10, remembered=3)
    for number in range(10):
        blocked(loop, at(f"f{number}"))
    assert repr(loop) == "<BlockedLoop at 3 places so far>"
