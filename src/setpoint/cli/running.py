"""What the commands that run operators have in common: definitions are installed, and the process ends.

1. A definition is installed when the server serves it.
2. One that cannot be changed in place is told with what to do.
3. The process ends when it is told to, whatever hangs: a thread that does not end is given ``EXIT_TIMEOUT``
   seconds.

Used by ``run.py``, ``developing.py`` and ``telling.py``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import click

from setpoint.client.client import Client, ignore_not_found
from setpoint.errors import DeadlineExceeded, Invalid, SetpointError
from setpoint.kube.apiextensions.v1 import CustomResourceDefinition
from setpoint.manager.manager import Manager
from setpoint.operator import Operator, crds_of

ESTABLISH_TIMEOUT = 30.0
EXIT_TIMEOUT = 5.0
_MISS_TIMEOUT = 2.0

log = logging.getLogger("setpoint.run")


async def operate(
    client: Client, manager: Manager, operators: Sequence[Operator], *, install_crds: bool
) -> None:
    """Run a manager until a signal ends it."""
    async with client:
        log.info("%s connects to %s", manager.name, client.config.server)
        await (install if install_crds else _miss)(client, crds_of(operators))
        announcing = asyncio.create_task(_announce(manager, client.config.server))
        try:
            await manager.run(handle_signals=True)
        except ExceptionGroup as group:
            raise click.ClickException("; ".join(str(error) for error in group.exceptions)) from group
        finally:
            announcing.cancel()
        log.info("%s has ended in order", manager.name)


async def _announce(manager: Manager, server: str) -> None:
    """Log where it runs, once the server has answered."""
    await manager.wait_connected()
    names = ", ".join(controller.name for controller in manager.controllers)
    log.info("%s runs on %s; controllers: %s", manager.name, server, names)


# Definitions.


async def install(client: Client, crds: list[dict[str, Any]]) -> None:
    """Apply CustomResourceDefinitions, and wait until the server serves them."""
    for crd in crds:
        name = crd["metadata"]["name"]
        try:
            await client.apply(crd, force=True)
        except Invalid as error:  # most of all, what of a definition can never change
            error.advice = f"to begin anew, its objects too: kubectl delete crd {name}"
            raise
        log.info("CustomResourceDefinition %s is installed", name)
    try:
        async with asyncio.timeout(ESTABLISH_TIMEOUT):
            for crd in crds:
                while not await _is_served(client, crd):  # noqa: ASYNC110 - no event of ours
                    await asyncio.sleep(0.1)
    except TimeoutError:
        names = ", ".join(crd["metadata"]["name"] for crd in crds)
        raise DeadlineExceeded(f"install {names}", f"not served after {ESTABLISH_TIMEOUT:g} s") from None


async def _miss(client: Client, crds: list[dict[str, Any]]) -> None:
    """Say what to do about definitions that are not there; whoever may not know goes on without."""
    with suppress(SetpointError):
        for crd in crds:
            name = crd["metadata"]["name"]
            if (
                await ignore_not_found(client.get(CustomResourceDefinition, name, timeout=_MISS_TIMEOUT))
                is None
            ):
                log.warning(
                    "CustomResourceDefinition %s is not installed: use --install-crds, or "
                    "setpoint crd OPERATOR.py | kubectl apply -f -",
                    name,
                )


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
