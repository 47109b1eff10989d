"""What a server sends to a cache, made up: pages, frames, and watches that go on as a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from setpoint.net.transport import Request
from tests.cache.objects import thing
from tests.peer import Reply, status


def frame(kind: str, name: str = "a", version: int | str = 1, **more: Any) -> bytes:
    return json.dumps({"type": kind, "object": thing(name, version, **more)}).encode() + b"\n"


def bookmark(version: int | str, *, end: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    return frame("BOOKMARK", "", version, annotations=annotations)


def refusal(code: int, reason: str) -> bytes:
    return json.dumps({"type": "ERROR", "object": status(code, reason).body}).encode() + b"\n"


def page(*items: dict[str, Any], version: int | str, token: str = "") -> Reply:
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return Reply(200, {"kind": "ThingList", "metadata": metadata, "items": list(items)})


@dataclass
class Live(Reply):
    """A watch that is under way: what is sent arrives, until it is ended or broken."""

    _pieces: asyncio.Queue[bytes | Exception | None] = field(default_factory=asyncio.Queue)

    def send(self, *frames: bytes) -> None:
        self._pieces.put_nowait(b"".join(frames))

    def end(self) -> None:
        self._pieces.put_nowait(None)

    def break_off(self, error: Exception) -> None:
        self._pieces.put_nowait(error)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def is_watch(request: Request) -> bool:
    return "watch=true" in request.target


@asynccontextmanager
async def running(work: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """What is to run while the block does."""

    async def run() -> None:
        await work()

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


async def until(condition: Callable[[], bool], *, within: float = 3600) -> None:
    """Wait until something is so; in virtual time this takes none."""
    step = 0.01
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(step)
            step = min(0.5, step * 1.01)
