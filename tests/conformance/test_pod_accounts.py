"""Pods run as service accounts, where somebody makes accounts: on both servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.asking import MERGE, Answer, Asker, Script, Step
from tests.conformance.planes import NewPlane

_HERE = "/api/v1/namespaces/${namespace}"
_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


def _made(name: str, until: int = 0, **spec: Any) -> Step:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "b"}], **spec}}
    return Step("POST", f"{_HERE}/pods", body, name=name, until=until)


_MOUNTED: dict[str, Any] = {
    "initContainers": [{"name": "i", "image": "b"}],
    "containers": [{"name": "a", "image": "b", "volumeMounts": [{"name": "v", "mountPath": _TOKENS}]}],
    "volumes": [{"name": "v", "emptyDir": {}}],
}
_ENFORCED = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}
_SCRIPT = Script(
    "accounts of pods",
    [
        Step("GET", f"{_HERE}/serviceaccounts/default", until=200, is_quiet=True),
        _made("plain"),
        _made("stranger", serviceAccountName="absent"),
        _made("without", automountServiceAccountToken=False),
        _made("mounted", **_MOUNTED),
        Step("PATCH", f"{_HERE}/serviceaccounts/default", _ENFORCED, MERGE, name="enforced"),
        _made("secret", 403, volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
    ],
)


@pytest.fixture(scope="module")
def said(new_plane: NewPlane) -> Iterator[dict[str, Answer]]:
    with new_plane(controller_manager=True) as plane:
        asker = Asker(plane)
        yield {step[4:]: answer for step, answer in asker.run(_SCRIPT)}
        asker.close()


def test_a_pod_runs_as_the_default_account(said: dict[str, Answer]) -> None:
    spec = said["plain"]["body"]["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    volume = spec["volumes"][0]
    assert volume["name"].startswith("kube-api-access-")
    mount = {"name": volume["name"], "readOnly": True, "mountPath": _TOKENS}
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }


def test_an_account_that_is_not_there_is_refused(said: dict[str, Answer]) -> None:
    assert said["stranger"]["status"] == 403
    assert said["stranger"]["body"]["message"] == (
        'pods "stranger" is forbidden: error looking up service account accounts-of-pods/absent: '
        'serviceaccount "absent" not found'
    )


def test_who_wants_no_token_gets_none(said: dict[str, Answer]) -> None:
    spec = said["without"]["body"]["spec"]
    assert spec["serviceAccountName"] == "default"
    assert "volumes" not in spec


def test_what_is_mounted_there_already_stays(said: dict[str, Answer]) -> None:
    spec = said["mounted"]["body"]["spec"]
    assert [one["name"] for one in spec["containers"][0]["volumeMounts"]] == ["v"]
    assert spec["initContainers"][0]["volumeMounts"][0]["mountPath"] == _TOKENS
    assert [one["name"][:16] for one in spec["volumes"]] == ["v", "kube-api-access-"]


def test_an_account_may_say_which_secrets_its_pods_mount(said: dict[str, Answer]) -> None:
    assert said["secret"]["body"]["message"] == (
        'pods "secret" is forbidden: volume with secret.secretName="s" is not allowed because service '
        "account default does not reference that secret"
    )
