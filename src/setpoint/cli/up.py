"""``setpoint up``: a Kubernetes API server, until it is told to stop.

It says one line when it is ready, with the command to try next.  The first SIGINT or SIGTERM ends it in
order, the second at once.  What it serves, and how, is in ``server/``.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

_HELP = """Run a Kubernetes API server, on this machine and for this user.

It keeps everything in memory, or in a directory with --data, and runs until Ctrl-C.

\b
    setpoint up
    setpoint up --data ./cluster --port 6443 --kubeconfig ./kubeconfig
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
    "--token",
    default="",
    help="The administrator's bearer token; one is made unless given.",
    envvar="SETPOINT_TOKEN",
)
def up(*, data: Path | None, port: int, kubeconfig: Path | None, token: str) -> None:
    from setpoint.server.storage.folder import CannotOpen  # noqa: PLC0415 - only this command needs a server

    with _place(data, kubeconfig) as file:
        try:
            asyncio.run(_run(data, port, file, token))
        except CannotOpen as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            raise click.ClickException(f"listen on 127.0.0.1:{port}: {error.strerror or error}") from error


@contextmanager
def _place(data: Path | None, given: Path | None) -> Iterator[Path]:
    """Where the kubeconfig goes; nobody's after the server has gone, where nothing else stays."""
    if given is not None:
        yield given.absolute()
    elif data is not None:
        yield data.absolute() / "kubeconfig"
    else:
        folder = Path(tempfile.mkdtemp(prefix="setpoint-"))
        try:
            yield folder / "kubeconfig"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def _run(data: Path | None, port: int, kubeconfig: Path, token: str) -> None:
    began = time.monotonic()  # reading the code is most of the start
    from setpoint.server.secrets import write_private  # noqa: PLC0415
    from setpoint.server.server import ApiServer  # noqa: PLC0415

    async with ApiServer(data, token=token) as server, server.serve(port=port) as served:
        write_private(kubeconfig, served.kubeconfig.encode())
        with _stopped() as stop:
            click.echo(
                f"ready at {served.url} after {time.monotonic() - began:.2f} s; "
                f"try: kubectl --kubeconfig {kubeconfig} get namespaces"
            )
            await stop.wait()


@contextmanager
def _stopped() -> Iterator[asyncio.Event]:
    """Set by the first signal; the second finds no handler of ours any more, and ends the process."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)

    def handle() -> None:
        stop.set()
        for each in signals:
            loop.remove_signal_handler(each)

    for each in signals:
        loop.add_signal_handler(each, handle)
    try:
        yield stop
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
