"""The built-in controllers of a cluster's own kinds, held against kube-controller-manager.

One story is told on three clusters: kube-apiserver with kube-controller-manager, kube-apiserver with our
controllers, and our server with our controllers.  Of every object that is in it, the states that were seen,
one after the other, are the same, but for those in between that one was too fast to show.  Names that a
server made up, uids and times are not compared.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from setpoint.api.forms import untyped
from setpoint.api.patches import MergePatch
from setpoint.builtin.controllers import add_controllers
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.manager.manager import Manager
from setpoint.testing.embedded import EmbeddedControlPlane
from setpoint.testing.kube import ControlPlane
from setpoint.testing.waiting import eventually

Wire = dict[str, Any]
States = dict[str, list[str]]

KINDS = {
    "Namespace": "v1",
    "ConfigMap": "v1",
    "ServiceAccount": "v1",
    "Secret": "v1",
    "Event": "v1",
    "Endpoints": "v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "PodDisruptionBudget": "policy/v1",
}
CONTROLLERS = [
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
]


# ---- the clusters ----------------------------------------------------------------------------------


@asynccontextmanager
async def theirs() -> AsyncIterator[Client]:
    async with (
        ControlPlane(controller_manager=True) as plane,
        Client(Config.load(plane.kubeconfig)) as client,
    ):
        yield client


@asynccontextmanager
async def ours(plane: ControlPlane | EmbeddedControlPlane) -> AsyncIterator[Client]:
    async with plane, Client(Config.load(plane.kubeconfig)) as client:
        manager = Manager(client=client, name="builtin", graceful_shutdown=5.0)
        add_controllers(manager, CONTROLLERS)
        async with manager:
            yield client


# ---- what is seen ----------------------------------------------------------------------------------


def state_of(obj: Wire) -> object:
    """What of an object is compared."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    deleted = "deletionTimestamp" in metadata
    match obj["kind"]:
        case "Namespace":
            keys = ("type", "status", "reason", "message")
            told = [[each[key] for key in keys] for each in status.get("conditions", ())]
            return status.get("phase"), told, deleted
        case "Secret":
            return obj["type"], sorted(obj.get("data") or ()), sorted(metadata["annotations"]), deleted
        case "Event":
            return obj.get("type"), obj.get("reason"), obj.get("message")
        case "Endpoints":
            return metadata.get("labels"), obj.get("subsets")
        case "EndpointSlice":
            return metadata.get("labels"), obj["addressType"], obj.get("endpoints"), obj.get("ports")
        case "PersistentVolume":
            claim = obj["spec"].get("claimRef") or {}
            return status.get("phase"), claim.get("name"), sorted(metadata.get("annotations") or ()), deleted
        case "PersistentVolumeClaim":
            bound = obj["spec"].get("volumeName"), status.get("accessModes"), status.get("capacity")
            told = [[each["type"], each["reason"]] for each in status.get("conditions", ())]
            return status.get("phase"), bound, told, sorted(metadata.get("annotations") or ()), deleted
        case "PodDisruptionBudget":
            said = [[each["status"], each["reason"]] for each in status.get("conditions", ())]
            numbers = {name: value for name, value in status.items() if isinstance(value, int)}
            return numbers, sorted(status.get("disruptedPods") or ()), said
        case _:
            owners = [each["name"] for each in metadata.get("ownerReferences", ())]
            return metadata.get("finalizers"), owners, deleted, sorted(obj.get("data") or ())


_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def name_of(obj: Wire) -> str:
    metadata = obj["metadata"]
    name = metadata.get("generateName") or metadata["name"]
    if obj["kind"] == "Event":
        about = obj["involvedObject"]
        name = f"{about['kind']} {about['name']} {obj['reason']}"
    return f"{obj['kind']} {metadata.get('namespace', '')}/{name}"


class Log:
    """The states of every object, as watches saw them."""

    def __init__(self) -> None:
        self.states: States = {}

    async def watch(self, client: Client, kind: str, ready: asyncio.Event) -> None:
        async with client.watch(untyped(KINDS[kind], kind)) as changes:
            ready.set()
            async for change in changes:
                self.add(change.type, change.object)

    def add(self, sort: str, obj: Wire) -> None:
        if obj["metadata"].get("namespace", obj["metadata"]["name"]) in SYSTEM:
            return
        if obj.get("reportingComponent") in OF_THE_SERVER:
            return
        said = _UID.sub("UID", json.dumps(state_of(obj), sort_keys=True))
        states = self.states.setdefault(name_of(obj), [])
        seen = "gone" if sort == "DELETED" else said
        if not states or states[-1] != seen:
            states.append(seen)


SYSTEM = {"default", "kube-system", "kube-public", "kube-node-lease"}
# Parts of kube-apiserver itself, which speak when they happen to look between two writes of its own.
OF_THE_SERVER = {"ipallocator-repair-controller", "portallocator-repair-controller"}


# ---- the story -------------------------------------------------------------------------------------


def pod(name: str) -> Wire:
    container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}
    resources = {"requests": {"cpu": "100m"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "box", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{**container, "resources": resources}]},
    }


def config_map(name: str, owner: Wire | None = None, namespace: str = "box", **metadata: Any) -> Wire:
    if owner is not None:
        known = owner["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": known["name"], "uid": known["uid"]}
        metadata["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
    }


class Story:
    """What happens, each step when the one before has had its consequences."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tell(self) -> None:
        await self._client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        await self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "box"}})
        await self._until("ServiceAccount", "default")
        await self._until("ConfigMap", "kube-root-ca.crt")
        parts = self._tokens, self._services, self._budgets, self._quota, self._volumes, self._garbage
        for part in parts:
            await part()
        await self._end()

    async def _tokens(self) -> None:
        metadata: Wire = {"name": "robot", "namespace": "box"}
        await self._client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        for name in ("robot", "nobody"):
            annotations = {"kubernetes.io/service-account.name": name}
            metadata = {"name": name, "namespace": "box", "annotations": annotations}
            kind = "kubernetes.io/service-account-token"
            await self._client.create(
                {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind}
            )
        await self._until("Secret", "robot", lambda it: "token" in (it.get("data") or {}))
        await self._until_gone("Secret", "nobody", namespace="box")
        await self._delete("ServiceAccount", "robot")
        await self._until_gone("Secret", "robot", namespace="box")

    async def _services(self) -> None:
        ports = [{"name": "http", "port": 80, "targetPort": "http"}]
        metadata = {"name": "web", "namespace": "box", "labels": {"l": "m"}}
        spec = {"selector": {"app": "web"}, "ports": ports}
        await self._client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        await self._until("Endpoints", "web")
        await self._until_addresses({})
        for number, name in enumerate(("a", "b"), start=1):
            await self._client.create(pod(name))
            await self._ready(name, f"10.1.0.{number}", is_ready=name == "a")
            await self._until_addresses({f"10.1.0.{each}": each == 1 for each in range(1, number + 1)})
        await self._ready("b", "10.1.0.2")
        await self._until_addresses({"10.1.0.1": True, "10.1.0.2": True})

    async def _ready(self, name: str, ip: str, *, is_ready: bool = True) -> None:
        condition = {"type": "Ready", "status": "True" if is_ready else "False"}
        status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]}
        form, patch = untyped("v1", "Pod"), MergePatch({"status": status})
        await self._client.patch(form, name, patch, namespace="box", subresource="status")

    async def _until_addresses(self, wanted: dict[str, bool]) -> None:
        async def are_there() -> bool:
            slices = await self._client.list(untyped("discovery.k8s.io/v1", "EndpointSlice"), namespace="box")
            found = [each for one in slices for each in one.get("endpoints") or ()]
            seen = {each["addresses"][0]: each["conditions"]["ready"] for each in found}
            endpoints = await self._client.get(untyped("v1", "Endpoints"), "web", namespace="box")
            subsets = endpoints.get("subsets") or ()
            ready = {each["ip"] for one in subsets for each in one.get("addresses") or ()}
            late = {each["ip"] for one in subsets for each in one.get("notReadyAddresses") or ()}
            return (
                bool(slices)
                and seen == wanted
                and dict.fromkeys(ready, True) | dict.fromkeys(late, False) == wanted
            )

        await eventually(are_there, what=f"the addresses are {wanted}")

    async def _budgets(self) -> None:
        selector = {"matchLabels": {"app": "web"}}
        for name, spec in {
            "one": {"minAvailable": 1, "selector": selector},
            "none": {"minAvailable": 1, "selector": {"matchLabels": {"app": "nobody"}}},
            "share": {"maxUnavailable": "50%", "selector": selector},
        }.items():
            metadata = {"name": name, "namespace": "box"}
            await self._client.create(
                {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
            )
            await self._until(
                "PodDisruptionBudget", name, lambda it: it["status"].get("observedGeneration") == 1
            )
        await self._until_told("NoPods", "UnmanagedPods")
        await self._delete("PodDisruptionBudget", "share")
        await self._client.evict("a", namespace="box")
        await self._until(
            "PodDisruptionBudget",
            "one",
            lambda it: it["status"]["disruptionsAllowed"] == 0 and it["status"]["currentHealthy"] == 1,
        )
        await self._until_gone_addresses("10.1.0.1")
        await self._delete("Pod", "a", grace_period=0)
        await self._until_addresses({"10.1.0.2": True})
        await self._until("PodDisruptionBudget", "one", lambda it: it["status"]["expectedPods"] == 1)

    async def _until_gone_addresses(self, ip: str) -> None:
        async def is_gone() -> bool:
            endpoints = await self._client.get(untyped("v1", "Endpoints"), "web", namespace="box")
            slices = await self._client.list(untyped("discovery.k8s.io/v1", "EndpointSlice"), namespace="box")
            leaving = [
                each["conditions"]["terminating"]
                for one in slices
                for each in one.get("endpoints") or ()
                if each["addresses"] == [ip]
            ]
            return ip not in json.dumps(endpoints.get("subsets")) and leaving == [True]

        await eventually(is_gone, what=f"{ip} is leaving")

    async def _quota(self) -> None:
        hard = {"pods": "9", "requests.cpu": "9", "services": "9", "count/configmaps": "99", "secrets": "9"}
        metadata = {"name": "q", "namespace": "box"}
        await self._client.create(
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
        )
        used = {
            "pods": "1",
            "requests.cpu": "100m",
            "services": "1",
            "count/configmaps": "1",
            "secrets": "0",
        }
        await self._until("ResourceQuota", "q", lambda it: it["status"].get("used") == used)
        await self._delete("ResourceQuota", "q")

    async def _volumes(self) -> None:
        claim: Wire = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "claim", "namespace": "box"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "m",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        spec = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "m",
        }
        await self._client.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "volume"},
                "spec": {**spec, "hostPath": {"path": "/x"}},
            }
        )
        await self._until("PersistentVolume", "volume", lambda it: it["status"]["phase"] == "Available")
        await self._client.create(claim)
        await self._until("PersistentVolumeClaim", "claim", lambda it: "conditions" in it["status"])
        await self._delete("PersistentVolumeClaim", "claim")
        await self._until("PersistentVolume", "volume", lambda it: it["status"]["phase"] == "Released")
        await self._delete("PersistentVolume", "volume")
        claim["metadata"]["name"] = "unmet"
        claim["spec"]["storageClassName"] = ""
        await self._client.create(claim)
        await self._until_told("FailedBinding")
        await self._delete("PersistentVolumeClaim", "unmet")

    async def _garbage(self) -> None:
        form = untyped("v1", "ConfigMap")
        top = await self._client.create(config_map("top"))
        middle = await self._client.create(config_map("middle", top))
        await self._client.create(config_map("leaf", middle))
        await self._client.delete(form, "top", namespace="box", propagation="Background")
        await self._until_gone("ConfigMap", "leaf")

        await self._client.create(config_map("absent", {"metadata": {"name": "nobody", "uid": "none"}}))
        await self._until_gone("ConfigMap", "absent")

        owner = await self._client.create(config_map("foreign", namespace="default"))
        await self._client.create(config_map("astray", owner))
        await self._until_gone("ConfigMap", "astray")
        await self._until_told("OwnerRefInvalidNamespace")

        waits = await self._client.create(config_map("waits"))
        await self._client.create(config_map("blocks", waits, finalizers=["x.y/z"]))
        await self._client.delete(form, "waits", namespace="box", propagation="Foreground")
        await self._until("ConfigMap", "blocks", lambda it: "deletionTimestamp" in it["metadata"])
        await self._release("blocks")
        await self._until_gone("ConfigMap", "waits")

        leaves = await self._client.create(config_map("leaves"))
        await self._client.create(config_map("orphan", leaves))
        await self._client.delete(form, "leaves", namespace="box", propagation="Orphan")
        await self._until_gone("ConfigMap", "leaves")
        await self._delete("ConfigMap", "orphan")

    async def _end(self) -> None:
        await self._delete("Pod", "b", grace_period=0)
        await self._until_addresses({})
        await self._until("PodDisruptionBudget", "one", lambda it: it["status"]["expectedPods"] == 0)
        await self._client.create(config_map("stuck", finalizers=["x.y/z"]))
        await self._client.delete(untyped("v1", "Namespace"), "box")

        def says_why(namespace: Wire) -> bool:
            return "SomeFinalizersRemain" in json.dumps(namespace["status"])

        await self._until("Namespace", "box", says_why, namespace=None)
        await self._release("stuck")

        async def is_gone() -> bool:
            return await ignore_not_found(self._client.get(untyped("v1", "Namespace"), "box")) is None

        await eventually(is_gone)

    # What the steps are made of.

    async def _until(
        self,
        kind: str,
        name: str,
        is_so: Callable[[Wire], bool] = lambda _: True,
        *,
        namespace: str | None = "box",
    ) -> None:
        form = untyped(KINDS.get(kind, "v1"), kind)
        place = None if kind in ("Namespace", "PersistentVolume") else namespace

        async def look() -> bool:
            return is_so(await self._client.get(form, name, namespace=place))

        await eventually(look, what=f"{kind} {name} is so")

    async def _until_gone(self, kind: str, name: str, *, namespace: str | None = "box") -> None:
        form = untyped(KINDS.get(kind, "v1"), kind)

        async def look() -> bool:
            return await ignore_not_found(self._client.get(form, name, namespace=namespace)) is None

        await eventually(look, what=f"{kind} {name} is gone")

    async def _until_told(self, *reasons: str) -> None:
        async def look() -> bool:
            events = await self._client.list(untyped("v1", "Event"), namespace="box")
            return set(reasons) <= {each["reason"] for each in events}

        await eventually(look, what=f"{reasons} are told")

    async def _delete(self, kind: str, name: str, **options: Any) -> None:
        namespace = None if kind == "PersistentVolume" else "box"
        form = untyped(KINDS.get(kind, "v1"), kind)
        await self._client.delete(form, name, namespace=namespace, **options)
        await self._until_gone(kind, name, namespace=namespace)

    async def _release(self, name: str) -> None:
        patch = MergePatch({"metadata": {"finalizers": None}})
        await self._client.patch(untyped("v1", "ConfigMap"), name, patch, namespace="box")


async def told_on(cluster: Callable[[], Any]) -> States:
    """Tell the story on a cluster; what was seen."""
    log = Log()
    async with cluster() as client:
        ready = [asyncio.Event() for _ in KINDS]
        watches = [
            asyncio.create_task(log.watch(client, kind, is_ready))
            for kind, is_ready in zip(KINDS, ready, strict=True)
        ]
        try:
            for each in ready:
                await asyncio.wait_for(each.wait(), 30)
            await Story(client).tell()
            await eventually(lambda: log.states.get("Namespace /box", [""])[-1] == "gone")
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
    return log.states


def is_as(seen: list[str], wanted: list[str]) -> bool:
    """Whether one saw what the other did; who looks less often misses some states in between."""
    ends = (seen[0], seen[-1]) == (wanted[0], wanted[-1])
    rest = iter(wanted)
    return ends and all(state in rest for state in seen)


def differences(wanted: States, seen: States) -> list[str]:
    """The objects whose states are others, each with both."""
    return [
        f"{name}:\n  theirs: {wanted.get(name)}\n  ours:   {seen.get(name)}"
        for name in sorted(wanted.keys() | seen.keys())
        if not is_as(seen.get(name, [""]), wanted.get(name, [""]))
        and not is_as(wanted.get(name, [""]), seen.get(name, [""]))
    ]


@pytest.mark.deadline(150)
async def test_every_object_has_the_states_it_has_with_kube_controller_manager() -> None:
    wanted = await told_on(theirs)
    for plane in (ControlPlane(), EmbeddedControlPlane()):
        found = differences(wanted, await told_on(partial(ours, plane)))
        assert not found, f"on {plane!r}:\n" + "\n".join(found)
