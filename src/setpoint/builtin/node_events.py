"""The Events that a scheduler and a kubelet tell of a pod, of some pods each second and not of thousands.

Whoever tries something out sees with ``kubectl describe`` what a cluster would say.  Where pods come by the
thousand nobody reads it, and it would be most of what is written: then only some of them are told of.

``told_of`` is pure.  Driven by ``node.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from setpoint.builtin.node_status import CRASHES
from setpoint.builtin.parts import Parts
from setpoint.controller.event_series import EventType
from setpoint.kube.core.v1 import ContainerStatus, Pod, PodStatus

SCHEDULER: Final = "default-scheduler"
KUBELET: Final = "kubelet"
BURST: Final = 50.0  # pods that are told of at once
REFILL: Final = 1.0  # one more in a second


class Told(NamedTuple):
    """One Event."""

    type: EventType
    reason: str
    note: str


def told_of(pod: Pod, status: PodStatus) -> Iterator[Told]:
    """What a kubelet tells when a pod is as in ``status`` and was as in itself."""
    before = {each.name: each for each in pod.status.container_statuses or ()}
    for each in status.container_statuses or ():
        yield from _told_of(pod, before.get(each.name), each)


def _told_of(pod: Pod, was: ContainerStatus | None, now: ContainerStatus) -> Iterator[Told]:
    ran, waits = was is not None and was.state.running is not None, now.state.waiting
    if now.state.running is not None and not ran:
        pulled = f'Container image "{now.image}" already present on machine and can be accessed by the pod'
        yield Told("Normal", "Pulled", pulled)
        yield Told("Normal", "Created", "Container created")
        yield Told("Normal", "Started", "Container started")
    elif now.state.terminated is not None and ran and pod.metadata.deletion_timestamp is not None:
        yield Told("Normal", "Killing", f"Stopping container {now.name}")
    elif waits is not None and waits.reason == CRASHES:
        named = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
        yield Told("Warning", "BackOff", f"Back-off restarting failed container {now.name} in pod {named}")
    elif waits is not None and waits.reason == "ImagePullBackOff":
        yield Told("Normal", "BackOff", f'Back-off pulling image "{now.image}"')


class NodeEvents:
    """Tells of some pods."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._left = BURST
        self._at = 0.0

    def scheduled(self, pod: Pod, node: str) -> None:
        if self._may_tell():
            note = f"Successfully assigned {pod.metadata.namespace}/{pod.metadata.name} to {node}"
            self._parts.tell(SCHEDULER, pod, "Normal", "Scheduled", note)

    def reported(self, pod: Pod, status: PodStatus) -> None:
        if self._may_tell():
            for each in told_of(pod, status):
                self._parts.tell(KUBELET, pod, each.type, each.reason, each.note)

    def _may_tell(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._left = min(BURST, self._left + (now - self._at) * REFILL)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
