"""What ``testing/asked.py`` reads from a request."""

from __future__ import annotations

import pytest

from setpoint.api import MergePatch, ObjectMeta
from setpoint.client.client import Client
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap
from setpoint.net.transport import Request
from setpoint.testing.asked import Asked, read_request
from tests.peer import Peer, Reply


@pytest.mark.parametrize(
    ("method", "target", "asked"),
    [
        ("GET", "/api/v1/pods", "list pods"),
        ("GET", "/api/v1/pods?watch=true&resourceVersion=3", "watch pods"),
        ("GET", "/api/v1/namespaces/shop/pods", "list pods shop"),
        ("GET", "/api/v1/namespaces/shop/pods/web", "get pods shop/web"),
        ("PUT", "/api/v1/namespaces/shop/pods/web/status", "update pods/status shop/web"),
        ("DELETE", "/api/v1/namespaces/shop/pods/web", "delete pods shop/web"),
        ("DELETE", "/api/v1/namespaces/shop/pods", "deletecollection pods shop"),
        ("POST", "/api/v1/namespaces/shop/pods/web/eviction", "create pods/eviction shop/web"),
        ("GET", "/api/v1/namespaces", "list namespaces"),
        ("GET", "/api/v1/namespaces/shop", "get namespaces shop"),
        ("PUT", "/api/v1/namespaces/shop/finalize", "update namespaces/finalize shop"),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", "patch deployments.apps shop/web"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin", None),
        ("GET", "/version", "list"),
        ("GET", "/apis", "list"),
    ],
)
def test_a_path_says_what_it_is_about(method: str, target: str, asked: str | None) -> None:
    read = str(read_request(Request(method, target)))
    assert read == (asked or "get clusterroles.rbac.authorization.k8s.io system:admin")


async def test_the_clients_own_calls_are_read_back() -> None:
    peer = Peer(lambda _: Reply(200, {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}))
    client = Client(transport=peer)
    settings = ConfigMap(metadata=ObjectMeta(name="a", namespace="shop"))

    await client.create(settings)
    await client.apply(settings)
    await client.patch(settings, MergePatch({}))
    await client.update(settings)
    await client.get(ConfigMap, "a", namespace="shop")

    asked = [read_request(request) for request in peer.requests]
    assert [one.verb for one in asked] == ["create", "apply", "patch", "update", "get"]
    assert {one.name for one in asked} == {"a"}
    assert read_request(peer.requests[0]) == Asked("create", "", "v1", "configmaps", "shop", "a")


def test_a_kind_with_a_group_is_read_with_it() -> None:
    resource = Deployment.resource
    asked = read_request(Request("GET", "/apis/apps/v1/deployments"))
    assert (asked.group, asked.version, asked.plural) == (resource.group, resource.version, resource.plural)
