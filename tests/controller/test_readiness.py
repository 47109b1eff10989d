"""Whether an object is ready: kstatus' rules, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import Condition, CustomResource, Model, ObjectMeta
from setpoint.controller.readiness import Readiness, is_ready
from setpoint.kube.apps.v1 import DeploymentStatus
from setpoint.kube.core.v1 import Pod, PodCondition, PodSpec, PodStatus


def obj(kind: str, *, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    api_version, _, name = kind.rpartition(" ")
    made: dict[str, Any] = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x", **metadata}}
    return made | ({} if spec is None else {"spec": spec}) | ({} if status is None else {"status": status})


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


AVAILABLE = [condition("Progressing", reason="NewReplicaSetAvailable"), condition("Available")]
COUNTS = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
SETS = {"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2}
REPLICA_SET = {"replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
DAEMON_SET = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 2,
    "currentNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
    "numberReady": 2,
}
TWO = {"replicas": 2, "progressDeadlineSeconds": 600}

READY = {
    "deployment": obj("apps/v1 Deployment", spec=TWO, status={**COUNTS, "conditions": AVAILABLE}),
    "deployment of none": obj(
        "apps/v1 Deployment", spec={**TWO, "replicas": 0}, status={"conditions": AVAILABLE}
    ),
    "deployment without a deadline": obj(
        "apps/v1 Deployment", spec={"replicas": 2}, status={**COUNTS, "conditions": AVAILABLE[1:]}
    ),
    "stateful set": obj("apps/v1 StatefulSet", spec=TWO, status=SETS),
    "stateful set updated by hand": obj(
        "apps/v1 StatefulSet", spec={**TWO, "updateStrategy": {"type": "OnDelete"}}
    ),
    "stateful set updated in part": obj(
        "apps/v1 StatefulSet",
        spec={**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
        status={
            **SETS,
            "updatedReplicas": 1,
            "currentReplicas": 1,
            "updateRevision": "b",
            "currentRevision": "a",
        },
    ),
    "daemon set": obj("apps/v1 DaemonSet", status=DAEMON_SET, generation=1),
    "replica set": obj("apps/v1 ReplicaSet", spec=TWO, status=REPLICA_SET),
    "job": obj("batch/v1 Job", status={"conditions": [condition("Complete")]}),
    "cron job": obj("batch/v1 CronJob"),
    "pod": obj("v1 Pod", status={"phase": "Running", "conditions": [condition("Ready")]}),
    "completed pod": obj("v1 Pod", status={"phase": "Succeeded"}),
    "claim": obj("v1 PersistentVolumeClaim", status={"phase": "Bound"}),
    "service": obj("v1 Service", spec={"type": "ClusterIP"}),
    "load balancer": obj(
        "v1 Service", spec={"type": "LoadBalancer"}, status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    ),
    "config map": obj("v1 ConfigMap"),
    "definition": obj(
        "apiextensions.k8s.io/v1 CustomResourceDefinition", status={"conditions": [condition("Established")]}
    ),
    "anything ready": obj("x.dev/v1 Thing", status={"conditions": [condition("Ready")]}),
    "anything without conditions": obj("x.dev/v1 Thing", status={"phase": "?"}),
    "anything at all": obj("x.dev/v1 Thing"),
}


@pytest.mark.parametrize("name", READY)
def test_it_is_ready(name: str) -> None:
    assert is_ready(READY[name]), is_ready(READY[name])


def but(ready: str, **status: Any) -> dict[str, Any]:
    """A ready object, in another state."""
    return {**READY[ready], "status": {**READY[ready].get("status", {}), **status}}


NOT_YET = {
    "a new deployment": (obj("apps/v1 Deployment", spec=TWO), "replicas: 0 of 2"),
    "too few updated": (but("deployment", updatedReplicas=1), "updated: 1 of 2"),
    "too few available": (but("deployment", availableReplicas=1), "available: 1 of 2"),
    "too few ready": (but("deployment", readyReplicas=1), "ready: 1 of 2"),
    "too many": (but("deployment", replicas=3), "1 more than wanted"),
    "progressing": (but("deployment", conditions=AVAILABLE[1:]), "newest ReplicaSet"),
    "unavailable": (but("deployment", conditions=AVAILABLE[:1]), "not available"),
    "a new stateful set": (obj("apps/v1 StatefulSet", spec=TWO), "replicas: 0 of 2"),
    "between revisions": (but("stateful set", currentRevision="a", updateRevision="b"), "newest revision"),
    "not updated in part": (but("stateful set updated in part", updatedReplicas=0), "updated: 0 of 1"),
    "too few current": (but("stateful set", currentReplicas=1), "current: 1 of 2"),
    "a new daemon set": (obj("apps/v1 DaemonSet", generation=1), "not looked at it"),
    "too few scheduled": (but("daemon set", currentNumberScheduled=1), "scheduled: 1 of 2"),
    "too few of a replica set": (but("replica set", fullyLabeledReplicas=1), "labelled: 1 of 2"),
    "failing replicas": (
        but("replica set", conditions=[condition("ReplicaFailure", reason="FailedCreate")]),
        "FailedCreate",
    ),
    "a new job": (obj("batch/v1 Job"), "has not started"),
    "a running job": (obj("batch/v1 Job", status={"startTime": "x", "active": 2}), "2 active"),
    "a pending pod": (obj("v1 Pod", status={"phase": "Pending"}), "Pending"),
    "an unschedulable pod": (
        obj(
            "v1 Pod",
            status={"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]},
        ),
        "Unschedulable",
    ),
    "a pod not ready": (obj("v1 Pod", status={"phase": "Running"}), "runs and is not ready"),
    "an unbound claim": (obj("v1 PersistentVolumeClaim", status={"phase": "Pending"}), "not bound: Pending"),
    "no address": (obj("v1 Service", spec={"type": "LoadBalancer"}), "no address"),
    "a new definition": (
        obj(
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
            status={"conditions": [condition("Established", "False", "Installing")]},
        ),
        "not established",
    ),
    "anything not ready": (
        obj("x.dev/v1 Thing", status={"conditions": [condition("Ready", "False", "Wait", "for it")]}),
        "Wait: for it",
    ),
    "nobody knows": (
        obj("x.dev/v1 Thing", status={"conditions": [condition("Ready", "Unknown")]}),
        "Unknown",
    ),
    "an older generation": (obj("x.dev/v1 Thing", generation=3, status={"observedGeneration": 2}), "only 2"),
    "reconciling": (
        obj("x.dev/v1 Thing", status={"conditions": [condition("Reconciling", reason="Y")]}),
        "Y",
    ),
}


@pytest.mark.parametrize("name", NOT_YET)
def test_it_is_in_progress_and_says_why(name: str) -> None:
    given, why = NOT_YET[name]
    found = is_ready(given)
    assert not found
    assert found.state == "InProgress"
    assert why in found.reason


FAILED = {
    "deadline": but("deployment", conditions=[condition("Progressing", "False", "ProgressDeadlineExceeded")]),
    "failed job": obj("batch/v1 Job", status={"conditions": [condition("Failed", reason="BackoffLimit")]}),
    "failed pod": obj("v1 Pod", status={"phase": "Failed", "reason": "Evicted"}),
    "crashing pod": obj(
        "v1 Pod",
        status={
            "phase": "Running",
            "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        },
    ),
    "names taken": obj(
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        status={"conditions": [condition("NamesAccepted", "False", "Taken")]},
    ),
    "stalled": obj("x.dev/v1 Thing", status={"conditions": [condition("Stalled", reason="Broken")]}),
}


@pytest.mark.parametrize("name", FAILED)
def test_it_has_failed(name: str) -> None:
    found = is_ready(FAILED[name])
    assert found.state == "Failed"
    assert found.reason


@pytest.mark.parametrize("name", READY)
def test_what_is_being_deleted_is_not_ready(name: str) -> None:
    metadata = {**READY[name]["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}
    assert is_ready({**READY[name], "metadata": metadata}) == Readiness("Terminating", "it is being deleted")


def test_typed_objects_are_judged_like_plain_ones() -> None:
    pod = Pod(spec=PodSpec(containers=[]), status=PodStatus(phase="Running"))
    assert not is_ready(pod)
    pod.status.conditions = [PodCondition(type="Ready", status="True")]
    assert is_ready(pod)


class LampStatus(Model):
    conditions: list[Condition] = []


class Lamp(CustomResource, group="demo.setpoint.dev", version="v1"):
    status: LampStatus = LampStatus()


def test_a_kind_that_has_conditions_is_not_ready_before_it_has_one() -> None:
    assert not is_ready(Lamp(metadata=ObjectMeta(name="x")))


class Bare(CustomResource, group="demo.setpoint.dev", version="v1"):
    """Knows nothing of a status."""


def test_what_a_class_does_not_know_counts_too() -> None:
    start = b'{"apiVersion": "demo.setpoint.dev/v1", "kind": "Bare", '
    waiting = Bare.decode(start + b'"status": {"conditions": [{"type": "Ready", "status": "False"}]}}')
    assert not is_ready(waiting)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError):
        is_ready(DeploymentStatus())
    with pytest.raises(TypeError):
        is_ready("deployment")


def test_a_readiness_reads_as_a_sentence() -> None:
    assert str(Readiness("InProgress", "ready: 0 of 1")) == "InProgress: ready: 0 of 1"
    assert str(Readiness("Current")) == "Current"
