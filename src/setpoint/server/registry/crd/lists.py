"""Finds what stands twice in a list that is a set, or a map by keys.

Compiled once per version; a schema without such lists costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.server.golang import encoded
from setpoint.server.registry.crd.schemas import (
    LIST_KEYS,
    LIST_TYPE,
    Schema,
    extra,
    items,
    properties,
    spine,
)
from setpoint.server.registry.paths import Path
from setpoint.server.registry.validation.found import Found

# Takes a value, its path, and what was found so far.
Find = Callable[[Any, Path, Found], None]


def duplicates(schema: Schema) -> Find | None:
    """Compile a schema; None where it has no sets and no maps."""
    if not any(one.get(LIST_TYPE) in ("set", "map") for one in spine(schema)):
        return None
    known = {name: found for name, one in properties(schema).items() if (found := duplicates(one))}
    rest, inner = extra(schema), items(schema)
    other = rest and duplicates(rest)
    each = inner and duplicates(inner)
    form = schema.get(LIST_TYPE)
    keys: list[str] = schema.get(LIST_KEYS) or []

    def find(value: Any, path: Path, found: Found) -> None:
        if found.is_full:
            return
        if type(value) is dict:
            if other:
                for name, one in value.items():
                    other(one, path.key(name), found)
            for name, below in known.items():
                if name in value:
                    below(value[name], path.child(name), found)
        elif type(value) is list:
            if form == "set":
                _tell(value, path, found)
            elif form == "map":
                _tell_keys(value, keys, path, found)
            if each:
                for place, one in enumerate(value):
                    each(one, path.key(place), found)

    return find


def _tell(values: list[Any], path: Path, found: Found) -> None:
    for place in _repeated(values):
        if found.is_full:
            break
        found.duplicate(path.key(place).text, values[place])


def _repeated(values: list[Any]) -> list[int]:
    """Where each value that is there more than once stands the second time."""
    seen: dict[Any, int] = {}
    found: list[int] = []
    for place, one in enumerate(values):
        name = encoded(one) if type(one) in (dict, list) else (type(one), one)
        seen[name] = seen.get(name, 0) + 1
        if seen[name] == 2:
            found.append(place)
    return found


def _tell_keys(values: list[Any], keys: list[str], path: Path, found: Found) -> None:
    for place, one in enumerate(values):
        if one is not None and type(one) is not dict:
            text = "must be an object for an array of list-type map"
            found.invalid(path.key(place).text, one, text)
            return
    named = [{name: one[name] for name in keys if name in one} if one else {} for one in values]
    _tell(named, path, found)
