"""A peer that speaks the streams of pods as the API server and kubelet do, and really does what it is asked.

exec runs the command on this machine, port-forward connects to the port on this machine's loopback, log gives
what the test put there.  Written from what kubelets send, framing included, apart from the code under test.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from setpoint.client.sender import Nobody, Sender
from setpoint.client.streams import Open
from setpoint.errors import TransportError
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.transport import Request, WebSocket

Log = Callable[[], AsyncIterator[bytes]]


class Kubelet:
    """An app for ``serve``.  ``speaks``: the subprotocols it knows."""

    def __init__(self, *, speaks: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")) -> None:
        self.speaks = speaks
        self.requests: list[Request] = []
        self.log: Log = nothing
        self.answer: Answer | None = None  # in place of all else

    async def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.answer is not None:
            return self.answer
        url = urlsplit(request.target)
        query = parse_qs(url.query)
        verb = url.path.rpartition("/")[2]
        if verb == "log":
            return Answer(headers={"Content-Type": "text/plain"}, body=self.log())
        chosen = next((offer for offer in request.upgrade if offer in self.speaks), None)
        if chosen is None:
            return Answer(400, {}, b"unable to upgrade: unsupported protocols")
        if verb == "portforward":
            return Answer(
                talk=lambda websocket: forward(websocket, int(query["ports"][0])), subprotocol=chosen
            )
        return Answer(talk=lambda websocket: execute(websocket, query), subprotocol=chosen)


async def nothing() -> AsyncIterator[bytes]:
    pieces: list[bytes] = []
    for piece in pieces:
        yield piece


@asynccontextmanager
async def connected(kubelet: Callable[[Request], Any]) -> AsyncIterator[Open]:
    """What the client's streams are opened with, against this peer."""
    async with serve(kubelet, grace=0.1) as address, HttpTransport(Endpoint(str(address))) as transport:
        yield Sender(transport, Nobody(), {}, 30.0).open


async def execute(websocket: WebSocket, query: dict[str, list[str]]) -> None:
    await websocket.send(b"\x01")  # as kubelets do, to say that the stream is open
    asked = {name: query.get(name) == ["true"] for name in ("stdin", "stdout", "stderr", "tty")}
    if asked["tty"] and asked["stderr"]:
        await finish(websocket, failure("BadRequest", "tty and stderr cannot both be true"))
        return
    run = in_terminal if asked["tty"] else in_pipes
    try:
        code = await run(websocket, query["command"], stdin=asked["stdin"])
    except FileNotFoundError as error:
        await finish(websocket, failure("InternalError", f"exec failed: {error.filename}: not found"))
        return
    causes = [{"reason": "ExitCode", "message": str(code)}]
    message = f"command terminated with non-zero exit code: {code}"
    await finish(websocket, failure("NonZeroExitCode", message, causes) if code else {"status": "Success"})


def failure(reason: str, message: str, causes: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"status": "Failure", "reason": reason, "message": message, "details": {"causes": causes}}


async def finish(websocket: WebSocket, status: dict[str, Any]) -> None:
    await websocket.send(b"\x03" + json.dumps({"metadata": {}, **status}).encode())


async def in_pipes(websocket: WebSocket, command: list[str], *, stdin: bool) -> int:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    feeding = asyncio.ensure_future(feed(websocket, process.stdin, None))
    try:
        await asyncio.gather(
            drain(websocket, b"\x01", process.stdout), drain(websocket, b"\x02", process.stderr)
        )
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def in_terminal(websocket: WebSocket, command: list[str], *, stdin: bool) -> int:
    controller, terminal = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    opened = os.fdopen(controller, "r+b", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), opened)
    feeding = asyncio.ensure_future(feed(websocket, None, controller))
    try:
        await drain(websocket, b"\x01", reader)
        return await process.wait()
    finally:
        transport.close()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def feed(websocket: WebSocket, stdin: asyncio.StreamWriter | None, terminal: int | None) -> None:
    while (message := await websocket.receive()) is not None:
        if message == b"\xff\x00" and websocket.subprotocol.startswith("v5") and stdin is not None:
            stdin.close()
        elif message[0] == 0 and stdin is not None:
            stdin.write(message[1:])
            await stdin.drain()
        elif message[0] == 0 and terminal is not None:
            os.write(terminal, message[1:])
        elif message[0] == 4 and terminal is not None:
            size = json.loads(message[1:])
            fcntl.ioctl(
                terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0)
            )


async def drain(websocket: WebSocket, channel: bytes, reader: asyncio.StreamReader | None) -> None:
    assert reader is not None
    try:
        while data := await reader.read(32768):
            await websocket.send(channel + data)
    except OSError:
        pass  # how a terminal ends


async def forward(websocket: WebSocket, port: int) -> None:
    number = port.to_bytes(2, "little")
    await websocket.send(b"\x00" + number)
    await websocket.send(b"\x01" + number)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        await websocket.send(b"\x01" + f"error forwarding port {port} to pod: {error.strerror}".encode())
        return
    sending = asyncio.ensure_future(send(websocket, writer))
    try:
        while data := await reader.read(32768):
            await websocket.send(b"\x00" + data)
    except TransportError:
        pass  # the client hung up
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()


async def send(websocket: WebSocket, writer: asyncio.StreamWriter) -> None:
    while (message := await websocket.receive()) is not None:
        writer.write(message[1:])
        await writer.drain()
    writer.transport.abort()
