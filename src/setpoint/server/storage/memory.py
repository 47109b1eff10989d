"""The store that lives as long as the process: for tests, demos and whatever needs no disk.

It keeps the promises of ``protocol.py`` with no thread, no task and no wait: a write is done when it is
asked for, so that in virtual time every run is the same.  History is kept as ``Keep`` says and forgotten as
it is written, a little at a time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from setpoint.server.storage.history import Closed, History
from setpoint.server.storage.objects import Objects
from setpoint.server.storage.protocol import Changed, Encode, Event, EventType, Place, Record
from setpoint.server.storage.reads import Reads
from setpoint.server.storage.retention import Keep

_STEP: Final = 1_000  # revisions that are forgotten before others have their turn


class MemoryStore(Reads):
    """Objects and history in memory alone."""

    def __init__(
        self, *, keep: Keep | None = None, objects: Objects | None = None, history: History | None = None
    ) -> None:
        """Empty, unless it goes on from ``objects`` and their ``history``."""
        super().__init__(
            Objects() if objects is None else objects, History(keep=keep) if history is None else history
        )
        self._closed = False

    async def create(self, place: Place, encode: Encode) -> Record:
        self._check_open()
        found = self.get(place)
        if found is not None:
            raise Changed(place, found)
        revision = self.revision + 1
        record = Record(place, revision, revision, encode(revision))
        self._apply([Event("ADDED", record, None)])
        return record

    async def update(self, place: Place, encode: Encode, seen: int) -> Record:
        return self._replace("MODIFIED", place, encode, seen)

    async def delete(self, place: Place, encode: Encode, seen: int) -> Record:
        return self._replace("DELETED", place, encode, seen)

    async def compact(self, revision: int) -> None:
        target = min(revision, self.revision)
        while self.compacted < target:
            self._history.forget(min(target, self.compacted + _STEP))
            await asyncio.sleep(0)

    async def close(self) -> None:
        self._closed = True
        self._history.close()

    def _replace(self, type_: EventType, place: Place, encode: Encode, seen: int) -> Record:
        self._check_open()
        found = self.get(place)
        if found is None or found.revision != seen:
            raise Changed(place, found)
        revision = self.revision + 1
        record = Record(place, revision, found.created, encode(revision))
        self._apply([Event(type_, record, found)])
        return record

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the store is closed: nothing is written any more")
