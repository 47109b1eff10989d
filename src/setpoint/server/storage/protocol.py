"""What a store is asked and what it promises; ``memory.py`` and ``sqlite.py`` are its two forms.

There is one global revision: every write of any object takes the next one, and none is ever taken twice, not
even across a crash.  An object's resourceVersion is the revision of its last write.

Promises:

1. A write that was acknowledged is durable (in the memory form: as durable as the process).
2. Nothing is read or watched before it is durable: reads and watches see ``revision`` and nothing newer.
3. A write names the revision that it saw; if the object has changed since, ``Changed`` is raised and
   nothing is written.
4. Watches are ordered, complete and resumable from any revision that is not compacted; one that cannot be
   served raises ``Compacted``, and a watcher that does not keep up is ended with ``Overrun``, never thinned.
5. One write is one revision: object, history and event appear together or not at all.

Not here: what the bytes mean.  A store never looks into ``data``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Protocol

import msgspec

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Place(NamedTuple):
    """Where an object lies.  Parts are compared whole, so that no name can reach into another's place."""

    resource: str  # as in deployments.apps; core ones have no dot
    namespace: str  # "" for what is cluster-scoped
    name: str


class Record(msgspec.Struct, frozen=True, gc=False):
    """One object as it was written at one revision."""

    place: Place
    revision: int
    created: int  # the revision at which it was created
    data: bytes  # what ``encode`` gave


class Event(msgspec.Struct, frozen=True, gc=False):
    """One write.  Of a deletion, ``record`` is the last state, at the deletion's revision."""

    type: EventType
    record: Record
    previous: Record | None  # None for ADDED


Encode = Callable[[int], bytes]  # the object's bytes, once the revision it will have is known


class StorageError(Exception):
    """A store could not do what it was asked."""


class Changed(StorageError):
    """The object is not at the revision that the writer saw; ``found`` is what is there now."""

    def __init__(self, place: Place, found: Record | None) -> None:
        super().__init__(
            f"{place.resource} {place.namespace}/{place.name} is at {found.revision if found else 'none'}"
        )
        self.found = found


class Compacted(StorageError):
    """History that old is gone."""

    def __init__(self, asked: int, compacted: int) -> None:
        super().__init__(f"revision {asked} is compacted, history begins after {compacted}")
        self.asked = asked
        self.compacted = compacted


class Overrun(StorageError):
    """The watcher did not keep up and was ended; it can watch again from the last event that it got."""


class Unwritable(StorageError):
    """The disk refused; nothing was written, and reads go on."""


class OutcomeUnknown(StorageError):
    """The disk failed in the middle of a write: a restart may find it written or not.  Reads go on."""


class Watch(Protocol):
    """Events of one resource, in order, each once."""

    async def next(self) -> list[Event]:
        """All that are there; waits for one, or for ``wake``.  Raises ``Overrun``.

        May be cancelled and called again.
        """

    def wake(self) -> None:
        """Let ``next`` return, though there is nothing."""

    @property
    def progress(self) -> int:
        """The revision up to which everything has been given out."""

    def close(self) -> None: ...


class Store(Protocol):
    """The objects and their history."""

    @property
    def revision(self) -> int:
        """The newest that may be seen."""

    @property
    def compacted(self) -> int:
        """History after this revision is whole."""

    def get(self, place: Place) -> Record | None: ...

    def listed(self, resource: str, namespace: str = "") -> list[Record]:
        """By namespace and name, in the order of their bytes; namespace "" gives all."""

    async def listed_at(self, resource: str, namespace: str, revision: int) -> list[Record]:
        """As it was at ``revision``.  Raises ``Compacted``."""

    async def listed_from(
        self, resource: str, namespace: str, revision: int, after: tuple[str, str] | None
    ) -> Iterator[Record]:
        """As it was at ``revision``, above ``after`` as ``objects.order`` has it.  Raises ``Compacted``.

        Costs what is taken of it, and is to be taken before anything else is awaited.
        """

    def count(self, resource: str, namespace: str, revision: int) -> int | None:
        """How many were there at ``revision``; None where that is too long ago to say."""

    def hold(self, revision: int) -> None:
        """A list at ``revision`` has a next page."""

    async def create(self, place: Place, encode: Encode) -> Record:
        """Raises ``Changed`` where something is there."""

    async def update(self, place: Place, encode: Encode, seen: int) -> Record:
        """Raises ``Changed`` where it is not at ``seen``."""

    async def delete(self, place: Place, encode: Encode, seen: int) -> Record:
        """``encode`` gives the last state.  Raises ``Changed`` where it is not at ``seen``."""

    def watch(self, resource: str, namespace: str, after: int) -> Watch:
        """Events with a revision above ``after``.  Raises ``Compacted``."""

    def on_write(self, resource: str, call: Callable[[], None]) -> None:
        """Call it at each write of an object of the resource, before anybody can see the write.

        For what is worked out from such objects and kept until then; whoever wants the events watches.
        """

    def trouble(self) -> str:
        """Why nothing can be written; nothing while all is well."""

    async def compact(self, revision: int) -> None:
        """Forget history up to and including ``revision``, in small steps."""

    async def close(self) -> None: ...
