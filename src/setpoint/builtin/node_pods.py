"""Decides what a node does next with a pod, where nothing really runs.

A pod is bound to the node, starts, and then does what its ``Outcome`` says: runs, exits, or waits for ever.
What exits and is to be restarted, is: at once the first time, then after a pause that grows, as a kubelet
does it.  One that is deleted is stopped, told as stopped, and removed.  Each look gives one step at most, and
none once the pod is where it should be, so that a look may come at any time and any number of times.

A pod may say itself what becomes of it, in annotations: ``OUTCOME``, ``STARTS_AFTER``, ``EXITS_AFTER`` and
``STOPS_AFTER``.

Pure: ``node.py`` looks, carries out the steps, and gives time and addresses.  How a kubelet words what it
sees is in ``node_status.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

from setpoint.api.times import Time
from setpoint.builtin.node_status import (
    CRASHES,
    CREATES,
    ENDED,
    STATUS_UNKNOWN,
    Host,
    Reporter,
    is_up,
    waiting_reason,
)
from setpoint.kube.core.v1 import ContainerStatus, Pod, PodStatus

OUTCOME: Final = "node.setpoint.dev/outcome"
"""``runs``, ``never-ready``, ``exits``, ``exits:1`` (a code), or ``waits:ImagePullBackOff`` (a reason)."""

STARTS_AFTER: Final = "node.setpoint.dev/starts-after"
"""Seconds from when the pod is bound until it runs."""

EXITS_AFTER: Final = "node.setpoint.dev/exits-after"
"""Seconds from when a container runs until it exits, if that is what becomes of it."""

STOPS_AFTER: Final = "node.setpoint.dev/stops-after"
"""Seconds from when the pod is deleted until it has stopped; when its grace period is over, it is killed."""

USUAL_DELAY: Final = 0.03  # seconds that a pod takes to start: so that what is in between can be seen
CREATES_FROM: Final = 0.5  # with a longer delay the pod is told to be creating its containers

BACKOFF: Final = 10.0  # seconds before the second restart, as a kubelet; each further one takes twice as long
LONGEST_BACKOFF: Final = 300.0
KILLED: Final = 137  # the exit code of what did not stop by itself


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


def stage_of(pod: Pod) -> tuple[str, int]:
    """In which part of its life a pod is; how long it has been there is what ``next_step`` must be told."""
    if pod.metadata.deletion_timestamp is not None:
        return "stopping", 0
    if pod.status.phase != "Running":
        return "starting", 0
    return ("crashed" if waiting_reason(pod) else "running"), _restarts(pod)


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

    ``waited`` is for how many seconds it has been in its stage; ``delay`` is how many a pod takes to start
    that says nothing itself.
    """
    if not pod.spec.node_name:
        return Bind() if _may_be_bound(pod, host) else None
    if pod.spec.node_name != host.name:
        return None
    report = Reporter(pod, host, pod_ip, now)
    if pod.metadata.deletion_timestamp is not None:
        return _stop(pod, report, waited)
    if pod.status.phase in ENDED:
        return None
    if isinstance(outcome, Waits):
        waits = waiting_reason(pod) == outcome.reason
        return None if waits else Report(report.waiting("Pending", outcome.reason, outcome.message))
    if pod.status.phase != "Running":
        takes = seconds_of(pod, STARTS_AFTER, delay)
        if takes > waited:
            is_told = takes < CREATES_FROM or waiting_reason(pod) is not None
            return Later(takes - waited) if is_told else Report(report.waiting("Pending", CREATES))
        return Report(report.running(ready=_is_ready(outcome)))
    if isinstance(outcome, Runs):
        return None if is_up(pod, ready=outcome.ready) else Report(report.running(ready=outcome.ready))
    return _exit(pod, report, outcome, waited)


def _stop(pod: Pod, report: Reporter, waited: float) -> Step | None:
    """What to do with a pod that is deleted."""
    if pod.status.phase in ENDED:
        # With no grace left it is gone, but for finalizers, which are for others to remove.
        return Remove() if pod.metadata.deletion_grace_period_seconds != 0 else None
    if pod.status.phase != "Running":
        return Report(report.ended(KILLED, reason=STATUS_UNKNOWN))
    grace, wanted = float(pod.metadata.deletion_grace_period_seconds or 0), seconds_of(pod, STOPS_AFTER)
    if (left := min(wanted, grace) - waited) > 0:
        return Later(left)
    return Report(report.ended(KILLED if wanted > grace else 0))


def _exit(pod: Pod, report: Reporter, outcome: Exits, waited: float) -> Step:
    """What to do with a pod whose containers run, or ran, and do not stay."""
    first = _first(pod)
    if first is None or first.state.running is not None:
        if (left := seconds_of(pod, EXITS_AFTER) - waited) > 0:
            return Later(left)
        is_last = not _is_restarted(pod, outcome)
        return Report(report.ended(outcome.code) if is_last else report.exited(outcome.code))
    if first.state.terminated is not None and first.restart_count:
        pause = _backoff(first.restart_count)
        return Report(report.waiting("Running", CRASHES, pause=pause))
    if first.state.waiting is not None and (left := _backoff(first.restart_count) - waited) > 0:
        return Later(left)
    return Report(report.running(ready=True))


def _backoff(restarts: int) -> float:
    return min(BACKOFF * 2.0 ** min(max(restarts - 1, 0), 10), LONGEST_BACKOFF)


def _is_ready(outcome: Outcome) -> bool:
    return not isinstance(outcome, Runs) or outcome.ready


def _first(pod: Pod) -> ContainerStatus | None:
    return next(iter(pod.status.container_statuses or ()), None)


def _restarts(pod: Pod) -> int:
    first = _first(pod)
    return 0 if first is None else first.restart_count


def _is_restarted(pod: Pod, outcome: Exits) -> bool:
    policy = pod.spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and outcome.code != 0)


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
