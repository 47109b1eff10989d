"""The promises of ``net/messages.py``: WebSockets between our own two ends, over real sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from setpoint.errors import AnswerLost, BadAnswer
from setpoint.net.listen import Answer, serve
from setpoint.net.transport import Request, WebSocket
from tests.net.peers import (
    at,
    failure,
    forever,
    peer,
    says,
)

OFFER = Request("GET", "/exec", upgrade=("v5.channel.k8s.io", "v4.channel.k8s.io"))


def talking(talk: Callable[[WebSocket], Awaitable[None]]) -> Callable[[Request], Awaitable[Answer]]:
    async def app(request: Request) -> Answer:
        assert request.upgrade == OFFER.upgrade
        return Answer(talk=talk, subprotocol=request.upgrade[1])

    return app


async def test_a_granted_upgrade_gives_a_stream_of_messages_in_the_subprotocol_chosen() -> None:
    async def talk(websocket: WebSocket) -> None:
        while (message := await websocket.receive()) is not None:
            await websocket.send(message.upper())

    async with serve(talking(talk)) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.status == 101
        assert response.websocket is not None
        assert response.websocket.subprotocol == "v4.channel.k8s.io"
        await response.websocket.send(b"hello")
        assert await response.websocket.receive() == b"HELLO"
        await response.websocket.send(b"x" * 100_000)
        assert await response.websocket.receive() == b"X" * 100_000
        await response.close()
        assert await response.websocket.receive() is None


async def test_a_refused_upgrade_is_an_answer_with_its_body() -> None:
    async def app(request: Request) -> Answer:
        return Answer(403, {"Content-Type": "application/json"}, b'{"kind":"Status"}')

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert (response.status, response.websocket) == (403, None)
        assert response.headers["Content-Type"] == "application/json"
        assert await response.read() == b'{"kind":"Status"}'


@pytest.mark.parametrize("status", [200, 302])
async def test_an_upgrade_that_is_answered_as_if_not_asked_for_is_an_answer(status: int) -> None:
    async def app(request: Request) -> Answer:
        return Answer(status, {"Location": "/elsewhere"}, b"plain")

    async with serve(app) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert (response.status, response.websocket, await response.read()) == (status, None, b"plain")


async def test_a_handshake_that_is_wrong_is_bad() -> None:
    wrong = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
    async with peer(says(wrong + b"Sec-WebSocket-Accept: no\r\n\r\n")) as port:
        error = await failure(at(port), OFFER)

    assert isinstance(error, BadAnswer)
    assert "the WebSocket handshake" in str(error)


async def test_a_peer_that_closes_ends_the_messages() -> None:
    async def talk(websocket: WebSocket) -> None:
        await websocket.send(b"bye")

    async with serve(talking(talk)) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.websocket is not None
        assert await response.websocket.receive() == b"bye"
        assert await response.websocket.receive() is None
        assert await response.websocket.receive() is None


async def cut(websocket: WebSocket) -> None:
    websocket._stream._req.transport.abort()  # type: ignore[attr-defined]


async def test_a_stream_that_is_cut_is_not_taken_for_one_that_was_closed() -> None:
    async with serve(talking(cut)) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.websocket is not None
        with pytest.raises(AnswerLost, match="the connection was cut"):
            await response.websocket.receive()
        with pytest.raises(AnswerLost, match="was not sent"):
            await response.websocket.send(b"too late")
        await response.close()


async def test_a_peer_that_closes_with_an_error_says_which() -> None:
    async def talk(websocket: WebSocket) -> None:
        await websocket._stream.close(code=1011, message=b"out of memory")  # type: ignore[attr-defined]

    async with serve(talking(talk)) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.websocket is not None
        with pytest.raises(AnswerLost, match="closed with code 1011: out of memory"):
            await response.websocket.receive()


async def test_a_message_longer_than_agreed_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.net.upgraded.MAX_MESSAGE", 1000)

    async def talk(websocket: WebSocket) -> None:
        await websocket.send(b"x" * 1001)
        await websocket.receive()

    async with serve(talking(talk)) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.websocket is not None
        with pytest.raises(BadAnswer):
            await response.websocket.receive()


async def test_a_silent_peer_that_answers_pings_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.net.messages.HEARTBEAT", 0.02)

    async def talk(websocket: WebSocket) -> None:
        for _ in range(3):
            await pinged(websocket)
        await websocket.send(b"at last")
        await websocket.receive()

    async with serve(talking(talk)) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.websocket is not None
        assert await response.websocket.receive() == b"at last"
        await response.close()


async def pinged(websocket: WebSocket) -> None:
    """Wait for a ping and answer it."""
    stream = websocket._stream  # type: ignore[attr-defined]
    message = await stream.receive()
    assert message.type.name == "PING", message
    await stream.pong(message.data)


async def test_a_peer_that_answers_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.net.messages.HEARTBEAT", 0.02)
    monkeypatch.setattr("setpoint.net.upgraded.CLOSE_TIMEOUT", 0.02)

    async def talk(websocket: WebSocket) -> None:
        await forever()

    async with serve(talking(talk), grace=0.1) as address, at(address.port) as transport:
        response = await transport(OFFER)
        assert response.websocket is not None
        with pytest.raises(AnswerLost, match=r"the peer was silent for 0\.04 s"):
            await response.websocket.receive()
