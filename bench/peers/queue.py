"""(6) Operations of the work queue: every key is added, handed out and given back; each is one.

One thread feeds and drains.  Setpoint's queue knows priorities, ageing and reasons, and keeps metrics; Go's
two are client-go's, with metrics off, and controller-runtime's with priorities.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from bench.peers.contestants import Contestant, present
from bench.peers.process import compete
from bench.peers.rounds import Figures, Result, alternate, verify

KEYS: Final = 200_000
CONTESTANTS: Final = [
    Contestant("setpoint", "setpoint"),
    Contestant("client-go workqueue", "controller_runtime", {"form": "workqueue"}),
    Contestant("controller-runtime priorityqueue", "controller_runtime", {"form": "priority"}),
]


def run(keys: int = KEYS) -> list[Result]:
    turns: dict[str, Callable[[], Figures]] = {
        each.name: partial(drain, each, keys) for each in present(CONTESTANTS)
    }
    return alternate("queue", f"{keys:,} keys", turns)


def drain(contestant: Contestant, keys: int) -> Figures:
    asked = {**contestant.asked, "work": "queue", "count": keys}
    run = compete(contestant.name, contestant.command(), asked)
    verify(contestant.name, run.told["done"], {"operations": 3 * keys})
    cpu = run.cpu("start", "done")
    return {
        "wall": run.wall("start", "done"),
        "cpu": cpu,
        "operations_per_second": 3 * keys / run.wall("start", "done"),
        "operations_per_cpu_second": 3 * keys / cpu,
        "peak_megabytes": run.peak / 2**20,
    }
