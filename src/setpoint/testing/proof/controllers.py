"""The built-in controllers in a proof: a Deployment makes pods there, a Job completes, a claim is bound.

They are part of the world and not of what is proven: no fault strikes them, and what they make (a pod, a
ReplicaSet) is not compared with the reference, for how often a pod was started is theirs to say; except for
claims, where data is.  Some run whether they are named or not, where the operator makes objects that cannot
be deleted without them (``needed``).  What they write into objects of the operator (the status of a
Deployment) is compared.

Garbage is collected by the world's own collector, whichever controllers are named: faults must be able to
hold it back.  Run by ``world.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from setpoint.builtin.controllers import ALL, add_controllers
from setpoint.client.client import Client
from setpoint.clock import Clock
from setpoint.manager.manager import Manager
from setpoint.net.transport import Transport
from setpoint.testing.proof.store import actor
from setpoint.testing.proof.trace import CONTROLLERS

Controllers = Iterable[str] | bool

_LEFT_OUT: Final = frozenset({"garbage-collector-controller", "event-ttl-controller"})
_PEACE: Final = 12.0  # seconds without a write after which they are done: longer than a pod takes to start
_HEARTBEATS: Final = frozenset({"nodes", "leases.coordination.k8s.io", "events", "events.events.k8s.io"})


_NEEDED: Final = {"namespaces": "namespace-controller"}  # without it, a deleted Namespace never goes


def owned(subject: object) -> set[str]:
    """The resources whose objects an operator says it makes, by its RBAC rules; none, where it has none."""
    rules: list[dict[str, Any]] = getattr(subject, "rules", list)()
    return {
        f"{resource}.{group}".rstrip(".")
        for rule in rules
        if "delete" in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if "/" not in resource
    }


def needed(subject: object) -> tuple[str, ...]:
    """The controllers without which what an operator makes cannot be deleted."""
    return tuple(name for resource, name in _NEEDED.items() if resource in owned(subject))


def chosen(controllers: Controllers) -> tuple[str, ...]:
    """Their names: all, none, or those that are said."""
    if controllers is True:
        return tuple(name for name in ALL if name not in _LEFT_OUT)
    return () if controllers is False else tuple(name for name in controllers if name not in _LEFT_OUT)


class BuiltIn:
    """The controllers of one world."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._wrote = 0.0  # when anyone last wrote what concerns them

    @property
    def are_there(self) -> bool:
        return bool(self._names)

    def told(self, resource: str, now: float) -> None:
        """Something was written."""
        if resource not in _HEARTBEATS:
            self._wrote = now

    def why_busy(self) -> str:
        """That they may yet have something to do; "" if not."""
        if not self._names or asyncio.get_running_loop().time() - self._wrote > _PEACE:
            return ""
        return "the built-in controllers are at work"

    @asynccontextmanager
    async def running(self, transport: Transport, clock: Clock) -> AsyncIterator[None]:
        """Have them work for the time of the block."""
        if not self._names:
            yield
            return
        token = actor.set(CONTROLLERS)
        try:
            client = Client(transport=transport, on_warning=_unheard)
            manager = Manager(client=client, name="controllers", clock=clock, graceful_shutdown=0)
            add_controllers(manager, self._names, clock=clock, root_ca="proof")
            await manager.__aenter__()
        finally:
            actor.reset(token)
        try:
            yield
        finally:
            await manager.__aexit__(None, None, None)


def _unheard(_text: str) -> None:
    """Endpoints are deprecated: nobody here can do anything about it."""
