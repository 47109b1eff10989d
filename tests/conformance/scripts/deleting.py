"""Deleting: finalizers, grace, preconditions, collections, namespaces; eviction and binding."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from tests.conformance.asking import JSON_PATCH, MERGE, Json, Put, Script, Step
from tests.conformance.scripts.writing import DEPLOYMENTS, MAPS, PODS, config_map, deployment, pod


def _made(*names: str, **metadata: Json) -> list[Step]:
    return [Step("POST", MAPS, config_map(name, **metadata), name=name, is_quiet=True) for name in names]


def _deleting() -> list[Step]:
    return [
        *_made("a", "b", "c", "d", "e", "f"),
        Step("DELETE", MAPS + "/a", name="plain"),
        Step("DELETE", MAPS + "/a", name="again"),
        Step("DELETE", MAPS + "/b", {"preconditions": {"uid": "x"}}, name="other uid"),
        Step("DELETE", MAPS + "/b", {"preconditions": {"resourceVersion": "1"}}, name="other version"),
        Step("DELETE", MAPS + "/b", {"propagationPolicy": "Odd"}, name="odd policy"),
        Step("DELETE", MAPS + "/b", {"propagationPolicy": "Background", "orphanDependents": True}, name="two policies"),
        Step("DELETE", MAPS + "/b", {"dryRun": ["All"]}, name="dry"),
        Step("DELETE", MAPS + "/b?dryRun=All", name="dry by query"),
        Step("DELETE", MAPS + "/b", {"dryRun": ["Odd"]}, name="odd dry"),
        Step("DELETE", MAPS + "/b", "{", name="broken"),
        Step("DELETE", MAPS + "/b", {"kind": "ConfigMap", "apiVersion": "v1"}, name="other kind"),
        Step("DELETE", MAPS + "/b", {"kind": "DeleteOptions", "apiVersion": "v1", "oops": 1}, name="unknown field"),
        Step("DELETE", MAPS + "/c", {"preconditions": {"uid": "${c.metadata.uid}", "resourceVersion": "${c.metadata.resourceVersion}"}}, name="right"),
        Step("DELETE", MAPS + "/d?propagationPolicy=Foreground", name="foreground"),
        Step("DELETE", MAPS + "/d", name="foreground and plain"),
        Step("GET", MAPS + "/d", name="waits"),
        Step("PATCH", MAPS + "/d", {"metadata": {"finalizers": None}}, MERGE, name="let go"),
        Step("GET", MAPS + "/d", name="gone"),
        Step("DELETE", MAPS + "/e?propagationPolicy=Orphan", name="orphan"),
        Step("PATCH", MAPS + "/e", [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH, name="orphan let go"),
        Step("DELETE", MAPS + "/f?gracePeriodSeconds=-1", name="grace below 0"),
        Step("DELETE", MAPS + "/f?gracePeriodSeconds=x", name="bad grace"),
        Step("DELETE", MAPS + "/f?gracePeriodSeconds=30", name="grace"),
        Step("POST", MAPS, config_map("g", finalizers=["example.com/a", "example.com/b"]), name="made with finalizers"),
        Step("DELETE", MAPS + "/g", name="waits for its finalizers"),
        Step("POST", MAPS, config_map("g"), name="made again"),
        Step("PATCH", MAPS + "/g", {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}}, MERGE, name="another finalizer"),
        Step("PATCH", MAPS + "/g", {"metadata": {"deletionTimestamp": None}}, MERGE, name="alive again"),
        Step("PATCH", MAPS + "/g", {"metadata": {"finalizers": ["example.com/a"]}}, MERGE, name="one less"),
        Step("PUT", MAPS + "/g", Put("made with finalizers", {"metadata": {"finalizers": None, "resourceVersion": None}}), name="none left"),
        Step("GET", MAPS + "/g", name="went"),
        Step("POST", "/apis/batch/v1/namespaces/${namespace}/jobs", {"metadata": {"name": "j"}, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}, name="job", is_quiet=True),
        Step("DELETE", "/apis/batch/v1/namespaces/${namespace}/jobs/j", name="job orphans"),
        Step("POST", DEPLOYMENTS, deployment("d"), is_quiet=True),
        Step("DELETE", DEPLOYMENTS + "/d", name="deployment"),
    ]  # fmt: skip


def _collections() -> list[Step]:
    return [
        *(Step("POST", MAPS, config_map(f"m{i}", labels={"g": "xy"[i % 2]}), name=f"m{i}", is_quiet=True) for i in range(6)),
        Step("DELETE", MAPS + "?labelSelector=g%3Dx&dryRun=All", name="dry"),
        Step("DELETE", MAPS + "?labelSelector=g%3Dx", name="selected"),
        Step("GET", MAPS, name="left"),
        Step("DELETE", MAPS + "?labelSelector=a+b", name="bad selector"),
        Step("DELETE", MAPS + "?fieldSelector=metadata.name%3Dm1", {"propagationPolicy": "Foreground"}, name="foreground"),
        Step("DELETE", MAPS + "?limit=1", name="limited"),
        Step("GET", MAPS, name="left then"),
        Step("DELETE", MAPS, name="all"),
        Step("GET", MAPS, name="only what waits"),
        Step("DELETE", "/api/v1/configmaps", name="of all namespaces"),
        Step("DELETE", "/api/v1/namespaces", name="namespaces"),
    ]  # fmt: skip


def _pods() -> list[Step]:
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    budget = {
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "f"}}},
    }
    budgets = "/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets"
    return [
        *(Step("POST", PODS, pod(name), name=name) for name in ("a", "b", "c", "d", "e", "f")),
        Step("DELETE", PODS + "/a", name="unscheduled"),
        Step("POST", PODS + "/b/binding", {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n1"}}, name="bound"),
        Step("POST", PODS + "/b/binding", {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n2"}}, name="bound again"),
        Step("POST", PODS + "/b/binding", {"metadata": {"name": "b"}, "target": {"kind": "Pod", "name": "n2"}}, name="bound to no node"),
        Step("POST", PODS + "/absent/binding", {"metadata": {"name": "absent"}, "target": {"kind": "Node", "name": "n2"}}, name="nothing bound"),
        Step("POST", "/api/v1/namespaces/${namespace}/bindings", {"metadata": {"name": "c"}, "target": {"kind": "Node", "name": "n1"}}, name="bound by the old path"),
        Step("GET", PODS + "/b", name="where it is"),
        Step("PATCH", PODS + "/b/status", running, MERGE, name="runs"),
        Step("DELETE", PODS + "/b", name="gracefully"),
        Step("DELETE", PODS + "/b", name="again"),
        Step("DELETE", PODS + "/b?gracePeriodSeconds=5", name="sooner"),
        Step("DELETE", PODS + "/b?gracePeriodSeconds=60", name="not later"),
        Step("PATCH", PODS + "/b", {"metadata": {"labels": {"x": "y"}}}, MERGE, name="labelled while going"),
        Step("DELETE", PODS + "/b?gracePeriodSeconds=0", name="now"),
        Step("GET", PODS + "/b", name="gone"),
        Step("DELETE", PODS + "/c", {"gracePeriodSeconds": 1}, name="a second"),
        Step("PATCH", PODS + "/d", {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}, MERGE, name="image"),
        Step("PATCH", PODS + "/d", {"spec": {"restartPolicy": "Never"}}, MERGE, name="immutable"),
        Step("PATCH", PODS + "/d", {"spec": {"activeDeadlineSeconds": 5}}, MERGE, name="deadline"),
        Step("PATCH", PODS + "/d", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, MERGE, name="toleration"),
        Step("POST", PODS + "/d/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "d"}, "deleteOptions": {"dryRun": ["All"]}}, name="eviction dry"),
        Step("POST", PODS + "/d/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "e"}}, name="eviction of another"),
        Step("POST", PODS + "/d/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "d"}}, name="evicted"),
        Step("POST", PODS + "/absent/eviction", {"metadata": {"name": "absent"}}, name="nothing evicted"),
        Step("POST", budgets, budget, name="budget"),
        Step("PATCH", PODS + "/f/status", running, MERGE, name="f runs"),
        Step("POST", PODS + "/f/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "f"}}, name="budget not known"),
        Step("PATCH", budgets + "/b/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}, MERGE, name="budget full"),
        Step("POST", PODS + "/f/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "f"}}, name="refused"),
        Step("PATCH", PODS + "/e/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "i"}]}}, "application/strategic-merge-patch+json", name="ephemeral"),
        Step("PATCH", PODS + "/e/resize", {"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "1"}}}]}}, "application/strategic-merge-patch+json", name="resize"),
        Step("GET", PODS + "/e/log", name="log", only=("kind", "reason", "code")),
        Step("GET", PODS + "/e/exec?command=x", name="exec", only=("kind", "reason", "code")),
        Step("DELETE", PODS, name="all"),
    ]  # fmt: skip


def _dry_runs() -> list[Step]:
    """What is only tried: a query beside a body, bindings, evictions with their budgets."""
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    budgets = "/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets"
    budget = {
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "f"}}},
    }
    room = {
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 1,
            "currentHealthy": 2,
            "desiredHealthy": 1,
            "expectedPods": 2,
        }
    }
    bound = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}

    def evicted(query: str, name: str, options: Json = None) -> Step:
        said = {} if options is None else {"deleteOptions": options}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "f"}, **said}
        return Step("POST", PODS + "/f/eviction" + query, body, name=name)

    return [
        *_made("a", "b", "c", "d"),
        Step("DELETE", MAPS + "/a?dryRun=All", {"propagationPolicy": "Background"}, name="query beside a body"),
        Step("GET", MAPS + "/a", name="deleted, or not"),
        Step("DELETE", MAPS + "/b?dryRun=All", {}, name="query beside an empty body"),
        Step("GET", MAPS + "/b", name="deleted too, or not"),
        Step("DELETE", MAPS + "/c?dryRun=Odd", {"propagationPolicy": "Background"}, name="odd query beside a body"),
        Step("DELETE", MAPS + "?dryRun=All", {"propagationPolicy": "Background"}, name="collection, query beside a body"),
        Step("GET", MAPS, name="those left"),
        *(Step("POST", PODS, pod(name), is_quiet=True) for name in ("a", "f")),
        Step("POST", PODS + "/a/binding?dryRun=All", bound, name="binding dry"),
        Step("POST", "/api/v1/namespaces/${namespace}/bindings?dryRun=All", bound, name="old binding dry"),
        Step("POST", PODS + "/a/binding?dryRun=Odd", bound, name="binding odd"),
        Step("POST", PODS + "/a/binding?fieldValidation=Odd", bound, name="binding judged oddly"),
        Step("GET", PODS + "/a", name="bound nowhere", only=("spec", "status")),
        Step("POST", PODS + "/a/binding", bound, name="bound"),
        Step("POST", PODS + "/a/binding?dryRun=All", bound, name="bound again dry"),
        Step("POST", budgets, budget, is_quiet=True),
        Step("PATCH", PODS + "/f", {"metadata": {"labels": {"app": "f"}}}, MERGE, is_quiet=True),
        Step("PATCH", PODS + "/f/status", running, MERGE, is_quiet=True),
        Step("PATCH", budgets + "/b/status", room, MERGE, is_quiet=True),
        evicted("?dryRun=All", "eviction dry"),
        evicted("?dryRun=All", "eviction dry with options", {"gracePeriodSeconds": 0}),
        evicted("", "eviction dry by its options", {"dryRun": ["All"]}),
        evicted("?dryRun=All", "eviction dry by both", {"dryRun": ["All"]}),
        evicted("?dryRun=All", "eviction dry by two", {"dryRun": ["Odd"]}),
        evicted("", "eviction by odd options", {"dryRun": ["Odd"]}),
        evicted("?dryRun=Odd", "eviction odd"),
        Step("GET", budgets + "/b", name="budget as it was", only=("status",)),
        Step("GET", PODS + "/f", name="evicted by none", only=("spec",)),
        evicted("", "evicted"),
        Step("GET", budgets + "/b", name="budget spent", only=("status",)),
        Step("POST", PODS, pod("f"), is_quiet=True),
        Step("PATCH", PODS + "/f/status", running, MERGE, is_quiet=True),
        evicted("?dryRun=All", "eviction refused dry"),
    ]  # fmt: skip


def _namespaces() -> list[Step]:
    spaces, inside = "/api/v1/namespaces", "/api/v1/namespaces/going/configmaps"
    return [
        Step("POST", spaces, {"metadata": {"name": "going"}}, name="made"),
        Step("POST", spaces, {"metadata": {"name": "Bad.Name"}}, name="bad name"),
        Step("POST", spaces, {"metadata": {"name": "a.b"}}, name="dots"),
        Step("POST", inside, config_map("a"), name="inside"),
        Step("POST", inside, config_map("b", finalizers=["example.com/x"]), name="inside too"),
        Step("PATCH", spaces + "/going", {"metadata": {"labels": {"x": "y"}}}, MERGE, name="labelled"),
        Step("PATCH", spaces + "/going", {"metadata": {"labels": {"kubernetes.io/metadata.name": None}}}, MERGE, name="its own label"),
        Step("PATCH", spaces + "/going/status", {"status": {"phase": "Terminating"}}, MERGE, name="status"),
        Step("DELETE", spaces + "/going", name="deleted"),
        Step("GET", spaces + "/going", name="terminating"),
        Step("POST", inside, config_map("c"), name="too late"),
        Step("PUT", "/apis/coordination.k8s.io/v1/namespaces/going/leases/l", {"metadata": {"name": "l"}}, name="too late by put"),
        Step("PATCH", inside + "/c?fieldManager=m", config_map("c"), "application/apply-patch+yaml", name="too late by apply"),
        Step("PATCH", inside + "/a", {"data": {"k": "v"}}, MERGE, name="changed still"),
        Step("DELETE", spaces + "/going", name="again"),
        Step("PUT", spaces + "/going/finalize", {"metadata": {"name": "going"}, "spec": {"finalizers": ["kubernetes", "example.com/y"]}}, name="another finalizer"),
        Step("PUT", spaces + "/going/finalize", {"metadata": {"name": "other"}, "spec": {"finalizers": []}}, name="finalize of another"),
        Step("PUT", spaces + "/going/finalize", {"metadata": {"name": "going"}, "spec": {"finalizers": []}}, name="finalized"),
        Step("GET", spaces + "/going", name="gone"),
        *(Step("DELETE", f"{spaces}/{name}", name=f"protected {name}") for name in ("default", "kube-system", "kube-public")),
        Step("GET", spaces + "?fieldSelector=status.phase%3DTerminating", name="by phase"),
        Step("GET", spaces + "/${namespace}/finalize", name="finalize is not read"),
    ]  # fmt: skip


def _forgotten() -> list[Step]:
    return [
        Step("POST", "/api/v1/namespaces", {"metadata": {"name": "forgotten"}}, is_quiet=True),
        *(Step("POST", MAPS, config_map(name), name=name, is_quiet=True) for name in ("a", "b", "c", "d")),
        Step("GET", MAPS + "?limit=2", name="page", is_quiet=True),
        Step("DELETE", MAPS + "/a", is_quiet=True),
        Step("POST", MAPS, config_map("e"), is_quiet=True),
        Step("COMPACT", ""),
        Step("GET", MAPS + "?watch=1&timeoutSeconds=2&resourceVersion=${a.metadata.resourceVersion}", name="watch"),
        Step("GET", MAPS + "?resourceVersion=${a.metadata.resourceVersion}&resourceVersionMatch=Exact", name="exact"),
        Step("GET", MAPS + "?limit=2&continue=${page.metadata.continue}", name="continue"),
        Step("GET", MAPS + "?resourceVersion=${a.metadata.resourceVersion}", name="not older"),
        Step("GET", MAPS, name="all"),
    ]  # fmt: skip


SCRIPTS = [
    Script("deleting", _deleting()),
    Script("collections", _collections()),
    Script("pods", _pods()),
    Script("dry runs", _dry_runs()),
    Script("namespaces", _namespaces()),
    Script("forgotten", _forgotten(), is_alone=True),
]
