"""A whole cluster in this process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.model import from_wire
from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.cluster.cluster import Cluster
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap, Namespace, ServiceAccount
from setpoint.testing.waiting import eventually


def deployment(name: str) -> Deployment:
    return from_wire(
        Deployment,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "app", "image": "app"}]},
                },
            },
        },
    )


async def test_what_is_created_in_a_cluster_comes_to_life() -> None:
    async with Cluster() as cluster:
        await cluster.client.create(deployment("web"))

        async def is_available() -> bool:
            seen = await cluster.client.get(Deployment, "web", namespace="default")
            return seen.status.available_replicas == 2

        await eventually(is_available)


async def test_every_namespace_knows_the_server_by_the_certificate_it_shows() -> None:
    async with Cluster() as cluster, cluster.serve() as served:
        await cluster.client.create(Namespace(metadata=ObjectMeta(name="mine")))
        config = Config.from_kubeconfig(served.kubeconfig)

        async def published() -> ConfigMap | None:
            return await ignore_not_found(cluster.client.get(ConfigMap, "kube-root-ca.crt", namespace="mine"))

        found = await eventually(published)
        assert (found.data or {})["ca.crt"].encode() == config.certificate_authority_data


async def test_without_controllers_there_is_an_api_server_alone() -> None:
    async with Cluster(controllers=()) as cluster:
        await cluster.client.create(Namespace(metadata=ObjectMeta(name="mine")))
        assert await cluster.client.list(ServiceAccount) == []


def test_an_api_server_alone_reads_no_code_of_controllers_or_clients() -> None:
    program = """
import asyncio, sys
from setpoint.cluster.cluster import Cluster

async def main():
    async with Cluster(controllers=()) as cluster, cluster.serve():
        pass

asyncio.run(main())
others = ("setpoint.client", "setpoint.builtin", "setpoint.kube")
print([each for each in sys.modules if each.startswith(others)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_controller_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no controller nobody"):
        async with Cluster(controllers=["nobody"]):
            pass


async def test_clusters_in_one_process_share_nothing() -> None:
    async with Cluster(controllers=()) as one, Cluster(controllers=()) as other:
        await one.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        assert await ignore_not_found(other.client.get(ConfigMap, "a", namespace="default")) is None
        assert isinstance(other.client, Client)
