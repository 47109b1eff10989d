"""Lists of pods that are as long as a body allows: what is told of them is bounded, and found in time."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.oddities import _ports
from setpoint.server.registry.validation.scheduling import check_spread
from tests.server.deadlines import within


def pod(*ports: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "a", "ports": list(ports)}]}


def test_ports_that_are_alike_are_told_each_with_each() -> None:
    one = {"containerPort": 1, "protocol": "TCP"}

    assert _ports(pod(one, one, {**one, "hostPort": 5}), "spec") == [
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
        "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]",
    ]


@pytest.mark.parametrize("hosts", [[0] * 20_000, list(range(1, 20_001))], ids=["the same", "on other ports"])
def test_of_as_many_ports_as_a_body_allows_some_are_told_in_time(hosts: list[int]) -> None:
    ports = [{"containerPort": 1, "protocol": "TCP", "hostPort": host} for host in hosts]

    with within(20):
        assert len(_ports(pod(*ports), "spec")) < 2_000


def test_as_many_constraints_as_a_body_allows_are_compared_in_time() -> None:
    constraints = [
        {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule"}
        for number in range(10_000)
    ]
    found = Found()

    with within(20):
        check_spread([*constraints, constraints[0]], "spec", found)

    assert [one.path for one in found.errors] == ["spec[0].{topologyKey, whenUnsatisfiable}"]
