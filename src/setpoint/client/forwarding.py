"""Connections to ports of pods.

The subprotocol is ``v4.channel.k8s.io``: one WebSocket is one connection to one port.  The API server passes
it on to the kubelet, and that to the container runtime, which speaks it in every release of Kubernetes so far
(up to 1.37).  kubectl's own way, SPDY inside a WebSocket, is only there from 1.31 on.  What v4 cannot say:
that one direction alone is closed.

Promises:

1. What the other side closed ends; what was cut, or could not be connected, is ``StreamFailed``.
2. Of many local connections each stands alone: one that fails is reset, its reason is logged, the rest go on.
3. No task and no connection outlives the ``async with`` that began it.

A server wants get and create on pods/portforward.  Framing: ``channels.py``.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from setpoint.api.names import Key
from setpoint.api.requests import Call, describe, path_of, with_query
from setpoint.client import channels
from setpoint.client.streams import PIECE, PODS, Open, open_websocket
from setpoint.errors import SetpointError, StreamFailed, TransportError
from setpoint.net.transport import WebSocket

# A local side that closed looks like one that only will not send any more, and the pod can be told neither:
# after so many seconds without a byte from the pod it is taken for closed.
_LINGER = 30.0

log = logging.getLogger("setpoint.client")


def port_forward_call(pod: Key, port: int) -> Call:
    """One connection to a port of a pod."""
    if not 0 < port < 2**16:
        raise ValueError(f"a port is a number from 1 to 65535, not {port}")
    target = with_query(path_of(PODS, pod.namespace, pod.name, "portforward"), {"ports": port})
    doing = f"{describe('forward to', PODS, pod)}:{port}"
    return Call("create", "GET", target, doing, accept="*/*", upgrade=(channels.V4,))


@asynccontextmanager
async def port_forward(open_: Open, pod: Key, port: int) -> AsyncIterator[Connection]:
    """A connection to a port of a pod, for the time of an ``async with`` block."""
    call = port_forward_call(pod, port)
    async with open_websocket(open_, call) as websocket:
        yield Connection(websocket, call.doing, port)


class Connection:
    """A connection to a port of a pod.  Iterating gives what arrives until the other side closes."""

    def __init__(self, websocket: WebSocket, doing: str, port: int) -> None:
        self._websocket = websocket
        self._doing = doing
        self._port = channels.ForwardedPort(doing, port)
        self._is_ended = False
        self.received = 0  # bytes so far

    def __repr__(self) -> str:
        return f"<Connection {self._doing}{', ended' if self._is_ended else ''}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if data := await self.read():
            return data
        raise StopAsyncIteration

    async def read(self) -> bytes:
        """What arrives next; b"" once the other side has closed."""
        data = b""
        while not data and not self._is_ended:
            try:
                message = await self._websocket.receive()
            except TransportError as error:
                self._is_ended = True
                raise StreamFailed(self._doing, f"broken off: {error.message}") from error
            if message is None:
                self._is_ended = True
            else:
                data = self._port.take(message)
        self.received += len(data)
        return data

    async def write(self, data: bytes) -> None:
        """Send it; waits while the other side reads slower than we write."""
        for begin in range(0, len(data), PIECE):
            try:
                await self._websocket.send(channels.frame(0, data[begin : begin + PIECE]))
            except TransportError as error:
                raise StreamFailed(self._doing, f"broken off: {error.message}") from error

    async def close(self) -> None:
        """Close both directions."""
        self._is_ended = True
        await self._websocket.close()


@asynccontextmanager
async def forward_local(open_: Open, pod: Key, port: int, *, local_port: int = 0) -> AsyncIterator[int]:
    """Listen on this machine's loopback, and connect whoever comes to a port of the pod; gives our port."""
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_forward(open_, pod, port, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", local_port)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        while tasks:  # one more may have been accepted just now
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _forward(
    open_: Open, pod: Key, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        async with port_forward(open_, pod, port) as connection:
            await _pump(reader, writer, connection)
        writer.close()
        await writer.wait_closed()
    except ConnectionError:
        pass  # the local side hung up: it knows
    except SetpointError as error:
        log.warning("%s", error)
    except Exception:
        log.exception("forward to Pod %s:%d", pod, port)
    finally:
        _reset(writer)  # nothing, where it was closed in order


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the local side does not take what it has heard for all there was."""
    if not writer.transport.is_closing():
        no_linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
    writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
    """Both ways at once, until the pod's side ends, or the local side has, and the pod's falls silent."""
    receiving = asyncio.ensure_future(_receive_all(connection, writer))
    sending = asyncio.ensure_future(_send_all(reader, connection))
    try:
        await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done() and isinstance(sending.exception(), ConnectionError):
            sending.result()  # the local side is gone altogether
        heard = -1
        while not receiving.done() and heard != connection.received:
            heard = connection.received
            await asyncio.wait({receiving}, timeout=_LINGER)
        (receiving if receiving.done() else sending).result()
    finally:
        receiving.cancel()
        sending.cancel()
        await asyncio.gather(receiving, sending, return_exceptions=True)


async def _receive_all(connection: Connection, writer: asyncio.StreamWriter) -> None:
    async for data in connection:
        writer.write(data)
        await writer.drain()


async def _send_all(reader: asyncio.StreamReader, connection: Connection) -> None:
    while data := await reader.read(PIECE):
        await connection.write(data)
