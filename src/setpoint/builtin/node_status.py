"""The words in which a kubelet says how a pod is: phase, conditions, and the state of each container.

Pure.  ``node_pods.py`` decides which of them is said when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from setpoint.api.times import Time
from setpoint.kube.core.v1 import (
    Container,
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

ENDED: Final = frozenset({"Succeeded", "Failed"})
CRASHES: Final = "CrashLoopBackOff"
CREATES: Final = "ContainerCreating"
STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
_NEVER_STARTED: Final = "The container could not be located when the pod was terminated"


@dataclass(frozen=True, slots=True)
class Host:
    """The node, as far as pods are concerned."""

    name: str
    ip: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def is_up(pod: Pod, *, ready: bool) -> bool:
    """Whether a pod is told as running with all its containers, and as ready as it can be."""
    statuses = pod.status.container_statuses or []
    if len(statuses) != len(pod.spec.containers) or not all(
        status.ready == ready and status.state.running is not None for status in statuses
    ):
        return False
    said = next((each.status for each in pod.status.conditions or () if each.type == "Ready"), None)
    return said == ("True" if ready and not _closed_gates(pod) else "False")


def waiting_reason(pod: Pod) -> str | None:
    """Why the containers of a pod wait, if they do."""
    for status in pod.status.container_statuses or ():
        if status.state.waiting is not None:
            return status.state.waiting.reason
    return None


def _closed_gates(pod: Pod) -> list[str]:
    """The conditions that others must say are True before the pod is ready, and that are not."""
    held = {each.type for each in pod.status.conditions or () if each.status == "True"}
    return [each.condition_type for each in pod.spec.readiness_gates or () if each.condition_type not in held]


@dataclass(frozen=True, slots=True)
class Reporter:
    """Says how one pod is, after how it was."""

    pod: Pod
    host: Host
    pod_ip: str
    now: Time

    def running(self, *, ready: bool = True) -> PodStatus:
        """All containers run; those that ran before were restarted."""
        state = ContainerState(running=ContainerStateRunning(started_at=self.now))
        return self._status("Running", [self._started(each, state, ready) for each in self._containers()])

    def waiting(self, phase: str, reason: str, message: str = "", *, pause: float = 0.0) -> PodStatus:
        """No container runs, and all wait for the same thing; ``pause`` is until they are restarted."""
        return self._status(
            phase, [self._waiting(*each, reason, message, pause) for each in self._containers()]
        )

    def exited(self, code: int) -> PodStatus:
        """All containers have exited, and will be restarted."""
        return self._status("Running", [self._exited(*each, code, "") for each in self._containers()])

    def ended(self, code: int, *, reason: str = "") -> PodStatus:
        """All containers have exited, for good."""
        statuses = [self._exited(*each, code, reason) for each in self._containers()]
        codes = [each.state.terminated.exit_code for each in statuses if each.state.terminated is not None]
        return self._status("Failed" if any(codes) else "Succeeded", statuses)

    # Containers.

    def _containers(self) -> Iterable[tuple[Container, ContainerStatus | None]]:
        known = {each.name: each for each in self.pod.status.container_statuses or ()}
        return [(each, known.get(each.name)) for each in self.pod.spec.containers]

    def _started(
        self, each: tuple[Container, ContainerStatus | None], state: ContainerState, ready: bool
    ) -> ContainerStatus:
        container, was = each
        if was is None or was.container_id is None:
            return self._container(container, 0, state, ContainerState(), ready=ready)
        if was.state.running is not None:
            return self._container(container, was.restart_count, was.state, was.last_state, ready=ready)
        last = was.state if was.state.terminated is not None else was.last_state
        return self._container(container, was.restart_count + 1, state, last, ready=ready)

    def _waiting(
        self, container: Container, was: ContainerStatus | None, reason: str, message: str, pause: float
    ) -> ContainerStatus:
        if pause:
            named, uid = f"{self.pod.metadata.name}_{self.pod.metadata.namespace}", self.pod.metadata.uid
            message = (
                f"back-off {_duration(pause)} restarting failed container={container.name} pod={named}({uid})"
            )
        elif reason == "ImagePullBackOff" and not message:
            message = f'Back-off pulling image "{container.image}"'
        state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message or None))
        if was is None or was.container_id is None:
            return ContainerStatus(
                name=container.name, image=container.image or "", started=False, state=state
            )
        last = was.state if was.state.terminated is not None else was.last_state
        return self._container(container, was.restart_count, state, last, ready=False)

    def _exited(
        self, container: Container, was: ContainerStatus | None, code: int, reason: str
    ) -> ContainerStatus:
        if was is not None and was.state.waiting is not None and was.last_state.terminated is not None:
            return self._container(container, was.restart_count, was.last_state, was.last_state, ready=False)
        running = was.state.running if was is not None else None
        restarts = 0 if was is None else was.restart_count
        has_run = was is not None and was.container_id is not None
        terminated = ContainerStateTerminated(
            exit_code=code,
            reason=reason or ("Error" if code else "Completed"),
            message=_NEVER_STARTED if reason == STATUS_UNKNOWN else None,
            started_at=running.started_at if running is not None else None,
            finished_at=self.now if has_run else None,
            container_id=self._id(container, restarts) if has_run else None,
        )
        state = ContainerState(terminated=terminated)
        if not has_run:
            return ContainerStatus(
                name=container.name, image=container.image or "", started=False, state=state
            )
        last = was.last_state if was is not None else ContainerState()
        return self._container(container, restarts, state, last, ready=False)

    def _container(
        self, container: Container, restarts: int, state: ContainerState, last: ContainerState, *, ready: bool
    ) -> ContainerStatus:
        return ContainerStatus(
            name=container.name,
            image=container.image or "",
            image_id=f"stand-in://{container.image}",
            container_id=self._id(container, restarts),
            ready=ready,
            started=state.running is not None,
            restart_count=restarts,
            state=state,
            last_state=last,
        )

    def _id(self, container: Container, restarts: int) -> str:
        return f"stand-in://{self.pod.metadata.uid}/{container.name}/{restarts}"

    def _init_containers(self, *, has_started: bool, is_over: bool) -> list[ContainerStatus]:
        known = {each.name: each for each in self.pod.status.init_container_statuses or ()}
        statuses = []
        for container in self.pod.spec.init_containers or ():
            was = known.get(container.name)
            stays = container.restart_policy == "Always"
            if not has_started:
                waits = ContainerStateWaiting(reason="PodInitializing")
                statuses.append(
                    ContainerStatus(
                        name=container.name,
                        image=container.image or "",
                        started=False,
                        state=ContainerState(waiting=waits),
                    )
                )
            elif was is not None and was.container_id is not None and not (stays and is_over):
                statuses.append(was)
            else:
                began = was.state.running.started_at if was is not None and was.state.running else self.now
                done = ContainerStateTerminated(
                    exit_code=0,
                    reason="Completed",
                    started_at=began,
                    finished_at=self.now,
                    container_id=self._id(container, 0),
                )
                state = ContainerState(terminated=done)
                if stays and not is_over:
                    state = ContainerState(running=ContainerStateRunning(started_at=self.now))
                ready = not is_over
                statuses.append(self._container(container, 0, state, ContainerState(), ready=ready))
        return statuses

    # The pod.

    def _status(self, phase: str, containers: list[ContainerStatus]) -> PodStatus:
        has_started = phase != "Pending" and any(each.container_id for each in containers)
        inits = self._init_containers(has_started=has_started, is_over=phase in ENDED)
        return PodStatus(
            phase=phase,
            observed_generation=self.pod.metadata.generation,
            start_time=self.pod.status.start_time or self.now,
            host_ip=self.host.ip,
            host_ips=[HostIP(ip=self.host.ip)],
            pod_ip=self.pod_ip if has_started else None,
            pod_ips=[PodIP(ip=self.pod_ip)] if has_started else None,
            conditions=self._conditions(phase, containers, has_started=has_started),
            init_container_statuses=inits or None,
            container_statuses=containers,
        )

    def _conditions(
        self, phase: str, containers: list[ContainerStatus], *, has_started: bool
    ) -> list[PodCondition]:
        unready = [each.name for each in containers if not each.ready]
        why, message = "", ""
        if phase in ENDED:
            why = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        elif unready:
            why, message = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
        is_initialized = has_started or not self.pod.spec.init_containers
        conditions = [
            self._condition("PodReadyToStartContainers", has_started and phase not in ENDED),
            self._condition("Initialized", is_initialized, "PodCompleted" if phase == "Succeeded" else ""),
            self._condition("Ready", not why, why, message),
            self._condition("ContainersReady", not why, why, message),
            self._condition("PodScheduled", True),
        ]
        if not is_initialized:
            names = " ".join(each.name for each in self.pod.spec.init_containers or ())
            told = f"containers with incomplete status: [{names}]"
            conditions[1] = self._condition("Initialized", False, "ContainersNotInitialized", told)
        if not why and (closed := _closed_gates(self.pod)):
            told = f'the status of pod readiness gate "{closed[0]}" is not "True", but False'
            said = {each.type for each in self.pod.status.conditions or ()}
            if closed[0] not in said:
                told = f'corresponding condition of pod readiness gate "{closed[0]}" does not exist.'
            conditions[2] = self._condition("Ready", False, "ReadinessGatesNotReady", told)
        return conditions

    def _condition(self, kind: str, holds: bool, reason: str = "", message: str = "") -> PodCondition:
        status = "True" if holds else "False"
        known = next((each for each in self.pod.status.conditions or () if each.type == kind), None)
        since = self.now if known is None or known.status != status else known.last_transition_time
        return PodCondition(
            type=kind,
            status=status,
            reason=reason or None,
            message=message or None,
            last_transition_time=since,
            observed_generation=self.pod.metadata.generation,
        )


def _duration(seconds: float) -> str:
    """As Go writes it: ``10s``, ``1m20s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
