"""The short form, for CI: has anything become dearer?  It needs no Go, Rust, curl or cluster.

Ours and a yardstick (plain Python on the same bytes, the same machine, in the same minute) take turns; what
is compared is the ratio of their CPU seconds, with the ratio that is committed in ``bench/baselines.toml``.
Processors differ in it, so each has baselines of its own; on one that has none, the highest of all count.
More than 30 percent above it fails.  Noise is met with rounds: the median of the rounds' own ratios, and
where that is too high, as many rounds again, before anything is said.

    python -m bench --short             compare
    python -m bench --short --write     write the baselines anew, after a change that is worth its price
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Final

from bench.measure import in_fresh_process, say
from bench.peers import sync, watch
from bench.peers.contestants import Contestant
from bench.peers.machine import processor
from bench.peers.servers import Recorded, expected_of_recording, recorded

BASELINES: Final = Path(__file__).parent.parent / "baselines.toml"
MOST: Final = 1.3
ROUNDS: Final = 5
OBJECTS: Final = 10_000
CHANGED: Final = 500
EVENTS: Final = 30_000

Tables = dict[str, dict[str, float]]  # by processor, the ratio of each case
Rounds = Callable[[], list[float]]  # the ratio of each: ours to the yardstick


_running: Final = ExitStack()  # the recorded servers, until all is measured


@cache
def _server(objects: int, events: int) -> Recorded:
    return _running.enter_context(recorded(objects, events))


def _sync(program: str) -> float:
    contestant = Contestant(program, program, {"form": "typed"})
    return sync.fill(contestant, _server(OBJECTS, 0), "Workload", expected_of_recording(OBJECTS))["cpu"]


def _watch(program: str) -> float:
    contestant = Contestant(program, program, {"kind": "Workload", "form": "typed"})
    found = watch.absorb_from(_server(CHANGED, EVENTS), contestant, CHANGED, EVENTS)
    return found["cpu_microseconds"]


def _in_turn(cpu: Callable[[str], float]) -> list[float]:
    """Each in a process of its own, one after the other."""
    return [cpu("setpoint") / cpu("yardstick") for _ in range(ROUNDS)]


def _alone(module: str) -> list[float]:
    """Those of a bench whose contestants share a process."""
    found: list[float] = in_fresh_process("-m", module)["rounds"]
    return found


CASES: Final[dict[str, Rounds]] = {
    "sync": partial(_in_turn, _sync),
    "watch": partial(_in_turn, _watch),
    "queue": partial(_alone, "bench.workqueue"),
    "look": partial(_alone, "bench.look"),
    "imports": partial(_alone, "bench.imports"),
}


def main(*, write: bool) -> int:
    """How many have become dearer, or could not be compared."""
    with _running:
        return _compare(write=write)


def _compare(*, write: bool) -> int:
    tables: Tables = tomllib.loads(BASELINES.read_text()) if BASELINES.exists() else {}
    baselines = tables.get(processor()) or _highest(tables)
    measured: dict[str, float] = {}
    dearer = []
    if not write and (missing := sorted(CASES.keys() - baselines.keys())):
        print(
            f"{BASELINES.name} has no baseline of {', '.join(missing)}: nothing would fail, however dear. "
            "Write it, and commit it: python -m bench --short --write",
            file=sys.stderr,
        )
        return len(missing)
    for name, rounds in CASES.items():
        say(f"short: {name}")
        ratios = rounds()
        most = baselines.get(name, float("inf")) * MOST
        if median(ratios) > most and not write:
            ratios += rounds()
        measured[name] = round(median(ratios), 3)
        said = {
            "short": name,
            "ratio": measured[name],
            "baseline": baselines.get(name),
            "at_most": round(most, 3),
        }
        print(json.dumps({**said, "rounds": [round(each, 3) for each in ratios]}), flush=True)
        if measured[name] > most:
            dearer.append(f"{name}: {measured[name]} times its yardstick, {most:.2f} at most")
    if write:
        _write({**tables, processor(): measured})
        return 0
    if dearer:
        print(
            f"CPU has become dearer: {'; '.join(dearer)}. "
            "If that is worth its price: python -m bench --short --write"
        )
    return len(dearer)


def _highest(tables: Tables) -> dict[str, float]:
    names = {name for table in tables.values() for name in table}
    return {name: max(table.get(name, 0.0) for table in tables.values()) for name in names}


def _write(tables: Tables) -> None:
    lines = [
        "# CPU seconds of ours for each of plain Python's on the same bytes: python -m bench --short --write"
    ]
    for name, measured in sorted(tables.items()):
        lines += ["", f"[{json.dumps(name)}]", *(f"{case} = {ratio}" for case, ratio in measured.items())]
    BASELINES.write_text("\n".join(lines) + "\n")
