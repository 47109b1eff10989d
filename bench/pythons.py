"""Decides which Python the benches run with: the fastest that is here.

Go's and Rust's programs are built with all that their compilers can do.  A Python may not be: one that was
compiled without the guidance of a profile (what pyenv makes, unless told otherwise) takes well over half as
long again for the same program as that of a distribution or of the official images.  So everything in Python,
ours, the others' and the harness, runs with the one that is fastest at a small program, of those on PATH that
are new enough; the report names them all.  ``--python`` of ``python -m bench`` says which instead.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
_OLDEST: Final = (3, 11)
_NEWEST: Final = (3, 14)
_NAMES: Final = ("python3", *(f"python3.{minor}" for minor in range(_OLDEST[1], _NEWEST[1] + 1)))
_WORTH_IT: Final = 1.1  # times as fast, before another one is set up
_ROUNDS: Final = 5
_LONGEST: Final = 30.0
_ASK: Final = """
import ensurepip, json, ssl, sys
executable = getattr(sys, "_base_executable", sys.executable)
print(json.dumps([executable, sys.version.split()[0], sys.version_info[:2], sys.implementation.name]))
"""


class Python(NamedTuple):
    """An interpreter, and the seconds that it takes for the small program."""

    executable: str
    version: str
    seconds: float


def program(count: int = 200_000) -> int:
    """What programs mostly do: objects, calls, dictionaries, tuples."""

    class Thing:
        __slots__ = ("number", "rest")

        def __init__(self, number: int, rest: int) -> None:
            self.number = number
            self.rest = rest

        def whole(self) -> int:
            return self.number + self.rest

    known: dict[int, tuple[Thing, int]] = {}
    total = 0
    for number in range(count):
        thing = Thing(number, 1)
        total += thing.whole()
        known[number & 1023] = (thing, total)
    return total


def here() -> list[Python]:
    """Those that can run the benches, the fastest first; our own is one of them."""
    found: dict[str, str] = {}
    places = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each]
    for path in (Path(sys.executable), *(place / name for place in places for name in _NAMES)):
        if os.access(path, os.X_OK) and (told := _told(str(path))) is not None:
            executable, version = told
            found.setdefault(os.path.realpath(executable), version)
    measured = [
        Python(executable, version, seconds)
        for executable, version in found.items()
        if (seconds := _seconds(executable)) is not None
    ]
    return sorted(measured, key=lambda each: each.seconds)


@cache
def own() -> str:
    """What the environment of this process was made from."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def choose(pythons: list[Python], mine: str) -> Python | None:
    """The one to go on with instead of ours; None where that is not worth it.  Fastest first."""
    ours = next((each for each in pythons if each.executable == mine), None)
    if ours is None or ours.seconds < pythons[0].seconds * _WORTH_IT:
        return None
    return pythons[0]


def hand_over(asked: str | None, arguments: list[str]) -> None:
    """Go on with the Python that was asked for, or the fastest; back here where that is this one."""
    from bench.measure import say  # this file is also run by itself

    if asked is not None:
        told = _told(asked)
        if told is None:
            sys.exit(f"--python {asked}: that is no Python 3.11 or newer with ensurepip and ssl")
        other = os.path.realpath(told[0])
        if other == own():
            return
    else:
        better = choose(here(), own())
        if better is None:
            return
        other = better.executable
        say(f"Python {better.version} is the fastest here, so everything in Python runs with it")
    name = f".venv/{other.strip('/').replace('/', '-')}"  # inside of ours, with which it goes
    python = str(ROOT / name / "bin" / "python")
    if _make(other, name):
        os.execv(python, [python, "-m", "bench", "--python", python, *arguments])
    if asked is not None:
        sys.exit(f"--python {asked}: no environment could be made with it")
    say("no environment could be made with it, so everything runs with this one")


def _make(python: str, name: str) -> bool:
    """Whether there is an environment of this name now."""
    command = ["make", "--no-print-directory", "setup", f"PYTHON={python}", f"VENV={name}"]
    try:
        return subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    except OSError:
        return False


def measured() -> list[tuple[str, float]]:
    """For the report: ours first, then what else is here; the version of each, and its seconds."""
    mine = (platform.python_version(), _seconds(sys.executable) or 0.0)
    others = [(each.version, each.seconds) for each in here() if each.executable != own()]
    return [(version, round(seconds, 4)) for version, seconds in (mine, *others)]


def described(pythons: Sequence[tuple[str, float]]) -> str:
    """How the others compare with the one that was used, which is the first."""
    (used, least), *others = pythons
    slower = ", ".join(
        f"{version} takes {seconds / least:.1f} times as long" for version, seconds in others if least
    )
    return f"Python {used}" + (f" (of the others here, {slower})" if slower else "")


@cache
def _told(path: str) -> tuple[str, str] | None:
    """Its own path and version, where it is new enough and whole."""
    try:
        ran = subprocess.run([path, "-c", _ASK], capture_output=True, check=False, timeout=_LONGEST)
    except (OSError, subprocess.TimeoutExpired):
        return None
    try:
        executable, version, new, implementation = json.loads(ran.stdout)
    except ValueError:  # it failed, or is something else
        return None
    is_fit = _OLDEST <= tuple(new) <= _NEWEST and implementation == "cpython"  # which the locks are for
    return (executable, version) if is_fit else None


@cache
def _seconds(executable: str) -> float | None:
    """None where it cannot be measured."""
    command = [executable, str(Path(__file__))]
    try:
        ran = subprocess.run(command, capture_output=True, check=False, timeout=_LONGEST)
        return float(ran.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None


def _measure() -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.process_time()
        program()
        best = min(best, time.process_time() - began)
    return best


if __name__ == "__main__":
    print(_measure())
