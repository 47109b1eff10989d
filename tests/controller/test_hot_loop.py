"""Writes that undo each other are found out, named and slowed; everything else is left alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import Key
from setpoint.controller.apply import Path
from setpoint.controller.hot_loop import HotLoop, HotLoops, Limits, Write
from setpoint.kube.apps.v1 import Deployment

WEB = Key("shop", "web")
REPLICAS: Path = ("f:spec", "f:replicas")
IMAGE: Path = ("f:spec", "f:image")


def write(value: str = "2", path: tuple[str, ...] = REPLICAS, **more: bool) -> Write:
    return Write(Deployment.gvk, WEB, {path: value.encode()}, lambda: ("hpa",), **more)


def rewrites(loops: HotLoops, times: int, *, every: float = 1.0, start: float = 0.0) -> list[HotLoop]:
    """The same value, again and again."""
    found = [loops.wrote(WEB, write(), now=start + n * every) for n in range(times)]
    return [each for each in found if each is not None]


def test_a_value_that_is_put_back_again_and_again_is_a_fight_and_is_named() -> None:
    loops = HotLoops()
    assert rewrites(loops, 5) == []
    (found,) = rewrites(loops, 1, start=5)
    assert (found.fields, found.managers, found.times, found.is_fight) == (
        ("spec.replicas",),
        ("hpa",),
        6,
        True,
    )
    assert str(found) == (
        "apps/v1 Deployment shop/web was written 6 times in 4 s: spec.replicas was put back each time, "
        "and hpa undid it; only one of the two can have it"
    )


def test_a_slow_fight_is_a_fight() -> None:
    assert rewrites(HotLoops(), 6, every=100)
    assert not rewrites(HotLoops(), 20, every=200), "this is drift, put back now and then"


def test_each_round_of_a_fight_waits_longer_up_to_a_minute() -> None:
    loops = HotLoops()
    delays = [found.delay for found in rewrites(loops, 20, every=1)]
    assert delays[:4] == [1, 2, 4, 8]
    assert delays[-1] == 60
    assert loops.wait(WEB, now=19) == 60
    assert loops.wait(WEB, now=49) == 30
    assert loops.wait(Key("shop", "other"), now=19) == 0


def test_a_fight_that_is_slowed_is_still_found_a_fight() -> None:
    """Slowed to a round a minute, it is still within the window, and does not begin anew at full speed."""
    loops, now = HotLoops(), 0.0
    for _ in range(200):
        loops.wrote(WEB, write(), now=now)
        now += max(0.05, loops.wait(WEB, now=now))
    assert loops.wait(WEB, now=now - 60) > 30


def test_when_it_is_over_nothing_is_slowed() -> None:
    loops = HotLoops()
    rewrites(loops, 20)
    assert loops.wait(WEB, now=1000) == 0
    assert loops.wrote(WEB, write(), now=2000) is None


def test_it_is_told_once_in_a_while_and_slowed_all_the_while() -> None:
    loops = HotLoops()
    found = rewrites(loops, 800)
    assert [each.is_news for each in found].count(True) == 2, "every ten minutes"
    assert all(each.delay > 0 for each in found)


def test_a_change_of_the_spec_is_looked_at_without_waiting() -> None:
    loops = HotLoops()
    for n in range(10):
        loops.wrote(WEB, write(), now=n, generation=1)
    assert loops.wait(WEB, now=10, generation=1) > 0
    assert loops.wait(WEB, now=10, generation=2) == 0


def test_ever_new_values_without_a_reason_are_a_whim() -> None:
    loops = HotLoops()
    found = [loops.wrote(WEB, write(str(n), is_own_doing=True), now=n) for n in range(12)]
    told = [each for each in found if each is not None]
    assert len(told) == 2
    assert not told[0].is_fight
    assert "got a new value each time" in str(told[0])


def test_ever_new_values_for_a_reason_are_progress() -> None:
    loops = HotLoops()
    assert not any(loops.wrote(WEB, write(str(n)), now=n / 10) for n in range(200))


def test_a_timer_that_writes_the_time_is_no_loop() -> None:
    loops = HotLoops()
    assert not any(loops.wrote(WEB, write(str(n), is_own_doing=True), now=n * 30) for n in range(200))


def test_only_the_fields_that_flip_are_named() -> None:
    loops = HotLoops()
    for n in range(6):
        both = {REPLICAS: b"2", IMAGE: str(n).encode()}
        found = loops.wrote(WEB, Write(Deployment.gvk, WEB, both), now=n)
    assert found is not None
    assert found.fields == ("spec.replicas",)
    assert "somebody undid it" in str(found)


def test_one_object_is_not_slowed_for_another() -> None:
    loops = HotLoops()
    for n in range(50):
        key = Key("shop", f"web-{n}")
        assert loops.wrote(key, Write(Deployment.gvk, key, {REPLICAS: b"2"}), now=n) is None


def test_an_object_that_is_gone_is_forgotten() -> None:
    loops = HotLoops()
    rewrites(loops, 10)
    loops.forget(WEB)
    assert loops.wait(WEB, now=10) == 0
    assert not rewrites(loops, 5, start=10), "what was written for it, too"
    assert repr(loops) == "<HotLoops 1 objects, 0 slowed>"


@given(st.lists(st.sampled_from(["write", "created again", "gone"]), max_size=60))
def test_only_what_was_written_for_the_same_object_counts(events: list[str]) -> None:
    loops, uid, written = HotLoops(), 0, 0
    for now, event in enumerate(events):
        if event == "write":
            written += 1
            found = loops.wrote(WEB, write(), uid=str(uid), now=now)
            assert (found is not None) == (written > Limits().repeats)
            assert (loops.wait(WEB, uid=str(uid), now=now) > 0) == (found is not None)
            assert loops.wait(WEB, uid=str(uid + 1), now=now) == 0
        else:
            written = 0
            uid += event == "created again"
            if event == "gone":
                loops.forget(WEB)


def test_what_is_remembered_is_bounded() -> None:
    loops, rng = HotLoops(remembered=10), random.Random(1)
    for n in range(1000):
        key = Key("shop", str(rng.randrange(500)))
        loops.wrote(key, Write(Deployment.gvk, key, {REPLICAS: b"2"}), now=n)
    assert "10 objects" in repr(loops)


@pytest.mark.parametrize("repeats", [2, 3, 7])
def test_what_counts_can_be_set(repeats: int) -> None:
    loops = HotLoops(Limits(repeats=repeats))
    assert not rewrites(loops, repeats)
    assert rewrites(loops, 1, start=repeats)
