"""Keeps as many pods as a ReplicaSet, or a ReplicationController, asks for.

Each look claims the pods that match, makes those that are missing, deletes those that are too many, and
writes what it saw before that into the status; what it changed comes back as a change, and is looked at
then.  That no pod is made twice is the client's promise: it never lists behind its own writes.

``decide`` and ``status_of`` are pure.  The two kinds differ only in their selector and in words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar

from setpoint.api.names import Key
from setpoint.api.times import Time
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods import (
    BURST,
    Done,
    PodControl,
    PodState,
    has_ended,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    next_available,
    pod_from,
    to_delete,
)
from setpoint.builtin.pods_claims import Known, claim, claims_of, selector_of
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.owners import controller_of
from setpoint.controller.result import Request, Result
from setpoint.kube.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from setpoint.kube.core.v1 import (
    PodTemplateSpec,
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)

NAME = "replicaset-controller"
REPLICATION_NAME = "replicationcontroller-controller"
_REPLICATION_VOICE = "replication-controller"
_WORKERS = 20  # more than kube-controller-manager has: those of many pods wait a little, see Replicas
_FEW = 50  # pods that are looked at as often as they change
_PAUSE = 0.001  # seconds for each pod of many, between two looks

Replicated: TypeAlias = ReplicaSet | ReplicationController
C = TypeVar("C", ReplicaSetCondition, ReplicationControllerCondition)
_Status: TypeAlias = ReplicaSetStatus | ReplicationControllerStatus


@dataclass(frozen=True, slots=True)
class Decision:
    """How many pods to make, or which to delete."""

    create: int = 0
    delete: tuple[PodState, ...] = ()


def decide(
    owner: Replicated, active: Sequence[PodState], related: Sequence[PodState], now: datetime
) -> Decision:
    """What to do so that there are as many active pods as wanted, at most ``BURST`` at a time."""
    missing = _wanted(owner) - len(active)
    if missing > 0:
        return Decision(create=min(missing, BURST))
    if missing < 0:
        return Decision(delete=tuple(to_delete(active, min(-missing, BURST), related, now)))
    return Decision()


def status_of(owner: Replicated, pods: Sequence[PodState], done: Done, *, now: Time) -> _Status:
    """What is to be said of these pods, as they were before this look did anything."""
    active = [pod for pod in pods if is_active(pod)]
    labels = (_template(owner).metadata.labels or {}).items()
    min_ready = owner.spec.min_ready_seconds or 0
    fully_labeled = sum(labels <= (pod.metadata.labels or {}).items() for pod in active)
    ready = sum(map(is_ready, active))
    available = sum(is_available(pod, min_ready, now) for pod in active)
    if isinstance(owner, ReplicationController):
        return ReplicationControllerStatus(
            replicas=len(active),
            fully_labeled_replicas=fully_labeled or None,
            ready_replicas=ready or None,
            available_replicas=available or None,
            observed_generation=owner.metadata.generation,
            conditions=_conditions(owner.status.conditions, ReplicationControllerCondition, done, now),
        )
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=fully_labeled or None,
        ready_replicas=ready or None,
        available_replicas=available or None,
        terminating_replicas=sum(is_terminating(pod) and not has_ended(pod) for pod in pods),
        observed_generation=owner.metadata.generation,
        conditions=_conditions(owner.status.conditions, ReplicaSetCondition, done, now),
    )


def _conditions(known: list[C] | None, made: type[C], done: Done, now: Time) -> list[C] | None:
    """Those that were there, with one more while something is refused."""
    before: list[C] = known or []
    failing = [each for each in before if each.type == "ReplicaFailure"]
    if done.error is None:
        return [each for each in before if each not in failing] or None
    if failing:
        return before
    failed = made(
        type="ReplicaFailure",
        status="True",
        reason=done.failure,
        message=done.error.message,
        last_transition_time=now,
    )
    before.append(failed)
    return before


def _wanted(owner: Replicated) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _template(owner: Replicated) -> PodTemplateSpec:
    return owner.spec.template or PodTemplateSpec()


# ---- carrying it out -------------------------------------------------------------------------------


class Replicas:
    """The reconciler of one of the two kinds.

    A look takes the longer the more pods there are, and while many pods start or end something changes all
    the time; so after a look at many, what changes within the next moment is looked at together.
    """

    def __init__(self, means: Means, kind: type[Replicated]) -> None:
        self._means = means
        self._kind = kind
        self._pods = PodControl(means)
        self._known = Known(means.client, PodState)
        self._seen: dict[Key, tuple[str, float]] = {}  # uid, and before when it is not looked at again

    async def reconcile(self, request: Request) -> Result:
        _, until = self._seen.get(request, ("", 0.0))
        if (pause := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(pause)
        owner: Replicated | None = await ignore_not_found(
            self._means.client.get(self._kind, request.name, namespace=request.namespace)
        )
        if owner is None:
            self._known.forget(self._seen.pop(request, ("", 0.0))[0])
            return Result()
        now = self._means.now()
        pods = await claim(self._means, owner, selector_of(owner), PodState, known=self._known)
        active = [pod for pod in pods if is_active(pod)]
        done = Done()
        if owner.metadata.deletion_timestamp is None:
            done = await self._carry_out(owner, active, now)
        await self._write(owner, status_of(owner, pods, done, now=now))
        pause = len(pods) * _PAUSE if len(pods) > _FEW else 0.0
        self._seen[request] = owner.metadata.uid or "", asyncio.get_running_loop().time() + pause
        done.check()
        return look_again(next_available(active, owner.spec.min_ready_seconds or 0, now))

    async def _carry_out(self, owner: Replicated, active: list[PodState], now: datetime) -> Done:
        is_too_many = len(active) > _wanted(owner)
        decision = decide(owner, active, await self._related(owner, active) if is_too_many else (), now)
        if decision.create:
            template = _template(owner)
            return await self._pods.create(owner, [pod_from(template, owner)] * decision.create)
        return await self._pods.delete(owner, decision.delete)

    async def _related(self, owner: Replicated, active: list[PodState]) -> list[PodState]:
        """The pods of all who have the same controller: those of a Deployment's older ReplicaSets too."""
        above = controller_of(owner)
        if above is None:
            return active
        siblings = await self._means.client.list(
            self._kind, namespace=owner.metadata.namespace, owner=above.uid
        )
        return [
            pod
            for each in siblings
            for pod in await self._means.client.list(
                PodState, namespace=owner.metadata.namespace, owner=each.metadata.uid
            )
        ]

    async def _write(self, owner: Replicated, status: _Status) -> None:
        if status != owner.status:
            owner.status = status
            await self._means.client.update_status(owner)


def add_to(parts: Parts) -> Controller:
    """Have ReplicaSets looked after."""
    return _add(Means(NAME, parts), ReplicaSet)


def add_replication_controllers_to(parts: Parts) -> Controller:
    """Have ReplicationControllers looked after."""
    return _add(Means(REPLICATION_NAME, parts, _REPLICATION_VOICE), ReplicationController)


def _add(means: Means, kind: type[Replicated]) -> Controller:
    building = claims_of(means.building(_WORKERS).for_(kind), means, kind, PodState)
    return complete(building, Replicas(means, kind).reconcile)
