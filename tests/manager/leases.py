"""An API server in a function that knows one sort of object well: whatever is written, by version.

Its ways of being bad are those of a network: ``latency`` before it acts and before it answers, ``down``
(nothing gets there), and ``mute`` (what is asked is done, and no answer comes).  Only with ``tells`` may it
be watched.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.transport import Request
from tests.peer import Reply, status

LEASE = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/shop-operator"


@dataclass
class Told(Reply):
    """A watch, which brings what it is told."""

    events: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield await self.events.get()

    def tell(self, kind: str, found: dict[str, Any]) -> None:
        self.events.put_nowait(json.dumps({"type": kind, "object": found}).encode() + b"\n")


@dataclass
class Shelf:
    """A transport."""

    latency: float = 0.0
    down: bool = False
    mute: bool = False
    tells: bool = False
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)  # when, where, what
    requests: int = 0
    refuse: list[Reply] = field(default_factory=list)  # answers to the next writes that are no leases
    watches: list[Told] = field(default_factory=list)
    _version: int = 0

    @classmethod
    def with_free_lease(cls, path: str = LEASE, **options: Any) -> Shelf:
        """One where an earlier leader gave the lease back: a candidate takes it at once."""
        shelf = cls(**options)
        namespace, name = path.split("/")[5], path.split("/")[7]
        at = "2029-12-31T12:00:00.000000Z"
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": at, "renewTime": at}
        metadata = {"namespace": namespace, "name": name, "resourceVersion": "0"}
        shelf.objects[path] = {"metadata": metadata, "spec": spec}
        return shelf

    def delete(self) -> None:
        """Somebody deletes the lease."""
        (path,) = [path for path in self.objects if "/leases/" in path]
        lease = self.objects.pop(path)
        for each in self.watches:
            each.tell("DELETED", lease)

    async def __call__(self, request: Request) -> Reply:
        self.requests += 1
        if self.down:
            raise ConnectionFailed("", "nobody answers")
        await asyncio.sleep(self.latency / 2)
        path = urlsplit(request.target).path
        if "watch" in parse_qs(urlsplit(request.target).query):
            return self._watch()
        reply = self._answer(request.method, path, json.loads(request.body or b"null"))
        if self.mute:
            raise AnswerLost("", "the connection was reset")
        await asyncio.sleep(self.latency / 2)
        return reply

    def _watch(self) -> Reply:
        if not self.tells:
            return status(403, "Forbidden")
        self.watches.append(told := Told())
        for found in self.objects.values():
            told.tell("ADDED", found)
        return told

    def _answer(self, method: str, path: str, body: dict[str, Any]) -> Reply:
        if method == "GET":
            found = self.objects.get(path)
            return Reply(200, found) if found else status(404, "NotFound", details={"name": "x"})
        if self.refuse and "/leases" not in path:
            return self.refuse.pop(0)
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return status(409, "AlreadyExists")
            return Reply(201, self._put(path, body))
        wanted = body["metadata"].get("resourceVersion")
        if path not in self.objects:
            return status(404, "NotFound", details={"name": "x"})
        if wanted != self.objects[path]["metadata"]["resourceVersion"]:
            return status(409, "Conflict")
        return Reply(200, self._put(path, body))

    def _put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = body
        for each in self.watches:
            each.tell("MODIFIED", body)
        self.writes.append((asyncio.get_running_loop().time(), path, body.get("spec", {})))
        return body

    @property
    def lease(self) -> dict[str, Any]:
        """What the one lease says."""
        (found,) = [each for path, each in self.objects.items() if "/leases/" in path]
        spec: dict[str, Any] = found["spec"]
        return spec

    @property
    def holder(self) -> str:
        held = [each for path, each in self.objects.items() if "/leases/" in path]
        return str(held[0]["spec"].get("holderIdentity") or "") if held else ""

    def edit(self, **spec: Any) -> None:
        """Somebody else writes the lease."""
        (path,) = [path for path in self.objects if "/leases/" in path]
        body: dict[str, Any] = json.loads(json.dumps(self.objects[path]))
        body["spec"] |= spec
        self._put(path, body)


class Jumping:
    """A calendar that is put forward and back by years at every look."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> float:
        return 0.0

    def utc(self) -> datetime:
        self._looks += 1
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(days=3_000 * (-1) ** self._looks)
