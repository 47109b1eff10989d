"""Counts how often the server's past was replaced: etcd restored from a backup.

Then resourceVersions go back, and those that the stores and the read-your-writes floors hold mean something
else.  Whoever finds that out says ``replace``: every store is listed again, and whoever compares versions
over time starts over when ``count`` changes.

What the evidence is stands in ``watch_state.py`` and ``informer.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger("setpoint.cache")


class History:
    """The past of one server, as the watches of a cache know it."""

    def __init__(self) -> None:
        self.count = 0  # times that it was replaced
        self._followers: dict[object, Callable[[], None]] = {}

    def __repr__(self) -> str:
        return f"<History, {self.count} times replaced>"

    def follow(self, start_over: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when the past is replaced; calling the result ends that."""
        me = object()
        self._followers[me] = start_over
        return lambda: self._followers.pop(me, None) and None

    def replace(self, evidence: str) -> None:
        """Have everyone start over."""
        self.count += 1
        log.error(
            "the server's history was replaced, as by an etcd restored from a backup (%s): everything is "
            "listed again, and what our own writes were at no longer counts",
            evidence,
        )
        for start_over in list(self._followers.values()):
            start_over()
