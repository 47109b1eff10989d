"""All that may be seen of a store: current objects and history, moved on together.

Promises:

1. ``_apply`` is the only way in, and it is one step of the event loop: whoever reads sees all of a write,
   object, history and event, or none of it.
2. A list at an old revision is what was there then, for as long as that is not compacted.  A page of one
   costs as much as the page (``versions.py``); only one further back than memory is worked out from disk.

Not here: when something is durable.  ``memory.py`` and ``sqlite.py`` stand on this, and apply what they have
written.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from setpoint.server.storage.history import History
from setpoint.server.storage.objects import Objects, order
from setpoint.server.storage.protocol import Compacted, Event, Place, Record, Watch
from setpoint.server.storage.versions import Versions

_SNAPSHOTS: Final = 8  # lists worked out from disk that are kept for their next page


class Reads:
    """The reading half of a store."""

    def __init__(self, objects: Objects, history: History) -> None:
        self._objects = objects
        self._history = history
        self._snapshots: dict[tuple[str, str, int], list[Record]] = {}
        self._forgotten = history.floor  # up to which the versions were told
        self._versions = Versions(objects, history.floor)
        for event in history.everything():
            self._versions.note(event)
        self._told: dict[str, list[Callable[[], None]]] = {}  # who wants to know, by resource

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._objects)} objects at {self.revision}>"

    @property
    def revision(self) -> int:
        return self._history.revision

    @property
    def compacted(self) -> int:
        return self._history.compacted

    def get(self, place: Place) -> Record | None:
        return self._objects.get(place)

    def listed(self, resource: str, namespace: str = "") -> list[Record]:
        return self._objects.listed(resource, namespace)

    async def listed_at(self, resource: str, namespace: str, revision: int) -> list[Record]:
        """As it was at ``revision``.  Raises ``Compacted``; a revision to come is taken for the newest."""
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        if revision >= self._versions.floor:
            return list(self._versions.listed_from(resource, namespace, revision, None))
        key = resource, namespace, revision
        snapshot = self._snapshots.pop(key, None)
        if snapshot is None:
            events = await self._events_after(resource, namespace, revision)
            if revision < self.compacted:  # while it was read
                raise Compacted(revision, self.compacted)
            if not events:
                return self._objects.listed(resource, namespace)
            snapshot = _undone(self._objects.listed(resource, namespace), events)
        self._hold(key, snapshot)
        return list(snapshot)

    async def listed_from(
        self, resource: str, namespace: str, revision: int, after: tuple[str, str] | None
    ) -> Iterator[Record]:
        """As it was at ``revision``, above ``after`` in ``order``.  Raises ``Compacted``.

        To be taken before anything else is awaited.
        """
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        if revision >= self._versions.floor:
            return self._versions.listed_from(resource, namespace, revision, after)
        records = await self.listed_at(resource, namespace, revision)
        start = bisect_right(records, after, key=lambda one: order(one.place)) if after else 0
        return islice(records, start, None)

    def count(self, resource: str, namespace: str, revision: int) -> int | None:
        """How many were there at ``revision``; None where that is not known without the disk."""
        if revision < self._versions.floor:
            return None
        if revision >= self.revision:
            return self._objects.count(resource, namespace)
        return self._versions.count(resource, namespace, revision)

    def hold(self, revision: int) -> None:
        """A list at ``revision`` has a next page: keep what it needs in memory for a while."""
        self._versions.hold(revision, asyncio.get_running_loop().time())

    def watch(self, resource: str, namespace: str, after: int) -> Watch:
        return self._history.watch(resource, namespace, after)

    def on_write(self, resource: str, call: Callable[[], None]) -> None:
        self._told.setdefault(resource, []).append(call)

    async def _events_after(self, resource: str, namespace: str, revision: int) -> Sequence[Event]:
        """All above ``revision``, which is not compacted; and up to the newest, when it returns."""
        return self._history.after(resource, namespace, revision)

    def trouble(self) -> str:
        return ""

    def _apply(self, events: Sequence[Event]) -> None:
        """These are written: let them be seen."""
        for event in events:
            if event.type == "DELETED":
                self._objects.remove(event.record.place)
            else:
                self._objects.put(event.record)
            self._versions.note(event)
            for call in self._told.get(event.record.place.resource, ()):
                call()
        now = asyncio.get_running_loop().time()
        self._history.publish(events, now)
        if self._history.floor > self._forgotten:
            self._forgotten = self._history.floor
            self._versions.forget(self._forgotten, now)
            self._versions.drop(self.compacted)

    def _hold(self, key: tuple[str, str, int], snapshot: list[Record]) -> None:
        """Keep it for its next page, at the end: the first is the one not asked for the longest."""
        for old in [old for old in self._snapshots if old[2] < self.compacted]:
            del self._snapshots[old]
        if len(self._snapshots) >= _SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]
        self._snapshots[key] = snapshot


def _undone(records: list[Record], events: Sequence[Event]) -> list[Record]:
    """The list as it was before ``events``."""
    before = {event.record.place: event.previous for event in reversed(events)}
    undone = [record for record in records if record.place not in before]
    undone += [record for record in before.values() if record is not None]
    undone.sort(key=lambda record: order(record.place))
    return undone
