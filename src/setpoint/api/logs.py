"""Which part of a container's log is asked for, as a value; and which of its lines that is.

Shared by whoever is asked for logs (``server/registry/logs.py``) and whoever has them
(``builtin/node_logs.py``): these two never meet but through this.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class LogPart:
    """Which part of a log; all of it, unless something is said."""

    follow: bool = False  # go on with what is written from now on
    previous: bool = False  # of the container as it was before it was last restarted
    timestamps: bool = False
    since: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


class LogLine(NamedTuple):
    """What was written, and when."""

    time: datetime
    text: str

    def encode(self, *, timestamps: bool = False) -> bytes:
        """As a kubelet sends it."""
        if not timestamps:
            return f"{self.text}\n".encode()
        moment = self.time.strftime("%Y-%m-%dT%H:%M:%S")
        return f"{moment}.{self.time.microsecond:06}000Z {self.text}\n".encode()


def chosen_lines(lines: Iterable[LogLine], part: LogPart) -> list[LogLine]:
    """The lines that there are so far, as far as they are asked for."""
    found = [line for line in lines if part.since is None or line.time >= part.since]
    return found if part.tail_lines is None else found[max(0, len(found) - part.tail_lines) :]
