"""Lists objects in order as they were at a recent revision, from any place on, at the cost of what is taken.

Every write in memory is also found by the name that it changed.  So an object's state at an old revision is
one lookup, and a page of a list costs as much as the page, however many lists are under way: no list is
copied, sorted or kept for its next page.

Promises:

1. ``listed_from`` gives what was there at a revision that is not below ``floor``, in the order of
   ``objects.py``.  It looks at nothing before its start, and past its end at nothing.
2. Memory is bounded: beside what history holds, a list under way keeps the writes since its revision for
   ``_HOLD_SECONDS`` after its last page, and all lists together keep ``_MAX_BYTES``.

Time comes in as an argument.  Fed and asked by ``reads.py``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator
from typing import Final

from setpoint.server.storage.objects import Objects
from setpoint.server.storage.protocol import Event, Place, Record

_HOLD_SECONDS: Final = 60.0
_MAX_BYTES: Final = 128 * 1024 * 1024  # of all writes here, those that history holds too among them
_MAX_HOLDS: Final = 1_000
_EVENT_BYTES: Final = 500  # about what an event takes beside its data


class _Shelf:
    """What was written of one resource in one namespace, by name."""

    __slots__ = ("deleted", "events")

    def __init__(self) -> None:
        self.events: dict[str, list[Event]] = {}  # in their order; no list is empty
        self.deleted: list[str] = []  # those of its keys that are no objects now, sorted


class _Resource:
    __slots__ = ("namespaces", "shelves")

    def __init__(self) -> None:
        self.shelves: dict[str, _Shelf] = {}
        self.namespaces: list[str] = []  # its keys, each with the slash that orders them, sorted


class Versions:
    """The writes above ``floor``, by the object that they changed."""

    def __init__(self, objects: Objects, floor: int) -> None:
        self._objects = objects
        self.floor = floor
        self._resources: dict[str, _Resource] = {}
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._holds: dict[int, float] = {}  # revisions of lists under way, and when they had their last page

    def __repr__(self) -> str:
        return f"<Versions of {len(self._events)} writes above {self.floor}, {len(self._holds)} lists>"

    def __len__(self) -> int:
        return len(self._events)

    def note(self, event: Event) -> None:
        """It was written; ``objects`` has it already."""
        place = event.record.place
        shelf = self._shelf(place)
        shelf.events.setdefault(place.name, []).append(event)
        if event.type == "DELETED":
            insort(shelf.deleted, place.name)
        elif event.previous is None:
            _discard(shelf.deleted, place.name)
        self._events.append(event)
        self._bytes += len(event.record.data) + _EVENT_BYTES

    def hold(self, revision: int, now: float) -> None:
        """A list at ``revision`` has a next page."""
        self._holds.pop(revision, None)
        self._holds[revision] = now
        if len(self._holds) > _MAX_HOLDS:
            del self._holds[next(iter(self._holds))]

    def forget(self, revision: int, now: float) -> None:
        """Let go of the writes up to ``revision`` that no list under way needs, or all may not keep."""
        self._holds = {held: at for held, at in self._holds.items() if now - at < _HOLD_SECONDS}
        needed = min(self._holds, default=revision)
        while self._events:
            first = self._events[0].record.revision
            if first > revision or (first > needed and self._bytes <= _MAX_BYTES):
                break
            self._drop_first()

    def drop(self, revision: int) -> None:
        """Let go of the writes up to ``revision``: they are compacted."""
        while self._events and self._events[0].record.revision <= revision:
            self._drop_first()
        self.floor = max(self.floor, revision)

    def listed_from(
        self, resource: str, namespace: str, revision: int, after: tuple[str, str] | None
    ) -> Iterator[Record]:
        """What was there at ``revision``, above ``after`` in order.

        To be taken before anything else is written.
        """
        for each in self._namespaces(resource, namespace, after):
            is_first = after is not None and after[0] == f"{each}/"
            yield from self._in(resource, each, revision, after[1] if after and is_first else None)

    def count(self, resource: str, namespace: str, revision: int) -> int:
        """How many were there at ``revision``."""
        counted = self._objects.count(resource, namespace)
        found = self._resources.get(resource)
        for each, shelf in found.shelves.items() if found else ():
            if namespace in ("", each):
                for name, events in shelf.events.items():
                    then = self._state(events, revision)
                    counted += (then is not None) - (
                        self._objects.get(Place(resource, each, name)) is not None
                    )
        return counted

    def _in(self, resource: str, namespace: str, revision: int, after: str | None) -> Iterator[Record]:
        found = self._resources.get(resource)
        shelf = found.shelves.get(namespace) if found else None
        present, records = self._objects.shelf(resource, namespace)
        for name in _merged(present, shelf.deleted if shelf else [], after):
            record = records.get(name)
            if record is None or record.revision > revision:
                events = shelf.events.get(name) if shelf else None
                record = self._state(events, revision) if events else None
            if record is not None:
                yield record

    @staticmethod
    def _state(events: list[Event], revision: int) -> Record | None:
        """The object whose writes these are, as it was at ``revision``."""
        later = bisect_right(events, revision, key=_revision)
        if later < len(events):
            return events[later].previous
        last = events[-1]
        return None if last.type == "DELETED" else last.record

    def _namespaces(self, resource: str, namespace: str, after: tuple[str, str] | None) -> Iterator[str]:
        if namespace:
            if after is None or after[0] <= f"{namespace}/":
                yield namespace
            return
        found = self._resources.get(resource)
        written = found.namespaces if found else []
        present = self._objects.namespaces(resource)
        start = after[0] if after else ""
        for slashed in _merged(present, written, start, inclusive=True):
            yield slashed[:-1]

    def _drop_first(self) -> None:
        event = self._events.popleft()
        place = event.record.place
        self.floor = event.record.revision
        self._bytes -= len(event.record.data) + _EVENT_BYTES
        resource = self._resources[place.resource]
        shelf = resource.shelves[place.namespace]
        events = shelf.events[place.name]
        del events[0]
        if events:
            return
        del shelf.events[place.name]
        _discard(shelf.deleted, place.name)
        if shelf.events:
            return
        del resource.shelves[place.namespace]
        _discard(resource.namespaces, place.namespace + "/")
        if not resource.shelves:
            del self._resources[place.resource]

    def _shelf(self, place: Place) -> _Shelf:
        resource = self._resources.get(place.resource)
        if resource is None:
            resource = self._resources[place.resource] = _Resource()
        shelf = resource.shelves.get(place.namespace)
        if shelf is None:
            shelf = resource.shelves[place.namespace] = _Shelf()
            insort(resource.namespaces, place.namespace + "/")
        return shelf


def _revision(event: Event) -> int:
    return event.record.revision


def _discard(names: list[str], name: str) -> None:
    at = bisect_left(names, name)
    if at < len(names) and names[at] == name:
        del names[at]


def _merged(one: list[str], other: list[str], after: str | None, *, inclusive: bool = False) -> Iterator[str]:
    """Both sorted lists as one, each name once, from ``after`` on; nothing is copied."""
    bisect = bisect_left if inclusive else bisect_right
    i, j = (bisect(one, after), bisect(other, after)) if after is not None else (0, 0)
    while i < len(one) or j < len(other):
        if j >= len(other) or (i < len(one) and one[i] <= other[j]):
            name = one[i]
            i += 1
            j += j < len(other) and other[j] == name
        else:
            name = other[j]
            j += 1
        yield name
