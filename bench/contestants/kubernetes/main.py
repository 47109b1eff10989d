# mypy: ignore-errors
# ruff: noqa: ANN001, ANN003, ANN201, ANN202, ANN204
"""What the official client's informer does in the benchmarks, written as its users write it.

The one argument is JSON: which work, on what.  A line {"at": "start"} says that the program is loaded; then
come "done" with what it counted, "settled" when it gave back what memory it can, and, of a cache, "checked"
with what it holds.  After each it waits for a line, so that whoever measures it sees it at rest.

It has an informer with a cache, and no controllers: it takes part in the sync and the watch.  Typed objects
for Pods; plain dicts, which are cheaper, for the custom resource, for which it has no types.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import threading

from kubernetes import client, config
from kubernetes.informer import ADDED, MODIFIED, SharedInformer

ASKED = json.loads(sys.argv[1])


def say(at, **counted):
    print(json.dumps({"at": at, **counted}), flush=True)


def pause(at, **counted):
    """Say it, and wait for the harness to have looked."""
    say(at, **counted)
    sys.stdin.readline()


def settle():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pause("settled")


def list_workloads(**kwargs):
    """The custom resource's list, in the form an informer takes: its items have attributes."""
    api, kind = (
        client.CustomObjectsApi(),
        {"group": "bench.setpoint.dev", "version": "v1", "plural": "workloads"},
    )
    listed = api.list_namespaced_custom_object if "namespace" in kwargs else api.list_cluster_custom_object
    answer = listed(**kind, **kwargs)
    return answer if kwargs.get("watch") else Listed(answer)


class Listed:
    """What the informer reads of a list."""

    def __init__(self, answer):
        self.items = answer["items"]
        self.metadata = client.V1ListMeta(resource_version=answer["metadata"]["resourceVersion"])


def informer():
    namespace, core = ASKED.get("namespace"), client.CoreV1Api()
    if ASKED["kind"] == "Pod":
        pods = core.list_namespaced_pod if namespace else core.list_pod_for_all_namespaces
        return SharedInformer(pods, namespace=namespace)
    return SharedInformer(list_workloads, namespace=namespace)


def check(objects):
    if ASKED["kind"] == "Pod":
        versions = sum(int(each.metadata.resource_version) for each in objects)
        ports = sum(each.spec.containers[0].ports[0].container_port for each in objects)
    else:
        versions = sum(int(each["metadata"]["resourceVersion"]) for each in objects)
        ports = sum(each["spec"]["containers"][0]["ports"][0]["containerPort"] for each in objects)
    return {"count": len(objects), "versions": versions, "ports": ports}


def main():
    config.load_kube_config(ASKED["kubeconfig"])
    counts = {ADDED: 0, MODIFIED: 0}
    wanted = {ADDED: ASKED["count"], MODIFIED: ASKED.get("events", 0)}
    reached = {kind: threading.Event() for kind in counts}

    def counted(kind):
        def count(_):
            counts[kind] += 1
            if counts[kind] == wanted[kind]:
                reached[kind].set()

        return count

    pause("start")
    kept = informer()
    kept.add_event_handler(ADDED, counted(ADDED))
    kept.add_event_handler(MODIFIED, counted(MODIFIED))
    kept.start()
    reached[ADDED].wait()
    if ASKED["work"] == "watch":
        say("synced")
        reached[MODIFIED].wait()
    pause("done", events=counts[MODIFIED])
    settle()
    pause("checked", **check(kept.cache.list()))


if __name__ == "__main__":
    main()
