"""Keeps the status of PodDisruptionBudgets: how many pods may be taken away on purpose, just now.

1. A pod counts as healthy while it is Ready, is not being deleted, and nobody was allowed to evict it.
2. How many there should be is asked of those who manage the pods, where the budget is a share; else the pods
   are counted.  Pods that nobody manages then count for nothing, and a Warning says so.
3. An eviction that was allowed and has not happened after two minutes is taken back.

How many that makes is decided in ``status_of``.  Evictions themselves are the server's: it grants one where
this status says that there is room, and writes it down there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from setpoint.api.forms import Untyped
from setpoint.api.int_or_string import scaled_value
from setpoint.api.meta import Condition, LabelSelector, OwnerReference
from setpoint.api.names import GroupVersionKind
from setpoint.api.selectors import LabelSelection
from setpoint.api.times import Time
from setpoint.builtin.endpoints_pods import is_ready
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.builtin.selecting import Selecting
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.owners import controller_of
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Kind
from setpoint.errors import KindNotServed, NotFound, UnknownKind
from setpoint.kube.apps.v1 import ReplicaSet
from setpoint.kube.core.v1 import Pod
from setpoint.kube.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetStatus

NAME: Final = "disruption-controller"
SOURCE: Final = "controllermanager"  # what its Events say they come from
EVICTED_WITHIN = timedelta(minutes=2)
_ALLOWED: Final = "DisruptionAllowed"


def add_to(parts: Parts) -> None:
    """Keep the status of budgets."""
    cache = parts.manager.cache
    budgets = Selecting(cache, PodDisruptionBudget, PodDisruptionBudget.decode, selector_of)
    building = (
        builder(parts.manager)
        .named(NAME)
        .reads(Kind(cache, PodDisruptionBudget, budgets.hear))
        .reads(Kind(cache, Pod, budgets.of_pod))
    )
    complete(building, Budgets(parts).reconcile)


def selector_of(budget: PodDisruptionBudget) -> LabelSelection | None:
    """Which pods a budget is about; none where it has no selector, all where that is empty."""
    selector = budget.spec.selector
    return None if selector is None else LabelSelection.from_object(selector)


# ---- what is decided -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """How many pods there should be, by those who manage them, and which pods nobody manages."""

    replicas: int
    unmanaged: tuple[str, ...] = ()


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Whether the budget is a share of something, and not a number of pods."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def expected_and_desired(budget: PodDisruptionBudget, pods: int, scale: Scale | None) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy."""
    spec = budget.spec
    replicas = pods if scale is None else scale.replicas
    if spec.max_unavailable is not None:
        return replicas, max(0, replicas - scaled_value(spec.max_unavailable, replicas, round_up=True))
    if spec.min_available is not None:
        return replicas, scaled_value(spec.min_available, replicas, round_up=True)
    return 0, 0


def evicted(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime) -> dict[str, Time]:
    """The evictions that were allowed and may yet happen."""
    there = {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None}
    return {
        name: time
        for name, time in (budget.status.disrupted_pods or {}).items()
        if name in there and time + EVICTED_WITHIN >= now
    }


def status_of(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scale: Scale | None, now: datetime
) -> PodDisruptionBudgetStatus:
    """What a budget says of itself."""
    expected, desired = expected_and_desired(budget, len(pods), scale)
    waiting = evicted(budget, pods, now)
    healthy = sum(
        pod.metadata.deletion_timestamp is None and pod.metadata.name not in waiting and is_ready(pod)
        for pod in pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = budget.metadata.generation
    old = budget.status.conditions or []
    before = next((each for each in old if each.type == _ALLOWED), None)
    status = "True" if allowed else "False"
    condition = Condition(
        type=_ALLOWED,
        status=status,
        reason="SufficientPods" if allowed else "InsufficientPods",
        message="",
        observed_generation=generation,
        last_transition_time=before.last_transition_time
        if before is not None and before.status == status
        else Time.of(now),
    )
    return PodDisruptionBudgetStatus(
        conditions=[*(each for each in old if each.type != _ALLOWED), condition],
        current_healthy=healthy,
        desired_healthy=desired,
        disrupted_pods=waiting or None,
        disruptions_allowed=allowed,
        expected_pods=expected,
        observed_generation=generation,
    )


def unmanaged_note(selector: LabelSelector | None) -> str:
    """The Warning, as kube-controller-manager words it: with the selector as Go prints it."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {_as_go(selector)}) were found to be"
        " unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in"
        ' undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to'
        " an integer value."
    )


def _as_go(selector: LabelSelector | None) -> str:
    if selector is None:
        return "nil"
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.match_labels or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},"
        f"Values:[{' '.join(each.values or ())}],}},"
        for each in selector.match_expressions or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


# ---- what is done ----------------------------------------------------------------------------------


class Budgets:
    """Brings the status of one budget to what its pods are."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._client = parts.client

    async def reconcile(self, request: Request) -> Result | None:
        budget = await ignore_not_found(
            self._client.get(PodDisruptionBudget, request.name, namespace=request.namespace)
        )
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return None
        selector = selector_of(budget)
        pods: list[Pod] = []
        if selector is not None:
            pods = list(await self._client.list(Pod, namespace=request.namespace, labels=selector))
        if not pods:
            self._parts.tell(SOURCE, budget, "Normal", "NoPods", "No matching pods found")
        scale = await self._scale(pods) if needs_scale(budget) else None
        if scale is not None and scale.unmanaged:
            note = unmanaged_note(budget.spec.selector)
            self._parts.tell(SOURCE, budget, "Warning", "UnmanagedPods", note)
        now = self._parts.clock.utc()
        status = status_of(budget, pods, scale, now)
        if status != budget.status:
            budget.status = status
            await self._client.update_status(budget)
        return _next_look(status.disrupted_pods or {}, now)

    async def _scale(self, pods: Sequence[Pod]) -> Scale:
        """How many pods those who manage these want together."""
        replicas: dict[str, int] = {}
        unmanaged: list[str] = []
        for pod in pods:
            owner, namespace = controller_of(pod), pod.metadata.namespace or ""
            if owner is None or owner.uid in replicas:
                if owner is None:
                    unmanaged.append(pod.metadata.name or "")
                continue
            found = await self._manager(owner, namespace)
            if found is not None:
                replicas[owner.uid] = 0  # it is counted under the one at the top
                replicas[found[0]] = found[1]
        return Scale(sum(replicas.values()), tuple(unmanaged))

    async def _manager(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """The uid and the wish of the one that manages a pod: of a ReplicaSet, its Deployment's."""
        if owner.kind == "ReplicaSet" and owner.api_version.startswith("apps/"):
            replicas = await ignore_not_found(self._client.get(ReplicaSet, owner.name, namespace=namespace))
            above = None if replicas is None else controller_of(replicas)
            owner = above or owner
        try:
            form = Untyped(GroupVersionKind.of(owner.api_version, owner.kind))
            scale = await self._client.live.get_scale(form, owner.name, namespace=namespace)
        except (NotFound, KindNotServed, UnknownKind, ValueError):
            return None  # gone, or of a kind that cannot be asked
        return owner.uid, scale.replicas


def _next_look(waiting: Mapping[str, Time], now: datetime) -> Result | None:
    """When the first eviction is taken back that has not happened."""
    if not waiting:
        return None
    left = min(waiting.values()) + EVICTED_WITHIN - Time.of(now)
    return Result(requeue_after=max(0.0, left.total_seconds()) + 1.0)
