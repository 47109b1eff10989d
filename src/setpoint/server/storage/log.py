"""The log on disk: every write is one row, and a row once committed is durable.

One table holds it all.  A row is an object as it was written at one revision, and names the row that it took
the place of; the newest row of a place is the object, unless it is a deletion.  So one write is one insert,
and nothing on disk can disagree with anything else on disk.

Promises:

1. ``append`` returns when its events are on the disk, all of them: SQLite's write-ahead log with
   ``synchronous=FULL``, one statement and one fsync for all.
2. If ``append`` raises, none of them is on the disk, now or after a crash.  The one exception says so:
   ``Unsettled``, where a commit failed in its fsync and could not be taken back.  Nothing else is written
   until it is taken back, so no revision is on disk twice.
3. Revisions above ``compacted`` have no gaps, and one is never taken again: the highest is kept even where
   its row is gone.
4. ``forget`` removes only what neither an object nor a watch above ``compacted`` needs.  Each call is one
   small transaction that a crash leaves done or undone.
5. Each row carries a checksum.  What is damaged is named, and does not keep the rest from being read.

Nothing here waits or knows of the event loop: ``sqlite.py`` calls it in one thread.  No other process can
have the database open (``locking_mode=EXCLUSIVE``), so none can hold up a checkpoint.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from sys import intern
from typing import Any, ClassVar, Final, NamedTuple

from setpoint.server.storage.failpoints import Failpoints
from setpoint.server.storage.folder import CannotOpen, create_file, sync_directory, sync_file
from setpoint.server.storage.history import FIRST, Older
from setpoint.server.storage.protocol import Compacted, Event, EventType, Place, Record

VERSION: Final = 1  # of the schema
_APPLICATION: Final = 0x5E7B0127  # in the file's header: this database is ours
MOST_EVENTS: Final = 100  # in one append: an old SQLite takes 999 values in a statement, and each has nine
_PAGE: Final = 4096
_WINDOW: Final = 2_000  # revisions that one read of what is older looks through
_PIECE: Final = 500  # events that one such read gives

# A write that failed is of a frame that is not whole, so the commit is not in the log, whatever happens next.
_NOT_COMMITTED: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})

_TYPES: Final[tuple[EventType, ...]] = ("ADDED", "MODIFIED", "DELETED")
_NUMBERS: Final = {each: number for number, each in enumerate(_TYPES)}
_DELETED: Final = _NUMBERS["DELETED"]

_SCHEMA: Final = f"""
CREATE TABLE log (
    revision  INTEGER PRIMARY KEY,
    type      INTEGER NOT NULL,
    resource  TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    created   INTEGER NOT NULL,
    previous  INTEGER NOT NULL,  -- the row that it took the place of, or 0
    checksum  INTEGER NOT NULL,
    data      BLOB NOT NULL
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {VERSION};
"""
_ROW: Final = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT: Final = f"INSERT INTO log VALUES {_ROW}"  # noqa: S608 - the values come apart from it
_ALL: Final = "SELECT * FROM log ORDER BY revision"
_ONE: Final = "SELECT * FROM log WHERE revision = ?"
_OLDER: Final = """
SELECT event.*, before.* FROM log AS event LEFT JOIN log AS before ON before.revision = event.previous
WHERE event.revision > ? AND event.revision <= ? AND event.resource = ? AND ? IN ('', event.namespace)
ORDER BY event.revision LIMIT ?
"""
# What the rows of these revisions took the place of, and those of them that are deletions.
_SUPERSEDED: Final = """
DELETE FROM log WHERE revision IN
    (SELECT previous FROM log WHERE revision > ? AND revision <= ? AND previous > 0)
"""
_TOMBSTONES: Final = "DELETE FROM log WHERE revision > ? AND revision <= ? AND type = ?"

_Values = tuple[int, int, str, str, str, int, int, int, bytes]


class Row(NamedTuple):
    """A row that is as it was written."""

    type: EventType
    record: Record
    previous: int


class Damage(NamedTuple):
    """Something that was written and cannot be read."""

    revision: int  # 0 where that is not known
    place: Place | None  # as far as it can be read, and it may be this that is damaged
    why: str
    previous: int = 0  # likewise


class Unsettled(Exception):
    """A commit failed, and a start may find it on the disk or not: it could not be taken back."""


class Log:
    """An open database."""

    STEP: ClassVar = 250  # revisions in one step of compaction
    PAGES: ClassVar = 1_000  # in the write-ahead log: so many call for a checkpoint

    def __init__(self, database: sqlite3.Connection, path: Path, failpoints: Failpoints) -> None:
        self._database = database
        self._path = path
        self._failpoints = failpoints
        self._refused = False  # a refusal is to be cleared away before anything else is written
        self._pages = 0  # about as many are in the write-ahead log
        self.compacted = 0
        self.revision = FIRST  # the last that was committed; what is in the rows, the one who reads them says
        self.damaged: tuple[Damage, ...] = ()  # found in opening it

    def __repr__(self) -> str:
        return f"<Log {self._path} {self.compacted} to {self.revision}>"

    @classmethod
    def open(cls, path: Path, failpoints: Failpoints) -> Log:
        """Make the database where there is none.  Raises ``CannotOpen``, and sqlite3's errors for damage."""
        create_file(path)
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _configure(database, path)
            log = cls(database, path, failpoints)
            try:
                log.compacted = _meta(database, "compacted", 0)
                log.revision = max(_meta(database, "revision", FIRST), log.compacted)
            except sqlite3.DatabaseError as error:
                log.damaged = (Damage(0, None, str(error)),)
            sync_directory(path.parent)
        except BaseException:
            database.close()
            raise
        return log

    def close(self) -> None:
        """SQLite makes a last checkpoint; where the disk refuses even that, the next start does it."""
        with contextlib.suppress(sqlite3.Error):
            self._database.close()

    # ── Reading ─────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> str:
        """What SQLite finds wrong with the file; "" if nothing."""
        try:
            (said,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            return str(error)
        return "" if said == "ok" else str(said)

    def rows(self) -> Iterator[Row | Damage]:
        """All, by revision.  Damaged ones are told as such; the rest is given all the same."""
        last = 0
        try:
            for values in self._database.execute(_ALL):
                last = values[0]
                yield _row(values)
        except sqlite3.DatabaseError as error:
            yield Damage(0, None, f"after revision {last}: {error}")
            yield from self._one_by_one(last + 1)

    def _one_by_one(self, first: int) -> Iterator[Row | Damage]:
        """What can still be reached past a damaged page, each row by its own way down the tree."""
        try:
            (last,) = self._database.execute("SELECT max(revision) FROM log").fetchone()
        except sqlite3.DatabaseError:
            last = None
        missed = 0
        revision = first
        while missed < _WINDOW if last is None else revision <= last:
            try:
                values = self._database.execute(_ONE, (revision,)).fetchone()
            except sqlite3.DatabaseError as error:
                yield Damage(revision, None, str(error))
                values = None
            missed = 0 if values else missed + 1
            if values:
                yield _row(values)
            revision += 1

    def older(self, resource: str, namespace: str, after: int, upto: int) -> Older:
        """A piece of the events above ``after``, and up to where it goes.  Raises ``Compacted``."""
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        end = min(upto, after + _WINDOW)
        found = self._database.execute(_OLDER, (after, end, resource, namespace, _PIECE)).fetchall()
        events: list[Event] = []
        for values in found:
            row, before = _row(values[:9]), _row(values[9:]) if values[6] else None
            if isinstance(row, Damage) or isinstance(before, Damage):
                raise Compacted(after, values[0])  # as good as gone: the watcher lists anew
            events.append(Event(row.type, row.record, before.record if before else None))
        return Older(events, events[-1].record.revision if len(events) == _PIECE else end)

    # ── Writing ─────────────────────────────────────────────────────────────────────────────────────

    def append(self, events: Sequence[Event]) -> None:
        """Make them durable, at most ``MOST_EVENTS``, with one fsync."""
        self._settle()
        self._failpoints.reached("write.begin")
        values: list[int | str | bytes] = []
        pages = 1
        for event in events:
            values += _values(event)
            pages += len(event.record.data) // _PAGE + 1
        try:
            # One statement, which is a transaction by itself: each call into SQLite lets go of the
            # interpreter, and then waits for the event loop to give it back.  In this one is the fsync.
            self._database.execute(_INSERT + f", {_ROW}" * (len(events) - 1), values)
            self._failpoints.reached("write.committed")  # an error here: it is on disk, and said not to be
        except BaseException as error:
            self._take_back(error)
            raise
        self.revision = events[-1].record.revision
        self._pages += pages

    def forget(self, upto: int) -> None:
        """One step towards ``compacted == upto``."""
        self._settle()
        self._failpoints.reached("compaction.begin")
        first, last = self.compacted, min(self.compacted + self.STEP, upto)
        with self._transaction():
            gone = self._database.execute(_SUPERSEDED, (first, last)).rowcount
            gone += self._database.execute(_TOMBSTONES, (first, last, _DELETED)).rowcount
            _set_meta(self._database, "compacted", last)
            self._failpoints.reached("compaction.deleted")
        self.compacted = last
        self._pages += gone + 2
        self._failpoints.reached("compaction.committed")

    @property
    def wants_checkpoint(self) -> bool:
        return self._pages >= self.PAGES

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database, so that it does not grow."""
        self._failpoints.reached("checkpoint.begin")
        self._pages = 0  # a checkpoint that fails is tried again when as much has been written again
        self._database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._failpoints.reached("checkpoint.end")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit at the end; whatever goes wrong on the way, nothing of it was written."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")  # here the write-ahead log is written, and here is the fsync
        except BaseException as error:
            self._refused = self._refused or _may_be_committed(error)
            with contextlib.suppress(sqlite3.Error):
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
            raise

    def _take_back(self, error: BaseException) -> None:
        """Make sure that a commit that failed is not on the disk.  Raises ``Unsettled`` where that fails."""
        if not _may_be_committed(error):
            return
        self._refused = True
        try:
            self._settle()
        except (sqlite3.Error, OSError) as settling:
            raise Unsettled(f"{error}, and it could not be taken back: {settling}") from error

    def _settle(self) -> None:
        """Clear away what was refused.

        A commit that failed in its fsync may have left whole frames in the write-ahead log, which the next
        start would take for committed.  Taking out what is above the last acknowledged revision and
        emptying the log makes sure that it is gone; until that succeeds, nothing else is written.  The
        empty log is synced, because a power loss could bring the frames back otherwise.
        """
        if not self._refused:
            return
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        self._database.execute("DELETE FROM log WHERE revision > ?", (self.revision,))
        busy, *_ = self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("the write-ahead log could not be emptied")
        self._failpoints.reached("settle.truncated")
        sync_file(Path(f"{self._path}-wal"))
        self._pages = 0
        self._refused = False


def _may_be_committed(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", None) not in _NOT_COMMITTED


def write_fresh(path: Path, records: Iterable[Record], revision: int) -> None:
    """A database of its own at ``path``: these objects, no history, and ``revision`` as its last."""
    path.unlink(missing_ok=True)
    create_file(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as database:
        database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL;" + _SCHEMA)
        database.execute("BEGIN")
        database.executemany(
            _INSERT,
            (
                _values(Event("ADDED" if record.created == record.revision else "MODIFIED", record, None))
                for record in sorted(records, key=lambda record: record.revision)
            ),
        )
        _set_meta(database, "compacted", revision)
        _set_meta(database, "revision", revision)
        database.execute("COMMIT")


def read_backup(path: Path) -> tuple[list[Record], int]:
    """What ``write_fresh`` wrote.  Raises ``CannotOpen`` where anything is wrong with it."""
    doing = f"read the backup {path}"
    if not path.is_file():
        raise CannotOpen(f"{doing}: there is no such file")
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as database:
            _check_header(database, path)
            rows = [_row(values) for values in database.execute(_ALL)]
            revision = _meta(database, "revision", 0)
    except sqlite3.DatabaseError as error:
        raise CannotOpen(f"{doing}: {error}") from error
    damaged = [row for row in rows if isinstance(row, Damage)]
    if damaged or not revision:
        raise CannotOpen(f"{doing}: it is damaged ({damaged[0].why if damaged else 'it has no revision'})")
    return [row.record for row in rows if isinstance(row, Row)], revision


# ── The file ────────────────────────────────────────────────────────────────────────────────────────


def _configure(database: sqlite3.Connection, path: Path) -> None:
    """Before the first read, for exclusive locking without shared memory; then make the tables, if none."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    if database.execute("PRAGMA schema_version").fetchone() == (0,):
        database.executescript("BEGIN IMMEDIATE;" + _SCHEMA + "COMMIT;")
    _check_header(database, path)
    for pragma in (
        "synchronous = FULL",
        "fullfsync = ON",  # macOS: through the disk's own cache
        "checkpoint_fullfsync = ON",
        "wal_autocheckpoint = 0",  # we say when
        "journal_size_limit = 67108864",
        "cell_size_check = ON",
        "trusted_schema = OFF",
        "cache_size = -4096",  # reads come from memory, not from here
    ):
        database.execute(f"PRAGMA {pragma}")
    (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
    (sync,) = database.execute("PRAGMA synchronous").fetchone()
    if mode != "wal" or sync != 2:
        raise CannotOpen(
            f"open {path}: SQLite says journal_mode={mode}, synchronous={sync}: writes would not be durable"
            " (is this a network file system? choose a local directory)"
        )


def _check_header(database: sqlite3.Connection, path: Path) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise CannotOpen(f"open {path}: it is a database, but not one of Setpoint's")
    if version != VERSION:
        raise CannotOpen(
            f"open {path}: it has schema version {version}, and this Setpoint knows {VERSION}"
            " (use the Setpoint that wrote it)"
        )


def _meta(database: sqlite3.Connection, name: str, default: int) -> int:
    found = database.execute("SELECT value, checksum FROM meta WHERE name = ?", (name,)).fetchone()
    if found is None:
        return default
    value, checksum = found
    if checksum != zlib.crc32(f"{name}={value}".encode()):
        raise sqlite3.DatabaseError(f"{name} has a wrong checksum")
    return int(value)


def _set_meta(database: sqlite3.Connection, name: str, value: int) -> None:
    database.execute(
        "INSERT OR REPLACE INTO meta (name, value, checksum) VALUES (?, ?, ?)",
        (name, value, zlib.crc32(f"{name}={value}".encode())),
    )


# ── A row ───────────────────────────────────────────────────────────────────────────────────────────


def _values(event: Event) -> _Values:
    record = event.record
    head = (
        record.revision,
        _NUMBERS[event.type],
        *record.place,
        record.created,
        event.previous.revision if event.previous else 0,
    )
    return *head, _checksum(head, record.data), record.data


def _row(values: Sequence[Any]) -> Row | Damage:
    """The row, if it is as it was written."""
    revision, number, resource, namespace, name, created, previous, checksum, data = values
    try:
        place = Place(intern(resource), intern(namespace), name)  # of few resources and namespaces, many rows
        right = checksum == _checksum((revision, number, *place, created, previous), data)
    except TypeError:
        return Damage(revision, None, "it is no row of ours", previous)
    if not right:
        return Damage(revision, place, "its checksum is wrong", previous)
    return Row(_TYPES[number], Record(place, revision, created, data), previous)


def _checksum(head: tuple[int, int, str, str, str, int, int], data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32("\0".join(map(str, head)).encode(errors="surrogatepass")))
