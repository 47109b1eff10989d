"""The rules of ``manager/lifecycle.py``, one test to a promise, then all of them over random lives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.manager.lifecycle import Group, Lifecycle

EVERY_GROUP = {group.name.lower(): group for group in reversed(Group)}


def with_one_of_each() -> Lifecycle[str]:
    lifecycle = Lifecycle[str]()
    for runnable, group in EVERY_GROUP.items():
        lifecycle.add(runnable, group)
    return lifecycle


def started(lifecycle: Lifecycle[str]) -> list[str]:
    """Start all there is, in the order in which it starts."""
    order = []
    while due := lifecycle.start_due():
        order += due
        for each in due:
            lifecycle.ready(each)
    return order


def test_groups_start_in_order_whatever_the_order_they_were_added_in() -> None:
    assert started(with_one_of_each()) == [
        "servers",
        "webhooks",
        "caches",
        "others",
        "election",
        "leaders",
    ]


def test_a_group_waits_until_the_one_before_is_ready() -> None:
    lifecycle = with_one_of_each()
    assert lifecycle.start_due() == ["servers"]
    assert lifecycle.start_due() == [], "started, but not ready"
    lifecycle.ready("servers")
    assert lifecycle.start_due() == ["webhooks"]


def test_what_ended_by_itself_holds_nobody_back() -> None:
    lifecycle = with_one_of_each()
    lifecycle.start_due()
    lifecycle.ended("servers")
    assert lifecycle.start_due() == ["webhooks"]
    assert not lifecycle.is_over


def test_groups_stop_in_reverse_each_when_the_one_after_has_ended() -> None:
    lifecycle = with_one_of_each()
    started(lifecycle)
    lifecycle.stop()
    assert lifecycle.stop_due() == ["leaders"]
    assert lifecycle.stop_due() == [], "told once"
    lifecycle.ended("leaders")
    assert lifecycle.stop_due() == ["election"], "the lease is given back when the workers have ended"
    for each in ("election", "others", "caches", "webhooks"):
        lifecycle.ended(each)
    assert lifecycle.stop_due() == ["servers"]
    lifecycle.ended("servers")
    assert lifecycle.is_over


def test_stopped_half_way_up_the_rest_never_starts() -> None:
    lifecycle = with_one_of_each()
    lifecycle.start_due()
    lifecycle.stop()
    lifecycle.ready("servers")
    assert lifecycle.start_due() == []
    assert lifecycle.stop_due() == ["servers"]
    lifecycle.ended("servers")
    assert lifecycle.is_over


def test_what_is_added_while_all_runs_starts_at_once() -> None:
    lifecycle = with_one_of_each()
    started(lifecycle)
    lifecycle.add("another cache", Group.CACHES)
    assert lifecycle.start_due() == ["another cache"]
    lifecycle.add("another leader", Group.LEADERS)
    assert lifecycle.start_due() == [], "the new cache is not ready"
    lifecycle.ready("another cache")
    assert lifecycle.start_due() == ["another leader"]


def test_nothing_can_be_added_twice_or_while_stopping() -> None:
    lifecycle = with_one_of_each()
    with pytest.raises(ValueError, match="caches"):
        lifecycle.add("caches", Group.CACHES)
    lifecycle.stop()
    with pytest.raises(RuntimeError, match="late"):
        lifecycle.add("late", Group.CACHES)


def test_a_standby_is_unready_only_in_what_it_waits_to_lead() -> None:
    lifecycle = with_one_of_each()
    while "election" not in (due := lifecycle.start_due()):
        for each in due:
            lifecycle.ready(each)
    assert lifecycle.unready(Group.OTHERS) == []
    assert lifecycle.unready() == ["leaders", "election"]


@given(st.data())
def test_no_life_breaks_the_order(data: st.DataObject) -> None:
    """Random adds, readiness, ends and stops: promises 1 to 4, and whatever is stopped comes to its end."""
    lifecycle = Lifecycle[int]()
    groups: dict[int, Group] = {}
    ready: set[int] = set()
    ended: set[int] = set()
    running: set[int] = set()
    stopped = False

    def look() -> None:
        for each in lifecycle.start_due():
            assert not stopped
            assert each not in running | ended
            assert all(other in ready | ended for other, group in groups.items() if group < groups[each]), (
                "started before its time"
            )
            running.add(each)
        for each in lifecycle.stop_due():
            assert stopped
            assert each in running
            assert not any(groups[other] > groups[each] for other in running), "stopped before its time"

    for number in range(data.draw(st.integers(0, 30))):
        match data.draw(st.sampled_from(["add", "add", "ready", "ready", "end", "stop"])):
            case "add" if not stopped:
                groups[number] = data.draw(st.sampled_from(Group))
                lifecycle.add(number, groups[number])
            case "ready" if running:
                ready.add(each := data.draw(st.sampled_from(sorted(running))))
                lifecycle.ready(each)
            case "end" if running:
                running.remove(each := data.draw(st.sampled_from(sorted(running))))
                ended.add(each)
                lifecycle.ended(each)
            case "stop" if data.draw(st.booleans()):
                stopped = True
                lifecycle.stop()
        look()
        assert set(lifecycle.running()) == running
        unstarted = set(groups) - running - ended
        first = min((groups[each] for each in set(groups) - ready - ended), default=None)
        assert stopped or not any(groups[each] is first for each in unstarted), "due, and not started"

    stopped = True
    lifecycle.stop()
    for _ in Group:
        look()
        for each in [each for each in running if groups[each] is max(groups[other] for other in running)]:
            running.remove(each)
            lifecycle.ended(each)
    assert lifecycle.is_over
