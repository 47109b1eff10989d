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
    child,
    extra,
    items,
    key,
    properties,
    spine,
)
from setpoint.server.statuses import FieldError

# Takes a value and its path.
Find = Callable[[Any, str], list[FieldError]]


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

    def find(value: Any, path: str) -> list[FieldError]:
        errors: list[FieldError] = []
        if type(value) is dict:
            if other:
                for name, one in value.items():
                    errors += other(one, key(path, name))
            for name, below in known.items():
                if name in value:
                    errors += below(value[name], child(path, name))
        elif type(value) is list:
            if form == "set":
                errors += [
                    FieldError("duplicate", key(path, str(place)), value=value[place])
                    for place in _repeated(value)
                ]
            elif form == "map":
                errors += _repeated_keys(value, keys, path)
            if each:
                for place, one in enumerate(value):
                    errors += each(one, key(path, str(place)))
        return errors

    return find


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


def _repeated_keys(values: list[Any], keys: list[str], path: str) -> list[FieldError]:
    for place, one in enumerate(values):
        if one is not None and type(one) is not dict:
            text = "must be an object for an array of list-type map"
            return [FieldError("invalid", key(path, str(place)), text, one)]
    named = [{name: one[name] for name in keys if name in one} if one else {} for one in values]
    return [FieldError("duplicate", key(path, str(place)), value=named[place]) for place in _repeated(named)]
