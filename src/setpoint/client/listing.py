"""Lists: objects of a kind, page by page.

``await listing`` gives all of them, as of one moment; ``async for`` gives them as pages arrive and holds one.

A list's pages are one snapshot, which the server keeps for some minutes.  When it expires between pages, the
first form starts over, so that what it returns is one snapshot still.  The second goes on with the token that
the server offers in exchange: no object that was there all along is missed or given twice, but later pages
are from a later moment, and ``is_consistent`` turns false (then no watch can start from this list).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeVar

from setpoint.api.decoders import decode_all
from setpoint.api.wire import Page
from setpoint.errors import Expired

T = TypeVar("T")

FetchPage = Callable[[str], Awaitable[Page]]  # continue token → page

_FRESH_STARTS = 3  # a list that expires again and again is being paged too slowly


class Objects(list[T]):
    """What a list gave, and the version of the whole list, from which a watch can go on."""

    resource_version: str = ""


@dataclass(slots=True)
class Listing(Generic[T]):
    """A list under way."""

    _fetch: FetchPage
    _decode: Callable[[bytes], T]
    resource_version: str = ""
    is_consistent: bool = True

    def __await__(self) -> Generator[object, None, Objects[T]]:
        return self._all().__await__()

    def __aiter__(self) -> AsyncIterator[T]:
        return self._each()

    async def pages(self) -> AsyncIterator[list[T]]:
        """The objects, a page at a time."""
        token = ""
        while True:
            try:
                page = await self._fetch(token)
            except Expired as error:
                if not token or not error.continue_token or not self.is_consistent:
                    raise
                token = error.continue_token
                self.is_consistent = False
                continue
            self.resource_version = page.resource_version if self.is_consistent else ""
            yield decode_all(self._decode, page.items)
            token = page.continue_token
            if not token:
                return

    async def _each(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for obj in page:
                yield obj

    async def _all(self) -> Objects[T]:
        for attempt in range(1, _FRESH_STARTS + 1):
            try:
                return await self._snapshot()
            except Expired:
                if attempt == _FRESH_STARTS:
                    raise
        raise AssertionError("the loop above returns or raises")

    async def _snapshot(self) -> Objects[T]:
        found: Objects[T] = Objects()
        token = ""
        while True:
            page = await self._fetch(token)
            found.extend(decode_all(self._decode, page.items))
            found.resource_version = self.resource_version = page.resource_version
            token = page.continue_token
            if not token:
                return found
