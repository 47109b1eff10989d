"""What is in one namespace of a real cluster, and every write there, as its watches tell.

In process the store tells of each write and by whom.  A real server tells only that something has changed: by
whom is known from the answers to our own writes (``told``), which carry the version that came of them, and
for what was made, from the name that its maker gave as field manager.  What nobody of us has made (a pod of a
ReplicaSet, the namespace's own ConfigMap) is of no concern: it is the cluster's.  Except for claims: data is
there.

Fed by watches, one for each resource; read by ``real_world.py`` when all is still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from setpoint.api.forms import Untyped
from setpoint.api.names import Resource
from setpoint.client.client import Client
from setpoint.errors import SetpointError
from setpoint.server.storage.protocol import Place, Record
from setpoint.testing.asked import Asked
from setpoint.testing.proof.confined import Told
from setpoint.testing.proof.trace import CLAIMS, COLLECTOR, CONTROLLERS, Written

QUIET: Final = frozenset(
    {
        "endpoints",
        "endpointslices.discovery.k8s.io",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
    }
)
_OF_EVERY_NAMESPACE: Final = {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")}
_AGAIN = 0.2  # seconds until a watch that broke is opened again


@dataclass(slots=True)
class _Seen:
    time: float
    type: str
    place: Place
    version: int
    data: bytes
    before: bytes | None
    uid: str


@dataclass(slots=True)
class _Live:
    record: Record
    uid: str
    owners: list[str]


@dataclass(slots=True)
class Mirror:
    """One namespace."""

    manager: str  # the field manager of the operator
    live: dict[Place, _Live] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)  # resources in which anything happened
    version: int = 0  # the newest that anyone has heard of
    writes: int = 0  # of ours, that changed something
    stirred: int = 0
    stirred_at: float = 0.0
    _seen: list[_Seen] = field(default_factory=list)
    _by_version: dict[int, str] = field(default_factory=dict)
    _deleted_by: dict[str, str] = field(default_factory=dict)  # uid
    _ours: dict[str, str] = field(default_factory=dict)  # uids of what one of us has made, and who
    _prefixes: dict[Place, str] = field(default_factory=dict)

    # ---- what we are told

    def told(self, by: str, asked: Asked, answer: Told) -> None:
        """One of us has written something."""
        resource = f"{asked.plural}.{asked.group}" if asked.group else asked.plural
        version = int(answer.resource_version) if answer.resource_version.isdigit() else 0
        if asked.verb == "delete":
            self._deleted_by.setdefault(answer.uid, by)
            self.writes += 1
        elif version > self.version:  # else nothing has changed
            self.writes += 1
        if version and version not in self._by_version:
            self._by_version[version] = by
        self.version = max(self.version, version)
        if asked.verb == "create" and answer.uid:
            self._ours[answer.uid] = by
        self._name(Place(resource, asked.namespace, answer.name), answer.generate_name)

    def begin(self, resource: Resource, objects: Iterable[dict[str, Any]]) -> None:
        """What was there."""
        for obj in objects:
            place, metadata = _place(resource, obj), obj["metadata"]
            self.version = max(self.version, int(metadata["resourceVersion"]))
            self.live[place] = _living(place, obj, None)

    def see(self, resource: Resource, type_: str, obj: dict[str, Any]) -> None:
        """A watch has brought this."""
        place, metadata = _place(resource, obj), obj["metadata"]
        now = asyncio.get_running_loop().time()
        version = int(metadata["resourceVersion"])
        before = self.live.get(place)
        if before is not None and before.record.revision >= version and type_ != "DELETED":
            return  # as after a list
        self.touched.add(place.resource)
        self.version = max(self.version, version)
        self.stirred, self.stirred_at = self.stirred + 1, now
        self._name(place, metadata.get("generateName") or "")
        if type_ == "DELETED":
            self.live.pop(place, None)
        else:
            self.live[place] = _living(place, obj, before)
        if type_ == "ADDED" and any(
            each.get("manager") == self.manager for each in metadata.get("managedFields") or ()
        ):
            self._ours.setdefault(metadata["uid"], "operator")
        if type_ == "ADDED" and place.resource == CLAIMS:
            self._ours.setdefault(metadata["uid"], CONTROLLERS)
        self._seen.append(
            _Seen(
                now,
                type_,
                place,
                version,
                msgspec.json.encode(obj),
                None if before is None else before.record.data,
                metadata["uid"],
            )
        )

    def _name(self, place: Place, prefix: str) -> None:
        if prefix and place.name.startswith(prefix):
            self._prefixes[place] = f"{prefix}*"

    # ---- what is known

    def template(self, resource: str, namespace: str, name: str) -> str:
        """A name, with what the server chose of it left open."""
        return self._prefixes.get(Place(resource, namespace, name), name)

    def records(self, *, whole: bool = False) -> list[Record]:
        """What we have made, as it is; or all, but for what every namespace has."""
        return [
            each.record
            for place, each in self.live.items()
            if each.uid in self._ours or (whole and place[::2] not in _OF_EVERY_NAMESPACE)
        ]

    def requests(self) -> list[Place]:
        return list(self.live)

    def garbage(self) -> str:
        """Something that is there though its owners are gone; "" if nothing is."""
        uids = {each.uid for each in self.live.values()}
        for place, each in self.live.items():
            if each.owners and not uids.intersection(each.owners):
                return f"{place.resource} {place.name}"
        return ""

    def take_writes(self) -> list[Written]:
        """What was written since the last time, in order, of what is ours."""
        seen, self._seen = sorted(self._seen, key=lambda each: each.version), []
        return [
            Written(each.time, self._by(each), each.type, *each.place, each.version, each.data, each.before)
            for each in seen
            if each.uid in self._ours
        ]

    def _by(self, seen: _Seen) -> str:
        if seen.type == "ADDED":
            return self._ours[seen.uid]
        if seen.type == "DELETED":
            return self._deleted_by.get(seen.uid) or self._by_version.get(seen.version, COLLECTOR)
        return self._by_version.get(seen.version, "server")

    # ---- watching

    async def watch(self, client: Client, resource: Resource, ready: asyncio.Event) -> None:
        """Follow one resource, for ever."""
        form = Untyped(resource.gvk, resource)
        is_begun = False
        while True:
            try:
                found = await client.list(form)
                if is_begun:
                    self._catch_up(resource, list(found))
                else:
                    self.begin(resource, found)
                is_begun = True
                ready.set()
                async with client.watch(form, resource_version=found.resource_version) as changes:
                    async for change in changes:
                        self.see(resource, change.type, change.object)
            except SetpointError:
                ready.set()
                if not is_begun:
                    return  # what may not be read, or cannot, is not ours to follow
                await asyncio.sleep(_AGAIN)

    def _catch_up(self, resource: Resource, found: list[dict[str, Any]]) -> None:
        """After a gap: what is there now, and what no longer is."""
        there = {_place(resource, obj) for obj in found}
        for obj in found:
            self.see(resource, "MODIFIED" if _place(resource, obj) in self.live else "ADDED", obj)
        for place in [each for each in self.live if each.resource == str(resource) and each not in there]:
            self.see(resource, "DELETED", msgspec.json.decode(self.live[place].record.data))


def _place(resource: Resource, obj: dict[str, Any]) -> Place:
    metadata = obj["metadata"]
    return Place(str(resource), metadata.get("namespace", ""), metadata["name"])


def _living(place: Place, obj: dict[str, Any], before: _Live | None) -> _Live:
    metadata = obj["metadata"]
    version = int(metadata["resourceVersion"])
    is_same = before is not None and before.uid == metadata["uid"]
    created = before.record.created if before is not None and is_same else version
    owners = [owner["uid"] for owner in metadata.get("ownerReferences") or ()]
    return _Live(Record(place, version, created, msgspec.json.encode(obj)), metadata["uid"], owners)
