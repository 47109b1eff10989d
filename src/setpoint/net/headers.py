"""Headers as one mapping: names in any case, and what came several times joined into one text.

Knows no HTTP library, so that whoever only listens or loops back loads none of a client's.  Used by
``http.py``, ``arriving.py``, ``listen.py`` and ``loopback.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar, overload

T = TypeVar("T")

_LOWERED: dict[bytes, str] = {}  # names as they come, in small letters: the same few in every answer
_REMEMBERED: Final = 256


def _lowered(name: bytes) -> str:
    if len(_LOWERED) >= _REMEMBERED:
        _LOWERED.clear()
    _LOWERED[name] = lowered = name.decode("latin-1").lower()
    return lowered


class Headers(Mapping[str, str]):
    """Case-insensitive, and what came several times is one text."""

    __slots__ = ("_several", "_values")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}  # by name in small letters; of several the first
        self._several: dict[str, list[str]] = {}  # of those that came several times, each
        for name, value in pairs:
            self.add(name, value)

    @classmethod
    def of(cls, fields: Iterable[tuple[bytes, bytes]]) -> Headers:
        """As they came."""
        made = cls()
        values = made._values
        for name, value in fields:
            lowered = _LOWERED.get(name) or _lowered(name)
            if lowered in values:
                made.add(lowered, value.decode("utf-8", "surrogateescape"))
            else:
                values[lowered] = value.decode("utf-8", "surrogateescape")
        return made

    def add(self, name: str, value: str) -> None:
        name = name.lower()
        if name not in self._values:
            self._values[name] = value
        elif name in self._several:
            self._several[name].append(value)  # joined when read: here, that would be once for each
        else:
            self._several[name] = [self._values[name], value]

    def every(self, name: str) -> list[str]:
        """Of a header that may come several times, each value by itself."""
        name = name.lower()
        if name in self._several:
            return list(self._several[name])
        return [self._values[name]] if name in self._values else []

    def __repr__(self) -> str:
        return f"<Headers {', '.join(self)}>"  # names alone: among the values are credentials

    def __getitem__(self, name: str) -> str:
        name = name.lower()
        return ", ".join(self._several[name]) if name in self._several else self._values[name]

    @overload
    def get(self, key: str, /) -> str | None: ...

    @overload
    def get(self, key: str, /, default: str | T) -> str | T: ...

    def get(self, key: str, /, default: str | T | None = None) -> str | T | None:
        key = key.lower()
        if self._several and key in self._several:  # asked for many times in each request, and rarely so
            return ", ".join(self._several[key])
        return self._values.get(key, default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return (name.title() for name in self._values)

    def __len__(self) -> int:
        return len(self._values)

    def has_any(self, prefix: str) -> bool:
        """Whether a name begins so, which is in small letters."""
        for name in self._values:  # noqa: SIM110 - asked in each request, and this is the faster way
            if name.startswith(prefix):
                return True
        return False


def every_value(headers: Mapping[str, str], name: str) -> list[str]:
    """Of a header that may come several times, each value by itself."""
    if isinstance(headers, Headers):
        return headers.every(name)
    return headers[name].split("\n") if name in headers else []


def lines(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Fields as they are sent: what is on lines of its own is a field of its own."""
    for name, values in headers.items():
        if "\n" in values:
            for value in values.split("\n"):
                yield name, value
        else:
            yield name, values
