# mypy: ignore-errors
# ruff: noqa: ANN001, ANN003, ANN201, ANN202, PLR0917
"""What kopf does in the benchmarks, written as its users write it.

The one argument is JSON: which work, on what.  A line {"at": "start"} says that the program is loaded; then
come "done" with what it counted, "settled" when it gave back what memory it can, and, of a cache, "checked"
with what it holds.  After each it waits for a line, so that whoever measures it sees it at rest.

Chosen so that it is not held back: uvloop, asynchronous handlers, the official client's asynchronous form for
the child, no Events posted, logging off.  Lists are not streamed (``initial_streaming``): with 2,000 objects
that took 12 percent more CPU and 25 percent more memory.  The cache is a dict that an event handler fills:
kopf's own index makes every object wait for every other one (5,000 Pods took minutes of CPU).  It hands an
object's newest state to handlers and leaves out what came between, so a watch is absorbed when the last
version of every object was seen.  It has a worker for each object, which stays for five idle seconds:
limiting them to 10 made it ten times slower, so they are not limited.  Children that are as wanted already
are found in an index and not written: there, nothing may be looked at before all is known.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import sys
import time

import kopf
import uvloop

GROUP = "bench.setpoint.dev"
ASKED = json.loads(sys.argv[1])
KINDS = {"Pod": ("", "v1", "pods"), "Workload": (GROUP, "v1", "workloads")}
WEBAPPS = (GROUP, "v1", "webapps")


def say(at, **counted):
    print(json.dumps({"at": at, **counted}), flush=True)


async def pause(at, **counted):
    """Say it, and wait for the harness to have looked."""
    say(at, **counted)
    await asyncio.to_thread(sys.stdin.readline)


async def settle():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    await pause("settled")


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False
    settings.watching.server_timeout = 600


# ---- the cache -------------------------------------------------------------------------------------

held = {}
synced = asyncio.Event()
finished = asyncio.Event()
newest = set()

if ASKED["work"] in {"sync", "watch"}:

    @kopf.on.event(*KINDS[ASKED["kind"]])
    async def store(namespace, name, body, **_):
        version = int(body["metadata"]["resourceVersion"])
        held[namespace, name] = dict(body)
        if len(held) == ASKED["count"]:
            synced.set()
        if ASKED["work"] == "watch" and version >= ASKED["last"]:
            newest.add((namespace, name))
            if len(newest) == ASKED["count"]:
                finished.set()


def check():
    ports = sum(body["spec"]["containers"][0]["ports"][0]["containerPort"] for body in held.values())
    versions = sum(int(body["metadata"]["resourceVersion"]) for body in held.values())
    return {"count": len(held), "versions": versions, "ports": ports}


async def cached():
    await synced.wait()
    if ASKED["work"] == "watch":
        say("synced")
        await finished.wait()
    await pause("done", events=ASKED.get("events", 0))
    await settle()
    await pause("checked", **check())


# ---- the controller --------------------------------------------------------------------------------

looked, done = set(), set()


def finish(name):
    done.add(name)
    if len(done) == ASKED["count"]:
        finished.set()


if ASKED["work"] == "reconcile":
    from kubernetes.aio import client as api
    from kubernetes.aio import config as api_config

    clients = {}

    @kopf.on.startup()
    async def connect(**_):
        await api_config.load_kube_config(ASKED["kubeconfig"])
        clients["core"] = api.CoreV1Api()

    @kopf.index("", "v1", "configmaps")
    async def children(namespace, name, body, **_):
        return {(namespace, name): dict(body.get("data", {}))}

    @kopf.on.resume(*WEBAPPS)
    @kopf.on.create(*WEBAPPS)
    @kopf.on.update(*WEBAPPS, field="spec")
    async def look(name, namespace, spec, status, patch, body, children, **_):
        data = {"image": spec["image"], "replicas": str(spec["replicas"])}
        present = next(iter(children.get((namespace, name), ())), None)
        if present is None:
            child = {"metadata": {"name": name}, "data": data}
            kopf.adopt(child, owner=body)
            await clients["core"].create_namespaced_config_map(namespace, child)
        elif present != data:
            await clients["core"].patch_namespaced_config_map(name, namespace, {"data": data})
        wanted = {"observedImage": spec["image"], "replicas": spec["replicas"]}
        looked.add(name)
        if {key: status.get(key) for key in wanted} == wanted:
            finish(name)
        else:
            patch.status.update(wanted)

    @kopf.on.event(*WEBAPPS)
    async def see(name, spec, status, **_):
        """Done is what was looked at, and says so in the cluster."""
        if name in looked and status.get("observedImage") == spec["image"]:
            finish(name)


async def controlled():
    await finished.wait()
    await pause("done", count=len(done))
    await settle()


images, late = {}, {}

if ASKED["work"] == "steady":

    @kopf.on.event(*WEBAPPS)
    async def measure(name, spec, **_):
        now = time.time_ns()
        image = spec["image"]
        before = images.get(name)
        images[name] = image
        if before is None and len(images) == ASKED["count"]:
            synced.set()
        if before not in {None, image}:
            late[image] = (now - int(image)) / 1e6
            if len(late) == ASKED["events"]:
                finished.set()


async def steady():
    await synced.wait()
    say("synced")
    await finished.wait()
    await pause("done", late=late)
    await settle()


WORK = {"sync": cached, "watch": cached, "reconcile": controlled, "steady": steady}


async def main():
    await pause("start")
    stop = asyncio.Event()
    namespaces = [ASKED["namespace"]] if ASKED.get("namespace") else []
    operator = asyncio.create_task(
        kopf.operator(standalone=True, namespaces=namespaces, clusterwide=not namespaces, stop_flag=stop)
    )
    work = asyncio.create_task(WORK[ASKED["work"]]())
    await asyncio.wait([operator, work], return_when=asyncio.FIRST_COMPLETED)
    if operator.done():
        operator.result()
    stop.set()
    await operator


@kopf.on.login()
def login(**_):
    """As kubectl would, from the file we are given."""
    import base64
    import tempfile
    from pathlib import Path

    import yaml

    said_there = yaml.safe_load(Path(ASKED["kubeconfig"]).read_text())
    cluster, user = said_there["clusters"][0]["cluster"], said_there["users"][0]["user"]

    def file(data):
        with tempfile.NamedTemporaryFile(delete=False) as kept:
            kept.write(base64.b64decode(data))
        return kept.name

    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_path=file(cluster["certificate-authority-data"]),
        certificate_path=file(user["client-certificate-data"]) if "client-certificate-data" in user else None,
        private_key_path=file(user["client-key-data"]) if "client-key-data" in user else None,
        token=user.get("token"),
    )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    uvloop.run(main())
