"""Finds those who select a pod by its labels: Services, budgets.

A watched kind whose objects have a selector is heard here, and each pod is answered with the keys of those in
its namespace that select it.  Whether an object is still there, and what its selector says, is asked of the
cache once after each change of it.
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
        # By namespace.  Those that have changed are yet to be read.
        self._keys: dict[str, dict[Key, LabelSelection | None]] = {}
        self._changed: set[Key] = set()

    def hear(self, snapshot: Snapshot) -> list[Request]:
        """A mapper for the kind itself: its own key, which is remembered."""
        key = snapshot.key
        self._keys.setdefault(key.namespace, {}).setdefault(key, None)
        self._changed.add(key)
        return [key]

    def of_pod(self, pod: Snapshot) -> list[Request]:
        """A mapper for pods: the keys of those who select it."""
        keys, labels = self._keys.get(pod.metadata.namespace), pod.metadata.labels
        if not keys:
            return []
        if self._changed:
            self._read()
        return [key for key, each in keys.items() if each is not None and each.matches(labels)]

    def in_namespace(self, namespace: str) -> list[Request]:
        """All of them in a namespace."""
        return [key for key in self._keys.get(namespace, ()) if self._cache.peek(self._kind, key) is not None]

    def _read(self) -> None:
        """Learn what those select that have changed."""
        while self._changed:
            key = self._changed.pop()
            snapshot = self._cache.peek(self._kind, key)
            if snapshot is None:
                self._keys[key.namespace].pop(key, None)
            else:
                self._keys[key.namespace][key] = self._selector(self._decode(snapshot.data))
