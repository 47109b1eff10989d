"""What no good client asks: patches of what an object is, applies without a shape, watches from the future."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import APPLY, JSON_PATCH, MERGE, STRATEGIC, Json, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition, with_spec
from tests.conformance.scripts.writing import MAPS

_PODS = "/api/v1/namespaces/${namespace}/pods"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/${namespace}/deployments"
_STATUS = ("kind", "status", "message", "reason", "code", "details")


def _map(name: str, **more: Json) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def _other_kinds() -> list[Step]:
    patches: dict[str, Json] = {
        "another version": {"apiVersion": "v2"}, "another group": {"apiVersion": "apps/v1"}, "a number for the version": {"apiVersion": 3},
        "no version": {"apiVersion": None}, "another kind": {"kind": "Secret"}, "no such kind": {"kind": "Nonesuch"}, "a list's kind": {"kind": "ConfigMapList"},
        "no kind": {"kind": None}, "a number for the kind": {"kind": 3}, "an empty kind": {"kind": ""}, "neither": {"kind": None, "apiVersion": None},
        "both empty": {"kind": "", "apiVersion": ""}, "another kind and group": {"kind": "Deployment", "apiVersion": "apps/v1"}, "no good pod": {"kind": "Pod", "spec": 3},
        "no metadata": {"metadata": None}, "metadata as a text": {"metadata": "x"}, "another name": {"metadata": {"name": "b"}}, "another namespace": {"metadata": {"namespace": "b"}},
    }  # fmt: skip
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    return [
        Step("POST", MAPS, _map("a", data={"k": "dg=="}), name="made"),
        Step("POST", _DEPLOYMENTS, deployment, is_quiet=True),
        *(Step("PATCH", MAPS + "/a", patch, MERGE, name=name) for name, patch in patches.items()),
        Step("PATCH", _DEPLOYMENTS + "/d", {"apiVersion": "apps/v1beta2"}, MERGE, name="an old version"),
        Step("PATCH", MAPS + "/a", {"apiVersion": "v2"}, STRATEGIC, name="strategic, another version"),
        Step("PATCH", MAPS + "/a", {"kind": "Secret"}, STRATEGIC, name="strategic, another kind"),
        Step("PATCH", MAPS + "/a", {"kind": None, "apiVersion": None}, STRATEGIC, name="strategic, neither"),
        Step("PATCH", MAPS + "/a", [{"op": "replace", "path": "/apiVersion", "value": "v2"}], JSON_PATCH, name="json, another version"),
        Step("PATCH", MAPS + "/a", [{"op": "remove", "path": "/kind"}], JSON_PATCH, name="json, no kind"),
        Step("PATCH", MAPS + "/a", [{"op": "remove", "path": "/apiVersion"}], JSON_PATCH, name="json, no version"),
        Step("PATCH", _DEPLOYMENTS + "/d/status", {"kind": None, "apiVersion": None}, MERGE, name="status, neither"),
        Step("PATCH", _DEPLOYMENTS + "/d/scale", {"kind": None, "apiVersion": None}, MERGE, name="scale, neither"),
        Step("PATCH", _DEPLOYMENTS + "/d/scale", {"kind": "Deployment"}, MERGE, name="scale, another kind"),
        Step("PATCH", _DEPLOYMENTS + "/d/scale", {"apiVersion": "autoscaling/v2"}, MERGE, name="scale, another version"),
        Step("PUT", MAPS + "/a", _map("a", apiVersion="v2"), name="put, another version"),
        Step("PUT", MAPS + "/a", _map("a", kind="Secret"), name="put, another kind"),
        Step("POST", _PODS + "/zz/binding", {"metadata": {"name": "zz"}, "target": {"kind": "Pod", "name": "x"}}, name="bound to a pod"),
        Step("POST", _PODS + "/zz/binding", {"metadata": {"name": "zz"}, "target": {"kind": "Node", "name": ""}}, name="bound to nothing"),
        Step("POST", _PODS + "/zz/binding", {"metadata": {"name": "zz"}, "target": {"kind": "Node", "name": "n"}}, name="nothing bound"),
    ]  # fmt: skip


def _shapeless() -> list[Step]:
    metadata: dict[str, Json] = {
        "a text": "x", "a list": [], "a number": 3, "null": None, "no name": {}, "a number for the name": {"name": 3}, "null for the name": {"name": None},
        "an empty name": {"name": ""}, "another name": {"name": "b"}, "a number for the namespace": {"name": "a", "namespace": 3}, "a number for the uid": {"name": "a", "uid": 3},
        "a number for the version": {"name": "a", "resourceVersion": 3}, "a number for labels": {"name": "a", "labels": 3}, "an unknown field": {"name": "a", "oops": 3},
        "owners": {"name": "a", "managedFields": []}, "a number for owners": {"name": "a", "managedFields": 3},
    }  # fmt: skip
    intents: dict[str, Json] = {
        "a number for the version": {"apiVersion": 3, "kind": "ConfigMap"}, "no version": {"kind": "ConfigMap"}, "another version": {"apiVersion": "v2", "kind": "ConfigMap"},
        "another kind": {"apiVersion": "v1", "kind": "Secret"},
    }  # fmt: skip
    apply = "?fieldManager=m"
    return [
        Step("POST", MAPS, _map("a"), name="made"),
        *(Step("PATCH", MAPS + "/a" + apply, {**_map("a"), "metadata": one}, APPLY, name=f"metadata: {name}") for name, one in metadata.items()),
        *(Step("PATCH", MAPS + "/a" + apply, {**one, "metadata": {"name": "a"}}, APPLY, name=f"intent: {name}") for name, one in intents.items()),
        Step("PATCH", MAPS + "/new" + apply, {**_map("a"), "metadata": "x"}, APPLY, name="a new one with a text for metadata"),
    ]  # fmt: skip


def _custom() -> list[Step]:
    group = "odd.example.com"
    path = f"/apis/{group}/v1/namespaces/${{namespace}}/foos"
    crd = definition("foos", "Foo", with_spec(a={"type": "string"}, b={"type": "string"}), group=group)

    def foo(name: str, **spec: Json) -> Json:
        return {"apiVersion": f"{group}/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec}

    patches: dict[str, Json] = {
        "another version": {"apiVersion": f"{group}/v2"}, "another kind": {"kind": "Bar"}, "no version": {"apiVersion": None}, "no metadata": {"metadata": None},
        "metadata as a text": {"metadata": "x"}, "another name": {"metadata": {"name": "b"}},
    }  # fmt: skip
    return [
        Step("POST", CRDS, crd, is_quiet=True),
        Step("GET", path, until=200, is_quiet=True),
        Step("POST", path, foo("large", a="x" * 1_600_000), name="too large to be stored", only=_STATUS),
        Step("POST", path, foo("g", a="x" * 1_400_000), name="nearly too large", only=("kind",)),
        Step("PATCH", path + "/g", {"spec": {"b": "y" * 200_000}}, MERGE, name="grown too large", only=_STATUS),
        Step("POST", path, foo("h", a="x" * 3_200_000), name="too large to be read", only=_STATUS),
        Step("POST", path, foo("f", a="x"), name="made"),
        *(Step("PATCH", path + "/f", patch, MERGE, name=name, only=_STATUS) for name, patch in patches.items()),
        Step("PATCH", path + "/f?fieldManager=m", {**foo("f"), "metadata": "x"}, APPLY, name="applied with a text for metadata"),
        Step("PATCH", path + "/f?fieldManager=m", {**foo("f"), "metadata": {"name": "f", "labels": 3}}, APPLY, name="applied with a number for labels"),
        Step("DELETE", f"{CRDS}/foos.{group}", is_quiet=True),
    ]  # fmt: skip


def _dots() -> list[Step]:
    paths = {
        "dots": "..",
        "encoded dots": "%2e%2e",
        "a dot": ".",
        "an encoded dot": "%2e",
        "a space": "a%20b",
        "capitals": "A_B",
    }
    return [
        *(Step("GET", f"/api/v1/namespaces/{path}/configmaps", name=f"list in {name}") for name, path in paths.items()),
        Step("GET", "/api/v1/namespaces/%2e%2e/configmaps/a", name="read in dots"),
        Step("POST", "/api/v1/namespaces/%2e%2e/configmaps", _map("a"), name="made in dots"),
        Step("POST", "/api/v1/namespaces/A_B/configmaps", _map("a"), name="made in capitals"),
        Step("GET", "/api/v1/namespaces/..", name="namespace of dots"),
        Step("PUT", MAPS + "/%2e%2e", _map(".."), name="dots put"),
        Step("DELETE", MAPS + "/%2e%2e", name="dots deleted"),
        Step("PATCH", MAPS + "/%2e%2e", {}, MERGE, name="dots patched"),
        Step("PATCH", MAPS + "/%2e%2e?fieldManager=m", _map(".."), APPLY, name="dots applied"),
    ]  # fmt: skip


def _future() -> list[Step]:
    initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    return [
        Step("POST", MAPS, _map("a"), name="made"),
        Step("GET", f"{MAPS}?{initial}&resourceVersion=99999999&allowWatchBookmarks=true&timeoutSeconds=1", name="initial events of the future, with bookmarks"),
        Step("GET", f"{MAPS}?{initial}&resourceVersion=99999999&timeoutSeconds=5", name="initial events of the future"),
        Step("GET", f"{MAPS}?watch=1&resourceVersion=99999999&timeoutSeconds=1", name="watched from the future"),
        Step("GET", f"{MAPS}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", name="list of the future"),
        Step("GET", f"{MAPS}/a?resourceVersion=99999999", name="read from the future"),
        Step("GET", f"{MAPS}?{initial}&allowWatchBookmarks=true&timeoutSeconds=1", name="initial events"),
        Step("GET", f"{MAPS}?{initial}&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1", name="initial events of any version"),
    ]  # fmt: skip


def _going() -> list[Step]:
    """How pods go, as a watch sees it."""

    def pod(name: str, *finalizers: str, node: str = "") -> Json:
        spec: Json = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
        return {"metadata": {"name": name, "finalizers": list(finalizers)}, "spec": spec}

    held = "example.com/x"
    return [
        Step("POST", _PODS, pod("p"), name="p"),
        Step("DELETE", _PODS + "/p?gracePeriodSeconds=0", name="p at once"),
        Step("POST", _PODS, pod("q"), name="q"),
        Step("DELETE", _PODS + "/q", name="q, nowhere"),
        Step("POST", _PODS, pod("r", node="n"), name="r"),
        Step("DELETE", _PODS + "/r", name="r"),
        Step("DELETE", _PODS + "/r?gracePeriodSeconds=5", name="r sooner"),
        Step("DELETE", _PODS + "/r?gracePeriodSeconds=0", name="r at once"),
        Step("POST", _PODS, pod("s", node="n"), name="s"),
        Step("DELETE", _PODS + "/s?gracePeriodSeconds=0", name="s at once"),
        Step("POST", _PODS, pod("t", held), name="t"),
        Step("DELETE", _PODS + "/t?gracePeriodSeconds=0", name="t, held"),
        Step("PATCH", _PODS + "/t", {"metadata": {"finalizers": None}}, MERGE, name="t let go"),
        Step("POST", _PODS, pod("u", held, node="n"), name="u"),
        Step("DELETE", _PODS + "/u", name="u, held"),
        Step("PATCH", _PODS + "/u", {"metadata": {"finalizers": None}}, MERGE, name="u let go"),
        Step("DELETE", _PODS + "/u?gracePeriodSeconds=0", name="u at once"),
        Step("POST", _PODS, pod("v"), name="v"),
        Step("DELETE", _PODS, name="all"),
        Step("POST", MAPS, {"metadata": {"name": "b", "finalizers": [held]}}, name="b"),
        Step("DELETE", MAPS + "/b", name="b, held"),
        Step("PATCH", MAPS + "/b", {"metadata": {"finalizers": None}}, MERGE, name="b let go"),
        Step(
            "GET",
            _PODS + "?watch=1&resourceVersion=${p.metadata.resourceVersion}",
            lines=24,
            name="pods watched",
        ),
        Step(
            "GET",
            MAPS + "?watch=1&resourceVersion=${b.metadata.resourceVersion}",
            lines=2,
            name="maps watched",
        ),
    ]


SCRIPTS = [
    Script("patches of what it is", _other_kinds()),
    Script("applies without a shape", _shapeless()),
    Script("odd custom objects", _custom()),
    Script("dots", _dots()),
    Script("the future", _future()),
    Script("pods going", _going()),
]
