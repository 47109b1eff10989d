"""Classes that new objects name are filled in and looked for; nobody owns what was filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from setpoint.server.registry.admission import admit
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import StatusError

PRIORITIES = "priorityclasses.scheduling.k8s.io"
STORAGE = "storageclasses.storage.k8s.io"
INGRESS = "ingressclasses.networking.k8s.io"
IS_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def admitted(stored: str, obj: Object, **there: Sequence[Object]) -> Object:
    """The spec, after admission among what is there, without the tolerations that every pod gets."""
    known = {PRIORITIES: "priorities", STORAGE: "storage", INGRESS: "ingress"}
    admit(stored, obj, lambda name: there.get(known.get(name, ""), ()))
    spec: Object = obj["spec"]
    return {name: value for name, value in spec.items() if name != "tolerations"}


def named(name: str, created: str = "2026-01-01T00:00:00Z", **more: Any) -> Object:
    annotations = more.pop("annotations", {})
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}, **more}


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": spec}


def refusal(obj: Object, **there: Sequence[Object]) -> str:
    with pytest.raises(StatusError) as refused:
        admitted("pods", obj, **there)
    assert refused.value.code == 403
    return refused.value.message


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
    admit("pods", obj, lambda _: ())
    keys = [one["key"] for one in obj["spec"]["tolerations"]]
    assert keys == ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"]


def test_a_claim_is_not_deleted_while_it_is_used() -> None:
    obj: Object = {"metadata": {"name": "c"}, "spec": {}}
    admit("persistentvolumeclaims", obj, lambda _: ())
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
