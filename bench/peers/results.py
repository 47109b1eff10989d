"""What was measured, as it is kept in ``docs/benchmarks.jsonl``; and what one may make of it.

Promises:

1. Each line says of which run it is.  A work that is measured again replaces its own lines, so that figures
   which are divided by each other are always of one run.
2. A whole run leaves nothing of those before it; until its first work is done, they stay.
3. A figure is compared in the case that was named, and in no other.
4. Who was given a part of the work is known by it, and what it holds is then compared with nothing.

Filled by ``bench/__main__.py``; read by ``report.py`` and ``chart.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.peers.machine import ROOT, machine
from bench.peers.rounds import Result

RESULTS: Final = ROOT / "docs" / "benchmarks.jsonl"
OURS: Final = "setpoint"
LIMIT: Final = "limit: curl"
_MORE_IS_BETTER: Final = {"events_per_second", "operations_per_second", "operations_per_cpu_second"}
# Nobody knows what these would be for all objects: memory has a base, and requests come in pages.
_OF_A_PART: Final = {"peak_megabytes", "settled_megabytes", "checked_megabytes", "requests"}


def load(file: Path | None = None) -> list[Result]:
    file = file or RESULTS
    return [_whole(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def _whole(result: Result) -> Result:
    """With what follows from its figures."""
    if result.get("events_per_second"):
        return {**result, "wall_microseconds": 1e6 / result["events_per_second"]}
    return result


def keep(
    work: str,
    found: list[Result],
    *,
    run: str,
    is_whole: bool,
    seconds: float = 0.0,
    file: Path | None = None,
) -> None:
    """In place of what was known of this work; in a whole run, of everything that is not of it."""
    file = file or RESULTS
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    others = [each for each in known if each["work"] != work and (each.get("run") == run or not is_whole)]
    mine = [{"work": work, "machine": machine(), "took_seconds": round(seconds)}, *found]
    lines = [*others, *({**each, "run": run} for each in mine)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def runs(results: list[Result]) -> dict[str, list[str]]:
    """Of each run, its works."""
    found: dict[str, list[str]] = {}
    for each in results:
        works = found.setdefault(each.get("run", "unknown"), [])
        if each["work"] not in works:
            works.append(each["work"])
    return found


def cases(results: list[Result], work: str) -> Iterator[tuple[str, list[Result]]]:
    mine = [each for each in results if each["work"] == work and "case" in each and "contestant" in each]
    for case in dict.fromkeys(each["case"] for each in mine):
        yield case, [each for each in mine if each["case"] == case]


def rows_of(results: list[Result], work: str, case: str) -> list[Result]:
    """Of this case alone, however many objects it has: "Workloads" is not "Workloads, recorded"."""
    return [
        row for name, rows in cases(results, work) if re.sub(r"^[\d,]+ ", "", name) == case for row in rows
    ]


def row_of(rows: list[Result], contestant: str) -> Result:
    return next((row for row in rows if row["contestant"] == contestant), {})


def ratio_of(results: list[Result], work: str, case: str, figure: str, against: str) -> float | None:
    """Ours divided by theirs."""
    rows = rows_of(results, work, case)
    ours, theirs = row_of(rows, OURS), row_of(rows, against)
    if not is_comparable(theirs, ours, figure) or ours.get(figure) is None or not theirs.get(figure):
        return None
    return float(ours[figure] / theirs[figure])


def is_extrapolated(results: list[Result], work: str, case: str, against: str) -> bool:
    rows = rows_of(results, work, case)
    return is_part(row_of(rows, against), row_of(rows, OURS))


def is_part(row: Result, ours: Result) -> bool:
    """It was given fewer objects, or events, than we."""
    return any(name in row and row[name] < ours.get(name, 0) for name in ("objects", "events"))


def is_comparable(row: Result, ours: Result, figure: str) -> bool:
    return not (is_part(row, ours) and figure in _OF_A_PART)


def times(row: Result, rows: list[Result], figure: str) -> float | None:
    """How much of ours it needed, or for rates, how much of its own we reach; None where nothing can be said.

    A cache of metadata alone is compared with ours of metadata alone.
    """
    ours = row_of(rows, f"{OURS}, metadata" if "metadata" in row["contestant"] else OURS)
    mine, theirs = ours.get(figure), row.get(figure)
    if not mine or theirs is None or not is_comparable(row, ours, figure):
        return None
    if figure in _MORE_IS_BETTER:
        return float(mine / theirs) if theirs else None
    return float(theirs / mine)
