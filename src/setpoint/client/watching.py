"""Watches: what happens to objects of a kind, from some version on.

Promises:

1. Nothing is missed between connections.  A connection that ends, breaks or falls silent is opened again
   from the last version seen.
2. A connection that died without a word is noticed: if not even a bookmark arrives for ``liveness`` seconds,
   it is taken for dead.  Opening a new one costs and loses nothing, so a wrong guess does no harm.
3. A version too old to go on from is ``Expired``, for the caller to list again.  So is a break before any
   version to resume from was seen: deletions might have been missed.
4. What will not pass by itself (no permission, no such kind, rubbish in place of events) is raised.  The rest
   is waited out: 0.8 s, doubling to 30 s, with jitter.  A 500 without a reason may be either: the server
   refuses a version that is none, or its storage failed.  It is raised only until a connection was opened.

``frames`` is one connection and decides nothing; ``Watch`` is any number of them, one after the other.
``setpoint.cache`` has its own way of going on, and uses ``frames`` alone.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Literal, Self, TypeAlias, TypeVar

from setpoint.api.status import refusal
from setpoint.api.wire import Frame, LineSplitter, read_frame
from setpoint.errors import (
    AnswerLost,
    BadAnswer,
    Expired,
    ServerError,
    SetpointError,
    TooManyRequests,
    TransportError,
    WatchStalled,
)
from setpoint.net.transport import Response

T = TypeVar("T")

LIVENESS = 90.0  # servers send a bookmark about once a minute
FIRST_WAIT = 0.8
LONGEST_WAIT = 30.0

log = logging.getLogger("setpoint.client")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to an object, and the object as it was then (as it last was, if DELETED)."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All up to this version has been seen; ``initial_events_end`` closes the initial list, if asked for."""

    resource_version: str
    initial_events_end: bool = False


Event: TypeAlias = Change[T] | Bookmark

Open: TypeAlias = Callable[[str | None], Awaitable[Response]]  # from this version on; None: as first asked


async def frames(
    response: Response, doing: str, *, patience: Callable[[], float], secretive: bool = False
) -> AsyncGenerator[list[Frame], None]:
    """What one connection brings, as it arrives, until the server ends it.

    ``patience`` says, each time, for how many seconds nothing need arrive; then the connection is dead.
    """
    splitter = LineSplitter()
    chunks = response.chunks()
    try:
        while (chunk := await _next(chunks, doing, patience())) is not None:
            try:
                lines = splitter.feed(chunk)
            except ValueError as error:
                raise BadAnswer(doing, str(error)) from error
            whole, failure = _whole(lines, doing, secretive=secretive)
            if whole:
                yield whole
            if failure is not None:
                raise failure
        if splitter.rest.startswith(b"{"):
            raise AnswerLost(doing, "the connection ended in the middle of an event")
        if splitter.rest:
            raise BadAnswer(doing, "the answer is no watch; is there a proxy or login page in between?")
    finally:
        await response.close()


class _Events(Generic[T]):
    def __init__(self, next_event: Callable[[], Awaitable[Event[T]]]) -> None:
        self._next_event = next_event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T]:
        return await self._next_event()


class Watch(Generic[T]):
    """A watch under way: an async iterator of changes; leaving its ``async with`` ends it."""

    def __init__(
        self,
        open_from: Open,
        doing: str,
        decode: Callable[[bytes], T],
        *,
        resume_from: str | None,
        liveness: float = LIVENESS,
        secretive: bool = False,
    ) -> None:
        self._open = open_from
        self._doing = doing
        self._decode = decode
        self._liveness = liveness
        self._secretive = secretive
        self._resume_from = resume_from  # None until a version is known from which nothing would be missed
        self._events = self._run()
        self._ended: Exception | None = None

    def __repr__(self) -> str:
        return f"<Watch: {self._doing} from {self._resume_from or 'the start'}>"

    @property
    def resource_version(self) -> str | None:
        """Where another watch could go on without missing anything; None if that is not known yet."""
        return self._resume_from

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the watch and let go of its connection."""
        await self._events.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change[T]:
        while not isinstance(event := await self._next_event(), Change):
            pass
        return event

    def events(self) -> AsyncIterator[Event[T]]:
        """Changes and bookmarks both."""
        return _Events(self._next_event)

    async def _next_event(self) -> Event[T]:
        if self._ended is not None:
            raise self._ended  # a watch that failed has not come to its end
        try:
            return await anext(self._events)
        except StopAsyncIteration:
            raise
        except Exception as error:
            self._ended = error
            raise

    async def _run(self) -> AsyncGenerator[Event[T], None]:
        failures = 0
        opened = False
        while True:
            seen = False
            failure: SetpointError | None = None
            try:
                response = await self._open(self._resume_from)
                opened = True
                connection = frames(
                    response, self._doing, patience=lambda: self._liveness, secretive=self._secretive
                )
                async with aclosing(connection):
                    async for batch in connection:
                        for frame in batch:
                            seen = True
                            event = _event(frame, self._decode)
                            self._note(event)
                            yield event
            except BadAnswer:
                raise
            except (TransportError, WatchStalled, TooManyRequests, ServerError) as error:
                if not opened and isinstance(error, ServerError) and error.code == 500 and not error.reason:
                    raise
                failure = error
            if seen and self._resume_from is None:
                raise Expired(
                    self._doing, "it broke off before a version to go on from was known"
                ) from failure
            if seen and failure is None:
                failures = 0
                continue
            # An empty connection that ends at once is a failure too: it must not spin.
            failures = 1 if seen else failures + 1
            wait = _wait(failures)
            if failure is not None:
                log.warning("%s; trying again in %.1f s", failure, wait)
            await asyncio.sleep(wait)

    def _note(self, event: Event[T]) -> None:
        """Remember where to go on from.

        Without a version to start from, the server first gives what exists, in no order: the version of such
        an object is no place to go on from.  A bookmark, or anything but ADDED, says that this part is over.
        """
        match event:
            case Bookmark(version):
                self._resume_from = version
            case Change(type="ADDED") if self._resume_from is None:
                pass
            case Change(resource_version=version):
                self._resume_from = version


async def _next(chunks: AsyncIterator[bytes], doing: str, patience: float) -> bytes | None:
    """The next chunk; None at the end."""
    try:
        async with asyncio.timeout(patience):
            return await anext(chunks, None)
    except TimeoutError:
        raise WatchStalled(doing, f"nothing arrived for {patience:g} s, not even a bookmark") from None
    except TransportError as error:
        raise error.during(doing) from error.__cause__


def _whole(lines: list[bytes], doing: str, *, secretive: bool) -> tuple[list[Frame], SetpointError | None]:
    """The events in these lines, up to the first that is an error, or is none at all."""
    whole: list[Frame] = []
    for line in lines:
        try:
            frame = read_frame(line)
        except ValueError as error:
            return whole, BadAnswer(doing, f"the server sent something that is no watch event: {error}")
        if frame.type == "ERROR":
            return whole, refusal(doing, 500, frame.object, secretive=secretive)
        if frame.type not in _TYPES:
            return whole, BadAnswer(doing, f"the server sent an event of the unknown type {frame.type!r}")
        whole.append(frame)
    return whole, None


_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


def _event(frame: Frame, decode: Callable[[bytes], T]) -> Event[T]:
    version = frame.metadata.resource_version
    match frame.type:
        case "ADDED" | "MODIFIED" | "DELETED":
            return Change(frame.type, decode(frame.object), version)
        case _:
            return Bookmark(version, frame.ends_initial_events)


def _wait(failures: int) -> float:
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 10)) * (1 + random.random()) / 2  # noqa: S311 - no secret
