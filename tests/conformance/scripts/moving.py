"""Pods that are brought to a node, and away from it: what bindings say, whom budgets let go."""

from __future__ import annotations

from tests.conformance.asking import MERGE, Json, Script, Step

_CORE = "/api/v1/namespaces/${namespace}"
_PODS = f"{_CORE}/pods"
_BUDGETS = "/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets"
_UNKNOWN = "11111111-2222-3333-4444-555555555555"


def _pod(name: str, metadata: Json = None, **spec: Json) -> Step:
    said = {"name": name, "labels": {"app": "a"}, **(metadata or {})}
    body = {"metadata": said, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    return Step("POST", _PODS, body, name=name, only=("kind", "message"))


def _seen(name: str) -> Step:
    return Step("GET", f"{_PODS}/{name}", name=f"{name} then")


# ── Binding ─────────────────────────────────────────────────────────────────────────────────────────


def _binding() -> list[Step]:
    def bound(
        pod: str, name: str, *, node: str = "n1", kind: str = "Node", query: str = "", **metadata: Json
    ) -> Step:
        body = {"metadata": {"name": pod, **metadata}, "target": {"kind": kind, "name": node}}
        return Step("POST", f"{_PODS}/{pod}/binding{query}", body, name=name)

    def by_the_old_path(pod: str, name: str, **metadata: Json) -> Step:
        body = {"metadata": {"name": pod, **metadata}, "target": {"kind": "Node", "name": "moving-node"}}
        return Step("POST", f"{_CORE}/bindings", body, name=name)

    labels = {
        "topology.kubernetes.io/zone": "z",
        "topology.kubernetes.io/region": "r",
        "kubernetes.io/os": "o",
    }
    waiting = {
        "status": {
            "nominatedNodeName": "n9",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"},
                {"type": "Ready", "status": "False"},
            ],
        }
    }
    annotations = {"a": "new", "c": "d", "pod.beta.kubernetes.io/init-containers": "x"}
    return [
        Step("POST", "/api/v1/nodes", {"metadata": {"name": "moving-node", "labels": labels}}, is_quiet=True),
        _pod("gated", schedulingGates=[{"name": "example.com/g"}]),
        bound("gated", "gates closed"),
        bound("gated", "gates closed, dry", query="?dryRun=All"),
        bound("gated", "gates closed, and another meant", uid=_UNKNOWN),
        Step(
            "PATCH",
            f"{_PODS}/gated",
            {"spec": {"schedulingGates": None}},
            MERGE,
            name="open",
            only=("kind", "message"),
        ),
        bound("gated", "gates open"),
        _pod("meant"),
        Step("GET", f"{_PODS}/meant", name="meant first", only=("metadata",)),
        bound("meant", "another meant", uid=_UNKNOWN),
        bound("meant", "another meant, dry", uid=_UNKNOWN, query="?dryRun=All"),
        bound("meant", "another version meant", resourceVersion="1"),
        bound("meant", "no version meant", resourceVersion="x"),
        bound("meant", "another and another version meant", uid=_UNKNOWN, resourceVersion="1"),
        bound(
            "meant",
            "it is meant",
            uid="${meant first.metadata.uid}",
            resourceVersion="${meant first.metadata.resourceVersion}",
        ),
        bound("meant", "bound, and another meant", uid=_UNKNOWN),
        bound("absent", "absent, and meant", uid=_UNKNOWN),
        _pod("told", {"annotations": {"a": "b"}, "labels": {"app": "a", "b": "c"}}),
        bound(
            "told",
            "told more",
            labels={"b": "new", "d": "e"},
            annotations=annotations,
            finalizers=["example.com/f"],
        ),
        _seen("told"),
        _pod("waiting"),
        Step("PATCH", f"{_PODS}/waiting/status", waiting, MERGE, is_quiet=True),
        bound("waiting", "no longer waiting"),
        _seen("waiting"),
        _pod("named"),
        Step(
            "POST",
            f"{_PODS}/named/binding",
            {"metadata": {"name": "other"}, "target": {"kind": "Node", "name": "n"}},
            name="another named",
        ),
        Step(
            "POST", f"{_PODS}/named/binding", {"target": {"kind": "Node", "name": "n"}}, name="nothing named"
        ),
        bound("named", "elsewhere", namespace="default"),
        bound("named", "to a bad name", node="Bad_Name"),
        bound("named", "to a bad kind of nothing", kind="Pod", node=""),
        bound("named", "to a bad kind", kind="Pod", node="Bad_Name"),
        bound("named", "to no kind", kind=""),
        Step(
            "POST",
            f"{_PODS}?dryRun=All",
            {
                "metadata": {"name": "probe"},
                "spec": {"nodeName": "moving-node", "containers": [{"name": "c", "image": "i"}]},
            },
            until_has="topology.kubernetes.io/zone",
            is_quiet=True,
        ),
        _pod("here", {"labels": {"topology.kubernetes.io/zone": "mine"}}, nodeName="moving-node"),
        _seen("here"),
        _pod("placed", {"labels": {"topology.kubernetes.io/zone": "mine"}}),
        bound("placed", "placed there", node="moving-node", labels={"topology.kubernetes.io/region": "said"}),
        _seen("placed"),
        _pod("placed-oddly"),
        bound("placed-oddly", "placed there by no kind", node="moving-node", kind=""),
        _seen("placed-oddly"),
        _pod("old"),
        by_the_old_path("old", "old, of another version", resourceVersion="1"),
        by_the_old_path("old", "old, another meant", uid=_UNKNOWN, labels={"x": "y"}),
        _seen("old"),
        Step("DELETE", "/api/v1/nodes/moving-node", is_quiet=True),
    ]


# ── Eviction ────────────────────────────────────────────────────────────────────────────────────────


def _runs(name: str, *, ready: bool = False, app: str = "a", phase: str = "Running") -> list[Step]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"status": {"phase": phase, "conditions": conditions}}
    return [
        _pod(name, {"labels": {"app": app}}, nodeName="n1"),
        Step("PATCH", f"{_PODS}/{name}/status", status, MERGE, is_quiet=True),
    ]


def _evicted(pod: str, name: str, options: Json = None, query: str = "", **metadata: Json) -> Step:
    said = {} if options is None else {"deleteOptions": options}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, **metadata}, **said}
    return Step("POST", f"{_PODS}/{pod}/eviction{query}", body, name=name)


def _budget(name: str, app: str, **spec: Json) -> Step:
    selector = {"matchLabels": {"app": app}}
    body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector, **spec}}
    return Step("POST", _BUDGETS, body, is_quiet=True)


def _counted(name: str, wanted: int, healthy: int, room: int = 0, **status: Json) -> Step:
    counted = {"currentHealthy": healthy, "desiredHealthy": wanted, "disruptionsAllowed": room}
    body = {"status": {"observedGeneration": 1, "expectedPods": 3, **counted, **status}}
    return Step("PATCH", f"{_BUDGETS}/{name}/status", body, MERGE, is_quiet=True)


def _spent(name: str) -> Step:
    return Step("GET", f"{_BUDGETS}/{name}", name=f"budget {name} then", only=("status",))


def _no_room(reason: str, message: str) -> Json:
    time = "2020-01-01T00:00:00Z"
    found = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": time}
    return [{**found, "reason": reason, "message": message}]


def _eviction() -> list[Step]:
    return [
        _budget("a", "a"),
        *(step for name in ("a1", "a2", "a3", "a4") for step in _runs(name)),
        *_runs("a-ready", ready=True),
        _evicted("a1", "unready, of a budget that is not known"),
        _counted("a", 2, 1),
        _evicted("a1", "unready and missed"),
        _evicted("a-ready", "ready and missed"),
        _counted("a", 0, 0),
        _evicted("a1", "unready, where none is wanted"),
        _counted("a", 1, 1),
        _evicted("a1", "unready and not missed, dry", query="?dryRun=All"),
        _seen("a1"),
        _evicted("a1", "unready and not missed"),
        _seen("a1"),
        _spent("a"),
        _evicted("a1", "once more"),
        _seen("a1"),
        _evicted("a-ready", "ready and not to be spared"),
        _evicted("a2", "unready, another meant", {"preconditions": {"uid": _UNKNOWN}}),
        _evicted("a2", "unready, another version meant", {"preconditions": {"resourceVersion": "1"}}),
        _evicted("a2", "unready, at once", {"gracePeriodSeconds": 0}),
        Step("GET", f"{_PODS}/a2", name="a2 gone"),
        _counted("a", 2, 1, room=1),
        _evicted("a3", "unready, with room"),
        _spent("a"),
        _budget("b", "b", unhealthyPodEvictionPolicy="AlwaysAllow"),
        *(step for name in ("b1", "b2") for step in _runs(name, app="b")),
        *_runs("b-ready", ready=True, app="b"),
        _evicted("b1", "unready, always allowed though the budget is not known"),
        _counted("b", 2, 1),
        _evicted("b2", "unready, always allowed"),
        _evicted("b-ready", "ready, not allowed"),
        _spent("b"),
        _budget("c", "c"),
        *_runs("c-ready", ready=True, app="c"),
        _counted("c", 1, 2, conditions=_no_room("SyncFailed", "no scale")),
        _evicted("c-ready", "a budget that failed"),
        _counted("c", 1, 2, conditions=_no_room("Odd", "so")),
        _evicted("c-ready", "a budget that says why"),
        _counted("c", 2, 2, conditions=_no_room("Odd", "so")),
        _evicted("c-ready", "a budget that says why, of too few"),
        _counted("c", 1, 2, conditions=_no_room("Odd", "")),
        _evicted("c-ready", "a budget that says nothing"),
        _budget("c2", "c"),
        _evicted("c-ready", "of two budgets"),
        *_runs("pending", app="d", phase="Pending"),
        _evicted("pending", "pending, another version meant", {"preconditions": {"resourceVersion": "1"}}),
        _evicted("pending", "pending"),
        _seen("pending"),
        *_runs("failed", app="d", phase="Failed"),
        _evicted("failed", "failed"),
        _seen("failed"),
        *_runs("named", app="d"),
        Step(
            "POST",
            f"{_PODS}/named/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction"},
            name="nothing named",
        ),
        _evicted("named", "elsewhere", namespace="default"),
        _evicted("named", "another uid said", uid=_UNKNOWN),
        _seen("named"),
    ]


SCRIPTS = [
    Script("moving bindings", _binding()),
    Script("moving evictions", _eviction()),
]
