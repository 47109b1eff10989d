"""What others wrote in Java works unchanged: fabric8's client, which watches over WebSockets."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.outside.environment import java
from tests.outside.servers import Server
from tests.outside.test_python_programs import plain


@pytest.mark.skipif(shutil.which("mvn") is None, reason="there is no Maven, which fetches fabric8's client")
def test_fabric8_watches_over_a_websocket_and_so_do_its_informers(server: Server) -> None:
    command = [*java(), str(server.kubeconfig), "fabric8"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=plain())
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert ran.stdout.splitlines() == [
        "WatchConnectionManager",
        "watch ADDED a 1",
        "watch MODIFIED a 2",
        "watch DELETED a 2",
        "watch closed",
        "informer added a 1",
        "informer updated a 2",
        "informer deleted a 2",
    ]
