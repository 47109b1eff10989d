"""The rules of ``manager/lease_state.py``: one test to a promise, then many candidates on a bad network."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.manager.lease_state import (
    Absent,
    Attempt,
    Failed,
    Found,
    Freed,
    Heard,
    LeaderElection,
    Leading,
    Lost,
    Outrun,
    Read,
    Record,
    Standby,
    State,
    Step,
    Wait,
    Write,
    Written,
    advance,
    check,
    next_step,
    release_step,
    valid_until,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
OURS = LeaderElection("shop-operator", identity="us")
THEIRS = Record("them", 15, NOON, NOON, 3)


def heard(state: State, said: Heard, now: float, jitter: float = 0.0) -> State:
    return advance(state, said, OURS, now=now, jitter=jitter)


def step(state: State, now: float, utc: datetime = NOON) -> Step:
    assert not isinstance(state, Lost)
    return next_step(state, OURS, now=now, utc=utc)


EARLIER = NOON - timedelta(minutes=1)
GIVEN_BACK = Record("", 1, EARLIER, EARLIER, 0)


def taking(now: float = 0.0) -> Standby:
    """A candidate that found the lease given back."""
    state = heard(Standby(), Found(GIVEN_BACK, "0"), now=now)
    assert isinstance(state, Standby)
    return state


def leader(sent_at: float = 0.0) -> Leading:
    state: State = taking(sent_at)
    write = step(state, sent_at)
    assert isinstance(write, Write)
    state = heard(state, Written(Attempt(write.record, sent_at), "1"), now=sent_at)
    assert isinstance(state, Leading)
    return state


# Becoming the leader.


def test_a_candidate_looks_first() -> None:
    assert step(Standby(), now=7) == Read()


CREATED = Record("", 15, None, None, 0)


def test_a_lease_that_is_not_there_is_created_without_a_holder() -> None:
    state = heard(Standby(), Absent(), now=7)
    assert step(state, 7) == Write(CREATED, "")


def test_who_created_the_lease_leads_only_when_it_has_not_changed_for_as_long_as_it_says() -> None:
    """A leader whose Lease was deleted may still be at work, and nothing says so."""
    state = heard(Standby(), Absent(), now=7)
    state = heard(state, Written(Attempt(CREATED, 7), "8"), now=7.5)
    assert isinstance(state, Standby)
    state = heard(state, Found(CREATED, "8"), now=22)
    assert isinstance(step(state, 22), Wait)
    state = heard(state, Found(CREATED, "8"), now=22.5)
    assert isinstance(again := step(state, 22.5), Write)
    assert again.record == Record("us", 15, NOON, NOON, 0), "the first holder is no transition"
    assert isinstance(heard(state, Written(Attempt(again.record, 22.5), "9"), now=22.6), Leading)


def test_a_create_whose_answer_was_lost_is_no_claim_to_the_lease() -> None:
    state = heard(Standby(), Absent(), now=7)
    state = heard(state, Failed(Attempt(CREATED, 7)), now=12)
    state = heard(state, Found(CREATED, "8"), now=15)
    assert isinstance(step(state, 15), Wait)
    assert release_step(state, utc=NOON) is None, "given back, another would take it at once"


def test_a_leader_has_time_to_create_a_deleted_lease_before_any_candidate_that_saw_it_does() -> None:
    state = heard(Standby(), Found(THEIRS, "8"), now=100)
    state = heard(state, Absent(), now=102)
    assert isinstance(step(state, 102), Wait)
    state = heard(state, Absent(), now=105.9)
    assert isinstance(step(state, 105.9), Wait)
    state = heard(state, Absent(), now=106)
    assert step(state, 106) == Write(CREATED, "")


def test_an_empty_lease_is_not_one_that_was_given_back() -> None:
    """Somebody applies the manifest of a Lease that was deleted while its holder leads."""
    state = heard(Standby(), Found(CREATED, "8"), now=100)
    assert isinstance(step(state, 100), Wait)
    state = heard(state, Found(CREATED, "8"), now=115)
    assert isinstance(step(state, 115), Write)


def test_a_lease_given_back_is_taken_at_once() -> None:
    state = taking(7)
    later = NOON + timedelta(seconds=1)
    assert step(state, 7, later) == Write(Record("us", 15, later, later, 1), "0")


def test_a_lease_is_taken_when_it_has_not_changed_for_as_long_as_it_says() -> None:
    state = heard(Standby(), Found(THEIRS, "8"), now=100)
    state = heard(state, Found(THEIRS, "8"), now=114.9)
    assert isinstance(step(state, 114.9), Wait)
    state = heard(state, Found(THEIRS, "8"), now=115)
    assert isinstance(step(state, 115), Write)


def test_what_the_lease_says_of_its_duration_counts_and_not_our_own_wish() -> None:
    state = heard(Standby(), Found(replace(THEIRS, duration=60), "8"), now=100)
    state = heard(state, Found(replace(THEIRS, duration=60), "8"), now=159)
    assert isinstance(step(state, 159), Wait)


def test_a_renewal_starts_the_wait_anew() -> None:
    state = heard(Standby(), Found(THEIRS, "8"), now=100)
    state = heard(state, Found(replace(THEIRS, renewed=NOON + timedelta(seconds=1)), "9"), now=114)
    state = heard(state, Found(replace(THEIRS, renewed=NOON + timedelta(seconds=1)), "9"), now=120)
    assert isinstance(step(state, 120), Wait)


def test_any_change_of_the_lease_counts_as_a_renewal() -> None:
    """Even one that leaves what it says as it was: a clock put back may write the same time twice."""
    state = heard(Standby(), Found(THEIRS, "8"), now=100)
    state = heard(state, Found(THEIRS, "9"), now=115)
    assert isinstance(step(state, 115), Wait)


@pytest.mark.parametrize("years", [-50, 50])
def test_the_times_written_in_a_lease_do_not_matter(years: int) -> None:
    """Their clock, or ours, may be wrong by any amount, and may jump."""
    wrong = NOON.replace(year=NOON.year + years)
    state = heard(Standby(), Found(replace(THEIRS, renewed=wrong, acquired=wrong), "8"), now=100)
    assert isinstance(step(state, 100, NOON), Wait)
    assert isinstance(step(state, 100, wrong), Wait)


def test_who_was_outrun_waits_before_looking_again() -> None:
    state = heard(Standby(), Absent(), now=7)
    state = heard(state, Outrun(), now=7, jitter=0.5)
    assert step(state, 7) == Wait(7 + 2 * 1.1)
    assert step(state, 9.2) == Read()


def test_a_lease_in_our_name_that_we_did_not_write_is_anothers() -> None:
    state = heard(Standby(), Found(replace(THEIRS, holder="us"), "8"), now=100)
    assert isinstance(step(state, 100), Wait)


def test_a_lease_taken_by_a_write_whose_answer_was_lost_is_ours() -> None:
    state: State = taking(7)
    write = step(state, 7)
    assert isinstance(write, Write)
    state = heard(state, Failed(Attempt(write.record, 7)), now=12)
    state = heard(state, Found(write.record, "9"), now=15)
    again = step(state, 15)
    assert isinstance(again, Write)
    assert again.version == "9"
    assert again.record.renewed != write.record.renewed, "no two of our writes are alike"


def test_an_answer_that_comes_after_its_time_makes_no_leader() -> None:
    state: State = taking()
    write = step(state, 0)
    assert isinstance(write, Write)
    state = heard(state, Written(Attempt(write.record, 0), "8"), now=10)
    assert isinstance(state, Standby)
    assert step(state, 10) == Read()
    state = heard(state, Found(write.record, "8"), now=10)
    assert isinstance(step(state, 10), Write), "it is ours all the same, and need not be waited for"


# Staying it.


def test_we_lead_from_when_the_write_was_sent_not_from_when_it_was_answered() -> None:
    state: State = taking()
    write = step(state, 0)
    assert isinstance(write, Write)
    state = heard(state, Written(Attempt(write.record, 0), "8"), now=4)
    assert valid_until(state, OURS) == 10


def test_a_leader_renews_without_looking() -> None:
    state = leader()
    assert step(state, 0.5) == Wait(2)
    later = NOON + timedelta(seconds=2)
    assert step(state, 2, later) == Write(Record("us", 15, NOON, later, 1), "1")


def test_a_renewal_that_took_long_is_followed_by_the_next_at_once() -> None:
    state: State = leader()
    write = step(state, 2)
    assert isinstance(write, Write)
    state = heard(state, Written(Attempt(write.record, 2), "2"), now=6.5)
    assert valid_until(state, OURS) == 12
    assert isinstance(step(state, 6.5), Write)


def test_a_renewal_that_failed_is_tried_again_while_there_is_time() -> None:
    state: State = leader()
    state = heard(state, Failed(), now=4)
    assert step(state, 4) == Wait(6)
    assert isinstance(step(state, 6), Write)
    state = heard(state, Failed(), now=9)
    assert step(state, 9) == Wait(10), "no longer than we may count on it"
    assert check(state, OURS, now=9.9) == state
    assert isinstance(check(state, OURS, now=10), Lost)


def test_a_renewal_whose_answer_was_lost_is_looked_for() -> None:
    state: State = leader()
    write = step(state, 2)
    assert isinstance(write, Write)
    state = heard(state, Failed(Attempt(write.record, 2)), now=5)
    assert step(state, 7) == Read()

    happened = heard(state, Found(write.record, "2"), now=7)
    assert valid_until(happened, OURS) == 12, "it counts from when that write was sent"
    did_not = heard(state, Found(leader().record, "1"), now=7)
    assert valid_until(did_not, OURS) == 10
    again = step(did_not, 7)
    assert isinstance(again, Write)
    assert again.version == "1"


def test_a_late_write_of_ours_is_known_as_our_own_when_it_outruns_the_next() -> None:
    state: State = leader()
    first = step(state, 2)
    assert isinstance(first, Write)
    state = heard(state, Failed(Attempt(first.record, 2)), now=5)
    state = heard(state, Found(leader().record, "1"), now=7)  # not yet there
    state = heard(state, Outrun(), now=7.5)  # the second: the first got there
    assert step(state, 7.5) == Read()
    state = heard(state, Found(first.record, "2"), now=8)
    assert valid_until(state, OURS) == 12


def test_a_lease_that_somebody_labelled_is_still_ours() -> None:
    state = heard(leader(), Outrun(), now=3)
    state = heard(state, Found(leader().record, "5"), now=3)
    write = step(state, 3)
    assert isinstance(write, Write)
    assert write.version == "5"


def test_a_renewal_refused_for_a_change_that_is_not_there_is_not_tried_again_at_once() -> None:
    state = heard(leader(), Outrun(), now=3)
    assert step(state, 3) == Read()
    state = heard(state, Found(leader().record, "1"), now=3)
    assert step(state, 3) == Wait(3 + OURS.retry_period)
    assert isinstance(step(state, 3 + OURS.retry_period), Write)


def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    state = heard(leader(), Outrun(), now=3)
    state = heard(state, Absent(), now=3)
    write = step(state, 3)
    assert isinstance(write, Write)
    assert write.version == ""
    assert write.record.holder == "us"


# Losing it.


def test_a_lease_that_another_holds_is_lost() -> None:
    state = heard(leader(), Outrun(), now=3)
    state = heard(state, Found(THEIRS, "2"), now=3)
    assert state == Lost("them holds it now")
    assert heard(state, Found(leader().record, "3"), now=4) == state, "for good"


def test_a_lease_written_by_another_in_our_name_is_lost() -> None:
    state = heard(leader(), Outrun(), now=3)
    state = heard(state, Found(replace(THEIRS, holder="us"), "2"), now=3)
    assert isinstance(state, Lost)
    assert "identity" in state.why


def test_a_renewal_answered_after_our_time_was_up_comes_too_late() -> None:
    """Whoever was paused does not know what happened meanwhile, however good the answer looks."""
    state: State = leader()
    write = step(state, 9)
    assert isinstance(write, Write)
    state = heard(state, Written(Attempt(write.record, 9), "2"), now=11)
    assert isinstance(state, Lost)


# Giving it back.


def test_a_leader_takes_the_lease_that_a_candidate_created_after_it_was_deleted() -> None:
    before = leader()
    state = heard(before, Outrun(), now=3)  # it was to be created again, and had been
    state = heard(state, Found(CREATED, "9"), now=3.5)
    assert isinstance(state, Leading)
    assert isinstance(again := step(state, 3.5), Write)
    assert (again.record.holder, again.version) == ("us", "9")
    assert valid_until(state, OURS) == valid_until(before, OURS), "until then no time is won"


def test_a_leader_gives_back_a_lease_of_nobody_that_is_good_for_a_second() -> None:
    later = NOON + timedelta(seconds=5)
    assert release_step(leader(), utc=later) == Write(Record("", 1, later, later, 1), "1")


def test_a_leader_in_doubt_looks_before_it_gives_back() -> None:
    write = step(leader(), 2)
    assert isinstance(write, Write)
    state = heard(leader(), Failed(Attempt(write.record, 2)), now=5)
    assert release_step(state, utc=NOON) == Read()
    state = heard(state, Found(write.record, "2"), now=5)
    release = release_step(state, utc=NOON)
    assert isinstance(release, Write)
    assert release.version == "2"


def test_who_may_have_got_the_lease_looks_and_gives_it_back() -> None:
    state: State = taking()
    write = step(state, 0)
    assert isinstance(write, Write)
    state = heard(state, Failed(Attempt(write.record, 0)), now=1)
    assert release_step(state, utc=NOON) == Read()
    assert isinstance(release_step(heard(state, Found(write.record, "1"), now=1), utc=NOON), Write)
    assert release_step(heard(state, Found(THEIRS, "1"), now=1), utc=NOON) is None


def test_who_does_not_lead_has_nothing_to_give_back() -> None:
    assert release_step(Standby(), utc=NOON) is None
    assert release_step(heard(Standby(), Found(THEIRS, "8"), now=1), utc=NOON) is None
    assert release_step(Lost("time"), utc=NOON) is None


def test_who_hears_that_the_lease_is_free_looks_at_once() -> None:
    state = heard(Standby(), Found(THEIRS, "8"), now=1)
    assert isinstance(step(state, 1.1), Wait)
    assert step(heard(state, Freed(), now=1.1), 1.1) == Read()


def test_who_leads_believes_only_the_lease_itself() -> None:
    state = heard(taking(1), Written(Attempt(THEIRS, 1), "1"), now=1)
    assert isinstance(state, Leading)
    assert heard(state, Freed(), now=1.1) == state


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": ""}, "name"),
        ({"lease_duration": 10}, "longer"),
        ({"renew_deadline": 2.4}, "times"),
        ({"retry_period": 0}, "times"),
        ({"lease_duration": 15.5}, "whole seconds"),
    ],
)
def test_times_that_cannot_work_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LeaderElection(**{"name": "x", **wrong})


# Many of them.


@dataclass
class Server:
    """One lease, and requests that arrive when they arrive."""

    record: Record | None = None
    version: int = 0

    def delete(self) -> None:
        self.record = None

    def look(self) -> Heard:
        return Absent() if self.record is None else Found(self.record, str(self.version))

    def write(self, wanted: Write, sent_at: float) -> Heard:
        current = "" if self.record is None else str(self.version)
        if wanted.version != current:
            return Outrun()
        self.record, self.version = wanted.record, self.version + 1
        return Written(Attempt(wanted.record, sent_at), str(self.version))


@dataclass
class Candidate:
    """One process.  Its clock started who knows when; its calendar says anything."""

    name: str
    clock: float
    rate: float  # its clock may run a little fast or slow
    state: State = field(default_factory=Standby)
    busy_until: float = 0.0

    def settings(self) -> LeaderElection:
        return replace(OURS, identity=self.name)

    def now(self, at: float) -> float:
        return self.clock + self.rate * at

    def leads(self, at: float) -> bool:
        return self.now(at) < valid_until(self.state, self.settings())


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_at_most_one_leads_at_any_time(seed: int) -> None:
    """Slow and lost requests, pauses, wrong calendars, clocks that run up to a tenth apart; a Lease that is
    deleted at any moment, and processes that start then and have seen nothing.
    """
    rng = random.Random(seed)
    server = Server()
    candidates = [Candidate(name, rng.uniform(0, 1e6), rng.uniform(0.95, 1.05)) for name in "abc"]
    agenda: list[tuple[float, int, Candidate, Step | Heard, float]] = []
    order = iter(range(10**9))
    time = 0.0
    deletions = rng.choice([0, 0.01, 0.1])

    def delay() -> float:
        return rng.choice([rng.uniform(0, 0.1), rng.uniform(0, 2), rng.uniform(0, 20)])

    def act(each: Candidate) -> None:
        """What the shell would do now."""
        now = each.now(time)
        each.state = check(each.state, each.settings(), now=now)
        if isinstance(each.state, Lost):
            each.state = Standby()  # the process was started again, under the same name
        calendar = NOON + timedelta(seconds=rng.uniform(-1e6, 1e6))
        match next_step(each.state, each.settings(), now=now, utc=calendar):
            case Wait(until):
                agenda.append((time + max(0.0, until - now) / each.rate, next(order), each, Failed(), -1.0))
            case wanted:
                agenda.append((time + delay(), next(order), each, wanted, now))

    for each in candidates:
        act(each)
    for _ in range(400):
        agenda.sort(key=lambda entry: entry[:2])
        time, _, each, what, sent_at = agenda.pop(0)
        leaders = [one.name for one in candidates if one.leads(time)]
        assert len(leaders) <= 1, f"{leaders} lead at {time}"
        if rng.random() < deletions:
            server.delete()
        if rng.random() < deletions and not each.leads(time):
            each.state = Standby()  # started again
        match what:
            case Read() | Write():
                answer = server.look() if isinstance(what, Read) else server.write(what, sent_at)
                if rng.random() < 0.1:
                    answer = Failed(Attempt(what.record, sent_at) if isinstance(what, Write) else None)
                agenda.append((time + delay(), next(order), each, answer, sent_at))
            case _:
                if sent_at >= 0:
                    said: Heard = what  # type: ignore[assignment]  # nothing else is on the agenda
                    each.state = advance(
                        each.state, said, each.settings(), now=each.now(time), jitter=rng.random()
                    )
                act(each)


def test_when_the_leader_dies_another_leads_after_the_lease_has_run_out() -> None:
    state = heard(Standby(), Found(THEIRS, "8"), now=0)
    now = 0.0
    while not isinstance(doing := step(state, now), Write):
        now = doing.until if isinstance(doing, Wait) else now
        if isinstance(doing, Read):
            state = heard(state, Found(THEIRS, "8"), now=now, jitter=0.99)
    assert OURS.lease_duration <= now <= OURS.lease_duration + 2 * 1.2
