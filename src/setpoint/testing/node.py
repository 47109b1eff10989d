"""A node for a cluster that has none: the stand-in of ``builtin/node.py``, for the time of a ``with`` block.

Inside the ``async with`` there is a Node that is Ready, and pods run on it; afterwards there is none.  It
works on any server, with a manager of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self

from setpoint.builtin.node import add_to
from setpoint.builtin.node_pods import USUAL_DELAY, Outcome, usual_outcome
from setpoint.builtin.parts import parts_of
from setpoint.client.client import Client
from setpoint.clock import Clock
from setpoint.errors import SetpointError
from setpoint.kube.core.v1 import Node as NodeObject
from setpoint.kube.core.v1 import Pod
from setpoint.manager.manager import Manager

_LEAVING = 5.0  # seconds that the node's own end may take


class Node:
    """A node, as an async context manager::

        async with Node(client):
            await eventually(is_available)

    ``outcome`` decides what becomes of a pod: ``Runs()``, ``Exits(1)`` or ``Waits("ImagePullBackOff")``.
    ``delay`` is how many seconds a pod takes to start that says nothing about it itself.  ``clock`` tells
    the time that is written into objects.
    """

    def __init__(
        self,
        client: Client,
        name: str = "node-1",
        *,
        outcome: Callable[[Pod], Outcome] = usual_outcome,
        delay: float = USUAL_DELAY,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.outcome = outcome
        self._client = client
        self._manager = Manager(client=client, name=f"node-{name}", graceful_shutdown=_LEAVING)
        self._node = add_to(parts_of(self._manager, clock), name, outcome=self._decide, delay=delay)

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self._manager!r}>"

    def _decide(self, pod: Pod) -> Outcome:
        return self.outcome(pod)  # as it is now: a test may have changed it

    async def __aenter__(self) -> Self:
        try:
            await self._manager.__aenter__()
            await self._node.wait_ready()
        except BaseException:
            await self._unregister()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._manager.__aexit__(kind, error, trace)
        finally:
            await self._unregister()

    async def _unregister(self) -> None:
        with contextlib.suppress(SetpointError):
            await self._client.delete(NodeObject, self.name, timeout=_LEAVING)
