"""Nodes are tainted by what they say of themselves."""

from __future__ import annotations

import pytest

from setpoint.api.model import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.builtin.nodes import add_to, taints_of
from setpoint.kube.core.v1 import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import cluster


def node(*taints: Taint, unschedulable: bool | None = None, **conditions: str) -> Node:
    told = [NodeCondition(type=kind, status=status) for kind, status in conditions.items()]
    return Node(
        metadata=ObjectMeta(name="n"),
        spec=NodeSpec(taints=list(taints), unschedulable=unschedulable),
        status=NodeStatus(conditions=told),
    )


def test_a_node_that_is_ready_keeps_only_the_taints_of_others() -> None:
    other = Taint(key="gpu", value="yes", effect="NoSchedule")
    waiting = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    assert taints_of(node(other, waiting, Ready="True")) == [other]


def test_what_is_wrong_with_a_node_becomes_taints() -> None:
    sick = node(Ready="False", MemoryPressure="True", unschedulable=True)
    assert [taint.key.removeprefix("node.kubernetes.io/") for taint in taints_of(sick)] == [
        "memory-pressure", "not-ready", "unschedulable",
    ]  # fmt: skip


@pytest.mark.virtual_time
async def test_a_node_is_tainted_until_it_says_that_it_is_ready_and_while_it_is_cordoned() -> None:
    async with cluster(add_to) as client:

        async def keys() -> list[str]:
            return [taint.key for taint in (await client.get(Node, "node-1")).spec.taints or ()]

        async def is_free() -> bool:
            return await keys() == []

        await eventually(is_free)
        await client.patch(Node, "node-1", MergePatch({"spec": {"unschedulable": True}}))

        async def is_cordoned() -> bool:
            return await keys() == ["node.kubernetes.io/unschedulable"]

        await eventually(is_cordoned)
        await client.patch(Node, "node-1", MergePatch({"spec": {"unschedulable": None}}))
        await eventually(is_free)
