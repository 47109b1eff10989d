"""What every namespace has from its beginning: a ServiceAccount ``default``, and the server's certificate.

1. A namespace that is not ending has both, and gets them back when somebody deletes them.
2. The ConfigMap ``kube-root-ca.crt`` holds the certificate and nothing else: what is changed is put back.

Which certificate, the one who makes the controllers says (``add_controllers(…, root_ca=…)``).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from setpoint.api.meta import ObjectMeta
from setpoint.api.wire import Snapshot
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.client.client import ignore_not_found
from setpoint.controller.builder import builder
from setpoint.controller.result import Request
from setpoint.controller.sources import Kind
from setpoint.errors import AlreadyExists
from setpoint.kube.core.v1 import ConfigMap, Namespace, ServiceAccount

ACCOUNTS: Final = "serviceaccount-controller"
PUBLISHER: Final = "root-ca-certificate-publisher-controller"
ACCOUNT: Final = "default"
CONFIG_MAP: Final = "kube-root-ca.crt"
_ANNOTATIONS: Final = {
    "kubernetes.io/description": (
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
        "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
        "distributions of Kubernetes clusters."
    )
}


def add_accounts_to(parts: Parts) -> None:
    """Give every namespace its ServiceAccount."""
    manager, client = parts.manager, parts.client

    async def reconcile(request: Request) -> None:
        if not await _is_alive(parts, request.name):
            return
        metadata = ObjectMeta(name=ACCOUNT, namespace=request.name)
        if await ignore_not_found(client.get(ServiceAccount, ACCOUNT, namespace=request.name)) is None:
            with suppress(AlreadyExists):
                await client.create(ServiceAccount(metadata=metadata))

    accounts = Kind(manager.cache, ServiceAccount, _to_namespace, fields={"metadata.name": ACCOUNT})
    complete(builder(manager).named(ACCOUNTS).for_(Namespace).reads(accounts), reconcile)


def add_publisher_to(parts: Parts) -> None:
    """Give every namespace the certificate of the server."""
    manager, client = parts.manager, parts.client
    data = {"ca.crt": parts.root_ca}

    async def reconcile(request: Request) -> None:
        if not await _is_alive(parts, request.name):
            return
        known = await ignore_not_found(client.get(ConfigMap, CONFIG_MAP, namespace=request.name))
        if known is None:
            metadata = ObjectMeta(name=CONFIG_MAP, namespace=request.name, annotations=_ANNOTATIONS)
            with suppress(AlreadyExists):
                await client.create(ConfigMap(metadata=metadata, data=data))
        elif known.data != data or not _ANNOTATIONS.items() <= (known.metadata.annotations or {}).items():
            known.data = data
            known.metadata.annotations = {**(known.metadata.annotations or {}), **_ANNOTATIONS}
            await client.update(known)

    maps = Kind(manager.cache, ConfigMap, _to_namespace, fields={"metadata.name": CONFIG_MAP})
    complete(builder(manager).named(PUBLISHER).for_(Namespace).reads(maps), reconcile)


def _to_namespace(snapshot: Snapshot) -> list[Request]:
    return [Request("", snapshot.metadata.namespace)]


async def _is_alive(parts: Parts, name: str) -> bool:
    namespace = await ignore_not_found(parts.client.get(Namespace, name))
    return namespace is not None and namespace.metadata.deletion_timestamp is None
