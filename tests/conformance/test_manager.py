"""The manager on the real kube-apiserver: real processes, killed, paused and told to stop."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.times import MicroTime
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.errors import LeadershipLost
from setpoint.kube.coordination.v1 import Lease, LeaseSpec
from setpoint.kube.core.v1 import ConfigMap, Namespace
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager
from setpoint.testing.kube import ControlPlane
from setpoint.testing.proxy import Proxy
from setpoint.testing.waiting import eventually
from tests.manager import candidate

LEASE = 8  # seconds: long enough for a busy machine, short enough to wait for
SHORT = LeaderElection("candidates", lease_duration=LEASE, renew_deadline=LEASE * 0.75, retry_period=0.5)


async def create_released_lease(client: Client, namespace: str) -> None:
    """A Lease that an earlier leader released: a candidate acquires it at once."""
    released = MicroTime.of(datetime.now(UTC))
    spec = LeaseSpec(holder_identity="", lease_duration_seconds=1, acquire_time=released, renew_time=released)
    await client.create(Lease(metadata=ObjectMeta(name=SHORT.name, namespace=namespace), spec=spec))


@asynccontextmanager
async def connected(kube: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    async with Client(Config.from_kubeconfig(kube.kubeconfig)) as client:
        namespace = f"test-{secrets.token_hex(4)}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await create_released_lease(client, namespace)
        yield client, namespace


class Replica:
    """A process of ``tests/manager/candidate.py``."""

    def __init__(self, kube: ControlPlane, client: Client, namespace: str, name: str, log: Path) -> None:
        self.name = name
        self._client, self._namespace = client, namespace
        self._log = log / f"{name}.log"
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, candidate.__file__, str(kube.kubeconfig), namespace, name, str(LEASE)],
                stdout=output,
                stderr=output,
                cwd=Path(__file__).parents[2],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            )

    async def data(self) -> dict[str, str]:
        """What it has written so far."""
        found = await ignore_not_found(self._client.get(ConfigMap, self.name, namespace=self._namespace))
        if found is None:
            return {}
        return {**(found.data or {}), "version": found.metadata.resource_version or ""}

    async def leads(self) -> dict[str, str]:
        """Wait until it has written, from its task and from its thread."""

        async def look() -> dict[str, str] | None:
            assert self.process.poll() is None, self._log.read_text()
            data = await self.data()
            return data if {"began", "task", "thread"} <= data.keys() else None

        return await eventually(look, timeout=60, what=f"{self.name} leads")

    async def ends(self) -> int:
        """Wait until the process has ended; its exit code."""
        await eventually(lambda: self.process.poll() is not None, timeout=60, what=f"{self.name} ends")
        return self.process.wait()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@contextmanager
def replicas(
    kube: ControlPlane, client: Client, namespace: str, log: Path
) -> Iterator[Callable[[str], Replica]]:
    """Makes replicas, none of which outlives the block."""
    with ExitStack() as ends:

        def start(name: str) -> Replica:
            replica = Replica(kube, client, namespace, name, log)
            ends.callback(replica.kill)
            return replica

        yield start


def is_after(second: dict[str, str], first: dict[str, str]) -> bool:
    """Whether all that one wrote is later than all that the other did."""
    return int(second["began"]) > int(first["version"])


@pytest.mark.deadline(180)
async def test_when_the_leader_is_killed_the_other_leads_after_the_lease_has_run_out(
    kube: ControlPlane, tmp_path: Path
) -> None:
    async with connected(kube) as (client, namespace):
        with replicas(kube, client, namespace, tmp_path) as start:
            first = start("first")
            await first.leads()
            second = start("second")
            lease = await client.get(Lease, "candidates", namespace=namespace)
            assert lease.spec.holder_identity == "first"
            assert lease.spec.lease_duration_seconds == LEASE
            transitions = lease.spec.lease_transitions or 0
            first.process.kill()
            await first.ends()
            killed = asyncio.get_running_loop().time()
            wrote = await first.data()
            assert is_after(await second.leads(), wrote)
            assert asyncio.get_running_loop().time() - killed > LEASE * 0.9
            lease = await client.get(Lease, "candidates", namespace=namespace)
            assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("second", transitions + 1)


@pytest.mark.deadline(180)
async def test_a_leader_that_was_paused_writes_nothing_when_it_goes_on(
    kube: ControlPlane, tmp_path: Path
) -> None:
    """Contract 12, for a process that does not know that time has passed."""
    async with connected(kube) as (client, namespace):
        with replicas(kube, client, namespace, tmp_path) as start:
            first = start("first")
            await first.leads()
            second = start("second")
            first.process.send_signal(signal.SIGUSR1)  # it pauses
            led = await second.leads()
            wrote = await first.data()
            assert is_after(led, wrote)
            first.process.send_signal(signal.SIGCONT)
            assert await first.ends() == 3, "it ends with LeadershipLost"
            assert await first.data() == wrote
            assert second.process.poll() is None


@pytest.mark.deadline(180)
async def test_a_leader_that_is_told_to_stop_gives_the_lease_back_at_once(
    kube: ControlPlane, tmp_path: Path
) -> None:
    async with connected(kube) as (client, namespace):
        with replicas(kube, client, namespace, tmp_path) as start:
            first = start("first")
            await first.leads()
            first.process.terminate()
            assert await first.ends() == 0
            lease = await client.get(Lease, "candidates", namespace=namespace)
            assert lease.spec.holder_identity in ("", None)
            assert lease.spec.lease_duration_seconds == 1
            assert is_after(await start("second").leads(), await first.data())


@pytest.mark.deadline(180)
async def test_of_several_candidates_exactly_one_leads_at_any_time(kube: ControlPlane) -> None:
    async with connected(kube) as (_, namespace):
        config = Config.from_kubeconfig(kube.kubeconfig)
        election = replace(SHORT, namespace=namespace)
        managers = [Manager(config, leader_election=election) for _ in range(4)]
        order: list[int] = []
        async with asyncio.TaskGroup() as tasks:
            running = {each: tasks.create_task(each.run()) for each in managers}
            while running:
                leading = [each for each in running if each.is_leading]
                assert len(leading) <= 1
                if leading and managers.index(leading[0]) not in order:
                    order.append(managers.index(leading[0]))
                    leading[0].stop()
                for each in [each for each, task in running.items() if task.done()]:
                    del running[each]
                await asyncio.sleep(0.01)
        assert sorted(order) == [0, 1, 2, 3], "each had its turn"


@pytest.mark.deadline(180)
async def test_a_leader_that_is_cut_off_ends_before_another_leads(kube: ControlPlane) -> None:
    """Half-open: nothing arrives, and no connection breaks."""
    async with connected(kube) as (_, namespace):
        config = Config.from_kubeconfig(kube.kubeconfig)
        election = replace(SHORT, namespace=namespace)
        async with Proxy.of(config) as proxy:
            cut_off = Manager(proxy.config(config), leader_election=election)
            other = Manager(config, leader_election=election)
            losing = asyncio.create_task(cut_off.run())
            await eventually(lambda: cut_off.is_leading)
            async with other:
                proxy.freeze()
                with pytest.raises(LeadershipLost, match="could not be renewed"):
                    await losing
                assert not other.is_leading
                await eventually(lambda: other.is_leading)


async def test_who_stands_by_takes_a_lease_that_is_given_back_without_waiting_for_its_next_look(
    kube: ControlPlane,
) -> None:
    """Looks are a minute apart, so only the watch can have told."""
    async with connected(kube) as (client, namespace):
        patient = LeaderElection(
            "candidates", namespace, lease_duration=180, renew_deadline=120, retry_period=60
        )
        first = Manager(client=client, leader_election=replace(patient, identity="first"))
        second = Manager(client=client, leader_election=replace(patient, identity="second"))
        leading = asyncio.create_task(first.run())
        await eventually(lambda: first.is_leading)
        async with second:
            await eventually(lambda: second.election and second.election.leader == "first")
            first.stop()
            await leading
            await eventually(lambda: second.is_leading)


OPERATOR = '''
"""Greets."""
import time
from setpoint.api import CustomResource, Model
from setpoint.kube.core.v1 import ConfigMap
from setpoint.api import ObjectMeta
from setpoint.operator import Operator
from setpoint.controller.context import Context

class GreetingSpec(Model):
    words: str

class GreetingStatus(Model):
    said: str = ""

class Greeting(CustomResource, group="GROUP", version="v1"):
    spec: GreetingSpec
    status: GreetingStatus = GreetingStatus()

operator = Operator("greeter")

@operator.controller(Greeting, owns=[ConfigMap])
async def reconcile(greeting: Greeting, ctx: Context) -> None:
    if greeting.spec.words == "stuck":
        time.sleep(1000)
    await ctx.apply(ConfigMap(
        metadata=ObjectMeta(name=greeting.metadata.name, namespace=greeting.metadata.namespace),
        data={"words": greeting.spec.words},
    ))
    greeting.status.said = greeting.spec.words
'''


class Running:
    """``setpoint run`` in a process of its own."""

    def __init__(self, kube: ControlPlane, folder: Path, namespace: str, *options: str) -> None:
        self.group = f"{namespace}.setpoint.dev"
        file = folder / "greeter.py"
        file.write_text(OPERATOR.replace("GROUP", self.group))
        self._log = folder / "log"
        self._env = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
        self.command = [sys.executable, "-m", "setpoint.cli.main"]
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *self.command,
                    "run",
                    str(file),
                    "--kubeconfig",
                    str(kube.kubeconfig),
                    "--namespace",
                    namespace,
                    "--log-format",
                    "json",
                    *options,
                ],
                stdout=output,
                stderr=output,
                env=self._env,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self) -> list[dict[str, Any]]:
        text = self._log.read_text()
        assert self.process.poll() is None or self.process.returncode == 0, text
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def address(self, what: str) -> str | None:
        """Where it said that it serves something."""
        said = [line["msg"] for line in self.log() if line["msg"].startswith(f"{what} at ")]
        return str(said[0]).removeprefix(f"{what} at ") if said else None

    def greeting(self, name: str, words: str) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Greeting",
            "metadata": {"name": name},
            "spec": {"words": words},
        }

    def why(self, *arguments: str) -> str:
        asked = subprocess.run(
            [*self.command, "why", *arguments], env=self._env, capture_output=True, check=False, timeout=60
        )
        assert asked.returncode == 0, asked.stderr
        return asked.stdout.decode()

    async def ends(self, *, impatiently: bool = False) -> int:
        """Wait until it has ended; impatiently, by telling it again and again."""

        def has_ended() -> bool:
            if impatiently and self.process.poll() is None:
                self.process.terminate()
            assert self.process.poll() is not None, self._log.read_text()[-900:]
            return True

        await eventually(has_ended, timeout=60, what="it ends")
        return self.process.returncode


async def get(url: str) -> tuple[int, str]:
    """As a kubelet would: curl, in a word."""

    def ask() -> tuple[int, str]:
        import urllib.error
        import urllib.request

        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await asyncio.to_thread(ask)


@pytest.mark.deadline(180)
async def test_setpoint_run_installs_reconciles_tells_how_it_is_and_ends_when_told(
    kube: ControlPlane, tmp_path: Path
) -> None:
    addresses = ("--health", "127.0.0.1:0", "--metrics", "localhost:0")
    async with connected(kube) as (client, namespace):
        with Running(kube, tmp_path, namespace, "--install-crds", "--leader-elect", *addresses) as operator:
            health = await eventually(lambda: operator.address("health"), timeout=60)
            metrics = await eventually(lambda: operator.address("metrics"))

            async def is_ready() -> bool:
                status, text = await get(f"{health}/readyz?verbose")
                assert status == 200, text
                return True

            await eventually(is_ready, timeout=60)
            await client.create(operator.greeting("hello", "good day"), namespace=namespace)

            async def is_made() -> bool:
                made = await client.get(ConfigMap, "hello", namespace=namespace)
                return made.data == {"words": "good day"}

            await eventually(is_made, timeout=60)
            assert (await get(f"{health}/healthz"))[0] == 200
            text = (await get(f"{metrics}/metrics"))[1]
            assert 'controller_runtime_reconcile_total{controller="greeting",result="success"}' in text
            assert 'leader_election_master_status{name="greeter"} 1.0' in text

            told = await asyncio.to_thread(operator.why, "greeting", f"{namespace}/hello")
            assert f"greeting {namespace}/hello, by greeter" in told
            assert "success in" in told

            operator.process.terminate()
            assert await operator.ends() == 0
            lines = operator.log()
            assert lines[-1]["msg"] == "greeter has ended in order"
            assert {"level", "ts", "logger", "msg"} <= lines[-1].keys()


@pytest.mark.deadline(180)
async def test_a_second_signal_ends_the_process_at_once_even_if_the_loop_is_stuck(
    kube: ControlPlane, tmp_path: Path
) -> None:
    async with connected(kube) as (client, namespace):
        with Running(kube, tmp_path, namespace, "--install-crds", "--health", "127.0.0.1:0") as operator:
            health = await eventually(lambda: operator.address("health"), timeout=60)
            await eventually(lambda: _create(client, operator, namespace), timeout=60)

            async def is_stuck() -> bool:
                return (await get(f"{health}/healthz"))[0] == 500

            await eventually(is_stuck, timeout=60, what="liveness fails")
            operator.process.send_signal(signal.SIGINT)
            assert await operator.ends(impatiently=True) == 1


async def _create(client: Client, operator: Running, namespace: str) -> bool:
    await client.create(operator.greeting("stuck", "stuck"), namespace=namespace)
    return True
