"""The two servers that outside programs are run against, each as a process on a TLS port.

``setpoint`` is the one under test; ``kube`` is the real kube-apiserver, against which a test is proved to ask
for the right thing.  Neither has controllers, unless a whole cluster is asked for; then kube has
kube-controller-manager and our node stand-in, for there is no other.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.server.secrets import Secrets
from setpoint.testing.kube import ControlPlane, _Group, kubeconfig_of
from setpoint.testing.node import Node

NAMES: Final = ("setpoint", "kube")
_READY: Final = re.compile(r"ready at (https://127\.0\.0\.1:\d+) after ")
_GRACE: Final = 10.0  # seconds
_MASTERS: Final = "system:masters"


class Server(NamedTuple):
    """A server that is ready, and how its administrator gets there."""

    name: str
    url: str
    kubeconfig: Path


@contextmanager
def running(
    name: str, folder: Path, *, whole: bool = False, admin: str = "", may_warn: bool = False
) -> Iterator[Server]:
    """One of ``NAMES``, until the block is left; it does not outlive us, however we end.

    A ``whole`` one has controllers and a node.  Where an ``admin`` is named, the kubeconfig has its
    certificate.  Ours says nothing on stderr, unless it ``may_warn``.
    """
    certified = folder / "admin.kubeconfig"
    if name == "kube":
        with (
            ControlPlane(controller_manager=whole) as plane,
            _node(plane.kubeconfig) if whole else nullcontext(),
        ):
            if admin:
                certified.write_text(plane.kubeconfig_for(plane.client_certificate(admin, [_MASTERS])))
            yield Server(name, plane.url, certified if admin else plane.kubeconfig)
        return
    group, kubeconfig, log = _Group(), folder / "kubeconfig", folder / "stderr"
    command = [sys.executable, "-m", "setpoint.cli.main", "up", "--kubeconfig", str(kubeconfig)]
    command += ["--controllers", "*" if whole else "none"]
    data = folder / "data"
    command += ["--data", str(data)] if admin else []  # where it keeps its authority
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, process_group=group.id
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = _READY.match(line)
        assert found, line or log.read_text()
        if admin:
            authority = Secrets(data).authority
            identity = authority.issue(admin, organizations=[_MASTERS], client=True)
            certified.write_text(kubeconfig_of(identity, found[1], authority.certificate_pem))
        yield Server(name, found[1], certified if admin else kubeconfig)
        process.terminate()
        assert process.wait(_GRACE) == 0, log.read_text()[-2_000:]
        assert may_warn or not log.read_text(), log.read_text()[-2_000:]
    finally:
        process.kill()
        process.communicate()
        group.close()


@contextmanager
def _node(kubeconfig: Path) -> Iterator[None]:
    """A node of its own thread and loop, for as long as the block."""
    loop, is_there, leave = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def live() -> None:
        async with Client(Config.load(kubeconfig)) as client, Node(client):
            is_there.set()
            await leave.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[live()], name="node")
    thread.start()
    try:
        assert is_there.wait(_GRACE), "the node did not register"
        yield
    finally:
        loop.call_soon_threadsafe(leave.set)
        thread.join(_GRACE)
        loop.close()
