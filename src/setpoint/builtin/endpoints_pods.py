"""Decides which pods are behind a Service, by which addresses and ports, and since when.  Pure.

Both the EndpointSlices and the Endpoints of a Service are made from this:

1. A pod that has ended, or has no address of the family, is behind nothing.
2. A pod is ready while its Ready condition says so and its deletion has not begun; where a Service publishes
   what is not ready, everything counts as ready.
3. A port that is named leads where the pod says, so pods may differ; a port that a pod has not is left out.
4. ``TriggerTimes`` says since when a change could have been known: the earliest of the transitions that are
   new since the last look.  What it remembers is lost with the process, as in kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from setpoint.api.times import Time
from setpoint.kube.core.v1 import ObjectReference, Pod, Service, ServicePort

Family: TypeAlias = Literal["IPv4", "IPv6"]

HEADLESS = "service.kubernetes.io/headless"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """Where a port of a Service leads."""

    name: str
    port: int
    protocol: str
    app_protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """One address behind a Service."""

    address: str
    ports: tuple[Port, ...]
    is_ready: bool
    is_serving: bool
    is_terminating: bool
    hostname: str | None
    node: str | None
    namespace: str
    pod: str
    uid: str

    @property
    def target(self) -> ObjectReference:
        return ObjectReference(kind="Pod", namespace=self.namespace, name=self.pod, uid=self.uid)


def has_endpoints(service: Service) -> bool:
    """Whether the pods behind a Service are ours to find."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def families_of(service: Service) -> list[Family]:
    named = [each for each in service.spec.ip_families or () if each in ("IPv4", "IPv6")]
    if named:
        return ["IPv6" if each == "IPv6" else "IPv4" for each in named]
    return ["IPv6" if ":" in (service.spec.cluster_ip or "") else "IPv4"]


def is_headless(service: Service) -> bool:
    return service.spec.cluster_ip == "None"


def backends(service: Service, pods: Iterable[Pod], family: Family) -> list[Backend]:
    """What is behind a Service, by the name of the pod."""
    found = (_backend(service, pod, family) for pod in sorted(pods, key=lambda pod: pod.metadata.name or ""))
    return [each for each in found if each is not None]


def _backend(service: Service, pod: Pod, family: Family) -> Backend | None:
    address = _address(pod, family)
    if address is None or (pod.status.phase or "") in ("Succeeded", "Failed"):
        return None
    is_serving, is_terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
    has_name = pod.spec.hostname and pod.spec.subdomain == service.metadata.name
    return Backend(
        address=address,
        ports=ports_of(service, pod),
        is_ready=bool(service.spec.publish_not_ready_addresses) or (is_serving and not is_terminating),
        is_serving=is_serving,
        is_terminating=is_terminating,
        hostname=pod.spec.hostname if has_name else None,
        node=pod.spec.node_name,
        namespace=pod.metadata.namespace or "",
        pod=pod.metadata.name or "",
        uid=pod.metadata.uid or "",
    )


def is_ready(pod: Pod) -> bool:
    """Whether its Ready condition says so."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


def _address(pod: Pod, family: Family) -> str | None:
    known = [each.ip for each in pod.status.pod_ips or () if each.ip]
    if not known and pod.status.pod_ip:
        known = [pod.status.pod_ip]
    return next((each for each in known if (":" in each) == (family == "IPv6")), None)


def ports_of(service: Service, pod: Pod) -> tuple[Port, ...]:
    """Where the ports of a Service lead in a pod."""
    found: list[Port] = []
    for each in service.spec.ports or ():
        number = _number(each, pod)
        if number is not None:
            found.append(Port(each.name or "", number, each.protocol or "TCP", each.app_protocol))
    return tuple(found)


def _number(wanted: ServicePort, pod: Pod) -> int | None:
    target: int | str = wanted.target_port or wanted.port
    if isinstance(target, int):
        return target
    sidecars = [each for each in pod.spec.init_containers or () if each.restart_policy == "Always"]
    for container in [*pod.spec.containers, *sidecars]:
        for port in container.ports or ():
            if port.name == target and (port.protocol or "TCP") == (wanted.protocol or "TCP"):
                return port.container_port
    return None


class TriggerTimes:
    """Since when what changed about a Service could have been known."""

    def __init__(self) -> None:
        self._service: Time | None = None
        self._pods: dict[str, Time] = {}

    def look(self, service: Service, pods: Sequence[Pod]) -> Time | None:
        """The earliest of the transitions that are new since the last look; None if none is."""
        new: list[Time] = []
        created = service.metadata.creation_timestamp
        if created is not None and (self._service is None or created > self._service):
            new.append(created)
            self._service = created
        known: dict[str, Time] = {}
        for pod in pods:
            name, time = pod.metadata.name or "", _transition(pod)
            if time is None:
                continue
            before = self._pods.get(name)
            if before is None or time > before:
                new.append(time)
            known[name] = time
        self._pods = known
        return min(new, default=None)


def _transition(pod: Pod) -> Time | None:
    ready = (each for each in pod.status.conditions or () if each.type == "Ready")
    return next((each.last_transition_time for each in ready), None)
