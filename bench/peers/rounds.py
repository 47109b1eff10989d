"""Rounds: every contestant once, then again, each time another first; medians at the end.

What else the machine does weighs on all of them or on none, and nobody always follows the same one.  A round
that fails, for whatever reason, is told and left out, and the rest goes on; who has fewer than two good ones
has failed.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any, Final, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.peers.process import Failed

ROUNDS: Final = 3
ENOUGH: Final = 2
Figures = dict[str, float]
Result = dict[str, Any]
T = TypeVar("T")


def alternate(
    work: str, case: str, contestants: Mapping[str, Callable[[], Figures]], *, rounds: int = ROUNDS
) -> list[Result]:
    """What each needed: the median of each figure, and every round's."""
    names = list(contestants)
    enough = min(ENOUGH, rounds)
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    lost: dict[str, list[str]] = {name: [] for name in names}
    with _progress() as progress:
        task = progress.add_task(f"{work}: {case}", total=rounds * len(names))
        for name in turns(names, rounds):
            progress.update(task, description=f"{work}: {case}: {name}")
            if rounds - len(lost[name]) >= enough:
                found = attempt(name, contestants[name])
                if isinstance(found, str):
                    lost[name].append(found)
                else:
                    runs[name].append(found)
            progress.advance(task)
    results = [
        {"work": work, "case": case, "contestant": name, **_result(runs[name], lost[name], enough)}
        for name in names
    ]
    for result in results:
        print(json.dumps(result), flush=True)
    return results


def turns(names: list[str], rounds: int) -> Iterable[str]:
    """Round after round, each beginning one further on."""
    for number in range(rounds):
        first = number % len(names) if names else 0
        yield from names[first:] + names[:first]


def attempt(name: str, run: Callable[[], T]) -> T | str:
    """What came of it; or, in few words, why nothing did, which is told at length."""
    try:
        return run()
    except Failed as failure:
        print(failure, file=sys.stderr)
        return str(failure).partition(";")[0]  # what follows is of this machine
    except Exception as error:  # noqa: BLE001 - one round is lost, whatever it was
        print(f"{name}: the harness failed:", file=sys.stderr)
        traceback.print_exc()
        return f"{name}: the harness failed with {type(error).__name__}"


def _result(runs: list[Figures], lost: list[str], enough: int) -> Result:
    if len(runs) < enough:
        return {"failed": lost[-1]}
    return {**medians(runs), **({"failed_rounds": lost} if lost else {})}


def medians(runs: list[Figures]) -> Result:
    """Of each figure; and its rounds, so that everyone can see how far they lie apart."""
    names = runs[0].keys()
    return {
        **{name: round(median(run[name] for run in runs), 4) for name in names},
        "rounds": {name: [round(run[name], 4) for run in runs] for name in names},
    }


def whole(part: float, one: float, times: float) -> float:
    """What all would have cost, from what a part of them did and what a single one does: to start is paid
    once."""
    return one + (part - one) * times


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
