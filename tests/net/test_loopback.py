"""The promises of ``net/loopback.py``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

import pytest

from setpoint.errors import AnswerLost, ConnectionFailed
from setpoint.net.listen import Answer
from setpoint.net.loopback import Loopback
from setpoint.net.transport import Request, WebSocket
from tests.net.peers import echo, forever


async def test_the_app_sees_the_request_and_the_caller_the_answer() -> None:
    response = await Loopback(echo)(Request("POST", "/a?b=c", {"X-Ask": "1"}, b"body"))
    assert (response.status, response.headers["x-seen"]) == (200, "yes")
    assert await response.read() == b"POST /a?b=c [('x-ask', '1')]body"
    assert [chunk async for chunk in response.chunks()] == [b"POST /a?b=c [('x-ask', '1')]body"]
    assert response.websocket is None
    await response.close()


async def test_headers_are_found_in_any_case_and_joined() -> None:
    seen: list[str] = []

    async def app(request: Request) -> Answer:
        seen.append(request.headers["x-several"])
        return Answer(200, {"Warning": "one\ntwo"})

    response = await Loopback(app)(Request("GET", "/", {"X-Several": "a\nb"}))
    assert seen == ["a, b"]
    assert response.headers["WARNING"] == "one, two"


async def test_headers_of_its_own_are_added_where_there_are_none() -> None:
    transport = Loopback(echo, headers={"Authorization": "ours"})
    assert b"('authorization', 'ours')" in await (await transport(Request("GET", "/"))).read()
    theirs = await (await transport(Request("GET", "/", {"authorization": "theirs"}))).read()
    assert b"('authorization', 'theirs')" in theirs


async def test_to_a_head_there_is_no_body_and_a_stream_is_not_begun() -> None:
    ended = []

    async def stream() -> AsyncIterator[bytes]:
        try:
            yield b"never"
        finally:
            ended.append("begun")

    bodies: list[bytes | AsyncIterable[bytes]] = [b"text", stream()]

    async def app(_: Request) -> Answer:
        return Answer(200, {"X": "y"}, bodies.pop())

    for _ in range(2):
        response = await Loopback(app)(Request("HEAD", "/"))
        assert (response.status, response.headers["x"], await response.read()) == (200, "y", b"")
    assert not ended


async def test_what_is_checked_at_the_last_moment_may_stop_a_request() -> None:
    def refuse() -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        await Loopback(echo)(Request("GET", "/", check=refuse))


async def test_an_app_that_fails_is_a_500(caplog: pytest.LogCaptureFixture) -> None:
    async def app(_: Request) -> Answer:
        raise ValueError("internals")

    response = await Loopback(app)(Request("GET", "/"))
    assert (response.status, await response.read()) == (500, b"internal error\n")
    assert "internals" in caplog.text


async def test_a_body_longer_than_agreed_never_reaches_the_app() -> None:
    response = await Loopback(echo, max_body=3)(Request("POST", "/", body=b"1234"))
    assert response.status == 413


async def test_pieces_come_as_they_are_made_and_a_reader_that_gave_up_goes_on() -> None:
    go_on = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    response = await Loopback(app)(Request("GET", "/"))
    assert await anext(response.chunks()) == b"first"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(response.chunks())
    go_on.set()
    assert await response.read() == b"second"


async def test_a_body_that_fails_midway_is_not_taken_for_a_whole_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        raise ValueError("disk on fire")

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    with pytest.raises(AnswerLost):
        await (await Loopback(app)(Request("GET", "/"))).read()
    assert "the body failed midway" in caplog.text


async def test_closing_a_response_ends_its_stream() -> None:
    ended = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"."
            await forever()
        finally:
            ended.set()

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    response = await Loopback(app)(Request("GET", "/"))
    assert await anext(response.chunks()) == b"."
    await response.close()
    await response.close()
    assert ended.is_set()


async def test_a_writer_does_not_run_away_from_its_reader() -> None:
    written = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal written
        while True:
            written += 1
            yield b"."

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    response = await Loopback(app)(Request("GET", "/"))
    for _ in range(500):
        await asyncio.sleep(0)
    assert written < 100
    await response.close()


async def test_closing_cuts_what_is_under_way_and_refuses_what_comes() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"."
        await forever()

    async def app(_: Request) -> Answer:
        return Answer(body=body())

    transport = Loopback(app)
    response = await transport(Request("GET", "/"))
    reading = asyncio.ensure_future(response.read())
    await asyncio.sleep(0)
    await transport.close()
    with pytest.raises(AnswerLost):
        await reading
    with pytest.raises(ConnectionFailed):
        await transport(Request("GET", "/"))


async def test_a_websocket_needs_a_socket() -> None:
    async def talk(_: WebSocket) -> None: ...

    async def app(_: Request) -> Answer:
        return Answer(talk=talk)

    with pytest.raises(ConnectionFailed, match="needs a socket"):
        await Loopback(app)(Request("GET", "/"))
