"""The promises of ``proof/cloud.py``: what is outside is hidden and struck as the plan says, in every run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest

from setpoint.controller.context import Context
from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.oracles import Reference, judge
from setpoint.testing.proof.pace import Pace, PacedLoop, machine
from setpoint.testing.proof.plans import AnyFault, At, Crash, Hide, Lose, Overlap, Pass, Plan, Refuse, Slow
from setpoint.testing.proof.process import Subject
from setpoint.testing.proof.trace import Run
from setpoint.testing.proof.world import Prepared
from tests.mutants.widgets import Widget, create, delete, operator_of

STEPS = (create(), Pass(60.0), delete(), create(), delete())
CREATE = "create dns <uid of widgets.test.setpoint.dev default/w>"
GET = At("get dns <uid of widgets.test.setpoint.dev default/w>")


@contextlib.contextmanager
def on_a_machine_that_is_ahead(seconds: float) -> Iterator[None]:
    pace = Pace()
    pace.change(0.0, ahead=seconds, pace=1.0)
    token = machine.set(pace)
    yield
    machine.reset(token)


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_what_is_hidden_is_so_by_the_worlds_time_whatever_the_clocks_of_who_asks_say(ahead: float) -> None:
    async def main() -> None:
        cloud = Cloud("dns")
        await cloud.create("thing")
        cloud.hide("thing", 30.0)
        with on_a_machine_that_is_ahead(ahead):
            assert await cloud.get("thing") is None
            assert await cloud.list() == {}
            cloud.hide("thing", 30.0)
        await asyncio.sleep(31)
        assert await cloud.get("thing") == {}
        with on_a_machine_that_is_ahead(ahead):
            assert await cloud.get("thing") == {}

    with asyncio.Runner(loop_factory=PacedLoop) as runner:
        runner.run(main())


def test_of_several_that_are_called_the_same_the_youngest_is_hidden() -> None:
    async def main() -> None:
        cloud = Cloud("dns")
        cloud.called = lambda _id: "<uid>"
        await cloud.create("old")
        await cloud.create("young")
        cloud.hide("<uid>", 30.0)
        assert await cloud.list() == {"old": {}}

    with asyncio.Runner(loop_factory=PacedLoop) as runner:
        runner.run(main())


@pytest.fixture
def by_uid() -> Prepared:
    """An operator that makes a thing outside for each widget, of the widget's uid."""
    dns = Cloud("dns")

    def make() -> Subject:
        async def reconcile(widget: Widget, ctx: Context) -> None:
            if await dns.get(widget.metadata.uid or "") is None:
                await dns.create(widget.metadata.uid or "", text=widget.spec.text)

        operator = operator_of(reconcile)

        @operator.finalizer(Widget)
        async def clean_up(widget: Widget, ctx: Context) -> None:
            await dns.delete(widget.metadata.uid or "")

        return operator

    return replace(Prepared.of(make), clouds=(dns,))


def outside(run: Run) -> list[str]:
    return [str(effect.at) for effect in run.effects if effect.is_external]


def test_effects_on_what_is_called_by_a_uid_are_the_same_in_runs_with_other_uids(by_uid: Prepared) -> None:
    one, other = (by_uid.run(Plan(STEPS, (), seed)) for seed in (0, 1))
    assert outside(one) == outside(other)
    assert f"{CREATE} #1" in outside(one)
    assert f"{CREATE} #2" in outside(one), "that of the second object of the name"


@pytest.mark.parametrize("seed", [0, 1])
def test_faults_strike_there_whatever_the_uids_are(by_uid: Prepared, seed: int) -> None:
    lost = by_uid.run(Plan(STEPS, (Lose(at=At(CREATE)),), seed))
    assert len(lost.fired) == 1
    hidden = by_uid.run(Plan(STEPS, (Hide(at=At(CREATE)),), seed))
    assert any("409" in look.error for look in hidden.looks), "it was there, and was not found"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Refuse(at=GET, code=503), "answered 503"),
        (Lose(at=GET), "no answer"),
        (Refuse(at=GET, code=0), "no answer"),
    ],
    ids=str,
)
def test_what_only_reads_can_fail_too(by_uid: Prepared, fault: AnyFault, error: str) -> None:
    run = by_uid.run(Plan(STEPS, (fault,)))
    assert run.fired == [str(fault)]
    assert any(error in look.error for look in run.looks)
    assert all(point.is_settled for point in run.checkpoints)


def test_what_only_reads_is_no_effect(by_uid: Prepared) -> None:
    run = by_uid.run(Plan(STEPS, (Slow(at=GET),)))
    assert run.fired
    assert {effect.at.what.split(" ")[0] for effect in run.effects if effect.is_external} == {
        "create",
        "delete",
    }
    assert not [what for _process, what in run.done if what.startswith("get")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_dead_process_reads_nothing(when: Literal["before", "after"]) -> None:
    read: list[int] = []
    dns = Cloud("dns")

    def make() -> Subject:
        number = len(made)
        made.append(number)

        async def reconcile(widget: Widget, ctx: Context) -> None:
            try:
                await dns.list()
            finally:
                await dns.list()
                read.append(number)

        return operator_of(reconcile)

    made: list[int] = []
    prepared = replace(Prepared.of(make), clouds=(dns,))
    made.clear()
    run = prepared.run(Plan((create(),), (Crash(at=At("list dns"), when=when),)))
    assert run.fired
    assert made[:2] == [0, 1]
    assert 0 not in read


def test_a_paused_process_does_not_read(by_uid: Prepared) -> None:
    run = by_uid.run(Plan(STEPS, (Overlap(at=GET),)))
    assert run.fired
    (first, *_) = [effect for effect in run.effects if effect.at == At(CREATE)]
    assert first.process != run.effects[0].process, "who has taken over"


def test_who_wakes_up_with_a_call_in_hand_notices_first_that_it_leads_no_longer(by_uid: Prepared) -> None:
    run = by_uid.run(Plan(STEPS, (Overlap(at=At(CREATE)),)))
    first, second, *_ = [effect for effect in run.effects if effect.at.what == CREATE]
    assert run.fired
    assert not first.is_done
    assert second.is_done
    assert second.process != first.process
    assert judge(run, Reference(by_uid.run(Plan(STEPS)))) == [], "and nothing is done by who leads no longer"
