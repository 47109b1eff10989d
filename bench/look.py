"""What the runtime itself adds to a reconcile: no socket, no server, only what stands between them.

A server in memory has 1,000 WebApps; a manager looks at each, which makes a child and writes a status, and
at each again when it hears of its own writes.  The yardstick is what Python's json needs to read every event
and answer and to write every request.

    python -m bench.look
    python -m bench.look ours|yardstick      one of them: its CPU seconds
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from statistics import median
from typing import Any, Final

from bench.contestants.setpoint.main import GROUP, WebApp
from bench.measure import in_fresh_process
from setpoint.api import ObjectMeta
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.manager import Manager
from setpoint.net.headers import Headers
from setpoint.net.transport import Request
from setpoint.operator import Operator

OBJECTS: Final = 1_000
ROUNDS: Final = 5
TIMES: Final = 10  # json is quick: once is too short to be measured
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
        self.said: list[bytes] = []  # every event and answer
        self.asked: list[Any] = []  # every body
        self._version = 1_000
        self._watches: dict[str, asyncio.Queue[bytes]] = {}
        self._statuses: dict[str, Any] = {}

    async def __call__(self, request: Request) -> Answer:
        path, _, query = request.target.partition("?")
        kind = "webapps" if "/webapps" in path else "configmaps"
        if "watch=" in query:
            return self._watch(kind)
        await asyncio.sleep(0)  # an answer takes a turn of the loop at least
        body = json.loads(request.body or b"null")
        self.writes += 1
        self._version += 1
        name = path.split("/")[-2 if kind == "webapps" else -1]
        if kind == "webapps":
            self._statuses[name] = body["status"]
        data = json.dumps(self._webapp(name) if kind == "webapps" else self._child(name, body)).encode()
        self._tell(kind, "MODIFIED" if kind == "webapps" else "ADDED", data)
        self.asked.append(body)
        self.said.append(data)
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
        event = b'{"type":"%s","object":%s}\n' % (what.encode(), data)
        self.said.append(event)
        self._watches[kind].put_nowait(event)

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


async def run() -> tuple[Memory, float]:
    """Everything looked at twice: the server, and the CPU seconds that it took."""
    server, operator, looks, done = Memory(), Operator("bench"), 0, asyncio.Event()

    @operator.controller(WebApp, owns=[ConfigMap], workers=10)
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
    began = time.process_time()
    async with manager:
        await done.wait()
        spent = time.process_time() - began
    assert server.writes == 2 * OBJECTS, f"{server.writes} writes: a child and a status for each of {OBJECTS}"
    return server, spent


def ours() -> float:
    server, spent = asyncio.run(run())
    return spent - _json(server)  # the server's own part, nearly


def yardstick() -> float:
    server, _ = asyncio.run(run())
    return _json(server)


def _json(server: Memory) -> float:
    began = time.process_time()
    for _ in range(TIMES):
        for body in server.asked:
            json.dumps(body)
        for line in server.said:
            json.loads(line)
    return (time.process_time() - began) / TIMES


WHO: Final = {"ours": ours, "yardstick": yardstick}


def main() -> None:
    if sys.argv[1:]:
        print(WHO[sys.argv[1]]())
        return
    pairs = [[in_fresh_process("-m", "bench.look", each) for each in WHO] for _ in range(ROUNDS)]
    said = {
        "bench": "look",
        "cpu_microseconds_per_object": round(median(spent for spent, _ in pairs) / OBJECTS * 1e6),
        "times_yardstick": round(median(spent / json_alone for spent, json_alone in pairs), 2),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
