"""Every built-in kind is filled in as a real kube-apiserver fills it in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from setpoint.server.registry.conform import conform
from setpoint.server.registry.defaults.images import pull_policy
from setpoint.server.registry.defaults.table import after_uid, default
from setpoint.server.registry.emit import emit
from setpoint.server.registry.pods import fill_resources
from tests.server.registry.recordings import kind_of, rows, type_of_object

Object = dict[str, Any]

_SAID = rows("defaulted")

# What comes from admission, allocation and strategies, by kind: paths that this part leaves alone.
_ELSEWHERE = {
    "Service": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodePort"},
    "Pod": {"tolerations", "priority", "preemptionPolicy", "phase", "qosClass"},
    "PersistentVolume": {"finalizers", "lastPhaseTransitionTime"},
    "PersistentVolumeClaim": {"finalizers"},
    "Namespace": {"finalizers"},
    "Node": {"taints"},
    "APIService": {"status"},
    "CustomResourceDefinition": {"status"},
    "ServiceCIDR": {"status", "finalizers"},
    "VolumeAttributesClass": {"finalizers"},
}


@pytest.mark.parametrize("row", _SAID, ids=[f"{row['sent']['kind']}-{at}" for at, row in enumerate(_SAID)])
def test_an_object_is_filled_in_as_the_real_server_fills_it_in(row: dict[str, Any]) -> None:
    assert _left(_taken(row)) == _left(row["stored"])


def _taken(row: dict[str, Any]) -> Object:
    sent, stored = copy.deepcopy(row["sent"]), row["stored"]
    kind_type = type_of_object(sent)
    obj = conform(sent, kind_type).object
    default(*kind_of(obj), obj)
    given = {name: stored["metadata"][name] for name in _GIVEN if name in stored["metadata"]}
    obj["metadata"] |= given
    after_uid(*kind_of(obj), obj)
    if obj["kind"] == "Pod":
        fill_resources(obj["spec"])
    return emit(obj, kind_type)


_GIVEN = ("uid", "creationTimestamp", "resourceVersion", "namespace", "generation")


def _left(obj: Object) -> Any:
    return _without(obj, _ELSEWHERE.get(obj["kind"], set()))


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(inner, names) for name, inner in value.items() if name not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("row", _SAID, ids=[f"{row['sent']['kind']}-{at}" for at, row in enumerate(_SAID)])
def test_what_is_stored_is_filled_in_and_written_already(row: dict[str, Any]) -> None:
    stored = copy.deepcopy(row["stored"])
    default(*kind_of(stored), stored)
    again = emit(stored, type_of_object(stored))
    assert again == row["stored"]
    assert _order(again) == _order(row["stored"]), "fields come in Go's order"


def _order(value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, _order(inner)) for name, inner in value.items()]
    return [_order(inner) for inner in value] if isinstance(value, list) else None


def test_a_pod_gets_what_its_template_does_not() -> None:
    container = {
        "name": "a",
        "image": "b",
        "resources": {"limits": {"cpu": "1"}},
        "ports": [{"containerPort": 80}],
    }
    pod: Object = {"spec": {"hostNetwork": True, "containers": [copy.deepcopy(container)]}}
    deployment: Object = {"spec": {"template": copy.deepcopy(pod)}}
    default("", "v1", "Pod", pod)
    default("apps", "v1", "Deployment", deployment)

    template = deployment["spec"]["template"]
    assert pod["spec"]["enableServiceLinks"] is True
    assert "enableServiceLinks" not in template["spec"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert "requests" not in template["spec"]["containers"][0]["resources"]
    assert pod["spec"]["containers"][0]["ports"][0]["hostPort"] == 80
    assert "hostPort" not in template["spec"]["containers"][0]["ports"][0]


def test_what_was_said_stays() -> None:
    spec = {
        "replicas": 0,
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 0,
        "progressDeadlineSeconds": 1,
    }
    deployment: Object = {"spec": copy.deepcopy(spec)}
    default("apps", "v1", "Deployment", deployment)
    assert {name: deployment["spec"][name] for name in spec} == spec


def test_a_job_selects_its_pods_by_its_uid() -> None:
    job: Object = {"metadata": {"name": "j"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
    default("batch", "v1", "Job", job)
    job["metadata"]["uid"] = "u"
    after_uid("batch", "v1", "Job", job)
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert job["spec"]["template"]["metadata"]["labels"]["controller-uid"] == "u"
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]


def test_a_job_with_a_selector_of_its_own_keeps_it() -> None:
    job: Object = {
        "metadata": {"name": "j", "uid": "u"},
        "spec": {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}, "template": {}},
    }
    default("batch", "v1", "Job", job)
    after_uid("batch", "v1", "Job", job)
    assert job["spec"]["selector"] == {"matchLabels": {"a": "b"}}
    assert "metadata" not in job["spec"]["template"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("localhost:5000/a/b", "Always"),
        ("localhost:5000/a/b:v1", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "0" * 64, "Always"),
        ("a" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
        ("Nginx", "IfNotPresent"),
        ("example.com/Nginx", "IfNotPresent"),
        ("[::1]:5000/a", "Always"),
        ("a__b/c-d.e_f", "Always"),
        ("a b", "IfNotPresent"),
    ],
)
def test_an_image_is_pulled_always_if_it_may_have_moved(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
