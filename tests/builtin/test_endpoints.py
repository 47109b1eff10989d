"""The promises of ``builtin/endpoints*.py``: pure ones, and on a server in memory."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api.meta import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.api.times import Time
from setpoint.builtin.endpoints import subsets, wanted
from setpoint.builtin.endpoints_pods import Backend, Port, TriggerTimes, backends, families_of
from setpoint.builtin.endpoints_slices import MOST, plan
from setpoint.client.client import Client, ignore_not_found
from setpoint.kube.core.v1 import (
    Container,
    ContainerPort,
    Endpoints,
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from setpoint.kube.discovery.v1 import EndpointSlice
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

NAMES = ["endpointslice-controller", "endpoints-controller"]
TIME = "2030-01-01T00:00:00Z"


def service(name: str = "web", **spec: Any) -> Service:
    ports = spec.pop("ports", [ServicePort(port=80, target_port=8080)])
    return Service(
        metadata=ObjectMeta(name=name, namespace="default", labels={"l": "m"}),
        spec=ServiceSpec(selector={"app": "web"}, ports=ports, **spec),
    )


def pod(name: str, ip: str = "10.1.0.1", *, ready: bool = True, port: int = 8080, **spec: Any) -> Pod:
    container = Container(name="c", image="i", ports=[ContainerPort(name="http", container_port=port)])
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", labels={"app": "web"}),
        spec=PodSpec(containers=[container], node_name="n1", **spec),
        status=PodStatus(
            phase="Running",
            pod_ip=ip or None,
            pod_ips=[PodIP(ip=ip)] if ip else None,
            conditions=[
                PodCondition(
                    type="Ready", status="True" if ready else "False", last_transition_time=Time.parse(TIME)
                )
            ],
        ),
    )


# ---- which pods ------------------------------------------------------------------------------------


def test_a_pod_that_ended_or_has_no_address_is_behind_nothing() -> None:
    ended = pod("ended")
    ended.status.phase = "Succeeded"
    assert backends(service(), [ended, pod("new", ip=""), pod("six", ip="fd00::1")], "IPv4") == []
    assert [each.pod for each in backends(service(), [pod("six", ip="fd00::1")], "IPv6")] == ["six"]


def test_what_is_deleted_serves_and_is_not_ready() -> None:
    leaving = pod("a")
    leaving.metadata.deletion_timestamp = Time.parse(TIME)
    (found,) = backends(service(), [leaving], "IPv4")
    assert (found.is_ready, found.is_serving, found.is_terminating) == (False, True, True)
    (found,) = backends(service(publish_not_ready_addresses=True), [leaving], "IPv4")
    assert (found.is_ready, found.is_serving, found.is_terminating) == (True, True, True)


def test_a_named_port_leads_where_each_pod_says() -> None:
    named = service(ports=[ServicePort(name="p", port=80, target_port="http", protocol="TCP")])
    found = backends(named, [pod("a", port=1), pod("b", port=2)], "IPv4")
    assert [each.ports for each in found] == [(Port("p", 1, "TCP"),), (Port("p", 2, "TCP"),)]
    other = service(ports=[ServicePort(name="p", port=80, target_port="none")])
    assert backends(other, [pod("a")], "IPv4")[0].ports == ()


def test_only_pods_of_the_subdomain_have_a_hostname() -> None:
    found = backends(service(), [pod("a", hostname="h", subdomain="web"), pod("b", hostname="h")], "IPv4")
    assert [each.hostname for each in found] == ["h", None]


def test_the_family_is_that_of_the_address_where_none_is_said() -> None:
    assert families_of(service(cluster_ip="fd00::1")) == ["IPv6"]
    assert families_of(service(cluster_ip="10.0.0.1")) == ["IPv4"]
    assert families_of(service(ip_families=["IPv6", "IPv4"])) == ["IPv6", "IPv4"]


def test_a_change_has_the_time_of_the_earliest_transition_that_is_new() -> None:
    times, web = TriggerTimes(), service()
    web.metadata.creation_timestamp = Time.parse("2029-01-01T00:00:00Z")
    assert times.look(web, [pod("a")]) == web.metadata.creation_timestamp
    assert times.look(web, [pod("a"), pod("b")]) == Time.parse(TIME)
    assert times.look(web, [pod("a"), pod("b")]) is None


# ---- slices ----------------------------------------------------------------------------------------


def named(slices: list[EndpointSlice]) -> list[EndpointSlice]:
    for number, each in enumerate(slices):
        each.metadata.name = f"web-{number}"
    return slices


def many(count: int, first: int = 0) -> list[Backend]:
    pods = [pod(f"p{number:04}", f"10.1.{number // 250}.{number % 250}") for number in range(first, count)]
    return backends(service(), pods, "IPv4")


def test_a_service_without_pods_has_one_empty_slice() -> None:
    (created,) = plan(service(), "IPv4", [], [], Time.parse(TIME)).created
    assert (created.endpoints, created.ports, created.metadata.generate_name) == (None, None, "web-")
    assert created.metadata.labels == {
        "l": "m",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert created.metadata.annotations == {"endpoints.kubernetes.io/last-change-trigger-time": TIME}
    again = plan(service(), "IPv4", [], named([created]), None)
    assert again.is_empty


def test_the_empty_slice_is_used_for_the_first_addresses_and_again_for_none() -> None:
    empty = named(plan(service(), "IPv4", [], [], None).created)
    first = plan(service(), "IPv4", many(2), empty, None)
    assert not first.created
    assert not first.deleted
    (slice_,) = first.updated
    assert slice_.metadata.name == "web-0"
    assert [each.addresses for each in slice_.endpoints or ()] == [["10.1.0.0"], ["10.1.0.1"]]
    (last,) = plan(service(), "IPv4", [], [slice_], None).updated
    assert (last.metadata.name, last.endpoints, last.ports) == ("web-0", None, None)


def test_a_slice_holds_a_hundred_and_addresses_stay_where_they_are() -> None:
    slices = named(plan(service(), "IPv4", many(250), [], None).created)
    assert [len(each.endpoints or ()) for each in slices] == [MOST, MOST, 50]
    more = plan(service(), "IPv4", many(260), slices, None)
    assert [each.metadata.name for each in more.updated] == ["web-2"]
    assert not more.created
    fewer = plan(service(), "IPv4", many(250, first=120), slices, None)
    assert [each.metadata.name for each in fewer.deleted] == ["web-0"]
    assert [each.metadata.name for each in fewer.updated] == ["web-1"]


def test_other_ports_are_another_slice() -> None:
    web = service(ports=[ServicePort(name="p", port=80, target_port="http")])
    found = backends(web, [pod("a", port=1), pod("b", port=2)], "IPv4")
    assert len(plan(web, "IPv4", found, [], None).created) == 2


def test_subsets_keep_what_is_not_ready_apart() -> None:
    found = backends(service(), [pod("a"), pod("b", "10.1.0.2", ready=False)], "IPv4")
    (subset,) = subsets(found)
    assert [each.ip for each in subset.addresses or ()] == ["10.1.0.1"]
    assert [each.ip for each in subset.not_ready_addresses or ()] == ["10.1.0.2"]
    assert [(each.name, each.port, each.protocol) for each in subset.ports or ()] == [(None, 8080, "TCP")]


def test_endpoints_leave_out_what_is_being_deleted_unless_everything_is_published() -> None:
    leaving = pod("a")
    leaving.metadata.deletion_timestamp = Time.parse(TIME)
    assert wanted(service(), [leaving], None).subsets is None
    assert wanted(service(publish_not_ready_addresses=True), [leaving], None).subsets


# ---- on a server -----------------------------------------------------------------------------------


async def make_pod(client: Client, name: str, ip: str, *, ready: bool = True) -> None:
    new = pod(name, ip, ready=ready)
    status, new.status = new.status, PodStatus()
    new.metadata.uid = None
    made = await client.create(new)
    made.status = status
    await client.update_status(made)


async def addresses(client: Client, name: str = "web") -> dict[str, bool | None]:
    labels = {"kubernetes.io/service-name": name}
    slices = await client.list(EndpointSlice, namespace="default", labels=labels)
    assert slices
    return {
        endpoint.addresses[0]: endpoint.conditions.ready if endpoint.conditions else None
        for each in slices
        for endpoint in each.endpoints or ()
    }


@pytest.mark.virtual_time
async def test_slices_and_endpoints_follow_the_pods() -> None:
    async with cluster(NAMES) as client:
        await client.create(service())

        async def has(known: dict[str, bool]) -> bool:
            endpoints = await client.get(Endpoints, "web", namespace="default")
            ready = {each.ip for subset in endpoints.subsets or () for each in subset.addresses or ()}
            right = {ip for ip, is_so in known.items() if is_so}
            return await addresses(client) == known and ready == right

        await eventually(lambda: has({}))
        await make_pod(client, "a", "10.1.0.1")
        await make_pod(client, "b", "10.1.0.2", ready=False)
        await eventually(lambda: has({"10.1.0.1": True, "10.1.0.2": False}))
        await client.delete(Pod, "a", namespace="default", grace_period=0)
        await eventually(lambda: has({"10.1.0.2": False}))
        patch = MergePatch({"metadata": {"labels": {"app": "other"}}})
        await client.patch(Pod, "b", patch, namespace="default")
        await eventually(lambda: has({}))


@pytest.mark.virtual_time
async def test_a_change_by_hand_is_put_back() -> None:
    async with cluster(NAMES) as client:
        await client.create(service())
        await make_pod(client, "a", "10.1.0.1")

        async def is_right() -> bool:
            endpoints = await client.get(Endpoints, "web", namespace="default")
            return await addresses(client) == {"10.1.0.1": True} and bool(endpoints.subsets)

        await eventually(is_right)
        (slice_,) = await client.list(EndpointSlice, namespace="default", labels={"l": "m"})
        await client.delete(slice_)
        await client.patch(Endpoints, "web", MergePatch({"subsets": None}), namespace="default")
        await eventually(is_right)


@pytest.mark.virtual_time
async def test_endpoints_go_with_their_service_and_those_of_others_stay() -> None:
    async with cluster(NAMES) as client:
        await client.create(service())
        await client.create(Endpoints(metadata=ObjectMeta(name="own", namespace="default")))
        await eventually(lambda: client.get(Endpoints, "web", namespace="default"))
        await client.delete(Service, "web", namespace="default")

        async def is_gone() -> bool:
            return await ignore_not_found(client.get(Endpoints, "web", namespace="default")) is None

        await eventually(is_gone)
        assert await client.get(Endpoints, "own", namespace="default")
