"""Finds objects by something other than their key: by a field, or by what a function says of them.

An index maps values to keys.  The promises:

1. It always agrees with the objects it was given, also where the function answers differently the next time:
   what was entered for an object is remembered, and taken out when the object changes or goes.
2. A function that raises leaves its object out of the index, says so in the log with the object's key, and
   disturbs nothing else.

Fed by ``store.py``, one object at a time; asked by it for keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from setpoint.api.forms import Form
from setpoint.api.names import Key
from setpoint.api.wire import Metadata, Snapshot
from setpoint.cache import paths

T = TypeVar("T")

log = logging.getLogger("setpoint.cache")


class Index:
    """Values → keys of the objects that have them."""

    def __init__(self, name: str, extract: paths.Extract, definition: object) -> None:
        self.name = name
        self.definition = definition  # the path or function, to tell whether two of one name are the same
        self.on_error: Callable[[], None] = _ignore
        self._extract = extract
        self._values: dict[Key, tuple[str, ...]] = {}
        self._keys: dict[str, set[Key]] = {}

    def __repr__(self) -> str:
        return f"<Index {self.name}: {len(self._values)} objects by {len(self._keys)} values>"

    @property
    def is_of_field(self) -> bool:
        """Whether it is by the field of its name."""
        return self.definition == self.name

    def put(self, snapshot: Snapshot) -> None:
        """Enter an object, in place of how it was before."""
        key = snapshot.key
        values = self._read(key, snapshot)
        before = self._values.get(key, ())
        if values != before:
            self._take_out(key, before)
            self._enter(key, values)

    def drop(self, key: Key) -> None:
        self._take_out(key, self._values.get(key, ()))

    def keys(self, value: str) -> AbstractSet[Key]:
        """The objects that have this value."""
        return self._keys.get(value, _NONE)

    def values(self) -> list[str]:
        return sorted(self._keys)

    def _read(self, key: Key, snapshot: Snapshot) -> tuple[str, ...]:
        try:
            return self._extract(snapshot)
        except BaseException:  # not async: no cancellation is meant for us
            self.on_error()
            log.exception("index %s: %s is left out, the function raised", self.name, key)
            return ()

    def _enter(self, key: Key, values: tuple[str, ...]) -> None:
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, set()).add(key)

    def _take_out(self, key: Key, values: tuple[str, ...]) -> None:
        self._values.pop(key, None)
        for value in values:
            keys = self._keys[value]
            keys.discard(key)
            if not keys:
                del self._keys[value]


def _ignore() -> None:
    pass


_NONE: frozenset[Key] = frozenset()


def by_field(path: str) -> Index:
    """By the values at a path: ``spec.nodeName``, ``spec.containers[*].image``."""
    return Index(path, paths.field(path), path)


def by_function(name: str, function: Callable[[T], Iterable[str]], form: Form[T]) -> Index:
    """By what a function says of an object; it gets a fresh one each time."""

    def extract(snapshot: Snapshot) -> tuple[str, ...]:
        values = function(form.decode(snapshot.data))
        if isinstance(values, str):
            raise TypeError(f"the function of index {name} gave the text {values!r}, not several of them")
        return tuple(dict.fromkeys(values))

    return Index(name, extract, function)


@dataclass(frozen=True, slots=True)
class FromMetadata:
    """An index's function that needs no more of an object than its metadata: then nothing is decoded."""

    function: Callable[[Metadata], Iterable[str]]


def by_metadata(name: str, given: FromMetadata) -> Index:
    """By what a function says of an object's metadata."""

    def extract(snapshot: Snapshot) -> tuple[str, ...]:
        return tuple(dict.fromkeys(given.function(snapshot.metadata)))

    return Index(name, extract, given)


def by_owner() -> Index:
    """By the uids of an object's owners."""
    return Index("owner", _owners, _owners)


def _owners(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple({owner.uid: None for owner in snapshot.metadata.owner_references or ()})
