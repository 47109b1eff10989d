"""Random patches for a real kube-apiserver, with every directive and many a mistake in them.

``Case`` is an object as the real server had it, a patch, and what the server made of it (as a dry run).
Whether our result is the same object is asked of the server too: written back whole, it must become what
the patch became, defaults included.  ``python -m tests.conformance.patches`` records cases for the tests
that need no real server.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any, TypedDict

from setpoint.api.patches import diff
from setpoint.testing.kube import ControlPlane
from tests.conformance.managed_fields import Server
from tests.server.registry.managed_steps import THING_VERSION, Object

RECORDED = Path(__file__).parent.parent / "server" / "registry" / "recorded" / "patches.jsonl"

MEDIA = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
BASES: dict[str, Object] = {
    "/apis/apps/v1/namespaces/{namespace}/deployments": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "patched",
            "labels": {"a": "1", "b": "2"},
            "finalizers": ["example.com/a", "example.com/b", "example.com/c"],
        },
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "i:1",
                            "env": [{"name": name, "value": "1"} for name in "ABC"],
                            "ports": [{"containerPort": 80}, {"containerPort": 443}],
                            "args": ["-a", "-b"],
                        },
                        {"name": "side", "image": "i:2"},
                        {"name": "log", "image": "i:3"},
                    ],
                    "volumes": [
                        {"name": "v", "emptyDir": {}},
                        {"name": "w", "configMap": {"name": "c"}},
                    ],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "imagePullSecrets": [{"name": "s1"}, {"name": "s2"}],
                },
            },
        },
    },
    f"/apis/{THING_VERSION}/namespaces/{{namespace}}/things": {
        "apiVersion": THING_VERSION,
        "kind": "Thing",
        "metadata": {"name": "patched", "labels": {"a": "1"}, "finalizers": ["example.com/a"]},
        "spec": {
            "list": ["a", "b", "c"],
            "map": {"a": "1", "b": "2"},
            "open": {"a": {"b": 1, "c": [1, {"d": None}]}, "n": None},
            "nested": {"inner": {"a": "1"}},
        },
    },
}


class Case(TypedDict):
    kind: str  # of patch
    patch: Any
    code: int
    after: Object


# ── Patches ─────────────────────────────────────────────────────────────────────────────────────────


def _containers(rng: random.Random) -> Object:
    """A part of a pod's spec that patches its containers."""
    items: list[Any] = []
    for name in rng.sample(["web", "side", "log", "new", "more"], rng.randint(0, 3)):
        item: Object = {"name": name}
        chance = rng.random()
        if chance < 0.2:
            item["$patch"] = rng.choice(["delete", "delete", "replace", "merge", "nonsense"])
        else:
            item["image"] = rng.choice(["j:1", "j:2", "j:3"])
            if rng.random() < 0.4:
                item["env"] = [
                    {"name": one, **({"$patch": "delete"} if rng.random() < 0.3 else {"value": "2"})}
                    for one in rng.sample("ABCD", rng.randint(0, 3))
                ]
            if rng.random() < 0.3:
                order = rng.sample("ABCD", rng.randint(0, 4))
                item["$setElementOrder/env"] = [{"name": one} for one in order]
            if rng.random() < 0.2:
                item["ports"] = [{"containerPort": 443, "name": "tls"}, {"containerPort": 8080}]
            if rng.random() < 0.2:
                item["args"] = rng.choice([["-c"], None, []])
        if rng.random() < 0.03:
            del item["name"]
        items.append(item)
    if rng.random() < 0.1:
        items.append({"$patch": "replace"})
    part: Object = {}
    if items and rng.random() < 0.9:
        part["containers"] = items
    if rng.random() < 0.4:
        names = [item["name"] for item in items if "name" in item and "$patch" not in item]
        others = [one for one in ("web", "side", "log") if one not in names]
        order = [*names, *others]
        if rng.random() < 0.5:
            rng.shuffle(order)
        if rng.random() < 0.1:
            order = order[1:]
        part["$setElementOrder/containers"] = [{"name": one} for one in order]
    return part


def _strategic(rng: random.Random) -> Any:
    patch: Object = {}
    chance = rng.random()
    if chance < 0.7:
        spec = _containers(rng)
        if rng.random() < 0.3:
            spec["volumes"] = [
                rng.choice(
                    [
                        {"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "x"}},
                        {"name": "w", "$retainKeys": ["name"], "secret": {"secretName": "x"}},
                        {"name": "w", "emptyDir": {}, "configMap": None},
                        {"name": "z", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}},
                        {"name": "w", "configMap": {"$patch": "replace", "name": "d"}},
                        {"name": "v", "$patch": "delete"},
                    ]
                )
            ]
        if rng.random() < 0.2:
            spec["imagePullSecrets"] = [{"name": "s3"}, {"name": "s1"}]
        if rng.random() < 0.2:
            spec["tolerations"] = rng.choice([[], None, [{"key": "n", "operator": "Exists"}]])
        if rng.random() < 0.1:
            spec["securityContext"] = {"$patch": "delete"}
        patch["spec"] = {"template": {"spec": spec}}
    if rng.random() < 0.3:
        patch.setdefault("spec", {})["strategy"] = rng.choice(
            [
                {"$retainKeys": ["type"], "type": "Recreate"},
                {"$retainKeys": ["type", "rollingUpdate"], "rollingUpdate": {"maxSurge": 2}},
                {"$retainKeys": ["type"], "rollingUpdate": {"maxSurge": 2}},
                {"$retainKeys": "type"},
                {"type": "Recreate", "rollingUpdate": None},
            ]
        )
    if rng.random() < 0.5:
        metadata = patch.setdefault("metadata", {})
        choice = rng.randrange(9)
        match choice:
            case 0:
                metadata["finalizers"] = rng.sample(["example.com/d", "example.com/a", "example.com/c"], 2)
            case 1:
                metadata["$deleteFromPrimitiveList/finalizers"] = ["example.com/a"]
            case 2:
                metadata["$setElementOrder/finalizers"] = ["example.com/c", "example.com/a"]
            case 3:
                metadata["labels"] = rng.choice([{"a": None, "c": "3"}, {"$patch": "replace", "z": "1"}])
            case 4:
                metadata["labels"] = {"$patch": rng.choice(["delete", "nonsense"])}
            case 5:
                metadata["$deleteFromPrimitiveList"] = ["x"]
            case 6:
                metadata["$setElementOrder"] = ["x"]
            case 7:
                metadata["$deleteFromPrimitiveList/finalizers"] = ["example.com/a"]
                metadata["$setElementOrder/finalizers"] = ["example.com/d", "example.com/b", "example.com/c"]
                metadata["finalizers"] = ["example.com/d"]
            case _:
                metadata["annotations"] = {"x": None, "y": "1"}
    return patch


_POINTERS = {
    "Deployment": (
        "/metadata/labels/a", "/metadata/labels/zz", "/metadata/annotations/x", "/metadata/finalizers/0",
        "/metadata/finalizers/-", "/metadata/finalizers/-1", "/metadata/finalizers/9",
        "/metadata/finalizers/x", "/metadata/finalizers", "/spec/replicas", "spec/replicas",
        "/spec/template/spec/containers/0/image", "/spec/template/spec/containers/0",
        "/spec/template/spec/containers/0/args/-", "/spec/template/spec/containers/0/args/1", "",
    ),
    "Thing": (
        "/metadata/labels/a", "/metadata/labels/zz", "/spec/list/1", "/spec/list/-", "/spec/list/-2",
        "/spec/list/+1", "/spec/list/01", "/spec/map/a", "/spec/map/b~1c", "/spec/map", "/spec/text",
        "/spec/nested/inner", "/spec/nested/other", "/spec/open/a/b", "/spec/open/a/c/1/d", "/spec/open/n",
        "/spec/open/x", "/spec/any", "/spec/any/x",
    ),
}  # fmt: skip


def _json(rng: random.Random, on: str) -> Any:
    operations: list[Any] = []
    for _ in range(rng.randint(1, 3)):
        op = rng.choice(["add", "remove", "replace", "test", "move", "copy", "add", "replace"])
        operation: Object = {"op": op, "path": rng.choice(_POINTERS[on])}
        if op in {"move", "copy"}:
            operation["from"] = rng.choice(_POINTERS[on])
        if op in {"add", "replace", "test"} and rng.random() < 0.95:
            operation["value"] = rng.choice(
                ["1", "1", "a", "b", 2, 1, None, True, ["q"], {"name": "x", "image": "k:1"}, {"a": "1"}, 1.5]
            )
        if rng.random() < 0.02:
            operation["op"] = rng.choice(["nonsense", 1, None])
        if rng.random() < 0.02:
            operation["path"] = rng.choice([1, None])
        operations.append(operation)
    if rng.random() < 0.03:
        return rng.choice([{}, "x", None, [1], []])
    return operations


def _merge(rng: random.Random) -> Any:
    if rng.random() < 0.05:
        return rng.choice([None, [], "x", 1, {}])
    values: list[Any] = [None, {}, {"a": None}, {"a": {"b": None, "x": 1}}, [1, {"d": None}], [], "1", 3]
    return {
        "metadata": rng.choice([{}, {"labels": {"a": None, "z": "1"}}, {"labels": None}, {"finalizers": []}]),
        "spec": {
            name: rng.choice(values)
            for name in rng.sample(["list", "map", "open", "nested", "any", "replicas", "paused"], 2)
        },
    }


def patch_of(rng: random.Random, kind: str, on: str) -> Any:
    """A patch of one kind, for an object of another."""
    if kind == "json":
        return _json(rng, on)
    return _strategic(rng) if kind == "strategic" else _merge(rng)


# ── On the real server ──────────────────────────────────────────────────────────────────────────────


def prepared(server: Server, path: str) -> Object:
    """The object that is patched, as the server has it."""
    base = BASES[path]
    server.ask("POST", path, base)
    code, live = server.ask("GET", f"{path}/patched")
    assert code == 200, live
    found: Object = live
    return found


def performed(server: Server, path: str, kind: str, patch: Any) -> Case:
    code, after = server.ask("PATCH", f"{path}/patched", patch, MEDIA[kind], dryRun="All")
    return {"kind": kind, "patch": patch, "code": code, "after": after}


def written_back(server: Server, path: str, obj: Object) -> tuple[int, Object]:
    code, after = server.ask("PUT", f"{path}/patched", obj, dryRun="All")
    return code, after


def essential(obj: Object) -> Object:
    """What a patch decides: everything but who owns what, and which version it is."""
    obj = copy.deepcopy(obj)
    for name in ("managedFields", "generation", "resourceVersion"):
        obj["metadata"].pop(name, None)
    return obj


def main() -> None:
    with ControlPlane() as kube:
        server = Server(kube)
        lines = []
        for path, base in BASES.items():
            live = prepared(server, path)
            rng = random.Random(1)
            kinds = ["json", "merge", *(["strategic"] * 3 if base["kind"] != "Thing" else [])]
            cases: list[Object] = []
            for number in range(120):
                kind = kinds[number % len(kinds)]
                case = _recorded(server, path, live, patch_of(rng, kind, base["kind"]), kind)
                if case is not None:
                    cases.append(case)
            lines.append(json.dumps({"live": live, "cases": cases}, separators=(",", ":"), sort_keys=True))
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text("\n".join(lines) + "\n")


def _recorded(server: Server, path: str, live: Object, patch: Any, kind: str) -> Object | None:
    """A case that always ends the same; the object, where there is one, as what the patch changed in it."""
    case = performed(server, path, kind, patch)
    told = case["after"].get("message", "")
    again = range(100 if case["code"] >= 400 else 0)
    if any(performed(server, path, kind, patch)["after"].get("message", "") != told for _ in again):
        return None  # of several mistakes, the real server finds one or the other first, as chance has it
    if case["code"] == 0 or (case["code"] == 422 and case["after"]["details"] != {}):
        return None  # it fell over, or found the result invalid: neither is the patch's doing
    if case["code"] >= 400:
        return dict(case)
    changed = diff(essential(live), essential(case["after"]))
    return {"kind": kind, "patch": patch, "code": case["code"], "changed": changed}


if __name__ == "__main__":
    main()
