"""The parts of the soak at a small size, and its checker: it finds a write that was lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.soak.run import PARTS
from tests.soak.world import Violation, World, Writers, is_alive, until, world

SMALL = {"keys": 30, "watches": 20, "lists": 300, "kills": 2, "stops": 1, "slow": 4, "big": 2}


@pytest.mark.slow
@pytest.mark.deadline(120)
@pytest.mark.parametrize(("part", "size"), SMALL.items())
async def test_a_part_of_the_soak_holds_at_a_small_size(part: str, size: int, tmp_path: Path) -> None:
    await PARTS[part](tmp_path, size)


def test_every_part_of_the_soak_is_run_at_a_small_size_or_is_a_test_already() -> None:
    assert PARTS.keys() - SMALL.keys() == {"crashes", "etcd"}


@pytest.mark.slow
@pytest.mark.deadline(120)
async def test_the_checker_finds_an_acknowledged_write_that_is_lost(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        writers = Writers(made, 2, 4)
        await _write(writers, 20)
        await writers.check(30)
        await _end(made)
        shutil.copytree(tmp_path / "data", tmp_path / "old")
        await made.start_server()
        await _write(writers, 20)
        await writers.check(30)
        await _end(made)
        shutil.rmtree(tmp_path / "data")
        shutil.copytree(tmp_path / "old", tmp_path / "data")
        await made.start_server()
        with pytest.raises(Violation, match="was written"):
            await writers.check(30)


@pytest.mark.slow
@pytest.mark.deadline(120)
async def test_the_checker_finds_an_operator_that_does_not_converge(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        writers = Writers(made, 2, 4)
        os.kill(made.operator, signal.SIGSTOP)
        await _write(writers, 20)
        with pytest.raises(Violation, match="Lamps are late"):
            await writers.check(1)


async def _write(writers: Writers, count: int) -> None:
    wanted = writers.acknowledged + count

    async def are_enough() -> bool:
        return writers.acknowledged >= wanted

    async with asyncio.timeout(60), writers.writing():
        await until("enough is written", are_enough, 60, every=0.01)


async def _end(made: World) -> None:
    pid = made.server
    os.kill(pid, signal.SIGKILL)

    async def is_gone() -> bool:
        return not is_alive(pid)

    await until("the server is gone", is_gone, 10, every=0.01)
