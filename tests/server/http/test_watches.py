"""Watch streams: lines in every form, shared among watchers, ended in order."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from setpoint.clock import ManualClock
from setpoint.net.listen import Answer
from setpoint.net.transport import Request, Response, Transport
from setpoint.server.http.negotiate import Form
from setpoint.server.http.watches import Frames
from setpoint.server.registry.watching import WatchEvent
from setpoint.server.server import ApiServer
from setpoint.server.storage.protocol import Place, Record
from tests.server.http.asking import (
    DEFINITIONS,
    MAPS,
    PARTIAL,
    TABLE,
    Asking,
    config_map,
    definition,
    until_served,
    version,
)
from tests.server.http.resources import resource


async def opened(transport: Transport, query: str = "", accept: str = "application/json") -> Response:
    return await transport(Request("GET", f"{MAPS}?watch=1{query}", {"Accept": accept}))


class Lines:
    """The events of a watch, one by one."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._chunks = response.chunks()
        self._lines: list[bytes] = []

    async def next(self) -> Any:
        while not self._lines:
            self._lines += (await anext(self._chunks)).splitlines()
        return msgspec.json.decode(self._lines.pop(0))

    async def close(self) -> None:
        await self._chunks.aclose()  # type: ignore[attr-defined]
        await self._response.close()


@pytest.mark.virtual_time
async def test_what_there_is_comes_first_then_every_change() -> None:
    async with ApiServer() as server:
        transport = server.transport()
        ask = Asking(transport)
        await ask.create(MAPS, config_map("a"))
        response = await opened(transport)
        assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
        seen = Lines(response)
        first = await seen.next()
        assert (first["type"], first["object"]["kind"], first["object"]["metadata"]["name"]) == (
            "ADDED",
            "ConfigMap",
            "a",
        )
        await ask.create(MAPS, config_map("b"))
        await ask("DELETE", f"{MAPS}/a")
        events = [await seen.next(), await seen.next()]
        told = [(one["type"], one["object"]["metadata"]["name"]) for one in events]
        assert told == [("ADDED", "b"), ("DELETED", "a")]
        await seen.close()


@pytest.mark.virtual_time
async def test_what_there_is_comes_in_pieces_of_whole_lines_however_much_it_is() -> None:
    async with ApiServer() as server:
        transport = server.transport()
        names = [f"m{number}" for number in range(6)]
        for name in names:
            await Asking(transport).create(MAPS, config_map(name, text="x" * 500_000))
        response = await opened(transport, "&timeoutSeconds=1")
        pieces = [piece async for piece in response.chunks()]
        assert all(piece.endswith(b"\n") for piece in pieces)
        assert [len(piece) // 2**20 for piece in pieces] == [1, 1], "who is slow has its time for each"
        events = [msgspec.json.decode(line) for piece in pieces for line in piece.splitlines()]
        assert [one["object"]["metadata"]["name"] for one in events] == names


@pytest.mark.virtual_time
async def test_a_table_tells_its_columns_once() -> None:
    async with ApiServer() as server:
        transport = server.transport()
        ask = Asking(transport)
        await ask.create(MAPS, config_map("a", k="v"))
        response = await opened(transport, "&allowWatchBookmarks=1&timeoutSeconds=90", TABLE)
        seen = Lines(response)
        first = (await seen.next())["object"]
        assert [one["name"] for one in first["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert first["rows"][0]["cells"][:2] == ["a", 1]
        assert first["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        bookmark = await seen.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["rows"][0]["cells"] == ["", 0, "<unknown>"], "of an object that has nothing"
        await ask.create(MAPS, config_map("b"))
        second = (await seen.next())["object"]
        assert (second["columnDefinitions"], second["rows"][0]["cells"][:2]) == (None, ["b", 0])
        await seen.close()


@pytest.mark.virtual_time
async def test_metadata_alone_and_bookmarks_of_it() -> None:
    async with ApiServer() as server:
        transport = server.transport()
        made = await Asking(transport).create(MAPS, config_map("a", k="v"))
        query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
        response = await opened(transport, query, PARTIAL)
        seen = Lines(response)
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        assert await seen.next() == {"type": "ADDED", "object": {**partial, "metadata": made["metadata"]}}
        bookmark = (await seen.next())["object"]
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["kind"] == "PartialObjectMetadata"
        await seen.close()


@pytest.mark.virtual_time
async def test_a_watch_ends_when_its_time_is_up() -> None:
    async with ApiServer() as server:
        response = await opened(server.transport(), "&timeoutSeconds=3&resourceVersion=1")
        began = asyncio.get_running_loop().time()
        body = await response.read()
        assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.01)
        assert body == b""


@pytest.mark.virtual_time
async def test_a_server_that_stops_ends_its_watches_in_order() -> None:
    async with ApiServer() as server:
        response = await opened(server.transport())
        reading = asyncio.ensure_future(response.read())
        await asyncio.sleep(1)
    assert await reading == b"", "the end, and not a cut"


@pytest.mark.virtual_time
async def test_what_is_wrong_with_a_watch_is_said_before_it_begins() -> None:
    async with ApiServer() as server:
        ask = Asking(server.transport())
        assert (await ask.get(f"{MAPS}?watch=1&timeoutSeconds=x")).status == 400
        assert (await ask.get(f"{MAPS}?watch=1&labelSelector=!!")).status == 400
        got = await ask.get(f"{MAPS}?watch=1", accept="application/yaml")
        assert got.status == 406
        assert b"application/json;stream=watch" in got.body


async def test_a_watch_of_what_is_not_served_any_more_ends() -> None:
    foos = "/apis/example.com/v1/namespaces/default/foos"
    async with ApiServer() as server:
        transport = server.transport()
        ask = Asking(transport)
        await ask.create(DEFINITIONS, definition(version("v1", storage=True)))
        await until_served(ask, foos)
        response = await transport(Request("GET", f"{foos}?watch=1"))
        other = await opened(transport)
        assert (await ask("DELETE", f"{DEFINITIONS}/foos.example.com")).status == 200
        assert await response.read() == b""
        assert len(server.app._streams) == 1, "others go on"
        await other.close()


async def test_a_watch_that_nobody_reads_is_let_go() -> None:
    async with ApiServer() as server:
        answer: Answer = await server.app(
            Request("GET", f"{MAPS}?watch=1", {"Authorization": f"Bearer {server.token}"})
        )
        assert len(server.app._streams) == 1
        await answer.body.aclose()  # type: ignore[union-attr]
        assert len(server.app._streams) == 0


def event(revision: int, name: str = "a", type: str = "ADDED") -> WatchEvent:  # noqa: A002
    data = msgspec.json.encode(
        {"kind": "Foo", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": str(revision)}}
    )
    record = Record(Place("foos", "", name), revision, revision, data)
    return WatchEvent(type, data, record)  # type: ignore[arg-type]  # the names of types come from a table


def test_a_line_is_written_once_for_all_who_watch_in_one_form() -> None:
    clock = ManualClock()
    frames = Frames(clock.utc)
    foos = resource("", "v1", "foos", "Foo", columns=())
    one = frames.frame(event(5), foos, Form(), "Metadata")
    assert frames.frame(event(5), foos, Form(), "Metadata") is one
    assert frames.frame(event(5), foos, Form(kind="partial"), "Metadata") is not one
    assert frames.frame(event(6), foos, Form(), "Metadata") is not one

    shown = frames.frame(event(5), foos, Form(kind="table"), "Metadata")
    assert frames.frame(event(5), foos, Form(kind="table"), "Metadata") is shown
    assert frames.frame(event(5), foos, Form(kind="table"), "Object") is not shown
    clock.turn(1)
    assert frames.frame(event(5), foos, Form(kind="table"), "Metadata") is not shown, "ages have changed"


def test_lines_that_are_kept_do_not_fill_the_memory() -> None:
    frames = Frames(ManualClock().utc)
    foos = resource("", "v1", "foos", "Foo")
    for revision in range(5000):
        frames.frame(event(revision), foos, Form(), "Metadata")
    assert len(frames._kept) <= 2048


def test_an_error_is_a_status_in_every_form() -> None:
    frames = Frames(ManualClock().utc)
    status = b'{"kind":"Status","code":410}'
    for form in (Form(), Form(kind="table"), Form(kind="partial")):
        line = frames.frame(WatchEvent("ERROR", status), resource("", "v1", "foos", "Foo"), form, "Metadata")
        assert line.before == b'{"type":"ERROR","object":%b}\n' % status
        assert line.after == b""


def test_large_lines_do_not_fill_it_either() -> None:
    frames = Frames(ManualClock().utc)
    foos = resource("", "v1", "foos", "Foo")
    for revision in range(50):
        frames.frame(event(revision, "a" * 2**20), foos, Form(), "Metadata")
    sizes = [len(each.before) for each in frames._kept.values()]
    assert 2**20 < sum(sizes) <= 16 * 2**20
    assert max(revision for _, revision, *_ in frames._kept) == 49, "the newest are kept"
