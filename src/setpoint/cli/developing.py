"""What ``setpoint dev`` does: runs a cluster and an operator in it, follows saves, draws what happens.

1. On a terminal there is a live view, which follows the terminal's size; elsewhere, or with ``--plain``, a
   line for every event of interest.
2. A save of the file, of a neighbour that it imports, or of a manifest is followed within half a second.
   What is wrong with it is shown; what ran before runs on.
3. What the operator prints and logs is part of the view, also from threads.
4. The first signal ends it in order, the second at once.

What is shown is found out in ``watching.py`` and drawn by ``view.py``; loading again is ``reload.py``'s.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from setpoint.cli.loading import CannotLoad
from setpoint.cli.reload import Running, Saves, Source, stamps
from setpoint.cli.running import install, run_to_the_end
from setpoint.cli.serving import Where, serving, stopped
from setpoint.cli.shown import Notice
from setpoint.cli.watching import Lines, LogLines, ShortFormatter, Watching
from setpoint.client.client import Client
from setpoint.controller.worker import describe
from setpoint.errors import SetpointError
from setpoint.manager.manager import Manager
from setpoint.testing.manifests import read_manifest

LOOK_EVERY = 0.2  # seconds between two looks at what was saved
REDRAW = 0.1  # seconds between two drawings, at least
TICK = 1.0  # and at most: times pass by themselves
_IDLE = 5  # times as long as a drawing took, nothing is drawn: a large scene must not slow the cluster
_GRACE = 5.0  # seconds for reconciles under way at the end


@dataclass(frozen=True)
class Wanted:
    """What to run, and how to show it."""

    operator: Path
    manifests: tuple[Path, ...]
    where: Where
    is_live: bool


def develop(wanted: Wanted) -> None:
    """Run it until told to stop."""
    source = Source(wanted.operator)
    run_to_the_end(_develop(source, wanted))


async def _develop(source: Source, wanted: Wanted) -> None:
    with stopped() as stop:
        async with serving(wanted.where) as (cluster, served):
            await _operate(source, wanted, cluster.client, served.url, stop)


async def _operate(source: Source, wanted: Wanted, client: Client, url: str, stop: asyncio.Event) -> None:
    """Run the operator until told to stop."""
    out, kubeconfig = sys.stdout, str(wanted.where.kubeconfig)
    name = source.loaded.operators[0].name
    watching = Watching(client, None if wanted.is_live else lambda line: _print(out, line))
    manager = Manager(client=client, name=name, graceful_shutdown=_GRACE, why_socket=True)
    following = Following(source, wanted.manifests, manager, watching)
    with _overheard(watching.say):
        async with watching.cache, manager:
            if not wanted.is_live:
                _print(out, f"{name} runs on {url}; try: kubectl --kubeconfig {kubeconfig} get all -A")
            await following.start()
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(following.run())]
                if wanted.is_live:
                    view = _View(watching, manager, name, url, kubeconfig)
                    beside.append(tasks.create_task(view.draw(out)))
                await stop.wait()
                for task in beside:
                    task.cancel()


def _print(out: TextIO, line: str) -> None:
    print(line, file=out, flush=True)


# Following what is saved.


class Following:
    """Does what a save asks for."""

    def __init__(
        self, source: Source, manifests: tuple[Path, ...], manager: Manager, watching: Watching
    ) -> None:
        self._source = source
        self._manifests = manifests
        self._applied = Saves(stamps(manifests))
        self._manager = manager
        self._watching = watching
        self._running = Running(manager, watching.follow)

    async def start(self) -> None:
        """Run what was loaded, and apply the manifests; what is wrong is raised."""
        try:
            await self._replace()
            await self._apply()
        except (ValueError, TypeError) as error:  # two controllers of one name, say
            raise click.ClickException(f"{self._source.loaded.path.name}: {error}") from error
        self._watching.tell(Notice(f"{self._source.loaded.path.name} runs; save it to load it again"))

    async def run(self) -> None:
        """Follow what is saved, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if self._source.is_due():
                self._watching.tell(await self.reload())
            if self._applied.is_due(now := stamps(self._manifests)):
                self._applied = Saves(now)
                self._watching.tell(await self.apply_again())

    async def _replace(self) -> None:
        loaded = self._source.loaded
        await install(self._manager.plain_client, loaded.crds())
        await self._running.replace(loaded.operators)
        for each in self._manager.controllers:  # whose lines are the author's
            logging.getLogger(f"setpoint.controller.{each.name}").setLevel(logging.INFO)
        self._watching.show_kinds(self._manager.controllers)

    async def reload(self) -> Notice:
        """Load the file again, and run that; what came of it."""
        name = self._source.loaded.path.name
        try:
            self._source.load()
            await self._replace()
        except CannotLoad as error:
            what = next(reversed(error.trace.splitlines()), error.message)
            return Notice(f"{name} cannot be loaded, what ran before runs on: {what}", True, error.trace)
        except Exception as error:  # noqa: BLE001 - whatever the author's code raises, it is the author's to see
            return Notice(f"{name} cannot be run, what ran before runs on: {describe(error)}", True)
        return Notice(f"{name} was loaded again at {time.strftime('%H:%M:%S')}")

    async def _apply(self) -> None:
        for manifest in self._manifests:
            await apply(self._manager.plain_client, manifest)

    async def apply_again(self) -> Notice:
        """Apply the manifests; what came of it."""
        try:
            await self._apply()
        except (click.ClickException, SetpointError) as error:
            return Notice(f"not applied: {error}", True)
        return Notice(f"applied {', '.join(each.name for each in self._manifests)}")


async def apply(client: Client, manifest: Path) -> None:
    """Apply all objects of a file."""
    try:
        found = read_manifest(manifest)
    except OSError as error:
        raise click.ClickException(f"apply {manifest}: {error.strerror}") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    for each in found:
        await client.apply(each, force=True)


# What is printed and logged.


@contextmanager
def _overheard(say: Callable[[str], None]) -> Iterator[None]:
    """Have everything that is printed and logged said, from whichever thread."""
    loop, here = asyncio.get_running_loop(), threading.get_ident()

    def say_here(text: str) -> None:
        if threading.get_ident() == here:
            say(text)
        else:
            with suppress(RuntimeError):  # the loop has ended, and with it the view
                loop.call_soon_threadsafe(say, text)

    handler = LogLines(say_here)
    handler.setFormatter(ShortFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("setpoint").setLevel(logging.WARNING)  # the cluster's own; see Following._replace
    lines = Lines(say_here)
    with redirect_stdout(lines), redirect_stderr(lines):
        yield


# Drawing.


class _View:
    """Draws the scene again and again."""

    def __init__(
        self, watching: Watching, manager: Manager, title: str, server: str, kubeconfig: str
    ) -> None:
        self._watching = watching
        self._manager = manager
        self._facts = {"title": title, "server": server, "kubeconfig": kubeconfig}

    async def draw(self, out: TextIO) -> None:
        """Draw whenever something changed, until cancelled; then the terminal is as it was."""
        from rich.console import Console  # noqa: PLC0415 - without a terminal there is nothing to draw on
        from rich.live import Live  # noqa: PLC0415

        from setpoint.cli.view import render  # noqa: PLC0415

        console = Console(file=out, highlight=False)
        live = Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        changed = self._watching.changed
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, changed.set)
        with live:
            while True:
                changed.clear()
                began = time.monotonic()
                scene = self._watching.scene(self._manager, **self._facts)
                live.update(render(scene, console.width, console.height), refresh=True)
                await asyncio.sleep(max(REDRAW, _IDLE * (time.monotonic() - began)))
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK):
                        await changed.wait()
