"""(2) How fast a cache takes in changes: MODIFIED events of 6 KB, from the recording, at full speed.

A thousand objects, changed again and again; a listener counts every event.  The clock begins when the cache
is synced and the server is told to go.  kopf is done when it has the last version of each: it leaves out what
came between.  What is slow is given a part of the events, and the figures are for each event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from bench.peers.contestants import Contestant, present
from bench.peers.objects import FIRST_VERSION
from bench.peers.process import compete
from bench.peers.rounds import Figures, Result, alternate, verify
from bench.peers.servers import Recorded, expected_of_recording, recorded

OBJECTS: Final = 1_000
EVENTS: Final = 40_000

_GO: Final = "controller_runtime"
CASES: Final = {
    "Pods": [
        Contestant("setpoint", "setpoint", {"kind": "Pod", "form": "typed"}),
        Contestant("controller-runtime, typed, protobuf", _GO, {"kind": "Pod", "form": "typed"}),
        Contestant("kube-rs, typed", "kube_rs", {"kind": "Pod", "form": "typed", "list": "stream"}),
        Contestant("kopf", "kopf", {"kind": "Pod", "form": "typed"}, slow=8),
        Contestant("kubernetes informer", "kubernetes", {"kind": "Pod", "form": "typed"}, slow=8),
    ],
    "Workloads": [
        Contestant("setpoint", "setpoint", {"kind": "Workload", "form": "typed"}),
        Contestant("controller-runtime, typed, JSON", _GO, {"kind": "Workload", "form": "typed"}, slow=2),
        Contestant(
            "controller-runtime, unstructured", _GO, {"kind": "Workload", "form": "unstructured"}, slow=4
        ),
        Contestant("kube-rs, typed", "kube_rs", {"kind": "Workload", "form": "typed", "list": "stream"}),
        Contestant(
            "kube-rs, dynamic", "kube_rs", {"kind": "Workload", "form": "unstructured", "list": "stream"}
        ),
        Contestant("kopf", "kopf", {"kind": "Workload", "form": "typed"}, slow=8),
        Contestant("kubernetes informer", "kubernetes", {"kind": "Workload", "form": "typed"}, slow=8),
    ],
}


def run(objects: int = OBJECTS, events: int = EVENTS) -> list[Result]:
    results = []
    for case, contestants in CASES.items():
        turns: dict[str, Callable[[], Figures]] = {
            each.name: partial(absorb, each, objects, events // each.slow) for each in present(contestants)
        }
        results += alternate("watch", case, turns)
    return results


def absorb(contestant: Contestant, objects: int, events: int) -> Figures:
    with recorded(objects, events, kinds=(contestant.asked["kind"],)) as server:
        return absorb_from(server, contestant, objects, events)


def absorb_from(server: Recorded, contestant: Contestant, objects: int, events: int) -> Figures:
    server.tell("rest")
    asked = {
        **contestant.asked,
        "work": "watch",
        "kubeconfig": str(server.kubeconfig),
        "count": objects,
        "events": events,
        "last": FIRST_VERSION + objects + 1 + events - objects,  # the lowest of the last versions
    }
    run = compete(
        contestant.name,
        contestant.command(),
        asked,
        environment=contestant.environment,
        when={"synced": lambda: server.tell("go")},
    )
    expected = expected_of_recording(objects, events)
    verify(contestant.name, {**run.told["checked"], **run.told["done"]}, {**expected, "events": events})
    return {
        "events": events,
        "events_per_second": events / run.wall("synced", "done"),
        "cpu_microseconds": run.cpu("synced", "done") / events * 1e6,
        "peak_megabytes": run.peak / 2**20,
    }
