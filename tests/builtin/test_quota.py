"""The promises of ``builtin/quota.py`` and ``quota_usage.py``."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.quantity import Quantity
from setpoint.builtin.quota_usage import claim_usage, in_scopes, pod_usage, service_usage
from setpoint.kube.core.v1 import (
    ConfigMap,
    Container,
    ModifyVolumeStatus,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceRequirements,
    ScopedResourceSelectorRequirement,
    ScopeSelector,
    Service,
    ServicePort,
    ServiceSpec,
    VolumeResourceRequirements,
)
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster


def container(cpu: str = "", limit: str = "", **fields: Any) -> Container:
    resources = ResourceRequirements(
        requests={"cpu": Quantity(cpu)} if cpu else None, limits={"cpu": Quantity(limit)} if limit else None
    )
    return Container(name=fields.pop("name", "c"), image="i", resources=resources, **fields)


def pod(*containers: Container, name: str = "p", **spec: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(containers=list(containers) or [container()], **spec),
    )


def quota(hard: dict[str, str], **spec: Any) -> ResourceQuota:
    limits = {name: Quantity(value) for name, value in hard.items()}
    return ResourceQuota(
        metadata=ObjectMeta(name="q", namespace="default"), spec=ResourceQuotaSpec(hard=limits, **spec)
    )


def test_a_pod_uses_what_its_containers_ask_for_together() -> None:
    used = pod_usage(pod(container("100m", "1"), container("200m", name="d")))
    assert used == {
        "count/pods": Quantity(1),
        "pods": Quantity(1),
        "cpu": Quantity("300m"),
        "requests.cpu": Quantity("300m"),
        "limits.cpu": Quantity(1),
    }


def test_an_init_container_counts_where_it_is_more_and_sidecars_always_do() -> None:
    init = [container("100m", name="side", restart_policy="Always"), container("1", name="init")]
    assert pod_usage(pod(container("200m"), init_containers=init))["cpu"] == Quantity("1100m")
    small = [container("100m", name="side", restart_policy="Always")]
    assert pod_usage(pod(container("200m"), init_containers=small))["cpu"] == Quantity("300m")


def test_a_pod_that_has_ended_is_only_counted() -> None:
    ended = pod(container("1"))
    ended.status = PodStatus(phase="Succeeded")
    assert pod_usage(ended) == {"count/pods": Quantity(1)}


@pytest.mark.parametrize(
    ("scope", "meant"),
    [
        ("BestEffort", False),
        ("NotBestEffort", True),
        ("Terminating", True),
        ("NotTerminating", False),
        ("PriorityClass", True),
        ("CrossNamespacePodAffinity", False),
    ],
)
def test_scopes_choose_pods(scope: str, *, meant: bool) -> None:
    one = pod(container("1"), active_deadline_seconds=10, priority_class_name="high")
    assert in_scopes(quota({}, scopes=[scope]), one) is meant


def chosen(scope: str, operator: str, *values: str) -> ResourceQuota:
    term = ScopedResourceSelectorRequirement(operator=operator, scope_name=scope, values=list(values) or None)
    return quota({}, scope_selector=ScopeSelector(match_expressions=[term]))


@pytest.mark.parametrize(
    ("operator", "values", "meant"),
    [
        ("In", ["high"], ["high"]),
        ("NotIn", ["high"], ["low", None]),
        ("Exists", [], ["high", "low"]),
        ("DoesNotExist", [], [None]),
    ],
)
def test_a_priority_class_is_chosen_by_name(
    operator: str, values: list[str], meant: list[str | None]
) -> None:
    of = chosen("PriorityClass", operator, *values)
    assert [name for name in ("high", "low", None) if in_scopes(of, pod(priority_class_name=name))] == meant


def test_claims_are_chosen_by_the_attributes_that_they_have_or_are_to_have() -> None:
    changing = PersistentVolumeClaim(
        spec=PersistentVolumeClaimSpec(volume_attributes_class_name="gold"),
        status=PersistentVolumeClaimStatus(
            current_volume_attributes_class_name="silver",
            modify_volume_status=ModifyVolumeStatus(
                status="InProgress", target_volume_attributes_class_name="bronze"
            ),
        ),
    )
    for name in ("gold", "silver", "bronze"):
        assert in_scopes(chosen("VolumeAttributesClass", "In", name), changing)
    assert not in_scopes(chosen("VolumeAttributesClass", "In", "iron"), changing)
    assert not in_scopes(chosen("VolumeAttributesClass", "NotIn", "gold", "silver", "bronze"), changing)
    assert in_scopes(chosen("VolumeAttributesClass", "NotIn", "gold"), PersistentVolumeClaim())
    assert not in_scopes(chosen("PriorityClass", "NotIn", "gold"), changing), "that is a scope of pods"
    assert not in_scopes(chosen("VolumeAttributesClass", "NotIn", "gold"), pod())


def test_a_pod_that_asks_as_a_whole_uses_that_and_its_overhead() -> None:
    whole = ResourceRequirements(requests={"cpu": Quantity("2")}, limits={"cpu": Quantity("3")})
    overhead = {"cpu": Quantity("100m"), "memory": Quantity("1Mi")}
    used = pod_usage(pod(container("1"), resources=whole, overhead=overhead))
    assert (used["requests.cpu"], used["limits.cpu"]) == (Quantity("2100m"), Quantity("3100m"))
    assert used["requests.memory"] == Quantity("1Mi")
    assert "limits.memory" not in used, "nothing is added to what has no limit"
    assert not in_scopes(quota({}, scopes=["BestEffort"]), pod(container(), resources=whole))


def test_services_use_node_ports_and_load_balancers() -> None:
    spec = ServiceSpec(type="LoadBalancer", ports=[ServicePort(port=1), ServicePort(port=2)])
    one = Quantity(1)
    used = {"services": one, "services.nodeports": Quantity(2), "services.loadbalancers": one}
    assert service_usage(Service(spec=spec)) == used
    assert service_usage(Service()) == {"services": one}


def test_claims_use_storage_of_their_class_too() -> None:
    spec = PersistentVolumeClaimSpec(
        storage_class_name="fast", resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    )
    assert claim_usage(PersistentVolumeClaim(spec=spec)) == {
        "count/persistentvolumeclaims": Quantity(1),
        "persistentvolumeclaims": Quantity(1),
        "requests.storage": Quantity("1Gi"),
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": Quantity(1),
        "fast.storageclass.storage.k8s.io/requests.storage": Quantity("1Gi"),
    }


def test_a_claim_uses_what_it_was_given_while_that_is_more() -> None:
    spec = PersistentVolumeClaimSpec(
        resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    )
    given = PersistentVolumeClaimStatus(allocated_resources={"storage": Quantity("2Gi")})
    assert claim_usage(PersistentVolumeClaim(spec=spec, status=given))["requests.storage"] == Quantity("2Gi")


@pytest.mark.virtual_time
async def test_the_status_counts_only_what_is_in_its_scopes() -> None:
    async with cluster(["resourcequota-controller"]) as client:
        term = ScopedResourceSelectorRequirement(
            operator="NotIn", scope_name="PriorityClass", values=["system-node-critical"]
        )
        selector = ScopeSelector(match_expressions=[term])
        await client.create(quota({"pods": "5", "count/pods": "5"}, scope_selector=selector))
        await client.create(pod(name="plain"))
        await client.create(pod(name="critical", priority_class_name="system-node-critical"))

        async def used() -> dict[str, Quantity] | None:
            return (await client.get(ResourceQuota, "q", namespace="default")).status.used

        async def is_counted() -> bool:
            return await used() == {"pods": Quantity(1), "count/pods": Quantity(1)}

        await eventually(is_counted)


@pytest.mark.virtual_time
async def test_the_status_follows_what_is_in_the_namespace() -> None:
    async with cluster(["resourcequota-controller"]) as client:
        hard = {
            "pods": "5",
            "requests.cpu": "2",
            "configmaps": "3",
            "count/configmaps": "3",
            "resourcequotas": "1",
            "count/deployments.apps": "1",
            "services": "9",
            "persistentvolumeclaims": "1",
        }
        await client.create(quota(hard))

        async def used() -> dict[str, str]:
            status = (await client.get(ResourceQuota, "q", namespace="default")).status
            assert status.hard == {name: Quantity(value) for name, value in hard.items()}
            return {name: str(value) for name, value in (status.used or {}).items()}

        async def is_used(**wanted: str) -> bool:
            known = await used()
            return {name: known[name.replace("_", ".")] for name in wanted} == wanted

        await eventually(lambda: is_used(pods="0", requests_cpu="0", resourcequotas="1", services="1"))
        await client.create(pod(container("100m")))
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
        await eventually(lambda: is_used(pods="1", requests_cpu="100m", configmaps="1"))
        await client.delete(Pod, "p", namespace="default", grace_period=0)
        await eventually(lambda: is_used(pods="0", requests_cpu="0", configmaps="1"))
        assert (await used())["count/deployments.apps"] == "0"
