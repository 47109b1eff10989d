"""The two servers that outside programs are run against, each as a process on a TLS port.

``setpoint`` is the one under test; ``kube`` is the real kube-apiserver, against which a test is proved to ask
for the right thing.  Neither has controllers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from setpoint.testing.kube import ControlPlane, _Group

NAMES: Final = ("setpoint", "kube")
_READY: Final = re.compile(r"ready at (https://127\.0\.0\.1:\d+) after ")
_GRACE: Final = 10.0  # seconds


class Server(NamedTuple):
    """A server that is ready, and how its administrator gets there."""

    name: str
    url: str
    kubeconfig: Path


@contextmanager
def running(name: str, folder: Path) -> Iterator[Server]:
    """One of ``NAMES``, until the block is left; it does not outlive us, however we end."""
    if name == "kube":
        with ControlPlane() as plane:
            yield Server(name, plane.url, plane.kubeconfig)
        return
    group, kubeconfig, log = _Group(), folder / "kubeconfig", folder / "stderr"
    command = [sys.executable, "-m", "setpoint.cli.main", "up", "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, process_group=group.id
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = _READY.match(line)
        assert found, line or log.read_text()
        yield Server(name, found[1], kubeconfig)
        process.terminate()
        assert process.wait(_GRACE) == 0, log.read_text()[-2_000:]
        assert not log.read_text(), log.read_text()[-2_000:]
    finally:
        process.kill()
        process.communicate()
        group.close()
