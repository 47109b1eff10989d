"""``Faults.of`` connects as the user that a config says, which a client given a transport does not."""

from __future__ import annotations

import asyncio

from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.testing.faults import Faults
from tests.net.peers import head, peer


async def test_it_says_who_we_are_and_closes_what_it_opened() -> None:
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()  # until it is closed

    async with peer(talk) as port:
        config = Config(server=f"http://127.0.0.1:{port}", token="our-token")
        async with Faults.of(config) as faults, Client(config, transport=faults) as client:
            assert await client.fetch("/version") == b"{}"

    assert b"authorization: bearer our-token" in heads[0].lower()
