"""What each guarantee of the runtime costs: a look, a deletion or a sync with it, and without.

Each is needed by something that happens to an object: it is made, touched, changed or deleted.  An operator
brings that to its end with the guarantee and, as the yardstick, without it; where no option takes it away,
the part of the runtime that gives it is exchanged.  First it happens to one object, on a server that is a
round trip away and whose watches are late by another: that gives the requests, the looks and the round trips
until the last answer, the same in every run.  Then it happens to many, with and without in turn: that gives
the CPU, less what the server itself needs.  To be without may be dearer: who looks too early looks twice.

The first list is measured on the embedded server, whose CPU counts; what a server with an etcd behind it does
to be sure of its answer is not seen here.  ``docs/guarantees.md`` says what each of them is for.

    python -m bench.guarantees
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

import setpoint.controller.authored
import setpoint.controller.context
from bench.measure import compared, in_turn
from setpoint.api import ObjectMeta
from setpoint.api.forms import form_of
from setpoint.cache.cache import Cache
from setpoint.cache.consistency import CachedReader
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.apply import Settled
from setpoint.controller.children import Children
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.epoch import Epoch, SteadyClock
from setpoint.manager.manager import Manager
from setpoint.net.transport import Request, Response, Transport
from setpoint.operator import Operator
from setpoint.server.server import ApiServer
from setpoint.testing.virtual_time import VirtualTimeLoop
from tests.controller.cluster import Child, Cluster, Parent, child, quiet
from tests.controller.world import Watcher
from tests.mutants.framework import any_version, exchanged
from tests.peer import Reply

OBJECTS: Final = 50
LISTED: Final = 1_000
WORKERS: Final = 10
ROUNDS: Final = 11
ROUND_TRIP: Final = 0.01  # seconds that nobody waits for
QUIET: Final = 2.0  # likewise: much longer than anything takes, and too short for a watch to be doubted


# ---- what an author writes --------------------------------------------------------------------------


def paints(**options: Any) -> Operator:
    """A child and a status."""
    operator = Operator("bench")

    @operator.controller(Parent, owns=[Child], workers=WORKERS, **options)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        await ctx.apply(child(ctx.request.name, parent.spec.colour))
        parent.status.phase = parent.spec.colour

    return operator


def counts() -> Operator:
    """Reads what it wrote."""
    operator = Operator("bench")

    @operator.controller(Parent, owns=[Child], workers=WORKERS)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        await ctx.apply(child(ctx.request.name))
        parent.status.looks = len(await ctx.list(Child, owned=True))

    return operator


def declares() -> Operator:
    """Has a second child, until it is painted over."""
    operator = Operator("bench")

    @operator.controller(Parent, owns=[Child], workers=WORKERS)
    async def reconcile(parent: Parent, ctx: Context) -> Children:
        yield child(ctx.request.name)
        if parent.spec.colour == "red":
            yield child(f"{ctx.request.name}-more")

    return operator


def cleans_up(*suffixes: str, **options: Any) -> Operator:
    """Takes these children down by itself."""
    operator = paints(**options)

    @operator.finalizer(Parent)
    async def clean_up(parent: Parent, ctx: Context) -> None:
        del parent
        for suffix in suffixes:
            await ctx.delete(Child, f"{ctx.request.name}{suffix}")

    return operator


def fails(*, is_raised: bool) -> Operator:
    """Cannot do it the first time after a change, and says so, or does not."""
    operator = Operator("bench")
    failed: set[tuple[str, str]] = set()

    @operator.controller(Parent, workers=WORKERS)
    async def reconcile(parent: Parent, ctx: Context) -> None:
        change = ctx.request.name, parent.metadata.resource_version or ""
        if is_raised and change not in failed:
            failed.add(change)
            raise OSError("it cannot be done now")

    return operator


# ---- what happens -----------------------------------------------------------------------------------


def make(server: Cluster, name: str) -> None:
    server.put("parents", name)


def touch(server: Cluster, name: str) -> None:
    server.change("parents", name, {"metadata": {"annotations": {"touched": "yes"}}})


def change(server: Cluster, name: str) -> None:
    server.change("parents", name, {"spec": {"colour": "blue"}})


def delete(server: Cluster, name: str) -> None:
    going = {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    server.change("parents", name, {"metadata": going})


# ---- the runtime without a part ---------------------------------------------------------------------


def forgetful() -> AbstractContextManager[None]:
    """Writes are not remembered, so no read waits for them."""
    return exchanged(CachedReader, "wrote", lambda *_, **__: None)


def rash() -> AbstractContextManager[None]:
    """Whether the object has changed meanwhile is not asked."""

    async def surely(_: Context) -> bool:
        return True

    return exchanged(Context, "is_current", surely)


def unconditional() -> AbstractContextManager[None]:
    """Deletions name nothing but a name."""
    delete = Client.delete

    async def by_name(self: Client, *target: Any, **options: Any) -> None:
        await delete(self, *target, **{**options, "uid": None, "resource_version": None})

    return exchanged(Client, "delete", by_name)


def credulous() -> AbstractContextManager[None]:
    """That an object is going, the cache may say."""

    async def as_it_is(_: Client, obj: Any) -> Any:
        return obj

    return exchanged(setpoint.controller.authored, "read_live", as_it_is)


def short_sighted() -> AbstractContextManager[None]:
    """What the cache does not have is not there."""

    async def get(self: Context, kind: Any, name: str, *, namespace: str | None = None) -> Any:
        return await self.client.get(form_of(kind), name, namespace=namespace or self.request.namespace)

    return exchanged(Context, "get", get)


@contextmanager
def insistent() -> Iterator[None]:
    """What is there already is applied again."""

    def never(*_: object, **__: object) -> bool:
        return False

    def always(*_: object) -> list[tuple[str, ...]]:
        return [()]

    with (
        exchanged(Settled, "is_still", never),
        exchanged(Settled, "is_result", never),
        exchanged(setpoint.controller.context, "changes", always),
    ):
        yield


@dataclass(frozen=True)
class Guarantee:
    """Something that is promised, and what takes place in which it counts."""

    name: str
    operator: Callable[[bool], Operator]  # with it, or without
    happens: Callable[[Cluster, str], None]
    without: Callable[[], AbstractContextManager[None]] = nullcontext
    is_led: bool = False  # with it, every write is the leader's


GUARANTEES: Final = (
    Guarantee("read-your-writes", lambda _: counts(), make, forgetful),
    Guarantee("live check before a deletion", lambda _: declares(), change, rash),
    Guarantee("uid and version on a deletion", lambda _: declares(), change, unconditional),
    Guarantee("finalizer first", lambda on: cleans_up("", verify=False) if on else paints(), make),
    Guarantee("live check before a reconcile", lambda on: cleans_up("", verify=on), touch),
    # of its two reads, one is that before the finalizer goes
    Guarantee("live check before a clean-up", lambda _: cleans_up(""), delete, credulous),
    Guarantee("absence in a clean-up", lambda _: cleans_up("", "-more"), delete, short_sighted),
    Guarantee("no swallowed errors", lambda on: fails(is_raised=on), touch),
    Guarantee("epoch check before a write", lambda _: paints(), make, is_led=True),
    Guarantee("no write that changes nothing", lambda _: paints(), touch, insistent),
)


# ---- the server -------------------------------------------------------------------------------------


class Metered(Cluster):
    """A server that knows what it costs."""

    spent = 0.0  # CPU seconds

    async def __call__(self, request: Request) -> Reply:
        began = time.process_time()
        reply = await super().__call__(request)
        if isinstance(reply.body, dict):
            reply.body = json.dumps(reply.body).encode()
        self.spent += time.process_time() - began
        await asyncio.sleep(0)  # an answer takes a turn of the loop at least
        return reply


class Far:
    """A server that is a round trip away."""

    def __init__(self, server: Cluster) -> None:
        self._server = server
        self.answered_at = 0.0

    async def __call__(self, request: Request) -> Response:
        await asyncio.sleep(ROUND_TRIP / 2)
        reply = await self._server(request)
        if isinstance(reply, Watcher):
            return Late(reply)
        await asyncio.sleep(ROUND_TRIP / 2)
        self.answered_at = asyncio.get_running_loop().time()
        return reply


class Late:
    """A watch that brings things a round trip after the answer to who changed them."""

    websocket = None

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.status: int = watcher.status
        self.headers: Mapping[str, str] = watcher.headers

    async def read(self) -> bytes:
        raise AssertionError("a watch has no end")

    async def chunks(self) -> AsyncIterator[bytes]:
        loop, arrived = asyncio.get_running_loop(), asyncio.Queue[bytes]()

        async def send() -> None:
            async for piece in self._watcher.chunks():
                loop.call_later(1.5 * ROUND_TRIP, arrived.put_nowait, piece)

        sending = loop.create_task(send())
        try:
            while True:
                yield await arrived.get()
        finally:
            sending.cancel()

    async def close(self) -> None:
        await self._watcher.close()


# ---- measuring --------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What it took."""

    cpu: float
    reads: int
    writes: int
    looks: int
    round_trips: float


def found(guarantee: Guarantee, *, is_on: bool, objects: int = 1) -> Found:
    """Have it happen to so many objects; to a single one, far away."""
    exchange = nullcontext() if is_on else guarantee.without()
    with exchange, asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_found(guarantee, is_on, [f"parent-{number}" for number in range(objects)]))


async def _found(guarantee: Guarantee, is_on: bool, names: list[str]) -> Found:
    server = Metered()
    far = Far(server)
    client = Client(Config(server="http://localhost"), transport=far if len(names) == 1 else server)
    if guarantee.is_led and is_on:
        client = client.guarded_by(_epoch())
    manager = Manager(client=client)
    (controller,) = guarantee.operator(is_on).add_to(manager)
    looks = 0

    def look(*_: object) -> None:
        nonlocal looks
        looks += 1

    controller.on_look(look)
    if guarantee.happens is not make:
        for name in names:
            make(server, name)
    async with manager:
        await quiet(server, QUIET)
        server.requests.clear()
        looks = 0
        began_at = asyncio.get_running_loop().time()
        for name in names:
            guarantee.happens(server, name)
        cpu = await _cpu_until_quiet(server)
    writes = len(server.writes())
    round_trips = max(0.0, far.answered_at - began_at) / ROUND_TRIP
    return Found(cpu, len(server.requests) - writes, writes, looks, round(round_trips, 1))


async def _cpu_until_quiet(server: Metered) -> float:
    gc.collect()
    gc.disable()
    try:
        began, server.spent = time.process_time(), 0.0
        await quiet(server, QUIET)
        return time.process_time() - began - server.spent
    finally:
        gc.enable()


def _epoch() -> Epoch:
    """One that does not end."""
    epoch = Epoch("bench")
    epoch.extend(float("inf"), SteadyClock())
    return epoch


def cpu_of(guarantee: Guarantee, *, is_on: bool) -> float:
    return found(guarantee, is_on=is_on, objects=OBJECTS).cpu / OBJECTS


def cost_of(guarantee: Guarantee) -> dict[str, Any]:
    """What it costs one object."""
    ours, yardstick = found(guarantee, is_on=True), found(guarantee, is_on=False)
    pairs = in_turn(ROUNDS, partial(cpu_of, guarantee, is_on=True), partial(cpu_of, guarantee, is_on=False))
    said: dict[str, Any] = {"bench": f"guarantees: {guarantee.name}", **_microseconds(pairs)}
    for name in ("reads", "writes", "looks", "round_trips"):
        said |= {name: getattr(ours, name), f"{name}_without": getattr(yardstick, name)}
    return said | compared(pairs)


def _microseconds(pairs: list[tuple[float, float]]) -> dict[str, int]:
    return {
        "cpu_microseconds": round(median(ours for ours, _ in pairs) * 1e6),
        "cpu_microseconds_without": round(median(yardstick for _, yardstick in pairs) * 1e6),
    }


# ---- the first list ---------------------------------------------------------------------------------


async def filled(stack: AsyncExitStack) -> Client:
    server = await stack.enter_async_context(ApiServer())
    client = Client(transport=server.transport())
    for number in range(LISTED):
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"map-{number}", namespace="default")))
    return client


async def sync(client: Client) -> tuple[float, int]:
    """The CPU seconds until all are there, and the requests it took."""
    requests = 0

    def count(transport: Transport) -> Transport:
        async def pass_on(request: Request) -> Response:
            nonlocal requests
            requests += 1
            return await transport(request)

        return pass_on

    cache = Cache(client.through(count))
    cache.declare(ConfigMap)
    began = time.process_time()
    async with cache:
        await cache.wait_synced()
        spent = time.process_time() - began
        assert len(await cache.list(ConfigMap, namespace="default")) == LISTED
    return spent, requests


def cost_of_sync() -> dict[str, Any]:
    """What it costs that the first list is of now, and not of some time ago."""
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        client = runner.run(filled(stack))

        def once(*, is_on: bool) -> tuple[float, int]:
            with nullcontext() if is_on else any_version():
                return runner.run(sync(client))

        reads = {"reads": once(is_on=True)[1], "reads_without": once(is_on=False)[1]}
        pairs = in_turn(ROUNDS, lambda: once(is_on=True)[0], lambda: once(is_on=False)[0])
        runner.run(stack.aclose())
    return {
        "bench": "guarantees: consistent first list",
        "objects": LISTED,
        **_microseconds(pairs),
        **reads,
        **compared(pairs),
    }


def main() -> None:
    log = logging.getLogger("setpoint")
    log.addHandler(logging.StreamHandler(io.StringIO()))  # what is told is written down, but not here
    log.propagate = False
    gc.collect()
    gc.freeze()  # what was imported stays: no round need look at it
    print(json.dumps(cost_of_sync()), flush=True)
    for guarantee in GUARANTEES:
        print(json.dumps(cost_of(guarantee)), flush=True)


if __name__ == "__main__":
    main()
