"""What deduplication, priorities and fairness cost: ``Schedule`` against a bare heap of the same keys.

Ten thousand keys, each asked for ten times in shuffled order, then drained.  The heap without deduplication
hands out each of them ten times, and knows neither priorities nor what is taken.  Memory is what a fresh
process holds more with 100,000 keys waiting, all of them due, than with the keys alone.

    python -m bench.schedule
"""

from __future__ import annotations

import gc
import heapq
import json
import random
import sys
from functools import partial

from bench.measure import best_of, in_fresh_process, resident_bytes
from setpoint.api.names import Key
from setpoint.queue.schedule import Schedule

KEYS = 10_000
TIMES = 10
WAITING = 100_000
ROUNDS = 7


def some_keys(number: int) -> list[Key]:
    return [Key(f"namespace-{each % 50}", f"webapp-{each}") for each in range(number)]


def requests() -> list[Key]:
    asked = some_keys(KEYS) * TIMES
    random.Random(0).shuffle(asked)
    return asked


def with_schedule(asked: list[Key]) -> int:
    schedule, taken = Schedule[Key](), 0
    for at, key in enumerate(asked):
        schedule.add(key, at, priority=-(at % 2))
    while (next_ := schedule.take(len(asked))) is not None:
        schedule.done(next_.key)
        taken += 1
    return taken


def with_bare_heap(asked: list[Key]) -> int:
    heap: list[tuple[int, Key]] = []
    for at, key in enumerate(asked):
        heapq.heappush(heap, (at, key))
    taken = 0
    while heap:
        heapq.heappop(heap)
        taken += 1
    return taken


def hold() -> None:
    """Let many keys be due: what a fresh process is asked to do."""
    keys = some_keys(WAITING)
    gc.collect()
    before = resident_bytes()
    schedule = Schedule[Key]()
    for at, key in enumerate(keys):
        schedule.add(key, at)
    assert schedule.stats(WAITING).due == {0: WAITING}
    gc.collect()
    print(resident_bytes() - before)


def main() -> None:
    asked = requests()
    assert with_schedule(asked) == KEYS, "each key must be handed out exactly once"
    assert with_bare_heap(asked) == KEYS * TIMES
    best = best_of(ROUNDS, {"ours": partial(with_schedule, asked), "heap": partial(with_bare_heap, asked)})
    print(
        json.dumps(
            {
                "bench": "schedule",
                "adds_per_second": round(len(asked) / best["ours"]),
                "microseconds_per_key": round(best["ours"] / KEYS * 1e6, 1),
                "times_yardstick": round(best["ours"] / best["heap"], 2),
                "times_yardstick_at_most": 1.5,
                "bytes_per_waiting_key": in_fresh_process("-m", "bench.schedule", "hold") // WAITING,
                "bytes_per_waiting_key_at_most": 500,
            }
        )
    )


if __name__ == "__main__":
    hold() if sys.argv[1:] == ["hold"] else main()
