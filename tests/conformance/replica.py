"""One replica of an operator, as a process: ``python -m tests.conformance.replica NAMESPACE NAME``.

It signs every ConfigMap of the namespace while it leads.  A test may kill it, or pause it.
"""

from __future__ import annotations

import asyncio
import sys

from setpoint.api import MergePatch
from setpoint.client.client import Client
from setpoint.controller import Request, builder
from setpoint.kube.core.v1 import ConfigMap
from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.manager import Manager


async def main(namespace: str, name: str) -> None:
    election = LeaderElection(
        "operator", namespace, name, lease_duration=3, renew_deadline=2.0, retry_period=0.2
    )
    async with Client() as client:
        manager = Manager(client=client, leader_election=election)

        async def sign(request: Request) -> None:
            patch = MergePatch({"data": {"signed": name}})
            await manager.client.patch(ConfigMap, request.name, patch, namespace=request.namespace)

        builder(manager).for_(ConfigMap, namespaces=[namespace]).complete(sign)
        await manager.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
