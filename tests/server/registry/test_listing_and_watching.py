"""Lists and watches over a store: pages of one snapshot, selectors, versions, and what a watch sends."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Self

import msgspec
import pytest

from setpoint.server.registry.listing import list_objects
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object, PlainStrategy, Resource
from setpoint.server.registry.types import Type
from setpoint.server.registry.watching import WatchEvent, Watching
from setpoint.server.statuses import StatusError
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Place, Record


class _Strategy(PlainStrategy):
    def fields(self, obj: Object) -> dict[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase", "")}

    def selectable_fields(self) -> Sequence[str]:
        return ("status.phase",)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"reading asked for {name}")


PODS = Resource("", "v1", "pods", "Pod", True, (), Type("struct"), _Strategy())


class Pods:
    """A store with pods, written and read as the registry does."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    async def put(self, name: str, *, labels: dict[str, str] | None = None, namespace: str = "a") -> Record:
        place = Place("pods", namespace, name)

        def encode(revision: int) -> bytes:
            metadata = {"name": name, "namespace": namespace, "resourceVersion": str(revision)}
            if labels:
                metadata["labels"] = labels  # type: ignore[assignment]  # only strings, one deeper
            return msgspec.json.encode({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})

        found = self.store.get(place)
        if found is None:
            return await self.store.create(place, encode)
        return await self.store.update(place, encode, found.revision)

    async def delete(self, name: str) -> Record:
        found = self.store.get(Place("pods", "a", name))
        assert found is not None

        def encode(revision: int) -> bytes:
            obj = msgspec.json.decode(found.data)
            obj["metadata"]["resourceVersion"] = str(revision)
            return msgspec.json.encode(obj)

        return await self.store.delete(found.place, encode, found.revision)

    async def listed(self, **query: str) -> Any:
        return await list_objects(self.store, Ask("list", PODS, namespace="a", query=query))

    async def names(self, **query: str) -> list[str]:
        return [one.place.name for one in (await self.listed(**query)).records]

    def watch(self, **query: str) -> Watching:
        ask = Ask("watch", PODS, namespace="a", query=query)
        return Watching(self.store, ask, lambda _, record: record)


async def first(watching: Watching, count: int) -> list[tuple[str, Any]]:
    """The first events, as type and object."""
    found: list[WatchEvent] = []
    async with asyncio.timeout(5), aclosing(watching.batches()) as batches:
        async for events in batches:
            found += events
            if len(found) >= count:
                break
    return [(event.type, msgspec.json.decode(event.data)) for event in found]


def told(events: list[tuple[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (type_, obj["metadata"].get("name", ""), obj["metadata"].get("resourceVersion", ""))
        for type_, obj in events
    ]


async def test_all_pages_of_a_list_are_one_snapshot() -> None:
    pods = Pods()
    for name in "abcd":
        await pods.put(name)

    page = await pods.listed(limit="2")
    await pods.put("c", labels={"late": "yes"})
    await pods.delete("d")
    rest = await pods.listed(limit="2", **{"continue": page.continue_token})

    assert [one.place.name for one in page.records] == ["a", "b"]
    assert page.remaining == 2
    assert [one.place.name for one in rest.records] == ["c", "d"]
    assert b"late" not in rest.records[0].data
    assert rest.revision == page.revision
    assert rest.continue_token == ""


async def test_pages_miss_nothing_where_one_namespace_begins_as_another() -> None:
    pods = Pods()
    for namespace in ("a", "a-b", "a.b"):
        for name in "xy":
            await pods.put(name, namespace=namespace)
    found: list[tuple[str, str]] = []
    token = ""
    while True:
        query = {"limit": "1", "continue": token} if token else {"limit": "1"}
        page = await list_objects(pods.store, Ask("list", PODS, query=query))
        found += [(one.place.namespace, one.place.name) for one in page.records]
        token = page.continue_token
        if not token:
            break

    assert sorted(found) == [(space, name) for space in ("a", "a-b", "a.b") for name in "xy"]


async def test_each_page_says_how_many_follow() -> None:
    pods = Pods()
    for number in range(5):
        await pods.put(f"p{number}")
    remaining, token = [], ""
    while True:
        page = await pods.listed(limit="2", **({"continue": token} if token else {}))
        await pods.put("p9")
        remaining.append(page.remaining)
        token = page.continue_token
        if not token:
            break
    assert remaining == [3, 1, None]


class Work:
    """What is done meanwhile: lines of Python, and bytes that were in use at once."""

    lines = bytes = 0

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        tracemalloc.start()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    def _trace(self, *_: object) -> Any:
        self.lines += 1
        return self._trace


async def work_of_pages(objects: int, clients: int) -> Work:
    """What the most costly page takes, where each client lists in pages and each page follows a write."""
    pods = Pods()
    for number in range(objects):
        await pods.put(f"p{number:05}")
    tokens: list[str] = []
    for number in range(clients):  # each at a revision of its own
        await pods.put(f"p{number:05}", labels={"at": "first"})
        tokens.append((await pods.listed(limit="5")).continue_token)
    worst = Work()
    for turn in range(3):
        for client, token in enumerate(tokens):
            await pods.put(f"p{turn * clients + client:05}", labels={"at": "later"})
            with Work() as work:
                page = await pods.listed(limit="5", **{"continue": token})
            assert len(page.records) == 5
            tokens[client] = page.continue_token
            worst.lines, worst.bytes = max(worst.lines, work.lines), max(worst.bytes, work.bytes)
    return worst


async def test_a_page_costs_as_much_as_the_page_however_many_objects_and_clients_there_are() -> None:
    few = await work_of_pages(objects=200, clients=2)
    many = await work_of_pages(objects=4_000, clients=20)
    assert many.lines < 2 * few.lines
    assert many.bytes < 2 * few.bytes


async def test_a_page_that_is_too_old_is_410_with_a_token_to_go_on() -> None:
    pods = Pods()
    for name in "abc":
        await pods.put(name)
    page = await pods.listed(limit="1")
    await pods.put("d")
    await pods.store.compact(pods.store.revision)

    with pytest.raises(StatusError) as refused:
        await pods.listed(limit="1", **{"continue": page.continue_token})

    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    again = await pods.listed(limit="9", **{"continue": refused.value.metadata["continue"]})
    assert [one.place.name for one in again.records] == ["b", "c", "d"]


async def test_selectors_select() -> None:
    pods = Pods()
    await pods.put("a", labels={"x": "1"})
    await pods.put("b", labels={"x": "2"})
    await pods.put("c")

    assert await pods.names(labelSelector="x") == ["a", "b"]
    assert await pods.names(labelSelector="x!=1") == ["b", "c"]
    assert await pods.names(fieldSelector="metadata.name=b") == ["b"]
    assert (await pods.listed(labelSelector="x", limit="1")).remaining is None


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ({"resourceVersion": "999"}, 504, "Too large resource version: 999, current: 2"),
        ({"resourceVersion": "abc"}, 400, 'parsing "abc": invalid syntax'),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422, 'forbidden for resourceVersion "0"'),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
        ({"fieldSelector": "spec.x=1"}, 400, "field label not supported: spec.x"),
        ({"labelSelector": "a in"}, 400, "unable to parse requirement"),
        ({"continue": "zz"}, 400, "continue"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(query: dict[str, str], code: int, said: str) -> None:
    pods = Pods()
    await pods.put("a")

    with pytest.raises(StatusError) as refused:
        await pods.listed(**query)

    assert refused.value.code == code
    assert said in refused.value.message


async def test_a_watch_from_a_version_sends_what_came_after_it() -> None:
    pods = Pods()
    start = (await pods.put("a")).revision
    await pods.put("b")
    await pods.put("a", labels={"x": "1"})
    await pods.delete("b")

    events = await first(pods.watch(resourceVersion=str(start)), 3)

    assert told(events) == [("ADDED", "b", "3"), ("MODIFIED", "a", "4"), ("DELETED", "b", "5")]


async def test_a_watch_without_a_version_begins_with_what_there_is() -> None:
    pods = Pods()
    await pods.put("a")
    await pods.put("b")

    assert told(await first(pods.watch(), 2)) == [("ADDED", "a", "2"), ("ADDED", "b", "3")]


async def test_the_initial_events_end_with_a_bookmark_that_says_so() -> None:
    pods = Pods()
    await pods.put("a")

    events = await first(
        pods.watch(sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"),
        2,
    )

    assert told(events) == [("ADDED", "a", "2"), ("BOOKMARK", "", "2")]
    assert events[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_what_enters_a_selection_is_added_and_what_leaves_it_is_deleted_as_it_was() -> None:
    pods = Pods()
    start = (await pods.put("a")).revision
    await pods.put("a", labels={"x": "1"})
    await pods.put("a", labels={"x": "1", "y": "1"})
    await pods.put("a", labels={"y": "1"})

    events = await first(pods.watch(resourceVersion=str(start), labelSelector="x"), 3)

    assert told(events) == [("ADDED", "a", "3"), ("MODIFIED", "a", "4"), ("DELETED", "a", "5")]
    assert events[2][1]["metadata"]["labels"] == {"x": "1", "y": "1"}


async def test_a_watch_from_a_version_that_is_gone_says_410_and_ends() -> None:
    pods = Pods()
    await pods.put("a")
    await pods.put("b")
    await pods.store.compact(3)

    found = [event async for events in pods.watch(resourceVersion="2").batches() for event in events]

    assert [event.type for event in found] == ["ERROR"]
    status = msgspec.json.decode(found[0].data)
    assert (status["code"], status["reason"]) == (410, "Expired")


@pytest.mark.virtual_time
async def test_bookmarks_come_once_a_minute_and_before_the_end() -> None:
    pods = Pods()
    await pods.put("a")

    watching = pods.watch(resourceVersion="2", allowWatchBookmarks="true", timeoutSeconds="90")
    loop = asyncio.get_running_loop()
    began = loop.time()
    found = [(event.type, loop.time() - began) async for events in watching.batches() for event in events]

    assert found == [("BOOKMARK", 60.0), ("BOOKMARK", 88.0)]
    assert loop.time() - began == 90.0


@pytest.mark.virtual_time
async def test_a_bookmark_rises_when_only_other_kinds_change() -> None:
    pods = Pods()
    await pods.put("a")
    watching = pods.watch(resourceVersion="2", allowWatchBookmarks="true", timeoutSeconds="90")
    await pods.put("z", namespace="elsewhere")

    found = [msgspec.json.decode(event.data) async for events in watching.batches() for event in events]

    assert found[0]["metadata"]["resourceVersion"] == "3"
