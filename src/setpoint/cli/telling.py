"""What ``setpoint demo`` does and says: a cluster, the WebApp operator, and five things that happen to them.

1. A step is over when what it announces was seen on the API server; each has ``STEP_TIMEOUT`` seconds, and
   one that is not seen ends the demo with exit code 1, saying what was seen in its place.
2. Every step says the kubectl command that does the same.
3. Ctrl-C ends it in order: with 130 before the last step was seen, with 0 after.

The operator is ``examples/webapp/webapp.py``, of the checkout or as it came with the package.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from setpoint.api import yaml
from setpoint.api.forms import Untyped
from setpoint.api.names import GroupVersionKind
from setpoint.cli.loading import Loaded, load
from setpoint.cli.running import install, run_to_the_end
from setpoint.cli.serving import Where, serving, stopped
from setpoint.client.client import Client
from setpoint.errors import SetpointError
from setpoint.kube.apps.v1 import Deployment, ReplicaSet
from setpoint.kube.core.v1 import Pod, Service
from setpoint.manager.manager import Manager
from setpoint.server.secrets import write_private
from setpoint.testing.waiting import eventually

STEP_TIMEOUT = 30.0
INTERRUPTED = 130

NAME = "shop"
REPLICAS = 3
WEBAPP = Untyped(GroupVersionKind("demo.setpoint.dev", "v1", "WebApp"))
MANIFEST: dict[str, Any] = {
    "apiVersion": "demo.setpoint.dev/v1",
    "kind": "WebApp",
    "metadata": {"name": NAME, "namespace": "default"},
    "spec": {"image": "nginx:1.29", "replicas": REPLICAS},
}


def example() -> Path:
    """The file of the operator: it came with the package, or is in the checkout that the package is in."""
    package = Path(__file__).parent.parent
    places = (package / "examples" / "webapp.py", package.parent.parent / "examples" / "webapp" / "webapp.py")
    for path in places:
        if path.is_file():
            return path
    raise click.ClickException(f"the example is missing: neither {places[0]} nor {places[1]} is there")


def tell(where: Where, *, ends: bool) -> int:
    """Run the demo; its exit code."""
    logging.basicConfig(level=logging.ERROR)
    status = INTERRUPTED

    async def run() -> None:
        nonlocal status
        status = await _run(where, ends=ends)

    run_to_the_end(run())
    return status


async def _run(where: Where, *, ends: bool) -> int:
    began = time.monotonic()
    loaded = load(example())
    with stopped() as stop:
        async with serving(where) as (cluster, served), _operating(loaded, cluster.client):
            click.echo(f"A Kubernetes cluster runs in this process, at {served.url}, after {_since(began)}.")
            click.echo(f"So does {_short(loaded.path)}: a Deployment and a Service for every WebApp.")
            if not await _before(stop, _tell_all(steps(cluster.client))):
                return INTERRUPTED
            if ends:
                click.echo("\nEvery step was seen.")
            else:
                manifest = where.kubeconfig.with_name("webapp.yaml")
                write_private(manifest, yaml.dump(MANIFEST).encode())
                _invite(where.kubeconfig, manifest, loaded.path)
                await stop.wait()
    return 0


@asynccontextmanager
async def _operating(loaded: Loaded, client: Client) -> AsyncIterator[None]:
    """Run the operators beside the block."""
    await install(client, loaded.crds())
    manager = Manager(client=client, name=loaded.operators[0].name, graceful_shutdown=5.0, why_socket=True)
    for operator in loaded.operators:
        operator.add_to(manager)
    async with manager:
        yield


async def _before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work, unless told to stop before it is done; whether it was."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


# The steps.


@dataclass(frozen=True)
class Step:
    """Something that happens, and what is to be seen then."""

    title: str
    command: str
    do: Callable[[], Awaitable[object]]
    seen: Callable[[], Awaitable[str | None]]  # what was seen, in words; None: not yet


def steps(client: Client) -> list[Step]:
    """What happens, in order."""
    before: dict[str, Any] = {}  # what a step must remember of how it was

    async def create() -> None:
        await client.create(MANIFEST)

    async def is_ready() -> str | None:
        webapp = await client.get(WEBAPP, NAME)
        pods = await client.list(Pod)
        if not webapp.get("status", {}).get("ready") or len(pods) != REPLICAS:
            return None
        condition = webapp["status"]["conditions"][0]
        return f"it has a Deployment, a ReplicaSet, {len(pods)} Pods and a Service; {condition['message']}"

    async def scale() -> None:
        await client.scale(Deployment, NAME, 7, field_manager="kubectl")

    async def is_put_back() -> str | None:
        deployment = await client.get(Deployment, NAME)
        is_settled = deployment.status.replicas == deployment.status.available_replicas == REPLICAS
        if deployment.spec.replicas != REPLICAS or not is_settled:
            return None
        owner = next(
            (
                each.manager
                for each in deployment.metadata.managed_fields or []
                if "f:replicas" in str(each.fields_v1) and not each.subresource
            ),
            "nobody",
        )
        return f"{owner} put it back to {REPLICAS}"

    async def delete_service() -> None:
        before["service"] = (await client.get(Service, NAME)).metadata.uid
        await client.delete(Service, NAME)

    async def is_back() -> str | None:
        service = await client.get(Service, NAME)
        return "it is back, and a new one" if service.metadata.uid != before["service"] else None

    async def delete() -> None:
        await client.delete(WEBAPP, NAME)

    async def is_collected() -> str | None:
        left: list[object] = [*await client.list(WEBAPP)]
        for kind in (Deployment, ReplicaSet, Pod):
            left += await client.list(kind)
        left += [each for each in await client.list(Service) if each.metadata.name == NAME]
        return None if left else "its Deployment, ReplicaSet, Pods and Service are gone with it"

    return [
        Step("You create a WebApp.", "kubectl apply -f webapp.yaml", create, is_ready),
        Step(
            "Someone scales its Deployment by hand.",
            f"kubectl scale deployment {NAME} --replicas=7",
            scale,
            is_put_back,
        ),
        Step("Someone deletes its Service.", f"kubectl delete service {NAME}", delete_service, is_back),
        Step("You delete the WebApp.", f"kubectl delete webapp {NAME}", delete, is_collected),
    ]


async def _tell_all(told: list[Step]) -> None:
    for number, step in enumerate(told, 1):
        click.echo()
        click.echo(click.style(f"{number}. {step.title}", bold=True))
        click.echo(click.style(f"   $ {step.command}", dim=True))
        began = time.monotonic()
        try:
            await step.do()
            seen = await eventually(step.seen, timeout=STEP_TIMEOUT, what="what it should lead to")
        except (AssertionError, SetpointError) as error:
            raise click.ClickException(f"step {number}, {step.command!r}: {error}") from error
        click.echo(f"   {click.style('✓', fg='green')} {seen}. ({_since(began)})")


def _invite(kubeconfig: Path, manifest: Path, operator: Path) -> None:
    click.echo("\nEvery step was seen. The cluster stays until Ctrl-C; in another terminal, try:\n")
    for line in (
        f"export KUBECONFIG={kubeconfig}",
        f"kubectl apply -f {manifest}",
        "kubectl get webapps,deployments,pods,services",
        f"kubectl scale webapp {NAME} --replicas=5",
        f"{_program()} why webapp default/{NAME}",
    ):
        click.echo(f"    {line}")
    if shutil.which("kubectl") is None:
        click.echo("\nkubectl is not installed here; https://kubernetes.io/docs/tasks/tools tells how.")
    click.echo(f"\nThen change the operator and watch: {_program()} dev {_short(operator)}")


def _short(path: Path) -> str:
    """As one would type it from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _program() -> str:
    """What to type to have this command: its name, where the shell finds it so."""
    started = Path(sys.argv[0]).absolute()
    found = shutil.which("setpoint")
    if started.name != "setpoint" or (found is not None and Path(found).resolve() == started.resolve()):
        return "setpoint"
    return _short(started)


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.2f} s"
