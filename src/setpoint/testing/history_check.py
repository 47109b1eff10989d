"""Checks that what clients were told of a store is what the store's own log says.

Clients note what they ask and what they are answered in a ``Recorder``; after the run the store's log is read
as ``Row``s, and ``check`` lists every way in which the two disagree:

1. *The log* makes sense: revisions rise, nothing is created where something is, each row names the state that
   it took the place of.
2. *Writes*: what was acknowledged is in the log, once, as it was sent; what was refused is not; what got no
   answer is there at most once; and nothing is there that nobody asked for.
3. *Real time*: what was answered before something else was asked comes before it, in reads too.
4. *Reads* give what the log says was there, at a moment between question and answer; a list is one moment.
5. *Watches* are ordered, complete and without repeats; a bookmark passes over nothing; each event names
   the state before it.

Revisions order everything, and the log places the writes that got no answer, so this is one pass and no
search.  Each write carries a value of its own: that is how a row is known for whose it is.

Pure: times come from whoever records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from setpoint.server.storage.protocol import Event, EventType, Place

Outcome = Literal["unknown", "done", "refused"]


class Row(NamedTuple):
    """One write, as the log has it."""

    revision: int
    type: EventType
    place: Place
    value: str
    previous: int  # the revision that it took the place of, or 0


class State(NamedTuple):
    """An object as it is seen: its revision and its value."""

    revision: int
    value: str


@dataclass(slots=True)
class Write:
    """A request to write.  It may have happened until it is known that it did not."""

    client: str
    type: EventType
    place: Place
    value: str  # its own
    seen: int  # the revision that it was to take the place of; 0: nothing
    called: float
    returned: float | None = None
    outcome: Outcome = "unknown"
    revision: int = 0


@dataclass(slots=True)
class Read:
    """A get, answered."""

    client: str
    place: Place
    called: float
    returned: float
    found: State | None


@dataclass(slots=True)
class Listing:
    """A list, answered."""

    client: str
    resource: str
    namespace: str
    called: float
    returned: float
    revision: int
    found: dict[Place, State]


@dataclass(slots=True)
class Watching:
    """A watch: what it gave, in order.  A number is a bookmark."""

    client: str
    resource: str
    namespace: str
    after: int
    given: list[Row | int] = field(default_factory=list)


class Recorder:
    """What the clients of one run asked and were answered."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.writes: list[Write] = []
        self.reads: list[Read] = []
        self.listings: list[Listing] = []
        self.watches: list[Watching] = []

    def __repr__(self) -> str:
        return f"<Recorder {len(self.writes)} writes, {len(self.reads)} reads, {len(self.watches)} watches>"

    def now(self) -> float:
        return self._now()

    def write(self, client: str, type_: EventType, place: Place, value: str, seen: int = 0) -> Write:
        """Note a write that is being asked for; then say ``done`` or ``refused`` of it, if it is answered."""
        write = Write(client, type_, place, value, seen, self._now())
        self.writes.append(write)
        return write

    def done(self, write: Write, revision: int) -> None:
        write.outcome, write.revision, write.returned = "done", revision, self._now()

    def refused(self, write: Write) -> None:
        """It is known that it did not happen."""
        write.outcome, write.returned = "refused", self._now()

    def read(self, client: str, place: Place, called: float, found: State | None) -> None:
        self.reads.append(Read(client, place, called, self._now(), found))

    def listed(
        self,
        client: str,
        of: tuple[str, str],
        called: float,
        *,
        revision: int,
        found: dict[Place, State],
    ) -> None:
        """Note a list ``of`` a resource and a namespace ("" for all)."""
        self.listings.append(Listing(client, *of, called, self._now(), revision, found))

    def watch(self, client: str, resource: str, namespace: str, after: int) -> Watching:
        """Note a watch that is being opened; what it gives is added to ``given``."""
        watching = Watching(client, resource, namespace, after)
        self.watches.append(watching)
        return watching


def rows(events: Iterable[Event], value: Callable[[bytes], str]) -> list[Row]:
    """A store's events as rows of its log; ``value`` finds in the data what the writer put there."""
    return [
        Row(
            event.record.revision,
            event.type,
            event.record.place,
            value(event.record.data),
            event.previous.revision if event.previous else 0,
        )
        for event in events
    ]


def check(
    recorder: Recorder, log: Sequence[Row], *, before: Mapping[Place, State] | None = None, after: int = 0
) -> list[str]:
    """All that is wrong, one sentence each.

    ``before`` is what was there at revision ``after``, where the log begins; nothing, unless told.
    """
    replay = _Replay(log, before or {}, after)
    return [
        *replay.wrong,
        *_check_writes(recorder.writes, log),
        *_check_real_time(recorder),
        *_check_reads(recorder, replay),
        *(wrong for watching in recorder.watches for wrong in check_watch(watching, log)),
    ]


def replayed(log: Iterable[Row], before: Mapping[Place, State] | None = None) -> dict[Place, State]:
    """What is there after the log."""
    state = dict(before or {})
    for row in log:
        if row.type == "DELETED":
            state.pop(row.place, None)
        else:
            state[row.place] = State(row.revision, row.value)
    return state


# ── The log ─────────────────────────────────────────────────────────────────────────────────────────


class _Replay:
    """What was where at each revision."""

    def __init__(self, log: Sequence[Row], before: Mapping[Place, State], after: int) -> None:
        self.wrong: list[str] = []
        self.first = after
        self.last = log[-1].revision if log else after
        self._changed: dict[Place, list[int]] = {place: [after] for place in before}
        self._states: dict[Place, list[State | None]] = {place: [state] for place, state in before.items()}
        last = after
        for row in log:
            if row.revision <= last:
                self.wrong.append(f"log: revision {row.revision} comes after {last}")
            last = row.revision
            self._take(row)

    def _take(self, row: Row) -> None:
        changed = self._changed.setdefault(row.place, [self.first])
        states = self._states.setdefault(row.place, [None])
        there = states[-1]
        if (row.type == "ADDED") != (there is None):
            self.wrong.append(f"log: {row.revision} is {row.type} of {_named(row.place)}, where {there} is")
        if row.previous != (there.revision if there else 0):
            self.wrong.append(f"log: {row.revision} takes the place of {row.previous}, where {there} is")
        changed.append(row.revision)
        states.append(None if row.type == "DELETED" else State(row.revision, row.value))

    def states(self, place: Place, first: int, last: int) -> list[State | None]:
        """All that was there at any revision from ``first`` to ``last``."""
        changed = self._changed.get(place)
        if changed is None:
            return [None]
        begin = max(0, bisect_right(changed, first) - 1)
        return self._states[place][begin : bisect_right(changed, last)]

    def at(self, resource: str, namespace: str, revision: int) -> dict[Place, State]:
        found = {}
        for place in self._changed:
            if place.resource == resource and namespace in {"", place.namespace}:
                state = self.states(place, revision, max(revision, self.first))[0]
                if state is not None:
                    found[place] = state
        return found


# ── What was asked ──────────────────────────────────────────────────────────────────────────────────


def _check_writes(writes: Sequence[Write], log: Sequence[Row]) -> list[str]:
    wrong: list[str] = []
    asked = {write.value: write for write in writes}
    if len(asked) != len(writes):
        wrong.append("writes: two have the same value, so rows cannot be told apart")
    found: dict[str, list[Row]] = defaultdict(list)
    for row in log:
        found[row.value].append(row)
        if row.value not in asked:
            wrong.append(f"log: nobody asked for {row.revision}, {row.type} of {_named(row.place)}")
    for write in writes:
        rows_ = found[write.value]
        told = f"{write.client}'s {write.type} of {_named(write.place)} ({write.value})"
        if len(rows_) > 1:
            wrong.append(f"writes: {told} happened at {[row.revision for row in rows_]}")
        if write.outcome == "refused" and rows_:
            wrong.append(f"writes: {told} was refused, and is in the log at {rows_[0].revision}")
        if write.outcome == "done" and not rows_:
            wrong.append(f"writes: {told} was acknowledged at {write.revision}, and is lost")
        for row in rows_:
            if (row.type, row.place, row.previous) != (write.type, write.place, write.seen):
                wrong.append(f"writes: {told} saw {write.seen}, and the log has {row}")
            if write.outcome == "done" and row.revision != write.revision:
                wrong.append(f"writes: {told} was acknowledged at {write.revision}, and is at {row.revision}")
    return wrong


def _floors(recorder: Recorder) -> tuple[list[float], list[int]]:
    """By time: the highest revision that someone had been told of by then."""
    told = [
        (write.returned, write.revision)
        for write in recorder.writes
        if write.outcome == "done" and write.returned is not None
    ]
    told += [(listing.returned, listing.revision) for listing in recorder.listings]
    told += [(read.returned, read.found.revision) for read in recorder.reads if read.found]
    times: list[float] = []
    highest: list[int] = []
    for returned, revision in sorted(told):
        times.append(returned)
        highest.append(max(revision, highest[-1] if highest else 0))
    return times, highest


def _floor(floors: tuple[list[float], list[int]], called: float) -> int:
    times, highest = floors
    number = bisect_left(times, called)
    return highest[number - 1] if number else 0


def _check_real_time(recorder: Recorder) -> list[str]:
    floors = _floors(recorder)
    late = [
        f"real time: {write.client} was given {write.revision} after {floor} had been told of"
        for write in recorder.writes
        if write.outcome == "done" and write.revision <= (floor := _floor(floors, write.called))
    ]
    late += [
        f"real time: {listing.client} was given a list at {listing.revision} after {floor} had been told of"
        for listing in recorder.listings
        if listing.revision < (floor := _floor(floors, listing.called))
    ]
    return late


def _check_reads(recorder: Recorder, replay: _Replay) -> list[str]:
    wrong: list[str] = []
    floors = _floors(recorder)
    for read in recorder.reads:
        floor = max(_floor(floors, read.called), replay.first)
        if read.found not in replay.states(read.place, floor, replay.last):
            wrong.append(
                f"reads: {read.client} found {read.found} at {_named(read.place)}, which was not there"
                f" from {floor} on"
            )
    for listing in recorder.listings:
        expected = replay.at(listing.resource, listing.namespace, listing.revision)
        if listing.found != expected:
            differs = {
                _named(place): (listing.found.get(place), expected.get(place))
                for place in {*listing.found, *expected}
                if listing.found.get(place) != expected.get(place)
            }
            wrong.append(f"reads: {listing.client}'s list at {listing.revision}: (found, log) {differs}")
    return wrong


def check_watch(watching: Watching, log: Sequence[Row]) -> list[str]:
    """What one watch gave, against the log."""
    told = f"watch: {watching.client}'s of {watching.resource} after {watching.after}"
    expected = [
        row
        for row in log
        if row.revision > watching.after
        and row.place.resource == watching.resource
        and watching.namespace in {"", row.place.namespace}
    ]
    wrong: list[str] = []
    passed, number = watching.after, 0  # how far it has come, and the next that is expected
    for given in watching.given:
        if isinstance(given, int):  # a bookmark
            if given < passed:
                wrong.append(f"{told} bookmarked {given} after {passed}")
            if number < len(expected) and expected[number].revision <= given:
                wrong.append(f"{told} bookmarked {given} and did not give {expected[number].revision}")
            passed = max(passed, given)
            continue
        if given.revision <= passed:
            wrong.append(f"{told} gave {given.revision} after {passed}")
        elif number >= len(expected):
            wrong.append(f"{told} gave {given}, which is not in the log")
        elif given != expected[number]:
            wrong.append(f"{told} gave {given} where the log has {expected[number]}")
            number = bisect_right(expected, given.revision, key=lambda row: row.revision)
            passed = given.revision
            continue
        passed = max(passed, given.revision)
        number += 1
    return wrong


def _named(place: Place) -> str:
    return "/".join(filter(None, place))
