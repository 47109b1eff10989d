"""(5) What a restart costs where everything is as it should be: 10,000 WebApps are looked at, nothing to do.

Each contestant first brings its own 10,000 to their fixed point, which is not counted; then it is started
anew, round after round, in turn.  At the fixed point the only requests should be lists and watches.  kopf,
which is slow, has an eighth of the objects, and its times and requests are multiplied, but for what it takes
with a single one.

A resync looks at everything again without a restart: there, nothing at all should be asked.  Those take part
that have one.  Parents and children resync each in their own time, so that some are looked at twice.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.peers.contestants import Contestant, present
from bench.peers.process import Failed
from bench.peers.reconcile import CONTESTANTS, check, look
from bench.peers.rounds import Figures, Result, alternate, attempt, verify, whole
from bench.peers.servers import Real, real, writes

OBJECTS: Final = 10_000
WORKERS: Final = 10
SLOW: Final = {"kopf": 8}
RESYNC: Final = 20  # seconds: longer than it takes to start and to be quiet
RESYNCS: Final = {"setpoint", "controller-runtime"}


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A namespace where everything is as it should be, by the hands of one contestant."""

    contestant: Contestant
    namespace: str
    count: int


def run(count: int = OBJECTS, resync: int = RESYNC) -> list[Result]:
    with real() as server:
        server.define("WebApp")
        restarts: dict[str, Callable[[], Figures]] = {}
        resyncs: dict[str, Callable[[], Figures]] = {}
        for each in present([each for each in CONTESTANTS if not each.asked]):
            share = count // SLOW.get(each.program, 1)
            point = attempt(each.name, partial(settled, each, server, share))
            one = attempt(each.name, partial(settled, each, server, 1)) if share < count else None
            restarts[each.name] = partial(restart, server, point, one, count)
            if each.name in RESYNCS:
                resyncs[each.name] = partial(again, server, point, resync)
        case = f"{count:,} WebApps at their fixed point"
        return [*alternate("restart", case, restarts), *alternate("restart", f"{case}, resync", resyncs)]


def settled(contestant: Contestant, server: Real, count: int) -> FixedPoint:
    namespace = f"bench-{secrets.token_hex(4)}"
    server.load_webapps(namespace, count)
    look(contestant, server, namespace, count, WORKERS)
    check(contestant.name, server, namespace, count)
    return FixedPoint(contestant, namespace, count)


def restart(server: Real, point: FixedPoint | str, one: FixedPoint | str | None, count: int) -> Figures:
    """All of them; where the contestant has a part of them, as if it had all."""
    found = started(server, point)
    if one is None:
        return found
    single = started(server, one)
    times = (count - 1) / (found["objects"] - 1)
    scaled = ("wall", "cpu", "requests", "writes")
    found |= {name: whole(found[name], single[name], times) for name in scaled}
    return {**found, "cpu_microseconds_per_object": found["cpu"] / count * 1e6}


def started(server: Real, point: FixedPoint | str) -> Figures:
    if isinstance(point, str):
        raise Failed(f"it did not come to its fixed point: {point}")
    before = server.requests()
    run = look(point.contestant, server, point.namespace, point.count, WORKERS)
    asked = server.requests() - before
    check(point.contestant.name, server, point.namespace, point.count)
    return {
        "objects": point.count,
        "wall": run.wall("start", "done"),
        "cpu": run.cpu("start", "quiet"),
        "cpu_microseconds_per_object": run.cpu("start", "quiet") / point.count * 1e6,
        "requests": asked.total(),
        "writes": writes(asked),
        "settled_megabytes": run.marks["settled"].resident / 2**20,
    }


def again(server: Real, point: FixedPoint | str, resync: int) -> Figures:
    """Everything looked at once more, by a program that runs."""
    if isinstance(point, str):
        raise Failed(f"it did not come to its fixed point: {point}")
    counted: dict[str, Counter[str]] = {}

    def count(name: str) -> None:
        counted[name] = server.requests()

    begin, end = "quiet", "resynced, quiet"
    when = {name: partial(count, name) for name in (begin, end)}
    run = look(point.contestant, server, point.namespace, point.count, WORKERS, resync=resync, when=when)
    verify(point.contestant.name, run.told["resynced"], {"count": point.count})
    asked = counted[end] - counted[begin]
    return {
        "objects": point.count,
        "cpu": run.cpu(begin, end),
        "cpu_microseconds_per_object": run.cpu(begin, end) / point.count * 1e6,
        "requests": asked.total(),
        "writes": writes(asked),
        "settled_megabytes": run.marks["settled"].resident / 2**20,
    }
