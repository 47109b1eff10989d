"""Makes a process forget: what a module keeps in plain containers is as it was when it was imported.

A simulated crash cannot end the interpreter, so what an operator's module remembers in a global dict would
outlive it, which no crash allows.  Dicts, lists, sets, numbers and texts are put back; objects of classes are
not: an operator that keeps those is best proven by a function that makes it anew.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any

_PLAIN = (int, float, str, bytes, bool, tuple, frozenset, type(None))


def remembered(modules: Iterable[ModuleType]) -> Callable[[], None]:
    """A function that puts back what these modules hold now."""
    scalars: list[tuple[dict[str, Any], str, Any]] = []
    containers: list[tuple[Any, Any]] = []  # the thing itself, and what was in it
    for module in modules:
        names = vars(module)
        for name, value in names.items():
            if name.startswith("__"):
                continue
            if type(value) in (dict, list, set):
                with suppress(Exception):  # what cannot be copied stays as it is
                    containers.append((value, copy.deepcopy(value)))
            elif type(value) in _PLAIN:
                scalars.append((names, name, value))

    def forget() -> None:
        for names, name, value in scalars:
            names[name] = value
        for container, held in containers:
            fresh = copy.deepcopy(held)
            container.clear()
            container.extend(fresh) if isinstance(container, list) else container.update(fresh)

    return forget
