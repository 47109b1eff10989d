"""(4) How late a change is looked at: 10,000 WebApps in the cache, 100 changes a second.

From the moment before the change is sent until the reconcile for it begins: the API server's own time is in
it, and the same for all.  The reconcile itself does nothing but look at the clock.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Callable
from functools import partial
from statistics import median, quantiles
from threading import Thread
from typing import Final

from bench.peers import objects
from bench.peers.contestants import Contestant, present
from bench.peers.process import compete
from bench.peers.reconcile import CONTESTANTS
from bench.peers.rounds import Figures, Result, alternate
from bench.peers.servers import Real, real

OBJECTS: Final = 10_000
PER_SECOND: Final = 100
SECONDS: Final = 10
WORKERS: Final = 10
CHANGERS: Final = 4  # connections, so that one slow write does not hold up the next


def run(count: int = OBJECTS, seconds: int = SECONDS) -> list[Result]:
    with real() as server:
        server.define("WebApp")
        namespace = f"bench-{secrets.token_hex(4)}"
        server.load_webapps(namespace, count)
        turns: dict[str, Callable[[], Figures]] = {
            each.name: partial(live, each, server, namespace, count, seconds)
            for each in present(CONTESTANTS)
            if not each.asked
        }
        return alternate("steady", f"{count:,} WebApps, {PER_SECOND} changes a second", turns)


def live(contestant: Contestant, server: Real, namespace: str, count: int, seconds: int) -> Figures:
    events = PER_SECOND * seconds
    asked = {
        **contestant.asked,
        "work": "steady",
        "kubeconfig": str(server.kubeconfig),
        "namespace": namespace,
        "count": count,
        "events": events,
        "workers": WORKERS,
    }
    run = compete(
        contestant.name,
        contestant.command(),
        asked,
        environment=contestant.environment,
        when_synced=lambda: Thread(
            target=change, args=(server, namespace, count, events), daemon=True
        ).start(),
    )
    late = run.told["done"]["late"]
    return {
        "p50_milliseconds": median(late),
        "p99_milliseconds": quantiles(late, n=100)[-1],
        "cpu_microseconds_per_change": run.cpu("synced", "done") / events * 1e6,
        "settled_megabytes": run.marks["settled"].resident / 2**20,
    }


def change(server: Real, namespace: str, count: int, events: int) -> None:
    """So many changes, each of another object, evenly over the time."""
    began = time.monotonic() + 0.5

    def some(first: int) -> None:
        connection = server.connection()
        for number in range(first, events, CHANGERS):
            time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
            path = f"/apis/{objects.GROUP}/v1/namespaces/{namespace}/webapps/webapp-{number * 7 % count}"
            body = json.dumps({"spec": {"image": str(time.time_ns())}})
            connection.request("PATCH", path, body, {"Content-Type": "application/merge-patch+json"})
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != http.client.OK:
                raise RuntimeError(f"PATCH {path}: {answer.status} {said.decode()}")

    for first in range(CHANGERS):
        Thread(target=some, args=(first,), daemon=True).start()
