"""A custom kind in two versions whose schemas differ: what each verb writes, stores, owns and shows in either."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import APPLY, JSON_PATCH, MERGE, Json, Put, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition
from tests.conformance.scripts.reading import TABLE

_GROUP = "verbs.example.com"
_FIRST, _SECOND = (f"/apis/{_GROUP}/{version}/namespaces/${{namespace}}/things" for version in ("v1", "v2"))
_DEFINITION = f"{CRDS}/things.{_GROUP}"


def _definition() -> Json:
    def schema(spec: Json, status: Json) -> Json:
        return {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": spec},
                "status": {"type": "object", "properties": status},
            },
        }

    conditions = {
        "type": "array",
        "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
    }
    first = schema(
        {
            "a": {"type": "string"}, "b": {"type": "integer", "default": 5}, "n": {"type": "integer"},
            "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        },
        {"p": {"type": "string"}, "r": {"type": "integer"}},
    )  # fmt: skip
    second = schema(
        {
            "a": {"type": "string", "maxLength": 4}, "c": {"type": "string", "default": "x"}, "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5"}]},
            "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "w": {"type": "integer", "default": 2}}}},
        },
        {"p": {"type": "string"}, "q": {"type": "string"}, "r": {"type": "integer"}, "conditions": conditions},
    )  # fmt: skip
    below = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.r"}}
    crd = definition("things", "Thing", first, group=_GROUP, subresources=below)
    crd["spec"]["versions"] += [
        {
            "name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": second}, "subresources": below,
            "additionalPrinterColumns": [{"name": "C", "type": "string", "jsonPath": ".spec.c"}], "selectableFields": [{"jsonPath": ".spec.c"}],
        }
    ]  # fmt: skip
    return crd


def _thing(version: str, name: str, **spec: Json) -> Json:
    return {"apiVersion": f"{_GROUP}/{version}", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def _stored_first() -> list[Step]:
    return [
        Step("POST", CRDS, _definition(), is_quiet=True),
        Step("GET", _FIRST, until=200, name="empty"),
        Step("GET", _SECOND, until=200, name="empty too"),
        Step("POST", _FIRST, _thing("v1", "a", a="xyz", c="dropped", l=[{"k": "i"}]), name="made"),
        Step("GET", _SECOND + "/a", name="a in v2"),
        Step("POST", _SECOND, _thing("v2", "b", a="x", c="kept?", b=3, l=[{"k": "i", "w": 3}]), name="made in v2"),
        Step("POST", _SECOND + "?dryRun=All", _thing("v2", "x", a="x", c="kept?", l=[{"k": "i"}]), name="dry in v2"),
        Step("POST", _SECOND + "?fieldValidation=Strict", _thing("v2", "x", a="x", b=1), name="strict in v2"),
        Step("POST", _SECOND, _thing("v2", "x", a="xyzzy"), name="invalid in v2"),
        Step("POST", _SECOND, _thing("v2", "x", n=7), name="against a rule of v2"),
        Step("POST", _SECOND, _thing("v2", "dup", l=[{"k": "i"}, {"k": "i"}]), name="twice, which v1 forbids"),
        Step("GET", _FIRST + "/dup", name="twice in v1"),
        Step("PATCH", _FIRST + "/dup", {"metadata": {"labels": {"x": "y"}}}, MERGE, name="twice labelled in v1"),
        Step("PATCH", _FIRST + "/dup", {"spec": {"a": "y"}}, MERGE, name="twice patched in v1"),
        Step("GET", _FIRST + "/b", name="b in v1"),
        Step("GET", _SECOND + "/b", name="b in v2"),
        Step("PUT", _SECOND + "/b", Put("b in v2", {"spec": {"a": "y", "c": "c2"}}), name="put in v2"),
        Step("PUT", _SECOND + "/b", Put("put in v2"), name="put again in v2"),
        Step("GET", _FIRST + "/b", name="b in v1 after put"),
        Step("PATCH", _FIRST + "/b", {"spec": {"b": 9}}, MERGE, name="b patched in v1"),
        Step("PATCH", _SECOND + "/b", {"spec": {"a": "z"}}, MERGE, name="b merged in v2"),
        Step("PATCH", _SECOND + "/b", {"spec": {"c": "zz"}}, MERGE, name="what v1 lacks merged in v2"),
        Step("PATCH", _SECOND + "/b", [{"op": "add", "path": "/spec/c", "value": "js"}], JSON_PATCH, name="b json patched in v2"),
        Step("PATCH", _SECOND + "/b", [{"op": "test", "path": "/spec/b", "value": 9}], JSON_PATCH, name="b tested in v2"),
        Step("PATCH", _SECOND + "/b", {"spec": {"b": 4}}, MERGE, name="what v2 lacks merged in v2"),
        Step("PATCH", _SECOND + "/b?fieldValidation=Strict", {"spec": {"b": 4}}, MERGE, name="what v2 lacks merged strictly"),
        Step("GET", _FIRST + "/b", name="b in v1 after patches"),
        Step("PATCH", _SECOND + "/b/status", {"status": {"p": "P", "q": "Q", "r": 1}}, MERGE, name="status in v2"),
        Step("GET", _FIRST + "/b/status", name="status in v1"),
        Step("GET", _SECOND + "/b/scale", name="scale in v2"),
        Step("PATCH", _SECOND + "/b/scale", {"spec": {"replicas": 3}}, MERGE, name="scaled in v2"),
        Step("PATCH", _SECOND + "/b/scale", {"spec": {"replicas": 30}}, MERGE, name="scaled too far in v2"),
        Step("PATCH", _FIRST + "/b/scale", {"spec": {"replicas": 30}}, MERGE, name="scaled in v1"),
        Step("GET", _FIRST + "/b", name="b in v1 after scale"),
        Step("PATCH", _SECOND + "/b", {"metadata": {"labels": {"z": "y"}}}, MERGE, name="labelled though invalid in v2"),
        Step("PATCH", _SECOND + "/b?fieldManager=m&force=true", _thing("v2", "b", a="mm", c="mc"), APPLY, name="b applied in v2"),
        Step("GET", _FIRST + "/b", name="b in v1 after apply"),
        Step("PATCH", _SECOND + "/b?fieldManager=m", _thing("v2", "b", a="mm", c="mc"), APPLY, name="b applied in v2 again"),
        Step("PATCH", _FIRST + "/b?fieldManager=m", _thing("v1", "b", a="mm"), APPLY, name="b applied in v1 by the same"),
        Step("PATCH", _FIRST + "/b?fieldManager=m", _thing("v1", "b", b=8), APPLY, name="b given up in v1"),
        Step("PATCH", _SECOND + "/new?fieldManager=m", _thing("v2", "new", a="n", c="nc", l=[{"k": "i", "w": 3}]), APPLY, name="made by apply in v2"),
        Step("GET", _FIRST + "/new", name="new in v1"),
        Step("PATCH", _FIRST + "/new?fieldManager=o", _thing("v1", "new", b=1, a="n"), APPLY, name="new applied in v1"),
        Step("PATCH", _FIRST + "/new?fieldManager=o", _thing("v1", "new", b=1, a="other"), APPLY, name="conflict over versions"),
        Step("PATCH", _SECOND + "/new?fieldManager=m", _thing("v2", "new", c="nc"), APPLY, name="given up in v2"),
        Step("PATCH", _SECOND + "/new?fieldManager=m", _thing("v2", "new", b=1), APPLY, name="applied unknown in v2"),
        Step("PATCH", _SECOND + "/a?fieldManager=m&dryRun=All", _thing("v2", "a", c="y"), APPLY, name="a applied dry in v2"),
        Step("PATCH", _SECOND + "/a?fieldManager=m", _thing("v2", "a", c="y"), APPLY, name="a applied in v2"),
        Step("PATCH", _SECOND + "/a?fieldManager=m", _thing("v2", "a", l=[{"k": "i", "w": 9}]), APPLY, name="a list applied in v2"),
        Step("GET", _FIRST, name="list in v1"),
        Step("GET", _SECOND, name="list in v2"),
        Step("GET", _SECOND, headers={"Accept": TABLE}, name="table in v2"),
        Step("GET", _SECOND + "?fieldSelector=spec.c%3Dx", name="selected in v2"),
        Step("GET", _SECOND + "?watch=1&resourceVersion=${made.metadata.resourceVersion}", lines=3, name="watched in v2"),
        Step("GET", _FIRST + "?watch=1&resourceVersion=${made.metadata.resourceVersion}", lines=3, name="watched in v1"),
    ]  # fmt: skip


def _stored_second() -> list[Step]:
    """The other version is stored from here on; it is so when a status keeps what only that version has."""
    switch = [
        {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
    ]
    kept = {"status": {"conditions": [{"type": "Kept", "status": "True"}]}}
    return [
        Step("POST", _FIRST, _thing("v1", "probe"), is_quiet=True),
        Step("PATCH", _DEFINITION, switch, JSON_PATCH, is_quiet=True),
        Step("PATCH", _SECOND + "/probe/status", kept, MERGE, until_says="Kept=True", is_quiet=True),
        Step("DELETE", _SECOND + "/probe", is_quiet=True),
        Step("GET", _FIRST + "/a", name="a in v1 after the switch"),
        Step("GET", _SECOND + "/a", name="a in v2 after the switch"),
        Step("PATCH", _SECOND + "/a", {"spec": {"c": "kept"}}, MERGE, name="a changed in v2"),
        Step("PATCH", _FIRST + "/a", {"spec": {"a": "q"}}, MERGE, name="a changed in v1"),
        Step("GET", _SECOND + "/a", name="a in v2 at last"),
        Step("GET", _FIRST + "/b", name="b in v1 after the switch"),
        Step("PATCH", _FIRST + "/b", {"metadata": {"labels": {"t": "u"}}}, MERGE, name="b labelled in v1"),
        Step("PUT", _FIRST + "/b", Put("b labelled in v1"), name="b put unchanged in v1"),
        Step("GET", _SECOND + "/b", name="b in v2 at last"),
        Step("DELETE", _FIRST + "/b", name="b deleted in v1"),
        Step("DELETE", _SECOND + "/a", name="a deleted in v2"),
        Step("DELETE", _SECOND, name="all deleted in v2"),
        Step("DELETE", _DEFINITION, is_quiet=True),
        Step("GET", _DEFINITION, until=404, name="gone"),
    ]


# ---- a built-in kind -------------------------------------------------------------------------------------


def _autoscaler(version: str, name: str, **spec: Json) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    about = {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
    }
    return {**about, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


def _cpu(use: int) -> Json:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": use}},
    }


_MEMORY: Json = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}},
}
_SERVICE: Json = {"apiVersion": "v1", "kind": "Service", "name": "s"}
_ALL_METRICS: Json = [
    {"type": "Pods", "pods": {"metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "1500m"}}},
    {"type": "Object", "object": {"describedObject": _SERVICE, "metric": {"name": "r"}, "target": {"type": "Value", "value": "2k"}}},
    {"type": "Object", "object": {"describedObject": _SERVICE, "metric": {"name": "r", "selector": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}, "target": {"type": "AverageValue", "averageValue": "3"}}},
    {"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"c": "d"}}}, "target": {"type": "AverageValue", "averageValue": "5"}}},
    {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}},
    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 60}}},
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}}},
    _cpu(44),
]  # fmt: skip
_ALL_CURRENT: Json = [
    {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "1"}}},
    {"type": "Object", "object": {"describedObject": _SERVICE, "metric": {"name": "r"}, "current": {"value": "2"}}},
    {"type": "External", "external": {"metric": {"name": "q"}, "current": {"value": "5", "averageValue": "3"}}},
    {"type": "External", "external": {"metric": {"name": "q"}, "current": {"averageValue": "3"}}},
    {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "1Gi"}}},
    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "current": {"averageValue": "1", "averageUtilization": 3}}},
    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 12, "averageValue": "1"}}},
]  # fmt: skip


def _autoscalers() -> list[Step]:
    one, two = (
        f"/apis/autoscaling/{version}/namespaces/${{namespace}}/horizontalpodautoscalers"
        for version in ("v1", "v2")
    )
    behavior = {
        "scaleUp": {
            "selectPolicy": "Disabled",
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 3}],
        }
    }
    status = {"currentReplicas": 1, "desiredReplicas": 2}
    return [
        Step("POST", one, _autoscaler("v1", "a", targetCPUUtilizationPercentage=70), name="a"),
        Step("GET", two + "/a", name="a in v2"),
        Step("PATCH", two + "/a?fieldManager=x", {"spec": {"maxReplicas": 4}}, MERGE, name="a patched in v2"),
        Step("GET", one + "/a", name="a in v1 again"),
        Step("PATCH", two + "/a?fieldManager=m", _autoscaler("v2", "a", metrics=[_cpu(70)], maxReplicas=4), APPLY, name="a applied in v2"),
        Step("PATCH", two + "/a?fieldManager=m", _autoscaler("v2", "a", metrics=[_cpu(80)], maxReplicas=4), APPLY, name="a conflict over versions"),
        Step("PATCH", two + "/a?fieldManager=m&force=true", _autoscaler("v2", "a", metrics=[_cpu(80), _MEMORY], maxReplicas=4), APPLY, name="a forced in v2"),
        Step("GET", one + "/a", name="a in v1 with memory"),
        Step("PATCH", one + "/a?fieldManager=n", _autoscaler("v1", "a", maxReplicas=4), APPLY, name="a applied in v1"),
        Step("PATCH", one + "/a?fieldManager=n&force=true", _autoscaler("v1", "a", maxReplicas=5, targetCPUUtilizationPercentage=60), APPLY, name="a forced in v1"),
        Step("GET", two + "/a", name="a in v2 at last"),
        Step("PATCH", one + "/a?fieldManager=m", _autoscaler("v1", "a", maxReplicas=5), APPLY, name="a applied in v1 by who applied in v2"),
        Step("POST", two, _autoscaler("v2", "b", metrics=[_MEMORY], behavior={"scaleDown": {"stabilizationWindowSeconds": 5}}), name="b"),
        Step("GET", one + "/b", name="b in v1"),
        Step("PUT", one + "/b", Put("b in v1", {"spec": {"maxReplicas": 7}}), name="b put in v1"),
        Step("GET", two + "/b", name="b in v2 again"),
        Step("PUT", one + "/b", Put("b put in v1"), name="b put again in v1"),
        Step("PATCH", one + "/b", {"metadata": {"annotations": None}}, MERGE, name="b without annotations in v1"),
        Step("GET", two + "/b", name="b without metrics in v2"),
        Step("PATCH", two + "/b/status", {"status": {**status, "conditions": [{"type": "AbleToScale", "status": "True"}]}}, MERGE, name="b status in v2"),
        Step("GET", one + "/b", name="b status in v1"),
        Step("POST", two, _autoscaler("v2", "m", metrics=_ALL_METRICS, behavior=behavior), name="all metrics"),
        Step("GET", one + "/m", name="all metrics in v1"),
        Step("PUT", one + "/m", Put("all metrics in v1", {"spec": {"minReplicas": 2}}), name="all metrics put in v1"),
        Step("GET", two + "/m", name="all metrics in v2 after that"),
        Step("PATCH", two + "/m/status", {"status": {**status, "currentMetrics": _ALL_CURRENT}}, MERGE, name="all current metrics"),
        Step("GET", one + "/m", name="all current metrics in v1"),
        Step("PATCH", one + "/m/status", {"status": {"currentReplicas": 3}}, MERGE, name="all current metrics patched in v1"),
        Step("GET", two + "/m", name="all current metrics in v2 after that"),
        Step("GET", one, name="list in v1"),
        Step("GET", two, name="list in v2"),
    ]  # fmt: skip


SCRIPTS = [
    Script("two versions in every verb", [*_stored_first(), *_stored_second()]),
    Script("autoscalers in two versions", _autoscalers()),
]
