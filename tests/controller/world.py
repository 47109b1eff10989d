"""A server in a function, with two kinds, and a process that runs controllers on it; for virtual time.

It knows as much of Kubernetes as these tests need; what a real server does is in tests/conformance.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from setpoint.api.meta import ObjectMeta
from setpoint.api.model import Model, Object
from setpoint.api.names import Key
from setpoint.api.patches import apply_merge
from setpoint.cache.cache import Cache
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.client import ReconcileClient
from setpoint.controller.controller import Controller
from setpoint.errors import SetpointError
from setpoint.metrics import Metrics
from setpoint.net.transport import Request as HttpRequest
from tests.peer import Reply, status

GROUP = "demo.setpoint.dev"
KINDS = {"parents": "Parent", "children": "Child", "rooms": "Room"}


class Spec(Model):
    colour: str = "red"


class Parent(Object, group=GROUP, version="v1", plural="parents"):
    spec: Spec = Spec()


class Child(Object, group=GROUP, version="v1", plural="children"):
    spec: Spec = Spec()


class Room(Object, group=GROUP, version="v1", plural="rooms", namespaced=False):
    spec: Spec = Spec()


def child_of(parent: str, colour: str = "red", *, namespace: str = "shop") -> Child:
    child = Child(metadata=ObjectMeta(name=parent, namespace=namespace), spec=Spec(colour=colour))
    child.metadata.owner_references = [owner(parent)]
    return child


def owner(name: str, kind: str = "Parent", *, controller: bool = True) -> Any:
    from setpoint.api.meta import OwnerReference

    return OwnerReference(
        api_version=f"{GROUP}/v1", kind=kind, name=name, uid=f"uid-of-{name}", controller=controller
    )


@dataclass
class Watcher(Reply):
    plural: str = ""
    events: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def tell(self, kind: str, obj: dict[str, Any]) -> None:
        self.events.put_nowait(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    async def chunks(self) -> AsyncIterator[bytes]:
        while (event := await self.events.get()) is not None:
            yield event


class Server:
    """A transport.  ``refuse`` may answer first; ``lose`` may keep the answer to what was done."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, dict[Key, dict[str, Any]]] = {plural: {} for plural in KINDS}
        self.requests: list[str] = []
        self.refuse: Callable[[HttpRequest], Reply | None] = lambda _: None
        self.lose: Callable[[HttpRequest], SetpointError | None] = lambda _: None
        self.is_late = False  # events are held back
        self._held_back: list[tuple[str, str, dict[str, Any]]] = []
        self._history: list[tuple[str, str, dict[str, Any]]] = []  # what was told
        self._watchers: list[Watcher] = []

    # What happens on the server, by hand.

    def put(self, plural: str, name: str, *, namespace: str = "shop", **more: Any) -> dict[str, Any]:
        spec = {"colour": more.pop("colour", "red")}
        metadata = {"name": name, "namespace": namespace, **more}
        return self._store(plural, {"metadata": metadata, "spec": spec})

    def delete(self, plural: str, name: str, *, namespace: str = "shop") -> dict[str, Any]:
        self.version += 1
        obj = self.objects[plural].pop(Key(namespace, name))
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        self._tell("DELETED", plural, obj)
        return obj

    def catch_up(self) -> None:
        """Send what was held back, and hold nothing back any more."""
        self.is_late = False
        held, self._held_back = self._held_back, []
        for event in held:
            self._tell(*event)

    def cut(self) -> None:
        """End every watch."""
        for watcher in self._watchers:
            watcher.events.put_nowait(None)
        self._watchers = []

    def writes(self) -> list[str]:
        return [each for each in self.requests if not each.startswith(("get", "list", "watch"))]

    def _store(self, plural: str, obj: dict[str, Any]) -> dict[str, Any]:
        metadata = obj["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        known = self.objects[plural].get(key)
        self.version += 1
        stored = {
            "apiVersion": f"{GROUP}/v1",
            "kind": KINDS[plural],
            **obj,
            "metadata": {
                "generation": 1,
                **metadata,
                "uid": known["metadata"]["uid"] if known else f"uid-{self.version}",
                "resourceVersion": str(self.version),
            },
        }
        self.objects[plural][key] = stored
        self._tell("MODIFIED" if known else "ADDED", plural, stored)
        return stored

    def _tell(self, kind: str, plural: str, obj: dict[str, Any]) -> None:
        if self.is_late:
            self._held_back.append((kind, plural, obj))
            return
        self._history.append((kind, plural, copy.deepcopy(obj)))
        for watcher in self._watchers:
            if watcher.plural == plural:
                watcher.tell(kind, obj)

    # What it answers.

    async def __call__(self, request: HttpRequest) -> Reply:
        parts = urlsplit(request.target)
        if parts.path in ("/api", "/apis"):
            return self.refuse(request) or _discovery(parts.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        steps = parts.path.removeprefix(f"/apis/{GROUP}/v1").strip("/").split("/")
        namespace = ""
        if steps[0] == "namespaces":
            namespace, steps = steps[1], steps[2:]
        plural, name = steps[0], steps[1] if len(steps) > 1 else ""
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(
            request.method, "watch" if "watch" in query else "get" if name else "list"
        )
        self.requests.append(f"{verb} {plural} {Key(namespace, name)}".rstrip())
        refused = self.refuse(request)
        if refused is not None:
            return refused
        reply = self._answer(verb, plural, Key(namespace, name), json.loads(request.body or b"null"), query)
        lost = self.lose(request)
        if lost is not None:
            raise lost
        return reply

    def _answer(self, verb: str, plural: str, key: Key, body: Any, query: dict[str, str]) -> Reply:
        objects = self.objects[plural]
        if verb == "watch":
            return self._watch(plural, query)
        if verb == "list":
            return self._page(each for at, each in objects.items() if key.namespace in ("", at.namespace))
        if verb == "delete" and not key.name:
            gone = [at for at in objects if at.namespace == key.namespace]
            return self._page(self.delete(plural, at.name, namespace=at.namespace) for at in gone)
        if verb == "create":
            return Reply(201, self._store(plural, body))
        if key not in objects:
            return status(404, "NotFound", f'"{key.name}" not found', details={"name": key.name})
        if verb == "delete":
            gone_one = self.delete(plural, key.name, namespace=key.namespace)
            return Reply(200, status(200, details={"uid": gone_one["metadata"]["uid"]}).body)
        if verb == "update":
            if body["metadata"].get("resourceVersion") not in (None, self._version_of(plural, key)):
                return status(409, "Conflict", "it has changed", details={"name": key.name})
            return Reply(200, self._store(plural, body))
        if verb == "patch":
            return Reply(200, self._store(plural, apply_merge(body, objects[key])))
        return Reply(200, objects[key])

    def _version_of(self, plural: str, key: Key) -> str:
        return str(self.objects[plural][key]["metadata"]["resourceVersion"])

    def _page(self, items: Iterator[dict[str, Any]]) -> Reply:
        return Reply(200, {"items": list(items), "metadata": {"resourceVersion": str(self.version)}})

    def _watch(self, plural: str, query: dict[str, str]) -> Reply:
        watcher = Watcher(200, plural=plural)
        if "sendInitialEvents" in query:
            for obj in self.objects[plural].values():
                watcher.tell("ADDED", obj)
            end = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": str(self.version)}
            watcher.tell("BOOKMARK", {"kind": KINDS[plural], "metadata": end})
        else:
            since = int(query.get("resourceVersion", self.version))
            for kind, of, obj in self._history:
                if of == plural and int(obj["metadata"]["resourceVersion"]) > since:
                    watcher.tell(kind, obj)
        self._watchers.append(watcher)
        return watcher


def _discovery(path: str) -> Reply:
    kinds = [
        {
            "resource": plural,
            "responseKind": {"kind": kind},
            "scope": "Cluster" if plural == "rooms" else "Namespaced",
        }
        for plural, kind in KINDS.items()
    ]
    group = {"metadata": {"name": GROUP}, "versions": [{"version": "v1", "resources": kinds}]}
    return Reply(200, {"kind": "APIGroupDiscoveryList", "items": [group] if path == "/apis" else []})


def client_of(server: Server) -> Client:
    return Client(Config(server="http://localhost", namespace="shop"), transport=server)


class Process:
    """What a manager is to a controller: a client, a cache and metrics, and controllers that it runs."""

    def __init__(self, server: Server | Client, **caching: Any) -> None:
        self.metrics = Metrics()
        plain = server if isinstance(server, Client) else client_of(server)
        self.cache = Cache(plain, self.metrics, **caching)
        self.client = ReconcileClient(plain, self.cache)
        self.is_leading = True
        self.added: list[Controller] = []

    def add(self, runnable: Controller, /) -> None:
        self.added.append(runnable)

    def value(self, name: str, /, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def running(process: Process, *controllers: Controller) -> AsyncIterator[None]:
    """The cache and the controllers run while the block does; then they stop, controllers first."""
    async with process.cache:
        tasks = [asyncio.create_task(each.run()) for each in (*process.added, *controllers)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.result()


async def until(condition: Callable[[], object], *, within: float = 3600) -> None:
    """Wait until something is so; in virtual time this takes none."""
    step = 0.001
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(step)
            step = min(0.5, step * 1.05)
