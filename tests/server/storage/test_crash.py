"""kill -9 under load: what was acknowledged is there, and what anyone saw is there, as it was.

P1, P3, P4, P7, P15, P18 and P20.  Half of the cycles end at a failpoint, all of them in turn; the others at a
moment that chance gives.  ``SETPOINT_CRASHES`` says how many; CI and ``make soak`` ask for more.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setpoint.server.storage.failpoints import POINTS, Failpoints
from setpoint.server.storage.protocol import Place
from setpoint.server.storage.sqlite import SqliteStore
from setpoint.testing.history_check import Recorder, Row, State, check, replayed, rows
from tests.server.storage.stores import PODS, all_events, value

CYCLES = int(os.environ.get("SETPOINT_CRASHES", "25"))
POINTS_HERE = [point for point in POINTS if not point.startswith(("fresh.", "settle."))]
ROOT = Path(__file__).parents[3]


def test_the_points_that_a_life_reaches_and_those_of_repair_are_all_there_are() -> None:
    others = set(POINTS) - set(POINTS_HERE)
    repair = {"fresh.written", "fresh.aside", "fresh.placed"}  # test_recovery.py kills at those
    assert others == repair | {"settle.truncated"}, "and test_sqlite.py fails at that one"


def test_p01_p03_p04_p15_p18_p20_a_killed_store_has_all_that_was_acknowledged_or_seen(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.server.storage.crashing"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as maker:
        try:
            run = Run(maker, tmp_path / "data")
            for cycle in range(CYCLES):
                run.cycle(cycle)
        finally:
            maker.kill()
    assert run.acknowledged > CYCLES * 5, "a run that acknowledged so little shows nothing"


class Run:
    """One store through many lives, and all that is known of it."""

    def __init__(self, maker: subprocess.Popen[str], directory: Path) -> None:
        self._maker = maker
        self._directory = directory
        self._state: dict[Place, State] = {}
        self._known = 1  # the revision that the state is at
        self.acknowledged = 0

    def cycle(self, number: int) -> None:
        chance = random.Random(number)
        point = POINTS_HERE[number // 2 % len(POINTS_HERE)] if number % 2 else ""
        times = chance.randrange(1, 40 if point.startswith("write") else 3)
        order = {
            "cycle": number,
            "directory": str(self._directory),
            "known": self._known,
            "failpoints": f"{point}=kill@{times}" if point else "",
        }
        recorder = Recorder(itertools.count().__next__)
        code = self._live(order, recorder, acks=None if point else chance.randrange(60, 200))
        assert code == -signal.SIGKILL, f"cycle {number} ({point or 'chance'}) was to be killed"
        try:
            self._look(recorder)
        except AssertionError as error:
            raise AssertionError(
                f"after cycle {number}, killed at {point or 'chance'} {times}: {error}"
            ) from None

    def _live(self, order: dict[str, Any], recorder: Recorder, acks: int | None) -> int:
        """Let a child live until it is killed, at its failpoint or after so many acknowledgements."""
        assert self._maker.stdin
        self._maker.stdin.write(json.dumps(order) + "\n")
        asked, watches, pid, done = {}, {}, 0, 0
        for words in self._lines():
            match words:
                case ["pid", int(pid)]:
                    pass
                case ["opened", int(revision)]:
                    assert revision == self._known, "a start changes nothing"
                case ["asked", sent, type_, place, seen]:
                    asked[sent] = recorder.write("child", type_, Place(*place), sent, seen)
                case ["done", sent, revision]:
                    recorder.done(asked[sent], revision)
                    done += 1
                case ["refused", sent]:
                    recorder.refused(asked[sent])
                case ["watching", name, after, namespace]:
                    watches[name] = recorder.watch(name, PODS, namespace, after)
                case ["event", name, revision, type_, place, sent, previous]:
                    watches[name].given.append(Row(revision, type_, Place(*place), sent, previous))
                case ["bookmark", name, revision]:
                    watches[name].given.append(revision)
                case ["ended", int(code)]:
                    self.acknowledged += done
                    return code
            if acks is not None and done >= acks and pid:
                os.kill(pid, signal.SIGKILL)
                acks = None
        raise AssertionError("the maker of processes ended")

    def _lines(self) -> Iterator[list[Any]]:
        assert self._maker.stdout
        for line in self._maker.stdout:
            yield json.loads(line)

    def _look(self, recorder: Recorder) -> None:
        """Open what was left, and hold it against what the child said."""
        revision, compacted, log, found = asyncio.run(_read(self._directory, self._known))
        assert compacted <= self._known, "only what we know was to be compacted"
        seen = [write.revision for write in recorder.writes]
        seen += [row.revision for watch in recorder.watches for row in watch.given if isinstance(row, Row)]
        assert max(seen, default=0) <= revision, "what was seen is there"
        assert [row.revision for row in log] == list(range(self._known + 1, revision + 1)), (
            "no gap, no repeat"
        )
        wrong = check(recorder, log, before=self._state, after=self._known)
        assert not wrong, "\n".join(wrong[:10])
        self._state = replayed(log, self._state)
        assert found == self._state, "what is held is what the log says"
        self._known = revision


async def _read(directory: Path, known: int) -> tuple[int, int, list[Row], dict[Place, State]]:
    store = await SqliteStore.open(directory, failpoints=Failpoints({}))
    try:
        assert not store.damaged
        log = rows(await all_events(store, after=known), _sent)
        found = {record.place: State(record.revision, _sent(record.data)) for record in store.listed(PODS)}
        return store.revision, store.compacted, log, found
    finally:
        await store.close()


def _sent(data: bytes) -> str:
    return value(data).partition(" ")[0]
