"""Keeps the EndpointSlices of every Service that selects pods.

1. They say which pods are behind the Service, as the pods are now; what others make of them is put back.
2. Slices that others manage are never touched.
3. When the Service goes, its slices are the garbage collector's.

How they are made up is decided in ``endpoints_slices.py``, of what ``endpoints_pods.py`` finds.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from setpoint.api.names import Key
from setpoint.api.selectors import LabelSelection
from setpoint.api.wire import Snapshot
from setpoint.builtin.endpoints_pods import TriggerTimes, backends, families_of, has_endpoints
from setpoint.builtin.endpoints_slices import CONTROLLER, MANAGED_BY, SERVICE, plan
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.builtin.selecting import Selecting
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request
from setpoint.controller.sources import Kind
from setpoint.errors import NotFound
from setpoint.kube.core.v1 import Pod, Service
from setpoint.kube.discovery.v1 import EndpointSlice

NAME: Final = "endpointslice-controller"
WORKERS = 5  # as kube-controller-manager


def add_to(parts: Parts) -> None:
    """Keep the EndpointSlices of Services."""
    cache = parts.manager.cache
    services = Selecting(cache, Service, Service.decode, selector_of)
    building = (
        builder(parts.manager)
        .named(NAME)
        .reads(Kind(cache, Service, services.hear))
        .reads(Kind(cache, Pod, services.of_pod))
        .reads(Kind(cache, EndpointSlice, _to_service))
        .with_options(workers=WORKERS)
    )
    complete(building, EndpointSlices(parts).reconcile)


def selector_of(service: Service) -> LabelSelection | None:
    """Which pods a Service selects; None where that is nobody's business of ours."""
    return LabelSelection.of(service.spec.selector or {}) if has_endpoints(service) else None


def _to_service(snapshot: Snapshot) -> list[Request]:
    labels = snapshot.metadata.labels or {}
    if labels.get(MANAGED_BY) != CONTROLLER or SERVICE not in labels:
        return []
    return [Key(snapshot.metadata.namespace, labels[SERVICE])]


class EndpointSlices:
    """Brings the slices of one Service to what is behind it."""

    def __init__(self, parts: Parts) -> None:
        self._client = parts.client
        self._times: dict[Key, TriggerTimes] = {}

    async def reconcile(self, request: Request) -> None:
        service = await ignore_not_found(self._client.get(Service, request.name, namespace=request.namespace))
        selector = None if service is None else selector_of(service)
        if service is None or selector is None or service.metadata.deletion_timestamp is not None:
            self._times.pop(request, None)
            return
        pods = await self._client.list(Pod, namespace=request.namespace, labels=selector)
        labels = {SERVICE: request.name, MANAGED_BY: CONTROLLER}
        slices = await self._client.list(EndpointSlice, namespace=request.namespace, labels=labels)
        trigger = self._times.setdefault(request, TriggerTimes()).look(service, pods)
        families = families_of(service)
        for family in families:
            existing = [each for each in slices if each.address_type == family]
            wanted = plan(service, family, backends(service, pods, family), existing, trigger)
            for each in wanted.created:
                await self._client.create(each)
            for each in wanted.updated:
                await self._client.update(each)
            for each in wanted.deleted:
                await self._delete(each)
        for each in slices:
            if each.address_type not in families:
                await self._delete(each)

    async def _delete(self, old: EndpointSlice) -> None:
        with suppress(NotFound):
            await self._client.delete(old, uid=old.metadata.uid or "")
