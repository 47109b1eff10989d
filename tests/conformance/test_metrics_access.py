"""Secured metrics: who may read them is what the server says, with exactly the rules that are documented."""

from __future__ import annotations

import asyncio
from typing import Any

from setpoint import Manager
from setpoint.api.meta import ObjectMeta
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import Namespace, ServiceAccount
from setpoint.manager.visitors import RULES
from setpoint.testing.kube import ControlPlane
from tests.manager.test_visitors import scrape

NAMESPACE = "metrics-access"
READS = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


async def account(admin: Client, name: str, rules: list[dict[str, Any]]) -> str:
    """A service account with these rules; its token."""
    await admin.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=NAMESPACE)))
    named = {"name": f"{NAMESPACE}-{name}"}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": named, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": named,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", **named},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": name}],
    }
    await admin.create(role)
    await admin.create(binding)
    return (await admin.create_token(name, namespace=NAMESPACE)).value


async def test_secured_metrics_are_for_those_whom_the_server_lets_get_them(kube: ControlPlane) -> None:
    config = Config.from_kubeconfig(kube.kubeconfig)
    async with Client(config) as admin:
        await admin.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        operator = await account(admin, "operator", RULES)
        good, nosy = await account(admin, "prometheus", READS), await account(admin, "nosy", [])
        own = Config(
            server=config.server,
            certificate_authority=config.certificate_authority,
            certificate_authority_data=config.certificate_authority_data,
            token=operator,
        )
        async with Client(own) as client:
            manager = Manager(client=client, metrics_address="127.0.0.1:0", metrics_secure=True)
            async with manager:
                at = manager.probes.metrics_at
                codes = [
                    (await asyncio.to_thread(scrape, at, token))[0] for token in (good, nosy, "wrong", "")
                ]
                assert codes == [200, 403, 401, 401]
