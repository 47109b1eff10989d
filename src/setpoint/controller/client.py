"""A client for reconcilers: reads what is declared from the cache, and never behind its own writes.

1. ``get`` and ``list`` of a declared kind come from the cache, in any form; all else is live, and so is what
   asks for a ``resource_version`` or a subresource.  ``live`` reads everything from the server.
2. Every write counts, whatever the verb, and through ``live`` too: a later read by the same controller waits
   until the cache has seen it.  After a write without an answer, that object is read live.
3. Which controller it is, is found out by who asks (``worker.current_look``): one client serves all
   controllers of a manager.  Outside of any reconcile it keeps the same promises to itself.

What a write did is read from its call and answer by ``effects_of``, which is pure.  The waiting is in
``cache/consistency.py``.
"""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar, Unpack

from setpoint.api.forms import Form, Untyped, form_of
from setpoint.api.names import GroupVersionKind, Key
from setpoint.api.requests import Call
from setpoint.api.wire import Malformed, Snapshot, read_metadata, split_page
from setpoint.cache.cache import Cache, query_of
from setpoint.cache.consistency import CachedReader
from setpoint.client.client import PAGE_SIZE, Client, SelectOptions
from setpoint.client.listing import Listing, Objects
from setpoint.client.sender import Answer, Guard, Observer
from setpoint.controller.worker import Written, current_look
from setpoint.errors import ApiError, DeadlineExceeded

T = TypeVar("T")


# ---- what a write did ------------------------------------------------------------------------------


class Wrote(NamedTuple):
    """The object is there, at this version or a later one."""

    key: Key
    version: str
    labels: Mapping[str, str] | None = None  # None: not told


class Deleted(NamedTuple):
    """The object with this uid is gone, or on its way out."""

    key: Key
    uid: str
    is_gone: bool = False  # gone for certain
    existed_at: str = ""  # a version at which it was still there


class Unclear(NamedTuple):
    """Something happened to the object, or may have; to which, may not be known: then the name is empty."""

    key: Key


Effect: TypeAlias = Wrote | Deleted | Unclear


def effects_of(call: Call, body: bytes | None) -> list[Effect]:
    """What a write did, by its answer; None: no answer came."""
    if call.key is None or call.subresource == "token" or _is_dry_run(call):
        return []
    if body is None:
        return [Unclear(call.key)]
    try:
        if call.verb == "deletecollection":
            gone = [read_metadata(item) for item in split_page(body).items]
            return [Deleted(each.key, each.uid, existed_at=each.resource_version) for each in gone]
        metadata = read_metadata(body)
    except Malformed:
        return [Unclear(call.key)]
    key = Key(metadata.namespace or call.key.namespace, metadata.name or call.key.name)
    if call.verb == "delete":
        if metadata.uid:
            return [Deleted(key, metadata.uid, existed_at=metadata.resource_version)]
        uid = _uid_in_status(body)  # a server that has it no longer has no object to answer with
        return [Deleted(key, uid, is_gone=True, existed_at=_precondition(call)) if uid else Unclear(key)]
    if not metadata.resource_version:
        return [Unclear(key)]  # an eviction or a binding: the answer is not about the object
    if metadata.deletion_timestamp and not metadata.finalizers and call.subresource != "status":
        # With its last finalizer it went, and the answer still has the version before.  Pods have a grace
        # period and namespaces other finalizers: those may be there still.
        deleted = Deleted(key, metadata.uid, is_gone=True, existed_at=metadata.resource_version)
        return [deleted if _has_no_grace(body) else Unclear(key)]
    labels = None if call.subresource else metadata.labels or {}
    return [Wrote(key, metadata.resource_version, labels)]


def _is_dry_run(call: Call) -> bool:
    return "dryRun=All" in call.target or (
        call.verb.startswith("delete") and b'"dryRun"' in (call.body or b"")
    )


def _has_no_grace(body: bytes) -> bool:
    return bool(json.loads(body)["metadata"].get("deletionGracePeriodSeconds") == 0)


def _precondition(call: Call) -> str:
    """The version that a deletion was to find, and found."""
    options = json.loads(call.body or b"{}")
    return str((options.get("preconditions") or {}).get("resourceVersion") or "")


def _uid_in_status(body: bytes) -> str:
    """Whom a deletion deleted, where the answer is no object but a Status."""
    details = json.loads(body).get("details")
    return str(details.get("uid") or "") if isinstance(details, dict) else ""


# ---- the client ------------------------------------------------------------------------------------


class _Recorder:
    """Tells the reader of whoever writes."""

    def __init__(self, reader: Callable[[], CachedReader], observers: tuple[Observer, ...]) -> None:
        self._reader = reader
        self._observers = observers

    def before(self, call: Call) -> None:
        for observer in self._observers:
            observer.before(call)

    def answered(self, call: Call, answer: Answer) -> None:
        self._record(call, answer.body)
        for observer in self._observers:
            observer.answered(call, answer)

    def refused(self, call: Call, error: ApiError) -> None:
        for observer in self._observers:
            observer.refused(call, error)

    def unknown(self, call: Call) -> None:
        self._record(call, None)
        for observer in self._observers:
            observer.unknown(call)

    def _record(self, call: Call, body: bytes | None) -> None:
        if call.resource is None:
            return
        reader, form, look = self._reader(), Untyped(call.resource.gvk, call.resource), current_look()
        for effect in effects_of(call, body):
            if look is not None:
                look.note(Written(_verb(call), call.resource.gvk, effect.key, call.subresource))
            match effect:
                case Wrote(key, version, labels):
                    reader.wrote(form, key, version, labels=labels)
                case Deleted(key, uid, is_gone, existed_at):
                    reader.deleted(form, key, uid, is_gone=is_gone, existed_at=existed_at)
                case Unclear(Key(namespace, "")) if call.verb != "create":  # a collection: any of them
                    for each in _held(reader.cache, form.gvk, namespace):
                        reader.ambiguous(form, each)
                case Unclear(key):
                    reader.ambiguous(form, key)


def _verb(call: Call) -> str:
    return "apply" if call.content_type.startswith("application/apply-patch") else call.verb


def _held(cache: Cache, gvk: GroupVersionKind, namespace: str) -> set[Key]:
    snapshots = (each for informer in cache.holds(gvk) for each in informer.store)
    return {each.key for each in snapshots if namespace in ("", each.metadata.namespace)}


class ReconcileClient(Client):
    """A client of the same server and user as ``client``, whose reads of declared kinds are the cache's.

    ``observers`` see every write, whoever makes it.  It ends with the client it is made from.
    """

    live: Client  # the same, but all reads are the server's

    def __init__(self, client: Client, cache: Cache, *observers: Observer) -> None:
        self._plain = client
        self.cache = cache
        self._observers = observers
        self._outside = CachedReader(cache)
        self.live = client.observed_by(_Recorder(self._reader, observers))
        # What a Client has of its own: the connections are those of the client that was given.
        for name, value in vars(self.live).items():
            setattr(self, name, value)

    def observed_by(self, observer: Observer) -> Self:
        """The same client, with one more observer of every write made through it."""
        return type(self)(self._plain, self.cache, *self._observers, observer)

    def guarded_by(self, guard: Guard) -> Self:
        """The same client, which asks the guard before each try of every write, through ``live`` too."""
        return type(self)(self._plain.guarded_by(guard), self.cache, *self._observers)

    def __repr__(self) -> str:
        return f"<ReconcileClient of {self.config.server}, {self.cache!r}>"

    def _reader(self) -> CachedReader:
        look = current_look()
        # A reconciler may also use the client of another manager, whose cache is another.
        return look.reader if look is not None and look.reader.cache is self.cache else self._outside

    async def get(
        self,
        kind: type[T] | Form[T],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """One object, from the cache if its kind is declared; NotFound if it is not there."""
        if subresource or resource_version is not None:
            return await super().get(
                kind,
                name,
                namespace=namespace,
                subresource=subresource,
                resource_version=resource_version,
                timeout=timeout,
            )
        read = self._reader().get(kind, name, namespace=namespace)
        if timeout is None:
            return await read
        return await _in_time(read, f"get {form_of(kind).gvk} {name}", timeout)

    def list(
        self,
        kind: type[T] | Form[T],
        *,
        owner: str | None = None,
        index: Mapping[str, str] | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        page_size: int = PAGE_SIZE,
        timeout: float | None = None,
        **select: Unpack[SelectOptions],
    ) -> Listing[T]:
        """The objects of a kind, from the cache if it is declared.

        There, ``fields`` may be any path to a field, ``owner`` is the uid of one, and ``index`` names what an
        index holds.
        """
        if resource_version is not None or resource_version_match is not None:
            if owner is not None or index is not None:
                raise ValueError("a list of one version is the server's, which knows no owner and no index")
            return super().list(
                kind,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
                page_size=page_size,
                timeout=timeout,
                **select,
            )

        async def read() -> builtins.list[T]:
            reading = self._reader().list(kind, owner=owner, index=index, **select)
            if timeout is None:
                return await reading
            return await _in_time(reading, f"list {form_of(kind).gvk}", timeout)

        return _Cached(read)

    async def snapshots(
        self,
        kind: type[Any] | Form[Any],
        *,
        owner: str | None = None,
        index: Mapping[str, str] | None = None,
        **select: Unpack[SelectOptions],
    ) -> builtins.list[Snapshot]:
        """What ``list`` gives, as the cache holds it: bytes, and the metadata to look at.  Never change it.

        For whoever reads many objects of which few have changed, and keeps what the others say.
        """
        asked = query_of(select.get("namespace"), select.get("labels"), select.get("fields"), owner, index)
        return await self._reader().snapshots(form_of(kind), asked)


class _Cached(Listing[T]):
    """A list that is there already; of the version of a whole list, a cache says nothing."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Awaitable[builtins.list[T]]]) -> None:
        super().__init__(_no_page, _no_object)
        self._read = read

    async def pages(self) -> AsyncIterator[builtins.list[T]]:
        yield await self._read()

    async def _all(self) -> Objects[T]:
        return Objects(await self._read())


async def _no_page(token: str) -> NoReturn:
    raise AssertionError(f"a cache has no pages, and none after {token!r}")


def _no_object(data: bytes) -> NoReturn:
    raise AssertionError(f"a cache decodes by itself, and not these {len(data)} bytes")


async def _in_time(read: Awaitable[T], doing: str, timeout: float) -> T:
    try:
        async with asyncio.timeout(timeout) as deadline:
            return await read
    except TimeoutError:
        if deadline.expired():
            raise DeadlineExceeded(doing, f"the cache had no answer within {timeout:g} s") from None
        raise
