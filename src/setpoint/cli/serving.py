"""What the commands that run a cluster have in common: where its kubeconfig goes, how it ends, what is told.

1. The first SIGINT or SIGTERM ends it in order; the second at once, as if we had never been there.
2. A kubeconfig that nobody asked for goes when its server goes.
3. A port or a directory that cannot be had is told in a sentence, with what to do.

Used by ``up.py``, ``dev.py`` and ``demo.py``.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from setpoint.cluster.cluster import Cluster
    from setpoint.server.server import Authorization, Served

# How much is made before Python looks for what refers to itself.  A cluster keeps most of what it makes: as
# often as Python does unless told, the looks would be a fifth of its work.
_GARBAGE = (100_000, 50, 100)


@dataclass(frozen=True)
class Where:
    """What a cluster is kept in, where it listens, who runs in it, and where its kubeconfig is written."""

    kubeconfig: Path
    data: Path | None = None
    port: int = 0
    controllers: str = "*"
    token: str = ""
    authorization: Authorization = "rbac"
    token_file: Path | None = None
    services: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def place(data: Path | None, given: Path | None) -> Iterator[Path]:
    """Where the kubeconfig goes; nobody's after the server has gone, where nothing else stays."""
    if given is not None:
        yield given.absolute()
    elif data is not None:
        yield data.absolute() / "kubeconfig"
    else:
        import shutil  # noqa: PLC0415 - a server with a place of its own needs neither
        import tempfile  # noqa: PLC0415

        folder = Path(tempfile.mkdtemp(prefix="setpoint-"))
        try:
            yield folder / "kubeconfig"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def serving(where: Where) -> AsyncIterator[tuple[Cluster, Served]]:
    """A cluster that listens, with its kubeconfig written."""
    from setpoint.cluster.cluster import Cluster  # noqa: PLC0415 - --help needs none of this
    from setpoint.server.secrets import write_private  # noqa: PLC0415
    from setpoint.server.storage.folder import CannotOpen  # noqa: PLC0415

    names = _controllers(where.controllers)
    gc.set_threshold(*_GARBAGE)
    async with AsyncExitStack() as stack:
        try:
            cluster = Cluster(
                where.data,
                controllers=names,
                token=where.token,
                authorization=where.authorization,
                token_file=where.token_file,
                services=where.services,
            )
            await stack.enter_async_context(cluster)
            served = await stack.enter_async_context(cluster.serve(port=where.port))
        except (CannotOpen, ValueError) as error:  # ValueError: a file of tokens that is none
            raise click.ClickException(str(error)) from error
        except OSError as error:
            raise click.ClickException(_cannot_listen(where.port, error)) from error
        write_private(where.kubeconfig, served.kubeconfig.encode())
        yield cluster, served


def _controllers(text: str) -> list[str]:
    """Those that are wanted; where none are, their code is not read to find out."""
    if text.strip() in {"", "none"}:
        return []
    from setpoint.builtin.controllers import ALL  # noqa: PLC0415
    from setpoint.cluster.choosing import chosen  # noqa: PLC0415

    try:
        return chosen(text, ALL)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--controllers") from error


def _cannot_listen(port: int, error: OSError) -> str:
    hint = "; leave --port out to have a free one" if error.errno == errno.EADDRINUSE else ""
    return f"listen on 127.0.0.1:{port}: {error.strerror or error}{hint}"


@contextmanager
def stopped() -> Iterator[asyncio.Event]:
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
