"""What the work queue costs beside asyncio's own, which knows neither duplicates nor priorities nor time.

Every key is added, handed out and given back; each is one operation.  Both take turns in one process.

    python -m bench.workqueue
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from statistics import median
from typing import Final

from bench.measure import compared, cpu_seconds, in_turn
from setpoint.api.names import Key
from setpoint.metrics import Metrics
from setpoint.queue.workqueue import WorkQueue

KEYS: Final = 30_000
TIMES: Final = 5  # of the yardstick, which is so quick that once says little
ROUNDS: Final = 25


async def ours(keys: list[Key]) -> None:
    work: WorkQueue[Key, None] = WorkQueue("bench", Metrics())
    for key in keys:
        work.add(key)
    for _ in keys:
        work.done(await work.get())


async def yardstick(keys: list[Key]) -> None:
    for _ in range(TIMES):
        work: asyncio.Queue[Key] = asyncio.Queue()
        for key in keys:
            work.put_nowait(key)
        for _ in keys:
            await work.get()
            work.task_done()


def main() -> None:
    keys = [Key("shop", f"webapp-{number}") for number in range(KEYS)]
    pairs = in_turn(
        ROUNDS,
        partial(cpu_seconds, lambda: asyncio.run(ours(keys))),
        lambda: cpu_seconds(lambda: asyncio.run(yardstick(keys))) / TIMES,
    )
    said = {
        "bench": "workqueue",
        "operations_per_cpu_second": round(3 * KEYS / median(spent for spent, _ in pairs)),
        **compared(pairs),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
