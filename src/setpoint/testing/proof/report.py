"""Tells what came of a proof: for people, for JUnit, and as one page of HTML.

A failure is told as a story in four columns (the user, the operator, what it saw, the server), of which only
what has to do with the failure is shown.  Pure; the files are written by ``cli/prove.py``.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

import msgspec

from setpoint.testing.proof.oracles import Finding
from setpoint.testing.proof.plans import Plan, Step, write_plan
from setpoint.testing.proof.sweep import Cell, cell_of
from setpoint.testing.proof.trace import Line, Run

_SHOWN = 40  # lines of a story
_STYLE = """<style>
body{font:15px system-ui;margin:2em auto;max-width:75em;padding:0 1em}
pre,td{font:13px ui-monospace,monospace}td{padding:2px 8px;vertical-align:top}
tr.fault{background:#fde8e8}h2{margin-top:2em}.ok{color:#176b2c}.failed{color:#b00020}
.open,.inconclusive{color:#777}
</style>"""
_LANES = ("user", "operator", "view", "server")


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that an operator does not survive."""

    plan: Plan
    findings: tuple[Finding, ...]
    run: Run
    is_warning: bool = False  # beyond what an operator must bear

    @property
    def first(self) -> Finding:
        return self.findings[0]

    def __str__(self) -> str:
        return f"{self.first} · {self.plan}"


@dataclass(slots=True)
class Report:
    """What came of it."""

    operator: str
    steps: tuple[Step, ...] = ()
    failures: list[Failure] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  # our own failures: two runs of one plan differed
    inconclusive: list[str] = field(default_factory=list)
    plans: int = 0
    seconds: float = 0.0  # of this process's CPU
    total: int = 0  # plans with one fault that there are
    cells: dict[Cell, str] = field(default_factory=dict)  # "ok", "failed", "inconclusive", "open"
    reference: Run | None = None

    @property
    def alarms(self) -> list[Failure]:
        """Failures that are more than warnings."""
        return [failure for failure in self.failures if not failure.is_warning]

    @property
    def is_good(self) -> bool:
        return not self.alarms and not self.broken

    @property
    def covered(self) -> int:
        return sum(state in ("ok", "failed") for state in self.cells.values())

    def __str__(self) -> str:
        return as_text(self)


def as_text(report: Report) -> str:
    """All of it, for a terminal."""
    lines = [_summary(report)]
    lines += [f"BROKEN (our own failure): {broken}" for broken in report.broken]
    for failure in report.failures:
        lines += ["", *_failure(failure)]
    if report.inconclusive:
        lines += ["", f"inconclusive: {len(report.inconclusive)}, the first: {report.inconclusive[0]}"]
    return "\n".join(lines)


def _summary(report: Report) -> str:
    speed = report.plans / report.seconds if report.seconds else 0.0
    said = "FAIL" if report.alarms else "BROKEN" if report.broken else "ok"
    warned = len(report.failures) - len(report.alarms)
    return (
        f"{said} {report.operator}: {report.plans} plans in {report.seconds:.1f} s of CPU "
        f"({speed:.0f} a second), "
        f"{len(report.alarms)} failures, {warned} warnings, {len(report.inconclusive)} inconclusive; "
        f"{report.covered} of {len(report.cells)} cells (fault by effect) covered"
    )


def _failure(failure: Failure) -> list[str]:
    first = failure.first
    meaning = first.meaning
    said = "WARN" if failure.is_warning else "FAIL"
    lines = [
        f"{said} {first.oracle} {meaning.title} · {failure.plan.id} {failure.plan}",
        f"  what:   {first.what}",
        *(f"          {detail}" for detail in first.details),
        f"  cause:  {meaning.cause}",
        f"  remedy: {meaning.remedy}",
    ]
    also = sorted({finding.oracle for finding in failure.findings[1:]} - {first.oracle})
    if also:
        lines.append(f"  also:   {', '.join(also)}")
    return [*lines, *(f"  {line}" for line in story(failure.run))]


def story(run: Run, most: int = _SHOWN) -> list[str]:
    """What happened around the faults, in columns."""
    lines = [line for line in run.lines if _lane(line) is not None]
    struck = next((number for number, line in enumerate(lines) if line.lane == "fault"), 0)
    start = max(0, struck - most // 4)
    shown = lines[start : start + most]
    return [
        f"{line.time:9.3f}  {'fault' if line.lane == 'fault' else line.lane:<12} {line.what}"
        for line in shown
    ]


def _lane(line: Line) -> str | None:
    if line.lane in ("fault", "world"):
        return line.lane
    return next((lane for lane in _LANES if line.lane.startswith(lane)), line.lane)


def as_junit(report: Report) -> str:
    """One test case per cell."""
    failed = {_cell(failure): failure for failure in report.failures}
    cases = []
    for cell, state in report.cells.items():
        name = quoteattr(str(cell))
        failure = failed.get(str(cell))
        if failure is not None and not failure.is_warning:
            body = escape("\n".join(_failure(failure)))
            inner = f"<failure message={quoteattr(str(failure.first))}>{body}</failure>"
        elif state in ("open", "inconclusive"):
            inner = f"<skipped message={quoteattr(state)}/>"
        else:
            inner = ""
        cases.append(f"<testcase classname={quoteattr(report.operator)} name={name}>{inner}</testcase>")
    for failure in report.alarms:
        if not failure.plan.faults:
            body = escape("\n".join(_failure(failure)))
            cases.append(
                f'<testcase classname={quoteattr(report.operator)} name="without faults">'
                f"<failure message={quoteattr(str(failure.first))}>{body}</failure></testcase>"
            )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuite name="setpoint prove" tests="{len(cases)}" failures="{len(report.alarms)}" '
        f'errors="{len(report.broken)}" time="{report.seconds:.3f}">\n'
        + "\n".join(cases)
        + "\n</testsuite>\n"
    )


def _cell(failure: Failure) -> str:
    return str(cell_of(failure.plan))


def as_html(report: Report) -> str:
    """One page, with everything in it."""
    parts = [
        "<!doctype html><meta charset=utf-8>",
        f"<title>setpoint prove: {html.escape(report.operator)}</title>",
        _STYLE,
        f"<h1>{html.escape(report.operator)}</h1><p>{html.escape(_summary(report))}</p>",
    ]
    parts += [f"<p><b>our own failure:</b> {html.escape(each)}</p>" for each in report.broken]
    for failure in report.failures:
        parts.append(_page_of(failure))
    parts.append("<h2>Coverage</h2><table>")
    for cell, state in report.cells.items():
        parts.append(
            f"<tr><td>{html.escape(cell.fault)}<td>{html.escape(cell.what)}<td class={state}>{state}</tr>"
        )
    parts.append("</table>")
    return "\n".join(parts)


def _page_of(failure: Failure) -> str:
    first, meaning = failure.first, failure.first.meaning
    rows = "".join(_row(line) for line in _around(failure.run.lines))
    heads = "".join(f"<th>{lane}" for lane in ("time", *_LANES))
    details = "".join(f"<li>{html.escape(each)}" for each in (first.what, *first.details))
    return (
        f"<h2>{first.oracle} {html.escape(meaning.title)}</h2><p>{html.escape(str(failure.plan))}</p>"
        f"<ul>{details}</ul><p><b>cause:</b> {html.escape(meaning.cause)}<br><b>remedy:</b> "
        f"{html.escape(meaning.remedy)}</p><table><tr>{heads}</tr>{rows}</table>"
        f"<details><summary>plan</summary><pre>{html.escape(plan_text(failure))}</pre></details>"
        f"<details><summary>test</summary><pre>{html.escape(as_test(failure))}</pre></details>"
    )


def _around(lines: list[Line]) -> Iterable[Line]:
    struck = next((number for number, line in enumerate(lines) if line.lane == "fault"), 0)
    return lines[max(0, struck - 15) : struck + 60]


def _row(line: Line) -> str:
    lane = _lane(line)
    what = html.escape(line.what)
    if lane == "fault":
        return f"<tr class=fault><td>{line.time:.3f}<td colspan=4>{what}</tr>"
    column = _LANES.index(lane) if lane in _LANES else 3
    cells = "".join(f"<td>{what if number == column else ''}" for number in range(4))
    return f"<tr><td>{line.time:.3f}{cells}</tr>"


def plan_text(failure: Failure) -> str:
    """The plan, as it is kept in a file."""
    return write_plan(failure.plan).decode()


def as_test(failure: Failure, operator: str = "operator") -> str:
    """A test that shows the failure, to be put into the operator's own tests."""
    plan = msgspec.json.encode(failure.plan).decode()
    name = "".join(
        each if each.isalnum() else "_" for each in f"{failure.first.oracle}_{failure.plan}"
    ).lower()
    return (
        "from setpoint.testing import replay\n\n\n"
        f"def test_{name[:90].strip('_')}():\n"
        f'    """{failure.first.meaning.title}: {failure.plan}."""\n'
        f"    report = replay({operator}, r'''{plan}''')\n"
        "    assert report.is_good, report\n"
    )
