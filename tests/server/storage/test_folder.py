"""Who may have a data directory, and who may read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from setpoint.server.storage.folder import CannotOpen, Folder
from tests.server.storage.files import left
from tests.server.storage.stores import encode, opened_sqlite, pod


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_only_the_owner_may_read_whatever_the_umask_says(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        async with opened_sqlite(tmp_path / "a" / "data") as store:
            await store.create(pod(), encode())
            assert mode(tmp_path / "a" / "data") == 0o700
            files = {path.name: mode(path) for path in (tmp_path / "a" / "data").iterdir()}
    finally:
        os.umask(old)
    assert files == {"lock": 0o600, "store.db": 0o600, "store.db-wal": 0o600}


def test_a_directory_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data" / "store.db").touch(mode=0o644)
    Folder.take(tmp_path / "data").release()
    assert mode(tmp_path / "data") == 0o700
    assert mode(tmp_path / "data" / "store.db") == 0o600


async def test_a_second_server_is_refused_and_told_who_was_first(tmp_path: Path) -> None:
    async with opened_sqlite(tmp_path / "data"):
        with pytest.raises(CannotOpen, match=rf"another server has it open, process {os.getpid()} \(stop"):
            async with opened_sqlite(tmp_path / "data"):
                pass
    async with opened_sqlite(tmp_path / "data"):
        pass


def test_the_lock_goes_with_the_process(tmp_path: Path) -> None:
    take = (
        "import os, sys; from setpoint.server.storage.folder import Folder;"
        "Folder.take(sys.argv[1]); print('taken', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", take, str(tmp_path / "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == b"taken\n"
        with pytest.raises(CannotOpen, match=f"process {other.pid}"):
            left(tmp_path / "data")
        other.kill()
        other.wait()
    assert left(tmp_path / "data").objects == {}


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "lock"])
def test_a_link_in_the_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "theirs").write_text("not to be touched")
    (tmp_path / "data" / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(CannotOpen):
        left(tmp_path / "data")
    assert (tmp_path / "theirs").read_text() == "not to be touched"


def test_a_link_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "theirs")
    with pytest.raises(CannotOpen, match="it is a link"):
        left(tmp_path / "data")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    with pytest.raises(CannotOpen, match="it is a link"):
        left(tmp_path / "nowhere")


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(CannotOpen, match="not a directory"):
        left(tmp_path / "data")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    os.chown(tmp_path / "data", 12345, 12345)
    with pytest.raises(CannotOpen, match="another user"):
        left(tmp_path / "data")
