"""The promises of ``proof/usual.py``: what a user does with objects of several kinds, where nobody says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest

from setpoint.api import CustomResource, Immutable, Model, ObjectMeta, Rule
from setpoint.api.names import GroupVersionKind
from setpoint.controller.context import Context
from setpoint.errors import TerminalError
from setpoint.kube.core.v1 import ConfigMap, Secret
from setpoint.kube.rbac.v1 import ClusterRole
from setpoint.operator import Operator
from setpoint.testing.proof.plans import Create
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


Reconcile = Callable[[Gadget, Context], Awaitable[None]]


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


@pytest.mark.slow
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


def with_gadgets(reconcile: Reconcile, clean_up: Reconcile | None = None) -> Subject:
    """An operator of widgets, which does all it should, and of gadgets."""
    operator = Operator("both")

    @operator.controller(Widget, owns=[ConfigMap])
    async def widgets(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    operator.controller(Gadget)(reconcile)
    if clean_up is not None:
        operator.finalizer(Gadget)(clean_up)
    return operator


async def idle(gadget: Gadget, ctx: Context) -> None: ...


async def misspelled(gadget: Gadget, ctx: Context) -> None:
    raise KeyError("widgt")


async def unchangeable(gadget: Gadget, ctx: Context) -> None:
    if gadget.spec.size > 1:
        raise TypeError("size cannot be changed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reconcile", "clean_up"), [(misspelled, None), (idle, misspelled), (unchangeable, None)]
)
def test_a_mistake_in_how_the_second_kind_begins_changes_or_ends_is_judged(
    reconcile: Reconcile, clean_up: Reconcile | None
) -> None:
    report = prove(lambda: with_gadgets(reconcile, clean_up), only=["none"], budget=600)
    assert not report.skipped
    assert "sample-2" in str(report.alarms[0].first), report


def test_of_the_second_kind_only_the_changes_after_which_it_cannot_rest_are_left_out() -> None:
    async def picky(gadget: Gadget, ctx: Context) -> None:
        if gadget.spec.size > 1:
            await ctx.get(ConfigMap, "of-that-size")

    report = prove(lambda: with_gadgets(picky), only=["none"], budget=600)
    assert report.is_good, report
    assert report.skipped.keys() == {"Gadget spec.size"}
    assert report.skipped["Gadget spec.size"].startswith("it does not come to rest then: ")
    steps = [str(step) for step in report.steps]
    assert not any(step.startswith("change Gadget sample-2") and '"size":2' in step for step in steps)
    assert any(step.startswith("change Gadget sample-2") and '"widget"' in step for step in steps)


class CrateSpec(Model):
    text: str = "a"
    size: Annotated[int, Rule("self < 2")] = 1
    store: Annotated[str, Immutable()] = "here"
    labels: dict[str, str] = {}
    more: dict[str, Any] = {}


class Crate(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: CrateSpec = CrateSpec()


def crates() -> Subject:
    """An operator with a child that the server names, one that is in no namespace, and a plain one."""
    operator = Operator("crates")

    @operator.controller(Crate, owns=[ConfigMap, Secret])
    async def reconcile(crate: Crate, ctx: Context) -> None:
        name = crate.metadata.name
        await ctx.apply(ClusterRole(metadata=ObjectMeta(name=name)), owned=False)
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=name), data={"text": crate.spec.text}))
        if not await ctx.list(Secret, owned=True):
            made = Secret(metadata=ObjectMeta(generate_name=f"{name}-", namespace="default"))
            ctx.set_controller_reference(made)
            await ctx.client.create(made)

    return operator


def test_what_is_never_changed_or_deleted_is_named_with_why() -> None:
    found = usual(Prepared.of(crates))
    said = {name: why.partition(";")[0] for name, why in found.skipped.items()}
    assert said == {
        "Crate spec.size": "the change is refused with 422",
        "Crate spec.store": "a rule holds it against its old value",
        "Crate spec.more": "the schema does not say what else it may be",
        "deletion of clusterroles.rbac.authorization.k8s.io": "it is in no namespace",
        "deletion of secrets": "the server makes up its name",
    }
    steps = [str(step) for step in found.steps]
    assert not any('"size":2' in step for step in steps)
    assert "delete ConfigMap sample" in steps


def test_specs_to_begin_with_can_be_given_by_kind() -> None:
    assert "create Gadget sample-2" in told({"Gadget": {"widget": "sample"}}, is_picky=True)
    with pytest.raises(ValueError, match=r"refused with 422(?s:.*): the example is not right"):
        told({"Gadget": {"size": 2}})
    assert not any("sample-2" in step for step in told({"text": "x"}, is_picky=True)), "that of the first"


@pytest.mark.parametrize("misspelled", ["Gadgt", "txt"])
def test_an_example_of_what_there_is_not_is_refused_with_the_kinds_that_there_are(misspelled: str) -> None:
    beside: list[dict[str, Any]] = [{}, {"Widget": {"text": "x"}}, {"text": "x"}]
    for example in beside:
        with pytest.raises(ValueError, match=rf"{misspelled}: Widget has no such field.*of Widget, Gadget"):
            told({**example, misspelled: {}})


def test_a_schema_that_takes_any_field_takes_any_example() -> None:
    class Open:
        name, kinds = "open", two_kinds().kinds

        def crds(self) -> list[dict[str, Any]]:
            found = two_kinds().crds()
            schema = found[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
            schema["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            return found

        def add_to(self, manager: Any, /) -> object:
            return two_kinds().add_to(manager)

    first = usual(Prepared.of(Open), {"text": "x", "any": 1}).steps[0]
    assert isinstance(first, Create)
    assert first.object["spec"] == {"text": "x", "any": 1}


def test_definitions_of_what_the_operator_is_not_for_have_no_objects() -> None:
    crds = two_kinds().crds()
    gadget = GroupVersionKind("test.setpoint.dev", "v1", "Gadget")
    assert [crd["spec"]["names"]["kind"] for crd in primary(crds, [gadget])] == ["Gadget"]
    assert [crd["spec"]["names"]["kind"] for crd in primary(crds, [])] == ["Widget"]


class PageSpec(Model):
    image_name: str = "a"
    size: int = 1


class PageStatus(Model):
    phase: str = ""


class Page(CustomResource, group="test.setpoint.dev", version="v1"):
    spec: PageSpec = PageSpec()
    status: PageStatus = PageStatus()


@pytest.mark.parametrize("how", ["status", "error"])
def test_an_example_that_the_operator_rejects_proves_nothing_and_the_field_to_give_is_named(how: str) -> None:
    operator = Operator("pages")

    @operator.controller(Page, owns=[ConfigMap])
    async def reconcile(page: Page, ctx: Context) -> None:
        if "/" not in page.spec.image_name:
            page.status.phase = "Invalid"
            if how == "error":
                raise TerminalError("imageName must name a registry")
            page.status.phase = "Invalid: image_name must name a registry"
            return
        await ctx.apply(
            ConfigMap(metadata=ObjectMeta(name=page.metadata.name, namespace=page.metadata.namespace))
        )

    named = r'makes no configmaps of the generated Page .*must name a registry.*example=\{"imageName": …\}'
    with pytest.raises(ValueError, match=named):
        prove(operator, only=["none"])
    assert prove(operator, example={"imageName": "registry/a"}, only=["none"], shrink=False).proven
