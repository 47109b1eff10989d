"""Lists the pods of the cluster that kubectl would talk to, then their changes as they happen.

    python examples/pods.py                 the pods there are
    python examples/pods.py --watch         and what happens to them, until Ctrl-C

It reads and changes nothing.
"""

import asyncio
import contextlib
import sys

from setpoint import Client
from setpoint.errors import SetpointError
from setpoint.kube.core.v1 import Pod


async def main(*, watch: bool) -> None:
    async with Client(timeout=10) as client:
        pods = await client.list(Pod)
        for pod in pods:
            print(f"{pod.metadata.namespace}/{pod.metadata.name}: {pod.status.phase}")
        print(f"{len(pods)} pods at {client.config.server}")
        if watch:
            async with client.watch(Pod, resource_version=pods.resource_version) as changes:
                async for change in changes:
                    print(change.type, change.object.metadata.name, change.object.status.phase)


if __name__ == "__main__":
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(main(watch="--watch" in sys.argv))
    except SetpointError as error:
        sys.exit(f"pods: {error}")
