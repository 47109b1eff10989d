"""``setpoint run OPERATOR.py``: runs the operators of a file on the cluster that kubeconfig or the pod names.

The file is imported as a module of its own name, with its folder first on the path, as Python does for a
script; every ``Operator`` in it is run, all by one manager.  What the file raises is shown from the file on:
how we came to import it is nobody's concern.

The process ends when told to (SIGTERM, SIGINT), whatever hangs: a thread that does not end is given
``EXIT_TIMEOUT`` seconds.  What runs, and how, is in ``manager/``.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import threading
import traceback
from collections.abc import Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import click

from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.errors import DeadlineExceeded
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.logs import configure
from setpoint.manager.manager import GRACEFUL_SHUTDOWN, Manager
from setpoint.operator import Operator

ESTABLISH_TIMEOUT = 30.0
EXIT_TIMEOUT = 5.0

log = logging.getLogger("setpoint.run")

_HELP = """Run the operators of a Python file.

OPERATOR.py is imported, and every Operator in it is run, until SIGTERM or Ctrl-C; a second one ends the
process at once.

\b
    setpoint run webapp.py
    setpoint run webapp.py --namespace shop --leader-elect --health :8081 --metrics :8080 --log-format json
"""


@click.command(help=_HELP)
@click.argument("operator", metavar="OPERATOR.py", type=click.Path(path_type=Path))
@click.option(
    "-n", "--namespace", "namespaces", multiple=True, help="Watch only this namespace; several may be given."
)
@click.option("--leader-elect", is_flag=True, help="Of several replicas, have one lead; by a Lease.")
@click.option("--lease-namespace", help="Where the Lease is; the context's or pod's own unless given.")
@click.option(
    "--metrics",
    metavar="ADDR",
    default="",
    help="Serve /metrics there: host:port, or :port for every interface.",
)
@click.option("--health", metavar="ADDR", default="", help="Serve /healthz and /readyz there.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How log lines look.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Which log lines there are.",
)
@click.option(
    "--graceful-shutdown",
    type=click.FloatRange(min=0),
    default=GRACEFUL_SHUTDOWN,
    show_default=True,
    metavar="SECONDS",
    help="How long work in hand may take when told to stop.",
)
@click.option(
    "--install-crds", is_flag=True, help="Install the CustomResourceDefinitions of its kinds first."
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where the clusters are described.")
@click.option("--context", help="Which of them to use; the current one unless given.")
def run(
    *,
    operator: Path,
    namespaces: tuple[str, ...],
    lease_namespace: str | None,
    metrics: str,
    health: str,
    log_format: Literal["text", "json"],
    log_level: str,
    graceful_shutdown: float,
    kubeconfig: Path | None,
    context: str | None,
    leader_elect: bool,
    install_crds: bool,
) -> None:
    operators = operators_of(load(operator), operator)
    configure(log_format, level=log_level.upper())
    name = operators[0].name
    election = LeaderElection(name, lease_namespace or "") if leader_elect else None
    try:
        manager = Manager(
            Config.load(kubeconfig, context),
            name=name,
            namespaces=namespaces or None,
            leader_election=election,
            metrics_address=metrics,
            health_address=health,
            graceful_shutdown=graceful_shutdown,
            why_socket=True,
        )
        for each in operators:
            each.add_to(manager)
    except ValueError as error:  # a wrong address, two controllers of one name
        raise click.ClickException(str(error)) from error
    run_to_the_end(_run(manager, operators, install_crds=install_crds))


async def _run(manager: Manager, operators: list[Operator], *, install_crds: bool) -> None:
    where = manager.plain_client.config.server
    if install_crds:
        await install(manager.plain_client, [crd for each in operators for crd in each.crds()])
    names = ", ".join(controller.name for controller in manager.controllers)
    log.info("%s runs on %s; controllers: %s", manager.name, where, names)
    try:
        await manager.run(handle_signals=True)
    except ExceptionGroup as group:
        raise click.ClickException("; ".join(str(error) for error in group.exceptions)) from group
    log.info("%s has ended in order", manager.name)


# Loading.


def load(path: Path) -> ModuleType:
    """Import a file; what goes wrong in it is told as Python would tell it of a script."""
    if not path.is_file():
        raise click.ClickException(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(_module_name(path), path)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"{path}: is not a Python file (its name does not end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - shown as a whole
        del sys.modules[spec.name]
        click.echo(_told(error, path), err=True, nl=False)
        raise click.ClickException(f"{path}: could not be imported; see above") from None
    return module


def operators_of(module: ModuleType, path: Path) -> list[Operator]:
    """The operators of a module, in the order in which they stand there."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, Operator)}
    if not found:
        raise click.ClickException(
            f'{path}: there is no Operator in it; write operator = Operator("{path.stem}") '
            "and decorate functions with @operator.controller(…)"
        )
    return list(found.values())


def _module_name(path: Path) -> str:
    """The file's own; unless Python knows another module by it."""
    name = path.stem if path.stem.isidentifier() else "operator_file"
    while name in sys.modules:
        name += "_"
    return name


def _told(error: BaseException, path: Path) -> str:
    """The traceback, from the file on."""
    told = traceback.TracebackException.from_exception(error)
    frames = list(told.stack)
    ours = next((n for n, frame in enumerate(frames) if Path(frame.filename) == path), len(frames))
    told.stack = traceback.StackSummary.from_list(frames[ours:])
    return "".join(told.format())


# Definitions.


async def install(client: Client, crds: list[dict[str, Any]]) -> None:
    """Apply CustomResourceDefinitions, and wait until the server serves them."""
    for crd in crds:
        name = crd["metadata"]["name"]
        await client.apply(crd, force=True)
        log.info("CustomResourceDefinition %s is installed", name)
    try:
        async with asyncio.timeout(ESTABLISH_TIMEOUT):
            for crd in crds:
                while not await _is_served(client, crd):  # noqa: ASYNC110 - no event of ours
                    await asyncio.sleep(0.1)
    except TimeoutError:
        names = ", ".join(crd["metadata"]["name"] for crd in crds)
        raise DeadlineExceeded(f"install {names}", f"not served after {ESTABLISH_TIMEOUT:g} s") from None


async def _is_served(client: Client, crd: dict[str, Any]) -> bool:
    found = await ignore_not_found(client.get(CustomResourceDefinition, crd["metadata"]["name"]))
    status = None if found is None else found.status
    conditions = (status and status.conditions) or []
    return any(each.type == "Established" and each.status == "True" for each in conditions)


# The end.


def run_to_the_end(main: Coroutine[Any, Any, None]) -> None:
    """Run it, and end: what is left hanging then does not keep the process."""
    before = set(threading.enumerate())
    hangs = threading.Timer(EXIT_TIMEOUT, os._exit, [1])
    hangs.daemon = True
    runner = asyncio.Runner()
    try:
        runner.run(main)
    finally:
        hangs.start()
        runner.close()
        left = set(threading.enumerate()) - before - {hangs}
        if all(thread.daemon for thread in left):  # Python waits for the others
            hangs.cancel()
            hangs.join()
