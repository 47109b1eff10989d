"""A node on which nothing really runs: pods are bound to it, become Running and Ready, and go when deleted.

Where there is an API server but no scheduler and no kubelet, this makes the rest of the cluster live:
Deployments become available, StatefulSets grow ordinal by ordinal, Jobs complete.  Promises:

1. There is a Node that is Ready and keeps saying so.
2. Every pod that nobody else schedules is bound to it, unless it is cordoned or has a taint that the pod
   does not tolerate, and does what ``outcome`` says of it: unless told, what its annotations say
   (``node_pods.py``); else a pod that is to be restarted runs, any other does its work and ends well.
3. A pod that is deleted is told as stopped and then let go: at once, or when it says, in its grace period.
4. What the server refuses is tried again, with backoff.
5. The Events of scheduler and kubelet are told of some pods each second, not of thousands.

It is an ordinary controller, and works on any server.  What to do with a pod is decided in ``node_pods.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from setpoint.api.meta import ObjectMeta, OwnerReference
from setpoint.api.model import to_wire
from setpoint.api.names import Key
from setpoint.api.patches import StrategicPatch
from setpoint.api.quantity import Quantity
from setpoint.api.times import MicroTime, Time
from setpoint.api.wire import Metadata, Snapshot
from setpoint.builtin.daemonsets_nodes import is_tolerated
from setpoint.builtin.node_events import NodeEvents
from setpoint.builtin.node_pods import (
    USUAL_DELAY,
    Bind,
    Later,
    Outcome,
    Remove,
    Report,
    Step,
    next_step,
    stage_of,
    usual_outcome,
)
from setpoint.builtin.node_status import Host
from setpoint.builtin.parts import Parts
from setpoint.cache.cache import Cache
from setpoint.cache.scope import Problem
from setpoint.cache.store import Seen
from setpoint.cache.writes import is_past
from setpoint.client.client import Client, ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.mapping import priority_of, reason_of
from setpoint.controller.result import Request, Result
from setpoint.controller.sources import Feed, Kind, Source
from setpoint.errors import Conflict, NotFound, SetpointError
from setpoint.kube.coordination.v1 import Lease, LeaseSpec
from setpoint.kube.core.v1 import (
    Binding,
    Node,
    NodeAddress,
    NodeCondition,
    NodeStatus,
    NodeSystemInfo,
    ObjectReference,
    Pod,
    PodStatus,
    Taint,
)

NAME: Final = "node-stand-in"
_POD: Final = Pod.resource.gvk
_MANAGER: Final = "setpoint-node"
_WORKERS = 64  # each of them waits a moment with a pod that starts
_MOMENT = 0.1  # seconds that are waited for within a look
_LEAST = 0.001  # so that a clock that is a little late does not stand still
_STEPS = 10  # of one look; what else there is to do is done soon
_LEASE_SECONDS = 40  # as the kubelet: kube-controller-manager waits so long before it gives a node up
_RENEW_EVERY = 10.0
_CONDITIONS_PREFIX = "node.kubernetes.io/"  # of taints that stand for conditions: a node is never unwell here

log = logging.getLogger("setpoint.builtin")


class StandIn:
    """The node: registers, and says that it lives."""

    def __init__(self, parts: Parts, name: str = "node-1") -> None:
        self.name = name
        self.host = Host(name, "198.51.100.1", {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"})
        self._client = parts.manager.plain_client
        self._clock = parts.clock
        self._is_there = asyncio.Event()

    def __repr__(self) -> str:
        return f"<StandIn {self.name}>"

    async def run(self) -> None:
        """Register, and renew the lease until cancelled."""
        node = await self.register()
        self._is_there.set()
        owner = OwnerReference(api_version="v1", kind="Node", name=self.name, uid=node.metadata.uid or "")
        named = ObjectMeta(name=self.name, namespace="kube-node-lease", owner_references=[owner])
        while True:
            spec = LeaseSpec(
                holder_identity=self.name,
                lease_duration_seconds=_LEASE_SECONDS,
                renew_time=MicroTime.of(self._clock.utc()),
            )
            lease = Lease(metadata=named, spec=spec)
            try:
                await self._client.apply(lease, force=True, field_manager=_MANAGER, timeout=_RENEW_EVERY)
            except SetpointError as error:
                log.debug("%s: %s", self.name, error)
            await asyncio.sleep(_RENEW_EVERY)

    async def wait_ready(self) -> None:
        """Wait until the Node is there."""
        await self._is_there.wait()

    async def register(self) -> Node:
        now = Time.of(self._clock.utc())
        room = {"cpu": Quantity("1000"), "memory": Quantity("1Ti"), "pods": Quantity("100000")}
        ready = NodeCondition(
            type="Ready", status="True", reason="KubeletReady", message="a stand-in: nothing really runs",
            last_heartbeat_time=now, last_transition_time=now,
        )  # fmt: skip
        status = NodeStatus(
            capacity=room, allocatable=room, conditions=[ready],
            addresses=[NodeAddress(type="InternalIP", address=self.host.ip)],
            node_info=NodeSystemInfo(operating_system=self.host.labels["kubernetes.io/os"]),
        )  # fmt: skip
        node = Node(metadata=ObjectMeta(name=self.name, labels=dict(self.host.labels)))
        node = await self._client.apply(node, force=True, field_manager=_MANAGER)
        patch = StrategicPatch({"status": to_wire(status)})
        return await self._client.patch(node, patch, subresource="status")


@dataclass(slots=True)
class _Seen:
    """What is remembered of a pod."""

    uid: str
    address: str = ""
    stage: tuple[str, int] = ("", 0)
    since: float = 0.0
    done_at: str = ""  # the version at which there was nothing more to do
    is_removed: bool = False  # by us


class _PodSource(Source):
    """The changes of pods, but for those that the node made itself and has nothing to add to."""

    def __init__(self, cache: Cache, pods: NodePods) -> None:
        self._pods = pods
        self._declaration = cache.declare(Pod)
        self._is_heard = False

    def __repr__(self) -> str:
        return f"<PodSource {self._declaration!r}>"

    @property
    def is_synced(self) -> bool:
        return self._is_heard and self._declaration.is_synced

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(self._declaration.problems)

    def close(self) -> None:
        self._declaration.close()

    async def run(self, feed: Feed) -> None:
        end = self._declaration.listen(lambda seen: self._hear(seen, feed))
        self._is_heard = True
        try:
            await asyncio.Event().wait()
        finally:
            end()

    def _hear(self, seen: Seen, feed: Feed) -> None:
        if seen.new is None:
            self._pods.forget(seen.key)
        elif not self._pods.is_done_with(seen.new.metadata):
            feed.add(seen.key, priority_of(seen), reason_of(_POD, seen))


class NodePods:
    """The node's reconciler of pods."""

    def __init__(self, parts: Parts, host: Host, *, outcome: Callable[[Pod], Outcome], delay: float) -> None:
        self._parts = parts
        self._client: Client = parts.client
        self._host = host
        self._events = NodeEvents(parts)
        self._outcome = outcome
        self._delay = delay
        self._seen: dict[Key, _Seen] = {}
        self._unbound: set[Key] = set()  # those that the node, as it is, may not take
        self._used: set[str] = set()
        self._numbers = count(1)
        self._node_version = ""
        self._keeps_away: list[Taint] = []

    def waiting(self, node: Snapshot) -> list[Request]:
        """A mapper for Nodes: the pods that may be bound now that the node is another."""
        return list(self._unbound) if node.metadata.name == self._host.name else []

    async def reconcile(self, request: Request) -> Result | None:
        pod = await ignore_not_found(self._client.get(Pod, request.name, namespace=request.namespace))
        if pod is None:
            self.forget(request)
        # Another pod by now, or gone: the watch will bring what there is.
        with contextlib.suppress(NotFound, Conflict):
            for _ in range(_STEPS):
                if pod is None:
                    return None
                step = self._next(request, pod)
                if step is None:
                    self._rest(request, pod)
                    return None
                if not isinstance(step, Later):
                    pod = await self._carry_out(step, request, pod)
                elif step.seconds > _MOMENT:
                    return Result(requeue_after=step.seconds)
                else:
                    await asyncio.sleep(max(step.seconds, _LEAST))
            return Result(requeue_after=_MOMENT)
        return None

    def _next(self, key: Key, pod: Pod) -> Step | None:
        seen = self._look(key, pod)
        return next_step(
            pod,
            self._host,
            self._outcome(pod),
            pod_ip=seen.address,
            now=Time.of(self._parts.clock.utc()),
            waited=asyncio.get_running_loop().time() - seen.since,
            delay=self._delay,
        )

    async def _carry_out(self, step: Step, key: Key, pod: Pod) -> Pod | None:
        """The pod as it is then, if there may be more to do."""
        uid = pod.metadata.uid or ""
        match step:
            case Bind() if not self._takes(pod):
                self._unbound.add(key)
            case Bind():
                self._unbound.discard(key)
                named = ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=uid)
                binding = Binding(metadata=named, target=ObjectReference(kind="Node", name=self._host.name))
                await self._client.create(to_wire(binding))  # as a dict, for the answer is no Binding
                self._events.scheduled(pod, self._host.name)
                pod.spec.node_name = self._host.name
                return pod
            case Report(status):
                # Merged by type and name, as a kubelet does: others have conditions of their own.
                patch = StrategicPatch({"metadata": {"uid": uid}, "status": _difference(pod, status)})
                after = await self._client.patch(pod, patch, subresource="status")
                self._events.reported(pod, status)
                return after
            case Remove():
                await self._client.delete(pod, grace_period=0, uid=uid)
                if (seen := self._seen.get(key)) is not None:
                    seen.is_removed = not pod.metadata.finalizers
        return None

    # What is remembered.

    def _look(self, key: Key, pod: Pod) -> _Seen:
        """What is known of the pod, with how long it has been where it is."""
        uid, stage = pod.metadata.uid or "", stage_of(pod)
        seen = self._seen.get(key)
        if pod.spec.node_name != self._host.name:
            return seen or _Seen(uid)
        if seen is None or seen.uid != uid:
            self.forget(key)
            seen = self._seen[key] = _Seen(uid, self._address(pod))
        if seen.stage != stage:
            seen.stage, seen.since = stage, asyncio.get_running_loop().time()
        return seen

    def _rest(self, key: Key, pod: Pod) -> None:
        """There is nothing more to do, until somebody else changes the pod."""
        seen, version = self._seen.get(key), pod.metadata.resource_version
        if seen is not None and pod.spec.node_name == self._host.name and version:
            seen.done_at = version

    def is_done_with(self, metadata: Metadata) -> bool:
        """Whether a pod, as it is now, has been looked at already, or is gone as far as we know."""
        seen = self._seen.get(metadata.key)
        if seen is None or seen.uid != metadata.uid:
            return False
        return seen.is_removed or is_past(seen.done_at, metadata.resource_version)

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        self._unbound.discard(key)
        seen = self._seen.pop(key, None)
        if seen is not None:
            self._used.discard(seen.address)

    def _address(self, pod: Pod) -> str:
        address = pod.status.pod_ip or ""
        while not address or (address in self._used and address != pod.status.pod_ip):
            number = next(self._numbers)
            address = f"10.{244 + number // 62500 % 8}.{number // 250 % 250}.{number % 250 + 1}"
        self._used.add(address)
        return address

    # The node, as others changed it.

    def _takes(self, pod: Pod) -> bool:
        node = self._parts.manager.cache.peek(Node, Key("", self._host.name))
        if node is not None and node.metadata.resource_version != self._node_version:
            self._node_version = node.metadata.resource_version
            self._keeps_away = _keeping_away(Node.decode(node.data))
        return all(is_tolerated(pod.spec.tolerations or (), taint) for taint in self._keeps_away)


def _keeping_away(node: Node) -> list[Taint]:
    """The taints of a node that keep new pods away; a cordoned one has one more."""
    taints = [
        taint
        for taint in node.spec.taints or ()
        if taint.effect in {"NoSchedule", "NoExecute"} and not taint.key.startswith(_CONDITIONS_PREFIX)
    ]
    if node.spec.unschedulable:
        taints.append(Taint(key=f"{_CONDITIONS_PREFIX}unschedulable", effect="NoSchedule"))
    return taints


_PLAIN: Final = {
    "observed_generation": "observedGeneration",
    "start_time": "startTime",
    "host_ip": "hostIP",
    "host_ips": "hostIPs",
    "pod_ip": "podIP",
    "pod_ips": "podIPs",
}


def _difference(pod: Pod, status: PodStatus) -> dict[str, Any]:
    """What is to be said anew, in wire form; a condition's reason that no longer holds is taken back."""
    known, wire = pod.status, to_wire(status)
    for name, said in _PLAIN.items():
        if getattr(known, name) == getattr(status, name):
            wire.pop(said, None)
    before = {each.type: each for each in known.conditions or ()}
    changed = [each for each in status.conditions or () if before.get(each.type) != each]
    wire["conditions"] = conditions = to_wire(changed)
    for condition in conditions:
        was = before.get(condition["type"])
        if was is not None and was.reason and "reason" not in condition:
            condition["reason"] = None
        if was is not None and was.message and "message" not in condition:
            condition["message"] = None
    difference: dict[str, Any] = wire
    return difference


def add_to(
    parts: Parts,
    name: str = "node-1",
    *,
    outcome: Callable[[Pod], Outcome] = usual_outcome,
    delay: float = USUAL_DELAY,
) -> StandIn:
    """Have a node of this name, on which pods become what ``outcome`` says.

    ``delay`` is how many seconds a pod takes to start that says nothing about it itself.
    """
    node = StandIn(parts, name)
    pods = NodePods(parts, node.host, outcome=outcome, delay=delay)
    parts.manager.add(node)
    (
        builder(parts.manager)
        .named(NAME if name == "node-1" else f"{NAME}-{name}")
        .reads(_PodSource(parts.manager.cache, pods))
        .reads(Kind(parts.manager.cache, Node, pods.waiting))
        .with_options(workers=_WORKERS)
        .complete(pods)
    )
    return node
