"""That somebody needs a kind: what ``Cache.declare`` gives, and who is told of its changes.

A declaration holds a watch for each of its namespaces (or one, for all of them), shared with whoever declared
the same.  Its listeners follow: they are told what is in a namespace that is added.  Closing lets go of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from setpoint.api.names import GroupVersionKind
from setpoint.api.wire import Snapshot
from setpoint.cache.informer import SYNC_TIMEOUT, Informer, Listener, wait_all_synced
from setpoint.cache.scope import Problem, Scope

Hold: TypeAlias = Callable[[Scope], Informer]
Release: TypeAlias = Callable[[Informer], None]
Subscribe: TypeAlias = Callable[[Informer], Callable[[], None]]  # gives what ends it


class Declaration:
    """Until it is closed, the cache keeps the kind."""

    def __init__(
        self, hold: Hold, release: Release, scope: Scope, namespaces: Iterable[str] | None = None
    ) -> None:
        self._hold = hold
        self._release = release
        self._scope = scope  # of all namespaces; each has its own like it
        self._held: dict[str, Informer] = {}
        self._listeners: dict[object, tuple[Subscribe, dict[str, Callable[[], None]]]] = {}
        if namespaces is None:
            self._add("")
            return
        wanted = list(namespaces)
        if isinstance(namespaces, str) or "" in wanted:
            raise ValueError(f"namespaces={namespaces!r}: give a list of names, or leave it out to mean all")
        for namespace in wanted:
            self.add_namespace(namespace)

    def __repr__(self) -> str:
        where = "all namespaces" if "" in self._held else ", ".join(self._held) or "no namespace"
        return f"<Declaration {self._scope}: {where}>"

    @property
    def gvk(self) -> GroupVersionKind:
        return self._scope.gvk

    @property
    def namespaces(self) -> frozenset[str] | None:
        """Those that are kept; None: all."""
        return None if "" in self._held else frozenset(self._held)

    def selects(self, snapshot: Snapshot) -> bool:
        """Whether it keeps such an object."""
        return any(
            replace(self._scope, namespace=namespace).selects(snapshot) for namespace in tuple(self._held)
        )

    @property
    def is_synced(self) -> bool:
        """Whether it is all there, and every listener was told."""
        return all(informer.is_synced for informer in self._held.values())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What stands in the way just now."""
        found = (informer.problem for informer in self._held.values())
        return tuple(problem for problem in found if problem is not None)

    async def wait_synced(self, timeout: float = SYNC_TIMEOUT) -> None:
        """Wait until it is all there, and every listener was told; NotSynced says why it is not."""
        await wait_all_synced(self._held.values(), timeout)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function told of every object, then of every change; calling the answer ends that."""
        return self._subscribe(lambda informer: informer.listen(listener))

    def on_problem(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have a function called whenever ``problems`` changes; calling the result ends that."""
        return self._subscribe(lambda informer: informer.on_problem(call))

    def _subscribe(self, subscribe: Subscribe) -> Callable[[], None]:
        me = object()
        ends = {namespace: subscribe(informer) for namespace, informer in self._held.items()}
        self._listeners[me] = (subscribe, ends)
        return lambda: self._silence(me)

    def add_namespace(self, namespace: str) -> None:
        """Keep one more namespace; listeners are told of what is in it."""
        if not namespace or "" in self._held:
            raise ValueError(f"{self!r} cannot have the namespace {namespace!r} too")
        if namespace not in self._held:
            self._add(namespace)

    def remove_namespace(self, namespace: str) -> None:
        """Keep one namespace less.  Listeners are told nothing: its objects still exist."""
        if namespace and namespace in self._held:
            for _, ends in self._listeners.values():
                ends.pop(namespace)()
            self._release(self._held.pop(namespace))

    def close(self) -> None:
        """Need it no longer; closing twice is fine."""
        for me in list(self._listeners):
            self._silence(me)
        while self._held:
            self._release(self._held.popitem()[1])

    def _add(self, namespace: str) -> None:
        informer = self._held[namespace] = self._hold(replace(self._scope, namespace=namespace))
        for subscribe, ends in self._listeners.values():
            ends[namespace] = subscribe(informer)

    def _silence(self, me: object) -> None:
        if me in self._listeners:
            _, ends = self._listeners.pop(me)
            for end in ends.values():
                end()
