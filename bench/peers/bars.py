"""What is promised, and whether it was kept: ours divided by theirs, in the same run.

A promise that was not measured is said to be so; none disappears.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench import server as embedded
from bench.peers import growth
from bench.peers.results import LIMIT, OURS, is_extrapolated, ratio_of, row_of, rows_of
from bench.peers.rounds import Result

Bar = tuple[str, str, str, str, str, float]
BARS: Final[list[Bar]] = [
    ("sync", "Workloads", "cpu", "controller-runtime, typed", "at most", 0.25),
    ("sync", "Workloads", "cpu", "controller-runtime, unstructured", "at most", 0.25),
    ("sync", "Workloads", "cpu", "controller-runtime, typed, plain LIST", "at most", 0.5),
    ("sync", "Workloads", "cpu", "controller-runtime, typed, plain LIST, gzip", "at most", 0.5),
    ("sync", "Pods", "cpu", "controller-runtime, typed", "at most", 1.0),
    ("sync", "Pods", "cpu", "controller-runtime, typed, plain LIST, gzip", "at most", 1.0),
    ("sync", "Pods", "cpu", "kopf", "at most", 0.1),
    ("sync", "Workloads", "cpu", "kopf", "at most", 0.1),
    ("sync", "Pods", "bytes_per_object", "controller-runtime, typed", "at most", 0.65),
    ("sync", "Pods", "bytes_per_object", "controller-runtime, unstructured", "at most", 0.2),
    ("sync", "Workloads", "bytes_per_object", "controller-runtime, typed", "at most", 0.65),
    ("sync", "Workloads", "bytes_per_object", "controller-runtime, unstructured", "at most", 0.2),
    ("sync", "Pods", "wall", LIMIT, "at most", 2.0),
    ("sync", "Workloads", "wall", LIMIT, "at most", 2.0),
    ("sync", "Workloads, recorded", "wall", LIMIT, "at most", 2.0),
    ("watch", "Workloads", "events_per_second", "controller-runtime, typed, JSON", "at least", 8),
    ("watch", "Workloads", "events_per_second", "controller-runtime, unstructured", "at least", 8),
    ("watch", "Pods", "events_per_second", "controller-runtime, typed, protobuf", "at least", 3),
    ("watch", "Pods", "events_per_second", "kopf", "at least", 20),
    ("watch", "Workloads", "events_per_second", "kopf", "at least", 20),
    *(
        ("reconcile", f"WebApps, {workers}", figure, "controller-runtime", "at most", 1.0)
        for workers in ("1 worker", "10 workers", "50 workers")
        for figure in ("wall", "cpu", "requests_per_object")
    ),
    ("reconcile", "WebApps, 10 workers", "wall", "kopf", "at most", 0.5),
    ("reconcile", "WebApps, 10 workers", "cpu", "kopf", "at most", 0.25),
    ("steady", "WebApps, 100 changes a second", "p99_milliseconds", "controller-runtime", "at most", 1.5),
]
ABSOLUTE: Final[list[tuple[str, str, str, str, float]]] = [
    ("queue", "keys", "operations_per_second", "at least", 500_000),
    ("startup", "one WebApp", "idle_megabytes", "at most", 60),
    ("restart", "WebApps at their fixed point", "writes", "at most", 0),
    ("restart", "WebApps at their fixed point, resync", "requests", "at most", 0),
]
_UNITS: Final = {"_s": ", s", "_mb": ", MB", "_ms": ", ms", "_per, s": "s a second"}


def bars(results: list[Result]) -> Iterator[str]:
    """The rows of the table."""
    for work, case, figure, against, most, bar in BARS:
        ratio = ratio_of(results, work, case, figure, against)
        mark = "\\*" if is_extrapolated(results, work, case, against) else ""
        what = f"{work}, {case} | {words(figure)} | {against}"
        if "failed" in row_of(rows_of(results, work, case), against):
            mark = ": it failed"
        yield _bar(what, f"{most} {bar:g} times", ratio, (most, bar), mark)
    for work, case, figure, most, bar in ABSOLUTE:
        value = row_of(rows_of(results, work, case), OURS).get(figure)
        yield _bar(f"{work}, {case} | {words(figure)} | ", f"{most} {bar:,g}", value, (most, bar))
    exponents = {(each["of"], each["figure"]): each["exponent"] for each in results if "exponent" in each}
    for work, judged in growth.JUDGED.items():
        for figure, bar in judged.items():
            found = exponents.get((work, figure))
            what = f"growth, {work} | exponent of {words(figure)} | "
            yield _bar(what, f"at most {bar:g}", found, ("at most", bar))
    ratios: dict[str, float] = next((each["ratios"] for each in results if "ratios" in each), {})
    for figure, (title, most, bar) in embedded.BARS.items():
        what = f"server | {title} | kube-apiserver + etcd"
        yield _bar(what, f"{most} {bar:g} times", ratios.get(figure), (most, bar))


def _bar(what: str, asked: str, value: float | None, limit: tuple[str, float], mark: str = "") -> str:
    if value is None:
        return f"| {what} | {asked} | not measured{mark} | |"
    most, bar = limit
    is_met = value <= bar if most == "at most" else value >= bar
    shown = f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
    if shown == f"{bar:.2f}" and value != bar:
        shown = f"{value:.3f}"  # so that it is seen on which side it is
    return f"| {what} | {asked} | {shown}{mark} | {'met' if is_met else '**missed**'} |"


def words(figure: str) -> str:
    """A figure's name, read aloud; the server's bench has its units at the end."""
    for end, unit in _UNITS.items():
        if figure.endswith(end):
            figure = figure.removesuffix(end) + unit
    return figure.replace("_", " ").replace("cpu", "CPU").replace("megabytes", "MB")
