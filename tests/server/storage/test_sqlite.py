"""What only the store on disk can show: commits of many, refusals, restarts."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from setpoint.server.storage.failpoints import Failpoints, error
from setpoint.server.storage.folder import CannotOpen
from setpoint.server.storage.history import Closed
from setpoint.server.storage.log import Log
from setpoint.server.storage.protocol import Changed, Compacted, OutcomeUnknown, Record, Unwritable
from setpoint.server.storage.retention import Keep
from setpoint.server.storage.sqlite import SqliteStore
from setpoint.testing.history_check import Recorder
from tests.server.storage.files import WAL, left
from tests.server.storage.stores import PODS, Client, all_events, encode, opened_sqlite, pod


class Gate:
    """Holds the thread of a store at a failpoint until it is let through."""

    def __init__(self, failpoints: Failpoints, point: str) -> None:
        self._reached, self._through = threading.Event(), threading.Event()
        failpoints.arm(point, self._hold)

    def _hold(self) -> None:
        self._reached.set()
        assert self._through.wait(30)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, 30)

    def open(self) -> None:
        self._through.set()


async def test_a_list_of_the_past_that_is_on_disk_keeps_nobody_waiting(tmp_path: Path) -> None:
    points = Failpoints({})
    held = Keep(seconds=0, events=1, bytes=1)
    store = await SqliteStore.open(tmp_path / "data", held=held, failpoints=points)
    first = await store.create(pod("a"), encode("first"))
    last = first
    for number in range(5):
        last = await store.update(pod("a"), encode(str(number)), last.revision)
    gate = Gate(points, "write.begin")  # the disk is busy
    write = asyncio.ensure_future(store.create(pod("b"), encode()))
    await gate.reached()
    past = asyncio.ensure_future(store.listed_at(PODS, "", first.revision))
    await asyncio.sleep(0)
    assert store.listed(PODS) == [last], "others read on meanwhile"
    assert not past.done()
    gate.open()
    assert await past == [first]
    await write
    await store.close()


# ── One commit for all ──────────────────────────────────────────────────────────────────────────────


async def test_all_who_wait_are_committed_at_once(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        await asyncio.gather(*(store.create(pod(str(number)), encode()) for number in range(100)))
        assert store.stats().commits == 1
        assert store.stats().writes == 100


async def test_the_disk_does_not_wait_for_the_event_loop(tmp_path: Path) -> None:
    points, again = Failpoints({}), threading.Event()
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    gate = Gate(points, "write.begin")
    first = asyncio.ensure_future(store.create(pod("a"), encode()))
    await gate.reached()
    others = [asyncio.ensure_future(store.create(pod(name), encode())) for name in ("a", "b")]
    await asyncio.sleep(0)
    points.arm("write.committed", again.set, at=2)
    gate.open()
    assert again.wait(30)  # the loop does nothing meanwhile
    assert store.listed(PODS) == []  # durable, and to be seen when the loop gets to it
    made, refused, other = await asyncio.gather(first, *others, return_exceptions=True)
    assert isinstance(made, Record)
    assert isinstance(other, Record)
    assert isinstance(refused, Changed)  # judged when what was there could be seen
    assert (refused.found, other.revision) == (made, made.revision + 1)
    assert store.stats().commits == 2
    await store.close()


async def test_p03_nothing_is_seen_before_it_is_durable(tmp_path: Path) -> None:
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    old = await store.create(pod(), encode("old"))
    watch = store.watch(PODS, "", old.revision)
    gate = Gate(points, "write.begin")
    writes = [
        asyncio.ensure_future(store.update(pod(), encode("new"), old.revision)),
        asyncio.ensure_future(store.create(pod("b"), encode())),
    ]
    await gate.reached()
    assert store.get(pod()) == old
    assert store.listed(PODS) == [old]
    assert store.revision == watch.progress == old.revision
    gate.open()
    new, other = await asyncio.gather(*writes)
    assert store.listed(PODS) == [new, other]
    assert [event.record for event in await watch.next()] == [new, other]
    await store.close()


async def test_a_write_to_a_place_that_is_being_written_is_judged_when_that_is_durable(
    tmp_path: Path,
) -> None:
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    old = await store.create(pod(), encode("old"))
    gate = Gate(points, "write.committed")
    delete = asyncio.ensure_future(store.delete(pod(), encode("gone"), old.revision))
    await gate.reached()
    update = asyncio.ensure_future(store.update(pod(), encode("late"), old.revision))
    with pytest.raises(Changed) as exists:
        await store.create(pod(), encode("early"))
    assert exists.value.found == old, "the deletion is not durable yet: the object is there"
    await asyncio.sleep(0)
    assert not update.done()
    gate.open()
    await delete
    with pytest.raises(Changed) as changed:
        await update
    assert changed.value.found is None
    assert (await store.create(pod(), encode("new"))).revision == 4
    await store.close()


async def test_a_deleted_name_is_taken_anew_in_a_later_commit(tmp_path: Path) -> None:
    """Both wait at once; the second is judged after the first, not beside it."""
    async with opened_sqlite(tmp_path / "data") as store:
        old = await store.create(pod(), encode("old"))
        answers = await asyncio.gather(
            store.delete(pod(), encode("gone"), old.revision),
            store.update(pod(), encode("other"), old.revision),
            store.create(pod("b"), encode()),
            return_exceptions=True,
        )
        assert isinstance(answers[1], Changed)
        assert store.stats().commits == 2
        assert store.revision == 4


async def test_closing_writes_what_was_asked_for(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "data")
    writes = [asyncio.ensure_future(store.create(pod(str(number)), encode())) for number in range(5)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert len(await asyncio.gather(*writes)) == 5
    assert len(left(tmp_path / "data").objects) == 5


async def test_p07_a_write_whose_writer_left_before_its_turn_is_not_made(tmp_path: Path) -> None:
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    gate = Gate(points, "write.begin")
    first = asyncio.ensure_future(store.create(pod("first"), encode()))
    await gate.reached()
    second = asyncio.ensure_future(store.create(pod("second"), encode()))
    await asyncio.sleep(0)
    second.cancel()
    gate.open()
    await first
    assert (await store.create(pod("third"), encode())).revision == 3
    assert store.get(pod("second")) is None
    await store.close()


async def test_names_that_are_no_text_are_refused_alone(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        answers = await asyncio.gather(
            store.create(pod("\ud800"), encode()), store.create(pod(), encode()), return_exceptions=True
        )
        assert isinstance(answers[0], UnicodeEncodeError)
        assert isinstance(answers[1], Record)


# ── Restarts ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("held", [3, 1_000])
async def test_p20_a_restart_changes_nothing(tmp_path: Path, held: int) -> None:
    keep = Keep(seconds=0, events=held, bytes=1_000_000)
    async with opened_sqlite(tmp_path / "data", held=keep) as store:
        await asyncio.gather(*(Client(f"c{n}", store, Recorder(lambda: 0)).run(40) for n in range(4)))
        await store.compact(store.revision // 3)
        before = (
            store.revision,
            store.compacted,
            store.listed(PODS),
            await all_events(store, after=store.compacted),
        )
    async with opened_sqlite(tmp_path / "data", held=keep) as store:
        after = (
            store.revision,
            store.compacted,
            store.listed(PODS),
            await all_events(store, after=store.compacted),
        )
        assert after == before
        with pytest.raises(Compacted):
            store.watch(PODS, "", store.compacted - 1)


async def test_p04_a_revision_is_not_taken_again_though_its_row_is_gone(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        only = await store.create(pod(), encode())
        deleted = await store.delete(pod(), encode(), only.revision)
        await store.compact(deleted.revision)
    async with opened_sqlite(tmp_path / "data") as store:
        assert store.revision == store.compacted == deleted.revision
        assert (await store.create(pod(), encode())).revision == deleted.revision + 1


async def test_p18_what_is_compacted_leaves_the_disk(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        record = await store.create(pod(), encode())
        for _ in range(50):
            record = await store.update(pod(), encode(), record.revision)
        await store.create(pod("b"), encode())
        await store.compact(store.revision)

        def count() -> object:
            return store._log._database.execute("SELECT count(*) FROM log").fetchone()[0]

        assert await store._in_thread(count) == 2


async def test_p13_what_is_compacted_is_not_read_from_disk_as_if_it_were_whole(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        for number in range(10):
            await store.create(pod(str(number)), encode())
        await store.compact(5)
        assert len((await store._in_thread(store._log.older, PODS, "", 5, 11)).events) == 6
        with pytest.raises(Compacted):
            await store._in_thread(store._log.older, PODS, "", 4, 11)


async def test_p19_nobody_else_can_hold_the_database(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        await store.create(pod(), encode())
        other = sqlite3.connect(tmp_path / "data" / "store.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("SELECT * FROM log").fetchone()
        other.close()
        assert store.stats().to_compact == 0


async def test_p32_the_write_ahead_log_does_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Log, "PAGES", 50)
    async with opened_sqlite(tmp_path / "data") as store:
        big = "x" * 20_000
        for number in range(100):
            await store.create(pod(str(number)), encode(big))
        assert (tmp_path / "data" / WAL).stat().st_size < 1_000_000


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("point", ["write.begin", "write.committed"])
async def test_p21_a_refused_commit_takes_no_revision_and_leaves_nothing(tmp_path: Path, point: str) -> None:
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    old = await store.create(pod(), encode("old"))
    watch = store.watch(PODS, "", old.revision)
    points.arm(point, error)
    answers = await asyncio.gather(
        store.update(pod(), encode("refused"), old.revision),
        store.create(pod("b"), encode("refused")),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [Unwritable, Unwritable]
    assert "No space left" in str(answers[0])
    assert "No space left" in store.trouble(), "health says so"
    assert store.listed(PODS) == [old]
    assert store.revision == watch.progress == old.revision

    new = await store.update(pod(), encode("new"), old.revision)
    assert not store.trouble()
    assert new.revision == old.revision + 1
    assert [event.record for event in await watch.next()] == [new]
    await store.close()
    assert store.trouble() == "the store is closed"
    found = left(tmp_path / "data")
    assert found.objects == {pod(): new}
    assert not found.damaged


async def test_p21_a_commit_that_may_be_on_disk_is_not_said_to_be_refused(tmp_path: Path) -> None:
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    points.arm("write.committed", error)
    points.arm("settle.truncated", error)
    with pytest.raises(OutcomeUnknown, match="whether it was written is not known"):
        await store.create(pod(), encode("maybe"))
    assert "is not known" in store.trouble(), "health says so"
    assert store.get(pod()) is None
    new = await store.create(pod(), encode("new"))
    await store.close()
    assert left(tmp_path / "data").objects == {pod(): new}


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """The system lets no file be written past ``size`` bytes, as if the disk were full there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 8_192, 130_000])
async def test_p21_a_full_disk_refuses_writes_and_nothing_else(tmp_path: Path, room: int) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        records = [await store.create(pod(str(number)), encode("x" * 5_000)) for number in range(10)]
        refused = 0
        with no_file_above(room):
            for number in range(30):
                try:
                    records.append(await store.create(pod(f"more-{number}"), encode("x" * 5_000)))
                except Unwritable:
                    refused += 1
                assert len(store.listed(PODS)) == len(records), "reads go on"
                assert len(await all_events(store)) == len(records)
        assert store.stats().refused == refused > 0
        records.append(await store.create(pod("last"), encode()))
        assert [record.revision for record in records] == list(range(2, len(records) + 2)), "none was burnt"
    found = left(tmp_path / "data")
    assert set(found.objects.values()) == set(records)
    assert not found.damaged


@pytest.mark.parametrize("point", ["compaction.begin", "compaction.deleted", "checkpoint.begin"])
async def test_p19_p21_house_keeping_that_fails_is_told_and_stops_no_write(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Log, "PAGES", 1)
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)
    record = await store.create(pod(), encode())
    points.arm(point, error)
    for _ in range(5):
        record = await store.update(pod(), encode(), record.revision)
    if point.startswith("compaction"):
        with pytest.raises(Unwritable):
            await store.compact(4)
    await store.update(pod(), encode(), record.revision)
    await store.compact(5)
    assert store.stats().to_compact == 0
    await store.close()
    assert left(tmp_path / "data").compacted == 5


async def test_a_writer_that_dies_leaves_nobody_waiting(tmp_path: Path) -> None:
    points = Failpoints({})
    store = await SqliteStore.open(tmp_path / "data", failpoints=points)

    def bug() -> None:
        raise RuntimeError("a bug")

    points.arm("write.applied", bug)
    with pytest.raises(Closed):
        await store.create(pod(), encode())
    with pytest.raises(Closed):
        await store.create(pod("b"), encode())
    with pytest.raises(RuntimeError, match="a bug"):
        await store.close()


# ── Backups ─────────────────────────────────────────────────────────────────────────────────────────


async def test_p29_a_restored_backup_begins_beyond_all_that_was_seen(tmp_path: Path) -> None:
    from setpoint.server.storage.recovery import restore

    async with opened_sqlite(tmp_path / "data") as store:
        records = [await store.create(pod(str(number)), encode()) for number in range(5)]
        storm = asyncio.gather(*(store.create(pod(f"later-{number}"), encode()) for number in range(5)))
        made = await store.backup(tmp_path / "backup")
        await storm
        seen = store.revision
        assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
        with pytest.raises(CannotOpen, match="another server"):
            restore(tmp_path / "backup", tmp_path / "data")
    with pytest.raises(CannotOpen, match="already"):
        restore(tmp_path / "backup", tmp_path / "data")

    begins = restore(tmp_path / "backup", tmp_path / "restored")
    async with opened_sqlite(tmp_path / "restored") as store:
        assert made == records[-1].revision
        assert store.listed(PODS) == records, "as they were, revisions too: their bytes name them"
        assert store.revision == store.compacted == begins > seen
        for after in (0, records[0].revision, seen, begins - 1):
            with pytest.raises(Compacted):
                store.watch(PODS, "", after)
        watch = store.watch(PODS, "", begins)
        updated = await store.update(pod("0"), encode("new"), records[0].revision)
        assert updated.revision == begins + 1
        assert [event.previous for event in await watch.next()] == [records[0]]
    assert left(tmp_path / "restored").objects[pod("0")] == updated
