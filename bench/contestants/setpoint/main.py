"""What Setpoint does in the benchmarks, written as its users write it.

The one argument is JSON: which work, on what.  A line {"at": "start"} says that the program is loaded; it
begins when it reads a line, says {"at": "done", ...} with what it counted, gives back what memory it can,
says "settled", and ends when its standard input does.

Everything is at its defaults: reads that are never older than one's own writes, metrics, and the check before
each apply whether there is anything to send.  The cache alone is measured without a manager around it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from typing import Any

import setpoint.net.http  # noqa: F401 - else the first client loads it, and loading is not part of the work
from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.api.names import Key
from setpoint.cache import Cache, Seen
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


async def said() -> None:
    """The next line of the harness."""
    await asyncio.to_thread(sys.stdin.readline)


async def start() -> None:
    say("start")
    await said()


def settle() -> None:
    gc.collect()
    say("settled")


# ---- the cache -------------------------------------------------------------------------------------


async def sync(asked: dict[str, Any]) -> None:
    await start()
    async with Client(Config.load(asked["kubeconfig"])) as client, Cache(client) as cache:
        cache.declare(KINDS[asked["kind"]], metadata_only=asked["form"] == "metadata")
        await cache.wait_synced()
        say("done")
        settle()
        say("checked", **check(cache, asked))
        await said()


async def watch(asked: dict[str, Any]) -> None:
    seen, all_seen = 0, asyncio.Event()

    def tell(change: Seen) -> None:
        nonlocal seen
        if change.type == "UPDATED":
            seen += 1
            if seen == asked["events"]:
                all_seen.set()

    await start()
    async with Client(Config.load(asked["kubeconfig"])) as client, Cache(client) as cache:
        declared = cache.declare(KINDS[asked["kind"]])
        declared.listen(tell)
        await cache.wait_synced()
        say("synced")
        await all_seen.wait()
        say("done", events=seen)
        settle()
        say("checked", **check(cache, asked))
        await said()


def check(cache: Cache, asked: dict[str, Any]) -> dict[str, int]:
    """Read everything: how many there are, the sum of their versions, the sum of their first ports."""
    kind = KINDS[asked["kind"]]
    count = versions = ports = 0
    for informer in cache.holds(kind.gvk):
        for snapshot in informer.store:
            count += 1
            versions += int(snapshot.metadata.resource_version)
            if asked["form"] != "metadata":
                spec = json.loads(snapshot.data)["spec"]
                ports += spec["containers"][0]["ports"][0]["containerPort"]
    return {"count": count, "versions": versions, "ports": ports}


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

    await start()
    manager = Manager(Config.load(asked["kubeconfig"]), namespaces=[asked["namespace"]])
    (controller,) = operator.add_to(manager)
    controller.on_look(tell)
    async with manager:
        await all_looked.wait()
        say("done", count=len(looked))
        await said()  # the harness waits until it is quiet
        settle()
        await said()


async def steady(asked: dict[str, Any]) -> None:
    """Record how late each change is looked at: the image says when it was asked for."""
    operator = Operator("bench")
    first: set[str] = set()
    late: list[float] = []
    synced, all_late = asyncio.Event(), asyncio.Event()

    @operator.controller(WebApp, workers=asked["workers"])
    async def look(webapp: WebApp, _: Context) -> None:
        now = time.time_ns()
        if (name := str(webapp.metadata.name)) not in first:
            first.add(name)
            if len(first) == asked["count"]:
                synced.set()
            return
        late.append((now - int(webapp.spec.image)) / 1e6)
        if len(late) == asked["events"]:
            all_late.set()

    await start()
    manager = Manager(Config.load(asked["kubeconfig"]), namespaces=[asked["namespace"]])
    operator.add_to(manager)
    async with manager:
        await synced.wait()
        say("synced")
        await all_late.wait()
        say("done", late=late)
        settle()
        await said()


# ---- the queue -------------------------------------------------------------------------------------


async def queue(asked: dict[str, Any]) -> None:
    """Add, hand out and give back every key; each of these is an operation."""
    keys = [Key("shop", f"webapp-{number}") for number in range(asked["count"])]
    work: WorkQueue[Key, None] = WorkQueue("bench", Metrics())
    await start()
    began = time.perf_counter()
    for key in keys:
        work.add(key)
    for _ in keys:
        work.done(await work.get())
    say("done", operations=3 * len(keys), seconds=time.perf_counter() - began)
    settle()
    await said()


WORK = {"sync": sync, "watch": watch, "reconcile": reconcile, "steady": steady, "queue": queue}


if __name__ == "__main__":
    what = json.loads(sys.argv[1])
    asyncio.run(WORK[what["work"]](what))
