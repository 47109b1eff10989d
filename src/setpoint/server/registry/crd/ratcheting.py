"""What of an object is as it was: a value that did not change may stay wrong.

``Correlated`` walks the new value and the old one side by side, as the schema pairs them: fields by name,
items of a list of type map by their keys, items of any other list not at all.

Pure; fed by ``validate.py`` and ``cel.py``, on updates.
"""

from __future__ import annotations

from typing import Any

from setpoint.server.golang import encoded, same
from setpoint.server.registry.crd.schemas import LIST_KEYS, LIST_TYPE, Schema, extra, items, properties


class Correlated:
    """A new value with the old one that it stands for."""

    __slots__ = ("_children", "_equal", "_old_by_key", "_schema", "new", "old")

    def __init__(self, new: Any, old: Any, schema: Schema) -> None:
        self.new = new
        self.old = old
        self._schema = schema
        self._equal: bool | None = None
        self._children: dict[str | int, Correlated | None] = {}
        self._old_by_key: dict[str, Any] | None = None

    def key(self, name: str) -> Correlated | None:
        """The field of that name; None if it cannot be paired."""
        if name not in self._children:
            self._children[name] = self._field(name)
        return self._children[name]

    def index(self, place: int) -> Correlated | None:
        """The item at that place of the new list; None if it cannot be paired."""
        if place not in self._children:
            self._children[place] = self._item(place)
        return self._children[place]

    @property
    def is_equal(self) -> bool:
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _field(self, name: str) -> Correlated | None:
        if type(self.old) is not dict or type(self.new) is not dict:
            return None
        if name not in self.old or name not in self.new:
            return None
        schema = properties(self._schema).get(name) or extra(self._schema)
        return None if schema is None else Correlated(self.new[name], self.old[name], schema)

    def _item(self, place: int) -> Correlated | None:
        schema = items(self._schema)
        if type(self.old) is not list or type(self.new) is not list or schema is None:
            return None
        if self._schema.get(LIST_TYPE) != "map":
            return None
        if self._old_by_key is None:
            self._old_by_key = by_key(self._schema, self.old)
        old = self._old_by_key.get(item_key(self._schema, self.new[place]) or "")
        return None if old is None else Correlated(self.new[place], old, schema)

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if type(new) is dict and type(old) is dict:
            return len(new) == len(old) and all(
                (one := self.key(name)) is not None and one.is_equal for name in new
            )
        if type(new) is list and type(old) is list and self._schema.get(LIST_TYPE) == "map":
            return len(new) == len(old) and all(
                (one := self.index(place)) is not None and one.is_equal for place in range(len(new))
            )
        return same(new, old)


def by_key(schema: Schema, values: list[Any]) -> dict[str, Any]:
    """The items of a list of type map, by key; of two with one key, the first."""
    found: dict[str, Any] = {}
    for one in values:
        name = item_key(schema, one)
        if name is not None:
            found.setdefault(name, one)
    return found


def item_key(schema: Schema, value: Any) -> str | None:
    """What tells an item from others, as text; defaults of keys count."""
    if type(value) is not dict:
        return None
    inner = properties(items(schema) or {})
    names = schema.get(LIST_KEYS) or ()
    return encoded(
        [value[name] if name in value else (inner.get(name) or {}).get("default") for name in names]
    )
