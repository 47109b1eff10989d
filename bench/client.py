"""What the client costs for each GET and POST of 1 KB, against bare aiohttp with a prepared URL.

The yardstick sends and reads bytes and does nothing else; ours names the object, builds the request, says
who it is, watches the deadline, and ends with a typed object.  Each keeps one TLS connection to the same
server in another process (``bench.stub``); only this process's CPU time counts.  ``post_read`` posts an
object that was read, which takes along the fields that its class does not know; ``transport`` is
``HttpTransport`` alone, bytes to bytes.

A ratio is the median over many short rounds, each against the yardstick of the same round: a busy machine
makes all of a round slower, and what it does to one contestant alone it does to few rounds.

    python -m bench.client
"""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from statistics import median

import aiohttp
from yarl import URL

from bench.measure import cpu_seconds
from bench.stub import JSON, config_map
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import ConfigMap
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.transport import Request

REQUESTS = 50
ROUNDS = 80
CONTESTANTS = (
    "transport_get",
    "bare_get",
    "client_get",
    "transport_post",
    "client_post",
    "bare_post",
    "client_post_read",
)
TOKEN = "a-token"
WHO = {"Authorization": f"Bearer {TOKEN}"}
COLLECTION = "/api/v1/namespaces/shop/configmaps"
OBJECT = f"{COLLECTION}/settings"


@contextmanager
def stub() -> Iterator[dict[str, str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.stub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.stdin.close()


class Contest:
    """One connection each, opened before anything is timed."""

    def __init__(self, server: str, authority: str) -> None:
        self.context = ssl.create_default_context(cadata=authority)
        self.bare = aiohttp.ClientSession(headers=WHO, connector=aiohttp.TCPConnector(ssl=self.context))
        self.get_url, self.post_url = URL(server + OBJECT), URL(server + COLLECTION)
        self.transport = HttpTransport(Endpoint(server, ssl_context=lambda: self.context))
        self.client = Client(
            Config(server, namespace="shop", token=TOKEN, certificate_authority_data=authority.encode())
        )
        self.body = config_map()
        self.read = ConfigMap.decode(self.body)
        self.made = ConfigMap(metadata=self.read.metadata, data=self.read.data)  # the same, never read

    async def close(self) -> None:
        await self.bare.close()
        await self.transport.close()
        await self.client.close()

    async def bare_get(self) -> bytes:
        async with self.bare.get(self.get_url) as response:
            return await response.read()

    async def bare_post(self) -> bytes:
        async with self.bare.post(self.post_url, data=self.body, headers=JSON) as response:
            return await response.read()

    async def transport_get(self) -> bytes:
        return await (await self.transport(Request("GET", OBJECT, WHO))).read()

    async def transport_post(self) -> bytes:
        return await (await self.transport(Request("POST", COLLECTION, {**WHO, **JSON}, self.body))).read()

    async def client_get(self) -> ConfigMap:
        return await self.client.get(ConfigMap, "settings")

    async def client_post(self) -> ConfigMap:
        return await self.client.create(self.made)

    async def client_post_read(self) -> ConfigMap:
        return await self.client.create(self.read)

    async def check(self) -> None:
        expected = json.loads(self.body)
        for ask in (self.bare_get, self.bare_post, self.transport_get, self.transport_post):
            assert json.loads(await ask()) == expected, "every contestant must get the same answer"
        assert (await self.client_get()).data == expected["data"]
        assert (await self.client_post()).data == expected["data"]
        assert (await self.client_post_read()).data == expected["data"]


def run(runner: asyncio.Runner, ask: Callable[[], Awaitable[object]]) -> None:
    runner.run(repeat(ask))


async def repeat(ask: Callable[[], Awaitable[object]]) -> None:
    for _ in range(REQUESTS):
        await ask()


def in_rounds(contestants: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """What each contestant needed in each round; they go in turn, every other round the other way."""
    spent: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    gc.freeze()  # what is there by now need not be looked at between rounds
    for number in range(ROUNDS):
        for name in contestants if number % 2 else reversed(list(contestants)):
            spent[name].append(cpu_seconds(contestants[name]))
    return spent


def main() -> None:
    with stub() as told, asyncio.Runner() as runner:

        async def open_() -> Contest:
            return Contest(told["server"], told["authority"])

        contest = runner.run(open_())
        try:
            runner.run(contest.check())
            spent = in_rounds({name: partial(run, runner, getattr(contest, name)) for name in CONTESTANTS})
        finally:
            runner.run(contest.close())

    def microseconds(name: str) -> int:
        return round(min(spent[name]) / REQUESTS * 1e6)

    def times(ours: str, yardstick: str) -> float:
        pairs = zip(spent[ours], spent[yardstick], strict=True)
        return round(median(mine / bare for mine, bare in pairs), 2)

    print(
        json.dumps(
            {
                "bench": "client",
                "get_microseconds": microseconds("client_get"),
                "post_microseconds": microseconds("client_post"),
                "get_times_yardstick": times("client_get", "bare_get"),
                "post_times_yardstick": times("client_post", "bare_post"),
                "post_read_times_yardstick": times("client_post_read", "bare_post"),
                "transport_get_times_yardstick": times("transport_get", "bare_get"),
                "transport_post_times_yardstick": times("transport_post", "bare_post"),
            }
        )
    )


if __name__ == "__main__":
    main()
