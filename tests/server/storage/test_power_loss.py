"""Power loss (P2, P3): what had not reached the disk is gone or torn, what was acknowledged is there.

No disk is switched off here.  What the files held at each acknowledgement is known, so the files are cut, and
filled with nothing or with rubbish, at every place where a power loss could have cut them; what then opens
must hold all that was acknowledged by that place, and be what was there at one moment.  ``SETPOINT_TORN`` is
the distance in bytes between two cuts inside of a page.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.server.storage.failpoints import Failpoints
from setpoint.server.storage.log import Log
from setpoint.server.storage.protocol import Place, Record
from setpoint.server.storage.sqlite import SqliteStore
from setpoint.testing.history_check import Recorder
from tests.server.storage.files import FRAME, HEADER, WAL, Files, Left, left
from tests.server.storage.stores import PODS, Client, encode, pod

STEP = int(os.environ.get("SETPOINT_TORN", "509"))


class Moments:
    """A store that is written to, and what it held at each revision."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.at: dict[int, dict[Place, Record]] = {1: {}}
        self.acknowledged: list[tuple[int, int]] = []  # length of the write-ahead log, revision

    async def write(self, store: SqliteStore, times: int, big: int = 0) -> None:
        client = Client("c", store, Recorder(lambda: 0), places=5, seed=big)
        for number in range(times):
            if number % 4 == 3:
                place = pod(f"big-{store.revision}")
                await asyncio.gather(
                    store.create(place, encode("x" * big)), store.create(pod("twin" + place.name), encode())
                )
                self.at.pop(store.revision - 1, None)
                await self._between(store)
            else:
                await client.write(pod(f"p{number % 5}"))
            self.at[store.revision] = {record.place: record for record in store.listed(PODS)}
            self.acknowledged.append(((self.directory / WAL).stat().st_size, store.revision))

    async def _between(self, store: SqliteStore) -> None:
        """The moment between the two writes of one commit is a moment too, though nobody saw it."""
        revision = store.revision - 1
        self.at[revision] = {record.place: record for record in await store.listed_at(PODS, "", revision)}

    def check(self, found: Left, least: int) -> None:
        assert not found.damaged
        assert found.revision >= least, f"{least} was acknowledged, and {found.revision} is the last there is"
        assert found.objects == self.at[found.revision]
        assert [event.record.revision for event in found.events] == list(
            range(found.compacted + 1 if found.compacted else 2, found.revision + 1)
        )


def _cuts(wal: bytes) -> Iterator[int]:
    """Every page's beginning, a place or two inside each, and the last pages every few bytes."""
    chance = random.Random(0)
    for start in range(HEADER, len(wal), FRAME):
        yield start
        yield start + chance.randrange(1, 24)
        yield start + chance.randrange(24, FRAME)
    yield from range(0, HEADER, 5)
    yield len(wal)
    yield from range(max(HEADER, len(wal) - 3 * FRAME), len(wal), STEP)


async def test_p02_what_was_acknowledged_survives_a_log_cut_or_torn_anywhere(tmp_path: Path) -> None:
    moments = Moments(tmp_path / "data")
    store = await SqliteStore.open(moments.directory, failpoints=Failpoints({}))
    await moments.write(store, 20, big=5_000)
    files = Files.of(moments.directory)
    await store.close()
    rubbish = random.Random(1).randbytes(len(files.wal))
    for number, cut in enumerate(_cuts(files.wal)):
        least = max((revision for length, revision in moments.acknowledged if length <= cut), default=1)
        rest = len(files.wal) - cut
        for kind, torn in (("cut", b""), ("empty", bytes(rest)), ("rubbish", rubbish[:rest])):
            lost = Files(files.database, files.wal[:cut] + torn)
            moments.check(left(lost.put(tmp_path / f"{kind}-{number}")), least)


async def test_p02_a_checkpoint_may_be_lost_page_by_page(tmp_path: Path) -> None:
    moments = Moments(tmp_path / "data")
    store = await SqliteStore.open(moments.directory, failpoints=Failpoints({}))
    await moments.write(store, 30, big=9_000)
    before = Files.of(moments.directory)
    await store._in_thread(store._log.checkpoint)
    after = Files.of(moments.directory)
    await store.close()
    assert len(after.database) > len(before.database)
    chance = random.Random(2)
    for number in range(40):
        database = bytearray(
            after.database[: chance.randrange(len(before.database), len(after.database) + 1)]
        )
        for start in range(0, len(database), 512):
            if chance.random() < 0.5:  # this sector had not reached the disk
                old = before.database[start : start + 512]
                database[start : start + 512] = old or bytes(len(database[start : start + 512]))
        lost = Files(bytes(database), before.wal)
        moments.check(left(lost.put(tmp_path / f"mixed-{number}")), store.revision)


async def test_p02_a_log_that_begins_again_may_be_torn_anywhere(tmp_path: Path) -> None:
    """After a checkpoint the log is written from its beginning, over what it held before."""
    moments = Moments(tmp_path / "data")
    store = await SqliteStore.open(moments.directory, failpoints=Failpoints({}))
    await moments.write(store, 20, big=5_000)
    await store._in_thread(store._log.checkpoint)
    checkpointed = store.revision
    before = Files.of(moments.directory)
    await moments.write(store, 1)
    after = Files.of(moments.directory)
    await store.close()
    assert after.database == before.database
    assert len(after.wal) == len(before.wal)
    changed = max(i for i, (a, b) in enumerate(zip(before.wal, after.wal, strict=True)) if a != b) + 1
    for number, cut in enumerate([*range(HEADER + 24), *range(HEADER + 24, changed, STEP), changed]):
        lost = Files(after.database, after.wal[:cut] + before.wal[cut:])
        least = store.revision if cut == changed else checkpointed
        moments.check(left(lost.put(tmp_path / f"cut-{number}")), least)


async def test_p03_whoever_sees_a_revision_sees_it_after_a_loss_at_that_very_moment(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    store = await SqliteStore.open(directory, failpoints=Failpoints({}))
    watch = store.watch(PODS, "", 1)
    writes = [asyncio.ensure_future(store.create(pod(str(number)), encode())) for number in range(10)]
    seen = 1
    while seen < 30:
        if store.revision > seen:
            seen = store.revision
            found = left(Files.of(directory).put(tmp_path / f"moment-{seen}"))
            assert found.revision >= max(seen, watch.progress)
            writes += [
                asyncio.ensure_future(store.create(pod(f"{seen}-{number}"), encode())) for number in range(3)
            ]
            await watch.next()
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    await store.close()


async def test_p02_the_database_is_told_to_wait_for_the_disk(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "data", failpoints=Failpoints({}))

    def pragma(name: str) -> object:
        return store._log._database.execute(f"PRAGMA {name}").fetchone()[0]

    said = {
        name: await store._in_thread(pragma, name) for name in ("journal_mode", "synchronous", "fullfsync")
    }
    await store.close()
    assert said == {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1}


@pytest.mark.parametrize("pages", [1, 7])
async def test_p18_checkpoints_while_writing_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    monkeypatch.setattr(Log, "PAGES", pages)
    moments = Moments(tmp_path / "data")
    store = await SqliteStore.open(moments.directory, failpoints=Failpoints({}))
    for number in range(8):
        await moments.write(store, 4, big=2_000 + number)
        found = left(Files.of(moments.directory).put(tmp_path / f"copy-{number}"))
        moments.check(found, store.revision)
    await store.close()
