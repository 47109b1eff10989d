"""Keeps new pods from nodes that say that something is wrong with them: the conditions become taints.

A node begins with the taint of one that is not ready, which the server gives it; when it says that it is
ready, the taint goes.  A node that is cordoned (``spec.unschedulable``) is tainted likewise.  All these keep
new pods away (``NoSchedule``) and let those that run go on.

Not here: nodes that no longer say anything, and pods that must leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setpoint.api.model import to_wire
from setpoint.api.patches import MergePatch
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import Means, complete
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.result import Request
from setpoint.kube.core.v1 import Node, NodeCondition, Taint

NAME: Final = "node-lifecycle-controller"
_PREFIX: Final = "node.kubernetes.io/"
_UNSCHEDULABLE: Final = f"{_PREFIX}unschedulable"
_TAINTS: Final = {
    ("Ready", "False"): f"{_PREFIX}not-ready",
    ("Ready", "Unknown"): f"{_PREFIX}unreachable",
    ("MemoryPressure", "True"): f"{_PREFIX}memory-pressure",
    ("DiskPressure", "True"): f"{_PREFIX}disk-pressure",
    ("NetworkUnavailable", "True"): f"{_PREFIX}network-unavailable",
    ("PIDPressure", "True"): f"{_PREFIX}pid-pressure",
}
_OURS: Final = frozenset({*_TAINTS.values(), _UNSCHEDULABLE})


def taints_of(node: Node) -> list[Taint]:
    """The taints that a node should have: those of others, and those that its conditions mean."""
    conditions: Sequence[NodeCondition] = node.status.conditions or ()
    wrong = {_TAINTS[each.type, each.status] for each in conditions if (each.type, each.status) in _TAINTS}
    if not any(each.type == "Ready" for each in conditions):
        wrong.add(f"{_PREFIX}not-ready")  # it has yet to say that it is
    if node.spec.unschedulable:
        wrong.add(_UNSCHEDULABLE)
    there = node.spec.taints or []
    kept = [each for each in there if not _is_ours(each) or each.key in wrong]
    known = {each.key for each in kept if _is_ours(each)}
    return [*kept, *(Taint(key=key, effect="NoSchedule") for key in sorted(wrong - known))]


def _is_ours(taint: Taint) -> bool:
    return taint.key in _OURS and taint.effect == "NoSchedule"


def add_to(parts: Parts) -> Controller:
    """Have nodes tainted by their conditions."""
    means = Means(NAME, parts)

    async def reconcile(request: Request) -> None:
        node = await ignore_not_found(means.client.get(Node, request.name))
        if node is None:
            return
        taints = taints_of(node)
        if taints != (node.spec.taints or []):
            wish = {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": to_wire(taints) or None},
            }
            await means.client.patch(node, MergePatch(wish))

    return complete(means.building(workers=2).for_(Node), reconcile)
