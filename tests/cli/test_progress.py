"""The promises of ``cli/progress.py``: how far a proof is, at once and on standard error alone."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from setpoint.cli.progress import estimate, line, shown
from setpoint.testing.proof.report import Report
from tests.cli.cats import OPERATOR, invoke


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Times:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(out: io.StringIO, seconds: int, report: Callable[[], Report]) -> list[str]:
    """What is written in so many seconds, in each of which it is told often."""
    times = Times()
    with shown("cats", 60, times, out=out, wall=times) as show:
        for tick in range(seconds * 10):
            times.now = tick / 10
            show(report())
    return out.getvalue().splitlines()


def test_the_first_line_comes_before_any_plan_and_says_what_is_done_and_how_long_it_takes() -> None:
    out = lines(io.StringIO(), 1, lambda: Report("cats", doing="preparing the steps"))
    assert out == ["cats: preparing the steps: no plans yet, 0 failures; 0 of 60 s, at most 60 s left"]


def test_lines_come_every_few_seconds_and_of_hours_not_by_the_thousand() -> None:
    few = lines(io.StringIO(), 60, lambda: Report("cats"))
    assert 10 <= len(few) <= 13
    assert len(lines(io.StringIO(), 8 * 3600, lambda: Report("cats"))) < 120


def test_a_terminal_has_a_bar() -> None:
    (text,) = {"".join(lines(Terminal(), 2, lambda: Report("cats", doing="trying plans")))}
    assert "trying plans" in text
    assert "━" in text


def test_what_is_left_is_what_the_planned_plans_take_or_the_rest_of_the_budget() -> None:
    report = Report("cats", doing="trying plans", planned=100, attempted=50)
    assert estimate(report, spent=20, budget=600, trying=10) == pytest.approx(10)
    assert estimate(report, spent=20, budget=25, trying=10) == 5
    assert estimate(Report("cats"), spent=70, budget=60, trying=0) == 0
    assert line(report, 20, 600, 10).endswith("50 of 100 plans, 0 failures; 20 of 600 s, at most 10 s left")


def test_progress_is_on_standard_error_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    operator, junit = tmp_path / "cats.py", tmp_path / "proof.xml"
    operator.write_text(OPERATOR.replace("REMEMBERS", "False"))
    ran = invoke("prove", str(operator), "--only", "E2", "--budget", "60s", "--junit", str(junit))
    assert ran.stderr.startswith("cats: preparing the steps: no plans yet"), ran.stderr
    assert "s left" not in ran.stdout
    assert "s left" not in junit.read_text()
