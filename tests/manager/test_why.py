"""The journal and the socket of ``manager/why.py``."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from setpoint.api.names import Key
from setpoint.controller.mapping import Reason
from setpoint.controller.worker import Looked
from setpoint.errors import ConfigError
from setpoint.manager.why import Journal, WhyServer, ask, folder, make_folder, sockets

KEY = Key("shop", "web")


@pytest.fixture
def where() -> Iterator[Path]:
    """A folder for sockets, whose paths have 107 bytes at most: pytest's own may be longer."""
    with tempfile.TemporaryDirectory(prefix="why-") as short:
        yield Path(short) / "sockets"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def looked(number: int = 0) -> Looked:
    return Looked(str(number), (Reason("requeue"),), float(number), 0.1, "success")


def test_the_journal_keeps_the_last_looks_of_a_key_the_newest_last() -> None:
    journal = Journal(looks=3)
    for number in range(5):
        journal.record("webapp", KEY, looked(number))
    assert [each.id for each in journal.of("webapp", KEY)] == ["2", "3", "4"]
    assert journal.of("another", KEY) == ()


def test_the_journal_forgets_the_key_that_was_not_looked_at_for_longest() -> None:
    journal = Journal(keys=2)
    for name in ("a", "b", "a", "c"):
        journal.record("webapp", Key("shop", name), looked())
    assert journal.of("webapp", Key("shop", "b")) == ()
    assert len(journal.of("webapp", Key("shop", "a"))) == 2
    assert len(journal.of("webapp", Key("shop", "c"))) == 1


def test_sockets_are_in_a_folder_of_the_users_own() -> None:
    assert folder({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/setpoint")
    assert folder({}).name == f"setpoint-{os.getuid()}"


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    make_folder(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for wrong in ("open", "link"):
        with pytest.raises(ConfigError, match="this user's alone"):
            make_folder(tmp_path / wrong)


def echo(kind: str, key: Key) -> dict[str, Any]:
    return {"asked": f"{kind} {key}"}


@asynccontextmanager
async def serving(where: Path, operator: str = "shop-operator") -> AsyncIterator[WhyServer]:
    server = WhyServer(operator, echo, where=where)
    task = asyncio.create_task(server.run())
    try:
        await server.wait_ready()
        yield server
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_question_is_answered_over_a_socket_that_is_the_users_alone(where: Path) -> None:
    async with serving(where) as server:
        assert server.path is not None
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
        assert sockets(where=where) == [server.path]
        told = await ask(server.path, "webapp", KEY)
        assert told == {"operator": "shop-operator", "pid": os.getpid(), "asked": "webapp shop/web"}
        path = server.path
    assert not path.exists()
    assert sockets(where=where) == []


async def test_operators_are_told_apart_by_name_and_two_of_a_name_by_number(where: Path) -> None:
    async with serving(where) as one, serving(where) as two, serving(where, "bank-operator") as other:
        assert len({one.path, two.path, other.path}) == 3
        assert sockets("shop-operator", where=where) == sorted(p for p in (one.path, two.path) if p)
        assert sockets("bank-operator", where=where) == [other.path]


async def test_a_socket_has_its_name_only_when_it_listens(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between bind and listen nobody is answered there, and whoever looks would take it for dead."""
    seen: list[list[Path]] = []
    listen = socket.socket.listen

    def look_first(self: socket.socket, *backlog: int) -> None:
        seen.append(sockets(where=where))
        seen.append(list(where.glob("*.sock")))
        listen(self, *backlog)

    monkeypatch.setattr(socket.socket, "listen", look_first)
    async with serving(where) as server:
        assert seen[:2] == [[], []]
        assert server.path is not None
        assert sockets(where=where) == [server.path]
        assert names(where) == [server.path.name], "nothing else is left there"


async def test_one_that_has_too_much_to_do_is_not_taken_for_dead(where: Path) -> None:
    make_folder(where)
    busy = where / "shop-operator-1.sock"
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(busy))
        listening.listen(0)
        with suppress(BlockingIOError):
            while True:
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(str(busy))
        assert sockets(where=where) == [busy]
    assert sockets(where=where) == []


async def test_what_a_killed_operator_left_behind_is_cleared_away(where: Path) -> None:
    make_folder(where)
    left = where / f"shop-operator-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert left.exists()
    async with serving(where) as server:
        assert server.path == left, "and its name is free again"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert sockets(where=where) == []
    assert not left.exists()
    assert await ask(left, "webapp", KEY) is None


async def test_nonsense_is_answered_or_hung_up_on_and_harms_nobody(where: Path) -> None:
    async with serving(where) as server:
        assert server.path is not None
        for nonsense in (b"not json\n", b"x" * 100_000, b'{"kind": 3}\n', b"[1]\n"):
            reader, writer = await asyncio.open_unix_connection(server.path)
            with suppress(ConnectionError):
                writer.write(nonsense)
                await writer.drain()
                writer.write_eof()
                answer = await reader.read()
                assert not answer or "error" in json.loads(answer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        assert await ask(server.path, "webapp", KEY)


async def test_where_no_socket_can_be_made_the_operator_runs_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    server = WhyServer("shop-operator", echo, where=tmp_path / "file")
    await server.run()
    assert "setpoint why" in caplog.text
    assert server.path is None


async def test_a_name_too_long_for_a_socket_is_cut(where: Path) -> None:
    async with serving(where, "o" * 200) as server:
        assert server.path is not None
        assert await ask(server.path, "webapp", KEY)
