"""The promises of ``proof/usual.py``: what a user does with objects of several kinds, where nobody says."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.api import CustomResource, Model, ObjectMeta
from setpoint.api.names import GroupVersionKind
from setpoint.controller.context import Context
from setpoint.kube.core.v1 import ConfigMap
from setpoint.operator import Operator
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.usual import primary, usual
from setpoint.testing.proof.world import Prepared
from tests.mutants.widgets import Widget, child


class GadgetSpec(Model):
    widget: str
    size: int = 1


class Gadget(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: GadgetSpec


def two_kinds(*, is_picky: bool = False, wrong: bool = False) -> Subject:
    """An operator of widgets and gadgets; a picky one needs the widget that a gadget names."""
    operator, done = Operator("both"), dict[str, int | None]()

    @operator.controller(Widget, owns=[ConfigMap])
    async def widgets(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    @operator.controller(Gadget, owns=[ConfigMap])
    async def gadgets(gadget: Gadget, ctx: Context) -> None:
        if is_picky:
            await ctx.get(Widget, gadget.spec.widget)
        if wrong and done.get(gadget.metadata.uid or "") == gadget.metadata.generation:
            return
        done[gadget.metadata.uid or ""] = gadget.metadata.generation
        name = ObjectMeta(name=gadget.metadata.name)
        await ctx.apply(ConfigMap(metadata=name, data={"size": str(gadget.spec.size)}))

    return operator


def told(example: dict[str, Any] | None = None, **how: bool) -> list[str]:
    return [str(step) for step in usual(Prepared.of(lambda: two_kinds(**how)), example).steps]


def test_of_several_kinds_each_has_its_life_within_that_of_the_one_before() -> None:
    steps = told()
    assert steps[0] == "create Widget sample"
    assert steps.index("create Gadget sample-2") < steps.index("delete ConfigMap sample")
    assert steps[-8:] == [
        "delete ConfigMap sample",
        "delete ConfigMap sample-2",
        "delete Gadget sample-2",
        "create Gadget sample-2",
        "delete Gadget sample-2 while the operator is down",
        "delete Widget sample",
        "create Widget sample",
        "delete Widget sample while the operator is down",
    ]


def test_a_mistake_with_the_second_kind_is_found_and_who_makes_none_is_left_alone() -> None:
    report = prove(lambda: two_kinds(wrong=True), only=["E3"], budget=600, most_failures=1, shrink=False)
    assert "sample-2" in str(report.alarms[0].first), report
    twin = prove(two_kinds, only=["none", "E2", "E3", "I1", "V2"], budget=600, most_of_class=1)
    assert twin.is_good, twin
    assert not twin.skipped


def test_a_kind_of_which_the_schema_says_too_little_is_left_out_and_that_is_told() -> None:
    report = prove(lambda: two_kinds(is_picky=True), only=["E1"], budget=600)
    assert report.is_good, report
    assert not any("Gadget" in str(step) for step in report.steps)
    assert report.skipped.keys() == {"Gadget"}
    assert 'give example={"Gadget": {…}}' in str(report)


def test_specs_to_begin_with_can_be_given_by_kind() -> None:
    assert "create Gadget sample-2" in told({"Gadget": {"widget": "sample"}}, is_picky=True)
    with pytest.raises(ValueError, match=r"refused with 422(?s:.*): the example is not right"):
        told({"Gadget": {"size": 2}})
    assert not any("sample-2" in step for step in told({"text": "x"}, is_picky=True)), "that of the first"


def test_definitions_of_what_the_operator_is_not_for_have_no_objects() -> None:
    crds = two_kinds().crds()
    gadget = GroupVersionKind("test.setpoint.dev", "v1", "Gadget")
    assert [crd["spec"]["names"]["kind"] for crd in primary(crds, [gadget])] == ["Gadget"]
    assert [crd["spec"]["names"]["kind"] for crd in primary(crds, [])] == ["Widget"]
