"""Definitions become resources: a task that follows CustomResourceDefinitions and serves what they define.

For every definition: judge its names against the others', write its conditions, serve its versions; when it
is deleted, delete its objects first, then let it go.  What is judged is ``crd/lifecycle.py``'s to say; this
file only carries it out, in the order in which the store's events come.  All that is loaded with the first
definition: a server without any is ready sooner.

Fed by the store's watch; drained into ``Resources``.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import msgspec

from setpoint.api.patches import same
from setpoint.server.registry import api_services, flow
from setpoint.server.registry.deletion import is_finished
from setpoint.server.registry.managed.managers import track_update
from setpoint.server.registry.metadata import is_deleting
from setpoint.server.registry.registry import Registry
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import StatusError
from setpoint.server.storage.protocol import Changed, Overrun, Place, Record, Watch

log = logging.getLogger("setpoint.server")

STORED = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_GROUP = "apiextensions.k8s.io"
_LOOK_AGAIN = 0.5  # seconds until a definition that is not where it should be is looked at again


class Definitions:
    """Keeps what is served in step with the definitions in the store."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._task: asyncio.Task[None] | None = None
        self._unsettled: set[str] = set()  # its objects have finalizers, or something failed: looked at again
        self._served: dict[str, Object] = {}  # by name, what each definition was when it was last served

    def load(self) -> None:
        """Serve what was established before; called before the first request."""
        for record in self._registry.store.listed(STORED):
            self._serve(msgspec.json.decode(record.data), record.revision)

    def start(self) -> None:
        after = self._registry.store.revision
        self._task = asyncio.create_task(self._follow(after), name="custom resource definitions")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _follow(self, after: int) -> None:
        while True:
            watch = self._registry.store.watch(STORED, "", after)
            try:
                for record in self._registry.store.listed(STORED):  # what a crash left unfinished
                    await self._settle(record.place.name)
                await self._follow_events(watch)
            except Overrun:
                after = self._registry.store.revision  # too many at once: look at all of them again
            finally:
                watch.close()

    async def _follow_events(self, watch: Watch) -> None:
        while True:
            try:
                async with asyncio.timeout(_LOOK_AGAIN if self._unsettled else None):
                    names = {event.record.place.name for event in await watch.next()}
            except TimeoutError:
                names = set(self._unsettled)
            for name in sorted(names):
                await self._settle(name)

    async def _settle(self, name: str) -> None:
        """Bring one definition to where it should be, and then those that its name was in the way of."""
        try:
            is_gone = await self._settle_one(name)
            if is_gone:
                for other in self._in_the_way(name):
                    await self._settle_one(other)
            await self._register(name.partition(".")[2])
        except StatusError as refused:
            if self._retry(name):
                log.warning("definition %s could not be settled, and is tried again: %s", name, refused)
        except Exception:
            if self._retry(name):
                log.exception("definition %s could not be settled, and is tried again", name)

    def _retry(self, name: str) -> bool:
        """Look at it again in a while; whether that is news."""
        is_new = name not in self._unsettled
        self._unsettled.add(name)
        return is_new

    def _in_the_way(self, name: str) -> list[str]:
        return [record.place.name for record in self._of_group(STORED, name.partition(".")[2])]

    def _of_group(self, stored: str, group: str) -> list[Record]:
        """Definitions and APIServices say in their names which group they are of."""
        listed = self._registry.store.listed(stored)
        return [record for record in listed if record.place.name.partition(".")[2] == group]

    async def _register(self, group: str) -> None:
        """Each version that definitions of a group serve has its APIService, and none has one longer."""
        kept = {one.place.name: one for one in self._of_group(api_services.STORED, group)}
        definitions = [msgspec.json.decode(one.data) for one in self._of_group(STORED, group)]
        wanted = api_services.of_definitions(definitions)
        resource = self._registry.resources.builtin(api_services.GROUP, "v1", "apiservices")
        for name, obj in wanted.items():
            if name not in kept:
                body, agent = msgspec.json.encode(obj), "kube-apiserver"
                made = Ask("create", resource, body=body, content_type="application/json", user_agent=agent)
                await self._registry.establish(made)
        for name, record in kept.items():
            if name not in wanted and api_services.is_of_definitions(msgspec.json.decode(record.data)):
                await self._registry.delete(Ask("delete", resource, name=name), is_trusted=True)

    async def _settle_one(self, name: str) -> bool:
        """Whether the definition is gone."""
        from setpoint.server.registry.crd import lifecycle  # noqa: PLC0415

        while True:
            record = self._registry.store.get(Place(STORED, "", name))
            if record is None:
                self._unsettled.discard(name)
                self._unserve(name)
                return True
            crd: Object = msgspec.json.decode(record.data)
            if is_deleting(crd):
                await self._clean_up(record, crd)
                left = self._registry.store.get(record.place)
                if left is not None and left.revision == record.revision:
                    self._unsettled.add(name)
                    return False
                continue
            status = lifecycle.status_of(crd, self._others(name), now=self._registry.now())
            if not same(status, crd.get("status")):
                crd["status"] = status
                try:
                    record = await self._write(record, crd)
                except Changed:
                    continue
            self._serve(crd, record.revision)
            self._unsettled.discard(name)
            return False

    def _others(self, name: str) -> list[Object]:
        return [
            msgspec.json.decode(record.data)
            for record in self._registry.store.listed(STORED)
            if record.place.name != name
        ]

    def _serve(self, crd: Object, revision: int) -> None:
        """From now on as the definition says; objects that are older are read by its new schema."""
        from setpoint.server.registry.crd import lifecycle  # noqa: PLC0415
        from setpoint.server.registry.crd.resource import resources_of  # noqa: PLC0415

        name = crd["metadata"]["name"]
        if not lifecycle.is_established(crd):
            self._unserve(name)
            return
        wanted = {"spec": crd["spec"], "names": crd["status"].get("acceptedNames")}
        if same(self._served.get(name), wanted):
            return
        self._served[name] = wanted
        resources = [replace(one, since=revision) for one in resources_of(crd)]
        if resources:
            self._registry.look_for_strays(resources[0])
        self._registry.resources.set_custom(name, resources)

    def _unserve(self, name: str) -> None:
        self._served.pop(name, None)
        self._registry.resources.set_custom(name, [])

    async def _write(self, record: Record, crd: Object) -> Record:
        definition = self._definition()
        emitted = definition.strategy.emit(crd)
        track_update(
            emitted,
            msgspec.json.decode(record.data),
            manager="kube-apiserver",
            api_version=definition.api_version,
            subresource="status",
            now=self._registry.now(),
            type=definition.type,
            only=flow.tracked_fields(definition, "status"),
        )
        emitted = definition.strategy.emit(emitted)
        return await self._registry.store.update(record.place, flow.encoder(emitted), record.revision)

    def _definition(self) -> Resource:
        return self._registry.resources.builtin(_GROUP, "v1", "customresourcedefinitions")

    async def _clean_up(self, record: Record, crd: Object) -> None:
        """Delete the objects, then take our finalizer away."""
        from setpoint.server.registry.crd import lifecycle  # noqa: PLC0415

        finalizers = crd["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            if is_finished(crd, self._definition()):
                await self._registry.remove(record, crd, self._definition())
            return
        terminating = lifecycle.terminating_status(crd, now=self._registry.now())
        if not same(terminating, crd.get("status")):
            crd["status"] = terminating
            try:
                record = await self._write(record, crd)
            except Changed:
                return
        if not await self._delete_objects(crd):
            return
        crd = msgspec.json.decode(record.data)
        crd["metadata"]["finalizers"] = [one for one in finalizers if one != FINALIZER]
        if not crd["metadata"]["finalizers"]:
            del crd["metadata"]["finalizers"]
        self._unserve(crd["metadata"]["name"])
        try:
            if is_finished(crd, self._definition()):
                await self._registry.remove(record, crd, self._definition())
            else:
                await self._write(record, crd)
        except Changed:
            return

    async def _delete_objects(self, crd: Object) -> bool:
        """Whether none is left."""
        from setpoint.server.registry.crd.resource import resources_of  # noqa: PLC0415

        served = self._registry.resources.custom().get(crd["metadata"]["name"]) or resources_of(crd)
        if not served:
            return True
        # As they are stored: nobody need convert what only goes, and whoever could may be gone already.
        family = served[0].family
        resource = served[0] if family is None else family.members[family.storage]
        for record in self._registry.store.listed(resource.stored):
            ask = Ask("delete", resource, namespace=record.place.namespace, name=record.place.name)
            try:
                await self._registry.delete(ask, is_trusted=True)
            except StatusError as refused:
                if refused.code != 404:
                    raise
        return not self._registry.store.listed(resource.stored)
