"""The verbs: what is read from the store and how, what is written to it and when.

Each write is a loop around the pure steps of ``flow.py``: read, compute, store if unchanged since; when
somebody was faster it begins again, unless the client named the version it saw.  Nothing here knows HTTP.

Who asks may go away, or take too long, and is then not worked for.  But what takes two commits (a pod that is
seen to go and is gone, a quota that is charged for what is made) is done whole or not begun.

Fed by http/app.py; drained into the store.  Kinds differ by their strategies and in ``subresources.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec

from setpoint.api.patches import APPLY_CONTENT_TYPE, same
from setpoint.clock import Clock
from setpoint.server.access import Access
from setpoint.server.admission import attributes as admitted
from setpoint.server.admission.admission import Admission
from setpoint.server.authorization import escalation
from setpoint.server.authorization.attributes import Attributes, refusal
from setpoint.server.registry import bodies, decoding, deletion, flow, patching
from setpoint.server.registry.admission import admit, judge
from setpoint.server.registry.beginnings import PRIORITIES
from setpoint.server.registry.conversion import (
    ConversionError,
    converted,
    is_stored_otherwise,
    shown,
    stored,
    stray,
    versions_of,
)
from setpoint.server.registry.converting import Telling, is_by_webhook
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.listing import list_objects, list_options
from setpoint.server.registry.managed.apply import apply
from setpoint.server.registry.managed.managers import Versions, keep_times
from setpoint.server.registry.metadata import Names, begin, is_deleting, timestamp
from setpoint.server.registry.patience import in_time
from setpoint.server.registry.requests import Answered, Ask, Listed, WriteOptions, write_options
from setpoint.server.registry.resources import Decoded, Object, Reservation, Resource
from setpoint.server.registry.served import Resources
from setpoint.server.registry.subresources import PARTS, Subresources
from setpoint.server.registry.watching import Watching
from setpoint.server.statuses import (
    StatusError,
    already_exists,
    conflict,
    forbidden,
    internal,
    not_found,
    too_many_requests,
    version_too_large,
)
from setpoint.server.storage.protocol import Changed, Place, Record, Store

_GENERATED_TRIES: Final = 8
_MOST_UNREAD: Final = 100  # objects of one list that are told to be unreadable
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_PROTECTED: Final = frozenset({"default", "kube-system", "kube-public"})
_PRIORITIES: Final = "priorityclasses.scheduling.k8s.io"
_DELETING: Final = b'"deletionTimestamp"'  # nowhere in most objects, which need not be decoded to tell
_decode = msgspec.json.decode
_encode = msgspec.json.encode

Warnings = list[str]
Records = list[Record]
Write = Callable[[], Coroutine[Any, Any, Record]]
_Unread = tuple[Record, str]  # a record that cannot be read, and why
Next = Callable[[Object], Object]  # from the object as it is, the one that is wanted


def _unfilled(obj: Object) -> Object:
    return obj


class Registry:
    """All objects of a server, behind the verbs of its API."""

    def __init__(
        self,
        store: Store,
        resources: Resources,
        *,
        clock: Clock,
        names: Names | None = None,
        access: Access | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.store = store
        self.access = access or Access()
        self.resources = resources
        self.clock = clock
        self._names = names or Names()
        self.admission = admission or Admission(
            store, resources, names=self._names, now=self.now, authorizer=self.access.authorizer
        )
        self.look = self.admission.look
        self._converter = self.admission.converter
        self._below = Subresources(self)
        self._writes: set[asyncio.Task[Record]] = set()  # that are not given up midway
        self._strays: dict[str, list[_Unread]] = {}  # by kind, in versions that its definition has not

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
        return Answered(200, (await self._found(ask.resource, self.find(ask))).data, ask.resource)

    async def list(self, ask: Ask) -> Listed:
        if not ask.query.get("limit"):
            self._check_strays(ask.resource)  # a page is read by itself
        listed = await list_objects(self.store, ask, self._presented_all)
        return listed._replace(records=await self._presented_all(ask.resource, listed.records))

    def watch(self, ask: Ask) -> Watching:
        self._check_strays(ask.resource)
        if is_by_webhook(ask.resource):
            return Watching(self.store, ask, _as_it_is, self._watched)
        return Watching(self.store, ask, self.present)

    def find(self, ask: Ask) -> Record:
        record = self.store.get(_place(ask))
        if record is None:
            raise not_found(ask.resource.plural, ask.resource.group, ask.name)
        return record

    def present(self, resource: Resource, record: Record) -> Record:
        """The object in the version that was asked for; nearly always it is stored so.

        Raises ``ConversionError``.
        """
        if record.data.startswith(resource.head) and record.revision >= resource.since:
            return record
        found = converted(_decode(record.data), resource)
        return Record(record.place, record.revision, record.created, _encode(found))

    async def presented(self, resource: Resource, record: Record) -> Record:
        """As ``present``, also where a webhook has to be asked.  Raises ``ConversionError``."""
        if not is_by_webhook(resource) or record.data.startswith(resource.head):
            return self.present(resource, record)
        made = (await self._converter.read([_decode(record.data)], resource))[0]
        return Record(record.place, record.revision, record.created, _encode(made))

    async def _found(self, resource: Resource, record: Record) -> Record:
        """What was asked for by its name."""
        try:
            return await self.presented(resource, record)
        except ConversionError as error:
            raise internal(f"{_undecodable(resource, record, '')}: {error}") from None

    async def _watched(self, resource: Resource, record: Record) -> Record:
        try:
            return await self.presented(resource, record)
        except ConversionError as error:
            raise internal(f"{_undecodable(resource, record, '/registry')}: {error}") from None

    async def _written(self, resource: Resource, record: Record) -> Record:
        """What is changed, or was: stored already, though nobody may be able to show it."""
        try:
            return await self.presented(resource, record)
        except ConversionError as error:
            told = f"object not decodable revision={record.revision}: {error}"
            raise StatusError(500, "", told) from None

    async def _presented_all(self, resource: Resource, records: Sequence[Record]) -> Records:
        try:
            if not is_by_webhook(resource):
                return [self.present(resource, one) for one in records]
            made = await self._converter.read([_decode(one.data) for one in records], resource)
        except ConversionError as error:
            strays = _strays(resource, records) or [(records[0], str(error))]
            raise _unread(resource, strays) from None
        return [
            Record(old.place, old.revision, old.created, _encode(new))
            for old, new in zip(records, made, strict=True)
        ]

    def look_for_strays(self, resource: Resource) -> None:
        """Which objects of a custom kind nobody can read any more, now that it has a new definition."""
        self._strays[resource.stored] = _strays(resource, self.store.listed(resource.stored))

    def _check_strays(self, resource: Resource) -> None:
        """One object that cannot be read, wherever it is, keeps all of its kind from being listed."""
        if strays := self._strays.get(resource.stored):
            why = _unread(resource, strays).message
            raise too_many_requests(f"storage is (re)initializing: failed to list <unspecified>: {why}", 1)

    async def live(self, ask: Ask) -> tuple[Record, Object]:
        """An object as it is, to be changed."""
        record = self.find(ask)
        return record, _decode((await self._written(ask.resource, record)).data)

    async def _stored(self, obj: Object, resource: Resource) -> Object:
        """An object as it is kept."""
        if not is_by_webhook(resource):
            return stored(obj, resource)
        try:
            return await self._converter.written(obj, resource)
        except ConversionError as error:
            raise StatusError(500, "", str(error)) from None

    async def _shown(self, kept: Object, resource: Resource) -> bytes:
        """What a reader will see of an object that is about to be stored."""
        if not is_by_webhook(resource) or not is_stored_otherwise(resource):
            return _encode(shown(kept, resource))
        try:
            return _encode((await self._converter.read([kept], resource))[0])
        except ConversionError as error:
            raise StatusError(500, "", str(error)) from None

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
        resource.strategy.default(obj)
        self._admit_creation(obj, ask)
        if not is_trusted:
            self._authorize_creation(ask)
        uid, now = self._names.uid(), self.now()
        obj, more = flow.begun(obj, ask, options, uid=uid, now=now, is_tracked=is_tracked)
        asked: admitted.Attributes | None = None
        if is_trusted or self.admission.is_idle(resource):
            admit(resource.stored, obj, self.look)
        else:
            asked = admitted.of_request("CREATE", obj, None, ask, is_dry_run=options.is_dry_run)
            obj, more = await self.admission.mutated(asked, more)
            begin(obj, uid=uid, now=now)
        said = obj["metadata"].get("resourceVersion") or ""
        if not is_trusted:
            escalation.check(obj, None, ask, self.access.authorizer)
        emitted, more = await in_time(partial(flow.created, obj, ask, more, is_trusted=is_trusted))
        name = emitted["metadata"]["name"]
        place = Place(resource.stored, ask.namespace if resource.namespaced else "", name)
        if asked is None and not is_trusted:
            self._judge(emitted, None, resource, more)
        held = resource.strategy.reserve(emitted, None)
        if asked is not None:
            more = await self.admission.judged(asked, emitted, more, held)
        warnings += more
        kept = await self._stored(emitted, resource)
        if options.is_dry_run:
            held.undo()
            if (found := self.store.get(place)) is not None:
                raise self._occupied(resource, name, found)
            kept["metadata"]["resourceVersion"] = said
            if not said:
                del kept["metadata"]["resourceVersion"]
            return Answered(201, await self._shown(kept, resource), resource, tuple(warnings))
        try:
            if ask.verb == "create":
                flow.check_no_version(said)
        except StatusError:
            held.undo()
            raise
        try:
            create = partial(self.store.create, place, flow.encoder(kept))
            record = await self._charged(create, asked, held)
        except Changed as changed:
            raise self._occupied(resource, name, changed.found) from None
        return Answered(201, (await self._written(resource, record)).data, resource, tuple(warnings))

    def _occupied(self, resource: Resource, name: str, found: Record | None) -> StatusError:
        is_going = found is not None and is_deleting(_decode(found.data))
        return already_exists(
            resource.plural, resource.group, name, prefix="object is being deleted: " if is_going else ""
        )

    def _judge(
        self, obj: Object, old: Object | None, resource: Resource, warnings: Warnings, subresource: str = ""
    ) -> None:
        """Those built-in rules that also hold where nobody else has anything to say."""
        try:
            judge(resource.stored, obj, old, self.look, subresource)
        except StatusError as refused:
            refused.warnings = (*warnings, *refused.warnings)
            raise

    def _authorize_creation(self, ask: Ask) -> None:
        """Whoever updates what is not there creates it, and must be allowed to."""
        if ask.verb == "create":
            return
        resource = ask.resource
        creates = Attributes("create", resource.group, resource.plural, "", ask.namespace, ask.name)
        if not self.access.authorizer.allows(ask.user, creates):
            raise refusal(ask.user, creates, self.access.authorizer.decide(ask.user, creates).reason)

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
        if _DELETING in record.data and is_deleting(_decode(record.data)):
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
            told = _decode(_encode(new)) if ask.resource.is_custom and options.validation == "Strict" else new
            decoded = decoding.conform_patched(new, ask.resource, old)
            decoded = Decoded(decoded.object, [*patch.doubled, *decoded.unknown])
            before = None if ask.resource.is_custom else old  # a custom object's names are all in their order
            warnings.extend(decoding.check_patched(decoded, told, before, options.validation))
            flow.check_place(decoded.object, ask)
            flow.check_name(decoded.object, ask)
            return decoded.object

        return await self.change(ask, options, wanted, warnings)

    async def _apply(self, ask: Ask) -> Answered:
        options = write_options(ask, is_apply=True)
        resource = ask.resource
        intent, warnings = decoding.read_intent(ask, options.validation)
        if decoding.is_named(intent):  # else the refusal is that of its type
            metadata = intent.setdefault("metadata", {})
            flow.check_place({"metadata": dict(metadata)}, ask)  # a refusal shows the intent as it was sent
            metadata.setdefault("name", ask.name)
            flow.check_name(intent, ask)
        telling = self._converter.telling(resource) if is_by_webhook(resource) else None
        merge = partial(
            apply,
            manager=options.manager,
            api_version=resource.api_version,
            subresource=ask.subresource,
            force=options.is_forced,
            type=resource.type,
            kind=resource.kind,
            only=flow.tracked_fields(resource, ask.subresource),
            versions=versions_of(resource) if telling is None else telling.versions,
        )

        def wanted(old: Object) -> Object:
            merged = merge(old, intent, now=self.now())
            return decoding.conform_patched(merged, resource).object

        if self.store.get(_place(ask)) is None:
            if ask.subresource:
                raise not_found(resource.plural, resource.group, ask.name)
            if decoding.is_named(intent) and intent["metadata"].get("uid"):
                raise _gone_meanwhile(resource, ask.name, intent)
            fresh = decoding.conform_patched(merge(None, intent, now=self.now()), resource).object
            flow.check_place(fresh, ask)
            try:
                return await self._create(fresh, ask, options, warnings, is_tracked=True)
            except StatusError as refused:
                if refused.reason != "AlreadyExists" or self.store.get(_place(ask)) is None:
                    raise  # else somebody was faster, and it is there to be changed
        return await self.change(ask, options, wanted, warnings, is_tracked=True, telling=telling)

    async def change(
        self,
        ask: Ask,
        options: WriteOptions,
        wanted: Next,
        warnings: Warnings,
        *,
        is_put: bool = False,
        is_tracked: bool = False,
        part: admitted.Part | None = None,
        telling: Telling | None = None,
    ) -> Answered:
        """Bring an object to what ``wanted`` makes of it, however often somebody else is faster.

        ``part`` is what others are shown of it, where that is not the whole.  ``telling`` is where ``wanted``
        has it in other versions from, where a webhook has to be asked.
        """
        resource = ask.resource
        while True:
            record, old = await self.live(ask)
            new = wanted(old) if telling is None else await telling.settled(partial(wanted, old))
            if is_put:
                flow.check_uid(new, old, resource, is_dry_run=options.is_dry_run)
            resource.strategy.default(new)
            is_asked = is_by_webhook(resource) and not is_tracked
            versions = await self._versions(resource, new, old) if is_asked else None
            new, more = flow.changing(
                new, old, ask, options, now=self.now(), is_tracked=is_tracked, versions=versions
            )
            asked: admitted.Attributes | None = None
            if not self.admission.is_idle(resource):
                asked, new, more = await self._mutated(ask, options, new, old, more, part)
            elif not ask.subresource:
                admit(resource.stored, new, self.look, old)
            escalation.check(new, old, ask, self.access.authorizer)
            flow.check_version(new, old, resource)
            emitted, more = await in_time(partial(flow.updated, new, old, ask, more))
            if asked is not None:
                seen = emitted if part is None else part.shown(emitted)
                more = await self.admission.judged(asked, seen, more)
            else:
                self._judge(emitted, old, resource, more, ask.subresource)
            keep_times(emitted, old)
            kept = await self._stored(emitted, resource)
            if same(kept, self._before(record, old, resource)):
                unchanged = (await self._written(resource, record)).data
                return Answered(200, unchanged, resource, (*warnings, *more))
            held = resource.strategy.reserve(emitted, old)
            if options.is_dry_run:
                held.undo()
                return Answered(200, await self._shown(kept, resource), resource, (*warnings, *more))
            try:
                if deletion.is_finished(emitted, resource):
                    held.undo()
                    unchanged = await self._shown(kept, resource)
                    await self.remove(record, old, resource)
                    return Answered(200, unchanged, resource, (*warnings, *more))
                update = partial(self.store.update, record.place, flow.encoder(kept), record.revision)
                record = await self._charged(update, asked, held)
            except Changed:
                continue  # who named a version is refused then
            return Answered(200, (await self._written(resource, record)).data, resource, (*warnings, *more))

    async def _versions(self, resource: Resource, new: Object, old: Object) -> Versions:
        """Both states of an object in each version in which somebody owns fields of it.

        Where a webhook does not tell, the write goes on and owners stay who they are.
        """
        return await self._converter.versions(resource, new, old)

    async def _mutated(  # noqa: PLR0917 - a write, as it is
        self,
        ask: Ask,
        options: WriteOptions,
        new: Object,
        old: Object,
        warnings: Warnings,
        part: admitted.Part | None,
    ) -> tuple[admitted.Attributes, Object, Warnings]:
        """What others make of a change, beside what they were asked."""
        is_dry = options.is_dry_run
        if part is None:
            asked = admitted.of_request("UPDATE", new, old, ask, is_dry_run=is_dry)
            return asked, *await self.admission.mutated(asked, warnings)
        offered = part.offered(new, old)
        asked = admitted.of_request("UPDATE", *offered, ask, is_dry_run=is_dry, body=part.kind)
        left, warnings = await self.admission.mutated(asked, warnings)
        asked.old = part.shown(old)
        return asked, part.taken(new, left), warnings

    async def admit_body(
        self, ask: Ask, obj: Object, kind: Resource, fill: Next = _unfilled
    ) -> tuple[Object, Warnings]:
        """What others make of the body of a request that creates nothing: a Binding, an Eviction.

        ``fill`` is what the server adds to it between those who change it and those who judge it.
        """
        if self.admission.is_idle(ask.resource):
            return fill(obj), []
        is_dry = bool(ask.query.get("dryRun"))
        asked = admitted.of_request("CREATE", obj, None, ask, is_dry_run=is_dry, body=kind)
        left, warnings = await self.admission.mutated(asked, [])
        left = fill(left)
        return left, await self.admission.judged(asked, left, warnings)

    def _before(self, record: Record, old: Object, resource: Resource) -> Object:
        """What a write is compared with, to see whether it is one; a custom object, as it is stored."""
        is_as_stored = record.data.startswith(resource.head) and record.revision >= resource.since
        found: Object = old if is_as_stored or not resource.is_custom else _decode(record.data)
        return found

    # ── Deleting ────────────────────────────────────────────────────────────────────────────────────

    async def delete(self, ask: Ask, *, is_trusted: bool = False) -> Answered:
        """``is_trusted``: the server itself wants it, and asks nobody."""
        if ask.resource.stored == _PRIORITIES and ask.name in PRIORITIES:
            told = "this is a system priority class and cannot be deleted"
            raise forbidden(ask.resource.plural, ask.resource.group, ask.name, told)
        given = self._deletion_of(ask)
        options = deletion.delete_options(given)
        said = None if is_trusted else admitted.deletion_options(given)
        answered, is_waiting = await self._delete(ask, options, said)
        resource = ask.resource
        code = 202 if is_waiting and options.orphans is False else 200
        warnings = answered.warnings
        if not options.policy and options.orphans is None and resource.strategy.default_policy == "Orphan":
            warnings = (*resource.strategy.orphan_warnings, *warnings)
        return answered._replace(code=code, warnings=warnings)

    async def delete_collection(self, ask: Ask) -> Listed:
        given = self._deletion_of(ask)
        options = deletion.delete_options(given)
        said = admitted.deletion_options(given)
        listed = await list_objects(self.store, ask, self._presented_all)
        listed = listed._replace(records=await self._presented_all(ask.resource, listed.records))
        for record in listed.records:
            await asyncio.sleep(0)  # others are answered meanwhile, also where nothing is waited for
            place = record.place
            one = msgspec.structs.replace(ask, name=place.name, namespace=place.namespace)
            try:
                await self._delete(one, options, said)
            except StatusError as refused:
                if refused.code != 404:
                    raise
        return listed

    def _deletion_of(self, ask: Ask) -> Object:
        if not ask.body:
            return deletion.from_query(ask.query)
        return decoding.read_options(ask, type_of("", "v1", "DeleteOptions"))

    async def _delete(
        self, ask: Ask, options: deletion.DeleteOptions, said: Object | None
    ) -> tuple[Answered, bool]:
        """The answer, and whether the object is still there; ``said`` are the options as others see them."""
        resource = ask.resource
        warnings: tuple[str, ...] = ()
        while True:
            record = self.find(ask)
            obj: Object = _decode((await self._found(resource, record)).data)
            deletion.check_preconditions(obj, resource, options)
            if resource.stored == "namespaces" and ask.name in _PROTECTED:
                raise forbidden("namespaces", "", ask.name, "this namespace may not be deleted")
            if said is not None and not self.admission.is_idle(resource):
                warnings = await self._admit_deletion(ask, obj, options, said)
            resource.strategy.prepare_delete(obj)
            before = deletion.mark(obj)
            decision = deletion.decide(obj, resource, options, self.clock.utc())
            if options.is_dry_run or decision.does == "unchanged":
                if decision.does == "gone" and not resource.strategy.returns_deleted:
                    return _deleted(resource, obj, warnings), False
                return Answered(200, _encode(obj), resource, warnings), decision.does != "gone"
            try:
                if decision.does == "gone":
                    remove = self.remove if deletion.mark(obj) == before else self._mark_and_remove
                    removed = await remove(record, obj, resource)
                    if resource.strategy.returns_deleted:
                        return Answered(200, removed.data, resource, warnings), False
                    return _deleted(resource, obj, warnings), False
                encode = flow.encoder(await self._stored(obj, resource), is_going=True)
                marked = await self.store.update(record.place, encode, record.revision)
                return Answered(200, (await self._written(resource, marked)).data, resource, warnings), True
            except Changed:
                continue

    async def _admit_deletion(
        self, ask: Ask, obj: Object, options: deletion.DeleteOptions, said: Object
    ) -> tuple[str, ...]:
        """What is said about a deletion that nobody refuses."""
        if ask.resource.stored == "pods":  # others see how long it is given, also where nobody said it
            said = {**said, "gracePeriodSeconds": deletion.grace_of(obj, ask.resource, options)}
        asked = admitted.of_request("DELETE", None, obj, ask, options=said, is_dry_run=options.is_dry_run)
        _, warnings = await self.admission.mutated(asked, [])
        return tuple(await self.admission.judged(asked, None, warnings))

    async def _mark_and_remove(self, record: Record, last: Object, resource: Resource) -> Record:
        """A pod is seen to go, before it is gone."""
        encode = flow.encoder(await self._stored(last, resource), is_going=True)

        async def both() -> Record:
            marked = await self.store.update(record.place, encode, record.revision)
            return await self.remove(marked, last, resource)

        return await self._to_its_end(both())

    async def remove(self, record: Record, last: Object, resource: Resource) -> Record:
        """Take an object out of the store, and give back what it held."""
        encode = flow.encoder(await self._stored(last, resource), is_going=True)
        delete = self.store.delete(record.place, encode, record.revision)
        return await self._finished(delete, resource.strategy.release(last))

    async def _finished(self, write: Coroutine[Any, Any, Record], held: Reservation) -> Record:
        """A write with what is held for it, which is undone where it fails and settled where it is made.

        Who asked may go away meanwhile.  What is already on its way to the store may yet be made, so where
        something is held the write goes on without them.
        """
        if held == Reservation():
            return await write
        return await self._to_its_end(_settled(write, held))

    async def _charged(self, write: Write, asked: admitted.Attributes | None, held: Reservation) -> Record:
        """A write with what is held for it, as ``_finished``, and with what quotas are charged for it."""
        if asked is None or not self.admission.is_charged(asked):
            return await self._finished(write(), held)

        async def both() -> Record:
            await self.admission.charge(asked)
            return await write()

        return await self._to_its_end(_settled(both(), held))

    async def _to_its_end(self, writes: Coroutine[Any, Any, Record]) -> Record:
        """Done without who asked, where they go away meanwhile."""
        task = asyncio.create_task(writes)
        self._writes.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Record]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # is told to who asked; if they went away, to nobody


async def _settled(write: Coroutine[Any, Any, Record], held: Reservation) -> Record:
    try:
        record = await write
    except BaseException:
        held.undo()
        raise
    held.settle()
    return record


def _as_it_is(resource: Resource, record: Record) -> Record:  # noqa: ARG001
    return record


def _undecodable(resource: Resource, record: Record, root: str) -> str:
    """What is said of an object that is not converted."""
    place = record.place
    where = "/".join([root, resource.group, resource.plural, *filter(None, (place.namespace, place.name))])
    return (
        f"StorageError: corrupt object, Code: 7, Key: {where}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: object not decodable revision={record.revision}"
    )


def _strays(resource: Resource, records: Sequence[Record]) -> list[_Unread]:
    found = ((one, why) for one in records if (why := stray(one.data, resource)))
    return list(islice(found, _MOST_UNREAD))


def _unread(resource: Resource, unread: Sequence[_Unread]) -> StatusError:
    """A list that has objects in it that cannot be read."""
    causes = []
    for record, error in unread:
        told = f"{_undecodable(resource, record, '/registry')}: {error}"
        where = told.partition("Key: ")[2].partition(",")[0]
        causes.append({"reason": "UnexpectedServerResponse", "message": told, "field": where})
    more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
    return StatusError(
        500,
        "StorageReadError",
        f"failed to read one or more {resource.qualified} from the storage: {causes[0]['message']}{more}",
        details={"name": "list", "group": resource.group, "kind": resource.plural, "causes": causes},
    )


def _place(ask: Ask) -> Place:
    return Place(ask.resource.stored, ask.namespace if ask.resource.namespaced else "", ask.name)


def _deleted(resource: Resource, obj: Object, warnings: tuple[str, ...] = ()) -> Answered:
    """The Status of a deletion that is done; it carries no code."""
    details: dict[str, Any] = {"name": obj["metadata"]["name"]}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": obj["metadata"]["uid"]}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Answered(200, _encode(status), None, warnings)


def _gone_meanwhile(resource: Resource, name: str, intent: Object) -> StatusError:
    """An apply that names a uid means an object that exists."""
    told = "uid mismatch: the provided object specified uid {}, and no existing object was found"
    return conflict(resource.plural, resource.group, name, told.format(intent["metadata"]["uid"]))
