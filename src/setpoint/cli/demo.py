"""``setpoint demo``: the WebApp example from beginning to end, told step by step.

What happens is in ``telling.py``, which is read when there is something to do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

_HELP = """Watch an operator at work, in a cluster that lives in this process.

A WebApp is created and becomes ready; its Deployment is scaled by hand and put back; its Service is deleted
and returns; the WebApp is deleted and everything goes with it.  Then the cluster stays, for you to try.

\b
    setpoint demo
    setpoint demo --exit          ends after the last step, with 0 if every step was seen
    setpoint demo --port 6443 --kubeconfig ./kubeconfig
"""


@click.command(help=_HELP)
@click.option("--exit", "ends", is_flag=True, help="End after the last step.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Listen there; a free port unless given."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a kubeconfig there; else into a directory that goes with the cluster.",
)
def demo(*, ends: bool, port: int, kubeconfig: Path | None) -> None:
    from setpoint.cli.serving import Where, place  # noqa: PLC0415 - --help needs none of this
    from setpoint.cli.telling import tell  # noqa: PLC0415

    with place(None, kubeconfig) as file:
        status = tell(Where(file, port=port), ends=ends)
    sys.exit(status)
