"""The promises of ``proof/store.py``: a store goes on from a snapshot, and every read of it knows that."""

from __future__ import annotations

import asyncio

from setpoint.server.storage.protocol import Place
from setpoint.testing.proof.store import Snapshot, WorldStore


def test_pages_of_a_list_have_what_was_there_before_and_what_was_written_since() -> None:
    async def names() -> list[list[str]]:
        first = WorldStore(Snapshot())
        await first.create(Place("widgets", "default", "a"), lambda _revision: b"{}")
        store = WorldStore(first.snapshot())
        await store.create(Place("widgets", "default", "b"), lambda _revision: b"{}")
        return [
            [record.place.name for record in await store.listed_from("widgets", "", revision, None)]
            for revision in (store.revision - 1, store.revision)
        ]

    assert asyncio.run(names()) == [["a"], ["a", "b"]]
