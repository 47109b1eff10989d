"""Fields that are owned in ways of their own: counted templates, empty lists, the time of a deletion."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import APPLY, MERGE, Json, Script, Step
from tests.conformance.scripts.reading import PARTIAL, TABLE
from tests.conformance.scripts.writing import MAPS

_DAEMON_SETS = "/apis/apps/v1/namespaces/${namespace}/daemonsets"
_COUNT = "deprecated.daemonset.template.generation"


def _daemon_set(name: str, image: str = "i", **metadata: Json) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _templates() -> list[Step]:
    path = _DAEMON_SETS
    counted = {
        name: {_COUNT: said}
        for name, said in {
            "seven": "7",
            "text": "seven",
            "nothing": "",
            "below 0": "-3",
            "signed": "+4",
        }.items()
    }
    return [
        Step("POST", path, _daemon_set("a"), name="made"),
        *(
            Step("POST", path, _daemon_set(f"b{place}", annotations=said), name=f"made with {name}")
            for place, (name, said) in enumerate(counted.items())
        ),
        Step("PUT", path + "/a", _daemon_set("a"), name="put without"),
        Step("PUT", path + "/a", _daemon_set("a", "j"), name="put with another image"),
        Step("PUT", path + "/a", _daemon_set("a", "j", annotations={_COUNT: "9"}), name="put with another count"),
        Step("PUT", path + "/a", _daemon_set("a", "j", annotations={_COUNT: "bad"}), name="put with a text"),
        Step("PATCH", path + "/a", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 3}}}}, MERGE, name="patched"),
        Step("PATCH", path + "/a", {"metadata": {"annotations": None}}, MERGE, name="annotations removed"),
        Step("PATCH", path + "/a", {"metadata": {"annotations": {_COUNT: "33"}}}, MERGE, name="count patched"),
        Step("PATCH", path + "/a", {"metadata": {"annotations": {_COUNT: "bad"}}}, MERGE, name="count patched badly"),
        Step("PATCH", path + "/a", {"metadata": {"annotations": {"x": "33"}}}, MERGE, name="another annotation"),
        Step("PUT", path + "/a?fieldManager=other", _daemon_set("a", "j"), name="put by another"),
        Step("PATCH", path + "/a?fieldManager=third", {"metadata": {"annotations": {_COUNT: "44"}}}, MERGE, name="count patched by another"),
        Step("PATCH", path + "/a?fieldManager=fourth", {"metadata": {"labels": {"l": "44"}}}, MERGE, name="labelled by another"),
        Step("PATCH", path + "/a?fieldManager=m&force=true", _daemon_set("a", "k"), APPLY, name="applied"),
        Step("PATCH", path + "/a?fieldManager=m&force=true", _daemon_set("a", "k"), APPLY, name="applied again"),
        Step("PATCH", path + "/c?fieldManager=m", _daemon_set("c", "k"), APPLY, name="made by apply"),
        Step("PATCH", path + "/c?fieldManager=m", _daemon_set("c", "k", annotations={"y": "z"}), APPLY, name="annotation applied"),
        Step("PATCH", path + "/c?fieldManager=m", _daemon_set("c", "l"), APPLY, name="given up, with another image"),
        Step("PATCH", path + "/c/status", {"status": {"desiredNumberScheduled": 1}}, MERGE, name="status"),
        Step("GET", path, name="list"),
        Step("GET", path, headers={"Accept": TABLE}, name="table"),
        Step("GET", path + "/a", headers={"Accept": PARTIAL}, name="metadata"),
    ]  # fmt: skip


def _empties() -> list[Step]:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles"
    slices = "/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices"
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}

    def role(name: str, **more: Json) -> Json:
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name},
            **more,
        }

    labelled = {"metadata": {"name": "l", "labels": {"a": "b"}}}
    return [
        Step("POST", roles, role("a", rules=[]), name="no rules"),
        Step("POST", roles, role("b", rules=None), name="null"),
        Step("POST", roles, role("c"), name="left out"),
        Step("PATCH", roles + "/c", {"rules": []}, MERGE, name="emptied, unowned"),
        Step("PATCH", roles + "/c", {"rules": [rule]}, MERGE, name="set"),
        Step("PATCH", roles + "/c", {"rules": []}, MERGE, name="emptied"),
        Step("PATCH", roles + "/c", {"rules": None}, MERGE, name="gone"),
        Step("PATCH", roles + "/d?fieldManager=m", role("d"), APPLY, name="left out by apply"),
        Step("PATCH", roles + "/e?fieldManager=m", role("e", rules=[]), APPLY, name="emptied by apply"),
        Step("PATCH", roles + "/e?fieldManager=m", role("e"), APPLY, name="given up"),
        Step("PATCH", roles + "/f?fieldManager=m", role("f", rules=None), APPLY, name="null by apply"),
        Step("POST", roles, {**role("l"), **labelled}, name="labelled"),
        Step("PATCH", roles + "/l?fieldManager=x", {"rules": []}, MERGE, name="labelled and emptied"),
        Step("PUT", roles + "/l?fieldManager=x", {**role("l", rules=[]), **labelled}, name="labelled and put empty"),
        Step("PUT", roles + "/a", role("a"), name="put without"),
        Step("PUT", roles + "/a", role("a", rules=[rule]), name="put with one"),
        Step("PUT", roles + "/a", role("a", rules=[]), name="put empty"),
        Step("POST", "/api/v1/namespaces/${namespace}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": []}}, name="no limits"),
        Step("POST", slices, {"metadata": {"name": "l"}, "addressType": "IPv4", "endpoints": [], "ports": []}, name="no endpoints"),
        Step("POST", slices, {"metadata": {"name": "m"}, "addressType": "IPv4", "endpoints": None}, name="endpoints null"),
        Step("POST", MAPS, {"metadata": {"name": "e", "labels": {}, "annotations": {}, "finalizers": []}, "data": {}, "binaryData": {}}, name="a map of empties"),
    ]  # fmt: skip


def _deletions() -> list[Step]:
    namespaces, then = "/api/v1/namespaces", "2020-01-01T00:00:00Z"

    def kept(**metadata: Json) -> Json:
        return {"metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["example.com/x"], **metadata}}

    def going(*finalizers: str, **metadata: Json) -> Json:
        return {"metadata": {"name": "going", **metadata}, "spec": {"finalizers": list(finalizers)}}

    return [
        Step("POST", MAPS, kept(), name="made"),
        Step("PUT", MAPS + "/a", kept(deletionTimestamp=then), name="put as if going"),
        Step("PATCH", MAPS + "/a", {"metadata": {"deletionTimestamp": then}}, MERGE, name="patched as if going"),
        Step("DELETE", MAPS + "/a", name="deleted"),
        Step("PUT", MAPS + "/a?fieldManager=o", kept(deletionTimestamp=then), name="put with another time"),
        Step("PUT", MAPS + "/a?fieldManager=o", kept(deletionTimestamp=None), name="put without a time"),
        Step("PATCH", MAPS + "/a?fieldManager=q", {"metadata": {"deletionTimestamp": then}}, MERGE, name="patched with another time"),
        Step("PATCH", MAPS + "/a?fieldManager=q", {"metadata": {"deletionTimestamp": None}}, MERGE, name="patched without a time"),
        Step("PATCH", MAPS + "/a?fieldManager=q", {"metadata": {"deletionGracePeriodSeconds": 9}}, MERGE, name="patched with a grace"),
        Step("POST", MAPS, {"metadata": {"name": "b", "deletionTimestamp": then, "deletionGracePeriodSeconds": 3}}, name="made as if going"),
        Step("POST", namespaces, {"metadata": {"name": "going"}}, name="a namespace"),
        Step("PUT", f"{namespaces}/going/finalize", going("kubernetes", "example.com/x"), name="finalizers added"),
        Step("PUT", f"{namespaces}/going/finalize?fieldManager=p", going("kubernetes", deletionTimestamp=then), name="finalized as if going"),
        Step("DELETE", f"{namespaces}/going", name="namespace deleted"),
        Step("PUT", f"{namespaces}/going/finalize?fieldManager=p", going("kubernetes", deletionTimestamp=then), name="finalized with another time"),
        Step("PUT", f"{namespaces}/going/finalize?fieldManager=q", going("kubernetes"), name="finalized without a time"),
        Step("PUT", f"{namespaces}/going?fieldManager=r", going("kubernetes", deletionTimestamp=then), name="namespace put with another time"),
        Step("PUT", f"{namespaces}/going/status?fieldManager=s", {**going("kubernetes", deletionTimestamp=then), "status": {"phase": "Terminating"}}, name="its status with another time"),
        Step("PUT", f"{namespaces}/going/finalize?fieldManager=p", going(), name="let go"),
        Step("GET", f"{namespaces}/going", name="gone"),
    ]  # fmt: skip


SCRIPTS = [
    Script("counted templates", _templates()),
    Script("empty lists", _empties()),
    Script("times of deletion", _deletions()),
]
