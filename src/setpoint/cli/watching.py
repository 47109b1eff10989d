"""Finds out what ``setpoint dev`` shows: objects from a cache of its own, the rest from the manager.

1. The operator never notices: its cache holds what it declared, and nothing else.
2. Whether an object is ready is decided when it changes, not when it is drawn.
3. ``changed`` is set whenever there may be something new to see.

Fed by watches, by controllers (``follow``) and by whoever prints (``say``); drained by ``dev.py``.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from setpoint.api.forms import Untyped
from setpoint.api.names import GroupVersionKind, Key
from setpoint.cache.cache import Cache
from setpoint.cache.declaration import Declaration
from setpoint.cache.store import Seen
from setpoint.cli.shown import (
    Ended,
    Item,
    Notice,
    Queue,
    Scene,
    told_of,
    told_of_change,
    tree,
)
from setpoint.client.client import Client
from setpoint.controller.controller import Controller
from setpoint.controller.readiness import Readiness, is_ready
from setpoint.controller.result import Request
from setpoint.controller.worker import Looked
from setpoint.manager.logs import fields_of, take_object, without_secrets
from setpoint.manager.manager import Manager

# What the built-in controllers make of what an operator makes.
DESCENDANTS = (
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("apps", "v1", "ReplicaSet"),
    GroupVersionKind("apps", "v1", "StatefulSet"),
    GroupVersionKind("apps", "v1", "DaemonSet"),
    GroupVersionKind("batch", "v1", "CronJob"),
    GroupVersionKind("batch", "v1", "Job"),
    GroupVersionKind("", "v1", "Pod"),
    GroupVersionKind("", "v1", "PersistentVolumeClaim"),
)
_SECRET = GroupVersionKind("", "v1", "Secret")
_MOST_ENDED = 50
_MOST_LINES = 50
_MOST_WAITING = 3


class Watching:
    """What there is to see, and lines of it for who cannot see."""

    def __init__(self, client: Client, line: Callable[[str], None] | None = None) -> None:
        """``line`` is given every event of interest, in words."""
        self.cache = Cache(client)
        self.changed = asyncio.Event()
        self.notice = Notice("")
        self._line = line
        self._items: dict[str, Item] = {}
        self._roots: frozenset[GroupVersionKind] = frozenset()
        self._declared: dict[GroupVersionKind, Declaration] = {}
        self._ended: deque[Ended] = deque(maxlen=_MOST_ENDED)
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    # What comes in.

    def show_kinds(self, controllers: Iterable[Controller]) -> None:
        """Show the objects of the kinds that controllers are for, and all that they own."""
        kinds = [each.kinds for each in controllers]
        self._roots = frozenset(each[0] for each in kinds if each)
        wanted = {gvk for each in kinds for gvk in each} | {*DESCENDANTS}
        for gvk in self._declared.keys() - wanted:
            self._declared.pop(gvk).close()
            self._items = {uid: item for uid, item in self._items.items() if item.kind != gvk}
        for gvk in wanted - self._declared.keys():
            self._declared[gvk] = self.cache.declare(Untyped(gvk))
            self._declared[gvk].listen(partial(self._see, gvk))
        self.changed.set()

    def follow(self, controller: Controller) -> None:
        """Show the reconciles of a controller."""
        controller.on_look(self._end)

    def tell(self, notice: Notice) -> None:
        """Say how it goes with the file."""
        self.notice = notice
        self._out(f"{_clock()}  {notice.text}")
        for line in notice.trace.splitlines():
            self._out(f"    {line}")
        self.changed.set()

    def say(self, text: str) -> None:
        """Something was printed or logged."""
        self._lines.extend(text.splitlines())
        for line in text.splitlines():
            self._out(line)
        self.changed.set()

    def _see(self, gvk: GroupVersionKind, seen: Seen) -> None:
        metadata = seen.snapshot.metadata
        before = self._items.get(metadata.uid)
        after: Item | None = None
        if seen.type == "DELETED":
            self._items.pop(metadata.uid, None)
        else:
            owners = tuple(owner.uid for owner in metadata.owner_references or ())
            after = Item(metadata.uid, gvk, seen.key, owners, _readiness(gvk, seen))
            self._items[metadata.uid] = after
        if after != before:
            if self._line is not None and self._is_shown(after or before):
                self._out(told_of_change(_clock(), before, after))
            self.changed.set()

    def _is_shown(self, item: Item | None) -> bool:
        """Whether it is, or belongs to, an object that a controller is for."""
        seen: set[str] = set()
        todo = [] if item is None else [item]
        while todo:
            each = todo.pop()
            if each.kind in self._roots:
                return True
            seen.add(each.uid)
            todo += [self._items[uid] for uid in each.owners if uid in self._items and uid not in seen]
        return False

    def _end(self, controller: str, key: Request, looked: Looked) -> None:
        ended = Ended(_clock(), controller, key, looked)
        self._ended.appendleft(ended)
        if self._line is not None:
            self._out(told_of(ended))
        self.changed.set()

    def _out(self, line: str | None) -> None:
        if self._line is not None and line is not None:
            self._line(line)

    # What goes out.

    def scene(self, manager: Manager, *, title: str, server: str, kubeconfig: str) -> Scene:
        """Everything, as it is now."""
        return Scene(
            title,
            server,
            kubeconfig,
            self.notice,
            tree(self._items.values(), self._roots),
            tuple(queue_of(each) for each in manager.controllers),
            tuple(self._ended),
            tuple(self._lines),
        )


def queue_of(controller: Controller) -> Queue:
    """How it is with the work of a controller."""
    stats = controller.stats()
    waiting: list[tuple[Key, float, int]] = []
    for key, due_in in controller.waiting(_MOST_WAITING):
        looked = controller.last_look(key)
        waiting.append((key, due_in, 0 if looked is None else looked.failures))
    return Queue(
        controller.name,
        stats.is_working,
        stats.problems,
        sum(stats.queue.depth.values()),
        stats.queue.delayed,
        tuple(stats.running.items()),
        tuple(waiting),
    )


def _readiness(gvk: GroupVersionKind, seen: Seen) -> Readiness:
    if gvk == _SECRET:  # only its metadata is held
        return Readiness("Current")
    return is_ready(Untyped(gvk).decode(seen.snapshot.data))


def _clock() -> str:
    return f"{datetime.now().astimezone():%H:%M:%S}"


class Lines(io.TextIOBase):
    """A file whose lines are said; what the author prints goes here."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, self._rest = f"{self._rest}{text}".split("\n")
        for line in lines:
            self._say(line)
        return len(text)


class LogLines(logging.Handler):
    """Says log lines."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(self.format(record))


class ShortFormatter(logging.Formatter):
    """When, how bad, about which object, what; on a terminal there is room for no more."""

    def format(self, record: logging.LogRecord) -> str:
        about = take_object(fields_of(record))
        said = f"{_clock()}  {record.levelname.lower()}: {about and f'{about}: '}{record.getMessage()}"
        if record.exc_info:
            said += f"\n{self.formatException(record.exc_info)}"
        return without_secrets(said)
