"""Reads that never go behind a controller's own writes.

``CachedReader`` reads from a cache as ``Cache`` does, for one controller whose writes it is told of.  Before
it reads, it waits until the cache has seen them, but no longer than ``patience``; then it asks the server.
While a write is in doubt (its answer was lost) the server is asked at once.  Either way nothing is read that
is older than the controller's last write.  Events are never held back: only reads wait.

When the server's past was replaced (``history.py``) the writes made in it no longer count; each kind is read
again when it was listed anew.

What counts as seen is decided in ``writes.py``.  The controller's ``ctx`` reads through this.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from setpoint.api.decoders import decode_all
from setpoint.api.forms import Form, form_of, metadata_only
from setpoint.api.names import GroupVersionKind, Key
from setpoint.api.wire import Snapshot
from setpoint.cache.cache import Cache, Fields, Labels, newest, not_found, query_of
from setpoint.cache.informer import Informer
from setpoint.cache.store import Query
from setpoint.cache.writes import Write, Writes, is_past
from setpoint.client.client import ignore_not_found
from setpoint.errors import NotFound
from setpoint.metrics import ControllerMetrics

T = TypeVar("T")

MOST_ASKED = 10  # objects that are asked about one by one; of more, a list is cheaper
PATIENCE = 5.0  # a watch is late by milliseconds; one that is late by seconds is better not waited for


class CachedReader:
    """A cache, read by one controller."""

    def __init__(
        self,
        cache: Cache,
        writes: Writes | None = None,
        *,
        patience: float = PATIENCE,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        self.cache = cache
        self._writes = Writes() if writes is None else writes
        self._history = cache.history
        self._patience = patience
        self._metrics = metrics

    def __repr__(self) -> str:
        return f"<CachedReader of {self.cache!r}, {self.writes!r}>"

    @property
    def writes(self) -> Writes:
        """What the controller wrote; none of another past of the server's than the present one."""
        if self._history != self.cache.history:
            self._history = self.cache.history
            self._writes.clear()
        return self._writes

    def take_over(self, other: CachedReader) -> None:
        """Go on from what another controller wrote, which this one replaces."""
        self._writes = other.writes

    # What the controller did.

    def wrote(
        self,
        kind: type[Any] | Form[Any],
        key: Key,
        version: str,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A create, update, patch or apply was answered with this resourceVersion.

        With the labels it then had, reads of a kind that is declared with a label selector need not wait for
        an object that is not selected.
        """
        gvk = form_of(kind).gvk
        if self.cache.holds(gvk):
            self.writes.wrote(gvk, key, version, at=_now(), labels=labels)

    def deleted(
        self,
        kind: type[Any] | Form[Any],
        key: Key,
        uid: str,
        *,
        is_gone: bool = False,
        existed_at: str = "",
    ) -> None:
        """A deletion of the object with this uid was answered; ``is_gone``: and it is not just on its way.

        ``existed_at`` is a version at which it was still there: a store that is older will yet bring it.
        """
        gvk = form_of(kind).gvk
        if self.cache.holds(gvk):
            self.writes.deleted(gvk, key, uid, at=_now(), is_gone=is_gone, existed_at=existed_at)

    def ambiguous(self, kind: type[Any] | Form[Any], key: Key) -> None:
        """A write got no answer: it may have happened.  The key has no name if that was up to the server."""
        gvk = form_of(kind).gvk
        if self.cache.holds(gvk):
            if key.name:
                self.writes.lost(gvk, key, at=_now())
            else:
                self.writes.lost_unnamed(gvk, at=_now())

    # Reading.

    async def get(self, kind: type[T] | Form[T], name: str, *, namespace: str | None = None) -> T:
        """One object, no older than our own last write to it; NotFound if it is not there."""
        form = form_of(kind)
        resource = form.resource or await self.cache.client.resource_of(form)
        key = self.cache.key_of(resource, name, namespace)
        if informers := self._at_once(form, key):
            held = newest(informers, key)
            if held is None:
                raise not_found(resource, key)
            return form.decode(held.data)
        write = self.writes.of(form.gvk, key)
        is_in_doubt = (write is not None and write.is_in_doubt(_now())) or await self._is_still_unknown(
            form, key.namespace
        )
        if is_in_doubt or not await self._wait(self.cache.informers(form, key.namespace), form.gvk, [key]):
            return form.decode((await self._get_live(form, key)).data)
        return await self.cache.get(form, name, namespace=key.namespace or None)

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
        """The objects of a kind, none older than our own last write to it."""
        form = form_of(kind)
        query = query_of(namespace, labels, fields, owner, index)
        held = await self.snapshots(form, query)
        return decode_all(form.decode, (each.data for each in held))

    async def snapshots(self, form: Form[Any], query: Query) -> builtins.list[Snapshot]:
        """What a query means, as the cache holds it: to look at, and never to change."""
        doubted = self._doubted(form, query.namespace)
        is_known = len(doubted) <= MOST_ASKED and not self._is_unknown(form, query.namespace)
        if is_known:
            await self._ask(form, doubted)
        keys = [key for key, _ in self.writes.of_kind(form.gvk, query.namespace)]
        if not is_known or not await self._wait(self.cache.informers(form, query.namespace), form.gvk, keys):
            return await self._list_live(form, query)
        return await self.cache.snapshots(form, query)

    async def caught_up(
        self, kinds: Iterable[type[Any] | Form[Any]], *, timeout: float | None = None
    ) -> bool:
        """Wait until the cache has seen all our writes to these kinds; False if it takes too long."""
        for kind in kinds:
            form = form_of(kind)
            if self._is_unknown(form, ""):
                await self._list_live(metadata_only(form), Query())
            await self._ask(form, self._doubted(form, ""))
            keys = [key for key, _ in self.writes.of_kind(form.gvk)]
            if not await self._wait(self.cache.holds(form.gvk), form.gvk, keys, timeout):
                return False
        return True

    async def catch_up_with(self, gvk: GroupVersionKind, key: Key) -> None:
        """Wait for our last write to an object to come back, if it is likely to."""
        write = self.writes.of(gvk, key)
        if write is None or write.is_given_up or write.is_in_doubt(_now()):
            return
        informers = self.cache.holds(gvk)
        if not all(_has_seen(each, key, write) for each in informers):
            await self._wait(informers, gvk, [key])

    def _at_once(self, form: Form[Any], key: Key) -> builtins.list[Informer]:
        """The watches to read an object from, if they have all that we wrote; as nearly always."""
        gvk, writes = form.gvk, self.writes
        if writes.unknown_until(gvk) is not None or writes.floor(gvk):
            return []
        write = writes.of(gvk, key)
        if write is not None:
            informers = self.cache.holds(gvk)
            if write.is_in_doubt(_now()) or not all(_has_seen(each, key, write) for each in informers):
                return []
            writes.seen(gvk, key)
        return self.cache.at_once(form, key.namespace)

    def _is_unknown(self, form: Form[Any], namespace: str) -> bool:
        """Whether only the server knows what we did to this kind."""
        is_unknown = self.writes.unknown_until(form.gvk) is not None
        return is_unknown and bool(self.cache.informers(form, namespace))

    async def _is_still_unknown(self, form: Form[Any], namespace: str) -> bool:
        """The same; when nothing more can happen, a list is asked for that says how far the cache must be."""
        until = self.writes.unknown_until(form.gvk)
        if until is not None and until <= _now() and self._is_unknown(form, namespace):
            await self._list_live(metadata_only(form), Query(namespace))
        return self._is_unknown(form, namespace)

    async def _list_live(self, form: Form[Any], query: Query) -> builtins.list[Snapshot]:
        asked_at = _now()
        found = await self.cache.list_live(form, query)
        self.writes.listed_live(form.gvk, found.resource_version, at=asked_at)
        return found

    def _doubted(self, form: Form[Any], namespace: str) -> builtins.list[Key]:
        """The objects of which only the server knows how they are."""
        return [
            key
            for key, write in self.writes.of_kind(form.gvk, namespace)
            if write.is_in_doubt(_now()) and self.cache.informers(form, key.namespace)
        ]

    async def _ask(self, form: Form[Any], keys: builtins.list[Key]) -> None:
        """Ask the server about these."""
        for key in keys:
            await ignore_not_found(self._get_live(metadata_only(form), key))

    async def _get_live(self, form: Form[Any], key: Key) -> Snapshot:
        held = self.cache.peek(form, key)
        try:
            found = await self.cache.get_live(form, key)
        except NotFound:
            if held is not None:
                self.writes.read_gone(form.gvk, key, held.metadata.uid)
            raise
        self.writes.read_live(form.gvk, key, found.metadata.resource_version)
        return found

    async def _wait(
        self,
        informers: Collection[Informer],
        gvk: GroupVersionKind,
        keys: builtins.list[Key],
        timeout: float | None = None,
    ) -> bool:
        """Wait until all these watches have brought our writes to these objects; False if they are late."""
        late = [
            unseen
            for informer in informers
            if not (unseen := Unseen(informer, self.writes, gvk, keys)).is_empty()
        ]
        if late and any(unseen.is_given_up for unseen in late):
            return False
        if late and not await self._wait_for(late, self._patience if timeout is None else timeout):
            for key in keys if timeout is None else ():
                self.writes.give_up(gvk, key)
            return False
        for key in keys:
            if all(Unseen(each, self.writes, gvk, [key]).is_empty() for each in self.cache.holds(gvk)):
                self.writes.seen(gvk, key)
        return True

    async def _wait_for(self, late: builtins.list[Unseen], timeout: float) -> bool:
        began, in_time = _now(), True
        for unseen in late:
            left = began + timeout - _now()
            in_time = in_time and await unseen.informer.wait_until(unseen.is_empty, left)
            if in_time and unseen.written_at is not None:
                unseen.informer.measure_lag(_now() - unseen.written_at)
        if self._metrics is not None:
            self._metrics.cache_wait_seconds.observe(_now() - began)
            if not in_time:
                self._metrics.cache_wait_timeouts.inc()
        return in_time


class Unseen:
    """The writes that one watch has yet to bring."""

    def __init__(
        self, informer: Informer, writes: Writes, gvk: GroupVersionKind, keys: Iterable[Key]
    ) -> None:
        self.informer = informer
        self._floor = writes.floor(gvk)
        self._left = [
            (key, write)
            for key in keys
            if informer.scope.namespace in ("", key.namespace) and (write := writes.of(gvk, key)) is not None
        ]
        self.written_at = max((write.at for _, write in self._left), default=None)

    @property
    def is_given_up(self) -> bool:
        return any(write.is_given_up for _, write in self._left)

    def is_empty(self) -> bool:
        """Whether all have been brought.  Asked after each event; what was seen is not looked at again."""
        store, scope = self.informer.store, self.informer.scope
        while self._left:
            key, write = self._left[-1]
            if not write.is_seen(scope, store.get(key), store.version):
                return False
            self._left.pop()
        return not self._floor or is_past(store.version, self._floor)


def _has_seen(informer: Informer, key: Key, write: Write) -> bool:
    """Whether a watch has brought a write, or need not bring it."""
    scope, store = informer.scope, informer.store
    return scope.namespace not in ("", key.namespace) or write.is_seen(scope, store.get(key), store.version)


def _now() -> float:
    return asyncio.get_running_loop().time()
