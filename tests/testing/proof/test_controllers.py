"""The built-in controllers in the cluster of a proof."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import LabelSelector, ObjectMeta
from setpoint.controller.context import Context
from setpoint.kube.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from setpoint.kube.batch.v1 import Job
from setpoint.kube.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from setpoint.operator import Operator
from setpoint.testing.proof.controllers import chosen
from setpoint.testing.proof.lab import Lab
from setpoint.testing.proof.prove import prove
from tests.mutants.widgets import Widget, change, create, delete

RUN = ["deployment-controller", "replicaset-controller", "node-stand-in"]


def deployment(name: str) -> Deployment:
    labels = {"app": name}
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image="web")])
    )
    return Deployment(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=DeploymentSpec(selector=LabelSelector(match_labels=labels), template=pod),
    )


@pytest.mark.slow
@pytest.mark.cluster(controllers=True)
def test_deployments_make_pods_and_jobs_complete(cluster: Lab) -> None:
    cluster.create(deployment("web"))
    found = cluster.get(Deployment, "web")
    assert found.status is not None
    assert found.status.available_replicas == 1
    assert len(cluster.list(Pod)) == 1
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": "default"},
        "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}
        },
    }
    cluster.create(job)
    done = cluster.get(Job, "once").status
    assert done is not None
    assert done.succeeded == 1
    cluster.delete(Deployment, "web")
    assert cluster.list(ReplicaSet) == []
    cluster.assert_quiescent()


def test_without_them_nothing_comes_of_a_deployment(cluster: Lab) -> None:
    cluster.create(deployment("web"))
    assert cluster.list(Pod) == []


async def web(widget: Widget, ctx: Context) -> None:
    wanted = deployment(widget.metadata.name or "")
    wanted.metadata.namespace = widget.metadata.namespace
    wanted.spec.replicas = widget.spec.replicas
    found = await ctx.apply(wanted)
    widget.status.count = (found.status and found.status.available_replicas) or 0


@pytest.mark.slow
def test_an_operator_is_proven_with_them() -> None:
    def make() -> Operator:
        operator = Operator("widgets")
        operator.controller(Widget, owns=[Deployment])(web)
        return operator

    steps = [create(replicas=1), change(replicas=2), delete()]
    report = prove(make, steps=steps, controllers=RUN, only=["none", "E2", "V1"], most_of_class=2)
    assert report.is_good, str(report)
    assert report.reference is not None
    assert {write.resource for write in report.reference.writes} >= {"pods", "replicasets.apps"}
    states = [point.state for point in report.reference.checkpoints]
    assert {called.split()[0] for state in states for called in state} == {
        "deployments.apps",
        "widgets.test.setpoint.dev",
    }, "what the built-in controllers make is theirs"
    assert states[2]["widgets.test.setpoint.dev default/w"]["status"]["count"] == 2


def test_garbage_is_the_worlds_own_to_collect() -> None:
    assert "garbage-collector-controller" not in chosen(True)
    assert chosen(False) == ()
    assert chosen(["job-controller"]) == ("job-controller",)
