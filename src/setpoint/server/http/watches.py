"""Watch events as lines: one JSON document each, in the form that was asked for.  Over a WebSocket a line is
a message.

An event is written once for each form and shared by all who watch; what a hundred watchers are sent is one
value. The columns of a Table come with its first line alone.  Ages in a Table are of the moment of
writing, so those lines are shared only within a second.

What there is when a watch begins may be a hundred megabytes: it is sent in pieces, for who reads is given
its time (``net/listen.py``) for each of them.

Fed by ``registry/watching.py``; drained by whoever sends the answer.  Used by ``app.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple, Self

from setpoint.server.http.negotiate import Form
from setpoint.server.http.tables import Include, columns, framed, metadata_of_one, partial, table_rows
from setpoint.server.registry.resources import Resource
from setpoint.server.registry.watching import WatchEvent, Watching

_MOST_KEPT: Final = 2048  # frames
_MUCH_KEPT: Final = 16 * 2**20  # bytes of them
_MUCH_SENT: Final = 2**20  # bytes: a piece with so many gets no further line


class _Frame(NamedTuple):
    """A line; of a Table, what stands before its columns and after."""

    before: bytes
    after: bytes = b""


_Key = tuple[Resource, int, str, str, str, str, int]


class Frames:
    """Lines that were written lately."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._kept: dict[_Key, _Frame] = {}
        self._size = 0  # of those

    def frame(self, event: WatchEvent, resource: Resource, form: Form, include: Include) -> _Frame:
        if event.record is None:
            return self._written(event, resource, form, include)
        second = int(self._now().timestamp()) if form.kind == "table" else 0
        key = (resource, event.record.revision, event.type, form.kind, form.version, include, second)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._written(event, resource, form, include)
            self._size += len(found.before) + len(found.after)
            while len(self._kept) > _MOST_KEPT or self._size > _MUCH_KEPT:
                old = self._kept.pop(next(iter(self._kept)))
                self._size -= len(old.before) + len(old.after)
        return found

    def _written(self, event: WatchEvent, resource: Resource, form: Form, include: Include) -> _Frame:
        if form.kind == "object" or event.type == "ERROR":
            return _Frame(b'{"type":"%b","object":%b}\n' % (event.type.encode(), event.data))
        head = b'{"type":"%b","object":' % event.type.encode()
        if form.kind != "table":
            return _Frame(b"%b%b}\n" % (head, partial(event.data, form.version)))
        found = table_rows(
            resource, [event.data], now=self._now(), include=include, version=form.version, is_list=False
        )
        before, after = framed(metadata_of_one(event.data), found, form.version)
        return _Frame(head + before, after + b"}\n")


class Stream:
    """The body of an answer that goes on.  ``end``, called from another task, ends it in order."""

    def __init__(self, resource: Resource, lines: AsyncGenerator[bytes, None], opened: set[Stream]) -> None:
        self.resource = resource
        self._lines = lines
        self._opened = opened  # those that are not closed yet, this one among them
        opened.add(self)
        self._waiting: asyncio.Task[object] | None = None
        self._is_ended = False
        self.closed = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_ended:
            raise StopAsyncIteration
        self._waiting = task = asyncio.current_task()
        try:
            return await anext(self._lines)
        except asyncio.CancelledError:
            if self._was_ended() and task is not None and task.uncancel() == 0:
                raise StopAsyncIteration from None
            raise
        finally:
            self._waiting = None

    def _was_ended(self) -> bool:
        return self._is_ended

    def end(self) -> None:
        self._is_ended = True
        if self._waiting is not None:
            self._waiting.cancel()

    def end_after_events(self) -> None:
        """End it when what has happened until now is sent."""
        self.end()

    async def aclose(self) -> None:
        """Also where nothing was ever read."""
        self._is_ended = True
        self._opened.discard(self)
        await self._lines.aclose()
        self.closed.set()


class WatchStream(Stream):
    """The body of a watch's answer."""

    def __init__(
        self,
        watching: Watching,
        resource: Resource,
        lines: AsyncGenerator[bytes, None],
        opened: set[Stream],
    ) -> None:
        super().__init__(resource, lines, opened)
        self._watching = watching

    def end_after_events(self) -> None:
        self._watching.end()

    async def aclose(self) -> None:
        self._watching.close()
        await super().aclose()


class Lines:
    """How one watch's events are written."""

    def __init__(self, frames: Frames, resource: Resource, form: Form, include: Include) -> None:
        self._frames = frames
        self._resource = resource
        self._form = form
        self._include = include
        self._definitions = columns(resource) if form.kind == "table" else b""

    async def of(self, watching: Watching) -> AsyncGenerator[bytes, None]:
        """What to send, in pieces of whole lines; ends when the watch does."""
        async for batch in watching.batches():
            pieces: list[bytes] = []
            size = 0
            for event in batch:
                if size >= _MUCH_SENT:
                    yield b"".join(pieces)
                    pieces, size = [], 0
                for piece in self._pieces(event):
                    pieces.append(piece)
                    size += len(piece)
            yield pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def one_by_one(self, watching: Watching) -> AsyncGenerator[bytes, None]:
        """The same, each line by itself."""
        async for batch in watching.batches():
            for event in batch:
                yield b"".join(self._pieces(event))

    def _pieces(self, event: WatchEvent) -> Iterator[bytes]:
        frame = self._frames.frame(event, self._resource, self._form, self._include)
        yield frame.before
        if frame.after:
            yield self._definitions
            yield frame.after
            self._definitions = b"null"
