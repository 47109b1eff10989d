"""The verbs: what is read from the store and how, what is written to it and when.

Each write is a loop around the pure steps of ``flow.py``: read, compute, store if unchanged since; when
somebody was faster it begins again, unless the client named the version it saw.  Nothing here knows HTTP.

Fed by http/app.py; drained into the store.  Kinds differ by their strategies and in ``subresources.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from setpoint.api.patches import APPLY_CONTENT_TYPE, same
from setpoint.clock import Clock
from setpoint.server.registry import bodies, decoding, deletion, flow, patching
from setpoint.server.registry.conversion import converted
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.listing import list_objects, list_options
from setpoint.server.registry.managed.apply import apply
from setpoint.server.registry.managed.managers import keep_times
from setpoint.server.registry.metadata import Names, is_deleting, timestamp
from setpoint.server.registry.requests import Answered, Ask, Listed, WriteOptions, write_options
from setpoint.server.registry.resources import Decoded, Object, Resource
from setpoint.server.registry.served import Resources
from setpoint.server.registry.subresources import PARTS, Subresources
from setpoint.server.registry.watching import Watching
from setpoint.server.statuses import (
    MODIFIED,
    StatusError,
    already_exists,
    conflict,
    forbidden,
    not_found,
    version_too_large,
)
from setpoint.server.storage.protocol import Changed, Place, Record, Store

_GENERATED_TRIES: Final = 8
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_PROTECTED: Final = frozenset({"default", "kube-system", "kube-public"})
_decode = msgspec.json.decode
_encode = msgspec.json.encode

Warnings = list[str]
Next = Callable[[Object], Object]  # from the object as it is, the one that is wanted


class Registry:
    """All objects of a server, behind the verbs of its API."""

    def __init__(
        self, store: Store, resources: Resources, *, clock: Clock, names: Names | None = None
    ) -> None:
        self.store = store
        self.resources = resources
        self.clock = clock
        self._names = names or Names()
        self._below = Subresources(self)

    def __repr__(self) -> str:
        return f"<Registry at {self.store.revision}, {self.resources!r}>"

    def now(self) -> str:
        return timestamp(self.clock.utc())

    # ── Reading ─────────────────────────────────────────────────────────────────────────────────────

    async def get(self, ask: Ask) -> Answered:
        if ask.subresource and ask.subresource not in PARTS:
            return await self._below.answer(ask)
        # A version that is none is told here as a watch tells it.
        options = list_options(ask.query, is_watch=True) if "resourceVersion" in ask.query else None
        if options is not None and options.version and options.version > self.store.revision:
            raise version_too_large(options.version, self.store.revision)
        record = self.present(ask.resource, self.find(ask))
        return Answered(200, record.data, ask.resource)

    async def list(self, ask: Ask) -> Listed:
        listed = list_objects(self.store, ask)
        return listed._replace(records=[self.present(ask.resource, one) for one in listed.records])

    def watch(self, ask: Ask) -> Watching:
        return Watching(self.store, ask, self.present)

    def find(self, ask: Ask) -> Record:
        record = self.store.get(_place(ask))
        if record is None:
            raise not_found(ask.resource.plural, ask.resource.group, ask.name)
        return record

    def present(self, resource: Resource, record: Record) -> Record:
        """The object in the version that was asked for; nearly always it is stored so."""
        if record.data.startswith(resource.head) and record.revision >= resource.since:
            return record
        shown = converted(_decode(record.data), resource)
        return Record(record.place, record.revision, record.created, _encode(shown))

    def live(self, ask: Ask) -> tuple[Record, Object]:
        """An object as it is, to be changed."""
        record = self.find(ask)
        found: Object = _decode(self.present(ask.resource, record).data)
        return record, found

    # ── Creating ────────────────────────────────────────────────────────────────────────────────────

    async def create(self, ask: Ask) -> Answered:
        if ask.subresource or ask.resource.strategy.is_virtual:
            return await self._below.answer(ask)
        return await self._create_from_body(ask, tries=_GENERATED_TRIES)

    async def establish(self, ask: Ask) -> None:
        """Create one of the objects that every cluster begins with."""
        await self._create(decoding.decode(ask).object, ask, write_options(ask), [], is_trusted=True)

    async def _create_from_body(self, ask: Ask, tries: int) -> Answered:
        options = write_options(ask)
        decoded = decoding.decode(ask)
        warnings = flow.check_fields(decoded, ask.resource, options)
        flow.check_place(decoded.object, ask)
        metadata = decoded.object["metadata"]
        is_generated = not metadata.get("name") and bool(metadata.get("generateName"))
        if is_generated:
            metadata["name"] = self._names.generated(metadata["generateName"])
        try:
            return await self._create(decoded.object, ask, options, warnings)
        except StatusError as refused:
            refused.warnings = (*warnings, *refused.warnings)
            if not is_generated or refused.reason != "AlreadyExists":
                raise
            if tries > 1:
                return await self._create_from_body(ask, tries - 1)
            told = "the server was not able to generate a unique name for the object"
            details = {**(refused.details or {}), "retryAfterSeconds": 1}
            raise StatusError(409, "AlreadyExists", f"{refused.message}, {told}", details=details) from None

    async def _create(
        self,
        obj: Object,
        ask: Ask,
        options: WriteOptions,
        warnings: Warnings,
        *,
        is_tracked: bool = False,
        is_trusted: bool = False,
    ) -> Answered:
        resource = ask.resource
        if obj["metadata"].get("resourceVersion"):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        resource.strategy.default(obj)
        self._admit_creation(obj, ask)
        emitted, more = flow.created(
            obj,
            ask,
            options,
            uid=self._names.uid(),
            now=self.now(),
            look=self._look,
            is_tracked=is_tracked,
            is_trusted=is_trusted,
        )
        warnings += more
        name = emitted["metadata"]["name"]
        place = Place(resource.stored, ask.namespace if resource.namespaced else "", name)
        held = resource.strategy.reserve(emitted, None)
        if options.is_dry_run:
            held.undo()
            if (found := self.store.get(place)) is not None:
                raise self._occupied(resource, name, found)
            del emitted["metadata"]["resourceVersion"]
            return Answered(201, _encode(emitted), resource, tuple(warnings))
        try:
            record = await self.store.create(place, flow.encoder(emitted))
        except Changed as changed:
            held.undo()
            raise self._occupied(resource, name, changed.found) from None
        except BaseException:
            held.undo()
            raise
        return Answered(201, record.data, resource, tuple(warnings))

    def _occupied(self, resource: Resource, name: str, found: Record | None) -> StatusError:
        is_going = found is not None and is_deleting(_decode(found.data))
        return already_exists(
            resource.plural, resource.group, name, prefix="object is being deleted: " if is_going else ""
        )

    def _look(self, stored: str) -> Sequence[Object]:
        return [_decode(record.data) for record in self.store.listed(stored)]

    def _admit_creation(self, obj: Object, ask: Ask) -> None:
        """Nothing is created in a namespace that is not there, or is going; nor of a kind that is going."""
        if ask.resource.is_custom:
            definition = self.store.get(Place(_DEFINITIONS, "", ask.resource.stored))
            if definition is not None and is_deleting(_decode(definition.data)):
                told = "create not allowed while custom resource definition is terminating"
                name = obj["metadata"].get("name", "")
                raise forbidden(ask.resource.plural, ask.resource.group, name, told)
        if not ask.resource.namespaced:
            return
        record = self.store.get(Place("namespaces", "", ask.namespace))
        if record is None:
            raise not_found("namespaces", "", ask.namespace)
        if is_deleting(_decode(record.data)):
            told = f"namespace {ask.namespace} is being terminated"
            raise forbidden(
                ask.resource.plural,
                ask.resource.group,
                obj["metadata"].get("name", ""),
                f"unable to create new content in namespace {ask.namespace} because it is being terminated",
                causes=[{"reason": "NamespaceTerminating", "message": told, "field": "metadata.namespace"}],
            )

    # ── Changing ────────────────────────────────────────────────────────────────────────────────────

    async def update(self, ask: Ask) -> Answered:
        if ask.subresource and ask.subresource not in PARTS:
            return await self._below.answer(ask)
        options = write_options(ask)
        decoded = decoding.decode(ask)
        warnings = flow.check_fields(decoded, ask.resource, options)
        flow.check_place(decoded.object, ask)
        flow.check_name(decoded.object, ask)
        is_new = self.store.get(_place(ask)) is None
        if is_new and ask.resource.strategy.allows_create_on_update and not ask.subresource:
            decoded.object["metadata"].pop("resourceVersion", None)
            return await self._create(decoded.object, ask, options, warnings)

        def wanted(_: Object) -> Object:
            again = decoding.decode(ask).object
            flow.check_place(again, ask)
            return again

        try:
            return await self.change(ask, options, wanted, warnings, is_put=True)
        except StatusError as refused:
            refused.warnings = (*warnings, *refused.warnings)
            raise

    async def patch(self, ask: Ask) -> Answered:
        if ask.subresource and ask.subresource not in PARTS:
            return await self._below.answer(ask)
        if bodies.media_type(ask.content_type) == APPLY_CONTENT_TYPE:
            return await self._apply(ask)
        options = write_options(ask)
        warnings: Warnings = []

        def wanted(old: Object) -> Object:
            warnings.clear()
            patch = patching.read(ask.body, ask.content_type, ask.resource)
            new = patching.perform(patch, old, ask.resource)
            decoded = decoding.conform_patched(new, ask.resource, old)
            decoded = Decoded(decoded.object, [*patch.doubled, *decoded.unknown])
            warnings.extend(decoding.check_patched(decoded, new, old, options.validation))
            flow.check_place(decoded.object, ask)
            flow.check_name(decoded.object, ask)
            return decoded.object

        return await self.change(ask, options, wanted, warnings)

    async def _apply(self, ask: Ask) -> Answered:
        options = write_options(ask, is_apply=True)
        resource = ask.resource
        intent, warnings = decoding.read_intent(ask, options.validation)
        metadata = intent.setdefault("metadata", {})
        flow.check_place({"metadata": dict(metadata)}, ask)  # a refusal shows the intent as it was sent
        metadata.setdefault("name", ask.name)
        flow.check_name(intent, ask)
        merge = partial(
            apply,
            manager=options.manager,
            api_version=resource.api_version,
            subresource=ask.subresource,
            force=options.is_forced,
            type=resource.type,
            kind=resource.kind,
            only=flow.tracked_fields(resource, ask.subresource),
        )

        def wanted(old: Object) -> Object:
            merged = merge(old, intent, now=self.now())
            return decoding.conform_patched(merged, resource).object

        if self.store.get(_place(ask)) is None:
            if ask.subresource:
                raise not_found(resource.plural, resource.group, ask.name)
            if intent["metadata"].get("uid"):
                raise _gone_meanwhile(resource, ask.name, intent)
            intent["metadata"].pop("resourceVersion", None)
            fresh = decoding.conform_patched(merge(None, intent, now=self.now()), resource).object
            flow.check_place(fresh, ask)
            try:
                return await self._create(fresh, ask, options, warnings, is_tracked=True)
            except StatusError as refused:
                if refused.reason != "AlreadyExists":
                    raise  # else somebody was faster, and it is there to be changed
        return await self.change(ask, options, wanted, warnings, is_tracked=True)

    async def change(
        self,
        ask: Ask,
        options: WriteOptions,
        wanted: Next,
        warnings: Warnings,
        *,
        is_put: bool = False,
        is_tracked: bool = False,
    ) -> Answered:
        """Bring an object to what ``wanted`` makes of it, however often somebody else is faster."""
        resource = ask.resource
        while True:
            record, old = self.live(ask)
            new = wanted(old)
            flow.check_version(new, old, resource, is_put=is_put)
            is_conditional = is_put and new["metadata"].get("resourceVersion") not in (None, "", "0")
            resource.strategy.default(new)
            emitted, more = flow.updated(new, old, ask, options, now=self.now(), is_tracked=is_tracked)
            keep_times(emitted, old)
            if same(emitted, old):
                return Answered(200, self.present(resource, record).data, resource, (*warnings, *more))
            held = resource.strategy.reserve(emitted, old)
            if options.is_dry_run:
                held.undo()
                return Answered(200, _encode(emitted), resource, (*warnings, *more))
            try:
                if deletion.is_finished(emitted, resource):
                    unchanged = _encode(emitted)
                    await self.remove(record, emitted, resource)
                    return Answered(200, unchanged, resource, (*warnings, *more))
                stored = await self.store.update(record.place, flow.encoder(emitted), record.revision)
            except Changed:
                held.undo()
                if is_conditional:
                    raise conflict(resource.plural, resource.group, ask.name, MODIFIED) from None
                continue
            except BaseException:
                held.undo()
                raise
            held.settle()
            return Answered(200, stored.data, resource, (*warnings, *more))

    # ── Deleting ────────────────────────────────────────────────────────────────────────────────────

    async def delete(self, ask: Ask) -> Answered:
        options = self._delete_options(ask)
        answered, is_waiting = await self._delete(ask, options)
        resource = ask.resource
        code = 202 if is_waiting and options.orphans is False else 200
        warnings: tuple[str, ...] = ()
        if not options.policy and options.orphans is None and resource.strategy.default_policy == "Orphan":
            warnings = resource.strategy.orphan_warnings
        return answered._replace(code=code, warnings=warnings)

    async def delete_collection(self, ask: Ask) -> Listed:
        options = self._delete_options(ask)
        listed = list_objects(self.store, ask)
        for record in listed.records:
            place = record.place
            one = msgspec.structs.replace(ask, verb="delete", name=place.name, namespace=place.namespace)
            try:
                await self._delete(one, options)
            except StatusError as refused:
                if refused.code != 404:
                    raise
        return listed._replace(records=[self.present(ask.resource, one) for one in listed.records])

    def _delete_options(self, ask: Ask) -> deletion.DeleteOptions:
        body = decoding.read_options(ask, type_of("", "v1", "DeleteOptions"))
        return deletion.delete_options(body, ask.query)

    async def _delete(self, ask: Ask, options: deletion.DeleteOptions) -> tuple[Answered, bool]:
        """The answer, and whether the object is still there."""
        resource = ask.resource
        while True:
            record, obj = self.live(ask)
            deletion.check_preconditions(obj, resource, options)
            if resource.stored == "namespaces" and ask.name in _PROTECTED:
                raise forbidden("namespaces", "", ask.name, "this namespace may not be deleted")
            resource.strategy.prepare_delete(obj)
            decision = deletion.decide(obj, resource, options, self.clock.utc())
            if options.is_dry_run or decision.does == "unchanged":
                if decision.does == "gone" and not resource.strategy.returns_deleted:
                    return _deleted(resource, obj), False
                return Answered(200, _encode(obj), resource), decision.does != "gone"
            try:
                if decision.does == "gone":
                    removed = await self.remove(record, obj, resource)
                    if resource.strategy.returns_deleted:
                        return Answered(200, removed.data, resource), False
                    return _deleted(resource, obj), False
                encode = flow.encoder(obj, is_going=True)
                marked = await self.store.update(record.place, encode, record.revision)
                return Answered(200, marked.data, resource), True
            except Changed:
                continue

    async def remove(self, record: Record, last: Object, resource: Resource) -> Record:
        """Take an object out of the store, and give back what it held."""
        removed = await self.store.delete(record.place, flow.encoder(last, is_going=True), record.revision)
        resource.strategy.release(last)
        return removed


def _place(ask: Ask) -> Place:
    return Place(ask.resource.stored, ask.namespace if ask.resource.namespaced else "", ask.name)


def _deleted(resource: Resource, obj: Object) -> Answered:
    """The Status of a deletion that is done; it carries no code."""
    details: dict[str, Any] = {"name": obj["metadata"]["name"]}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": obj["metadata"]["uid"]}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Answered(200, _encode(status))


def _gone_meanwhile(resource: Resource, name: str, intent: Object) -> StatusError:
    """An apply that names a uid means an object that exists."""
    told = "uid mismatch: the provided object specified uid {}, and no existing object was found"
    return conflict(resource.plural, resource.group, name, told.format(intent["metadata"]["uid"]))
