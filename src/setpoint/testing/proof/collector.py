"""The garbage collector of a proof: deletes what nobody owns any more, as soon as that is so.

The same rules as ``builtin/garbage.py``, over the store's writes instead of sixty watches, so that a run
costs milliseconds.

Told of every write by ``world.py``; it also knows, for all, whose uid is whose and which names were chosen
by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from setpoint.server.storage.protocol import Event, Place, Record
from setpoint.testing.proof.seam import Pulse

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_SOON = 0.5  # seconds; a real one takes about as long

Ask: TypeAlias = Callable[[str, Place, Any], Awaitable[None]]  # method, where, body


class _Owner(msgspec.Struct, rename="camel", omit_defaults=True):
    uid: str = ""
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    generate_name: str = ""
    owner_references: list[_Owner] = []
    finalizers: list[str] = []
    deletion_timestamp: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


_objects = msgspec.json.Decoder(_Object)


class Collector:
    """What there is, who owns it, and what must go."""

    def __init__(self, records: tuple[Record, ...], ask: Ask) -> None:
        self._ask = ask
        self._live: dict[Place, _Metadata] = {}
        self._uids: dict[str, Place] = {}
        self._prefixes: dict[tuple[str, str, str], str] = {}  # of names that the server chose, for ever
        self._pulse = Pulse()
        self.names: dict[str, str] = {}  # every uid there ever was → whose
        self.is_blocked = False
        self.is_busy = False
        for record in records:
            self._put(record)

    def told(self, event: Event) -> None:
        """Something was written."""
        place = event.record.place
        if event.type == "DELETED":
            gone = self._live.pop(place, None)
            if gone is not None and self._uids.get(gone.uid) == place:
                del self._uids[gone.uid]
            self.wake()
            return
        metadata = self._put(event.record)
        if metadata.owner_references or metadata.deletion_timestamp:
            self.wake()

    def template(self, resource: str, namespace: str, name: str) -> str:
        """A name, with what the server chose of it left open."""
        return self._prefixes.get((resource, namespace, name), name)

    def unblock(self) -> None:
        self.is_blocked = False
        self.wake()

    def _put(self, record: Record) -> _Metadata:
        metadata = _objects.decode(record.data).metadata
        place = record.place
        self._live[place] = metadata
        self._uids[metadata.uid] = place
        name = place.name
        if metadata.generate_name and name.startswith(metadata.generate_name):
            name = self._prefixes[place] = f"{metadata.generate_name}*"
        within = f"{place.namespace}/" if place.namespace else ""
        self.names.setdefault(metadata.uid, f"{place.resource} {within}{name}")
        return metadata

    def wake(self) -> None:
        """Have it look at everything again, soon."""
        self.is_busy = True
        self._pulse.beat()

    async def run(self) -> None:
        while True:
            while not self.is_busy or self.is_blocked:
                await self._pulse.wait()
            await asyncio.sleep(_SOON)
            self.is_busy = False
            for place in list(self._live):
                await self._look_at(place)

    async def _look_at(self, place: Place) -> None:
        me = self._live.get(place)
        if me is None:
            return
        if me.deletion_timestamp and FOREGROUND in me.finalizers:
            waiting = [each for each, other in self._live.items() if _owns(me, other)]
            for each in waiting:
                await self._delete(each, foreground=True)
            if not waiting:
                left = [name for name in me.finalizers if name != FOREGROUND]
                patch = {"metadata": {"uid": me.uid, "finalizers": left or None}}
                await self._ask("PATCH", place, patch)
            return
        if me.deletion_timestamp and ORPHAN in me.finalizers:
            await self._orphan(place, me)
            return
        if not me.owner_references or me.deletion_timestamp:
            return
        there = [owner for owner in me.owner_references if self._is_there(place, owner)]
        if not there:
            await self._delete(place)
        elif len(there) < len(me.owner_references):  # the others' references are taken away
            await self._ask("PATCH", place, {"metadata": {"uid": me.uid, "ownerReferences": there}})

    async def _orphan(self, place: Place, me: _Metadata) -> None:
        """Let go what belongs to an object that is deleted, and then the object."""
        for each, other in list(self._live.items()):
            if _owns(me, other):
                left = [owner for owner in other.owner_references if owner.uid != me.uid]
                patch = {"metadata": {"uid": other.uid, "ownerReferences": left or None}}
                await self._ask("PATCH", each, patch)
        others = [name for name in me.finalizers if name != ORPHAN]
        await self._ask("PATCH", place, {"metadata": {"uid": me.uid, "finalizers": others or None}})

    def _is_there(self, place: Place, owner: _Owner) -> bool:
        found = self._uids.get(owner.uid)
        return found is not None and found.namespace in ("", place.namespace)

    async def _delete(self, place: Place, *, foreground: bool = False) -> None:
        me = self._live.get(place)
        if me is not None and not me.deletion_timestamp:
            options = {
                "preconditions": {"uid": me.uid},
                "propagationPolicy": "Foreground" if foreground else "Background",
            }
            await self._ask("DELETE", place, options)


def _owns(me: _Metadata, other: _Metadata) -> bool:
    return any(owner.uid == me.uid for owner in other.owner_references)
