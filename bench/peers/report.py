"""Writes what was measured: ``docs/benchmarks.md``, its chart, and the headline ratios in the README.

All three come from ``docs/benchmarks.jsonl``, which the benches write, one line to a result; nothing is
typed.  A bench that runs again replaces its own lines.  In the README, what stands between the two marks is
replaced:

    <!-- benchmarks: begin -->
    <!-- benchmarks: end -->

    python -m bench.peers.report
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from bench import server as embedded
from bench.peers import contestants
from bench.peers.rounds import Result
from setpoint.testing.kube import ETCD, KUBERNETES

ROOT: Final = Path(__file__).parent.parent.parent
RESULTS: Final = ROOT / "docs" / "benchmarks.jsonl"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
CHART: Final = ROOT / "docs" / "benchmarks.svg"
README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- benchmarks: begin -->"
END: Final = "<!-- benchmarks: end -->"
LIMIT: Final = "limit: curl"

# Of each work: what it is called, and its figures: a name, a head for its column, how it is written, and
# whether the report also has it as a ratio to ours.
Column = tuple[str, str, str, bool]
_CPU: Final[Column] = ("cpu", "CPU s", ".2f", True)
_WALL: Final[Column] = ("wall", "wall s", ".2f", True)
_PEAK: Final[Column] = ("peak_megabytes", "peak MB", ".0f", False)
_REQUESTS: Final[Column] = ("requests", "requests", ".0f", False)
_MORE_IS_BETTER: Final = {"events_per_second", "operations_per_second", "operations_per_cpu_second"}
WORKS: Final[dict[str, tuple[str, list[Column]]]] = {
    "sync": (
        "Filling a cache",
        [_WALL, _CPU, ("bytes_per_object", "bytes/object", ",.0f", True), _PEAK, _REQUESTS],
    ),
    "watch": (
        "Taking in changes at full speed",
        [
            ("events_per_second", "events/s", ",.0f", True),
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
            ("requests_per_object", "requests/object", ".2f", False),
            _PEAK,
        ],
    ),
    "steady": (
        "From a change to its reconcile",
        [
            ("p50_milliseconds", "p50 ms", ".1f", True),
            ("p99_milliseconds", "p99 ms", ".1f", True),
            ("cpu_microseconds_per_change", "CPU µs/change", ".0f", True),
            ("settled_megabytes", "MB", ".0f", False),
        ],
    ),
    "restart": (
        "Restarting at the fixed point",
        [
            _WALL,
            _CPU,
            ("writes", "writes", ".0f", False),
            _REQUESTS,
            ("settled_megabytes", "MB", ".0f", False),
        ],
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

# What is promised: ours divided by theirs, in the same run.
Bar = tuple[str, str, str, str, str, float]
BARS: Final[list[Bar]] = [
    ("sync", "Workloads", "cpu", "controller-runtime, typed", "at most", 0.25),
    ("sync", "Workloads", "cpu", "controller-runtime, unstructured", "at most", 0.25),
    ("sync", "Workloads", "cpu", "controller-runtime, typed, plain LIST", "at most", 0.5),
    ("sync", "Pods", "cpu", "controller-runtime, typed", "at most", 1.0),
    ("sync", "Pods", "cpu", "kopf", "at most", 0.1),
    ("sync", "Workloads", "cpu", "kopf", "at most", 0.1),
    ("sync", "Pods", "bytes_per_object", "controller-runtime, typed", "at most", 0.65),
    ("sync", "Workloads", "bytes_per_object", "controller-runtime, typed", "at most", 0.65),
    ("sync", "Workloads", "bytes_per_object", "controller-runtime, unstructured", "at most", 0.2),
    ("sync", "Pods", "wall", LIMIT, "at most", 2.0),
    ("sync", "Workloads", "wall", LIMIT, "at most", 2.0),
    ("watch", "Workloads", "events_per_second", "controller-runtime, typed, JSON", "at least", 8),
    ("watch", "Workloads", "events_per_second", "controller-runtime, unstructured", "at least", 8),
    ("watch", "Pods", "events_per_second", "controller-runtime, typed, protobuf", "at least", 3),
    ("watch", "Pods", "events_per_second", "kopf", "at least", 20),
    ("watch", "Workloads", "events_per_second", "kopf", "at least", 20),
    *(
        ("reconcile", f" {workers}", figure, "controller-runtime", "at most", 1.0)
        for workers in ("1 worker", "10 workers", "50 workers")
        for figure in ("wall", "cpu", "requests_per_object")
    ),
    ("reconcile", " 10 workers", "wall", "kopf", "at most", 0.5),
    ("reconcile", " 10 workers", "cpu", "kopf", "at most", 0.25),
    ("steady", "WebApps", "p99_milliseconds", "controller-runtime", "at most", 1.5),
]
ABSOLUTE: Final[list[tuple[str, str, str, float]]] = [
    ("queue", "operations_per_second", "at least", 500_000),
    ("startup", "idle_megabytes", "at most", 60),
    ("restart", "writes", "at most", 0),
]
_UNITS: Final = {"_s": ", s", "_mb": ", MB", "_ms": ", ms", "_per, s": "s a second"}
LINEAR: Final = 1.05  # and a little noise


def machine() -> dict[str, Any]:
    """Where it was measured, and with what."""
    info = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in info.read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "gigabytes": round(memory),
        "system": platform.system(),
        "python": platform.python_version(),
        "kubernetes": KUBERNETES,
        "etcd": ETCD,
        "go": _said(("go", "env", "GOVERSION")).removeprefix("go"),  # as its module asks for it
        "rust": _said(("rustc", "--version")).removeprefix("rustc ").partition(" (")[0],
        "contestants": {
            name: contestants.version(name)
            for name in ("setpoint", "controller_runtime", "kube_rs", "kopf", "kubernetes")
        },
    }


def _said(command: tuple[str, ...]) -> str:
    """Its answer, where there is such a program."""
    if shutil.which(command[0]) is None:
        return ""
    where = contestants.FOLDER / "controller_runtime"
    return subprocess.run(command, cwd=where, check=False, capture_output=True, text=True).stdout.strip()


def load() -> list[Result]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def keep(work: str, results: list[Result]) -> None:
    """In place of what was known of this work."""
    others = [each for each in load() if each["work"] != work]
    lines = [*others, {"work": work, "machine": machine()}, *results]
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines))


# ---- the page --------------------------------------------------------------------------------------

_INTRODUCTION: Final = """\
Setpoint beside its peers: the same work, the same objects, in turn, medians of the rounds (every round's
figures are in [benchmarks.jsonl](benchmarks.jsonl)). Every contestant is a process of its own, is measured
from outside, and must show that it did the whole work. Times and CPU seconds begin when a program is loaded
and told to go. Only ratios inside a table travel to other machines; seconds do not. `make bench` writes this
page, `make bench ONLY=sync` one part of it; what each contestant is, and how it was set up so that nothing
holds it back, stands at the top of its source in `bench/contestants`.
"""
_ABSENT: Final = """\
cloudcoil 0.6.0 does not take part: its informer keeps the first page of a list, 5,000 objects at most."""
_LOSSES: Final = """\
Whatever a peer did with at least 5 percent less than we, in any figure of the tables below; a cache of
metadata alone is compared with ours of metadata alone. The number is theirs divided by ours (for rates: ours
by theirs).
"""
_PART: Final = """\
\\* was given so many objects, because it is slow; times and requests are multiplied to stand for all."""


def write() -> None:
    results = load()
    CHART.write_text(chart(results))
    PAGE.write_text("\n".join(page(results)) + "\n")
    README.write_text(with_headlines(README.read_text(), results))


def with_headlines(readme: str, results: list[Result]) -> str:
    """The README, with what stands between the marks made anew."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        return readme
    lines = [*headlines(results), ""] if results else []
    return f"{head}{BEGIN}\n{chr(10).join(lines)}{END}{tail}"


def page(results: list[Result]) -> Iterator[str]:
    yield "<!-- Generated by `make bench` from benchmarks.jsonl: do not edit. -->"
    yield "# Benchmarks"
    yield ""
    yield _INTRODUCTION
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
    yield "## Where we lose"
    yield ""
    yield _LOSSES
    yield from losses(results)
    for work, (title, columns) in WORKS.items():
        mine = [each for each in results if each["work"] == work]
        if mine:
            yield ""
            yield f"## {title}"
            yield ""
            yield from tables(mine, columns)
    yield from growth(results)
    yield from server(results)
    yield ""
    yield _ABSENT


def bars(results: list[Result]) -> Iterator[str]:
    for work, case, figure, against, most, bar in BARS:
        ratio = ratio_of(results, work, case, figure, against)
        if ratio is not None:
            what = f"{work}, {case.strip()} | {_words(figure)}"
            yield _bar(what, against, f"{most} {bar:g} times", ratio, (most, bar))
    for work, figure, most, bar in ABSOLUTE:
        for each in results:
            if each["work"] == work and each.get("contestant") == "setpoint" and figure in each:
                what = f"{work}, {each['case']} | {_words(figure)}"
                yield _bar(what, "", f"{most} {bar:,g}", each[figure], (most, bar))
    for each in results:
        if "exponent" in each:
            what = each["case"].replace("peak_megabytes", "memory").replace(": exponent of", " |")
            yield _bar(f"growth, {what}: exponent", "", "at most 1", each["exponent"], ("at most", LINEAR))
    for each in results:
        for figure, (title, most, bar) in embedded.BARS.items():
            if figure in each.get("ratios", {}):
                asked = f"{most} {bar:g} times"
                row = (f"server | {title}", "kube-apiserver + etcd", asked, each["ratios"][figure])
                yield _bar(*row, (most, bar))


def _bar(what: str, against: str, asked: str, value: float, limit: tuple[str, float]) -> str:
    most, bar = limit
    is_met = value <= bar if most == "at most" else value >= bar
    shown = f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
    return f"| {what} | {against} | {asked} | {shown} | {'met' if is_met else '**missed**'} |"


def losses(results: list[Result]) -> Iterator[str]:
    """One line to each figure in which a peer is better."""
    is_any = False
    for work, (title, columns) in WORKS.items():
        for case, rows in _cases(results, work):
            for name, head, _, _ in columns:
                better = [
                    f"{row['contestant']} {_times(row, rows, name):.2f}"
                    for row in rows
                    if row["contestant"] != LIMIT and not _is_ours(row) and _times(row, rows, name) <= 0.95
                ]
                if better:
                    is_any = True
                    yield f"- {title}, {case}: **{head}**: {'; '.join(better)}"
    for each in results:
        for name, ratio in each.get("ratios", {}).items():
            worse = 1 / ratio if name.endswith("per_s") else ratio
            if worse >= 1.05:
                is_any = True
                yield f"- The embedded server: **{_words(name)}**: kube-apiserver + etcd {1 / worse:.2f}"
    if not is_any:
        yield "Nowhere, this time."


def _times(row: Result, rows: list[Result], figure: str) -> float:
    """How much of ours it needed; 1 where that cannot be said."""
    form = ", metadata" if "metadata" in row["contestant"] else ""
    ours = next((each for each in rows if each["contestant"] == f"setpoint{form}"), {})
    mine, theirs = ours.get(figure), row.get(figure)
    if not mine or theirs is None:
        return 1.0
    return float(mine / theirs if figure in _MORE_IS_BETTER else theirs / mine)


def _is_ours(row: Result) -> bool:
    return str(row["contestant"]).startswith("setpoint")


def _cases(results: list[Result], work: str) -> Iterator[tuple[str, list[Result]]]:
    mine = [each for each in results if each["work"] == work and "case" in each]
    for case in dict.fromkeys(each["case"] for each in mine):
        yield case, [each for each in mine if each["case"] == case]


def ratio_of(results: list[Result], work: str, case: str, figure: str, against: str) -> float | None:
    """Ours divided by theirs, in the first case of the work that has this in its name."""
    for name in dict.fromkeys(each["case"] for each in results if each["work"] == work and "case" in each):
        found = {
            each["contestant"]: each for each in results if each["work"] == work and each.get("case") == name
        }
        if case in name and figure in found.get("setpoint", {}) and found.get(against, {}).get(figure):
            return float(found["setpoint"][figure] / found[against][figure])
    return None


def tables(results: list[Result], columns: list[Column]) -> Iterator[str]:
    for case, rows in _cases(results, results[0]["work"]):
        shown = [column for column in columns if any(column[0] in row for row in rows)]
        ours = next((row for row in rows if row["contestant"] == "setpoint"), {})
        limit = next((row for row in rows if row["contestant"] == LIMIT), {})
        heads = [head for column in shown for head in _heads(column, limit)]
        yield f"### {case}"
        yield ""
        yield f"| contestant | {' | '.join(heads)} |"
        yield f"| --- | {' | '.join('---:' for _ in heads)} |"
        for row in rows:
            cells = [cell for column in shown for cell in _cells(row, ours, limit, column)]
            yield f"| {_name(row, ours)} | {' | '.join(cells)} |"
        yield ""
        if any(_is_part(row, ours) for row in rows):
            yield _PART
            yield ""
    where: dict[str, Any] = next((each["machine"] for each in results if "machine" in each), {})
    yield f"*{_where(where)}*"


def _name(row: Result, ours: Result) -> str:
    failed = f" (failed: {row['failed']})" if "failed" in row else ""
    part = f" \\*{row['objects']:,.0f}" if _is_part(row, ours) else ""
    return f"{row['contestant']}{part}{failed}"


def _is_part(row: Result, ours: Result) -> bool:
    return bool(row.get("objects", 0) < ours.get("objects", 0) and "objects" in row)


def _heads(column: Column, limit: Result) -> list[str]:
    name, title, _, is_ratio = column
    return [
        title,
        *(["to ours"] if is_ratio else []),
        *(["to the limit"] if is_ratio and name in limit else []),
    ]


def _cells(row: Result, ours: Result, limit: Result, column: Column) -> list[str]:
    name, _, form, is_ratio = column
    value = row.get(name)
    cells = ["" if value is None else format(value, form)]
    if is_ratio:
        against = (ours, limit) if name in limit else (ours,)
        cells += [f"{value / other[name]:.2f}" if value and other.get(name) else "" for other in against]
    return cells


def growth(results: list[Result]) -> Iterator[str]:
    """Of each work its sizes, and the exponents that fit."""
    mine = [each for each in results if each["work"] == "growth"]
    if not mine:
        return
    yield ""
    yield "## Growth"
    yield ""
    yield "Ours at 1, 4 and 16 times the objects; an exponent of 1 is linear, and nothing may grow faster."
    yield ""
    yield "| work | wall s | CPU s | peak MB |"
    yield "| --- | ---: | ---: | ---: |"
    for each in mine:
        if "cpu" in each:
            row = (each["case"], f"{each['wall']:.2f}", f"{each['cpu']:.2f}", f"{each['peak_megabytes']:.0f}")
            yield f"| {' | '.join(row)} |"
    exponents = {each["case"]: each["exponent"] for each in mine if "exponent" in each}
    for what in dict.fromkeys(case.partition(":")[0] for case in exponents):
        found = (exponents.get(f"{what}: exponent of {name}") for name in ("wall", "cpu", "peak_megabytes"))
        cells = ("" if each is None else f"**{each:.2f}**" for each in found)
        yield f"| {what}: exponent | {' | '.join(cells)} |"
    yield ""
    where: dict[str, Any] = next((each["machine"] for each in mine if "machine" in each), {})
    yield f"*{_where(where)}*"


def _where(where: dict[str, Any]) -> str:
    if not where:
        return ""
    versions = ", ".join(f"{name.replace('_', '-')} {said}" for name, said in where["contestants"].items())
    return (
        f"{where['cores']} cores ({where['processor']}), {where['gigabytes']} GB, {where['system']}; "
        f"kube-apiserver {where['kubernetes']}, etcd {where['etcd']}; Python {where['python']}, "
        f"Go {where.get('go')}, Rust {where.get('rust')}; {versions}"
    )


def server(results: list[Result]) -> Iterator[str]:
    """The embedded server's own bench has its own figures."""
    mine = [each for each in results if each["work"] == "server"]
    for each in mine:
        if "ratios" in each:
            yield ""
            yield "## The embedded server against kube-apiserver and etcd"
            yield ""
            yield f"Both with fsync, over TLS, on 16 connections; memory with {each['pods']:,} pods."
            yield ""
            yield "| | setpoint | kube-apiserver + etcd | ours divided by theirs |"
            yield "| --- | ---: | ---: | ---: |"
            for name, value in each["setpoint"].items():
                theirs, ratio = each["kube-apiserver"][name], each["ratios"][name]
                yield f"| {_words(name)} | {value:,} | {theirs:,} | {ratio:.2f} |"
            yield ""
    where: dict[str, Any] = next((each["machine"] for each in mine if "machine" in each), {})
    if where:
        yield f"*{_where(where)}*"


def _words(figure: str) -> str:
    """A figure's name, read aloud; the server's bench has its units at the end."""
    for end, unit in _UNITS.items():
        if figure.endswith(end):
            figure = figure.removesuffix(end) + unit
    return figure.replace("_", " ").replace("cpu", "CPU")


# ---- the README ------------------------------------------------------------------------------------

HEADLINES: Final = [
    (
        "CPU to fill a cache of custom resources",
        "sync",
        "Workloads",
        "cpu",
        "controller-runtime, typed",
        "kopf",
    ),
    (
        "memory for each cached object",
        "sync",
        "Workloads",
        "bytes_per_object",
        "controller-runtime, typed",
        "kopf",
    ),
    (
        "CPU to take in a change",
        "watch",
        "Workloads",
        "cpu_microseconds",
        "controller-runtime, typed, JSON",
        "kopf",
    ),
    ("CPU to reconcile from cold", "reconcile", "10 workers", "cpu", "controller-runtime", "kopf"),
]


def headlines(results: list[Result]) -> Iterator[str]:
    yield "| Setpoint's share of | controller-runtime's (Go) | kopf's |"
    yield "| --- | ---: | ---: |"
    for title, work, case, figure, go, kopf in HEADLINES:
        shares = [ratio_of(results, work, case, figure, against) for against in (go, kopf)]
        yield f"| {title} | {' | '.join('' if share is None else f'{share:.2f}' for share in shares)} |"
    yield ""
    yield "By `make bench`, in the same run; everything, and where we lose: [benchmarks](docs/benchmarks.md)."


# ---- the chart -------------------------------------------------------------------------------------

_PANELS: Final = [
    ("Filling a cache with custom resources: CPU seconds", "sync", "Workloads", "cpu"),
    ("Memory for each cached object: bytes", "sync", "Workloads", "bytes_per_object"),
    ("Taking in a change of a custom resource: CPU µs", "watch", "Workloads", "cpu_microseconds"),
    ("Reconciling from cold, 10 workers: CPU seconds", "reconcile", "10 workers", "cpu"),
]
_WIDTH, _ROW, _LABEL = 760, 20, 270


def chart(results: list[Result]) -> str:
    """Bars as long as each contestant's figure; the longest takes the whole width."""
    parts: list[str] = []
    y = 10
    for title, work, case, figure in _PANELS:
        rows = _rows(results, work, case, figure)
        if not rows:
            continue
        y += 24
        parts.append(f'<text x="10" y="{y}" class="title">{title}</text>')
        most = max(value for _, value in rows)
        for name, value in rows:
            y += _ROW
            length = max(1.0, (_WIDTH - _LABEL - 90) * value / most)
            kind = "ours" if name == "setpoint" else "theirs"
            parts.append(f'<text x="{_LABEL - 8}" y="{y}" text-anchor="end">{name}</text>')
            parts.append(
                f'<rect x="{_LABEL}" y="{y - 12}" width="{length:.0f}" height="14" class="{kind}"/>'
                f'<text x="{_LABEL + length + 6:.0f}" y="{y}">{_short(value)}</text>'
            )
        y += 12
    style = (
        "text{font:12px sans-serif;fill:#444}.title{font-weight:bold}.ours{fill:#2f6fdd}.theirs{fill:#b9c0cc}"
        "@media(prefers-color-scheme:dark){text{fill:#ccc}.theirs{fill:#59616e}}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 10}" role="img" '
        f'aria-label="Setpoint and its peers">\n<style>{style}</style>\n{body}\n</svg>\n'
    )


def _rows(results: Iterable[Result], work: str, case: str, figure: str) -> list[tuple[str, float]]:
    matching = [
        each for each in results if each["work"] == work and case in each.get("case", "") and figure in each
    ]
    first = matching[0]["case"] if matching else ""
    rows = [(each["contestant"], float(each[figure])) for each in matching if each["case"] == first]
    return [row for row in rows if not row[0].startswith("limit") and "metadata" not in row[0]]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


if __name__ == "__main__":
    write()
    print(f"wrote {PAGE.name} and {CHART.name}", file=sys.stderr)
