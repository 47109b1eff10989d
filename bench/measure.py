"""How benches measure: CPU seconds, contestants in turn, memory in a fresh process.

CPU time rather than wall time, the best of several rounds, and contestants one after the other in each
round: what else the machine does then weighs on all of them or on none.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any


def cpu_seconds(work: Callable[[], object]) -> float:
    """What ``work`` costs; the garbage collector rests, and freeing the result is not counted."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        result = work()
        spent = time.process_time() - start
    finally:
        gc.enable()
    del result
    return spent


def best_of(rounds: int, contestants: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The fewest CPU seconds each contestant needed."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, work in contestants.items():
            best[name] = min(best[name], cpu_seconds(work))
    return best


def in_turn(
    rounds: int, ours: Callable[[], float], yardstick: Callable[[], float]
) -> list[tuple[float, float]]:
    """The CPU seconds of both, in each round; the first round, in which everything is new, is not counted.

    The shorter the turns, the more surely the machine is as quick for one as for the other.
    """
    return [(ours(), yardstick()) for _ in range(rounds + 1)][1:]


def compared(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """How dear ours is, and each round's ratio, so that everyone can see how far they lie apart."""
    rounds = [round(ours / yardstick, 3) for ours, yardstick in pairs]
    return {"times_yardstick": median(rounds), "rounds": rounds}


def in_fresh_process(*arguments: str) -> Any:
    """What ``python <arguments>`` prints, as JSON."""
    return json.loads(subprocess.run([sys.executable, *arguments], check=True, capture_output=True).stdout)


def say(what: str) -> None:
    """How far it is, to whoever waits."""
    print(f"bench: {what}", file=sys.stderr, flush=True)


def resident_bytes() -> int:
    """The memory that this process holds now."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], check=True, capture_output=True)
    return int(shown.stdout) * 1024
