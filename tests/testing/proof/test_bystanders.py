"""The promises of ``proof/bystanders.py``: other objects end as they would alone, and what may be shared."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import ObjectMeta
from setpoint.controller import Request
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap, Namespace, Secret
from setpoint.testing.proof.bystanders import bystanders_of, grouped
from setpoint.testing.proof.plans import Create
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.prove import prove, replay
from setpoint.testing.proof.report import Report
from tests.mutants.apart import hard_coded_namespace, prunes_siblings
from tests.mutants.operators import ONE
from tests.mutants.widgets import Widget, child, config_map, create, operator_of


def judged(make: object, steps: object = ONE) -> Report:
    return prove(make, steps=steps, only=["none"], shrink=False)  # type: ignore[arg-type]


def test_a_plan_that_mixes_up_objects_is_told_and_fails_again_when_it_is_replayed() -> None:
    def make() -> Subject:
        return prunes_siblings(wrong=True)

    report = prove(make, steps=ONE, only=["none"])
    (failure,) = report.failures
    assert failure.first.oracle == "O14"
    assert [each.object["metadata"]["name"] for each in failure.plan.bystanders] == ["w-beside"]
    assert "beside other objects" in str(report)
    again = replay(make, failure.plan)
    assert [each.first.oracle for each in again.failures] == ["O14"]
    assert replay(lambda: prunes_siblings(wrong=False), failure.plan).is_good
    assert replay(make, failure.plan, without=["O14"]).is_good


@pytest.mark.slow
def test_what_is_not_asked_for_is_not_tried() -> None:
    def make() -> Subject:
        return hard_coded_namespace(wrong=True)

    assert not judged(make).is_good
    assert prove(make, steps=ONE, only=["none"], without=["O14"]).is_good
    assert prove(make, steps=ONE, only=["E1"], most_of_class=1).is_good


def test_a_child_that_several_share_is_no_difference() -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        metadata = ObjectMeta(name="shared", namespace=widget.metadata.namespace)
        await ctx.apply(ConfigMap(metadata=metadata, data={"mode": "on"}), owned=False)

    report = prove(
        lambda: operator_of(reconcile), steps=ONE, only=["none"], keeps=["configmaps"], shrink=False
    )
    assert report.is_good, str(report)


def test_what_is_made_for_every_namespace_is_no_difference() -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))
        for each in await ctx.client.live.list(Namespace):
            name = f"{widget.metadata.namespace}-{widget.metadata.name}"
            metadata = ObjectMeta(name=name, namespace=each.metadata.name)
            await ctx.apply(Secret(metadata=metadata, string_data={"text": "a"}), owned=False)

    report = prove(lambda: operator_of(reconcile), steps=ONE, only=["none"], keeps=["secrets"], shrink=False)
    assert report.is_good, str(report)


def test_generated_names_with_one_beginning_are_told_apart_by_their_owners() -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        if not await ctx.list(ConfigMap, owned=True):
            made = ConfigMap(metadata=ObjectMeta(generate_name="part-", namespace=widget.metadata.namespace))
            ctx.set_controller_reference(made)
            await ctx.client.create(made)

    report = judged(lambda: operator_of(reconcile))
    assert report.is_good, str(report)


def test_what_the_user_makes_besides_is_there_for_bystanders_too() -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        found = await ctx.client.live.list(ConfigMap, namespace=widget.metadata.namespace)
        widget.status.count = len([each for each in found if each.metadata.name == "x"])

    async def all_widgets(_changed: ConfigMap, client: Any) -> list[Request]:
        return [
            Request(each.metadata.namespace or "", each.metadata.name or "")
            for each in await client.live.list(Widget)
        ]

    def make() -> Subject:
        return operator_of(reconcile, owns=False, watches={ConfigMap: all_widgets})

    report = judged(make, (create(), config_map("x")))
    assert report.is_good, str(report)


@pytest.mark.parametrize("is_inside", [True, False])
def test_an_object_in_no_namespace_has_bystanders_of_another_name_alone(is_inside: bool) -> None:
    metadata = {"name": "w", "namespace": "default"} if is_inside else {"name": "w"}
    made = Create({"apiVersion": "demo/v1", "kind": "Cat", "metadata": metadata, "spec": {}})
    groups = bystanders_of((made,), lambda api_version, kind: (api_version, kind) == ("demo/v1", "Cat"))
    names = [[each.object["metadata"]["name"] for each in group] for group in groups]
    assert names == ([["elsewhere", "w"], ["w-beside"]] if is_inside else [["w-beside"]])
    assert grouped([each for group in groups for each in group]) == groups
    assert bystanders_of((made,), lambda _api_version, _kind: False) == []
