"""What plain Python needs for the same bytes: the standard library, no guarantees, no framework.

It speaks the contestants' protocol.  The cache is a dict of dicts, filled from a streamed list by http.client
and json; the queue is asyncio's own, which knows neither duplicates nor priorities nor time.
"""

from __future__ import annotations

import asyncio
import base64
import ctypes
import gc
import http.client
import json
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATHS = {"Pod": ("/api/v1", "pods"), "Workload": ("/apis/bench.setpoint.dev/v1", "workloads")}


def say(at: str, **counted: Any) -> None:
    print(json.dumps({"at": at, **counted}), flush=True)


def pause(at: str, **counted: Any) -> None:
    """Say it, and wait for the harness to have looked."""
    say(at, **counted)
    sys.stdin.readline()


def settle() -> None:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pause("settled")


def events(asked: dict[str, Any]) -> Iterator[Any]:
    config = json.loads(Path(asked["kubeconfig"]).read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    connection = http.client.HTTPSConnection(
        cluster["server"].removeprefix("https://"), context=ssl.create_default_context(cadata=authority)
    )
    connection.request("GET", "/".join(PATHS[asked["kind"]]) + "?watch=true&sendInitialEvents=true")
    response = connection.getresponse()
    while line := response.readline():
        yield json.loads(line)


def cache(asked: dict[str, Any]) -> None:
    pause("start")
    held: dict[tuple[str, str], Any] = {}
    changed = 0
    for event in events(asked):
        metadata = event["object"]["metadata"]
        if event["type"] == "BOOKMARK":
            if asked["work"] == "sync":
                break
            say("synced")
            continue
        held[metadata["namespace"], metadata["name"]] = event["object"]
        changed += event["type"] == "MODIFIED"
        if asked["work"] == "watch" and changed == asked["events"]:
            break
    pause("done", events=changed)
    settle()
    versions = sum(int(each["metadata"]["resourceVersion"]) for each in held.values())
    ports = sum(each["spec"]["containers"][0]["ports"][0]["containerPort"] for each in held.values())
    pause("checked", count=len(held), versions=versions, ports=ports)


async def queue(asked: dict[str, Any]) -> None:
    keys = [("shop", f"webapp-{number}") for number in range(asked["count"])]
    pause("start")
    work: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    for key in keys:
        work.put_nowait(key)
    for _ in keys:
        await work.get()
        work.task_done()
    pause("done", operations=3 * len(keys))
    settle()


if __name__ == "__main__":
    what = json.loads(sys.argv[1])
    if what["work"] == "queue":
        asyncio.run(queue(what))
    else:
        cache(what)
