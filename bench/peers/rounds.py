"""Rounds: every contestant once, then again; medians at the end.

What else the machine does weighs on all of them or on none.  A contestant that fails is left out of the
result, loudly, and the others go on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.peers.process import Failed

ROUNDS: Final = 3
Figures = dict[str, float]
Result = dict[str, Any]


def alternate(
    work: str, case: str, contestants: Mapping[str, Callable[[], Figures]], *, rounds: int = ROUNDS
) -> list[Result]:
    """What each needed: the median of each figure, and every round's."""
    runs: dict[str, list[Figures]] = {name: [] for name in contestants}
    failed: dict[str, str] = {}
    with _progress() as progress:
        task = progress.add_task(f"{work}: {case}", total=rounds * len(contestants))
        for _ in range(rounds):
            for name, run in contestants.items():
                progress.update(task, description=f"{work}: {case}: {name}")
                if name not in failed:
                    try:
                        runs[name].append(run())
                    except Failed as failure:
                        failed[name] = str(failure).partition(";")[0]  # what follows is of this machine
                        print(failure, file=sys.stderr)
                progress.advance(task)
    results = [
        {
            "work": work,
            "case": case,
            "contestant": name,
            **({"failed": failed[name]} if name in failed else medians(runs[name])),
        }
        for name in contestants
    ]
    for result in results:
        print(json.dumps(result), flush=True)
    return results


def medians(runs: list[Figures]) -> Result:
    """Of each figure; and its rounds, so that everyone can see how far they lie apart."""
    names = runs[0].keys()
    return {
        **{name: round(median(run[name] for run in runs), 4) for name in names},
        "rounds": {name: [round(run[name], 4) for run in runs] for name in names},
    }


def verify(name: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """It did the whole work, or its time is worth nothing."""
    differ = {key: (found.get(key), value) for key, value in expected.items() if found.get(key) != value}
    if differ:
        raise Failed(f"{name} did not do the whole work: (found, expected) {differ}")


def _progress() -> Progress:
    from rich.console import Console

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
