"""What the live checks are for: operators that are shown the past, with the runtime as it is and without."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from bench.guarantees import rash, short_sighted
from setpoint.controller.context import Context
from setpoint.controller.result import Result
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.proof.plans import Step
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.prove import prove
from tests.mutants.widgets import Widget, change, child, create, delete, operator_of


def takes_down() -> Subject:
    """Its child belongs to nobody, so it must not forget it."""

    async def reconcile(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget), owned=False)

    async def clean_up(widget: Widget, ctx: Context) -> Result | None:
        if widget.status.phase != "Deleting":
            widget.status.phase = "Deleting"
            return Result(requeue_after=0)
        await ctx.delete(ConfigMap, ctx.request.name)
        return None

    return operator_of(reconcile, clean_up)


def scales() -> Subject:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        if widget.spec.replicas > 1:
            await ctx.apply(child(widget, "-more"))
        else:
            await ctx.delete(ConfigMap, f"{ctx.request.name}-more")

    return operator_of(reconcile)


def found_in_the_past(make: Callable[[], Subject], steps: tuple[Step, ...]) -> list[str]:
    """What an operator does wrong that starts with an old view."""
    report = prove(make, steps=steps, only=["V9"], is_exhaustive=True, shrink=False, most_failures=100)
    assert report.plans
    assert not report.inconclusive, report
    return [str(finding) for failure in report.failures for finding in failure.findings]


@pytest.mark.parametrize("is_on", [True, False], ids=["as it is", "without"])
def test_a_clean_up_that_is_shown_the_past_leaves_nothing_behind(is_on: bool) -> None:
    with nullcontext() if is_on else short_sighted():
        found = found_in_the_past(takes_down, (create(), delete()))
    left = [each for each in found if each.startswith("O6")]
    assert bool(left) != is_on, found


@pytest.mark.parametrize("is_on", [True, False], ids=["as it is", "without"])
def test_a_spec_of_the_past_deletes_nothing(is_on: bool) -> None:
    steps = (create(replicas=2), change(replicas=1), change(replicas=2), delete())
    with nullcontext() if is_on else rash():
        found = found_in_the_past(scales, steps)
    deleted = [each for each in found if "w-more was deleted 3 times" in each]
    assert bool(deleted) != is_on, found
