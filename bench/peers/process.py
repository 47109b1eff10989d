"""Runs one contestant, and measures it from outside.

A contestant is a program that is given its work as one JSON argument and says, a JSON line each, where it is:
``start`` when it is loaded (then it waits for a line), ``synced`` where there is something to wait for,
``done``, ``settled`` when it gave back the memory it could, and ``checked`` with what it holds.  At each line
its CPU time, its memory and the clock are read, from the kernel, by us: nobody measures itself.

The clock and the CPU begin at ``start``, so that loading a program is not counted with its work; how long
that takes has a bench of its own.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_LONGEST: Final = 240.0  # seconds that one line may take
_QUIET: Final = 1.5  # seconds in which nothing more should come after a reconcile is done
_GRACE: Final = 10.0


class Failed(Exception):
    """A contestant ended, hung, or did not do the whole work."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What the kernel said when a line came."""

    wall: float
    cpu: float
    resident: int


@dataclass(slots=True)
class Run:
    """One contestant's course."""

    spawned: float
    marks: dict[str, Mark] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    peak: int = 0

    def wall(self, begin: str, end: str) -> float:
        return self.marks[end].wall - self.marks[begin].wall

    def cpu(self, begin: str, end: str) -> float:
        return self.marks[end].cpu - self.marks[begin].cpu


def compete(
    name: str,
    command: list[str],
    asked: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    when_synced: Callable[[], object] | None = None,
) -> Run:
    """Run it to its end; it must say ``done`` and ``settled``, and ``checked`` where it holds something."""
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [*command, json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **(environment or {})},
            bufsize=0,  # what is read here is what select knows of
        ) as process,
    ):
        run = Run(time.perf_counter())
        try:
            _follow(run, process, is_quiet_awaited=asked["work"] == "reconcile", when_synced=when_synced)
        except Failed as failure:
            log.seek(0)
            said = log.read().decode(errors="replace")[-2_000:]
            raise Failed(f"{name}: {failure}; asked for {dict(asked)}\n{said}") from None
        finally:
            process.kill()
    return run


def _follow(
    run: Run,
    process: subprocess.Popen[bytes],
    *,
    is_quiet_awaited: bool,
    when_synced: Callable[[], object] | None,
) -> None:
    assert process.stdin is not None
    is_over = False
    while not is_over:
        told = json.loads(_line(process))
        at = told.pop("at")
        run.marks[at] = _mark(process.pid)
        run.told[at] = told
        if at == "start":
            _go(process)
        elif at == "synced" and when_synced is not None:
            when_synced()
        elif at == "done" and is_quiet_awaited:
            time.sleep(_QUIET)
            run.marks["quiet"] = _mark(process.pid)
            _go(process)
        elif at == "settled":
            run.peak = _status(process.pid, "VmHWM")
        # who has nothing to be checked for is asked by others: the cluster, or its own count
        is_over = at == "checked" or (at == "settled" and not {"sync", "watch"} & {_work(process)})
    process.stdin.close()


def _work(process: subprocess.Popen[bytes]) -> str:
    assert isinstance(process.args, list)
    return str(json.loads(process.args[-1])["work"])


def _go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[bytes]) -> bytes:
    """The next line, which is written whole: a pipe that is readable has all of it."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        if not ready.select(_LONGEST):
            raise Failed(f"nothing came for {_LONGEST:.0f} seconds")
    line = process.stdout.readline()
    if not line:
        raise Failed(f"it ended with {process.wait(_GRACE)}")
    return line


def _mark(pid: int) -> Mark:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(ticks[11]) + int(ticks[12])) / _TICKS
    return Mark(time.perf_counter(), cpu, _status(pid, "VmRSS"))


def _status(pid: int, name: str) -> int:
    """Bytes, from the kernel's page about the process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise Failed("it ended just now")
