"""What a start finds on disk, and what becomes of it where some of it is damaged; backups, and their return.

Promises:

1. A whole log gives exactly the objects and the history that were acknowledged, and of what was being
   written when the process ended, nothing or a beginning.
2. Damage is found: each row has its checksum, revisions above ``compacted`` have no gaps, each row names the
   one before it, and SQLite checks its own pages.
3. Damage costs what is damaged and no more.  The rest is written anew, and the damaged files stay beside it.
   An object whose newest state is damaged is gone, and no older state is shown in its place; only where so
   much is lost that nothing tells whose state it was can an older one, if it is still in the log, come back.
4. After damage, and after a backup was restored, the revision jumps ahead of all that may ever have been
   seen, and history begins there: every watch is told to list anew.
5. Whatever ends the process on the way, the next start finds the old database or the new, whole.

A database whose first page is lost cannot be read at all, and is refused: nothing starts empty by mistake.
No event loop here; ``sqlite.py`` runs it in its thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from setpoint.server.storage.failpoints import Failpoints
from setpoint.server.storage.folder import CannotOpen, Folder, sync_directory, sync_file
from setpoint.server.storage.history import History, ReadOlder
from setpoint.server.storage.log import Damage, Log, Row, read_backup, write_fresh
from setpoint.server.storage.objects import Objects
from setpoint.server.storage.protocol import Event, Place, Record
from setpoint.server.storage.retention import Keep

BUMP: Final = 1_000_000_000  # more writes than any store has seen since its last backup
_CHUNK: Final = 1_000  # events that are handed to history at once


class Recovered(NamedTuple):
    log: Log
    objects: Objects
    history: History
    damaged: tuple[Damage, ...]


def recover(
    folder: Folder, *, held: Keep, reader: Callable[[Log], ReadOlder], now: float, failpoints: Failpoints
) -> Recovered:
    """Open the database and read it whole; ``reader`` says how what is older than memory will be read."""
    try:
        log = Log.open(folder.database, failpoints)
    except sqlite3.Error as error:
        raise CannotOpen(
            f"open {folder.database}: {error} (restore a backup, or move the file away to begin with nothing)"
        ) from error
    try:
        found = _Found(log, held, reader(log), now)
        if found.damaged:
            log = _repaired(folder, log, found, failpoints)
            history = History(revision=log.revision, compacted=log.compacted, keep=held, older=reader(log))
            return Recovered(log, Objects(found.latest.values()), history, tuple(found.damaged))
    except BaseException:
        log.close()
        raise
    return Recovered(log, Objects(found.latest.values()), found.history, ())


def backup(path: str | Path, records: Iterable[Record], revision: int) -> None:
    """Write these objects to a file of their own, whole or not at all."""
    where = Path(path)
    fresh = where.with_name(f"{where.name}.new")
    write_fresh(fresh, records, revision)
    sync_file(fresh)
    fresh.rename(where)
    sync_directory(where.parent)


def restore(source: str | Path, directory: str | Path, *, failpoints: Failpoints | None = None) -> int:
    """Make a data directory of a backup; the revision that it begins at.  Raises ``CannotOpen``.

    A directory that holds a store already is refused: its data is worth a decision.
    """
    records, revision = read_backup(Path(source))
    folder = Folder.take(directory)
    try:
        if folder.database.exists():
            raise CannotOpen(
                f"restore to {folder.path}: there is a store in it already (move it away, or choose another)"
            )
        write_fresh(folder.part, records, revision + BUMP)
        _place(folder, failpoints or Failpoints())
    finally:
        folder.release()
    return revision + BUMP


class _Found:
    """What the rows of a log amount to."""

    def __init__(self, log: Log, held: Keep, older: ReadOlder, now: float) -> None:
        self.latest: dict[Place, Record] = {}
        self.damaged: list[Damage] = list(log.damaged)
        self.history = History(compacted=log.compacted, keep=held, older=older)
        if wrong := log.check():
            self.damaged.append(Damage(0, None, wrong))
        events: list[Event] = []
        for row in log.rows():
            if isinstance(row, Damage):
                self._lose(row)
                if row.revision == log.revision + 1:
                    log.revision = row.revision
                continue
            before = self._put(row)
            if row.record.revision <= log.compacted:
                continue
            self._check(row, before, log.revision + 1)
            log.revision = row.record.revision
            events.append(Event(row.type, row.record, before))
            if len(events) == _CHUNK:
                self.history.publish(events, now)
                events = []
        if events:
            self.history.publish(events, now)
        self.history.revision = log.revision

    def _put(self, row: Row) -> Record | None:
        """The state of things after the row; what was there before it."""
        before = self.latest.pop(row.record.place, None)
        if row.type != "DELETED":
            self.latest[row.record.place] = row.record
        return before

    def _lose(self, damage: Damage) -> None:
        """What its row took the place of is not the newest state, whichever of its columns is still right."""
        self.damaged.append(damage)
        if damage.place is not None:
            self.latest.pop(damage.place, None)
        for place in [place for place, old in self.latest.items() if old.revision == damage.previous]:
            del self.latest[place]

    def _check(self, row: Row, before: Record | None, expected: int) -> None:
        revision = row.record.revision
        if revision != expected:
            self.damaged.append(Damage(0, None, f"revisions {expected} to {revision - 1} are missing"))
        if row.previous != (before.revision if before else 0) and not self.damaged:
            self.damaged.append(
                Damage(revision, row.record.place, f"what it took the place of, {row.previous}, is missing")
            )


def _repaired(folder: Folder, log: Log, found: _Found, failpoints: Failpoints) -> Log:
    """A new database of all that could be read; the damaged one stays beside it."""
    highest = max(log.revision, *(damage.revision for damage in found.damaged))
    write_fresh(folder.part, found.latest.values(), highest + BUMP)
    log.close()
    _place(folder, failpoints)
    return Log.open(folder.database, failpoints)


def _place(folder: Folder, failpoints: Failpoints) -> None:
    folder.accept_part()
    failpoints.reached("fresh.written")
    folder.set_aside()
    failpoints.reached("fresh.aside")
    folder.place_fresh()
    failpoints.reached("fresh.placed")
