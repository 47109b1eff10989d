"""All that a process keeps a copy of: which kinds are watched, for whom, and reads from the copies.

The promises:

1. Nothing is watched that nobody declared, and what several declare alike is watched once.  When the last of
   them closes its declaration, the watch ends.
2. A read gives a fresh object in the form that is asked for; changing it changes nothing here.  All forms of
   a kind are read from the one copy.
3. A read of what is declared waits, with a deadline, until the copy is whole.
4. A read of what is not declared, or not in that namespace, is live, or with ``undeclared="error"`` an error
   that says how to declare it.  So is one of the data of a kind of which only the metadata is kept (Secrets,
   unless told otherwise): that is always live.
5. Every watch is a task of the cache: it runs inside ``async with cache`` (or ``cache.run()``), and ends with
   it.

Declarations of one kind may differ.  Namespaces add up: a read sees all that are declared.  Other selectors
mean other watches; the cache then knows what any of them brings, and an object that none brings is NotFound.

What read-your-writes adds to this is in ``consistency.py``.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar

from setpoint.api.decoders import decode_all
from setpoint.api.forms import Form, MetadataOnly, Untyped, form_of
from setpoint.api.forms import metadata_only as as_metadata
from setpoint.api.names import GroupVersionKind, Key, Resource
from setpoint.api.requests import describe
from setpoint.api.selectors import FieldSelection, LabelSelection, field_selection, label_selection
from setpoint.api.wire import Malformed, Snapshot
from setpoint.cache.declaration import Declaration
from setpoint.cache.index import FromMetadata, Index, by_field, by_function, by_metadata
from setpoint.cache.informer import RESYNC, SYNC_TIMEOUT, Informer, Shared, Stats, wait_all_synced
from setpoint.cache.scope import Scope
from setpoint.cache.store import Query
from setpoint.cache.versions import is_older
from setpoint.cache.watch_state import TIMING, Timing
from setpoint.client.client import PAGE_SIZE, Client
from setpoint.client.listing import Objects
from setpoint.errors import DecodeError, NotDeclared, NotFound
from setpoint.metrics import Metrics

T = TypeVar("T")
Labels: TypeAlias = str | Mapping[str, str] | LabelSelection
Fields: TypeAlias = str | Mapping[str, str] | FieldSelection
Indexes: TypeAlias = Iterable[str] | Mapping[str, Callable[[T], Iterable[str]] | FromMetadata]

_SECRET = GroupVersionKind("", "v1", "Secret")


class Cache:
    """What one process knows of one API server.

    ``stream_lists=False`` fetches initial lists page by page, as servers do that cannot stream them.
    """

    def __init__(
        self,
        client: Client,
        metrics: Metrics | None = None,
        *,
        namespaces: Iterable[str] | None = None,
        undeclared: Literal["live", "error"] = "live",
        resync: float = RESYNC,
        sync_timeout: float = SYNC_TIMEOUT,
        timing: Timing = TIMING,
        page_size: int = PAGE_SIZE,
        stream_lists: bool = True,
    ) -> None:
        self.client = client
        self._shared = Shared.of(
            client, metrics, timing=timing, resync=resync, page_size=page_size, stream_lists=stream_lists
        )
        self._namespaces = None if namespaces is None else tuple(namespaces)
        self._undeclared = undeclared
        self._sync_timeout = sync_timeout
        self._informers: dict[GroupVersionKind, builtins.list[Informer]] = {}
        self._holders: dict[Informer, int] = {}
        self._indexes: dict[tuple[GroupVersionKind, bool], dict[str, Callable[[], Index]]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[Informer, asyncio.Task[None]] = {}
        self._is_closed = False
        self._keepers = 0  # while there are any, no watch is let go of

    def __repr__(self) -> str:
        return f"<Cache of {self.client.config.server}: {len(self._holders)} watches>"

    # Running.

    async def __aenter__(self) -> Self:
        if self._tasks is not None or self._is_closed:
            raise RuntimeError("a cache is entered once")
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        for informer in self._holders:
            self._start(informer)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        for task in self._running.values():
            task.cancel()
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            raise AssertionError("a cache is left only where it was entered")
        # A failed watch shows as the block's cancellation, which the group turns into the failure.  Any other
        # error is the block's own, and leaves as it is.
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            await tasks.__aexit__(kind, error, trace)
        else:
            await tasks.__aexit__(None, None, None)

    async def run(self) -> None:
        """Keep the copies current until cancelled."""
        async with self:
            await asyncio.Event().wait()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until all that is declared now is there; NotSynced names what is not, and why."""
        await wait_all_synced(self._holders, self._sync_timeout if timeout is None else timeout)

    @property
    def history(self) -> int:
        """How often the server's past was replaced, as by an etcd restored from a backup."""
        return self._shared.history.count

    def stats(self) -> builtins.list[Stats]:
        """What each watch has brought, and how it is."""
        return [informer.stats() for informer in self._holders]

    # Declaring.

    def declare(
        self,
        kind: type[T] | Form[T],
        *,
        namespaces: Iterable[str] | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        metadata_only: bool | None = None,
        strip_managed_fields: bool = False,
        indexes: Indexes[T] = (),
    ) -> Declaration:
        """Keep a copy of a kind, of all namespaces or these, until the declaration is closed.

        Where no namespaces are given, the cache's own are meant, if it has any.

        ``metadata_only`` keeps nothing else; for Secrets that is so unless it is False.  ``indexes`` are
        paths to fields (``["spec.nodeName"]``), or names with functions that give an object's values.
        """
        form = form_of(kind)
        if metadata_only is None:
            metadata_only = isinstance(form, MetadataOnly) or form.gvk == _SECRET
        is_in_none = form.resource is not None and not form.resource.namespaced
        if namespaces is None and not is_in_none:
            namespaces = self._namespaces
        if is_in_none and namespaces is not None:
            raise ValueError(f"{form.gvk} belongs to no namespace: declare it without namespaces")
        scope = Scope(
            form.gvk,
            labels=LabelSelection() if labels is None else label_selection(labels),
            fields=FieldSelection() if fields is None else field_selection(fields),
            metadata_only=metadata_only,
            strip_managed_fields=strip_managed_fields,
        )
        held: Form[Any] = as_metadata(form) if metadata_only else form
        self._add_indexes(scope, _definitions(held, indexes))
        return Declaration(partial(self._hold, held), self._release, scope, namespaces)

    def _add_indexes(self, scope: Scope, definitions: Mapping[str, Callable[[], Index]]) -> None:
        known = self._indexes.setdefault((scope.gvk, scope.metadata_only), {})
        for name, make in definitions.items():
            if name in known and not self._keepers and known[name]().definition != make().definition:
                raise ValueError(f"{scope.gvk} has an index {name!r} already, of another definition")
            known[name] = make
            for informer in self._informers.get(scope.gvk, ()):
                if informer.scope.metadata_only == scope.metadata_only:
                    informer.add_index(make(), anew=bool(self._keepers))

    def _hold(self, form: Form[Any], scope: Scope) -> Informer:
        if self._is_closed:
            raise RuntimeError(f"declare {scope}: the cache is closed")
        known = self._informers.setdefault(scope.gvk, [])
        informer = next((each for each in known if each.scope.serves(scope)), None)
        if informer is None:
            informer = Informer(self._shared, form, scope)
            for make in self._indexes[scope.gvk, scope.metadata_only].values():
                informer.add_index(make())
            known.append(informer)
            self._start(informer)
        self._holders[informer] = self._holders.get(informer, 0) + 1
        return informer

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """While the block lasts, let go of no watch: what is declared again in it is there at once.

        For controllers that are replaced by others.  An index may then be defined anew, too.
        """
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1
            for informer in [each for each, holders in self._holders.items() if not holders]:
                self._let_go(informer)

    def _release(self, informer: Informer) -> None:
        self._holders[informer] -= 1
        if not self._holders[informer]:
            self._let_go(informer)

    def _let_go(self, informer: Informer) -> None:
        if self._keepers:
            return
        del self._holders[informer]
        self._informers[informer.scope.gvk].remove(informer)
        task = self._running.pop(informer, None)
        if task is not None:
            task.cancel()

    def _start(self, informer: Informer) -> None:
        if self._tasks is not None:
            self._running[informer] = self._tasks.create_task(informer.run(), name=f"watch {informer.scope}")

    # Reading.

    async def get(self, kind: type[T] | Form[T], name: str, *, namespace: str | None = None) -> T:
        """One object; NotFound if it is not there."""
        form = form_of(kind)
        resource = form.resource or await self.client.resource_of(form)
        key = self.key_of(resource, name, namespace)
        informers = await self._synced(form, key.namespace)
        if informers is None:
            return await self.client.get(form, name, namespace=key.namespace or None)
        snapshot = newest(informers, key)
        if snapshot is None:
            raise not_found(resource, key)
        return form.decode(snapshot.data)

    async def list(
        self,
        kind: type[T] | Form[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        owner: str | None = None,
        index: Mapping[str, str] | None = None,
    ) -> builtins.list[T]:
        """The objects of a kind, by namespace and name; without a namespace, of all that are declared.

        ``fields`` may be any path to a field, ``owner`` is the uid of one, ``index`` names one and a value.
        """
        form = form_of(kind)
        query = query_of(namespace, labels, fields, owner, index)
        held = await self.snapshots(form, query)
        return decode_all(form.decode, (each.data for each in held))

    async def snapshots(self, form: Form[Any], query: Query) -> builtins.list[Snapshot]:
        """What a query means, as it is held: to look at, and never to change."""
        informers = await self._synced(form, query.namespace)
        return await self.list_live(form, query) if informers is None else select(informers, query)

    def at_once(self, form: Form[Any], namespace: str) -> builtins.list[Informer]:
        """The watches to read from, if nothing need be waited for; else none."""
        informers = self.informers(form, namespace)
        if self._is_closed or not all(each.is_synced for each in informers):
            return []
        return informers

    def peek(self, kind: type[T] | Form[T], key: Key) -> Snapshot | None:
        """The object as it is held just now, without waiting; None if it is not held."""
        return newest(self.informers(form_of(kind), key.namespace), key)

    def key_of(self, resource: Resource, name: str, namespace: str | None) -> Key:
        """Where an object of this name is; the client's own namespace where none is given."""
        if not name:
            raise ValueError(f"which {resource.gvk}? its name is empty")
        if resource.namespaced:
            return Key(namespace or self.client.config.namespace, name)
        if namespace:
            raise ValueError(f"{resource.gvk} belongs to no namespace: leave namespace={namespace!r} out")
        return Key("", name)

    def informers(self, form: Form[Any], namespace: str = "") -> builtins.list[Informer]:
        """The watches that bring what a read of this form and namespace needs; none: it must be live."""
        with_data = not isinstance(form, MetadataOnly)
        declared = self._informers.get(form.gvk, ())
        able = [
            each
            for each in declared
            if (not namespace or each.scope.namespace in ("", namespace))
            and not (with_data and each.scope.metadata_only)
        ]
        if len(declared) == 1:
            return able
        whole = [each for each in able if each.scope.is_whole and each.scope.namespace in ("", namespace)]
        return [min(whole, key=_preference)] if whole else able

    def holds(self, gvk: GroupVersionKind) -> builtins.list[Informer]:
        """Every watch of a kind."""
        return [*self._informers.get(gvk, ())]

    async def get_live(self, form: Form[Any], key: Key) -> Snapshot:
        """One object, asked of the server now; NotFound if it is not there, or not among what is declared."""
        asked = AsHeld(self._with_fields(form, key.namespace))
        snapshot = await self.client.get(asked, key.name, namespace=key.namespace or None)
        if not self._is_declared(form, snapshot):
            raise NotFound(f"get {form.gvk} {key}", "it is there, but none of the declarations select it")
        return snapshot

    async def list_live(self, form: Form[Any], query: Query) -> Objects[Snapshot]:
        """What a query means, asked of the server now; of what is declared, where something is."""
        indexes = {name: self._index(form, name) for name in query.index}
        labels = query.labels if query.labels.requirements else None
        asked = AsHeld(self._with_fields(form, query.namespace))
        listed = await self.client.list(asked, namespace=query.namespace or None, labels=labels)
        found = [
            snapshot
            for snapshot in listed
            if query.filters(snapshot) and query.is_owned(snapshot) and self._is_declared(form, snapshot)
        ]
        for name, index in indexes.items():
            for snapshot in found:
                index.put(snapshot)
            found = [each for each in found if each.key in index.keys(query.index[name])]
        given = Objects(found)
        given.resource_version = listed.resource_version
        return given

    def _with_fields(self, form: Form[Any], namespace: str) -> Form[Any]:
        """A form that has all that declarations select by: metadata alone have no fields."""
        scopes = [informer.scope for informer in self.informers(form, namespace)]
        if isinstance(form, MetadataOnly) and any(scope.fields.requirements for scope in scopes):
            return Untyped(form.gvk, form.resource)
        return form

    def _is_declared(self, form: Form[Any], snapshot: Snapshot) -> bool:
        informers = self.informers(form, snapshot.metadata.namespace)
        return not informers or any(informer.scope.selects(snapshot) for informer in informers)

    def _index(self, form: Form[Any], name: str) -> Index:
        known = self._indexes.get((form.gvk, isinstance(form, MetadataOnly)), {})
        if name not in known:
            raise ValueError(f"{form.gvk} has no index {name!r}; declare it with indexes=[{name!r}]")
        return known[name]()

    async def _synced(self, form: Form[Any], namespace: str) -> builtins.list[Informer] | None:
        """The watches to read from, once they have brought everything; None: the read must be live."""
        if self._is_closed:
            raise RuntimeError(f"read {form.gvk}: the cache is closed")
        informers = self.informers(form, namespace)
        if not informers:
            self._check_undeclared(form, namespace)
            return None
        await wait_all_synced(informers, self._sync_timeout)
        return informers

    def _check_undeclared(self, form: Form[Any], namespace: str) -> None:
        is_partly_held = bool(self.informers(as_metadata(form), namespace))
        if self._undeclared == "live" or is_partly_held:
            return
        where = f" in namespace {namespace}" if namespace else ""
        what = f", namespaces=[{namespace!r}]" if namespace else ""
        raise NotDeclared(
            f"read {form.gvk}{where}",
            "the cache was not told to hold it",
            advice=f"cache.declare({form.gvk.kind}{what}) first, or read it with the client",
        )


class AsHeld(Form[Snapshot]):
    """Objects as a store holds them."""

    def __init__(self, like: Form[Any], resource: Resource | None = None) -> None:
        self.gvk, self.resource = like.gvk, resource or like.resource
        self.accept, self.accept_list = like.accept, like.accept_list

    def decode(self, data: bytes) -> Snapshot:
        try:
            return Snapshot.of(data)
        except Malformed as error:
            raise DecodeError(f"read {self.gvk}", str(error)) from error


def query_of(
    namespace: str | None,
    labels: Labels | None,
    fields: Fields | None,
    owner: str | None,
    index: Mapping[str, str] | None,
) -> Query:
    """What a caller asks for, as the stores understand it."""
    return Query(
        namespace or "",
        LabelSelection() if labels is None else label_selection(labels),
        FieldSelection() if fields is None else field_selection(fields),
        owner or "",
        index or {},
    )


def select(informers: Collection[Informer], query: Query) -> list[Snapshot]:
    """What a query means, from all of these; what several of them hold, as the furthest of them has it."""
    for informer in informers:
        if informer.scope.metadata_only:
            _check_metadata(query)
    if len(informers) == 1:
        return next(iter(informers)).store.select(query)
    found: dict[Key, Snapshot] = {}
    for informer in informers:
        for snapshot in informer.store.select(query):
            known = found.get(snapshot.key)
            if known is None or is_older(known.metadata.resource_version, snapshot.metadata.resource_version):
                found[snapshot.key] = snapshot
    return [found[key] for key in sorted(found)]


def _check_metadata(query: Query) -> None:
    for requirement in query.fields.requirements:
        if not requirement.field.removeprefix(".").startswith("metadata."):
            raise ValueError(
                f"only metadata is held, and {requirement.field} is none: read it with the client"
            )


def not_found(resource: Resource, key: Key) -> NotFound:
    return NotFound(describe("get", resource, key), f'{resource} "{key.name}" not found')


def newest(informers: Iterable[Informer], key: Key) -> Snapshot | None:
    """The object as the furthest of these has it."""
    found: Snapshot | None = None
    for informer in informers:
        held = informer.store.get(key)
        if found is None or (
            held is not None and is_older(found.metadata.resource_version, held.metadata.resource_version)
        ):
            found = held
    return found


def _preference(informer: Informer) -> tuple[bool, bool, bool]:
    scope = informer.scope
    return not informer.is_synced, scope.metadata_only, scope.strip_managed_fields


def _definitions(form: Form[Any], indexes: Indexes[Any]) -> dict[str, Callable[[], Index]]:
    if isinstance(indexes, str):
        raise TypeError(f"indexes is a list: write indexes=[{indexes!r}]")
    if isinstance(indexes, Mapping):
        return {
            name: partial(by_metadata, name, function)
            if isinstance(function, FromMetadata)
            else partial(by_function, name, function, form)
            for name, function in indexes.items()
        }
    made = {path: partial(by_field, path) for path in indexes}
    for make in made.values():
        make()  # a path that is none is an error now
    return dict(made)
