"""Remembers what a controller has written, and decides whether a store has seen it.  Pure.

A store follows the server by a watch, so it is always a little late.  What a controller has written itself it
must not read as if it had not happened.  The promises:

1. A write whose version is known is seen when the store holds that version of the object, or a later one, or
   has come past it.  (Where versions cannot be compared: when it holds exactly that one.)
2. A deletion is seen when the object is gone, is another one of its name, or is on its way out; where the
   server has said that it is gone, on its way out is not enough.  A store that has not come to the version
   at which it was deleted does not hold it because it is yet to come.
3. A write without an answer may have happened, and may still happen while the server can be at it.  Until
   then only the server knows.
4. Memory is bounded: beyond ``limit`` the oldest writes of a kind are kept as one, "everything up to here".
5. Of some writes it is known neither to what they were nor how far a store must be to have seen them: one
   without an answer whose object the server was to name, and deletions beyond ``limit``.  Their kind is read
   from the server, until that has listed it at a time when they were over; the store must reach that list.

6. When the server's past was replaced (``history.py``), ``clear`` forgets all versions: those of another past
   say nothing.

Time comes in as an argument.  ``consistency.py`` does the waiting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from setpoint.api.names import GroupVersionKind, Key
from setpoint.api.wire import Snapshot
from setpoint.cache.scope import Scope
from setpoint.cache.versions import later, number

LIMIT = 10_000
IN_DOUBT = 60.0  # a server gives up on a write after 34 s; what it has not done a minute later, it never does


@dataclass(frozen=True, slots=True)
class Write:
    """The newest write to one object."""

    at: float
    version: str = ""  # as the server answered; "" if it did not, or the write was a deletion
    deleted: str = ""  # the uid that was deleted
    is_gone: bool = False  # the server has it no longer: it is not just on its way out
    existed_at: str = ""  # a version at which the deleted object was still there, where one is known
    in_doubt_until: float = float("-inf")
    labels: Mapping[str, str] | None = None  # of the object as written, where they are known
    is_given_up: bool = False  # it was waited for in vain, and is not waited for again

    def is_in_doubt(self, now: float) -> bool:
        """Whether only the server can say how the object is."""
        return now < self.in_doubt_until

    def is_seen(self, scope: Scope, held: Snapshot | None, reached: str) -> bool:
        """Whether a store that holds this of the object, and has reached this version, has seen the write."""
        if self.deleted and held is not None and held.metadata.uid == self.deleted:
            return not self.is_gone and held.metadata.deletion_timestamp is not None
        if held is None and number(self.existed_at) is not None and scope.is_whole:
            return is_past(reached, later(self.version, self.existed_at))
        if not self.version or is_past(reached, self.version):
            return True
        if held is not None:
            return is_past(held.metadata.resource_version, self.version)
        # It is not there, and if it is not selected it need not come.
        return self.labels is not None and not scope.labels.matches(self.labels)


def is_past(version: str, other: str) -> bool:
    """Whether a version is another, or a later one."""
    first, second = number(version), number(other)
    return version == other if first is None or second is None else first >= second


class Writes:
    """What one controller has written, as far as some store may not have seen it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._writes: dict[tuple[GroupVersionKind, Key], Write] = {}  # oldest first
        self._floors: dict[GroupVersionKind, str] = {}  # versions of writes that are no longer in there
        self._unknown: dict[GroupVersionKind, float] = {}  # until when such writes may happen

    def __repr__(self) -> str:
        return f"<Writes {len(self._writes)} that may not have been seen>"

    def __len__(self) -> int:
        return len(self._writes)

    def wrote(
        self,
        gvk: GroupVersionKind,
        key: Key,
        version: str,
        *,
        at: float,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A write was answered with this version.  What was in doubt before it no longer matters."""
        self._keep(gvk, key, Write(at, version, labels=labels))

    def deleted(
        self,
        gvk: GroupVersionKind,
        key: Key,
        uid: str,
        *,
        at: float,
        is_gone: bool = False,
        existed_at: str = "",
    ) -> None:
        """A deletion was answered; its own version the server does not say."""
        known = self._writes.get((gvk, key), Write(at))
        self._keep(gvk, key, replace(known, at=at, deleted=uid, is_gone=is_gone, existed_at=existed_at))

    def lost(self, gvk: GroupVersionKind, key: Key, *, at: float) -> None:
        """A write got no answer."""
        known = self._writes.get((gvk, key), Write(at))
        self._keep(gvk, key, replace(known, at=at, in_doubt_until=at + IN_DOUBT))

    def lost_unnamed(self, gvk: GroupVersionKind, *, at: float) -> None:
        """A creation got no answer, and what it may have made was to be named by the server."""
        self._lose(gvk, at + IN_DOUBT)

    def unknown_until(self, gvk: GroupVersionKind) -> float | None:
        """Until when something may happen to a kind of which only the server knows what; None: nothing."""
        return self._unknown.get(gvk)

    def listed_live(self, gvk: GroupVersionKind, version: str, *, at: float) -> None:
        """The server was asked, at this time, for all of a kind, and answered at this version."""
        if gvk not in self._unknown:
            return
        self._raise_floor(gvk, version)
        if at >= self._unknown[gvk]:
            del self._unknown[gvk]

    def read_live(self, gvk: GroupVersionKind, key: Key, version: str) -> None:
        """The server was asked, and answered with this version."""
        self._learn(
            gvk, key, lambda write: replace(write, version=later(write.version, version), labels=None)
        )

    def read_gone(self, gvk: GroupVersionKind, key: Key, uid: str) -> None:
        """The server was asked, and has the object no longer that a store still holds."""
        self._learn(gvk, key, lambda write: replace(write, deleted=uid, is_gone=True))

    def give_up(self, gvk: GroupVersionKind, key: Key) -> None:
        """It was waited for in vain."""
        self._learn(gvk, key, lambda write: replace(write, is_given_up=True))

    def seen(self, gvk: GroupVersionKind, key: Key) -> None:
        """Every store has it."""
        self._writes.pop((gvk, key), None)

    def of(self, gvk: GroupVersionKind, key: Key) -> Write | None:
        return self._writes.get((gvk, key))

    def of_kind(self, gvk: GroupVersionKind, namespace: str = "") -> Iterator[tuple[Key, Write]]:
        """Those to a kind, in one namespace or all."""
        for (each, key), write in list(self._writes.items()):
            if each == gvk and (not namespace or key.namespace == namespace):
                yield key, write

    def floor(self, gvk: GroupVersionKind) -> str:
        """What a store must have reached for the writes that are no longer kept one by one; "" if none."""
        return self._floors.get(gvk, "")

    def clear(self) -> None:
        """Forget all versions: the server's past was replaced.  What is in doubt stays so."""
        self._writes = {
            place: Write(write.at, in_doubt_until=write.in_doubt_until)
            for place, write in self._writes.items()
            if math.isfinite(write.in_doubt_until)
        }
        self._floors.clear()

    def _learn(self, gvk: GroupVersionKind, key: Key, more: Callable[[Write], Write]) -> None:
        known = self._writes.get((gvk, key))
        if known is not None:
            self._writes[gvk, key] = more(known)

    def _keep(self, gvk: GroupVersionKind, key: Key, write: Write) -> None:
        self._writes.pop((gvk, key), None)  # the newest stands last
        self._writes[gvk, key] = write
        if len(self._writes) > self._limit:
            (oldest, _), folded = next(iter(self._writes.items()))
            del self._writes[next(iter(self._writes))]
            self._fold(oldest, folded, write.at)

    def _fold(self, gvk: GroupVersionKind, write: Write, now: float) -> None:
        """Keep of a write what can be kept without its key."""
        self._raise_floor(gvk, write.version)
        if write.is_in_doubt(now):
            self._lose(gvk, write.in_doubt_until)
        elif write.deleted:
            self._lose(gvk, now)
        elif write.version and number(write.version) is None:
            self._lose(gvk, now + IN_DOUBT)  # no list says when it is seen: after a while it must be

    def _lose(self, gvk: GroupVersionKind, until: float) -> None:
        self._unknown[gvk] = max(until, self._unknown.get(gvk, until))

    def _raise_floor(self, gvk: GroupVersionKind, version: str) -> None:
        if number(version) is not None:
            self._floors[gvk] = later(self._floors.get(gvk, ""), version)
