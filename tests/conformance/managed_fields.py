"""Random writes by several managers on a real kube-apiserver, each repeated with our own functions.

``Rounds`` makes the writes: create, update, every patch type, apply with and without force, on the object,
its status and its scale, of built-in kinds and of a custom one.  ``run`` performs one sequence and gives the
steps; the test compares them, and

    python -m tests.conformance.managed_fields

records sequences for the tests that need no real server.
"""

from __future__ import annotations

import copy
import http.client
import json
import random
import secrets
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from setpoint.api.patches import apply_merge, diff
from setpoint.testing.kube import ControlPlane
from tests.server.registry.managed_steps import THING_SCHEMA, THING_VERSION, Object, Step

RECORDED = Path(__file__).parent.parent / "server" / "registry" / "recorded" / "managed_fields.jsonl"

NOTHING = object()  # no body

_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Server:
    """The real server: one connection to it, a namespace of our own, and the custom kind."""

    def __init__(self, kube: ControlPlane) -> None:
        context = ssl.create_default_context(cafile=str(kube.ca_file))
        context.load_cert_chain(kube.admin_certificate, kube.admin_key)
        self.namespace = f"test-{secrets.token_hex(4)}"
        at = urlsplit(kube.url)
        self._connection = http.client.HTTPSConnection(at.hostname or "", at.port, context=context)
        about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        code, answer = self.ask("POST", "/api/v1/namespaces", about)
        assert code == 201, answer
        self._install_thing()

    def close(self) -> None:
        self._connection.close()

    def ask(
        self, method: str, path: str, body: Any = NOTHING, kind: str = "application/json", **query: Any
    ) -> tuple[int, Any]:
        said = {name: str(value) for name, value in query.items() if value not in {None, "", False}}
        target = path.replace("{namespace}", self.namespace) + ("?" + urlencode(said) if said else "")
        data = None if body is NOTHING else json.dumps(body)
        self._connection.request(method, target, data, {"Content-Type": kind, "Accept": "application/json"})
        try:
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:
            self._connection.close()
            return 0, {}  # a panic: some patches make the real server fall over
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    def _install_thing(self) -> None:
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.test.setpoint.dev"},
            "spec": {
                "group": "test.setpoint.dev",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": THING_SCHEMA},
                        "subresources": {
                            "status": {},
                            "scale": {
                                "specReplicasPath": ".spec.size",
                                "statusReplicasPath": ".status.size",
                            },
                        },
                    }
                ],
            },
        }
        code, answer = self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert code in {201, 409}, answer
        path = "/apis/test.setpoint.dev/v1/namespaces/{namespace}/things"
        for _ in range(1000):  # each asks the server, which takes a while
            if self.ask("GET", path)[0] == 200:
                return
        raise AssertionError("the server does not serve the custom kind")


# ── What is written ─────────────────────────────────────────────────────────────────────────────────


def _some(rng: random.Random, names: str, values: Sequence[Any], *, most: int = 3) -> Object:
    return {name: rng.choice(values) for name in rng.sample(names, rng.randint(0, min(most, len(names))))}


def _metadata(rng: random.Random) -> Object:
    metadata: Object = {}
    if rng.random() < 0.5:
        metadata["labels"] = _some(rng, "xyz", "12")
    if rng.random() < 0.4:
        metadata["annotations"] = _some(rng, "pq", "12")
    if rng.random() < 0.15:
        metadata["finalizers"] = rng.sample(["example.com/a", "example.com/b"], rng.randint(0, 2))
    if rng.random() < 0.15:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{n}", "uid": f"u{n}"}
            for n in rng.sample(range(3), rng.randint(0, 2))
        ]
    return metadata


def _configmap(rng: random.Random) -> Object:
    body: Object = {"metadata": _metadata(rng)}
    if rng.random() < 0.9:
        body["data"] = _some(rng, "abcd", ["1", "2", "<&>"])
    if rng.random() < 0.2:
        body["binaryData"] = _some(rng, "ef", ["AQ==", "Ag=="])
    return body


def _container(rng: random.Random, name: str) -> Object:
    container: Object = {"name": name, "image": rng.choice(["i:1", "i:2"])}
    if rng.random() < 0.6:
        container["env"] = [
            {"name": one, "value": rng.choice("12")} for one in rng.sample("ABC", rng.randint(0, 3))
        ]
    if rng.random() < 0.5:
        container["ports"] = [
            {"containerPort": number, **({"protocol": "UDP"} if rng.random() < 0.4 else {})}
            for number in rng.sample([80, 443, 8080], rng.randint(0, 3))
        ]
    if rng.random() < 0.3:
        container["resources"] = {"limits": _some(rng, ["cpu", "memory"], ["1", "1000m", 1, "2"])}  # type: ignore[arg-type]  # 1 on purpose
    if rng.random() < 0.3:
        container["args"] = rng.sample(["-a", "-b"], rng.randint(0, 2))
    if rng.random() < 0.2:
        container["securityContext"] = {"capabilities": {"add": rng.sample(["A", "B"], rng.randint(1, 2))}}
    return container


def _pod_spec(rng: random.Random) -> Object:
    names = rng.sample(["web", "side", "log"], rng.randint(1, 2))
    spec: Object = {"containers": [_container(rng, name) for name in names]}
    if rng.random() < 0.3:
        spec["nodeSelector"] = _some(rng, "mn", "12")
    if rng.random() < 0.3:
        spec["volumes"] = [
            {"name": name, **rng.choice([{"emptyDir": {}}, {"configMap": {"name": "c"}}])}
            for name in rng.sample("vw", rng.randint(0, 2))
        ]
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in rng.sample("kl", 1)]
    if rng.random() < 0.2:
        spec["hostAliases"] = [
            {"ip": f"10.0.0.{n}", "hostnames": rng.sample("ab", 1)} for n in rng.sample(range(1, 4), 2)
        ]
    if rng.random() < 0.2:
        spec["topologySpreadConstraints"] = [
            {"maxSkew": rng.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
            for key in rng.sample(["zone", "host"], rng.randint(1, 2))
        ]
    return spec


def _deployment(rng: random.Random) -> Object:
    spec: Object = {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": _pod_spec(rng)},
    }
    if rng.random() < 0.5:
        spec["replicas"] = rng.randint(1, 3)
    if rng.random() < 0.2:
        spec["strategy"] = rng.choice([{"type": "Recreate"}, {"type": "RollingUpdate"}, {}])
    if rng.random() < 0.2:
        spec["template"]["metadata"]["annotations"] = _some(rng, "tu", "12")
    return {"metadata": _metadata(rng), "spec": spec}


def _service(rng: random.Random) -> Object:
    ports = rng.sample([("http", 80), ("https", 443), ("dns", 53)], rng.randint(1, 3))
    spec: Object = {"ports": [{"name": name, "port": number} for name, number in ports]}
    for port in spec["ports"]:
        if rng.random() < 0.3:
            port["targetPort"] = rng.choice([8080, "web"])
        if port["port"] == 53 and rng.random() < 0.5:
            port["protocol"] = "UDP"
    if rng.random() < 0.5:
        spec["selector"] = _some(rng, "ab", "12")
    if rng.random() < 0.2:
        spec["publishNotReadyAddresses"] = rng.random() < 0.5
    return {"metadata": _metadata(rng), "spec": spec}


def _pod(rng: random.Random) -> Object:
    # Little of a pod may change: the image, labels, tolerations.
    return {
        "metadata": _metadata(rng),
        "spec": {"containers": [{"name": "web", "image": rng.choice(["i:1", "i:2", "i:3"])}]},
    }


def _thing(rng: random.Random) -> Object:
    anything = [1, "x", True, None, [1, 2], [], {}, {"a": 1}, {"a": {"b": 1}}, {"a": None}, {"b": [1]}, 1.5]
    makers: dict[str, Callable[[], Any]] = {
        "size": lambda: rng.randint(1, 3),
        "text": lambda: rng.choice(["", "a", "b"]),
        "flag": lambda: rng.random() < 0.5,
        "ratio": lambda: rng.choice([1, 1.0, 0.5]),
        "maybe": lambda: rng.choice([None, "a"]),
        "port": lambda: rng.choice([80, "web"]),
        "ports": lambda: [
            {
                "port": number,
                **({"protocol": rng.choice(["TCP", "UDP"])} if rng.random() < 0.5 else {}),
                **({"note": rng.choice("12")} if rng.random() < 0.5 else {}),
                **({"tags": rng.sample("tuv", rng.randint(0, 2))} if rng.random() < 0.4 else {}),
            }
            for number in rng.sample([80, 443, 53], rng.randint(0, 3))
        ],
        "set": lambda: rng.sample("abcd", rng.randint(0, 3)),
        "numbers": lambda: rng.sample([1, 2, 10], rng.randint(0, 3)),
        "list": lambda: rng.sample("ab", rng.randint(0, 2)),
        "plain": lambda: [{"a": rng.choice("12")}],
        "map": lambda: _some(rng, "abc", "12"),
        "structs": lambda: {name: _some(rng, "xy", "12") for name in rng.sample("kl", rng.randint(0, 2))},
        "atomic": lambda: _some(rng, "ab", "12"),
        "nested": lambda: rng.choice(
            [{}, {"inner": {}}, {"inner": _some(rng, "ab", "12")}, {"other": "1", "inner": {"a": "1"}}]
        ),
        "open": lambda: rng.choice([{}, {"a": rng.choice(anything)}, {"a": {"b": rng.choice(anything)}}]),
        "any": lambda: rng.choice(anything),
        "half": lambda: rng.choice([{}, {"known": rng.choice("12")}, {"more": rng.choice(anything)}]),
    }
    spec = {name: makers[name]() for name in rng.sample(list(makers), rng.randint(0, 6))}
    body: Object = {"metadata": _metadata(rng), "spec": spec}
    if rng.random() < 0.1:
        body["status"] = {"phase": "x"}
    return body


def _status(rng: random.Random, kind: str) -> Object:
    if kind == "Thing":
        status: Object = {}
        if rng.random() < 0.5:
            status["phase"] = rng.choice("ab")
        if rng.random() < 0.7:
            status["conditions"] = [
                {"type": one, "status": rng.choice(["True", "False"])}
                for one in rng.sample(["Ready", "Live"], rng.randint(0, 2))
            ]
        return status
    conditions = [
        {"type": one, "status": rng.choice(["True", "False"])}
        for one in rng.sample(["Ready", "PodScheduled"], rng.randint(0, 2))
    ]
    match kind:
        case "Deployment":
            conditions = [{**one, "type": "Available"} for one in conditions[:1]]
            return {"observedGeneration": 1, "conditions": conditions}
        case "Pod":
            return {"phase": rng.choice(["Pending", "Running"]), "conditions": conditions}
    return {}


class Kind:
    """A kind that is written to."""

    def __init__(
        self,
        api_version: str,
        kind: str,
        plural: str,
        make: Callable[[random.Random], Object],
        *subresources: str,
    ) -> None:
        self.api_version, self.kind, self.make, self.subresources = api_version, kind, make, subresources
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        self.path = f"{root}/namespaces/{{namespace}}/{plural}"

    def body(self, name: str, content: Object) -> Object:
        metadata = {"name": name, **content.get("metadata", {})}
        return {"apiVersion": self.api_version, "kind": self.kind, **content, "metadata": metadata}


KINDS = (
    Kind("v1", "ConfigMap", "configmaps", _configmap),
    Kind("apps/v1", "Deployment", "deployments", _deployment, "status", "scale"),
    Kind("v1", "Service", "services", _service),
    Kind("v1", "Pod", "pods", _pod, "status"),
    Kind(THING_VERSION, "Thing", "things", _thing, "status", "scale"),
)


class Life(NamedTuple):
    """One object's life: the steps that were taken on it, and the object before each and after the last."""

    kind: Kind
    steps: list[Step]
    reads: list[Object | None]


def run(server: Server, kind: Kind, name: str, rng: random.Random, length: int) -> Life:
    """Writes to one object, at random, and keeps what happened."""
    steps: list[Step] = []
    reads: list[Object | None] = []  # before each step
    path = f"{kind.path}/{name}"
    for _ in range(length):
        code, before = server.ask("GET", path)
        known = before if code == 200 else None
        step = _step(server, kind, name, rng, known)
        if step is None:
            continue
        steps.append(step)
        reads.append(known)
    return _ended(server, kind, name, steps, reads)


def _ended(server: Server, kind: Kind, name: str, steps: list[Step], reads: list[Object | None]) -> Life:
    path = f"{kind.path}/{name}"
    reads.append(server.ask("GET", path)[1])
    server.ask("PATCH", path, {"metadata": {"finalizers": None}}, _TYPES["merge"])
    server.ask("DELETE", path)
    return Life(kind, steps, reads)


def _step(server: Server, kind: Kind, name: str, rng: random.Random, before: Object | None) -> Step | None:
    manager = f"m{rng.randint(1, 4)}"
    path = f"{kind.path}/{name}"
    content = kind.make(rng)
    if before is None and rng.random() < 0.5:
        code, after = server.ask("POST", kind.path, kind.body(name, content), fieldManager=manager)
        return {"verb": "create", "manager": manager, "code": code, "after": after} if code < 400 else None
    subresource = rng.choice(kind.subresources) if kind.subresources and rng.random() < 0.3 else ""
    if subresource and before is not None:
        return _below(_Turn(server, kind, path, manager, rng, before), subresource)
    if before is None or rng.random() < 0.6:
        body = kind.body(name, content)
        if rng.random() < 0.03:
            body["nonsense"] = 1
        force = rng.random() < 0.4
        code, after = server.ask(
            "PATCH", path, body, _TYPES["apply"], fieldManager=manager, force="true" if force else None
        )
        if code in {400, 422}:
            return None  # the object itself is invalid: not ours to decide
        return {
            "verb": "apply",
            "manager": manager,
            "force": force,
            "sent": body,
            "code": code,
            "after": after,
        }
    return _updated(_Turn(server, kind, path, manager, rng, before), content)


class _Turn(NamedTuple):
    """Whose turn it is to write to what."""

    server: Server
    kind: Kind
    path: str
    manager: str
    rng: random.Random
    before: Object


def _updated(turn: _Turn, content: Object) -> Step | None:
    server, kind, path, manager, rng, before = turn
    how = rng.choice(["put", "merge", "json", *(["strategic"] if kind.kind != "Thing" else [])])
    sent: Object = {}
    if how == "put":
        body = copy.deepcopy(before)
        for part in ("spec", "data", "binaryData"):
            if part in content:
                body[part] = content[part]
        for part in ("labels", "annotations", "finalizers", "ownerReferences"):
            if part in content["metadata"]:
                body["metadata"][part] = content["metadata"][part]
        if kind.kind in {"Service", "Pod"}:
            body["spec"] = apply_merge(content["spec"], before["spec"])
        chance = rng.random()
        if chance < 0.05:
            body["metadata"]["managedFields"] = [{}]
        elif chance < 0.08:
            body["metadata"]["managedFields"] = []
        elif chance < 0.1:
            del body["metadata"]["managedFields"]
        sent = {"managedFields": body["metadata"].get("managedFields")}
        code, after = server.ask("PUT", path, body, fieldManager=manager)
    elif how == "json":
        wanted = apply_merge(content, before)
        code, after = server.ask("PATCH", path, diff(before, wanted), _TYPES["json"], fieldManager=manager)
    else:
        code, after = server.ask("PATCH", path, content, _TYPES[how], fieldManager=manager)
    if code >= 400:
        return None
    step: Step = {"verb": "update", "manager": manager, "code": code, "after": after}
    if sent:
        step["sent"] = sent
    return step


def _below(turn: _Turn, subresource: str) -> Step | None:
    server, kind, path, manager, rng, before = turn
    how = rng.choice(["merge", "apply"])
    if (kind.kind, subresource) == ("Thing", "scale"):
        how = "merge"  # the real server cannot apply to the scale of a custom kind: 500
    force = how == "apply" and rng.random() < 0.5
    if subresource == "scale":
        body: Object = {"spec": {"replicas": rng.randint(1, 3)}}
        about = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    else:
        body = {"status": _status(rng, kind.kind)}
        if rng.random() < 0.3:
            body["metadata"] = {"labels": {"z": rng.choice("12")}}
        about = {"apiVersion": kind.api_version, "kind": kind.kind}
    if how == "apply":
        body = {**about, **body, "metadata": {"name": before["metadata"]["name"], **body.get("metadata", {})}}
    code, after = server.ask(
        "PATCH",
        f"{path}/{subresource}",
        body,
        _TYPES[how],
        fieldManager=manager,
        force="true" if force else None,
    )
    if code in {400, 422}:
        return None
    if code >= 400 and how != "apply":
        return None
    step: Step = {
        "verb": "apply" if how == "apply" else "update",
        "manager": manager,
        "subresource": subresource,
        "force": force,
        "sent": body if how == "apply" else {},
        "code": code,
        "after": after,
    }
    return step


# ── Lives that chance would hardly make ─────────────────────────────────────────────────────────────

Write = tuple[str, str, Object]  # how (create, merge, strategic, apply, force), the manager, the body


def _pods(*containers: Object) -> Object:
    return {
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": list(containers)}},
        }
    }


_LAST = "kubectl.kubernetes.io/last-applied-configuration"


def _applied_by_client(name: str, data: Object) -> Object:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return {"metadata": {"annotations": {_LAST: json.dumps(config)}}, "data": data}


def _env(*names: str) -> Object:
    return {"name": "web", "image": "i", "env": [{"name": name, "value": "1"} for name in names]}


_WRONG: tuple[Object, ...] = (
    {"spec": {"text": 1}},
    {"spec": {"text": ["a", {"b": None}]}},
    {"spec": {"text": True}},
    {"spec": {"size": "x"}},
    {"spec": {"size": True}},
    {"spec": {"size": {"a": 1}}},
    {"spec": {"flag": "x"}},
    {"spec": {"flag": {"a": [1, 1.5, None, "x"]}}},
    {"spec": {"ports": "x"}},
    {"spec": {"ports": {"a": 1}}},
    {"spec": {"ports": ["x"]}},
    {"spec": {"ports": [None]}},
    {"spec": {"ports": [{"note": "no port, but a default"}]}},
    {"spec": {"ports": [{"port": 1}, {"port": 1}]}},
    {"spec": {"ports": [{"port": 1, "note": 2}]}},
    {"spec": {"set": ["a", "a"]}},
    {"spec": {"set": [{"a": 1}]}},
    {"spec": {"set": [["a"]]}},
    {"spec": {"set": [None]}},
    {"spec": {"map": ["x"]}},
    {"spec": {"map": {"a": 1}}},
    {"spec": {"plain": [{"b": 1}]}},
    {"spec": {"list": [1]}},
    {"spec": {"nested": {"inner": {"z": 1}}}},
    {"spec": []},
    {"metadata": {"labels": {"a": 1}}},
    {"metadata": {"managedFields": []}},
    {"metadata": {"managedFields": [{"manager": "x"}]}},
    {"kind": "Other"},
    {"apiVersion": "test.setpoint.dev/v2"},
    {"apiVersion": None},
    {"status": {"conditions": [{"status": "x"}]}},
)


def scripts() -> dict[str, tuple[str, list[Write]]]:
    """Names, kinds and what is written."""
    return {
        "many-updaters": (
            "ConfigMap",
            [
                ("create", "m0", {"data": {"a": "0"}}),
                *[("merge", f"m{n}", {"data": {f"k{n}": "1"}}) for n in range(1, 14)],
                ("apply", "a", {"data": {"k1": "1", "z": "1"}}),
                ("merge", "m20", {"data": {"k2": "2"}}),
            ],
        ),
        "from-client-side": (
            "ConfigMap",
            [
                ("create", "kubectl-client-side-apply", _applied_by_client("from-client-side", {"a": "1"})),
                ("apply", "other", {"data": {"a": "2"}}),
                ("apply", "kubectl", {"data": {"a": "2", "b": "<1>"}}),
                ("merge", "m", {"data": {"b": "9"}}),
                ("apply", "kubectl", {"data": {"a": "3", "b": "3"}}),
                ("force", "kubectl", {"data": {"b": "3"}, "metadata": {"annotations": {"x": "1"}}}),
            ],
        ),
        "twice-in-a-list": (
            "Deployment",
            [
                ("create", "m1", _pods(_env("A", "A", "B"))),
                ("apply", "a", _pods(_env("B"))),
                ("force", "a", _pods(_env("A"))),
                ("merge", "m2", _pods(_env("A", "A"))),
                ("merge", "m3", _pods(_env("A", "A", "A"))),
                ("merge", "m4", _pods(_env("A"))),
                ("apply", "a", _pods(_env("A", "A"))),
                ("apply", "a", _pods(_env("A", "C"))),
            ],
        ),
        "cleared": (
            "ConfigMap",
            [
                ("create", "m1", {"data": {"a": "1"}}),
                ("merge", "m2", {"metadata": {"managedFields": [{}]}}),
                ("merge", "m2", {"data": {"b": "1"}}),
                ("apply", "a", {"data": {"a": "2"}}),
                ("apply", "a", {"data": {"a": "1"}}),
                ("force", "a", {"data": {"b": "2"}}),
            ],
        ),
        "order": (
            "Thing",
            [
                ("apply", "a", {"spec": {"set": ["d", "a", "b"], "numbers": [10, 2, 1]}}),
                ("apply", "b", {"spec": {"set": ["b", "c", "d"], "numbers": [2, 10]}}),
                ("apply", "b", {"spec": {"set": ["x", "b", "y"]}}),
                ("apply", "a", {"spec": {"set": ["b", "a"]}}),
                ("merge", "m", {"spec": {"set": ["z", "b", "a", "x"]}}),
                ("apply", "c", {"spec": {"set": ["a", "x", "b", "new"]}}),
            ],
        ),
        "gone": (
            "Thing",
            [
                ("apply", "a", {"spec": {"structs": {"k": {"x": "1"}}, "map": {"a": "1"}, "text": "t"}}),
                ("merge", "m", {"spec": {"structs": {"k": {"y": "1"}}, "open": {"a": {"b": 1}}}}),
                ("apply", "b", {"spec": {"open": {"a": {"c": 1}}, "map": {"a": "1", "b": "1"}}}),
                ("apply", "a", {"spec": {}}),
                ("apply", "b", {"spec": {"open": {}}}),
                ("apply", "b", {}),
                ("apply", "a", {"metadata": {"labels": {}}}),
            ],
        ),
        "wrong": ("Thing", [("create", "m", {}), *[("apply", "a", body) for body in _WRONG]]),
    }


def live(server: Server, name: str, kind_name: str, writes: Sequence[Write]) -> Life:
    """Performs what a script says."""
    kind = next(one for one in KINDS if one.kind == kind_name)
    path = f"{kind.path}/{name}"
    steps: list[Step] = []
    reads: list[Object | None] = []
    for how, manager, content in writes:
        code, before = server.ask("GET", path)
        body = kind.body(name, content)
        if how == "create":
            code, after = server.ask("POST", kind.path, body, fieldManager=manager)
            step: Step = {"verb": "create", "manager": manager, "code": code, "after": after}
        elif how in {"apply", "force"}:
            force = "true" if how == "force" else None
            code, after = server.ask("PATCH", path, body, _TYPES["apply"], fieldManager=manager, force=force)
            step = {"verb": "apply", "manager": manager, "force": how == "force", "sent": body,
                    "code": code, "after": after}  # fmt: skip
        else:
            code, after = server.ask("PATCH", path, content, _TYPES[how], fieldManager=manager)
            step = {"verb": "update", "manager": manager, "code": code, "after": after}
            if "managedFields" in content.get("metadata", {}):
                step["sent"] = {"managedFields": content["metadata"]["managedFields"]}
        steps.append(step)
        reads.append(None if how == "create" or before["kind"] == "Status" else before)
    return _ended(server, kind, name, steps, reads)


# ── Recording ───────────────────────────────────────────────────────────────────────────────────────


def _recorded(life: Life) -> Object:
    """A life, each read as what changed since the last one."""
    steps: list[Object] = []
    reads: list[Any] = []
    last: Any = None
    for read in life.reads:
        reads.append(diff(last, read))
        last = read
    for step in life.steps:
        kept = dict(step)
        if step["code"] < 400 and step["after"]["kind"] != "Scale":
            del kept["after"]  # it is what was read next
        steps.append(kept)
    return {
        "apiVersion": life.kind.api_version,
        "kind": life.kind.kind,
        "steps": steps,
        "reads": reads,
    }


def main() -> None:
    with ControlPlane() as kube:
        server = Server(kube)
        lives = [live(server, name, kind, writes) for name, (kind, writes) in scripts().items()]
        for number, kind in enumerate(KINDS):
            rng = random.Random(100 + number)
            lives += [run(server, kind, f"{kind.kind.lower()}-{life}", rng, 10) for life in range(3)]
        lines = [json.dumps(_recorded(one), separators=(",", ":"), sort_keys=True) for one in lives]
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
