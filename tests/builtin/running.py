"""A server in memory with some built-in controllers, for tests: both live as long as a ``with`` block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from setpoint.api.forms import untyped
from setpoint.builtin.controllers import ALL, add_controllers
from setpoint.client.client import Client
from setpoint.clock import Clock
from setpoint.errors import UnknownKind
from setpoint.manager.manager import Manager
from setpoint.server.server import ApiServer
from setpoint.testing.waiting import eventually

NO_NODE = tuple(name for name in ALL if name != "node-stand-in")


@asynccontextmanager
async def cluster(
    names: Iterable[str] = ALL,
    *,
    clock: Clock | None = None,
    client: Client | None = None,
    root_ca: str = "",
) -> AsyncIterator[Client]:
    """A client of a server on which these controllers work; of a new server, unless a client is given."""
    async with AsyncExitStack() as stack:
        if client is None:
            server = await stack.enter_async_context(ApiServer(clock=clock))
            client = await stack.enter_async_context(Client(transport=server.transport()))
        manager = Manager(client=client, name="builtin", graceful_shutdown=5.0)
        add_controllers(manager, names, clock=clock, root_ca=root_ca)
        await stack.enter_async_context(manager)
        yield client


async def serve_kind(client: Client, kind: str) -> None:
    """Define a kind of example.com/v1, and wait until it is served."""
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    await client.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [version],
            },
        }
    )

    async def is_served() -> bool:
        try:
            return bool(await client.resource_of(untyped("example.com/v1", kind)))
        except UnknownKind:
            return False

    await eventually(is_served)
