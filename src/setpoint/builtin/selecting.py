"""Finds those who select a pod by its labels: Services, budgets.

A watched kind whose objects have a selector is heard here, and each pod is answered with the keys of those in
its namespace that select it.  What is remembered is a hint: whether an object is still there, and what its
selector says now, is asked of the cache each time (by version, so that a selector is read once).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from setpoint.api.names import Key
from setpoint.api.selectors import LabelSelection
from setpoint.api.wire import Snapshot
from setpoint.cache.cache import Cache
from setpoint.controller.result import Request

T = TypeVar("T")


class Selecting(Generic[T]):
    """Who among the objects of a kind selects a pod; None as a selector selects nothing."""

    def __init__(
        self,
        cache: Cache,
        kind: type[T],
        decode: Callable[[bytes], T],
        selector: Callable[[T], LabelSelection | None],
    ) -> None:
        self._cache = cache
        self._kind = kind
        self._decode = decode
        self._selector = selector
        self._keys: dict[str, dict[Key, tuple[str, LabelSelection | None]]] = {}  # by namespace

    def hear(self, snapshot: Snapshot) -> list[Request]:
        """A mapper for the kind itself: its own key, which is remembered."""
        self._keys.setdefault(snapshot.metadata.namespace, {}).setdefault(snapshot.key, ("", None))
        return [snapshot.key]

    def of_pod(self, pod: Snapshot) -> list[Request]:
        """A mapper for pods: the keys of those who select it."""
        namespace = pod.metadata.namespace
        labels = pod.metadata.labels
        found: list[Request] = []
        for key in list(self._keys.get(namespace, ())):
            selection = self._selection(namespace, key)
            if selection is not None and selection.matches(labels):
                found.append(key)
        return found

    def in_namespace(self, namespace: str) -> list[Request]:
        """All of them in a namespace."""
        return [key for key in self._keys.get(namespace, ()) if self._cache.peek(self._kind, key) is not None]

    def _selection(self, namespace: str, key: Key) -> LabelSelection | None:
        keys = self._keys[namespace]
        snapshot = self._cache.peek(self._kind, key)
        if snapshot is None:
            del keys[key]
            return None
        version, selection = keys[key]
        if version != snapshot.metadata.resource_version:
            selection = self._selector(self._decode(snapshot.data))
            keys[key] = (snapshot.metadata.resource_version, selection)
        return selection
