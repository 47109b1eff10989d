"""Webhooks of admission: who is asked, what they are asked, and what becomes of their answers.

A configuration takes a moment until the real server goes by it.  So each has a webhook more, which refuses
what has the label ``probe``, and a script asks for that until it is refused.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.asking import APPLY, JSON_PATCH, MERGE, Json, Put, Script, Step
from tests.conformance.scripts.definitions import CRDS, definition
from tests.conformance.webhooks import METADATA, OPERATIONS

_ROOT = "/apis/admissionregistration.k8s.io/v1"
_CORE = "/api/v1/namespaces/${namespace}"
_MAPS = f"{_CORE}/configmaps"
_PODS = f"{_CORE}/pods"
_APPS = "/apis/apps/v1/namespaces/${namespace}"
_SCALING = "/namespaces/${namespace}/horizontalpodautoscalers"
_HERE = {"matchLabels": {"kubernetes.io/metadata.name": "${namespace}"}}


def _hook(name: str, path: str, rules: Json = None, **more: Any) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": "${hooks.url}" + path, "caBundle": "${hooks.ca}"},
        "rules": rules or [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": _HERE,
        **more,
    }


def _rule(groups: str, resources: str, operations: str = "*", versions: str = "*", **more: Json) -> Json:
    return {
        "apiGroups": groups.split(","),
        "apiVersions": versions.split(","),
        "operations": operations.split(","),
        "resources": resources.split(","),
        **more,
    }


def _probe(name: str) -> Json:
    only = {"matchLabels": {"probe": name}}
    return _hook("z-probe", "/deny", objectSelector=only)


def _configured(name: str, *hooks: Json, kind: str = "Validating", **more: Any) -> list[Step]:
    """A configuration, and the wait until it is gone by."""
    return [
        Step(
            "POST",
            f"{_ROOT}/{kind.lower()}webhookconfigurations",
            {"metadata": {"name": "${namespace}-" + name}, "webhooks": [*hooks, _probe(name)]},
            is_quiet=True,
            **more,
        ),
        Step(
            "POST",
            f"{_MAPS}?dryRun=All",
            {"metadata": {"name": "probe", "labels": {"probe": name}}},
            until=418,
            is_quiet=True,
        ),
    ]


def _gone(name: str, kind: str = "Validating") -> list[Step]:
    """Taken away again, and no longer gone by."""
    return [
        Step("DELETE", f"{_ROOT}/{kind.lower()}webhookconfigurations/${{namespace}}-{name}", is_quiet=True),
        Step(
            "POST",
            f"{_MAPS}?dryRun=All",
            {"metadata": {"name": "probe", "labels": {"probe": name}}},
            until=201,
            is_quiet=True,
        ),
    ]


def _map(name: str, **more: Json) -> Json:
    return {"metadata": {"name": name, **more.pop("metadata", {})}, **more}


def _answers() -> list[Step]:
    """Everything that a webhook may say, in a row."""
    steps: list[Step] = []
    paths = [
        "/deny",
        "/deny/reason",
        "/deny/plain",
        "/deny/success",
        "/deny/warning",
        "/audit",
        "/error",
        "/error/json",
        "/error/status",
        "/missing",
        "/teapot",
        "/unavailable",
        "/empty",
        "/garbage",
        "/null",
        "/list",
        "/nothing",
        "/bad/kind",
        "/bad/version",
        "/bad/uid",
        "/bad/response",
        "/bad/types",
        "/patch/data",
        "/bad/patch/untyped",
        "/bad/patch/unpatched",
    ]
    hooks = [
        _hook(f"h{place}", path, objectSelector={"matchLabels": {"at": f"h{place}"}})
        for place, path in enumerate(paths)
    ]
    steps += _configured("answers", *hooks)
    for place, path in enumerate(paths):
        body = _map(f"of-{place}", metadata={"labels": {"at": f"h{place}"}})
        steps.append(Step("POST", _MAPS, body, name=path))
    return [*steps, *_gone("answers")]


_BAD_TYPES = [
    "/bad/types/code",
    "/bad/types/code/large",
    "/bad/types/code/broken",
    "/bad/types/message",
    "/bad/types/reason",
    "/bad/types/status",
    "/bad/types/status/status",
    "/bad/types/details",
    "/bad/types/details/name",
    "/bad/types/details/retry",
    "/bad/types/causes",
    "/bad/types/cause",
    "/bad/types/cause/field",
    "/bad/types/metadata",
    "/bad/types/metadata/continue",
    "/bad/types/warnings",
    "/bad/types/warning",
    "/bad/types/warning/null",
    "/bad/types/warning/control",
    "/bad/types/audit",
    "/bad/types/patch",
    "/bad/types/patch/type",
    "/bad/types/uid",
    "/bad/types/request",
]
_BAD_IN_OTHER_WAYS = [
    "/deny/unknown",
    "/deny/code",
    "/deny/status",
    "/error/long",
    "/error/long/forbidden",
    "/error/long/status",
]


def _mistyped() -> list[Step]:
    """Answers of the wrong types, and too long ones: refused, or ignored as all failures are."""
    paths = [*_BAD_TYPES, *_BAD_IN_OTHER_WAYS]
    steps: list[Step] = []
    for policy in ("Fail", "Ignore"):
        hooks = [
            _hook(name, path, objectSelector={"matchLabels": {"at": name}}, failurePolicy=policy)
            for name, path in ((f"h{place}", path) for place, path in enumerate(paths))
        ]
        steps += _configured(policy.lower(), *hooks, kind="Mutating")
        for place, path in enumerate(paths):
            body = _map(f"{policy.lower()}-{place}", metadata={"labels": {"at": f"h{place}"}})
            steps.append(Step("POST", _MAPS, body, name=f"{policy}: {path}"))
        steps += _gone(policy.lower(), "Mutating")
    return steps


def _ignored() -> list[Step]:
    """The same failures, where they are to be ignored; a refusal is none."""
    paths = ["/error", "/garbage", "/bad/uid", "/missing", "/deny", "/slow"]
    hooks = [
        _hook(
            f"h{place}",
            path,
            objectSelector={"matchLabels": {"at": f"h{place}"}},
            failurePolicy="Ignore",
            timeoutSeconds=1,
        )
        for place, path in enumerate(paths)
    ]
    steps = _configured("ignored", *hooks)
    for place, path in enumerate(paths):
        body = _map(f"of-{place}", metadata={"labels": {"at": f"h{place}"}})
        steps.append(Step("POST", _MAPS, body, name=path))
    return [*steps, *_gone("ignored")]


def _unreachable() -> list[Step]:
    """Webhooks that cannot be asked."""
    clients: dict[str, Json] = {
        "closed": {"url": "https://127.0.0.1:1/x", "caBundle": "${hooks.ca}"},
        "untrusted": {"url": "${hooks.url}/allow", "caBundle": "${hooks.other_ca}"},
        "other-name": {"url": "https://localhost:1/x", "caBundle": "${hooks.ca}"},
        "service": {"service": {"name": "absent", "namespace": "${namespace}"}, "caBundle": "${hooks.ca}"},
        "service-at": {
            "service": {"name": "absent", "namespace": "${namespace}", "path": "/a/b", "port": 8443},
            "caBundle": "${hooks.ca}",
        },
    }
    hooks = [
        {**_hook(name, "", objectSelector={"matchLabels": {"at": name}}), "clientConfig": client}
        for name, client in clients.items()
    ]
    slow = _hook("slow", "/slow", objectSelector={"matchLabels": {"at": "slow"}}, timeoutSeconds=1)
    steps = _configured("unreachable", *hooks, slow)
    for name in [*(one for one in clients if one != "other-name"), "slow"]:
        steps.append(Step("POST", _MAPS, _map(name, metadata={"labels": {"at": name}}), name=name))
    return [*steps, *_gone("unreachable")]


def _asked() -> list[Step]:
    """What a webhook is asked about each kind of request."""
    made = _map("one", data={"a": "b"})
    return [
        *_configured("asked", _hook("asked", "/allow")),
        Step("POST", f"{_MAPS}?fieldManager=me&fieldValidation=Strict", made, name="made"),
        Step("ASKED", "/allow", name="a create"),
        Step("PUT", f"{_MAPS}/one", Put("made", {"data": {"a": "c"}}), name="put"),
        Step("ASKED", "/allow", name="an update"),
        Step("PUT", f"{_MAPS}/one", {**made, "data": {"x": "y"}}, name="put without metadata"),
        Step("ASKED", "/allow", name="an update without metadata"),
        Step("PATCH", f"{_MAPS}/one?fieldManager=me", {"data": {"a": "d"}}, MERGE, name="patched"),
        Step("ASKED", "/allow", name="a patch"),
        Step("PATCH", f"{_MAPS}/one", {"data": {"a": "d"}}, MERGE, name="patched to the same"),
        Step("ASKED", "/allow", name="a patch to the same"),
        Step(
            "PATCH",
            f"{_MAPS}/two?fieldManager=me&force=true",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "b"}},
            APPLY,
            name="applied",
        ),
        Step("ASKED", "/allow", name="an apply of what is not there"),
        Step(
            "PATCH",
            f"{_MAPS}/two?fieldManager=me&force=true",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "c"}},
            APPLY,
            name="applied again",
        ),
        Step("ASKED", "/allow", name="an apply"),
        Step("POST", f"{_MAPS}?dryRun=All", {"metadata": {"generateName": "g-"}}, name="dry"),
        Step("ASKED", "/allow", name="a dry run"),
        Step("POST", _MAPS, {"metadata": {"generateName": "g-"}}, name="generated"),
        Step("ASKED", "/allow", name="a generated name"),
        Step("DELETE", f"{_MAPS}/two?propagationPolicy=Background&gracePeriodSeconds=5"),
        Step("ASKED", "/allow", name="a deletion"),
        Step("DELETE", f"{_MAPS}/absent"),
        Step("ASKED", "/allow", name="a deletion of nothing"),
        Step(
            "DELETE",
            f"{_MAPS}/one?dryRun=All",
            {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]},
            name="dry deletion",
        ),
        Step("ASKED", "/allow", name="a dry deletion"),
        Step("DELETE", f"{_MAPS}?labelSelector=none%3Dsuch", name="none of many"),
        Step("DELETE", f"{_MAPS}?fieldSelector=metadata.name%3Done", name="one of many", only=("kind",)),
        Step("ASKED", "/allow", name="a deletion of many"),
        Step("GET", _MAPS, name="a read", only=("kind",)),
        Step("ASKED", "/allow", name="nothing about a read"),
        *_gone("asked"),
    ]


def _kinds() -> list[Step]:
    """Objects of other kinds, and what lies below them."""
    pod = {"containers": [{"name": "a", "image": "b"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    rules = [
        _rule("", "pods,pods/*,services,namespaces"),
        _rule("apps", "deployments,deployments/*"),
    ]
    finalized = _map("going", metadata={"finalizers": ["example.com/held"]})
    return [
        *_configured("kinds", _hook("kinds", "/allow", rules), _hook("maps", "/allow/again")),
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": pod, "status": {"phase": "Odd"}}, name="pod"),
        Step("ASKED", "/allow", name="a pod"),
        Step("PATCH", f"{_PODS}/p/status", {"status": {"phase": "Running"}}, MERGE, name="its status"),
        Step("ASKED", "/allow", name="a status"),
        Step(
            "POST",
            f"{_PODS}/p/binding",
            {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
            name="bound",
        ),
        Step("ASKED", "/allow", name="a binding"),
        Step("DELETE", f"{_PODS}/p?gracePeriodSeconds=30", name="pod deleted"),
        Step("ASKED", "/allow", name="the deletion of a pod"),
        Step(
            "POST",
            f"{_APPS}/deployments",
            {
                "metadata": {"name": "d"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
            },
            name="deployment",
        ),
        Step("ASKED", "/allow", name="a deployment"),
        Step("PATCH", f"{_APPS}/deployments/d/scale", {"spec": {"replicas": 2}}, MERGE, name="scaled"),
        Step("ASKED", "/allow", name="a scale"),
        Step("POST", f"{_CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        Step("ASKED", "/allow", name="a service"),
        Step("POST", _MAPS, finalized, name="held"),
        Step("DELETE", f"{_MAPS}/going", name="held deleted"),
        Step("DELETE", f"{_MAPS}/going", name="held deleted again"),
        Step("PATCH", f"{_MAPS}/going", {"metadata": {"finalizers": None}}, MERGE, name="let go"),
        Step("ASKED", "/allow/again", name="of what is held"),
        *_gone("kinds"),
    ]


def _pods_deleted() -> list[Step]:
    """Who judges the deletion of a pod is told how long it is given."""
    pod = {"containers": [{"name": "a", "image": "b"}]}
    rules = [_rule("", "pods", "DELETE")]

    def asked(name: str) -> list[Step]:
        return [Step("ASKED", path, name=f"{name}: {path}") for path in ("/allow", "/allow/again")]

    return [
        *_configured("first", _hook("first", "/allow", rules), kind="Mutating"),
        *_configured("last", _hook("last", "/allow/again", rules)),
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": pod}, is_quiet=True),
        Step("DELETE", f"{_PODS}/p?dryRun=All", name="dry", only=("kind",)),
        *asked("dry"),
        Step("POST", _PODS, {"metadata": {"name": "q"}, "spec": {**pod, "nodeName": "n"}}, is_quiet=True),
        Step("DELETE", f"{_PODS}/q", name="bound", only=("kind",)),
        *asked("bound"),
        # How often the real server asks about a pod that goes at once depends on what its own cache has seen.
        Step("DELETE", f"{_PODS}/p", name="unbound", only=("kind",)),
        *_gone("first", kind="Mutating"),
        *_gone("last"),
    ]


def _scales() -> list[Step]:
    """Who may change a scale sees who owns its replicas."""
    group = "scaled.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    crd = definition("things", "Thing", schema, group=group, subresources={"status": {}, "scale": scale})
    path = f"/apis/{group}/v1/namespaces/${{namespace}}/things"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}}
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    deployments, deployment = f"{_APPS}/deployments", {"metadata": {"name": "d"}, "spec": spec}
    rules = [_rule(group, "things/scale"), _rule("apps", "deployments/scale")]
    return [
        Step("POST", CRDS, crd, is_quiet=True),
        Step("GET", path, until=200, is_quiet=True),
        Step("POST", f"{path}?fieldManager=maker", thing, is_quiet=True),
        Step("POST", deployments, deployment, is_quiet=True),
        *_configured("first", _hook("first", "/allow", rules), kind="Mutating"),
        *_configured("last", _hook("last", "/allow/again", rules)),
        Step("PATCH", f"{path}/a/scale", {"spec": {"replicas": 3}}, MERGE, name="scaled", only=("spec",)),
        Step("ASKED", "/allow", name="those who change it"),
        Step("ASKED", "/allow/again", name="those who judge it"),
        Step(
            "PATCH",
            f"{deployments}/d/scale",
            {"spec": {"replicas": 3}},
            MERGE,
            name="a deployment scaled",
            only=("spec",),
        ),
        Step("ASKED", "/allow", name="those who change a deployment's"),
        Step("ASKED", "/allow/again", name="those who judge a deployment's"),
        *_gone("first", kind="Mutating"),
        *_gone("last"),
        Step("DELETE", f"{CRDS}/things.{group}", is_quiet=True),
    ]


def _mutating() -> list[Step]:
    """What webhooks leave of an object."""
    paths = [
        "/patch/none",
        "/patch/data",
        "/patch/unknown",
        "/patch/labels",
        "/patch/invalid",
        "/bad/patch",
        "/bad/patch/path",
        "/bad/patch/test",
        "/bad/patch/op",
        "/bad/patch/type",
        "/bad/patch/kind",
        "/bad/patch/untyped",
        "/bad/patch/unpatched",
        "/bad/patch/nameless",
        "/deny",
        "/audit",
    ]
    hooks = [
        _hook(f"h{place}", path, objectSelector={"matchLabels": {"at": f"h{place}"}})
        for place, path in enumerate(paths)
    ]
    steps = _configured("mutating", *hooks, kind="Mutating")
    for place, path in enumerate(paths):
        body = _map(f"of-{place}", metadata={"labels": {"at": f"h{place}"}})
        steps.append(Step("POST", f"{_MAPS}?fieldManager=me", body, name=path))
    labelled = _map("of-1", metadata={"labels": {"at": "h1"}})
    steps += [
        Step("PUT", f"{_MAPS}/of-1", {**labelled, "data": {"a": "b"}}, name="put"),
        Step("PATCH", f"{_MAPS}/of-1", {"data": {"a": "b"}}, MERGE, name="merged"),
        Step(
            "PATCH",
            f"{_MAPS}/of-1",
            [{"op": "add", "path": "/data/c", "value": "d"}],
            JSON_PATCH,
            name="added",
        ),
        Step(
            "PATCH",
            f"{_MAPS}/applied?fieldManager=me",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "applied", "labels": {"at": "h1"}},
                "data": {"a": "b"},
            },
            APPLY,
            name="applied",
        ),
        Step("DELETE", f"{_MAPS}/of-1", name="deleted with a patch"),
        Step("POST", f"{_MAPS}?dryRun=All", _map("dry", metadata={"labels": {"at": "h1"}}), name="dry"),
    ]
    return [*steps, *_gone("mutating", "Mutating")]


def _rounds() -> list[Step]:
    """Which webhooks are asked again when a later one changed something."""
    pod = {"containers": [{"name": "a", "image": "b"}]}
    hooks = [
        _hook("a-again", "/patch/count", reinvocationPolicy="IfNeeded"),
        _hook("b-once", "/allow"),
        _hook("c-changes", "/patch/data"),
        _hook("d-again", "/allow/again", reinvocationPolicy="IfNeeded"),
    ]
    return [
        *_configured("rounds", *hooks, kind="Mutating"),
        Step("POST", _MAPS, _map("one"), name="made"),
        Step("ASKED", "/patch/count", name="asked again"),
        Step("ASKED", "/allow", name="asked once"),
        Step("ASKED", "/allow/again", name="asked last"),
        *_gone("rounds", "Mutating"),
        *_configured("pods", _hook("pods", "/patch/pod", [_rule("", "pods")]), kind="Mutating"),
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": pod}, name="pod"),
        Step("ASKED", "/patch/pod", name="of the pod"),
        *_gone("pods", "Mutating"),
    ]


def _refilled() -> list[Step]:
    """The built-in rules go by what webhooks leave; and the order in which they refuse."""
    spec = {"containers": [{"name": "a", "image": "b"}]}
    paths = [
        "/patch/priority/absent",
        "/patch/priority/system",
        "/patch/priority/whole",
        "/patch/runtime/absent",
        "/patch/tolerations",
    ]
    hooks = [
        _hook(f"h{place}", path, [_rule("", "pods")], objectSelector={"matchLabels": {"at": f"h{place}"}})
        for place, path in enumerate(paths)
    ]
    claims = f"{_CORE}/persistentvolumeclaims"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claimed = [_rule("", "persistentvolumeclaims")]
    steps = [
        *_configured("filled", *hooks, _hook("claims", "/patch/finalizers", claimed), kind="Mutating"),
        *(
            Step(
                "POST",
                _PODS,
                {"metadata": {"name": f"of-{place}", "labels": {"at": f"h{place}"}}, "spec": spec},
                name=path,
            )
            for place, path in enumerate(paths)
        ),
        Step("POST", claims, {"metadata": {"name": "c"}, "spec": claim}, name="a claim"),
        *_gone("filled", "Mutating"),
    ]
    absent = {"runtimeClassName": "absent", "priorityClassName": "absent", "serviceAccountName": "absent"}
    for names in (("runtimeClassName", "priorityClassName"), ("priorityClassName", "serviceAccountName")):
        wrong = {name: absent[name] for name in names}
        body = {"metadata": {"name": "wrong"}, "spec": {**spec, **wrong}}
        steps.append(Step("POST", _PODS, body, name=" and ".join(names)))
    return steps


def _matching() -> list[Step]:
    """Rules, scopes, policies and selectors."""
    hooks = [
        _hook("a", "/deny/other", [_rule("*", "secrets", "CREATE", scope="Cluster")]),
        _hook("b", "/deny/other", [_rule("*", "secrets", "CREATE,DELETE", scope="Namespaced")]),
        _hook("c", "/deny/other", [_rule("*", "*/status", "UPDATE")]),
        _hook("d", "/deny/other", [_rule("apps", "deployments/scale", "*")]),
        _hook(
            "e", "/deny/other", [_rule("", "*", "UPDATE")], objectSelector={"matchLabels": {"kept": "yes"}}
        ),
        _hook(
            "f",
            "/deny/other",
            [_rule("", "services", "*")],
            namespaceSelector={"matchExpressions": [{"key": "absent", "operator": "Exists"}]},
        ),
        _hook("g", "/deny/other", [_rule("extensions", "configmaps", "*")]),
        _hook("h", "/deny/other", [_rule("", "configmaps", "CREATE", versions="v2")]),
    ]
    pod = {"containers": [{"name": "a", "image": "b"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return [
        *_configured("matching", *hooks),
        Step("POST", _MAPS, _map("m", metadata={"labels": {"kept": "yes"}}), name="another operation"),
        Step("PATCH", f"{_MAPS}/m", {"data": {"a": "b"}}, MERGE, name="a kept one"),
        Step("PATCH", f"{_MAPS}/m", {"metadata": {"labels": None}}, MERGE, name="one that was kept"),
        Step("DELETE", f"{_MAPS}/m", name="deleted all the same"),
        Step("POST", f"{_CORE}/secrets", _map("s"), name="a secret"),
        Step("POST", f"{_CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": pod}, name="pod"),
        Step("PATCH", f"{_PODS}/p/status", {"status": {"phase": "Running"}}, MERGE, name="a status"),
        Step(
            "POST", f"{_APPS}/deployments", {"metadata": {"name": "d"}, "spec": deployment}, name="deployment"
        ),
        Step("PATCH", f"{_APPS}/deployments/d/scale", {"spec": {"replicas": 2}}, MERGE, name="a scale"),
        Step("PATCH", f"{_APPS}/deployments/d", {"spec": {"replicas": 2}}, MERGE, name="not a scale"),
        *_gone("matching"),
    ]


def _versions() -> list[Step]:
    """One object in two versions."""
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    target = {"scaleTargetRef": scaled, "maxReplicas": 3}
    rules = [_rule("autoscaling", "horizontalpodautoscalers", "CREATE,UPDATE", versions="v1")]
    return [
        *_configured(
            "versions",
            _hook("equivalent", "/allow", rules),
            _hook("exact", "/deny/other", rules, matchPolicy="Exact"),
        ),
        Step(
            "POST", f"/apis/autoscaling/v2{_SCALING}", {"metadata": {"name": "h"}, "spec": target}, name="v2"
        ),
        Step("ASKED", "/allow", name="about v2"),
        Step(
            "POST", f"/apis/autoscaling/v1{_SCALING}", {"metadata": {"name": "i"}, "spec": target}, name="v1"
        ),
        *_gone("versions"),
    ]


def _conditions() -> list[Step]:
    """Match conditions."""

    def when(*expressions: str) -> Json:
        return [{"name": f"c{place}", "expression": one} for place, one in enumerate(expressions)]

    hooks = {
        "plain": when("object.metadata.name == 'plain'"),
        "both": when("object.metadata.name == 'both'", "request.operation == 'CREATE'"),
        "user": when("request.name == 'user' && request.userInfo.username == 'admin'"),
        "broken": when("object.metadata.name == 'broken'", "object.metadata.labels.x.y == 'z'"),
        "ignored": when("object.metadata.name == 'ignored'", "object.metadata.labels.x.y == 'z'"),
        "kind": when(
            "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' "
            "&& request.name == 'kind' && request.namespace == '${namespace}' && !request.dryRun"
        ),
        "old": when("oldObject != null && oldObject.metadata.name == 'old'"),
    }
    made = [
        _hook(
            name,
            "/deny/other",
            matchConditions=found,
            **({"failurePolicy": "Ignore"} if name == "ignored" else {}),
        )
        for name, found in hooks.items()
    ]
    steps = _configured("conditions", *made)
    for name in hooks:
        steps.append(Step("POST", _MAPS, _map(name), name=name))
    steps.append(Step("PATCH", f"{_MAPS}/old", {"data": {"a": "b"}}, MERGE, name="old, changed"))
    path = f"{_ROOT}/validatingwebhookconfigurations?dryRun=All"
    for name, expression in (
        ("bad syntax", "object."),
        ("unknown name", "objekt.metadata.name == 'a'"),
        ("unknown field", "request.nme == 'a'"),
        ("not a bool", "request.name"),
        ("a wrong type", "request.name == 1"),
        ("parameters", "params.x == 1"),
    ):
        body = {
            "metadata": {"name": "x"},
            "webhooks": [_hook("x", "/deny", matchConditions=when(expression))],
        }
        steps.append(Step("POST", path, body, name=name))
    return [*steps, *_gone("conditions")]


def _parts() -> list[Step]:
    """Webhooks that change what is not the resource's own kind."""
    spec = {"containers": [{"name": "a", "image": "b"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    scale, token = [_rule("apps", "deployments/scale")], [_rule("", "serviceaccounts/token")]

    def when(name: str) -> Json:
        return [{"name": "named", "expression": f"request.name == '{name}'"}]

    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}}
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    scaled = {"spec": {"replicas": 2}}
    names = {
        "replaced": "/patch/replicas",
        "mistyped": "/patch/replicas/text",
        "negative": "/patch/replicas/negative",
    }
    accounts = {"other": "/patch/audiences", "bare": "/patch/spec"}
    hooks = [
        _hook("bound", "/patch/target", [_rule("", "pods/binding")]),
        *(_hook(name, path, scale, matchConditions=when(name)) for name, path in names.items()),
        *(_hook(name, path, token, matchConditions=when(name)) for name, path in accounts.items()),
    ]
    return [
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": spec}, is_quiet=True),
        *(
            Step(
                "POST",
                f"{_APPS}/deployments",
                {"metadata": {"name": name}, "spec": deployment},
                is_quiet=True,
            )
            for name in names
        ),
        *(Step("POST", f"{_CORE}/serviceaccounts", _map(name), is_quiet=True) for name in accounts),
        *_configured("parts", *hooks, kind="Mutating"),
        Step("POST", f"{_PODS}/p/binding", binding, name="bound"),
        Step("GET", f"{_PODS}/p", name="where it is", shape=lambda pod: pod["spec"].get("nodeName")),
        *(Step("PATCH", f"{_APPS}/deployments/{name}/scale", scaled, MERGE, name=name) for name in names),
        *(
            Step(
                "POST",
                f"{_CORE}/serviceaccounts/{name}/token",
                asked,
                name=name,
                shape=lambda token: token.get("spec") or token,
            )
            for name in accounts
        ),
        *_gone("parts", "Mutating"),
    ]


def _questions() -> list[Step]:
    """What stores nothing is admitted all the same: tokens, and reviews."""
    rules = [
        _rule("", "serviceaccounts/token"),
        _rule("authentication.k8s.io", "*", scope="*"),
        _rule("authorization.k8s.io", "*", scope="*"),
    ]
    accounts = f"{_CORE}/serviceaccounts"
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}}
    may = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "${namespace}"}}}
    reviews = "/apis/authorization.k8s.io/v1"
    asking = [
        ("token", f"{accounts}/robot/token", token),
        ("self review", f"{reviews}/selfsubjectaccessreviews", may),
        ("rules review", f"{reviews}/selfsubjectrulesreviews", {"spec": {"namespace": "${namespace}"}}),
        (
            "local review",
            f"{reviews}/namespaces/${{namespace}}/localsubjectaccessreviews",
            {"metadata": {"namespace": "${namespace}"}, "spec": {**may["spec"], "user": "u"}},
        ),
        ("subject review", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
        ("token review", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
    ]
    # Those that are in no namespace are asked about whatever selector of namespaces there is.
    only = {"matchConditions": [{"name": "me", "expression": "request.userInfo.username == 'admin'"}]}
    return [
        Step("POST", accounts, {"metadata": {"name": "robot"}}, is_quiet=True),
        *_configured("questions", _hook("questions", "/deny/other", rules, **only)),
        *(Step("POST", path, body, name=name) for name, path, body in asking),
        *_gone("questions"),
        *_configured("heard", _hook("heard", "/allow", [rules[0]])),
        Step("POST", f"{accounts}/robot/token", token, name="token allowed", only=("kind", "spec")),
        Step("ASKED", "/allow", name="about a token"),
        *_gone("heard"),
    ]


_CONNECTED = "pods/exec,pods/attach,pods/portforward,pods/proxy,services/proxy"
_POD = {"containers": [{"name": "a", "image": "b"}]}


def _connecting() -> list[Step]:
    """What a webhook is asked about connections, and what is said where there is nobody to connect to."""
    two = {"containers": [{"name": "a", "image": "b"}, {"name": "c", "image": "d"}]}
    placed = {**_POD, "nodeName": "absent-node"}
    asking = [
        ("exec", "POST", f"{_PODS}/p/exec?command=ls&command=-l&stdin=1&container=a"),
        ("exec by get", "GET", f"{_PODS}/p/exec?command=ls&stdout=true&stderr=0&tty=false"),
        ("exec of nothing", "POST", f"{_PODS}/p/exec"),
        ("exec in no pod", "POST", f"{_PODS}/absent/exec?command=ls"),
        ("exec in another container", "POST", f"{_PODS}/p/exec?command=ls&container=z"),
        ("exec in one of two", "POST", f"{_PODS}/two/exec?command=ls"),
        ("exec on no node", "POST", f"{_PODS}/placed/exec?command=ls"),
        ("exec dry", "POST", f"{_PODS}/p/exec?command=ls&dryRun=All"),
        ("exec by put", "PUT", f"{_PODS}/p/exec?command=ls"),
        ("attach", "POST", f"{_PODS}/p/attach"),
        ("attach to all", "GET", f"{_PODS}/p/attach?stdin=true&stdout=true&stderr=true&tty=true&container=a"),
        ("portforward", "POST", f"{_PODS}/p/portforward?ports=80&ports=81,82"),
        ("portforward without", "GET", f"{_PODS}/p/portforward"),
        ("portforward of no port", "GET", f"{_PODS}/p/portforward?ports=x"),
        ("portforward too far", "GET", f"{_PODS}/p/portforward?ports=70000"),
        ("portforward from no pod", "GET", f"{_PODS}/absent/portforward?ports=80"),
        ("proxy", "GET", f"{_PODS}/p/proxy"),
        ("proxy of all", "GET", f"{_PODS}/p/proxy/"),
        ("proxy below", "PUT", f"{_PODS}/p/proxy/a/b?x=y"),
        ("proxy of a port", "DELETE", f"{_PODS}/http:p:80/proxy/a/"),
        ("proxy of no pod", "GET", f"{_PODS}/absent/proxy/a"),
        ("proxy of what is none", "GET", f"{_PODS}/a:b:c:d/proxy/a"),
        ("proxy of a service", "POST", f"{_CORE}/services/s/proxy/x"),
        ("proxy of no service", "GET", f"{_CORE}/services/absent/proxy/x"),
        ("proxy of no node", "GET", "/api/v1/nodes/absent-node/proxy/x"),
        ("exec too deep", "POST", f"{_PODS}/p/exec/more"),
    ]
    steps = [
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": _POD}, is_quiet=True),
        Step("POST", _PODS, {"metadata": {"name": "two"}, "spec": two}, is_quiet=True),
        Step("POST", _PODS, {"metadata": {"name": "placed"}, "spec": placed}, is_quiet=True),
        Step(
            "POST",
            f"{_CORE}/services",
            {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}},
            is_quiet=True,
        ),
        *_configured(
            "connections",
            _hook("connections", "/allow", [_rule("", _CONNECTED, "CONNECT")]),
            _hook("never", "/deny", [_rule("", _CONNECTED, "CREATE,UPDATE,DELETE")]),
            _hook(
                "unselected",
                "/deny",
                [_rule("", _CONNECTED, "CONNECT")],
                objectSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
            ),
        ),
    ]
    for name, method, path in asking:
        steps += [Step(method, path, name=name), Step("ASKED", "/allow", name=f"about {name}")]
    return [*steps, *_gone("connections")]


_WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


def _reaching() -> list[Step]:
    """Connections to a node that is there, where nobody listens; and by who may not create any."""
    node = {"metadata": {"name": "reached"}, "spec": {"taints": []}}
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
    }
    upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    looker = {"Impersonate-User": "looker-of-connections"}
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}"
    rule = {"apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/proxy"], "verbs": ["get"]}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker-of-connections"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looks"}
    ways = ("exec?command=ls", "attach", "portforward?ports=1")
    return [
        Step("POST", "/api/v1/nodes", node, is_quiet=True),
        Step("PATCH", "/api/v1/nodes/reached/status", {"status": status}, MERGE, is_quiet=True),
        Step(
            "POST",
            _PODS,
            {"metadata": {"name": "p"}, "spec": {**_POD, "nodeName": "reached"}},
            is_quiet=True,
        ),
        Step("POST", f"{_CORE}/services", _map("s", spec={"ports": [{"port": 80}]}), is_quiet=True),
        *(Step("POST", f"{_PODS}/p/{way}", name=f"{way} without an upgrade") for way in ways),
        *(Step("POST", f"{_PODS}/p/{way}", headers=upgrade, name=f"{way} with an upgrade") for way in ways),
        *(
            Step("GET", f"{_PODS}/p/{way}", headers=_WEBSOCKET, name=f"{way} by WebSocket", lines=1)
            for way in ("exec?command=ls&stdout=1", "attach?stdout=1")
        ),
        Step("GET", f"{_CORE}/services/s:80/proxy/", name="a port of a service"),
        Step("GET", f"{_CORE}/services/s:81/proxy/", name="another port"),
        Step("GET", f"{_CORE}/services/absent:80/proxy/", name="a port of no service"),
        Step("POST", f"{rbac}/roles", {"metadata": {"name": "looks"}, "rules": [rule]}, is_quiet=True),
        Step(
            "POST",
            f"{rbac}/rolebindings",
            {"metadata": {"name": "looks"}, "roleRef": role, "subjects": [subject]},
            is_quiet=True,
        ),
        Step("GET", f"{_PODS}/p/proxy", headers=looker, until=400, name="a proxy got"),
        Step("GET", f"{_PODS}/p/exec?command=ls", headers=looker, name="exec got"),
        Step("GET", f"{_PODS}/absent/attach", headers=looker, name="attach got"),
        Step("POST", f"{_PODS}/p/exec?command=ls", headers=looker, name="exec created"),
        Step("DELETE", f"{_PODS}/p?gracePeriodSeconds=0", is_quiet=True),
        Step("DELETE", "/api/v1/nodes/reached", is_quiet=True),
    ]


def _unconnected() -> list[Step]:
    """Connections that are refused, and changed."""
    exec_, attach, forward = (
        [_rule("", f"pods/{one}", "CONNECT")] for one in ("exec", "attach", "portforward")
    )
    removing = [{"name": "removing", "expression": "object.command.exists(one, one == 'rm')"}]
    path = f"{_PODS}/p"
    return [
        Step("POST", _PODS, {"metadata": {"name": "p"}, "spec": _POD}, is_quiet=True),
        *_configured(
            "refusing",
            _hook("exec", "/deny", exec_, matchConditions=removing),
            _hook("attach", "/deny/other", attach),
            _hook("forward", "/audit", forward),
        ),
        Step("POST", f"{path}/exec?command=rm&command=-r", name="exec refused"),
        Step("POST", f"{path}/exec?command=ls", name="exec let go"),
        Step("GET", f"{path}/attach", name="attach refused"),
        Step("GET", f"{path}/portforward?ports=1", name="forward warned of"),
        *_gone("refusing"),
        *_configured("seen", _hook("seen", "/allow/again", exec_)),
        *_configured(
            "changing",
            _hook("exec", "/patch/container", exec_),
            _hook("attach", "/patch/unknown", attach),
            _hook("forward", "/patch/ports/text", forward),
            kind="Mutating",
        ),
        Step("POST", f"{path}/exec?command=ls", name="exec changed"),
        Step("ASKED", "/allow/again", name="what was changed"),
        Step("POST", f"{path}/attach", name="attach changed in vain"),
        Step("POST", f"{path}/portforward?ports=1", name="forward changed badly"),
        *_gone("changing", "Mutating"),
        *_gone("seen"),
    ]


_THINGS = "/apis/hooked.example.com/v1/namespaces/${namespace}/things"
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_THINGS_SERVED = [
    Step(
        "POST",
        CRDS,
        definition(
            "things", "Thing", {"type": "object", "properties": {"data": _TEXTS}}, group="hooked.example.com"
        ),
        until=201,  # the last script's may still be going
        is_quiet=True,
    ),
    Step("GET", _THINGS, until=200, is_quiet=True),
]
_THINGS_GONE = Step("DELETE", f"{CRDS}/things.hooked.example.com", is_quiet=True)
# What Go reads somehow where it has no type, and ours does not: refused, as of a built-in kind.
_UNTYPED = {
    *("/metadata/null", "/metadata/text", "/metadata/number-name", "/metadata/bad-creation"),
    *("/metadata/bad-generation", "/metadata/text-owners", "/metadata/number-label", "/operations/no-value"),
}


def _changing_metadata() -> list[Step]:
    """What becomes of an object when a webhook changes what it is, and what the server keeps of it."""
    names = {f"h{place}": f"/metadata/{name}" for place, name in enumerate(METADATA)}
    names |= {f"o{place}": f"/operations/{name}" for place, name in enumerate(OPERATIONS)}
    rules = [_rule("", "configmaps", "CREATE,UPDATE"), _rule("hooked.example.com", "things", "CREATE")]
    hooks = [
        _hook(name, path, rules, objectSelector={"matchLabels": {"at": name}}) for name, path in names.items()
    ]
    steps = [
        *_THINGS_SERVED,
        *(Step("POST", _MAPS, _map(f"old-{name}"), is_quiet=True) for name in names),
        *_configured("metadata", *hooks, kind="Mutating"),
    ]
    for name, path in names.items():
        labelled = {"labels": {"at": name}, "annotations": {"a": "b"}}
        new, old = (_map(f"{age}-{name}", metadata=labelled) for age in ("new", "old"))
        thing = {"apiVersion": "hooked.example.com/v1", "kind": "Thing", **new}
        steps += [
            Step("POST", _MAPS, new, name=f"{path} of a new one"),
            Step("PUT", f"{_MAPS}/old-{name}", old, name=f"{path} of an old one"),
            *([] if path in _UNTYPED else [Step("POST", _THINGS, thing, name=f"{path} of a custom one")]),
        ]
    return [*steps, *_gone("metadata", "Mutating"), _THINGS_GONE]


def _changing_versions() -> list[Step]:
    """A version that a webhook gives or takes away, of an object of a kind that needs one, and of another."""
    names = ("version", "zero-version", "no-version", "bad-version")
    rules = [
        _rule(group, plural, "*") for group, plural in (("", "configmaps"), ("hooked.example.com", "things"))
    ]
    hooks = [
        _hook(name, f"/metadata/{name}", rules, objectSelector={"matchLabels": {"at": name}})
        for name in names
    ]
    kinds = {_MAPS: {}, _THINGS: {"apiVersion": "hooked.example.com/v1", "kind": "Thing"}}
    steps = [
        *_THINGS_SERVED,
        *(
            Step("POST", path, _map(name, **kind), until=201, is_quiet=True)
            for path, kind in kinds.items()
            for name in names
        ),
        *_configured("versions", *hooks, kind="Mutating"),
    ]
    for path, kind in kinds.items():
        for name in names:

            def labelled(number: int, at: str = name, **metadata: Json) -> Json:
                return {"labels": {"at": at}, "annotations": {"number": str(number)}, **metadata}

            new = _map(f"new-{name}", metadata=labelled(0), **kind)
            put = _map(name, metadata=labelled(1), **kind)
            stale = _map(name, metadata=labelled(3, resourceVersion="1"), **kind)
            zero = _map(name, metadata={"annotations": {"number": "4"}, "resourceVersion": "0"}, **kind)
            none = {"metadata": {"annotations": {"number": "5"}, "resourceVersion": None}}
            told = f"{name} of a {kind.get('kind', 'ConfigMap')}"
            steps += [
                Step("POST", f"{path}?dryRun=All", new, name=f"{told}, tried"),
                Step("POST", path, new, name=f"{told}, made"),
                Step("PUT", f"{path}/{name}", put, name=f"{told}, put"),
                Step("PATCH", f"{path}/{name}", {"metadata": labelled(2)}, MERGE, name=f"{told}, patched"),
                Step("PUT", f"{path}/{name}", stale, name=f"{told}, put though another was seen"),
                Step("PUT", f"{path}/{name}", zero, name=f"{told}, put by who asks for none"),
                Step("PATCH", f"{path}/{name}", none, MERGE, name=f"{told}, patched by who asks for none"),
            ]
    return [*steps, *_gone("versions", "Mutating"), _THINGS_GONE]


SCRIPTS = [
    Script("webhook answers", _answers()),
    Script("webhook answers of wrong types", _mistyped()),
    Script("webhook failures ignored", _ignored()),
    Script("webhooks unreachable", _unreachable()),
    Script("webhooks asked", _asked()),
    Script("webhooks asked about kinds", _kinds()),
    Script("webhooks asked about deletions of pods", _pods_deleted()),
    Script("webhooks asked about scales", _scales()),
    Script("webhooks mutating", _mutating()),
    Script("webhooks asked again", _rounds()),
    Script("webhooks and built-in rules", _refilled()),
    Script("webhooks matching", _matching()),
    Script("webhooks of versions", _versions()),
    Script("webhooks with conditions", _conditions()),
    Script("webhooks changing parts", _parts()),
    Script("webhooks asked about questions", _questions()),
    Script("webhooks asked about connections", _connecting()),
    Script("connections refused", _unconnected()),
    Script("connections reaching nobody", _reaching()),
    Script("webhooks changing metadata", _changing_metadata()),
    Script("webhooks changing versions", _changing_versions()),
]
