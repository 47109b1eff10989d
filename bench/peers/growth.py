"""(10) How cost grows: each work at 1, 4 and 16 times the objects, and the exponent that fits.

An exponent of 1 is linear; nothing of ours may grow faster.  Caches are filled from the recorded server,
which does not run out of memory; reconciles run on the real one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.peers import reconcile, sync
from bench.peers.contestants import Contestant
from bench.peers.rounds import Result, alternate
from bench.peers.servers import expected_of_recording, real, recorded

SYNCED: Final = (6_250, 25_000, 100_000)
RECONCILED: Final = (250, 1_000, 4_000)
OURS: Final = Contestant("setpoint", "setpoint", {"form": "typed"})


def run(synced: Sequence[int] = SYNCED, reconciled: Sequence[int] = RECONCILED) -> list[Result]:
    results = []
    for count in synced:
        with recorded(count) as server:
            expected = expected_of_recording(count)
            sync.limit(server, "Workload", expected)  # so that everything is encoded
            turn = partial(sync.fill, OURS, server, "Workload", expected)
            results += alternate("growth", f"sync, {count:,} objects", {OURS.name: turn})
    with real() as cluster:
        cluster.define("WebApp")
        for count in reconciled:
            turn = partial(reconcile.cold, Contestant("setpoint", "setpoint"), cluster, count, 10)
            results += alternate("growth", f"reconcile, {count:,} objects", {OURS.name: turn})
    half = len(synced)
    for what, counts, some in (("sync", synced, results[:half]), ("reconcile", reconciled, results[half:])):
        for figure in ("cpu", "wall", "peak_megabytes"):
            fitted = exponent(counts, [result[figure] for result in some])
            results.append(
                {
                    "work": "growth",
                    "case": f"{what}: exponent of {figure}",
                    "contestant": OURS.name,
                    "exponent": round(fitted, 3),
                }
            )
    return results


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of cost over size, both as logarithms, by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
