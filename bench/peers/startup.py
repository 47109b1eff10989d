"""(8) How soon an operator works, and what it holds when there is nothing to do.

From the moment the process is made until its only WebApp has its child and its status; then its memory, when
it has been idle for a while.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial

from bench.peers.contestants import Contestant, present
from bench.peers.reconcile import CONTESTANTS, check, look
from bench.peers.rounds import Figures, Result, alternate
from bench.peers.servers import Real, real


def run() -> list[Result]:
    with real() as server:
        server.define("WebApp")
        turns: dict[str, Callable[[], Figures]] = {
            each.name: partial(begin, each, server) for each in present(CONTESTANTS) if not each.asked
        }
        return alternate("startup", "one WebApp", turns)


def begin(contestant: Contestant, server: Real) -> Figures:
    namespace = f"bench-{secrets.token_hex(4)}"
    server.load_webapps(namespace, 1)
    run = look(contestant, server, namespace, 1, workers=1)
    check(contestant.name, server, namespace, 1)
    server.clear(namespace)
    return {
        "loaded_seconds": run.marks["start"].wall - run.spawned,
        "working_seconds": run.marks["done"].wall - run.spawned,
        "cpu": run.marks["quiet"].cpu,
        "idle_megabytes": run.marks["settled"].resident / 2**20,
    }
