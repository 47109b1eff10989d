"""A process that creates and deletes ConfigMaps until it is told to end, and says when they were there.

Given a kubeconfig.  It says "begun" when it has.  Its answer is a line of JSON: for each name the version at
which it was created, and the last at which it was surely there (null: until the end).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from typing import Any

from setpoint.client.client import Client
from setpoint.client.config import Config
from tests.soak.world import MAPS, NAMESPACE, config_map

AT_ONCE, ALIVE = 8, 10


Lives = dict[str, tuple[int, int | None]]


async def churn(client: Client, each: int, lives: Lives, ended: asyncio.Event) -> None:
    for number in itertools.count():
        if ended.is_set():
            return
        name = f"churn-{each}-{number}"
        created = _version(await client.create(config_map(name, "x")))
        lives[name] = (created, None)
        if number >= ALIVE:
            gone = f"churn-{each}-{number - ALIVE}"
            lives[gone] = (lives[gone][0], created)  # it was deleted later than this
            await client.delete(MAPS, gone, namespace=NAMESPACE)


def _version(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def main() -> None:
    ended, lives = asyncio.Event(), Lives()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    async with Client(Config.load(sys.argv[1])) as client, asyncio.TaskGroup() as group:
        print("begun", flush=True)  # noqa: T201
        for each in range(AT_ONCE):
            group.create_task(churn(client, each, lives, ended))
    print(json.dumps(lives), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
