"""(1) How much it costs to fill a cache: 20,000 Pods and 20,000 custom resources; 100,000 from the recording.

The limit is what curl needs to fetch the same bytes and throw them away.  For built-in kinds Go speaks
protobuf; for custom resources nobody can.  Memory per object is what a program holds more, when it is
settled, than when it was loaded.  The slow are given a quarter of the objects, a namespace of its own, and
their times are multiplied.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from bench.peers.contestants import Contestant, present
from bench.peers.objects import PATHS, PLURALS
from bench.peers.process import Failed, compete
from bench.peers.rounds import Figures, Result, alternate, verify
from bench.peers.servers import PART, Expected, Real, Recorded, expected_of_recording, real, recorded

OBJECTS: Final = 20_000
SLOW: Final = 4
RECORDED: Final = 100_000
WHERE: Final = {kind: f"{path}/{PLURALS[kind]}" for kind, path in PATHS.items()}
PLAIN: Final = {"KUBE_FEATURE_WatchListClient": "false"}

_GO: Final = "controller_runtime"
_TYPED: Final = {"form": "typed"}
_UNSTRUCTURED: Final = {"form": "unstructured"}
_METADATA: Final = {"form": "metadata"}
CONTESTANTS: Final = [
    Contestant("setpoint", "setpoint", _TYPED),
    Contestant("setpoint, metadata", "setpoint", _METADATA),
    Contestant("controller-runtime, typed", _GO, _TYPED),
    Contestant("controller-runtime, typed, plain LIST", _GO, _TYPED, PLAIN),
    Contestant("controller-runtime, unstructured", _GO, _UNSTRUCTURED),
    Contestant("controller-runtime, metadata", _GO, _METADATA),
    Contestant("kube-rs, typed", "kube_rs", _TYPED | {"list": "pages"}),
    Contestant("kube-rs, typed, streamed", "kube_rs", _TYPED | {"list": "stream"}),
    Contestant("kube-rs, dynamic", "kube_rs", _UNSTRUCTURED | {"list": "pages"}),
    Contestant("kopf", "kopf", _TYPED | {"namespace": PART}, slow=SLOW),
    Contestant("kubernetes informer", "kubernetes", _TYPED | {"namespace": PART}, slow=SLOW),
]
FEW: Final = [
    each
    for each in CONTESTANTS
    if each.name in {"setpoint", "controller-runtime, typed", "kube-rs, typed"}  # the best of each
]


def run(objects: int = OBJECTS, more: int = RECORDED) -> list[Result]:
    results = []
    with real() as server:
        server.define("Workload")
        for kind in WHERE:
            expected, part = server.load(kind, objects, objects // SLOW)
            results += on(server, kind, (expected, part), f"{objects:,} {kind}s", CONTESTANTS)
    with recorded(more) as stub:
        expected = expected_of_recording(more)
        results += on(stub, "Workload", (expected, {}), f"{more:,} Workloads, recorded", FEW)
    return results


def on(
    server: Real | Recorded,
    kind: str,
    found: tuple[Expected, Expected],
    case: str,
    contestants: list[Contestant],
) -> list[Result]:
    expected, part = found
    turns: dict[str, Callable[[], Figures]] = {"limit: curl": partial(limit, server, kind, expected)}
    for each in present(contestants):
        turns[each.name] = partial(fill, each, server, kind, part if each.slow > 1 else expected)
    limit(server, kind, expected)  # so that the server is warm
    return alternate("sync", case, turns)


def fill(contestant: Contestant, server: Real | Recorded, kind: str, expected: Expected) -> Figures:
    before = _requests(server)
    asked = {
        **contestant.asked,
        "work": "sync",
        "kubeconfig": str(server.kubeconfig),
        "kind": kind,
        "count": expected["count"],
    }
    run = compete(contestant.name, contestant.command(), asked, environment=contestant.environment)
    is_whole = contestant.asked["form"] != "metadata"
    verify(contestant.name, run.told["checked"], expected if is_whole else {**expected, "ports": 0})
    held = run.marks["settled"].resident - run.marks["start"].resident
    return {
        "objects": expected["count"],
        "wall": run.wall("start", "done") * contestant.slow,
        "cpu": run.cpu("start", "done") * contestant.slow,
        "bytes_per_object": held / expected["count"],
        "peak_megabytes": run.peak / 2**20,
        "settled_megabytes": run.marks["settled"].resident / 2**20,
        "requests": _requests(server) - before,
    }


def limit(server: Real | Recorded, kind: str, expected: Expected) -> Figures:
    """What curl needs for the whole list, as JSON."""
    url = f"{server.url}{WHERE[kind]}"
    command = ["curl", "--silent", "--fail", *server.curl(), "-o", os.devnull, "-w", "%{size_download}", url]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        size = int(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or size < expected["count"] * 4000:
        raise Failed(f"curl {url} ended with {process.returncode} after {size} bytes")
    return {
        "wall": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "megabytes": size / 2**20,
        "peak_megabytes": usage.ru_maxrss / 2**10,
    }


def _requests(server: Real | Recorded) -> int:
    """How many there were so far, but for discovery."""
    time.sleep(0.2)  # a watch counts when it has ended
    return sum(count for verb, count in server.requests().items() if verb != "other")
