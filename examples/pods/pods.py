"""The loop of a controller, written by hand from an informer and a work queue, without the frame.

    python examples/pods/pods.py                looks once at every pod of the cluster kubectl would talk to
    python examples/pods/pods.py --watch        and then at each that changes, until Ctrl-C

It gives a sidecar to every pod that asks for one, by the annotation ``demo.setpoint.dev/sidecar: IMAGE``, and
leaves all others alone.
"""

import argparse
import asyncio
import sys
from contextlib import suppress

from setpoint import Client
from setpoint.api import Key, StrategicPatch
from setpoint.cache import Cache, Declaration
from setpoint.errors import NotFound, QueueShutDown, SetpointError
from setpoint.kube.core.v1 import EphemeralContainer, Pod
from setpoint.metrics import Metrics
from setpoint.queue import WorkQueue

SIDECAR = "demo.setpoint.dev/sidecar"


class Controller:
    """Watches pods; each change puts the pod's key into the queue; the loop takes keys out and reconciles."""

    def __init__(self, client: Client) -> None:
        metrics = Metrics()
        self.client = client
        self.cache = Cache(client, metrics)
        self.pods: Declaration = self.cache.declare(Pod)
        self.queue = WorkQueue[Key, str]("pods", metrics)
        self.pods.listen(lambda seen: self.queue.add(seen.key))

    async def run(self, *, once: bool = False) -> None:
        async with self.cache:  # the informer runs in here
            await self.pods.wait_synced()  # every pod there is has been seen, and is in the queue
            if once:
                self.queue.shut_down(drain=True)  # nothing more, then; what is in it is worked on
            while await self.process_next_item():
                pass

    async def process_next_item(self) -> bool:
        try:
            key = await self.queue.get()  # nobody else gets it until it is done
        except QueueShutDown:
            return False
        try:
            await self.reconcile(key)
        except SetpointError as error:
            wait = self.queue.add_rate_limited(key)  # again, later each time
            print(f"{key}: failed, again in {wait:.3f} s: {error}", file=sys.stderr)
        else:
            self.queue.forget(key)  # its next failure is its first
        finally:
            self.queue.done(key)
        return True

    async def reconcile(self, key: Key) -> None:
        """Look at what there is now, not at what happened; safe to run at any time, any number of times."""
        try:
            pod = await self.cache.get(Pod, key.name, namespace=key.namespace)
        except NotFound:
            print(f"{key}: deleted")
            return
        print(f"{key}: {pod.status.phase}")
        image = (pod.metadata.annotations or {}).get(SIDECAR)
        if image and not has_sidecar(pod):
            await self.create_sidecar(pod, image)

    async def create_sidecar(self, pod: Pod, image: str) -> None:
        sidecar = {"name": "sidecar", "image": image}
        patch = StrategicPatch({"spec": {"ephemeralContainers": [sidecar]}})
        await self.client.patch(pod, patch, subresource="ephemeralcontainers")


def has_sidecar(pod: Pod) -> bool:
    containers: list[EphemeralContainer] = pod.spec.ephemeral_containers or []
    return any(container.name == "sidecar" for container in containers)


async def main(*, watch: bool) -> None:
    async with Client(timeout=10) as client:
        await client.fetch("/version")  # is it there?
        print(f"the pods at {client.config.server}:")
        await Controller(client).run(once=not watch)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Gives sidecars to the pods that ask for one.")
    options.add_argument("--watch", action="store_true", help="go on until Ctrl-C")
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(main(watch=options.parse_args().watch))
    except SetpointError as error:
        sys.exit(f"pods: {error}")
