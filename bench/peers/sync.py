"""(1) How much it costs to fill a cache: 20,000 Pods and 20,000 custom resources; 100,000 from the recording.

The limit is what curl needs to fetch the same bytes and throw them away.  For built-in kinds Go speaks
protobuf; for custom resources nobody can.  Memory per object is what a program has made by the time it is
settled, less what it makes for a single object.  The slow are given an eighth of the objects, a namespace of
its own, and their times are multiplied, but for what a single object takes.  Some keep what came and others
what they made of it, so it is also measured what it costs to read everything once (``checked``), the way
users read: typed, and with a copy for each reader where that is the default.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from resource import struct_rusage
from typing import Final

from bench.peers.contestants import Contestant, present
from bench.peers.objects import PATHS, PLURALS
from bench.peers.process import Failed, compete
from bench.peers.rounds import Figures, Result, alternate, attempt, verify, whole
from bench.peers.servers import PART, Expected, Real, Recorded, expected_of_recording, real, recorded

OBJECTS: Final = 20_000
SLOW: Final = 8
RECORDED: Final = 100_000
WHERE: Final = {kind: f"{path}/{PLURALS[kind]}" for kind, path in PATHS.items()}
Single = tuple[Contestant, Figures | str]  # what one object costs it, or why that is not known
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
    Contestant("controller-runtime, typed, plain LIST, gzip", _GO, _TYPED | {"lists": "packed"}, PLAIN),
    Contestant("controller-runtime, unstructured", _GO, _UNSTRUCTURED),
    Contestant("controller-runtime, metadata", _GO, _METADATA),
    Contestant("kube-rs, typed", "kube_rs", _TYPED | {"list": "pages"}),
    Contestant("kube-rs, typed, streamed", "kube_rs", _TYPED | {"list": "stream"}),
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
            single, _ = server.load(kind, 1, 1)
            ones = with_one(server, kind, single, CONTESTANTS)
            found = server.load(kind, objects, objects // SLOW)
            results += on(server, kind, found, f"{objects:,} {kind}s", ones)
    with recorded(1) as stub:
        ones = with_one(stub, "Workload", expected_of_recording(1), FEW)
    with recorded(more, lists=("whole", "pages", "stream")) as stub:
        expected = expected_of_recording(more)
        results += on(stub, "Workload", (expected, {}), f"{more:,} Workloads, recorded", ones)
    return results


def with_one(
    server: Real | Recorded, kind: str, single: Expected, contestants: list[Contestant]
) -> list[Single]:
    """What each needs where there is one object: what it costs to be there at all."""
    return [
        (each, attempt(each.name, partial(fill, each, server, kind, single))) for each in present(contestants)
    ]


def on(
    server: Real | Recorded,
    kind: str,
    found: tuple[Expected, Expected],
    case: str,
    ones: list[Single],
) -> list[Result]:
    """Those contestants that tried one."""
    expected, part = found
    turns: dict[str, Callable[[], Figures]] = {"limit: curl": partial(limit, server, kind, expected)}
    for each, one in ones:
        turns[each.name] = partial(fill, each, server, kind, part if each.slow > 1 else expected, one)
    limit(server, kind, expected)  # so that the server is warm
    return alternate("sync", case, turns)


def fill(
    contestant: Contestant,
    server: Real | Recorded,
    kind: str,
    expected: Expected,
    one: Figures | str | None = None,
) -> Figures:
    """``one`` is what it needs for a single object, which is paid once; None: nothing is known of that."""
    if isinstance(one, str):
        raise Failed(f"it failed with a single object: {one}")
    before = server.requests()
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
    count, held = expected["count"], run.grown("start", "settled")
    figures: Figures = {
        "objects": count,
        "wall": run.wall("start", "done"),
        "cpu": run.cpu("start", "done"),
        "held_bytes": held,
        "bytes_per_object": held / count,
        "peak_megabytes": run.peak / 2**20,
        "settled_megabytes": run.marks["settled"].resident / 2**20,
        "checked_wall": run.wall("settled", "checked") * contestant.slow,
        "checked_cpu": run.cpu("settled", "checked") * contestant.slow,
        "checked_megabytes": run.marks["checked"].resident / 2**20,
        "requests": (server.requests() - before).total(),
    }
    if one is not None:
        figures["bytes_per_object"] = (held - one["held_bytes"]) / (count - one["objects"])
        figures |= {name: whole(figures[name], one[name], contestant.slow) for name in ("wall", "cpu")}
    return figures


def limit(server: Real | Recorded, kind: str, expected: Expected) -> Figures:
    """What curl needs for the whole list, as JSON, less what it needs to be started at all."""
    url = f"{server.url}{WHERE[kind]}"
    asked = ["--silent", "--fail", "--noproxy", "*", "--max-time", "120", *server.curl()]
    _, started, loaded = _curl(["--version"])
    said, wall, usage = _curl([*asked, "-o", os.devnull, "-w", "%{size_download}", url])
    if (size := int(said)) < expected["count"] * 4000:
        raise Failed(f"curl {url} ended after {size} bytes")
    return {
        "wall": wall - started,
        "cpu": usage.ru_utime + usage.ru_stime - loaded.ru_utime - loaded.ru_stime,
        "megabytes": size / 2**20,
        "peak_megabytes": usage.ru_maxrss / 2**10,
    }


def _curl(asked: list[str]) -> tuple[bytes, float, struct_rusage]:
    """What it said, how long it took, and what the kernel says it needed."""
    began = time.perf_counter()
    with subprocess.Popen(["curl", *asked], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"curl ended with {process.returncode}; asked for {asked}")
    return said, time.perf_counter() - began, usage
