"""What an object says of itself on its way, in the order in which it says so with kube-controller-manager.

A life is lived several times at once, each in a namespace of its own, on kube-apiserver with
kube-controller-manager and on a cluster of ours: Deployments that roll out, are paused, fail and go,
StatefulSets, DaemonSets, Jobs, budgets, and the end of the namespace.  The real lives are not all alike:
whoever writes a status less often leaves out what is over.  So what a condition of ours says, one after the
other, must be what it says in one of the real lives, but for what was over before anybody saw it; and in
the end it must say the same.  What is said in a namespace that ends is a race that nobody wins, and only the
namespace is heard.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import pytest

from setpoint.api.forms import untyped
from setpoint.api.patches import MergePatch
from setpoint.builtin.node_pods import Exits, Outcome, Waits, usual_outcome
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.cluster.cluster import Cluster
from setpoint.kube.core.v1 import Pod
from setpoint.testing.kube import ControlPlane
from setpoint.testing.node import Node
from setpoint.testing.waiting import eventually
from tests.conformance.planes import IN_MANAGER

Wire = dict[str, Any]
Said: TypeAlias = tuple[str, ...]  # what a condition said, one after the other

LIVES = 3
KINDS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "PodDisruptionBudget": "policy/v1",
}


# ---- the clusters ----------------------------------------------------------------------------------


def outcome(pod: Pod) -> Outcome:
    match pod.spec.containers[0].image:
        case "bad":
            return Exits(1)
        case "missing":
            return Waits("ImagePullBackOff")
    return usual_outcome(pod)


@asynccontextmanager
async def theirs() -> AsyncIterator[Client]:
    async with (
        ControlPlane(controller_manager=True) as plane,
        Client(Config.load(plane.kubeconfig)) as client,
        Node(client, outcome=outcome),
    ):
        yield client


@asynccontextmanager
async def ours() -> AsyncIterator[Client]:
    async with Cluster(controllers=IN_MANAGER) as cluster, Node(cluster.client, outcome=outcome):
        yield cluster.client


# ---- a life ----------------------------------------------------------------------------------------


class Life:
    """What happens in a namespace, and what was said there, by object and condition."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._is_ending = False
        self.said: dict[str, list[str]] = defaultdict(list)

    async def live(self) -> None:
        await self._client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        )
        watches = [asyncio.create_task(self._listen(kind)) for kind in KINDS]
        watches.append(asyncio.create_task(self._listen_to_namespace()))
        try:
            await self._deployments()
            await asyncio.gather(self._sets(), self._jobs(), self._claims_and_budgets())
            await self._end()
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _deployments(self) -> None:
        await self._create("Deployment", "web", replicas=3)
        await self._until("Deployment", "web", _is_complete)
        await self._change("Deployment", "web", {"spec": {"template": _template("app:2", app="web")}})
        await self._until("Deployment", "web", _is_complete)
        await self._change("Deployment", "web", {"spec": {"paused": True}})
        await self._until("Deployment", "web", partial(_says, "Progressing", "DeploymentPaused"))
        await self._change("Deployment", "web", {"spec": {"paused": False}})
        await self._until("Deployment", "web", partial(_says, "Progressing", "NewReplicaSetAvailable"))
        await self._create(
            "Deployment", "stuck", replicas=1, progressDeadlineSeconds=2,
            template=_template("missing", app="stuck"),
        )  # fmt: skip
        await self._until("Deployment", "stuck", partial(_says, "Progressing", "ProgressDeadlineExceeded"))
        await self._delete("Deployment", "stuck")

    async def _sets(self) -> None:
        await self._create("StatefulSet", "db", replicas=2, serviceName="db")
        await self._create("DaemonSet", "agent")
        await self._until("StatefulSet", "db", lambda it: it["status"].get("availableReplicas") == 2)
        await self._until("DaemonSet", "agent", lambda it: it["status"].get("numberAvailable") == 1)
        await self._delete("StatefulSet", "db")
        await self._delete("DaemonSet", "agent")

    async def _jobs(self) -> None:
        for name, image in (("good", "app:1"), ("poor", "bad")):
            spec = {"backoffLimit": 0, "template": _template(image, "Never", app=name)}
            await self._client.create(self._named("Job", name) | {"spec": spec})
        await self._until("Job", "good", partial(_says, "Complete", None))
        await self._until("Job", "poor", partial(_says, "Failed", "BackoffLimitExceeded"))

    async def _claims_and_budgets(self) -> None:
        budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        await self._client.create(self._named("PodDisruptionBudget", "web") | {"spec": budget})
        await self._until("PodDisruptionBudget", "web", partial(_says, "DisruptionAllowed", "SufficientPods"))
        await self._change("Deployment", "web", {"spec": {"replicas": 2}})
        await self._until(
            "PodDisruptionBudget", "web", partial(_says, "DisruptionAllowed", "InsufficientPods")
        )

    async def _end(self) -> None:
        self._is_ending = True
        form = untyped("v1", "Namespace")
        await self._client.delete(form, self._namespace)

        async def is_gone() -> bool:
            return await ignore_not_found(self._client.get(form, self._namespace)) is None

        await eventually(is_gone, what=f"{self._namespace} is gone")

    # What is done.

    def _named(self, kind: str, name: str) -> Wire:
        metadata = {"name": name, "namespace": self._namespace}
        return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata}

    async def _create(self, kind: str, name: str, **spec: Any) -> None:
        selected = {"selector": {"matchLabels": {"app": name}}, "template": _template(app=name)}
        await self._client.create(self._named(kind, name) | {"spec": selected | spec})

    async def _change(self, kind: str, name: str, patch: Wire) -> None:
        form = untyped(KINDS[kind], kind)
        await self._client.patch(form, name, MergePatch(patch), namespace=self._namespace)

    async def _delete(self, kind: str, name: str) -> None:
        form = untyped(KINDS[kind], kind)
        await self._client.delete(form, name, namespace=self._namespace, propagation="Background")

        async def is_gone() -> bool:
            pods = await self._client.list(untyped("v1", "Pod"), namespace=self._namespace)
            return not [pod for pod in pods if pod["metadata"]["labels"].get("app") == name]

        await eventually(is_gone, what=f"the pods of {kind} {name} are gone")

    async def _until(self, kind: str, name: str, is_so: Callable[[Wire], bool]) -> None:
        async def look() -> bool:
            found = await self._client.get(untyped(KINDS[kind], kind), name, namespace=self._namespace)
            seen = found.get("status", {}).get("observedGeneration", found["metadata"].get("generation"))
            assert seen == found["metadata"].get("generation"), found.get("status")
            assert is_so(found), found.get("status")
            return True

        await eventually(look, what=f"{kind} {name} is so")

    # What is said.

    async def _listen(self, kind: str) -> None:
        async with self._client.watch(untyped(KINDS[kind], kind), namespace=self._namespace) as changes:
            async for change in changes:
                self._hear(change.object)

    async def _listen_to_namespace(self) -> None:
        async with self._client.watch(untyped("v1", "Namespace")) as changes:
            async for change in changes:
                if change.object["metadata"]["name"] == self._namespace:
                    self._hear(change.object | {"metadata": {"name": "itself"}})

    def _hear(self, obj: Wire) -> None:
        if self._is_ending and obj["kind"] != "Namespace":
            return
        status = obj.get("status") or {}
        name = f"{obj['kind']} {obj['metadata']['name']}"
        if "phase" in status:
            self.said[f"{name} phase"].append(status["phase"])
        for each in status.get("conditions") or ():
            self.said[f"{name} {each['type']}"].append(f"{each['status']} {each.get('reason', '')}".strip())


def _template(image: str = "app:1", restart: str = "Always", **labels: str) -> Wire:
    containers = [{"name": "app", "image": image}]
    return {"metadata": {"labels": labels}, "spec": {"restartPolicy": restart, "containers": containers}}


def _says(kind: str, reason: str | None, it: Wire) -> bool:
    return any(
        each["type"] == kind and reason in {None, each.get("reason")}
        for each in (it.get("status") or {}).get("conditions") or ()
    )


def _is_complete(it: Wire) -> bool:
    status, wanted = it["status"], it["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and _says("Progressing", "NewReplicaSetAvailable", it)


# ---- what is compared ------------------------------------------------------------------------------

_MADE_UP = re.compile(r"(Pod|ReplicaSet) (web|stuck|agent|good|poor)-\S+")


def lives_of(lives: Sequence[Life]) -> dict[str, set[Said]]:
    """All that each condition was heard to say; pods and ReplicaSets by whose they are."""
    heard: dict[str, set[Said]] = defaultdict(set)
    for life in lives:
        for name, said in life.said.items():
            heard[_MADE_UP.sub(r"\1 of \2", name)].add(tuple(one for one, _ in groupby(said)))
    return heard


def is_part_of(some: Said, whole: Said) -> bool:
    """Whether one said what the other did, but for what was over before anybody heard it."""
    rest = iter(whole)
    return some[-1] == whole[-1] and all(each in rest for each in some)


def differences(real: dict[str, set[Said]], own: dict[str, set[Said]]) -> list[str]:
    found = [
        f"{name}: {'nobody says it here' if name in real else 'new'}" for name in real.keys() ^ own.keys()
    ]
    for name in real.keys() & own.keys():
        for said in own[name]:
            if not any(is_part_of(said, other) or is_part_of(other, said) for other in real[name]):
                found += [f"{name}: theirs {sorted(real[name])}, ours {said}"]
    return sorted(found)


async def lived_on(cluster: Callable[[], AbstractAsyncContextManager[Client]]) -> dict[str, set[Said]]:
    async with cluster() as client:
        lives = [Life(client, f"life-{number}") for number in range(LIVES)]
        await asyncio.gather(*(life.live() for life in lives))
        return lives_of(lives)


@pytest.mark.deadline(240)
async def test_conditions_say_what_they_say_with_kube_controller_manager_in_that_order() -> None:
    real, own = await lived_on(theirs), await lived_on(ours)
    assert not differences(real, own), "\n".join(differences(real, own))
