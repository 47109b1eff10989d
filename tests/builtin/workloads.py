"""A server in memory, controllers of workloads and a node, for tests; and the objects they work on.

``LoopClock`` tells the time of the event loop, so that in virtual time an hour passes at once for the
server, the controllers and the node's pods alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from setpoint.api.meta import LabelSelector
from setpoint.api.model import ObjectMeta
from setpoint.builtin.node_pods import Outcome, usual_outcome
from setpoint.builtin.parts import Parts, parts_of
from setpoint.client.client import Client
from setpoint.kube.core.v1 import Container, Event, Pod, PodSpec, PodTemplateSpec
from setpoint.manager.manager import Manager
from setpoint.server.server import ApiServer
from setpoint.testing.node import Node

START = datetime(2030, 1, 1, tzinfo=UTC)


class LoopClock:
    """The event loop's time, counted from now on, or from a time that is given."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = (start or datetime.now(UTC)) - timedelta(seconds=self.now())

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def utc(self) -> datetime:
        return self._start + timedelta(seconds=self.now())


@asynccontextmanager
async def cluster(
    *adds: Callable[[Parts], object],
    outcome: Callable[[Pod], Outcome] | None = usual_outcome,
    nodes: int = 1,
    start: datetime | None = None,
) -> AsyncIterator[Client]:
    """A client of a server on which these controllers work, and that has nodes if pods have an outcome."""
    clock = LoopClock(start)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(clock=clock))
        client = await stack.enter_async_context(Client(transport=server.transport()))
        manager = Manager(client=client, name="builtin", graceful_shutdown=5.0)
        parts = parts_of(manager, clock)
        for add in adds:
            add(parts)
        await stack.enter_async_context(manager)
        if outcome is not None:
            for number in range(1, nodes + 1):
                await stack.enter_async_context(Node(client, f"node-{number}", outcome=outcome, clock=clock))
        yield client


def named(name: str, **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default", labels=labels or None)


def selecting(**labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels)


def template(image: str = "app:1", *, restart_policy: str | None = None, **labels: str) -> PodTemplateSpec:
    container = Container(name="app", image=image)
    return PodTemplateSpec(
        metadata=ObjectMeta(labels=labels),
        spec=PodSpec(containers=[container], restart_policy=restart_policy),
    )


async def pods(client: Client, **labels: str) -> list[Pod]:
    return await client.list(Pod, namespace="default", labels=labels)


async def told(client: Client, kind: str) -> list[tuple[str, str]]:
    """Reason and message of each Event about objects of a kind, in the order in which they happened."""
    events = await client.list(Event, namespace="default")
    about = [event for event in events if event.involved_object.kind == kind]
    about.sort(
        key=lambda event: (event.event_time or event.first_timestamp or START, event.metadata.name or "")
    )
    return [(event.reason or "", event.message or "") for event in about]


def conditions(obj: Any) -> dict[str, tuple[str, str]]:
    """Each condition's status and reason."""
    return {each.type: (each.status, each.reason or "") for each in obj.status.conditions or ()}
