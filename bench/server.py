"""The embedded server against kube-apiserver and etcd, in the same run, both with fsync.

Both are asked the same by the same client, over TLS, one after the other: how soon each is ready, what it
holds in memory (idle, and with many pods), how many reads and durable creates of 1 KB it answers a second
on 16 connections, and how late an event reaches 100 watchers while 200 writes a second come in.

    python -m bench.server
    python -m bench.server 2000     (so many pods instead of 20,000)
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import aiohttp

from setpoint.client.config import Config
from setpoint.testing.kube import ControlPlane

CONNECTIONS = 16
SECONDS = 5.0  # of reading, and of creating
WATCHERS = 100
WRITES_PER_SECOND = 200
WATCHED_SECONDS = 5.0
PODS = 20_000
PATH = "/api/v1/namespaces/default/configmaps"


_NAME = b'"name":"'
_SEEN = _NAME + b"seen-"


class Running(NamedTuple):
    """A server under measurement."""

    url: str
    headers: dict[str, str]
    ssl_context: ssl.SSLContext
    pids: list[int]
    ready_seconds: float


def _resident(pids: list[int]) -> float:
    """Megabytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page for pid in pids) / 2**20


@asynccontextmanager
async def ours(folder: str, compiled: str) -> AsyncIterator[Running]:
    """An API server alone, as the other is.  Its code is compiled there once, as pip would have it."""
    kubeconfig = Path(folder) / "kubeconfig"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    process = subprocess.Popen(  # noqa: ASYNC220 - it runs beside us for the whole time
        [
            sys.executable,
            "-m",
            "setpoint.cli.main",
            "up",
            "--controllers",
            "none",
            "--data",
            Path(folder) / "data",
            "--kubeconfig",
            kubeconfig,
        ],
        env=environment,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
        ready = time.monotonic() - began
        config = Config.load(kubeconfig)
        token = _token_of(kubeconfig)
        context = ssl.create_default_context(cadata=_ca_of(kubeconfig))
        yield Running(config.server, {"Authorization": f"Bearer {token}"}, context, [process.pid], ready)
    finally:
        process.terminate()
        process.wait()


def _user_and_cluster(kubeconfig: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    from setpoint.api import yaml

    said = yaml.load(kubeconfig.read_text())
    return said["users"][0]["user"], said["clusters"][0]["cluster"]


def _token_of(kubeconfig: Path) -> str:
    return str(_user_and_cluster(kubeconfig)[0]["token"])


def _ca_of(kubeconfig: Path) -> str:
    import base64

    return base64.b64decode(_user_and_cluster(kubeconfig)[1]["certificate-authority-data"]).decode()


@asynccontextmanager
async def real() -> AsyncIterator[Running]:
    began = time.monotonic()
    plane = ControlPlane(etcd_args=("--unsafe-no-fsync=false",))
    async with plane as kube:
        ready = time.monotonic() - began
        context = ssl.create_default_context(cafile=kube.ca_file)
        context.load_cert_chain(kube.admin_certificate, kube.admin_key)
        yield Running(kube.url, {}, context, list(kube.pids.values()), ready)


# ── What is asked ───────────────────────────────────────────────────────────────────────────────────


def _config_map(name: str) -> bytes:
    data = {f"key-{index}": "x" * 80 for index in range(10)}
    return json.dumps(
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}
    ).encode()


async def _rate(ask: Callable[[int, int], Awaitable[None]]) -> float:
    """Requests a second on all connections at once."""
    counts = [0] * CONNECTIONS
    end = time.monotonic() + SECONDS

    async def run(connection: int) -> None:
        while time.monotonic() < end:
            await ask(connection, counts[connection])
            counts[connection] += 1

    began = time.monotonic()
    await asyncio.gather(*(run(connection) for connection in range(CONNECTIONS)))
    return sum(counts) / (time.monotonic() - began)


async def measure(server: Running, pods: int) -> dict[str, float]:
    found = {"ready_s": server.ready_seconds, "idle_mb": _resident(server.pids)}
    connector = aiohttp.TCPConnector(limit=0, ssl=server.ssl_context)
    timeout = aiohttp.ClientTimeout(total=None)
    lanes = asyncio.Semaphore(CONNECTIONS)
    async with aiohttp.ClientSession(
        server.url, connector=connector, headers=server.headers, timeout=timeout
    ) as session:

        async def post(path: str, body: bytes) -> None:
            # Never more connections than asked for: each costs a handshake, and a late server would get more.
            async with (
                lanes,
                session.post(path, data=body, headers={"Content-Type": "application/json"}) as answer,
            ):
                said = await answer.read()
                assert answer.status == 201, said[:300]

        async def get(_: int, __: int) -> None:
            async with session.get(f"{PATH}/read") as answer:
                await answer.read()
                assert answer.status == 200

        await post(PATH, _config_map("read"))
        found["get_per_s"] = await _rate(get)
        found["create_per_s"] = await _rate(lambda c, n: post(PATH, _config_map(f"made-{c}-{n}")))
        found["event_p99_ms"] = await _fan_out(session, post)
        await _fill(post, pods)
        found["full_mb"] = _resident(server.pids)
    return found


async def _fan_out(
    session: aiohttp.ClientSession, post: Callable[[str, bytes], Coroutine[Any, Any, None]]
) -> float:
    """The 99th percentile of milliseconds from sending a write to each watcher's seeing it."""
    sent: dict[str, float] = {}
    late: list[float] = []
    count, done = int(WRITES_PER_SECOND * WATCHED_SECONDS), asyncio.Event()
    ready = [asyncio.Event() for _ in range(WATCHERS)]
    path = "/api/v1/namespaces/default/secrets"

    async def watch(index: int) -> None:
        async with session.get(f"{path}?watch=1&allowWatchBookmarks=true") as answer:
            ready[index].set()
            async for line in answer.content:
                seen = time.monotonic()
                begins = line.find(_SEEN)  # decoding would measure us
                if begins >= 0:
                    name = line[begins + len(_NAME) : line.index(b'"', begins + len(_SEEN))].decode()
                    late.append(seen - sent[name])
                    if len(late) == count * WATCHERS:
                        done.set()

    watchers = [asyncio.create_task(watch(index)) for index in range(WATCHERS)]
    await asyncio.gather(*(one.wait() for one in ready))
    began = time.monotonic()
    posts: list[asyncio.Task[None]] = []
    for index in range(count):
        await asyncio.sleep(max(0.0, began + index / WRITES_PER_SECOND - time.monotonic()))
        name = f"seen-{index}"
        sent[name] = time.monotonic()
        body = json.dumps({"metadata": {"name": name}, "data": {"a": "eA=="}}).encode()
        posts.append(asyncio.create_task(post(path, body)))
    await asyncio.gather(*posts)
    async with asyncio.timeout(120):
        await done.wait()
    for one in watchers:
        one.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    return quantiles(late, n=100)[98] * 1000


async def _fill(post: Callable[[str, bytes], Coroutine[Any, Any, None]], pods: int) -> None:
    container = {"name": "c", "image": "registry.example/app:1", "env": [{"name": "A", "value": "b" * 40}]}
    names = iter(range(pods))

    async def run() -> None:
        for index in names:
            metadata = {"name": f"pod-{index}", "labels": {"app": f"app-{index % 50}"}}
            body = {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": metadata,
                "spec": {"containers": [container]},
            }
            await post("/api/v1/namespaces/default/pods", json.dumps(body).encode())

    await asyncio.gather(*(run() for _ in range(CONNECTIONS)))


async def main() -> None:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else PODS
    new = tempfile.TemporaryDirectory
    with new() as compiled, new() as once, new() as folder:
        async with ours(once, compiled):
            pass
        async with ours(folder, compiled) as server:
            mine = await measure(server, pods)
    async with real() as server:
        theirs = await measure(server, pods)
    ratios = {
        "ready": theirs["ready_s"] / mine["ready_s"],
        "idle_memory": mine["idle_mb"] / theirs["idle_mb"],
        "full_memory": mine["full_mb"] / theirs["full_mb"],
        "get": mine["get_per_s"] / theirs["get_per_s"],
        "create": mine["create_per_s"] / theirs["create_per_s"],
        "event_p99": mine["event_p99_ms"] / theirs["event_p99_ms"],
    }
    print(
        json.dumps(
            {
                "bench": "server",
                "pods": pods,
                "ratios": {name: round(value, 2) for name, value in ratios.items()},
                "bars": {
                    "ready": ">= 10",
                    "idle_memory": "<= 0.25",
                    "full_memory": "<= 0.25",
                    "get": ">= 2",
                    "create": ">= 2",
                    "event_p99": "<= 1.5",
                },
                "setpoint": {name: round(value, 2) for name, value in mine.items()},
                "kube-apiserver": {name: round(value, 2) for name, value in theirs.items()},
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
