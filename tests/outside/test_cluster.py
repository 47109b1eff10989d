"""kubectl cannot tell ``setpoint up`` from a cluster: workloads roll out, scale, go and are moved alike.

The other cluster is kube-apiserver and kube-controller-manager, with our node stand-in in place of kubelets.
It has no logs, so that what is said of those is what a kubelet says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from setpoint.testing.kube import StartFailed
from tests.outside.conftest import Both, NewBoth
from tests.outside.kubectl import Kubectl, canonical
from tests.outside.servers import NAMES, Server, running

IN_TIME = "--timeout=50s"
IMAGE = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}"
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
}


@pytest.fixture(scope="module")
def setpoint_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running("setpoint", tmp_path_factory.mktemp("setpoint"), whole=True) as server:
        yield server


@pytest.fixture(scope="module")
def kube_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        with running("kube", tmp_path_factory.mktemp("kube"), whole=True) as server:
            yield server
    except StartFailed as failure:
        pytest.fail(str(failure), pytrace=False)


@pytest.fixture
def clusters(setpoint_cluster: Server, kube_cluster: Server, homes: Path) -> NewBoth:
    """Makes a namespace, with the account that pods need, on both clusters."""
    assert (setpoint_cluster.name, kube_cluster.name) == NAMES

    def make(namespace: str) -> Both:
        both = Both(*(Kubectl(each, homes, namespace) for each in (setpoint_cluster, kube_cluster)))
        for kubectl in (both.ours, both.theirs):
            kubectl.ok(f"create namespace {namespace}")
            kubectl.ok(f"wait --for=create serviceaccount/default {IN_TIME}")
        return both

    return make


def agree_on(both: Both, story: Callable[[Kubectl], list[str]]) -> None:
    with ThreadPoolExecutor() as pool:
        both.same(*pool.map(story, (both.ours, both.theirs)))


def rolled_out(kubectl: Kubectl, what: str = "deployment/web") -> str:
    """The last that is said; which states are seen before it is a matter of time."""
    return kubectl.ok(f"rollout status {what} {IN_TIME}").splitlines()[-1]


def shown(kubectl: Kubectl, *lines: str) -> list[str]:
    return [each for line in lines for each in kubectl.shown(line, kubectl(line))]


def test_a_deployment_rolls_out_is_rolled_back_and_scaled(clusters: NewBoth) -> None:
    def told(kubectl: Kubectl) -> list[str]:
        kubectl.ok("apply -f app.yaml")
        said = [rolled_out(kubectl)]
        said += shown(kubectl, f"wait --for=condition=Available deployment/web {IN_TIME}")
        kubectl.ok("set image deployment/web web=web:2")
        said += [rolled_out(kubectl)]
        said += shown(kubectl, "rollout history deployment/web", IMAGE, "rollout undo deployment/web")
        said += [rolled_out(kubectl)]
        said += shown(kubectl, "rollout history deployment/web", IMAGE)
        said += shown(kubectl, "rollout undo deployment/web --to-revision=2")
        said += [rolled_out(kubectl)]
        said += shown(kubectl, IMAGE, "rollout history deployment/web")
        said += shown(
            kubectl, "scale deployment web --replicas=5", "scale deploy web --current-replicas=1 --replicas=2"
        )
        kubectl.ok(f"wait --for=jsonpath={{.status.readyReplicas}}=5 deployment/web {IN_TIME}")
        kubectl.ok("rollout restart deployment/web")
        said += [rolled_out(kubectl)]
        kubectl.ok("scale deployment web --replicas=0")
        kubectl.ok(f"wait --for=delete pod -l app=web {IN_TIME}")
        return said + shown(kubectl, "get pod", "get deployment web -o jsonpath={.spec.replicas}")

    agree_on(clusters("rolls"), told)


def test_a_paused_deployment_waits(clusters: NewBoth) -> None:
    def told(kubectl: Kubectl) -> list[str]:
        kubectl.ok("apply -f app.yaml")
        said = [rolled_out(kubectl)]
        said += shown(kubectl, "rollout pause deployment/web", "rollout undo deployment/web")
        kubectl.ok("set image deployment/web web=web:2")
        said += shown(kubectl, "rollout history deployment/web", "rollout resume deployment/web")
        return [*said, rolled_out(kubectl), *shown(kubectl, "rollout history deployment/web")]

    agree_on(clusters("pauses"), told)


def test_what_is_deleted_takes_its_dependents_with_it_or_leaves_them(clusters: NewBoth) -> None:
    owners = "-o jsonpath={.items[*].metadata.ownerReferences[*].kind}"

    def told(kubectl: Kubectl) -> list[str]:
        said = []
        kubectl.ok("apply -f app.yaml")
        rolled_out(kubectl)
        said += shown(
            kubectl,
            f"delete deployment web --cascade=orphan {IN_TIME}",
            f"get rs {owners}",
            f"get pod {owners}",
        )
        kubectl.ok("apply -f app.yaml")
        rolled_out(kubectl)
        said += shown(kubectl, f"get rs {owners}", "rollout history deployment/web")
        said += shown(
            kubectl, f"delete deployment web --cascade=foreground {IN_TIME}", "get deployment,rs,pod"
        )
        kubectl.ok("apply -f app.yaml")
        rolled_out(kubectl)
        said += shown(kubectl, f"delete deployment web --cascade=background {IN_TIME}")
        kubectl.ok(f"wait --for=delete rs,pod -l app=web {IN_TIME}")
        return said + shown(kubectl, "get deployment,rs,pod")

    agree_on(clusters("cascades"), told)


def test_a_node_is_drained_as_far_as_budgets_let_it(clusters: NewBoth) -> None:
    drain = "drain node-1 --pod-selector=app=web"

    def evicted(kubectl: Kubectl, line: str) -> list[str]:
        """What a drain says, each once; pods are evicted side by side, and tried again and again."""
        ran = kubectl(line)
        said = canonical(ran.out + ran.err, kubectl.server.url).splitlines()
        lines = {re.sub(r"web-[0-9a-z]+-<drawn>", "<pod>", each) for each in said}
        return [*sorted(lines), f"exit {ran.code}"]

    def told(kubectl: Kubectl) -> list[str]:
        kubectl.ok("apply -f app.yaml")
        kubectl.ok("create -f -", stdin=json.dumps(BUDGET))
        rolled_out(kubectl)
        kubectl.ok(f"wait --for=jsonpath={{.status.disruptionsAllowed}}=1 pdb/web {IN_TIME}")
        said = evicted(kubectl, f"{drain} --timeout=3s")
        said += shown(kubectl, "get pdb web", "get node node-1 -o jsonpath={.spec.unschedulable}")
        said += shown(kubectl, "uncordon node-1")
        said += [rolled_out(kubectl)]
        kubectl.ok("delete pdb web")
        said += evicted(kubectl, f"{drain} {IN_TIME}")
        said += shown(kubectl, "uncordon node-1")
        return [*said, rolled_out(kubectl)]

    agree_on(clusters("drains"), told)


def test_other_workloads_roll_out_and_jobs_complete(clusters: NewBoth) -> None:
    def told(kubectl: Kubectl) -> list[str]:
        said = shown(
            kubectl, "create job once --image=tool", f"wait --for=condition=Complete job/once {IN_TIME}"
        )
        said += shown(kubectl, "get job once -o jsonpath={.status.succeeded}", f"delete job once {IN_TIME}")
        kubectl.ok(f"wait --for=delete pod -l job-name=once {IN_TIME}")
        kubectl.ok("apply -f set.yaml")
        said += [rolled_out(kubectl, "statefulset/db")]
        said += shown(kubectl, "get pod -o name", "scale statefulset db --replicas=1")
        kubectl.ok(f"wait --for=delete pod/db-1 {IN_TIME}")
        kubectl.ok("set image statefulset/db db=db:2")
        return [
            *said,
            rolled_out(kubectl, "statefulset/db"),
            *shown(kubectl, "rollout history statefulset/db"),
        ]

    agree_on(clusters("others"), told)


def test_logs_are_read(setpoint_cluster: Server, homes: Path) -> None:
    kubectl = Kubectl(setpoint_cluster, homes, "logs")
    kubectl.ok("create namespace logs")
    kubectl.ok("apply -f app.yaml")
    rolled_out(kubectl)
    started, ready = "web: started (web:1; nothing really runs here)", "web: ready"
    assert kubectl.ok("logs deployment/web").splitlines() == [started, ready]
    assert kubectl.ok("logs -l app=web --tail=1").splitlines() == [ready] * 3
    assert kubectl.ok("logs deployment/web --tail=1 --since=1h -c web").splitlines() == [ready]
    assert re.fullmatch(r"\S+\.0{9}Z web: ready\n", kubectl.ok("logs deployment/web --tail=1 --timestamps"))
    pod = kubectl.ok("get pod -l app=web -o jsonpath={.items[0].metadata.name}")
    assert kubectl(f"logs {pod} -c other").err == (
        f"error: container other is not valid for pod {pod} out of: web\n"
    )
    assert kubectl(f"logs {pod} --previous").err == (
        f'Error from server (BadRequest): previous terminated container "web" in pod "{pod}" not found\n'
    )
    with kubectl.follow(f"logs -f {pod}") as following:
        following.lines(2)
        kubectl.ok(f"delete pod {pod} --wait=false")
        assert following.end() == 0
        assert following.said == [started, ready, "web: exited with code 0"]


def test_a_pod_that_cannot_start_has_no_log(setpoint_cluster: Server, homes: Path) -> None:
    kubectl = Kubectl(setpoint_cluster, homes, "waiting")
    kubectl.ok("create namespace waiting")
    kubectl.ok(f"wait --for=create serviceaccount/default {IN_TIME}")
    kubectl.ok("run slow --image=web:1 --annotations=node.setpoint.dev/outcome=waits:ImagePullBackOff")
    kubectl.until(
        "wait --for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff pod/slow"
    )
    assert kubectl("logs slow").err == (
        'Error from server (BadRequest): container "slow" in pod "slow" is waiting to start: '
        "trying and failing to pull image\n"
    )
