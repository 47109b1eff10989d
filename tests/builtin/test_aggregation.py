"""The promises of ``builtin/aggregation.py``, on a server in memory."""

from __future__ import annotations

import pytest

from setpoint.api.meta import LabelSelector, ObjectMeta
from setpoint.client.client import Client
from setpoint.kube.rbac.v1 import AggregationRule, ClusterRole, PolicyRule
from setpoint.testing.waiting import eventually
from tests.builtin.running import cluster

pytestmark = pytest.mark.virtual_time

NAMES = ["clusterrole-aggregation-controller"]
PODS = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])
JOBS = PolicyRule(verbs=["get"], api_groups=["batch"], resources=["jobs"])
CHOSEN = {"example.com/part": "true"}


def role(name: str, *rules: PolicyRule, labels: dict[str, str] | None = None) -> ClusterRole:
    return ClusterRole(metadata=ObjectMeta(name=name, labels=labels), rules=list(rules))


def made_of(name: str, *chosen: dict[str, str], labels: dict[str, str] | None = None) -> ClusterRole:
    rule = AggregationRule(cluster_role_selectors=[LabelSelector(match_labels=one) for one in chosen])
    return ClusterRole(metadata=ObjectMeta(name=name, labels=labels), aggregation_rule=rule)


async def has(client: Client, name: str, *rules: PolicyRule) -> None:
    async def is_so() -> bool:
        return ((await client.get(ClusterRole, name)).rules or []) == list(rules)

    await eventually(is_so)


async def test_a_role_has_the_rules_of_those_that_it_chooses_each_once_and_by_name() -> None:
    async with cluster(NAMES) as client:
        await client.create(role("b", PODS, JOBS, labels=CHOSEN))
        await client.create(role("a", JOBS, labels=CHOSEN))
        await client.create(role("unchosen", PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"])))
        await client.create(made_of("whole", CHOSEN))
        await has(client, "whole", JOBS, PODS)


async def test_what_comes_goes_or_is_changed_by_others_is_followed() -> None:
    async with cluster(NAMES) as client:
        await client.create(made_of("whole", CHOSEN))
        part = await client.create(role("part", PODS, labels=CHOSEN))
        await has(client, "whole", PODS)

        whole = await client.get(ClusterRole, "whole")
        whole.rules = [JOBS]
        await client.update(whole)
        await has(client, "whole", PODS)

        part.rules = [JOBS]
        await client.update(part)
        await has(client, "whole", JOBS)
        await client.delete(ClusterRole, "part")
        await has(client, "whole")


async def test_what_is_gathered_is_gathered_again() -> None:
    async with cluster(NAMES) as client:
        await client.create(made_of("top", {"example.com/middle": "true"}))
        await client.create(made_of("middle", CHOSEN, labels={"example.com/middle": "true"}))
        await client.create(role("part", PODS, labels=CHOSEN))
        await has(client, "top", PODS)


async def test_the_roles_of_every_cluster_are_gathered_and_a_kind_of_ones_own_can_join() -> None:
    async with cluster(NAMES) as client:

        async def are_there() -> bool:
            names = ("admin", "edit", "view")
            return all([bool((await client.get(ClusterRole, name)).rules) for name in names])

        await eventually(are_there)
        labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        await client.create(role("databases", JOBS, labels=labels))

        async def is_in_all() -> bool:
            found = [await client.get(ClusterRole, name) for name in ("admin", "edit", "view")]
            return all(JOBS in (one.rules or ()) for one in found)

        await eventually(is_in_all)
