"""Fills the Secrets in which a ServiceAccount's token is kept, for those who read it from there.

1. A Secret of the type ``kubernetes.io/service-account-token`` has a token of the account that its
   annotation names, the namespace, and the server's certificate; what is taken out comes back.
2. It goes when its account is not there, or is another one of that name.

The token is asked of the server, bound to the Secret: it ends with it, and with the account.  Which
certificate, the one who makes the controllers says.  What a Secret lacks is decided in ``lacking``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from setpoint.api.wire import Snapshot
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request
from setpoint.controller.sources import Kind
from setpoint.kube.core.v1 import Secret, ServiceAccount

NAME: Final = "serviceaccount-token-controller"
TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_TOKEN, _NAMESPACE, _CERTIFICATE = "token", "namespace", "ca.crt"
_LONGEST: Final = 2**32  # seconds, the most that may be asked for: such a token is never renewed


def add_to(parts: Parts) -> None:
    """Keep such Secrets filled."""
    manager, client = parts.manager, parts.client

    async def reconcile(request: Request) -> None:
        # Of Secrets only the metadata is kept here, and an account may be newer than what is kept.
        secret = await ignore_not_found(client.live.get(Secret, request.name, namespace=request.namespace))
        annotations = (secret.metadata.annotations or {}) if secret is not None else {}
        name, uid = annotations.get(ACCOUNT), annotations.get(ACCOUNT_UID)
        if secret is None or secret.type != TYPE or not name:
            return
        account = await ignore_not_found(client.live.get(ServiceAccount, name, namespace=request.namespace))
        if account is None or (uid and uid != account.metadata.uid):
            await ignore_not_found(client.delete(secret, uid=secret.metadata.uid or ""))
            return
        missing = lacking(secret.data or {}, request.namespace, parts.root_ca)
        if missing:
            if _TOKEN in missing:
                token = await client.create_token(
                    name, namespace=request.namespace, seconds=_LONGEST, bound_to=secret
                )
                missing[_TOKEN] = token.value.encode()
            secret.data = {**(secret.data or {}), **missing}
            secret.metadata.annotations = {**annotations, ACCOUNT_UID: account.metadata.uid or ""}
            await client.update(secret)

    def to_secrets(account: Snapshot) -> list[Request]:
        metadata = account.metadata
        return [
            Request(one.metadata.namespace, one.metadata.name)
            for informer in manager.cache.holds(Secret.resource.gvk)
            for one in informer.store
            if one.metadata.namespace == metadata.namespace
            and (one.metadata.annotations or {}).get(ACCOUNT) == metadata.name
        ]

    accounts = Kind(manager.cache, ServiceAccount, to_secrets, metadata_only=True)
    complete(builder(manager).named(NAME).for_(Secret, fields={"type": TYPE}).reads(accounts), reconcile)


def lacking(data: Mapping[str, bytes], namespace: str, root_ca: str) -> dict[str, bytes]:
    """What is to be written into a Secret; an empty token stands for one that is yet to be made."""
    missing: dict[str, bytes] = {}
    certificate = root_ca.encode()
    if certificate and data.get(_CERTIFICATE) != certificate:
        missing[_CERTIFICATE] = certificate
    if not data.get(_NAMESPACE):
        missing[_NAMESPACE] = namespace.encode()
    if not data.get(_TOKEN):
        missing[_TOKEN] = b""
    return missing
