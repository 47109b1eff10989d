"""A server and an operator in processes of their own, writers, and the checker of what was acknowledged.

The checker lives in the process that starts the others.  It knows, for each Lamp, which writes the server
acknowledged and which got no answer, and compares that with what the server holds:

1. An acknowledged write is there, unless a later write of the same Lamp took its place.
2. What is there was written: by the last acknowledged write, or by one after it that got no answer.
3. The operator converges: each Lamp's status and its one ConfigMap say what its spec says.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.cluster import Process
from setpoint.api.forms import untyped
from setpoint.api.patches import MergePatch
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import ApiError, Conflict, NotFound, SetpointError

LAMPS: Final = untyped("soak.setpoint.dev/v1", "Lamp")
MAPS: Final = untyped("v1", "ConfigMap")
NAMESPACE: Final = "default"
OPERATOR: Final = Path(__file__).parent / "lamps.py"
ROOT: Final = Path(__file__).parents[2]


class Violation(AssertionError):
    """A promise that did not hold."""


def say(**figures: Any) -> None:
    """One line of JSON."""
    print(json.dumps(figures), flush=True)  # noqa: T201


async def until(what: str, done: Callable[[], Awaitable[Any]], seconds: float, every: float = 0.1) -> float:
    """Wait for a condition; how many seconds it took."""
    began = time.monotonic()
    last: object = None
    while True:
        with suppress(SetpointError):
            last = await done()
            if last is True:
                return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise Violation(f"{what}: not after {seconds:.0f} s; {last or ''}")
        await asyncio.sleep(every)


class World:
    """One data directory, the server on it, and the operator."""

    def __init__(self, folder: Path, forks: asyncio.subprocess.Process, *, on_disk: bool) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._forks = forks
        self._on_disk = on_disk
        self._port = _free_port()
        self.server = self.operator = 0  # process ids
        self.restarts = 0  # of an operator that ended by itself, as a kubelet would
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    async def start_server(self, seconds: float = 60) -> None:
        """Start it, and wait until it answers."""
        data = ["--data", str(self.folder / "data")] if self._on_disk else []
        where = ["--port", str(self._port), "--kubeconfig", str(self.kubeconfig)]
        self.server = await self._fork("server", ["up", "--controllers", "none", *data, *where])
        deadline = time.monotonic() + seconds
        while not self.kubeconfig.exists():
            await self._wait_a_little(deadline)
        if self._client is None:
            self._client = Client(Config.load(self.kubeconfig))
        while True:
            with suppress(SetpointError):
                await self.client.fetch("/readyz", timeout=5)
                return
            await self._wait_a_little(deadline)

    async def start_operator(self) -> None:
        arguments = ["run", str(OPERATOR), "--kubeconfig", str(self.kubeconfig), "--install-crds"]
        self.operator = await self._fork("operator", arguments)

    async def keep_operator(self) -> None:
        """Start the operator again if it has ended: without a server it cannot start, and exits."""
        if not is_alive(self.operator):
            self.restarts += 1
            await self.start_operator()

    async def wait_for_kind(self) -> None:
        """Until Lamps are served."""

        async def is_served() -> bool:
            await self.client.list_page(LAMPS, namespace=NAMESPACE, page_size=1)
            return True

        await until("the kind is served", is_served, 60)

    async def close(self) -> None:
        for pid in (self.operator, self.server):
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self._client is not None:
            await self._client.close()

    def logged(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    async def _fork(self, name: str, arguments: list[str]) -> int:
        assert self._forks.stdin
        assert self._forks.stdout
        order = {"arguments": arguments, "log": str(self.folder / f"{name}.log")}
        self._forks.stdin.write(json.dumps(order).encode() + b"\n")
        return int(await self._forks.stdout.readline())

    async def _wait_a_little(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise Violation(f"the server does not answer; it said {self.logged('server')[-1000:]}")
        await asyncio.sleep(0.02)


@asynccontextmanager
async def world(folder: Path, *, operator: bool = True, on_disk: bool = True) -> AsyncIterator[World]:
    """A server that answers, and an operator that runs."""
    forks = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.soak.forks"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    made = World(folder, forks, on_disk=on_disk)
    try:
        await made.start_server()
        if operator:
            await made.start_operator()
            await made.wait_for_kind()
        yield made
    finally:
        await made.close()
        assert forks.stdin
        forks.stdin.close()
        await forks.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def megabytes(pid: int) -> float:
    return round(Process(pid).resident_bytes / 2**20, 1)


def lamp(name: str, value: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "soak.setpoint.dev/v1",
        "kind": "Lamp",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"value": value, **spec},
    }


def config_map(name: str, value: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


# ── Writers and what is known of what they wrote ────────────────────────────────────────────────────


@dataclass
class Known:
    """What one Lamp may hold: what was acknowledged last, or what got no answer since."""

    acknowledged: str = ""
    unanswered: set[str] = field(default_factory=set)
    is_created: bool = False

    @property
    def possible(self) -> set[str]:
        return {self.acknowledged, *self.unanswered}


class Writers:
    """Clients that write, each its own Lamps, through whatever happens to the server."""

    def __init__(self, world: World, count: int, lamps: int) -> None:
        self._world = world
        self.known = {f"lamp-{number}": Known() for number in range(lamps)}
        names = list(self.known)
        self._shares = [names[number::count] for number in range(count)]
        self.acknowledged = self.refused = self.unanswered = 0
        self.revisions: dict[int, tuple[str, str]] = {}  # of what was acknowledged
        self._tasks: list[asyncio.Task[None]] = []
        self._running = asyncio.Event()
        self._writing = 0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write until the end of the block; the last answers, or that there are none, are waited for."""
        self._running.set()
        async with asyncio.TaskGroup() as group:
            for number, share in enumerate(self._shares):
                group.create_task(self._write(random.Random(f"{number} {self.acknowledged}"), share))
            try:
                yield
            finally:
                self._running.clear()

    async def _write(self, chance: random.Random, share: list[str]) -> None:
        while self._running.is_set():
            await self._write_one(chance.choice(share), f"{chance.getrandbits(48):x}")
            await asyncio.sleep(chance.uniform(0, 0.02))

    async def _write_one(self, name: str, value: str) -> None:
        client, known = self._world.client, self.known[name]
        try:
            if not known.is_created:
                sent = client.create(lamp(name, value, child=True))
            else:
                # The version keeps a write that got no answer from landing after a later one.
                there = await client.get(LAMPS, name, namespace=NAMESPACE, timeout=10)
                self._check(name, there)
                patch = {"metadata": {"resourceVersion": there["metadata"]["resourceVersion"]}}
                body = MergePatch({**patch, "spec": {"value": value}})
                sent = client.patch(LAMPS, name, body, namespace=NAMESPACE, timeout=10)
        except NotFound:
            raise Violation(f"{name} was acknowledged and is gone") from None
        except SetpointError:
            await asyncio.sleep(0.05)
            return  # nothing was written
        known.unanswered.add(value)
        try:
            got = await sent
        except Conflict:
            # The operator's status was faster; or, of a create, the one that got no answer has happened.
            known.is_created = True
            known.unanswered.discard(value)
            self.refused += 1
        except ApiError as error:
            raise Violation(f"write of {name}: {error}") from error
        except SetpointError:
            self.unanswered += 1
            await asyncio.sleep(0.05)
        else:
            known.is_created = True
            known.acknowledged, known.unanswered = value, set()
            self.acknowledged += 1
            self.revisions[int(got["metadata"]["resourceVersion"])] = (name, value)

    def _check(self, name: str, there: dict[str, Any]) -> None:
        found = there["spec"]["value"]
        if found not in self.known[name].possible:
            raise Violation(f"{name} is {found!r}, and {self.known[name]} was written")
        self.known[name].acknowledged, self.known[name].unanswered = found, set()

    async def check(self, seconds: float) -> float:
        """Compare all with what is known, and wait until the operator has converged; for how many seconds."""
        for name, known in self.known.items():
            if known.is_created:
                self._check(name, await self._world.client.get(LAMPS, name, namespace=NAMESPACE))

        async def has_converged() -> object:
            await self._world.keep_operator()
            lamps = {each["metadata"]["name"]: each for each in await self._listed(LAMPS)}
            maps = {each["metadata"]["name"]: each for each in await self._listed(MAPS)}
            created = {name for name, known in self.known.items() if known.is_created}
            if not created <= lamps.keys():
                raise Violation(f"acknowledged and gone: {sorted(created - lamps.keys())}")
            late = [
                name
                for name, each in lamps.items()
                if (each.get("status") or {}).get("value") != each["spec"]["value"]
                or maps.get(name, {}).get("data", {}).get("value") != each["spec"]["value"]
            ]
            more = maps.keys() - lamps.keys() - {"kube-root-ca.crt"}
            if more:
                raise Violation(f"ConfigMaps of no Lamp: {sorted(more)}")
            return not late or f"{len(late)} Lamps are late, such as {lamps[late[0]]}"

        return await until("the operator converges", has_converged, seconds)

    async def _listed(self, kind: Any) -> list[dict[str, Any]]:
        return await self._world.client.list(kind, namespace=NAMESPACE)
