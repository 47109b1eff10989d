"""The controllers of workloads, held against kube-controller-manager, and used by kubectl.

One story is told on three clusters, each with a node on which nothing really runs: kube-apiserver with
kube-controller-manager, kube-apiserver with our controllers, our server with our controllers.  Compared are
what is left of every object at the end of each chapter, which Events were told, and what conditions said.
Names that are made up, uids and times are not compared.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from setpoint.api.forms import untyped
from setpoint.api.patches import MergePatch
from setpoint.builtin.controllers import add_controllers
from setpoint.builtin.node_events import KUBELET, SCHEDULER
from setpoint.builtin.node_pods import Exits, Outcome, Runs, usual_outcome
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import Pod
from setpoint.manager.manager import Manager
from setpoint.testing.embedded import EmbeddedControlPlane
from setpoint.testing.kube import ControlPlane, binaries
from setpoint.testing.node import Node
from setpoint.testing.waiting import eventually

_CLAIM = "PersistentVolumeClaim"  # whether it is bound is another controller's matter

Wire = dict[str, Any]
Plane = ControlPlane | EmbeddedControlPlane

APPS, BATCH = "apps/v1", "batch/v1"
KINDS = {
    "Deployment": APPS,
    "ReplicaSet": APPS,
    "StatefulSet": APPS,
    "DaemonSet": APPS,
    "ControllerRevision": APPS,
    "Job": BATCH,
    "CronJob": BATCH,
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "ReplicationController": "v1",
}
CONTROLLERS = [
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "node-lifecycle-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
]


# ---- the clusters ----------------------------------------------------------------------------------


def outcome(pod: Pod) -> Outcome:
    """Pods of the image ``bad`` fail, those of ``slow`` run on, whatever they are."""
    match pod.spec.containers[0].image:
        case "bad":
            return Exits(1)
        case "slow":
            return Runs()
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
async def ours(plane: Plane) -> AsyncIterator[Client]:
    async with plane, Client(Config.load(plane.kubeconfig)) as client:
        manager = Manager(client=client, name="builtin", graceful_shutdown=5.0)
        add_controllers(manager, CONTROLLERS)
        async with manager, Node(client, outcome=outcome):
            yield client


# ---- the story -------------------------------------------------------------------------------------


def template(image: str = "app:1", restart: str = "Always", **labels: str) -> Wire:
    containers = [{"name": "app", "image": image}]
    return {"metadata": {"labels": labels}, "spec": {"restartPolicy": restart, "containers": containers}}


def workload(kind: str, name: str, **spec: Any) -> Wire:
    return {
        "apiVersion": KINDS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(app=name), **spec},
    }


def job(name: str, image: str = "app:1", **spec: Any) -> Wire:
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template(image, "Never", app=name), **spec},
    }


def image_patch(image: str) -> Wire:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}


class Story:
    """What is done, chapter by chapter, and what was to be seen after each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.left: dict[str, list[str]] = {}
        self.reasons: dict[str, list[str]] = {}

    async def tell(self) -> None:
        watches = [asyncio.create_task(self._watch(kind)) for kind in KINDS]
        try:
            await self._deployment()
            await self._replica_set()
            await self._stateful_set()
            await self._daemon_set()
            await self._jobs()
            await self._cron_job()
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(self, kind: str) -> None:
        async with self._client.watch(untyped(KINDS[kind], kind), namespace="default") as changes:
            async for change in changes:
                self._note(change.object)

    def _note(self, obj: Wire) -> None:
        if obj["kind"] == "Pod":
            return
        if obj["metadata"].get("ownerReferences"):
            return  # its name is made up
        seen = self.reasons.setdefault(f"{obj['kind']} {obj['metadata']['name']}", [])
        for each in (obj.get("status") or {}).get("conditions") or ():
            said = f"{each['type']}={each['status']} {each.get('reason')}"
            if said not in seen:
                seen.append(said)

    # The chapters.

    async def _deployment(self) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        await self._create(workload("Deployment", "web", replicas=3, strategy=strategy))
        await self._until("Deployment", "web", _is_rolled_out)
        await self._change("Deployment", "web", image_patch("app:2"))
        await self._until("Deployment", "web", _is_rolled_out)
        await self._change("Deployment", "web", image_patch("app:1"))
        await self._until("Deployment", "web", _is_rolled_out)
        await self._change("Deployment", "web", {"spec": {"paused": True}})
        await self._until("Deployment", "web", lambda it: _says(it, "Progressing", "DeploymentPaused"))
        await self._change("Deployment", "web", {"spec": {"replicas": 4}})
        await self._until("Deployment", "web", lambda it: it["status"].get("availableReplicas") == 4)
        await self._change("Deployment", "web", {"spec": {"paused": False}})
        await self._until("Deployment", "web", _is_rolled_out)
        await self._create(workload("Deployment", "over", replicas=2, strategy={"type": "Recreate"}))
        await self._until("Deployment", "over", _is_rolled_out)
        await self._change("Deployment", "over", image_patch("app:2"))
        await self._until("Deployment", "over", _is_rolled_out)
        await self._close("deployments", "Deployment", "ReplicaSet")

    async def _replica_set(self) -> None:
        await self._create(workload("ReplicaSet", "rs", replicas=2))
        await self._until("ReplicaSet", "rs", lambda it: it["status"].get("readyReplicas") == 2)
        await self._change("ReplicaSet", "rs", {"spec": {"replicas": 1}})
        await self._until("ReplicaSet", "rs", _is_settled_at_one)
        await self._create(workload("ReplicationController", "rc", replicas=1, selector={"app": "rc"}))
        await self._until("ReplicationController", "rc", lambda it: it["status"].get("readyReplicas") == 1)
        await self._close("replicas", "ReplicaSet", "ReplicationController")

    async def _stateful_set(self) -> None:
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        await self._create(
            workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim])
        )
        await self._until("StatefulSet", "db", _is_updated)
        await self._change("StatefulSet", "db", image_patch("app:2"))
        await self._until("StatefulSet", "db", _is_updated)
        await self._change("StatefulSet", "db", {"spec": {"replicas": 1}})
        await self._until("StatefulSet", "db", _is_updated)
        await self._close("stateful", "StatefulSet", "ControllerRevision", "PersistentVolumeClaim")

    async def _daemon_set(self) -> None:
        await self._create(workload("DaemonSet", "log"))
        await self._until("DaemonSet", "log", _is_everywhere)
        await self._change("DaemonSet", "log", image_patch("app:2"))
        await self._until("DaemonSet", "log", _is_everywhere)
        await self._close("daemons", "DaemonSet", "ControllerRevision")

    async def _jobs(self) -> None:
        await self._create(job("well", completions=2))
        await self._create(job("badly", "bad", backoffLimit=0))
        await self._create(job("many", completions=3, parallelism=3, completionMode="Indexed"))
        await self._create(job("late", "slow", activeDeadlineSeconds=2))
        await self._create(job("rests", suspend=True))
        for name, end in {
            "well": "Complete",
            "badly": "Failed",
            "many": "Complete",
            "late": "Failed",
        }.items():
            await self._until("Job", name, partial(_says, kind=end))
        await self._until("Job", "rests", partial(_says, kind="Suspended"))
        await self._change("Job", "rests", {"spec": {"suspend": False}})
        await self._until("Job", "rests", partial(_says, kind="Complete"))
        await self._close("jobs", "Job")

    async def _cron_job(self) -> None:
        made = {
            "apiVersion": BATCH,
            "kind": "CronJob",
            "metadata": {"name": "cron", "namespace": "default"},
            "spec": {
                "schedule": "@every 3s",
                "concurrencyPolicy": "Forbid",
                "jobTemplate": {"spec": job("x", "slow")["spec"]},
            },
        }
        await self._create(made)
        await self._until("CronJob", "cron", lambda it: bool(it["status"].get("active")))
        await self._change("CronJob", "cron", {"spec": {"suspend": True}})
        await self._close("cron", "CronJob")

    # What they are made of.

    async def _create(self, obj: Wire) -> None:
        await self._client.create(obj)

    async def _change(self, kind: str, name: str, patch: Wire) -> None:
        await self._client.patch(untyped(KINDS[kind], kind), name, MergePatch(patch), namespace="default")

    async def _until(self, kind: str, name: str, is_so: Callable[[Wire], bool]) -> None:
        async def look() -> bool:
            found = await self._client.get(untyped(KINDS[kind], kind), name, namespace="default")
            seen = found.get("status", {}).get("observedGeneration", found["metadata"].get("generation"))
            assert seen == found["metadata"].get("generation"), found["status"]
            assert is_so(found), found["status"]
            return True

        await eventually(look, what=f"{kind} {name} is so")

    async def _close(self, chapter: str, *kinds: str) -> None:
        """Note what is left, and clear it all away."""

        async def is_quiet() -> bool:
            pods = await self._client.list(untyped("v1", "Pod"), namespace="default")
            assert not [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
            return True

        await eventually(is_quiet)
        await asyncio.sleep(1)  # Events follow when they can, and the last status too
        left = [
            obj for kind in (*kinds, "Pod")
            for obj in await self._client.list(untyped(KINDS[kind], kind), namespace="default")
        ]  # fmt: skip
        events = await self._client.list(untyped("v1", "Event"), namespace="default")
        told = [
            each
            for each in events
            if each["involvedObject"]["kind"] in {*KINDS} - {_CLAIM}
            and each["reportingComponent"] not in {SCHEDULER, KUBELET}  # our node, on both
        ]
        words = _Words(left)
        self.left[chapter] = sorted({*map(words.state, left), *map(words.event, told)})
        for kind in (*kinds, "Pod", "Event"):
            form = untyped(KINDS.get(kind, "v1"), kind)
            options: Wire = {"grace_period": 0} if kind == "Pod" else {"propagation": "Background"}
            await self._client.delete_collection(form, namespace="default", **options)

        async def is_empty() -> bool:
            return not await self._client.list(untyped("v1", "Pod"), namespace="default")

        await eventually(is_empty)


def _is_rolled_out(it: Wire) -> bool:
    status, wanted = it["status"], it["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    done = _says(it, "Progressing", "NewReplicaSetAvailable")
    return counts == [wanted] * 3 and done and status.get("terminatingReplicas") == 0


def _is_settled_at_one(it: Wire) -> bool:
    status = it["status"]
    return (status.get("readyReplicas"), status.get("terminatingReplicas")) == (1, 0)


def _is_updated(it: Wire) -> bool:
    status = it["status"]
    return bool(
        status.get("currentRevision") == status.get("updateRevision")
        and status.get("readyReplicas") == it["spec"]["replicas"] == status.get("updatedReplicas")
    )


def _is_everywhere(it: Wire) -> bool:
    status = it["status"]
    return bool(status.get("numberAvailable") == 1 == status.get("updatedNumberScheduled"))


def _says(it: Wire, kind: str, reason: str | None = None) -> bool:
    return any(
        each["type"] == kind and reason in {None, each.get("reason")}
        for each in it.get("status", {}).get("conditions") or ()
    )


# ---- what is compared ------------------------------------------------------------------------------

_TIMES = re.compile(r'"\d{4}-\d\d-\d\dT[^"]*"')
_UIDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Words:
    """Says what an object is, without what is made up."""

    def __init__(self, objects: list[Wire]) -> None:
        self._made_up: dict[str, str] = {}
        history = [obj for obj in objects if obj["kind"] in {"ReplicaSet", "ControllerRevision"}]
        for obj in history:
            labels = obj["metadata"].get("labels") or {}
            images = re.findall(r'"image": "([^"]*)"', json.dumps(obj))
            for key in ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash"):
                if key in labels:
                    self._made_up[labels[key]] = f"HASH<{images[0]}>"

    def state(self, obj: Wire) -> str:
        metadata = obj["metadata"]
        kept = {
            "name": metadata.get("generateName") or metadata["name"],
            "labels": metadata.get("labels"),
            "annotations": metadata.get("annotations"),
            "finalizers": metadata.get("finalizers"),
            "owners": [
                [each[key] for key in ("apiVersion", "kind", "name", "controller", "blockOwnerDeletion")]
                for each in metadata.get("ownerReferences", ())
            ],
        }
        status = dict(obj.get("status") or {})
        spec = dict(obj.get("spec") or {})
        if "observedGeneration" in status:  # by how many steps a rollout went depends on the moment
            status["observedGeneration"] = status["observedGeneration"] == metadata.get("generation")
        if obj["kind"] == "Pod":  # the node's matter, and the server's
            status = {"phase": status.get("phase")}
            volumes = [each["name"] for each in spec.get("volumes", ())]
            env = spec["containers"][0].get("env")
            kept_of_spec = ("affinity", "hostname", "subdomain", "tolerations", "restartPolicy")
            spec = {key: spec.get(key) for key in kept_of_spec}
            spec |= {"env": env, "volumes": [name for name in volumes if not name.startswith("kube-api")]}
        for each in status.get("active", ()) if isinstance(status.get("active"), list) else ():
            each.pop("resourceVersion", None)
        return self._plain(
            {"kind": obj["kind"], **kept, "spec": spec, "status": status, "data": obj.get("data")}
        )

    def event(self, event: Wire) -> str:
        about = event["involvedObject"]
        # Of many that are alike, one tells of all; and by which steps a rollout went depends on the moment.
        message = event["message"].removeprefix("(combined from similar events): ")
        return self._plain(
            {
                "event": event["reason"],
                "type": event["type"],
                "about": [about["apiVersion"], about["kind"], about["name"]],
                "message": re.sub(r"from \d+ to \d+", "", message),
            }
        )

    def _plain(self, told: Wire) -> str:
        text = _UIDS.sub("UID", _TIMES.sub('"TIME"', json.dumps(told, sort_keys=True)))
        for made_up, word in self._made_up.items():
            text = text.replace(made_up, word)
        text = re.sub(r"(Created pod: |Deleted pod: )([\w<>:.-]+)-\w{5}\b", r"\1\2-?", text)
        text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-?", text)
        return re.sub(r"cron-\d{8}", "cron-MINUTE", text)


# What may be over before anybody saw it.
_PASSING = {
    "Available=False MinimumReplicasUnavailable",
    "Available=True MinimumReplicasAvailable",
    "Progressing=True ReplicaSetUpdated",
    "Progressing=Unknown DeploymentResumed",
}


def differences(wanted: Story, seen: Story) -> list[str]:
    found = []
    for chapter in wanted.left:
        theirs_left, ours_left = set(wanted.left[chapter]), set(seen.left.get(chapter, ()))
        found += [f"{chapter}: missing {each}" for each in sorted(theirs_left - ours_left)]
        found += [f"{chapter}: strange {each}" for each in sorted(ours_left - theirs_left)]
    for name, reasons in wanted.reasons.items():
        ours_said = seen.reasons.get(name, [])
        if reasons[:1] != ours_said[:1] or set(reasons) - _PASSING != set(ours_said) - _PASSING:
            found.append(f"{name}: theirs {reasons}, ours {ours_said}")
    return found


async def told_on(cluster: Callable[[], Any]) -> Story:
    async with cluster() as client:
        story = Story(client)
        await story.tell()
        return story


@pytest.mark.deadline(240)
async def test_workloads_end_as_they_do_with_kube_controller_manager() -> None:
    wanted = await told_on(theirs)
    for plane in (ControlPlane(), EmbeddedControlPlane()):
        found = differences(wanted, await told_on(partial(ours, plane)))
        assert not found, f"on {plane!r}:\n" + "\n".join(found)


# ---- kubectl ---------------------------------------------------------------------------------------


class Kubectl:
    """Runs kubectl, and gives what it prints."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    async def __call__(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            binaries().kubectl, "--kubeconfig", self._kubeconfig, *words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, error = await process.communicate()
        assert process.returncode == 0, f"kubectl {' '.join(words)}: {error.decode()}"
        return out.decode()


@pytest.mark.deadline(120)
async def test_kubectl_rolls_out_and_back_on_our_own_cluster() -> None:
    plane = EmbeddedControlPlane()
    async with ours(plane):
        kubectl = Kubectl(plane.kubeconfig)
        await kubectl("create", "deployment", "web", "--image=app:1", "--replicas=2")
        await kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
        said = await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        assert 'deployment "web" successfully rolled out' in said

        await kubectl("set", "image", "deployment/web", "app=app:2")
        said = await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        assert 'deployment "web" successfully rolled out' in said
        history = await kubectl("rollout", "history", "deployment/web")
        assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
        assert "app:1" in await kubectl("rollout", "history", "deployment/web", "--revision=1")

        assert "rolled back" in await kubectl("rollout", "undo", "deployment/web")
        await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        images = await kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
        assert set(images.split()) == {"app:1"}
        history = await kubectl("rollout", "history", "deployment/web")
        assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]

        await kubectl("rollout", "pause", "deployment/web")
        await kubectl("scale", "deployment/web", "--replicas=3")
        await kubectl(
            "wait", "--for=jsonpath={.status.availableReplicas}=3", "deployment/web", "--timeout=30s"
        )
        await kubectl("rollout", "resume", "deployment/web")
        await kubectl("rollout", "restart", "deployment/web")
        await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        described = await kubectl("describe", "deployment/web")
        assert "MinimumReplicasAvailable" in described
        assert "ScalingReplicaSet" in described
        assert "3/3" in await kubectl("get", "deployment", "web")


@pytest.mark.deadline(120)
async def test_kubectl_waits_for_every_sort_of_workload_on_our_own_cluster() -> None:
    plane = EmbeddedControlPlane()
    async with ours(plane) as client:
        kubectl = Kubectl(plane.kubeconfig)
        await client.create(workload("StatefulSet", "db", replicas=2, serviceName="db"))
        await client.create(workload("DaemonSet", "log"))
        for target in ("statefulset/db", "daemonset/log"):
            await kubectl("rollout", "status", target, "--timeout=30s")
        for target in ("statefulset/db", "daemonset/log"):
            await kubectl("set", "image", target, "app=app:2")
            await kubectl("rollout", "status", target, "--timeout=30s")
            assert "rolled back" in await kubectl("rollout", "undo", target)
            await kubectl("rollout", "status", target, "--timeout=30s")
            assert "app:1" in await kubectl("get", target, "-o", "wide")
        await kubectl("create", "job", "once", "--image=app:1")
        await kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=30s")
        assert "Complete" in await kubectl("get", "job", "once")
        await kubectl("create", "cronjob", "often", "--image=app:1", "--schedule=@yearly")
        await kubectl("create", "job", "now", "--from=cronjob/often")
        await kubectl("wait", "--for=condition=Complete", "job/now", "--timeout=30s")
