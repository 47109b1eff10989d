"""The garbage collector: deletes what nobody owns any more, and lets owners go as they were told to.

1. An object all of whose owners are absent is deleted.  An owner is absent if the server, asked now, has no
   object of that kind, name and uid where the reference can mean one.  A uid never comes back: what is absent
   stays so.
2. An object that has owners still loses only the references to those that are absent, or wait for it.
3. An owner deleted in the foreground goes after its dependents: all of them are deleted, and those that
   block it must be gone.  In a circle of such, blocking is given up.
4. An owner deleted as ``orphan`` goes when no dependent names it any more.
5. An object in one namespace cannot own one in another: a Warning says so, and it counts as absent.  What
   belongs to no namespace and names an owner in one is never deleted.
6. Every kind is watched that can be listed, watched and deleted, new ones as soon as they are served; of the
   objects only the metadata is kept.  No owner goes before all of them have been listed once.

Everything is decided on the metadata as the watches brought it, and every write carries the version and uid
it was decided on; after a conflict it is decided anew on the live object.  Who is looked at when, is decided
in ``garbage_graph.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

from setpoint.api.forms import Form, MetadataOnly, Untyped
from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.api.patches import MergePatch
from setpoint.api.requests import Propagation
from setpoint.api.wire import Metadata, Owner, read_metadata
from setpoint.builtin.garbage_graph import FOREGROUND, ORPHAN, Graph, Node
from setpoint.builtin.parts import Manager, Parts
from setpoint.cache.cache import Cache
from setpoint.cache.store import Seen
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.controller import Controller
from setpoint.controller.event_series import Happening, Reference
from setpoint.controller.mapping import priority_of, reason_of
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Feed, Source
from setpoint.errors import Conflict, KindNotServed, NotFound, RetryLater, UnknownKind
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition

NAME: Final = "garbage-collector-controller"
WORKERS = 20  # as kube-controller-manager
LOOK_AT_KINDS_EVERY = 30.0  # in case that no definition told of a new kind
UNKNOWN_AGAIN = 30.0  # seconds until an owner of an unknown kind is looked for again
SYNC_AGAIN = 0.05  # seconds until it is asked again whether everything has been listed
ABSENT = 10_000  # owners that are remembered to be absent
_TRIES = 3  # decisions on the live object after a conflict, before backing off
_AT_ONCE = 20  # dependents that are orphaned at once
_IGNORED = {("", "events"), ("events.k8s.io", "events")}  # they own nothing, and have no owners

State: TypeAlias = Literal["solid", "absent", "waiting"]
_Place: TypeAlias = tuple[str, str, str, str, str]  # of an owner: namespace, apiVersion, kind, name, uid

log = logging.getLogger("setpoint.builtin.garbage")


def add_to(parts: Parts) -> None:
    """Collect garbage in this manager's cluster."""
    collector, manager = Collector(parts), parts.manager
    controller = Controller(
        NAME,
        collector,
        [],
        cache=manager.cache,
        metrics=manager.metrics,
        workers=WORKERS,
        may_start=lambda: manager.is_leading,
    )
    collector.look_at = controller.look_at
    manager.add(controller)
    kinds = _Kinds(collector, controller, manager)
    definitions = builder(manager).named("garbage-collector-kinds").for_(CustomResourceDefinition)
    definitions.streams(_once).every(LOOK_AT_KINDS_EVERY, lambda: [_ALL]).complete(kinds)


_ALL = Request("", "all")  # every kind there is, and no definition in particular


async def _once() -> AsyncIterator[Request]:
    yield _ALL


class AsMetadata(Form[Metadata]):
    """Objects of any kind, read as the small metadata that the cache keeps."""

    accept = MetadataOnly.accept
    accept_list = MetadataOnly.accept_list

    def __init__(self, gvk: GroupVersionKind, resource: Resource | None = None) -> None:
        self.gvk = gvk
        self.resource = resource

    def decode(self, data: bytes) -> Metadata:
        return read_metadata(data)


# ---- which kinds are watched -----------------------------------------------------------------------


def collected(resources: Iterable[Resource]) -> dict[tuple[str, str], Resource]:
    """The resources to watch, each in its preferred version."""
    found: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        place = (resource.group, resource.plural)
        if place not in _IGNORED and {"delete", "list", "watch"} <= set(resource.verbs):
            found.setdefault(place, resource)
    return found


class _Watched(Source):
    """The objects of one kind, told to the graph."""

    def __init__(self, cache: Cache, resource: Resource, graph: Graph) -> None:
        self.resource = resource
        self._graph = graph
        self._is_heard = False
        form = MetadataOnly(Untyped(resource.gvk, resource))
        self._declaration = cache.declare(form, metadata_only=True, strip_managed_fields=True)

    def __repr__(self) -> str:
        return f"<Watched {self.resource}>"

    @property
    def is_synced(self) -> bool:
        # One that cannot be watched just now must not hold up the others: a broken kind would else stop all.
        return self._is_heard and (self._declaration.is_synced or bool(self._declaration.problems))

    def close(self) -> None:
        self._declaration.close()

    async def run(self, feed: Feed) -> None:
        end = self._declaration.listen(lambda seen: self._hear(seen, feed))
        self._is_heard = True
        try:
            await asyncio.Event().wait()
        finally:
            end()

    def _hear(self, seen: Seen, feed: Feed) -> None:
        found: list[str] = []
        if seen.old is not None and (
            seen.new is None or seen.new.metadata.uid != seen.old.metadata.uid
        ):  # another one of its name: that it went was not seen
            found += self._graph.drop(seen.old.metadata.uid)
        if seen.new is not None:
            metadata = seen.new.metadata
            found += self._graph.put(self.resource, metadata)
            if seen.type == "RESYNC" and (metadata.owner_references or metadata.deletion_timestamp):
                found.append(metadata.uid)
        if found:
            priority, reason = priority_of(seen), reason_of(self.resource.gvk, seen)
            for uid in found:
                feed.add(Key("", uid), priority, reason)


class _Kinds:
    """Keeps the watches those of the kinds that are served."""

    def __init__(self, collector: Collector, controller: Controller, manager: Manager) -> None:
        self._collector = collector
        self._controller = controller
        self._manager = manager
        self._ends: dict[tuple[str, str], Callable[[], None]] = {}

    async def reconcile(self, request: Request) -> None:
        client = self._manager.client
        awaited: GroupVersionKind | None = None
        if request != _ALL:
            definition = await ignore_not_found(client.get(CustomResourceDefinition, request.name))
            awaited = None if definition is None else _served(definition)
        await client.discovery.refresh()
        resources = await client.discovery.resources()
        self._keep(collected(resources))
        if awaited is not None and all(each.gvk != awaited for each in resources):
            raise RetryLater(0.2, f"{awaited} is established and not served yet")

    def _keep(self, wanted: dict[tuple[str, str], Resource]) -> None:
        watched = self._collector.watched
        for place, source in list(watched.items()):
            if wanted.get(place) != source.resource:
                self._ends.pop(place)()
                del watched[place]
                self._collector.look_at_all(self._collector.graph.drop_kind(source.resource))
        for place, resource in wanted.items():
            if place not in watched:
                source = _Watched(self._manager.cache, resource, self._collector.graph)
                watched[place] = source
                self._ends[place] = self._controller.add_source(source)


def _served(definition: CustomResourceDefinition) -> GroupVersionKind | None:
    """A kind that the server has, or is about to have."""
    conditions = (definition.status.conditions if definition.status else None) or []
    versions = [each.name for each in definition.spec.versions if each.served]
    is_established = any(each.type == "Established" and each.status == "True" for each in conditions)
    if not is_established or not versions or definition.metadata.deletion_timestamp is not None:
        return None
    return GroupVersionKind(definition.spec.group, versions[0], definition.spec.names.kind)


# ---- what is done ----------------------------------------------------------------------------------


class Collector:
    """Brings one object, known by its uid, to where its owners want it."""

    def __init__(self, parts: Parts) -> None:
        self.graph = Graph()
        self.watched: dict[tuple[str, str], _Watched] = {}
        self.look_at: Callable[[Request], None] = lambda _: None
        self._recorder = parts.recorder
        self._client = parts.client.live
        self._absent: dict[_Place, None] = {}

    def __repr__(self) -> str:
        return f"<Collector, {len(self.watched)} kinds: {self.graph!r}>"

    @property
    def is_synced(self) -> bool:
        return bool(self.watched) and all(each.is_synced for each in self.watched.values())

    def look_at_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.look_at(Key("", uid))

    async def reconcile(self, request: Request) -> Result | None:
        for _ in range(_TRIES):
            node = self.graph.get(request.name)
            if node is None:
                return None
            try:
                return await self._look_at(node)
            except Conflict:
                if not await self._refresh(node):
                    return None
        return Result(requeue=True)

    async def _look_at(self, node: Node) -> Result | None:
        if node.orphans or node.waits:
            if not self.is_synced:
                raise RetryLater(SYNC_AGAIN, "not every kind has been listed yet")
            if node.orphans:
                await self._orphan(node)
            elif not self.graph.is_blocked(node.uid):
                await self._finish(node, FOREGROUND)
            return None
        if node.is_deleted or not node.owners:
            return None
        try:
            states = [await self._state(node, each) for each in node.owners]
        except _CannotOwn:
            return None
        except UnknownKind as error:
            log.info("%s is kept, as nothing is known of the kind of an owner: %s", node.metadata.key, error)
            return Result(requeue_after=UNKNOWN_AGAIN)
        kept = [each for each, state in zip(node.owners, states, strict=True) if state == "solid"]
        if len(kept) == len(states):
            return None
        if kept:
            await self._set_owners(node, kept)
        elif "waiting" in states and any(self.graph.dependents(node.uid)):
            await self._delete_in_foreground(node)
        else:
            await self._delete(node, _policy(node))
        return None

    # Owners.

    async def _state(self, node: Node, reference: Owner) -> State:
        owner = self.graph.get(reference.uid)
        namespace = node.metadata.namespace
        if owner is not None:
            if owner.is_elsewhere(namespace):
                if namespace:
                    self._tell_of_namespace(node, reference)
            elif owner.is_meant_by(reference, namespace) and not owner.waits:
                return "solid"  # or else that it went is on its way to us
        place = (namespace, reference.api_version, reference.kind, reference.name, reference.uid)
        if place in self._absent:
            return "absent"
        live = await self._read_owner(node, reference)
        if live is None or live.uid != reference.uid:
            self._absent[place] = None
            if len(self._absent) > ABSENT:
                del self._absent[next(iter(self._absent))]
            return "absent"
        is_waiting = live.deletion_timestamp is not None and FOREGROUND in (live.finalizers or ())
        return "waiting" if is_waiting else "solid"

    async def _read_owner(self, node: Node, reference: Owner) -> Metadata | None:
        try:
            gvk = GroupVersionKind.of(reference.api_version, reference.kind)
        except ValueError as error:
            raise UnknownKind(f"read the owner {reference.name}", str(error)) from error
        resource = await self._client.resource_of(AsMetadata(gvk))
        namespace = node.metadata.namespace
        if resource.namespaced and not namespace:
            self._tell_of_namespace(node, reference)
            raise _CannotOwn
        form = AsMetadata(gvk, resource)
        try:
            return await ignore_not_found(
                self._client.get(form, reference.name, namespace=namespace if resource.namespaced else None)
            )
        except KindNotServed as error:
            raise UnknownKind(error.doing, error.message) from error

    def _tell_of_namespace(self, node: Node, reference: Owner) -> None:
        key, resource = node.metadata.key, node.resource
        owner = (
            f"[{reference.api_version}/{reference.kind}, namespace: {key.namespace}, "
            f"name: {reference.name}, uid: {reference.uid}]"
        )
        note = f'ownerRef {owner} does not exist in namespace "{key.namespace}"'
        regarding = Reference(resource.api_version, resource.kind, key.namespace, key.name, node.uid)
        reason = "OwnerRefInvalidNamespace"
        self._recorder.record(Happening(NAME, regarding, "Warning", reason, reason, note))

    # Writes: each says on which version it was decided.

    async def _orphan(self, node: Node) -> None:
        dependents = list(self.graph.dependents(node.uid))
        for start in range(0, len(dependents), _AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for each in dependents[start : start + _AT_ONCE]:
                    tasks.create_task(self._release(each, node.uid))
        await self._finish(node, ORPHAN)

    async def _release(self, dependent: Node, owner: str) -> None:
        """Have a dependent name its owner no more."""
        for _ in range(_TRIES):
            node = self.graph.get(dependent.uid)
            if node is None:
                return
            others = [each for each in node.owners if each.uid != owner]
            if len(others) == len(node.owners):
                return
            try:
                await self._set_owners(node, others)
            except Conflict:
                await self._refresh(node)
            else:
                return
        raise RetryLater(SYNC_AGAIN, f"{dependent.metadata.key} changes all the time")

    async def _finish(self, node: Node, finalizer: str) -> None:
        """Let an object go, as far as we are concerned."""
        others = [each for each in node.metadata.finalizers or () if each != finalizer]
        await self._patch(node, {"finalizers": others})

    async def _set_owners(self, node: Node, owners: Iterable[Owner]) -> None:
        await self._patch(node, {"ownerReferences": [_wire(each) for each in owners]})

    async def _delete_in_foreground(self, node: Node) -> None:
        if any(each.waits for each in self.graph.dependents(node.uid)):
            # It is among what one of its dependents waits for: a circle, in which nobody could go first.
            unblocked = [{**_wire(each), "blockOwnerDeletion": False} for each in node.owners]
            if any(each.block_owner_deletion for each in node.owners):
                await self._patch(node, {"ownerReferences": unblocked})
                raise RetryLater(SYNC_AGAIN, "its owners are no longer blocked; it is deleted next")
        await self._delete(node, "Foreground")

    async def _patch(self, node: Node, metadata: dict[str, Any]) -> None:
        known = node.metadata
        condition = {"uid": known.uid, "resourceVersion": known.resource_version}
        patch = MergePatch({"metadata": {**metadata, **condition}})
        form = AsMetadata(node.resource.gvk, node.resource)
        await ignore_not_found(self._client.patch(form, known.name, patch, namespace=known.namespace or None))

    async def _delete(self, node: Node, propagation: Propagation) -> None:
        known = node.metadata
        log.debug("delete %s %s, which nobody owns (%s)", node.resource, known.key, propagation)
        with suppress(NotFound):  # which the watch is about to say
            await self._client.delete(
                AsMetadata(node.resource.gvk, node.resource),
                known.name,
                namespace=known.namespace or None,
                uid=known.uid,
                resource_version=known.resource_version,
                propagation=propagation,
            )

    async def _refresh(self, node: Node) -> bool:
        """Put the object into the graph as it is now; False if it is gone."""
        known = node.metadata
        form = AsMetadata(node.resource.gvk, node.resource)
        live = await ignore_not_found(self._client.get(form, known.name, namespace=known.namespace or None))
        if live is None or live.uid != known.uid:
            return False  # that it went is on its way to us
        self.look_at_all(self.graph.put(node.resource, live))
        return True


class _CannotOwn(Exception):
    """An owner in a namespace, of an object that belongs to none."""


def _policy(node: Node) -> Propagation:
    """How an object goes: as its finalizers say, if somebody has said already."""
    finalizers = node.metadata.finalizers or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"


def _wire(owner: Owner) -> dict[str, Any]:
    said = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
        "blockOwnerDeletion": owner.block_owner_deletion,
    }
    return {name: value for name, value in said.items() if value is not None}
