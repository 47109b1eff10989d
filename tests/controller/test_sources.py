"""The promises of ``controller/sources.py``, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.forms import metadata_only, untyped
from setpoint.api.meta import PartialObjectMetadata
from setpoint.api.names import Key
from setpoint.cache.store import Seen
from setpoint.controller import sources
from setpoint.controller.mapping import Mapper, Reason, to_itself, to_keys, to_owner
from setpoint.controller.predicates import Predicate, changed, generation_changed, selected
from setpoint.controller.result import Request
from setpoint.controller.sources import (
    BUFFER,
    MAPPER_TIMEOUT,
    MOST_STATES,
    Channel,
    Feed,
    Kind,
    Source,
    Stream,
    Timer,
)
from setpoint.queue.workqueue import LOW_PRIORITY
from tests.controller.world import GROUP, Child, Parent, Process, Server, until
from tests.peer import status

pytestmark = pytest.mark.virtual_time

WEB, API = Key("shop", "web"), Key("shop", "api")


class Fed:
    """What a source feeds, and what went wrong."""

    def __init__(self, process: Process) -> None:
        self.got: list[tuple[Request, int, str]] = []
        self.errors = 0
        log = logging.getLogger("setpoint.controller.test")
        self.feed = Feed("test", self._add, process.metrics, self._count, log)

    def _add(self, key: Request, priority: int, reason: Reason) -> None:
        self.got.append((key, priority, str(reason)))

    def _count(self) -> None:
        self.errors += 1

    @property
    def keys(self) -> list[Request]:
        return [key for key, _, _ in self.got]


@asynccontextmanager
async def feeding(process: Process, source: Source) -> AsyncIterator[Fed]:
    fed = Fed(process)
    async with process.cache:
        task = asyncio.create_task(source.run(fed.feed))
        try:
            if isinstance(source, Kind):
                await source.wait_synced(60)
            yield fed
        finally:
            task.cancel()
            await asyncio.wait([task])
            source.close()


def kind(process: Process, mapper: Mapper = to_itself, **options: Any) -> Kind:
    return Kind(process.cache, Parent, mapper, **options)


# Kinds.


async def test_every_object_there_is_is_fed_then_every_change() -> None:
    server = Server()
    server.put("parents", "web")
    process = Process(server)
    async with feeding(process, kind(process)) as fed:
        server.put("parents", "web", colour="blue")
        server.put("parents", "api")
        server.delete("parents", "web")
        await until(lambda: len(fed.got) == 4)
    said = f"{GROUP}/v1 Parent shop"
    assert fed.got == [
        (WEB, LOW_PRIORITY, f"{said}/web ADDED"),
        (WEB, 0, f"{said}/web MODIFIED"),
        (API, 0, f"{said}/api ADDED"),
        (WEB, 0, f"{said}/web DELETED"),
    ]


async def test_a_resync_feeds_everything_again_at_low_priority() -> None:
    server = Server()
    server.put("parents", "web", generation=3)
    process = Process(server, resync=60)
    async with feeding(process, kind(process, when=generation_changed)) as fed:
        await until(lambda: len(fed.got) == 2, within=70)
    assert fed.got[1] == (WEB, LOW_PRIORITY, f"{GROUP}/v1 Parent shop/web resync")


async def test_a_source_is_synced_when_its_first_objects_were_mapped() -> None:
    server = Server()
    server.put("parents", "web")
    process = Process(server)
    source = kind(process)
    fed = Fed(process)
    async with process.cache:
        await process.cache.wait_synced()
        was_synced = source.is_synced
        assert not was_synced, "the cache has it all, and nobody was told"
        task = asyncio.create_task(source.run(fed.feed))
        await source.wait_synced(60)
        assert fed.keys == [WEB]
        task.cancel()
        await asyncio.wait([task])


async def test_wait_synced_says_what_is_missing() -> None:
    server = Server()
    server.refuse = lambda _: status(403, "Forbidden", "no way")
    process = Process(server)
    source = kind(process)
    async with process.cache:
        task = asyncio.create_task(source.run(Fed(process).feed))
        with pytest.raises(errors.NotSynced, match="no way"):
            await source.wait_synced(1)
        assert [problem.verb for problem in source.problems] == ["watch"]
        task.cancel()
        await asyncio.wait([task])


async def test_only_what_matters_is_fed() -> None:
    server = Server()
    server.put("parents", "web", labels={"tier": "web"})
    server.put("parents", "api")
    process = Process(server)
    when = selected("tier=web") & changed(Parent, lambda parent: parent.spec.colour)
    async with feeding(process, kind(process, when=when, priority=5)) as fed:
        server.put("parents", "web", labels={"tier": "web"}, annotations={"a": "b"})
        server.put("parents", "api", colour="blue")
        server.put("parents", "web", labels={"tier": "web"}, colour="blue")
        await asyncio.sleep(10)
        assert [(key, priority) for key, priority, _ in fed.got] == [(WEB, LOW_PRIORITY), (WEB, 5)]


async def test_a_predicate_that_raises_lets_the_change_pass(caplog: pytest.LogCaptureFixture) -> None:
    def raises(_: Seen) -> bool:
        raise ZeroDivisionError("hm")

    server = Server()
    server.put("parents", "web")
    process = Process(server)
    async with feeding(process, kind(process, when=Predicate(raises, "mine"))) as fed:
        assert fed.keys == [WEB]
        assert fed.errors == 1
    assert "<Predicate mine> raised at demo.setpoint.dev/v1 Parent shop/web" in caplog.text


async def test_a_mapper_that_raises_is_logged_and_counted_and_tried_again_and_the_watch_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_bad = True

    def users(parent: Parent) -> list[Request]:
        if parent.metadata.name == "bad" and is_bad:
            raise ZeroDivisionError("hm")
        return [WEB, API, WEB]

    server = Server()
    server.put("parents", "bad")
    server.put("parents", "good")
    process = Process(server)
    async with feeding(process, kind(process, to_keys(Parent, users))) as fed:
        server.put("parents", "good", colour="blue")
        await until(lambda: len(fed.got) == 4)
        assert fed.keys == [WEB, API, WEB, API], "of one change, each key once"
        await until(lambda: fed.errors > 5)
        is_bad = False
        await until(lambda: len(fed.got) == 6, within=60)
        assert fed.keys[4:] == [WEB, API]
    assert "a mapper raised at demo.setpoint.dev/v1 Parent shop/bad" in caplog.text


async def test_a_state_that_no_mapper_understands_does_not_hold_back_the_next_one() -> None:
    """An object that a class cannot hold is mended: whoever it concerns now must hear of it."""

    def users(parent: Parent) -> list[Request]:
        if parent.spec.colour == "nonsense":
            raise ValueError("what colour is that?")
        return [Key("shop", parent.spec.colour)]

    server = Server()
    server.put("parents", "web", colour="nonsense")
    process = Process(server)
    async with feeding(process, kind(process, to_keys(Parent, users))) as fed:
        await until(lambda: fed.errors > 8)
        server.put("parents", "web", colour="blue")
        await until(lambda: fed.keys == [Key("shop", "blue")], within=0.1)


async def test_a_change_of_a_child_leads_to_its_owner_as_it_was_and_as_it_is() -> None:
    server = Server()
    reference = {"apiVersion": f"{GROUP}/v1", "kind": "Parent", "uid": "u", "controller": True}
    server.put("children", "x", ownerReferences=[{**reference, "name": "web"}])
    process = Process(server)
    source = Kind(process.cache, Child, to_owner(Parent))
    async with feeding(process, source) as fed:
        server.put("children", "x", ownerReferences=[{**reference, "name": "api"}])
        server.put("children", "stranger")
        await asyncio.sleep(1)
        assert fed.keys == [WEB, WEB, API]


async def test_of_an_owner_that_no_class_describes_the_server_is_asked_for_the_scope() -> None:
    server = Server()
    room = {"apiVersion": f"{GROUP}/v1", "kind": "Room", "name": "n1", "uid": "u", "controller": True}
    server.put("children", "x", ownerReferences=[room])
    server.refuse = lambda request: status(404, "NotFound") if request.target == "/apis" else None
    process = Process(server)
    source = Kind(process.cache, Child, to_owner(untyped(f"{GROUP}/v1", "Room")))
    fed = Fed(process)
    async with process.cache:
        task = asyncio.create_task(source.run(fed.feed))
        with pytest.raises(errors.NotSynced, match="the kind of its owners is not served yet"):
            await source.wait_synced(30)
        server.refuse = lambda _: None
        await until(lambda: fed.keys == [Key("", "n1")])
        assert source.is_synced
        task.cancel()
        await asyncio.wait([task])


async def test_metadata_is_enough_where_that_is_asked_for() -> None:
    async def users(parent: PartialObjectMetadata) -> list[Request]:
        return [Key("shop", f"of-{parent.metadata.name}")]

    server = Server()
    server.put("parents", "web")
    process = Process(server)
    form = metadata_only(Parent)
    async with feeding(process, Kind(process.cache, form, to_keys(form, users))) as fed:
        await until(lambda: fed.keys == [Key("shop", "of-web")])


async def test_all_keys_that_matter_can_be_asked_for() -> None:
    server = Server()
    server.put("parents", "web", labels={"tier": "web"})
    server.put("parents", "api")
    process = Process(server)
    source = kind(process, when=selected("tier=web"))
    async with feeding(process, source) as fed:
        assert source.keys() == [WEB]
        assert fed.keys == [WEB], "and nothing is fed by it"


# Mappers that wait.


class Asking:
    """A mapper that asks somebody, who may not be there."""

    def __init__(self) -> None:
        self.failures = 0
        self.asked: list[str] = []
        self.colours: list[str] = []

    async def __call__(self, parent: Parent) -> list[Request]:
        name = parent.metadata.name or ""
        self.asked.append(name)
        await asyncio.sleep(0.01)
        if self.failures:
            self.failures -= 1
            raise OSError("nobody is there")
        self.colours.append(parent.spec.colour)
        return [Key("shop", f"of-{name}-{parent.spec.colour}")]


async def test_an_async_mapper_is_asked_of_the_object_as_it_was_and_as_it_is() -> None:
    server, mapper = Server(), Asking()
    server.put("parents", "web")
    process = Process(server)
    async with feeding(process, kind(process, to_keys(Parent, mapper))) as fed:
        await until(lambda: len(fed.got) == 1)
        server.put("parents", "web", colour="blue")
        await until(lambda: len(fed.got) == 3)
    assert [(key.name, priority) for key, priority, _ in fed.got] == [
        ("of-web-red", LOW_PRIORITY),
        ("of-web-red", 0),
        ("of-web-blue", 0),
    ]


async def test_an_async_mapper_that_raises_is_asked_again_until_it_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, mapper = Server(), Asking()
    mapper.failures = 12
    server.put("parents", "web")
    process = Process(server)
    async with feeding(process, kind(process, to_keys(Parent, mapper))) as fed:
        await until(lambda: fed.errors >= 3)
        server.put("parents", "web", colour="green")
        server.put("parents", "web", colour="blue")
        await until(lambda: len(fed.got) == 3)
        names = [key.name for key in fed.keys]
        assert names == ["of-web-red", "of-web-green", "of-web-blue"], "each state that it was in, once"
    assert "nobody is there" in caplog.text


class Sudden(BaseException):
    """Not an Exception."""


async def cancelled() -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    task.cancel()
    await task


async def a_child_leaves() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    await asyncio.create_task(leave())


def sudden() -> None:
    raise Sudden


@pytest.mark.parametrize("fail", [cancelled, a_child_leaves, sudden])
async def test_no_way_in_which_a_mapper_ends_loses_a_state_of_any_object(
    fail: Callable[[], Awaitable[None] | None],
) -> None:
    server, fails = Server(), True
    server.put("parents", "web")
    server.put("parents", "api")
    process = Process(server)

    def plain(parent: Parent) -> list[Request]:
        if fails and parent.metadata.name == "web":
            fail()
        return [Key("shop", f"of-{parent.metadata.name}-{parent.spec.colour}")]

    async def waiting(parent: Parent) -> list[Request]:
        if fails and parent.metadata.name == "web" and iscoroutinefunction(fail):
            await fail()
        return plain(parent)

    mapper: Any = waiting if iscoroutinefunction(fail) else plain
    async with feeding(process, kind(process, to_keys(Parent, mapper))) as fed:
        await until(lambda: fed.errors >= 8)
        server.delete("parents", "web")
        server.put("parents", "api", colour="blue")
        await until(lambda: Key("shop", "of-api-blue") in fed.keys, within=1)
        fails = False
        await until(lambda: Key("shop", "of-web-red") in fed.keys)


async def test_an_async_mapper_that_hangs_is_asked_again() -> None:
    server, asked = Server(), 0
    server.put("parents", "web")
    process = Process(server)

    async def users(_: Parent) -> list[Request]:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.Event().wait()
        return [WEB]

    async with feeding(process, kind(process, to_keys(Parent, users))) as fed:
        await until(lambda: fed.keys == [WEB], within=2 * MAPPER_TIMEOUT)
        assert fed.errors == 1


async def test_while_a_mapper_keeps_failing_a_bounded_number_of_states_waits() -> None:
    server, mapper = Server(), Asking()
    mapper.failures = 10**9
    process = Process(server)
    async with feeding(process, kind(process, to_keys(Parent, mapper))) as fed:
        for number in range(200):
            server.put("parents", "web", colour=str(number))
            await asyncio.sleep(0)
        await until(lambda: fed.errors >= 3)
        mapper.failures, mapper.asked = 0, []
        await until(lambda: fed.keys, within=600)
        await asyncio.sleep(600)
        assert len(mapper.asked) <= MOST_STATES
    assert {Key("shop", "of-web-0"), Key("shop", "of-web-199")} <= set(fed.keys), "the first, and the latest"


async def test_while_mappers_keep_failing_a_bounded_number_of_objects_waits(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_WAITING", 3)
    server, mapper = Server(), Asking()
    mapper.failures = 10**9
    for number in range(5):
        server.put("parents", f"p{number}")
    process = Process(server)
    async with feeding(process, kind(process, to_keys(Parent, mapper))) as fed:
        mapper.failures = 0
        await asyncio.sleep(600)
        assert len(fed.got) == 3
    assert "mappers raise at too many demo.setpoint.dev/v1 Parent: shop/p0 is given up" in caplog.text


async def test_an_object_whose_mapper_fails_holds_back_no_other() -> None:
    server = Server()
    server.put("parents", "bad")
    server.put("parents", "good")
    process = Process(server)

    async def users(parent: Parent) -> list[Request]:
        if parent.metadata.name == "bad":
            raise OSError("no")
        return [WEB]

    async with feeding(process, kind(process, to_keys(Parent, users))) as fed:
        await until(lambda: fed.keys == [WEB], within=0.1)
        await until(lambda: fed.errors > 3)


# The author's own.


async def test_a_stream_feeds_what_it_gives_and_is_closed_at_the_end() -> None:
    closed = False

    async def keys() -> AsyncIterator[Request]:
        nonlocal closed
        try:
            yield WEB
            yield API
            await asyncio.Event().wait()
        finally:
            closed = True

    process = Process(Server())
    async with feeding(process, Stream(keys, priority=3)) as fed:
        await until(lambda: len(fed.got) == 2)
        assert fed.got == [(WEB, 3, "stream"), (API, 3, "stream")]
    assert closed


async def test_a_stream_that_never_waits_lets_others_run() -> None:
    given: list[int] = []

    async def keys() -> AsyncIterator[Request]:
        for number in range(100):
            given.append(number)
            yield WEB

    async with feeding(Process(Server()), Stream(keys)):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(given) < 10


async def test_a_stream_of_what_is_no_request_raises() -> None:
    async def keys() -> AsyncIterator[Any]:
        yield "shop/web"

    with pytest.raises(TypeError, match="Request"):
        await Stream(keys).run(Fed(Process(Server())).feed)


async def test_a_channel_holds_a_bounded_number_and_then_makes_senders_wait() -> None:
    channel = Channel()
    assert repr(channel) == f"<Channel 0 of {BUFFER} waiting>"
    for number in range(BUFFER):
        await channel.send(Key("shop", f"{number}"))
    one_more = asyncio.create_task(channel.send(WEB))
    await asyncio.sleep(100)
    assert not one_more.done()

    async with feeding(Process(Server()), channel) as fed:
        await one_more
        await until(lambda: len(fed.got) == BUFFER + 1)
        assert fed.got[-1] == (WEB, 0, "stream")


async def test_a_channel_refuses_what_is_no_request_at_once() -> None:
    wrong: Any = "shop/web"
    with pytest.raises(TypeError, match="Request"):
        await Channel().send(wrong)


async def test_a_timer_feeds_every_so_many_seconds_and_survives_errors() -> None:
    asked = 0

    async def keys() -> list[Request]:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise OSError("no")
        return [WEB, WEB]

    async with feeding(Process(Server()), Timer(30, keys)) as fed:
        await asyncio.sleep(29)
        assert not fed.got
        await asyncio.sleep(70)
        assert fed.got == [(WEB, LOW_PRIORITY, "timer")] * 2
        assert fed.errors == 1


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_timer_needs_some_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match="some seconds"):
        Timer(seconds, lambda: [WEB])


class Late(Source):
    @property
    def is_synced(self) -> bool:
        return False


async def test_a_source_of_the_authors_own_need_only_say_whether_it_is_synced() -> None:
    late = Late()
    with pytest.raises(errors.NotSynced, match="not synced after 3 s"):
        await late.wait_synced(3)
    assert late.problems == ()
