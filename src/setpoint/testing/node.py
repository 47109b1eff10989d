"""A node on which nothing really runs: pods are bound to it, become Running and Ready, and go when deleted.

Where there is an API server and kube-controller-manager but no kubelet, this makes the rest of the cluster
live: Deployments become available, StatefulSets grow ordinal by ordinal, Jobs complete.  Promises:

1. Inside the ``async with`` there is a Node that is Ready and keeps saying so; afterwards there is none.
2. Every pod that nobody else schedules is bound to it, and does what ``outcome`` says of it: unless told,
   what its annotations say (``pod_steps.py``); else a pod that is to be restarted runs, any other does its
   work and ends well.
3. A pod that is deleted is told as stopped and then let go: at once, or when it says, in its grace period.
4. What the server refuses is tried again, with backoff.

It is an ordinary controller, and works on any server.  What to do with a pod is decided in ``pod_steps.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from types import TracebackType
from typing import Self

from setpoint.api.meta import ObjectMeta, OwnerReference
from setpoint.api.model import to_wire
from setpoint.api.patches import StrategicPatch
from setpoint.api.quantity import Quantity
from setpoint.api.times import MicroTime, Time
from setpoint.client.client import Client, ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request, Result
from setpoint.errors import Conflict, NotFound, SetpointError
from setpoint.kube.coordination.v1 import Lease, LeaseSpec
from setpoint.kube.core.v1 import (
    Binding,
    NodeAddress,
    NodeCondition,
    NodeStatus,
    ObjectReference,
    Pod,
)
from setpoint.kube.core.v1 import Node as NodeObject
from setpoint.manager.manager import Manager
from setpoint.testing.pod_steps import (
    Bind,
    Host,
    Later,
    Outcome,
    Remove,
    Report,
    Step,
    next_step,
    usual_outcome,
)

_MANAGER = "setpoint-node"
_WORKERS = 8
_LEASE_SECONDS = 40  # as the kubelet: kube-controller-manager waits so long before it gives a node up
_RENEW_EVERY = 10.0
_LEAVING = 5.0  # seconds that the node's own end may take

log = logging.getLogger("setpoint.testing")


class Node:
    """A node, as an async context manager::

        async with Node(client):
            await eventually(is_available)

    ``outcome`` decides what becomes of a pod: ``Runs()``, ``Exits(1)`` or ``Waits("ImagePullBackOff")``.
    ``delay`` is how many seconds a pod takes to start that says nothing about it itself.
    """

    def __init__(
        self,
        client: Client,
        name: str = "node-1",
        *,
        outcome: Callable[[Pod], Outcome] = usual_outcome,
        delay: float = 0.0,
    ) -> None:
        self.name = name
        self.delay = delay
        self.host = Host(name, "198.51.100.1", {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"})
        self.outcome = outcome
        self._client = client
        self._manager = Manager(client=client, name=f"node-{name}", graceful_shutdown=_LEAVING)
        pods = _Pods(self, self._manager.client)
        builder(self._manager).named(f"pods-of-{name}").for_(Pod).with_options(workers=_WORKERS).complete(
            pods
        )

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self._manager!r}>"

    async def __aenter__(self) -> Self:
        self._manager.add(_Heartbeat(self._client, await self._register()))
        try:
            await self._manager.__aenter__()
        except BaseException:
            await self._unregister()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._manager.__aexit__(kind, error, trace)
        finally:
            await self._unregister()

    async def _register(self) -> NodeObject:
        now = Time.of(datetime.now(UTC))
        room = {"cpu": Quantity("1000"), "memory": Quantity("1Ti"), "pods": Quantity("100000")}
        ready = NodeCondition(
            type="Ready", status="True", reason="KubeletReady", message="a stand-in: nothing really runs",
            last_heartbeat_time=now, last_transition_time=now,
        )  # fmt: skip
        status = NodeStatus(
            capacity=room, allocatable=room, conditions=[ready],
            addresses=[NodeAddress(type="InternalIP", address=self.host.ip)],
        )  # fmt: skip
        node = NodeObject(metadata=ObjectMeta(name=self.name, labels=dict(self.host.labels)))
        node = await self._client.apply(node, force=True, field_manager=_MANAGER)
        patch = StrategicPatch({"status": to_wire(status)})
        return await self._client.patch(node, patch, subresource="status")

    async def _unregister(self) -> None:
        with contextlib.suppress(SetpointError):
            await self._client.delete(NodeObject, self.name, timeout=_LEAVING)


class _Heartbeat:
    """Says that the node lives; kube-controller-manager gives up one that does not."""

    def __init__(self, client: Client, node: NodeObject) -> None:
        self._client = client
        self._node = node

    async def run(self) -> None:
        name, uid = self._node.metadata.name or "", self._node.metadata.uid or ""
        owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=uid)
        named = ObjectMeta(name=name, namespace="kube-node-lease", owner_references=[owner])
        while True:
            spec = LeaseSpec(
                holder_identity=name,
                lease_duration_seconds=_LEASE_SECONDS,
                renew_time=MicroTime.of(datetime.now(UTC)),
            )
            lease = Lease(metadata=named, spec=spec)
            try:
                await self._client.apply(lease, force=True, field_manager=_MANAGER, timeout=_RENEW_EVERY)
            except SetpointError as error:
                log.debug("%s: %s", name, error)
            await asyncio.sleep(_RENEW_EVERY)


class _Pods:
    """The node's reconciler of pods."""

    def __init__(self, node: Node, client: Client) -> None:
        self._node = node
        self._client = client
        self._addresses: dict[str, str] = {}  # by uid
        self._since: dict[tuple[str, bool], float] = {}  # by uid, and whether it is being deleted
        self._free = count(1)

    async def reconcile(self, request: Request) -> Result | None:
        pod = await ignore_not_found(self._client.get(Pod, request.name, namespace=request.namespace))
        if pod is None:
            return None
        uid, now = pod.metadata.uid or "", Time.of(datetime.now(UTC))
        outcome = self._node.outcome(pod)
        step = next_step(
            pod,
            self._node.host,
            outcome,
            pod_ip=self._address(uid),
            now=now,
            waited=self._waited(pod, uid),
            delay=self._node.delay,
        )
        if isinstance(step, Later):
            return Result(requeue_after=step.seconds)
        # Another pod by now, or gone: the watch will bring what there is.
        with contextlib.suppress(NotFound, Conflict):
            await self._carry_out(step, pod, uid)
        return None

    def _waited(self, pod: Pod, uid: str) -> float:
        """For how many seconds a pod has been ours, or has been deleted."""
        if pod.spec.node_name != self._node.name:
            return 0.0
        now = asyncio.get_running_loop().time()
        return now - self._since.setdefault((uid, pod.metadata.deletion_timestamp is not None), now)

    async def _carry_out(self, step: Step | None, pod: Pod, uid: str) -> None:
        match step:
            case Bind():
                named = ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=uid)
                binding = Binding(metadata=named, target=ObjectReference(kind="Node", name=self._node.name))
                await self._client.create(to_wire(binding))  # as a dict, for the answer is no Binding
            case Report(status):
                # Merged by type and name, as a kubelet does: others have conditions of their own.
                patch = StrategicPatch({"metadata": {"uid": uid}, "status": to_wire(status)})
                await self._client.patch(pod, patch, subresource="status")
            case Remove():
                await self._client.delete(pod, grace_period=0, uid=uid)
                self._addresses.pop(uid, None)
                for is_deleted in (False, True):
                    self._since.pop((uid, is_deleted), None)

    def _address(self, uid: str) -> str:
        if uid not in self._addresses:
            number = next(self._free)
            self._addresses[uid] = f"10.244.{number // 250 % 250}.{number % 250 + 1}"
        return self._addresses[uid]
