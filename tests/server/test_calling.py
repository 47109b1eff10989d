"""Webhooks are called over connections that are kept, as many as are worth it, and never cut under a call."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from setpoint.net import listen
from setpoint.net.transport import Request
from setpoint.server.admission.calling import Caller, Target
from tests.server.hooks import sealed

_HOST = "hooks.default.svc"
_MANY = 40  # more than are kept
Answerer = Callable[[Request], Awaitable[None]]  # returns when it is to be answered


@asynccontextmanager
async def hooks_at(tmp_path: Path, answer: Answerer) -> AsyncIterator[Callable[[int, str], Target]]:
    """Any number of webhooks, all of them at one address; each differs in its authority's bytes."""
    authority, _, context = sealed(tmp_path, _HOST)

    async def answered(request: Request) -> listen.Answer:
        await answer(request)
        return listen.Answer(200, {"Content-Type": "application/json"}, request.body or b"")

    async with listen.serve(answered, host="127.0.0.1", port=0, ssl_context=context, grace=0.1) as address:

        def target(which: int, path: str) -> Target:
            bundle = base64.b64encode(authority.certificate_pem + b"\n" * which).decode()
            return Target(f"https://{_HOST}:443{path}", f"127.0.0.1:{address.port}", _HOST, path, bundle)

        yield target


async def test_a_call_is_not_cut_by_calls_to_many_other_webhooks(tmp_path: Path) -> None:
    begun, released = asyncio.Event(), asyncio.Event()

    async def answer(request: Request) -> None:
        if request.target.startswith("/slow"):
            begun.set()
            await released.wait()

    caller = Caller()
    async with hooks_at(tmp_path, answer) as target, asyncio.timeout(60):
        slow = asyncio.create_task(caller.call(target(0, "/slow"), b"slow", 30))
        await begun.wait()
        for which in range(1, _MANY):
            assert await caller.call(target(which, "/"), b"quick", 30) == b"quick"
        released.set()
        assert await slow == b"slow"
        assert repr(caller) == "<Caller with 32 webhooks>"
        await caller.close()


async def test_calls_to_many_webhooks_at_once_are_all_answered_and_then_let_go_of(tmp_path: Path) -> None:
    meeting = asyncio.Barrier(_MANY)

    async def answer(_: Request) -> None:
        await meeting.wait()

    caller = Caller()
    async with hooks_at(tmp_path, answer) as target, asyncio.timeout(60):
        calls = [caller.call(target(which, "/"), str(which).encode(), 30) for which in range(_MANY)]
        assert await asyncio.gather(*calls) == [str(which).encode() for which in range(_MANY)]
        assert repr(caller) == "<Caller with 32 webhooks>"
        await caller.close()
