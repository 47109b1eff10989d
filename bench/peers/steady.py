"""(4) How late a change is looked at: 10,000 WebApps in the cache, 100 changes a second.

From the moment before the change is sent until the reconcile for it begins: the API server's own time is in
it, and the same for all.  The reconcile itself does nothing but look at the clock.

What else the machine does shows in the slowest of a hundred first.  So it is also measured how long the
server takes to answer each change: where that says that it was held up, whoever was watching, the turn is
taken once more, and the calmer of the two counts.
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
from bench.peers.process import Failed, compete
from bench.peers.reconcile import CONTESTANTS
from bench.peers.rounds import Figures, Result, alternate, verify
from bench.peers.servers import Real, real

OBJECTS: Final = 10_000
PER_SECOND: Final = 100
SECONDS: Final = 10
WORKERS: Final = 10
CALM: Final = 10.0  # milliseconds in which the server answers 99 of 100 changes, where nobody holds it up
CHANGERS: Final = 4  # connections, so that one slow write does not hold up the next


def run(count: int = OBJECTS, seconds: int = SECONDS) -> list[Result]:
    with real() as server:
        server.define("WebApp")
        namespace = f"bench-{secrets.token_hex(4)}"
        server.load_webapps(namespace, count)
        turns: dict[str, Callable[[], Figures]] = {
            each.name: partial(calm, each, server, namespace, count, seconds)
            for each in present(CONTESTANTS)
            if not each.asked
        }
        case = f"{count:,} WebApps, {PER_SECOND} changes a second"
        return alternate("steady", case, turns)


def calm(contestant: Contestant, server: Real, namespace: str, count: int, seconds: int) -> Figures:
    first = live(contestant, server, namespace, count, seconds)
    if first["answered_p99_milliseconds"] <= CALM:
        return first
    second = live(contestant, server, namespace, count, seconds)
    return min(first, second, key=lambda figures: figures["answered_p99_milliseconds"])


def live(contestant: Contestant, server: Real, namespace: str, count: int, seconds: int) -> Figures:
    events = PER_SECOND * seconds
    changes = Changes(server, namespace, count, events)
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
        when={"synced": changes.start},
        meanwhile=changes.check,
    )
    late: dict[str, float] = run.told["done"]["late"]
    strange = late.keys() - changes.sent
    verify(
        contestant.name, {"changes": len(late), "strange": len(strange)}, {"changes": events, "strange": 0}
    )
    return {
        "p50_milliseconds": median(late.values()),
        "p99_milliseconds": quantiles(late.values(), n=100)[-1],
        "answered_p99_milliseconds": quantiles(changes.answered, n=100)[-1],
        "cpu_microseconds_per_change": run.cpu("synced", "done") / events * 1e6,
        "settled_megabytes": run.marks["settled"].resident / 2**20,
    }


class Changes:
    """So many changes, each of another object, evenly over the time, by threads.

    Each gives an object an image that nothing had before: the time.  What was sent is known here, and so is
    why it could not be: else it would look as if the contestant had not seen it.
    """

    def __init__(self, server: Real, namespace: str, count: int, events: int) -> None:
        self._server = server
        self._count = count
        self._events = events
        self._path = f"/apis/{objects.GROUP}/v1/namespaces/{namespace}/webapps"
        self._errors: list[Exception] = []
        self.sent: set[str] = set()
        self.answered: list[float] = []  # after so many milliseconds

    def start(self) -> list[Thread]:
        began = time.monotonic() + 0.5
        threads = [Thread(target=self._some, args=(each, began), daemon=True) for each in range(CHANGERS)]
        for thread in threads:
            thread.start()
        return threads

    def check(self) -> None:
        if self._errors:
            raise Failed(f"the changes could not be made: {self._errors[0]}")

    def _some(self, first: int, began: float) -> None:
        try:
            connection = self._server.connection()
            for number in range(first, self._events, CHANGERS):
                time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
                self._change(connection, f"{self._path}/webapp-{number * 7 % self._count}")
        except Exception as error:  # noqa: BLE001 - whatever it was, it is told
            self._errors.append(error)

    def _change(self, connection: http.client.HTTPSConnection, path: str) -> None:
        image = str(time.time_ns())
        self.sent.add(image)
        body = json.dumps({"spec": {"image": image}})
        connection.request("PATCH", path, body, {"Content-Type": "application/merge-patch+json"})
        answer = connection.getresponse()
        said = answer.read()
        self.answered.append((time.time_ns() - int(image)) / 1e6)
        if answer.status != http.client.OK:
            raise RuntimeError(f"PATCH {path}: {answer.status} {said.decode()}")
