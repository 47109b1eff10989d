"""A network that can go bad: bytes pass through here until they are told not to.

Promises:

1. While it flows, what one side sends the other gets, ends of streams too.
2. ``cut`` breaks every connection there is, so that both sides notice at once.
3. ``refuse`` lets nobody in: whoever connects is refused by the system.  Connections that exist go on.
4. ``freeze`` goes half-open: connections stay, new ones are accepted, and nothing passes, not even that a
   side has gone away.  This is the failure that TCP does not report.
5. ``resume`` undoes both; what was held back goes on its way.
6. ``strand`` loses the connections there are: for ever half-open, as behind a router that forgot them, while
   new ones flow.
7. Nothing outlives the ``async with``.

Not here: what the bytes mean.  For faults of single requests see ``faults.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from dataclasses import replace
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from setpoint.client.config import Config

_LOOPBACK = "127.0.0.1"
# Below what the kernel gives to outgoing connections: from among those, a client that keeps trying to reach
# a port where nobody listens can end up connected to itself.
_PORTS = range(15_000, 30_000)
_CHUNK = 64 * 2**10


class Proxy:
    """Listens on a port of the loopback, and connects whoever comes to ``host`` and ``port``::

    async with Proxy.of(config) as proxy, Client(proxy.config(config)) as client:
        proxy.freeze()
    """

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._port = 0
        self._server: asyncio.Server | None = None  # there is one exactly while we accept
        self._flows = asyncio.Event()
        self._flows.set()
        self._connections: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._stranded: set[asyncio.StreamWriter] = set()
        self.accepted = 0  # connections so far

    @classmethod
    def of(cls, config: Config) -> Proxy:
        """To the server that ``config`` names."""
        server = urlsplit(config.server)
        if server.hostname is None:
            raise ValueError(f"a proxy to {config.server}: it names no host")
        return cls(server.hostname, server.port or (443 if server.scheme == "https" else 80))

    def __repr__(self) -> str:
        state = "refusing" if self._server is None else "flowing" if self._flows.is_set() else "frozen"
        return f"<Proxy to {self._to[0]}:{self._to[1]}, {state}: {self.connections} connections>"

    @property
    def port(self) -> int:
        """Where we listen."""
        return self._port

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._connections)

    def config(self, config: Config) -> Config:
        """The same server and user, by way of this proxy.  The certificate is asked for by its own name."""
        server = urlsplit(config.server)
        return replace(
            config,
            server=server._replace(netloc=f"{_LOOPBACK}:{self._port}").geturl(),
            tls_server_name=config.tls_server_name or (server.hostname or "" if config.is_tls else ""),
        )

    async def __aenter__(self) -> Self:
        for port in random.sample(_PORTS, 100):
            with contextlib.suppress(OSError):  # somebody listens there
                self._port = port
                await self._listen()
                return self
        raise RuntimeError(f"{self!r}: none of 100 ports on {_LOOPBACK} was free to listen on")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def cut(self) -> int:
        """Break every connection; how many those were."""
        count = self.connections
        for end in self._ends:
            _break(end)
        return count

    def refuse(self) -> None:
        """Let nobody in."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def freeze(self) -> None:
        """Pass nothing on, and say nothing."""
        self._flows.clear()

    def strand(self) -> int:
        """Lose the connections there are, without a word; how many those were."""
        self._stranded |= self._ends
        return self.connections

    async def resume(self) -> None:
        """Let everything flow, and everybody in, again."""
        self._flows.set()
        if self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, _LOOPBACK, self._port)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.create_task(self._connect(reader, writer), name=f"proxy connection {self.accepted}")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        self._ends.add(writer)
        try:
            await self._flows.wait()
            there_reader, there = await asyncio.open_connection(*self._to)
            ends.append(there)
            self._ends.add(there)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, there))
                both.create_task(self._pass(there_reader, writer))
            for end in ends:
                end.close()
        except* OSError:
            pass  # one side is gone, and so must be the other
        finally:
            self._ends.difference_update(ends)
            self._stranded.difference_update(ends)
            for end in ends:
                _break(end)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            data = await reader.read(_CHUNK)
            await self._flows.wait()
            if writer in self._stranded:
                await asyncio.Event().wait()
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def _break(end: asyncio.StreamWriter) -> None:
    """Reset a connection.  Merely closed, it would look like a peer that has said all it had to say."""
    if not end.transport.is_closing():
        end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.transport.abort()
