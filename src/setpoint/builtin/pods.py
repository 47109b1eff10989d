"""What those who make pods have in common: how a pod is judged, which one goes first, and how it is made.

``PodState`` is a pod as far as controllers look at it: of what the cache holds, only this is decoded.  Three
questions are asked of it, with Kubernetes' meanings:

- *active*: it has not ended, and is not being deleted;
- *ready*: its Ready condition is True;
- *available*: it has been ready for ``minReadySeconds``.

The decisions here are pure.  What is carried out is in ``PodControl``: pods are made from templates in
batches that grow (1, 2, 4 …), so that what the server refuses is refused a few times and not a thousand.

Who owns which pod is decided in ``pods_claims.py``.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from setpoint.api.model import Model, Object, ObjectMeta, OwnerReference
from setpoint.api.times import Time
from setpoint.builtin.pods_means import Means, is_of_an_ending_namespace
from setpoint.errors import ApiError, Conflict, NotFound
from setpoint.kube.core.v1 import Affinity, Pod, PodTemplateSpec

BURST: Final = 500  # pods that one look makes or deletes at most
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
ENDED: Final = frozenset({"Succeeded", "Failed"})


# Times stay texts until one is needed: there are many of them in a pod, and most are never looked at.


class EndState(Model):
    """How a container ended."""

    exit_code: int = 0
    finished_at: str | None = None


class ContainerStates(Model):
    """How a container is, as far as it has ended."""

    terminated: EndState | None = None


class ContainerSummary(Model):
    """A container."""

    name: str = ""
    restart_count: int = 0
    state: ContainerStates = ContainerStates()


class ConditionState(Model):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodMeta(Model):
    """What a pod says about itself; not who set which field, which is half of it."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class PodSpecState(Model):
    """Where a pod is, or should be."""

    node_name: str | None = None
    affinity: Affinity | None = None
    restart_policy: str | None = None
    hostname: str | None = None
    subdomain: str | None = None


class PodStatusState(Model):
    """How a pod is."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[ConditionState] | None = None
    container_statuses: list[ContainerSummary] | None = None
    init_container_statuses: list[ContainerSummary] | None = None


class PodState(Object, group="", version="v1", kind="Pod", plural="pods", namespaced=True):
    """A pod, as far as its controller looks at it."""

    metadata: PodMeta = PodMeta()  # type: ignore[assignment]  # less of it, by the same names
    spec: PodSpecState = PodSpecState()
    status: PodStatusState = PodStatusState()


# ---- how a pod is ----------------------------------------------------------------------------------


def has_ended(pod: PodState) -> bool:
    return pod.status.phase in ENDED


def is_terminating(pod: PodState) -> bool:
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: PodState) -> bool:
    return not has_ended(pod) and not is_terminating(pod)


def condition_of(pod: PodState, kind: str) -> ConditionState | None:
    return next((each for each in pod.status.conditions or () if each.type == kind), None)


def is_ready(pod: PodState) -> bool:
    ready = condition_of(pod, "Ready")
    return ready is not None and ready.status == "True"


def seconds_to_available(pod: PodState, min_ready_seconds: int, now: datetime) -> float | None:
    """For how long it must stay ready to be available: 0 if it is, None if it is not even ready."""
    ready = condition_of(pod, "Ready")
    if ready is None or ready.status != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    if ready.last_transition_time is None:
        return None
    passed = now.timestamp() - Time.parse(ready.last_transition_time).timestamp()
    return max(0.0, min_ready_seconds - passed)


def is_available(pod: PodState, min_ready_seconds: int, now: datetime) -> bool:
    return seconds_to_available(pod, min_ready_seconds, now) == 0.0


def next_available(pods: Iterable[PodState], min_ready_seconds: int, now: datetime) -> float | None:
    """In how many seconds the first of those that wait for it becomes available."""
    waits = (seconds_to_available(pod, min_ready_seconds, now) for pod in pods)
    return min((wait for wait in waits if wait), default=None)


# ---- which of them go first ------------------------------------------------------------------------


def to_delete(
    active: Sequence[PodState], count: int, related: Iterable[PodState], now: datetime
) -> list[PodState]:
    """The ``count`` of these pods that are missed least; ``related`` are pods that do the same work.

    Those not yet on a node, not running or not ready go first, then those that say they are cheap, then
    those on nodes with many of the same work, then the young and the often restarted.
    """
    if count >= len(active):
        return list(active)
    crowd = Counter(pod.spec.node_name or "" for pod in related if is_active(pod) and pod.spec.node_name)
    return sorted(active, key=lambda pod: _worth(pod, crowd, now))[:count]


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def _worth(pod: PodState, crowd: Counter[str], now: datetime) -> tuple[object, ...]:
    ready = condition_of(pod, "Ready")
    since = ready.last_transition_time if ready is not None and ready.status == "True" else None
    restarts = max((each.restart_count for each in pod.status.container_statuses or ()), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase or "", 0),
        is_ready(pod),
        deletion_cost(pod),
        -crowd[pod.spec.node_name or ""],
        _age(since, now) if since is not None else 0,
        -restarts,
        _age(pod.metadata.creation_timestamp, now),
        pod.metadata.uid or "",
    )


def _age(since: str | None, now: datetime) -> int:
    """How old, by powers of two: of pods of about the same age, chance decides, and not the second."""
    seconds = now.timestamp() - Time.parse(since).timestamp() if since is not None else 0.0
    return int(math.log2(seconds)) if seconds >= 1 else 0


def deletion_cost(pod: PodState) -> int:
    try:
        return int((pod.metadata.annotations or {}).get(DELETION_COST, "0"))
    except ValueError:
        return 0


# ---- making them -----------------------------------------------------------------------------------


def reference(owner: Object) -> OwnerReference:
    """How a pod says whose it is."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name or "",
        uid=owner.metadata.uid or "",
        controller=True,
        block_owner_deletion=True,
    )


def pod_from(template: PodTemplateSpec, owner: Object) -> Pod:
    """A pod as a template has it, that belongs to ``owner``."""
    named = template.metadata
    metadata = ObjectMeta(
        generate_name=f"{owner.metadata.name}-",
        namespace=owner.metadata.namespace,
        labels=dict(named.labels or {}) or None,
        annotations=dict(named.annotations or {}) or None,
        finalizers=list(named.finalizers or ()) or None,
        owner_references=[reference(owner)],
    )
    return Pod(metadata=metadata, spec=copy.deepcopy(template.spec))


@dataclass
class Done:
    """What came of several pods: how many it went well for, and what the first refusal was."""

    count: int = 0
    error: ApiError | None = None
    failure: str = ""  # the reason that goes with the error

    def check(self) -> None:
        """Have the look tried again, if something was refused."""
        if self.error is not None:
            raise self.error


class PodControl:
    """Makes and deletes pods for one controller, and tells of it."""

    def __init__(self, means: Means) -> None:
        self._means = means

    async def create(self, owner: Object, pods: Sequence[Pod]) -> Done:
        """Make pods, in batches that grow; the first that is refused is the last batch.

        In a namespace that ends nothing is made any more, and that is no failure.
        """
        done, size = Done(failure="FailedCreate"), 1
        while done.count < len(pods) and done.error is None:
            batch = pods[done.count : done.count + size]
            outcomes = await asyncio.gather(*(self._create_one(owner, pod) for pod in batch))
            done.count += sum(outcome is None for outcome in outcomes)
            refused = [outcome for outcome in outcomes if outcome is not None]
            if any(map(is_of_an_ending_namespace, refused)):
                break
            done.error = next(iter(refused), None)
            size *= 2
        return done

    async def _create_one(self, owner: Object, pod: Pod) -> ApiError | None:
        try:
            made = await self._means.client.create(pod)
        except NotFound as error:  # its namespace is gone: there is nobody left to tell
            return error
        except ApiError as error:
            if not is_of_an_ending_namespace(error):
                self._means.warn(owner, "FailedCreate", f"Error creating: {error.message}")
            return error
        self._means.tell(owner, "SuccessfulCreate", f"Created pod: {made.metadata.name}")
        return None

    async def delete(self, owner: Object, pods: Sequence[PodState]) -> Done:
        """Delete pods, all at once."""
        done = Done(failure="FailedDelete")
        outcomes = await asyncio.gather(*(self._delete_one(owner, pod) for pod in pods))
        done.count = sum(outcome is None for outcome in outcomes)
        done.error = next((outcome for outcome in outcomes if outcome is not None), None)
        return done

    async def _delete_one(self, owner: Object, pod: PodState) -> ApiError | None:
        name = pod.metadata.name or ""
        try:
            await self._means.client.delete(pod, uid=pod.metadata.uid or "")
        except (NotFound, Conflict):
            return None  # it is gone, and another may have its name
        except ApiError as error:
            self._means.warn(owner, "FailedDelete", f"Error deleting: {error.message}")
            return error
        self._means.tell(owner, "SuccessfulDelete", f"Deleted pod: {name}")
        return None
