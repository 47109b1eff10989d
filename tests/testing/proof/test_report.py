"""The promises of ``proof/report.py``: what matters is told, and nothing that fails looks like a pass."""

from __future__ import annotations

import html
import textwrap
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from setpoint.testing.proof.kept import How
from setpoint.testing.proof.oracles import Finding
from setpoint.testing.proof.plans import At, Crash, Plan
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import (
    Failure,
    Report,
    as_html,
    as_junit,
    as_text,
    causal,
    causal_of,
    differences,
)
from setpoint.testing.proof.sweep import Cell
from setpoint.testing.proof.trace import Run, Written
from tests.mutants.operators import MUTANTS, cloud
from tests.mutants.widgets import create, delete


@cache
def found() -> Report:
    """Two objects live side by side, and a crash undoes one of them."""
    mutant = next(each for each in MUTANTS if each.number == "04")
    steps = [create("other"), create(), delete()]
    return prove(mutant.mutant, steps=steps, only=["E1"], shrink=False)


def failure() -> Failure:
    return next(each for each in found().failures if "default/w " in f"{each.plan.faults[0].at} ")


def test_the_story_tells_of_what_was_struck_and_its_owner_and_of_nothing_else() -> None:
    lines = causal_of(failure())
    assert not [line for line in lines if "other" in line.what]
    assert [line for line in failure().run.lines if "other" in line.what], "though it happened"
    told = {(line.lane.split(" ")[0], line.what.split(" ")[0]) for line in lines}
    assert told >= {
        ("user", "create"),
        ("server", "ADDED"),
        ("view", "ADDED"),
        ("fault", "crash"),
        ("operator", "dies"),
        ("operator", "starts"),
        ("operator", "reconcile"),
    }


def test_what_has_to_do_with_an_object_is_told_with_its_owner_and_what_it_owns() -> None:
    run, reference = failure().run, failure().reference
    assert reference is not None
    child, owner = "configmaps default/w", "widgets.test.setpoint.dev default/w"
    for run_ in (run, reference):
        assert causal(run_, [child], reference) == causal(run_, [owner], reference)
    assert causal(run, [child], reference) == causal_of(failure())
    of_other = causal(run, ["configmaps default/other"])
    assert [line for line in of_other if line.what == "create Widget other"]
    assert not [line for line in of_other if line.what == "create Widget w"]


def test_where_nothing_of_it_was_written_all_is_told() -> None:
    run = failure().run
    assert causal(run, ["configmaps default/nobody"]) == causal(run, []) == run.lines


@pytest.mark.parametrize("width", [80, 110, 200])
def test_the_story_has_four_columns_within_the_width(width: int) -> None:
    report = Report("widgets", failures=[failure()])
    lines = as_text(report, width, repro=False).splitlines()
    head = next(
        number for number, line in enumerate(lines) if line.split() == ["user", "operator", "view", "server"]
    )
    story = lines[head:]
    assert max(map(len, story)) <= width
    begins = [story[0].index(lane) for lane in ("user", "operator", "view", "server")]
    for line in story[1:]:
        text = line[12:]
        if not text.startswith("*** "):
            assert 12 + len(text) - len(text.lstrip()) in begins, line


def test_a_failure_is_told_with_what_runs_it_again_and_comes_to_the_same() -> None:
    _, repro = str(Report("widgets", failures=[failure()])).split("  repro:  ")
    lines = textwrap.dedent(f"          {repro}").splitlines()
    assert lines[0] == "from setpoint.testing import replay"
    assert lines[-1] == "assert report.is_good, str(report)"
    known: dict[str, Any] = {"make": next(each for each in MUTANTS if each.number == "04").mutant}
    exec("\n".join(lines[:-1]), known)
    again: Report = known["report"]
    assert [each.first.what for each in again.failures] == [failure().first.what]


def test_what_the_proof_was_told_goes_with_what_runs_a_failure_again() -> None:
    how = How(seed=3, without=("O2",), keeps=("secrets",), rules=("no_more_than_one",))
    cells = dict.fromkeys(failure().cells, "failed")
    report = Report("widgets", failures=[failure()], how=how, cells=cells)
    for told in (str(report), html.unescape(as_html(report)), html.unescape(as_junit(report))):
        assert '"without":["O2"]' in told
    assert "# and always=… and never=…, as they were: no_more_than_one" in str(report)
    assert "repro:" not in report.text(repro=False)


def test_a_cloud_that_a_failure_needs_is_named_with_what_runs_it_again() -> None:
    mutant = next(each for each in MUTANTS if each.number == "12")
    how: dict[str, Any] = {"steps": mutant.steps, "at_most": mutant.at_most, "clouds": [cloud]}
    report = prove(mutant.mutant, only=["E4"], most_failures=1, shrink=False, **how)
    assert report.failures, report
    assert ", clouds=[cloud])" in str(report)
    assert '"at_most":[["cloud",1]]' in str(report)


def test_the_call_outside_that_a_fault_strikes_is_in_the_story_though_nothing_came_of_it() -> None:
    found = next(each for each in MUTANTS if each.number == "04")
    plan = Plan(found.steps, (Crash(at=At("create dns elsewhere"), when="before"),))
    run = Run(plan)
    run.line(1.0, "operator 1", "create dns elsewhere → crash")
    run.line(2.0, "operator 1", "create dns another → done")
    wrong = Finding("O3", "expected one, got none: configmaps default/w")
    write = Written(0.5, "user", "ADDED", "configmaps", "default", "w", 1, b'{"metadata":{}}', None)
    run.writes.append(write)
    story = [line.what for line in causal_of(Failure(plan, (wrong,), run))]
    assert story == ["create dns elsewhere → crash"]


def tried(*states: str) -> Report:
    """A proof of which each cell came to this, of as many classes of faults."""
    cells = {Cell(f"E{number}", "apply pods default/a"): state for number, state in enumerate(states, 1)}
    done = sum(state != "open" for state in states)
    report = Report("widgets", cells=cells, plans=done + 5, proven=1)
    report.planned = report.total = len(states)
    report.attempted = report.tried = done
    return report


def test_how_much_was_tried_is_told_and_last_of_which_classes_nothing() -> None:
    first, second, *_, last = str(tried("ok", "inconclusive", "open", "open")).splitlines()
    assert first.startswith("ok widgets")
    assert second.startswith("2 of 4 plans with faults tried (single-fault: 2 of 4); ")
    assert second.endswith("; open cells: E3 1 of 1, E4 1 of 1")
    assert last.startswith("NOT ALL TRIED: it ended before any plan of E3, E4 was tried: give it a greater")
    assert f"<p>{last}</p>" in as_html(tried("ok", "inconclusive", "open", "open"))
    both = str(tried("ok", "failed")).splitlines()[-1]
    assert both == "2 of 2 plans with faults tried (single-fault: 2 of 2)"


def test_every_verdict_says_how_much_was_tried_in_how_many_cells_and_seconds() -> None:
    few = tried("failed", "open")
    for report in (few, tried("ok"), tried("open"), Report("widgets"), Report("widgets", broken=["twice"])):
        said = str(report)
        assert "plans in 0.0 s" in said
        assert "cells (fault by effect) covered" in said
        assert "with faults tried" in said or "no plan with faults was tried" in said
        (suite,) = ET.fromstring(as_junit(report)).iter("testsuite")
        told = {each.get("name"): each.get("value") for each in suite.iter("property")}
        assert told == {
            "plans tried": str(report.attempted),
            "plans planned": str(report.planned),
            "cells covered": f"{report.covered} of {len(report.cells)}",
        }


def test_a_proof_that_tried_none_of_its_plans_is_not_good() -> None:
    report = tried("open", "open")
    assert not report.is_good
    assert "LITTLE PROVEN: none of 2 plans with faults was tried" in str(report)


def test_a_budget_that_is_spent_before_any_plan_is_told_with_what_was_under_way() -> None:
    report = Report("widgets", cut_off="running it without faults")
    assert not report.is_good
    first, *_, last = str(report).splitlines()
    assert first.startswith("NOTHING PROVEN widgets: ")
    assert last.startswith("NOTHING PROVEN: the budget was spent while running it without faults: give it")


def test_where_very_many_classes_have_open_cells_the_first_are_named() -> None:
    _, second, *_, last = str(tried("ok", *["open"] * 15)).splitlines()
    assert second.endswith(", E12 1 of 1, E13 1 of 1 and those of 3 more classes")
    assert "E14, E15, E16" in last, "of which nothing was tried at all"


def test_a_class_of_which_some_plans_were_tried_is_not_told_last() -> None:
    report = tried("ok")
    report.cells[Cell("E1", "apply pods default/b")] = "open"
    assert report.untried == []
    assert str(report).splitlines()[-1].endswith("tried (single-fault: 1 of 1); open cells: E1 1 of 2")


@pytest.mark.slow
def test_plans_that_were_tried_are_counted_as_those_that_there_are() -> None:
    assert 0 < found().tried <= found().total
    assert not found().untried
    mutant = next(each for each in MUTANTS if each.number == "04")
    twin = prove(mutant.twin, steps=mutant.steps, only=["E1", "E4+V1"], budget=600)
    assert twin.tried == twin.total
    few = prove(mutant.twin, steps=mutant.steps, only=["E1", "E2", "E3"], most_plans=1)
    assert (few.tried, few.untried) == (1, ["E1", "E3"]), "E2 is the first"


def test_every_inconclusive_plan_is_told_of_many_the_first() -> None:
    report = Report("widgets", proven=1, plans=100, inconclusive=[f"plan {number}" for number in range(15)])
    lines = str(report).splitlines()
    assert lines[-14:] == [
        "inconclusive: 15",
        *(f"  plan {number}" for number in range(12)),
        "  … and 3 more",
    ]
    assert all(f"<li>plan {number}" in as_html(report) for number in range(15))


def test_where_too_much_was_inconclusive_nothing_is_good_and_every_verdict_says_so() -> None:
    report = Report("widgets", proven=1, plans=10, inconclusive=["no place"] * 3)
    assert not report.is_good
    first, *_, last = str(report).splitlines()
    assert first.startswith("LITTLE PROVEN widgets: ")
    assert last == "LITTLE PROVEN: 3 of 10 listed plans were inconclusive"
    (error,) = ET.fromstring(as_junit(report)).iter("error")
    assert error.get("message") == last
    enough = Report("widgets", proven=1, plans=10, inconclusive=["no place"] * 2)
    assert enough.is_good
    assert str(enough).startswith("ok widgets: ")
    assert "<error" not in as_junit(enough)


def test_the_page_marks_what_is_only_a_warning() -> None:
    first = failure()
    warning = Failure(first.plan, first.findings, first.run, is_warning=True)
    page = as_html(Report("widgets", failures=[first, warning]))
    assert f"<h2 class=failed>FAIL {first.first.oracle} " in page
    assert f"<h2 class=warned>WARN {first.first.oracle} " in page
    assert "print(report)" in page, "no test fails by it"


def test_of_many_that_were_left_out_the_first_are_named_on_a_terminal_and_all_on_the_page() -> None:
    report = Report("widgets", proven=1, skipped={f"field {number}": "why" for number in range(15)})
    assert str(report).endswith("field 11 and 3 more (why)")
    assert "field 14 (why)" in as_html(report)


def test_a_failure_that_was_made_smaller_still_fails_the_cell_it_was_found_in() -> None:
    pair = Cell("E1+V1", "apply configmaps default/w + apply configmaps default/w")
    first = failure()
    small = Failure(first.plan, first.findings, first.run, cells=(pair,))
    report = Report("widgets", failures=[small], cells={pair: "failed", first.cells[0]: "ok"}, proven=2)
    cases = {case.get("name"): case for case in ET.fromstring(as_junit(report)).iter("testcase")}
    assert cases[str(pair)].find("failure") is not None
    assert cases[str(first.cells[0])].find("failure") is None


def test_junit_tells_of_a_warning_and_why_a_cell_was_not_judged_and_fails_neither() -> None:
    first = failure()
    warned = Failure(first.plan, first.findings, first.run, cells=first.cells, is_warning=True)
    cells = {first.cells[0]: "warned", Cell("E2", "x"): "open", Cell("E3", "x"): "inconclusive"}
    report = Report("widgets", failures=[warned], cells=cells, proven=1)
    cases = {case.get("name"): case for case in ET.fromstring(as_junit(report)).iter("testcase")}
    told, *rest = (cases[str(cell)] for cell in cells)
    assert (told.findtext("system-out") or "").startswith("WARN ")
    assert told.find("failure") is None
    reasons = [skipped.get("message", "") for case in rest for skipped in case.iter("skipped")]
    assert [reason.partition(":")[0] for reason in reasons] == ["open", "inconclusive"]


def test_what_was_left_out_is_told_everywhere_and_once_for_each_reason() -> None:
    report = Report(
        "widgets",
        cluster="https://127.0.0.1:6443",
        skipped={"E6": "needs time", "V9": "needs a server", "V7": "needs time"},
        proven=1,
        plans=7,
        seconds=21.0,
    )
    first, *lines = str(report).splitlines()
    assert first.startswith("ok widgets: 7 plans in 21.0 s on https://127.0.0.1:6443, 0 failures")
    assert lines == [
        "no plan with faults was tried",
        "skipped: E6, V7 (needs time)",
        "skipped: V9 (needs a server)",
    ]
    assert "<p>skipped: E6, V7 (needs time)</p>" in as_html(report)
    cases = {
        case.get("name"): case.find("skipped") for case in ET.fromstring(as_junit(report)).iter("testcase")
    }
    said = {name: None if each is None else each.get("message") for name, each in cases.items()}
    assert said == {"E6": "needs time", "V9": "needs a server", "V7": "needs time"}


def test_two_runs_that_differ_are_an_error_of_junit_and_so_is_a_proof_of_nothing() -> None:
    root = ET.fromstring(as_junit(Report("a", broken=["they differ"], proven=1), Report("b")))
    assert root.get("errors") == "2"
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    assert [each.get("message") for each in suites["a"].iter("error")] == ["they differ"]
    assert [each.get("message") for each in suites["b"].iter("error")] == [
        "NOTHING PROVEN: no plan was conclusive"
    ]


def test_several_operators_are_told_in_one_file() -> None:
    root = ET.fromstring(as_junit(found(), Report("cats", proven=1)))
    assert [suite.get("name") for suite in root.iter("testsuite")] == ["widgets", "cats"]
    assert int(root.get("failures", "0")) == len(found().failures)
    assert "<h1>cats</h1>" in as_html(found(), Report("cats", proven=1))


def test_the_page_tells_every_difference_of_state() -> None:
    page = as_html(Report("widgets", failures=[failure()]))
    assert "crash before apply" in page
    lines = [line for _, lines in differences(failure()) for line in lines]
    assert "configmaps default/w: missing" in lines
    assert all(line.split(":")[0] in page for line in lines)


def test_what_has_failed_once_stays_so_whatever_comes_after() -> None:
    report, cell = Report("widgets"), Cell("E1", "apply pods default/a")
    plan = Plan((), (Crash(at=failure().plan.faults[0].at),))
    for state, then in [
        ("inconclusive", "inconclusive"),
        ("ok", "ok"),
        ("warned", "warned"),
        ("ok", "warned"),
    ]:
        report.mark(plan, cell, state)
        assert report.cells[cell] == then
    report.mark(plan, cell, "failed")
    report.mark(plan, cell, "warned")
    assert report.cells[cell] == "failed"
