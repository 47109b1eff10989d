"""What the client costs for each GET and POST of 1 KB, against bare aiohttp with a prepared URL.

The yardstick sends and reads bytes and does nothing else; ours names the object, builds the request, says
who it is, watches the deadline, and ends with a typed object.  Each keeps one TLS connection to the same
server in another process (``bench.stub``); only this process's CPU time counts.  ``transport`` is
``HttpTransport`` alone, bytes to bytes.

    python -m bench.client
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import aiohttp
from yarl import URL

from bench.measure import best_of
from bench.stub import JSON, config_map
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.kube.core.v1 import ConfigMap
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.transport import Request

REQUESTS = 100  # a round is short, so that some of them fall into quiet moments of the machine
ROUNDS = 40
CONTESTANTS = ("bare_get", "transport_get", "client_get", "bare_post", "transport_post", "client_post")
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
        read = ConfigMap.decode(self.body)
        self.object = ConfigMap(metadata=read.metadata, data=read.data)  # new: never read from a server

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
        return await self.client.create(self.object)

    async def check(self) -> None:
        expected = json.loads(self.body)
        for ask in (self.bare_get, self.bare_post, self.transport_get, self.transport_post):
            assert json.loads(await ask()) == expected, "every contestant must get the same answer"
        assert (await self.client_get()).data == expected["data"]
        assert (await self.client_post()).data == expected["data"]


def run(runner: asyncio.Runner, ask: Callable[[], Awaitable[object]]) -> None:
    runner.run(repeat(ask))


async def repeat(ask: Callable[[], Awaitable[object]]) -> None:
    for _ in range(REQUESTS):
        await ask()


def main() -> None:
    with stub() as told, asyncio.Runner() as runner:

        async def open_() -> Contest:
            return Contest(told["server"], told["authority"])

        contest = runner.run(open_())
        try:
            runner.run(contest.check())
            spent = best_of(
                ROUNDS, {name: partial(run, runner, getattr(contest, name)) for name in CONTESTANTS}
            )
        finally:
            runner.run(contest.close())
    print(
        json.dumps(
            {
                "bench": "client",
                "get_microseconds": round(spent["client_get"] / REQUESTS * 1e6),
                "post_microseconds": round(spent["client_post"] / REQUESTS * 1e6),
                "get_times_yardstick": round(spent["client_get"] / spent["bare_get"], 2),
                "post_times_yardstick": round(spent["client_post"] / spent["bare_post"], 2),
                "transport_get_times_yardstick": round(spent["transport_get"] / spent["bare_get"], 2),
                "transport_post_times_yardstick": round(spent["transport_post"] / spent["bare_post"], 2),
            }
        )
    )


if __name__ == "__main__":
    main()
