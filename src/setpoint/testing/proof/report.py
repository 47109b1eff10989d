"""Tells what came of a proof: for people, for JUnit, and as one page of HTML.

A failure is told as a story in four columns (the user, the operator, what it saw, the server).  Of all that
happened only the causal slice is shown (``causal``): what was done to, seen of and decided about the objects
that are found wrong or that a fault struck, their owners and what they own; and every fault, death and start.

What is in Secrets is shown nowhere (``redaction.py``).

With each goes what runs it again, as a call that can be pasted into a test (``kept.as_call``).

What could not be tried or judged (``Report.skipped``), as on a cluster, is told with the rest, everywhere,
and so is how much of what there is to try was tried, and what was inconclusive.  The last line names the
classes of faults of which nothing was tried, if there are any.

Pure; the files are written by ``cli/prove.py``.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

from setpoint.testing.isolation import Refused
from setpoint.testing.proof.kept import How, Kept, as_call, keep
from setpoint.testing.proof.oracles import Finding
from setpoint.testing.proof.plans import Plan, Step, write_plan
from setpoint.testing.proof.redaction import Redactor, redacted_kept
from setpoint.testing.proof.states import difference
from setpoint.testing.proof.sweep import Cell
from setpoint.testing.proof.trace import Line, Run, Written

_SHOWN = 40  # lines of a story
_NAMED = 12  # of many, so many are named on a terminal
_MOST_INCONCLUSIVE = 0.2  # of the listed plans
WIDTH: Final = 110  # of a story, where nobody says
_STYLE = """<style>
body{font:15px system-ui;margin:2em auto;max-width:75em;padding:0 1em}
pre,td{font:13px ui-monospace,monospace}td{padding:2px 8px;vertical-align:top}
tr.fault{background:#fde8e8}h2{margin-top:2em}.ok{color:#176b2c}.failed{color:#b00020}.warned{color:#8a5a00}
.open,.inconclusive{color:#777}
</style>"""
_LANES = ("user", "operator", "view", "server")
_GROUP = re.compile(r"(?<=[a-z])(?:\.[a-z0-9-]+)++([ /]?)")  # of a resource: deployments.apps
_SUBRESOURCE = re.compile(r"/[a-z]+ ")


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that an operator does not survive."""

    plan: Plan
    findings: tuple[Finding, ...]
    run: Run
    is_warning: bool = False  # beyond what an operator must bear
    cells: tuple[Cell, ...] = ()  # in which it was found, before it was made smaller
    reference: Run | None = None  # the same steps without faults

    @property
    def first(self) -> Finding:
        return self.findings[0]

    def __str__(self) -> str:
        return self.redactor.text(f"{self.first} · {self.plan}")

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.run, self.reference)

    def redacted(self) -> Failure:
        """As it may be shown: without what is in Secrets."""
        redactor = self.redactor
        findings = tuple(
            replace(each, what=redactor.text(each.what), details=tuple(redactor.texts(each.details)))
            for each in self.findings
        )
        return replace(self, findings=findings, run=redactor.run(self.run))


@dataclass(slots=True, repr=False)
class Report:
    """What came of it."""

    operator: str
    steps: tuple[Step, ...] = ()
    failures: list[Failure] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  # two runs of one plan differed, and likely why
    inconclusive: list[str] = field(default_factory=list)
    plans: int = 0
    drawn: int = 0  # of these plans; what was drawn and did not strike is none of them
    proven: int = 0  # plans of which it is known what came of them
    seconds: float = 0.0  # of this process's CPU; on a cluster, of the clock on the wall
    planned: int = 0  # plans that were to be tried, with one fault or in pairs; none of them drawn
    attempted: int = 0  # of these
    total: int = 0  # plans with one fault that there are
    tried: int = 0  # of these
    cells: dict[Cell, str] = field(default_factory=dict)  # "ok", "failed", "warned", "inconclusive", "open"
    reference: Run | None = None
    how: How = field(default_factory=How)  # what the proof was told
    cluster: str = ""  # the server of the cluster that it was on; "" in process
    skipped: dict[str, str] = field(default_factory=dict)  # what was left out (on a cluster: much), and why
    external: Refused = field(default_factory=dict)  # what the operator was refused outside of the cluster
    doing: str = ""  # what the proof does just now
    cut_off: str = ""  # what it did when the budget was spent; "" if it came to its end

    @property
    def alarms(self) -> list[Failure]:
        """Failures that are more than warnings."""
        return [failure for failure in self.failures if not failure.is_warning]

    @property
    def is_good(self) -> bool:
        """Whether enough was proven, and nothing was found, or refused outside of the cluster."""
        return not self.alarms and not self.broken and not self.external and not self.proves_little

    @property
    def listed(self) -> int:
        """Plans that were not drawn: ``inconclusive`` are some of them."""
        return self.plans - self.drawn

    @property
    def covered(self) -> int:
        return sum(state in ("ok", "failed", "warned") for state in self.cells.values())

    @property
    def is_untried(self) -> bool:
        """Whether there were plans with faults, or would have been with time left, and none was tried."""
        return not self.attempted and (self.planned > 0 or bool(self.cut_off))

    @property
    def proves_little(self) -> bool:
        """Whether nothing was proven or tried, or so many plans were inconclusive that little was proven."""
        return not self.proven or self.is_untried or len(self.inconclusive) > _MOST_INCONCLUSIVE * self.listed

    @property
    def open(self) -> dict[str, tuple[int, int]]:
        """The classes of faults with cells of which no plan was tried: how many, of how many."""
        cells = Counter(cell.fault for cell in self.cells)
        found = Counter(cell.fault for cell, state in self.cells.items() if state == "open")
        return {fault: (count, cells[fault]) for fault, count in found.items()}

    @property
    def untried(self) -> list[str]:
        """The classes of faults of which no plan was tried at all."""
        return [fault for fault, (count, cells) in self.open.items() if count == cells]

    def mark(self, plan: Plan, cell: Cell, state: str) -> None:
        """What came of a plan of this cell: the worst of all its plans counts."""
        order = ("failed", "warned", "ok", "inconclusive", "open")
        # What was drawn is of a part of the steps, or of another seed, or was listed, and then it is known.
        is_listed = self.reference is not None and plan.seed == self.reference.plan.seed
        self.tried += is_listed and len(plan.faults) == 1 and plan.steps == self.steps
        if plan.faults:
            self.cells[cell] = min(state, self.cells.get(cell, "open"), key=order.index)

    def inconclude(self, plan: Plan, cell: Cell, why: str) -> None:
        self.inconclusive.append(f"{plan}: {why}")
        self.mark(plan, cell, "inconclusive")

    def text(self, width: int = WIDTH, *, repro: bool = True) -> str:
        """All of it, for a terminal; with what runs each failure again, unless that is told elsewhere."""
        return as_text(self, width, repro=repro)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {_summary(self)}>"


def redacted(report: Report) -> Report:
    """A report as it may be shown: without what is in Secrets."""
    runs = [each for failure in report.failures for each in (failure.run, failure.reference)]
    redactor = Redactor(report.reference, *runs)
    return replace(
        report,
        failures=[failure.redacted() for failure in report.failures],
        broken=redactor.texts(report.broken),
        inconclusive=redactor.texts(report.inconclusive),
        skipped={name: redactor.text(why) for name, why in report.skipped.items()},
    )


def as_text(report: Report, width: int = WIDTH, *, repro: bool = True) -> str:
    report = redacted(report)
    lines = [_summary(report), *_tried(report), *_skipped(report, _NAMED)]
    lines += [f"EXTERNAL CALL {external}" for external in report.external]
    lines += [f"NOT REPEATABLE: {broken}" for broken in report.broken]
    for failure in report.failures:
        lines += ["", *_failure(failure, width)]
        lines += _repro(failure, report) if repro else []
    if report.inconclusive:
        more = len(report.inconclusive) - _NAMED
        lines += ["", f"inconclusive: {len(report.inconclusive)}"]
        lines += [f"  {each}" for each in report.inconclusive[:_NAMED]]
        lines += [f"  … and {more} more"] if more > 0 else []
    if ends := _ends(report):
        lines += ["", *ends]
    return "\n".join(lines)


def _summary(report: Report) -> str:
    speed = report.plans / report.seconds if report.seconds else 0.0
    spent = f"on {report.cluster}" if report.cluster else f"of CPU ({speed:.1f} a second)"
    said = "FAIL" if report.alarms else "NOT REPEATABLE" if report.broken else _too_little(report)[0] or "ok"
    said = "EXTERNAL CALLS REFUSED" if said == "ok" and report.external else said
    warned = len(report.failures) - len(report.alarms)
    return (
        f"{said} {report.operator}: {report.plans} plans in {report.seconds:.1f} s {spent}, "
        f"{len(report.alarms)} failures, {warned} warnings, {len(report.inconclusive)} inconclusive; "
        f"{report.covered} of {len(report.cells)} cells (fault by effect) covered"
    )


def _too_little(report: Report) -> tuple[str, str]:
    """That too little was proven, in two words, and why; "" where it was enough."""
    if not report.proven and report.external:
        return "NOTHING PROVEN", "the operator calls systems outside of the cluster, which is refused"
    if not report.proven:
        why = "no plan was conclusive"
        if report.cut_off:
            why = f"the budget was spent while {report.cut_off}: give it a greater budget=… (--budget)"
        return "NOTHING PROVEN", why
    if report.is_untried:
        return "LITTLE PROVEN", f"none of {report.planned or 'the'} plans with faults was tried"
    if report.proves_little:
        why = f"{len(report.inconclusive)} of {report.listed} listed plans were inconclusive"
        return "LITTLE PROVEN", why
    return "", ""


def _tried(report: Report) -> list[str]:
    """How much of what there is to try was tried."""
    if not report.planned:
        return ["no plan with faults was tried"]
    cells = [f"{fault} {count} of {all_}" for fault, (count, all_) in report.open.items()]
    more = len(cells) - len(cells[:_NAMED])
    of_more = f" and those of {more} more classes" if more else ""
    left = f"; open cells: {', '.join(cells[:_NAMED])}{of_more}" if cells else ""
    single = f"single-fault: {report.tried} of {report.total}"
    return [f"{report.attempted} of {report.planned} plans with faults tried ({single}){left}"]


def _ends(report: Report) -> list[str]:
    """What a reader must not miss: how little it may mean that nothing was found."""
    lines = []
    little, why = _too_little(report)
    if little and (report.proven or report.cut_off):  # of nothing at all the first line tells
        lines.append(f"{little}: {why}")
    if report.untried:
        lines.append(
            f"NOT ALL TRIED: it ended before any plan of {', '.join(report.untried)} was tried: give it a "
            "greater budget=… (--budget), or a greater most_plans or most_failures"
        )
    return lines


def _skipped(report: Report, most: int | None = None) -> list[str]:
    """What was left out, a line for each reason; at ``most`` so many names."""
    reasons: dict[str, list[str]] = {}
    for name, why in report.skipped.items():
        reasons.setdefault(why, []).append(name)
    lines = []
    for why, names in reasons.items():
        more = len(names) - len(names[:most])
        lines.append(f"skipped: {', '.join(names[:most])}{f' and {more} more' if more else ''} ({why})")
    return lines


def _kept(failure: Failure, report: Report) -> Kept:
    return redacted_kept(keep(failure.plan, report.how, name=report.operator))


def _repro(failure: Failure, report: Report) -> list[str]:
    """What runs it again."""
    first, *lines = _call(failure, report)
    return [f"  repro:  {first}", *(f"          {line}" for line in lines)]


def _call(failure: Failure, report: Report) -> list[str]:
    runs = [failure.run, *([failure.reference] if failure.reference is not None else [])]
    outside = {each.at.what.split(" ")[1] for run in runs for each in run.effects if each.is_external}
    kept = redacted_kept(keep(failure.plan, report.how))
    return as_call(kept, sorted(outside), is_warning=failure.is_warning)


def _failure(failure: Failure, width: int = WIDTH) -> list[str]:
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
    told = columns(_around(causal_of(failure), _SHOWN), width - 2)
    return [*lines, *(f"  {line}" for line in told)]


# ---- the story


def story(run: Run, most: int = _SHOWN, *, width: int = WIDTH) -> list[str]:
    """All that happened, in four columns; of much, what is around the first fault."""
    return columns(_around(run.lines, most), width)


def columns(shown: Iterable[Line], width: int) -> list[str]:
    """Lines in four columns, as wide as they can be."""
    rows = [(line, _column(line), _short(line.what)) for line in shown]
    widths = _widths(rows, width - 10)
    head = " ".join(f"{lane:<{each}}" for lane, each in zip(_LANES, widths, strict=True))
    out = [f"{'':9} {head.rstrip()}"]
    for line, column, what in rows:
        if column is None:
            out.append(f"{line.time:9.3f} {'***' if line.lane == 'fault' else '---'} {what}")
            continue
        before = " " * sum(each + 1 for each in widths[:column])
        for number, part in enumerate(textwrap.wrap(what, max(8, widths[column]))):
            out.append(f"{f'{line.time:.3f}' if not number else '':>9} {before}{part}")
    return out


def _widths(rows: Iterable[tuple[Line, int | None, str]], width: int) -> list[int]:
    """How wide each column is: as its longest text, or its share of what the narrower ones leave."""
    wanted = [len(lane) for lane in _LANES]
    for _, column, what in rows:
        if column is not None:
            wanted[column] = max(wanted[column], len(what))
    widths, left = [0] * len(wanted), width - len(wanted) + 1
    for place, column in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        widths[column] = min(wanted[column], max(8, left // (len(wanted) - place)))
        left -= widths[column]
    return widths


def _around(lines: list[Line], most: int) -> list[Line]:
    struck = next((number for number, line in enumerate(lines) if line.lane == "fault"), 0)
    start = max(0, min(struck - most // 4, len(lines) - most))
    return lines[start : start + most]


def _column(line: Line) -> int | None:
    """Where a line stands; None: across all columns."""
    if line.lane in ("fault", "world"):
        return None
    lane = "user" if line.lane == "other" else line.lane.split(" ")[0]
    return _LANES.index(lane) if lane in _LANES else 3


def _short(what: str) -> str:
    """Without the groups of resources, which the plan names."""
    return _GROUP.sub(lambda found: found[1] or found[0], what)


def causal_of(failure: Failure) -> list[Line]:
    """The lines that have to do with what was found, or what was struck."""
    struck = tuple(fault.at.what for fault in failure.plan.faults)
    told = set(causal(failure.run, _named(failure), failure.reference))
    # What a fault strikes is told, also where nothing came of it: a call outside before which it crashed.
    return [line for line in failure.run.lines if line in told or _is_at(line, struck)]


def _is_at(line: Line, struck: tuple[str, ...]) -> bool:
    return line.lane.startswith("operator") and line.what.startswith(struck)


def causal(run: Run, places: Iterable[str], besides: Run | None = None) -> list[Line]:
    """The lines that have to do with these objects, their owners and what they own; all, if none was written.

    A place is ``configmaps default/web``, or of what is in no namespace ``nodes one``.  What was never
    written in the run may be known from another ``besides``, as the one without faults.
    """
    writes = [*(besides.writes if besides is not None else ()), *run.writes]
    family = _family(writes, _written(writes).intersection(places))
    if not family:
        return list(run.lines)
    keys = {place.split(" ", 1)[1] for place in family}
    names = {key.rpartition("/")[2] for key in keys}
    return [line for line in run.lines if _is_causal(line, family, keys, names)]


def _is_causal(line: Line, places: set[str], keys: set[str], names: set[str]) -> bool:
    words = line.what.split(" ")
    if line.lane in ("fault", "world") or line.what in ("starts", "dies"):
        return line.lane != "world" or line.what.startswith("not still")
    if line.lane in ("user", "other"):
        return any(word.rstrip(":") in names for word in words) or line.what.endswith(" pass")
    if words[0] == "reconcile":
        return len(words) > 2 and words[2] in keys
    return any(_is_of(place, line) or f"<uid of {place}>" in line.what for place in places)


def _is_of(place: str, line: Line) -> bool:
    """Whether a line is about an object; what the server is to name is known by its beginning."""
    words = line.what.split(" ")
    if len(words) < 2:
        return False
    if line.lane == "server":
        about = _place(words[1], *words[2:4])
    elif line.lane.startswith(("operator", "view")):
        about = _place(words[1].partition("/")[0], words[2] if len(words) > 2 else "")
    else:
        about = _place(line.lane, words[1])
    return about == place or (about.endswith("*") and place.startswith(about[:-1]))


def _place(resource: str, *key: str) -> str:
    return f"{resource} {'/'.join(key).lstrip('/')}"


def _named(failure: Failure) -> set[str]:
    """The objects that findings speak of, and those at which a fault waits."""
    texts = [text for finding in failure.findings for text in (finding.what, *finding.details)]
    texts += [_SUBRESOURCE.sub(" ", fault.at.what) for fault in failure.plan.faults]
    said = " ".join(f"{text} " for text in texts)
    usual = failure.reference.writes if failure.reference is not None else []
    places = _written([*usual, *failure.run.writes])
    return {place for place in places if re.search(rf"(?<![\w.]){re.escape(place)}(?![\w.-])", said)}


def _written(writes: Iterable[Written]) -> set[str]:
    return {_place(write.resource, write.namespace, write.name) for write in writes}


def _family(writes: Iterable[Written], places: set[str]) -> set[str]:
    """With their owners, those of these, and so on; and with what they own."""
    called: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    for write in writes:
        metadata = msgspec.json.decode(write.data).get("metadata") or {}
        place = _place(write.resource, write.namespace, write.name)
        if isinstance(metadata, dict) and metadata.get("uid"):
            called[metadata["uid"]] = place
            owners.setdefault(place, set()).update(
                each["uid"] for each in metadata.get("ownerReferences") or ()
            )
    above = {place: {called[uid] for uid in uids if uid in called} for place, uids in owners.items()}
    family, more = set(places), set(places)
    while more:
        more = {owner for place in more for owner in above.get(place, ())} - family
        family |= more
    below = set(places)
    while more := {place for place, theirs in above.items() if theirs & below} - below:
        below |= more
    return family | below


# ---- for machines


_NOT_JUDGED: Final = {
    "open": "open: the budget was spent before a plan of it was tried",
    "inconclusive": "inconclusive: the fault found no place to strike",
}


def as_junit(*reports: Report) -> str:
    """One suite per operator, one test case per cell."""
    suites = "".join(_suite(redacted(report)) for report in reports)
    alarms = sum(len(report.alarms) for report in reports)
    errors = suites.count("<error ")
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuites name="setpoint prove" failures="{alarms}" errors="{errors}">\n{suites}</testsuites>\n'
    )


def _suite(report: Report) -> str:
    failed: dict[Cell | None, Failure] = {}
    for failure in sorted(report.failures, key=lambda failure: failure.is_warning):
        for cell in failure.cells if failure.plan.faults else (None,):
            failed.setdefault(cell, failure)
    cases = [_case(report, str(cell), state, failed.get(cell)) for cell, state in report.cells.items()]
    cases += [_case(report, "without faults", "failed", failed[None])] if None in failed else []
    cases += [
        f"<testcase classname={quoteattr(report.operator)} name={quoteattr(name)}>"
        f"<skipped message={quoteattr(why)}/></testcase>"
        for name, why in report.skipped.items()
    ]
    cases += [
        f"<testcase classname={quoteattr(report.operator)} name={quoteattr(f'the same twice {number}')}>"
        f"<error message={quoteattr(broken)}/></testcase>"
        for number, broken in enumerate(report.broken, 1)
    ]
    cases += [
        f"<testcase classname={quoteattr(report.operator)} name={quoteattr(f'no external call {number}')}>"
        f"<error message={quoteattr(external)}/></testcase>"
        for number, external in enumerate(report.external, 1)
    ]
    little, why = _too_little(report)
    if little and not report.alarms and not report.broken:
        cases.append(
            f'<testcase classname={quoteattr(report.operator)} name="something is proven">'
            f"<error message={quoteattr(f'{little}: {why}')}/></testcase>"
        )
    failures = sum("<failure" in case for case in cases)
    errors = sum("<error" in case for case in cases)
    return (
        f'<testsuite name={quoteattr(report.operator)} tests="{len(cases)}" failures="{failures}" '
        f'errors="{errors}" time="{report.seconds:.3f}">\n{_properties(report)}'
        + "\n".join(cases)
        + "\n</testsuite>\n"
    )


def _properties(report: Report) -> str:
    """How much was tried."""
    found = {
        "plans tried": report.attempted,
        "plans planned": report.planned,
        "cells covered": f"{report.covered} of {len(report.cells)}",
    }
    told = "".join(f'<property name="{name}" value="{value}"/>' for name, value in found.items())
    return f"<properties>{told}</properties>\n"


def _case(report: Report, name: str, state: str, failure: Failure | None) -> str:
    inner = ""
    if failure is not None:
        body = escape("\n".join([*_failure(failure), *_repro(failure, report)]))
        inner = f"<failure message={quoteattr(str(failure.first))}>{body}</failure>"
        if failure.is_warning:
            inner = f"<system-out>{body}</system-out>"
    elif state in _NOT_JUDGED:
        inner = f"<skipped message={quoteattr(_NOT_JUDGED[state])}/>"
    return f"<testcase classname={quoteattr(report.operator)} name={quoteattr(name)}>{inner}</testcase>"


# ---- for people with a browser


def as_html(*reports: Report) -> str:
    """One page, with everything in it."""
    reports = tuple(map(redacted, reports))
    names = ", ".join(report.operator for report in reports)
    parts = [
        "<!doctype html><meta charset=utf-8>",
        f"<title>setpoint prove: {html.escape(names)}</title>",
        _STYLE,
    ]
    for report in reports:
        parts.append(f"<h1>{html.escape(report.operator)}</h1><p>{html.escape(_summary(report))}</p>")
        parts += [
            f"<p>{html.escape(each)}</p>" for each in (*_tried(report), *_skipped(report), *_ends(report))
        ]
        parts += [f"<p><b>external call:</b> {html.escape(each)}</p>" for each in report.external]
        parts += [f"<p><b>not repeatable:</b> {html.escape(each)}</p>" for each in report.broken]
        parts += [_page_of(failure, report) for failure in report.failures]
        if report.inconclusive:
            parts.append(f"<h2>Inconclusive</h2>{_list(report.inconclusive)}")
        parts.append("<h2>Coverage</h2><table>")
        parts += [
            f"<tr><td>{html.escape(cell.fault)}<td>{html.escape(cell.what)}<td class={state}>{state}</tr>"
            for cell, state in report.cells.items()
        ]
        parts.append("</table>")
    return "\n".join(parts)


def _page_of(failure: Failure, report: Report) -> str:
    first, meaning = failure.first, failure.first.meaning
    mark, said = ("warned", "WARN") if failure.is_warning else ("failed", "FAIL")
    plan, call = write_plan(_kept(failure, report)).decode(), "\n".join(_call(failure, report))
    rows = "".join(map(_row, causal_of(failure)))
    heads = "".join(f"<th>{lane}" for lane in ("time", *_LANES))
    found = "".join(
        f"<li>{html.escape(str(finding))}{_list(finding.details)}" for finding in failure.findings
    )
    return (
        f"<h2 class={mark}>{said} {first.oracle} {html.escape(meaning.title)}</h2>"
        f"<p>{html.escape(str(failure.plan))}</p>"
        f"<ul>{found}</ul><p><b>cause:</b> {html.escape(meaning.cause)}<br><b>remedy:</b> "
        f"{html.escape(meaning.remedy)}</p>{_differences(failure)}"
        f"<table><tr>{heads}</tr>{rows}</table>"
        f"<details><summary>plan, for setpoint replay</summary><pre>{html.escape(plan)}</pre></details>"
        f"<details><summary>in a test</summary><pre>{html.escape(call)}</pre></details>"
    )


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}' for line in lines)}</ul>" if lines else ""


def _differences(failure: Failure) -> str:
    """After which step the state is another than without the faults, and in what: all of it."""
    return "".join(
        f"<details open><summary>after {html.escape(step)}, against a run without faults</summary>"
        f"{_list(lines)}</details>"
        for step, lines in differences(failure)
    )


def differences(failure: Failure) -> Iterator[tuple[str, list[str]]]:
    usual = {} if failure.reference is None else {each.step: each for each in failure.reference.checkpoints}
    for point in failure.run.checkpoints:
        if point.step in usual and (lines := difference(usual[point.step].state, point.state, most=10_000)):
            yield point.what, failure.redactor.texts(lines)


def _row(line: Line) -> str:
    column = _column(line)
    what = html.escape(line.what)
    if column is None:
        mark = " class=fault" if line.lane == "fault" else ""
        return f"<tr{mark}><td>{line.time:.3f}<td colspan=4>{what}</tr>"
    cells = "".join(f"<td>{what if number == column else ''}" for number in range(4))
    return f"<tr><td>{line.time:.3f}{cells}</tr>"
