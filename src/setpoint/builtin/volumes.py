"""Binds claims to volumes, and makes volumes for the class that it serves itself.

1. A claim is bound to a volume that fits it, in the steps that kube-controller-manager takes: the volume
   names the claim, is Bound, the claim names the volume, is Bound.  After a crash it goes on where it was.
2. For a class whose provisioner is ``PROVISIONER`` a volume is made; behind it is nothing.  Where there is no
   class at all, one of that kind is made when this starts, as the default.
3. A class that waits for its first consumer waits until a pod uses the claim.
4. A volume whose claim is gone is Released; it is deleted if its policy says so and it was made here.
5. Where nothing can be done, an Event says what is waited for.

Which volume, is decided in ``volumes_match.py``; who may still use one, in ``volumes_protection.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from setpoint.api.meta import ObjectMeta
from setpoint.api.names import Key
from setpoint.api.times import Time
from setpoint.api.wire import Snapshot
from setpoint.builtin import volumes_match as match
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Kind
from setpoint.errors import AlreadyExists, NotFound
from setpoint.kube.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from setpoint.kube.storage.v1 import StorageClass

NAME: Final = "persistentvolume-binder-controller"
SOURCE: Final = "persistentvolume-controller"  # what its Events say they come from
PROVISIONER: Final = "setpoint.dev/provisioner"
CLASS: Final = "standard"
LOOK_AGAIN = 15.0  # seconds, as kube-controller-manager


def add_to(parts: Parts) -> None:
    """Bind claims to volumes."""
    manager, cache = parts.manager, parts.manager.cache
    claims = (
        builder(manager)
        .named(NAME)
        .for_(PersistentVolumeClaim)
        .reads(Kind(cache, PersistentVolume, _ToClaims(parts)))
        .reads(Kind(cache, Pod, pod_to_claims))
    )
    complete(claims, Claims(parts).reconcile)
    volumes = (
        builder(manager)
        .named("persistentvolume-phase-controller")
        .for_(PersistentVolume)
        .reads(Kind(cache, PersistentVolumeClaim, _to_volume))
    )
    complete(volumes, Volumes(parts).reconcile)
    classes = builder(manager).named("persistentvolume-class-controller").for_(StorageClass).streams(_once)
    complete(classes, _Classes(parts).reconcile)


_START = Request("", "start")


async def _once() -> AsyncIterator[Request]:
    yield _START


def claims_of(pod: Pod) -> list[Request]:
    """The claims that a pod uses."""
    namespace = pod.metadata.namespace or ""
    found: list[Request] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(Key(namespace, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            found.append(Key(namespace, f"{pod.metadata.name}-{volume.name}"))
    return found


def pod_to_claims(snapshot: Snapshot) -> list[Request]:
    """A mapper of pods: to the claims that one uses.  Most use none, and are not even read."""
    if b'"persistentVolumeClaim"' not in snapshot.data and b'"ephemeral"' not in snapshot.data:
        return []
    return claims_of(Pod.decode(snapshot.data))


class _ToClaims:
    """A mapper of volumes: to the claim one is kept for; to all that wait, where it is for anybody."""

    def __init__(self, parts: Parts) -> None:
        self._cache = parts.manager.cache

    def __call__(self, snapshot: Snapshot) -> list[Request]:
        volume = PersistentVolume.decode(snapshot.data)
        kept = volume.spec.claim_ref
        if kept is not None:
            return [Key(kept.namespace or "", kept.name or "")]
        held = (
            each
            for informer in self._cache.holds(PersistentVolumeClaim.resource.gvk)
            for each in informer.store
        )
        return [each.key for each in held]


def _to_volume(snapshot: Snapshot) -> list[Request]:
    claim = PersistentVolumeClaim.decode(snapshot.data)
    made = f"pvc-{claim.metadata.uid}"
    return [Key("", name) for name in dict.fromkeys([claim.spec.volume_name or made, made])]


class Claims:
    """Brings one claim to its volume."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._client = parts.client

    async def reconcile(self, request: Request) -> Result | None:
        claim = await ignore_not_found(
            self._client.get(PersistentVolumeClaim, request.name, namespace=request.namespace)
        )
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        if claim.status.phase in ("Bound", "Lost") and claim.spec.volume_name:
            await self._check(claim)
            return None
        claim = await self._with_class(claim)
        volumes = list(await self._client.list(PersistentVolume))
        if await self._must_wait(claim):
            # What is kept for it by hand it may have; all else is chosen when it is known who comes.
            volumes = [each for each in volumes if match.is_for(each, claim)]
        volume = match.find_volume(claim, volumes)
        if volume is None:
            volume = await self._provision(claim)
        if volume is None:
            return Result(requeue_after=LOOK_AGAIN)
        await self._bind(claim, volume)
        return None

    async def _check(self, claim: PersistentVolumeClaim) -> None:
        """A claim whose volume is gone is Lost: nothing else can stand in its place."""
        name = claim.spec.volume_name or ""
        volume = await ignore_not_found(self._client.get(PersistentVolume, name))
        if claim.status.phase == "Bound" and volume is None:
            claim.status.phase = "Lost"
            claim.status.capacity = None
            claim.status.access_modes = None
            await self._client.update_status(claim)
            note = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            self._parts.tell(SOURCE, claim, "Warning", "ClaimLost", note)

    async def _with_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """The claim, which gets the default class if it names none."""
        if claim.spec.storage_class_name is not None or claim.spec.volume_name:
            return claim
        storage = match.default_class(await self._client.list(StorageClass))
        if storage is None:
            return claim
        claim.spec.storage_class_name = storage.metadata.name
        return await self._client.update(claim)

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        kept = volume.spec.claim_ref
        if kept is None or kept.uid != claim.metadata.uid:
            if kept is None:
                _annotate(volume.metadata, match.BOUND_BY_CONTROLLER)
            volume.spec.claim_ref = match.reference_to(claim)
            volume = await self._client.update(volume)
        if volume.status.phase != "Bound":
            volume.status.phase = "Bound"
            volume.status.last_phase_transition_time = Time.of(self._parts.clock.utc())
            volume = await self._client.update_status(volume)
        annotations = claim.metadata.annotations or {}
        if not claim.spec.volume_name or match.BIND_COMPLETED not in annotations:
            if not claim.spec.volume_name:
                _annotate(claim.metadata, match.BOUND_BY_CONTROLLER)
            _annotate(claim.metadata, match.BIND_COMPLETED)
            claim.spec.volume_name = volume.metadata.name
            claim = await self._client.update(claim)
        claim.status.phase = "Bound"
        claim.status.access_modes = volume.spec.access_modes
        claim.status.capacity = volume.spec.capacity
        await self._client.update_status(claim)

    async def _provision(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """A new volume for a claim; None if none can be made now, of which an Event tells."""
        name = claim.spec.storage_class_name
        if not name:
            note = "no persistent volumes available for this claim and no storage class is set"
            self._parts.tell(SOURCE, claim, "Normal", "FailedBinding", note)
            return None
        storage = await ignore_not_found(self._client.get(StorageClass, name))
        if storage is None:
            note = f'storageclass.storage.k8s.io "{name}" not found'
            self._parts.tell(SOURCE, claim, "Warning", "ProvisioningFailed", note)
            return None
        if await self._must_wait(claim):
            note = "waiting for first consumer to be created before binding"
            self._parts.tell(SOURCE, claim, "Normal", "WaitForFirstConsumer", note)
            return None
        if storage.provisioner == "kubernetes.io/no-provisioner":
            return None
        if storage.provisioner != PROVISIONER:
            note = (
                "Waiting for a volume to be created either by the external provisioner "
                f"'{storage.provisioner}' or manually by the system administrator. If volume creation is "
                "delayed, please verify that the provisioner is running and correctly registered."
            )
            self._parts.tell(SOURCE, claim, "Normal", "ExternalProvisioning", note)
            return None
        wanted = match.provisioned(claim, storage)
        try:
            volume = await self._client.create(wanted)
        except AlreadyExists:
            return await self._client.live.get(PersistentVolume, wanted.metadata.name or "")
        note = f"Successfully provisioned volume {volume.metadata.name}"
        self._parts.tell(PROVISIONER, claim, "Normal", "ProvisioningSucceeded", note)
        return volume

    async def _must_wait(self, claim: PersistentVolumeClaim) -> bool:
        """Whether its class waits for the first consumer, and there is none yet."""
        name = claim.spec.storage_class_name
        if not name or claim.spec.volume_name:
            return False
        storage = await ignore_not_found(self._client.get(StorageClass, name))
        if storage is None or storage.volume_binding_mode != "WaitForFirstConsumer":
            return False
        key = Key(claim.metadata.namespace or "", claim.metadata.name or "")
        pods = await self._client.list(Pod, namespace=key.namespace)
        return not any(key in claims_of(pod) for pod in pods)


def _annotate(metadata: ObjectMeta, name: str) -> None:
    metadata.annotations = {**(metadata.annotations or {}), name: "yes"}


class Volumes:
    """Brings the phase of one volume to what its claim is."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._client = parts.client

    async def reconcile(self, request: Request) -> None:
        volume = await ignore_not_found(self._client.get(PersistentVolume, request.name))
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return
        kept = volume.spec.claim_ref
        if kept is None or not kept.uid:
            await self._set_phase(volume, "Available")
            return
        claim = await ignore_not_found(
            self._client.get(PersistentVolumeClaim, kept.name or "", namespace=kept.namespace)
        )
        if claim is not None and claim.metadata.uid == kept.uid:
            return  # binding is for the claim to do
        volume = await self._set_phase(volume, "Released")
        made_by = (volume.metadata.annotations or {}).get(match.PROVISIONED_BY)
        if volume.spec.persistent_volume_reclaim_policy == "Delete" and made_by == PROVISIONER:
            with suppress(NotFound):
                await self._client.delete(volume, uid=volume.metadata.uid or "")

    async def _set_phase(self, volume: PersistentVolume, phase: str) -> PersistentVolume:
        if volume.status.phase == phase:
            return volume
        volume.status.phase = phase
        volume.status.last_phase_transition_time = Time.of(self._parts.clock.utc())
        return await self._client.update_status(volume)


class _Classes:
    """Makes the default class, once, where there is no class at all."""

    def __init__(self, parts: Parts) -> None:
        self._client = parts.client

    async def reconcile(self, request: Request) -> None:
        if request != _START or await self._client.list(StorageClass):
            return
        wanted = StorageClass(
            metadata=ObjectMeta(name=CLASS, annotations={match.IS_DEFAULT: "true"}),
            provisioner=PROVISIONER,
            allow_volume_expansion=True,  # they exist in name only
        )
        with suppress(AlreadyExists):
            await self._client.create(wanted)
