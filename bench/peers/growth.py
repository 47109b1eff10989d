"""(10) How cost grows: each work at 1, 4 and 16 times the objects, and the exponents of what grows.

Every total has a base that is there with no objects at all, and would hide how the rest grows.  So the base
is taken off first: where the line through the two smallest sizes meets zero.  What is judged is the step
from 4 to 16 times: an exponent of 1 is linear, and ``LINEAR`` allows for noise.  What should not depend on
the number of objects (a GET, a change that one watcher sees) has no base to take off, and is judged from 1
to 16 times by ``FLAT``.

Caches are filled from the recorded server, which does not run out of memory; reconciles run on the real one;
pods are created, read, listed and changed on our own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from bench import server as embedded
from bench.peers import reconcile, sync
from bench.peers.contestants import Contestant
from bench.peers.rounds import Figures, Result, alternate
from bench.peers.servers import expected_of_recording, real, recorded

SYNCED: Final = (6_250, 25_000, 100_000)
RECONCILED: Final = (250, 1_000, 4_000)
SERVED: Final = (1_250, 5_000, 20_000)
OURS: Final = Contestant("setpoint", "setpoint", {"form": "typed"})

LINEAR: Final = 1.05  # 1, and a little noise
FLAT: Final = 0.25  # 16 times the objects may at most double it
_TOTALS: Final = {"cpu": LINEAR, "wall": LINEAR, "peak_megabytes": LINEAR}
JUDGED: Final[dict[str, dict[str, float]]] = {
    "sync": _TOTALS,
    "reconcile": _TOTALS,
    "server": {
        **_TOTALS,
        "list_milliseconds": LINEAR,
        "get_microseconds": FLAT,
        "change_microseconds": FLAT,
    },
}


def run(
    synced: Sequence[int] = SYNCED,
    reconciled: Sequence[int] = RECONCILED,
    served: Sequence[int] = SERVED,
) -> list[Result]:
    return [
        *with_exponents("sync", synced, sync_each(synced)),
        *with_exponents("reconcile", reconciled, reconcile_each(reconciled)),
        *with_exponents("server", served, serve_each(served)),
    ]


def sync_each(counts: Sequence[int]) -> list[Result]:
    results = []
    for count in counts:
        with recorded(count) as server:
            expected = expected_of_recording(count)
            turn = partial(sync.fill, OURS, server, "Workload", expected)
            results += alternate("growth", f"sync, {count:,} objects", {OURS.name: turn})
    return results


def reconcile_each(counts: Sequence[int]) -> list[Result]:
    results = []
    with real() as cluster:
        cluster.define("WebApp")
        for count in counts:
            turn = partial(reconcile.cold, Contestant("setpoint", "setpoint"), cluster, count, 10)
            results += alternate("growth", f"reconcile, {count:,} objects", {OURS.name: turn})
    return results


def serve_each(counts: Sequence[int]) -> list[Result]:
    results = []
    for count in counts:

        def turn(count: int = count) -> Figures:
            return asyncio.run(embedded.filled(count))

        results += alternate("growth", f"server, {count:,} pods", {OURS.name: turn})
    return results


def with_exponents(what: str, counts: Sequence[int], results: list[Result]) -> list[Result]:
    """The results, and an exponent of each figure that is judged."""
    fitted: list[Result] = []
    for figure, most in JUDGED[what].items():
        costs = [result[figure] for result in results if figure in result]
        if len(costs) != len(counts):
            continue
        if most == FLAT:
            base, found = 0.0, slope(counts[0], counts[-1], costs[0], costs[-1])
        else:
            base = base_of(counts, costs)
            found = slope(counts[-2], counts[-1], costs[-2] - base, costs[-1] - base)
        fitted.append(
            {
                "work": "growth",
                "of": what,
                "figure": figure,
                "base": round(base, 3),
                "exponent": round(found, 3),
                "at_most": most,
            }
        )
    return [*results, *fitted]


def base_of(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """What no objects at all would cost, by the two smallest sizes; nothing, where those show no line."""
    each = (costs[1] - costs[0]) / (sizes[1] - sizes[0])
    return max(0.0, costs[0] - each * sizes[0]) if each > 0 else 0.0


def slope(fewer: int, more: int, before: float, after: float) -> float:
    """The exponent that leads from one cost to the other."""
    if before <= 0 or after <= 0:
        return 0.0  # too little to be measured
    return math.log(after / before) / math.log(more / fewer)
