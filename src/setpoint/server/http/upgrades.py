"""A watch over a WebSocket: one event is one message of text, as fabric8's client and browsers ask for it.

Decides: whether a request asks for it, which subprotocol is spoken, what a token in place of one is.
Browsers cannot send an Authorization header with a WebSocket, so a token may come as a subprotocol of its
own, beside another that is spoken.  What a client sends is not looked at; that it closes ends the watch.

Not here: the handshake and the frames (``net/upgrading.py``).  Fed by ``watches.py``; used by ``app.py`` and
``authentication.py``.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final

from setpoint.errors import SetpointError
from setpoint.net.transport import Request, WebSocket
from setpoint.server.http.watches import Stream
from setpoint.server.statuses import StatusError

_BEARER: Final = "base64url.bearer.authorization.k8s.io."
_SLOWEST: Final = 60.0  # seconds in which a client has to take a message


def is_wanted(request: Request) -> bool:
    """Whether a connection is to become a WebSocket."""
    asked = request.headers.get("Connection", "").lower().split(",")
    return bool(request.upgrade) and request.method == "GET" and "upgrade" in (one.strip() for one in asked)


def subprotocol(request: Request) -> str:
    """The one that is offered: messages are the same whatever it is called.  Raises 400 for several."""
    offered = [one for one in request.upgrade if not one.startswith(_BEARER)]
    if len(offered) > 1:
        told = f"a watch is spoken in one subprotocol, and {len(offered)} were offered: offer one, or none"
        raise StatusError(400, "BadRequest", told, details={})
    return offered[0] if offered else ""


class BadToken(Exception):
    """A token was sent in place of a subprotocol, and cannot be read."""


def token(request: Request) -> str:
    """The one that was sent in place of a subprotocol; "" where none was.  Raises ``BadToken``."""
    sent = [one for one in request.upgrade if one.startswith(_BEARER)]
    if not sent or not is_wanted(request):
        return ""
    if len(sent) > 1:
        raise BadToken("several tokens were sent")
    if len(request.upgrade) == 1:
        raise BadToken("beside the token no subprotocol is offered")
    encoded = sent[0].removeprefix(_BEARER)
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadToken("the token is not in base64url") from None


def talk(open_stream: Callable[[], Stream]) -> Callable[[WebSocket], Awaitable[None]]:
    """Sends a stream message by message, until it ends or the client goes; it is opened once there is one."""

    async def talk_to(websocket: WebSocket) -> None:
        async with aclosing(open_stream()) as stream:
            reading = asyncio.create_task(_read(websocket, stream))
            try:
                async for message in stream:
                    async with asyncio.timeout(_SLOWEST):
                        await websocket.send_text(message)
            except TimeoutError:
                pass  # it takes nothing any more
            finally:
                reading.cancel()
                await asyncio.wait([reading])

    return talk_to


async def _read(websocket: WebSocket, stream: Stream) -> None:
    """Until the client closes, or is gone."""
    with suppress(SetpointError):
        while await websocket.receive() is not None:
            pass
    stream.end()
