"""What Setpoint does in the benchmarks, written as its users write it.

The one argument is JSON: which work, on what.  A line {"at": "start"} says that the program is loaded; then
come "done" with what it counted, "resynced" where a resync is asked for, "settled" when it gave back what
memory it can, and, of a cache, "checked" with what it holds.  After each it waits for a line, so that whoever
measures it sees it at rest.

Everything is at its defaults: reads that are never older than one's own writes, metrics, and the check before
each apply whether there is anything to send.  The cache alone is measured without a manager around it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import sys
import time
from typing import Any

import setpoint.net.http  # noqa: F401 - else the first client loads it, and loading is not part of the work
from setpoint.api import CustomResource, Model, ObjectMeta, metadata_only
from setpoint.api.names import Key
from setpoint.cache import Cache, Seen
from setpoint.cache.informer import RESYNC
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.controller.worker import Looked
from setpoint.kube.core.v1 import ConfigMap, Pod, PodSpec, PodStatus
from setpoint.manager.manager import Manager
from setpoint.metrics import Metrics
from setpoint.operator import Operator
from setpoint.queue.workqueue import WorkQueue

GROUP = "bench.setpoint.dev"


class Workload(CustomResource, group=GROUP, version="v1"):
    """A custom resource with the content of a Pod."""

    spec: PodSpec
    status: PodStatus = PodStatus()


class WebAppSpec(Model):
    image: str
    replicas: int = 1


class WebAppStatus(Model):
    observed_image: str = ""
    replicas: int = 0


class WebApp(CustomResource, group=GROUP, version="v1"):
    """Wants one ConfigMap, and is told so in its status."""

    spec: WebAppSpec
    status: WebAppStatus = WebAppStatus()


KINDS: dict[str, type[Pod | Workload]] = {"Pod": Pod, "Workload": Workload}


# ---- what is said to the harness -------------------------------------------------------------------


def say(at: str, **counted: Any) -> None:
    print(json.dumps({"at": at, **counted}), flush=True)


async def pause(at: str, **counted: Any) -> None:
    """Say it, and wait for the harness to have looked."""
    say(at, **counted)
    await asyncio.to_thread(sys.stdin.readline)


async def settle() -> None:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    await pause("settled")


# ---- the cache -------------------------------------------------------------------------------------


async def sync(asked: dict[str, Any]) -> None:
    await pause("start")
    async with Client(Config.load(asked["kubeconfig"])) as client, Cache(client) as cache:
        cache.declare(KINDS[asked["kind"]], metadata_only=asked["form"] == "metadata")
        await cache.wait_synced()
        await pause("done")
        await settle()
        await pause("checked", **await check(cache, asked))


async def watch(asked: dict[str, Any]) -> None:
    seen, all_seen = 0, asyncio.Event()

    def tell(change: Seen) -> None:
        nonlocal seen
        if change.type == "UPDATED":
            seen += 1
            if seen == asked["events"]:
                all_seen.set()

    await pause("start")
    async with Client(Config.load(asked["kubeconfig"])) as client, Cache(client) as cache:
        declared = cache.declare(KINDS[asked["kind"]])
        declared.listen(tell)
        await cache.wait_synced()
        say("synced")
        await all_seen.wait()
        await pause("done", events=seen)
        await settle()
        await pause("checked", **await check(cache, asked))


async def check(cache: Cache, asked: dict[str, Any]) -> dict[str, int]:
    """Read everything, typed: how many there are, the sum of their versions, the sum of their first ports."""
    held: list[Pod] | list[Workload]
    if asked["form"] == "metadata":
        found = [each.metadata for each in await cache.list(metadata_only(KINDS[asked["kind"]]))]
        ports = 0
    else:
        held = await (cache.list(Pod) if asked["kind"] == "Pod" else cache.list(Workload))
        found = [each.metadata for each in held]
        ports = sum(port_of(each) for each in held)
    versions = sum(int(each.resource_version or 0) for each in found)
    return {"count": len(found), "versions": versions, "ports": ports}


def port_of(whole: Pod | Workload) -> int:
    ports = whole.spec.containers[0].ports
    assert ports
    return ports[0].container_port


# ---- the controller --------------------------------------------------------------------------------


async def reconcile(asked: dict[str, Any]) -> None:
    operator = Operator("bench")

    @operator.controller(WebApp, owns=[ConfigMap], workers=asked["workers"])
    async def look(webapp: WebApp, ctx: Context) -> None:
        data = {"image": webapp.spec.image, "replicas": str(webapp.spec.replicas)}
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=webapp.metadata.name), data=data))
        webapp.status.observed_image = webapp.spec.image
        webapp.status.replicas = webapp.spec.replicas

    looked: set[Key] = set()
    all_looked = asyncio.Event()

    def tell(_: str, key: Key, look: Looked) -> None:
        if not look.error:
            looked.add(key)
        if len(looked) == asked["count"]:
            all_looked.set()

    await pause("start")
    manager = Manager(
        Config.load(asked["kubeconfig"]),
        namespaces=[asked["namespace"]],
        resync=asked.get("resync", RESYNC),
    )
    (controller,) = operator.add_to(manager)
    controller.on_look(tell)
    async with manager:
        await all_looked.wait()
        await pause("done", count=len(looked))
        if "resync" in asked:
            looked.clear()
            all_looked.clear()
            await all_looked.wait()
            await pause("resynced", count=len(looked))
        await settle()


async def steady(asked: dict[str, Any]) -> None:
    """Record how late each change is looked at: the image says when it was asked for."""
    operator = Operator("bench")
    images: dict[str, str] = {}
    late: dict[str, float] = {}
    synced, all_late = asyncio.Event(), asyncio.Event()

    @operator.controller(WebApp, workers=asked["workers"])
    async def look(webapp: WebApp, _: Context) -> None:
        now = time.time_ns()
        name, image = str(webapp.metadata.name), webapp.spec.image
        before = images.get(name)
        images[name] = image
        if before is None and len(images) == asked["count"]:
            synced.set()
        if before not in {None, image}:
            late[image] = (now - int(image)) / 1e6
            if len(late) == asked["events"]:
                all_late.set()

    await pause("start")
    manager = Manager(Config.load(asked["kubeconfig"]), namespaces=[asked["namespace"]])
    operator.add_to(manager)
    async with manager:
        await synced.wait()
        say("synced")
        await all_late.wait()
        await pause("done", late=late)
        await settle()


# ---- the queue -------------------------------------------------------------------------------------


async def queue(asked: dict[str, Any]) -> None:
    """Add, hand out and give back every key; each of these is an operation."""
    keys = [Key("shop", f"webapp-{number}") for number in range(asked["count"])]
    work: WorkQueue[Key, None] = WorkQueue("bench", Metrics())
    await pause("start")
    for key in keys:
        work.add(key)
    for _ in keys:
        work.done(await work.get())
    await pause("done", operations=3 * len(keys))
    await settle()


WORK = {"sync": sync, "watch": watch, "reconcile": reconcile, "steady": steady, "queue": queue}


if __name__ == "__main__":
    what = json.loads(sys.argv[1])
    asyncio.run(WORK[what["work"]](what))
