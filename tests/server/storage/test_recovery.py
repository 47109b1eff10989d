"""Damage is found, costs what is damaged and no more, and never shows an old state as the newest.  P22."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from setpoint.server.storage.failpoints import VARIABLE, Failpoints, error
from setpoint.server.storage.folder import CannotOpen
from setpoint.server.storage.protocol import Place, Record
from setpoint.server.storage.recovery import BUMP, restore
from setpoint.server.storage.sqlite import SqliteStore
from tests.server.storage.files import DATABASE, Files, left
from tests.server.storage.stores import PODS, all_events, encode, opened_sqlite, pod


async def filled(directory: Path, number: int = 40) -> dict[Place, Record]:
    """A closed store with this many objects, each written twice, half of that compacted."""
    async with opened_sqlite(directory) as store:
        for each in range(number):
            record = await store.create(pod(f"p{each:02}"), encode("old"))
            await store.update(record.place, encode("new" * 100), record.revision)
        await store.compact(number)
        return {record.place: record for record in store.listed(PODS)}


def change(directory: Path, statement: str, *values: object) -> None:
    database = sqlite3.connect(directory / DATABASE)
    with database:
        assert database.execute(statement, values).rowcount == 1
    database.close()


async def test_p22_an_object_with_a_wrong_checksum_is_gone_and_the_rest_is_there(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    objects = await filled(directory)
    lost = objects.pop(pod("p30"))
    change(directory, "UPDATE log SET data = ? WHERE revision = ?", b"changed by someone", lost.revision)
    async with opened_sqlite(directory) as store:
        assert {record.place: record for record in store.listed(PODS)} == objects
        assert store.get(lost.place) is None, "its older state is on disk, and is not the newest"
        assert [(each.place, each.revision) for each in store.damaged] == [(lost.place, lost.revision)]
        assert store.revision == store.compacted == 81 + BUMP, "every watch lists anew"
        record = await store.create(lost.place, encode("new"))
    async with opened_sqlite(directory) as store:
        assert store.damaged == ()
        assert store.listed(PODS) == sorted([*objects.values(), record], key=lambda each: each.place)
        assert len(await all_events(store, after=store.compacted)) == 1
    assert (directory / "store.db.damaged-1").exists()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("DELETE FROM log WHERE revision = ?", (60,)),
        ("UPDATE log SET previous = 2 WHERE revision = ?", (61,)),
        ("UPDATE log SET revision = 1000 WHERE revision = ?", (81,)),
        ("UPDATE log SET name = 'p00' WHERE revision = ?", (61,)),
        ("UPDATE log SET name = x'ff' WHERE revision = ?", (61,)),
        ("UPDATE log SET type = 2 WHERE revision = ?", (61,)),
        ("UPDATE meta SET value = 7 WHERE name = ?", ("compacted",)),
    ],
)
async def test_p22_whatever_is_changed_by_hand_is_found(
    tmp_path: Path, statement: str, values: tuple[object, ...]
) -> None:
    objects = await filled(tmp_path / "data")
    change(tmp_path / "data", statement, *values)
    found = left(tmp_path / "data")
    assert found.damaged
    assert found.revision == found.compacted > BUMP
    assert found.objects.items() <= objects.items()
    assert len(found.objects) >= len(objects) - 2


async def test_p22_a_valid_checksum_does_not_hide_a_missing_row(tmp_path: Path) -> None:
    await filled(tmp_path / "data")
    change(tmp_path / "data", "DELETE FROM log WHERE revision = ?", 61)
    (damage,) = left(tmp_path / "data").damaged
    assert damage.why == "revisions 61 to 61 are missing"


@pytest.mark.parametrize("seed", range(4))
async def test_p22_no_flipped_byte_shows_what_was_never_written(tmp_path: Path, seed: int) -> None:
    objects = await filled(tmp_path / "data")
    old = {
        Record(each.place, each.created, each.created, b"old@%d" % each.created) for each in objects.values()
    }
    files = Files.of(tmp_path / "data")
    chance = random.Random(seed)
    hurt = 0
    for number in range(60):
        position = chance.randrange(100, len(files.database))  # past the header
        database = bytearray(files.database)
        database[position] ^= 1 << chance.randrange(8)
        directory = Files(bytes(database), b"").put(tmp_path / f"flipped-{number}")
        try:
            found = left(directory)
        except CannotOpen:
            assert position < 4096, "only the first page is needed for all the others"
            continue
        shown = set(found.objects.values())
        assert shown <= set(objects.values()) | old, "what was never written"
        assert len(shown & old) <= 1, "the row of one object was lost, with all that tells whose it was"
        if found.damaged:
            hurt += 1
            assert found.revision > BUMP
            if position >= 8192:
                assert len(found.objects) >= len(objects) - 20, "a page has no more"
            assert not left(directory).damaged, "it was repaired"
        else:
            assert found.objects == objects
    assert hurt > 10


async def test_p22_a_lost_page_in_the_middle_costs_what_was_on_it(tmp_path: Path) -> None:
    objects = await filled(tmp_path / "data", 300)
    files = Files.of(tmp_path / "data")
    page = len(files.database) // 4096 // 2 * 4096
    lost = files.database[:page] + os.urandom(4096) + files.database[page + 4096 :]
    found = left(Files(lost, b"").put(tmp_path / "lost"))
    assert found.damaged
    assert found.objects.items() <= objects.items()
    assert len(found.objects) > 200


def test_a_database_that_cannot_be_read_at_all_is_refused_not_begun_anew(tmp_path: Path) -> None:
    directory = Files(b"SQLite format 3\0" + b"\xff" * 8176, b"").put(tmp_path / "data")
    with pytest.raises(CannotOpen, match="restore a backup"):
        left(directory)
    assert (directory / DATABASE).stat().st_size == 8192


def test_a_database_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    change_ = sqlite3.connect(tmp_path / "data" / DATABASE)
    change_.execute("CREATE TABLE theirs (a)")
    change_.close()
    with pytest.raises(CannotOpen, match="not one of Setpoint's"):
        left(tmp_path / "data")


async def test_a_database_of_a_later_setpoint_is_refused(tmp_path: Path) -> None:
    await filled(tmp_path / "data", 1)
    database = sqlite3.connect(tmp_path / "data" / DATABASE)
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(CannotOpen, match="schema version 2"):
        left(tmp_path / "data")


# ── Killed on the way ───────────────────────────────────────────────────────────────────────────────


def killed_at(point: str, run: Callable[[Failpoints], object]) -> None:
    """Run it in a child that dies at ``point``.  No thread may be alive here: a fork would not have it."""
    pid = os.fork()
    if pid == 0:
        try:
            run(Failpoints({VARIABLE: f"{point}=kill"}))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("point", ["fresh.written", "fresh.aside", "fresh.placed"])
def test_p29_a_restore_that_was_killed_is_there_or_not(tmp_path: Path, point: str) -> None:
    async def backed_up() -> list[Record]:
        async with opened_sqlite(tmp_path / "data") as store:
            records = [await store.create(pod(str(number)), encode()) for number in range(5)]
            await store.backup(tmp_path / "backup")
            return records

    records = asyncio.run(backed_up())
    killed_at(point, lambda points: restore(tmp_path / "backup", tmp_path / "new", failpoints=points))
    found = left(tmp_path / "new")
    assert list(found.objects.values()) == records
    assert found.revision == records[-1].revision + BUMP


@pytest.mark.parametrize("point", ["fresh.written", "fresh.aside", "fresh.placed"])
def test_p22_a_repair_that_was_killed_is_finished_by_the_next_start(tmp_path: Path, point: str) -> None:
    objects = asyncio.run(filled(tmp_path / "data"))
    lost = objects.pop(pod("p30"))
    change(tmp_path / "data", "UPDATE log SET data = x'00' WHERE revision = ?", lost.revision)
    killed_at(point, lambda points: left(tmp_path / "data", points))
    found = left(tmp_path / "data")
    assert found.objects == objects
    assert found.revision >= BUMP


async def test_a_half_written_restore_is_not_taken_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "store.db.part").write_bytes(b"half")
    assert left(tmp_path / "data").objects == {}
    assert not (tmp_path / "data" / "store.db.part").exists()


@pytest.mark.parametrize("where", [b"SQLite format", b"CREATE TABLE", b"xxxx"])
async def test_a_damaged_backup_is_refused(tmp_path: Path, where: bytes) -> None:
    async with opened_sqlite(tmp_path / "data") as store:
        for number in range(5):
            await store.create(pod(str(number)), encode("x" * 1_000))
        await store.backup(tmp_path / "backup")
    data = (tmp_path / "backup").read_bytes()
    (tmp_path / "backup").write_bytes(data.replace(where, b"y" * len(where), 1))
    with pytest.raises(CannotOpen, match="read the backup"):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new").exists()


async def test_p22_damage_found_while_running_sends_the_watcher_to_list_anew(tmp_path: Path) -> None:
    from setpoint.server.storage.protocol import Overrun
    from setpoint.server.storage.retention import Keep

    held = Keep(seconds=0, events=2, bytes=10_000)
    async with opened_sqlite(tmp_path / "data", held=held) as store:
        for number in range(20):
            await store.create(pod(str(number)), encode())

        def damage() -> None:
            store._log._database.execute("UPDATE log SET data = x'00' WHERE revision = 5")

        await store._in_thread(damage)
        watch = store.watch(PODS, "", 1)
        with pytest.raises(Overrun):
            await watch.next()


def test_a_checksum_is_of_the_whole_row() -> None:
    """So that no two rows that differ can be taken for one another."""
    from setpoint.server.storage.log import _checksum

    assert _checksum((1, 0, "a", "b", "c", 1, 0), b"d") != _checksum((1, 0, "ab", "", "c", 1, 0), b"d")
    assert _checksum((1, 0, "a", "b", "c", 1, 0), b"d") != zlib.crc32(b"d")


async def test_an_error_in_opening_lets_go_of_the_directory(tmp_path: Path) -> None:
    await filled(tmp_path / "data", 1)
    change(tmp_path / "data", "UPDATE log SET data = x'00' WHERE revision = 3")
    points = Failpoints({})
    points.arm("fresh.written", error)
    with pytest.raises(OSError, match="No space"):
        await SqliteStore.open(tmp_path / "data", failpoints=points)
    assert left(tmp_path / "data").objects == {}
