"""Who somebody is: tokens of service accounts, what they are bound to and good for; reviews; impersonation."""

# ruff: noqa: E501 - a table of requests: one row is one line
from __future__ import annotations

from typing import Any

from tests.conformance.asking import MERGE, Json, Script, Step

_ACCOUNTS = "/api/v1/namespaces/${namespace}/serviceaccounts"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_OWN = "https://kubernetes.default.svc"


def _token(name: str, spec: Json = None, *, account: str = "robot", **more: Any) -> Step:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    return Step(
        "POST",
        f"{_ACCOUNTS}/{account}/token",
        {**body, **({"spec": spec} if spec else {})},
        name=name,
        **more,
    )


def _review(name: str, token: str, *audiences: str) -> Step:
    spec: Json = {"token": token, **({"audiences": audiences} if audiences else {})}
    return Step("POST", _REVIEWS, {"spec": spec}, name=name)


def _with(token: str, method: str, path: str, body: Json = None, **more: Any) -> Step:
    headers = {"Authorization": f"Bearer ${{{token}.status.token}}", **more.pop("headers", {})}
    return Step(method, path, body, headers=headers, is_anonymous=True, **more)


def _pod(name: str, account: str) -> Json:
    spec = {
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": "c"}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def _tokens() -> list[Step]:
    pods, secrets = "/api/v1/namespaces/${namespace}/pods", "/api/v1/namespaces/${namespace}/secrets"
    return [
        Step("POST", _ACCOUNTS, {"metadata": {"name": "robot"}}, name="robot"),
        Step("POST", _ACCOUNTS, {"metadata": {"name": "other"}}, name="other"),
        _token("plain"),
        _token("longer", {"expirationSeconds": 7200, "audiences": ["https://kubernetes.default.svc", "vault"]}),
        _token("foreign", {"audiences": ["vault"]}),
        _token("too short", {"expirationSeconds": 599}),
        _token("too long", {"expirationSeconds": 2**32 + 1}),
        _token("nobodys", account="absent"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"metadata": {"name": "other"}}, name="another name"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"metadata": {"namespace": "other"}}, name="another namespace"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"metadata": {"uid": "u"}}, name="another uid"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"metadata": {"uid": "${robot.metadata.uid}"}}, name="this uid"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"apiVersion": "v1", "kind": "Pod"}, name="another kind"),
        Step("POST", f"{_ACCOUNTS}/robot/token", "", name="no body"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"spec": {"unknown": 1}}, name="an unknown field"),
        Step("POST", f"{_ACCOUNTS}/robot/token?fieldValidation=Strict", {"spec": {"unknown": 1}}, name="an unknown field, strictly"),
        Step("POST", f"{_ACCOUNTS}/robot/token", {"spec": {"audiences": "x"}}, name="a wrong type"),
        Step("POST", f"{_ACCOUNTS}/robot/token?dryRun=All", {}, name="dry run"),
        Step("GET", f"{_ACCOUNTS}/robot/token", name="not read"),
        _with("plain", "POST", _WHO, {}, name="who"),
        _with("plain", "GET", "/api/v1/nodes", name="not allowed"),
        _with("plain", "GET", "/api", name="discovery", only=("kind", "versions")),
        _with("foreign", "GET", "/api", name="for another audience"),
        _review("good", "${plain.status.token}"),
        _review("good for one of two", "${longer.status.token}", _OWN, "else"),
        _review("good elsewhere", "${foreign.status.token}", "vault"),
        _review("not for here", "${foreign.status.token}"),
        _review("not for there", "${plain.status.token}", "vault"),
        _review("forged", "${plain.status.token}AAAA"),
        _review("cut", "a.b"),
        _review("rubbish", "rubbish"),
        _review("another issuer", "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.AAAA"),
        _review("unsigned", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ."),
        _review("nothing", ""),
        Step("POST", pods, _pod("here", "robot"), name="pod"),
        Step("POST", secrets, {"metadata": {"name": "s"}}, name="secret"),
        Step("POST", "/api/v1/nodes", {"metadata": {"name": "tokens-node"}}, name="node"),
        _token("of the pod", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "here"}}),
        _token("mounted", {"expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "here", "uid": "${pod.metadata.uid}"}}),
        _token("of the secret", {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}),
        _token("of the node", {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "tokens-node"}}),
        _token("of no pod", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "absent"}}),
        _token("of no secret", {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "absent"}}),
        _token("of no node", {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "absent"}}),
        _token("of another pod", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "here", "uid": "u"}}),
        _token("of something else", {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}),
        _token("of something of a group", {"boundObjectRef": {"kind": "Pod", "apiVersion": "apps/v1", "name": "x"}}),
        _token("of anothers pod", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "here"}}, account="other"),
        _review("the pods", "${of the pod.status.token}"),
        _review("the nodes", "${of the node.status.token}"),
        _with("mounted", "POST", _WHO, {}, name="who in the pod"),
        _token("unused of the pod", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "here"}}, is_quiet=True),
        _token("unused", is_quiet=True),
        Step("DELETE", f"{pods}/here?gracePeriodSeconds=0", is_quiet=True),
        Step("DELETE", f"{secrets}/s", is_quiet=True),
        _review("the pods, gone", "${unused of the pod.status.token}"),
        _review("the secrets, gone", "${of the secret.status.token}"),
        Step("DELETE", f"{_ACCOUNTS}/robot", is_quiet=True),
        _review("the accounts, gone", "${unused.status.token}"),
        Step("POST", _ACCOUNTS, {"metadata": {"name": "robot"}}, is_quiet=True),
        _token("new", is_quiet=True),
        _with("new", "POST", _WHO, {}, name="who again"),
        Step("GET", "/.well-known/openid-configuration", name="configuration", only=("issuer", "response_types_supported", "subject_types_supported", "id_token_signing_alg_values_supported")),
        Step("GET", "/openid/v1/jwks", name="keys", only=("kind",)),
        Step("POST", "/openid/v1/jwks", {}, name="keys posted"),
        Step("GET", "/openid/v1/jwks", is_anonymous=True, name="keys for strangers"),
        Step("GET", "/livez", is_anonymous=True, as_text=True, name="health for strangers"),
        Step("GET", "/livez/ping", is_anonymous=True, name="a check for strangers"),
        Step("POST", "/livez", "", is_anonymous=True, name="health posted by strangers"),
        Step("GET", "/livez", is_anonymous=True, headers={"Impersonate-User": "x"}, name="a stranger as another"),
        Step("GET", "/livez", is_anonymous=True, headers={"Authorization": "Bearer x"}, name="health with a wrong token"),
        Step("GET", "/livez", is_anonymous=True, headers={"Authorization": "Basic eDp4"}, name="health with a password"),
    ]  # fmt: skip


def _as(name: str, **headers: str) -> dict[str, str]:
    return {"Impersonate-User": name, **{key.replace("_", "-"): value for key, value in headers.items()}}


def _impersonation() -> list[Step]:
    def rule(verbs: list[str], group: str, resources: list[str], *names: str) -> Json:
        return {
            "verbs": verbs,
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": names} if names else {}),
        }

    old, new = ["impersonate"], ["impersonate:user-info"]
    auth = "authentication.k8s.io"
    rules = [
        rule(old, "", ["users"], "eve"),
        rule(old, "", ["groups"], "allowed"),
        rule(old, auth, ["uids"], "u1"),
        rule(old, auth, ["userextras/scopes"], "view"),
        rule(old, "", ["serviceaccounts"], "robot"),
        rule(["list"], "", ["configmaps"]),
    ]
    constrained = [
        rule(new, auth, ["users"], "ann"),
        rule(new, auth, ["groups"]),
        rule(["impersonate-on:user-info:list"], "", ["configmaps"]),
        rule(["impersonate-on:user-info:create"], auth, ["selfsubjectreviews"]),
        rule(["impersonate:serviceaccount"], auth, ["serviceaccounts"]),
        rule(["impersonate-on:serviceaccount:create"], auth, ["selfsubjectreviews"]),
        rule(["impersonate:arbitrary-node"], auth, ["nodes"], "n1"),
        rule(["impersonate-on:arbitrary-node:create"], auth, ["selfsubjectreviews"]),
    ]

    def bound(name: str, account: str, rules: Json) -> list[Step]:
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        who = {"kind": "ServiceAccount", "name": account, "namespace": "${namespace}"}
        subject = {
            "user": f"system:serviceaccount:${{namespace}}:{account}",
            "resourceAttributes": {**_first(rules)},
        }
        return [
            Step("POST", _ACCOUNTS, {"metadata": {"name": account}}, is_quiet=True),
            Step("POST", f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules}, is_quiet=True),
            Step(
                "POST",
                f"{rbac}/clusterrolebindings",
                {"metadata": {"name": name}, "roleRef": ref, "subjects": [who]},
                is_quiet=True,
            ),
            Step(
                "POST",
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                {"spec": subject},
                until_allowed=True,
                is_quiet=True,
            ),
            _token(account, account=account, is_quiet=True),
        ]

    maps = "/api/v1/namespaces/default/configmaps"
    attempts: list[tuple[str, dict[str, str]]] = [
        ("another user", _as("bob")),
        ("a user", _as("eve")),
        ("a group that is not allowed", _as("eve", Impersonate_Group="no")),
        ("a group", _as("eve", Impersonate_Group="allowed")),
        ("a uid that is not allowed", _as("eve", Impersonate_Uid="u2")),
        ("a uid", _as("eve", Impersonate_Uid="u1")),
        ("extra that is not allowed", _as("eve", Impersonate_Extra_Scopes="edit")),
        ("extra of another key", _as("eve", Impersonate_Extra_Other="view")),
        ("extra", _as("eve", Impersonate_Extra_Scopes="view")),
        ("an account", _as("system:serviceaccount:default:robot")),
        ("another account", _as("system:serviceaccount:default:human")),
        ("a node", _as("system:node:n1")),
        ("the masters", _as("eve", Impersonate_Group="system:masters")),
        ("nobody", {"Impersonate-Group": "allowed"}),
    ]
    steps = [*bound("imp-old", "old", rules), *bound("imp-new", "new", constrained)]
    for name, headers in attempts:
        steps.append(_with("old", "POST", _WHO, {}, name=f"old: {name}", headers=headers))
    for name, headers in [
        ("who", _as("ann")),
        ("another user", _as("bob")),
        ("with a group", _as("ann", Impersonate_Group="g")),
        ("the masters", _as("ann", Impersonate_Group="system:masters")),
        ("an account", _as("system:serviceaccount:default:robot")),
        ("a node", _as("system:node:n1")),
        ("another node", _as("system:node:n2")),
    ]:
        steps.append(_with("new", "POST", _WHO, {}, name=f"new: {name}", headers=headers))
    steps += [
        _with("new", "GET", maps, name="new: allowed on it, but she may not", headers=_as("ann")),
        _with("new", "GET", "/api/v1/nodes", name="new: not allowed on it", headers=_as("ann")),
        _with("new", "GET", "/absent", name="new: a path", headers=_as("ann")),
    ]
    as_admin: list[tuple[str, dict[str, str]]] = [
        ("a user", _as("bob")),
        ("groups", _as("bob", Impersonate_Group="g1")),
        ("an account", _as("system:serviceaccount:a:b")),
        ("an account with groups", _as("system:serviceaccount:a:b", Impersonate_Group="g1")),
        ("a node", _as("system:node:n1")),
        ("anonymous", _as("system:anonymous")),
        ("unauthenticated", _as("bob", Impersonate_Group="system:unauthenticated")),
        ("authenticated", _as("bob", Impersonate_Group="system:authenticated")),
        ("uid and extra", _as("bob", Impersonate_Uid="7", Impersonate_Extra_Acme_Com_Fteam="x")),
        ("a group alone", {"Impersonate-Group": "g1"}),
        ("a uid alone", {"Impersonate-Uid": "7"}),
    ]
    steps += [Step("POST", _WHO, {}, name=f"admin as {name}", headers=headers) for name, headers in as_admin]
    return steps


def _first(rules: Json) -> Json:
    """What the first of the rules allows."""
    rule = rules[0]
    return {
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": rule["resources"][0],
        "name": rule["resourceNames"][0],
    }


def _life() -> list[Step]:
    """A service account's: a token, refusals, a role, and what it still may not."""
    rbac, auth = "/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}", "/apis/authorization.k8s.io/v1"
    ref = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    subject = {"kind": "ServiceAccount", "name": "sa1", "namespace": "${namespace}"}
    pods, secrets = (
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
    )
    return [
        Step("POST", _ACCOUNTS, {"metadata": {"name": "sa1"}}, is_quiet=True),
        _token("sa-token", {"expirationSeconds": 3600}, account="sa1"),
        _review("tr-sa", "${sa-token.status.token}"),
        _with("sa-token", "POST", _WHO, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, name="ssr-sa"),
        _with("sa-token", "POST", f"{auth}/selfsubjectrulesreviews", {"spec": {"namespace": "${namespace}"}}, name="ssrr"),
        _with("sa-token", "GET", "/api/v1/nodes", name="sa-forbidden"),
        _with("sa-token", "PATCH", "/apis/apps/v1/namespaces/${namespace}/deployments/x/status", {"a": 1}, content_type=MERGE, name="sa-forbidden-sub"),
        _with("sa-token", "GET", "/metrics", name="sa-forbidden-nonres"),
        Step("GET", "/api/v1/pods", headers={"Impersonate-User": "bob", "Impersonate-Group": "g1"}, name="impersonate"),
        Step("POST", f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [pods]}, name="rbac-role"),
        Step("POST", f"{rbac}/rolebindings", {"metadata": {"name": "rb"}, "roleRef": ref, "subjects": [subject]}, name="rbac-rb"),
        _with("sa-token", "GET", "/api/v1/namespaces/${namespace}/pods", until=200, name="sa-allowed"),
        _with("sa-token", "POST", f"{rbac}/roles", {"metadata": {"name": "r2"}, "rules": [secrets]}, name="rbac-escalate"),
        Step("PUT", f"{rbac}/rolebindings/rb", {"metadata": {"name": "rb"}, "roleRef": {**ref, "name": "zz"}}, name="rbac-roleref-immutable"),
        Step("GET", "/.well-known/openid-configuration", name="oidc", only=("issuer", "response_types_supported", "subject_types_supported")),
    ]  # fmt: skip


SCRIPTS = [
    Script("tokens", _tokens()),
    Script("impersonation", _impersonation()),
    Script("a service account", _life()),
]
