"""CertificateSigningRequests: who asks, who approves or denies, who signs, and what each may write."""

from __future__ import annotations

from typing import Any, Final

from tests.conformance.asking import MERGE, Json, Script, Step

_PATH: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
# Of robot in a team, and of robot among the masters; and a certificate that signs itself.
_REQUEST: Final = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYU1JR0JBZ0VBTUI4eERUQUxCZ05WQkFvTUJIUmxZVzB4"
    "RGpBTUJnTlZCQU1NQlhKdlltOTBNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFYVFJNUhSamd2aEVSbUkz"
    "SUt2TzJFQXJ1T09LUnNOSWlQc2Z0CmE2Z3Rma2FZVG1JSlgzNmZHaGFQdFp0d0treGdYKzB5M1BTaFo4cFU0MTEybU1iMTRx"
    "QUFNQW9HQ0NxR1NNNDkKQkFNQ0EwZ0FNRVVDSUVETGRGdHJFd0Z2anR5MkNlbWlkdDNTMEF4S0hmUDhyRkc0MW9YSW9velVB"
    "aUVBKzRlVApmaXFlWWNTTmdmMTF3ZFhJWTFndWFQOXhVdnlFYkhwamJZNzJSdVU9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJF"
    "UVVFU1QtLS0tLQo="
)
_OF_MASTERS: Final = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIbE1JR0xBZ0VBTUNreEZ6QVZCZ05WQkFvTURuTjVjM1Js"
    "YlRwdFlYTjBaWEp6TVE0d0RBWURWUVFEREFWeQpiMkp2ZERCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkt1"
    "V0Y3RUs3NXVqRWhsYmpnYjRBeklOClhJdWJkanIzVzhTUmpybW5DSUsyWEZrR0E1SS9FTWJZMmxzczhCT0V1ay9BTHhGbWo4"
    "M0xaNUlqeVBiVmhoR2cKQURBS0JnZ3Foa2pPUFFRREFnTkpBREJHQWlFQTJNRnJXNG5yc2U4cWtjcThKNEhQdEtNcFJ2Q1Y5"
    "NDlkSVY3Mwp0Z0YrRzBrQ0lRRDA5VFRKMDNaQ2c0VHQ2a0xuc1RSdlRDOWxQTXZCbjBzekhxWnA2M0NCNWc9PQotLS0tLUVO"
    "RCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
_CERTIFICATE: Final = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJMVENCMDZBREFnRUNBZ0VITUFvR0NDcUdTTTQ5QkFNQ01COHhEVEFM"
    "QmdOVkJBb01CSFJsWVcweERqQU0KQmdOVkJBTU1CWEp2WW05ME1DQVhEVEl3TURFd01UQXdNREF3TUZvWUR6SXhNakF3TVRB"
    "eE1EQXdNREF3V2pBZgpNUTB3Q3dZRFZRUUtEQVIwWldGdE1RNHdEQVlEVlFRRERBVnliMkp2ZERCWk1CTUdCeXFHU000OUFn"
    "RUdDQ3FHClNNNDlBd0VIQTBJQUJHa0NPUjBZNEw0UkVaaU55Q3J6dGhBSzdqamlrYkRTSWo3SDdXdW9MWDVHbUU1aUNWOSsK"
    "bnhvV2o3V2JjQ3BNWUYvdE10ejBvV2ZLVk9OZGRwakc5ZUl3Q2dZSUtvWkl6ajBFQXdJRFNRQXdSZ0loQUk1WQpXTjl2MkpM"
    "cll4TVVTSmZCZjZRdUY0YXZFdk9HVHRGN2lrdnhhYUFFQWlFQTE1T0xNWk5wSzRtS0orK1Z6ejl4Cll5Z1JPQXAwRmlqUE1D"
    "WnJLcXAvSDh3PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg=="
)
_USER: Final = {
    "Impersonate-User": "jane",
    "Impersonate-Group": "staff",
    "Impersonate-Uid": "17",
    "Impersonate-Extra-Team": "blue",
}


def _asked(name: str, signer: str = "example.com/signer", request: str = _REQUEST, **more: Any) -> Json:
    spec = {"request": request, "signerName": signer, "usages": ["client auth"], **more}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": spec,
    }


def _condition(kind: str, status: str = "True", **more: str) -> Json:
    return {"type": kind, "status": status, "reason": "Because", "message": "it is so", **more}


def _conditions(*conditions: Json, **more: Json) -> Json:
    return {"status": {"conditions": list(conditions), **more}}


def _written(name: str, csr: str, below: str, patch: Json, **more: Any) -> Step:
    return Step("PATCH", f"{_PATH}/${{namespace}}-{csr}{below}", patch, MERGE, name=name, **more)


def _certificates() -> list[Step]:
    one, two, three = "${namespace}-one", "${namespace}-two", "${namespace}-three"
    approved, denied, failed = (_condition(kind) for kind in ("Approved", "Denied", "Failed"))
    old = _condition(
        "Approved", lastUpdateTime="2020-01-01T00:00:00Z", lastTransitionTime="2020-01-01T00:00:00Z"
    )
    garbage = "bm90aGluZw=="
    return [
        Step("POST", _PATH, _asked(one), name="asked"),
        Step(
            "POST",
            _PATH,
            _asked(two, expirationSeconds=3600, username="other", uid="1", groups=["g"]),
            name="asked for another",
        ),
        Step(
            "POST",
            _PATH,
            {**_asked(three), **_conditions(approved, certificate=_CERTIFICATE)},
            name="asked with a status",
        ),
        Step(
            "POST",
            _PATH,
            _asked("${namespace}-four", "kubernetes.io/kube-apiserver-client", _OF_MASTERS),
            name="masters",
        ),
        Step("POST", _PATH, _asked("${namespace}-five", "kubernetes.io/legacy-unknown"), name="legacy"),
        Step("POST", _PATH, _asked("${namespace}-six", request=garbage), name="no request"),
        Step("POST", _PATH, _asked("${namespace}-seven", expirationSeconds=599), name="too short"),
        _written("spec changed", "one", "", {"spec": {"usages": ["server auth"], "username": "x"}}),
        _written("approved at the object", "one", "", _conditions(approved)),
        _written("approved at the status", "one", "/status", _conditions(approved)),
        _written("approved falsely", "one", "/approval", _conditions(_condition("Approved", "False"))),
        _written("approved for nothing", "one", "/approval", _conditions({"type": "Approved"})),
        _written("both", "one", "/approval", _conditions(approved, denied)),
        _written("failed at approval", "two", "/approval", _conditions(failed)),
        _written(
            "spec at approval",
            "one",
            "/approval",
            {"spec": {"usages": ["server auth"]}, "metadata": {"labels": {"a": "b"}}},
        ),
        _written("certificate at approval", "one", "/approval", _conditions(certificate=_CERTIFICATE)),
        _written("approved", "one", "/approval", _conditions(approved)),
        _written("approved long ago", "one", "/approval", _conditions(old)),
        _written("denied after all", "one", "/approval", _conditions(approved, denied)),
        _written("taken back", "one", "/approval", _conditions()),
        _written("other words", "one", "/status", _conditions(_condition("Approved", message="other"))),
        Step("GET", f"{_PATH}/{one}/approval", name="read"),
        Step("GET", f"{_PATH}/{one}/status", name="status read"),
        _written("signed with garbage", "one", "/status", {"status": {"certificate": garbage}}),
        _written("signed with a request", "one", "/status", {"status": {"certificate": _REQUEST}}),
        _written("signed", "one", "/status", {"status": {"certificate": _CERTIFICATE}}),
        _written("signed anew", "one", "/status", {"status": {"certificate": garbage}}),
        _written("unsigned", "one", "/status", {"status": {"certificate": None}}),
        _written("failed late", "one", "/status", {"status": {"conditions": [old, failed]}}),
        _written("denied", "two", "/approval", _conditions(denied)),
        _written("another condition", "two", "/approval", _conditions(denied, _condition("Odd", "Unknown"))),
        _written("signed though denied", "two", "/status", {"status": {"certificate": _CERTIFICATE}}),
        Step(
            "GET",
            f"{_PATH}?fieldSelector=spec.signerName%3Dexample.com/signer",
            name="found by signer",
            only=("kind",),
        ),
        *_others(three),
        *(Step("DELETE", f"{_PATH}/{name}", is_quiet=True) for name in (one, two, three)),
    ]


def _others(name: str) -> list[Step]:
    """Somebody who may write requests, their approval and status, and is nobody's signer."""
    roles = "/apis/rbac.authorization.k8s.io/v1"
    resources = [f"certificatesigningrequests{below}" for below in ("", "/approval", "/status")]
    rule = {"apiGroups": ["certificates.k8s.io"], "resources": resources, "verbs": ["*"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "${namespace}"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    signer = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": ["example.com/*"],
        "verbs": ["approve", "sign"],
    }
    target = f"{_PATH}/${{namespace}}-of-jane"
    return [
        Step(
            "POST",
            f"{roles}/clusterroles",
            {"metadata": {"name": "${namespace}"}, "rules": [rule]},
            is_quiet=True,
        ),
        Step(
            "POST",
            f"{roles}/clusterrolebindings",
            {"metadata": {"name": "${namespace}"}, "roleRef": reference, "subjects": [subject]},
            is_quiet=True,
        ),
        Step("GET", _PATH, headers=_USER, until=200, is_quiet=True),
        Step("POST", _PATH, _asked("${namespace}-of-jane"), headers=_USER, name="asked by jane"),
        Step(
            "PATCH",
            f"{target}/approval",
            _conditions(_condition("Approved")),
            MERGE,
            headers=_USER,
            name="approved by nobody",
        ),
        Step(
            "PATCH",
            f"{target}/approval",
            {"metadata": {"labels": {"a": "b"}}},
            MERGE,
            headers=_USER,
            name="labelled at approval",
        ),
        Step(
            "PATCH",
            f"{target}/status",
            {"status": {"certificate": _CERTIFICATE}},
            MERGE,
            headers=_USER,
            name="signed by nobody",
        ),
        Step(
            "PATCH",
            f"{target}/status",
            _conditions(_condition("Failed")),
            MERGE,
            headers=_USER,
            name="failed by nobody",
        ),
        Step(
            "PATCH", f"{roles}/clusterroles/${{namespace}}", {"rules": [rule, signer]}, MERGE, is_quiet=True
        ),
        Step(
            "PATCH",
            f"{target}/approval",
            _conditions(_condition("Approved")),
            MERGE,
            headers=_USER,
            name="approved by jane",
            until=200,
        ),
        Step(
            "PATCH",
            f"{target}/status",
            {"status": {"certificate": _CERTIFICATE}},
            MERGE,
            headers=_USER,
            name="signed by jane",
        ),
        Step("DELETE", target, is_quiet=True),
        Step("DELETE", f"{roles}/clusterroles/${{namespace}}", is_quiet=True),
        Step("DELETE", f"{roles}/clusterrolebindings/${{namespace}}", is_quiet=True),
        Step("GET", f"{_PATH}/{name}", name="the third"),
    ]


SCRIPTS = [Script("certificates", _certificates())]
