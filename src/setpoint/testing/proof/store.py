"""The server's store in a proof: memory, begun from a snapshot, every write told of.

A snapshot is taken once, of a server with everything an operator needs (its definitions established); each
run begins from it, which costs no more than copying a dict.  ``at`` gives the past, for those who are to see
the world as it was.

Fed by the server; ``world.py`` listens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from setpoint.server.storage.history import FIRST, History
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.objects import Objects
from setpoint.server.storage.protocol import Encode, Event, Place, Record, Unwritable
from setpoint.testing.proof.pace import world_time

actor: ContextVar[str] = ContextVar("setpoint_proof_actor", default="server")
"""Who acts: the server answers in the task of who asks."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All objects, at a revision."""

    records: tuple[Record, ...] = ()
    revision: int = FIRST


class WorldStore(MemoryStore):
    """Objects and history in memory, from a snapshot on."""

    def __init__(
        self, begin: Snapshot, tell: Callable[[str, Event, float], None] = lambda _by, _event, _now: None
    ) -> None:
        history = History(revision=begin.revision, compacted=begin.revision)
        super().__init__(objects=Objects(begin.records), history=history)
        self._tell = tell
        self.is_full = False  # of the disk that it does not have

    def snapshot(self) -> Snapshot:
        return Snapshot(tuple(self._objects), self.revision)

    def at(self, revision: int) -> Snapshot:
        """As it was; of what is compacted, as near to it as is known."""
        revision = max(revision, self.compacted)
        before: dict[Place, Record | None] = {}
        for event in reversed(self._history.everything()):
            if event.record.revision > revision:
                before[event.record.place] = event.previous
        kept = [record for record in self._objects if record.place not in before]
        kept += [record for record in before.values() if record is not None]
        return Snapshot(tuple(kept), revision)

    async def create(self, place: Place, encode: Encode) -> Record:
        self._check_disk()
        return await super().create(place, encode)

    async def update(self, place: Place, encode: Encode, seen: int) -> Record:
        self._check_disk()
        return await super().update(place, encode, seen)

    async def delete(self, place: Place, encode: Encode, seen: int) -> Record:
        self._check_disk()
        return await super().delete(place, encode, seen)

    def _check_disk(self) -> None:
        if self.is_full:
            raise Unwritable("no space left on the device")

    def _apply(self, events: Sequence[Event]) -> None:
        super()._apply(events)
        now = world_time()
        for event in events:
            self._tell(actor.get(), event, now)
