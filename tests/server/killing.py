"""A process that makes servers quickly: it has read the code already, and forks one for each order.

Run as a program it reads orders, a line of JSON each, from its input; each becomes ``setpoint up`` with the
arguments and failpoints that it names, in a process of its own, which is there to be killed.  What the server
says goes out as it is; before it comes a line with its process id, after it one with its exit code.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Self

from setpoint.cli.main import main
from setpoint.server import server
from setpoint.server.storage.failpoints import VARIABLE, Failpoints
from setpoint.server.storage.log import Log
from setpoint.server.storage.sqlite import SqliteStore


class _Forgetful(SqliteStore):
    """A store that compacts under load, bit by bit, up to a revision."""

    upto = 0
    points = Failpoints({})

    @classmethod
    async def open(cls, directory: str | Path, **_: Any) -> Self:
        store = await super().open(directory, failpoints=cls.points)
        store._forgetting = asyncio.create_task(store._forget())
        return store

    _forgetting: asyncio.Task[None]

    async def _forget(self) -> None:
        begun = self.revision
        while self.revision < begun + 15:
            await asyncio.sleep(0.01)
        while self.compacted < self.upto:
            await self.compact(min(self.upto, self.compacted + 40))


def say(*words: object) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def live(order: dict[str, Any]) -> None:
    Log.STEP, Log.PAGES = 10, 20  # so that in a short life there are many
    _Forgetful.upto = order["compact"]
    _Forgetful.points = Failpoints({VARIABLE: order["failpoints"]})
    server.SqliteStore = _Forgetful  # type: ignore[attr-defined]
    main(["up", *order["arguments"]])


def make() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                live(order)
            except BaseException:  # noqa: BLE001 - a child never comes back to the loop of its parent
                traceback.print_exc()
            os._exit(1)  # it was there to be killed
        say("pid", pid)
        _, status = os.waitpid(pid, 0)
        say("ended", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    make()
