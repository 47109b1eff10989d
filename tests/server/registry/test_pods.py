"""What becomes of a pod where its writer has no say."""

from __future__ import annotations

import copy
from typing import Any

from setpoint.server.registry.pods import (
    add_label_keys,
    fill_resources,
    gated,
    keep_resources,
    keep_status,
    resize,
)

Object = dict[str, Any]


def container(name: str = "a", *, requests: Object | None = None, limits: Object | None = None) -> Object:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}}


def test_a_pod_that_says_what_all_of_it_asks_for_asks_for_what_its_containers_do() -> None:
    containers = [container("a", requests={"cpu": "100m", "memory": "1Gi"}), container(requests={"cpu": "1"})]
    spec: Object = {"containers": containers, "resources": {"limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}}}
    fill_resources(spec)
    requests = {"cpu": "1100m", "memory": "1Gi", "hugepages-2Mi": "2Mi"}
    assert spec["resources"] == {"limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}, "requests": requests}


def test_pods_with_limits_of_their_own_ask_for_what_their_containers_ask_for() -> None:
    def asking(name: str, cpu: str, **more: str) -> Object:
        return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}

    pod: Object = {
        "spec": {
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "initContainers": [asking("side", "1", restartPolicy="Always"), asking("init", "2500m")],
            "containers": [asking("a", "500m"), asking("b", "1500m")],
        }
    }
    fill_resources(pod["spec"])
    assert pod["spec"]["resources"]["requests"] == {"cpu": "3500m", "memory": "1Gi"}


def test_it_is_limited_where_each_of_its_containers_is() -> None:
    limits = {"cpu": "1", "memory": "1Gi"}
    containers = [container("a", limits=limits), container("b", limits={"cpu": "1"})]
    spec: Object = {"containers": containers, "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    fill_resources(spec)
    assert spec["resources"]["limits"] == {"cpu": "3"}  # no less than what it asks for


def test_who_says_nothing_of_all_of_it_is_given_nothing() -> None:
    said: list[Object] = [{}, {"resources": {}}, {"resources": {"requests": {}}}]
    for own in said:
        spec: Object = {"containers": [container(limits={"cpu": "1"})], **own}
        before = copy.deepcopy(spec)
        fill_resources(spec)
        assert spec == before


def test_a_pod_without_containers_is_left_to_validation() -> None:
    spec: Object = {"containers": [], "resources": {"requests": {"cpu": "1"}}}
    fill_resources(spec)
    assert spec["resources"] == {"requests": {"cpu": "1"}}


def test_who_does_not_know_of_what_all_of_it_asks_for_does_not_take_it_away() -> None:
    spec: Object = {}
    keep_resources(spec, {"resources": {"limits": {"cpu": "1"}}})
    assert spec == {"resources": {"limits": {"cpu": "1"}}}


def test_keys_of_labels_select_by_the_values_that_the_pod_has() -> None:
    selector = {"matchLabels": {"app": "a"}}
    keys = {"matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["tenant"]}
    term: Object = {"labelSelector": selector, **keys}
    when = "DuringSchedulingIgnoredDuringExecution"
    spec: Object = {
        "affinity": {"podAntiAffinity": {f"preferred{when}": [{"podAffinityTerm": copy.deepcopy(term)}]}},
        "topologySpreadConstraints": [
            {"labelSelector": selector, "matchLabelKeys": ["hash"]},
            {"matchLabelKeys": ["hash"]},
        ],
    }
    add_label_keys(spec, {"hash": "h", "tenant": "t"})
    found = spec["affinity"]["podAntiAffinity"][f"preferred{when}"][0]["podAffinityTerm"]["labelSelector"]
    by_hash = {"key": "hash", "operator": "In", "values": ["h"]}
    assert found["matchExpressions"] == [by_hash, {"key": "tenant", "operator": "NotIn", "values": ["t"]}]
    spread, unselected = spec["topologySpreadConstraints"]
    assert spread["labelSelector"] == {**selector, "matchExpressions": [by_hash]}
    assert "labelSelector" not in unselected  # which selects none


def test_a_pod_with_gates_says_what_it_waits_for() -> None:
    assert gated({}, "now") == []
    told = "Scheduling is blocked due to non-empty scheduling gates"
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": told}
    assert gated({"schedulingGates": [{"name": "g"}]}, "now") == [{**condition, "lastTransitionTime": "now"}]


def test_who_reports_on_a_pod_takes_nothing_away_by_leaving_it_out() -> None:
    conditions = [{"type": "Ready", "status": "True", "observedGeneration": 2}]
    status = {"qosClass": "Burstable", "conditions": conditions}
    old = {"metadata": {"ownerReferences": [{"uid": "u"}]}, "status": status}
    unseen = [{"type": "Ready", "status": "False"} for _ in range(2)]
    new: Object = {"metadata": {}, "status": {"conditions": unseen}}
    keep_status(new, old)
    assert new["metadata"] == {"ownerReferences": [{"uid": "u"}]}
    assert new["status"]["qosClass"] == "Burstable"
    assert [one.get("observedGeneration") for one in new["status"]["conditions"]] == [2, None]


def test_a_resize_takes_what_is_asked_for_and_nothing_else() -> None:
    old = {"spec": {"nodeName": "n", "containers": [{**container(requests={"cpu": "1"}), "image": "i"}]}}
    wanted = {**container(requests={"cpu": "2"}), "image": "j"}
    new: Object = {"spec": {"nodeName": "m", "containers": [wanted]}}
    resize(new, old)
    expected = {**container(requests={"cpu": "2"}), "image": "i"}
    assert new["spec"] == {"nodeName": "n", "containers": [expected]}


def test_containers_that_are_others_are_left_to_validation() -> None:
    old = {"spec": {"containers": [container("a")]}}
    for containers in ([container("b")], [container("a"), container("b")]):
        new: Object = {"spec": {"containers": containers}}
        resize(new, old)
        assert new["spec"]["containers"] == containers
