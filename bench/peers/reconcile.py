"""(3, 7) What it costs to bring 2,000 WebApps to their fixed point from cold, with 1, 10 and 50 workers.

Each wants one ConfigMap that it owns, and is told so in its status.  The wall clock stops when the last is
done; CPU and requests go on until it is quiet, with what one's own writes cause.  Two requests for each are
what nothing can do without.  Those who look after their children ("owns") see their own writes come back, and
may act on what they read before those came; so Go and Rust run without it, too, with 10 workers.  kopf has a
worker for each object, however many are asked for: it runs once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from bench.peers import objects
from bench.peers.contestants import Contestant, present
from bench.peers.process import Failed, Run, compete
from bench.peers.rounds import Figures, Result, alternate, verify
from bench.peers.servers import Real, real, writes

OBJECTS: Final = 2_000
WORKERS: Final = (1, 10, 50)
USUAL: Final = 10
CONTESTANTS: Final = [
    Contestant("setpoint", "setpoint"),
    Contestant("controller-runtime", "controller_runtime"),
    Contestant("controller-runtime, not owning", "controller_runtime", {"form": "alone"}),
    Contestant("kube-rs", "kube_rs"),
    Contestant("kube-rs, not owning", "kube_rs", {"form": "alone"}),
    Contestant("kopf", "kopf"),
]


def run(count: int = OBJECTS, workers: tuple[int, ...] = WORKERS) -> list[Result]:
    results = []
    with real() as server:
        server.define("WebApp")
        for number in workers:
            turns: dict[str, Callable[[], Figures]] = {
                each.name: partial(cold, each, server, count, number)
                for each in present(CONTESTANTS)
                if number == USUAL or not (each.asked or each.program == "kopf")
            }
            many = "worker" if number == 1 else "workers"
            results += alternate("reconcile", f"{count:,} WebApps, {number} {many}", turns)
    return results


def cold(contestant: Contestant, server: Real, count: int, workers: int) -> Figures:
    namespace = f"bench-{secrets.token_hex(4)}"
    server.load_webapps(namespace, count)
    before = server.requests()
    run = look(contestant, server, namespace, count, workers)
    asked = server.requests() - before
    check(contestant.name, server, namespace, count)
    server.clear(namespace)
    return {
        "wall": run.wall("start", "done"),
        "cpu": run.cpu("start", "quiet"),
        "cpu_milliseconds_per_object": run.cpu("start", "quiet") / count * 1e3,
        "requests": asked.total(),
        "requests_per_object": asked.total() / count,
        "writes": writes(asked),
        "peak_megabytes": run.peak / 2**20,
    }


def look(
    contestant: Contestant,
    server: Real,
    namespace: str,
    count: int,
    workers: int,
    *,
    resync: int = 0,
    when: Mapping[str, Callable[[], object]] | None = None,
) -> Run:
    asked: dict[str, Any] = {
        **contestant.asked,
        **({"resync": resync} if resync else {}),
        "work": "reconcile",
        "kubeconfig": str(server.kubeconfig),
        "namespace": namespace,
        "count": count,
        "workers": workers,
    }
    run = compete(contestant.name, contestant.command(), asked, environment=contestant.environment, when=when)
    verify(contestant.name, run.told["done"], {"count": count})
    return run


def check(name: str, server: Real, namespace: str, count: int) -> None:
    """Every WebApp has its child, as wanted and owned, and says so."""
    webapps = server.ask("GET", f"/apis/{objects.GROUP}/v1/namespaces/{namespace}/webapps")["items"]
    children = {
        each["metadata"]["name"]: each
        for each in server.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps")["items"]
    }
    for webapp in webapps:
        child = children.get(webapp["metadata"]["name"], {"metadata": {}})
        image, status = webapp["spec"]["image"], webapp.get("status", {})
        owners = [owner["uid"] for owner in child["metadata"].get("ownerReferences", [])]
        is_whole = (
            child.get("data") == {"image": image, "replicas": "1"}
            and owners == [webapp["metadata"]["uid"]]
            and status.get("observedImage") == image
            and status.get("replicas") == webapp["spec"]["replicas"]
        )
        if not is_whole:
            raise Failed(f"{name} did not do the whole work: {webapp} has {child}")
    verify(name, {"webapps": len(webapps)}, {"webapps": count})
