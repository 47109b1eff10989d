"""A server in a function that knows apply, status, finalizers and preconditions; for use in virtual time.

It knows as much of Kubernetes as these tests need: maps are merged by entry, lists are one piece.  What a
real server does is in tests/conformance/test_operator.py.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from setpoint.api import Condition, Key, Model, Object, ObjectMeta
from setpoint.api.patches import (
    APPLY_CONTENT_TYPE,
    JsonPatch,
    MergePatch,
    PatchError,
    apply_merge,
    apply_patch,
)
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request as HttpRequest
from setpoint.operator import Operator
from tests.controller.world import GROUP, Server, Spec
from tests.peer import Reply, status

Wire = dict[str, Any]


class ParentStatus(Model):
    phase: str | None = None
    looks: int = 0
    observed_generation: int | None = None
    conditions: list[Condition] = []


class Parent(Object, group=GROUP, version="v1", plural="parents", subresources=["status"]):
    spec: Spec = Spec()
    status: ParentStatus = ParentStatus()


class Child(Object, group=GROUP, version="v1", plural="children"):
    spec: Spec = Spec()


class Room(Object, group=GROUP, version="v1", plural="rooms", namespaced=False):
    spec: Spec = Spec()


def child(name: str = "web", colour: str = "red") -> Child:
    return Child(metadata=ObjectMeta(name=name), spec=Spec(colour=colour))


class Cluster(Server):
    """``requests`` are as in ``Server``, with ``apply`` and subresources; ``events`` is what it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.events: dict[Key, Wire] = {}

    def of(self, plural: str, name: str = "web", namespace: str = "shop") -> Wire:
        """An object as the server has it."""
        return self.objects[plural][Key(namespace, name)]

    def names(self, plural: str) -> list[str]:
        return [key.name for key in self.objects[plural]]

    def change(self, plural: str, name: str, patch: Wire, *, manager: str = "someone") -> Wire:
        """Somebody else changes an object; what was applied of it is no longer ours."""
        return self._put(plural, apply_merge(patch, self.of(plural, name)), manager=manager, changed=patch)

    def mark_deleted(self, plural: str, name: str) -> None:
        """Somebody deletes an object that has finalizers."""
        deleted = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
        self.change(plural, name, {"metadata": deleted})

    async def __call__(self, request: HttpRequest) -> Reply:
        parts = urlsplit(request.target)
        if parts.path.startswith("/apis/events.k8s.io/v1/"):
            return self._event(request, parts.path)
        steps = parts.path.removeprefix(f"/apis/{GROUP}/v1").strip("/").split("/")
        namespace = ""
        if steps[0] == "namespaces":
            namespace, steps = steps[1], steps[2:]
        plural, name, subresource = (*steps, "", "")[:3]
        if request.method == "GET" or (request.method == "DELETE" and not name):
            return await super().__call__(request)
        key = Key(namespace, name)
        kind = request.headers.get("Content-Type", "")
        verb = {"POST": "create", "PUT": "update", "DELETE": "delete", "PATCH": "patch"}[request.method]
        verb = "apply" if kind == APPLY_CONTENT_TYPE else verb
        what = f"{plural}/{subresource}" if subresource else plural
        self.requests.append(f"{verb} {what} {key}")
        refused = self.refuse(request)
        if refused is not None:
            return refused
        body = json.loads(request.body or b"null")
        manager = parse_qs(parts.query).get("fieldManager", [""])[0]
        reply = self._written(verb, kind, plural, key, body, subresource=subresource, manager=manager)
        lost = self.lose(request)
        if lost is not None:
            raise lost
        return reply

    def _written(
        self, verb: str, kind: str, plural: str, key: Key, body: Any, *, subresource: str, manager: str
    ) -> Reply:
        known = self.objects[plural].get(key)
        if verb == "create":
            place = Key(key.namespace, body["metadata"]["name"])
            if place in self.objects[plural]:
                return status(409, "AlreadyExists")
            return Reply(201, self._put(plural, _in_namespace(body, key.namespace), manager=manager))
        if verb == "apply":
            return Reply(200, self._apply(plural, key, body, manager))
        if known is None:
            return status(404, "NotFound", f'"{key.name}" not found', details={"name": key.name})
        if verb == "delete":
            return self._delete(plural, key, known, body or {})
        try:
            made = (
                apply_patch(body, known)
                if kind == JsonPatch.content_type
                else apply_merge(body, known)
                if kind == MergePatch.content_type
                else body
            )
        except PatchError:
            return status(422, "Invalid")
        if made["metadata"].get("uid") != known["metadata"]["uid"]:
            return status(422, "Invalid", details={"causes": [{"field": "metadata.uid"}]})
        if made["metadata"].get("resourceVersion") != known["metadata"]["resourceVersion"]:
            return status(409, "Conflict", details={"name": key.name})
        if subresource:
            made = {**known, "status": made.get("status")}
        return Reply(200, self._put(plural, made, manager=manager))

    def _apply(self, plural: str, key: Key, intent: Wire, manager: str) -> Wire:
        known = self.objects[plural].get(key) or {"metadata": {}}
        entries = [each for each in _entries(known) if each["manager"] != manager]
        said = {name: value for name, value in intent.items() if name in ("metadata", "spec")}
        metadata = {
            name: value for name, value in said["metadata"].items() if name not in ("name", "namespace")
        }
        claimed = {**said, "metadata": metadata}
        made = apply_merge(_in_namespace(said, key.namespace), known)
        entry = {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": intent["apiVersion"],
            "fieldsV1": _fields(claimed),
        }
        made["metadata"] = {**made["metadata"], "managedFields": [*entries, entry]}
        return self._put(plural, made, manager="")

    def _put(self, plural: str, obj: Wire, *, manager: str, changed: Wire | None = None) -> Wire:
        key = Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        known = self.objects[plural].get(key)
        obj = copy.deepcopy(obj)
        if known is not None and _plain(known) == _plain(obj) and _entries(known) == _entries(obj):
            return known  # a write that changes nothing is none
        generation = 1 if known is None else known["metadata"]["generation"]
        if known is not None and known.get("spec") != obj.get("spec"):
            generation += 1
        obj["metadata"]["generation"] = generation
        if changed is not None:
            theirs = {"manager": manager, "operation": "Update", "fieldsV1": _fields(changed)}
            ours = [{**each, "fieldsV1": _less(each["fieldsV1"], _fields(changed))} for each in _entries(obj)]
            obj["metadata"]["managedFields"] = [*ours, theirs]
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            self.delete(plural, key.name, namespace=key.namespace)
            return obj
        return self._store(plural, obj)

    def _delete(self, plural: str, key: Key, known: Wire, options: Wire) -> Reply:
        metadata = known["metadata"]
        for name, value in (options.get("preconditions") or {}).items():
            if metadata[name] != value:
                return status(409, "Conflict", f"{name} is {metadata[name]}", details={"name": key.name})
        if metadata.get("finalizers"):
            self.mark_deleted(plural, key.name)
            return Reply(200, self.of(plural, key.name))
        self.delete(plural, key.name, namespace=key.namespace)
        return Reply(200, status(200, details={"uid": metadata["uid"]}).body)

    def _event(self, request: HttpRequest, path: str) -> Reply:
        namespace = path.split("/")[5]
        body = json.loads(request.body or b"null")
        if request.method == "POST":
            key = Key(namespace, body["metadata"]["name"])
            self.events[key] = body
        else:
            key = Key(namespace, path.rsplit("/", 1)[-1])
            self.events[key] = apply_merge(body, self.events[key])
        return Reply(200, self.events[key])


def _in_namespace(obj: Wire, namespace: str) -> Wire:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _entries(obj: Wire) -> list[Wire]:
    entries: list[Wire] = obj["metadata"].get("managedFields") or []
    return entries


def _plain(obj: Wire) -> Wire:
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("managedFields", "resourceVersion", "generation", "uid")
    }
    return {"metadata": metadata, "spec": obj.get("spec"), "status": obj.get("status")}


def _fields(value: Any) -> Wire:
    if not isinstance(value, dict):
        return {}
    return {f"f:{name}": _fields(below) for name, below in value.items()}


def _less(fields: Wire, taken: Wire) -> Wire:
    """What is left of our fields when others have set some."""
    left: Wire = {}
    for step, below in fields.items():
        if step not in taken:
            left[step] = below
        elif below and taken[step] and (rest := _less(below, taken[step])):
            left[step] = rest
    return left


@asynccontextmanager
async def running(operator: Operator, cluster: Cluster, **options: Any) -> AsyncIterator[Manager]:
    """The operator runs on the cluster while the block does."""
    client = Client(Config(server="http://localhost", namespace="default"), transport=cluster)
    manager = Manager(client=client, **options)
    operator.add_to(manager)
    async with manager:
        yield manager


async def until(condition: Callable[[], object], *, within: float = 600) -> None:
    """Wait until something is so; in virtual time this takes none."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


async def quiet(cluster: Cluster, seconds: float = 30) -> None:
    """Wait until no request was made for a while, but for watches."""
    while True:
        count = len(cluster.requests)
        await asyncio.sleep(seconds)
        if len(cluster.requests) == count:
            return
