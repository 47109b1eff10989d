"""The promises of ``net/upgraded.py``, over real sockets where there is one to speak on."""

from __future__ import annotations

import asyncio
import base64
import hashlib

import pytest

from setpoint.errors import BadAnswer
from setpoint.net.transport import Request
from setpoint.net.upgraded import Offer, Upgraded
from tests.net.peers import Talk, at, forever, head, peer

OFFERED = ("v5.channel.k8s.io", "v4.channel.k8s.io")


def proof(key: str) -> str:
    """As RFC 6455 has it, written a second time."""
    salted = (key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()
    return base64.b64encode(hashlib.sha1(salted).digest()).decode()


def granted(offer: Offer) -> dict[str, str]:
    return {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": proof(offer.headers()["Sec-WebSocket-Key"]),
    }


@pytest.mark.parametrize("connection", ["Upgrade", "upgrade", "keep-alive, Upgrade", "upgrade,keep-alive"])
def test_an_upgrade_is_granted_among_other_words(connection: str) -> None:
    offer = Offer(OFFERED)
    assert offer.why_not_granted({**granted(offer), "Connection": connection, "Upgrade": "WebSocket"}) == ""


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"Upgrade": "h2c"}, "not websocket"),
        ({"Connection": "keep-alive"}, "not upgrade"),
        ({"Connection": "no-upgrade"}, "not upgrade"),
        ({"Sec-WebSocket-Accept": proof("another")}, "not one to our key"),
        ({"Sec-WebSocket-Accept": ""}, "not one to our key"),
        ({"Sec-WebSocket-Extensions": "permessage-deflate"}, "not offered"),
    ],
)
def test_what_is_not_granted_is_said(header: dict[str, str], said: str) -> None:
    offer = Offer(OFFERED)
    assert said in offer.why_not_granted({**granted(offer), **header})


def test_no_two_offers_have_the_same_key() -> None:
    keys = {Offer(OFFERED).headers()["Sec-WebSocket-Key"] for _ in range(10)}
    assert len(keys) == 10
    assert all(len(base64.b64decode(key)) == 16 for key in keys)


@pytest.mark.parametrize(
    ("said", "chosen"),
    [("v4.channel.k8s.io", "v4.channel.k8s.io"), ("other", None), ("", None), ("V4.channel.k8s.io", None)],
)
def test_only_what_was_offered_can_be_chosen(said: str, chosen: str | None) -> None:
    assert Offer(OFFERED).chosen({"Sec-WebSocket-Protocol": said}) == chosen


def granting(*frames: bytes) -> Talk:
    """Grants whatever WebSocket it is asked for, and says this together with the answer."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await head(reader)).decode()
        key = next(line[19:] for line in asked.split("\r\n") if line.startswith("Sec-WebSocket-Key: "))
        answer = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {proof(key)}\r\nSec-WebSocket-Protocol: {OFFERED[1]}\r\n\r\n"
        )
        writer.write(answer.encode() + b"".join(frames))
        await forever()

    return talk


def frame(message: bytes) -> bytes:
    return b"\x82\x7f" + len(message).to_bytes(8, "big") + message


async def test_what_comes_together_with_the_answer_is_the_first_message() -> None:
    async with peer(granting(frame(b"first"), frame(b"second"))) as port, at(port) as transport:
        response = await transport(Request("GET", "/", upgrade=OFFERED))
        assert response.websocket is not None
        assert response.websocket.subprotocol == OFFERED[1]
        assert not transport._written, "its key never comes again"
        assert [await response.websocket.receive() for _ in range(2)] == [b"first", b"second"]


async def test_a_server_that_says_much_with_its_answer_waits_for_the_reader() -> None:
    message = bytes(2**10)
    async with peer(granting(frame(message) * 20_000)) as port, at(port) as transport:
        response = await transport(Request("GET", "/", upgrade=OFFERED))
        assert isinstance(response, Upgraded)
        assert response.websocket is not None
        async with asyncio.timeout(10):
            while response._transport.is_reading():
                await asyncio.sleep(0.001)
        for _ in range(20_000):
            assert await response.websocket.receive() == message


async def test_what_we_say_is_masked_and_closing_ends_the_connection() -> None:
    """Else whoever chooses our messages chooses what a proxy on the way sees (RFC 6455, 10.3)."""
    seen: list[bytes] = []
    grant = granting()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        granted = asyncio.ensure_future(grant(reader, writer))
        await answered.wait()
        granted.cancel()
        await asyncio.wait([granted])
        seen.append(await reader.readexactly(2 + 4 + 5))
        seen.append(await reader.readexactly(2 + 4 + 2))
        writer.write(b"\x88\x02\x03\xe8")  # closed, and all is well
        seen.append(await reader.read())

    answered = asyncio.Event()
    async with peer(talk) as port, at(port) as transport:
        response = await transport(Request("GET", "/", upgrade=OFFERED))
        assert response.websocket is not None
        answered.set()
        await response.websocket.send(b"hello")
        await response.close()
        async with asyncio.timeout(10):
            while len(seen) < 3:
                await asyncio.sleep(0.001)
    assert seen[0][:2] == b"\x82\x85", "the bit, and the length"
    assert bytes(byte ^ seen[0][2 + at % 4] for at, byte in enumerate(seen[0][6:])) == b"hello"
    assert seen[1][:2] == b"\x88\x82"
    assert seen[2] == b""


async def test_closing_the_transport_cuts_its_websockets() -> None:
    async with peer(granting()) as port:
        async with at(port) as transport:
            response = await transport(Request("GET", "/", upgrade=OFFERED))
            assert isinstance(response, Upgraded)
        assert response._transport.is_closing()


async def test_an_answer_to_another_key_is_not_believed() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        said = "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        writer.write(f"{said}{proof('another')}\r\n\r\n".encode())
        await forever()

    async with peer(talk) as port, at(port) as transport:
        with pytest.raises(BadAnswer, match="not one to our key"):
            await transport(Request("GET", "/", upgrade=OFFERED))
        assert not [connection for connection in transport._connections if connection.is_open]
