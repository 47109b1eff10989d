"""A server in a function: answers requests as a test says, and remembers them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from setpoint.errors import SetpointError
from setpoint.net.transport import Request, WebSocket


@dataclass
class Reply:
    """A response made up beforehand.  A body given in pieces arrives so; an error among them is raised."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_closed: bool = False
    websocket: WebSocket | None = None

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in _pieces(self.body):
            if isinstance(piece, Exception):
                raise piece
            if piece is FOREVER:
                await asyncio.Event().wait()
            yield piece

    async def close(self) -> None:
        self.is_closed = True


FOREVER: Any = object()  # a piece that never arrives


def _pieces(body: Any) -> Iterable[Any]:
    if isinstance(body, list):
        return body
    return [body if isinstance(body, bytes) else json.dumps(body).encode()]


@dataclass
class Peer:
    """A transport.  ``answer`` is a function of the request, or replies and errors to be used up in turn."""

    answer: Callable[[Request], Reply] | list[Reply | SetpointError]
    requests: list[Request] = field(default_factory=list)

    async def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = self.answer.pop(0) if isinstance(self.answer, list) else self.answer(request)
        if isinstance(reply, SetpointError):
            raise reply
        return reply

    def query(self, index: int = -1) -> dict[str, str]:
        """The parameters of a request."""
        return {
            name: values[0] for name, values in parse_qs(urlsplit(self.requests[index].target).query).items()
        }

    def path(self, index: int = -1) -> str:
        return urlsplit(self.requests[index].target).path

    def sent(self, index: int = -1) -> Any:
        """The body of a request."""
        return json.loads(self.requests[index].body or b"null")


def status(code: int, reason: str = "", message: str = "no", **more: Any) -> Reply:
    """A refusal, as Kubernetes words it."""
    headers = more.pop("headers", {})
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    return Reply(code, body | ({"reason": reason} if reason else {}) | more, headers)
