"""Keeps one pod of a DaemonSet on every node that it belongs on, at the newest revision.

Each look claims the pods of the set, finds or makes the revision of its template, makes and deletes pods as
``daemonsets_nodes.py`` decides, and writes the status.  Pods are meant for a node by their affinity; binding
them is the scheduler's matter.  A pod that has ended is deleted, and comes back: a set whose pods always end
would go round, so each of them has to wait longer, up to a quarter of an hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from setpoint.builtin.daemonsets_nodes import (
    Plan,
    View,
    bound_to,
    node_of,
    place,
    status_of,
    tolerations,
    update,
)
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods import PodControl, PodState, next_available, pod_from
from setpoint.builtin.pods_claims import ORPHANS, claim, claims_of, orphans, selector_of
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.builtin.revisions import REVISION_LABEL, History
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.predicates import changed
from setpoint.controller.result import Request, Result
from setpoint.kube.apps.v1 import ControllerRevision, DaemonSet
from setpoint.kube.core.v1 import Node, Pod

NAME = "daemonset-controller"
_WORKERS = 2
_GENERATION = "deprecated.daemonset.template.generation"
_GENERATION_LABEL = "pod-template-generation"
_FIRST, _LONGEST = 1.0, 900.0  # seconds that a node whose pod ended waits for the next


class DaemonSets:
    """The reconciler."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._client = means.client
        self._control = PodControl(means)
        self._waits = _Waits()

    async def reconcile(self, request: Request) -> Result:
        owner = await ignore_not_found(self._client.get(DaemonSet, request.name, namespace=request.namespace))
        if owner is None:
            self._waits.forget(request)
            return Result()
        selector, now = selector_of(owner), self._means.now()
        history = History(self._means, owner, hash_label=REVISION_LABEL)
        revisions = await history.revisions(selector)
        newest, collisions = await history.current(
            revisions, owner.spec.template, owner.status.collision_count or 0
        )
        revision = (newest.metadata.labels or {}).get(REVISION_LABEL, "")
        nodes = await self._client.list(Node)
        pods = await claim(self._means, owner, selector, PodState)
        view = View(owner, nodes, pods, revision, now)
        wait: float | None = None
        if owner.metadata.deletion_timestamp is None:
            plan = place(view)
            wait = await self._carry_out(request, view, plan)
            if not (plan.create or plan.delete or plan.ended):
                await self._carry_out(request, view, update(view))
            pods = await self._client.list(PodState, namespace=request.namespace, owner=owner.metadata.uid)
        seen = View(owner, nodes, pods, revision, now)
        status = status_of(seen, collisions)
        if status != owner.status:
            owner.status = status
            await self._client.update_status(owner)
        live = {f"{owner.metadata.name}-{(pod.metadata.labels or {}).get(REVISION_LABEL)}" for pod in pods}
        await history.truncate(
            revisions, {newest.metadata.name or "", *live}, owner.spec.revision_history_limit
        )
        return look_again(wait, next_available(pods, owner.spec.min_ready_seconds or 0, now))

    async def _carry_out(self, request: Request, view: View, plan: Plan) -> float | None:
        """Do as planned; in how many seconds there is more to do."""
        owner = view.owner
        waits = [self._waits.seconds(request, node_of(pod), view.now) for pod in plan.ended]
        due = [pod for pod, wait in zip(plan.ended, waits, strict=True) if wait == 0]
        for pod in due:
            self._warn_ended(owner, pod)
            self._waits.count(request, node_of(pod), view.now)
        gone = await self._control.delete(owner, [*plan.delete, *due])
        made = await self._control.create(
            owner, [new_pod(owner, node, view.revision) for node in plan.create]
        )
        gone.check()
        made.check()
        return min((wait for wait in waits if wait), default=None)

    def _warn_ended(self, owner: DaemonSet, pod: PodState) -> None:
        is_failed = pod.status.phase == "Failed"
        where = f"daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {node_of(pod)}"
        if is_failed:
            self._means.warn(owner, "FailedDaemonPod", f"Found failed {where}, will try to kill it")
        else:
            self._means.tell(owner, "SucceededDaemonPod", f"Found succeeded {where}, will try to delete it")


class _Waits:
    """How long a node whose pod ended again and again waits for the next."""

    def __init__(self) -> None:
        self._counted: dict[tuple[Request, str], tuple[float, datetime]] = {}

    def seconds(self, request: Request, node: str, now: datetime) -> float:
        _, until = self._counted.get((request, node), (0.0, now))
        return max(0.0, (until - now).total_seconds())

    def count(self, request: Request, node: str, now: datetime) -> None:
        before, until = self._counted.get((request, node), (0.0, now))
        is_old = now > until + timedelta(seconds=2 * _LONGEST)
        wait = _FIRST if is_old or not before else min(_LONGEST, before * 2)
        self._counted[request, node] = (wait, now + timedelta(seconds=wait))

    def forget(self, request: Request) -> None:
        for known in [each for each in self._counted if each[0] == request]:
            del self._counted[known]


def new_pod(owner: DaemonSet, node: str, revision: str) -> Pod:
    """The pod of a node."""
    pod = pod_from(owner.spec.template, owner)
    generation = (owner.metadata.annotations or {}).get(_GENERATION)
    pod.metadata.labels = {**(pod.metadata.labels or {}), REVISION_LABEL: revision}
    if generation is not None:
        pod.metadata.labels[_GENERATION_LABEL] = generation
    pod.spec.tolerations = tolerations(owner.spec.template.spec)
    pod.spec.affinity = bound_to(pod.spec.affinity, node)
    return pod


def add_to(parts: Parts) -> Controller:
    """Have DaemonSets looked after."""
    means = Means(NAME, parts)

    async def every(_: Node) -> list[Request]:
        found = await means.client.cache.list(DaemonSet)
        return [Request(each.metadata.namespace or "", each.metadata.name or "") for each in found]

    building = claims_of(means.building(_WORKERS).for_(DaemonSet), means, DaemonSet, PodState)
    building.owns(ControllerRevision, indexes={ORPHANS: orphans})
    building.watches(Node, every, when=changed(Node, lambda node: (node.metadata.labels, node.spec)))
    return complete(building, DaemonSets(means).reconcile)
