"""Unpacks gzip piece by piece, and never more at once than is asked for: a few bytes may unpack to gigabytes.

No I/O here.  Used by ``connection.py``.
"""

from __future__ import annotations

import zlib
from typing import Final

_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 16 * 2**10  # bytes that are given to zlib at a time: what it leaves over, it copies


class NotGzip(ValueError):
    """The bytes are not what they were said to be."""


class Unpacking:
    """One body, of any number of gzip members."""

    __slots__ = ("_has_begun", "_member", "_packed", "has_more")

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._packed = b""  # bytes that are still to be unpacked
        self._has_begun = False
        self.has_more = False  # to unpack, without being fed

    def unpack(self, packed: bytes, most: int) -> bytes:
        """What these bytes hold, or its first ``most`` bytes: the rest is for the next time."""
        self._has_begun = self._has_begun or bool(packed)
        data = memoryview(self._packed + packed if self._packed else packed)
        pieces, size = [], 0
        try:
            while size < most and (data or self.has_more):
                if self._member.eof:  # another one follows
                    self._member = zlib.decompressobj(_GZIP)
                step = data[:_STEP]
                piece = self._member.decompress(step, most - size)
                pieces.append(piece)
                size += len(piece)
                left = self._member.unused_data or self._member.unconsumed_tail
                data = data[len(step) - len(left) :]
                self.has_more = False
        except zlib.error as error:
            self._packed, self.has_more = b"", False  # what is broken is not tried again
            raise NotGzip(str(error)) from None
        self._packed = bytes(data)
        # All may have been read and not yet written: a byte can stand for hundreds.
        self.has_more = bool(data) or (size >= most and not self._member.eof)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def is_cut_short(self) -> bool:
        """Whether it cannot end here.  A body of nothing at all can: it was not packed."""
        return self._has_begun and (self.has_more or not self._member.eof)
