"""The promises of ``proof/report.py``: what matters is told, and nothing that fails looks like a pass."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree as ET

import pytest

from setpoint.testing.proof.plans import Crash, Plan
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
from tests.mutants.operators import MUTANTS
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
    lines = as_text(report, width).splitlines()
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


def test_a_failure_that_was_made_smaller_still_fails_the_cell_it_was_found_in() -> None:
    pair = Cell("E1+V1", "apply configmaps default/w + apply configmaps default/w")
    first = failure()
    small = Failure(first.plan, first.findings, first.run, cells=(pair,))
    report = Report("widgets", failures=[small], cells={pair: "failed", first.cells[0]: "ok"}, proven=2)
    cases = {case.get("name"): case for case in ET.fromstring(as_junit(report)).iter("testcase")}
    assert cases[str(pair)].find("failure") is not None
    assert cases[str(first.cells[0])].find("failure") is None


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
    assert lines == ["skipped: E6, V7 (needs time)", "skipped: V9 (needs a server)"]
    assert "<p>skipped: E6, V7 (needs time)</p>" in as_html(report)
    cases = {
        case.get("name"): case.find("skipped") for case in ET.fromstring(as_junit(report)).iter("testcase")
    }
    said = {name: None if each is None else each.get("message") for name, each in cases.items()}
    assert said == {"E6": "needs time", "V9": "needs a server", "V7": "needs time"}


def test_two_runs_that_differ_are_an_error_of_junit_and_so_is_a_proof_of_nothing() -> None:
    root = ET.fromstring(as_junit(Report("a", broken=["they differ"], proven=1), Report("b")))
    assert root.get("errors") == "1"
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    assert [each.get("message") for each in suites["a"].iter("error")] == ["they differ"]
    assert [each.get("message") for each in suites["b"].iter("error")] == ["no plan was conclusive"]


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
