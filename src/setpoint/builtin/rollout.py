"""Decides what a Deployment does next: which of its ReplicaSets to scale, and what to say of it.

A rollout is a walk in small steps.  Each look takes one of them, and the changes that it causes bring the
next look.  A rolling update keeps two bounds at every step: never more pods than ``replicas + maxSurge``, and
never fewer available ones than ``replicas - maxUnavailable``.

- ``is_scaling`` / ``scale_in_proportion``: the size changed; what there is grows or shrinks in proportion.
- ``roll`` : the new ReplicaSet grows as far as the bounds allow, else the old ones shrink.
- ``recreate``: the old ones go first, all of them.
- ``status_of`` / ``settle_progress``: what the status and its conditions say.

The words (reasons, messages, annotations) are Kubernetes'.  Pure: ``deployments.py`` reads, carries out the
scalings, and gives the time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from setpoint.api.int_or_string import scaled_value
from setpoint.api.model import ObjectMeta
from setpoint.api.times import Time
from setpoint.kube.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from setpoint.kube.core.v1 import PodTemplateSpec

HASH_LABEL: Final = "pod-template-hash"
_PREFIX: Final = "deployment.kubernetes.io/"
REVISION: Final = f"{_PREFIX}revision"
REVISION_HISTORY: Final = f"{_PREFIX}revision-history"
DESIRED: Final = f"{_PREFIX}desired-replicas"
MAXIMUM: Final = f"{_PREFIX}max-replicas"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)
_NO_DEADLINE: Final = 2**31 - 1
_KEEPS_ALL: Final = 2**31 - 1
_HISTORY_LENGTH: Final = 2000  # characters of the revisions that a ReplicaSet had before


# ---- sizes -----------------------------------------------------------------------------------------


def wanted(deployment: Deployment) -> int:
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def size(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def total(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(map(size, replica_sets))


def available(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(each.status.available_replicas or 0 for each in replica_sets)


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy is None or deployment.spec.strategy.type != "Recreate"


def bounds(deployment: Deployment) -> tuple[int, int]:
    """How many pods a rolling update may have beyond the wanted, and how many it may be without."""
    strategy = deployment.spec.strategy
    rolling = strategy.rolling_update if strategy is not None else None
    replicas = wanted(deployment)
    if not is_rolling(deployment):
        return 0, 0
    surge, unavailable = (
        (rolling.max_surge, rolling.max_unavailable) if rolling is not None else ("25%", "25%")
    )
    surge = scaled_value(0 if surge is None else surge, replicas, round_up=True)
    unavailable = scaled_value(0 if unavailable is None else unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1  # else no step could ever be taken
    return surge, min(unavailable, replicas)


def max_surge(deployment: Deployment) -> int:
    return bounds(deployment)[0]


def max_unavailable(deployment: Deployment) -> int:
    return bounds(deployment)[1] if wanted(deployment) else 0


# ---- which ReplicaSet is which ---------------------------------------------------------------------


def is_same_template(one: PodTemplateSpec | None, other: PodTemplateSpec | None) -> bool:
    """Whether two templates mean the same pods; the hash is ours, and says nothing."""
    one, other = one or PodTemplateSpec(), other or PodTemplateSpec()
    return one.spec == other.spec and _without_hash(one.metadata) == _without_hash(other.metadata)


def _without_hash(metadata: ObjectMeta) -> ObjectMeta:
    bare = copy.copy(metadata)
    bare.labels = {key: value for key, value in (metadata.labels or {}).items() if key != HASH_LABEL}
    return bare


def by_age(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(
        replica_sets, key=lambda each: (each.metadata.creation_timestamp or _EVER, each.metadata.name or "")
    )


_EVER = Time(1970, 1, 1)


def find_new(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet that has the Deployment's template; of several, the oldest."""
    for each in by_age(replica_sets):
        if is_same_template(each.spec.template, deployment.spec.template):
            return each
    return None


def active(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return [each for each in replica_sets if size(each) > 0]


# ---- revisions -------------------------------------------------------------------------------------


def revision_of(replica_set: ReplicaSet) -> int:
    try:
        return int((replica_set.metadata.annotations or {}).get(REVISION, "0"))
    except ValueError:
        return 0


def next_revision(old: Iterable[ReplicaSet]) -> int:
    return max(map(revision_of, old), default=0) + 1


def annotations_for(deployment: Deployment, new: ReplicaSet | None, revision: int) -> dict[str, str]:
    """The annotations of the new ReplicaSet; where it is there already, as changed by these.

    One that was an old one before is given the next revision, and remembers those that it had.
    """
    before = dict(new.metadata.annotations or {}) if new is not None else {}
    copied = {
        key: value for key, value in (deployment.metadata.annotations or {}).items() if key not in _NOT_COPIED
    }
    after = {**before, **copied}
    had = revision_of(new) if new is not None else 0
    if had < revision:
        after[REVISION] = str(revision)
        if had:
            earlier = [*filter(None, before.get(REVISION_HISTORY, "").split(",")), str(had)]
            while len(",".join(earlier)) > _HISTORY_LENGTH:
                earlier.pop(0)
            after[REVISION_HISTORY] = ",".join(earlier)
    if new is None:
        after |= size_annotations(deployment)
    return after


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a ReplicaSet remembers of the size that the Deployment had when it was scaled."""
    replicas = wanted(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + max_surge(deployment))}


def surplus(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """The old ReplicaSets beyond the history limit, the oldest revisions first; none that has pods."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == _KEEPS_ALL:
        return []
    there = [each for each in old if each.metadata.deletion_timestamp is None]
    first = sorted(there, key=revision_of)[: max(0, len(there) - limit)]
    return [each for each in first if _is_empty(each)]


def _is_empty(replica_set: ReplicaSet) -> bool:
    observed = replica_set.status.observed_generation or 0
    return (
        size(replica_set) == 0
        and replica_set.status.replicas == 0
        and (replica_set.metadata.generation or 0) <= observed
    )


# ---- steps -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scaling:
    """Give a ReplicaSet this size."""

    replica_set: ReplicaSet
    replicas: int


def is_scaling(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> bool:
    """Whether the wanted size is another than the one that the pods there are were made for."""
    return any(_annotated(each, DESIRED) not in {None, wanted(deployment)} for each in active(replica_sets))


def scale_in_proportion(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
) -> list[Scaling]:
    """What a change of size means, in the middle of a rollout or not."""
    everything = [*old, *([new] if new is not None else [])]
    replicas = wanted(deployment)
    only = _active_or_latest(new, old)
    if only is not None:
        return [] if size(only) == replicas else [Scaling(only, replicas)]
    if new is not None and _is_saturated(deployment, new):
        return [Scaling(each, 0) for each in active(old)]
    if not is_rolling(deployment):
        return []
    there = active(everything)
    allowed = replicas + max_surge(deployment) if replicas else 0
    missing = allowed - total(there)
    ordered = by_age(there)
    if missing >= 0:  # of two of the same size, the younger grows first and the older shrinks first
        ordered.reverse()
    ordered.sort(key=size, reverse=True)
    sizes, added = [], 0
    for each in ordered:
        part = _share(deployment, each, missing, added) if missing else 0
        sizes.append(size(each) + part)
        added += part
    if ordered and missing:
        sizes[0] = max(0, sizes[0] + missing - added)
    return [Scaling(each, count) for each, count in zip(ordered, sizes, strict=True)]


def _active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The one that has the pods; with no pods the new one, or else the youngest.  None: there are several."""
    there = active([*old, *([new] if new is not None else [])])
    if len(there) > 1:
        return None
    if there:
        return there[0]
    return new if new is not None else next(reversed(by_age(old)), None)


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    replicas = wanted(deployment)
    return (
        size(new) == replicas
        and _annotated(new, DESIRED) == replicas
        and (new.status.available_replicas or 0) == replicas
    )


def _share(deployment: Deployment, replica_set: ReplicaSet, missing: int, added: int) -> int:
    """How much of what is missing, or too much, falls to one ReplicaSet."""
    if size(replica_set) == 0:
        return 0
    part, rest = _fraction(deployment, replica_set), missing - added
    return min(part, rest) if missing > 0 else max(part, rest)


def _fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    replicas = wanted(deployment)
    if replicas == 0:
        return -size(replica_set)
    before = _annotated(replica_set, MAXIMUM) or deployment.status.replicas or 0
    if not before:
        return 0
    after = replicas + max_surge(deployment)
    return int(size(replica_set) * after / before + 0.5) - size(replica_set)


def _annotated(replica_set: ReplicaSet, name: str) -> int | None:
    try:
        return int((replica_set.metadata.annotations or {})[name])
    except (KeyError, ValueError):
        return None


def initial_size(deployment: Deployment, old: Iterable[ReplicaSet], new: ReplicaSet | None = None) -> int:
    """As large as the new ReplicaSet may be now."""
    replicas = wanted(deployment)
    if not is_rolling(deployment):
        return replicas
    now = size(new) if new is not None else 0
    room = replicas + max_surge(deployment) - total(old) - now
    return now if room <= 0 else now + min(room, replicas - now)


def roll(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scaling]:
    """The next step of a rolling update; none if there is nothing to do, or it must wait."""
    return _grow(deployment, new, old) or _shrink(deployment, new, old)


def _grow(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scaling]:
    replicas = wanted(deployment)
    if size(new) == replicas:
        return []
    after = replicas if size(new) > replicas else initial_size(deployment, old, new)
    return [] if after == size(new) else [Scaling(new, after)]


def _shrink(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scaling]:
    if total(old) == 0:
        return []
    least = wanted(deployment) - max_unavailable(deployment)
    waiting = size(new) - (new.status.available_replicas or 0)
    may_go = total([*old, new]) - least - waiting
    if may_go <= 0:
        return []
    after = {each.metadata.name: size(each) for each in old}
    for each in by_age(old):  # first what does not work anyway: it is missed by nobody
        unhealthy = size(each) - (each.status.available_replicas or 0)
        going = min(may_go, max(0, unhealthy))
        after[each.metadata.name] -= going
        may_go -= going
    may_go = available([*old, new]) - least
    for each in by_age(old):
        going = min(max(0, may_go), after[each.metadata.name])
        after[each.metadata.name] -= going
        may_go -= going
    return [
        Scaling(each, after[each.metadata.name])
        for each in by_age(old)
        if after[each.metadata.name] != size(each)
    ]


def has_pods(replica_set: ReplicaSet) -> bool:
    """Whether pods of it may still run, as far as is known: those that are on their way out do."""
    status = replica_set.status
    is_behind = (status.observed_generation or 0) < (replica_set.metadata.generation or 0)
    return is_behind or bool(status.replicas or status.terminating_replicas)


# ---- what is said of it ----------------------------------------------------------------------------


def status_of(
    deployment: Deployment, new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet], now: Time
) -> DeploymentStatus:
    """The status as the ReplicaSets have it, with the conditions that follow from it alone."""
    before = deployment.status
    free = available(replica_sets)
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in replica_sets) or None,
        updated_replicas=(new.status.replicas if new is not None else 0) or None,
        ready_replicas=sum(each.status.ready_replicas or 0 for each in replica_sets) or None,
        available_replicas=free or None,
        unavailable_replicas=max(0, total(replica_sets) - free) or None,
        terminating_replicas=sum(each.status.terminating_replicas or 0 for each in replica_sets),
        collision_count=before.collision_count,
        conditions=list(before.conditions or ()),
    )
    is_enough = free >= wanted(deployment) - max_unavailable(deployment)
    put(status, condition("Available", *_AVAILABLE[is_enough], now))
    return status


_AVAILABLE = {
    True: ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
    False: ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
}


def settle_progress(
    deployment: Deployment,
    status: DeploymentStatus,
    new: ReplicaSet | None,
    replica_sets: Sequence[ReplicaSet],
    now: Time,
) -> None:
    """Say in the status how the rollout goes on."""
    if not has_deadline(deployment):
        remove(status, "Progressing")
    known = find(status, "Progressing")
    was_done = (
        (status.replicas or 0) == (status.updated_replicas or 0)
        and known is not None
        and known.reason == "NewReplicaSetAvailable"
    )
    if has_deadline(deployment) and not was_done:
        who = f'Deployment "{deployment.metadata.name}"'
        if new is not None:
            who = f'ReplicaSet "{new.metadata.name}"'
        if is_complete(deployment, status):
            message = f"{who} has successfully progressed."
            put(status, condition("Progressing", "True", "NewReplicaSetAvailable", message, now))
        elif _has_progressed(deployment.status, status):
            progressing = condition("Progressing", "True", "ReplicaSetUpdated", f"{who} is progressing.", now)
            if known is not None and known.status == "True":
                progressing.last_transition_time = known.last_transition_time
            remove(status, "Progressing")  # each bit of progress counts from now
            put(status, progressing)
        elif is_timed_out(deployment, status, now):
            message = f"{who} has timed out progressing."
            put(status, condition("Progressing", "False", "ProgressDeadlineExceeded", message, now))
    failure = _replica_failure(new, replica_sets)
    if failure is not None:
        put(status, failure)
    else:
        remove(status, "ReplicaFailure")


def _replica_failure(
    new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet]
) -> DeploymentCondition | None:
    """The first refusal that a ReplicaSet tells of, the new one's before others'."""
    order = [*([new] if new is not None else []), *replica_sets]
    for each in order:
        for told in each.status.conditions or ():
            if told.type == "ReplicaFailure":
                return DeploymentCondition(
                    type="ReplicaFailure",
                    status=told.status,
                    reason=told.reason,
                    message=told.message,
                    last_transition_time=told.last_transition_time,
                    last_update_time=told.last_transition_time,
                )
    return None


def paused_condition(deployment: Deployment, now: Time) -> DeploymentCondition | None:
    """The condition that says that the rollout stands still, or goes on; None if it is said already."""
    if not has_deadline(deployment):
        return None
    known = find(deployment.status, "Progressing")
    if known is not None and known.reason == "ProgressDeadlineExceeded":
        return None
    is_said = known is not None and known.reason == "DeploymentPaused"
    if deployment.spec.paused and not is_said:
        return condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)
    if not deployment.spec.paused and is_said:
        return condition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    return None


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    replicas = wanted(deployment)
    return (
        (status.updated_replicas or 0) == replicas
        and (status.replicas or 0) == replicas
        and (status.available_replicas or 0) == replicas
        and (status.observed_generation or 0) >= (deployment.metadata.generation or 0)
    )


def _has_progressed(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    def old(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or old(after) < old(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in {None, _NO_DEADLINE}


def is_timed_out(deployment: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    """Whether the last bit of progress is longer ago than the Deployment allows."""
    known = find(status, "Progressing")
    if known is None or known.reason == "NewReplicaSetAvailable":
        return False
    if known.reason == "ProgressDeadlineExceeded":
        return True
    due = _due(deployment, known)
    return due is not None and due < now


def seconds_to_deadline(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """In how many seconds the rollout is to be looked at again; None where it need not be."""
    known = find(status, "Progressing")
    if not has_deadline(deployment) or known is None or deployment.spec.paused:
        return None
    if is_complete(deployment, status) or known.reason in {"ProgressDeadlineExceeded", "DeploymentPaused"}:
        return None
    due = _due(deployment, known)
    # One second more: the deadline must be past, not just reached.
    return None if due is None else max(0.0, (due - now).total_seconds()) + 1.0


def _due(deployment: Deployment, known: DeploymentCondition) -> datetime | None:
    deadline = deployment.spec.progress_deadline_seconds
    if known.last_update_time is None or deadline is None:
        return None
    return known.last_update_time + timedelta(seconds=deadline)


# ---- conditions ------------------------------------------------------------------------------------


def condition(kind: str, status: str, reason: str, message: str, now: Time) -> DeploymentCondition:
    return DeploymentCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=now,
    )


def find(status: DeploymentStatus, kind: str) -> DeploymentCondition | None:
    return next((each for each in status.conditions or () if each.type == kind), None)


def put(status: DeploymentStatus, new: DeploymentCondition) -> None:
    """Have the status say it; what it says already in the same words stays as it is."""
    known = find(status, new.type)
    if known is not None and (known.status, known.reason) == (new.status, new.reason):
        return
    if known is not None and known.status == new.status:
        new.last_transition_time = known.last_transition_time
    remove(status, new.type)
    status.conditions = [*(status.conditions or ()), new]


def remove(status: DeploymentStatus, kind: str) -> None:
    status.conditions = [each for each in status.conditions or () if each.type != kind]
