"""Who may do what: rules, roles and bindings; refusals and reviews; and who may give what to whom."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from typing import Any

from tests.conformance.asking import APPLY, MERGE, Json, Script, Step

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_LOCAL = f"{_RBAC}/namespaces/${{namespace}}"
_MAPS = "/api/v1/namespaces/${namespace}/configmaps"
_WATCHED = _MAPS.replace("/v1/", "/v1/watch/")
_MAY = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MAY_I = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MAY_HERE = "/apis/authorization.k8s.io/v1/namespaces/${namespace}/localsubjectaccessreviews"
_WHAT = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_GROUP = "rbac.authorization.k8s.io"


def _rule(verbs: str, groups: str, resources: str, *names: str) -> Json:
    """Each a list with commas; "core" is the group without a name."""
    found = {
        "verbs": verbs.split(","),
        "apiGroups": ["" if one == "core" else one for one in groups.split(",")],
        "resources": resources.split(","),
    }
    return {**found, **({"resourceNames": list(names)} if names else {})}


def _paths(verbs: str, *paths: str) -> Json:
    return {"verbs": verbs.split(","), "nonResourceURLs": list(paths)}


def _role(name: str, *rules: Json, **more: Json) -> Json:
    return {
        "metadata": {"name": name, **more.pop("metadata", {})},
        **({"rules": list(rules)} if rules else {}),
        **more,
    }


def _binding(name: str, kind: str, role: str, *users: str) -> Json:
    ref = {"apiGroup": _GROUP, "kind": kind, "name": role}
    return {
        "metadata": {"name": name},
        "roleRef": ref,
        "subjects": [{"kind": "User", "name": user} for user in users],
    }


def _by(user: str, method: str, path: str, body: Any = None, content_type: str = "", **more: Any) -> Step:
    headers = {"Impersonate-User": user, **more.pop("headers", {})}
    return Step(method, path, body, content_type, headers=headers, **more)


def _given(user: str, *rules: Json, namespace: str = "") -> list[Step]:
    """Give a user rules, in one namespace or in all, and wait until it has them."""
    root, kind = (f"{_RBAC}/namespaces/{namespace}", "Role") if namespace else (_RBAC, "ClusterRole")
    roles, bindings = ("roles", "rolebindings") if namespace else ("clusterroles", "clusterrolebindings")
    marker = _rule("get", "given.example.com", user)  # what nobody else has
    asked = {"verb": "get", "group": "given.example.com", "resource": user, "namespace": namespace}
    return [
        Step("POST", f"{root}/{roles}", _role(f"of-{user}", *rules, marker), is_quiet=True),
        Step("POST", f"{root}/{bindings}", _binding(f"to-{user}", kind, f"of-{user}", user), is_quiet=True),
        Step(
            "POST",
            _MAY,
            {"spec": {"user": user, "resourceAttributes": asked}},
            until_allowed=True,
            is_quiet=True,
        ),
    ]


def _refusals() -> list[Step]:
    """Everything that nobody allowed, in its words."""
    asked: list[tuple[str, str, str]] = [
        ("list", "GET", "/api/v1/nodes"),
        ("get", "GET", "/api/v1/nodes/n"),
        ("in a namespace", "GET", _MAPS),
        ("watch", "GET", f"{_MAPS}?watch=true"),
        ("no watch", "GET", f"{_MAPS}?watch=false"),
        ("one by selector", "GET", f"{_MAPS}?fieldSelector=metadata.name%3Dx"),
        (
            "one watched by selector",
            "GET",
            f"{_MAPS}?watch=1&fieldSelector=metadata.name%3D%3Dx,metadata.namespace%3Dy",
        ),
        ("others by selector", "GET", f"{_MAPS}?fieldSelector=metadata.name%21%3Dx"),
        ("the old watch", "GET", "/api/v1/watch/configmaps"),
        ("the old watch of one", "GET", "/api/v1/watch/namespaces/default/configmaps/x"),
        ("create", "POST", _MAPS),
        ("update", "PUT", f"{_MAPS}/x"),
        ("patch", "PATCH", f"{_MAPS}/x"),
        ("delete", "DELETE", f"{_MAPS}/x"),
        ("delete all", "DELETE", _MAPS),
        ("a subresource", "PATCH", "/apis/apps/v1/namespaces/default/deployments/x/status"),
        ("below a subresource", "GET", "/api/v1/namespaces/default/pods/x/proxy/a/b"),
        ("a namespace", "GET", "/api/v1/namespaces/default"),
        ("its status", "PUT", "/api/v1/namespaces/default/status"),
        ("its finalizers", "PUT", "/api/v1/namespaces/default/finalize"),
        ("no such resource", "GET", "/api/v1/absents"),
        ("no such group", "GET", "/apis/absent.example.com/v1/things"),
        ("no such version", "GET", "/apis/apps/v9/things"),
        ("no such namespace", "GET", "/api/v1/namespaces/absent/pods"),
        ("a path", "GET", "/absent"),
        ("a path posted", "POST", "/absent/below"),
        ("metrics", "GET", "/metrics"),
        ("the root", "GET", "/"),
        ("html", "GET", "/a<b>&c"),
    ]
    return [
        *(_by("nobody", method, path, {} if method in ("POST", "PUT", "PATCH") else None, name=name) for name, method, path in asked),
        _by('q"uote', "GET", _MAPS, name="a user with a quote"),
        _by("nobody", "GET", "/api", name="discovery", only=("kind", "versions")),
        _by("nobody", "GET", "/apis/apps/v1", name="discovery of a version", only=("kind",)),
        _by("nobody", "GET", "/version", name="the version", only=("major",)),
        _by("nobody", "GET", "/healthz", name="health", as_text=True),
        _by("nobody", "GET", "/openapi/v3", name="openapi", only=("kind",)),
        _by("nobody", "GET", "/readyz/ping", name="a check"),
    ]  # fmt: skip


def _rules() -> list[Step]:
    deployments = "/apis/apps/v1/namespaces/${namespace}/deployments"
    return [
        Step("POST", _MAPS, {"metadata": {"name": "a"}}, is_quiet=True),
        Step("POST", _MAPS, {"metadata": {"name": "b"}}, is_quiet=True),
        *_given("reader", _rule("get,list", "core", "configmaps"), namespace="${namespace}"),
        _by("reader", "GET", f"{_MAPS}/a", name="get"),
        _by("reader", "GET", _MAPS, name="list", only=("kind",)),
        _by("reader", "GET", f"{_MAPS}?watch=true", name="no watch"),
        _by("reader", "GET", "/api/v1/configmaps", name="not everywhere"),
        _by("reader", "GET", "/api/v1/namespaces/default/configmaps/a", name="not elsewhere"),
        _by("reader", "DELETE", f"{_MAPS}/a", name="no delete"),
        *_given("one", _rule("get,delete,update,list,watch", "core", "configmaps", "b"), namespace="${namespace}"),
        _by("one", "GET", f"{_MAPS}/b", name="that one"),
        _by("one", "GET", f"{_MAPS}/a", name="not the other"),
        _by("one", "GET", _MAPS, name="not all"),
        _by("one", "GET", f"{_MAPS}?fieldSelector=metadata.name%3Db", name="that one, selected", only=("kind",)),
        _by("one", "GET", f"{_MAPS}?fieldSelector=metadata.namespace%21%3Dx%5C,metadata.name%3Db", name="no name, but a value with a comma"),
        _by("one", "GET", f"{_MAPS}?fieldSelector=metadata.name%21%3Dx%5C,metadata.name%3Db", name="nor in another field"),
        _by("one", "GET", f"{_MAPS}?fieldSelector=x,metadata.name%3Db", name="no selector"),
        *(
            _by("one", "GET", f"{_WATCHED}/b?timeoutSeconds=1&fieldSelector={selector}", name=f"the old watch of that one, {name}", only=("reason", "message", "code"))
            for name, selector in (
                ("another selected", "metadata.name%3Da"),
                ("others selected", "metadata.namespace%21%3Dx"),
                ("ending in a backslash", "metadata.namespace%21%3Dx%5C"),
                ("no selector", "x"),
            )
        ),
        _by("one", "GET", f"{_WATCHED}/b?timeoutSeconds=1&fieldSelector=metadata.name%3Db", name="the old watch of that one, selected", lines=1),
        _by("one", "DELETE", _MAPS, name="not all deleted"),
        *_given("everywhere", _rule("list", "core", "configmaps"), _rule("*", "*", "*/scale"), _rule("get", "apps", "deployments/status"), _paths("get", "/metrics", "/logs/*")),
        _by("everywhere", "GET", "/api/v1/configmaps?limit=1", name="all of them", only=("kind",)),
        _by("everywhere", "GET", f"{deployments}/x/scale", name="any scale"),
        _by("everywhere", "GET", f"{deployments}/x/status", name="that status"),
        _by("everywhere", "GET", f"{deployments}/x", name="not the object"),
        _by("everywhere", "GET", "/logs/a/b", name="paths below"),
        _by("everywhere", "GET", "/logs", name="not the path above"),
        *_given("patcher", _rule("patch,update", "core", "configmaps"), _rule("patch,update", "coordination.k8s.io", "leases")),
        _by("patcher", "PATCH", f"{_MAPS}/new?fieldManager=f", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}, APPLY, name="apply does not create"),
        _by("patcher", "PATCH", f"{_MAPS}/a?fieldManager=f", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}, APPLY, name="apply changes", only=("kind",)),
        _by("patcher", "PUT", "/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/new", {"metadata": {"name": "new"}, "spec": {}}, name="update does not create"),
        Step("POST", f"{_LOCAL}/rolebindings", _binding("dangling", "Role", "absent", "dangler"), is_quiet=True),
        Step("POST", f"{_LOCAL}/rolebindings", _binding("dangling-too", "ClusterRole", "absent-too", "dangler"), is_quiet=True),
        *_given("dangler", _rule("get", "core", "nodes"), namespace="${namespace}"),
        _by("dangler", "GET", f"{_MAPS}/a", name="a role that is not there", only=("reason", "code")),
        Step("POST", f"{_LOCAL}/rolebindings", _binding("single", "Role", "absent", "single"), is_quiet=True),
        *_given("single", _rule("get", "core", "nodes"), namespace="${namespace}"),
        _by("single", "GET", f"{_MAPS}/a", name="one role that is not there"),
        _by("single", "POST", _WHAT, {"spec": {"namespace": "${namespace}"}}, name="rules, and one that is not there"),
        Step("POST", f"{_LOCAL}/rolebindings", {"metadata": {"name": "accounts"}, "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "of-reader"}, "subjects": [{"kind": "ServiceAccount", "name": "here", "namespace": "${namespace}"}, {"kind": "Group", "name": "readers"}]}, is_quiet=True),
        _by("system:serviceaccount:${namespace}:here", "GET", f"{_MAPS}/a", name="by its account", until=200, only=("kind",)),
        _by("system:serviceaccount:default:here", "GET", f"{_MAPS}/a", name="not anothers account"),
        _by("anyone", "GET", f"{_MAPS}/a", headers={"Impersonate-Group": "readers"}, name="by its group", only=("kind",)),
        _by("chief", "GET", f"{_MAPS}/a", headers={"Impersonate-Group": "system:masters"}, name="the masters", only=("kind",)),
        Step("DELETE", f"{_LOCAL}/rolebindings/to-reader", is_quiet=True),
        _by("reader", "GET", f"{_MAPS}/a", name="taken away", until=403),
    ]  # fmt: skip


def _about(**attributes: str) -> Json:
    return {"resourceAttributes": attributes}


def _reviews() -> list[Step]:
    pods = {"verb": "get", "resource": "pods", "namespace": "${namespace}"}
    odd, empty, full = (
        {"key": "a", "operator": "Odd"},
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["b"]},
    )
    unread: dict[str, Json] = {
        f"{name} {word}": {name: {"requirements": [one]}}
        for name in ("labelSelector", "fieldSelector")
        for word, one in (("with an odd operator", odd), ("with no values", empty), ("with values", full))
    }
    unread["selectors that are odd"] = {
        name: {"requirements": [odd]} for name in ("labelSelector", "fieldSelector")
    }
    return [
        *_given("seer", _rule("get", "core", "pods,pods/log"), _rule("get", "core", "secrets", "s"), _paths("get", "/x/*"), namespace=""),
        *_given("local", _rule("get", "core", "pods"), namespace="${namespace}"),
        Step("POST", _MAY, {"spec": {"user": "seer", **_about(**pods)}}, name="allowed"),
        Step("POST", _MAY, {"spec": {"user": "local", **_about(**pods)}}, name="allowed here"),
        Step("POST", _MAY, {"spec": {"user": "local", **_about(**{**pods, "namespace": "default"})}}, name="not there"),
        Step("POST", _MAY, {"spec": {"user": "local", **_about(verb="get", resource="pods")}}, name="not everywhere"),
        Step("POST", _MAY, {"spec": {"user": "seer", **_about(**pods, subresource="log")}}, name="a subresource"),
        Step("POST", _MAY, {"spec": {"user": "seer", **_about(**pods, subresource="exec")}}, name="not another"),
        Step("POST", _MAY, {"spec": {"user": "seer", **_about(verb="get", resource="secrets", name="s")}}, name="by name"),
        Step("POST", _MAY, {"spec": {"user": "seer", **_about(verb="get", resource="secrets", name="t")}}, name="not by another name"),
        Step("POST", _MAY, {"spec": {"user": "seer", **_about(verb="*", resource="*", group="*")}}, name="everything"),
        Step("POST", _MAY, {"spec": {"user": "chief", "groups": ["system:masters"], **_about(verb="*", resource="*", group="*")}}, name="everything, for the masters"),
        Step("POST", _MAY, {"spec": {"groups": ["system:authenticated"], "nonResourceAttributes": {"verb": "get", "path": "/api/v1"}}}, name="a path, for a group"),
        Step("POST", _MAY, {"spec": {"user": "seer", "uid": "u", "extra": {"k": ["v"]}, "nonResourceAttributes": {"verb": "get", "path": "/x/y"}}}, name="a path below"),
        Step("POST", _MAY, {"spec": {"user": "seer", "nonResourceAttributes": {"verb": "get", "path": "/x"}}}, name="not the path above"),
        Step("POST", _MAY, {"spec": {"user": "x"}}, name="neither"),
        Step("POST", _MAY, {"spec": {"user": "x", **_about(verb="get"), "nonResourceAttributes": {"verb": "get", "path": "/"}}}, name="both"),
        Step("POST", _MAY, {"spec": _about(verb="get")}, name="nobody"),
        Step("POST", _MAY, {"spec": {"user": "x", "resourceAttributes": {"verb": "list", "fieldSelector": {}, "labelSelector": {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}}}}, name="selectors"),
        *(
            Step("POST", _MAY, {"spec": {"user": "x", "resourceAttributes": {"verb": "list", "resource": "pods", **said}}}, name=name)
            for name, said in unread.items()
        ),
        Step("POST", _MAY, {"metadata": {"name": "x"}, "spec": {"user": "x", **_about(verb="get")}}, name="with a name"),
        Step("POST", _MAY_HERE, {"spec": {"user": "local", **_about(**pods)}}, name="local"),
        Step("POST", _MAY_HERE, {"spec": {"user": "local", **_about(**{**pods, "namespace": "default"})}}, name="local, of another namespace"),
        Step("POST", _MAY_HERE, {"spec": {"user": "local", "nonResourceAttributes": {"verb": "get", "path": "/"}}}, name="local, of a path"),
        Step("POST", _MAY_HERE, {"metadata": {"name": "x"}, "spec": {"user": "local", **_about(**pods)}}, name="local, with a name"),
        Step("POST", _MAY_HERE, {"metadata": {"namespace": "x"}, "spec": {"user": "local", **_about(**pods)}}, name="local, elsewhere"),
        Step("POST", _MAY_I, {"spec": _about(**pods)}, name="the administrator may"),
        _by("seer", "POST", _MAY_I, {"spec": _about(**pods)}, name="I may"),
        _by("nobody", "POST", _MAY_I, {"spec": _about(**pods)}, name="I may not"),
        _by("nobody", "POST", _MAY, {"spec": {"user": "x", **_about(**pods)}}, name="nobody may ask for others"),
        _by("nobody", "POST", _MAY_I, {"spec": {}}, name="I ask nothing"),
        Step("POST", _WHAT, {"spec": {"namespace": "default"}}, name="what the administrator may"),
        _by("local", "POST", _WHAT, {"spec": {"namespace": "${namespace}"}}, name="what I may here"),
        _by("local", "POST", _WHAT, {"spec": {"namespace": "default"}}, name="what I may there"),
        _by("seer", "POST", _WHAT, {"spec": {"namespace": "default"}}, name="what I may anywhere"),
        _by("nobody", "POST", _WHAT, {"spec": {}}, name="what I may nowhere"),
        Step("GET", _MAY, name="not read"),
    ]  # fmt: skip


def _escalation() -> list[Step]:
    roles, bindings = f"{_LOCAL}/roles", f"{_LOCAL}/rolebindings"
    cluster_roles, cluster_bindings = f"{_RBAC}/clusterroles", f"{_RBAC}/clusterrolebindings"
    writes = _rule(
        "create,update,patch,get,delete", _GROUP, "roles,rolebindings,clusterroles,clusterrolebindings"
    )
    more = [
        _rule("get,list", "core,apps", "pods,secrets"),
        _rule("get,delete", "core", "pods", "a", "b"),
        _paths("get,post", "/x", "/y/*"),
        _rule("get", "core", "pods/log"),
    ]
    local = [one for one in more if "nonResourceURLs" not in one]
    return [
        *_given("giver", writes, _rule("get", "core", "pods"), _rule("*", "batch", "*"), _paths("get", "/y/*"), _rule("update", "*", "*/status")),
        Step("POST", cluster_roles, _role("esc-strong", *more), is_quiet=True),
        Step("POST", cluster_roles, _role("esc-weak", _rule("get", "core", "pods")), is_quiet=True),
        Step("POST", roles, _role("weak", _rule("get", "core", "pods")), is_quiet=True),
        Step("POST", roles, _role("strong", *local), is_quiet=True),
        _by("giver", "POST", roles, _role("r1", *more), name="a role with more"),
        _by("giver", "POST", roles, _role("r2", _rule("get", "core", "pods", "x"), _rule("get,list", "batch", "jobs,jobs/status"), _rule("update", "apps", "deployments/status")), name="a role with less"),
        _by("giver", "POST", roles, _role("r3", _rule("*", "core", "pods"), _paths("get", "/*"), _rule("update", "apps", "*")), name="a role with all of it"),
        _by("giver", "POST", roles, _role("r4"), name="a role with nothing"),
        _by("giver", "POST", cluster_roles, _role("esc-less", _paths("get", "/y/z")), name="a cluster role with less"),
        _by("giver", "POST", roles, {"metadata": {"generateName": "r5-"}, "rules": more}, name="a role without a name"),
        _by("giver", "PUT", f"{roles}/weak", _role("weak", *more), name="a role made stronger"),
        _by("giver", "PATCH", f"{roles}/weak", {"rules": more}, MERGE, name="a role patched stronger"),
        _by("giver", "PATCH", f"{roles}/strong", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="a stronger role labelled"),
        _by("giver", "PATCH", f"{roles}/strong", {"metadata": {"finalizers": ["a.example.com/b"]}}, MERGE, name="a stronger role finalized", only=("kind",)),
        _by("giver", "PATCH", f"{roles}/strong", {"metadata": {"finalizers": None}}, MERGE, is_quiet=True),
        _by("giver", "PUT", f"{roles}/fresh", _role("fresh", *more), name="a role put", only=("message",)),
        _by("giver", "POST", cluster_roles, _role("esc-more", *more), name="a cluster role with more"),
        _by("giver", "POST", cluster_roles, _role("esc-agg", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}), name="a cluster role that gathers"),
        _by("giver", "PATCH", f"{cluster_roles}/esc-weak", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}, MERGE, name="a cluster role made to gather"),
        _by("giver", "PATCH", f"{cluster_roles}/esc-weak", {"metadata": {"labels": {"a": "b"}}}, MERGE, name="a weaker cluster role labelled", only=("kind",)),
        _by("giver", "POST", bindings, _binding("b1", "Role", "weak", "x"), name="a binding to less"),
        _by("giver", "POST", bindings, _binding("b2", "Role", "strong", "x"), name="a binding to more"),
        _by("giver", "POST", bindings, _binding("b3", "ClusterRole", "esc-strong", "x"), name="a binding to more of the cluster"),
        _by("giver", "POST", bindings, _binding("b4", "ClusterRole", "esc-weak", "x"), name="a binding to less of the cluster"),
        _by("giver", "POST", bindings, _binding("b5", "Role", "absent", "x"), name="a binding to nothing"),
        _by("giver", "POST", bindings, _binding("b6", "ClusterRole", "absent", "x"), name="a binding to nothing of the cluster"),
        _by("giver", "POST", bindings, {"metadata": {"name": "b7"}, "roleRef": {"apiGroup": "", "kind": "Else", "name": "x"}}, name="a binding to something else"),
        _by("giver", "POST", cluster_bindings, _binding("esc-b1", "ClusterRole", "cluster-admin", "x"), name="a cluster binding to everything"),
        _by("giver", "POST", cluster_bindings, _binding("esc-b2", "ClusterRole", "esc-weak", "x"), name="a cluster binding to less"),
        _by("giver", "PATCH", f"{bindings}/b1", {"subjects": [{"kind": "User", "name": "y"}]}, MERGE, name="a binding to less, changed", only=("kind",)),
        _by("giver", "POST", bindings, _binding("b8", "Role", "strong"), name="a binding of nobody"),
        *_given("binder", writes, _rule("bind", _GROUP, "clusterroles", "esc-strong"), _rule("bind", _GROUP, "roles")),
        _by("binder", "POST", bindings, _binding("c1", "ClusterRole", "esc-strong", "x"), name="who may bind it", only=("kind",)),
        _by("binder", "POST", bindings, _binding("c2", "ClusterRole", "cluster-admin", "x"), name="who may not bind that"),
        _by("binder", "POST", bindings, _binding("c3", "Role", "strong", "x"), name="who may bind any role", only=("kind",)),
        _by("binder", "POST", bindings, _binding("c4", "Role", "absent", "x"), name="who may bind a role to come", only=("kind",)),
        _by("binder", "POST", roles, _role("r6", *more), name="who may bind writes no more"),
        *_given("escalator", writes, _rule("escalate", _GROUP, "roles")),
        _by("escalator", "POST", roles, _role("r7", *local), name="who may escalate", only=("kind",)),
        _by("escalator", "POST", cluster_roles, _role("esc-r8", *more), name="who may not escalate these"),
        _by("escalator", "POST", bindings, _binding("e1", "Role", "r7", "x"), name="who may escalate binds no more"),
        Step("POST", cluster_roles, _role("esc-admin", _rule("*", "*", "*"), _paths("*", "*")), name="the administrator gives everything", only=("kind",)),
    ]  # fmt: skip


def _defaults() -> list[Step]:
    """What is there from the beginning; admin, edit and view are empty where nobody gathers their rules."""
    return [
        Step("GET", f"{_RBAC}/clusterroles", name="cluster roles"),
        Step("GET", f"{_RBAC}/clusterrolebindings", name="cluster role bindings"),
        Step("GET", f"{_RBAC}/roles", name="roles"),
        Step("GET", f"{_RBAC}/rolebindings", name="role bindings"),
    ]


SCRIPTS = [
    Script("refusals", _refusals()),
    Script("rules", _rules()),
    Script("access reviews", _reviews()),
    Script("escalation", _escalation()),
    Script("default roles", _defaults(), is_alone=True),
]
