"""The embedded server against kube-apiserver and etcd, in the same run, both with fsync.

Both are asked the same by the same client, over TLS, one after the other: how soon each is ready, what it
holds in memory (idle, and with many pods), how many reads, lists of 100 by label, durable creates, updates,
merge patches and applies of 1 KB it answers a second on 16 connections, and how late an event reaches 100
watchers while 200 writes a second come in.  In turn, round after round; medians.

Where temporary files are kept in memory fsync does nothing, and nothing is measured.

    python -m bench.server
    python -m bench.server 2000     (so many pods instead of 20,000)
"""

from __future__ import annotations

import asyncio
import json
import os
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

from bench.measure import say
from bench.peers.machine import IN_MEMORY, filesystem
from bench.watchers import NAME, tls
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
READERS = 4  # processes that share the watches: each has little to do
BUSY = 0.7  # of a core: who reads so much might come late by itself
PODS = 20_000
PATH = "/api/v1/namespaces/default/configmaps"
PODS_PATH = "/api/v1/namespaces/default/pods"


class Lost(Exception):
    """Not every event came."""


class Running(NamedTuple):
    """A server under measurement."""

    url: str
    headers: dict[str, str]
    authority: str  # files
    certificate: list[str] | None
    pids: list[int]
    ready_seconds: float


def _resident(pids: list[int]) -> float:
    """Megabytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page for pid in pids) / 2**20


def _peak(pid: int) -> float:
    """Megabytes that it ever held at once."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the kernel has no peak of process {pid}: it ended")


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
        authority = Path(folder) / "ca.crt"
        authority.write_text(_ca_of(kubeconfig))
        headers = {"Authorization": f"Bearer {token}"}
        yield Running(config.server, headers, str(authority), None, [process.pid], ready)
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
        certificate = [str(kube.admin_certificate), str(kube.admin_key)]
        yield Running(kube.url, {}, str(kube.ca_file), certificate, list(kube.pids.values()), ready)


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
    connector = aiohttp.TCPConnector(limit=0, ssl=tls(server.authority, server.certificate))
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


async def measure(who: str, server: Running, pods: int) -> dict[str, float]:
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

        asks: dict[str, Callable[[int, int], Awaitable[object]]] = {
            "get_per_s": lambda _, __: _ask(session, "GET", f"{PATH}/read"),
            "list_per_s": list_,
            "create_per_s": lambda c, n: post(PATH, _config_map(f"made-{c}-{n}")),
            "update_per_s": change("PUT", "json"),
            "patch_per_s": change("PATCH", "merge-patch+json"),
            "apply_per_s": change("PATCH", "apply-patch+yaml", "?fieldManager=bench&force=true"),
        }
        for name, ask in asks.items():
            say(f"server: {who}, {name.removesuffix('_per_s')}")
            found[name] = await _rate(ask)
        say(f"server: {who}, {WATCHERS} watches")
        try:
            found |= await _fan_out(server, session, post)
        except Lost as lost:
            say(f"server: {who}: no latency of events in this round: {lost}")
        say(f"server: {who}, {pods:,} pods")
        await _fill(post, pods)
        found["full_mb"] = _resident(server.pids)
    return found


async def _prepare(post: Post) -> None:
    await post(PATH, _config_map("read"))
    for connection in range(CONNECTIONS):
        await post(PATH, _config_map(f"changed-{connection}"))
    for number in range(LISTED):
        await post(PATH, _config_map(f"listed-{number}", labels={"listed": "yes"}))


async def _fan_out(server: Running, session: aiohttp.ClientSession, post: Post) -> dict[str, float]:
    """The 99th percentile of milliseconds from sending a write to each watcher's seeing it."""
    path, count = "/api/v1/namespaces/default/secrets", int(WRITES_PER_SECOND * WATCHED_SECONDS)
    version = json.loads(await _ask(session, "GET", f"{path}?limit=1"))["metadata"]["resourceVersion"]
    asked = {
        "url": server.url,
        "headers": server.headers,
        "authority": server.authority,
        "certificate": server.certificate,
        "path": path,
        "version": version,
        "watches": WATCHERS // READERS,
        "events": count,
        "seconds": WATCHED_SECONDS + LATEST,
    }
    command = (sys.executable, "-m", "bench.watchers", json.dumps(asked))
    pipe = asyncio.subprocess.PIPE
    readers = [await asyncio.create_subprocess_exec(*command, stdout=pipe) for _ in range(READERS)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            if await reader.stdout.readline() != b"ready\n":
                raise Lost("a process that reads watches could not begin; it said why")
        began, sent = time.monotonic(), list[float]()
        posts: list[asyncio.Task[None]] = []
        for index in range(count):
            await asyncio.sleep(max(0.0, began + index / WRITES_PER_SECOND - time.monotonic()))
            sent.append(time.monotonic())
            body = json.dumps({"metadata": {"name": f"{NAME}{index}"}, "data": {"a": "eA=="}}).encode()
            posts.append(asyncio.create_task(post(path, body)))
        await asyncio.gather(*posts)
        told = [json.loads((await reader.communicate())[0]) for reader in readers]
    finally:
        for reader in readers:
            if reader.returncode is None:
                reader.kill()
                await reader.wait()
    return _late(sent, told, time.monotonic() - began)


def _late(sent: list[float], told: list[dict[str, Any]], seconds: float) -> dict[str, float]:
    """Of what the readers told; all of it must have come."""
    busy = max(each["cpu"] for each in told) / seconds
    watches = [seen for each in told for seen in each["seen"]]
    late = [at - since for seen in watches for since, at in zip(sent, seen, strict=True) if at is not None]
    resumed, lost = (sum(each[what] for each in told) for what in ("resumed", "lost"))
    if len(late) < len(sent) * len(watches):
        raise Lost(
            f"{len(late)} of {len(sent) * len(watches)} events came within {LATEST:.0f} s; the server ended "
            f"watches {resumed} times and {lost} connections; the readers were busy for {busy:.0%} of the "
            "time: the machine has too much else to do"
        )
    if busy > BUSY:
        say(f"server: who reads the watches was busy for {busy:.0%} of the time: it may be what is late")
    return {"event_p99_ms": quantiles(late, n=100)[98] * 1000, "watches_ended": resumed}


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
            await post(PODS_PATH, json.dumps(body).encode())

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
    """Each in turn, round after round; medians."""
    kind = filesystem(Path(tempfile.gettempdir()))
    if kind in IN_MEMORY:
        raise SystemExit(
            f"bench the servers with fsync: temporary files are on {kind}, where fsync does nothing, and no "
            "number would mean anything; set TMPDIR to a folder on a disk"
        )
    runs: dict[str, list[dict[str, float]]] = {"setpoint": [], "kube-apiserver": []}
    new = tempfile.TemporaryDirectory
    with new() as compiled:
        with new() as once:
            async with ours(once, compiled):
                pass
        for number in range(1, ROUNDS + 1):
            with new() as folder:
                async with ours(folder, compiled) as server:
                    who = f"round {number} of {ROUNDS}, setpoint"
                    runs["setpoint"].append(await measure(who, server, pods))
            async with real() as server:
                who = f"round {number} of {ROUNDS}, kube-apiserver"
                runs["kube-apiserver"].append(await measure(who, server, pods))
    return {name: medians(rounds) for name, rounds in runs.items()}


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Of each figure, over the rounds that have it."""
    names = dict.fromkeys(name for each in rounds for name in each)
    return {name: median(each[name] for each in rounds if name in each) for name in names}


# ── How it grows ────────────────────────────────────────────────────────────────────────────────────


ASKED = 4_000  # GETs and changes, so that the kernel's hundredths of a second are fine enough
LISTS, LISTING = 16, 2  # whatever the size: how many, and how many at once


async def filled(pods: int) -> dict[str, float]:
    """What so many pods cost our server, from empty; and then, what a read, a list and a change cost it."""
    new = tempfile.TemporaryDirectory
    with new() as compiled, new() as folder:
        async with ours(folder, compiled) as server, _session(server) as session:
            before, began = _cpu(server.pids), time.monotonic()
            await _fill(_poster(session), pods)
            found = {"wall": time.monotonic() - began, "cpu": _cpu(server.pids) - before}
            found["get_microseconds"] = 1e6 * await _cpu_of_each(
                server, ASKED, lambda index: _ask(session, "GET", f"{PODS_PATH}/pod-{index * 7 % pods}")
            )
            await _ask(session, "GET", PODS_PATH)  # the first one finds nothing at hand
            found["list_milliseconds"] = 1e3 * await _cpu_of_each(
                server, LISTS, lambda _: _ask(session, "GET", PODS_PATH), at_once=LISTING
            )
            found["change_microseconds"] = 1e6 * await _watched(server, session, pods)
            found["peak_megabytes"] = _peak(server.pids[0])
            return found


async def _watched(server: Running, session: aiohttp.ClientSession, pods: int) -> float:
    """CPU seconds of a change that a watcher sees."""

    def change(index: int) -> Awaitable[object]:
        body = json.dumps({"metadata": {"labels": {"changed": f"no-{index}"}}}).encode()
        return _ask(session, "PATCH", f"{PODS_PATH}/pod-{index * 7 % pods}", body, "merge-patch+json")

    changes = ASKED // 4
    seen = 0

    async def watch() -> None:
        nonlocal seen
        version = json.loads(await _ask(session, "GET", f"{PODS_PATH}?limit=1"))["metadata"][
            "resourceVersion"
        ]
        async with session.get(f"{PODS_PATH}?watch=1&resourceVersion={version}") as answer:
            begun.set()
            async for line in answer.content:
                seen += b'"changed":"no-' in line
                if seen == changes:
                    return

    begun = asyncio.Event()
    watching = asyncio.create_task(watch())
    await begun.wait()

    async def all_seen(_: int) -> None:
        await _cpu_of_each(server, changes, change)
        async with asyncio.timeout(LATEST):
            await watching

    return await _cpu_of_each(server, 1, all_seen) / changes


async def _cpu_of_each(
    server: Running, count: int, ask: Callable[[int], Awaitable[object]], *, at_once: int = CONNECTIONS
) -> float:
    """The server's CPU seconds for one of so many."""
    numbers = iter(range(count))

    async def run() -> None:
        for number in numbers:
            await ask(number)

    before = _cpu(server.pids)
    await asyncio.gather(*(run() for _ in range(min(at_once, count))))
    return (_cpu(server.pids) - before) / count


def main() -> None:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else PODS
    found = asyncio.run(contest(pods))
    mine, theirs = found["setpoint"], found["kube-apiserver"]
    ratios = {name: mine[name] / theirs[name] for name in mine if theirs.get(name)}
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
