"""The promises of ``cache/informer.py``, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint.api.forms import form_of
from setpoint.api.names import GroupVersionKind, Key
from setpoint.cache.index import by_function
from setpoint.cache.informer import Informer, Shared
from setpoint.cache.scope import Scope
from setpoint.cache.store import Seen
from setpoint.client.client import Client
from setpoint.metrics import Metrics
from tests.cache.objects import Thing
from tests.cache.server import Server
from tests.cache.wire import running, until
from tests.peer import status

pytestmark = pytest.mark.virtual_time

GVK = GroupVersionKind("demo.setpoint.dev", "v1", "Thing")


@asynccontextmanager
async def informing(server: Server, **options: Any) -> AsyncIterator[Informer]:
    shared = Shared.of(Client(transport=server), **options)
    informer = Informer(shared, form_of(Thing), Scope(GVK))
    async with running(informer.run):
        yield informer


def brief(heard: list[Seen]) -> list[str]:
    return [f"{each.type} {each.key.name}{' initial' if each.initial else ''}" for each in heard]


async def test_a_listener_hears_of_what_is_there_and_then_of_every_change_in_order() -> None:
    server, heard = Server(), list[Seen]()
    server.put("a")
    server.put("b")
    async with informing(server) as informer:
        informer.listen(heard.append)
        await informer.wait_synced()
        assert brief(heard) == ["ADDED a initial", "ADDED b initial"]
        server.put("a")
        server.put("c")
        server.delete("b")
        await until(lambda: len(heard) == 5)
        assert brief(heard)[2:] == ["UPDATED a", "ADDED c", "DELETED b"]


async def test_one_that_comes_late_is_told_first_of_what_is_there() -> None:
    server, heard = Server(), list[Seen]()
    server.put("a")
    async with informing(server) as informer:
        await informer.wait_synced()
        informer.listen(heard.append)
        assert brief(heard) == ["ADDED a initial"]
        server.delete("a")
        await until(lambda: len(heard) == 2)


async def test_one_that_comes_while_others_are_told_hears_of_nothing_twice() -> None:
    server, heard = Server(), list[Seen]()
    server.put("a")
    server.put("b")
    async with informing(server) as informer:
        began = False

        def begin(_: Seen) -> None:
            nonlocal began
            if not began:
                began = True
                informer.listen(heard.append)

        informer.listen(begin)
        await informer.wait_synced()
        assert brief(heard) == ["ADDED a initial", "ADDED b initial"]


async def test_when_a_listener_is_told_the_store_has_the_change() -> None:
    server, held = Server(), list[Any]()
    server.put("a")
    async with informing(server) as informer:
        informer.listen(lambda seen: held.append((seen.type, informer.store.get(seen.key) == seen.new)))
        await informer.wait_synced()
        server.put("a")
        server.delete("a")
        await until(lambda: len(held) == 3)
        assert held == [("ADDED", True), ("UPDATED", True), ("DELETED", True)]


def raising(_: Seen) -> None:
    raise ZeroDivisionError


async def test_a_listener_that_raises_disturbs_nobody(caplog: Any) -> None:
    server, heard, metrics = Server(), list[Seen](), Metrics()
    server.put("a")
    async with informing(server, metrics=metrics) as informer:
        informer.listen(raising)
        informer.listen(heard.append)
        await informer.wait_synced()
        server.put("a")
        await until(lambda: len(heard) == 2)
        assert (
            b'setpoint_cache_callback_errors_total{group="demo.setpoint.dev",kind="Thing",version="v1"} 2.0'
            in (metrics.exposition())
        )
    assert "ZeroDivisionError" in caplog.text
    assert "shop/a" in caplog.text


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()], ids=repr)
async def test_no_error_of_a_listener_or_an_index_ends_a_watch(error: BaseException) -> None:
    server, heard = Server(), list[Seen]()
    server.put("a")

    def fail(_: Any) -> Any:
        raise error

    async with informing(server) as informer:
        informer.add_index(by_function("odd", fail, form_of(Thing)))
        informer.listen(fail)
        informer.listen(heard.append)
        await informer.wait_synced()
        server.put("a")
        await until(lambda: len(heard) == 2)


async def test_an_index_function_that_raises_is_counted() -> None:
    server, metrics = Server(), Metrics()
    server.put("a")
    async with informing(server, metrics=metrics) as informer:
        informer.add_index(by_function("odd", lambda _: [str(1 // 0)], form_of(Thing)))
        await informer.wait_synced()
        assert informer.store.get(Key("shop", "a")) is not None
        assert b"callback_errors_total" in metrics.exposition()


async def test_a_listener_that_ended_hears_nothing_more() -> None:
    server, heard = Server(), list[Seen]()
    async with informing(server) as informer:
        end = informer.listen(heard.append)
        await informer.wait_synced()
        end()
        end()
        server.put("a")
        await until(lambda: len(informer.store) == 1)
        assert heard == []


async def test_deletions_missed_while_the_watch_was_away_are_delivered_once() -> None:
    server, heard = Server(), list[Seen]()
    for name in ("gone", "again", "stays"):
        server.put(name)
    async with informing(server) as informer:
        informer.listen(heard.append)
        await informer.wait_synced()
        heard.clear()
        server.cut()
        server.delete("gone")
        server.delete("again")
        server.put("again")
        server.put("new")
        await until(lambda: len(heard) >= 4)
        assert sorted(brief(heard)) == ["ADDED again", "ADDED new", "DELETED again", "DELETED gone"]
        await asyncio.sleep(1000)
        assert len(heard) == 4
        assert {key.name for key in server.objects} == {each.key.name for each in informer.store}


async def test_a_resync_tells_of_everything_again_and_asks_the_server_nothing() -> None:
    server, heard = Server(), list[Seen]()
    server.put("a")
    async with informing(server, resync=36_000.0) as informer:
        await informer.wait_synced()
        informer.listen(heard.append)
        keep = asyncio.create_task(keep_alive(server))
        try:
            began = asyncio.get_running_loop().time()
            asked = len(server.requests)
            await until(lambda: len(heard) == 2, within=100_000)
            assert 32_399 < asyncio.get_running_loop().time() - began <= 39_601
        finally:
            keep.cancel()
        assert heard[1] == Seen("RESYNC", heard[0].new, heard[0].new)
        assert len(server.requests) == asked


async def keep_alive(server: Server) -> None:
    while True:
        await asyncio.sleep(60)
        server.bookmark()


async def test_no_resync_where_none_is_wanted() -> None:
    server, heard = Server(), list[Seen]()
    async with informing(server, resync=0) as informer:
        server.put("a")
        informer.listen(heard.append)
        await informer.wait_synced()
        await asyncio.sleep(200_000)
        assert brief(heard) == ["ADDED a initial"]


async def test_a_condition_on_the_store_can_be_waited_for() -> None:
    server = Server()
    async with informing(server) as informer:
        await informer.wait_synced()
        assert await informer.wait_until(lambda: True, 0)
        assert not await informer.wait_until(lambda: len(informer.store) == 1, 5)
        waiting = asyncio.create_task(informer.wait_until(lambda: len(informer.store) == 2, 5))
        server.put("a")
        server.put("b")
        assert await waiting
        assert not informer._waiters


async def test_it_says_how_it_is() -> None:
    server = Server()
    server.put("a")
    async with informing(server) as informer:
        await informer.wait_synced()
        await asyncio.sleep(20)
        stats = informer.stats()
        assert (stats.objects, stats.version, stats.is_synced, stats.problem) == (1, "101", True, None)
        assert stats.bytes == informer.store.bytes > 100
        assert 19.9 < stats.last_event_age_seconds < 21
        server.refuse = lambda _: status(403, "Forbidden")
        server.cut()
        await until(lambda: informer.stats().problem is not None)
        assert len(informer.store) == 1, "what is held stays"


async def test_metrics_are_those_of_its_kind_while_it_runs() -> None:
    server, metrics = Server(), Metrics()
    server.put("a")
    labels = b'{group="demo.setpoint.dev",kind="Thing",version="v1"}'
    async with informing(server, metrics=metrics) as informer:
        await informer.wait_synced()
        assert b"setpoint_cache_objects" + labels + b" 1.0" in metrics.exposition()
        server.cut()
        server.put("b")
        await until(lambda: len(informer.store) == 2)
        assert b"setpoint_cache_relists_total" + labels + b" 1.0" in metrics.exposition()
    assert b"setpoint_cache_objects" + labels not in metrics.exposition()
