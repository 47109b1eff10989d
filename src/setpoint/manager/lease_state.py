"""Decides who leads: what a candidate does next about the lease, and what it makes of what it hears.  Pure.

    Standby ──written──► Leading ──not renewed in time, or taken──► Lost

Every candidate looks at one Lease object.  Who holds it writes it anew every ``retry_period``; who does not
takes it when it is free, or when it has not changed for as long as it says.  The promises:

1. Time is measured here only, from when we saw the lease change, with a clock that never jumps.  The times
   written in it are for people: no two machines' clocks are compared, and none of them need be right.
2. A write is conditional on the version that was looked at, so of two who reach for the lease one gets it.
3. We lead until ``renew_deadline`` after *sending* the last write that is known to have happened: others
   cannot have seen it before, and wait for ``lease_duration``, which is longer.  Once that time has passed
   the lease is Lost, whatever is heard later.
4. A write whose answer was lost may have happened.  We look, and know our own by its content: no two of our
   writes are alike.
5. A lease in our name that we did not write is another's: a name is not a proof.
6. To create the Lease is not to acquire it.  A Lease may be missing because somebody deleted it while its
   holder leads, and a candidate that just started cannot know.  So a candidate creates it without a holder
   and waits until it has not changed for ``lease_duration``, as every other candidate does, and then
   acquires it with a conditional update.  Only a leader that is still in its time creates it with its own
   name, or writes its name into the one that a candidate created, and goes on.  It gets ``CREATE_AFTER``
   retry periods for that: so long a candidate that had seen the Lease leaves it missing.

What is done comes from ``next_step``, what was heard goes to ``advance``.  ``lease.py`` asks the server.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

JITTER: Final = 1.2  # candidates that began together should not ask together
CREATE_AFTER: Final = 2  # retry periods that a leader has to create a deleted Lease anew
_MOST_ATTEMPTS: Final = 16  # writes in doubt that are remembered


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """One of several replicas leads: which lease they share, and for how long it is good.

    ``namespace`` is the client's own unless told; ``identity`` must be this process's alone, and is made up
    of the host's name and a random part unless told.
    """

    name: str
    namespace: str = ""
    identity: str = ""
    lease_duration: int = 15  # seconds that a lease is good for after it last changed, by others' clocks
    renew_deadline: float = 10.0  # seconds after which we ourselves no longer count on it
    retry_period: float = 2.0  # seconds between two looks, or two renewals

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("which lease? its name is empty")
        if self.lease_duration != int(self.lease_duration) or self.lease_duration < 1:
            raise ValueError(f"lease_duration={self.lease_duration!r}: a lease says it in whole seconds")
        if not self.lease_duration > self.renew_deadline > JITTER * self.retry_period > 0:
            raise ValueError(
                f"lease_duration={self.lease_duration:g} must be longer than renew_deadline="
                f"{self.renew_deadline:g}, and that than {JITTER:g} times retry_period={self.retry_period:g}"
            )

    @property
    def request_timeout(self) -> float:
        """How long one request may take: two of them fit into the time we have."""
        return self.renew_deadline / 2


@dataclass(frozen=True, slots=True)
class Record:
    """What a lease says."""

    holder: str
    duration: int
    acquired: datetime | None
    renewed: datetime | None
    transitions: int

    @property
    def is_unheld(self) -> bool:
        """Nobody has held it since it was created.  A holder that releases it writes when."""
        return not self.holder and self.renewed is None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write of ours, and when it was sent."""

    record: Record
    sent_at: float


# What may be heard.


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such lease."""


@dataclass(frozen=True, slots=True)
class Found:
    """The lease, as the server has it."""

    record: Record
    version: str


@dataclass(frozen=True, slots=True)
class Written:
    """A write of ours happened."""

    attempt: Attempt
    version: str


@dataclass(frozen=True, slots=True)
class Outrun:
    """A write did not happen: the lease had changed, or come to be, or gone."""


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer, or none that helps.  A write may have happened all the same."""

    attempt: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Freed:
    """The lease was given back, or deleted, somebody says."""


Heard: TypeAlias = Absent | Found | Written | Outrun | Failed | Freed

# Where we stand.


@dataclass(frozen=True, slots=True)
class Standby:
    """Another leads, or nobody does."""

    look_at: float = float("-inf")
    record: Record | None = None
    version: str = ""
    seen_at: float = 0.0  # when the lease last changed in any way, as far as we saw
    is_fresh: bool = False  # it was looked at just now
    attempts: tuple[Attempt, ...] = ()  # updates of ours that may have happened
    missing_since: float | None = None  # when a Lease that we had seen was first found missing


@dataclass(frozen=True, slots=True)
class Leading:
    """We lead until ``sent_at`` + ``renew_deadline``."""

    record: Record
    version: str  # "" where the lease is gone and must be made anew
    sent_at: float  # of the last write that is known to have happened
    try_at: float
    is_in_doubt: bool = False  # look before writing
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """We led, and no longer do."""

    why: str


State: TypeAlias = Standby | Leading | Lost

# What there is to do.


@dataclass(frozen=True, slots=True)
class Wait:
    until: float


@dataclass(frozen=True, slots=True)
class Read:
    """Read the lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write this, if the lease still has that version; "" if there still is none."""

    record: Record
    version: str


Step: TypeAlias = Wait | Read | Write


def valid_until(state: State, settings: LeaderElection) -> float:
    """Until when we may act as the leader; past where we may not."""
    return state.sent_at + settings.renew_deadline if isinstance(state, Leading) else float("-inf")


def next_step(state: Standby | Leading, settings: LeaderElection, *, now: float, utc: datetime) -> Step:
    """What to do about the lease now.  ``utc`` is only written down, never compared."""
    match state:
        case Standby(is_fresh=True) if _may_write(state, settings, now):
            if state.record is None:
                return Write(Record("", int(settings.lease_duration), None, None, 0), "")
            return Write(_acquired(state, state.record, settings, utc), state.version)
        case Standby(look_at) if now < look_at:
            return Wait(look_at)
        case Leading() if now < state.try_at:
            return Wait(min(state.try_at, valid_until(state, settings)))
        case Leading(is_in_doubt=False):
            return Write(
                replace(
                    state.record,
                    duration=int(settings.lease_duration),
                    renewed=_unlike(utc, state.record, state.attempts),
                ),
                state.version,
            )
    return Read()


def advance(state: State, heard: Heard, settings: LeaderElection, *, now: float, jitter: float) -> State:
    """Where we stand after hearing that.  ``jitter`` is in [0, 1)."""
    match state:
        case Standby():
            pause = settings.retry_period * (1 + (JITTER - 1) * jitter)
            return _standing_by(state, heard, settings, now, now + pause)
        case Leading():
            return check(_leading(state, heard, settings, now), settings, now=now, before=state)
        case Lost():
            return state


def check(state: State, settings: LeaderElection, *, now: float, before: Leading | None = None) -> State:
    """The state, or Lost if its time is up (or, by now, had been up ``before``)."""
    if isinstance(state, Leading) and now >= valid_until(before or state, settings):
        late = now - (before or state).sent_at
        return Lost(
            f"it could not be renewed for {late:.1f} s, and is counted on for {settings.renew_deadline:g}"
        )
    return state


def release_step(state: State, *, utc: datetime) -> Read | Write | None:
    """What to do next to give the lease back; None if there is nothing (more) to give."""
    match state:
        case Leading(is_in_doubt=True) | Standby(attempts=(_, *_), is_fresh=False):
            return Read()
        case Leading(record, version) if version:
            return Write(_released(record, utc), version)
        case Standby(record=Record() as record, version=version, attempts=attempts) if any(
            attempt.record == record for attempt in attempts
        ):
            return Write(_released(record, utc), version)
    return None


def _released(record: Record, utc: datetime) -> Record:
    """Nobody's, and good for no time."""
    return replace(record, holder="", duration=1, acquired=utc, renewed=utc)


def _standing_by(state: Standby, heard: Heard, settings: LeaderElection, now: float, look_at: float) -> State:
    match heard:
        case Written(attempt, version) if not state.version:  # created, and not acquired
            return Standby(look_at, attempt.record, version, seen_at=now)
        case Written(attempt, version):
            leading = Leading(
                attempt.record, version, attempt.sent_at, max(now, attempt.sent_at + settings.retry_period)
            )
            # An answer so late that the time is up already is no reason to lead; it is ours, so write again.
            return (
                leading
                if now < valid_until(leading, settings)
                else replace(
                    state,
                    look_at=now,
                    record=attempt.record,
                    version=version,
                    seen_at=now,
                    is_fresh=False,
                    attempts=(attempt,),
                )
            )
        case Found(record, version):
            return Standby(
                look_at,
                record,
                version,
                seen_at=state.seen_at if version == state.version else now,
                is_fresh=True,
                attempts=_still_possible(state.attempts, record, changed=version != state.version),
            )
        case Absent():
            # No update of ours can happen any more: each is conditional on a version that is gone.
            missing_since = now if state.record else state.missing_since
            return Standby(look_at, is_fresh=True, missing_since=missing_since)
        case Outrun() | Failed(None):
            return replace(state, look_at=look_at, is_fresh=False)
        case Failed() if not state.version:  # we may have created it: that is no claim to it
            return replace(state, look_at=look_at, is_fresh=False)
        case Freed():  # who else stands by has heard it too
            return replace(state, look_at=now, is_fresh=False)
        case Failed(attempt):
            return replace(
                state, look_at=look_at, is_fresh=False, attempts=_remembered(state.attempts, attempt)
            )


def _leading(state: Leading, heard: Heard, settings: LeaderElection, now: float) -> State:
    match heard:
        case Written(attempt, version):
            return Leading(
                attempt.record, version, attempt.sent_at, max(now, attempt.sent_at + settings.retry_period)
            )
        case Outrun():
            return replace(state, try_at=now, is_in_doubt=True)
        case Failed(attempt):
            return replace(
                state,
                try_at=now + settings.retry_period,
                is_in_doubt=state.is_in_doubt or attempt is not None,
                attempts=_remembered(state.attempts, attempt),
            )
        case Absent():
            return replace(state, version="", try_at=now, is_in_doubt=False)
        case Freed():
            return state  # if it was, the next renewal will show it
        case Found(record, version) if record == state.record:
            possible = _still_possible(state.attempts, record, changed=version != state.version)
            # Refused for a change that is not there: to write again at once would never end.
            is_refused = version == state.version and not state.attempts
            try_at = now + settings.retry_period if is_refused else now
            return replace(state, version=version, try_at=try_at, is_in_doubt=False, attempts=possible)
        case Found(record, version) if record.is_unheld:  # a candidate created it after it was deleted
            try_at = now + settings.retry_period if version == state.version else now
            return replace(state, version=version, try_at=try_at, is_in_doubt=False)
        case Found(record, version):
            for attempt in state.attempts:
                if attempt.record == record:
                    return Leading(
                        record, version, attempt.sent_at, max(now, attempt.sent_at + settings.retry_period)
                    )
            if record.holder == state.record.holder:
                return Lost("somebody else writes it in our name: is the identity given to one process only?")
            return Lost(f"{record.holder} holds it now" if record.holder else "somebody gave it back")


def _may_write(state: Standby, settings: LeaderElection, now: float) -> bool:
    """Whether the Lease may be created, where it is missing, or else acquired."""
    if state.record is not None:
        return _is_free(state, state.record, now)
    since = state.missing_since
    return since is None or now >= since + CREATE_AFTER * settings.retry_period


def _is_free(state: Standby, record: Record, now: float) -> bool:
    is_given_back = not record.holder and not record.is_unheld
    return (
        is_given_back
        or now >= state.seen_at + record.duration
        or any(attempt.record == record for attempt in state.attempts)  # it is ours already
    )


def _acquired(state: Standby, record: Record, settings: LeaderElection, utc: datetime) -> Record:
    at = _unlike(utc, record, state.attempts)
    transitions = 0 if record.is_unheld else record.transitions + 1
    return Record(settings.identity, int(settings.lease_duration), at, at, transitions)


def _unlike(utc: datetime, record: Record | None, attempts: tuple[Attempt, ...]) -> datetime:
    """The time to write down, a little later where a write of ours has that time already."""
    used = {attempt.record.renewed for attempt in attempts} | {record.renewed if record else None}
    while utc in used:
        utc += timedelta(microseconds=1)
    return utc


def _still_possible(attempts: tuple[Attempt, ...], record: Record, *, changed: bool) -> tuple[Attempt, ...]:
    """Of our writes in doubt, those that happened or may yet: a new version has ruled out all others."""
    return tuple(each for each in attempts if each.record == record) if changed else attempts


def _remembered(attempts: tuple[Attempt, ...], attempt: Attempt | None) -> tuple[Attempt, ...]:
    return attempts if attempt is None else (*attempts, attempt)[-_MOST_ATTEMPTS:]
