"""``opened`` opens either form of a store: what it stands in is run on both."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from setpoint.server.storage.retention import Keep
from tests.server.storage.stores import AnyStore, Open, opened_memory, opened_sqlite


@pytest.fixture(params=["memory", "sqlite", "sqlite that holds little"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    def open_(keep: Keep | None = None) -> AbstractAsyncContextManager[AnyStore]:
        if request.param == "memory":
            return opened_memory(keep)
        if request.param == "sqlite":
            return opened_sqlite(tmp_path / "data", keep)
        return opened_sqlite(tmp_path / "data", keep, held=Keep(seconds=0, events=3, bytes=1_000_000))

    return open_
