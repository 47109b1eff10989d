"""What a watch sends: the first objects, then every change, seen through its selector, then bookmarks.

Promises: ordered, complete, each change once; an object that enters the selection is ADDED, one that leaves
it is DELETED, with its previous state and the new resourceVersion; a bookmark of r means that everything up
to r was sent.  A version that is too old is an ERROR event, after which the stream ends; a watch that does
not keep up ends too.

Fed by the store; drained by http/watches.py, which writes the events in the form that was asked for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal, NamedTuple

import msgspec

from setpoint.server.registry.conversion import ConversionError
from setpoint.server.registry.listing import ListOptions, Selector, list_options
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Resource
from setpoint.server.statuses import StatusError, expired, internal, version_too_large
from setpoint.server.storage.history import Closed
from setpoint.server.storage.protocol import Compacted, Event, Overrun, Record, Store, Watch

_BOOKMARK_EVERY = 60.0  # seconds
_BOOKMARK_BEFORE_END = 2.0
_SHORTEST = (
    1800.0  # seconds of a watch that names no timeout; up to twice as long, so that they do not end at once
)
_END_OF_INITIAL = ',"annotations":{"k8s.io/initial-events-end":"true"}'

Type = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
Present = Callable[[Resource, Record], Record]
Convert = Callable[[Resource, Record], Awaitable[Record]]


class WatchEvent(NamedTuple):
    """One line of a watch.  ``record`` is the object's; a bookmark and an error have none, only ``data``."""

    type: Type
    data: bytes
    record: Record | None = None


class Watching:
    """One watch that was granted: what is wrong with the request was raised when this was made."""

    def __init__(self, store: Store, ask: Ask, present: Present, convert: Convert | None = None) -> None:
        """``convert`` is for what has to be waited for, before an event is given out."""
        self._store = store
        self._resource = ask.resource
        self._options: ListOptions = list_options(ask.query, is_watch=True)
        self._selector = Selector(ask)
        self._present = present
        self._convert = convert
        self._ask = ask
        self._refused: WatchEvent | None = None
        self._initial: list[WatchEvent] = []
        self._is_ending = False
        self._watch = self._open()

    def _open(self) -> Watch | None:
        version, wants = self._options.version, self._options.sends_initial_events
        stored, namespace = self._resource.stored, self._ask.namespace
        after = self._store.revision if not version or wants else version
        if wants and version and version > self._store.revision:
            refusal = version_too_large(version, self._store.revision)
            self._refused = WatchEvent("ERROR", msgspec.json.encode(refusal.status))
            return None
        if wants is None:
            wants = not version  # unset or 0: begin with what there is
        if wants:
            self._initial = self._first(after)
        try:
            return self._store.watch(stored, namespace, after)
        except Compacted as gone:
            told = f"too old resource version: {gone.asked} ({gone.compacted + 1})"
            self._refused = WatchEvent("ERROR", msgspec.json.encode(expired(told).status))
            return None

    def _first(self, revision: int) -> list[WatchEvent]:
        found = [
            WatchEvent("ADDED", shown.data, shown)
            for record in self._store.listed(self._resource.stored, self._ask.namespace)
            if self._selector.needs_conversion or self._selector.matches(record)
            for shown in (self._present(self._resource, record),)
        ]
        if self._options.allows_bookmarks:
            found.append(self._bookmark(revision, annotations=_END_OF_INITIAL))
        return found

    def end(self) -> None:
        """End once everything that has happened until now is given out."""
        self._is_ending = True
        if self._watch is not None:
            self._watch.wake()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    async def batches(self) -> AsyncGenerator[list[WatchEvent], None]:
        """The events as they come, as many at a time as there are; ends when the watch's time is up."""
        try:
            if self._refused is not None:
                yield [self._refused]
            if self._watch is None:
                return
            if self._initial and (first := await self._converted_first(self._initial)):
                yield first
            self._initial = []
            async for events in self._live(self._watch):
                yield await self._converted(events)
        except StatusError as refused:  # of a webhook that converts
            yield [WatchEvent("ERROR", msgspec.json.encode(refused.status))]
        except ConversionError as error:  # of what happened in a version that is gone since
            yield [WatchEvent("ERROR", msgspec.json.encode(internal(str(error)).status))]
        finally:
            self.close()

    async def _live(self, watch: Watch) -> AsyncGenerator[list[WatchEvent], None]:
        loop = asyncio.get_running_loop()
        lasts = self._options.timeout or random.uniform(_SHORTEST, 2 * _SHORTEST)  # noqa: S311 - only spreads load
        end = loop.time() + lasts
        bookmark_at = end
        if self._options.allows_bookmarks and lasts > _BOOKMARK_BEFORE_END:  # a shorter watch gets none
            bookmark_at = loop.time() + min(_BOOKMARK_EVERY, lasts - _BOOKMARK_BEFORE_END)
        timer = loop.call_at(bookmark_at, watch.wake)  # one for many events: they come by the thousand
        try:
            while True:
                events = await watch.next()
                if self._is_ending and not events:
                    return
                if self._selector.needs_conversion:
                    events = [await self._converted_event(event) for event in events]
                if seen := [shown for event in events if (shown := self._seen(event)) is not None]:
                    yield seen
                now = loop.time()
                if now >= end:
                    return
                if now >= bookmark_at:
                    yield [self._bookmark(watch.progress)]
                    last, soon = end - _BOOKMARK_BEFORE_END, now + _BOOKMARK_EVERY
                    bookmark_at = last if now < last < soon else min(soon, end)
                    timer = loop.call_at(bookmark_at, watch.wake)
        except (Overrun, Closed):
            return
        finally:
            timer.cancel()

    async def _converted(self, events: list[WatchEvent]) -> list[WatchEvent]:
        if self._convert is None:
            return events
        found = []
        for event in events:
            if event.record is not None:
                record = await self._convert(self._resource, event.record)
                event = WatchEvent(event.type, record.data, record)  # noqa: PLW2901
            found.append(event)
        return found

    async def _converted_first(self, events: list[WatchEvent]) -> list[WatchEvent]:
        found = await self._converted(events)
        if not self._selector.needs_conversion:
            return found
        return [one for one in found if one.record is None or self._selector.matches(one.record)]

    async def _converted_event(self, event: Event) -> Event:
        """One whose objects can be selected by their fields."""
        if self._convert is None:
            return event
        record = await self._convert(self._resource, event.record)
        previous = event.previous
        if previous is not None:
            previous = await self._convert(self._resource, previous)
        return Event(event.type, record, previous)

    def _seen(self, event: Event) -> WatchEvent | None:
        """One change, as this watch's selector sees it."""
        record = self._present(self._resource, event.record)
        if self._selector.is_empty:
            return WatchEvent(event.type, record.data, record)
        was = event.previous is not None and self._selector.matches(event.previous)
        now = event.type != "DELETED" and self._selector.matches(event.record)
        if now:
            return WatchEvent("MODIFIED" if was else "ADDED", record.data, record)
        if not was or event.previous is None:
            return None
        if (
            event.type != "DELETED"
        ):  # it left the selection: as it last was in it, at the version that it left
            record = _at(self._present(self._resource, event.previous), event.record.revision)
        return WatchEvent("DELETED", record.data, record)

    def _bookmark(self, revision: int, annotations: str = "") -> WatchEvent:
        metadata = f'"metadata":{{"resourceVersion":"{revision}"{annotations}}}'
        head = f'{{"kind":"{self._resource.kind}","apiVersion":"{self._resource.api_version}",'
        return WatchEvent("BOOKMARK", f"{head}{metadata}}}".encode())


def _at(record: Record, revision: int) -> Record:
    found = msgspec.json.decode(record.data)
    found["metadata"]["resourceVersion"] = str(revision)
    return Record(record.place, revision, record.created, msgspec.json.encode(found))
