"""(5) What a restart costs where everything is as it should be: 10,000 WebApps are looked at, nothing to do.

Each contestant first brings its own 10,000 to their fixed point, which is not counted; then it is started
anew, round after round.  At the fixed point the only requests should be lists and watches.  kopf, which is
slow, has a quarter of the objects, and its times and requests are multiplied.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from bench.peers.contestants import Contestant, present
from bench.peers.process import Failed
from bench.peers.reconcile import CONTESTANTS, after, check, look
from bench.peers.rounds import Figures, Result, alternate
from bench.peers.servers import Real, real

OBJECTS: Final = 10_000
WORKERS: Final = 10
SLOW: Final = {"kopf": 4}


def run(count: int = OBJECTS) -> list[Result]:
    results = []
    with real() as server:
        server.define("WebApp")
        for each in present(CONTESTANTS):
            if each.asked:
                continue
            try:
                share = count // SLOW.get(each.program, 1)
                with settled(each, server, share) as namespace:
                    turns: dict[str, Callable[[], Figures]] = {
                        each.name: partial(restart, each, server, namespace, share, count // share)
                    }
                    results += alternate("restart", f"{count:,} WebApps at their fixed point", turns)
            except Failed as failure:
                print(failure, flush=True)
    return results


@contextmanager
def settled(contestant: Contestant, server: Real, count: int) -> Iterator[str]:
    namespace = f"bench-{secrets.token_hex(4)}"
    server.load_webapps(namespace, count)
    look(contestant, server, namespace, count, WORKERS)
    check(contestant.name, server, namespace, count)
    yield namespace
    server.clear(namespace)


def restart(contestant: Contestant, server: Real, namespace: str, count: int, times: int) -> Figures:
    before = server.requests()
    run = look(contestant, server, namespace, count, WORKERS)
    asked = after(server, before)
    return {
        "objects": count,
        "wall": run.wall("start", "done") * times,
        "cpu": run.cpu("start", "quiet") * times,
        "cpu_microseconds_per_object": run.cpu("start", "quiet") / count * 1e6,
        "requests": asked.total() * times,
        "writes": sum(asked[verb] for verb in ("POST", "PUT", "PATCH", "APPLY", "DELETE")) * times,
        "settled_megabytes": run.marks["settled"].resident / 2**20,
    }
