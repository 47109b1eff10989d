"""A WebSocket as a stream of messages, the same for the end that asked and the end that listens.

A ``MessageStream`` tells three endings apart: the peer closed (``receive`` gives None), the connection was
cut or the peer fell silent (``AnswerLost``), the peer broke the protocol (``BadAnswer``).

Used by ``http.py`` and ``upgrading.py``, which do the handshakes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import aiohttp

from setpoint.errors import AnswerLost, BadAnswer
from setpoint.net.failures import TEXT_LIMIT

if TYPE_CHECKING:
    from aiohttp import web  # the server's half, which a client need not load

HEARTBEAT = 30.0  # seconds of silence before a peer is asked whether it is still there
CLOSE_TIMEOUT = 5.0  # seconds that a peer has to answer our close
MAX_MESSAGE = 16 * 2**20  # bytes; the messages of Kubernetes are of 32 KiB
_GOOD_CLOSE = frozenset({None, 0, 1000, 1001, 1005})  # done, going away, nothing said


class MessageStream:
    """One end of a WebSocket.  Its handshake must leave closing, pings and pongs to us."""

    def __init__(
        self,
        stream: aiohttp.ClientWebSocketResponse | web.WebSocketResponse,
        subprotocol: str | None,
        doing: str,
    ) -> None:
        self._stream = stream
        self._subprotocol = subprotocol or ""
        self._doing = doing
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<WebSocket {self._subprotocol or 'without a subprotocol'} of {self._doing}>"

    @property
    def subprotocol(self) -> str:
        return self._subprotocol

    async def send(self, message: bytes) -> None:
        await self._sent(self._stream.send_bytes(message))

    async def send_text(self, message: bytes) -> None:
        await self._sent(self._stream.send_frame(message, aiohttp.WSMsgType.TEXT))

    async def _sent(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except (aiohttp.ClientError, OSError) as error:
            raise AnswerLost(self._doing, "the connection is gone, a message was not sent") from error

    async def receive(self) -> bytes | None:
        """The next message; None once either side has closed.

        While one waits here, a silent peer is asked whether it is still there.  Only here: a peer whose
        messages we are slow to take cannot show that it lives, and is not to be given up for that.
        """
        asked = False
        while not self._is_closed:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    message = await self._stream.receive()
            except TimeoutError:
                if asked:
                    await self.close()
                    raise AnswerLost(self._doing, f"the peer was silent for {2 * HEARTBEAT:g} s") from None
                asked = True
                await self._control(self._stream.ping())
                continue
            asked = False
            match message.type:
                case aiohttp.WSMsgType.BINARY:
                    return bytes(message.data)
                case aiohttp.WSMsgType.TEXT:
                    return str(message.data).encode()
                case aiohttp.WSMsgType.PING:
                    await self._control(self._stream.pong(message.data))
                case aiohttp.WSMsgType.PONG:
                    pass
                case aiohttp.WSMsgType.CLOSE:
                    await self.close()
                    self._check_code(message.data, message.extra)
                case aiohttp.WSMsgType.ERROR:
                    await self.close()
                    raise BadAnswer(self._doing, f"not a WebSocket message that we can take: {message.data}")
                case _ if not self._is_closed:  # the connection ended, and neither side had said so
                    await self.close()
                    raise AnswerLost(self._doing, "the connection was cut")
        return None

    async def close(self) -> None:
        """Say that we are done.  A peer that does not answer is left after ``CLOSE_TIMEOUT``."""
        self._is_closed = True
        await self._stream.close()

    async def _control(self, sending: Awaitable[None]) -> None:
        """A ping or pong that cannot be sent is no news: the next receive says what happened."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            await sending

    def _check_code(self, code: int | None, reason: str | None) -> None:
        if code not in _GOOD_CLOSE:
            said = f": {reason[:TEXT_LIMIT]}" if reason else ""
            raise AnswerLost(self._doing, f"the peer closed with code {code}{said}")
