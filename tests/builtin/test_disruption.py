"""The promises of ``builtin/disruption.py``: pure ones, and on a server in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from setpoint.api.meta import LabelSelector, ObjectMeta, OwnerReference
from setpoint.api.times import Time
from setpoint.builtin.disruption import Scale, status_of, unmanaged_note
from setpoint.client.client import Client
from setpoint.errors import TooManyRequests
from setpoint.kube.apps.v1 import ReplicaSet, ReplicaSetSpec
from setpoint.kube.core.v1 import (
    Container,
    Event,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
)
from setpoint.kube.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

NAMES = ["disruption-controller"]
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LABELS = {"app": "web"}


def pod(name: str, *, ready: bool = True, owner: OwnerReference | None = None) -> Pod:
    condition = PodCondition(type="Ready", status="True" if ready else "False")
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            labels=LABELS,
            owner_references=None if owner is None else [owner],
        ),
        spec=PodSpec(containers=[Container(name="c", image="i")], node_name="n1"),
        status=PodStatus(phase="Running", conditions=[condition]),
    )


def budget(**spec: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="pdb", namespace="default", generation=1),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=LABELS), **spec),
    )


@pytest.mark.parametrize(
    ("spec", "scale", "expected", "desired", "allowed"),
    [
        ({"min_available": 1}, None, 3, 1, 2),
        ({"min_available": 5}, None, 3, 5, 0),
        ({"min_available": "50%"}, Scale(5), 5, 3, 0),
        ({"max_unavailable": 1}, Scale(3), 3, 2, 1),
        ({"max_unavailable": "30%"}, Scale(4), 4, 2, 1),
        ({"max_unavailable": "50%"}, Scale(0, ("a",)), 0, 0, 0),
        ({}, None, 0, 0, 0),
    ],
)
def test_what_a_budget_allows(
    spec: dict[str, Any], scale: Scale | None, expected: int, desired: int, allowed: int
) -> None:
    status = status_of(budget(**spec), [pod("a"), pod("b"), pod("c")], scale, NOW)
    assert (status.expected_pods, status.desired_healthy, status.disruptions_allowed) == (
        expected,
        desired,
        allowed,
    )
    assert status.conditions is not None
    (condition,) = status.conditions
    assert condition.reason == ("SufficientPods" if allowed else "InsufficientPods")
    assert status.observed_generation == 1


def test_what_is_deleted_unready_or_about_to_be_evicted_is_not_healthy() -> None:
    leaving = pod("leaving")
    leaving.metadata.deletion_timestamp = Time.of(NOW)
    wanted = budget(min_available=1)
    wanted.status.disrupted_pods = {"evicted": Time.of(NOW), "leaving": Time.of(NOW), "gone": Time.of(NOW)}
    pods = [leaving, pod("sick", ready=False), pod("evicted"), pod("well")]
    status = status_of(wanted, pods, None, NOW)
    assert status.current_healthy == 1
    assert list(status.disrupted_pods or ()) == ["evicted"]
    late = status_of(wanted, pods, None, NOW + timedelta(minutes=3))
    assert late.current_healthy == 2, "an eviction that did not happen is taken back"
    assert not late.disrupted_pods


def test_the_selector_is_shown_as_go_prints_it() -> None:
    assert (
        "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},"
        "MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged."
    ) in unmanaged_note(LabelSelector(match_labels=LABELS))


async def make(client: Client, wanted: Pod) -> None:
    status, wanted.status = wanted.status, PodStatus()
    made = await client.create(wanted)
    made.status = status
    await client.update_status(made)


async def allowed(client: Client) -> tuple[int, int]:
    known = await client.get(PodDisruptionBudget, "pdb", namespace="default")
    return known.status.current_healthy, known.status.disruptions_allowed


@pytest.mark.virtual_time
async def test_evictions_are_granted_while_there_is_room() -> None:
    async with cluster(NAMES) as client:
        await client.create(budget(min_available=1))
        for name in ("a", "b"):
            await make(client, pod(name))

        async def has_room() -> bool:
            return await allowed(client) == (2, 1)

        await eventually(has_room)
        await client.evict("a", namespace="default")
        with pytest.raises(TooManyRequests):
            await client.evict("b", namespace="default", timeout=0.5)

        async def has_none() -> bool:
            return await allowed(client) == (1, 0)

        await eventually(has_none)


@pytest.mark.virtual_time
async def test_a_share_is_of_what_the_manager_of_the_pods_wants() -> None:
    async with cluster(NAMES) as client:
        template = PodTemplateSpec(
            metadata=ObjectMeta(labels=LABELS), spec=PodSpec(containers=[Container(name="c", image="i")])
        )
        replicas = await client.create(
            ReplicaSet(
                metadata=ObjectMeta(name="rs", namespace="default"),
                spec=ReplicaSetSpec(
                    replicas=4, selector=LabelSelector(match_labels=LABELS), template=template
                ),
            )
        )
        owner = OwnerReference(
            api_version="apps/v1",
            kind="ReplicaSet",
            name="rs",
            uid=replicas.metadata.uid or "",
            controller=True,
        )
        for name in ("a", "b", "c"):
            await make(client, pod(name, owner=owner))
        await client.create(budget(max_unavailable="50%"))

        async def is_counted() -> bool:
            known = await client.get(PodDisruptionBudget, "pdb", namespace="default")
            return (known.status.expected_pods, known.status.disruptions_allowed) == (4, 1)

        await eventually(is_counted)


@pytest.mark.virtual_time
async def test_no_pods_and_pods_that_nobody_manages_are_told() -> None:
    async with cluster(NAMES) as client:
        await client.create(budget(max_unavailable=1))

        async def reasons() -> set[str | None]:
            return {each.reason for each in await client.list(Event, namespace="default")}

        async def told(reason: str) -> bool:
            return reason in await reasons()

        await eventually(lambda: told("NoPods"))
        await make(client, pod("alone"))
        await eventually(lambda: told("UnmanagedPods"))
