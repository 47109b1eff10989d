"""A reconcile never reads, from the cache, state older than its own controller's last write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from setpoint import errors
from setpoint.api.forms import metadata_only
from setpoint.api.names import Key
from setpoint.cache.cache import Cache
from setpoint.cache.consistency import CachedReader
from setpoint.cache.writes import IN_DOUBT, Writes
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.metrics import Metrics
from tests.cache.objects import Thing
from tests.cache.server import Server

pytestmark = pytest.mark.virtual_time

A = Key("shop", "a")


@asynccontextmanager
async def reading(
    server: Server, metrics: Metrics | None = None, **declared: Any
) -> AsyncIterator[CachedReader]:
    metrics = metrics or Metrics()
    client = Client(Config(server="http://localhost", namespace="shop"), transport=server)
    async with Cache(client, metrics) as cache:
        cache.declare(Thing, **declared)
        await cache.wait_synced()
        yield CachedReader(cache, metrics=metrics.controller("test"))


def version(obj: dict[str, Any]) -> str:
    found = obj["metadata"]["resourceVersion"]
    assert isinstance(found, str)
    return found


def now() -> float:
    return asyncio.get_running_loop().time()


async def after(seconds: float, act: Any) -> None:
    await asyncio.sleep(seconds)
    act()


async def test_a_read_waits_until_the_cache_has_seen_the_write() -> None:
    server, metrics = Server(), Metrics()
    server.put("a", spec={"node": "n1"})
    async with reading(server, metrics) as reader:
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a", spec={"node": "n2"})))
        asked = len(server.requests)
        began = now()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1.5, server.catch_up))
            assert (await reader.get(Thing, "a")).spec.node == "n2"
        assert 1.49 < now() - began < 1.6
        assert len(server.requests) == asked, "the server was not asked"
        assert len(reader.writes) == 0, "and it is not looked for again"
    assert b'setpoint_cache_wait_seconds_count{controller="test"} 1.0' in metrics.exposition()
    assert b'setpoint_cache_wait_timeouts_total{controller="test"} 0.0' in metrics.exposition()
    assert b"setpoint_cache_lag_seconds_count" in metrics.exposition()


async def test_reads_of_other_objects_do_not_wait() -> None:
    server = Server()
    server.put("b")
    async with reading(server) as reader:
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a")))
        began = now()
        await reader.get(Thing, "b")
        assert now() == began


async def test_a_list_waits_for_every_write_to_the_kind() -> None:
    server = Server()
    async with reading(server) as reader:
        server.is_late = True
        for name in ("a", "b", "c"):
            reader.wrote(Thing, Key("shop", name), version(server.put(name)))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            found = await reader.list(Thing, namespace="shop")
        assert [each.metadata.name for each in found] == ["a", "b", "c"]
        assert len(reader.writes) == 0


async def test_a_list_of_one_namespace_waits_for_no_write_to_another() -> None:
    server = Server()
    async with reading(server) as reader:
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a")))
        began = now()
        assert await reader.list(Thing, namespace="lab") == []
        assert now() == began


async def test_a_watch_that_is_too_late_is_not_waited_for_twice_the_server_is_asked() -> None:
    server, metrics = Server(), Metrics()
    server.put("a", spec={"node": "n1"})
    async with reading(server, metrics, indexes=["spec.node"]) as reader:
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a", spec={"node": "n2"})))
        began = now()
        assert (await reader.get(Thing, "a")).spec.node == "n2"
        assert 4.9 < now() - began < 5.1
        began = now()
        assert (await reader.get(Thing, "a")).spec.node == "n2"
        assert [each.spec.node for each in await reader.list(Thing)] == ["n2"]
        assert len(await reader.list(Thing, index={"spec.node": "n2"}, labels="!app")) == 1
        assert await reader.list(Thing, index={"spec.node": "n1"}) == []
        assert now() == began
        server.catch_up()
        await asyncio.sleep(1)
        asked = len(server.requests)
        assert (await reader.get(Thing, "a")).spec.node == "n2"
        assert len(server.requests) == asked, "then it is the cache's turn again"
    assert b'setpoint_cache_wait_timeouts_total{controller="test"} 1.0' in metrics.exposition()


async def test_a_write_that_changed_nothing_is_not_waited_for() -> None:
    server = Server()
    made = server.put("a")
    async with reading(server) as reader:
        reader.wrote(Thing, A, version(made))
        began = now()
        await reader.get(Thing, "a")
        assert now() == began


async def test_a_deletion_counts_as_a_write() -> None:
    server = Server()
    made = server.put("a")
    async with reading(server) as reader:
        server.is_late = True
        server.delete("a")
        reader.deleted(Thing, A, made["metadata"]["uid"])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            with pytest.raises(errors.NotFound):
                await reader.get(Thing, "a")


@pytest.mark.parametrize("is_told", [True, False])
async def test_an_object_that_went_with_its_last_finalizer_is_not_read_on_its_way_out(is_told: bool) -> None:
    server = Server()
    server.put("b")
    made = server.put("a", deletionTimestamp="2026-01-02T03:04:05Z")
    async with reading(server) as reader:
        server.is_late = True
        server.delete("a")
        if is_told:
            reader.deleted(Thing, A, made["metadata"]["uid"], is_gone=True)
        else:
            reader.ambiguous(Thing, A)
        assert [each.metadata.name for each in await reader.list(Thing)] == ["b"]
        with pytest.raises(errors.NotFound):
            await reader.get(Thing, "a")


async def test_a_bookmark_is_enough_to_know() -> None:
    server = Server()
    async with reading(server, labels="app=web") as reader:
        reader.wrote(Thing, A, version(server.put("a")))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.bookmark))
            assert await reader.list(Thing) == []


async def test_what_is_not_selected_is_not_waited_for_where_the_labels_are_known() -> None:
    server = Server()
    async with reading(server, labels="app=web") as reader:
        reader.wrote(Thing, A, version(server.put("a")), labels={"app": "db"})
        began = now()
        assert await reader.list(Thing) == []
        assert now() == began


async def test_other_controllers_do_not_wait() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"})
    async with reading(server) as reader:
        other = CachedReader(reader.cache)
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a", spec={"node": "n2"})))
        assert (await other.get(Thing, "a")).spec.node == "n1"


# A write without an answer


async def test_after_a_lost_answer_the_object_is_read_from_the_server() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"})
    async with reading(server) as reader:
        server.is_late = True
        reader.ambiguous(Thing, A)
        server.put("a", spec={"node": "n2"})
        began = now()
        assert (await reader.get(Thing, "a")).spec.node == "n2"
        assert now() == began


async def test_it_is_read_from_there_as_long_as_the_write_may_still_happen() -> None:
    server = Server()
    server.put("a", spec={"node": "n1"})
    async with reading(server) as reader:
        reader.ambiguous(Thing, A)
        assert (await reader.get(Thing, "a")).spec.node == "n1"
        await asyncio.sleep(10)
        server.is_late = True
        server.put("a", spec={"node": "n2"})  # the server was slow
        assert (await reader.get(Thing, "a")).spec.node == "n2"
        server.catch_up()
        await asyncio.sleep(IN_DOUBT)
        asked = len(server.requests)
        assert (await reader.get(Thing, "a")).spec.node == "n2"
        assert len(server.requests) == asked


async def test_a_deletion_whose_answer_was_lost_is_not_read_as_if_it_had_not_happened() -> None:
    server = Server()
    server.put("a")
    server.put("b")
    async with reading(server) as reader:
        server.is_late = True
        server.delete("a")
        reader.ambiguous(Thing, A)
        with pytest.raises(errors.NotFound):
            await reader.get(Thing, "a")
        assert [each.metadata.name for each in await reader.list(Thing)] == ["b"]


async def test_a_list_asks_about_objects_in_doubt_and_then_waits_for_the_cache() -> None:
    server = Server()
    async with reading(server) as reader:
        server.is_late = True
        server.put("a")
        reader.ambiguous(Thing, A)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            found = await reader.list(Thing)
        assert [each.metadata.name for each in found] == ["a"]


async def test_after_many_lost_answers_one_list_is_asked_for_and_not_each_object() -> None:
    server = Server()
    names = [f"t{number:02}" for number in range(50)]
    async with reading(server) as reader:
        server.is_late = True
        for name in names:
            server.put(name)
            reader.ambiguous(Thing, Key("shop", name))
        asked = len(server.requests)
        assert [each.metadata.name for each in await reader.list(Thing)] == names
        assert len(server.requests) == asked + 1
        assert not await reader.caught_up([Thing], timeout=1)
        server.catch_up()
        assert await reader.caught_up([Thing], timeout=1)


async def test_after_a_lost_answer_about_what_the_server_was_to_name_the_kind_is_read_from_there() -> None:
    """The controller would else make a second one, for the first is nowhere to be seen."""
    server = Server()
    async with reading(server) as reader:
        server.is_late = True
        reader.ambiguous(Thing, Key("shop", ""))
        server.put("a-x7f2q")
        assert [each.metadata.name for each in await reader.list(Thing)] == ["a-x7f2q"]
        assert (await reader.get(Thing, "a-x7f2q")).metadata.name == "a-x7f2q"
        server.catch_up()

        asked = len(server.requests)
        await reader.list(Thing)
        assert len(server.requests) == asked + 1, "it may still happen"
        await asyncio.sleep(IN_DOUBT)
        await reader.list(Thing)
        asked = len(server.requests)
        await reader.list(Thing)
        await reader.get(Thing, "a-x7f2q")
        assert len(server.requests) == asked, "all that can have happened is in the cache"


async def test_a_deletion_that_is_no_longer_kept_is_not_read_as_if_it_had_not_happened() -> None:
    server = Server()
    for name in ("a", "b"):
        server.put(name)
    async with reading(server) as reader:
        few = CachedReader(reader.cache, Writes(limit=1))
        held = reader.cache.peek(Thing, A)
        assert held is not None
        server.is_late = True
        few.deleted(Thing, A, held.metadata.uid)
        server.delete("a")
        few.wrote(Thing, Key("shop", "b"), version(server.put("b", spec={"node": "n2"})))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            with pytest.raises(errors.NotFound):
                await few.get(Thing, "a")


# Waiting for all


async def test_a_controller_can_wait_until_the_cache_has_caught_up() -> None:
    server = Server()
    async with reading(server) as reader:
        assert await reader.caught_up([Thing])
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a")))
        assert not await reader.caught_up([Thing], timeout=0.5)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            assert await reader.caught_up([Thing])


async def test_every_watch_of_the_kind_must_have_caught_up() -> None:
    server = Server()
    async with reading(server, namespaces=["shop", "lab"]) as reader:
        reader.wrote(Thing, Key("lab", "b"), version(server.put("b", namespace="lab")))
        reader.wrote(Thing, A, version(server.put("a")))
        assert await reader.caught_up([Thing], timeout=1)
        assert len(await reader.list(Thing)) == 2


async def test_writes_that_are_no_longer_kept_one_by_one_are_waited_for_together() -> None:
    server = Server()
    async with reading(server) as reader:
        few = CachedReader(reader.cache, Writes(limit=2))
        server.is_late = True
        for number in range(5):
            few.wrote(Thing, Key("shop", f"a{number}"), version(server.put(f"a{number}")))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            assert (await few.get(Thing, "a0")).metadata.name == "a0"


async def test_what_is_not_cached_is_read_live_and_not_remembered() -> None:
    server = Server()
    client = Client(Config(server="http://localhost", namespace="shop"), transport=server)
    async with Cache(client) as cache:
        reader = CachedReader(cache)
        reader.wrote(Thing, A, version(server.put("a")))
        reader.ambiguous(Thing, A)
        reader.deleted(Thing, A, "uid")
        assert len(reader.writes) == 0
        assert (await reader.get(Thing, "a")).metadata.name == "a"
        assert len(await reader.list(Thing)) == 1


async def test_metadata_is_read_as_consistently() -> None:
    server = Server()
    server.put("a", labels={"x": "1"})
    async with reading(server) as reader:
        server.is_late = True
        reader.wrote(Thing, A, version(server.put("a", labels={"x": "2"})))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(after(1, server.catch_up))
            read = await reader.get(metadata_only(Thing), "a")
        assert read.metadata.labels == {"x": "2"}


@pytest.mark.parametrize("patience", [0.0, 5.0])
async def test_what_is_not_selected_is_not_read_from_the_server_either(patience: float) -> None:
    server = Server()
    made = server.put("a", labels={"app": "web"})
    server.put("other", labels={"app": "db"})
    async with reading(server, labels="app=web") as some:
        reader = CachedReader(some.cache, patience=patience)
        server.is_late = True
        changed = server.put("a", labels={"app": "web", "x": "y"})
        reader.wrote(Thing, A, version(changed))
        reader.ambiguous(Thing, Key("shop", "other"))
        assert [each.metadata.labels for each in await reader.list(Thing)] == [{"app": "web", "x": "y"}]
        assert (await reader.get(Thing, "a")).metadata.uid == made["metadata"]["uid"]
        with pytest.raises(errors.NotFound, match="none of the declarations select it"):
            await reader.get(Thing, "other")


@pytest.mark.parametrize("later", [0, 10])
async def test_when_the_servers_past_is_replaced_every_kind_is_listed_again_and_no_floor_is_left(
    later: int,
) -> None:
    """One watch has evidence; the other is told, and has its objects from the same past."""
    server = Server()
    server.put("a", spec={"node": "backup"})
    server.put("b", namespace="office", spec={"node": "backup"})
    backup, at = dict(server.objects), server.version
    async with reading(server, namespaces=["shop", "office"]) as reader:
        written = server.put("a", spec={"node": "lost"})
        server.put("b", namespace="office", spec={"node": "lost"})
        reader.wrote(Thing, A, version(written))
        reader.writes.lost(Thing.gvk, Key("shop", "doubted"), at=now())
        assert (await reader.get(Thing, "a")).spec.node == "lost"
        server.delete("a")
        reader.deleted(Thing, A, written["metadata"]["uid"], is_gone=True)
        server.restore(backup, at)
        for _ in range(later):  # until there is more than was seen
            server.put("c")
        await asyncio.sleep(120)
        assert reader.cache.history == 1
        assert (await reader.get(Thing, "a")).spec.node == "backup"
        assert (await reader.get(Thing, "b", namespace="office")).spec.node == "backup"
        assert [key.name for key, _ in reader.writes.of_kind(Thing.gvk)] == ["doubted"]


async def test_between_the_evidence_and_the_list_nothing_of_the_other_past_is_read() -> None:
    server = Server()
    server.put("a", spec={"node": "old"})
    async with reading(server) as reader:
        server.objects[A] = {**server.objects[A], "spec": {"node": "new"}}  # written at the same version
        reader.cache._shared.history.replace("the test says so")
        assert (await reader.get(Thing, "a")).spec.node == "new"
