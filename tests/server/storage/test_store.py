"""What ``protocol.py`` promises, asked of both forms of a store; P and a number is a property of its own.

The third form under test is the one on disk that holds so little in memory that nearly all history is read
back from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable

import pytest

from setpoint.server.storage.history import Closed
from setpoint.server.storage.protocol import Changed, Compacted, Encode, Event, Overrun, Place, Record
from setpoint.server.storage.retention import Keep
from setpoint.testing.history_check import Recorder, check
from tests.server.storage.stores import (
    PODS,
    AnyStore,
    Client,
    Open,
    all_events,
    encode,
    events_until,
    pod,
    value,
    watched,
    whole_log,
)


def _plain(text: str) -> Encode:
    return lambda _: text.encode()


async def _until(so: Callable[[], bool]) -> None:
    """Let others have their turn until it is so; the test's deadline bounds it."""
    while not so():
        await asyncio.sleep(0)


# ── One write ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_store_is_empty_and_its_revision_is_not_zero(opened: Open) -> None:
    async with opened() as store:
        assert store.revision == 1
        assert store.compacted == 0
        assert store.get(pod()) is None
        assert store.listed(PODS) == []


async def test_what_is_created_updated_and_deleted_is_so(opened: Open) -> None:
    async with opened() as store:
        created = await store.create(pod(), encode("one"))
        assert created == Record(pod(), 2, 2, b"one@2")
        assert store.get(pod()) == created

        updated = await store.update(pod(), encode("two"), created.revision)
        assert updated == Record(pod(), 3, 2, b"two@3")
        assert store.listed(PODS) == [updated]

        deleted = await store.delete(pod(), encode("gone"), updated.revision)
        assert deleted == Record(pod(), 4, 2, b"gone@4"), "the last state, at the deletion's revision"
        assert store.get(pod()) is None
        assert store.revision == 4

        again = await store.create(pod(), encode("again"))
        assert (again.revision, again.created) == (5, 5)


async def test_who_wants_to_know_of_a_resource_is_called_at_each_write_of_it_alone(opened: Open) -> None:
    async with opened() as store:
        seen: list[bool] = []
        store.on_write(PODS, lambda: seen.append(store.get(pod()) is not None))
        record = await store.create(pod(), encode("one"))
        record = await store.update(pod(), encode("two"), record.revision)
        await store.create(pod()._replace(resource="others"), encode("x"))
        await store.delete(pod(), encode("three"), record.revision)
        with contextlib.suppress(Changed):
            await store.update(pod(), encode("four"), 1)
        assert seen == [True, True, False]


async def test_a_write_that_saw_something_else_changes_nothing(opened: Open) -> None:
    async with opened() as store:
        with pytest.raises(Changed) as absent:
            await store.update(pod(), encode(), 1)
        assert absent.value.found is None
        created = await store.create(pod(), encode())
        for write in (
            store.create(pod(), encode()),
            store.update(pod(), encode(), created.revision - 1),
            store.delete(pod(), encode(), created.revision + 1),
        ):
            with pytest.raises(Changed) as changed:
                await write
            assert changed.value.found == created
        assert store.revision == created.revision
        assert store.get(pod()) == created


async def test_an_encoder_that_raises_takes_no_revision(opened: Open) -> None:
    def broken(_revision: int) -> bytes:
        raise ValueError("no")

    async with opened() as store:
        others = [asyncio.ensure_future(store.create(pod(str(number)), encode())) for number in range(3)]
        with pytest.raises(ValueError, match="no"):
            await store.create(pod("x"), broken)
        assert sorted(record.revision for record in await asyncio.gather(*others)) == [2, 3, 4]
        assert (await store.create(pod("x"), encode())).revision == 5


async def test_a_closed_store_takes_no_more(opened: Open) -> None:
    async with opened() as store:
        pending = asyncio.ensure_future(store.watch(PODS, "", 1).next())
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(Closed):
            await pending
        with pytest.raises(Closed):
            await store.create(pod(), encode())


async def test_the_order_of_a_list_is_that_of_the_bytes_of_namespace_and_name(opened: Open) -> None:
    async with opened() as store:
        names = [("a", "z"), ("a-b", "a"), ("a", "a.b"), ("a", "a-b"), ("a", "a"), ("b", "a"), ("a0", "a")]
        for namespace, name in random.Random(0).sample(names, len(names)):
            await store.create(pod(name, namespace), encode())
        listed = [f"{record.place.namespace}/{record.place.name}" for record in store.listed(PODS)]
        assert listed == sorted(listed)
        assert listed[0] == "a-b/a", "a-b/ is before a/ in bytes"
        assert [record.place.name for record in store.listed(PODS, "a")] == ["a", "a-b", "a.b", "z"]


# ── Properties ──────────────────────────────────────────────────────────────────────────────────────


async def test_p04_revisions_rise_by_one_over_all_resources_and_deletions(opened: Open) -> None:
    async with opened() as store:
        seen = [store.revision]
        for number in range(10):
            record = await store.create(pod("a", resource=f"kind{number % 3}"), encode())
            deleted = await store.delete(record.place, encode(), record.revision)
            seen += [record.revision, deleted.revision]
        await store.compact(store.revision)
        seen.append((await store.create(pod(), encode())).revision)
        assert seen == list(range(1, 23))


@pytest.mark.parametrize("seed", range(3))
async def test_p05_p08_histories_of_many_clients_are_linearizable(opened: Open, seed: int) -> None:
    async with opened() as store:
        recorder = Recorder(itertools.count().__next__)
        watches = [
            asyncio.ensure_future(watched(store, recorder.watch("w", PODS, namespace, 0)))
            for namespace in ("", "ns0")
        ]
        await asyncio.gather(*(Client(f"c{n}", store, recorder, seed=seed).run(60) for n in range(8)))
        log = await whole_log(store)
        assert len(log) > 100, "a run that wrote so little shows nothing"
        await _until(lambda: all(watch.progress == store.revision for watch in store._history.open))
        await store.close()
        await asyncio.gather(*watches)
        assert check(recorder, log) == []
        for watching in recorder.watches:
            assert watching.given[-1] == store.revision, "and it gave all there was"


async def test_p06_of_many_who_saw_the_same_exactly_one_wins(opened: Open) -> None:
    async with opened() as store:
        created = await store.create(pod(), encode())
        writes = [store.update(pod(), encode(str(number)), created.revision) for number in range(20)]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        (winner,) = [answer for answer in answers if isinstance(answer, Record)]
        losers = [answer for answer in answers if isinstance(answer, Changed)]
        assert len(losers) == 19
        assert {loser.found for loser in losers} == {winner}, "and they are told of what is durable"
        assert store.revision == created.revision + 1


async def test_p06_no_increment_is_lost(opened: Open) -> None:
    async with opened() as store:
        await store.create(pod(), _plain("0"))

        async def increment() -> None:
            while True:
                found = store.get(pod())
                assert found
                try:
                    await store.update(pod(), _plain(str(int(found.data) + 1)), found.revision)
                except Changed:
                    await asyncio.sleep(0)
                else:
                    return

        async def client() -> None:
            for _ in range(10):
                await increment()

        await asyncio.gather(*(client() for _ in range(8)))
        found = store.get(pod())
        assert found
        assert found.data == b"80"


async def test_p07_a_write_whose_writer_has_gone_happened_once_or_not_at_all(opened: Open) -> None:
    async with opened() as store:
        asked = [asyncio.ensure_future(store.create(pod(str(number)), encode())) for number in range(20)]
        await asyncio.sleep(0)
        for task in asked[::2]:
            task.cancel()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for number, answer in enumerate(answers):
            found = store.get(pod(str(number)))
            assert isinstance(answer, asyncio.CancelledError) or answer == found
        events = await all_events(store)
        assert len({event.record.place for event in events}) == len(events) == store.revision - 1
        await store.create(pod("after"), encode())


async def test_p08_what_was_acknowledged_is_read_from_then_on(opened: Open) -> None:
    async with opened() as store:

        async def client(name: str) -> None:
            seen = 0
            for _ in range(20):
                if seen:
                    record = await store.update(pod(name), encode(), seen)
                else:
                    record = await store.create(pod(name), encode())
                seen = record.revision
                assert store.get(pod(name)) == record
                assert record in store.listed(PODS, "ns")
                assert store.revision >= seen

        await asyncio.gather(*(client(str(number)) for number in range(8)))


async def test_p10_pages_of_a_list_are_one_moment_whatever_is_written_between(opened: Open) -> None:
    async with opened() as store:
        for number in range(30):
            await store.create(pod(f"{number:02}", f"ns{number % 2}"), encode())
        first, revision = store.listed(PODS), store.revision
        writers = [Client(f"c{n}", store, Recorder(lambda: 0), places=30).run(30) for n in range(4)]
        storm = asyncio.gather(*writers)
        pages: list[Record] = []
        for start in range(0, 30, 5):
            pages += (await store.listed_at(PODS, "", revision))[start : start + 5]
            await asyncio.sleep(0)
        await storm
        assert pages == first
        assert await store.listed_at(PODS, "ns1", revision) == [
            r for r in first if r.place.namespace == "ns1"
        ]
        await store.compact(revision + 1)
        with pytest.raises(Compacted):
            await store.listed_at(PODS, "", revision)


async def test_p10_every_revision_that_is_not_compacted_can_be_listed(opened: Open) -> None:
    async with opened() as store:
        moments: dict[int, list[Record]] = {store.revision: []}
        client = Client("c", store, Recorder(lambda: 0), places=6)
        for _ in range(60):
            await client.write(pod(f"p{random.Random(_).randrange(6)}"))
            moments[store.revision] = store.listed(PODS)
        for revision, expected in moments.items():
            assert await store.listed_at(PODS, "", revision) == expected
            assert await store.listed_at(PODS, "ns", revision) == expected
        assert await store.listed_at("foos", "", 5) == []


async def test_p11_p12_p13_a_watch_from_every_revision_gives_exactly_what_came_after(opened: Open) -> None:
    async with opened() as store:
        await asyncio.gather(*(Client(f"c{n}", store, Recorder(lambda: 0)).run(25) for n in range(4)))
        await store.create(pod(resource="other"), encode())
        log = await whole_log(store)
        await store.compact(store.revision // 2)
        for after in range(store.revision + 3):
            if after < store.compacted:
                with pytest.raises(Compacted) as compacted:
                    store.watch(PODS, "", after)
                assert compacted.value.compacted == store.compacted
                continue
            events = await all_events(store, after=after)
            assert [event.record.revision for event in events] == [
                row.revision for row in log if row.revision > after
            ]


async def test_p12_each_event_carries_the_state_before_it(opened: Open) -> None:
    async with opened() as store:
        one = await store.create(pod(), encode("one"))
        await store.compact(store.revision)
        two = await store.update(pod(), encode("two"), one.revision)
        gone = await store.delete(pod(), encode("gone"), two.revision)
        new = await store.create(pod(), encode("new"))
        for number in range(20):  # so that those above are no longer in memory, where little is held
            await store.create(pod(str(number)), encode())
        assert (await all_events(store, after=one.revision))[:3] == [
            Event("MODIFIED", two, one),
            Event("DELETED", gone, two),
            Event("ADDED", new, None),
        ], "what a valid watch needs is not compacted, though its revision is"


async def test_p13_a_watch_from_a_revision_to_come_skips_what_it_was_not_asked_for(opened: Open) -> None:
    async with opened() as store:
        watch = store.watch(PODS, "", 4)
        assert watch.progress == 4
        records = [await store.create(pod(str(number)), encode()) for number in range(5)]
        assert [event.record for event in await watch.next()] == records[3:]


async def test_p13_a_watch_that_broke_off_is_taken_up_without_a_gap(opened: Open) -> None:
    async with opened() as store:
        storm = asyncio.gather(*(Client(f"c{n}", store, Recorder(lambda: 0)).run(40) for n in range(4)))
        given: list[Event] = []
        after = 0
        while not storm.done() or after < store.revision:
            watch = store.watch(PODS, "", after)
            if watch.progress < store.revision:
                given += await watch.next()
            after = watch.progress
            watch.close()
            await asyncio.sleep(0)
        await storm
        assert given == await all_events(store)


async def test_p14_progress_moves_on_when_only_other_resources_are_written(opened: Open) -> None:
    async with opened() as store:
        watch = store.watch(PODS, "ns", 1)
        await store.create(pod(resource="other"), encode())
        await store.create(pod(namespace="elsewhere"), encode())
        assert watch.progress == store.revision == 3

        mine = await store.create(pod(), encode())
        await store.create(pod("b", resource="other"), encode())
        assert watch.progress == mine.revision - 1, "not past what was not given out"
        assert [event.record for event in await watch.next()] == [mine]
        assert watch.progress == store.revision


async def test_p15_object_history_and_event_appear_together(opened: Open) -> None:
    async with opened() as store:
        watch = store.watch(PODS, "", 1)
        stop = asyncio.ensure_future(
            asyncio.gather(*(Client(f"c{n}", store, Recorder(lambda: 0)).run(30) for n in range(4)))
        )
        given: dict[Place, Record] = {}
        while not stop.done() or watch.progress < store.revision:
            assert max((r.revision for r in store.listed(PODS)), default=1) <= store.revision
            if watch.progress < store.revision:
                for event in await watch.next():
                    given[event.record.place] = event.record
                    if event.type == "DELETED":
                        del given[event.record.place]
                if watch.progress == store.revision:
                    assert sorted(given.values(), key=lambda r: r.place) == sorted(
                        store.listed(PODS), key=lambda r: r.place
                    )
            await asyncio.sleep(0)
        await stop


async def test_p17_a_watcher_that_does_not_read_holds_up_nobody_and_is_ended_not_thinned(
    opened: Open,
) -> None:
    async with opened(keep=Keep(seconds=0, events=50, bytes=1_000_000)) as store:
        slow = store.watch(PODS, "", 1)
        others = [store.watch(PODS, "", 1) for _ in range(20)]
        counts = [0] * len(others)
        for number in range(400):
            await store.create(pod(f"{number:03}"), encode())
            for index, watch in enumerate(others):
                counts[index] += len(await watch.next())
        await _until(lambda: store.compacted > 300)
        assert counts == [400] * 20
        with pytest.raises(Overrun):
            await slow.next()


async def test_p17_a_quiet_watcher_is_not_taken_for_a_slow_one(opened: Open) -> None:
    async with opened(keep=Keep(seconds=0, events=10, bytes=1_000_000)) as store:
        quiet = store.watch(PODS, "quiet", 1)
        for number in range(300):
            await store.create(pod(f"{number:03}"), encode())
        await _until(lambda: store.compacted > 200)
        record = await store.create(pod(namespace="quiet"), encode())
        assert [event.record for event in await quiet.next()] == [record]


async def test_p18_compaction_takes_no_object_and_nothing_that_a_valid_watch_needs(opened: Open) -> None:
    rng = random.Random(1)
    async with opened() as store:
        client = Client("c", store, Recorder(lambda: 0), places=8)
        log: list[Event] = []
        for _ in range(15):
            for _ in range(12):
                await client.write(pod(f"p{rng.randrange(8)}"))
            log += await all_events(store, after=log[-1].record.revision if log else 0)
            objects = store.listed(PODS)
            await store.compact(rng.randrange(store.compacted, store.revision + 1))
            assert store.listed(PODS) == objects
            after = rng.randrange(store.compacted, store.revision + 1)
            assert await all_events(store, after=after) == [e for e in log if e.record.revision > after]


async def test_p18_compaction_is_clamped_and_may_be_asked_again(opened: Open) -> None:
    async with opened() as store:
        await store.create(pod(), encode())
        await store.compact(1_000)
        assert store.compacted == store.revision == 2
        await store.compact(1)
        assert store.compacted == 2


async def test_p27_history_is_kept_as_long_as_was_asked_and_then_goes_by_itself(opened: Open) -> None:
    async with opened(keep=Keep(seconds=0, events=100, bytes=1_000_000)) as store:
        for number in range(99):
            await store.create(pod(f"{number:03}"), encode())
        assert store.compacted == 0
        for number in range(300):
            await store.create(pod(f"more-{number:03}"), encode())
        await _until(lambda: store.compacted >= 290)
        assert store.compacted <= store.revision - 100
        assert len(await all_events(store, after=store.compacted)) == store.revision - store.compacted


async def test_p27_what_is_young_is_kept_however_many(opened: Open) -> None:
    async with opened(keep=Keep(seconds=300, events=10, bytes=1_000_000)) as store:
        for number in range(200):
            await store.create(pod(f"{number:03}"), encode())
        assert store.compacted == 0


async def test_p28_what_is_held_is_what_the_log_says(opened: Open) -> None:
    async with opened() as store:
        await asyncio.gather(*(Client(f"c{n}", store, Recorder(lambda: 0)).run(40) for n in range(4)))
        state: dict[Place, Record] = {}
        for event in await all_events(store):
            assert event.previous == state.pop(event.record.place, None)
            if event.type != "DELETED":
                state[event.record.place] = event.record
        assert {record.place: record for record in store.listed(PODS)} == state


@pytest.mark.parametrize(("one", "other"), [("foos", "foosbar"), ("a.b", "a.b.c"), ("foos", "foos.x")])
async def test_p30_resources_that_share_a_beginning_never_meet(opened: Open, one: str, other: str) -> None:
    async with opened() as store:
        mine = await store.create(pod(resource=one), encode())
        await store.create(pod(resource=other), encode())
        await store.create(pod("b/a", "ns", one), encode())
        await store.create(pod("a", "ns/b", one), encode())
        assert store.listed(one, "ns")[0] == mine
        assert len(store.listed(one, "ns")) == 2
        assert len(store.listed(one)) == 3
        assert len(store.listed(other)) == 1
        assert len(await all_events(store, other)) == 1
        assert len(await all_events(store, one, "ns")) == 2
        assert len(await all_events(store, one, "ns/b")) == 1


async def test_p32_idle_watchers_hold_nothing_and_leave_nothing(opened: Open) -> None:
    async with opened(keep=Keep(seconds=0, events=10, bytes=1_000_000)) as store:
        watches = [store.watch(PODS, f"ns{number}", 1) for number in range(1_000)]
        for number in range(100):
            await store.create(pod(str(number), f"elsewhere{number}"), encode())
        for watch in watches:
            watch.close()
        await store.compact(store.revision)
        await _until(lambda: store.compacted == store.revision)
        store._history.forget(store.revision)
        assert not store._history.tracks
        assert not store._history.open


async def test_p32_no_more_bytes_are_kept_than_was_asked(opened: Open) -> None:
    big = b"x" * 100_000
    async with opened(keep=Keep(seconds=300, events=10, bytes=1_000_000)) as store:
        record = await store.create(pod(), lambda _: big)
        for _ in range(50):
            record = await store.update(pod(), lambda _: big, record.revision)
        await _until(lambda: store.compacted >= 30)
        assert store.compacted <= store.revision - 9


# ── Watches ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_cancelled_next_loses_nothing(opened: Open) -> None:
    async with opened() as store:
        watch = store.watch(PODS, "", 1)
        given: list[Event] = []
        for number in range(30):
            waiting = asyncio.ensure_future(watch.next())
            await asyncio.sleep(0)
            write = asyncio.ensure_future(store.create(pod(f"{number:02}"), encode()))
            if number % 3:
                waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                given += await waiting
            await write
        given += await events_until(watch, store.revision)
        assert given == await all_events(store)


async def test_a_closed_watch_gives_no_more(opened: Open) -> None:
    async with opened() as store:
        watch, other = store.watch(PODS, "", 1), store.watch(PODS, "", 1)
        waiting = asyncio.ensure_future(watch.next())
        going_on = asyncio.ensure_future(other.next())
        await asyncio.sleep(0)
        watch.close()
        watch.close()
        with pytest.raises(Closed):
            await waiting
        record = await store.create(pod(), encode())
        assert [event.record for event in await going_on] == [record]


@pytest.mark.virtual_time
async def test_in_virtual_time_the_store_in_memory_is_the_same_every_time() -> None:
    from setpoint.server.storage.memory import MemoryStore

    async def run() -> list[tuple[int, str]]:
        store: AnyStore = MemoryStore()
        recorder = Recorder(asyncio.get_running_loop().time)
        watching = recorder.watch("w", PODS, "", 0)
        watch = asyncio.ensure_future(watched(store, watching))
        await asyncio.gather(*(Client(f"c{n}", store, recorder).run(50) for n in range(5)))
        await store.close()
        await watch
        return [(record.revision, value(record.data)) for record in store.listed(PODS)]

    assert await run() == await run()
