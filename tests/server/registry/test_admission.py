"""Classes that objects name are filled in and looked for, and judge what they name them for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from setpoint.server.registry.admission import Look, admit, judge
from setpoint.server.registry.resources import Object
from setpoint.server.registry.runtimes import merged
from setpoint.server.statuses import StatusError
from tests.server.registry.test_registry import MERGE, Server, serving

PRIORITIES = "priorityclasses.scheduling.k8s.io"
STORAGE = "storageclasses.storage.k8s.io"
INGRESS = "ingressclasses.networking.k8s.io"
RUNTIMES = "runtimeclasses.node.k8s.io"
STORED = {
    PRIORITIES: "priorities",
    STORAGE: "storage",
    INGRESS: "ingress",
    RUNTIMES: "runtimes",
    "nodes": "nodes",
}
IS_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def among(**there: Sequence[Object]) -> Look:
    def look(stored: str, name: str = "") -> Sequence[Object]:
        found = there.get(STORED[stored], ())
        return [one for one in found if not name or one["metadata"]["name"] == name]

    return look


def admitted(stored: str, obj: Object, **there: Sequence[Object]) -> Object:
    """The spec, after admission among what is there, without the tolerations that every pod gets."""
    admit(stored, obj, among(**there))
    spec: Object = obj["spec"]
    return {name: value for name, value in spec.items() if name != "tolerations"}


def named(name: str, created: str = "2026-01-01T00:00:00Z", **more: Any) -> Object:
    annotations = more.pop("annotations", {})
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}, **more}


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": spec}


def refusal(obj: Object, **there: Sequence[Object]) -> str:
    return refused(lambda: admitted("pods", obj, **there))


def refused(does: Callable[[], object]) -> str:
    with pytest.raises(StatusError) as error:
        does()
    assert error.value.code == 403
    return error.value.message


def test_a_pod_has_the_priority_of_its_class() -> None:
    classes = [named("high", value=1000, preemptionPolicy="Never"), named("low", value=1)]
    assert admitted("pods", pod(priorityClassName="high"), priorities=classes) == {
        "priorityClassName": "high",
        "priority": 1000,
        "preemptionPolicy": "Never",
    }


def test_a_pod_without_a_class_has_the_lowest_default_or_none() -> None:
    classes = [named("a", value=9, globalDefault=True), named("b", value=5, globalDefault=True)]
    assert admitted("pods", pod(), priorities=classes)["priorityClassName"] == "b"
    assert admitted("pods", pod()) == {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}


def test_the_cluster_s_own_priorities_are_always_there() -> None:
    assert admitted("pods", pod(priorityClassName="system-node-critical"))["priority"] == 2_000_001_000


def test_every_pod_stays_for_a_while_on_a_node_that_is_in_trouble() -> None:
    obj = pod(tolerations=[{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}])
    admit("pods", obj, among())
    keys = [one["key"] for one in obj["spec"]["tolerations"]]
    assert keys == ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"]


def test_a_changed_pod_keeps_the_priority_and_the_tolerations_that_it_was_given() -> None:
    made, again = pod(), pod()
    admit("pods", made, among())
    admit("pods", again, among(), made)
    assert again == made
    said = pod(priority=7)
    admit("pods", said, among(), made)
    assert said["spec"]["priority"] == 7, "which is refused, as any change of it"


def test_a_claim_is_not_deleted_while_it_is_used() -> None:
    obj: Object = {"metadata": {"name": "c"}, "spec": {}}
    admit("persistentvolumeclaims", obj, among())
    assert obj["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


def test_a_pod_with_an_unknown_class_is_refused() -> None:
    told = refusal(pod(priorityClassName="none"))
    assert told == 'pods "p" is forbidden: no PriorityClass with name none was found'
    told = refusal(pod(runtimeClassName="none"))
    assert told == 'pods "p" is forbidden: pod rejected: RuntimeClass "none" not found'


def test_a_pod_that_says_another_priority_than_its_class_is_refused() -> None:
    told = refusal(pod(priorityClassName="high", priority=7), priorities=[named("high", value=1000)])
    assert "the integer value of priority (7) must not be provided in pod spec" in told
    told = refusal(pod(preemptionPolicy="Never"))
    assert "the string value of PreemptionPolicy (Never) must not be provided" in told


def test_a_claim_gets_the_newest_default_storage() -> None:
    classes = [
        named("old", "2025-01-01T00:00:00Z", annotations=IS_DEFAULT),
        named("new-b", annotations=IS_DEFAULT),
        named("new-a", annotations=IS_DEFAULT),
        named("unmarked"),
    ]
    claim: Object = {"metadata": {}, "spec": {}}
    assert admitted("persistentvolumeclaims", claim, storage=classes) == {"storageClassName": "new-a"}


@pytest.mark.parametrize("said", ["", "slow"])
def test_a_claim_that_says_its_class_keeps_it(said: str) -> None:
    claim: Object = {"metadata": {}, "spec": {"storageClassName": said}}
    classes = [named("fast", annotations=IS_DEFAULT)]
    assert admitted("persistentvolumeclaims", claim, storage=classes) == {"storageClassName": said}


def test_an_ingress_gets_the_default_class_unless_an_annotation_says_one() -> None:
    classes = [named("nginx", annotations={"ingressclass.kubernetes.io/is-default-class": "true"})]
    found = admitted("ingresses.networking.k8s.io", {"metadata": {}, "spec": {}}, ingress=classes)
    assert found == {"ingressClassName": "nginx"}
    old = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "other"}}, "spec": {}}
    assert admitted("ingresses.networking.k8s.io", old, ingress=classes) == {}


def test_what_refers_to_no_class_stays_as_it_is() -> None:
    assert admitted("configmaps", {"metadata": {}, "spec": {}}) == {}


# --- priorities


DEFAULTS = among(priorities=[named("a", value=1, globalDefault=True), named("b", value=2)])


@pytest.mark.parametrize("old", [None, named("b", value=2)], ids=["new", "changed"])
def test_a_second_default_priority_is_refused(old: Object | None) -> None:
    told = refused(lambda: judge(PRIORITIES, named("b", value=2, globalDefault=True), old, DEFAULTS))
    why = "PriorityClass a is already marked as default. Only one default can exist"
    assert told == f'priorityclasses.scheduling.k8s.io "b" is forbidden: {why}'


def test_the_default_priority_may_be_changed_and_others_made() -> None:
    default = named("a", value=1, globalDefault=True)
    judge(PRIORITIES, {**default, "description": "d"}, default, DEFAULTS)
    judge(PRIORITIES, named("c", value=3), None, DEFAULTS)
    judge(PRIORITIES, default, None, among())


# --- claims that grow


def claim(size: str, used: str | None = None, phase: str = "Bound", **metadata: Any) -> Object:
    spec: Object = {"resources": {"requests": {"storage": size}}}
    spec |= {} if used is None else {"storageClassName": used}
    return {"metadata": {"name": "c", **metadata}, "spec": spec, "status": {"phase": phase}}


CLAIMS = "persistentvolumeclaims"
CLASSES = among(
    storage=[
        named("grows", allowVolumeExpansion=True),
        named("stays"),
        named("not", allowVolumeExpansion=False),
    ]
)
MUST_SUPPORT = (
    "only dynamically provisioned pvc can be resized and "
    "the storageclass that provisions the pvc must support resize"
)


def test_a_bound_claim_grows_where_its_class_allows_it() -> None:
    judge(CLAIMS, claim("2Gi", "grows"), claim("1Gi", "grows"), CLASSES)
    old: dict[str, Any] = {"annotations": {"volume.beta.kubernetes.io/storage-class": "grows"}}
    judge(CLAIMS, claim("2Gi", "stays", **old), claim("1Gi", "stays", **old), CLASSES)


@pytest.mark.parametrize("used", ["stays", "not", "absent", "", None])
def test_a_claim_does_not_grow_where_its_class_says_nothing_of_it(used: str | None) -> None:
    told = refused(lambda: judge(CLAIMS, claim("2Gi", used), claim("1Gi", used), CLASSES))
    assert told == f'persistentvolumeclaims "c" is forbidden: {MUST_SUPPORT}'


def test_a_claim_that_is_not_bound_does_not_grow() -> None:
    old = claim("1Gi", "grows", phase="Pending")
    told = refused(lambda: judge(CLAIMS, claim("2Gi", "grows"), old, CLASSES))
    assert told.endswith("Only bound persistent volume claims can be expanded")


def test_a_claim_that_does_not_grow_is_not_judged() -> None:
    judge(CLAIMS, claim("1024Mi", "stays"), claim("1Gi", "stays"), CLASSES)
    judge(CLAIMS, claim("1Gi", "stays"), claim("2Gi", "stays"), CLASSES)
    judge(CLAIMS, claim("1Gi", "stays"), None, CLASSES)


# --- pods that grow


def sized(cpu: str, node: str = "n", generation: int = 1) -> Object:
    containers = [{"name": "a", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    spec = {"nodeName": node, "containers": containers}
    return {"metadata": {"name": "p", "generation": generation}, "spec": spec}


def resized(new: Object, old: Object, **node: Any) -> None:
    room = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}
    judge("pods", new, old, among(nodes=[{"metadata": {"name": "n", **node}, **room}]), "resize")


def test_a_pod_grows_as_far_as_its_node_has_room() -> None:
    resized(sized("4", generation=2), sized("1"))
    told = refused(lambda: resized(sized("5", generation=2), sized("1")))
    why = "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000"
    assert told == f'pods "p" is forbidden: {why}'


def test_a_pod_on_no_node_is_not_judged_and_one_on_an_unknown_node_is_refused() -> None:
    resized(sized("9", "", generation=2), sized("1", ""))
    resized(sized("9"), sized("9"))  # it does not change
    told = refused(lambda: resized(sized("2", "other", generation=2), sized("1", "other")))
    assert told == 'pods "p" is forbidden: node "other" not found'


def test_a_pod_grows_on_linux_alone() -> None:
    windows = {"kubernetes.io/os": "windows"}
    told = refused(lambda: resized(sized("2", generation=2), sized("1"), labels=windows))
    assert "pod resize is only supported on linux nodes" in told


# --- run times


HEAVY = named("heavy", overhead={"podFixed": {"cpu": "100m", "memory": "64Mi"}})


def test_a_pod_has_the_overhead_of_its_run_time() -> None:
    found = admitted("pods", pod(runtimeClassName="heavy"), runtimes=[HEAVY])
    assert found["overhead"] == {"cpu": "100m", "memory": "64Mi"}
    said = pod(runtimeClassName="heavy", overhead={"cpu": "0.1", "memory": "65536Ki"})
    judge("pods", said, None, among(runtimes=[HEAVY]))
    assert admitted("pods", said, runtimes=[HEAVY])["overhead"] == {"cpu": "100m", "memory": "64Mi"}


def test_no_pod_says_an_overhead_of_its_own() -> None:
    other = pod(runtimeClassName="heavy", overhead={"cpu": "1"})
    told = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert refusal(other, runtimes=[HEAVY]).endswith(told)
    assert refused(lambda: judge("pods", other, None, among(runtimes=[HEAVY]))).endswith(told)
    alone = pod(overhead={"cpu": "1"})
    told = refused(lambda: judge("pods", alone, None, among()))
    assert told.endswith("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    judge("pods", alone, alone, among())  # one that is there already is changed all the same


def test_a_pod_runs_where_its_run_time_does() -> None:
    toleration = {"key": "sandbox", "operator": "Exists"}
    placed = named("placed", scheduling={"nodeSelector": {"disk": "ssd"}, "tolerations": [toleration]})
    obj = pod(
        runtimeClassName="placed",
        nodeSelector={"own": "x"},
        tolerations=[{"key": "sandbox", "operator": "Equal"}],
    )
    assert admitted("pods", obj, runtimes=[placed])["nodeSelector"] == {"own": "x", "disk": "ssd"}
    assert [one["key"] for one in obj["spec"]["tolerations"]][2:] == ["sandbox"]
    assert obj["spec"]["tolerations"][-1] == toleration, "what it covers is left out"
    elsewhere = pod(runtimeClassName="placed", nodeSelector={"disk": "hdd"})
    assert refusal(elsewhere, runtimes=[placed]).endswith(
        "conflict: runtimeClass.scheduling.nodeSelector[disk] = ssd; pod.spec.nodeSelector[disk] = hdd"
    )


@pytest.mark.parametrize(
    ("tolerations", "kept"),
    [
        ([{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}], [0]),
        ([{"key": "a", "operator": "Equal", "value": "b"}, {"key": "a", "operator": "Exists"}], [1]),
        ([{"key": "a", "operator": "Equal", "value": "b"}, {"operator": "Exists"}], [1]),
        ([{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}], [0, 1]),
        ([{"key": "a", "value": "b"}, {"key": "a", "operator": "Equal", "value": "b"}], [0]),
        ([{"key": "a", "value": "b"}, {"key": "a", "value": "c"}], [0, 1]),
        (
            [
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
            ],
            [1],
        ),
        (
            [
                {"key": "a", "operator": "Exists", "effect": "NoExecute"},
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
            ],
            [0],
        ),
        (
            [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "operator": "Exists"}],
            [1],
        ),
    ],
)
def test_a_toleration_that_another_covers_is_left_out(tolerations: list[Object], kept: list[int]) -> None:
    assert merged(tolerations) == [tolerations[place] for place in kept]


# --- where they are


def test_a_pod_on_a_node_has_the_labels_of_its_place() -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    node = {"metadata": {"name": "n", "labels": {zone: "z", region: "r", "other": "x"}}}
    obj = {**pod(nodeName="n"), "metadata": {"name": "p", "labels": {zone: "mine", "app": "a"}}}
    admit("pods", obj, among(nodes=[node]))
    assert obj["metadata"]["labels"] == {zone: "z", "app": "a", region: "r"}
    elsewhere = pod(nodeName="gone")
    admit("pods", elsewhere, among(nodes=[node]))
    assert "labels" not in elsewhere["metadata"]


# --- on a server


PRIORITY_PATH, CLAIM_PATH, PODS = (
    "scheduling.k8s.io/v1/priorityclasses",
    "/v1/persistentvolumeclaims/default",
    "/v1/pods/default",
)
QUOTAS = "/v1/resourcequotas/default"


async def limit(server: Server, hard: Object, **spec: Any) -> None:
    """A quota with the status that its controller would give it."""
    await server.do("create", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    await server.do("patch", f"{QUOTAS}/q/status", status, content_type=MERGE)


async def test_a_server_refuses_a_second_default_priority_however_it_is_written() -> None:
    async with serving() as server:
        default = {"globalDefault": True}
        await server.do("create", PRIORITY_PATH, {"metadata": {"name": "a"}, "value": 1, **default})
        made = await server.refused(
            "create", PRIORITY_PATH, {"metadata": {"name": "b"}, "value": 1, **default}
        )
        await server.do("create", PRIORITY_PATH, {"metadata": {"name": "b"}, "value": 1})
        patched = await server.refused("patch", f"{PRIORITY_PATH}//b", default, content_type=MERGE)

        assert (made.code, patched.code) == (403, 403)
        assert made.message == patched.message


@pytest.mark.parametrize("has_quota", [False, True])
async def test_a_server_refuses_a_claim_that_grows_whether_or_not_others_have_a_say(
    *, has_quota: bool
) -> None:
    async with serving() as server:
        if has_quota:
            await limit(server, {"requests.storage": "9Gi"})
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "s",
        }
        await server.do(
            "create", "storage.k8s.io/v1/storageclasses", {"metadata": {"name": "s"}, "provisioner": "p"}
        )
        await server.do("create", CLAIM_PATH, {"metadata": {"name": "c"}, "spec": spec})
        await server.do("patch", f"{CLAIM_PATH}/c/status", {"status": {"phase": "Bound"}}, content_type=MERGE)
        more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}

        refused = await server.refused("patch", f"{CLAIM_PATH}/c", more, content_type=MERGE)
        can = {"allowVolumeExpansion": True}
        await server.do("patch", "storage.k8s.io/v1/storageclasses//s", can, content_type=MERGE)
        grown = await server.do("patch", f"{CLAIM_PATH}/c", more, content_type=MERGE)

        assert (refused.code, refused.message.endswith(MUST_SUPPORT)) == (403, True)
        assert grown["spec"]["resources"]["requests"] == {"storage": "2Gi"}


async def test_a_quota_of_other_priorities_means_pods_without_one_too() -> None:
    async with serving() as server:
        term = {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["system-node-critical"]}
        await limit(server, {"pods": "0"}, scopeSelector={"matchExpressions": [term]})
        containers = [{"name": "c", "image": "i"}]
        plain = await server.refused(
            "create", PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}}
        )
        spec = {"containers": containers, "priorityClassName": "system-node-critical"}
        await server.do("create", PODS, {"metadata": {"name": "critical"}, "spec": spec})

        assert plain.message.endswith("exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0")


async def test_a_quota_counts_the_overhead_of_a_pod() -> None:
    async with serving() as server:
        heavy = {"metadata": {"name": "heavy"}, "handler": "h", "overhead": {"podFixed": {"cpu": "200m"}}}
        await server.do("create", "node.k8s.io/v1/runtimeclasses", heavy)
        await limit(server, {"requests.cpu": "1"})
        asks = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "900m"}}}
        spec = {"containers": [asks], "runtimeClassName": "heavy"}
        refused = await server.refused("create", PODS, {"metadata": {"name": "p"}, "spec": spec})

        assert (
            "requested: requests.cpu=1100m, used: requests.cpu=0, limited: requests.cpu=1" in refused.message
        )


async def test_a_quota_of_claims_means_those_of_an_attributes_class() -> None:
    async with serving() as server:
        term = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
        await limit(server, {"persistentvolumeclaims": "0"}, scopeSelector={"matchExpressions": [term]})
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await server.do("create", CLAIM_PATH, {"metadata": {"name": "plain"}, "spec": spec})
        gold = {"metadata": {"name": "gold"}, "spec": {**spec, "volumeAttributesClassName": "gold"}}

        assert (await server.refused("create", CLAIM_PATH, gold)).code == 403
