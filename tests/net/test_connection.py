"""The promises of ``net/connection.py``, against servers that do not behave, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from setpoint.errors import AnswerLost, BadAnswer, ConnectionFailed
from setpoint.net import http
from setpoint.net.connection import Connection
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Answer, serve
from setpoint.net.transport import Request
from setpoint.net.unpacking import Unpacking
from tests.net.peers import (
    OK,
    Talk,
    at,
    client_context,
    counting,
    failure,
    for_server,
    forever,
    get,
    head,
    peer,
    says,
    server_context,
    whole,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def answering(*answers: bytes, connections: list[int]) -> Talk:
    """Answers the requests of each connection with these, in turn; then it is silent."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        for answer in answers:
            await head(reader)
            writer.write(answer)
        await forever()

    return talk


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.001)


# ── What may be used again ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", OK),
        ("GET", CHUNKED + b"2\r\nok\r\n0\r\nTrailer: x\r\n\r\n"),
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\n" + OK),
        ("PATCH", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
        ("HEAD", CHUNKED),
    ],
)
async def test_a_connection_goes_on_after_an_answer_that_is_whole(method: str, answer: bytes) -> None:
    connections: list[int] = []
    async with peer(answering(answer, OK, connections=connections)) as port, at(port) as transport:
        response = await transport(Request(method, "/"))
        assert await response.read() == (b"ok" if b"ok" in answer else b"")
        assert await whole(transport, get()) == b"ok"
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        pytest.param("GET", OK + OK, id="two answers"),
        pytest.param("GET", OK + b"x", id="more than an answer"),
        pytest.param("HEAD", OK, id="a body where there is none"),
        pytest.param("GET", OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1), id="asked to close"),
        pytest.param("GET", OK.replace(b"1.1", b"1.0"), id="of old"),
    ],
)
async def test_a_connection_does_not_go_on_after_an_answer_that_leaves_a_doubt(
    method: str, answer: bytes
) -> None:
    connections: list[int] = []
    async with peer(answering(answer, b"poison", connections=connections)) as port, at(port) as transport:
        for _ in range(3):
            response = await transport(Request(method, "/"))
            assert await response.read() == (b"ok" if method == "GET" else b"")
            assert not transport._idle
    assert len(connections) == 3


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("said", [OK, b"x", b"\r\n", b""], ids=["an answer", "a byte", "a line", "goodbye"])
async def test_whatever_a_server_says_unasked_ends_the_connection(
    said: bytes, tls: bool, tmp_path: Path
) -> None:
    connections: list[int] = []
    speak = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await head(reader)
        writer.write(OK)
        if len(connections) == 1:
            await speak.wait()
            writer.write(said)
            if not said:
                writer.close()
        await forever()

    context = client_context()
    async with peer(talk, server_context(for_server(), tmp_path) if tls else None) as port:
        endpoint = Endpoint(f"http{'s' * tls}://127.0.0.1:{port}", ssl_context=lambda: context)
        async with HttpTransport(endpoint) as transport:
            assert await whole(transport, get()) == b"ok"
            assert len(transport._idle) == 1
            speak.set()
            await until(lambda: not transport._idle)
            assert await whole(transport, get()) == b"ok"
    assert len(connections) == 2


async def test_a_connection_that_was_cut_in_this_very_turn_is_not_used() -> None:
    connections: list[int] = []
    async with peer(counting(connections)) as port, at(port) as transport:
        assert await whole(transport, get()) == b"ok"
        (connection,) = transport._idle
        connection.data_received(b"x")
        assert await whole(transport, get()) == b"ok"
    assert len(connections) == 2


async def test_a_connection_that_idled_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KEPT_FOR", 0.02)
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(OK)
        assert await reader.read() == b""
        gone.set()

    async with peer(talk) as port, at(port) as transport:
        assert await whole(transport, get()) == b"ok"
        await gone.wait()
        await until(lambda: not transport._connections)


async def test_a_connection_that_did_not_idle_for_long_yet_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "KEPT_FOR", 0.05)
    async with peer(counting([])) as port, at(port) as transport:
        await asyncio.gather(whole(transport, get()), whole(transport, get()))
        first, second = transport._idle
        first.idle_since -= 1
        assert transport._aging is not None
        transport._aging.cancel()  # it is now that it looks
        transport._age()
        assert transport._idle == [second]
        await until(lambda: not transport._connections)


async def test_an_answer_may_come_before_all_of_the_request_was_sent() -> None:
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await head(reader)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await forever()

    async with peer(talk) as port, at(port) as transport:
        for _ in range(2):
            response = await transport(Request("POST", "/", {}, bytes(32 * 2**20)))
            assert (response.status, await response.read()) == (413, b"no")
    assert len(connections) == 2, "what was left to be sent went with the connection"


# ── What is no answer ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", id="both"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", id="two lengths"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", id="another coding"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", id="unasked"),
        pytest.param(b"HTTP/1.1 101 Switching\r\n\r\n", id="unasked, and not saying to what"),
        pytest.param(b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" * 10_000, id="early answers without end"),
        pytest.param(b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok", id="a status that is none"),
    ],
)
async def test_an_answer_whose_end_is_in_doubt_is_bad(answer: bytes) -> None:
    async with peer(answering(answer, connections=[])) as port:
        error = await failure(at(port))
    assert isinstance(error, BadAnswer)
    assert "is not HTTP" in str(error)


async def test_chunks_that_make_no_sense_are_bad_after_what_came_before_them() -> None:
    async with peer(answering(CHUNKED + b"2\r\nok\r\nzz\r\n", connections=[])) as port, at(port) as transport:
        chunks = (await transport(get())).chunks()
        assert await anext(chunks) == b"ok"
        with pytest.raises(BadAnswer, match="is not HTTP"):
            await anext(chunks)
        assert not transport._idle
        with pytest.raises(BadAnswer, match="is not HTTP"):
            await whole(transport, get())


async def test_what_follows_a_body_without_end_is_bad() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(CHUNKED + b"2\r\nok\r\n0\r\n")
        while not writer.is_closing():
            writer.write(b"X: y\r\n" * 1000)
            await writer.drain()

    async with peer(talk) as port:
        error = await failure(at(port))
    assert isinstance(error, BadAnswer)
    assert "too long" in str(error)


# ── Where it ends ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tls", [False, True])
async def test_an_answer_without_a_length_ends_with_its_connection(tls: bool, tmp_path: Path) -> None:
    context = client_context()
    body = b"x" * 100_000
    talk = says(b"HTTP/1.1 200 OK\r\n\r\n", body, body)
    async with peer(talk, server_context(for_server(), tmp_path) if tls else None) as port:
        endpoint = Endpoint(f"http{'s' * tls}://127.0.0.1:{port}", ssl_context=lambda: context)
        async with HttpTransport(endpoint) as transport:
            assert await whole(transport, get()) == body * 2
            response = await transport(get())
            assert b"".join([chunk async for chunk in response.chunks()]) == body * 2


async def test_an_answer_without_a_length_that_is_reset_is_lost() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\npart")
        await writer.drain()
        await go_on.wait()
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, zero seconds: closing sends a reset
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    go_on = asyncio.Event()
    async with peer(talk) as port, at(port) as transport:
        chunks = (await transport(get())).chunks()
        assert await anext(chunks) == b"part"
        go_on.set()
        with pytest.raises(AnswerLost):
            await anext(chunks)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_server_that_hangs_up_while_a_body_is_sent_has_lost_the_answer(method: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)

    async with peer(talk) as port:
        error = await failure(at(port), Request(method, "/", {}, bytes(32 * 2**20)))
    assert isinstance(error, AnswerLost)


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("packed", [False, True])
async def test_a_server_waits_for_a_reader_that_is_slow(tls: bool, packed: bool, tmp_path: Path) -> None:
    piece = gzip.compress(bytes(2**16)) * 300 if packed else bytes(2**16)
    pieces, sent = 400, 0

    async def app(request: Request) -> Answer:
        async def body() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(pieces):
                yield piece
                sent += 1

        return Answer(headers={"Content-Encoding": "gzip"} if packed else {}, body=body())

    context = client_context()
    server = server_context(for_server(), tmp_path) if tls else None
    async with serve(app, ssl_context=server) as address:
        endpoint = Endpoint(f"http{'s' * tls}://127.0.0.1:{address.port}", ssl_context=lambda: context)
        async with HttpTransport(endpoint) as transport:
            response = await transport(get())
            (connection,) = transport._connections
            await until(lambda: connection._is_paused)
            assert not connection.transport.is_reading()
            assert sent < pieces
            size = 0
            async for chunk in response.chunks():
                assert len(chunk) <= 2 * 2**20
                size += len(chunk)
                if packed and size > 2**28:
                    break
            assert size == pieces * 2**16 or packed
            await response.close()


async def test_a_body_is_there_with_its_head_if_it_came_with_it() -> None:
    async with peer(says(OK)) as port, at(port) as transport:
        response = await transport(get())
        reading = response.read()
        with pytest.raises(StopIteration) as done:  # without waiting for anything
            reading.send(None)
        assert done.value.value == b"ok"
        assert await response.read() == b"", "it was read"


async def test_what_is_read_as_it_comes_is_unpacked_as_it_comes() -> None:
    packed = gzip.compress(b"first ") + gzip.compress(b"second")
    go_on = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await head(reader)
            said = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
            writer.write(said % len(packed) + packed[:30])
            await go_on.wait()
            for byte in packed[30:]:
                writer.write(bytes([byte]))
                await writer.drain()
        await forever()

    async with peer(talk) as port, at(port) as transport:
        response = await transport(get())
        chunks = response.chunks()
        assert await anext(chunks) == b"first "
        go_on.set()
        assert b"".join([chunk async for chunk in chunks]) == b"second"
        assert await whole(transport, get()) == b"first second"


@pytest.mark.parametrize("read", [False, True])
async def test_gzip_that_ends_before_its_end_is_bad(read: bool) -> None:
    packed = gzip.compress(b"hello")[:-2]
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with peer(says(answer + packed)) as port, at(port) as transport:
        response = await transport(get())
        chunks = response.chunks()
        assert read or await anext(chunks) == b"hello"
        with pytest.raises(BadAnswer, match="gzip"):
            await (response.read() if read else anext(chunks))


@pytest.mark.deadline(10)
async def test_gzip_that_turns_bad_behind_what_was_unpacked_is_bad_and_not_tried_for_ever() -> None:
    packed = bytearray(gzip.compress(bytes(600 * 2**10)))
    packed[-8] ^= 1  # its checksum
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with peer(says(answer + packed)) as port, at(port) as transport:
        chunks = (await transport(get())).chunks()
        assert len(await anext(chunks)) == 512 * 2**10
        with pytest.raises(BadAnswer, match="gzip"):
            await anext(chunks)


async def test_a_body_is_not_unpacked_past_what_was_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counted(Unpacking):
        def unpack(self, packed: bytes, most: int) -> bytes:
            piece = super().unpack(packed, most)
            sizes.append(len(piece))
            return piece

    async def app(request: Request) -> Answer:
        return Answer(headers={"Content-Encoding": "gzip"}, body=gzip.compress(bytes(50 * 2**20), 9))

    monkeypatch.setattr("setpoint.net.connection.Unpacking", Counted)
    async with serve(app) as address:
        error = await failure(HttpTransport(Endpoint(str(address), max_body=2**20)))
    assert isinstance(error, BadAnswer)
    assert sum(sizes) == 2**20 + 1


async def test_an_empty_body_is_no_gzip_that_ended_too_early() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
    async with peer(says(answer)) as port, at(port) as transport:
        assert await whole(transport, get()) == b""


async def test_a_body_that_is_no_gzip_ends_its_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99999\r\n\r\nnope"
    async with peer(answering(answer, connections=[])) as port, at(port) as transport:
        with pytest.raises(BadAnswer, match="gzip"):
            await anext((await transport(get())).chunks())
        await until(lambda: not transport._connections)


# ── Giving up ───────────────────────────────────────────────────────────────────────────────────────


async def test_who_gives_up_does_not_take_the_connection_from_who_came_next() -> None:
    """The answer to the one that gave up came in the same turn, and the connection had gone on already."""
    async with peer(answering(OK, connections=[])) as port, at(port) as transport:
        assert await whole(transport, get()) == b"ok"
        (connection,) = transport._connections
        first = asyncio.ensure_future(transport(get("/first")))
        await asyncio.sleep(0)
        assert connection._waiter is not None
        connection.data_received(OK)  # whole: the connection is free
        second = asyncio.ensure_future(transport(get("/second")))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert _asked(transport) == [connection]
        connection.data_received(OK)
        assert await (await second).read() == b"ok"
        assert connection.is_open


async def test_an_answer_that_nobody_waits_for_any_more_cuts_its_connection() -> None:
    part = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"
    for cancel_first in (False, True):
        async with peer(answering(connections=[])) as port, at(port) as transport:
            asking = asyncio.ensure_future(transport(get()))
            await until(lambda: _asked(transport))
            (connection,) = transport._connections
            if cancel_first:
                asking.cancel()
            connection.data_received(part)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert not connection.is_open


def _asked(transport: HttpTransport) -> list[Connection]:
    return [connection for connection in transport._connections if connection._waiter is not None]


async def test_nothing_is_read_between_a_granted_upgrade_and_who_goes_on_with_it() -> None:
    """What comes next is no HTTP, and this connection would take it for words that nobody asked for."""
    async with peer(answering(connections=[])) as port, at(port) as transport:
        asking = asyncio.ensure_future(transport(Request("GET", "/", upgrade=("v5.channel.k8s.io",))))
        await until(lambda: _asked(transport))
        (connection,) = transport._connections
        connection.data_received(b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        assert not connection.transport.is_reading()
        with pytest.raises(BadAnswer, match="not one to our key"):
            await asking
        assert not connection.is_open


async def test_who_gives_up_in_the_moment_that_an_upgrade_is_granted_leaves_no_connection_behind() -> None:
    async with peer(answering(connections=[])) as port, at(port) as transport:
        asking = asyncio.ensure_future(transport(Request("GET", "/", upgrade=("v5.channel.k8s.io",))))
        await until(lambda: _asked(transport))
        (connection,) = transport._connections
        connection.data_received(b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not connection.is_open
        await until(lambda: not transport._connections)


async def test_closing_while_a_connection_is_opened_sends_nothing(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1))

    context = client_context()
    async with peer(talk, server_context(for_server(), tmp_path)) as port:
        transport = HttpTransport(Endpoint(f"https://127.0.0.1:{port}", ssl_context=lambda: context))
        asking = asyncio.ensure_future(transport(get()))
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(ConnectionFailed, match="closed meanwhile"):
            await asking
    assert b"G" not in seen


async def test_closing_closes_what_is_idle() -> None:
    async with peer(counting([])) as port:
        transport = at(port)
        assert await whole(transport, get()) == b"ok"
        await transport.close()
        assert not transport._connections
