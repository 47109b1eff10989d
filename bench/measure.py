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


def in_fresh_process(*arguments: str) -> Any:
    """What ``python <arguments>`` prints, as JSON."""
    return json.loads(subprocess.run([sys.executable, *arguments], check=True, capture_output=True).stdout)


def resident_bytes() -> int:
    """The memory that this process holds now."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], check=True, capture_output=True)
    return int(shown.stdout) * 1024
