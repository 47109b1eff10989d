"""One replica of an operator, for tests that kill and pause it.

    candidate.py KUBECONFIG NAMESPACE NAME LEASE_SECONDS

While it leads it writes to a ConfigMap of its own name as fast as it can, from a task, which ends when it is
told to, and from threads, which nobody can stop.  The ConfigMap says at which version it began.  It ends
with 0 when it was told to stop, and with 3 when it lost the lease.

At SIGUSR1 it pauses itself, between two turns of its loop.  One that is paused anywhere may have just decided
to send something: for some microseconds nobody but the server could hold that back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from itertools import count

from setpoint.api.meta import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import AlreadyExists, LeadershipLost, SetpointError
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager

THREADS = 8


class Writer:
    """What only the leader runs."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    async def run(self) -> None:
        try:
            metadata = ObjectMeta(name=self._name, namespace=self._namespace)
            made = await self._client.create(ConfigMap(metadata=metadata))
            await self._write("began", made.metadata.resource_version or "")
        except AlreadyExists:
            pass
        loop = asyncio.get_running_loop()
        for _ in range(THREADS):
            threading.Thread(target=self._write_in_thread, args=(loop,), daemon=True).start()
        for number in count():
            await self._write("task", str(number))

    def _write_in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in count():
            try:
                asyncio.run_coroutine_threadsafe(self._write("thread", str(number)), loop).result()
            except SetpointError:
                continue

    async def _write(self, field: str, value: str) -> None:
        await self._client.patch(
            ConfigMap, self._name, MergePatch({"data": {field: value}}), namespace=self._namespace
        )


def main(kubeconfig: str, namespace: str, name: str, seconds: str) -> int:
    logging.basicConfig(level="INFO")
    lease = int(seconds)
    election = LeaderElection(
        "candidates", namespace, name, lease_duration=lease, renew_deadline=lease * 0.75, retry_period=0.5
    )
    manager = Manager(Config.from_kubeconfig(kubeconfig), leader_election=election)
    manager.add(Writer(manager.client, namespace, name))

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, os.kill, os.getpid(), signal.SIGSTOP)
        await manager.run(handle_signals=True)

    try:
        asyncio.run(run())
    except LeadershipLost:
        logging.getLogger(name).exception("lost")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
