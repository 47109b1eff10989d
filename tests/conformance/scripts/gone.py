"""Owners of fields in versions that are there no more: what becomes of them with the next write."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import APPLY, JSON_PATCH, MERGE, Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition
from tests.conformance.scripts.reading import TABLE
from tests.conformance.scripts.writing import MAPS

_GROUP = "gone.example.com"
_FIRST, _SECOND = (f"/apis/{_GROUP}/{version}/namespaces/${{namespace}}/things" for version in ("v1", "v2"))
_DEFINITION = f"{CRDS}/things.{_GROUP}"


def _thing(version: str, name: str, **spec: Json) -> Json:
    return {"apiVersion": f"{_GROUP}/{version}", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def _versions() -> list[Step]:
    """A version is not served any more, and then left out of the definition."""
    fields = {name: {"type": "string"} for name in "abc"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    crd = definition("things", "Thing", schema, group=_GROUP, subresources={"status": {}})
    crd["spec"]["versions"] += [
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    ]  # fmt: skip
    unserved = [{"op": "replace", "path": "/spec/versions/1/served", "value": False}]
    column = {
        "name": "Probe",
        "type": "string",
        "jsonPath": ".spec.a",
    }  # shows when the definition is gone by
    removed = [
        {"op": "remove", "path": "/spec/versions/1"},
        {"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": [column]},
    ]
    names = ("merged", "put", "applied", "labelled", "other")
    made = [
        step
        for name in names
        for step in (
            Step("POST", f"{_FIRST}?fieldManager=one", _thing("v1", name, a="1"), is_quiet=True),
            Step("PATCH", f"{_SECOND}/{name}?fieldManager=two", {"spec": {"b": "2"}}, MERGE, is_quiet=True),
            Step("PATCH", f"{_SECOND}/{name}?fieldManager=three", _thing("v2", name, c="3"), APPLY, is_quiet=True),
        )
    ]  # fmt: skip
    return [
        Step("POST", CRDS, crd, is_quiet=True),
        Step("GET", _FIRST, until=200, is_quiet=True),
        Step("GET", _SECOND, until=200, is_quiet=True),
        *made,
        Step("GET", f"{_FIRST}/merged", name="owned in two versions"),
        Step("PATCH", _DEFINITION, unserved, JSON_PATCH, is_quiet=True),
        Step("GET", _SECOND, until=404, is_quiet=True),
        Step("GET", f"{_FIRST}/merged", name="read, with a version that is not served"),
        Step("PATCH", f"{_FIRST}/merged?fieldManager=one", {"spec": {"a": "4"}}, MERGE, name="merged, with a version that is not served"),
        Step("PATCH", f"{_FIRST}/applied?fieldManager=three", _thing("v1", "applied", b="5"), APPLY, name="conflict with a version that is not served"),
        Step("PATCH", _DEFINITION, removed, JSON_PATCH, is_quiet=True),
        Step("PATCH", f"{_DEFINITION}/status", {"status": {"storedVersions": ["v1"]}}, MERGE, is_quiet=True),
        Step("GET", _FIRST, headers={"Accept": TABLE}, until_has="Probe", is_quiet=True),
        Step("GET", f"{_FIRST}/put", name="read"),
        Step("PATCH", f"{_FIRST}/put?fieldManager=one", {"spec": {"a": "1"}}, MERGE, name="patched to the same"),
        Step("PUT", f"{_FIRST}/put?fieldManager=one", _thing("v1", "put", a="6", b="2", c="3"), name="put"),
        Step("PATCH", f"{_FIRST}/merged?fieldManager=one", {"spec": {"a": "7"}}, MERGE, name="merged"),
        Step("PATCH", f"{_FIRST}/labelled?fieldManager=four", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="labelled"),
        Step("PATCH", f"{_FIRST}/other/status?fieldManager=five", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="nothing under its status"),
        Step("PATCH", f"{_FIRST}/other?fieldManager=three", _thing("v1", "other", b="8"), APPLY, name="no conflict with who is gone"),
        Step("PATCH", f"{_FIRST}/applied?fieldManager=three", _thing("v1", "applied", a="9"), APPLY, name="conflict with who is not"),
        Step("PATCH", f"{_FIRST}/applied?fieldManager=three&force=true", _thing("v1", "applied", a="9"), APPLY, name="forced"),
        Step("DELETE", _DEFINITION, is_quiet=True),
        Step("GET", _DEFINITION, until=404, is_quiet=True),
    ]  # fmt: skip


def _entry(manager: str, version: str, fields: Json, operation: str = "Update") -> Json:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _built_in() -> list[Step]:
    """Versions of built-in kinds that there never were, or were once, as a client may send them."""
    data: Json = {"f:data": {"f:a": {}}}
    entries = [
        _entry("never", "v9", data),
        _entry("elsewhere", "apps/v1", data),
        _entry("none", "absent.example.com/v1", data, "Apply"),
        _entry("now", "v1", data),
    ]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    replicas: Json = {"f:spec": {"f:replicas": {}}}
    old = [
        _entry(f"m{place}", version, replicas)
        for place, version in enumerate(
            ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2", "apps/v1", "v1")
        )
    ]
    deployments = "/apis/apps/v1/namespaces/${namespace}/deployments"
    scalers = "/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers"
    scaler = {
        "metadata": {"name": "h"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 3,
        },
    }
    most: Json = {"f:spec": {"f:maxReplicas": {}}}
    versions = ("autoscaling/v1", "autoscaling/v2", "autoscaling/v2beta1", "autoscaling/v2beta2")
    return [
        Step("POST", MAPS, {"metadata": {"name": "sent", "managedFields": entries}, "data": {"a": "b"}}, name="sent with a new one"),
        Step("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}}, is_quiet=True),
        Step("PATCH", f"{MAPS}/m", {"metadata": {"managedFields": entries}}, MERGE, name="sent"),
        Step("PATCH", f"{MAPS}/m?fieldManager=next", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="labelled"),
        Step("PATCH", f"{MAPS}/m", {"metadata": {"managedFields": entries[:1]}}, MERGE, name="sent alone"),
        Step("PATCH", f"{MAPS}/m?fieldManager=next", {"data": {"c": "d"}}, MERGE, name="changed"),
        Step("PATCH", f"{MAPS}/m?fieldManager=applier", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "x"}}, APPLY, name="applied"),
        Step("POST", deployments, deployment, is_quiet=True),
        Step("PATCH", f"{deployments}/d", {"metadata": {"managedFields": old}}, MERGE, name="old versions sent"),
        Step("PATCH", f"{deployments}/d?fieldManager=next", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="a deployment labelled"),
        Step("PATCH", f"{deployments}/d/scale?fieldManager=scaler", {"spec": {"replicas": 4}}, MERGE, name="scaled"),
        Step("GET", f"{deployments}/d", name="a deployment after that"),
        Step("POST", scalers, scaler, is_quiet=True),
        Step("PATCH", f"{scalers}/h", {"metadata": {"managedFields": [_entry(f"m{place}", one, most) for place, one in enumerate(versions)]}}, MERGE, name="versions of autoscalers sent"),
        Step("PATCH", f"{scalers}/h?fieldManager=next", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="an autoscaler labelled"),
    ]  # fmt: skip


SCRIPTS = [
    Script("versions that left a definition", _versions()),
    Script("versions that are not there", _built_in()),
]
