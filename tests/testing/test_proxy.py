"""What ``testing/proxy.py`` promises, with a server that says everything back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from setpoint.client.config import Config
from setpoint.testing.proxy import Proxy
from setpoint.testing.waiting import eventually


@asynccontextmanager
async def echo() -> AsyncIterator[Proxy]:
    """A proxy to a server that answers each connection with what it is sent, until that ends."""
    tasks: set[asyncio.Task[None]] = set()

    async def say_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                writer.write(data)
                await writer.drain()
            writer.write(b"bye")
            await writer.drain()
        except ConnectionError:
            pass  # cut
        finally:
            writer.close()

    async with asyncio.TaskGroup() as group:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(group.create_task(say_back(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            async with Proxy("127.0.0.1", server.sockets[0].getsockname()[1]) as proxy:
                yield proxy
        finally:
            server.close()


class Caller:
    """One connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, text: bytes) -> bytes:
        self.writer.write(text)
        return await self.reader.readexactly(len(text))

    def close(self) -> None:
        self.writer.transport.abort()


async def call(proxy: Proxy) -> Caller:
    return Caller(*await asyncio.open_connection("127.0.0.1", proxy.port))


async def test_what_one_side_sends_the_other_gets_and_its_end_too() -> None:
    async with echo() as proxy:
        caller = await call(proxy)
        assert await caller.say(b"x" * 200_000) == b"x" * 200_000

        caller.writer.write_eof()
        assert await caller.reader.read() == b"bye"
        caller.close()


async def test_a_cut_ends_every_connection_at_once() -> None:
    async with echo() as proxy:
        callers = [await call(proxy) for _ in range(3)]
        for caller in callers:
            await caller.say(b"hello")

        assert proxy.cut() == 3
        for caller in callers:
            with pytest.raises(ConnectionResetError):
                await caller.reader.readexactly(1)
            caller.close()
        again = await call(proxy)
        assert await again.say(b"hello") == b"hello", "a new connection is none of those"
        again.close()


async def test_while_it_refuses_nobody_comes_in_and_who_is_in_stays() -> None:
    async with echo() as proxy:
        early = await call(proxy)
        assert await early.say(b"one") == b"one"
        port = proxy.port

        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            await call(proxy)
        assert await early.say(b"two") == b"two"

        await proxy.resume()
        late = await call(proxy)
        assert await late.say(b"three") == b"three"
        assert proxy.port == port
        early.close()
        late.close()


async def test_half_open_nothing_passes_and_nobody_is_told() -> None:
    async with echo() as proxy:
        early = await call(proxy)
        await early.say(b"one")
        proxy.freeze()
        late = await call(proxy)
        for caller in (early, late):
            caller.writer.write(b"two")
            caller.writer.write_eof()
        await eventually(lambda: proxy.accepted == 2)

        for caller in (early, late):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await caller.reader.read(1)
        await proxy.resume()
        for caller in (early, late):
            assert await caller.reader.read() == b"twobye", "both are still whole"
            caller.close()


async def test_what_was_held_back_goes_on_when_it_resumes() -> None:
    async with echo() as proxy:
        caller = await call(proxy)
        await caller.say(b"one")
        proxy.freeze()
        caller.writer.write(b"two")

        await proxy.resume()
        assert await caller.reader.readexactly(3) == b"two"
        caller.close()


async def test_stranded_connections_stay_lost_and_new_ones_flow() -> None:
    async with echo() as proxy:
        early = await call(proxy)
        await early.say(b"one")

        assert proxy.strand() == 1
        early.writer.write(b"two")
        late = await call(proxy)
        assert await late.say(b"two") == b"two"
        await proxy.resume()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await early.reader.read(1)

        proxy.cut()
        with pytest.raises(ConnectionResetError):
            await early.reader.readexactly(1)
        early.close()
        late.close()


async def test_nothing_outlives_it() -> None:
    async with echo() as proxy:
        caller = await call(proxy)
        await caller.say(b"hello")
        proxy.freeze()
        stuck = await call(proxy)
        await eventually(lambda: proxy.accepted == 2)

    with pytest.raises(ConnectionResetError):
        await caller.reader.readexactly(1)
    for one in (caller, stuck):
        one.close()
    assert proxy.connections == 0


async def test_a_server_that_is_not_there_breaks_the_connection() -> None:
    async with echo() as gone:
        port = gone.port
    async with Proxy("127.0.0.1", port) as proxy:
        caller = await call(proxy)
        with pytest.raises(ConnectionResetError):
            await caller.reader.readexactly(1)
        caller.close()


async def test_a_config_leads_through_it_and_asks_for_the_certificate_by_its_own_name() -> None:
    config = Config(server="https://kube.example:6443/path", token="t")
    async with Proxy.of(config) as proxy:
        assert "kube.example:6443" in repr(proxy)
        through = proxy.config(config)
    assert through.server == f"https://127.0.0.1:{proxy.port}/path"
    assert (through.tls_server_name, through.token) == ("kube.example", "t")


async def test_a_name_that_was_set_is_kept() -> None:
    config = Config(server="https://10.0.0.1:6443", tls_server_name="kubernetes")
    async with Proxy.of(config) as proxy:
        assert proxy.config(config).tls_server_name == "kubernetes"
