"""kill -9 of the whole server under load, over TLS: at every failpoint in turn, and at moments of chance.

What was acknowledged is there, what anyone read or watched is there as it was, no revision is used twice, and
every watch goes on where it was, without a gap, or is told 410.  ``SETPOINT_CRASHES`` says how many cycles;
CI and ``make soak`` ask for more.  The store alone is killed in ``storage/test_crash.py``.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import random
import re
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from setpoint.api.yaml import load
from setpoint.errors import SetpointError
from setpoint.net.http import Endpoint, HttpTransport
from setpoint.net.transport import Request
from setpoint.net.trust import ssl_context
from setpoint.server.storage.failpoints import POINTS
from setpoint.server.storage.protocol import EventType, Place
from setpoint.testing.history_check import Recorder, Row, State, Watching, check, check_watch, replayed
from tests.server.http.asking import Asking, Got

CYCLES = int(os.environ.get("SETPOINT_CRASHES", "12"))
WRITERS, NAMES, MOST_ACKS = 6, 3, 70
SPACES = ("default", "kube-public")
MAPS = "configmaps"
ROOT = Path(__file__).parents[2]
ALIVE = [
    point for point in POINTS if not point.startswith(("fresh.", "settle."))
]  # test_recovery.py, test_sqlite.py
TURNS = [*ALIVE, "", ""] if CYCLES < 50 else [each for point in ALIVE for each in (point, "")]
READY = re.compile(r"ready at (https://\S+) ")


@pytest.mark.deadline(60 + 10 * CYCLES)
async def test_p01_p03_p04_p13_p20_a_killed_server_loses_nothing_and_watches_go_on(tmp_path: Path) -> None:
    async with made(tmp_path / "data") as maker:
        run = Run(maker)
        await run.look()
        for cycle in range(CYCLES):
            await run.cycle(cycle)
    assert run.acknowledged > CYCLES * 5, "a run that acknowledged so little shows nothing"
    assert run.followed > CYCLES, "a watch that saw so little shows nothing"
    if len(TURNS) <= CYCLES:
        assert run.reached == set(ALIVE), "each failpoint was reached"


# ── Servers that are there to be killed ─────────────────────────────────────────────────────────────


class Maker:
    def __init__(self, process: asyncio.subprocess.Process, data: Path) -> None:
        self._process = process
        self._data = data

    @asynccontextmanager
    async def server(self, *, failpoints: str = "", compact: int = 0) -> AsyncIterator[Life]:
        arguments = ["--controllers", "none", "--data", str(self._data)]
        order = {"arguments": arguments, "failpoints": failpoints, "compact": compact}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        _, pid = json.loads(await self._line())
        said = await self._line()
        if found := READY.match(said):
            async with self._transport(found[1]) as transport:
                life = Life(pid, transport, self._token())
                try:
                    yield life
                except BaseException:
                    life.kill()
                    raise
            said = await self._line()
        else:
            yield Life(pid, None, "")  # it did not live to say that it is ready
        assert json.loads(said) == ["ended", -signal.SIGKILL], f"it was to be killed, and it said {said}"

    async def _line(self) -> str:
        assert self._process.stdout
        return (await self._process.stdout.readline()).decode()

    def _transport(self, url: str) -> HttpTransport:
        cluster = load((self._data / "kubeconfig").read_text())["clusters"][0]["cluster"]
        context = ssl_context(ca=base64.b64decode(cluster["certificate-authority-data"]))
        return HttpTransport(Endpoint(url, ssl_context=lambda: context))

    def _token(self) -> str:
        return str(load((self._data / "kubeconfig").read_text())["users"][0]["user"]["token"])


@asynccontextmanager
async def made(data: Path, environment: Mapping[str, str] = MappingProxyType({})) -> AsyncIterator[Maker]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.server.killing"),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Maker(process, data)
    finally:
        assert process.stdin
        process.stdin.close()  # no more orders: it ends when the last server has
        await process.wait()


class Life:
    """One server, from its start until it is killed."""

    def __init__(self, pid: int, transport: HttpTransport | None, token: str) -> None:
        self._pid = pid
        self._transport = transport
        self._headers = {"Authorization": f"Bearer {token}"}
        self.is_ready = transport is not None
        self.was_killed = False  # by us

    def kill(self) -> None:
        if not self.was_killed:
            self.was_killed = True
            with suppress(ProcessLookupError):  # its failpoint was faster
                os.kill(self._pid, signal.SIGKILL)

    async def ask(self, method: str, path: str, body: Any = None) -> Got:
        assert self._transport
        return await Asking(self._transport)(method, path, body, self._headers)

    async def watch(self, after: int) -> AsyncGenerator[Any, None]:
        """The events of all ConfigMaps, until the server is gone."""
        assert self._transport
        target = f"/api/v1/configmaps?watch=1&allowWatchBookmarks=1&resourceVersion={after}"
        response = await self._transport(Request("GET", target, self._headers))
        rest = b""
        async for piece in response.chunks():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield json.loads(line)


def path_of(place: Place, *, named: bool = True) -> str:
    collection = f"/api/v1/namespaces/{place.namespace}/{place.resource}"
    return f"{collection}/{place.name}" if named else collection


def place_of(obj: Any) -> Place:
    return Place(MAPS, obj["metadata"]["namespace"], obj["metadata"]["name"])


def state_of(obj: Any) -> State:
    return State(int(obj["metadata"]["resourceVersion"]), obj["data"]["v"])


def is_ours(obj: Any) -> bool:
    return "v" in (obj.get("data") or {})


class Rows:
    """Events as rows of a log.  An event does not say what was there before: whoever saw it all knows."""

    def __init__(self, before: dict[Place, State]) -> None:
        self._there = dict(before)

    def row(self, event: Any) -> Row:
        type_: EventType = event["type"]
        place, found = place_of(event["object"]), state_of(event["object"])
        previous = self._there.pop(place, State(0, "")).revision
        if type_ == "DELETED":
            return Row(found.revision, type_, place, f"deleted {previous}", previous)
        self._there[place] = found
        return Row(found.revision, type_, place, found.value, previous)


# ── The run ─────────────────────────────────────────────────────────────────────────────────────────


class Writer:
    """Decides what one client writes next: mostly what is its own, sometimes what is everyone's."""

    def __init__(self, name: str, number: int, there: dict[Place, State]) -> None:
        self.name = name
        self.there = there  # as far as it knows
        self._number = number
        self._chance = random.Random(name)
        self._sent = itertools.count()

    def next(self) -> tuple[Place, EventType]:
        chance, namespace = self._chance, self._chance.choice(SPACES)
        if chance.random() < 0.2:
            return Place(MAPS, namespace, "shared"), "MODIFIED"
        place = Place(MAPS, namespace, f"w{self._number}-{chance.randrange(NAMES)}")
        if place not in self.there:
            return place, "ADDED"
        return place, "DELETED" if chance.random() < 0.3 else "MODIFIED"

    def value(self) -> str:
        return f"{self.name}-{next(self._sent)}"

    def padding(self) -> str:
        return "x" * self._chance.choice([0, 100, 6_000])


class Run:
    """One data directory through many lives, and all that is known of it."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._state: dict[Place, State] = {}
        self._log: list[Row] = []  # since the beginning
        self._known = 0  # the revision that state and log are at
        self._stand = Stand(0, Rows({}))
        self._left = 0  # acknowledgements until it is time to kill
        self.acknowledged = self.followed = 0
        self.reached: set[str] = set()

    async def cycle(self, number: int) -> None:
        chance, point = random.Random(number), TURNS[number % len(TURNS)]
        times = chance.randrange(1, 7) if point.startswith("write") else 1 + number // len(TURNS) % 3
        self._left = MOST_ACKS if point else chance.randrange(1, MOST_ACKS)
        recorder, follower = Recorder(itertools.count().__next__), None
        armed = f"{point}=kill@{times}" if point else ""
        async with self._maker.server(failpoints=armed, compact=self._known) as life:
            if life.is_ready:
                follower = await self._load(life, recorder, number)
        if not life.was_killed:
            self.reached.add(point)
        self.acknowledged += sum(write.outcome == "done" for write in recorder.writes)
        try:
            await self.look(recorder, follower)
        except AssertionError as error:
            told = f"after cycle {number}, killed at {point or 'chance'} {times}: {error}"
            raise AssertionError(told) from None

    async def _load(self, life: Life, recorder: Recorder, number: int) -> Watching:
        """Write, read and watch until the server is gone."""
        whole = recorder.watch("whole", MAPS, "", self._known)
        follower = Watching("follower", MAPS, "", self._stand.revision)
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(life, whole, Stand(self._known, Rows(self._state))))
            group.create_task(self._follow(life, follower))
            for each in range(WRITERS):
                writer = Writer(f"{number}-{each}", each, dict(self._state))
                group.create_task(self._write(life, recorder, writer))
        self.followed += len(follower.given)
        return follower

    async def _follow(self, life: Life, follower: Watching) -> None:
        if not await watch(life, follower, self._stand):
            assert self._stand.revision < self._known, "nothing later was to be compacted"
            self._stand = Stand(self._known, Rows(self._state))
            follower.after = self._known
            await watch(life, follower, self._stand)

    async def _write(self, life: Life, recorder: Recorder, writer: Writer) -> None:
        with suppress(SetpointError):  # the server is gone, and what was asked last may have happened
            while True:
                await write_one(life, recorder, writer)
                self._left -= 1
                if self._left <= 0:
                    life.kill()

    # ── After a life ────────────────────────────────────────────────────────────────────────────────

    async def look(self, recorder: Recorder | None = None, follower: Watching | None = None) -> None:
        """Start again on what was left, and hold it against what the clients were told."""
        async with self._maker.server() as life:
            found, listed = await self._listed(life)
            marked = await mark(life)
            assert self._known <= listed < marked, "revisions rise"
            if self._known:
                log = await self._since(life, marked)
                self._check(recorder or Recorder(lambda: 0), log, found)
                await self._look_back(life, marked)
            self._known = marked
            life.kill()
        if follower is not None:
            wrong = check_watch(follower, self._log)
            assert not wrong, "\n".join(wrong[:10])
        if not self._stand.revision:
            self._stand = Stand(self._known, Rows(self._state))

    @staticmethod
    async def _listed(life: Life) -> tuple[dict[Place, State], int]:
        got = (await life.ask("GET", f"/api/v1/{MAPS}")).json
        return {place_of(obj): state_of(obj) for obj in got["items"] if is_ours(obj)}, int(
            got["metadata"]["resourceVersion"]
        )

    async def _since(self, life: Life, marked: int) -> list[Row]:
        rows = Rows(self._state)
        return [rows.row(event) for event in await events(life, self._known, marked)]

    def _check(self, recorder: Recorder, log: list[Row], found: dict[Place, State]) -> None:
        placed = {row.value: row.revision for row in log}
        for write in recorder.writes:
            if write.type == "DELETED" and write.outcome == "done":  # its answer did not say its revision
                write.revision = placed.get(write.value, 0)
        wrong = check(recorder, log, before=self._state, after=self._known)
        assert not wrong, "\n".join(wrong[:10])
        self._state = replayed(log, self._state)
        self._log += log
        assert found == self._state, "what is held is what the log says"

    async def _look_back(self, life: Life, marked: int) -> None:
        """A watch from anywhere in the past has all that came since, or is told that it cannot."""
        if not self._log:
            return
        after = random.Random(marked).choice(self._log).revision
        given = await events(life, after, marked)
        if given and given[0]["type"] == "ERROR":
            assert given[0]["object"]["code"] == 410, given[0]
            return
        rest = [(row.revision, row.type, row.place) for row in self._log if row.revision > after]
        assert [(state_of(e["object"]).revision, e["type"], place_of(e["object"])) for e in given] == rest


# ── Clients ─────────────────────────────────────────────────────────────────────────────────────────


class Stand:
    """How far a watch has come, and what it knows is there."""

    def __init__(self, revision: int, rows: Rows) -> None:
        self.revision = revision
        self.rows = rows


async def watch(life: Life, watching: Watching, stand: Stand) -> bool:
    """Watch until the server is gone; False: it says that the history is gone (410)."""
    with suppress(SetpointError):
        async with aclosing(life.watch(stand.revision)) as given:
            async for event in given:
                if event["type"] == "ERROR":
                    assert event["object"]["code"] == 410, event
                    return False
                if event["type"] == "BOOKMARK":
                    stand.revision = int(event["object"]["metadata"]["resourceVersion"])
                    watching.given.append(stand.revision)
                elif is_ours(event["object"]):
                    row = stand.rows.row(event)
                    stand.revision = row.revision
                    watching.given.append(row)
    return True


async def events(life: Life, after: int, marked: int) -> list[Any]:
    """All that came after a revision, up to the mark; or the one error."""
    found: list[Any] = []
    async with aclosing(life.watch(after)) as given:
        async for event in given:
            if event["type"] == "BOOKMARK":
                continue
            if event["type"] == "ERROR":
                return [event]
            if int(event["object"]["metadata"]["resourceVersion"]) == marked:
                break
            if is_ours(event["object"]):
                found.append(event)
    return found


async def mark(life: Life) -> int:
    """Write what ends the log of a life; its revision."""
    await life.ask("DELETE", path_of(Place(MAPS, "default", "mark")))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark"}}
    got = await life.ask("POST", path_of(Place(MAPS, "default", "mark"), named=False), body)
    return int(got.json["metadata"]["resourceVersion"])


async def write_one(life: Life, recorder: Recorder, writer: Writer) -> None:
    place, type_ = writer.next()
    if place.name == "shared":  # everyone's: look first
        called = recorder.now()
        got = await life.ask("GET", path_of(place))
        found = state_of(got.json) if got.status == 200 else None
        recorder.read(writer.name, place, called, found)
        writer.there.pop(place, None)
        if found:
            writer.there[place] = found
        type_ = "MODIFIED" if found else "ADDED"
    seen = writer.there[place].revision if place in writer.there else 0
    sent = f"deleted {seen}" if type_ == "DELETED" else writer.value()
    asked = recorder.write(writer.name, type_, place, sent, seen)
    got = await send(life, place, type_, {"v": sent, "padding": writer.padding()}, seen)
    if got.status == 409 and place.name == "shared":
        recorder.refused(asked)
        return
    assert got.status in (200, 201), f"{type_} of {place}: {got.body!r}"
    if type_ == "DELETED":
        del writer.there[place]
        recorder.done(asked, 0)
    else:
        writer.there[place] = state_of(got.json)
        recorder.done(asked, writer.there[place].revision)


async def send(life: Life, place: Place, type_: EventType, data: dict[str, str], seen: int) -> Got:
    if type_ == "DELETED":
        return await life.ask("DELETE", path_of(place), {"preconditions": {"resourceVersion": f"{seen}"}})
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    if type_ == "ADDED":
        body["metadata"] = {"name": place.name}
        return await life.ask("POST", path_of(place, named=False), body)
    body["metadata"] = {"name": place.name, "resourceVersion": f"{seen}"}
    return await life.ask("PUT", path_of(place), body)
