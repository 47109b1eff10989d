"""The embedded server against kube-apiserver and etcd, in the same run, both with fsync.

Both are asked the same by the same client, over TLS, one after the other: how soon each is ready, what it
holds in memory (idle, and with many pods), how many reads, lists of 100 by label, durable creates, updates,
merge patches and applies of 1 KB it answers a second on 16 connections, and how late an event reaches 100
watchers while 200 writes a second come in.  In turn, round after round; medians.

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
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

import aiohttp

from setpoint.client.config import Config
from setpoint.testing.kube import ControlPlane

CONNECTIONS = 16
ROUNDS = 3
SECONDS = 3.0  # of each verb
LISTED = 100
WATCHERS = 100
WRITES_PER_SECOND = 200
WATCHED_SECONDS = 5.0
LATEST = 60.0  # seconds that the last event may take
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


def _cpu(pids: list[int]) -> float:
    """Seconds."""
    ticks = os.sysconf("SC_CLK_TCK")
    after_names = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(after[11]) + int(after[12]) for after in after_names) / ticks


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


def _config_map(name: str, *, labels: dict[str, str] | None = None, number: str = "") -> bytes:
    data = {f"key-{index}": "x" * 80 for index in range(10)} | {"number": number}
    metadata = {"name": name, "labels": labels or {}}
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}).encode()


async def _rate(ask: Callable[[int, int], Awaitable[object]]) -> float:
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


@asynccontextmanager
async def _session(server: Running) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0, ssl=server.ssl_context)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        server.url, connector=connector, headers=server.headers, timeout=timeout
    ) as session:
        yield session


Post = Callable[[str, bytes], Coroutine[Any, Any, None]]


def _poster(session: aiohttp.ClientSession) -> Post:
    # Never more connections than asked for: each costs a handshake, and a late server would get more.
    lanes = asyncio.Semaphore(CONNECTIONS)

    async def post(path: str, body: bytes) -> None:
        async with lanes:
            await _ask(session, "POST", path, body)

    return post


async def _ask(
    session: aiohttp.ClientSession, method: str, path: str, body: bytes | None = None, kind: str = "json"
) -> bytes:
    headers = {"Content-Type": f"application/{kind}"} if body else None
    async with session.request(method, path, data=body, headers=headers) as answer:
        said = await answer.read()
        assert answer.status in {200, 201}, said[:300]
        return said


async def measure(server: Running, pods: int) -> dict[str, float]:
    found = {"ready_s": server.ready_seconds, "idle_mb": _resident(server.pids)}
    async with _session(server) as session:
        post = _poster(session)
        await _prepare(post)

        async def list_(_: int, __: int) -> None:
            said = await _ask(session, "GET", f"{PATH}?labelSelector=listed%3Dyes")
            assert said.count(b'"listed":"yes"') >= LISTED

        def change(method: str, kind: str, query: str = "") -> Callable[[int, int], Awaitable[object]]:
            def ask(connection: int, number: int) -> Awaitable[object]:
                name = f"changed-{connection}"
                body = _config_map(name, number=f"{method} {kind} {number}")
                return _ask(session, method, f"{PATH}/{name}{query}", body, kind)

            return ask

        found["get_per_s"] = await _rate(lambda _, __: _ask(session, "GET", f"{PATH}/read"))
        found["list_per_s"] = await _rate(list_)
        found["create_per_s"] = await _rate(lambda c, n: post(PATH, _config_map(f"made-{c}-{n}")))
        found["update_per_s"] = await _rate(change("PUT", "json"))
        found["patch_per_s"] = await _rate(change("PATCH", "merge-patch+json"))
        apply = change("PATCH", "apply-patch+yaml", "?fieldManager=bench&force=true")
        found["apply_per_s"] = await _rate(apply)
        found["event_p99_ms"] = await _fan_out(session, post)
        if pods:
            await _fill(post, pods)
            found["full_mb"] = _resident(server.pids)
    return found


async def _prepare(post: Post) -> None:
    await post(PATH, _config_map("read"))
    for connection in range(CONNECTIONS):
        await post(PATH, _config_map(f"changed-{connection}"))
    for number in range(LISTED):
        await post(PATH, _config_map(f"listed-{number}", labels={"listed": "yes"}))


async def _fan_out(session: aiohttp.ClientSession, post: Post) -> float:
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
    try:
        async with asyncio.timeout(LATEST):
            await done.wait()
    except TimeoutError:
        raise RuntimeError(
            f"{len(late)} of {count * WATCHERS} events came; {sum(one.done() for one in watchers)} of "
            f"{WATCHERS} watches had ended: the machine may be too busy"
        ) from None
    for one in watchers:
        one.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    return quantiles(late, n=100)[98] * 1000


async def _fill(post: Post, pods: int) -> None:
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


# ── What is found ───────────────────────────────────────────────────────────────────────────────────


BARS: Final[dict[str, tuple[str, str, float]]] = {  # ours divided by theirs
    "ready_s": ("ready", "at most", 0.1),
    "idle_mb": ("idle memory", "at most", 0.25),
    "full_mb": ("memory with the pods", "at most", 0.25),
    "get_per_s": ("reads a second", "at least", 2),
    "create_per_s": ("durable creates a second", "at least", 2),
    "event_p99_ms": ("p99 of an event to 100 watchers", "at most", 1.5),
}


async def contest(pods: int) -> dict[str, dict[str, float]]:
    """Each in turn, round after round, the pods in the first; medians."""
    runs: dict[str, list[dict[str, float]]] = {"setpoint": [], "kube-apiserver": []}
    new = tempfile.TemporaryDirectory
    with new() as compiled:
        with new() as once:
            async with ours(once, compiled):
                pass
        for number in range(ROUNDS):
            share = 0 if number else pods
            with new() as folder:
                async with ours(folder, compiled) as server:
                    runs["setpoint"].append(await measure(server, share))
            async with real() as server:
                runs["kube-apiserver"].append(await measure(server, share))
    return {
        name: {what: median(run[what] for run in rounds if what in run) for what in rounds[0]}
        for name, rounds in runs.items()
    }


async def filled(pods: int) -> dict[str, float]:
    """What so many pods cost our server, from empty."""
    new = tempfile.TemporaryDirectory
    with new() as compiled, new() as folder:
        async with ours(folder, compiled) as server, _session(server) as session:
            before, began = _cpu(server.pids), time.monotonic()
            await _fill(_poster(session), pods)
            return {
                "wall": time.monotonic() - began,
                "cpu": _cpu(server.pids) - before,
                "peak_megabytes": _resident(server.pids),
            }


def main() -> None:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else PODS
    found = asyncio.run(contest(pods))
    mine, theirs = found["setpoint"], found["kube-apiserver"]
    ratios = {name: mine[name] / theirs[name] for name in mine}
    print(
        json.dumps(
            {
                "bench": "server",
                "pods": pods,
                "rounds": ROUNDS,
                "ratios": {name: round(value, 3) for name, value in ratios.items()},
                "setpoint": {name: round(value, 2) for name, value in mine.items()},
                "kube-apiserver": {name: round(value, 2) for name, value in theirs.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
