"""The promises of ``proof/prove.py``: what is wrong is found, told and kept; what is right is left alone."""

from __future__ import annotations

import itertools
import random
import secrets
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from inspect import signature
from os import urandom as entropy
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.controller.context import Context
from setpoint.errors import ApiError, Conflict, RetryLater
from setpoint.operator import Operator
from setpoint.testing.proof.kept import keep
from setpoint.testing.proof.options import Options
from setpoint.testing.proof.plans import At, Crash, Delete, Plan, Refuse, Uncollected
from setpoint.testing.proof.prove import CLASSES, FIRST, plans_of, prove, replay
from setpoint.testing.proof.report import Report, as_html, as_junit
from setpoint.testing.proof.sweep import cell_of, cells_of, pairs, singles
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.world import Prepared
from tests.mutants.operators import MUTANTS, Mutant
from tests.mutants.sole import EVERY
from tests.mutants.widgets import Widget, child, operator_of


def mutant(number: str) -> Mutant:
    return next(each for each in MUTANTS if each.number == number)


async def right(widget: Widget, ctx: Context) -> None:
    await ctx.apply(child(widget, text=widget.spec.text))
    widget.status.done = widget.spec.text


STRUCK = Plan(mutant("04").steps, (Refuse(at=At("apply configmaps default/w"), code=409),))


@pytest.mark.slow
def test_an_operator_as_the_guide_has_it_survives_the_steps_made_from_its_schema() -> None:
    report = prove(lambda: operator_of(right), budget=60, most_plans=60)
    assert report.is_good, report
    assert report.inconclusive == []
    assert report.covered
    assert str(report.steps[0]) == "create Widget sample"


def test_a_failure_names_oracle_fault_cause_and_remedy_and_is_made_small() -> None:
    found = mutant("04")
    report = prove(found.mutant, steps=found.steps, only=["E1"], most_failures=1)
    (failure,) = report.failures
    assert failure.first.oracle == "O3"
    assert len(failure.plan.steps) < len(found.steps), "one step is enough to show it"
    text = str(report)
    for word in ("FAIL O3", "crash before apply configmaps default/w", "cause:", "remedy:"):
        assert word in text


def calendar() -> str:
    now = datetime.now(UTC)
    assert now.year == 2030
    assert abs(time.time() - now.timestamp()) < 0.001
    assert time.gmtime()[:3] == now.timetuple()[:3]
    return f"{now.isoformat()} {uuid.uuid1()}"


def chance() -> str:
    random.seed()
    return f"{random.Random().random()} {random.random()} {uuid.uuid4()} {secrets.token_hex(8)}"


@pytest.mark.parametrize("draw", [calendar, chance])
def test_clocks_and_chance_of_the_operators_are_the_same_in_every_run(draw: Callable[[], str]) -> None:
    async def draws(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=f"drawn {draw()}"))

    plan = Plan(STRUCK.steps)
    prepared = Prepared.of(lambda: operator_of(draws))
    first, again = prepared.run(plan), prepared.run(plan)
    assert first.digest == again.digest
    assert any(b'"drawn ' in write.data for write in first.writes)
    assert abs(datetime.now(UTC).timestamp() - time.time()) < 60, "outside, time is what it is"


counted = itertools.count(1)
EARLIER = time.time


@pytest.mark.parametrize(
    ("draw", "likely"),
    [
        (lambda: f"number {next(counted)}", "a counter or other state that outlives the process"),
        (lambda: datetime.fromtimestamp(EARLIER(), UTC).isoformat(), "ctx.now()"),
        (lambda: entropy(8).hex(), "chance that is not seeded"),
    ],
)
def test_what_differs_from_run_to_run_is_the_operators_and_likely_why_is_said(
    draw: Callable[[], str], likely: str
) -> None:
    async def draws(widget: Widget, ctx: Context) -> None:
        await ctx.apply(child(widget, text=draw()))

    report = prove(lambda: operator_of(draws), steps=STRUCK.steps, budget=60)
    assert not report.is_good
    assert likely in report.broken[0]
    text = str(report)
    assert "NOT REPEATABLE widgets" in text
    assert "the operator's own code differs from run to run" in text
    assert "configmaps default/w: data.text: expected" in text, "and where it shows"
    assert "our own failure" not in text + as_junit(report) + as_html(report)


@pytest.mark.slow
def test_what_the_operator_draws_by_chance_is_no_difference() -> None:
    import secrets

    async def password(widget: Widget, ctx: Context) -> None:
        from setpoint.client.client import ignore_not_found
        from setpoint.kube.core.v1 import ConfigMap

        if await ignore_not_found(ctx.get(ConfigMap, widget.metadata.name or "")) is None:
            await ctx.apply(child(widget, password=secrets.token_hex(8)))

    report = prove(lambda: operator_of(password), budget=30, only=["E1", "E2", "none"])
    assert report.is_good, report


@pytest.mark.slow
def test_an_operator_that_never_comes_to_rest_is_told_so_at_once() -> None:
    async def fails(widget: Widget, ctx: Context) -> None:
        del widget, ctx
        raise RuntimeError("never")

    report = prove(lambda: operator_of(fails), budget=60)
    assert report.failures[0].first.oracle == "O1"


def test_a_fault_that_does_not_strike_is_inconclusive_and_never_good() -> None:
    from tests.mutants.widgets import create

    report = replay(lambda: operator_of(right), Plan((create(),), (Crash(at=At("apply pods default/x")),)))
    assert len(report.inconclusive) == 1
    assert not report.failures
    assert not report.is_good
    assert str(report).startswith("NOTHING PROVEN")


def test_a_proof_without_any_plan_is_not_good() -> None:
    report = prove(lambda: operator_of(right), only=["X1"])  # it uses nothing outside
    assert not report.total
    assert not report.is_good, report


def test_a_class_or_an_oracle_that_there_is_none_of_is_refused_and_those_there_are_are_named() -> None:
    with pytest.raises(ValueError, match=r"no class of faults E22: there are none, E1, E2, (?s:.*), chance$"):
        prove(lambda: operator_of(right), only=["E1", "E22"])
    with pytest.raises(ValueError, match=r"no oracle O99: there are O1, O2, (?s:.*), O14$"):
        prove(lambda: operator_of(right), without=["O99"])
    assert set(CLASSES) == {*EVERY, "chance"}


@pytest.mark.slow
def test_a_warning_hides_nothing_of_its_cell_and_does_not_end_the_proof() -> None:
    found = mutant("04")
    report = prove(found.mutant, steps=found.steps, only=["V9"], most_failures=1, shrink=False)
    (warning,) = report.failures
    assert warning.is_warning
    assert report.cells[warning.cells[0]] == "warned"
    assert report.proven == report.total > len(report.cells), "every plan of every cell was tried"
    assert report.is_good


def test_a_few_plans_of_every_class_come_before_all_others() -> None:
    steps = mutant("04").steps
    reference = Prepared.of(lambda: operator_of(right)).run(Plan(steps))
    report = Report("widgets", steps, reference=reference)
    plans = list(plans_of(report, steps, only=frozenset()))
    classes = {plan.id for plan in plans}
    assert {*CLASSES} - {"none", "chance", "X1"} == classes
    assert {plan.id for plan in plans[: FIRST * len(classes)]} == classes
    assert {*report.untried} == classes, "of none of them was anything tried yet"
    listed = [*singles(reference, steps), *pairs(reference, steps)]
    assert sorted(map(msgspec.json.encode, plans)) == sorted(map(msgspec.json.encode, listed))


@pytest.mark.parametrize("raised", [ZeroDivisionError, UnboundLocalError, UnicodeError, KeyError])
@pytest.mark.parametrize("is_group", [False, True], ids=["alone", "in a group"])
def test_a_mistake_in_the_code_is_one_whatever_python_calls_it(
    raised: type[Exception], is_group: bool
) -> None:
    error = raised("a mistake")

    async def stumbles(widget: Widget, ctx: Context) -> None:
        try:
            await right(widget, ctx)
        except Conflict:
            raise ExceptionGroup("two tasks", [error]) if is_group else error from None

    report = replay(lambda: operator_of(stumbles), STRUCK)
    assert "O11" in {finding.oracle for failure in report.failures for finding in failure.findings}, report


def test_an_error_that_only_sounds_like_a_mistake_is_none() -> None:
    async def says(widget: Widget, ctx: Context) -> None:
        try:
            await right(widget, ctx)
        except Conflict:
            raise RetryLater(1, "TypeError: says another program") from None

    report = replay(lambda: operator_of(says), STRUCK)
    assert report.is_good, report


@pytest.mark.slow
def test_an_object_that_cannot_be_made_again_is_not_blamed_on_the_schema() -> None:
    async def stuck(widget: Widget, ctx: Context) -> None:
        del widget, ctx
        raise RuntimeError("the clean-up does not come to an end")

    report = prove(lambda: operator_of(right, stuck), budget=60, only=["none"], shrink=False)
    assert not report.is_good
    assert "O1" in {finding.oracle for finding in report.failures[0].findings}
    assert len([step for step in report.steps if isinstance(step, Delete) and step.kind == "Widget"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("verify", [False, None, True])
def test_an_operator_with_effects_outside_survives_the_past_unless_it_believes_the_cache(
    verify: bool | None,
) -> None:
    from setpoint.testing.proof.cloud import Cloud
    from tests.mutants.operators import AGAIN

    cloud = Cloud()

    async def reconcile(widget: Widget, ctx: Context) -> None:
        del ctx
        if await cloud.get(widget.metadata.name or "") is None:
            await cloud.create(widget.metadata.name or "")

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del ctx
        await cloud.delete(widget.metadata.name or "")

    report = prove(
        lambda: operator_of(reconcile, clean_up, owns=False, verify=verify),
        steps=AGAIN,
        clouds=[cloud],
        only=["V9"],
        shrink=False,
    )
    assert report.is_good == (verify is not False), report


def test_garbage_that_is_late_from_the_last_step_on_is_waited_for() -> None:
    from setpoint.testing.proof.cloud import Cloud

    cloud = Cloud()

    async def reconcile(widget: Widget, ctx: Context) -> None:
        if await cloud.get("thing") is None:
            await cloud.create("thing")
        await right(widget, ctx)

    async def clean_up(widget: Widget, ctx: Context) -> None:
        del widget, ctx
        await cloud.delete("thing")

    steps, last = mutant("04").steps, At("delete cloud thing")
    plan = Plan(steps, (Uncollected(at=last),))
    report = replay(lambda: operator_of(reconcile, clean_up), plan, clouds=[cloud])
    assert report.is_good, report


def test_it_is_told_its_options_one_by_one() -> None:
    fields = [each.name for each in msgspec.structs.fields(Options)]
    assert list(signature(prove).parameters) == ["operator", *fields]
    with pytest.raises(TypeError, match="bugdet"):
        prove(lambda: operator_of(right), bugdet=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="operator"):
        prove(budget=1)  # type: ignore[call-arg]


def test_the_operator_may_be_named_like_everything_else() -> None:
    found = mutant("04")
    assert prove(operator=found.twin, steps=found.steps, only=["none"]).is_good


def test_what_can_be_read_only_once_is_read_by_all_who_need_it() -> None:
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "given", "namespace": "default"}}
    options = Options(objects=iter([given]), without=iter(["O10"]))
    assert options.objects == options.how.objects == (given,)
    assert options.how.without == ("O10",)


# ---- what Hypothesis draws


@pytest.mark.slow
def test_when_all_else_is_through_plans_are_drawn_until_enough_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[Run] = []
    carry_out = Prepared.run

    def run(prepared: Prepared, plan: Plan, **how: Any) -> Run:
        ran.append(carry_out(prepared, plan, **how))
        return ran[-1]

    monkeypatch.setattr(Prepared, "run", run)
    found = mutant("04")
    report = prove(found.twin, steps=found.steps, only=["E1", "chance"], budget=600, most_plans=60)
    assert report.is_good, report
    assert report.plans == 60 > report.total > 0
    assert (report.listed, report.drawn) == (report.total, 60 - report.total)
    assert any(len(each.fired) < len(each.plan.faults) for each in ran)
    assert report.proven == report.plans, "what was drawn and did not strike is no plan"
    assert report.inconclusive == []
    assert {cell.fault for cell in report.cells} == {"E1"}, (
        "what is drawn is no part of what is to be covered"
    )


@pytest.mark.slow
def test_what_has_failed_alone_is_not_found_again_together_with_other_faults() -> None:
    async def swallows(widget: Widget, ctx: Context) -> None:
        with suppress(ApiError):
            await ctx.apply(child(widget, text=widget.spec.text))

    report = prove(
        lambda: operator_of(swallows),
        steps=mutant("04").steps[:1],
        only=["E3", "chance"],
        budget=600,
        most_plans=60,
        shrink=False,
    )
    failed = [failure.plan for failure in report.alarms]
    assert failed[0].id == "E3"
    assert report.drawn
    assert [plan for plan in failed[1:] if cell_of(failed[0]) in cells_of(plan)] == []


@pytest.mark.slow
@pytest.mark.parametrize("bounded", [{"most_of_class": 1}, {"is_exhaustive": True}])
def test_who_asks_for_chance_and_for_an_end_is_told_that_nothing_is_drawn(bounded: dict[str, Any]) -> None:
    found = mutant("04")
    report = prove(found.twin, steps=found.steps, only=["chance"], **bounded)
    assert "skipped: chance (there is no end of it: leave out most_of_class and is_exhaustive)" in str(report)
    report = prove(found.twin, steps=found.steps, only=["E1"], **bounded)
    assert report.skipped == {}, "nobody asked"


def test_in_a_test_of_hypothesis_nothing_is_drawn_and_that_is_told() -> None:
    found, reports = mutant("04"), list[Report]()

    @settings(max_examples=1, database=None, deadline=None)
    @given(st.none())
    def inside(_nothing: None) -> None:
        reports.append(prove(found.twin, steps=found.steps, only=["E1", "chance"], budget=600))

    inside()
    assert reports[0].is_good
    assert "use Trial there" in reports[0].skipped["chance"]


@pytest.mark.slow
def test_what_is_drawn_and_fails_is_made_small() -> None:
    found = mutant("04")
    report = prove(found.mutant, steps=found.steps, only=["chance"], budget=600, most_failures=1)
    failure = report.alarms[0]
    assert len(failure.plan.faults) == 1
    assert len(failure.plan.steps) < len(found.steps)
    assert replay(found.mutant, failure.plan).alarms[0].first.oracle == failure.first.oracle


@pytest.mark.slow
def test_no_plan_is_drawn_when_the_budget_is_spent_or_only_classes_are_asked_for() -> None:
    steps = mutant("04").steps
    assert prove(mutant("04").twin, steps=steps, only=["chance"], budget=0.0).plans == 0
    report = prove(mutant("04").twin, steps=steps, only=["E1"], budget=600)
    assert {cell.fault for cell in report.cells} == {"E1"}


def test_without_hypothesis_all_else_is_tried_and_what_is_missing_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "setpoint.testing.proof.drawn", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    found = mutant("04")
    report = prove(found.twin, steps=found.steps, only=["E1", "chance"], budget=600)
    assert report.is_good
    assert report.proven == report.total
    assert "pip install 'setpoint[prove]'" in str(report)


# What is outside.


def reaching(when: Callable[[Widget], bool], reach: Callable[[], object]) -> Callable[[], Operator]:
    async def reconcile(widget: Widget, ctx: Context) -> None:
        if when(widget):
            with suppress(Exception):
                reach()
        await right(widget, ctx)

    return lambda: operator_of(reconcile)


def connect() -> None:
    socket.create_connection(("203.0.113.7", 443), timeout=1)


@pytest.mark.parametrize(
    ("reach", "said"),
    [
        (connect, "connect to 203.0.113.7:443 (test_prove.py:"),
        (lambda: socket.getaddrinfo("example.invalid", 443), "look up example.invalid (test_prove.py:"),
        (lambda: subprocess.run(["true"], check=True), "run true (test_prove.py:"),
    ],
)
def test_an_operator_that_reaches_outside_proves_nothing_though_it_hides_the_error(
    reach: Callable[[], object], said: str
) -> None:
    make = reaching(lambda _widget: True, reach)
    for report in (prove(make, budget=60), prove(make, steps=STRUCK.steps, budget=60), replay(make, STRUCK)):
        assert not report.is_good
        assert not report.failures, "what was refused is not held against it"
        assert said in str(report)
        assert "setpoint.testing.Cloud" in str(report)


@pytest.mark.slow
def test_an_operator_that_reaches_outside_only_after_a_fault_is_not_good() -> None:
    seen = set[str]()

    def again(widget: Widget) -> bool:  # only who is retried sees a version twice
        key = f"{widget.metadata.uid} {widget.metadata.resource_version}"
        is_known = key in seen
        seen.add(key)
        return is_known

    def make() -> Operator:
        seen.clear()
        return reaching(again, connect)()

    steps = STRUCK.steps
    report = prove(make, steps=steps, only=["none", "E3"], most_plans=30, budget=20)
    assert not report.is_good, str(report)
    assert "connect to 203.0.113.7:443" in str(report)


@contextmanager
def listening() -> Iterator[tuple[str, int]]:
    """The address of a server that accepts connections and says nothing."""
    with ThreadingTCPServer(("127.0.0.1", 0), BaseRequestHandler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            host, port = server.socket.getsockname()
            yield host, port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_what_is_allowed_is_reached_also_when_it_is_replayed() -> None:
    with listening() as (host, port):

        def reach() -> None:
            with socket.create_connection((host, port), timeout=1):
                pass

        make = reaching(lambda _widget: True, reach)
        report = prove(make, steps=STRUCK.steps, only=["none"], allow_network=[f"{host}:{port}"])
        assert report.is_good, str(report)
        kept = keep(STRUCK, report.how)
        assert replay(make, msgspec.json.encode(kept)).external == {}
        assert prove(
            make, steps=STRUCK.steps, only=["none"], allow_network=[host], allow_program=["x"]
        ).is_good
