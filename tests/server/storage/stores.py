"""Stores to test: both forms behind one door, and clients that note all they see.

What is written is ``value@revision``, so that every write has a value of its own and data shows the revision
that it was encoded with.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from setpoint.server.storage.history import Closed
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Changed, Encode, Event, Place, Record, Watch
from setpoint.server.storage.retention import Keep
from setpoint.server.storage.sqlite import HELD, SqliteStore
from setpoint.testing.history_check import Recorder, Row, State, Watching, rows

AnyStore = MemoryStore | SqliteStore
Open = Callable[..., AbstractAsyncContextManager[AnyStore]]

PODS = "pods"


def pod(name: str = "a", namespace: str = "ns", resource: str = PODS) -> Place:
    return Place(resource, namespace, name)


def encode(value: str = "v") -> Encode:
    return lambda revision: f"{value}@{revision}".encode()


def value(data: bytes) -> str:
    """What the writer put there."""
    return data.rpartition(b"@")[0].decode()


def state(record: Record) -> State:
    return State(record.revision, value(record.data))


@asynccontextmanager
async def opened_memory(keep: Keep | None = None) -> AsyncIterator[MemoryStore]:
    store = MemoryStore(keep=keep)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_sqlite(
    directory: Path, keep: Keep | None = None, held: Keep = HELD
) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(directory, keep=keep or Keep(), held=held)
    try:
        yield store
    finally:
        await store.close()


async def all_events(
    store: AnyStore, resource: str = PODS, namespace: str = "", after: int = 0
) -> list[Event]:
    """Every event from ``after`` up to now."""
    watch = store.watch(resource, namespace, after)
    try:
        return await events_until(watch, store.revision)
    finally:
        watch.close()


async def events_until(watch: Watch, revision: int) -> list[Event]:
    """What a watch gives until it has come to ``revision``."""
    given: list[Event] = []
    while watch.progress < revision:
        given += await watch.next()
    return given


async def whole_log(store: AnyStore) -> list[Row]:
    return rows(await all_events(store), value)


class Client:
    """Writes, reads and lists at random, and notes what it saw."""

    def __init__(
        self, name: str, store: AnyStore, recorder: Recorder, *, places: int = 12, seed: int = 0
    ) -> None:
        self.name = name
        self._store = store
        self._recorder = recorder
        self._random = random.Random(f"{name} {seed}")
        self._places = places
        self._number = itertools.count()

    async def run(self, steps: int) -> None:
        for _ in range(steps):
            await self.step()

    async def step(self) -> None:
        place = pod(f"p{self._random.randrange(self._places)}", f"ns{self._random.randrange(2)}")
        chance = self._random.random()
        if chance < 0.15:
            self.list_()
        elif chance < 0.3:
            self.get(place)
        else:
            with contextlib.suppress(Changed):
                await self.write(place)

    def get(self, place: Place) -> Record | None:
        called = self._recorder.now()
        found = self._store.get(place)
        self._recorder.read(self.name, place, called, state(found) if found else None)
        return found

    def list_(self) -> None:
        called = self._recorder.now()
        namespace = self._random.choice(["", "ns0", "ns1"])
        found = {record.place: state(record) for record in self._store.listed(PODS, namespace)}
        self._recorder.listed(
            self.name, (PODS, namespace), called, revision=self._store.revision, found=found
        )

    async def write(self, place: Place) -> Record:
        """Create what is not there; else update it, or sometimes delete it."""
        found = self._store.get(place)
        sent = f"{self.name}-{next(self._number)}"
        write = self._recorder.write(
            self.name,
            "ADDED" if not found else "DELETED" if self._random.random() < 0.3 else "MODIFIED",
            place,
            sent,
            found.revision if found else 0,
        )
        await asyncio.sleep(0)  # others may be quicker
        try:
            if write.type == "ADDED":
                record = await self._store.create(place, encode(sent))
            elif write.type == "MODIFIED":
                record = await self._store.update(place, encode(sent), write.seen)
            else:
                record = await self._store.delete(place, encode(sent), write.seen)
        except Changed:
            self._recorder.refused(write)
            raise
        assert record.data == f"{sent}@{record.revision}".encode()
        self._recorder.done(write, record.revision)
        return record


async def watched(store: AnyStore, watching: Watching) -> None:
    """Watch until the store is closed, and note all that is given, with bookmarks between."""
    watch = store.watch(watching.resource, watching.namespace, watching.after)
    try:
        with contextlib.suppress(Closed):
            while True:
                watching.given += rows(await watch.next(), value)
                watching.given.append(watch.progress)
    finally:
        watching.given.append(watch.progress)
        watch.close()
