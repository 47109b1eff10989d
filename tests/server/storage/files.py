"""The files of a store: copied, cut, and read as a start would read them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from setpoint.server.storage.failpoints import Failpoints
from setpoint.server.storage.folder import Folder
from setpoint.server.storage.history import Older, ReadOlder
from setpoint.server.storage.log import Damage, Log
from setpoint.server.storage.protocol import Event, Place, Record
from setpoint.server.storage.recovery import recover
from setpoint.server.storage.retention import Keep

DATABASE, WAL = "store.db", "store.db-wal"
HEADER, FRAME = 32, 24 + 4096  # of a write-ahead log: its header, and each page in it


class Files(NamedTuple):
    """What is on disk at one moment."""

    database: bytes
    wal: bytes

    @classmethod
    def of(cls, directory: Path) -> Files:
        wal = directory / WAL
        return cls((directory / DATABASE).read_bytes(), wal.read_bytes() if wal.exists() else b"")

    def put(self, directory: Path) -> Path:
        directory.mkdir(mode=0o700)
        for name, content in ((DATABASE, self.database), (WAL, self.wal)):
            (directory / name).write_bytes(content)
            (directory / name).chmod(0o600)
        return directory


class Left(NamedTuple):
    """What a start finds."""

    revision: int
    compacted: int
    objects: dict[Place, Record]
    events: list[Event]
    damaged: tuple[Damage, ...]


def left(directory: Path, failpoints: Failpoints | None = None) -> Left:
    """Start on what is there, and say what was found."""
    folder = Folder.take(directory)
    try:
        found = recover(
            folder, held=Keep(), reader=_nothing, now=0.0, failpoints=failpoints or Failpoints({})
        )
        found.log.close()
    finally:
        folder.release()
    return Left(
        found.history.revision,
        found.history.compacted,
        {record.place: record for record in found.objects},
        found.history.everything(),
        found.damaged,
    )


async def _older(_resource: str, _namespace: str, _after: int, upto: int) -> Older:
    return Older([], upto)


def _nothing(_log: Log) -> ReadOlder:
    return _older
