"""Makes a process forget: what a module keeps is as it was when it was imported.

A simulated crash cannot end the interpreter, so what an operator's module remembers in a global dict would
outlive it, which no crash allows.  Put back are, in the modules, in their classes and in instances of those:
dicts, lists, sets, numbers and texts; ``itertools.count``; what ``functools.cache`` holds.  A generator of
chance (``random.Random``) is seeded from ``random``.  Other objects are as they are: an operator that keeps
those is best proven by a function that makes it anew.
"""

from __future__ import annotations

import copy
import itertools
import random
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Final

_PLAIN = (int, float, str, bytes, bool, tuple, frozenset, type(None))
_COUNT: Final = re.compile(r"count\((-?\d+)(?:, (-?\d+))?\)")


def remembered(modules: Iterable[ModuleType]) -> Callable[[], None]:
    """A function that puts back what these modules hold now."""
    theirs = list(modules)
    memory = _Memory({module.__name__ for module in theirs})
    for module in theirs:
        memory.note(module)

    def forget() -> None:
        for put_back in memory.acts:
            put_back()

    return forget


class _Memory:
    """What is to be put back, in the order in which it was found."""

    def __init__(self, names: set[str]) -> None:
        self._names = names  # of their modules
        self._known: set[int] = set()
        self._counts: dict[int, tuple[int, int]] = {}
        self.acts: list[Callable[[], object]] = []

    def note(self, holder: Any) -> None:
        """Note what is in a module, a class or an instance."""
        if id(holder) in self._known:
            return
        self._known.add(id(holder))
        for name, value in list(vars(holder).items()):
            if not name.startswith("__"):
                self._note(holder, name, value)

    def _note(self, holder: Any, name: str, value: Any) -> None:
        if type(value) in _PLAIN:
            self.acts.append(partial(_set, holder, name, value))
        elif type(value) in (dict, list, set):
            with suppress(Exception):  # what cannot be copied stays as it is
                self.acts.append(partial(_refill, value, copy.deepcopy(value)))
        elif type(value) is itertools.count and (found := _COUNT.fullmatch(repr(value))):
            begin, step = int(found[1]), int(found[2] or 1)
            self.acts.append(lambda: _set(holder, name, itertools.count(begin, step)))
        elif type(value) is random.Random:
            self.acts.append(lambda: value.seed(random.getrandbits(64)))
        elif hasattr(value, "cache_clear") and callable(value):
            self.acts.append(value.cache_clear)
        elif (isinstance(value, type) and value.__module__ in self._names) or (
            type(value).__module__ in self._names and hasattr(value, "__dict__")
        ):
            self.note(value)


def _set(holder: Any, name: str, value: Any) -> None:
    with suppress(AttributeError, TypeError):  # what cannot be set was not changed
        if vars(holder).get(name) is not value:
            setattr(holder, name, value)


def _refill(container: Any, held: Any) -> None:
    fresh = copy.deepcopy(held)
    container.clear()
    container.extend(fresh) if isinstance(container, list) else container.update(fresh)
