"""ServiceAccount: a pod runs as somebody, and finds its token, its authority and its namespace in a volume.

Pure; in place.  The account is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from setpoint.server.registry.resources import Object

DEFAULT: Final = "default"
_VOLUME: Final = "kube-api-access-"
_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_ENFORCED: Final = "kubernetes.io/enforce-mountable-secrets"
_MIRROR: Final = "kubernetes.io/config.mirror"
_SECONDS: Final = 3607  # an hour, and a little more by which such tokens are known


def is_mirror(pod: Object) -> bool:
    """Whether a kubelet shows a pod that it runs by itself."""
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def name_account(pod: Object) -> str:
    """The name of the account it runs as; the default one, where it says none."""
    spec = pod["spec"]
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT
    name: str = spec["serviceAccountName"]
    return name


def fill(pod: Object, account: Object, generated: Callable[[str], str]) -> None:
    spec = pod["spec"]
    if _mounts(pod, account):
        _mount(spec, generated)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]


def _mounts(pod: Object, account: Object) -> bool:
    for said in (
        pod["spec"].get("automountServiceAccountToken"),
        account.get("automountServiceAccountToken"),
    ):
        if said is not None:
            return bool(said)
    return True


def _mount(spec: Object, generated: Callable[[str], str]) -> None:
    volumes = spec.get("volumes") or []
    there = next((one["name"] for one in volumes if one["name"].startswith(_VOLUME)), "")
    name = there or generated(_VOLUME)
    is_needed = False
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            mounts = container.get("volumeMounts") or []
            if not any(one.get("mountPath") == _PATH for one in mounts):
                mount = {"name": name, "readOnly": True, "mountPath": _PATH}
                container["volumeMounts"] = [*mounts, mount]
                is_needed = True
    if is_needed and not there:
        spec["volumes"] = [*volumes, {"name": name, "projected": _projected()}]


def _projected() -> Object:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 0o644,
    }


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────


def mirror_refusal(pod: Object) -> str:
    if pod["spec"].get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    return ""


def secrets_refusal(pod: Object, account: Object) -> str:
    """What a pod may not mount, where its account says that it may mount only what the account names."""
    enforced = (account["metadata"].get("annotations") or {}).get(_ENFORCED, "")
    if enforced not in ("1", "t", "T", "true", "TRUE", "True"):
        return ""
    allowed = {one.get("name") for one in account.get("secrets") or ()}
    name, spec = account["metadata"]["name"], pod["spec"]
    unnamed = f"is not allowed because service account {name} does not reference that secret"
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if secret and secret not in allowed:
            return f'volume with secret.secretName="{secret}" {unnamed}'
    for field, word in (("initContainers", "init container"), ("containers", "container")):
        for container in spec.get(field) or ():
            for variable in container.get("env") or ():
                secret = ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
                if secret and secret not in allowed:
                    told = f"{word} {container['name']} with envVar {variable['name']}"
                    return f'{told} referencing secret.secretName="{secret}" {unnamed}'
            for source in container.get("envFrom") or ():
                secret = (source.get("secretRef") or {}).get("name")
                if secret and secret not in allowed:
                    told = f"{word} {container['name']} with envFrom"
                    return f'{told} referencing secret.secretName="{secret}" {unnamed}'
    pulled = {one.get("name") for one in account.get("imagePullSecrets") or ()}
    for place, one in enumerate(spec.get("imagePullSecrets") or ()):
        if one.get("name") not in pulled:
            told = f'imagePullSecrets[{place}].name="{one.get("name", "")}" is not allowed because'
            return f"{told} service account {name} does not reference that imagePullSecret"
    return ""
