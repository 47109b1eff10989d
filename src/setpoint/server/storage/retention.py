"""Decides up to which revision history may be forgotten.

Promises:

1. What is younger than ``Keep.seconds`` is kept, and so are the last ``Keep.events`` writes.
2. Except that no more than about ``Keep.bytes`` are kept, however young: memory and disk have an end.
3. It holds a few marks, not an entry for each write: what is kept may be up to a 64th more than was asked.

Time comes in as an argument.  Asked by ``history.py`` for what is held in memory and by ``sqlite.py`` for
what is held on disk.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

_MARKS: Final = 64  # how finely what is kept is divided


class Keep(NamedTuple):
    """How much history there must be, and the most there may be."""

    seconds: float = 300.0  # as long as Kubernetes keeps what etcd has
    events: int = 10_000
    bytes: int = 256 * 1024 * 1024


class _Mark(NamedTuple):
    """How things stood after the write of ``revision``."""

    at: float
    revision: int
    written: int  # bytes, since the beginning


class Retention:
    """The marks of what was written when."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._marks: deque[_Mark] = deque()
        self._written = 0

    def note(self, now: float, revision: int, size: int) -> None:
        """``size`` bytes were written, up to ``revision``."""
        self._written += size
        if self._marks:
            last = self._marks[-1]
            if (
                revision - last.revision < self._keep.events / _MARKS
                and now - last.at < self._keep.seconds / _MARKS
                and self._written - last.written < self._keep.bytes / _MARKS
            ):
                return
        self._marks.append(_Mark(now, revision, self._written))

    def due(self, now: float, revision: int) -> int:
        """History up to and including this may go; 0 if none may.  Said once: the caller acts on it."""
        target = 0
        old, few = now - self._keep.seconds, revision - self._keep.events
        full = self._written - self._keep.bytes
        while self._marks:
            first = self._marks[0]
            if (first.at <= old and first.revision <= few) or first.written < full:
                target = self._marks.popleft().revision
            else:
                break
        return target
