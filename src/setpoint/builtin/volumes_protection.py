"""Keeps claims and volumes from going while somebody uses them, and says of a claim whether anybody does.

1. A claim that is deleted goes when no pod uses it any more, as the server says when asked; a pod that has
   ended uses nothing.
2. A claim that is bound has the condition ``Unused``.
3. A volume that is deleted goes when it is bound to no claim.

The finalizers are added by the server, when the objects are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from setpoint.api.model import Object
from setpoint.api.times import Time
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.builtin.volumes import claims_of, pod_to_claims
from setpoint.cache.cache import Cache
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request
from setpoint.controller.sources import Kind
from setpoint.kube.core.v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
    Pod,
)

CLAIMS: Final = "persistentvolumeclaim-protection-controller"
VOLUMES: Final = "persistentvolume-protection-controller"
_ENDED: Final = ("Succeeded", "Failed")
CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
_UNUSED: Final = "Unused"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"

ObjectT = TypeVar("ObjectT", bound=Object)


def add_claims_to(parts: Parts) -> None:
    """Let deleted claims go when nobody uses them."""
    client, cache = parts.client, parts.manager.cache

    async def reconcile(request: Request) -> None:
        claim = await ignore_not_found(
            client.get(PersistentVolumeClaim, request.name, namespace=request.namespace)
        )
        if claim is None:
            return
        is_used = any(_uses(pod, request) for pod in _pods_with_claims(cache, request.namespace))
        if claim.metadata.deletion_timestamp is None:
            await _tell(parts, claim, is_used=is_used)
        elif _waits(claim, CLAIM_FINALIZER) and not is_used:
            pods = await client.live.list(Pod, namespace=request.namespace)
            if not any(_uses(pod, request) for pod in pods):
                await _release(parts, claim, CLAIM_FINALIZER)

    building = builder(parts.manager).named(CLAIMS).for_(PersistentVolumeClaim)
    complete(building.reads(Kind(cache, Pod, pod_to_claims)), reconcile)


def _uses(pod: Pod, claim: Request) -> bool:
    return pod.status.phase not in _ENDED and claim in claims_of(pod)


def _pods_with_claims(cache: Cache, namespace: str) -> Iterator[Pod]:
    """The pods of a namespace that use any claims, as far as is known here: the others are not even read."""
    for informer in cache.holds(Pod.resource.gvk):
        for each in informer.store:
            if each.metadata.namespace == namespace and pod_to_claims(each):
                yield Pod.decode(each.data)


async def _tell(parts: Parts, claim: PersistentVolumeClaim, *, is_used: bool) -> None:
    status = "False" if is_used else "True"
    old = claim.status.conditions or []
    known = next((each for each in old if each.type == _UNUSED), None)
    if claim.status.phase != "Bound" or (known is not None and known.status == status):
        return
    condition = PersistentVolumeClaimCondition(
        type=_UNUSED,
        status=status,
        reason="PodUsingPVC" if is_used else "NoPodsUsingPVC",
        message=f"{'A pod is' if is_used else 'No pods are'} currently referencing this PVC",
        last_transition_time=Time.of(parts.clock.utc()),
    )
    claim.status.conditions = [*(each for each in old if each.type != _UNUSED), condition]
    await parts.client.update_status(claim)


def add_volumes_to(parts: Parts) -> None:
    """Let deleted volumes go when nothing is bound to them."""

    async def reconcile(request: Request) -> None:
        volume = await ignore_not_found(parts.client.get(PersistentVolume, request.name))
        if volume is not None and _waits(volume, VOLUME_FINALIZER) and volume.status.phase != "Bound":
            await _release(parts, volume, VOLUME_FINALIZER)

    complete(builder(parts.manager).named(VOLUMES).for_(PersistentVolume), reconcile)


def _waits(obj: Object, finalizer: str) -> bool:
    metadata = obj.metadata
    return metadata.deletion_timestamp is not None and finalizer in (metadata.finalizers or ())


async def _release(parts: Parts, obj: ObjectT, finalizer: str) -> None:
    obj.metadata.finalizers = [each for each in obj.metadata.finalizers or () if each != finalizer]
    await ignore_not_found(parts.client.update(obj))
