"""The store that survives: what is acknowledged is on disk, and memory shows what is on disk.

Memory is where reads come from, SQLite is the log behind it.  A write goes this way:

    asked ─► waits for its turn ─► in the thread: judged, given its revision, encoded, committed
        ─► in the event loop: applied to memory, published to watches, acknowledged

Promises, beside those of ``protocol.py``:

1. All who wait are committed together: one statement, one fsync, in one thread.  While that runs, the
   next ones gather, and the thread goes on with them by itself: the disk does not wait for the event loop.
2. Writes are judged against what is durable and nothing else.  Of several writes to one place, one is in a
   commit; the others are judged when it can be seen in memory.
3. Revisions are handed out when a commit is made up, from the last durable one: a commit that is refused
   takes none with it.
4. A commit that fails is ``Unwritable`` for those in it where none of it is on the disk, and
   ``OutcomeUnknown`` where that is not certain.  Reads go on, and so do writes once the disk allows.
5. Compaction and checkpoints are small steps between two commits.  A watch that stands further back than
   memory reads from disk, in pieces, through the same thread.

Not here: the rows (``log.py``), what a start does (``recovery.py``), who may open the directory
(``folder.py``).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeVar

from setpoint.server.storage import recovery
from setpoint.server.storage.failpoints import Failpoints
from setpoint.server.storage.folder import Folder
from setpoint.server.storage.history import Closed, Older, ReadOlder
from setpoint.server.storage.log import MOST_EVENTS, Damage, Log, Unsettled
from setpoint.server.storage.protocol import (
    Changed,
    Encode,
    Event,
    EventType,
    OutcomeUnknown,
    Place,
    Record,
    StorageError,
    Unwritable,
)
from setpoint.server.storage.reads import Reads
from setpoint.server.storage.retention import Keep, Retention
from setpoint.server.storage.thread import DiskThread

log = logging.getLogger("setpoint.storage")

KEEP: Final = Keep(bytes=2 * 1024 * 1024 * 1024)  # on disk
HELD: Final = Keep(seconds=0, events=10_000, bytes=64 * 1024 * 1024)  # in memory
_FAILED: Final = "the store failed before it answered"
_MOST_BYTES = 8 * 1024 * 1024  # in one commit

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Write:
    """Someone who waits for a write."""

    type: EventType
    place: Place
    encode: Encode
    seen: int | None  # None: nothing is there
    done: asyncio.Future[Record]


_Batch = list[tuple[_Write, Event]]


@dataclass(frozen=True, slots=True)
class Stats:
    """What there is, and what was done since the start."""

    objects: int
    events: int  # in memory
    watches: int
    revision: int
    compacted: int
    to_compact: int  # revisions that compaction is behind
    waiting: int  # writes
    writes: int
    commits: int
    refused: int  # commits
    damaged: int


class SqliteStore(Reads):
    """Objects and history in a data directory; ``open`` makes one."""

    def __init__(
        self,
        folder: Folder,
        recovered: recovery.Recovered,
        thread: DiskThread,
        keep: Keep,
        failpoints: Failpoints,
    ) -> None:
        super().__init__(recovered.objects, recovered.history)
        self.damaged: tuple[Damage, ...] = recovered.damaged
        self._folder = folder
        self._log: Log = recovered.log
        self._thread = thread
        self._failpoints = failpoints
        self._retention = Retention(keep)
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Write] = deque()  # the loop puts in, the thread takes out
        self._unapplied: set[Place] = set()  # in a commit, and not in memory yet
        self._asked = asyncio.Event()
        self._bug: Exception | None = None  # why nothing can be seen any more
        self._closing = False  # nothing more is taken
        self._closed = False  # all is let go of, or is about to be
        self._target = self.compacted  # up to which compaction is to go
        self._compactions: list[tuple[int, asyncio.Future[None]]] = []
        self._writes = self._commits = self._refused = 0
        self._trouble = ""  # with the last commit
        self._retention.note(asyncio.get_running_loop().time(), self.revision, 0)
        self._writer = asyncio.create_task(self._run(), name=f"setpoint-storage-{folder.path.name}")

    @classmethod
    async def open(
        cls,
        directory: str | Path,
        *,
        keep: Keep = KEEP,
        held: Keep = HELD,
        failpoints: Failpoints | None = None,
    ) -> Self:
        """Open the store in ``directory``, made where there is none.  Raises ``CannotOpen``.

        ``keep`` is what history there must be, ``held`` the part of it that is held in memory.
        """
        points = failpoints or Failpoints()
        loop = asyncio.get_running_loop()
        thread = DiskThread("setpoint-storage")

        def reader(log: Log) -> ReadOlder:
            async def older(resource: str, namespace: str, after: int, upto: int) -> Older:
                return await thread.do(log.older, resource, namespace, after, upto)

            return older

        def recover() -> tuple[Folder, recovery.Recovered]:
            folder = Folder.take(directory)
            try:
                return folder, recovery.recover(
                    folder, held=held, reader=reader, now=loop.time(), failpoints=points
                )
            except BaseException:
                folder.release()
                raise

        try:
            folder, recovered = await thread.do(recover)
        except BaseException:
            thread.end()
            raise
        store = cls(folder, recovered, thread, keep, points)
        for damage in store.damaged[:20]:
            log.error(
                "%s was damaged: revision %s, %s: %s", folder.path, damage.revision, damage.place, damage.why
            )
        return store

    def trouble(self) -> str:
        """The writer has ended, or its last commit was refused; the next one that is not says otherwise."""
        return "the store is closed" if self._writer.done() else self._trouble

    def stats(self) -> Stats:
        return Stats(
            objects=len(self._objects),
            events=len(self._history),
            watches=len(self._history.open),
            revision=self.revision,
            compacted=self.compacted,
            to_compact=self._target - self._log.compacted,
            waiting=len(self._queue),
            writes=self._writes,
            commits=self._commits,
            refused=self._refused,
            damaged=len(self.damaged),
        )

    async def create(self, place: Place, encode: Encode) -> Record:
        return await self._write("ADDED", place, encode, None)

    async def update(self, place: Place, encode: Encode, seen: int) -> Record:
        return await self._write("MODIFIED", place, encode, seen)

    async def delete(self, place: Place, encode: Encode, seen: int) -> Record:
        return await self._write("DELETED", place, encode, seen)

    async def compact(self, revision: int) -> None:
        """Returns when it is done.  Raises ``Unwritable``."""
        self._check_open()
        target = min(revision, self.revision)
        if target <= self._log.compacted:
            return
        done = asyncio.get_running_loop().create_future()
        self._compactions.append((target, done))
        self._compact_to(target)
        await done

    async def backup(self, path: str | Path) -> int:
        """Write all objects as they are now to a file, while writes go on; the revision it was made at.

        ``recovery.restore`` makes a data directory of it.
        """
        records, revision = list(self._objects), self.revision
        await asyncio.to_thread(recovery.backup, path, records, revision)
        return revision

    async def close(self) -> None:
        """Write what was asked for, end the watches, and let go of the directory."""
        if self._closed:
            return
        self._closed = self._closing = True
        self._asked.set()
        try:
            await self._writer
        finally:
            self._history.close()
            await self._in_thread(self._log.close)
            self._thread.end()
            self._folder.release()

    # ── One write ───────────────────────────────────────────────────────────────────────────────────

    async def _write(self, type_: EventType, place: Place, encode: Encode, seen: int | None) -> Record:
        self._check_open()
        "".join(place).encode()  # a name that is no text would fail all who are in its commit
        self._judge(place, seen)
        write = _Write(type_, place, encode, seen, asyncio.get_running_loop().create_future())
        self._queue.append(write)
        self._asked.set()
        return await write.done

    def _judge(self, place: Place, seen: int | None) -> Record | None:
        """What is there, if it is as the writer saw it."""
        found = self._objects.get(place)
        if (found.revision if found else None) != seen:
            raise Changed(place, found)
        return found

    def _check_open(self) -> None:
        if self._closing:
            raise Closed("the store is closed: nothing is written any more")

    # ── All of them ─────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> None:
        """Commit what is asked for until closed, and between two commits keep house."""
        try:
            while True:
                if self._queue:
                    await self._in_thread(self._commit)
                    if self._bug is not None:
                        raise self._bug
                if self._log.wants_checkpoint:  # first: one that waits for all of compaction takes long
                    await self._checkpoint()
                elif self._log.compacted < self._target:
                    await self._compact_a_step()
                elif not self._queue:
                    if self._closing:
                        return
                    self._asked.clear()
                    await self._asked.wait()
        finally:
            self._closing = True
            self._fail([write.done for write in self._queue], Closed("the store was closed"))
            self._fail([done for _, done in self._compactions], Closed("the store was closed"))

    # These two are called in the thread.  What it shares with the event loop is changed by one step of the
    # interpreter at a time, and of a place in ``_unapplied`` the thread reads nothing.

    def _commit(self) -> None:
        """Commit what is asked for, as long as there is nothing else to do here."""
        while batch := self._gather():
            try:
                self._log.append([event for _, event in batch])
            except (sqlite3.Error, OSError, Unsettled) as error:
                self._tell(self._refuse, batch, error)
            except BaseException:
                self._tell(self._fail, [write.done for write, _ in batch], Closed(_FAILED))
                raise
            else:
                self._tell(self._committed, batch)
            is_house_to_be_kept = self._log.wants_checkpoint or self._log.compacted < self._target
            if is_house_to_be_kept or self._thread.is_wanted or self._bug is not None:
                return

    def _gather(self) -> _Batch:
        """Those that wait, judged and encoded.  A second write to one place stays for the next commit."""
        batch: _Batch = []
        later: list[_Write] = []
        revision, size = self._log.revision, 0
        while self._queue and len(batch) < MOST_EVENTS and size < _MOST_BYTES:
            write = self._queue.popleft()
            if write.done.done():  # whoever asked has gone away
                continue
            if write.place in self._unapplied:
                later.append(write)
                continue
            try:
                found = self._judge(write.place, write.seen)
                data = write.encode(revision + 1)
            except Exception as error:  # noqa: BLE001 - it is the writer's own
                self._tell(self._fail, [write.done], error)
                continue
            revision += 1
            size += len(data)
            self._unapplied.add(write.place)
            record = Record(write.place, revision, found.created if found else revision, data)
            batch.append((write, Event(write.type, record, found)))
        self._queue.extendleft(reversed(later))
        return batch

    def _tell(self, function: Callable[..., None], *args: object) -> None:
        """In the event loop, in the order of telling."""
        with suppress(RuntimeError):  # it is closed: nobody waits any more
            self._loop.call_soon_threadsafe(function, *args)

    def _refuse(self, batch: _Batch, error: Exception) -> None:
        self._unapplied.difference_update([write.place for write, _ in batch])
        self._refused += 1
        failed = f"write to {self._folder.path}: {error}"
        refusal: StorageError
        if isinstance(error, Unsettled):
            refusal = OutcomeUnknown(
                f"{failed}; whether it was written is not known: the object may be there after a restart. "
                "Until the disk lets it be taken back, nothing else is written; reads go on"
            )
        else:
            refusal = Unwritable(f"{failed}; nothing was written, and reads go on")
        log.warning("%s", refusal)
        self._trouble = str(refusal)
        self._fail([write.done for write, _ in batch], refusal)

    def _committed(self, batch: _Batch) -> None:
        """It is durable: let it be seen.  Should that fail, nothing more is written."""
        try:
            if self._bug is None:
                self._show(batch)
        except Exception as error:  # noqa: BLE001 - the writer raises it
            self._bug, self._closing = error, True
        self._fail([write.done for write, _ in batch], Closed(_FAILED))  # those who have no answer yet

    def _show(self, batch: _Batch) -> None:
        events = [event for _, event in batch]
        self._apply(events)
        self._unapplied.difference_update([write.place for write, _ in batch])
        self._failpoints.reached("write.applied")
        for write, event in batch:
            if not write.done.done():
                write.done.set_result(event.record)
        self._failpoints.reached("write.acknowledged")
        self._trouble = ""
        self._writes += len(batch)
        self._commits += 1
        size = sum(len(event.record.data) for event in events)
        self._retention.note(self._loop.time(), self.revision, size)
        self._look_at_the_clock()

    def _fail(self, waiting: Sequence[asyncio.Future[T]], error: Exception) -> None:
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    # ── Keeping house ───────────────────────────────────────────────────────────────────────────────

    def _look_at_the_clock(self) -> None:
        if target := self._retention.due(self._loop.time(), self.revision):
            self._compact_to(target)

    def _compact_to(self, target: int) -> None:
        """From now on nothing up to ``target`` is promised; the rows go in small steps."""
        self._target = max(self._target, target)
        self._history.compacted = max(self._history.compacted, target)
        self._asked.set()

    async def _compact_a_step(self) -> None:
        try:
            await self._in_thread(self._log.forget, self._target)
        except (sqlite3.Error, OSError) as error:
            log.warning("compact %s: %s; it is tried again later", self._folder.path, error)
            self._target = self._log.compacted
            refused = [done for _, done in self._compactions]
            self._compactions = []
            self._fail(refused, Unwritable(f"compact {self._folder.path}: {error}"))
            return
        self._history.forget(self._log.compacted)
        still = [(target, done) for target, done in self._compactions if target > self._log.compacted]
        for target, done in self._compactions:
            if target <= self._log.compacted and not done.done():
                done.set_result(None)
        self._compactions = still

    async def _checkpoint(self) -> None:
        try:
            await self._in_thread(self._log.checkpoint)
        except (sqlite3.Error, OSError) as error:
            log.warning("checkpoint of %s: %s; it is tried again later", self._folder.path, error)

    # ── What is older than memory ───────────────────────────────────────────────────────────────────

    async def _events_after(self, resource: str, namespace: str, revision: int) -> Sequence[Event]:
        """From disk too, while others go on."""
        events: list[Event] = []
        while revision < self._history.floor:
            floor = self._history.floor
            older = await self._in_thread(self._log.older, resource, namespace, revision, floor)
            events += older.events
            revision = older.reached
        return [*events, *self._history.after(resource, namespace, revision)]

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        return await self._thread.do(function, *args)
