"""Writes what was measured: ``docs/benchmarks.md``, its chart, and the headline ratios in the README.

All three come from ``docs/benchmarks.jsonl``, which the benches write; nothing is typed.  Whatever is missing
(a contestant, a work, a promise) is named, with the reason; where all is missing nothing is written.  In the
README, what stands between the two marks is replaced:

    <!-- benchmarks: begin -->
    <!-- benchmarks: end -->

    python -m bench.peers.report
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from bench.peers.bars import bars, words
from bench.peers.chart import chart
from bench.peers.growth import FLAT, LINEAR
from bench.peers.machine import ROOT, described
from bench.peers.results import (
    LIMIT,
    OURS,
    RESULTS,
    cases,
    is_comparable,
    is_extrapolated,
    is_part,
    load,
    ratio_of,
    row_of,
    runs,
    times,
)
from bench.peers.rounds import Result

PAGE: Final = ROOT / "docs" / "benchmarks.md"
CHART: Final = ROOT / "docs" / "benchmarks.svg"
README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- benchmarks: begin -->"
END: Final = "<!-- benchmarks: end -->"

# Of each work: what it is called, and its figures: a name, a head for its column, how it is written, and
# whether the report also has it as a ratio to ours.
Column = tuple[str, str, str, bool]
_CPU: Final[Column] = ("cpu", "CPU s", ".2f", True)
_WALL: Final[Column] = ("wall", "wall s", ".2f", True)
_PEAK: Final[Column] = ("peak_megabytes", "peak MB", ".0f", True)
_SETTLED: Final[Column] = ("settled_megabytes", "settled MB", ".0f", True)
_REQUESTS: Final[Column] = ("requests", "requests", ".0f", True)
_LIMITED: Final = {"wall", "cpu"}  # what the limit is a limit of
WORKS: Final[dict[str, tuple[str, list[Column]]]] = {
    "sync": (
        "Filling a cache",
        [
            _WALL,
            _CPU,
            ("checked_cpu", "CPU s to read all, typed", ".2f", True),
            ("bytes_per_object", "bytes/object", ",.0f", True),
            _SETTLED,
            _PEAK,
            ("checked_megabytes", "MB when all was read", ".0f", True),
            _REQUESTS,
        ],
    ),
    "watch": (
        "Taking in changes at full speed",
        [
            ("events_per_second", "events/s", ",.0f", True),
            ("wall_microseconds", "wall µs/event", ".1f", True),
            ("cpu_microseconds", "CPU µs/event", ".1f", True),
            _PEAK,
        ],
    ),
    "reconcile": (
        "Reconciling from cold",
        [
            _WALL,
            _CPU,
            ("cpu_milliseconds_per_object", "CPU ms/object", ".2f", False),
            ("requests_per_object", "requests/object", ".2f", True),
            _PEAK,
        ],
    ),
    "steady": (
        "From a change to its reconcile",
        [
            ("p50_milliseconds", "p50 ms", ".1f", True),
            ("p99_milliseconds", "p99 ms", ".1f", True),
            ("answered_p99_milliseconds", "the write itself, p99 ms", ".1f", False),
            ("cpu_microseconds_per_change", "CPU µs/change", ".0f", True),
            _SETTLED,
        ],
    ),
    "restart": (
        "Restarting at the fixed point",
        [_WALL, _CPU, ("writes", "writes", ".0f", False), _REQUESTS, _SETTLED],
    ),
    "queue": (
        "The work queue",
        [
            ("operations_per_cpu_second", "operations per CPU s", ",.0f", True),
            ("operations_per_second", "operations/s", ",.0f", False),
            _PEAK,
        ],
    ),
    "startup": (
        "Starting an operator",
        [
            ("loaded_seconds", "loaded s", ".2f", False),
            ("working_seconds", "working s", ".2f", True),
            ("idle_megabytes", "idle MB", ".0f", True),
        ],
    ),
}
_GROWN: Final[list[Column]] = [
    ("wall", "wall s", ".2f", False),
    ("cpu", "CPU s", ".2f", False),
    ("peak_megabytes", "peak MB", ".0f", False),
    ("list_milliseconds", "CPU ms/list", ".1f", False),
    ("get_microseconds", "CPU µs/GET", ".0f", False),
    ("change_microseconds", "CPU µs/change watched", ".0f", False),
]

# ---- the page --------------------------------------------------------------------------------------

_INTRODUCTION: Final = """\
Setpoint beside its peers: the same work, the same objects, in turn, medians of the rounds (every round's
figures are in [benchmarks.jsonl](benchmarks.jsonl)). Every contestant is a process of its own, is measured
from outside, and must show that it did the whole work. Times and CPU seconds begin when a program is loaded
and told to go. Only ratios inside a table travel to other machines; seconds do not. `make bench` writes this
page, `make bench ONLY=sync` one part of it; what each contestant is, and how it was set up so that nothing
holds it back, stands at the top of its source in `bench/contestants`.

**Not the same work is done at the same time.** Setpoint's cache keeps the bytes of an object with its
metadata, and decodes the rest when it is read, each time anew; its peers decode everything once, when it
comes. So what a cache costs to fill, and to keep up to date, is without that for Setpoint and with it for
them. Where it was measured, a column says what it then costs to read every object once, typed: who reads
everything adds it to the CPU of the filling; who reads a little of it does not.
"""
_ABSENT: Final = """\
- kube-rs with objects of no type: it takes longer than kube-rs with types, and the whole is to take no more
  than an hour.
- cloudcoil: 0.8, the current one, needs Python 3.14, and everything here runs on 3.11 and later; the informer
  of 0.6, the last for older ones, drops pages of a list, and could not show that it did the whole work."""
_LOSSES: Final = """\
Whatever a peer did with at least 5 percent less than we, in any figure of the tables below; a cache of
metadata alone is compared with ours of metadata alone. The number is theirs divided by ours (for rates: ours
by theirs).
"""
_PART: Final = """\
\\* extrapolated: it was given only so many objects or events, because it is slow, and its times are
multiplied to stand for all. Its memory and its requests are of the part, and have no ratio."""
_EXTRAPOLATED: Final = "\\* extrapolated: measured on a part of the objects or events."
_GROWTH: Final = f"""\
Ours at 1, 4 and 16 times the objects. The exponent is that of the step from 4 to 16 times, when the base is
taken off: what no objects at all would cost, by the line through the two smaller. 1 is linear; {LINEAR:g},
for noise, is the most that passes. A GET, and a change with one watcher, should cost the same among any
number of objects: their exponent is from 1 to 16 times, of the whole, and {FLAT:g} (twice the cost) is the
most that passes."""
_SERVER: Final = """\
Both with fsync, over TLS, on 16 connections; memory with {pods:,} pods. "watches ended" is how
often, of 100 watches, the server ended one, having too little CPU for it; it went on after the last version
it had seen."""


class NothingMeasured(Exception):
    """There is nothing to write a report of."""

    def __init__(self) -> None:
        super().__init__(
            f"writing {PAGE.name}: nothing was measured, for there is no result in docs/{RESULTS.name}; "
            "run make bench, or a part of it (make bench ONLY=queue)"
        )


def write() -> None:
    results = load()
    if not results:
        raise NothingMeasured
    CHART.write_text(chart(results))
    PAGE.write_text("\n".join(page(results)) + "\n")
    README.write_text(with_headlines(README.read_text(), results))


def page(results: list[Result]) -> Iterator[str]:
    yield "<!-- Generated by `make bench` from benchmarks.jsonl: do not edit. -->"
    yield "# Benchmarks"
    yield ""
    yield _INTRODUCTION
    yield from measured(results)
    yield ""
    yield "![CPU and memory of Setpoint and its peers](benchmarks.svg)"
    yield ""
    yield "## What is promised, and what was measured"
    yield ""
    yield "Ours divided by theirs, in the same run."
    yield ""
    yield "| work | figure | against | bar | measured | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from bars(results)
    yield ""
    yield _EXTRAPOLATED
    yield ""
    yield "## Where we lose"
    yield ""
    yield _LOSSES
    yield from [line for _, line in sorted(losses(results), key=_worst_first)] or ["Nowhere, this time."]
    for work, (title, columns) in WORKS.items():
        yield from _section(title, tables(results, work, columns))
    yield from _section("Growth", growth(results))
    yield from _section("The embedded server against kube-apiserver and etcd", server(results))
    yield from _section("Parts against a yardstick", parts(results))
    yield from _section("Who did not take part", absent(results))


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    """With its heading; nothing, where there are no lines."""
    said = list(lines)
    if said:
        yield from ("", f"## {title}", "", *said)


def measured(results: list[Result]) -> Iterator[str]:
    """Which work is of which run, and on what it ran."""
    found = runs(results)
    if len(found) > 1:
        yield "**Not everything is of one run.** A work is: compare inside a section, never across them."
        yield ""
    for run, works in found.items():
        mine = [each["machine"] for each in results if "machine" in each and each.get("run") == run]
        where = " And: ".join(dict.fromkeys(map(described, mine)))
        took = sum(each.get("took_seconds", 0) for each in results if each.get("run") == run)
        minutes = f" (together {took / 60:.0f} minutes)" if took else ""
        yield f"- **{run}**: {', '.join(works)}{minutes}. {where}"
    if not found:
        yield "Nothing was measured yet: `make bench`."


def _worst_first(loss: tuple[float, str]) -> float:
    return loss[0]


def losses(results: list[Result]) -> Iterator[tuple[float, str]]:
    """Of each figure in which a peer is better: how little of ours the best one needed, and a line of it."""
    for work, (title, columns) in WORKS.items():
        for case, rows in cases(results, work):
            for name, head, _, _ in columns:
                peers = [row for row in rows if row["contestant"] != LIMIT and not _is_ours(row)]
                shares = [(times(row, rows, name), row["contestant"]) for row in peers]
                better = sorted((share, who) for share, who in shares if share is not None and share <= 0.95)
                if better:
                    said = "; ".join(f"{who} {share:.2f}" for share, who in better)
                    yield better[0][0], f"- {title}, {case}: **{head}**: {said}"
    for each in results:
        for name, ratio in each.get("ratios", {}).items():
            share = ratio if name.endswith("per_s") else 1 / ratio if ratio else 1
            if share <= 0.95:
                yield share, f"- The embedded server: **{words(name)}**: kube-apiserver + etcd {share:.2f}"


def _is_ours(row: Result) -> bool:
    return str(row["contestant"]).startswith(OURS)


def tables(results: list[Result], work: str, columns: list[Column]) -> Iterator[str]:
    for case, rows in cases(results, work):
        shown = [column for column in columns if any(column[0] in row for row in rows)]
        ours, limit = row_of(rows, OURS), row_of(rows, LIMIT)
        heads = [head for column in shown for head in _heads(column, limit)]
        yield f"### {case}"
        yield ""
        yield f"| {' | '.join(['contestant', *heads])} |"
        yield f"| {' | '.join(['---', *('---:' for _ in heads)])} |"
        for row in rows:
            cells = [cell for column in shown for cell in _cells(row, ours, limit, column)]
            yield f"| {' | '.join([_name(row, ours), *cells])} |"
        yield ""
        if any(is_part(row, ours) for row in rows):
            yield _PART
            yield ""
    for each in results:
        if each["work"] == work and "case" not in each and "failed" in each:
            yield f"**It failed:** {each['failed']}"


def _name(row: Result, ours: Result) -> str:
    failed = f" (failed: {row['failed']})" if "failed" in row else ""
    lost = f" ({len(row['failed_rounds'])} rounds failed)" if row.get("failed_rounds") else ""
    what = "objects" if "objects" in row else "events"
    part = f" \\* ({row[what]:,.0f} {what})" if is_part(row, ours) else ""
    return f"{row['contestant']}{part}{failed}{lost}"


def _heads(column: Column, limit: Result) -> list[str]:
    name, title, _, is_ratio = column
    return [
        title,
        *(["to ours"] if is_ratio else []),
        *(["to the limit"] if name in _LIMITED and name in limit else []),
    ]


def _cells(row: Result, ours: Result, limit: Result, column: Column) -> list[str]:
    name, _, form, is_ratio = column
    value = row.get(name)
    cells = ["" if value is None else format(value, form)]
    if is_ratio:
        against = (ours, limit) if name in _LIMITED and name in limit else (ours,)
        is_known = value is not None and is_comparable(row, ours, name)
        cells += [f"{value / other[name]:.2f}" if is_known and other.get(name) else "" for other in against]
    return cells


def growth(results: list[Result]) -> Iterator[str]:
    """Of each work its sizes, and the exponents that fit."""
    mine = [each for each in results if each["work"] == "growth"]
    if not mine:
        return
    yield _GROWTH
    for of in dict.fromkeys(each["of"] for each in mine if "exponent" in each):
        rows = [each for each in mine if str(each.get("case", "")).startswith(f"{of},")]
        shown = [column for column in _GROWN if any(column[0] in row for row in rows)]
        fitted = {each["figure"]: each for each in mine if each.get("of") == of}
        yield ""
        yield f"| {' | '.join([of, *(head for _, head, _, _ in shown)])} |"
        yield f"| {' | '.join(['---', *('---:' for _ in shown)])} |"
        for row in rows:
            cells = [format(row[name], form) if name in row else "" for name, _, form, _ in shown]
            yield f"| {' | '.join([row['case'].removeprefix(f'{of}, '), *cells])} |"
        for what, form in (("base", ".2f"), ("exponent", ".2f")):
            cells = [format(fitted[name][what], form) if name in fitted else "" for name, *_ in shown]
            yield f"| **{what}** | {' | '.join(cells)} |"
    for each in mine:
        if "failed" in each:
            yield ""
            yield f"**{each.get('case', 'It')} failed:** {each['failed']}"


def server(results: list[Result]) -> Iterator[str]:
    """The embedded server's own bench has its own figures."""
    for each in results:
        if "ratios" in each:
            yield _SERVER.format(pods=each["pods"])
            yield ""
            yield "| | setpoint | kube-apiserver + etcd | ours divided by theirs |"
            yield "| --- | ---: | ---: | ---: |"
            both = dict.fromkeys([*each["setpoint"], *each["kube-apiserver"]])
            for name in both:
                cells = [
                    f"{each[who][name]:,}" if name in each[who] else "not measured"
                    for who in ("setpoint", "kube-apiserver")
                ]
                ratio = f"{each['ratios'][name]:.2f}" if name in each["ratios"] else ""
                yield f"| {words(name)} | {' | '.join(cells)} | {ratio} |"
        elif each["work"] == "server" and "failed" in each:
            yield f"**It failed:** {each['failed']}"


def parts(results: list[Result]) -> Iterator[str]:
    """The benches of one part each, which have no peers; what they say, and what they promise."""
    for each in results:
        if "bench" in each and "ratios" not in each:
            said = [
                f"{words(name)} {value:,}"
                for name, value in each.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            ]
            yield f"- **{each['bench']}**: {'; '.join(said)}"
        elif "failed" in each and each["work"] not in {*WORKS, "growth", "server"}:
            yield f"- **{each['work']}**: failed: {each['failed']}"


def absent(results: list[Result]) -> Iterator[str]:
    """Whoever is missing, and why."""
    for each in results:
        if "not_run" in each:
            yield f"- {each['work']}: {each['contestant']}: {each['not_run']}"
    yield _ABSENT


# ---- the README ------------------------------------------------------------------------------------

_GO, _GO_JSON = "controller-runtime, typed", "controller-runtime, typed, JSON"
HEADLINES: Final = [
    ("CPU to fill a cache of custom resources", "sync", "Workloads", "cpu", _GO),
    ("memory for each cached object", "sync", "Workloads", "bytes_per_object", _GO),
    ("changes taken in a second (more is better)", "watch", "Workloads", "events_per_second", _GO_JSON),
    ("time to reconcile from cold", "reconcile", "WebApps, 10 workers", "wall", "controller-runtime"),
    ("CPU to reconcile from cold", "reconcile", "WebApps, 10 workers", "cpu", "controller-runtime"),
]
_WORST: Final = 3
_MARK: Final = " \\*"


def with_headlines(readme: str, results: list[Result]) -> str:
    """The README, with what stands between the marks made anew."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        return readme
    lines = [*headlines(results), ""] if results else []
    return f"{head}{BEGIN}\n{chr(10).join(lines)}{END}{tail}"


def headlines(results: list[Result]) -> Iterator[str]:
    rows = [
        (title, *(_share(results, work, case, figure, against) for against in (go, "kopf")))
        for title, work, case, figure, go in HEADLINES
    ]
    yield "| Setpoint's, divided by | controller-runtime's (Go) | kopf's |"
    yield "| --- | ---: | ---: |"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
    yield "Setpoint's cache keeps bytes and decodes what is read; the others decode everything at once."
    if any(_MARK in cell for row in rows for cell in row):
        yield _EXTRAPOLATED
    worst = sorted(losses(results), key=_worst_first)
    if worst:
        yield f"Figures in which a peer is ahead: {len(worst)}, most of all"
        yield ""
        yield from (line for _, line in worst[:_WORST])
        yield ""
    yield f"Measured: {_dates(results)}. Everything, and how: [benchmarks](docs/benchmarks.md)."


def _share(results: list[Result], work: str, case: str, figure: str, against: str) -> str:
    ratio = ratio_of(results, work, case, figure, against)
    if ratio is None:
        return "not measured"
    mark = _MARK if is_extrapolated(results, work, case, against) else ""
    return f"{ratio:.2f}{mark}"


def _dates(results: list[Result]) -> str:
    """Of the works above, which may be of several runs."""
    shown = dict.fromkeys(work for _, work, *_ in HEADLINES)
    of: dict[str, Any] = {
        run: [work for work in works if work in shown] for run, works in runs(results).items()
    }
    of = {run: works for run, works in of.items() if works}
    if len(of) == 1:
        return next(iter(of))
    return "; ".join(f"{', '.join(works)}: {run}" for run, works in of.items()) or "nothing of this yet"


def main() -> None:
    try:
        write()
    except NothingMeasured as nothing:
        sys.exit(str(nothing))
    print(f"wrote {PAGE.name} and {CHART.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
