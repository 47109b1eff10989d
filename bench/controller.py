"""What a controller costs that brings many objects to their fixed point from cold, on a real kube-apiserver.

Each WebApp asks for one child, and is told in its status.  Ours is the whole way: the manager starts, lists
and watches both kinds, reconciles every object with cached reads, apply, owner references and the status
patch, and looks again at what its own writes changed.  The yardstick sends the very same requests, recorded
from a run of ours, over as many connections of bare aiohttp, and knows nothing of what they mean.

Each contestant is a fresh process; its CPU and wall time begin when it has its kubeconfig and end when all is
done, and the server's own work counts in the wall time of both.  ``queue_ops_per_second`` is what the work
queue does alone: a key added, handed out and done with is three.

    python -m bench.controller      needs kube-apiserver and etcd: make kube
"""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from bench.measure import best_of, in_fresh_process
from setpoint.api import CustomResource, Model, ObjectMeta, crd_of
from setpoint.api.names import Key
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.controller.worker import Looked
from setpoint.kube.core.v1 import ConfigMap, Namespace
from setpoint.manager.manager import Manager
from setpoint.metrics import Metrics
from setpoint.net.transport import Request, Response, Transport
from setpoint.operator import Operator
from setpoint.queue.workqueue import WorkQueue
from setpoint.testing.kube import ControlPlane, StartFailed, binaries
from setpoint.testing.waiting import eventually

OBJECTS = 300
WORKERS = 8
ROUNDS = 3
QUEUED = 20_000


class WebAppSpec(Model):
    image: str
    replicas: int = 1


class WebAppStatus(Model):
    observed_image: str = ""
    replicas: int = 0


class WebApp(CustomResource, group="bench.setpoint.dev", version="v1"):
    """An image, and how many of it."""

    spec: WebAppSpec
    status: WebAppStatus = WebAppStatus()


operator = Operator("bench")


@operator.controller(WebApp, owns=[ConfigMap], workers=WORKERS)
async def reconcile(webapp: WebApp, ctx: Context) -> None:
    data = {"image": webapp.spec.image, "replicas": str(webapp.spec.replicas)}
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=webapp.metadata.name), data=data))
    webapp.status.observed_image = webapp.spec.image
    webapp.status.replicas = webapp.spec.replicas


# ---- the contestants -------------------------------------------------------------------------------


class Asked:
    """The requests that passed, but for watches."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, transport: Transport) -> Transport:
        async def pass_on(request: Request) -> Response:
            if "watch=" not in request.target:
                self.requests.append(request)
            return await transport(request)

        return pass_on

    def patches(self) -> list[Recorded]:
        return [
            (each.method, each.target, dict(each.headers), (each.body or b"").decode())
            for each in self.requests
            if each.method == "PATCH"
        ]


Recorded = tuple[str, str, dict[str, str], str]


async def ours(kubeconfig: str, namespace: str, recorded: list[Recorded]) -> int:
    asked = Asked()
    async with Client(Config.load(kubeconfig)) as client:
        manager = Manager(client=client.through(asked), namespaces=[namespace])
        (controller,) = operator.add_to(manager)
        looked: set[Key] = set()
        is_done = asyncio.Event()

        def tell(_: str, key: Key, look: Looked) -> None:
            if not look.error:
                looked.add(key)
            if len(looked) < OBJECTS:
                return
            stats = controller.stats()
            if not stats.running and not sum(stats.queue.depth.values()) and not stats.queue.delayed:
                is_done.set()

        controller.on_look(tell)
        async with manager:
            await is_done.wait()
    recorded.extend(asked.patches())
    return len(asked.requests)


async def bare(kubeconfig: str, namespace: str, recorded: list[Recorded]) -> int:
    config = Config.load(kubeconfig)
    connector = aiohttp.TCPConnector(ssl=_context(config), limit=WORKERS)
    async with aiohttp.ClientSession(connector=connector) as session:
        collection = f"{config.server}/apis/bench.setpoint.dev/v1/namespaces/{namespace}/webapps"
        async with session.get(URL(collection, encoded=True)) as answer:
            present = {each["metadata"]["name"]: each["metadata"] for each in (await answer.json())["items"]}
        work = list(_for_others(recorded, namespace, present))
        queue = iter(work)

        async def send() -> None:
            for each in queue:
                for method, target, headers, body in each:
                    url = URL(config.server + target, encoded=True)
                    async with session.request(method, url, data=body, headers=headers) as answer:
                        said = await answer.read()
                        assert answer.status < 300, said

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(send())
    return sum(map(len, work)) + 1


def _for_others(
    recorded: list[Recorded], namespace: str, present: dict[str, dict[str, Any]]
) -> Iterable[list[Recorded]]:
    """The requests for each object, now for its namesake in another namespace."""
    by_name: dict[str, list[Recorded]] = {}
    for each in recorded:
        path = each[1].partition("?")[0].removesuffix("/status")
        by_name.setdefault(path.rpartition("/")[2], []).append(each)
    for name, requests in by_name.items():
        yield [
            (method, _moved(target, namespace), headers, _renamed(body, namespace, present[name]))
            for method, target, headers, body in requests
        ]


def _moved(target: str, namespace: str) -> str:
    parts = target.split("/")
    parts[parts.index("namespaces") + 1] = namespace
    return "/".join(parts)


def _renamed(body: str, namespace: str, owner: dict[str, Any]) -> str:
    document = json.loads(body)
    metadata = document.get("metadata", {})
    if "namespace" in metadata:
        metadata["namespace"] = namespace
    for reference in metadata.get("ownerReferences", []):
        reference["uid"] = owner["uid"]
    for word in {"uid", "resourceVersion"} & metadata.keys():
        metadata[word] = owner[word]
    return json.dumps(document)


def _context(config: Config) -> ssl.SSLContext:
    """The same server and certificates, for another library."""
    context = ssl.create_default_context(cadata=(config.certificate_authority_data or b"").decode())
    with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
        certificate.write(config.client_certificate_data or b"")
        key.write(config.client_key_data or b"")
        certificate.flush()
        key.flush()
        context.load_cert_chain(certificate.name, key.name)
    return context


CONTESTANTS = {"ours": ours, "bare": bare}


def compete(name: str, kubeconfig: str, namespace: str, path: str) -> None:
    """Run one of them; the first of ours leaves there what it asked for."""
    file = Path(path)
    recorded: list[Recorded] = json.loads(file.read_text()) if file.exists() else []
    cpu, wall = time.process_time(), time.perf_counter()
    requests = asyncio.run(CONTESTANTS[name](kubeconfig, namespace, recorded))
    print(
        json.dumps(
            {
                "requests": requests,
                "cpu": time.process_time() - cpu,
                "wall": time.perf_counter() - wall,
            }
        )
    )
    if not file.exists():
        file.write_text(json.dumps(recorded))


# ---- the queue alone -------------------------------------------------------------------------------


def work_off() -> None:
    async def run() -> None:
        queue: WorkQueue[Key, None] = WorkQueue("bench", Metrics())
        for number in range(QUEUED):
            queue.add(Key("shop", f"webapp-{number}"))
        for _ in range(QUEUED):
            async with queue.next_key():
                pass

    asyncio.run(run())


# ---- the contest -----------------------------------------------------------------------------------


async def prepare(client: Client) -> None:
    await client.apply(crd_of(WebApp), force=True)

    async def is_served() -> bool:
        await client.list(WebApp)
        return True

    await eventually(is_served)


async def make(client: Client) -> str:
    """A namespace full of objects that nobody has looked at."""
    namespace = f"bench-{secrets.token_hex(4)}"
    await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    names = iter([f"webapp-{number}" for number in range(OBJECTS)])

    async def create() -> None:
        for name in names:
            named = ObjectMeta(name=name, namespace=namespace)
            await client.create(WebApp(metadata=named, spec=WebAppSpec(image=f"registry/{name}:1.0")))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WORKERS):
            tasks.create_task(create())
    return namespace


async def check(client: Client, namespace: str) -> None:
    webapps = await client.list(WebApp, namespace=namespace)
    children = {each.metadata.name for each in await client.list(ConfigMap, namespace=namespace)}
    assert all(each.status.observed_image == each.spec.image for each in webapps)
    assert {each.metadata.name for each in webapps} <= children


async def contest(kubeconfig: Path, recorded: Path) -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    async with Client(Config.load(kubeconfig)) as client:
        await prepare(client)
        for round_ in range(ROUNDS + 1):
            for name in CONTESTANTS:
                namespace = await make(client)
                arguments = ("-m", "bench.controller", name, str(kubeconfig), namespace, str(recorded))
                run = await asyncio.to_thread(in_fresh_process, *arguments)
                await check(client, namespace)
                if round_:  # the first is for the server to get warm, and to record
                    known = results.setdefault(name, run)
                    results[name] = {what: min(known[what], run[what]) for what in run}
    return results


def main() -> None:
    try:
        binaries()
    except StartFailed as missing:
        print(json.dumps({"bench": "controller", "not_run": str(missing)}))
        return
    with ControlPlane() as kube, tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(contest(kube.kubeconfig, Path(folder) / "requests"))
    mine, yardstick = results["ours"], results["bare"]
    print(
        json.dumps(
            {
                "bench": "controller",
                "objects": OBJECTS,
                "workers": WORKERS,
                "wall_seconds": round(mine["wall"], 2),
                "cpu_seconds": round(mine["cpu"], 2),
                "cpu_milliseconds_per_object": round(mine["cpu"] / OBJECTS * 1e3, 2),
                "requests_per_object": round(mine["requests"] / OBJECTS, 2),
                "yardstick_wall_seconds": round(yardstick["wall"], 2),
                "yardstick_cpu_seconds": round(yardstick["cpu"], 2),
                "wall_times_yardstick": round(mine["wall"] / yardstick["wall"], 2),
                "cpu_times_yardstick": round(mine["cpu"] / yardstick["cpu"], 2),
                "queue_ops_per_second": round(3 * QUEUED / best_of(3, {"queue": work_off})["queue"]),
            }
        )
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case [name, kubeconfig, namespace, recorded]:
            compete(name, kubeconfig, namespace, recorded)
        case _:
            main()
