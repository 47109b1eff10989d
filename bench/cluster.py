"""How long a cluster in a box takes to bring many pods up, and to be rid of them again.

``setpoint up`` runs in a process of its own, kept on disk.  Deployments are created, until all their pods are
Running and Ready; then they are deleted, until nothing is left.  KWOK, which is made for this, gives itself
60 s up and 90 s down for 10,000 pods, with the controllers of Kubernetes on several cores.

    python -m bench.cluster
    python -m bench.cluster --pods 10000 --memory
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from setpoint.api.forms import metadata_only
from setpoint.api.meta import LabelSelector, ObjectMeta
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from setpoint.kube.core.v1 import Container, Pod, PodSpec, PodTemplateSpec

PODS = 10_000
EACH = 500  # pods of a Deployment
LOOK_EVERY = 0.25
LIMIT = 600.0  # seconds, after which it is over whatever has come of it


class Process:
    """A process under measurement."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        after_name = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / self._ticks

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * self._page


def deployment(number: int, replicas: int) -> Deployment:
    labels = {"app": f"web-{number}"}
    container = Container(name="web", image="registry.example.com/web:1")
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
    return Deployment(
        metadata=ObjectMeta(name=f"web-{number}", namespace="default"),
        spec=DeploymentSpec(
            replicas=replicas, selector=LabelSelector(match_labels=labels), template=template
        ),
    )


async def until(done: Callable[[], Awaitable[bool]]) -> float:
    """How many seconds it took."""
    began = time.monotonic()
    async with asyncio.timeout(LIMIT):
        while not await done():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(LOOK_EVERY)
    return time.monotonic() - began


async def measure(client: Client, process: Process, pods: int) -> dict[str, float]:
    count = max(1, pods // EACH)
    sizes = [pods // count + (number < pods % count) for number in range(count)]

    async def are_up() -> bool:
        found = await client.list(Deployment, namespace="default")
        return len(found) == count and all(
            (each.status.available_replicas or 0) == each.spec.replicas for each in found
        )

    async def are_gone() -> bool:
        for kind in (Deployment, ReplicaSet, Pod):
            if (await client.list_page(metadata_only(kind), page_size=1)).items:
                return False
        return True

    idle, spent = process.resident_bytes, process.cpu_seconds
    began = time.monotonic()
    for number, size in enumerate(sizes):
        await client.create(deployment(number, size))
    await until(are_up)
    found = {"up_s": time.monotonic() - began, "up_cpu_s": process.cpu_seconds - spent}
    found["kb_per_pod"] = (process.resident_bytes - idle) / pods / 1024
    found["idle_mb"] = idle / 2**20
    running = await client.list(metadata_only(Pod), namespace="default")
    assert len(running) == pods, f"{len(running)} pods"

    spent, began = process.cpu_seconds, time.monotonic()
    for number in range(count):
        await client.delete(Deployment, f"web-{number}", namespace="default", propagation="Background")
    await until(are_gone)
    found |= {"down_s": time.monotonic() - began, "down_cpu_s": process.cpu_seconds - spent}
    found["left_mb"] = process.resident_bytes / 2**20
    return found


@asynccontextmanager
async def running(data: Path | None) -> AsyncIterator[tuple[Config, int]]:
    """Where the cluster is, and which process it is."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "setpoint.cli.main", "up", "--kubeconfig", str(kubeconfig)]
        command += ["--data", str(data)] if data else []
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            await process.stdout.readline()
            yield Config.load(kubeconfig), process.pid
        finally:
            process.terminate()
            await process.wait()


async def compare(pods: int, *, on_disk: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data" if on_disk else None
        async with running(data) as (config, pid), Client(config) as client:
            found = await measure(client, Process(pid), pods)
    rounded = {name: round(value, 1) for name, value in found.items()}
    print(json.dumps({"bench": "cluster", "pods": pods, "on_disk": on_disk, **rounded}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--memory", action="store_true", help="keep nothing on disk")
    asked = parser.parse_args()
    asyncio.run(compare(asked.pods, on_disk=not asked.memory))


if __name__ == "__main__":
    main()
