"""A server of Things in a function, for tests in virtual time: lists, watches, and what can go wrong.

It knows as much of Kubernetes as these tests need; what a real server does is in tests/conformance.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from setpoint.api.names import Key
from setpoint.api.selectors import LabelSelection
from setpoint.net.transport import Request
from tests.cache.objects import thing
from tests.peer import Reply, status


@dataclass
class _Watcher(Reply):
    namespace: str = ""
    labels: LabelSelection = field(default_factory=LabelSelection)
    events: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def selects(self, obj: dict[str, Any]) -> bool:
        return _selects(obj, self.namespace, self.labels)

    def tell(self, kind: str, obj: dict[str, Any]) -> None:
        self.events.put_nowait(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    async def chunks(self) -> AsyncIterator[bytes]:
        while (event := await self.events.get()) is not None:
            yield event


def _selects(obj: dict[str, Any], namespace: str, labels: LabelSelection) -> bool:
    metadata = obj["metadata"]
    return namespace in ("", metadata["namespace"]) and labels.matches(metadata.get("labels"))


class Server:
    """A transport.  ``refuse`` may answer a request before it is looked at; ``is_late`` holds events back."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[Key, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.refuse: Callable[[Request], Reply | None] = lambda _: None
        self.is_late = False
        self._held_back: list[tuple[str, dict[str, Any]]] = []
        self._watchers: list[_Watcher] = []
        self._forgotten = 0

    @property
    def watches(self) -> list[str]:
        """The namespaces of the watches that are open, "" for all."""
        return [watcher.namespace for watcher in self._watchers if not watcher.is_closed]

    # What happens on the server.

    def put(self, name: str, *, namespace: str = "shop", **more: Any) -> dict[str, Any]:
        key = Key(namespace, name)
        self.version += 1
        known = self.objects.get(key)
        uid = known["metadata"]["uid"] if known else f"{name}-{self.version}"
        obj = self.objects[key] = thing(name, self.version, namespace=namespace, uid=uid, **more)
        self._tell("MODIFIED" if known else "ADDED", obj)
        return obj

    def delete(self, name: str, *, namespace: str = "shop") -> None:
        self.version += 1
        obj = self.objects.pop(Key(namespace, name))
        self._tell("DELETED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}})

    def bookmark(self) -> None:
        for watcher in self._watchers:
            watcher.tell("BOOKMARK", thing("", self.version))

    def catch_up(self) -> None:
        """Send what was held back, and hold nothing back any more."""
        self.is_late = False
        held, self._held_back = self._held_back, []
        for kind, obj in held:
            self._tell(kind, obj)

    def cut(self) -> None:
        """End every watch; what happens from now on is missed, and forgotten."""
        for watcher in self._watchers:
            watcher.events.put_nowait(None)
        self._watchers = []
        self._held_back = []
        self._forgotten = self.version + 1

    def restore(self, objects: dict[Key, dict[str, Any]], version: int) -> None:
        """Be as an old backup says, and end every watch."""
        self.cut()
        self.objects, self.version, self._forgotten = dict(objects), version, version

    def _tell(self, kind: str, obj: dict[str, Any]) -> None:
        if self.is_late:
            self._held_back.append((kind, obj))
            return
        for watcher in self._watchers:
            if watcher.selects(obj):
                watcher.tell(kind, obj)

    # What it answers.

    async def __call__(self, request: Request) -> Reply:
        parts = urlsplit(request.target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.requests.append(f"{'watch' if 'watch' in query else 'get'} {parts.path}")
        refused = self.refuse(request)
        if refused is not None:
            return refused
        steps = parts.path.removeprefix("/apis/demo.setpoint.dev/v1/").split("/")
        namespace = steps[1] if steps[0] == "namespaces" else ""
        if steps[-1] != "things":
            found = self.objects.get(Key(namespace, steps[-1]))
            return Reply(200, found) if found else status(404, "NotFound", details={"name": steps[-1]})
        labels = LabelSelection.parse(query.get("labelSelector", ""))
        if "watch" in query:
            return self._watch(namespace, labels, query)
        items = [obj for obj in self.objects.values() if _selects(obj, namespace, labels)]
        return Reply(200, {"metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _watch(self, namespace: str, labels: LabelSelection, query: dict[str, str]) -> Reply:
        if int(query.get("resourceVersion", self.version)) < self._forgotten:
            return status(410, "Expired")
        watcher = _Watcher(200, namespace=namespace, labels=labels)
        if "sendInitialEvents" in query:
            for obj in self.objects.values():
                if watcher.selects(obj):
                    watcher.tell("ADDED", obj)
            end = thing("", self.version, annotations={"k8s.io/initial-events-end": "true"})
            watcher.tell("BOOKMARK", end)
        self._watchers.append(watcher)
        return watcher
