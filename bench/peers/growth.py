"""(10) How cost grows: each work at 1, 4 and 16 times the objects, and the exponent that fits.

An exponent of 1 is linear; nothing of ours may grow faster.  Caches are filled from the recorded server,
which does not run out of memory; reconciles run on the real one; pods are created on our own.
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
            sync.limit(server, "Workload", expected)  # so that everything is encoded
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

        results += alternate("growth", f"server, {count:,} pods created", {OURS.name: turn})
    return results


def with_exponents(what: str, counts: Sequence[int], results: list[Result]) -> list[Result]:
    fitted: list[Result] = []
    for figure in ("cpu", "wall", "peak_megabytes"):
        costs = [result[figure] for result in results if figure in result]
        if len(costs) == len(counts):
            fitted.append(
                {
                    "work": "growth",
                    "case": f"{what}: exponent of {figure}",
                    "contestant": OURS.name,
                    "exponent": round(exponent(counts, costs), 3),
                }
            )
    return [*results, *fitted]


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of cost over size, both as logarithms, by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
