"""The writes of the last while, in order, and those who watch them.

Promises:

1. A watch gives every event of its resource and namespace above the revision it began after, in order,
   each once, and nothing else.
2. A watcher costs no memory of its own: it is a position in what is held for all.  Whoever falls behind
   what is held in memory reads on from what is older, where there is such a thing (``older``), and is ended
   with ``Overrun`` where there is not, or once that is compacted.  Nobody waits for it.
3. ``progress`` never runs ahead of an event that was not given out, and moves on when only other resources
   are written.
4. A cancelled ``next`` loses nothing.

What is held in memory is bounded by ``retention.py``.  No I/O here: what is older than memory comes through
``older``, which ``sqlite.py`` gives.  Fed by ``reads.py``, with what is durable; drained by the registry.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from setpoint.server.storage.protocol import Compacted, Event, Overrun, StorageError
from setpoint.server.storage.retention import Keep, Retention

FIRST: Final = 1  # the revision of a store that nothing was written to: 0 means "any" on the wire


class Closed(StorageError):
    """The store, or this watch of it, was closed."""


class Older(NamedTuple):
    """A piece of what is no longer in memory."""

    events: list[Event]
    reached: int  # up to which revision these are all


ReadOlder = Callable[[str, str, int, int], Awaitable[Older]]  # resource, namespace, after, up to


class _Track:
    """The events that one sort of watcher is after, and the futures of those who wait for the next."""

    __slots__ = ("events", "first", "waiting", "watches")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.first = 0  # the number of events[0], counted from the track's beginning
        self.waiting: list[asyncio.Future[None]] = []
        self.watches = 0  # while someone watches, the track stays


class History:
    """What was written after ``floor``; ``compacted`` is below it where something older can be read."""

    def __init__(
        self,
        *,
        revision: int = FIRST,
        compacted: int = 0,
        floor: int | None = None,
        keep: Keep | None = None,
        older: ReadOlder | None = None,
    ) -> None:
        self.revision = revision  # the newest that may be seen
        self.compacted = compacted
        self.floor = compacted if floor is None else floor
        self.older = older
        self._events: deque[Event] = deque()
        self.tracks: dict[tuple[str, str], _Track] = {}
        self._retention = Retention(keep or Keep())
        self.open: dict[HistoryWatch, None] = {}  # in the order in which they were opened

    def __repr__(self) -> str:
        return (
            f"<History {self.floor}..{self.revision}, {len(self._events)} events, {len(self.open)} watches>"
        )

    def __len__(self) -> int:
        return len(self._events)

    def publish(self, events: Sequence[Event], now: float) -> None:
        """These are durable: show them, and wake who waits for them."""
        woken: dict[_Track, None] = {}
        size = 0
        for event in events:
            size += len(event.record.data)
            self._events.append(event)
            for key in _keys(event):
                track = self.tracks.get(key)
                if track is None:
                    track = self.tracks[key] = _Track()
                track.events.append(event)
                woken[track] = None
        self.revision = events[-1].record.revision
        for track in woken:
            waiting, track.waiting = track.waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        self._retention.note(now, self.revision, size)
        if target := self._retention.due(now, self.revision):
            self.forget(target)

    def forget(self, revision: int) -> None:
        """Hold nothing up to and including ``revision`` in memory any more."""
        if revision <= self.floor:
            return
        gone: dict[tuple[str, str], int] = {}
        while self._events and self._events[0].record.revision <= revision:
            for key in _keys(self._events.popleft()):
                gone[key] = gone.get(key, 0) + 1
        for key, number in gone.items():
            track = self.tracks[key]
            del track.events[:number]
            track.first += number
            if not track.events and not track.watches:
                del self.tracks[key]
        self.floor = revision
        if self.older is None:
            self.compacted = revision

    def after(self, resource: str, namespace: str, revision: int) -> Sequence[Event]:
        """Those in memory above ``revision``, which must not be below ``floor``."""
        track = self.tracks.get((resource, namespace))
        if track is None or not track.events or track.events[-1].record.revision <= revision:
            return ()
        return track.events[_past(track.events, revision) :]

    def everything(self) -> list[Event]:
        """All that is in memory, of all resources."""
        return list(self._events)

    def watch(self, resource: str, namespace: str, after: int) -> HistoryWatch:
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        return HistoryWatch(self, resource, namespace, after)

    def close(self) -> None:
        """End every watch."""
        for watch in list(self.open):
            watch.close()


class HistoryWatch:
    """One watcher's position in a track."""

    def __init__(self, history: History, resource: str, namespace: str, after: int) -> None:
        self._history = history
        self._resource, self._namespace = resource, namespace
        self._after = after  # all of its events up to here were given out
        self._track = history.tracks.setdefault((resource, namespace), _Track())
        self._track.watches += 1
        self._position = self._place()
        self._closed = False
        self._woken = False
        self._waiting: asyncio.Future[None] | None = None
        history.open[self] = None

    def __repr__(self) -> str:
        return f"<HistoryWatch {self._resource} {self._namespace or 'all'} after {self._after}>"

    @property
    def progress(self) -> int:
        """The revision up to which everything has been given out."""
        pending = self._position - self._track.first
        if self._position < 0 or pending < 0:
            return self._after
        if pending < len(self._track.events):
            return max(self._after, self._track.events[pending].record.revision - 1)
        return max(self._after, self._history.revision)

    async def next(self) -> list[Event]:
        """All that are there; waits for one, or for ``wake``.

        Raises ``Overrun``, and after ``close`` ``Closed``.
        """
        while True:
            if self._closed:
                raise Closed(f"the watch of {self._resource} was closed")
            if self._position < self._track.first:
                if given := await self._next_older():
                    return given
            elif given := self._next_held():
                return given
            elif self._woken:
                self._woken = False
                return []
            else:
                await self._wait()

    def wake(self) -> None:
        """Let ``next`` return, though there is nothing: whoever waits has something else to do."""
        self._woken = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        track = self._track
        track.watches -= 1
        if not track.watches and not track.events:
            self._history.tracks.pop((self._resource, self._namespace), None)
        self._history.open.pop(self, None)
        for future in track.waiting:  # one of them may be ours; the others look again and wait on
            if not future.done():
                future.set_result(None)
        track.waiting = []

    def _next_held(self) -> list[Event]:
        """What is in memory and was not given out."""
        fresh = self._track.events[self._position - self._track.first :]
        if not fresh:
            return fresh
        self._position += len(fresh)
        if fresh[0].record.revision <= self._after:  # it watches from a revision that was still to come
            fresh = [event for event in fresh if event.record.revision > self._after]
        self._after = max(self._after, self._history.revision)
        return fresh

    async def _next_older(self) -> list[Event]:
        """A piece of what is older than memory.  Nothing is given up before it has been read."""
        history = self._history
        if self._after >= history.floor:
            self._position = self._place()
            return []
        if history.older is None or self._after < history.compacted:
            raise Overrun(f"a watch of {self._resource} did not keep up: it stands at {self._after}")
        try:
            older = await history.older(self._resource, self._namespace, self._after, history.floor)
        except Compacted as error:
            raise Overrun(f"a watch of {self._resource} was overtaken by compaction: {error}") from None
        self._after = max(self._after, older.reached)
        return older.events

    def _place(self) -> int:
        """Where in the track the first event above ``_after`` is or will be; -1 if it may be held no more."""
        if self._after < self._history.floor:
            return -1
        return self._track.first + _past(self._track.events, self._after)

    async def _wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._track.waiting.append(future)
        self._waiting = future
        try:
            await future
        finally:
            self._waiting = None
            if (self._woken or future.cancelled()) and future in self._track.waiting:
                self._track.waiting.remove(future)


def _keys(event: Event) -> tuple[tuple[str, str], ...]:
    """The tracks that an event belongs to."""
    place = event.record.place
    if place.namespace:
        return (place.resource, ""), (place.resource, place.namespace)
    return ((place.resource, ""),)


def _past(events: list[Event], revision: int) -> int:
    """The index of the first event above ``revision``."""
    return bisect_right(events, revision, key=lambda event: event.record.revision)
