"""A process that writes to a store until it is killed, and one that makes such processes quickly.

Run as a program it reads orders, a line of JSON each, from its input; for each it forks a child that opens
the store and writes, watches and compacts under load.  What the child asks and is answered goes out as a
line before it asks and after it is answered, so that the reader of the lines knows all that was acknowledged,
in the order in which it happened, however the child ended.  A fork takes milliseconds where a start of Python
takes tenths of a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sys
import traceback
from pathlib import Path
from typing import Any

from setpoint.server.storage.failpoints import VARIABLE, Failpoints
from setpoint.server.storage.log import Log
from setpoint.server.storage.protocol import Changed, EventType
from setpoint.server.storage.sqlite import SqliteStore
from tests.server.storage.stores import PODS, encode, pod, value

WRITERS, WRITES, PLACES = 8, 150, 20


def say(*words: object) -> None:
    """One line, in one write: it is out when this returns, and no kill can cut it in two."""
    os.write(1, json.dumps(words, separators=(",", ":")).encode() + b"\n")


async def live(order: dict[str, Any]) -> None:
    Log.STEP, Log.PAGES = 25, 40  # so that in a short life there are many
    points = Failpoints({VARIABLE: order["failpoints"]})
    store = await SqliteStore.open(Path(order["directory"]), failpoints=points)
    say("opened", store.revision)
    watches = [
        asyncio.create_task(watch(store, f"w{number}", order["known"], namespace))
        for number, namespace in enumerate(["", "ns0"])
    ]
    async with asyncio.TaskGroup() as group:
        for number in range(WRITERS):
            group.create_task(write(store, f"{order['cycle']}-{number}"))
        group.create_task(compact(store, order["known"]))
    for each in watches:
        each.cancel()
    await store.close()


async def write(store: SqliteStore, name: str) -> None:
    chance = random.Random(name)
    for number in range(WRITES):
        place = pod(f"p{chance.randrange(PLACES)}", f"ns{chance.randrange(2)}")
        found = store.get(place)
        type_: EventType = "ADDED" if not found else "DELETED" if chance.random() < 0.3 else "MODIFIED"
        seen, sent = found.revision if found else 0, f"{name}-{number}"
        say("asked", sent, type_, place, seen)
        padded = encode(f"{sent} {'x' * chance.choice([0, 100, 6_000])}")
        try:
            if type_ == "ADDED":
                record = await store.create(place, padded)
            elif type_ == "MODIFIED":
                record = await store.update(place, padded, seen)
            else:
                record = await store.delete(place, padded, seen)
        except Changed:
            say("refused", sent)
        else:
            say("done", sent, record.revision)


async def compact(store: SqliteStore, known: int) -> None:
    """Bit by bit, all that the parent has seen and nothing that it has not."""
    while store.compacted < known:
        await store.compact(min(known, store.compacted + 40))


async def watch(store: SqliteStore, name: str, after: int, namespace: str) -> None:
    with contextlib.closing(store.watch(PODS, namespace, after)) as watching:
        say("watching", name, after, namespace)
        while True:
            for event in await watching.next():
                record, previous = event.record, event.previous
                sent = value(record.data).partition(" ")[0]
                before = previous.revision if previous else 0
                say("event", name, record.revision, event.type, record.place, sent, before)
            say("bookmark", name, watching.progress)


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(live(order))
                os._exit(0)
            except BaseException:  # noqa: BLE001 - a child never comes back to the loop of its parent
                traceback.print_exc()
                os._exit(1)
        say("pid", pid)
        _, status = os.waitpid(pid, 0)
        say("ended", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
