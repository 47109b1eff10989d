"""The promises of ``proof/seam.py`` about reads: those of a reconcile can be refused, and are no effects."""

from __future__ import annotations

import pytest

from setpoint.api.names import GroupVersionKind
from setpoint.client.client import ignore_not_found
from setpoint.controller.context import Context
from setpoint.kube.coordination.v1 import Lease
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.proof.plans import At, Plan, Refuse
from setpoint.testing.proof.sweep import TWICE
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.world import Prepared
from tests.mutants.needed import on_change
from tests.mutants.widgets import Widget, change, child, config_map, create, delete, operator_of

STEPS = (config_map("hi"), create(), change(text="b"), delete())
GET = "get configmaps default/hi"
LIST = "list configmaps default"


@pytest.fixture(scope="module")
def reads() -> Prepared:
    """An operator that asks the server for what it needs, and keeps copies of the same kind besides."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        live = ctx.client.live
        await live.get(ConfigMap, "hi", namespace="default")
        number = len(await live.list(ConfigMap, namespace="default"))
        await ctx.apply(child(widget, text=f"{widget.spec.text} {min(number, 1)}"))

    return Prepared.of(lambda: operator_of(reconcile))


def errors(run: Run) -> list[str]:
    return [look.error for look in run.looks if look.error]


@pytest.mark.parametrize("what", [GET, LIST])
@pytest.mark.parametrize("code", [403, 500, 503, 0])
def test_what_a_reconcile_reads_is_refused_at_its_place(reads: Prepared, what: str, code: int) -> None:
    fault = Refuse(at=At(what, 2), code=code, times=1 if code == 403 else TWICE)
    run = reads.run(Plan(STEPS, (fault,)))
    assert run.fired == [str(fault)]
    assert any("fault" in error or "refused" in error for error in errors(run)), "the operator hears of it"
    assert all(point.is_settled for point in run.checkpoints)


def test_the_client_tries_again_what_may_be_read_a_moment_later(reads: Prepared) -> None:
    run = reads.run(Plan(STEPS, (Refuse(at=At(GET, 3), code=500),)))
    assert run.fired
    assert errors(run) == []


def test_reads_are_kept_apart_and_number_no_effect(reads: Prepared) -> None:
    run = reads.run(Plan(STEPS))
    assert {read.at.what for read in run.reads} >= {GET, LIST}
    assert {read.number for read in run.reads} == {0}
    assert [effect.number for effect in run.effects] == list(range(1, len(run.effects) + 1))
    assert not [effect for effect in run.effects if effect.at.what.startswith(("get", "list"))]
    assert not [what for _process, what in run.done if what.startswith(("get", "list"))]


def test_what_is_read_besides_reconciles_is_left_alone() -> None:
    run = Prepared.of(lambda: on_change(wrong=True)).run(Plan(STEPS))  # it lists Widgets when it begins
    assert run.effects
    assert run.reads == []


def test_discovery_and_leases_are_left_alone() -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.client.live.discovery.find(GroupVersionKind("", "v1", "Secret"))
        await ignore_not_found(ctx.client.live.get(Lease, "widgets", namespace="default"))
        await ctx.apply(child(widget, text=widget.spec.text))

    run = Prepared.of(lambda: operator_of(reconcile)).run(Plan(STEPS, replicas=2))
    assert run.effects
    assert run.reads == []


def test_what_the_runtime_reads_before_a_clean_up_is_refused_too() -> None:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=widget.spec.text))

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del widget, ctx

    prepared = Prepared.of(lambda: operator_of(reconcile, clean_up))
    fault = Refuse(at=At("get widgets.test.setpoint.dev default/w"), code=403)
    run = prepared.run(Plan((create(), delete()), (fault,)))
    assert run.fired == [str(fault)]
    assert errors(run)
    assert run.checkpoints[-1].is_settled
