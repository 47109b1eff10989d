"""What ``testing/faults.py`` promises, around a server in a function."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from setpoint.api import ObjectMeta
from setpoint.client.client import Client
from setpoint.errors import (
    AlreadyExists,
    AnswerLost,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
)
from setpoint.kube.apps.v1 import Deployment
from setpoint.kube.core.v1 import ConfigMap
from setpoint.net.transport import Request, Response
from setpoint.testing.faults import Faults
from tests.peer import FOREVER, Peer, Reply

pytestmark = pytest.mark.virtual_time


def server(request: Request) -> Reply:
    """Knows the ConfigMap shop/a, and takes whatever it is given."""
    if request.method == "GET":
        return Reply(200, {"metadata": {"name": "a", "namespace": "shop"}})
    return Reply(200, request.body or b"{}")


def settings(name: str = "a") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="shop"))


async def get(client: Client) -> ConfigMap:
    return await client.get(ConfigMap, "a", namespace="shop")


# --- requests


async def test_without_rules_it_changes_nothing() -> None:
    peer = Peer(server)
    faults = Faults(peer)

    assert (await get(Client(transport=faults))).metadata.name == "a"
    assert [str(asked) for asked in faults.requests] == ["get configmaps shop/a"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (404, NotFound),
        (409, Conflict),
        (410, Expired),
        (429, TooManyRequests),
        (503, ServiceUnavailable),
        (504, ServerTimeout),
    ],
)
async def test_what_is_refused_has_not_reached_the_server(code: int, error: type[Exception]) -> None:
    peer = Peer(server)
    faults = Faults(peer)
    with faults.refuse(code) as rule, pytest.raises(error):
        await Client(transport=faults).update(settings())

    assert (rule.count, peer.requests) == (1, [])


async def test_a_refusal_may_name_its_reason() -> None:
    faults = Faults(Peer(server))
    with faults.refuse(409, reason="AlreadyExists"), pytest.raises(AlreadyExists):
        await Client(transport=faults).create(settings())


async def test_a_refusal_may_say_when_to_come_back() -> None:
    faults = Faults(Peer(server))
    began = asyncio.get_running_loop().time()
    with faults.refuse(429, retry_after=7, times=1) as rule:
        await Client(transport=faults).update(settings())

    assert rule.count == 1
    assert asyncio.get_running_loop().time() - began >= 7


async def test_what_is_dropped_was_never_sent() -> None:
    peer = Peer(server)
    faults = Faults(peer)
    with faults.drop() as rule, pytest.raises(ConnectionFailed):
        await Client(transport=faults).create(settings())

    assert peer.requests == []
    assert rule.count == len(faults.requests) > 1, "the client tried again, for nothing was sent"


@pytest.mark.parametrize(("code", "error"), [(None, AnswerLost), (504, ServerTimeout)])
async def test_what_lost_its_answer_was_carried_out(code: int | None, error: type[Exception]) -> None:
    peer = Peer(server)
    faults = Faults(peer)
    with faults.lose_answer(code) as rule, pytest.raises(error):
        await Client(transport=faults).create(settings())

    assert rule.count == len(peer.requests) == 1


async def test_what_is_stalled_ends_by_the_callers_deadline() -> None:
    peer = Peer(server)
    faults = Faults(peer)
    with faults.stall(), pytest.raises(DeadlineExceeded):
        await Client(transport=faults).create(settings(), timeout=5)

    assert peer.requests == []


async def test_what_is_stalled_is_lost_when_the_rule_is_removed() -> None:
    faults = Faults(Peer(server))
    rule = faults.stall()
    async with asyncio.TaskGroup() as tasks:
        stalled = tasks.create_task(_outcome(Client(transport=faults).create(settings())))
        tasks.create_task(_later(5, rule.remove))
    assert isinstance(stalled.result(), AnswerLost)


async def test_a_request_can_be_slow_to_leave_and_an_answer_slow_to_come() -> None:
    peer = Peer(server)
    faults = Faults(peer)
    client = Client(transport=faults)
    with faults.delay(before=9), pytest.raises(DeadlineExceeded):
        await client.create(settings(), timeout=5)
    assert peer.requests == [], "cancelled before it left"

    with faults.delay(after=9), pytest.raises(DeadlineExceeded):
        await client.create(settings(), timeout=5)
    assert len(peer.requests) == 1, "it happened, and the answer came too late"


# --- which requests


async def test_a_rule_strikes_only_what_it_matches() -> None:
    faults = Faults(Peer(server))
    client = Client(transport=faults)
    with (
        faults.refuse(500, verb="create"),
        faults.refuse(500, kind=Deployment),
        faults.refuse(500, kind="secrets"),
        faults.refuse(500, namespace="other"),
        faults.refuse(500, name="b"),
        faults.refuse(500, subresource="status"),
        faults.refuse(500, verb="read", name="a", kind="pods"),
    ):
        await get(client)
        await client.update(settings())

    for matching in (
        faults.refuse(409, verb="update"),
        faults.refuse(409, verb="write"),
        faults.refuse(409, kind=ConfigMap),
        faults.refuse(409, kind="configmaps", name="a", namespace="shop", subresource=""),
    ):
        with matching as rule, pytest.raises(Conflict):
            await client.update(settings())
        assert rule.count == 1


async def test_a_rule_may_let_some_pass_and_strike_so_often() -> None:
    faults = Faults(Peer(server))
    client = Client(transport=faults)
    with faults.refuse(409, skip=1, times=2) as rule:
        outcomes = [await _outcome(client.update(settings())) for _ in range(5)]

    assert [isinstance(outcome, Conflict) for outcome in outcomes] == [False, True, True, False, False]
    assert rule.count == 2


async def test_the_same_seed_strikes_the_same_requests() -> None:
    async def struck(seed: int) -> list[bool]:
        faults = Faults(Peer(server), seed=seed)
        client = Client(transport=faults)
        with faults.refuse(409, chance=0.5):
            outcomes = [await _outcome(client.update(settings())) for _ in range(40)]
        return [isinstance(outcome, Conflict) for outcome in outcomes]

    first = await struck(1)
    assert first == await struck(1)
    assert first != await struck(2)
    assert 5 < sum(first) < 35


async def test_the_first_rule_that_ends_a_request_wins_and_later_ones_do_not_count_it() -> None:
    faults = Faults(Peer(server))
    with faults.refuse(409) as first, faults.drop() as second, pytest.raises(Conflict):
        await Client(transport=faults).update(settings())
    assert (first.count, second.count) == (1, 0)


async def test_a_removed_rule_is_as_if_it_had_never_been() -> None:
    faults = Faults(Peer(server))
    rule = faults.refuse(500)
    faults.drop()
    rule.remove()
    rule.remove()
    faults.clear()
    await get(Client(transport=faults))


# --- watches


class Watched:
    """A server of one watch, whose events a test sends one by one; each new connection goes on from there."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, _request: Request) -> Response:
        return _Open(self.events)

    def send(self, version: int) -> None:
        event = {"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": str(version)}}}
        self.events.put_nowait(json.dumps(event).encode() + b"\n")


class _Open(Reply):
    def __init__(self, events: asyncio.Queue[bytes]) -> None:
        super().__init__(200)
        self._events = events

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._events.get()


async def versions(client: Client, *, patience: float = 10.0) -> AsyncGenerator[str, None]:
    """What a watch's one connection brings."""
    async with aclosing(client.watch_once(ConfigMap, patience=lambda: patience)) as batches:
        async for batch in batches:
            for frame in batch:
                yield frame.metadata.resource_version


async def test_events_are_brought_as_they_come() -> None:
    watched = Watched()
    faults = Faults(watched)
    async with aclosing(versions(Client(transport=faults))) as seen:
        watched.send(1)
        watched.send(2)
        assert [await anext(seen), await anext(seen)] == ["1", "2"]
        assert faults.watches == 1
    assert faults.watches == 0


async def test_a_doubled_event_comes_twice() -> None:
    watched = Watched()
    faults = Faults(watched)
    async with aclosing(versions(Client(transport=faults))) as seen:
        with faults.double(times=1) as rule:
            watched.send(1)
            watched.send(2)
            assert [await anext(seen) for _ in range(3)] == ["1", "1", "2"]
    assert rule.count == 1


async def test_a_held_watch_brings_nothing_until_it_is_let_go() -> None:
    watched = Watched()
    faults = Faults(watched)
    async with aclosing(versions(Client(transport=faults), patience=60)) as seen:
        watched.send(1)
        assert await anext(seen) == "1"
        rule = faults.hold(kind=ConfigMap)
        watched.send(2)
        watched.send(3)
        async with asyncio.TaskGroup() as tasks:
            held = tasks.create_task(_next(seen))
            await asyncio.sleep(30)
            assert not held.done()
            rule.remove()
        assert [held.result(), await anext(seen)] == ["2", "3"]
    assert rule.count


async def test_a_held_watch_falls_silent_to_who_listens_for_life() -> None:
    from setpoint.errors import WatchStalled

    watched = Watched()
    faults = Faults(watched)
    watched.send(1)
    with faults.hold(), pytest.raises(WatchStalled):
        async with aclosing(versions(Client(transport=faults))) as seen:
            await anext(seen)
    assert faults.watches == 0


async def test_only_the_watches_that_match_are_held() -> None:
    watched = Watched()
    faults = Faults(watched)
    watched.send(1)
    with faults.hold(kind=Deployment):
        async with aclosing(versions(Client(transport=faults))) as seen:
            assert await anext(seen) == "1"


async def test_a_cut_breaks_off_the_watches_that_are_open() -> None:
    watched = Watched()
    faults = Faults(watched)
    async with aclosing(versions(Client(transport=faults))) as seen:
        watched.send(1)
        assert await anext(seen) == "1"
        assert faults.cut(kind=Deployment) == 0
        assert faults.cut(kind=ConfigMap) == 1
        with pytest.raises(AnswerLost):
            await anext(seen)
    assert faults.watches == 0


async def test_a_cut_reaches_who_waits_and_may_be_an_error_of_the_servers() -> None:
    watched = Watched()
    faults = Faults(watched)
    async with aclosing(versions(Client(transport=faults))) as seen:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(_outcome(_next(seen)))
            await asyncio.sleep(1)
            assert faults.cut(410) == 1
        assert isinstance(waiting.result(), Expired)


async def test_the_end_of_a_stream_is_passed_on_and_what_was_cut_off_in_it() -> None:
    faults = Faults(Peer([Reply(200, [b'{"type":"BOOKMARK","object":{}}\n']), Reply(200, [b'{"type'])]))
    client = Client(transport=faults)
    assert [version async for version in versions(client)] == [""]
    with pytest.raises(AnswerLost, match="middle of an event"):
        assert [version async for version in versions(client)]


async def test_a_watch_that_is_refused_is_an_answer_and_no_stream() -> None:
    faults = Faults(Peer([Reply(200, [FOREVER])]))
    with faults.refuse(410, verb="watch", times=1), pytest.raises(Expired):
        async for _ in versions(Client(transport=faults)):
            pass
    assert faults.watches == 0


async def _next(seen: AsyncIterator[str]) -> str:
    return await anext(seen)


async def _outcome(doing: Any) -> Any:
    try:
        return await doing
    except Exception as error:  # noqa: BLE001
        return error


async def _later(seconds: float, act: Any) -> None:
    await asyncio.sleep(seconds)
    act()
