"""Bytes to and from containers: exec, attach and log.  (Ports: ``forwarding.py``.)

Promises:

1. A stream that ended is told from one that was cut: a cut one is ``StreamFailed``, never a shorter output.
2. What a command prints waits for its reader up to a bound; past it the stream fails and says what to read.
3. No task and no connection outlives the ``async with`` that began it.

Reading drives: nothing is received while nobody reads, so a container that prints faster than it is read is
held back by the network.  Who writes much to a command should read at the same time; ``run`` does both.

Framing is in ``channels.py``; credentials and refusals are in ``sender.py``, whose ``open`` comes in here.
A server wants get and create on pods/exec and pods/attach, and get on pods/log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias
from urllib.parse import quote

from setpoint.api.names import Key, Resource
from setpoint.api.requests import Call, describe, path_of, with_query
from setpoint.api.wire import LineSplitter
from setpoint.client import channels
from setpoint.errors import BadAnswer, StreamFailed, TransportError
from setpoint.net.transport import Response, WebSocket

UNREAD_LIMIT = 16 * 2**20  # bytes that may wait for a reader
OUTPUT_LIMIT = 64 * 2**20  # bytes that are collected for ``read`` and ``run``
LINE_LIMIT = 2**20
PIECE = 32 * 2**10  # bytes in a message; what Kubernetes' own clients send
_LAST_WORDS = 5.0  # seconds that output may still come after the outcome; servers hang up long before

Open: TypeAlias = Callable[[Call], Awaitable[Response]]  # raises what the server refuses
Outlet: TypeAlias = Literal["stdout", "stderr"]

PODS = Resource("", "v1", "Pod", "pods")
_OUTLETS: dict[int, Outlet] = {channels.STDOUT: "stdout", channels.STDERR: "stderr"}


def exec_call(
    pod: Key, command: Sequence[str], *, container: str | None = None, stdin: bool = False, tty: bool = False
) -> Call:
    """Run a command in a container."""
    if isinstance(command, str) or not command:
        raise ValueError(f'a command is a list of words, such as ["sh", "-c", "…"], not {command!r}')
    words = "".join(f"&command={quote(word, safe='')}" for word in command)
    return _process_call("exec", pod, words, container=container, stdin=stdin, tty=tty)


def attach_call(pod: Key, *, container: str | None = None, stdin: bool = False, tty: bool = False) -> Call:
    """Take part in what a container's own command reads and prints."""
    return _process_call("attach", pod, "", container=container, stdin=stdin, tty=tty)


def _process_call(verb: str, pod: Key, words: str, *, container: str | None, stdin: bool, tty: bool) -> Call:
    # A terminal has one output; the server refuses to be asked for stderr beside it.
    query = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty, "container": container}
    target = with_query(path_of(PODS, pod.namespace, pod.name, verb), query) + words
    doing = describe(verb, PODS, pod)
    # "create" is what it amounts to; above all, it must not be repeated as a get may be.
    return Call("create", "GET", target, doing, accept="*/*", upgrade=(channels.V5, channels.V4))


def log_call(
    pod: Key,
    *,
    container: str | None = None,
    follow: bool = False,
    previous: bool = False,
    since_seconds: int | None = None,
    since_time: str | None = None,
    tail_lines: int | None = None,
    limit_bytes: int | None = None,
    timestamps: bool = False,
) -> Call:
    """What a container printed."""
    query = {
        "container": container,
        "follow": follow or None,
        "previous": previous or None,
        "sinceSeconds": since_seconds,
        "sinceTime": since_time,
        "tailLines": tail_lines,
        "limitBytes": limit_bytes,
        "timestamps": timestamps or None,
    }
    target = with_query(path_of(PODS, pod.namespace, pod.name, "log"), query)
    return Call("get", "GET", target, describe("read the log of", PODS, pod), accept="*/*")


@asynccontextmanager
async def open_websocket(open_: Open, call: Call) -> AsyncIterator[WebSocket]:
    """The stream that a call asks for, in one of the subprotocols it offers."""
    response = await open_(call)
    try:
        websocket = response.websocket
        if websocket is None:
            raise BadAnswer(call.doing, f"the server answered {response.status}, and not with a stream")
        if websocket.subprotocol not in call.upgrade:
            raise BadAnswer(call.doing, f"the server speaks none of {', '.join(call.upgrade)}")
        yield websocket
    finally:
        await response.close()


@asynccontextmanager
async def start(open_: Open, call: Call, *, unread_limit: int = UNREAD_LIMIT) -> AsyncIterator[Process]:
    """A command under way, from ``exec_call`` or ``attach_call``.  It may go on after the block is left."""
    async with open_websocket(open_, call) as websocket:
        yield Process(websocket, call.doing, unread_limit)


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command came to."""

    exit_code: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)


async def run(
    open_: Open, call: Call, *, stdin: bytes | None = None, output_limit: int = OUTPUT_LIMIT
) -> Completed:
    """Run a command to its end, give it ``stdin``, collect what it prints."""
    async with start(open_, call) as process:
        if stdin is not None:
            process.stdin.check_can_close()
        feeding = asyncio.ensure_future(_feed(process.stdin, stdin))
        try:
            printed: dict[Outlet, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
            async for outlet, data in process:
                printed[outlet] += data
                if len(printed[outlet]) > output_limit:
                    raise StreamFailed(
                        call.doing,
                        f"the command printed more than {output_limit} bytes to {outlet}",
                        advice="read it as it comes, with exec, or raise output_limit",
                    )
            return Completed(await process.wait(), bytes(printed["stdout"]), bytes(printed["stderr"]))
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)


async def _feed(stdin: Stdin, data: bytes | None) -> None:
    if data is not None:
        with suppress(StreamFailed):  # a command may end before it has read all; its outcome says more
            await stdin.write(data)
            await stdin.close()


class Process:
    """A command in a container: what it reads, prints, and comes to.

    ``async for outlet, data in process`` gives both outputs in the order they came; ``stdout`` and ``stderr``
    give each alone; ``wait`` gives the exit code.  Several tasks may do so at once.
    """

    def __init__(self, websocket: WebSocket, doing: str, unread_limit: int = UNREAD_LIMIT) -> None:
        self._websocket = websocket
        self._doing = doing
        self._unread_limit = unread_limit
        self._receiving = asyncio.Lock()
        self._unread: dict[int, deque[tuple[int, bytes]]] = {channel: deque() for channel in _OUTLETS}
        self._unread_size = 0
        self._arrived = 0  # numbers what is unread, so that two outputs can be read in one order
        self._outcome = b""
        # The end, once known: one or the other.
        self._exit_code: int | None = None
        self._failure: StreamFailed | None = None
        self.stdin = Stdin(websocket, doing)
        self.stdout = Output(self._next, channels.STDOUT, doing)
        self.stderr = Output(self._next, channels.STDERR, doing)

    def __repr__(self) -> str:
        ended = "running" if self._exit_code is None else f"exit code {self._exit_code}"
        return f"<Process {self._doing}: {self._failure or ended}, {self._unread_size} bytes unread>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[Outlet, bytes]:
        if arrived := await self._next(*_OUTLETS):
            channel, data = arrived
            return _OUTLETS[channel], data
        raise StopAsyncIteration

    async def wait(self) -> int:
        """The exit code.  What is printed meanwhile waits for its readers, up to the bound."""
        while self._exit_code is None:
            await self._receive()
        return self._exit_code

    async def resize(self, width: int, height: int) -> None:
        """Say how large the terminal is, where one was asked for with ``tty``."""
        await self.stdin.send(channels.resizing(width, height))

    async def _next(self, *wanted: int) -> tuple[int, bytes] | None:
        """Of the channels wanted, the data that arrived first, and its channel; None at the end."""
        while not (waiting := [channel for channel in wanted if self._unread[channel]]):
            if self._exit_code is not None:
                return None
            await self._receive(*wanted)
        channel = min(waiting, key=lambda waiting: self._unread[waiting][0])
        _, data = self._unread[channel].popleft()
        self._unread_size -= len(data)
        return channel, data

    async def _receive(self, *wanted: int) -> None:
        """Take in one message, unless another task has meanwhile brought what is wanted."""
        async with self._receiving:
            if any(self._unread[channel] for channel in wanted) or self._exit_code is not None:
                return
            if self._failure is None:
                try:
                    self._file(await self._message())
                except StreamFailed as failure:
                    self._failure = failure
            if self._failure is not None:
                raise self._failure

    def _file(self, message: bytes | None) -> None:
        if message is None:
            self._end()
            return
        channel, data = channels.split(message)
        if channel == channels.OUTCOME:
            self._outcome += data
        elif channel in self._unread and data:
            self._arrived += 1
            self._unread[channel].append((self._arrived, data))
            self._unread_size += len(data)
        if max(self._unread_size, len(self._outcome)) > self._unread_limit:
            raise StreamFailed(
                self._doing,
                f"more than {self._unread_limit} bytes of output wait to be read",
                advice="read stdout and stderr both, or iterate over the process",
            )

    async def _message(self) -> bytes | None:
        """The next message; None once nothing more is to be expected."""
        try:
            async with asyncio.timeout(_LAST_WORDS if self._outcome else None):
                return await self._websocket.receive()
        except TimeoutError:
            return None
        except TransportError as error:
            if self._outcome:
                return None  # all was said; how the server hung up does not matter
            raise StreamFailed(
                self._doing, f"broken off before the command's end was known: {error.message}"
            ) from error

    def _end(self) -> None:
        if not self._outcome:
            raise StreamFailed(self._doing, "the server closed the stream before the command's end was known")
        self._exit_code = channels.exit_code(self._doing, self._outcome)


class Output:
    """One output of a command: iterate over its pieces as they come, or ``read`` it whole."""

    def __init__(
        self, next_of: Callable[[int], Awaitable[tuple[int, bytes] | None]], channel: int, doing: str
    ) -> None:
        self._next_of = next_of
        self._channel = channel
        self._doing = doing

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if arrived := await self._next_of(self._channel):
            return arrived[1]
        raise StopAsyncIteration

    async def read(self, limit: int = OUTPUT_LIMIT) -> bytes:
        """All that is printed from here to the end."""
        return await _whole(self, self._doing, limit)


class Stdin:
    """What a command reads."""

    def __init__(self, websocket: WebSocket, doing: str) -> None:
        self._websocket = websocket
        self._doing = doing

    async def write(self, data: bytes) -> None:
        """Send it; waits while the command reads slower than we write."""
        for begin in range(0, len(data), PIECE):
            await self.send(channels.frame(channels.STDIN, data[begin : begin + PIECE]))

    async def close(self) -> None:
        """Say that no more will come: the command reads the end of its input."""
        self.check_can_close()
        await self.send(channels.closing(channels.STDIN))

    def check_can_close(self) -> None:
        """Fail if the server cannot be told."""
        if self._websocket.subprotocol != channels.V5:
            raise StreamFailed(
                self._doing,
                f"the server speaks {self._websocket.subprotocol}, in which stdin cannot be ended",
                advice="Kubernetes 1.30 and later can; before, use a command that does not read to the end",
            )

    async def send(self, message: bytes) -> None:
        try:
            await self._websocket.send(message)
        except TransportError as error:
            raise StreamFailed(self._doing, f"the command takes no more input: {error.message}") from error


@asynccontextmanager
async def read_log(open_: Open, call: Call, *, line_limit: int = LINE_LIMIT) -> AsyncIterator[Log]:
    """What a container printed, from ``log_call``; with ``follow``, also what it will print."""
    response = await open_(call)
    try:
        yield Log(response, call.doing, line_limit)
    finally:
        await response.close()


class Log:
    """A log: iterate over its lines (bytes, without line ends), over ``chunks``, or ``read`` it whole."""

    def __init__(self, response: Response, doing: str, line_limit: int = LINE_LIMIT) -> None:
        self._response = response
        self._doing = doing
        self._line_limit = line_limit

    def __repr__(self) -> str:
        return f"<Log: {self._doing}>"

    def __aiter__(self) -> AsyncIterator[bytes]:
        return lines(self.chunks(), doing=self._doing, limit=self._line_limit)

    def chunks(self) -> AsyncIterator[bytes]:
        """Pieces of any size, as they come."""
        return self._response.chunks()

    async def read(self, limit: int = OUTPUT_LIMIT) -> bytes:
        """All of it; not with ``follow``."""
        return await _whole(self.chunks(), self._doing, limit)


async def lines(
    chunks: AsyncIterable[bytes], *, doing: str = "", limit: int = LINE_LIMIT
) -> AsyncIterator[bytes]:
    """Pieces of any size into lines without their ends, of a log or of a command's output."""
    splitter = LineSplitter(limit)
    async for chunk in chunks:
        try:
            ended = splitter.feed(chunk)
        except ValueError as error:
            raise StreamFailed(
                doing, str(error), advice="read pieces, not lines, or raise the limit"
            ) from None
        for line in ended:
            yield line
    if splitter.rest:
        yield splitter.rest


async def _whole(chunks: AsyncIterable[bytes], doing: str, limit: int) -> bytes:
    collected = bytearray()
    async for chunk in chunks:
        collected += chunk
        if len(collected) > limit:
            raise StreamFailed(doing, f"there are more than {limit} bytes", advice="read it piece by piece")
    return bytes(collected)
