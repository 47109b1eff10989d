"""Gathers the rules of ClusterRoles that are made of others: ``admin``, ``edit``, ``view`` and one's own.

1. A ClusterRole with an ``aggregationRule`` has the rules of all others that its selectors choose, in the
   order of selectors and names, each once; what somebody else writes there is put back.
2. What is gathered may be gathered again: ``view`` is part of ``edit``, and that of ``admin``.

Which rules those are is decided in ``gathered``.  On a server without this controller, as on a real one,
such roles are empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from setpoint.api.meta import ObjectMeta
from setpoint.api.selectors import LabelSelection
from setpoint.api.wire import Snapshot
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import complete
from setpoint.controller.builder import builder
from setpoint.controller.result import Request
from setpoint.controller.sources import Kind
from setpoint.kube.rbac.v1 import ClusterRole, PolicyRule

NAME: Final = "clusterrole-aggregation-controller"
_ALL: Final = Request("", "every-role")  # any role may be part of any other: they are looked at together


def add_to(parts: Parts) -> None:
    """Keep such roles up to date."""
    client = parts.client

    async def reconcile(_: Request) -> None:
        roles = [role async for role in client.list(ClusterRole)]
        for role in roles:
            rules = gathered(role, roles)
            if rules is not None and rules != (role.rules or []):
                metadata = ObjectMeta(name=role.metadata.name)
                wish = ClusterRole(metadata=metadata, rules=rules)
                await client.apply(wish, force=True, field_manager=NAME)

    complete(
        builder(parts.manager).named(NAME).reads(Kind(parts.manager.cache, ClusterRole, _to_all)), reconcile
    )


def _to_all(_: Snapshot) -> list[Request]:
    return [_ALL]


def gathered(role: ClusterRole, others: Iterable[ClusterRole]) -> list[PolicyRule] | None:
    """The rules that a role has by its aggregationRule; None for one that has none."""
    if role.aggregation_rule is None:
        return None
    by_name = sorted(others, key=lambda other: other.metadata.name or "")
    found: list[PolicyRule] = []
    for selector in role.aggregation_rule.cluster_role_selectors or ():
        selection = LabelSelection.from_object(selector)
        for other in by_name:
            if other.metadata.name == role.metadata.name or not selection.matches(
                other.metadata.labels or {}
            ):
                continue
            found += [rule for rule in other.rules or () if rule not in found]
    return found
