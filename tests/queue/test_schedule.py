"""The rules of ``queue/schedule.py``, one test to a promise, and all of them against a plain model."""

from __future__ import annotations

import random
import sys
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from setpoint.queue.schedule import PATIENCE, Schedule
from tests.queue.model import Model


def take(schedule: Schedule[str], now: float) -> str | None:
    asked = schedule.take(now)
    return None if asked is None else asked.key


def drain(schedule: Schedule[str], now: float) -> list[str]:
    """Every key in the order in which it is handed out, each given back at once."""
    keys = []
    while (key := take(schedule, now)) is not None:
        schedule.done(key)
        keys.append(key)
    return keys


# 1. Once.


def test_a_key_added_many_times_before_it_is_taken_is_taken_once() -> None:
    schedule = Schedule[str]()
    for moment in range(1000):
        schedule.add("shop/a", at=moment, priority=moment % 3)
    assert drain(schedule, now=2000) == ["shop/a"]


# 2. One at a time.


def test_a_key_added_while_taken_falls_due_when_done() -> None:
    schedule = Schedule[str]()
    schedule.add("shop/a", at=0)
    take(schedule, now=0)

    schedule.add("shop/a", at=5)
    assert take(schedule, now=9) is None, "still in its worker's hands"

    schedule.done("shop/a")
    assert take(schedule, now=4) is None, "not due yet"
    assert take(schedule, now=5) == "shop/a"


def test_any_number_of_adds_while_taken_mean_exactly_one_more_look() -> None:
    schedule = Schedule[str]()
    schedule.add("shop/a", at=0)
    take(schedule, now=0)
    for moment in range(10):
        schedule.add("shop/a", at=moment)
    schedule.done("shop/a")
    assert drain(schedule, now=20) == ["shop/a"]


def test_a_key_added_while_taken_has_the_earliest_time_and_highest_priority_asked_for_meanwhile() -> None:
    schedule = Schedule[str]()
    schedule.add("shop/a", at=0, priority=7)
    take(schedule, now=0)
    schedule.add("shop/a", at=9, priority=-100)
    schedule.add("shop/a", at=5, priority=-200)
    schedule.done("shop/a")

    asked = schedule.take(now=5)
    assert asked is not None
    assert (asked.at, asked.priority) == (5, -100), "the priority with which it was taken does not count"


def test_no_sequence_of_calls_hands_out_a_key_twice_at_once() -> None:
    chance, schedule, taken = random.Random(0), Schedule[int](), set[int]()
    for now in range(10_000):
        schedule.add(chance.randrange(20), at=now + chance.randrange(5), priority=chance.randrange(3))
        if taken and chance.random() < 0.5:
            key = chance.choice(sorted(taken))
            schedule.done(key)
            taken.remove(key)
        if (asked := schedule.take(now)) is not None:
            assert asked.key not in taken
            taken.add(asked.key)


def test_a_key_is_given_back_once() -> None:
    schedule = Schedule[str]()
    schedule.add("shop/a", at=0)
    take(schedule, now=0)
    schedule.done("shop/a")
    with pytest.raises(ValueError, match="shop/a is not taken"):
        schedule.done("shop/a")


# 3. Merging.


@pytest.mark.parametrize("times", [(3, 8), (8, 3)])
def test_asked_for_at_several_times_the_earliest_wins(times: tuple[float, float]) -> None:
    schedule = Schedule[str]()
    for at in times:
        schedule.add("shop/a", at)
    assert take(schedule, now=2.9) is None
    assert drain(schedule, now=3) == ["shop/a"]
    assert drain(schedule, now=10) == [], "an immediate add overtakes a delayed one and takes its place"


@pytest.mark.parametrize("at", [0, 1], ids=["due", "delayed"])
@pytest.mark.parametrize("priorities", [(0, -100), (-100, 0)])
def test_with_several_priorities_the_highest_wins(at: float, priorities: tuple[int, int]) -> None:
    schedule = Schedule[str]()
    schedule.add("shop/low", at, -50)
    for priority in priorities:
        schedule.add("shop/a", at, priority)
        schedule.stats(now=0)
    assert drain(schedule, now=1) == ["shop/a", "shop/low"]


# 4. Order.


def test_the_highest_priority_is_first_and_within_a_priority_what_fell_due_first() -> None:
    schedule = Schedule[str]()
    for key, at, priority in (("d", 2, 0), ("a", 3, 5), ("e", 1, -100), ("c", 1, 0), ("b", 4, 5)):
        schedule.add(key, at, priority)
    assert drain(schedule, now=9) == ["a", "b", "c", "d", "e"]


def test_keys_asked_for_at_the_same_time_go_in_the_order_of_the_asking() -> None:
    schedule = Schedule[str]()
    for key in "cabd":
        schedule.add(key, at=0)
    assert drain(schedule, now=0) == ["c", "a", "b", "d"]


def test_a_key_whose_priority_is_raised_keeps_its_place_by_the_time_it_fell_due() -> None:
    schedule = Schedule[str]()
    schedule.add("raised", at=1, priority=-100)
    schedule.add("other", at=2)
    assert schedule.stats(now=2).due == {-100: 1, 0: 1}
    schedule.add("raised", at=3, priority=0)
    assert drain(schedule, now=3) == ["raised", "other"]


def test_what_is_not_due_waits_whatever_its_priority() -> None:
    schedule = Schedule[str]()
    schedule.add("urgent", at=10, priority=100)
    schedule.add("low", at=0, priority=-100)
    assert drain(schedule, now=9) == ["low"]
    assert schedule.next_due() == 10


def test_keys_need_not_be_comparable() -> None:
    class Key:
        pass

    schedule = Schedule[Key]()
    for _ in range(3):
        for key in [Key(), Key()]:
            schedule.add(key, at=0)
            schedule.add(key, at=0, priority=1)
    assert schedule.stats(now=0).due == {1: 6}


# 5. Nothing starves.


def takes_until_old_work_is_done(patience: int, old: int) -> int:
    """How many takes, while something of a higher priority is always due."""
    schedule = Schedule[str](patience=patience)
    for number in range(old):
        schedule.add(f"old/{number}", at=0, priority=-100)
    takes = 0
    while any(f"old/{number}" in schedule for number in range(old)):
        takes += 1
        for fresh in range(3):
            schedule.add(f"fresh/{takes}/{fresh}", at=takes)
        key = take(schedule, now=takes)
        assert key is not None
        schedule.done(key)
        assert takes < 10_000, "starved"
    return takes


@pytest.mark.parametrize("patience", [0, 1, PATIENCE])
@pytest.mark.parametrize("before", [0, 1, 20])
def test_a_key_is_taken_within_the_promised_number_of_takes_however_much_of_a_higher_priority_comes(
    patience: int, before: int
) -> None:
    assert takes_until_old_work_is_done(patience, before + 1) <= (before + 1) * (patience + 1)


def test_fresh_work_waits_for_no_more_than_one_old_key() -> None:
    schedule = Schedule[str]()
    for number in range(1000):
        schedule.add(f"old/{number}", at=0, priority=-100)
    waits = Counter[int]()
    for now in range(1, 900):
        schedule.add(f"fresh/{now}", at=now)
        first = [str(take(schedule, now)) for _ in range(2)]
        waits[first.index(f"fresh/{now}")] += 1
        for key in first:
            schedule.done(key)
    assert set(waits) <= {0, 1}


def test_patience_is_not_negative() -> None:
    with pytest.raises(ValueError, match="not -1"):
        Schedule[str](patience=-1)


# All of it.

KEYS = st.integers(0, 6)
TIMES = st.integers(-3, 9)


class AgainstTheModel(RuleBasedStateMachine):
    """Whatever is called, the schedule answers as the model does."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule, self.model, self.now = Schedule[int](patience=2), Model(patience=2), 0.0

    @rule(key=KEYS, after=TIMES, priority=st.integers(-2, 2))
    def add(self, key: int, after: int, priority: int) -> None:
        self.schedule.add(key, self.now + after, priority)
        self.model.add(key, self.now + after, priority)

    @rule(seconds=st.integers(1, 4))
    def turn_the_clock(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        asked = self.schedule.take(self.now)
        answer = None if asked is None else (asked.key, asked.at, asked.priority)
        assert answer == self.model.take(self.now)

    @precondition(lambda self: self.model.taken)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.taken)))
        self.schedule.done(key)
        self.model.done(key)

    @rule(key=KEYS)
    def join(self, key: int) -> None:
        asked = self.schedule.join(key, self.now)
        assert (None if asked is None else (asked.at, asked.priority)) == self.model.join(key, self.now)

    @rule(key=KEYS)
    def remove(self, key: int) -> None:
        self.schedule.remove(key)
        self.model.remove(key)

    @rule(after=TIMES)
    def remove_after(self, after: int) -> None:
        self.schedule.remove_after(self.now + after)
        self.model.remove_after(self.now + after)

    @rule()
    def stats(self) -> None:
        due = self.model.due(self.now)
        told = self.schedule.stats(self.now)
        assert told.due == Counter(each.priority for each in due)
        assert told.delayed == len(self.model.waiting) - len(due)
        assert told.fell_due == self.model.fallen
        longest = min(due, key=lambda each: each.fell_due or 0, default=None)
        assert told.due_since == (None if longest is None else longest.at)

    @invariant()
    def agrees(self) -> None:
        remaining = self.model.remaining()
        assert len(self.schedule) == len(remaining)
        assert {key for key in range(7) if key in self.schedule} == remaining
        assert self.schedule.taken == len(self.model.taken)
        assert self.schedule.next_due() == self.model.next_due()


class AgainstTheModelAtAKnownTime(AgainstTheModel):
    """As a queue asks: never for the past, and it says what time it is."""

    @rule(key=KEYS, after=st.sampled_from([0, 0, 1, 5]), priority=st.sampled_from([0, 0, 0, -1, 2]))
    def add(self, key: int, after: int, priority: int) -> None:
        self.schedule.add(key, self.now + after, priority, self.now)
        self.model.add(key, self.now + after, priority)
        self.stats()


@pytest.mark.parametrize("machine", [AgainstTheModel, AgainstTheModelAtAKnownTime])
def test_no_sequence_of_calls_makes_it_differ_from_the_model(machine: type[AgainstTheModel]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=300, stateful_step_count=40, deadline=None)
    )


def test_no_long_sequence_of_calls_makes_it_differ_from_the_model() -> None:
    """Hypothesis finds the odd sequence; this one is long enough for outdated hints to be cleaned up."""
    chance, schedule, model, now = random.Random(7), Schedule[int](), Model(PATIENCE), 0.0
    for _ in range(20_000):
        match chance.randrange(4):
            case 0 | 1:
                add = (chance.randrange(60), now + chance.randrange(400), chance.choice((-100, 0, 0, 5)))
                schedule.add(*add)
                model.add(*add)
            case 2:
                now += chance.randrange(3)
                asked = schedule.take(now)
                assert (asked and (asked.key, asked.at, asked.priority)) == model.take(now)
            case 3 if model.taken:
                key = chance.choice(sorted(model.taken))
                schedule.done(key)
                model.done(key)


def test_the_order_survives_the_clean_up_of_outdated_hints() -> None:
    """Three hundred keys, each brought forward, or raised, ten times."""
    names = [f"shop/{number}" for number in range(300)]
    asked = list(enumerate(random.Random(5).sample(names * 10, 3000)))
    last = {key: number for number, key in asked}

    by_time = Schedule[str]()
    for number, key in asked:
        by_time.add(key, at=-number)
    assert drain(by_time, now=0) == sorted(names, key=lambda key: -last[key])

    by_priority = Schedule[str](patience=len(names))
    for number, key in asked:
        by_priority.add(key, at=0, priority=number)
        by_priority.stats(now=0)
    assert drain(by_priority, now=0) == sorted(names, key=lambda key: -last[key])


# What it costs.


def size(schedule: Schedule[str]) -> int:
    """Bytes in the containers, wherever they are."""
    held = [schedule.__dict__, *vars(schedule).values()]
    held += [inner for each in held if hasattr(each, "__dict__") for inner in vars(each).values()]
    return sum(sys.getsizeof(each) for each in held)


def test_a_key_that_is_always_delayed_and_always_overtaken_leaves_nothing_behind() -> None:
    schedule = Schedule[str]()
    before = size(schedule)
    for now in range(5000):
        schedule.add("shop/a", at=now)
        assert take(schedule, now) == "shop/a"
        schedule.add("shop/a", at=now + 36_000)  # the next resync, which never comes
        schedule.done("shop/a")
    assert size(schedule) < before + 20_000


@pytest.mark.parametrize("at", [0, 10_000], ids=["due", "delayed"])
def test_a_key_that_is_brought_forward_and_raised_again_and_again_leaves_nothing_behind(at: int) -> None:
    schedule = Schedule[str]()
    before = size(schedule)
    for number in range(5000):
        schedule.add("shop/a", at=at - number, priority=number)
        schedule.stats(now=0)
    assert size(schedule) < before + 20_000


def test_old_work_under_a_stream_of_fresh_work_leaves_nothing_behind() -> None:
    schedule = Schedule[str](patience=10**9)
    schedule.add("shop/old", at=0, priority=-100)
    before = size(schedule)
    for now in range(5000):
        schedule.add("shop/fresh", at=now)
        assert take(schedule, now) == "shop/fresh"
        schedule.done("shop/fresh")
    assert size(schedule) < before + 20_000


def test_keys_that_are_asked_for_and_no_longer_asked_for_leave_nothing_behind() -> None:
    schedule = Schedule[str]()
    schedule.add("shop/old", 0, 0, 0)
    before = size(schedule)
    for now in range(5000):
        schedule.add("shop/fresh", now, 0, now)
        schedule.remove("shop/fresh")
    assert size(schedule) < before + 20_000


def test_since_when_a_key_was_taken_is_known_until_it_is_given_back() -> None:
    schedule = Schedule[str]()
    schedule.add("shop/a", at=1)
    assert take(schedule, now=3) == "shop/a"
    assert schedule.taken_since == {"shop/a": 3}
    assert schedule.done("shop/a") == 3
    assert not schedule.taken_since


def test_it_says_what_it_holds() -> None:
    schedule = Schedule[str]()
    for key in ("a", "b", "c"):
        schedule.add(key, at=0)
    schedule.add("late", at=9)
    take(schedule, now=0)
    schedule.add("a", at=0)
    assert repr(schedule) == "<Schedule 2 due, 1 delayed, 1 taken, 1 of them again>"
    assert len(schedule) == 4


def test_the_first_keys_are_told_with_their_times_and_stay_where_they_are() -> None:
    schedule = Schedule[str]()
    for at, key in ((5, "late"), (0, "now"), (2, "soon")):
        schedule.add(key, at)
    assert schedule.first(2) == [("now", 0), ("soon", 2)]
    assert len(schedule) == 3
    assert schedule.take(0) is not None
    assert [key for key, _ in schedule.first(10)] == ["soon", "late"], "what is taken does not wait"
