"""Keeps the Endpoints of every Service that selects pods: the older form of EndpointSlices.

1. They bear the name of the Service, and go with it.
2. Addresses with the same ports are together; what is not ready is there too, apart; what is being deleted is
   not, unless the Service publishes what is not ready.
3. There are at most a thousand addresses, and an annotation says where there would be more.

What is behind a Service, is decided in ``endpoints_pods.py``; ``subsets`` makes it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from setpoint.api.meta import ObjectMeta
from setpoint.api.names import Key
from setpoint.api.times import Time
from setpoint.api.wire import Snapshot
from setpoint.builtin.endpoints_pods import (
    HEADLESS,
    TRIGGER,
    Backend,
    Port,
    TriggerTimes,
    backends,
    families_of,
    is_headless,
)
from setpoint.builtin.endpointslices import selector_of
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.builtin.selecting import Selecting
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request
from setpoint.controller.sources import Kind
from setpoint.errors import NotFound
from setpoint.kube.core.v1 import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Pod, Service

NAME: Final = "endpoints-controller"
WORKERS = 5  # as kube-controller-manager
MOST = 1000
MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
CONTROLLER: Final = "endpoint-controller"
OVER: Final = "endpoints.kubernetes.io/over-capacity"


def add_to(parts: Parts) -> None:
    """Keep the Endpoints of Services."""
    cache = parts.manager.cache
    services = Selecting(cache, Service, Service.decode, selector_of)
    building = (
        builder(parts.manager)
        .named(NAME)
        .reads(Kind(cache, Service, services.hear))
        .reads(Kind(cache, Pod, services.of_pod))
        .reads(Kind(cache, Endpoints, _to_service))
        .with_options(workers=WORKERS)
    )
    complete(building, _Endpoints(parts).reconcile)


def _to_service(snapshot: Snapshot) -> list[Request]:
    is_ours = (snapshot.metadata.labels or {}).get(MANAGED_BY) == CONTROLLER
    return [snapshot.key] if is_ours else []


def wanted(service: Service, pods: Sequence[Pod], trigger: Time | None) -> Endpoints:
    """What the Endpoints of a Service say."""
    publishes = bool(service.spec.publish_not_ready_addresses)
    found = [
        each
        for each in backends(service, pods, families_of(service)[0])
        if publishes or not each.is_terminating
    ]
    own = {name: value for name, value in (service.metadata.labels or {}).items() if name != HEADLESS}
    headless = {HEADLESS: ""} if is_headless(service) else {}
    annotations = {OVER: "truncated"} if len(found) > MOST else {}
    if trigger is not None:
        annotations[TRIGGER] = trigger.to_wire()
    kept = sorted(found, key=lambda each: not each.is_ready)[:MOST]
    return Endpoints(
        metadata=ObjectMeta(
            name=service.metadata.name,
            namespace=service.metadata.namespace,
            labels={**own, MANAGED_BY: CONTROLLER, **headless},
            annotations=annotations or None,
        ),
        subsets=subsets(kept) or None,
    )


def subsets(found: Iterable[Backend]) -> list[EndpointSubset]:
    """The addresses, those with the same ports together."""
    groups: dict[tuple[Port, ...], list[Backend]] = {}
    for each in found:
        groups.setdefault(each.ports, []).append(each)
    return [
        EndpointSubset(
            addresses=_addresses(each for each in members if each.is_ready),
            not_ready_addresses=_addresses(each for each in members if not each.is_ready),
            ports=[
                EndpointPort(
                    name=port.name or None,
                    port=port.port,
                    protocol=port.protocol,
                    app_protocol=port.app_protocol,
                )
                for port in ports
            ]
            or None,
        )
        for ports, members in sorted(groups.items(), key=lambda group: [str(port) for port in group[0]])
    ]


def _addresses(found: Iterable[Backend]) -> list[EndpointAddress] | None:
    return [
        EndpointAddress(ip=each.address, hostname=each.hostname, node_name=each.node, target_ref=each.target)
        for each in sorted(found, key=lambda each: (each.address, each.uid))
    ] or None


class _Endpoints:
    """Brings the Endpoints of one Service to what is behind it."""

    def __init__(self, parts: Parts) -> None:
        self._client = parts.client
        self._times: dict[Key, TriggerTimes] = {}

    async def reconcile(self, request: Request) -> None:
        service = await ignore_not_found(self._client.get(Service, request.name, namespace=request.namespace))
        known = await ignore_not_found(self._client.get(Endpoints, request.name, namespace=request.namespace))
        if service is None:
            self._times.pop(request, None)
            if known is not None and (known.metadata.labels or {}).get(MANAGED_BY) == CONTROLLER:
                with suppress(NotFound):
                    await self._client.delete(known, uid=known.metadata.uid or "")
            return
        selector = selector_of(service)
        if selector is None or service.metadata.deletion_timestamp is not None:
            return
        pods = await self._client.list(Pod, namespace=request.namespace, labels=selector)
        trigger = self._times.setdefault(request, TriggerTimes()).look(service, pods)
        new = wanted(service, pods, trigger)
        if known is None:
            await self._client.create(new)
        elif known.subsets != new.subsets or known.metadata.labels != new.metadata.labels:
            known.subsets = new.subsets
            known.metadata.labels = new.metadata.labels
            others = {
                name: value
                for name, value in (known.metadata.annotations or {}).items()
                if name not in (TRIGGER, OVER)
            }
            known.metadata.annotations = {**others, **(new.metadata.annotations or {})} or None
            await self._client.update(known)
