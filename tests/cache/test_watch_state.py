"""The table of ``cache/watch_state.py``, row by row, and then against a server that does what it likes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from setpoint.api.names import Key
from setpoint.api.wire import Snapshot
from setpoint.cache.store import Seen, Writer, is_impossible
from setpoint.cache.watch_state import (
    DOUBTS,
    STALLS,
    Changed,
    Closed,
    Doubt,
    Drop,
    Effect,
    Failed,
    Forget,
    How,
    Known,
    Listed,
    Listing,
    Marked,
    Put,
    Reach,
    Removed,
    Replaced,
    Rested,
    Resting,
    Said,
    Sent,
    Stage,
    State,
    Streaming,
    Swap,
    Timing,
    Unstage,
    Watching,
    Witness,
    advance,
    begin,
)
from tests.cache.objects import snapshot

PAGED = Known(streams=False)
A, B = snapshot("a", 5), snapshot("b", 6)


def failed(how: How, at: float = 1000.0, chance: float = 0.0, retry_after: float = 0.0) -> Failed:
    return Failed(how, at, chance, retry_after)


# The initial list, streamed


def test_nothing_is_asked_of_any_version_at_first() -> None:
    assert begin() == Streaming(Known(version=""))
    assert begin(PAGED) == Listing(PAGED, token="")


def test_what_a_stream_brings_first_is_staged() -> None:
    state = begin()
    assert advance(state, Sent((A, B))) == (state, [Stage((A, B))])


def test_a_change_during_the_stream_is_staged_over_what_was_and_a_deletion_taken_out() -> None:
    state, effects = advance(begin(), Changed((A,)))
    assert (state, effects) == (Streaming(Known(), is_settling=True), [Stage((A,))])
    assert advance(begin(), Removed(A)) == (state, [Unstage(A.key)])
    assert advance(state, Sent((B,))) == (state, [Stage((B,))]), "and the bookmark stays due"


def test_the_bookmark_at_the_end_swaps_all_in_and_the_stream_goes_on_as_the_watch() -> None:
    state, effects = advance(begin(), Marked("9", ends_list=True))
    assert effects == [Swap("9")]
    assert state == Watching("9", Known(version="9"))
    assert advance(state, Changed((snapshot("a", 10),)))[1] == [Put((snapshot("a", 10),))]


def test_another_bookmark_ends_no_list() -> None:
    assert advance(begin(), Marked("9")) == (begin(), [])


@pytest.mark.parametrize("how", [How.STALLED, How.REFUSED])
def test_a_server_that_does_not_stream_is_listed_page_by_page_at_once_and_from_then_on(how: How) -> None:
    state, effects = advance(begin(), failed(how))
    assert (state, effects) == (Listing(PAGED), [Forget()])
    swapped, _ = advance(state, Listed((A,), "9"))
    assert isinstance(again(swapped), Listing), "it is remembered"


def again(state: State) -> State:
    """What follows when the watch expires."""
    return advance(state, failed(How.EXPIRED))[0]


def test_a_stream_that_ends_before_the_list_is_whole_is_forgotten_and_not_tried_again() -> None:
    state, effects = advance(begin(), Closed(at=1000.0))
    assert effects == [Forget()]
    assert isinstance(state, Resting)
    assert state.then == Listing(state.known)
    assert not state.known.streams


@pytest.mark.parametrize("how", [How.ERRED, How.EXPIRED])
def test_a_stream_that_the_server_cannot_send_is_listed_this_time(how: How) -> None:
    state, effects = advance(begin(), failed(how))
    assert effects == [Forget()]
    assert isinstance(state, Resting)
    assert isinstance(state.then, Listing)
    assert state.known.streams, "the next list may be streamed"


@pytest.mark.parametrize("how", [How.BROKEN, How.DENIED])
def test_a_stream_that_breaks_is_forgotten_and_tried_again(how: How) -> None:
    state, effects = advance(begin(), failed(how))
    assert effects == [Forget()]
    assert isinstance(state, Resting)
    assert isinstance(state.then, Streaming)


# The initial list, page by page


def test_pages_are_staged_and_the_last_one_swaps_all_in() -> None:
    state, effects = advance(Listing(PAGED), Listed((A,), "9", token="more"))
    assert (state, effects) == (Listing(PAGED, "more"), [Stage((A,))])
    state, effects = advance(state, Listed((B,), "9"))
    assert effects == [Stage((B,)), Swap("9")]
    assert state == Watching("9", replace(PAGED, version="9"))


def test_a_token_that_expired_starts_the_list_over_in_one_piece() -> None:
    state, effects = advance(Listing(PAGED, "more"), failed(How.EXPIRED))
    assert (state, effects) == (Listing(PAGED, "", is_paged=False), [Forget()])
    assert isinstance(advance(state, failed(How.EXPIRED))[0], Resting), "once; then it is waited out"


@pytest.mark.parametrize("how", list(How))
def test_a_list_that_breaks_off_is_forgotten(how: How) -> None:
    state, effects = advance(Listing(PAGED), failed(how))
    assert effects == [Forget()]
    assert isinstance(state, Resting)
    assert state.then == Listing(state.known), "and begun anew"


# The watch


def test_a_watch_puts_and_drops_and_remembers_how_far_it_came() -> None:
    state: State = Watching("4", Known(version="4"))
    state, effects = advance(state, Changed((A,)))
    assert (state, effects) == (Watching("5", Known(version="4")), [Put((A,))])
    state, effects = advance(state, Removed(B))
    assert (state, effects) == (Watching("6", Known(version="4")), [Drop(B)])
    state, effects = advance(state, Marked("8"))
    assert (state, effects) == (Watching("8", Known(version="4")), [Reach("8")])


def test_what_came_at_once_is_put_at_once_and_the_latest_version_counts() -> None:
    state, effects = advance(Watching("4", Known()), Changed((B, A)))
    assert (state, effects) == (Watching("6", Known()), [Put((B, A))])


def test_an_event_from_the_past_does_not_move_the_watch_back() -> None:
    assert advance(Watching("9", Known()), Changed((A,)))[0] == Watching("9", Known())
    assert advance(Watching("9", Known()), Marked("7"))[0] == Watching("9", Known())


def test_a_watch_that_ends_in_order_goes_on_from_where_it_was() -> None:
    state = Watching("9", Known(version="4"))
    assert advance(state, Closed(at=1000.0)) == (state, [])


def test_a_watch_that_ends_as_soon_as_it_begins_rests_first() -> None:
    state, effects = advance(Watching("9", Known(), Witness(A)), Closed(1000.0, is_fruitless=True))
    assert effects == []
    assert isinstance(state, Resting)
    assert isinstance(state.then, Watching)
    assert state.then.version == "9"


@pytest.mark.parametrize("how", [How.BROKEN, How.ERRED, How.STALLED, How.DENIED])
def test_a_watch_that_breaks_rests_and_goes_on_from_where_it_was(how: How) -> None:
    state, effects = advance(Watching("9", Known(version="4"), Witness(A)), failed(how))
    assert effects == [], "what is held stays"
    assert isinstance(state, Resting)
    following, _ = advance(state, Rested())
    assert isinstance(following, Watching)
    assert following.version == "9"
    assert following.starts_at == "4", "A, which is at 5, is to come again"


def test_an_expired_watch_is_listed_again_at_once() -> None:
    state, effects = advance(Watching("9", Known(version="4")), failed(How.EXPIRED))
    assert effects == [], "the old list is held until the new one is whole"
    assert isinstance(state, Streaming)
    assert state.known.version == "9"


def test_one_that_expires_again_and_again_rests_first() -> None:
    state, _ = advance(Watching("9", Known()), failed(How.EXPIRED, at=1000))
    state, _ = advance(state, Marked("9", ends_list=True))
    state, _ = advance(state, failed(How.EXPIRED, at=1100))
    assert isinstance(state, Resting)
    assert isinstance(state.then, Streaming)


def test_a_watch_that_makes_no_sense_to_the_server_is_listed_again() -> None:
    state, _ = advance(Watching("9", Known()), failed(How.REFUSED))
    assert isinstance(state, Resting)
    assert isinstance(state.then, Streaming)


def test_a_watch_that_is_silent_again_and_again_is_listed_again() -> None:
    state: State = Watching("9", Known(version="9"), Witness(A))
    for _ in range(STALLS - 1):
        state, _ = advance(advance(state, failed(How.STALLED))[0], Rested())
        assert isinstance(state, Watching)
        state, _ = advance(state, Changed((A,)))
    state, _ = advance(advance(state, failed(How.STALLED))[0], Rested())
    assert isinstance(state, Streaming)


def test_silence_between_events_is_not_counted_up() -> None:
    state: State = Watching("9", Known(version="9"), Witness(A))
    for version in range(10, 20):
        state, _ = advance(state, Marked(str(version)))
        state, _ = advance(advance(state, failed(How.STALLED))[0], Rested())
        assert isinstance(state, Watching)
        state, _ = advance(state, Changed((A,)))


@pytest.mark.parametrize("version", ["", "0"])
def test_from_no_version_at_all_nothing_goes_on(version: str) -> None:
    assert advance(Watching(version, Known()), Closed(1000.0))[0] == begin()


# Going back in time


@pytest.mark.parametrize("streams", [True, False])
def test_a_list_older_than_what_was_seen_is_not_swapped_in(streams: bool) -> None:
    known = Known(version="9", streams=streams)
    said = Marked("7", ends_list=True) if streams else Listed((), "7")
    state, effects = advance(begin(known), said)
    assert Doubt("7", "9") in effects
    assert not any(isinstance(effect, Swap) for effect in effects)
    assert isinstance(state, Resting)
    assert state.then == begin(replace(known, doubts=1))


def test_a_server_that_insists_is_believed_in_the_end() -> None:
    state: State = begin(Known(version="9", streams=False))
    for _ in range(DOUBTS):
        state, _ = advance(advance(state, Listed((), "7"))[0], Rested())
    state, effects = advance(state, Listed((), "7"))
    assert Swap("7") in effects
    assert state == Watching("7", Known(version="7", streams=False))


def test_versions_that_cannot_be_compared_are_never_doubted() -> None:
    state, effects = advance(begin(Known(version="zz")), Marked("aa", ends_list=True))
    assert effects == [Swap("aa")]
    assert isinstance(state, Watching)


# Waiting


def waits(times: list[float], chance: float = 0.0) -> list[float]:
    state: State = Watching("9", Known(version="9"))
    found = []
    for at in times:
        state, _ = advance(state, failed(How.BROKEN, at=at, chance=chance))
        assert isinstance(state, Resting)
        found.append(state.seconds)
        state, _ = advance(state, Rested())
    return found


def test_failures_are_waited_out_longer_and_longer_up_to_half_a_minute() -> None:
    assert waits([1000.0 + i for i in range(8)]) == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert max(waits([float(i) for i in range(2000)])) == 30.0


def test_waits_are_spread_over_once_to_twice_their_length() -> None:
    assert waits([1000.0], chance=0.5) == [pytest.approx(1.2)]
    assert 1.5 < waits([1000.0], chance=0.999)[0] < 1.6


def test_two_quiet_minutes_make_the_waits_begin_anew() -> None:
    assert waits([1000, 1001, 1002, 1122.1]) == [0.8, 1.6, 3.2, 0.8]
    assert waits([1000, 1001, 1002, 1121.9]) == [0.8, 1.6, 3.2, 6.4]


def test_a_server_that_names_a_time_is_asked_no_sooner() -> None:
    state, _ = advance(Watching("9", Known()), failed(How.ERRED, retry_after=20))
    assert isinstance(state, Resting)
    assert state.seconds == 20


def test_a_server_that_names_too_long_a_time_is_not_believed() -> None:
    state, _ = advance(Watching("9", Known()), failed(How.ERRED, retry_after=3600))
    assert isinstance(state, Resting)
    assert state.seconds == Timing().longest_wait


def test_the_waits_can_be_set() -> None:
    state, _ = advance(Watching("9", Known()), failed(How.BROKEN), Timing(first_wait=0.1))
    assert isinstance(state, Resting)
    assert state.seconds == 0.1


@pytest.mark.parametrize(
    ("state", "said"),
    [(begin(), Rested()), (Resting(1, begin()), Marked("1")), (Watching("1", Known()), Listed((), "1"))],
)
def test_what_cannot_happen_is_said_aloud(state: State, said: Said) -> None:
    with pytest.raises(AssertionError, match="cannot be said while"):
        advance(state, said)


# A past that was replaced


def resumed(version: str = "9", *, is_deletion: bool = False, is_listed: bool = False) -> Watching:
    """A watch that was lost when the last change was that of A, at 5."""
    before = Watching(version, Known(version="4"), Witness(A, is_deletion, is_listed))
    state, _ = advance(advance(before, failed(How.BROKEN))[0], Rested())
    assert isinstance(state, Watching)
    return state


def test_the_last_change_comes_again_and_is_not_told_again() -> None:
    state, effects = advance(resumed(), Changed((A, snapshot("b", 10))))
    assert effects == [Put((snapshot("b", 10),))]
    assert isinstance(state, Watching)
    assert (state.starts_at, state.is_checking) == ("10", False)
    assert advance(resumed(is_deletion=True), Removed(A))[1] == []


@pytest.mark.parametrize(
    "said",
    [
        Changed((B,)),
        Changed((snapshot("a", 5, uid="another"),)),
        Changed((snapshot("a", 5, spec={"node": "x"}),)),
        Removed(A),
        Marked("5"),
        Marked("30"),
    ],
    ids=str,
)
def test_a_server_that_does_not_send_the_last_change_again_has_another_past(said: Said) -> None:
    state, effects = advance(resumed(), said)
    assert [type(effect) for effect in effects] == [Replaced]
    assert state == begin(), "with nothing known, so that any list is believed"


def test_a_change_that_should_have_been_seen_before_shows_another_past() -> None:
    state, _ = advance(resumed(), Changed((A,)))
    _, effects = advance(state, Changed((snapshot("b", 8),)))
    assert [type(effect) for effect in effects] == [Replaced]


def test_a_deletion_before_a_list_is_no_evidence_but_a_reason_to_list_again() -> None:
    state, _ = advance(resumed(is_listed=True), Changed((A,)))
    following, effects = advance(state, Removed(snapshot("b", 8)))
    assert effects == []
    assert isinstance(following, Streaming)
    assert following.known.version == "9"


def test_a_last_change_that_never_comes_is_a_reason_to_list_again() -> None:
    state, effects = advance(resumed(), failed(How.STALLED))
    assert effects == []
    assert isinstance(state, Resting)
    assert isinstance(state.then, Streaming)


def test_where_nothing_was_seen_yet_a_lost_watch_is_listed_again() -> None:
    state, _ = advance(Watching("9", Known()), failed(How.BROKEN))
    assert isinstance(state, Resting)
    assert isinstance(state.then, Streaming)


def test_an_object_from_a_list_is_known_again_by_what_it_says() -> None:
    """The items of a list do not say their kind, the events of a watch do."""
    data = msgspec.json.decode(A.data)
    del data["kind"], data["apiVersion"]
    bare = Snapshot.of(msgspec.json.encode(data))
    assert Witness(bare).is_same(A, is_deletion=False)


# Against a server that does what it likes


class World:
    """A server's objects of one kind, and its memory of how they came to be."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.version = 100
        self.objects: dict[Key, Snapshot] = {}
        self.history: list[tuple[int, str, Snapshot]] = []
        self.forgotten = 0  # versions up to here can no longer be watched from
        self.is_restored = False

    def happen(self) -> None:
        """Something is made, changed or deleted, or the past is forgotten."""
        self.version += self.chance.randint(1, 3)  # other kinds use up versions too
        key = Key("shop", self.chance.choice("abcde"))
        known = self.objects.get(key)
        if known is None:
            uid = f"{key.name}-{self.version}-{self.is_restored}"
            self._record("ADDED", self._snapshot(key.name, uid))
        else:
            kind = "DELETED" if self.chance.random() < 0.4 else "MODIFIED"
            self._record(kind, self._snapshot(key.name, known.metadata.uid))
        if self.chance.random() < 0.05:
            self.forgotten = self.version

    def restore(self, version: int) -> None:
        """Be as at that version, and know of nothing after it."""
        self.is_restored = True
        self.version = version
        self.history = [each for each in self.history if each[0] <= version]
        self.forgotten = min(self.forgotten, version)
        self.objects = {}
        for _, kind, now in self.history:
            self.objects.pop(now.key, None) if kind == "DELETED" else self.objects.update({now.key: now})

    def _snapshot(self, name: str, uid: str) -> Snapshot:
        # As times do, it tells what was written after a restore from what was written before.
        return snapshot(name, self.version, uid=uid, spec={"node": f"restored {self.is_restored}"})

    def _record(self, kind: str, now: Snapshot) -> None:
        self.history.append((self.version, kind, now))
        if kind == "DELETED":
            del self.objects[now.key]
        else:
            self.objects[now.key] = now

    def since(self, version: int) -> list[Said]:
        return [_said(kind, now) for at, kind, now in self.history if at > version]


def _said(kind: str, now: Snapshot) -> Said:
    return Removed(now) if kind == "DELETED" else Changed((now,))


class Driver:
    """Does what a state asks for, as badly as chance will have it, and carries out the effects."""

    def __init__(self, world: World, *, faults: float) -> None:
        self.world = world
        self.faults = faults
        self.state: State = begin(Known(streams=world.chance.random() < 0.5))
        self.writer = Writer()
        self.heard: list[Seen] = []
        self.clock = 1000.0

    def step(self) -> None:
        """One connection, page or rest."""
        for said in self._what_comes():
            self.clock += 1
            was_watching = isinstance(self.state, Watching)
            self.state, effects = advance(self.state, said)
            for effect in effects:
                self._carry_out(effect)
            if not isinstance(self.state, Watching if was_watching else Streaming | Watching):
                break

    def _what_comes(self) -> Iterator[Said]:
        match self.state:
            case Resting():
                yield Rested()
            case Listing(token=token):
                yield from self._page(token)
            case Streaming():
                yield from self._stream()
            case Watching() as watching:
                yield from self._watch(int(watching.starts_at))

    def _page(self, token: str) -> Iterator[Said]:
        """A token is the version of the list, and how much of it was sent."""
        world = self.world
        if self._fails():
            yield self._failure()
            return
        at, sent = map(int, token.split("/")) if token else (world.version, 0)
        if at < world.forgotten:
            yield failed(How.EXPIRED, self.clock)
            return
        objects = sorted(self._state_at(at), key=lambda each: each.key)
        size = world.chance.randint(1, 3)
        more = f"{at}/{sent + size}" if sent + size < len(objects) else ""
        yield Listed(tuple(objects[sent : sent + size]), str(at), more)
        self._live(1)

    def _stream(self) -> Iterator[Said]:
        world = self.world
        at = world.version
        objects = self._state_at(at)
        world.chance.shuffle(objects)
        for now in objects:
            if self._fails():
                yield self._failure()
                return
            yield Sent((now,))
            self._live(1)
        # Some of what happened since comes before the bookmark, the rest after.
        yield from world.since(at)
        at = world.version
        yield Marked(str(at), ends_list=True)
        yield from self._watch(at)

    def _watch(self, at: int) -> Iterator[Said]:
        world = self.world
        if at < world.forgotten:
            yield failed(How.EXPIRED, self.clock)
            return
        for _ in range(world.chance.randint(0, 3)):
            self._live(3)
            for count, said in enumerate(world.since(at), 1):
                yield said
                if self._fails():  # the same again, or something older
                    sent = len(world.since(0)) - len(world.since(at)) + count
                    yield world.chance.choice(world.since(0)[:sent])
                if self._fails():
                    yield self._failure()
                    return
            at = world.version
            if world.chance.random() < 0.3:
                yield Marked(str(at))
        yield Closed(self.clock, is_fruitless=world.chance.random() < 0.1)

    def _state_at(self, version: int) -> list[Snapshot]:
        objects: dict[Key, Snapshot] = {}
        for at, kind, now in self.world.history:
            if at <= version:
                objects.pop(now.key, None) if kind == "DELETED" else objects.update({now.key: now})
        return list(objects.values())

    def _live(self, most: int) -> None:
        if self.faults:
            for _ in range(self.world.chance.randint(0, most)):
                self.world.happen()

    def _fails(self) -> bool:
        return self.world.chance.random() < self.faults

    def _failure(self) -> Failed:
        hows = [How.BROKEN, How.ERRED, How.STALLED, How.REFUSED, How.EXPIRED, How.DENIED]
        return failed(self.world.chance.choice(hows), self.clock)

    def _carry_out(self, effect: Effect) -> None:
        writer = self.writer
        match effect:
            case Put(snapshots):
                self.heard += writer.put(*snapshots)
            case Drop(now):
                self.heard += writer.drop(now)
            case Reach(version):
                writer.reach(version)
            case Stage(snapshots):
                writer.stage(snapshots)
            case Unstage(key):
                writer.unstage(key)
            case Forget():
                writer.forget()
            case Swap(version):
                assert int(version) >= int(writer.store.version or 0) or self.world.is_restored
                reached = "" if writer.is_distrusting else writer.store.version
                changes = writer.swap(version)
                self.heard += changes
                if any(is_impossible(change, reached) for change in changes):
                    self._replaced()
            case Doubt():
                writer.forget()
                assert self.world.is_restored, "this server never goes back in time"
            case Replaced():
                self._replaced()

    def _replaced(self) -> None:
        """As the informer does."""
        assert self.world.is_restored, "there is no other past"
        self.writer.distrust()
        self.state = begin(Known(streams=self.state.known.streams))


@pytest.mark.parametrize("faults", [0.0, 0.05, 0.3])
def test_whatever_happens_on_the_way_the_store_ends_as_the_server_is(faults: float) -> None:
    for seed in range(1000):
        live(random.Random(seed), faults)


def live(chance: random.Random, faults: float) -> None:
    world = World(chance)
    for _ in range(chance.randint(0, 10)):
        world.happen()
    driver = Driver(world, faults=faults)
    for _ in range(chance.randint(1, 12)):
        driver.step()
    driver.faults = 0.0
    for _ in range(200):
        if driver.writer.store.is_synced and int(driver.writer.store.version) >= world.version:
            break
        if isinstance(driver.state, Watching) and int(driver.state.version) >= world.forgotten:
            world.happen()  # so that there is something to see
        driver.step()

    held = {each.key: each for each in driver.writer.store}
    assert held == world.objects
    assert heard_of(driver.heard) == world.objects, "and so a listener believes"


def test_whatever_was_restored_the_store_ends_as_the_server_is_and_mixes_no_two_pasts() -> None:
    """Before the watch is back the new past may have come as far as the old one had, or beyond."""
    for seed in range(2000):
        chance = random.Random(seed)
        world = World(chance)
        for _ in range(chance.randint(0, 10)):
            world.happen()
        driver = Driver(world, faults=chance.choice([0.0, 0.2]))
        for _ in range(chance.randint(1, 12)):
            driver.step()
        for _ in range(chance.randint(0, 5)):
            world.happen()
            driver.step()
        world.restore(chance.choice([100, *(at for at, _, _ in world.history)]))
        for _ in range(chance.randint(0, 15)):
            world.happen()
        if not isinstance(driver.state, Resting):
            driver.state, _ = advance(driver.state, failed(How.BROKEN, driver.clock))
            driver.writer.forget()
        driver.faults = 0.0
        for _ in range(200):
            driver.step()
            state = driver.state
            if isinstance(state, Watching) and not state.is_checking and state.version == str(world.version):
                break
            world.happen()
        assert {each.key: each for each in driver.writer.store} == world.objects, f"seed {seed}"


def heard_of(changes: list[Seen]) -> dict[Key, Snapshot]:
    """What someone believes who only heard the changes; each must make sense after the ones before it."""
    believed: dict[Key, Snapshot] = {}
    last: dict[Key, int] = {}
    for change in changes:
        key, known = change.key, believed.get(change.key)
        version = int(change.snapshot.metadata.resource_version)
        if change.type != "DELETED":
            assert version > last.get(key, 0), "no object goes back in time"
            last[key] = version
        match change.type, known:
            case "ADDED", None:
                believed[key] = _given(change.new)
            case "UPDATED", Snapshot():
                assert change.old == known
                assert _given(change.new).metadata.uid == known.metadata.uid
                believed[key] = _given(change.new)
            case "DELETED", Snapshot():
                assert change.snapshot.metadata.uid == known.metadata.uid
                del believed[key]
            case _:
                raise AssertionError(f"{change.type} of {key}, of which {known} was known")
    return believed


def _given(now: Any) -> Snapshot:
    assert isinstance(now, Snapshot)
    return now
