"""The promises of ``net/listen.py``, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net import listen
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.listen import Address, Answer, serve
from setpoint.net.transport import Request, WebSocket
from tests.net.peers import (
    at,
    client_context,
    for_server,
    forever,
    get,
    head,
    peer,
    proxying,
    server_context,
    whole,
)


async def test_the_app_sees_the_request_as_it_was_sent() -> None:
    seen: list[Request] = []

    async def app(request: Request) -> Answer:
        seen.append(request)
        return Answer(201, {"X-Answer": "yes"}, b"made")

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(Request("POST", "/a%2Fb?c=d%20e", {"X-Ask": "1"}, b"body"))
        assert (response.status, response.headers["x-answer"], await response.read()) == (201, "yes", b"made")

    assert (seen[0].method, seen[0].target, seen[0].body, seen[0].upgrade) == (
        "POST",
        "/a%2Fb?c=d%20e",
        b"body",
        (),
    )
    assert seen[0].headers["x-ask"] == "1"


async def test_it_listens_with_tls_where_a_context_is_given(tmp_path: Path) -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"safe")

    context = client_context()
    async with serve(app, ssl_context=server_context(for_server(), tmp_path)) as address:
        assert str(address).startswith("https://127.0.0.1:")
        async with HttpTransport(Endpoint(str(address), ssl_context=lambda: context)) as transport:
            assert await whole(transport, get()) == b"safe"


async def test_a_body_longer_than_agreed_never_reaches_the_app() -> None:
    async def app(_: Request) -> Answer:
        raise AssertionError("not to be asked")

    async with serve(app, max_body=1000) as address, at(address.port) as transport:
        response = await transport(Request("POST", "/", {}, b"x" * 1001))
        assert response.status == 413
        assert b"longer than 1000 bytes" in await response.read()


async def test_an_app_that_fails_is_a_500_without_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def app(_: Request) -> Answer:
        raise ValueError("internals")

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(get())
        assert (response.status, await response.read()) == (500, b"internal error\n")

    assert "internals" in caplog.text


async def test_pieces_of_a_body_are_sent_as_they_come() -> None:
    go_on = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    async with serve(app) as address, at(address.port) as transport:
        chunks = (await transport(get())).chunks()
        assert await anext(chunks) == b"first"
        go_on.set()
        assert [chunk async for chunk in chunks] == [b"second"]


async def test_a_body_that_fails_midway_is_not_taken_for_a_whole_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        raise ValueError("disk on fire")

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    async with serve(app) as address, at(address.port) as transport:
        with pytest.raises(AnswerLost):
            await whole(transport, get())

    assert "the body failed midway" in caplog.text


async def test_who_went_away_is_not_worked_for() -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def app(_: Request) -> Answer:
        began.set()
        try:
            await forever()
        finally:
            cancelled.set()
        return Answer()

    async with serve(app) as address:
        _, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await began.wait()
        writer.close()
        await cancelled.wait()
        await writer.wait_closed()


async def test_a_stream_that_nobody_reads_any_more_is_closed() -> None:
    closed = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"."
            await forever()
        finally:
            closed.set()

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(get())
        assert await anext(response.chunks()) == b"."
        await response.close()
        await closed.wait()


async def test_leaving_lets_requests_under_way_finish() -> None:
    began, finish = asyncio.Event(), asyncio.Event()

    async def app(_: Request) -> Answer:
        began.set()
        await finish.wait()
        return Answer(body=b"done")

    async with serve(app) as address:
        transport = at(address.port)
        asking = asyncio.ensure_future(whole(transport, get()))
        await began.wait()
        asyncio.get_running_loop().call_soon(finish.set)
    assert await asking == b"done"
    await transport.close()


async def test_leaving_cancels_what_does_not_finish_in_time() -> None:
    began = asyncio.Event()

    async def app(_: Request) -> Answer:
        began.set()
        await forever()
        return Answer()

    async with serve(app, grace=0.01) as address:
        transport = at(address.port)
        asking = asyncio.ensure_future(whole(transport, get()))
        await began.wait()
    with pytest.raises(AnswerLost):
        await asking
    await transport.close()


async def test_leaving_ends_idle_connections_and_listening() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"ok")

    async with serve(app) as address:
        transport = at(address.port)
        assert await whole(transport, get()) == b"ok"
        reader, writer = await asyncio.open_connection(address.host, address.port)
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionFailed):
        await whole(transport, get())
    await transport.close()


async def test_offered_subprotocols_reach_the_app_and_its_choice_the_client() -> None:
    seen: list[tuple[str, ...]] = []

    async def talk(websocket: WebSocket) -> None:
        await websocket.send(websocket.subprotocol.encode())

    async def app(request: Request) -> Answer:
        seen.append(request.upgrade)
        return Answer(talk=talk, subprotocol="b")

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(Request("GET", "/", upgrade=("a", "b")))
        assert response.websocket is not None
        assert await response.websocket.receive() == b"b"
        await response.close()

    assert seen == [("a", "b")]


async def test_a_websocket_without_subprotocols_is_told_from_a_plain_request() -> None:
    seen: list[tuple[str, ...]] = []

    async def app(request: Request) -> Answer:
        seen.append(request.upgrade)
        return Answer()

    async with serve(app) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        await head(reader)
        writer.close()
        await writer.wait_closed()

    assert seen == [("",)]


async def test_rubbish_is_answered_and_hurts_nobody() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"ok")

    async with serve(app) as address, at(address.port) as transport:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"\x16\x03\x01 rubbish\r\n\r\n")
        assert (await head(reader)).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()
        assert await whole(transport, get()) == b"ok"


def test_an_address_is_shown_as_a_url() -> None:
    assert str(Address("127.0.0.1", 80, "http")) == "http://127.0.0.1:80"
    assert str(Address("::1", 443, "https")) == "https://[::1]:443"


def test_tls_is_agreed_on_under_uvloop_too(tmp_path: Path) -> None:
    """Which reads as soon as there is a connection, whatever a protocol says: the first words come early."""
    import uvloop

    async def app(request: Request) -> Answer:
        return Answer(body=b"hello")

    async def talk() -> bytes:
        tls, context = server_context(for_server(), tmp_path), client_context()
        async with (
            serve(app, ssl_context=tls) as address,
            peer(proxying([])) as proxy,
            HttpTransport(
                Endpoint(
                    str(address),
                    ssl_context=lambda: context,
                    proxy=f"http://127.0.0.1:{proxy}",
                    connect_timeout=10,
                )
            ) as transport,
        ):
            return await (await transport(Request("GET", "/"))).read()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(talk()) == b"hello"


async def test_a_client_without_tls_does_not_hurt_a_server_with_it(tmp_path: Path) -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"ok")

    context: ssl.SSLContext = client_context()
    async with serve(app, ssl_context=server_context(for_server(), tmp_path)) as address:
        async with at(address.port) as plain:
            with pytest.raises((AnswerLost, ConnectionFailed)):
                await whole(plain, get())
        async with HttpTransport(Endpoint(str(address), ssl_context=lambda: context)) as transport:
            assert await whole(transport, get()) == b"ok"


async def test_connections_beyond_the_limit_are_cut_and_a_place_that_is_free_is_given_again() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"welcome")

    async with serve(app, most_connections=1) as address:
        _, held = await asyncio.open_connection(address.host, address.port)
        async with at(address.port) as transport:
            with pytest.raises(AnswerLost):
                await transport(get())
            held.close()
            await held.wait_closed()
            while True:
                try:
                    assert await whole(transport, get()) == b"welcome"
                    break
                except AnswerLost:
                    await asyncio.sleep(0)


async def test_who_delays_tls_holds_a_place_until_it_is_gone(tmp_path: Path) -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"welcome")

    tls, context = server_context(for_server(), tmp_path), client_context()
    async with serve(app, ssl_context=tls, most_connections=1) as address:
        async with wire(address) as (silent, delaying):
            async with wire(address) as (other, _):
                with suppress(ConnectionError):
                    assert await other.read() == b"", "cut as it came: nothing is agreed on with one too many"
            delaying.write(b"GET / HTTP/1.1\r\n\r\n")  # which is no TLS, and ends it
            with suppress(ConnectionError):
                await silent.read()
        async with HttpTransport(Endpoint(str(address), ssl_context=lambda: context)) as transport:
            assert await whole(transport, get()) == b"welcome"


async def test_who_delays_tls_is_not_waited_for(tmp_path: Path) -> None:
    async def app(_: Request) -> Answer:
        raise AssertionError("not to be asked")

    tls = server_context(for_server(), tmp_path)
    async with serve(app, ssl_context=tls, slowest=0.05) as address, wire(address) as (reader, _):
        with suppress(ConnectionError):
            assert await reader.read() == b""


async def test_what_comes_together_with_the_last_of_a_handshake_is_read(tmp_path: Path) -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"welcome")

    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    tls = server_context(for_server(), tmp_path)
    async with serve(app, ssl_context=tls) as address, wire(address) as (reader, writer):
        asked, said = False, b""
        while b"welcome" not in said:
            try:
                client.do_handshake()
                if not asked:
                    asked = bool(client.write(b"GET / HTTP/1.1\r\n\r\n"))
                said += client.read()
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(2**16))
    assert said.startswith(b"HTTP/1.1 200 ")


async def test_leaving_does_not_wait_for_who_delays_tls(tmp_path: Path) -> None:
    async def app(_: Request) -> Answer:
        raise AssertionError("not to be asked")

    async with serve(app, ssl_context=server_context(for_server(), tmp_path)) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        async with wire(address) as (_, gone):
            gone.write(b"rubbish")
    with suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()


async def test_a_connection_that_says_nothing_is_cut_in_time() -> None:
    async def app(_: Request) -> Answer:
        raise AssertionError("not to be asked")

    async with serve(app, longest_connection=0.01) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_header_may_be_sent_several_times() -> None:
    async def app(_: Request) -> Answer:
        return Answer(200, {"Warning": "one\ntwo"}, b"ok")

    async with serve(app) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        said = await head(reader)
        assert b"\r\nWarning: one\r\nWarning: two\r\n" in said
        writer.close()
        await writer.wait_closed()


async def test_nothing_is_unpacked_on_the_way_to_the_app() -> None:
    async def app(request: Request) -> Answer:
        return Answer(body=request.body or b"")

    packed = gzip.compress(b"x" * 100_000)
    async with serve(app, max_body=1000) as address, at(address.port) as transport:
        sent = Request("POST", "/", {"Content-Encoding": "gzip"}, packed)
        assert await (await transport(sent)).read() == packed


async def test_what_is_answered_here_is_worded_by_whoever_asked_to() -> None:
    async def app(_: Request) -> Answer:
        raise ValueError("internals")

    def refuse(request: Request, code: int, why: str) -> Answer:
        return Answer(code, {"X-Why": why}, request.method.encode())

    async with serve(app, max_body=3, refuse=refuse) as address, at(address.port) as transport:
        long = await transport(Request("POST", "/", {}, b"1234"))
        assert (long.status, long.headers["X-Why"]) == (413, "the body is longer than 3 bytes")
        assert await long.read() == b"POST"
        failed = await transport(get())
        assert (failed.status, failed.headers["X-Why"]) == (500, "internal error")
        await failed.close()


async def test_a_body_that_comes_too_slowly_is_not_waited_for() -> None:
    async def app(_: Request) -> Answer:
        raise AssertionError("not to be asked")

    async with serve(app, slowest=0.05) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12")
        assert (await head(reader)).startswith(b"HTTP/1.1 408 ")
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_head_that_comes_too_slowly_is_not_waited_for() -> None:
    async def app(_: Request) -> Answer:
        raise AssertionError("not to be asked")

    async with serve(app, slowest=0.05) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\nHos")
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_connection_that_spoke_in_time_is_left_alone() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"ok")

    async with serve(app, slowest=0.05) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await head(reader)).startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(2) == b"ok"
            await asyncio.sleep(0.1)
        writer.close()
        await writer.wait_closed()


async def test_a_connection_between_two_requests_is_closed_in_time() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.sleep(0.2)  # which is not idle: an answer is under way
        yield b"second"

    async def app(request: Request) -> Answer:
        return Answer(body=body() if request.target == "/stream" else b"ok")

    async with serve(app, longest_idle=0.05) as address, wire(address) as (reader, writer):
        writer.write(b"GET /stream HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        said = await reader.read()
        assert b"\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n" in said
        assert said.endswith(b"\r\n\r\nok")


@asynccontextmanager
async def wire(address: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_requests_that_were_sent_at_once_are_answered_in_turn() -> None:
    async def app(request: Request) -> Answer:
        for _ in range(50 - int(request.target[1:])):  # the first takes the longest
            await asyncio.sleep(0)
        return Answer(body=request.target.encode())

    async with serve(app) as address, wire(address) as (reader, writer):
        writer.write(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(50)))
        for number in range(50):
            said = await head(reader)
            assert b"Content-Length: %d\r\n" % len(f"/{number}") in said
            assert await reader.readexactly(len(f"/{number}")) == f"/{number}".encode()


async def test_who_asks_before_sending_a_body_is_told_to_go_on_or_not() -> None:
    async def app(request: Request) -> Answer:
        return Answer(body=request.body or b"")

    asked = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    async with serve(app, max_body=2) as address:
        async with wire(address) as (reader, writer):
            writer.write(asked % 2)
            assert await head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"ok")
            assert (await head(reader)).startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(2) == b"ok"
        async with wire(address) as (reader, writer):
            writer.write(asked % 3)
            assert (await head(reader)).startswith(b"HTTP/1.1 413 ")


async def test_a_client_of_http_1_0_gets_no_chunks_and_its_connection_is_closed() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        yield b"second"

    async def app(request: Request) -> Answer:
        return Answer(body=body() if request.target == "/stream" else b"whole")

    async with serve(app) as address:
        for target, wanted in ((b"/stream", b"firstsecond"), (b"/", b"whole")):
            async with wire(address) as (reader, writer):
                writer.write(b"GET %b HTTP/1.0\r\n\r\n" % target)
                said = await head(reader)
                assert b"chunked" not in said
                assert b"\r\nConnection: close\r\n" in said
                assert await reader.read() == wanted


async def test_what_has_no_body_is_sent_without_one() -> None:
    async def app(request: Request) -> Answer:
        return Answer(int(request.target[1:]), {"X": "y"}, b"body")

    async with serve(app) as address, wire(address) as (reader, writer):
        for method, status in ((b"HEAD", 200), (b"GET", 304), (b"GET", 204)):
            writer.write(b"%b /%d HTTP/1.1\r\n\r\n" % (method, status))
            said = await head(reader)
            assert said.startswith(b"HTTP/1.1 %d " % status)
            assert (b"Content-Length: 4" in said) == (status == 200)


async def test_a_header_cannot_write_another(caplog: pytest.LogCaptureFixture) -> None:
    async def app(_: Request) -> Answer:
        return Answer(200, {"X": "a\r\nX-Evil: b"}, b"ok")

    async with serve(app) as address, wire(address) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        with suppress(ConnectionError):
            assert await reader.read() == b""

    assert "no answer could be sent" in caplog.text


async def test_a_later_request_is_not_waited_for_either() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"ok")

    async with serve(app, slowest=0.05) as address, wire(address) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT")
        assert (await head(reader)).startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(2) == b"ok"
        with suppress(ConnectionError):
            assert await reader.read() == b""


async def test_an_answer_that_nobody_reads_holds_back_the_next_and_not_the_others() -> None:
    asked: list[str] = []

    async def app(request: Request) -> Answer:
        asked.append(request.target)
        return Answer(body=b"x" * 20_000_000)

    async with (
        serve(app, grace=0) as address,
        at(address.port) as transport,
        wire(address) as (_, writer),
    ):
        writer.write(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n")
        assert len(await whole(transport, get())) == 20_000_000
        assert asked == ["/1", get().target]


async def test_who_is_not_known_is_refused_by_its_head_and_nothing_of_its_body_is_kept() -> None:
    seen: list[Request] = []

    async def app(request: Request) -> Answer:
        seen.append(request)
        return Answer(body=b"ok")

    def most_body(request: Request) -> int:
        return 2**20 if "who" in request.headers else 0

    async with serve(app, max_body=2**20, most_body=most_body, slowest=5) as address:
        for expects in (b"", b"Expect: 100-continue\r\n"):
            async with wire(address) as (reader, writer):
                writer.write(b"POST / HTTP/1.1\r\n%bContent-Length: 1000000\r\n\r\n" % expects)
                assert (await head(reader)).startswith(b"HTTP/1.1 413 "), "before any of it was sent"
        async with wire(address) as (reader, writer):
            writer.write(b"POST / HTTP/1.1\r\nWho: me\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000)
            assert (await head(reader)).startswith(b"HTTP/1.1 200 ")
    assert [len(each.body or b"") for each in seen] == [1_000_000]


async def test_of_requests_that_wait_only_so_much_is_read_however_many_are_sent() -> None:
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def app(_: Request) -> Answer:
        begun.set()
        await let_go.wait()
        return Answer(body=b"ok")

    one = b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000
    async with serve(app, max_body=3 * 2**20) as address, wire(address) as (reader, writer):

        async def send() -> None:
            for _ in range(15):
                writer.write(one)
                await writer.drain()

        sending = asyncio.create_task(send())
        await begun.wait()
        done, _ = await asyncio.wait({sending}, timeout=1)
        assert not done, "the rest waits at its sender"
        let_go.set()
        for _ in range(15):
            assert (await head(reader)).startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(2)
        await sending


async def test_an_answer_of_which_nothing_is_taken_is_not_waited_for() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"x" * 50_000_000)

    async def is_served(address: Address) -> bool:
        async with wire(address) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            try:
                return bool(await head(reader))
            except (EOFError, ConnectionError):
                return False

    async with serve(app, slowest=0.1, most_connections=1) as address, wire(address) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await head(reader)  # and of the rest, no more than fits on the way
        while not await is_served(address):  # as soon as the place is free
            await asyncio.sleep(0.01)


async def test_an_answer_that_is_taken_a_few_bytes_at_a_time_is_not_waited_for() -> None:
    async def app(_: Request) -> Answer:
        return Answer(body=b"x" * 50_000_000)

    async with serve(app, slowest=0.1) as address, wire(address) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await head(reader)
        taken = 0
        with suppress(ConnectionError):
            while piece := await reader.read(10):
                taken += len(piece)
        assert taken < 50_000_000


async def test_a_stream_of_which_nothing_is_taken_ends() -> None:
    closed = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 100_000
        finally:
            closed.set()

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    async with serve(app, slowest=0.1) as address, wire(address) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await head(reader)
        await closed.wait()


async def test_what_is_left_of_an_answer_when_its_connection_ends_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connections: list[listen._Connection] = []
    made = listen._Connection.connection_made

    def remember(self: listen._Connection, transport: asyncio.BaseTransport) -> None:
        connections.append(self)
        made(self, transport)

    monkeypatch.setattr(listen._Connection, "connection_made", remember)

    async def body() -> AsyncIterator[bytes]:
        sending = connections[0]._transport
        assert sending is not None
        while sending.get_write_buffer_size() < 30_000:  # too little for the stream to be held up
            yield b"x" * 10_000
            await asyncio.sleep(0)

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    async with serve(app, slowest=0.1) as address, wire(address) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads, too
        writer.write(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        while not connections:
            await asyncio.sleep(0)
        await connections[0].gone


async def test_listening_loads_none_of_the_library_that_sends() -> None:
    code = "import sys, setpoint.net.listen, setpoint.net.loopback; assert 'aiohttp' not in sys.modules"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0
