"""What a reconciler is given besides the object: reading, writing, telling.

``apply`` is the heart of it: what is desired becomes so, is owned by the object that it is made for, and
nothing is sent when nothing would change.  The longhand of all this is the client, and the functions of
``apply.py``, ``owners.py`` and ``recorder.py``.

1. Reads are the cache's, and never behind what this controller wrote.  ``client.live`` asks the server.  In a
   clean-up, that an object is not there is believed only if the server says so: nobody looks for it again.
2. Every object read is fresh: to change it changes nothing else.  Objects given are not changed, but for
   ``set_controller_reference``, whose purpose that is.
3. What says no namespace is in that of the object being reconciled.
4. Deletes name the uid and the version that was seen.  Before the first of them in a reconcile the server is
   asked for the object that it is for: an old view of that must not delete anything.

For plain functions, which run in threads, ``sync_context.py`` has the same words without ``await``.  Made by
``authored.py``, one for each reconcile.
"""

from __future__ import annotations

import asyncio
import builtins
import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from setpoint.api.forms import Form, Untyped, form_of, form_of_object, key_of, metadata_only
from setpoint.api.meta import Condition, set_condition
from setpoint.api.model import Object, as_read, from_wire, to_wire
from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.api.patches import MergePatch, merge_diff
from setpoint.api.requests import Propagation
from setpoint.api.times import Time
from setpoint.api.wire import Snapshot
from setpoint.cache.cache import AsHeld
from setpoint.client.client import Client, SelectOptions, ignore_not_found
from setpoint.clock import SystemClock
from setpoint.controller.apply import (
    Path,
    Place,
    Settled,
    changes,
    digest,
    intent_of,
    managers_of,
    move_string_data,
    version_of,
)
from setpoint.controller.client import ReconcileClient
from setpoint.controller.event_series import EventType, Happening
from setpoint.controller.finalizer import is_going
from setpoint.controller.generations import GenerationTracker
from setpoint.controller.hot_loop import HotLoops, Write
from setpoint.controller.mapping import Reason
from setpoint.controller.owners import (
    AnyObject,
    check_controller,
    identity_of,
    in_metadata,
    object_text,
    own,
    set_controller_reference,
)
from setpoint.controller.recorder import Recorder, reference_to
from setpoint.controller.result import Request
from setpoint.controller.status import holds_list, leaves
from setpoint.errors import AlreadyExists, Conflict, NotFound
from setpoint.metrics import ControllerMetrics

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=Object)
ObjectT = TypeVar("ObjectT", bound=AnyObject)
RawObject: TypeAlias = dict[str, Any]

LABEL = "setpoint.dev/controller"  # of whatever was applied: by which controller
_SECRET = GroupVersionKind("", "v1", "Secret")
_TRIES = 5
_NAMED = 5  # fields of which it is found out who else has them


@dataclass(frozen=True)
class Means:
    """What all reconciles of one controller share."""

    controller: str
    client: ReconcileClient
    metrics: ControllerMetrics
    field_manager: str
    label: str  # the value of LABEL
    recorder: Recorder | None = None
    utc: Callable[[], datetime] = SystemClock().utc
    settled: Settled = field(default_factory=Settled)
    hot_loops: HotLoops = field(default_factory=HotLoops)
    generations: GenerationTracker | None = None  # where the kind has other controllers


class EventOptions(TypedDict, total=False):
    """What an Event may say besides."""

    action: str  # what was done, one word in CamelCase; unless said, Reconcile
    regarding: Object | RawObject  # whom it is about, if not the object being reconciled
    related: Object | RawObject | None  # another that has to do with it


class Context:
    """One reconcile of one object: what it can do, and why it runs."""

    client: ReconcileClient
    """Reads what is declared from the cache, all else from the server; ``client.live`` asks the server."""
    request: Request
    """Which object is being reconciled."""
    log: logging.LoggerAdapter[logging.Logger]
    """Says with every line which controller, object and reconcile it is about."""
    reasons: tuple[Reason, ...]
    """Why: what changed, as far as it is remembered.  Advisory: what is true now is in the objects."""

    def __init__(
        self,
        means: Means,
        primary: AnyObject,
        *,
        log: logging.LoggerAdapter[logging.Logger],
        reasons: tuple[Reason, ...] = (),
    ) -> None:
        self._means = means
        self._primary = primary
        self._me = identity_of(primary)
        self._generation = in_metadata(primary, "generation")
        self._is_clean_up = is_going(primary)  # then it was read from the server, see authored.py
        self._may_delete = self._is_clean_up
        self.client = means.client
        self.request = Key(self._me.namespace, self._me.name)
        self.log = log
        self.reasons = reasons
        self.applied: set[tuple[str, str, Key]] = set()  # group, kind and key of what was applied

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {object_text(self._primary)}>"

    @property
    def recorder(self) -> Recorder | None:
        """Where Events go; None: nowhere."""
        return self._means.recorder

    def now(self) -> Time:
        """The time, as finely as objects say it."""
        return Time.of(self._means.utc())

    # Reading.

    async def get(self, kind: type[T] | Form[T], name: str, *, namespace: str | None = None) -> T:
        """One object, from the cache if its kind is declared; NotFound if it is not there.

        In a clean-up, what the cache does not have is asked of the server.
        """
        form = form_of(kind)
        resource = await self.client.resource_of(form)
        place = self._namespace(resource, namespace)
        try:
            return await self.client.get(form, name, namespace=place)
        except NotFound:
            if not self._is_clean_up or not self.client.cache.informers(form, place or ""):
                raise  # it was the server who said so
        return await self._get_live(form, resource, name, place)

    async def _get_live(self, form: Form[T], resource: Resource, name: str, namespace: str | None) -> T:
        """One object as the server has it, of those that a cached read can give."""
        cache = self.client.cache
        return form.decode((await cache.get_live(form, cache.key_of(resource, name, namespace))).data)

    async def list(
        self, kind: type[T] | Form[T], *, owned: bool = False, **select: Unpack[SelectOptions]
    ) -> builtins.list[T]:
        """The objects of a kind in this namespace, or with ``owned`` those that belong to this object.

        For other namespaces, or all of them, use ``client.list``.
        """
        resource = await self.client.resource_of(kind)
        select = {**select, "namespace": self._namespace(resource, select.get("namespace"))}
        owner = self._me.uid if owned else None
        return await self.client.list(kind, owner=owner, **select)

    # Writing.

    @overload
    async def apply(self, desired: ModelT, *, owned: bool = True, force: bool = True) -> ModelT: ...

    @overload
    async def apply(self, desired: RawObject, *, owned: bool = True, force: bool = True) -> RawObject: ...

    async def apply(self, desired: Any, *, owned: bool = True, force: bool = True) -> Any:
        """Make an object be as desired (server-side apply); it is made if it is not there.

        Say only what you want: fields that are left out are nobody's, or somebody else's, and fields that
        were applied before and are left out now are given up.  What is said is taken over from others, unless
        ``force`` is False: then ApplyConflict lists what others manage.  The object belongs to the one being
        reconciled (``owned=False``: to nobody).  Nothing is sent when nothing would change.
        """
        if isinstance(desired, Object) and as_read(desired) is not None:
            raise ValueError(
                f"apply {object_text(desired)}: this object was read from the server, and applying it would "
                "claim every field; build one with only the fields you want, or use create_or_patch"
            )
        form = form_of_object(desired)
        resource = form.resource or await self.client.resource_of(form)
        intent = self._intent(desired, resource, owned=owned)
        key = key_of(intent)
        self.applied.add((form.gvk.group, form.gvk.kind, key))
        held = await self._read(form, resource, key)
        place = (form.gvk, key)
        if held is not None and self._means.settled.is_still(
            place, intent, held.metadata.resource_version, now=_now()
        ):
            return form.decode(held.data)
        live: RawObject | None = None
        paths: builtins.list[Path] = [()]
        if held is not None:
            live = Untyped(form.gvk, resource).decode(held.data)
            if owned:
                check_controller(self._primary, live)  # before the server refuses it, less plainly
            paths = self._changes(place, intent, live, held)
            if not paths:
                return form.decode(held.data)
        answer = await self.client.apply_intent(
            AsHeld(form, resource), key, intent, force=force, field_manager=self._means.field_manager
        )
        self._means.settled.remember(place, intent, answer, now=_now())
        if live is None:
            self._note(form.gvk, key, {(): digest(intent)})
        elif version_of(live) != answer.metadata.resource_version:
            # What differs even now was no reason to send: the server writes it in another way.
            after = Untyped(form.gvk, resource).decode(answer.data)
            unsure = changes(intent, after, self._means.field_manager)
            written = [path for path in paths if path not in unsure] or paths
            self._note(form.gvk, key, dict.fromkeys(written, digest(intent)), lambda: live)
        return form.decode(answer.data)

    def _changes(
        self, place: Place, intent: RawObject, live: RawObject, held: Snapshot
    ) -> builtins.list[Path]:
        """What an apply would change; nothing, too, if this is what came of the last one."""
        if self._means.settled.is_result(place, intent, held, now=_now()):
            return []
        found = changes(intent, live, self._means.field_manager)
        if not found:
            self._means.settled.remember(place, intent, held, now=_now())  # quicker the next time
        return found

    async def create_or_patch(
        self, obj: ObjectT, mutate: Callable[[ObjectT], object], *, owned: bool = True
    ) -> ObjectT:
        """Have ``mutate`` change the object of this kind and name, and write what it changed.

        It is given the object as it is, or ``obj`` if there is none, which is then made.  It may be called
        several times, for others may write meanwhile.  Unlike ``apply`` this sees all fields, and can react
        to them; but what it stops setting stays.
        """
        form: Form[ObjectT] = form_of_object(obj)
        resource = await self.client.resource_of(form)
        place = copy.deepcopy(obj)
        self._place(place, resource)
        key = key_of(place)
        client: Client = self.client
        for left in reversed(range(_TRIES)):
            try:
                current = await client.get(form, key.name, namespace=key.namespace or None)
            except NotFound:
                current = None
            try:
                if current is None:
                    return await self._create(copy.deepcopy(place), mutate, key, owned=owned)
                return await self._patch(form, current, mutate, key, resource, owned=owned)
            except AlreadyExists:
                if not left:
                    raise
            except (Conflict, NotFound):
                if not left or current is None:
                    raise
            client = self.client.live  # the cache was behind
        raise AssertionError("the last try returns or raises")

    async def _create(
        self, new: ObjectT, mutate: Callable[[ObjectT], object], key: Key, *, owned: bool
    ) -> ObjectT:
        self._mutate(new, mutate, key, owned=owned)
        made: Any = await self.client.create(cast("Any", new), field_manager=self._means.field_manager)
        self._note(form_of_object(new).gvk, key, {(): b"created"})
        return cast("ObjectT", made)

    async def _patch(
        self,
        form: Form[ObjectT],
        current: ObjectT,
        mutate: Callable[[ObjectT], object],
        key: Key,
        resource: Resource,
        *,
        owned: bool,
    ) -> ObjectT:
        before = intent_of(current, resource)
        self._mutate(current, mutate, key, owned=owned)
        difference = merge_diff(before, intent_of(current, resource))
        if not difference:
            return current
        values = {path: digest(value) for path, value in leaves(difference)}
        version = in_metadata(current, "resource_version")
        metadata = {"uid": identity_of(current).uid}
        if holds_list(difference):
            metadata["resourceVersion"] = version
        patch = MergePatch({**difference, "metadata": {**difference.get("metadata", {}), **metadata}})
        patched = await self.client.patch(
            form,
            key.name,
            patch,
            namespace=key.namespace or None,
            field_manager=self._means.field_manager,
        )
        if in_metadata(patched, "resource_version") != version:
            self._note(form.gvk, key, values, partial(to_wire, current))
        return patched

    def _mutate(self, obj: ObjectT, mutate: Callable[[ObjectT], object], key: Key, *, owned: bool) -> None:
        mutate(obj)
        if key_of(obj) != key:
            raise ValueError(f"create_or_patch {key}: mutate has made it {key_of(obj)}; names cannot change")
        if owned:
            set_controller_reference(self._primary, obj)

    @overload
    async def delete(
        self, obj: Object | RawObject, /, *, propagation: Propagation = "Background"
    ) -> bool: ...

    @overload
    async def delete(
        self,
        kind: type[Object] | Form[Any],
        name: str,
        /,
        *,
        namespace: str | None = None,
        propagation: Propagation = "Background",
    ) -> bool: ...

    async def delete(
        self, *target: Any, namespace: str | None = None, propagation: Propagation = "Background"
    ) -> bool:
        """Delete an object: ``delete(pod)`` or ``delete(Pod, name)``.  Whether it was there.

        Conflict if it changed since it was read, or the object being reconciled did: whether it is still to
        go is to be decided afresh.  An object that was not read stands for the one of its name.
        """
        if len(target) == 2:
            kind, name = target
            found = await self._find(form_of(kind), name, namespace)
        else:
            (found,) = target
            if not identity_of(found).uid:  # what is desired may stand for what there is
                found = await self._find(form_of_object(found), key_of(found).name, key_of(found).namespace)
        if found is None:
            return False
        if is_going(found):
            return True  # on its way already
        await self._check_current(f"delete {object_text(found)}")
        me = identity_of(found)
        try:
            await self.client.delete(
                form_of(target[0]) if len(target) == 2 else form_of_object(found),
                me.name,
                namespace=me.namespace or None,
                uid=me.uid,
                resource_version=in_metadata(found, "resource_version"),
                propagation=propagation,
            )
        except NotFound:
            return False
        return True

    async def _find(self, form: Form[Any], name: str, namespace: str | None) -> Any:
        """What there is of that name; in a clean-up, the server must say that it is gone or going."""
        found = await ignore_not_found(self.get(form, name, namespace=namespace))
        if self._is_clean_up and found is not None and is_going(found):
            resource, key = await self.client.resource_of(form), key_of(found)
            if not self.client.cache.informers(form, key.namespace):
                return found  # it was the server who said so
            return await ignore_not_found(self._get_live(form, resource, key.name, key.namespace or None))
        return found

    async def _check_current(self, doing: str) -> None:
        """Conflict if the object being reconciled is old; asked once, for all that this reconcile deletes."""
        if not self._may_delete and not await self.is_current():
            raise Conflict(
                doing,
                f"{object_text(self._primary)}, for whose sake it was to go, is gone by now, or going, or "
                "another by that name, or has another spec",
            )
        self._may_delete = True

    async def is_current(self) -> bool:
        """Whether the server still has the object being reconciled, and the same spec: ours may be old."""
        me, kind = self._me, metadata_only(form_of_object(self._primary))
        live = await ignore_not_found(self.client.live.get(kind, me.name, namespace=me.namespace or None))
        return (
            live is not None
            and live.metadata.uid == me.uid
            and not is_going(live)
            and live.metadata.generation == self._generation
        )

    def set_controller_reference(self, obj: Object | RawObject) -> None:
        """Make the object being reconciled the owner of another, which is to be written: deleted with it.

        AlreadyOwned if it has another controller; ValueError if it is in another namespace.
        """
        self._place(obj, getattr(type(obj), "resource", None))
        set_controller_reference(self._primary, obj)

    # Telling.

    def set_condition(self, type: str, status: bool | str, reason: str, message: str = "") -> bool:  # noqa: A002
        """Put a condition into the status of the object being reconciled; whether anything changed.

        It is written at the end, with the rest of the status.
        """
        said = Condition(
            type=type,
            status=str(status),
            reason=reason,
            message=message,
            observed_generation=in_metadata(self._primary, "generation"),
        )
        if isinstance(self._primary, Object):
            conditions = getattr(getattr(self._primary, "status", None), "conditions", None)
            if conditions is None:
                raise TypeError(
                    f"the status of a {self._primary.kind} has no list of conditions: add one to its class"
                )
            return set_condition(conditions, said, now=self.now())
        kept = self._primary.setdefault("status", {}).setdefault("conditions", [])
        conditions = [from_wire(Condition, each) for each in kept]
        is_changed = set_condition(conditions, said, now=self.now())
        kept[:] = to_wire(conditions)
        return is_changed

    def event(self, type: EventType, reason: str, note: str, **options: Unpack[EventOptions]) -> None:  # noqa: A002
        """Tell people what happened, as an Event about the object being reconciled.

        ``reason`` is one word in CamelCase, ``note`` a sentence.  Sent some time soon; it never waits and
        never fails.
        """
        happening = self.happening(type, reason, note, **options)
        if self.recorder is not None:
            self.recorder.record(happening)

    def happening(
        self,
        type: EventType,  # noqa: A002
        reason: str,
        note: str,
        **options: Unpack[EventOptions],
    ) -> Happening:
        """What ``event`` records."""
        action, related = options.get("action", "Reconcile"), options.get("related")
        if type not in ("Normal", "Warning"):
            raise ValueError(f"an event is Normal or Warning, not {type!r}")
        if not reason or not action:
            raise ValueError("an event needs a reason and an action: one word each, in CamelCase")
        return Happening(
            self._means.controller,
            reference_to(options.get("regarding", self._primary)),
            type,
            reason,
            action,
            note,
            None if related is None else reference_to(related),
        )

    # Small parts.

    def _namespace(self, resource: Resource, namespace: str | None) -> str | None:
        return (namespace or self.request.namespace or None) if resource.namespaced else None

    def _place(self, obj: AnyObject, resource: Resource | None) -> None:
        """Put an object that does not say its namespace into ours."""
        if key_of(obj).namespace or resource is None or not resource.namespaced:
            return
        if not self.request.namespace:
            raise ValueError(
                f"in which namespace is {object_text(obj)}? {object_text(self._primary)} belongs to none"
            )
        if isinstance(obj, Object):
            obj.metadata.namespace = self.request.namespace
        else:
            obj["metadata"] = {**(obj.get("metadata") or {}), "namespace": self.request.namespace}

    def _intent(self, desired: AnyObject, resource: Resource, *, owned: bool) -> RawObject:
        """What the author desires, in wire form, with all that we add to it."""
        intent = intent_of(desired, resource)
        metadata = intent["metadata"] = intent.get("metadata") or {}
        metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: self._means.label}
        self._place(intent, resource)
        if owned and not own(self._me, intent, resource):
            set_controller_reference(self._primary, intent, resource=resource)
        if resource.gvk == _SECRET:
            move_string_data(intent)
        return intent

    async def _read(self, form: Form[Any], resource: Resource, key: Key) -> Snapshot | None:
        try:
            return await self.client.get(AsHeld(form, resource), key.name, namespace=key.namespace or None)
        except NotFound:
            return None

    def _note(
        self,
        kind: GroupVersionKind,
        key: Key,
        values: dict[Path, bytes],
        live: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """Tell the detector of hot loops what was written, and others what it found out."""
        means = self._means

        def others() -> tuple[str, ...]:
            found, paths = live(), list(values)[:_NAMED]
            named = (managers_of(found, path, besides=means.field_manager) for path in paths)
            return tuple(sorted({manager for managers in named for manager in managers}))

        me = self._me
        ours = {(me.gvk.group, me.gvk.kind, self.request), (kind.group, kind.kind, key)}
        is_own_doing = bool(self.reasons) and all(
            each.kind is not None
            and each.key is not None
            and (each.kind.group, each.kind.kind, each.key) in ours
            for each in self.reasons
        )
        found = means.hot_loops.wrote(
            self.request,
            Write(kind, key, values, others, is_own_doing),
            uid=me.uid,
            now=_now(),
            generation=in_metadata(self._primary, "generation"),
        )
        if found is not None and found.is_news:
            means.metrics.hot_loops.inc()
            self.log.warning(
                "hot loop: %s; it is reconciled again after %g s, and later each time", found, found.delay
            )

    def note_status(self, values: dict[Path, bytes]) -> None:
        """Tell the detector of hot loops which fields of the status were written."""
        self._note(self._me.gvk, self.request, values, partial(to_wire, self._primary))


def _now() -> float:
    return asyncio.get_running_loop().time()
