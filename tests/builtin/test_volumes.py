"""The promises of ``builtin/volumes*.py``: pure ones, and on a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.quantity import Quantity
from setpoint.api.times import Time
from setpoint.builtin.volumes_match import default_class, find_volume
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import (
    Container,
    Event,
    HostPathVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Volume,
    VolumeResourceRequirements,
)
from setpoint.kube.storage.v1 import StorageClass
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

NAMES = [
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
]


def claim(name: str = "c", size: str = "1Gi", **spec: Any) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity(size)})
    spec.setdefault("access_modes", ["ReadWriteOnce"])
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PersistentVolumeClaimSpec(resources=resources, **spec),
    )


def volume(name: str, size: str = "1Gi", **spec: Any) -> PersistentVolume:
    spec.setdefault("access_modes", ["ReadWriteOnce"])
    spec.setdefault("storage_class_name", "manual")
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": Quantity(size)}, host_path=HostPathVolumeSource(path="/x"), **spec
        ),
    )


# ---- which volume ----------------------------------------------------------------------------------


def test_the_smallest_that_fits_is_taken() -> None:
    wanted = claim(storage_class_name="manual")
    volumes = [
        volume("big", "3Gi"),
        volume("right", "2Gi"),
        volume("small", "1Mi"),
        volume("other", storage_class_name="x"),
        volume("block", volume_mode="Block"),
        volume("read", access_modes=["ReadOnlyMany"]),
        volume("taken", claim_ref=ObjectReference(namespace="default", name="d", uid="u")),
    ]
    found = find_volume(wanted, volumes)
    assert found is not None
    assert found.metadata.name == "right"


def test_a_volume_that_is_kept_for_a_claim_is_its_own() -> None:
    kept = volume("kept", claim_ref=ObjectReference(namespace="default", name="c"))
    wanted = claim(storage_class_name="manual")
    assert find_volume(wanted, [volume("free"), kept]) is kept
    assert find_volume(claim("other", storage_class_name="manual"), [kept]) is None


def test_of_several_default_classes_the_newest_is_meant() -> None:
    def storage(name: str, day: int, is_default: str = "true") -> StorageClass:
        metadata = ObjectMeta(
            name=name,
            annotations={"storageclass.kubernetes.io/is-default-class": is_default},
            creation_timestamp=Time.parse(f"2030-01-0{day}T00:00:00Z"),
        )
        return StorageClass(metadata=metadata, provisioner="p")

    found = default_class([storage("a", 1), storage("b", 2), storage("c", 3, "false")])
    assert found is not None
    assert found.metadata.name == "b"
    assert default_class([]) is None


# ---- on a server -----------------------------------------------------------------------------------

pod = Pod(
    metadata=ObjectMeta(name="p", namespace="default"),
    spec=PodSpec(
        containers=[Container(name="c", image="i")],
        volumes=[Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="c"))],
    ),
)


async def bound(client: Client, name: str = "c") -> PersistentVolumeClaim:
    async def is_bound() -> PersistentVolumeClaim | None:
        known = await client.get(PersistentVolumeClaim, name, namespace="default")
        return known if known.status.phase == "Bound" else None

    return await eventually(is_bound)


async def told(client: Client, reason: str) -> Event:
    async def is_told() -> Event | None:
        events = await client.list(Event, namespace="default")
        return next((each for each in events if each.reason == reason), None)

    return await eventually(is_told)


@pytest.mark.virtual_time
async def test_a_claim_without_a_class_gets_a_volume_of_the_default_one() -> None:
    async with cluster(NAMES) as client:
        await client.create(claim())
        known = await bound(client)
        assert known.spec.storage_class_name == "standard"
        assert known.spec.volume_name == f"pvc-{known.metadata.uid}"
        assert known.status.capacity == {"storage": Quantity("1Gi")}
        assert set(known.metadata.annotations or ()) == {
            "pv.kubernetes.io/bind-completed",
            "pv.kubernetes.io/bound-by-controller",
        }
        made = await client.get(PersistentVolume, known.spec.volume_name)
        assert made.status.phase == "Bound"
        assert made.spec.claim_ref is not None
        assert made.spec.claim_ref.uid == known.metadata.uid
        await client.delete(known)

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(PersistentVolume, made.metadata.name or "")) is None

        await eventually(is_gone)


@pytest.mark.virtual_time
async def test_a_volume_made_by_hand_is_bound_and_then_released() -> None:
    async with cluster(NAMES) as client:
        await client.create(volume("v", "2Gi", persistent_volume_reclaim_policy="Retain"))

        async def has_phase(phase: str) -> bool:
            return (await client.get(PersistentVolume, "v")).status.phase == phase

        await eventually(lambda: has_phase("Available"))
        await client.create(claim(storage_class_name="manual"))
        known = await bound(client)
        assert known.status.capacity == {"storage": Quantity("2Gi")}
        kept = await client.get(PersistentVolume, "v")
        assert kept.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
        await client.delete(known)
        await eventually(lambda: has_phase("Released"))
        await client.delete(PersistentVolume, "v")

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(PersistentVolume, "v")) is None

        await eventually(is_gone)


@pytest.mark.virtual_time
async def test_a_claim_in_use_stays_until_the_pod_is_gone() -> None:
    async with cluster(NAMES) as client:
        await client.create(pod)
        await client.create(claim())
        known = await bound(client)
        await client.delete(known)
        await asyncio.sleep(60)
        assert await client.get(PersistentVolumeClaim, "c", namespace="default")
        await client.delete(Pod, "p", namespace="default", grace_period=0)

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(PersistentVolumeClaim, "c", namespace="default")) is None

        await eventually(is_gone)


@pytest.mark.virtual_time
async def test_a_bound_claim_says_whether_a_pod_uses_it() -> None:
    async with cluster(NAMES) as client:
        await client.create(claim())

        async def says(status: str, reason: str) -> bool:
            known = await client.get(PersistentVolumeClaim, "c", namespace="default")
            return [(each.type, each.status, each.reason) for each in known.status.conditions or ()] == [
                ("Unused", status, reason)
            ]

        await eventually(lambda: says("True", "NoPodsUsingPVC"))
        await client.create(pod)
        await eventually(lambda: says("False", "PodUsingPVC"))
        await client.delete(Pod, "p", namespace="default", grace_period=0)
        await eventually(lambda: says("True", "NoPodsUsingPVC"))


@pytest.mark.virtual_time
async def test_a_class_that_waits_for_its_first_consumer_waits_for_it() -> None:
    async with cluster(NAMES) as client:
        await client.create(
            StorageClass(
                metadata=ObjectMeta(name="late"),
                provisioner="setpoint.dev/provisioner",
                volume_binding_mode="WaitForFirstConsumer",
            )
        )
        await client.create(volume("free", storage_class_name="late"))
        await client.create(claim(storage_class_name="late"))
        await told(client, "WaitForFirstConsumer")
        await asyncio.sleep(60)
        known = await client.get(PersistentVolumeClaim, "c", namespace="default")
        assert known.status.phase == "Pending"
        await client.create(pod)
        assert (await bound(client)).spec.volume_name == "free"


@pytest.mark.virtual_time
async def test_what_cannot_be_bound_says_why() -> None:
    async with cluster(NAMES) as client:
        await client.create(claim("none", storage_class_name=""))
        await client.create(claim("unknown", storage_class_name="x"))
        await client.create(StorageClass(metadata=ObjectMeta(name="theirs"), provisioner="x.io/y"))
        await client.create(claim("theirs", storage_class_name="theirs"))
        assert (await told(client, "FailedBinding")).message == (
            "no persistent volumes available for this claim and no storage class is set"
        )
        assert (await told(client, "ProvisioningFailed")).type == "Warning"
        assert "'x.io/y'" in ((await told(client, "ExternalProvisioning")).message or "")


@pytest.mark.virtual_time
async def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    async with cluster(NAMES[:1]) as client:
        await client.create(claim())
        known = await bound(client)
        made = await client.get(PersistentVolume, known.spec.volume_name or "")
        made.metadata.finalizers = None
        await client.update(made)
        await client.delete(made)

        async def is_lost() -> bool:
            claimed = await client.get(PersistentVolumeClaim, "c", namespace="default")
            return claimed.status.phase == "Lost"

        await eventually(is_lost)
