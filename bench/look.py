"""What the runtime itself costs in a reconcile: no socket, no server, only what stands between them.

A server in memory has 200 WebApps; a manager looks at each, which makes a child and writes a status, and
at each again when it hears of its own writes.  The yardstick does the same by hand: plain asyncio and json,
that trusts every answer and keeps every object as a dict.  Both take turns in one process; what the server
itself needs is not counted.

    python -m bench.look
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

from bench.contestants.setpoint.main import GROUP, WebApp
from bench.measure import compared, in_turn
from setpoint.api import ObjectMeta
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.net.headers import Headers
from setpoint.net.transport import Request
from setpoint.operator import Operator

OBJECTS: Final = 200
WORKERS: Final = 10
ROUNDS: Final = 25
_WHEN: Final = "2026-01-01T00:00:00Z"


class Answer:
    """A body that is there, or a watch that goes on."""

    status = 200
    headers: Mapping[str, str] = Headers([("Content-Type", "application/json")])
    websocket = None

    def __init__(self, body: bytes = b"", events: asyncio.Queue[bytes] | None = None) -> None:
        self._body = body
        self._events = events

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._events is None:
            yield self._body
            return
        while True:
            pieces = [await self._events.get()]
            while not self._events.empty():
                pieces.append(self._events.get_nowait())
            yield b"".join(pieces)

    async def close(self) -> None:
        pass


class Memory:
    """As much of an API server as this operator needs."""

    def __init__(self) -> None:
        self.writes = 0
        self.spent = 0.0  # CPU seconds, of the server alone
        self._version = 1_000
        self._watches: dict[str, asyncio.Queue[bytes]] = {}
        self._statuses: dict[str, Any] = {}

    async def __call__(self, request: Request) -> Answer:
        began = time.process_time()
        try:
            return self._answer(request)
        finally:
            self.spent += time.process_time() - began
            await asyncio.sleep(0)  # an answer takes a turn of the loop at least

    def _answer(self, request: Request) -> Answer:
        path, _, query = request.target.partition("?")
        kind = "webapps" if "/webapps" in path else "configmaps"
        if "watch=" in query:
            return self._watch(kind)
        body = json.loads(request.body or b"null")
        self.writes += 1
        self._version += 1
        name = path.split("/")[-2 if kind == "webapps" else -1]
        if kind == "webapps":
            self._statuses[name] = body["status"]
        data = json.dumps(self._webapp(name) if kind == "webapps" else self._child(name, body)).encode()
        self._tell(kind, "MODIFIED" if kind == "webapps" else "ADDED", data)
        return Answer(data)

    def _watch(self, kind: str) -> Answer:
        self._watches[kind] = asyncio.Queue()
        if kind == "webapps":
            for number in range(OBJECTS):
                self._tell(kind, "ADDED", json.dumps(self._webapp(f"webapp-{number}")).encode())
        api_version, name = (f"{GROUP}/v1", "WebApp") if kind == "webapps" else ("v1", "ConfigMap")
        end = {"resourceVersion": str(self._version), "annotations": {"k8s.io/initial-events-end": "true"}}
        mark = {"kind": name, "apiVersion": api_version, "metadata": end}
        self._tell(kind, "BOOKMARK", json.dumps(mark).encode())
        return Answer(events=self._watches[kind])

    def _tell(self, kind: str, what: str, data: bytes) -> None:
        self._watches[kind].put_nowait(b'{"type":"%s","object":%s}\n' % (what.encode(), data))

    def _metadata(self, name: str, manager: str, fields: Any) -> dict[str, Any]:
        entry = {"manager": manager, "operation": "Apply", "time": _WHEN, "fieldsType": "FieldsV1"}
        return {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-of-{name}",
            "resourceVersion": str(self._version),
            "generation": 1,
            "creationTimestamp": _WHEN,
            "managedFields": [{**entry, "apiVersion": "v1", "fieldsV1": fields}],
        }

    def _webapp(self, name: str) -> dict[str, Any]:
        metadata = self._metadata(name, "kubectl", {"f:spec": {"f:image": {}, "f:replicas": {}}})
        spec = {"image": "nginx:1", "replicas": 1}
        known = {"status": self._statuses[name]} if name in self._statuses else {}
        return {"apiVersion": f"{GROUP}/v1", "kind": "WebApp", "metadata": metadata, "spec": spec, **known}

    def _child(self, name: str, intent: dict[str, Any]) -> dict[str, Any]:
        owner = json.dumps({"uid": intent["metadata"]["ownerReferences"][0]["uid"]}, separators=(",", ":"))
        fields = {
            "f:data": {"f:image": {}, "f:replicas": {}},
            "f:metadata": {
                "f:labels": {"f:setpoint.dev/controller": {}},
                "f:ownerReferences": {f"k:{owner}": {}},
            },
        }
        return {**intent, "metadata": {**self._metadata(name, "bench", fields), **intent["metadata"]}}


async def ours(server: Memory) -> None:
    """Everything looked at twice."""
    operator, looks, done = Operator("bench"), 0, asyncio.Event()

    @operator.controller(WebApp, owns=[ConfigMap], workers=WORKERS)
    async def look(webapp: WebApp, ctx: Context) -> None:
        nonlocal looks
        looks += 1
        if looks == 2 * OBJECTS:
            done.set()
        data = {"image": webapp.spec.image, "replicas": str(webapp.spec.replicas)}
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=webapp.metadata.name), data=data))
        webapp.status.observed_image = webapp.spec.image
        webapp.status.replicas = webapp.spec.replicas

    client = Client(Config(server="http://memory.invalid"), transport=server)
    manager = Manager(client=client, namespaces=["shop"])
    operator.add_to(manager)
    async with manager:
        await done.wait()


async def yardstick(server: Memory) -> None:
    """The same requests, in the same order, by hand."""
    webapps: dict[str, Any] = {}
    children: dict[str, Any] = {}
    work: asyncio.Queue[str] = asyncio.Queue()
    looks, done = 0, asyncio.Event()

    async def watch(path: str, held: dict[str, Any]) -> None:
        answer = await server(Request("GET", f"{path}?watch=true"))
        async for piece in answer.chunks():
            for line in piece.splitlines():
                event = json.loads(line)
                if event["type"] != "BOOKMARK":
                    held[event["object"]["metadata"]["name"]] = event["object"]
                    if held is webapps:
                        work.put_nowait(event["object"]["metadata"]["name"])

    async def send(method: str, path: str, body: Any) -> Any:
        answer = await server(Request(method, path, body=json.dumps(body).encode()))
        return json.loads(await answer.read())

    async def worker() -> None:
        nonlocal looks
        while True:
            webapp = webapps[name := await work.get()]
            spec, metadata = webapp["spec"], webapp["metadata"]
            owner = {
                "apiVersion": webapp["apiVersion"],
                "kind": "WebApp",
                "name": name,
                "uid": metadata["uid"],
            }
            data = {"image": spec["image"], "replicas": str(spec["replicas"])}
            child = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]},
                "data": data,
            }
            if children.get(name, {}).get("data") != data:
                children[name] = await send("PATCH", f"/api/v1/namespaces/shop/configmaps/{name}", child)
            status = {"observedImage": spec["image"], "replicas": spec["replicas"]}
            if webapp.get("status") != status:
                path = f"/apis/{GROUP}/v1/namespaces/shop/webapps/{name}/status"
                webapps[name] = await send("PATCH", path, {**webapp, "status": status})
            looks += 1
            if looks == 2 * OBJECTS:
                done.set()

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(watch("/api/v1/namespaces/shop/configmaps", children))]
        running += [tasks.create_task(watch(f"/apis/{GROUP}/v1/namespaces/shop/webapps", webapps))]
        running += [tasks.create_task(worker()) for _ in range(WORKERS)]
        await done.wait()
        for each in running:
            each.cancel()


def cpu_seconds(who: Callable[[Memory], Coroutine[Any, Any, None]]) -> float:
    server = Memory()
    began = time.process_time()
    asyncio.run(who(server))
    spent = time.process_time() - began
    assert server.writes == 2 * OBJECTS, f"{server.writes} writes: a child and a status for each of {OBJECTS}"
    return spent - server.spent


def main() -> None:
    pairs = in_turn(ROUNDS, partial(cpu_seconds, ours), partial(cpu_seconds, yardstick))
    said = {
        "bench": "look",
        "cpu_microseconds_per_object": round(median(spent for spent, _ in pairs) / OBJECTS * 1e6),
        **compared(pairs),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
