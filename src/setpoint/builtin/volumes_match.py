"""Decides which volume a claim gets, which class it means, and what a volume made for it looks like.  Pure.

1. A volume that is kept for a claim goes to that claim alone; one that is bound goes to nobody else.
2. Of those that fit (class, access modes, volume mode, size, labels) the smallest is taken.
3. A claim that names no class means the default one; of several defaults, the newest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from setpoint.api.meta import ObjectMeta
from setpoint.api.quantity import Quantity
from setpoint.api.selectors import LabelSelection
from setpoint.kube.core.v1 import (
    HostPathVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from setpoint.kube.storage.v1 import StorageClass

IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_NOTHING: Final = Quantity(0)


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """How a volume names its claim."""
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is kept for a claim, by name or for this very one."""
    kept = volume.spec.claim_ref
    return (
        kept is not None
        and (kept.namespace, kept.name) == (claim.metadata.namespace, claim.metadata.name)
        and kept.uid in (None, "", claim.metadata.uid)
    )


def asked_size(claim: PersistentVolumeClaim) -> Quantity:
    resources = claim.spec.resources
    return ((resources.requests if resources is not None else None) or {}).get("storage", _NOTHING)


def size_of(volume: PersistentVolume) -> Quantity:
    return (volume.spec.capacity or {}).get("storage", _NOTHING)


def fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is what a claim asks for."""
    selector = claim.spec.selector
    return (
        (volume.spec.storage_class_name or "") == (claim.spec.storage_class_name or "")
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())
        and size_of(volume) >= asked_size(claim)
        and (selector is None or LabelSelection.from_object(selector).matches(volume.metadata.labels))
    )


def find_volume(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> PersistentVolume | None:
    """The volume that a claim gets; None if there is none for it."""
    alive = [each for each in volumes if each.metadata.deletion_timestamp is None]
    if claim.spec.volume_name:
        named = (each for each in alive if each.metadata.name == claim.spec.volume_name)
        return next((each for each in named if each.spec.claim_ref is None or is_for(each, claim)), None)
    kept = [each for each in alive if is_for(each, claim)]
    free = [each for each in alive if each.spec.claim_ref is None and fits(each, claim)]
    smallest = sorted(free, key=lambda each: (size_of(each).as_decimal(), each.metadata.name or ""))
    return next(iter(kept or smallest), None)


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none; of several, the newest."""
    marked = [each for each in classes if (each.metadata.annotations or {}).get(IS_DEFAULT) == "true"]
    marked.sort(key=lambda each: (each.metadata.name or "",))
    marked.sort(key=lambda each: str(each.metadata.creation_timestamp), reverse=True)
    return next(iter(marked), None)


def provisioned(claim: PersistentVolumeClaim, storage: StorageClass) -> PersistentVolume:
    """A volume made for a claim."""
    name = f"pvc-{claim.metadata.uid}"
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: storage.provisioner}),
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity={"storage": asked_size(claim)},
            claim_ref=reference_to(claim),
            host_path=HostPathVolumeSource(path=f"/var/lib/setpoint/volumes/{name}", type=""),
            mount_options=storage.mount_options,
            persistent_volume_reclaim_policy=storage.reclaim_policy or "Delete",
            storage_class_name=storage.metadata.name,
            volume_mode=claim.spec.volume_mode or "Filesystem",
        ),
    )
