"""``setpoint dev OPERATOR.py``: a cluster, the operator in it, loaded again on save, and a view of it all.

What happens is in ``developing.py``, which is read when there is something to do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

_HELP = """Run an operator in a cluster of its own, and watch it work.

A cluster is started in this process, the operator's CustomResourceDefinitions are installed, and OPERATOR.py
runs; save it, and the new code runs.  Ctrl-C ends all of it.

\b
    setpoint dev webapp.py
    setpoint dev webapp.py --manifest shop.yaml
    setpoint dev webapp.py --data ./cluster --port 6443 --kubeconfig ./kubeconfig
    setpoint dev webapp.py --controllers '*,-node-stand-in' --plain

From another terminal, kubectl and any other client work with the kubeconfig that is shown.
"""


@click.command(help=_HELP)
@click.argument("operator", metavar="OPERATOR.py", type=click.Path(path_type=Path))
@click.option(
    "-m",
    "--manifest",
    "manifests",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Apply the objects of this file, now and when it is saved; several may be given.",
)
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
    metavar="NAMES",
    help="Which built-in controllers run: *, none, or names; -NAME leaves one out.",
)
@click.option("--plain", is_flag=True, help="Lines in place of the live view.")
def dev(
    *,
    operator: Path,
    manifests: tuple[Path, ...],
    data: Path | None,
    port: int,
    kubeconfig: Path | None,
    controllers: str,
    plain: bool,
) -> None:
    from setpoint.cli.developing import Wanted, develop  # noqa: PLC0415 - --help needs none of this
    from setpoint.cli.serving import Where, place  # noqa: PLC0415

    is_live = not plain and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    with place(data, kubeconfig) as file:
        develop(Wanted(operator, manifests, Where(file, data, port, controllers), is_live))
    click.echo("ended in order")
