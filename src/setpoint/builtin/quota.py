"""Keeps the status of ResourceQuotas: what they allow, and how much of it is used.

1. ``status.hard`` is what the spec says, ``status.used`` what the objects of the namespace use of it.
2. A change of a pod, Service, claim, ConfigMap, Secret, ReplicationController or quota is noticed at once;
   other kinds that a quota counts are counted again every half minute, and when something else changes.

What an object uses is decided in ``quota_usage.py``.  Refusing what is too much is the server's.
"""

from __future__ import annotations

from typing import Any, Final

from setpoint.api.forms import MetadataOnly, form_of
from setpoint.api.names import Resource
from setpoint.api.quantity import Quantity
from setpoint.api.wire import Snapshot
from setpoint.builtin import quota_usage
from setpoint.builtin.garbage import AsMetadata
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.builtin.quota_usage import Usage
from setpoint.builtin.selecting import Selecting
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Kind
from setpoint.kube.core.v1 import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    ResourceQuota,
    Secret,
    Service,
)

NAME: Final = "resourcequota-controller"
WORKERS = 5  # as kube-controller-manager
COUNT_AGAIN = 30.0
_WHOLE: Final[tuple[type[Any], ...]] = (Pod, Service, PersistentVolumeClaim)
_COUNTED: Final[tuple[type[Any], ...]] = (ConfigMap, Secret, ReplicationController)


def add_to(parts: Parts) -> None:
    """Keep the status of quotas."""
    cache = parts.manager.cache
    quotas = Selecting(cache, ResourceQuota, ResourceQuota.decode, lambda _: None)

    def in_its_namespace(snapshot: Snapshot) -> list[Request]:
        return quotas.in_namespace(snapshot.metadata.namespace)

    def all_of_them(snapshot: Snapshot) -> list[Request]:
        quotas.hear(snapshot)
        return quotas.in_namespace(snapshot.metadata.namespace)  # they may count each other

    building = builder(parts.manager).named(NAME).with_options(workers=WORKERS)
    building.reads(Kind(cache, ResourceQuota, all_of_them))
    for kind in _WHOLE:
        building.reads(Kind(cache, kind, in_its_namespace))
    for kind in _COUNTED:
        form = MetadataOnly(form_of(kind))
        building.reads(Kind(cache, form, in_its_namespace, metadata_only=True, strip_managed_fields=True))
    complete(building, Quotas(parts).reconcile)


class Quotas:
    """Brings the status of one quota to what is used."""

    def __init__(self, parts: Parts) -> None:
        self._client = parts.client

    async def reconcile(self, request: Request) -> Result | None:
        quota = await ignore_not_found(
            self._client.get(ResourceQuota, request.name, namespace=request.namespace)
        )
        if quota is None or quota.metadata.deletion_timestamp is not None:
            return None
        hard = quota.spec.hard or {}
        counted = {name: place for name in hard if (place := quota_usage.counted_resource(name))}
        used = await self._used(quota, request.namespace)
        for name, place in counted.items():
            number = 0 if quota_usage.has_scopes(quota) else await self._count(*place, request.namespace)
            used[name] = Quantity(number)
        if (quota.status.hard or {}) != hard or (quota.status.used or {}) != used:
            quota.status.hard = hard or None
            quota.status.used = used or None
            await self._client.update_status(quota)
        return Result(requeue_after=COUNT_AGAIN) if counted else None

    async def _used(self, quota: ResourceQuota, namespace: str) -> Usage:
        hard, found = list(quota.spec.hard or {}), Usage()
        claims = [name for name in hard if quota_usage.is_of_claims(name)]
        services = [name for name in hard if quota_usage.is_of_services(name)]
        pods = [name for name in hard if quota_usage.is_of_pods(name) and name not in claims]
        if pods:
            there = await self._client.list(Pod, namespace=namespace)
            meant = [quota_usage.pod_usage(each) for each in there if quota_usage.in_scopes(quota, each)]
            found |= quota_usage.total(pods, meant)
        if services:
            is_scoped = quota_usage.has_scopes(quota)  # scopes are of pods and claims: no Service is in one
            listed = [] if is_scoped else await self._client.list(Service, namespace=namespace)
            found |= quota_usage.total(services, map(quota_usage.service_usage, listed))
        if claims:
            asked = await self._client.list(PersistentVolumeClaim, namespace=namespace)
            counted = [quota_usage.claim_usage(each) for each in asked if quota_usage.in_scopes(quota, each)]
            found |= quota_usage.total(claims, counted)
        return found

    async def _count(self, group: str, plural: str, namespace: str) -> int:
        """How many objects of a kind there are; none, of a kind that is not served."""
        resource = await self._find(group, plural)
        if resource is None:
            return 0
        form = AsMetadata(resource.gvk, resource)
        return len(await self._client.live.list(form, namespace=namespace))

    async def _find(self, group: str, plural: str) -> Resource | None:
        resources = await self._client.discovery.resources()
        return next((each for each in resources if (each.group, each.plural) == (group, plural)), None)
