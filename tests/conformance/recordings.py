"""What a real kube-apiserver answered to every script, kept so that ours can be held against it without one.

    python -m tests.conformance.recordings            writes it anew, from the real server
    python -m tests.conformance.recordings rules …    of these scripts alone, the rest stays
    python -m tests.conformance.recordings --bodies   the protobuf that one of the scripts sends

Also what may differ and why (``differences.toml``).  Used by ``test_server_differences.py``.
"""

from __future__ import annotations

import json
import lzma
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from setpoint.testing.kube import ControlPlane
from tests.conformance.asking import Answer, Asker, Difference, Script
from tests.conformance.planes import NewPlane
from tests.conformance.scripts import SCRIPTS, protobuf

FOLDER: Final = Path(__file__).parent
ANSWERS: Final = FOLDER / "recorded" / "answers.json.xz"


@cache
def answers() -> dict[str, list[tuple[str, Answer]]]:
    """By script, the answers with the names of their steps."""
    found: dict[str, list[Any]] = json.loads(lzma.decompress(ANSWERS.read_bytes()))
    return {script: [(step, answer) for step, answer in said] for script, said in found.items()}


@dataclass(frozen=True)
class Listed:
    """A difference that is known, and why it is there.  ``*`` stands for anything."""

    script: str
    step: str
    path: str
    reason: str

    def covers(self, found: Difference) -> bool:
        return (
            fnmatchcase(found.script, self.script)
            and fnmatchcase(found.step[4:], self.step)
            and fnmatchcase(found.path.replace("[", "("), self.path.replace("[", "("))
        )


@cache
def listed() -> tuple[Listed, ...]:
    rows = tomllib.loads((FOLDER / "differences.toml").read_text()).get("difference", [])
    return tuple(
        Listed(row.get("script", "*"), row.get("step", "*"), row.get("path", "*"), row["reason"])
        for row in rows
    )


@contextmanager
def asker_for(script: Script, shared: Asker, new_plane: NewPlane) -> Iterator[Asker]:
    """A server of its own for a script that wants to be alone."""
    if not script.is_alone:
        yield shared
        return
    with new_plane() as plane:
        asker = Asker(plane)
        try:
            yield asker
        finally:
            asker.close()


def record(names: Sequence[str] = ()) -> None:
    with ControlPlane() as plane:
        shared = Asker(plane)
        said = {}
        for script in SCRIPTS:
            if names and script.name not in names:
                continue
            with asker_for(script, shared, ControlPlane) as asker:
                said[script.name] = asker.run(script)
        shared.close()
    answers.cache_clear()  # others may have been recorded meanwhile
    kept = answers() if names else {}
    text = json.dumps(kept | said, ensure_ascii=False, separators=(",", ":"))
    ANSWERS.write_bytes(lzma.compress(text.encode(), preset=9))


def record_bodies() -> None:
    """What the real server writes in protobuf, from which a script of its own is made."""
    with ControlPlane() as plane:
        asker = Asker(plane)
        found = protobuf.gathered(asker.ask)
        asker.close()
    protobuf.BODIES.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9))


if __name__ == "__main__":
    record_bodies() if sys.argv[1:] == ["--bodies"] else record(sys.argv[1:])
