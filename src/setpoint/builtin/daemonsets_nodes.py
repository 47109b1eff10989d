"""Decides which nodes a DaemonSet's pods belong on, and which of them are made, replaced or deleted.

A pod belongs on a node that its template selects and whose taints it tolerates; daemons tolerate what is
wrong with a node, for they are there to see to it.  On each such node there is one pod, or in a surge the old
one and the new one side by side until the new one is available.

Pure: ``daemonsets.py`` reads, carries out, and gives the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from setpoint.api.int_or_string import IntOrString, scaled_value
from setpoint.builtin.pods import PodState, has_ended, is_available, is_ready, is_terminating
from setpoint.builtin.revisions import REVISION_LABEL
from setpoint.kube.apps.v1 import DaemonSet, DaemonSetStatus
from setpoint.kube.core.v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    Taint,
    Toleration,
)

NAME_FIELD: Final = "metadata.name"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


# ---- where pods belong -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a pod should be on a node, and whether one that is there may stay."""

    should_run: bool
    may_stay: bool


def fit(spec: PodSpec, node: Node) -> Fit:
    """How a node suits a pod; one that does not tolerate what only keeps new pods away may stay."""
    if spec.node_name not in {None, "", node.metadata.name} or not _is_selected(spec, node):
        return Fit(should_run=False, may_stay=False)
    against = [taint for taint in node.spec.taints or () if not is_tolerated(tolerations(spec), taint)]
    if any(taint.effect in {"NoSchedule", "NoExecute"} for taint in against):
        return Fit(should_run=False, may_stay=not any(taint.effect == "NoExecute" for taint in against))
    return Fit(should_run=True, may_stay=True)


def tolerations(spec: PodSpec) -> list[Toleration]:
    """What the template tolerates, and what every daemon does."""
    daemons = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in _TOLERATED]
    if spec.host_network:
        away = "node.kubernetes.io/network-unavailable"
        daemons.append(Toleration(key=away, operator="Exists", effect="NoSchedule"))
    own = spec.tolerations or []
    return [*own, *(each for each in daemons if each not in own)]


def is_tolerated(tolerated: Sequence[Toleration], taint: Taint) -> bool:
    return any(
        each.effect in {None, "", taint.effect}
        and each.key in {None, "", taint.key}
        and (each.operator == "Exists" or (each.key and (each.value or "") == (taint.value or "")))
        for each in tolerated
    )


def _is_selected(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if not (spec.node_selector or {}).items() <= labels.items():
        return False
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return True
    fields = {NAME_FIELD: node.metadata.name or ""}
    return any(
        (term.match_expressions or term.match_fields)
        and all(_holds(each, labels) for each in term.match_expressions or ())
        and all(_holds(each, fields) for each in term.match_fields or ())
        for term in required.node_selector_terms
    )


def _holds(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value, wanted = values.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:  # Gt and Lt
        number, bound = int(value or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def bound_to(affinity: Affinity | None, node: str) -> Affinity:
    """The affinity of a pod that is to go to this node and no other."""
    required = NodeSelector(
        node_selector_terms=[
            NodeSelectorTerm(
                match_fields=[NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=[node])]
            )
        ]
    )
    of_nodes = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    if affinity is None:
        return Affinity(node_affinity=of_nodes)
    if affinity.node_affinity is not None:
        of_nodes.preferred_during_scheduling_ignored_during_execution = (
            affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
        )
    return Affinity(
        node_affinity=of_nodes,
        pod_affinity=affinity.pod_affinity,
        pod_anti_affinity=affinity.pod_anti_affinity,
    )


def node_of(pod: PodState) -> str:
    """The node that a pod is on, or is meant for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms if required else ():
        for wanted in term.match_fields or ():
            if wanted.key == NAME_FIELD and wanted.operator == "In" and wanted.values:
                return wanted.values[0]
    return ""


# ---- what to do ------------------------------------------------------------------------------------


@dataclass
class Plan:
    """On which nodes to make pods, which to delete, and which of those have ended."""

    create: list[str] = field(default_factory=list)
    delete: list[PodState] = field(default_factory=list)
    ended: list[PodState] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class View:
    """What is known of a set when it is looked at."""

    owner: DaemonSet
    nodes: Sequence[Node]
    pods: Sequence[PodState]
    revision: str  # the hash of the newest
    now: datetime

    def on(self, node: str) -> list[PodState]:
        """The pods of a node, the oldest first."""
        found = [pod for pod in self.pods if node_of(pod) == node]
        return sorted(found, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name or ""))

    def is_new(self, pod: PodState) -> bool:
        return (pod.metadata.labels or {}).get(REVISION_LABEL) == self.revision

    def is_available(self, pod: PodState) -> bool:
        return is_available(pod, self.owner.spec.min_ready_seconds or 0, self.now)

    def fits(self) -> dict[str, Fit]:
        return {node.metadata.name or "": fit(self.owner.spec.template.spec, node) for node in self.nodes}


def place(view: View) -> Plan:
    """One pod on each node where it should run, and none where it may not stay."""
    plan, surges = Plan(), bounds(view)[0] > 0
    fits = view.fits()
    for node, suits in fits.items():
        there = view.on(node)
        if suits.should_run and not there:
            plan.create.append(node)
        staying = [pod for pod in there if not is_terminating(pod)]
        ended = [pod for pod in staying if has_ended(pod)]
        if not suits.may_stay:
            plan.delete += staying
            continue
        plan.ended += ended
        running = [pod for pod in staying if pod not in ended]
        if surges:
            old, new = (
                [pod for pod in running if not view.is_new(pod)],
                [pod for pod in running if view.is_new(pod)],
            )
            plan.delete += [*old[1:], *new[1:]]
        else:
            plan.delete += running[1:]
    plan.delete += [
        pod for pod in view.pods if node_of(pod) not in fits and not is_terminating(pod) and node_of(pod)
    ]
    return plan


def update(view: View) -> Plan:
    """Bring pods to the newest revision, as many at a time as may be missing, or may be too many."""
    plan, (surge, unavailable) = Plan(), bounds(view)
    strategy = view.owner.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return plan
    candidates: list[PodState] = []
    surging: list[str] = []
    missing = used = 0
    for node, suits in view.fits().items():
        if not suits.should_run:
            continue
        running = [pod for pod in view.on(node) if not is_terminating(pod) and not has_ended(pod)]
        old = next((pod for pod in running if not view.is_new(pod)), None)
        new = next((pod for pod in running if view.is_new(pod)), None)
        if surge:
            if new is not None and old is not None:
                if view.is_available(new):
                    plan.delete.append(old)
                else:
                    used += 1
            elif old is not None and view.is_available(old):
                surging.append(node)
            elif old is not None:
                plan.create.append(node)
                used += 1
        elif old is not None:
            if view.is_available(old):
                candidates.append(old)
            else:
                plan.delete.append(old)  # it is missing as it is
                missing += 1
        elif new is None or not view.is_available(new):
            missing += 1
    plan.delete += candidates[: max(0, unavailable - missing)]
    plan.create += surging[: max(0, surge - used)]
    return plan


def bounds(view: View) -> tuple[int, int]:
    """How many nodes may have two pods at once, and how many none that is available."""
    strategy = view.owner.spec.update_strategy
    rolling = strategy.rolling_update if strategy is not None else None
    if rolling is None:
        return 0, 1
    wanted = sum(each.should_run for each in view.fits().values())

    def share(value: IntOrString | None) -> int:
        return scaled_value(0 if value is None else value, wanted, round_up=True)

    surge, unavailable = share(rolling.max_surge), share(rolling.max_unavailable)
    return surge, unavailable if surge or unavailable else 1


def status_of(view: View, collisions: int) -> DaemonSetStatus:
    """What is to be said of the pods."""
    desired = current = misplaced = ready = free = updated = 0
    for node, suits in view.fits().items():
        there = view.on(node)
        if not suits.should_run:
            misplaced += bool(there)
            continue
        desired += 1
        if not there:
            continue
        current += 1
        first = there[0]
        ready += is_ready(first)
        free += is_ready(first) and view.is_available(first)
        updated += view.is_new(first)
    return DaemonSetStatus(
        current_number_scheduled=current,
        number_misscheduled=misplaced,
        desired_number_scheduled=desired,
        number_ready=ready,
        observed_generation=view.owner.metadata.generation,
        updated_number_scheduled=updated or None,
        number_available=free or None,
        number_unavailable=(desired - free) or None,
        collision_count=collisions or None,
        conditions=view.owner.status.conditions,
    )
