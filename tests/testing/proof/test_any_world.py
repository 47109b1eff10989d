"""The promises of ``proof/any_world.py``: whoever dies comes back as who it was."""

from __future__ import annotations

from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.operator import Operator
from setpoint.testing.proof.lab import Lab
from tests.mutants.widgets import Widget, child, widget


def named(name: str) -> Operator:
    async def reconcile(found: Widget, ctx: Context) -> None:
        await ctx.apply(child(found, f"-{name}", text=found.spec.text))

    operator = Operator(name)
    operator.controller(Widget, owns=[ConfigMap])(reconcile)
    return operator


def test_of_two_operators_each_is_started_again() -> None:
    with Lab() as cluster:
        cluster.run(named("a"))
        cluster.run(named("b"))
        cluster.restart()
        cluster.create(widget())
        assert {each.metadata.name for each in cluster.list(ConfigMap)} == {"w-a", "w-b"}
        cluster.assert_quiescent()
