"""Roles that are made of others: kube-controller-manager gathers what our own controller gathers."""

from __future__ import annotations

from setpoint.api.meta import LabelSelector, ObjectMeta
from setpoint.builtin.aggregation import gathered
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.rbac.v1 import AggregationRule, ClusterRole, PolicyRule
from setpoint.testing.kube import ControlPlane
from setpoint.testing.waiting import eventually

PART = {"example.com/aggregated": "true"}
JOBS = PolicyRule(verbs=["get"], api_groups=["batch"], resources=["jobs"])
PODS = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=["a"])


async def test_roles_have_the_rules_that_are_gathered_for_them(cluster: ControlPlane) -> None:
    async with Client(Config.from_kubeconfig(cluster.kubeconfig)) as client:
        selector = LabelSelector(match_labels=PART)
        aggregation = AggregationRule(cluster_role_selectors=[selector, selector])
        metadata = ObjectMeta(name="whole")
        await client.create(ClusterRole(metadata=metadata, aggregation_rule=aggregation, rules=[JOBS]))
        for name, rules in (("z-part", [JOBS, PODS]), ("a-part", [PODS])):
            await client.create(ClusterRole(metadata=ObjectMeta(name=name, labels=PART), rules=rules))

        async def all_have() -> list[ClusterRole] | None:
            roles = await client.list(ClusterRole)
            made = [role for role in roles if role.aggregation_rule is not None]
            is_so = all((role.rules or []) == gathered(role, roles) for role in made)
            return made if is_so else None

        made = {role.metadata.name: role.rules for role in await eventually(all_have)}
        assert made["whole"] == [PODS, JOBS]
        assert len(made["admin"] or ()) > len(made["edit"] or ()) > len(made["view"] or ()) > 5
        for name in ("whole", "a-part", "z-part"):
            await client.delete(ClusterRole, name)
