"""Decides what a node does next with a pod, where nothing really runs.

A pod is bound to the node, starts, and then does what its ``Outcome`` says: runs, exits, or waits for ever.
One that is deleted is stopped, told as stopped, and removed.  Each look gives one step at most, and none
once the pod is where it should be, so that a look may come at any time and any number of times.

A pod may say itself what becomes of it, in annotations: ``OUTCOME``, ``STARTS_AFTER`` and ``STOPS_AFTER``.

Pure: ``node.py`` looks, carries out the steps, and gives time and addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Final, TypeAlias

from setpoint.api.times import Time
from setpoint.kube.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)

OUTCOME: Final = "node.setpoint.dev/outcome"
"""``runs``, ``never-ready``, ``exits``, ``exits:1`` (a code), or ``waits:ImagePullBackOff`` (a reason)."""

STARTS_AFTER: Final = "node.setpoint.dev/starts-after"
"""Seconds from when the pod is bound until it runs."""

STOPS_AFTER: Final = "node.setpoint.dev/stops-after"
"""Seconds from when the pod is deleted until it has stopped; at most its grace period."""


@dataclass(frozen=True, slots=True)
class Runs:
    """It starts, is ready, and stays so; or is never ready."""

    ready: bool = True


@dataclass(frozen=True, slots=True)
class Exits:
    """It starts, and its containers end with this code; those to be restarted then crash in a loop."""

    code: int = 0


@dataclass(frozen=True, slots=True)
class Waits:
    """It is bound, and never starts."""

    reason: str = "ImagePullBackOff"
    message: str = ""


Outcome: TypeAlias = Runs | Exits | Waits


def usual_outcome(pod: Pod) -> Outcome:
    """What the pod says itself; else what is to be restarted runs, and the rest works and ends well."""
    said = (pod.metadata.annotations or {}).get(OUTCOME)
    if said is not None:
        return _outcome(said)
    return Runs() if pod.spec.restart_policy in {None, "Always"} else Exits()


def _outcome(said: str) -> Outcome:
    word, _, rest = said.partition(":")
    if word in ("runs", "never-ready") and not rest:
        return Runs(ready=word == "runs")
    if word == "exits" and (not rest or rest.isdecimal()):
        return Exits(int(rest or 0))
    if word == "waits" and rest:
        return Waits(rest)
    return Waits(
        "InvalidAnnotation", f"{OUTCOME}: {said!r} is none of runs, never-ready, exits:1, waits:Reason"
    )


def seconds_of(pod: Pod, annotation: str, usual: float = 0.0) -> float:
    """How many seconds a pod says, if it says any."""
    try:
        return max(0.0, float((pod.metadata.annotations or {})[annotation]))
    except (KeyError, ValueError):
        return usual


@dataclass(frozen=True, slots=True)
class Host:
    """The node, as far as pods are concerned."""

    name: str
    ip: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Bind:
    """Give the pod to this node."""


@dataclass(frozen=True, slots=True)
class Report:
    """Say how the pod is."""

    status: PodStatus


@dataclass(frozen=True, slots=True)
class Remove:
    """Let go of a pod that has stopped."""


@dataclass(frozen=True, slots=True)
class Later:
    """Look again in so many seconds."""

    seconds: float


Step: TypeAlias = Bind | Report | Remove | Later


def next_step(
    pod: Pod,
    host: Host,
    outcome: Outcome,
    *,
    pod_ip: str,
    now: Time,
    waited: float = inf,
    delay: float = 0.0,
) -> Step | None:
    """What to do with the pod now; None if it is another node's, or is as it should be.

    ``waited`` is for how many seconds it has been ours, or has been deleted; ``delay`` is how many a pod
    takes to start that says nothing itself.
    """
    if not pod.spec.node_name:
        return Bind() if _may_be_bound(pod, host) else None
    if pod.spec.node_name != host.name:
        return None
    phase = pod.status.phase
    report = _Reporter(pod, host, pod_ip, now)
    if pod.metadata.deletion_timestamp is not None:
        grace = float(pod.metadata.deletion_grace_period_seconds or 0)
        left = min(seconds_of(pod, STOPS_AFTER), grace) - waited
        if phase not in _ENDED:
            return Later(left) if left > 0 else Report(report.ended(0))
        # With none left it is gone, but for finalizers, which are for others to remove.
        return Remove() if pod.metadata.deletion_grace_period_seconds != 0 else None
    if phase in _ENDED:
        return None
    is_ready = not isinstance(outcome, Runs) or outcome.ready
    if isinstance(outcome, Waits):
        waits = _waiting(pod) == outcome.reason
        return None if waits else Report(report.waiting("Pending", outcome.reason, outcome.message))
    if phase != "Running":
        left = seconds_of(pod, STARTS_AFTER, delay) - waited
        if left > 0:
            return Later(left) if _waiting(pod) else Report(report.waiting("Pending", _CREATES, ""))
        return Report(report.running(ready=is_ready))
    if isinstance(outcome, Runs):
        return None if _is_up(pod, ready=is_ready) else Report(report.running(ready=is_ready))
    if _is_restarted(pod, outcome):
        crashes = _waiting(pod) == _CRASHES
        return None if crashes else Report(report.waiting("Running", _CRASHES, f"exit code {outcome.code}"))
    return Report(report.ended(outcome.code))


_ENDED = frozenset({"Succeeded", "Failed"})
_CRASHES = "CrashLoopBackOff"
_CREATES = "ContainerCreating"


def _may_be_bound(pod: Pod, host: Host) -> bool:
    wanted = pod.spec.node_selector or {}
    return (
        pod.metadata.deletion_timestamp is None
        and not pod.spec.scheduling_gates
        and pod.spec.scheduler_name in {None, "default-scheduler"}
        and wanted.items() <= host.labels.items()
        and host.name in (_named_nodes(pod) or {host.name})
    )


def _named_nodes(pod: Pod) -> set[str]:
    """The nodes that a pod may go to by name, as a DaemonSet says it; empty: any."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return {
        name
        for term in (required.node_selector_terms if required else ())
        for wanted in term.match_fields or ()
        if wanted.key == "metadata.name" and wanted.operator == "In"
        for name in wanted.values or ()
    }


def _is_up(pod: Pod, *, ready: bool) -> bool:
    statuses = pod.status.container_statuses or []
    return len(statuses) == len(pod.spec.containers) and all(
        status.ready == ready and status.state.running is not None for status in statuses
    )


def _waiting(pod: Pod) -> str | None:
    for status in pod.status.container_statuses or ():
        if status.state.waiting is not None:
            return status.state.waiting.reason
    return None


def _is_restarted(pod: Pod, outcome: Exits) -> bool:
    policy = pod.spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and outcome.code != 0)


@dataclass(frozen=True, slots=True)
class _Reporter:
    """The words in which a kubelet says how a pod is."""

    pod: Pod
    host: Host
    pod_ip: str
    now: Time

    def running(self, *, ready: bool = True) -> PodStatus:
        state = ContainerState(running=ContainerStateRunning(started_at=self.now))
        return self._status("Running", state, ready=ready)

    def waiting(self, phase: str, reason: str, message: str) -> PodStatus:
        state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message or None))
        return self._status(phase, state, ready=False)

    def ended(self, code: int) -> PodStatus:
        state = ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=code,
                reason="Error" if code else "Completed",
                started_at=self.pod.status.start_time or self.now,
                finished_at=self.now,
            )
        )
        return self._status("Failed" if code else "Succeeded", state, ready=False)

    def _status(self, phase: str, state: ContainerState, *, ready: bool) -> PodStatus:
        has_started = phase != "Pending"
        done = ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=0, reason="Completed", started_at=self.now, finished_at=self.now
            )
        )
        return PodStatus(
            phase=phase,
            observed_generation=self.pod.metadata.generation,
            start_time=self.pod.status.start_time or self.now,
            host_ip=self.host.ip,
            host_ips=[HostIP(ip=self.host.ip)],
            pod_ip=self.pod_ip if has_started else None,
            pod_ips=[PodIP(ip=self.pod_ip)] if has_started else None,
            conditions=[
                self._condition("PodReadyToStartContainers", has_started and phase not in _ENDED),
                self._condition("Initialized", has_started),
                self._condition("ContainersReady", ready),
                self._condition("Ready", ready),
                self._condition("PodScheduled", True),
            ],
            init_container_statuses=[
                self._container(each.name, each.image, done, ready=True)
                for each in self.pod.spec.init_containers or ()
            ]
            or None,
            container_statuses=[
                self._container(each.name, each.image, state, ready=ready)
                for each in self.pod.spec.containers
            ],
        )

    def _condition(self, kind: str, holds: bool) -> PodCondition:
        status = "True" if holds else "False"
        reason = None
        if kind in {"Ready", "ContainersReady"} and not holds:
            reason = "PodCompleted" if self.pod.status.phase in _ENDED else "ContainersNotReady"
        known = next((each for each in self.pod.status.conditions or () if each.type == kind), None)
        since = self.now if known is None or known.status != status else known.last_transition_time
        return PodCondition(type=kind, status=status, reason=reason, last_transition_time=since)

    def _container(
        self, name: str, image: str | None, state: ContainerState, *, ready: bool
    ) -> ContainerStatus:
        return ContainerStatus(
            name=name,
            image=image or "",
            image_id=f"stand-in://{image}",
            container_id=f"stand-in://{self.pod.metadata.uid}/{name}",
            ready=ready,
            started=state.running is not None,
            restart_count=0,
            state=state,
        )
