"""Decides what a StatefulSet does next with its pods, and what its status says of them.

Pods have places: the ordinals ``start … start + replicas - 1``.  In order (``OrderedReady``) each look takes
one step, and none while a pod below is not available; with ``Parallel`` all that can be done is done at once.
First every place is filled, then what is beyond the last place goes, from the highest; then what is at an old
revision is deleted, from the highest down to the partition, so that it comes back at the new one.

Pure: ``statefulsets.py`` reads, carries out, and gives the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from setpoint.api.int_or_string import scaled_value
from setpoint.builtin.pods import PodState, has_ended, is_available, is_ready, is_terminating
from setpoint.builtin.revisions import REVISION_LABEL
from setpoint.kube.apps.v1 import StatefulSet, StatefulSetStatus


@dataclass(frozen=True, slots=True)
class Create:
    """Fill a place with a pod of this revision."""

    ordinal: int
    revision: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a pod: one too many, or one of an old revision."""

    pod: PodState
    is_condemned: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete a pod that has ended: its place is filled anew."""

    pod: PodState


Step: TypeAlias = Create | Delete | Replace


def start_of(owner: StatefulSet) -> int:
    return (owner.spec.ordinals.start or 0) if owner.spec.ordinals is not None else 0


def wanted(owner: StatefulSet) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def ordinal_of(owner: StatefulSet, name: str) -> int | None:
    """The place that a pod's name says; None if it is no name of this set."""
    found = re.fullmatch(r"(.*)-(\d+)", name)
    return int(found[2]) if found is not None and found[1] == owner.metadata.name else None


def partition_of(owner: StatefulSet) -> int:
    strategy = owner.spec.update_strategy
    rolling = strategy.rolling_update if strategy is not None else None
    return (rolling.partition or 0) if rolling is not None else 0


def is_rolling(owner: StatefulSet) -> bool:
    return owner.spec.update_strategy is None or owner.spec.update_strategy.type != "OnDelete"


def max_unavailable(owner: StatefulSet) -> int:
    strategy = owner.spec.update_strategy
    rolling = strategy.rolling_update if strategy is not None else None
    if rolling is None or rolling.max_unavailable is None:
        return 1
    return max(1, scaled_value(rolling.max_unavailable, wanted(owner), round_up=True))


def revision_of(pod: PodState) -> str:
    return (pod.metadata.labels or {}).get(REVISION_LABEL, "")


@dataclass(frozen=True, slots=True)
class View:
    """What is known of a set when it is looked at."""

    owner: StatefulSet
    pods: Sequence[PodState]
    current: str  # the name of the revision that pods are at, or should be below the partition
    update: str  # the name of the revision that pods are brought to
    now: datetime

    def at(self, ordinal: int) -> PodState | None:
        return self._by_ordinal().get(ordinal)

    def condemned(self) -> list[PodState]:
        """What has no place any more, the highest first."""
        places = self.places()
        beyond = {each: pod for each, pod in self._by_ordinal().items() if each not in places}
        return [beyond[each] for each in sorted(beyond, reverse=True)]

    def places(self) -> range:
        start = start_of(self.owner)
        return range(start, start + wanted(self.owner))

    def is_healthy(self, pod: PodState) -> bool:
        return _runs(pod) and not is_terminating(pod) and self._is_available(pod)

    def revision_for(self, ordinal: int) -> str:
        """At which revision a place is filled: below the partition at the current one."""
        if not is_rolling(self.owner):
            return self.update
        strategy = self.owner.spec.update_strategy
        if strategy is None or strategy.rolling_update is None:
            is_current = ordinal < start_of(self.owner) + (self.owner.status.current_replicas or 0)
        else:
            is_current = ordinal < start_of(self.owner) + partition_of(self.owner)
        return self.current if is_current else self.update

    def _by_ordinal(self) -> dict[int, PodState]:
        found = {}
        for pod in self.pods:
            ordinal = ordinal_of(self.owner, pod.metadata.name or "")
            if ordinal is not None:
                found[ordinal] = pod
        return found

    def _is_available(self, pod: PodState) -> bool:
        return is_available(pod, self.owner.spec.min_ready_seconds or 0, self.now)


def steps(view: View) -> list[Step]:
    """What to do now."""
    is_ordered = view.owner.spec.pod_management_policy != "Parallel"
    scaling, may_go_on = _scale(view, is_ordered=is_ordered)
    if not may_go_on or not is_rolling(view.owner):
        return scaling
    return [*scaling, *_update(view)]


def _scale(view: View, *, is_ordered: bool) -> tuple[list[Step], bool]:
    """Fill the places and clear what is beyond; and whether there is more to be done in the same look."""
    found: list[Step] = []
    for ordinal in view.places():
        pod = view.at(ordinal)
        if pod is None:
            found.append(Create(ordinal, view.revision_for(ordinal)))
        elif has_ended(pod) and not is_terminating(pod):
            found.append(Replace(pod))
        elif view.is_healthy(pod):
            continue
        if is_ordered:
            return found, False
    for pod in view.condemned():
        if not is_terminating(pod):
            found.append(Delete(pod, is_condemned=True))
        if is_ordered:
            return found, False
    return found, True


def _update(view: View) -> list[Step]:
    """Delete what is at an old revision, as many as may be missing at once."""
    most, found = max_unavailable(view.owner), list[Step]()
    places = view.places()
    there = [pod for ordinal in places if (pod := view.at(ordinal)) is not None]
    missing = len(places) - sum(map(view.is_healthy, there))
    for ordinal in reversed(places[partition_of(view.owner) :]):
        pod = view.at(ordinal)
        if pod is None or has_ended(pod):
            continue
        is_stale = revision_of(pod) != view.update and not is_terminating(pod)
        if is_stale and not view.is_healthy(pod):
            found.append(Delete(pod))  # it is missing as it is
        elif is_stale and missing < most:
            found.append(Delete(pod))
            missing += 1
        elif is_stale or (most == 1 and not view.is_healthy(pod)):
            return found
        if most == 1 and found:
            return found
    return found


def status_of(view: View, collisions: int) -> StatefulSetStatus:
    """What is to be said of the pods, as they were before this look did anything."""
    owner = view.owner
    there = [pod for pod in view.pods if pod.status.phase]
    staying = [pod for pod in there if not is_terminating(pod)]
    ready = [pod for pod in there if _runs(pod)]
    updated = sum(revision_of(pod) == view.update for pod in staying)
    status = StatefulSetStatus(
        observed_generation=owner.metadata.generation,
        replicas=len(there),
        ready_replicas=len(ready) or None,
        available_replicas=sum(
            is_available(pod, owner.spec.min_ready_seconds or 0, view.now) for pod in ready
        ),
        current_replicas=sum(revision_of(pod) == view.current for pod in staying) or None,
        updated_replicas=updated or None,
        current_revision=view.current,
        update_revision=view.update,
        collision_count=collisions,
        conditions=owner.status.conditions,
    )
    is_done = updated == len(there) == len(ready) == wanted(owner)
    if is_rolling(owner) and is_done:
        status.current_revision, status.current_replicas = view.update, updated or None
    return status


def _runs(pod: PodState) -> bool:
    return pod.status.phase == "Running" and is_ready(pod)
