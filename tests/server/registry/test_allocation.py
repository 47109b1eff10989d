"""Services get addresses and ports once, keep them, and give them back."""

from __future__ import annotations

import random
from typing import Any

import pytest

from setpoint.server.registry.allocation import DYNAMIC_PORTS, Allocations, carry_over, fill
from setpoint.server.statuses import StatusError

Object = dict[str, Any]


def service(name: str = "web", **spec: Any) -> Object:
    made: Object = {
        "metadata": {"name": name},
        "spec": {"type": "ClusterIP", "selector": {"app": "web"}, "ports": [{"port": 80}]} | spec,
    }
    fill(made)
    return made


def allocations(network: str = "10.0.0.0/24") -> Allocations:
    return Allocations(network, random.Random(1))


def refusal(allocated: Allocations, wanted: Object, old: Object | None = None) -> str:
    with pytest.raises(StatusError) as refused:
        allocated.reserve(wanted, old)
    return refused.value.message


def test_a_service_without_an_address_gets_a_free_one_of_the_range() -> None:
    allocated = allocations("10.0.0.0/29")
    made = [service(f"s{index}") for index in range(6)]
    for one in made:
        allocated.reserve(one, None)
    addresses = {one["spec"]["clusterIP"] for one in made}
    assert addresses == {f"10.0.0.{last}" for last in range(1, 7)}
    assert all(one["spec"]["clusterIPs"] == [one["spec"]["clusterIP"]] for one in made)
    assert "range is full" in refusal(allocated, service("one-too-many"))


def test_an_address_that_another_service_has_is_refused() -> None:
    allocated = allocations()
    allocated.reserve(service("first", clusterIP="10.0.0.7"), None)
    assert refusal(allocated, service("second", clusterIP="10.0.0.7")) == (
        'Service "second" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to '
        "allocate IP 10.0.0.7: provided IP is already allocated"
    )


@pytest.mark.parametrize("address", ["1.2.3.4", "10.0.0.0", "10.0.0.255"])
def test_an_address_outside_of_the_range_is_refused(address: str) -> None:
    assert refusal(allocations(), service(clusterIP=address)) == (
        f'Service "web" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: failed to '
        f"allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of valid "
        "IPs is 10.0.0.0/24"
    )


def test_what_a_failed_write_held_is_free_again() -> None:
    allocated = allocations()
    held = allocated.reserve(
        service(clusterIP="10.0.0.7", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]), None
    )
    held.undo()
    allocated.reserve(
        service("other", clusterIP="10.0.0.7", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]), None
    )


def test_what_a_deleted_service_had_is_free_again() -> None:
    allocated = allocations()
    gone = service(clusterIP="10.0.0.7", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
    allocated.reserve(gone, None).settle()
    allocated.release(gone)
    allocated.reserve(
        service("next", clusterIP="10.0.0.7", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]), None
    )


def test_what_stored_services_have_is_known_at_the_start() -> None:
    allocated = allocations()
    allocated.load([service(clusterIP="10.0.0.7", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])])
    assert "already allocated" in refusal(allocated, service("other", clusterIP="10.0.0.7"))
    taken = service("third", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
    assert refusal(allocated, taken) == (
        'Service "third" is invalid: spec.ports[0].nodePort: Invalid value: 30001: '
        "provided port is already allocated"
    )


def test_a_port_outside_of_the_range_is_refused() -> None:
    wanted = service(type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    assert refusal(allocations(), wanted) == (
        'Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the '
        "valid range. The range of valid ports is 30000-32767"
    )


def test_one_port_of_two_protocols_has_one_number_on_the_nodes() -> None:
    ports = [{"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]
    made = service(type="NodePort", ports=ports)
    allocations().reserve(made, None)
    first, second = made["spec"]["ports"]
    assert first["nodePort"] == second["nodePort"]


def test_a_load_balancer_may_do_without_node_ports() -> None:
    made = service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    allocations().reserve(made, None)
    assert "nodePort" not in made["spec"]["ports"][0]


def test_a_load_balancer_with_local_traffic_gets_a_port_for_health_checks() -> None:
    made = service(type="LoadBalancer", externalTrafficPolicy="Local")
    allocations().reserve(made, None)
    assert made["spec"]["healthCheckNodePort"] in range(30000, 32768)
    assert made["spec"]["healthCheckNodePort"] != made["spec"]["ports"][0]["nodePort"]


def test_a_headless_and_an_external_service_get_no_address() -> None:
    allocated = allocations()
    headless, external = service(clusterIP="None"), service(type="ExternalName", externalName="a.b")
    allocated.reserve(headless, None)
    allocated.reserve(external, None)
    assert headless["spec"]["clusterIPs"] == ["None"]
    assert headless["spec"]["ipFamilies"] == ["IPv4"]
    assert "clusterIP" not in external["spec"]
    assert "ipFamilies" not in external["spec"]


def test_a_headless_service_without_a_selector_has_both_families() -> None:
    made = service(clusterIP="None", selector={})
    allocations().reserve(made, None)
    assert made["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert made["spec"]["ipFamilyPolicy"] == "RequireDualStack"


def test_an_update_without_an_address_keeps_it() -> None:
    old = service(clusterIP="10.0.0.7")
    new = service(type="ClusterIP")
    for field in ("ipFamilies", "ipFamilyPolicy"):
        del new["spec"][field]
    carry_over(new, old)
    assert new["spec"] == old["spec"]


def test_an_update_without_node_ports_keeps_them_by_name() -> None:
    names = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30002}]
    old = service(type="NodePort", clusterIP="10.0.0.7", ports=names)
    new = service(
        type="NodePort", ports=[{"name": "b", "port": 90}, {"name": "a", "port": 80, "nodePort": 30003}]
    )
    carry_over(new, old)
    assert [one["nodePort"] for one in new["spec"]["ports"]] == [30002, 30003]


def test_a_service_that_becomes_external_gives_its_address_back() -> None:
    allocated = allocations()
    old = service(clusterIP="10.0.0.7", internalTrafficPolicy="Cluster")
    allocated.reserve(old, None).settle()
    new: Object = {
        "metadata": old["metadata"],
        "spec": {**old["spec"], "type": "ExternalName", "externalName": "a.b"},
    }
    carry_over(new, old)
    allocated.reserve(new, old).settle()
    assert set(new["spec"]) == {"type", "externalName", "selector", "ports"}
    allocated.reserve(service("other", clusterIP="10.0.0.7"), None)


def test_an_external_service_that_becomes_internal_gets_an_address() -> None:
    allocated = allocations()
    old = service(type="ExternalName", externalName="a.b")
    new = service()
    carry_over(new, old)
    allocated.reserve(new, old).settle()
    assert new["spec"]["clusterIP"].startswith("10.0.0.")


def test_a_family_that_the_cluster_lacks_is_refused() -> None:
    assert refusal(allocations(), service(ipFamilies=["IPv6"])) == (
        'Service "web" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'
    )
    assert "not configured for dual-stack" in refusal(
        allocations(), service(ipFamilyPolicy="RequireDualStack")
    )


def test_a_field_that_was_filled_in_stands_where_the_type_has_it() -> None:
    made = service()
    allocations().reserve(made, None)
    assert list(made["spec"]) == [
        "ports",
        "selector",
        "clusterIP",
        "clusterIPs",
        "type",
        "ipFamilies",
        "ipFamilyPolicy",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_who_asks_for_no_address_gets_one_of_the_static_band_only_when_all_others_are_taken(
    seed: int,
) -> None:
    allocated = Allocations("10.0.0.0/24", random.Random(seed))
    given = []
    for index in range(254):
        made = service(f"s{index}")
        allocated.reserve(made, None)
        given.append(int(made["spec"]["clusterIP"].rpartition(".")[2]))
    assert sorted(given[:238]) == list(range(17, 255))
    assert sorted(given[238:]) == list(range(1, 17))


def test_who_asks_for_no_port_gets_one_of_the_dynamic_band() -> None:
    allocated = allocations()
    for index in range(200):
        made = service(f"s{index}", type="NodePort", clusterIP="None" if index else "")
        allocated.reserve(made, None)
        assert made["spec"]["ports"][0]["nodePort"] in DYNAMIC_PORTS
