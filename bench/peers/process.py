"""Runs one contestant, and measures it from outside.

A contestant is a program that is given its work as one JSON argument and says, a JSON line each, where it is:
``start`` when it is loaded, ``synced`` where there is something to wait for, ``done``, ``resynced`` where
that was asked for, ``settled`` when it gave back the memory it could, and ``checked`` when it has read all
that it holds.  At each line its CPU time, its memory and the clock are read, from the kernel, by us: nobody
measures itself.  After each but ``synced`` it waits for a line of ours: what it does next is never in what
was read.

The clock and the CPU begin at ``start``, so that loading a program is not counted with its work; how long
that takes has a bench of its own.  What a reconcile causes goes on after ``done``: it is quiet when its CPU
time stands still.
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

_LONGEST: Final = 240.0  # seconds that one line may take
_GRACE: Final = 10.0
_QUIET: Final = 1.5  # seconds in which a program that is quiet...
_STILL: Final = 0.015  # ...needs less CPU time than this: some have clocks of their own
_QUIET_AT_MOST: Final = 30.0  # who is never quiet pays for so long
_QUIET_AFTER: Final = {"done": "quiet", "resynced": "resynced, quiet"}
_PROXIES: Final = {"http_proxy", "https_proxy", "all_proxy"}


class Failed(Exception):
    """A contestant ended, hung, or did not do the whole work."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What the kernel said when a line came."""

    wall: float
    cpu: float
    resident: int  # bytes, with the pages of the program itself
    anonymous: int  # without: what it made


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

    def grown(self, begin: str, end: str) -> int:
        """Bytes that it holds more; code that is read for the first time is not among them."""
        return self.marks[end].anonymous - self.marks[begin].anonymous


def compete(
    name: str,
    command: list[str],
    asked: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    when: Mapping[str, Callable[[], object]] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Run:
    """Run it to its end; it must say ``done`` and ``settled``, and ``checked`` where it holds something.

    ``when`` has what is done at a mark; ``meanwhile`` is called while it is waited for, and raises what is
    wrong elsewhere.
    """
    with (
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryDirectory() as folder,  # clients that put keys into files leave them there
        subprocess.Popen(
            [*command, json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**_environment(), "TMPDIR": folder, **(environment or {})},
            bufsize=0,  # what is read here is what select knows of
        ) as process,
    ):
        run = Run(time.perf_counter())
        try:
            _follow(run, process, asked["work"], when or {}, meanwhile)
        except Failed as failure:
            log.seek(0)
            said = log.read().decode(errors="replace")[-2_000:]
            raise Failed(f"{name}: {failure}; asked for {dict(asked)}\n{said}") from None
        finally:
            process.kill()
    return run


def _environment() -> dict[str, str]:
    """Ours, but for proxies: the servers are on this machine."""
    return {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}


def _follow(
    run: Run,
    process: subprocess.Popen[bytes],
    work: str,
    when: Mapping[str, Callable[[], object]],
    meanwhile: Callable[[], object],
) -> None:
    # who has nothing to be checked for is asked by others: the cluster, or its own count
    last = "checked" if work in {"sync", "watch"} else "settled"
    at = ""

    def mark(name: str, read: Mark) -> None:
        run.marks[name] = read
        when.get(name, lambda: None)()

    while at != last:
        told = json.loads(line(process, meanwhile=meanwhile))
        at = told.pop("at")
        run.told[at] = told
        mark(at, _mark(process.pid))
        if at == "settled":
            run.peak = _status(process.pid)["VmHWM"]
        if work == "reconcile" and at in _QUIET_AFTER:
            mark(_QUIET_AFTER[at], _quiet(process.pid))
        if at != "synced":
            _go(process)


def _go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(b"\n")
    except BrokenPipeError:
        raise Failed(f"it ended with {process.wait(_GRACE)}") from None


def line(
    process: subprocess.Popen[bytes],
    *,
    longest: float = _LONGEST,
    meanwhile: Callable[[], object] = lambda: None,
) -> bytes:
    """The next line, which is written whole: a pipe that is readable has all of it."""
    assert process.stdout is not None
    deadline = time.monotonic() + longest
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while not ready.select(1.0):
            meanwhile()
            if time.monotonic() > deadline:
                raise Failed(f"nothing came for {longest:.0f} seconds")
    said = process.stdout.readline()
    if not said:
        raise Failed(f"it ended with {process.wait(_GRACE)}")
    return said


def _quiet(pid: int) -> Mark:
    """When its CPU time stands still, or it was waited for long enough."""
    deadline = time.perf_counter() + _QUIET_AT_MOST
    before = _mark(pid)
    while True:
        time.sleep(_QUIET)
        now = _mark(pid)
        if now.cpu - before.cpu < _STILL or now.wall > deadline:
            return now
        before = now


def _mark(pid: int) -> Mark:
    try:
        cpu = time.clock_gettime((~pid << 3) | 2)  # its CPU clock, of all threads, in nanoseconds
    except OSError:
        raise Failed("it ended just now") from None
    wall = time.perf_counter()
    status = _status(pid)
    return Mark(wall, cpu, status["VmRSS"], status["RssAnon"])


def _status(pid: int) -> dict[str, int]:
    """Bytes, from the kernel's page about the process."""
    found = {}
    for entry in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = entry.partition(":")
        if value.endswith(" kB"):
            found[name] = int(value.split()[0]) * 1024
    if "VmRSS" not in found:
        raise Failed("it ended just now")
    return found
