"""The WebApp operator again, in the classic form: a Reconciler that reads, compares and acts by itself.

    python -m examples.webapp.longhand                      on the cluster that kubectl would talk to

What ``webapp.py`` leaves to ``ctx`` is written out here, step by step: fetch the object; see what there is;
compare that with what there should be; create or update; tell the status.  A reconcile may run at any time
and any number of times, and ends in the same place.
"""

import asyncio
import copy
from datetime import UTC, datetime

from examples.webapp.webapp import WebApp, desired_deployment, desired_service, report
from setpoint import Client, Manager, Request, Result, builder, ignore_not_found, set_controller_reference
from setpoint.api import Time
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import Service


class WebAppReconciler:
    """Satisfies the Reconciler protocol: one method, which is told which object to look at, and not why."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> Result:
        webapp = await ignore_not_found(self.client.get(WebApp, request.name, namespace=request.namespace))
        if webapp is None:
            return Result()  # deleted since; the garbage collector sees to what it owned
        deployment = await self.reconcile_deployment(webapp)
        await self.reconcile_service(webapp)
        await self.update_status(webapp, deployment)
        return Result()

    async def reconcile_deployment(self, webapp: WebApp) -> Deployment:
        desired = desired_deployment(webapp)
        set_controller_reference(webapp, desired)
        existing = await ignore_not_found(
            self.client.get(Deployment, webapp.metadata.name or "", namespace=webapp.metadata.namespace)
        )
        if existing is None:
            return await self.client.create(desired)
        if not drifted(existing, desired):
            return existing
        existing.spec.replicas = desired.spec.replicas
        web, wanted = existing.spec.template.spec.containers[0], desired.spec.template.spec.containers[0]
        web.image, web.ports = wanted.image, wanted.ports
        return await self.client.update(existing)

    async def reconcile_service(self, webapp: WebApp) -> None:
        desired = desired_service(webapp)
        set_controller_reference(webapp, desired)
        existing = await ignore_not_found(
            self.client.get(Service, webapp.metadata.name or "", namespace=webapp.metadata.namespace)
        )
        if existing is None:
            await self.client.create(desired)
        elif existing.spec.selector != desired.spec.selector or ports_of(existing) != ports_of(desired):
            existing.spec.selector, existing.spec.ports = desired.spec.selector, desired.spec.ports
            await self.client.update(existing)

    async def update_status(self, webapp: WebApp, deployment: Deployment) -> None:
        before = copy.deepcopy(webapp.status)
        report(webapp, deployment, now=Time.of(datetime.now(UTC)))
        if webapp.status != before:
            await self.client.update_status(webapp)


def drifted(existing: Deployment, desired: Deployment) -> bool:
    """Whether what we say of the Deployment is no longer so.  What others say of it is theirs."""
    web, wanted = existing.spec.template.spec.containers[0], desired.spec.template.spec.containers[0]
    return (
        existing.spec.replicas != desired.spec.replicas
        or web.image != wanted.image
        or [port.container_port for port in web.ports or []]
        != [port.container_port for port in wanted.ports or []]
    )


def ports_of(service: Service) -> list[tuple[int, int | str | None]]:
    return [(port.port, port.target_port) for port in service.spec.ports or []]


def add_to(manager: Manager) -> None:
    """Watch WebApps, and what they own: a change of a Deployment brings up the WebApp it belongs to."""
    reconciler = WebAppReconciler(manager.client)
    builder(manager).for_(WebApp).owns(Deployment).owns(Service).complete(reconciler)


async def main() -> None:
    manager = Manager()
    add_to(manager)
    await manager.run()


if __name__ == "__main__":
    asyncio.run(main())
