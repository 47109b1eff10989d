"""``setpoint up``: a cluster, until it is told to stop.

It says one line when it is ready, with the command to try next.  What it is made of is in ``cluster/``, how
it ends in ``serving.py``.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Literal

import click

from setpoint.cli.serving import Where, place, serving, stopped

_HELP = """Run a Kubernetes cluster, on this machine and for this user.

It is an API server, the controllers that every cluster has, and a node on which pods come and go but nothing
really runs.  It keeps everything in memory, or in a directory with --data, and runs until Ctrl-C.

\b
    setpoint up
    setpoint up --data ./cluster --port 6443 --kubeconfig ./kubeconfig
    setpoint up --controllers none                    # an API server alone
    setpoint up --controllers '*,-node-stand-in'      # pods stay Pending
"""


@click.command(help=_HELP)
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Keep everything there; else in memory."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Listen there; a free port unless given."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a kubeconfig there; with --data it is DIR/kubeconfig unless given.",
)
@click.option(
    "--controllers",
    default="*",
    help="Which to run, by name, with commas: * is all, -NAME leaves one out, none is none.",
)
@click.option(
    "--token",
    default="",
    help="The administrator's bearer token; one is made unless given.  Other users of this machine can "
    "see it in the list of processes: prefer SETPOINT_TOKEN or --token-file.",
    envvar="SETPOINT_TOKEN",
)
@click.option(
    "--token-file",
    "token_path",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Read the administrator's bearer token from there.",
)
@click.option(
    "--authorization",
    type=click.Choice(["rbac", "always-allow"]),
    default="rbac",
    help="Who may do what: as roles and bindings say (rbac, unless given), or everyone everything.",
)
@click.option(
    "--token-auth-file",
    "token_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help='Further users: lines of token,user,uid,"group1,group2", as kube-apiserver reads them.',
)
@click.option(
    "--service",
    "services",
    multiple=True,
    metavar="NAMESPACE/NAME=HOST:PORT",
    help="Where a Service really is, for webhooks that name it; may be given several times.",
)
def up(
    *,
    data: Path | None,
    port: int,
    kubeconfig: Path | None,
    controllers: str,
    token: str,
    token_path: Path | None,
    authorization: Literal["rbac", "always-allow"],
    token_file: Path | None,
    services: tuple[str, ...],
) -> None:
    if token_path is not None:
        if token:
            raise click.UsageError("give --token (or SETPOINT_TOKEN) or --token-file, not both")
        token = _token(token_path)
    there = _services(services)
    with place(data, kubeconfig) as file:
        asyncio.run(_run(Where(file, data, port, controllers, token, authorization, token_file, there)))


def _token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"cannot read {path}: {error}", param_hint="--token-file") from None
    if not token or len(token.split()) > 1:
        raise click.BadParameter(f"{path} does not hold one token", param_hint="--token-file")
    return token


def _services(told: tuple[str, ...]) -> dict[str, str]:
    pairs = {service: address for service, _, address in (each.partition("=") for each in told)}
    for service, address in pairs.items():
        if "/" not in service or ":" not in address:
            raise click.BadParameter(
                f"{service}={address} is not NAMESPACE/NAME=HOST:PORT", param_hint="--service"
            )
    return pairs


async def _run(where: Where) -> None:
    began = time.monotonic()  # reading the code is most of the start
    async with serving(where) as (_, served):
        with stopped() as stop:
            click.echo(
                f"ready at {served.url} after {time.monotonic() - began:.2f} s; "
                f"try: kubectl --kubeconfig {where.kubeconfig} get namespaces"
            )
            await stop.wait()
