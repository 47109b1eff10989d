"""The promises of ``client/watching.py``, against a server in a function and in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import pytest

from setpoint import errors
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.model import Object
from setpoint.client.client import Client
from setpoint.client.watching import Bookmark, Change, Event
from tests.peer import FOREVER, Peer, Reply, status

pytestmark = pytest.mark.virtual_time

T = TypeVar("T")


class Thing(Object, group="demo.setpoint.dev", version="v1", plural="things"):
    pass


def frame(kind: str, version: int, name: str = "a", **metadata: Any) -> bytes:
    obj = {
        "apiVersion": "demo.setpoint.dev/v1",
        "kind": "Thing",
        "metadata": {"name": name, "resourceVersion": str(version), **metadata},
    }
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int, *, end: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    return frame("BOOKMARK", version, annotations=annotations)


def refused(code: int, reason: str) -> bytes:
    return json.dumps({"type": "ERROR", "object": status(code, reason).body}).encode() + b"\n"


async def take(events: AsyncIterator[T], count: int) -> list[T]:
    return [event async for _, event in _numbered(events, count)]


async def _numbered(events: AsyncIterator[T], count: int) -> AsyncIterator[tuple[int, T]]:
    for index in range(count):
        yield index, await anext(events)


def briefly(events: list[Event[Thing]]) -> list[str]:
    return [
        f"{e.type} {e.resource_version}" if isinstance(e, Change) else f"BOOKMARK {e.resource_version}"
        for e in events
    ]


async def test_changes_arrive_typed_and_in_order() -> None:
    peer = Peer([Reply(200, [frame("ADDED", 5), frame("MODIFIED", 6) + frame("DELETED", 7), FOREVER])])
    async with Client(transport=peer).watch(
        Thing, resource_version="4", namespace="shop", labels="app=web"
    ) as watch:
        changes = await take(aiter(watch), 3)
    assert [(c.type, c.resource_version) for c in changes] == [
        ("ADDED", "5"),
        ("MODIFIED", "6"),
        ("DELETED", "7"),
    ]
    assert isinstance(changes[0].object, Thing)
    assert peer.path() == "/apis/demo.setpoint.dev/v1/namespaces/shop/things"
    query = peer.query()
    assert 300 <= int(query.pop("timeoutSeconds")) <= 600
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "labelSelector": "app=web",
        "resourceVersion": "4",
    }


async def test_events_cut_anywhere_arrive_whole() -> None:
    data = frame("ADDED", 5) + frame("MODIFIED", 6)
    peer = Peer([Reply(200, [*(data[i : i + 1] for i in range(len(data))), FOREVER])])
    async with Client(transport=peer).watch(Thing, resource_version="4") as watch:
        assert [c.type for c in await take(aiter(watch), 2)] == ["ADDED", "MODIFIED"]


async def test_a_connection_that_ends_is_opened_again_from_the_last_version_seen() -> None:
    peer = Peer([Reply(200, [frame("ADDED", 5), bookmark(9)]), Reply(200, [frame("MODIFIED", 10), FOREVER])])
    async with Client(transport=peer).watch(Thing, resource_version="4") as watch:
        await take(aiter(watch), 2)
        assert watch.resource_version == "10"
    assert [peer.query(i)["resourceVersion"] for i in (0, 1)] == ["4", "9"]


@pytest.mark.parametrize(
    "broken",
    [
        Reply(200, [errors.AnswerLost("", "reset")]),
        Reply(200, [frame("ADDED", 5)[:-9]]),
        errors.ConnectionFailed("", "refused"),
        status(429, "TooManyRequests"),
        status(500, "InternalError"),
        Reply(200, [refused(500, "InternalError")]),
        Reply(200, []),
    ],
    ids=["reset", "cut in an event", "refused", "429", "500", "error event", "empty"],
)
async def test_a_connection_that_breaks_is_opened_again_and_nothing_is_missed(broken: Any) -> None:
    peer = Peer([Reply(200, [frame("ADDED", 5)]), broken, Reply(200, [frame("MODIFIED", 6), FOREVER])])
    async with Client(transport=peer).watch(Thing, resource_version="4") as watch:
        assert [c.resource_version for c in await take(aiter(watch), 2)] == ["5", "6"]
    assert peer.query()["resourceVersion"] == "5"


async def test_a_connection_that_died_without_a_word_is_noticed() -> None:
    silent = Reply(200, [frame("ADDED", 5), FOREVER])
    peer = Peer([silent, Reply(200, [frame("MODIFIED", 6), FOREVER])])
    async with Client(transport=peer).watch(Thing, resource_version="4", liveness=40) as watch:
        changes = aiter(watch)
        await anext(changes)
        before = asyncio.get_running_loop().time()
        assert (await anext(changes)).resource_version == "6"
        assert 40 <= asyncio.get_running_loop().time() - before < 60
    assert silent.is_closed


async def test_bookmarks_keep_a_quiet_connection_alive() -> None:
    class Bookmarks(Reply):
        async def chunks(self) -> AsyncIterator[bytes]:
            for version in itertools.count(5):
                await asyncio.sleep(60)
                yield bookmark(version)

    peer = Peer([Bookmarks()])
    async with Client(transport=peer).watch(Thing, resource_version="4") as watch:
        assert len(await take(watch.events(), 20)) == 20
    assert len(peer.requests) == 1


async def test_failures_are_waited_out_longer_and_longer_up_to_half_a_minute() -> None:
    moments: list[float] = []

    def refuse(_: Any) -> Reply:
        moments.append(asyncio.get_running_loop().time())
        return status(410 if len(moments) > 40 else 502)

    async with Client(transport=Peer(refuse)).watch(Thing, resource_version="4") as watch:
        with pytest.raises(errors.Expired):
            await anext(aiter(watch))
    waits = [after - before for before, after in itertools.pairwise(moments)]
    assert max(waits) <= 30
    assert max(waits) > 14


@pytest.mark.parametrize(
    "expired", [status(410, "Expired"), Reply(200, [refused(410, "Expired")]), status(410, "Gone")]
)
async def test_a_version_too_old_to_go_on_from_is_an_error_of_its_own(expired: Reply) -> None:
    async with Client(transport=Peer([expired])).watch(Thing, resource_version="4") as watch:
        with pytest.raises(errors.Gone):
            await anext(aiter(watch))


async def test_a_break_before_any_version_to_resume_from_was_seen_is_expired_too() -> None:
    peer = Peer([Reply(200, [frame("ADDED", 5), errors.AnswerLost("", "reset")])])
    async with Client(transport=peer).watch(Thing) as watch:
        with pytest.raises(errors.Expired, match="before a version to go on from was known"):
            await take(aiter(watch), 2)


async def test_without_a_version_the_first_bookmark_or_change_is_where_to_go_on_from() -> None:
    peer = Peer(
        [
            Reply(200, [frame("ADDED", 50), frame("ADDED", 3, "b"), frame("MODIFIED", 51)]),
            Reply(200, [FOREVER]),
        ]
    )
    async with Client(transport=peer).watch(Thing) as watch:
        changes = aiter(watch)
        await take(changes, 2)
        assert watch.resource_version is None
        await take(changes, 1)
        assert watch.resource_version == "51"


async def test_initial_events_end_with_a_bookmark_and_are_not_asked_for_again() -> None:
    peer = Peer(
        [Reply(200, [frame("ADDED", 3), bookmark(9, end=True)]), Reply(200, [frame("ADDED", 10), FOREVER])]
    )
    async with Client(transport=peer).watch(Thing, initial_events=True) as watch:
        events = await take(watch.events(), 3)
    assert briefly(events) == ["ADDED 3", "BOOKMARK 9", "ADDED 10"]
    assert events[1] == Bookmark("9", initial_events_end=True)
    first = peer.query(0)
    assert (first["sendInitialEvents"], first["resourceVersionMatch"]) == ("true", "NotOlderThan")
    assert peer.query(1)["resourceVersion"] == "9"
    assert "sendInitialEvents" not in peer.query(1)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (status(403, "Forbidden"), errors.Forbidden),
        (Reply(404, b"404 page not found"), errors.KindNotServed),
        (Reply(200, [refused(403, "Forbidden")]), errors.Forbidden),
        (Reply(200, [b"rubbish\n"]), errors.BadAnswer),
        (Reply(200, [b'{"type":"NEWS","object":{}}\n']), errors.BadAnswer),
    ],
    ids=["forbidden", "no such kind", "forbidden event", "rubbish", "unknown event"],
)
async def test_what_will_not_pass_by_itself_is_raised(reply: Reply, expected: type[Exception]) -> None:
    async with Client(transport=Peer([reply])).watch(Thing, resource_version="4") as watch:
        with pytest.raises(expected, match=r"watch demo.setpoint.dev/v1 Thing"):
            await anext(aiter(watch))


async def test_a_500_without_a_reason_is_raised_unless_a_connection_was_opened_before() -> None:
    not_a_version = status(500, message='resourceVersion: Invalid value: "abc"')
    async with Client(transport=Peer(lambda _: not_a_version)).watch(Thing, resource_version="abc") as watch:
        with pytest.raises(errors.InternalError, match="Invalid value"):
            await anext(aiter(watch))

    storage_failed = [status(500, message="etcdserver: leader changed")] * 10
    peer = Peer([Reply(200, [frame("ADDED", 5)]), *storage_failed, Reply(200, [frame("ADDED", 6), FOREVER])])
    async with Client(transport=peer).watch(Thing, resource_version="4") as watch:
        assert briefly(await take(aiter(watch), 2)) == ["ADDED 5", "ADDED 6"]


async def test_an_endless_line_is_an_error_and_no_hang() -> None:
    class Endless(Reply):
        async def chunks(self) -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 2**20

    async with Client(transport=Peer([Endless()])).watch(Thing, resource_version="4") as watch:
        with pytest.raises(errors.BadAnswer):
            await anext(aiter(watch))


async def test_leaving_the_block_lets_go_of_the_connection() -> None:
    reply = Reply(200, [frame("ADDED", 5), FOREVER])
    async with Client(transport=Peer([reply])).watch(Thing, resource_version="4") as watch:
        await anext(aiter(watch))
        assert not reply.is_closed
    assert reply.is_closed


async def test_a_refusal_within_a_watch_of_secrets_shows_none_whatever_the_form(
    caplog: pytest.LogCaptureFixture,
) -> None:
    quoting = {"type": "ERROR", "object": status(500, "InternalError", message="bad value: hunter2").body}
    discovery = {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "versions": [
                    {
                        "version": "v1",
                        "resources": [{"resource": "secrets", "responseKind": {"kind": "Secret"}}],
                    }
                ]
            }
        ],
    }
    gone = status(410, "Expired")
    refusing = Reply(200, [json.dumps(quoting).encode() + b"\n"])
    peer = Peer([Reply(200, discovery), Reply(200, discovery), refusing, gone])
    async with Client(transport=peer).watch(untyped("v1", "Secret"), resource_version="4") as watch:
        with pytest.raises(errors.Expired):
            await anext(aiter(watch))
    assert "trying again" in caplog.text
    assert "hunter2" not in caplog.text


async def test_metadata_can_be_watched_alone() -> None:
    event = {"type": "ADDED", "object": {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}}
    event["object"]["metadata"] = {"name": "a", "resourceVersion": "5"}  # type: ignore[index]
    peer = Peer([Reply(200, [json.dumps(event).encode() + b"\n", FOREVER])])
    async with Client(transport=peer).watch(metadata_only(Thing), resource_version="4") as watch:
        assert (await anext(aiter(watch))).object.metadata.name == "a"
    assert "as=PartialObjectMetadata;" in peer.requests[0].headers["Accept"]


async def test_a_page_in_place_of_a_watch_is_said_to_be_that() -> None:
    async with Client(transport=Peer([Reply(200, [b"<html>please log in"])])).watch(
        Thing, resource_version="4"
    ) as watch:
        with pytest.raises(errors.BadAnswer, match="login page"):
            await anext(watch)


async def test_a_watch_that_failed_fails_again_and_does_not_pretend_to_have_ended() -> None:
    async with Client(transport=Peer([status(410, "Expired")])).watch(Thing, resource_version="4") as watch:
        for _ in range(2):
            with pytest.raises(errors.Expired):
                await anext(watch)
