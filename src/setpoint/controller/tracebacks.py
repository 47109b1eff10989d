"""Decides when a failure is logged with its full traceback: the first time, and again when the error changes.

A key that fails is retried for as long as it takes, and each retry raises the same error at the same place.
Errors are the same where their types and the lines that raised them are; their words may differ.

No log here: used by ``worker.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from setpoint.api.names import Key
from setpoint.controller.result import leaves

_REMEMBERED = 10_000  # keys; a number of each
_MAX_CHAIN = 10  # causes that are looked at


class Tracebacks:
    """What each key failed with last; of the newest keys."""

    def __init__(self, *, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._last: dict[Key, int] = {}  # the newest last

    def __repr__(self) -> str:
        return f"<Tracebacks of {len(self._last)} keys>"

    def is_new(self, key: Key, error: BaseException) -> bool:
        """Whether the key did not fail with the same error, at the same place, the last time."""
        now = hash(tuple(_places(error)))
        before = self._last.pop(key, None)
        self._last[key] = now
        if len(self._last) > self._remembered:
            del self._last[next(iter(self._last))]
        return now != before

    def forget(self, key: Key) -> None:
        """It succeeded: its next failure is a new one."""
        self._last.pop(key, None)


def _places(error: BaseException) -> Iterator[tuple[type[BaseException], str, int]]:
    """Types and lines of an error, of those in its group, and of what led to it."""
    for leaf in leaves(error):
        link: BaseException | None = leaf
        for _ in range(_MAX_CHAIN):
            if link is None:
                break
            trace, file, line = link.__traceback__, "", 0
            while trace is not None:
                file, line, trace = trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_next
            yield type(link), file, line
            link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
