"""Another program's finalizer: where it is put, for how long it holds, and who must not mind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from setpoint.controller.context import Context
from setpoint.testing.proof.oracles import Reference, judge
from setpoint.testing.proof.plans import MARK, At, Delete, Linger, Plan
from setpoint.testing.proof.sweep import singles
from setpoint.testing.proof.trace import Run, Written
from setpoint.testing.proof.world import Prepared
from tests.mutants.widgets import API, Widget, change, child, create, delete, operator_of

STEPS = (create(), change(text="b"), Delete("v1", "ConfigMap", "w"), delete())
APPLY = At("apply configmaps default/w")
HOLD = At("patch widgets.test.setpoint.dev default/w")  # its own finalizer, which is put on first
PRIMARY = Linger(API, "Widget", "w", at=HOLD)
CHILD = Linger("v1", "ConfigMap", "w", at=APPLY, when="after")


async def reconcile(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))
    widget.status.done = widget.spec.text


async def clean_up(widget: Widget, ctx: Context) -> None:
    del widget, ctx


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return Prepared.of(lambda: operator_of(reconcile, clean_up))


@pytest.fixture(scope="module")
def reference(prepared: Prepared) -> Run:
    return prepared.run(Plan(STEPS))


def metadata(write: Written) -> Any:
    return msgspec.json.decode(write.data)["metadata"]


def life_of(run: Run, resource: str) -> tuple[Written, Written]:
    """When its deletion was asked for, and when it went."""
    those = [write for write in run.writes if write.resource == resource]
    gone = next(number for number, write in enumerate(those) if write.type == "DELETED")
    asked = next(write for write in those if metadata(write).get("deletionTimestamp"))
    return asked, those[gone]


@pytest.mark.parametrize(
    ("fault", "resource"),
    [(PRIMARY, "widgets.test.setpoint.dev"), (CHILD, "configmaps")],
    ids=["the object", "a child"],
)
def test_what_is_deleted_takes_a_while_to_go_and_all_else_is_as_ever(
    prepared: Prepared, reference: Run, fault: Linger, resource: str
) -> None:
    run = prepared.run(Plan(STEPS, (fault,)), reference=reference)
    asked, gone = life_of(run, resource)
    assert run.fired == [str(fault)]
    assert gone.by == "other"
    assert gone.time - asked.time >= fault.seconds
    assert judge(run, Reference(reference)) == []


def test_it_is_put_beside_the_finalizers_that_there_are(prepared: Prepared) -> None:
    late = Linger(API, "Widget", "w", at=At(APPLY.what, 2))
    run = prepared.run(Plan(STEPS, (late,)))
    put = next(write for write in run.writes if MARK in (metadata(write).get("finalizers") or ()))
    assert metadata(put)["finalizers"] == ["test.setpoint.dev/widget", MARK]


def test_on_what_is_not_there_or_goes_already_it_is_not_put(prepared: Prepared) -> None:
    release = At(HOLD.what, 2)  # its own finalizer is taken off: it is being deleted
    absent = Linger("v1", "ConfigMap", "nobody", at=APPLY)
    for fault in (Linger(API, "Widget", "w", at=release), absent):
        run = prepared.run(Plan(STEPS, (fault,)))
        assert run.fired == []
        assert [finding.oracle for finding in judge(run, Reference(run))] == ["O13"]


def test_it_stands_on_what_is_deleted_later_on_where_the_operator_writes(reference: Run) -> None:
    found = [
        plan.faults[0]
        for plan in singles(reference, STEPS, only=frozenset(["I2"]))
        if isinstance(plan.faults[0], Linger)
    ]
    assert [(fault.kind, fault.when, str(fault.at)) for fault in found] == [
        ("Widget", "before", str(HOLD)),
        ("ConfigMap", "after", str(APPLY)),
    ]
