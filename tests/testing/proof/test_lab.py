"""The fixture ``cluster``: a cluster of the test's own, in which time passes at once."""

from __future__ import annotations

import pytest

from setpoint.api import ObjectMeta
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.proof.lab import Lab
from setpoint.testing.proof.plans import At, Crash
from tests.mutants.operators import timestamps
from tests.mutants.widgets import Widget, child, operator_of


async def reconcile(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))


def a_widget() -> Widget:
    return Widget(metadata=ObjectMeta(name="w", namespace="default"))


def test_an_operator_keeps_its_children_through_crashes_and_old_views(cluster: Lab) -> None:
    cluster.run(lambda: operator_of(reconcile))
    cluster.create(a_widget())
    cluster.fault(Crash(at=At("apply configmaps default/w", 2), when="after"))
    cluster.delete(ConfigMap, "w")
    assert cluster.get(ConfigMap, "w").data == {"text": "a"}
    cluster.freeze("widgets.test.setpoint.dev", seconds=100)
    cluster.change(Widget, "w", {"spec": {"text": "b"}})
    assert cluster.get(ConfigMap, "w").data == {"text": "b"}
    cluster.restart()
    cluster.assert_quiescent()
    assert list(cluster.snapshot()) == ["configmaps default/w", "widgets.test.setpoint.dev default/w"]


def test_two_clusters_share_nothing(cluster: Lab) -> None:
    assert cluster.list(ConfigMap) == []
    with Lab() as other:
        other.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
        assert len(other.list(ConfigMap)) == 1
    assert cluster.list(ConfigMap) == []


def test_an_hour_passes_at_once(cluster: Lab) -> None:
    began = cluster.wait(_now())
    cluster.pass_time(3600)
    assert cluster.wait(_now()) - began == 3600


async def _now() -> float:
    import asyncio

    return asyncio.get_running_loop().time()


def test_who_does_not_keep_still_is_told_so_with_the_story(cluster: Lab) -> None:
    cluster.run(lambda: timestamps(wrong=True))
    cluster.create(a_widget())
    with pytest.raises(AssertionError, match=r"written though nothing has changed(?s:.*)server  "):
        cluster.assert_quiescent()


def test_the_fixture_operator_runs_it(cluster: Lab, operator: object) -> None:
    assert callable(operator)
    operator(lambda: operator_of(reconcile))
    cluster.create(a_widget())
    assert cluster.get(ConfigMap, "w")
