"""Asks for a WebSocket, and hands the connection on which it was granted over to aiohttp, which speaks it.

The handshake is ours, so that an upgrade takes the same way, and fails with the same words, as any request;
from then on the connection is aiohttp's.  In a file apart, since most clients never ask for an upgrade, and
loading aiohttp takes longer than loading all else of theirs.

Used by ``http.py``.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final, cast

import aiohttp
from aiohttp._websocket.reader import WebSocketDataQueue  # not public, and the only one there is
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_websocket import WebSocketReader, WebSocketWriter

from setpoint.net.messages import CLOSE_TIMEOUT, MAX_MESSAGE, MessageStream
from setpoint.net.transport import WebSocket

_SALT: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_MUCH: Final = 64 * 2**10  # bytes of messages that wait for their reader


class Offer:
    """One request for a WebSocket that speaks one of these subprotocols."""

    def __init__(self, subprotocols: tuple[str, ...]) -> None:
        self._subprotocols = subprotocols
        self._key = base64.b64encode(os.urandom(16)).decode()

    def headers(self) -> dict[str, str]:
        return {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": self._key,
            "Sec-WebSocket-Protocol": ",".join(self._subprotocols),
        }

    def why_not_granted(self, answer: Mapping[str, str]) -> str:
        """What is wrong with the headers of an answer 101; "" if nothing is."""
        if answer.get("Upgrade", "").lower() != "websocket":
            return "the answer's Upgrade header is not websocket"
        if "upgrade" not in [word.strip() for word in answer.get("Connection", "").lower().split(",")]:
            return "the answer's Connection header is not upgrade"
        proof = hashlib.sha1((self._key + _SALT).encode(), usedforsecurity=False).digest()
        if answer.get("Sec-WebSocket-Accept") != base64.b64encode(proof).decode():
            return "the answer is not one to our key"
        if "Sec-WebSocket-Extensions" in answer:
            return "the answer takes up extensions that were not offered"
        return ""

    def chosen(self, answer: Mapping[str, str]) -> str | None:
        """Of the subprotocols that were offered, the one that the server took."""
        named = [name.strip() for name in answer.get("Sec-WebSocket-Protocol", "").split(",")]
        return next((name for name in named if name in self._subprotocols), None)


class Upgraded:
    """The answer 101: there is no body, the connection is now a message stream."""

    status = 101
    headers: Mapping[str, str] = MappingProxyType({})  # none that the handshake has not used up

    def __init__(
        self, transport: asyncio.Transport, rest: bytes, subprotocol: str | None, doing: str
    ) -> None:
        self._transport = transport
        self._websocket = MessageStream(_speak(transport, rest, subprotocol), subprotocol, doing)
        self.websocket: WebSocket | None = self._websocket

    async def read(self) -> bytes:
        return b""

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError("an upgraded connection has no body: use its websocket")

    async def close(self) -> None:
        await self._websocket.close()

    def cut(self) -> None:
        self._transport.abort()


def _speak(
    transport: asyncio.Transport, rest: bytes, subprotocol: str | None
) -> aiohttp.ClientWebSocketResponse:
    """The end of the connection that aiohttp has, with what came on it already."""
    loop = asyncio.get_running_loop()
    handler = ResponseHandler(loop)
    transport.set_protocol(handler)
    handler.connection_made(transport)
    messages = WebSocketDataQueue(handler, _MUCH, loop=loop)
    stream = aiohttp.ClientWebSocketResponse(
        messages,
        WebSocketWriter(handler, transport, use_mask=True),
        subprotocol,
        cast("aiohttp.ClientResponse", _Held(handler)),
        aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT),
        autoclose=False,  # so that a close frame can be told from a cut connection
        autoping=False,  # so that pongs are seen, see MessageStream.receive
        loop=loop,
    )
    parser = WebSocketReader(messages, MAX_MESSAGE, compress=False, decode_text=True)
    # As aiohttp's own session leaves them: the parser lives as long as the stream, and there is no other.
    stream._parser = parser  # noqa: SLF001
    handler._upgraded = True  # noqa: SLF001
    handler.set_parser(parser, messages)
    transport.resume_reading()  # before the rest, which may be enough to pause it again
    if rest:
        handler.data_received(rest)
    return stream


class _Held:
    """Stands for the answer that aiohttp did not read: all that it does with it is to close it."""

    connection = None

    def __init__(self, handler: ResponseHandler) -> None:
        self._handler = handler

    def close(self) -> None:
        self._handler.close()
