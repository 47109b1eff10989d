"""Fills in what was left out, as the schema's ``default`` says.

A field that is missing gets its default, and so does a null that may not be null; what was filled in is
filled itself, so that ``default: {}`` brings the defaults inside.  A subtree without defaults costs
nothing.

Runs after pruning and before validation, on what is written and on what is read from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.server.registry.crd.schemas import Schema, copied, extra, has, items, properties

Fill = Callable[[Any], None]


def filler(schema: Schema) -> Fill | None:
    """Compile a schema; None where it has no defaults."""
    if not has(schema, lambda one: one.get("default") is not None):
        return None
    defaults = [
        (name, one["default"], not one.get("nullable"))
        for name, one in properties(schema).items()
        if one.get("default") is not None
    ]
    inside = {name: below for name, one in properties(schema).items() if (below := filler(one))}
    known = frozenset(properties(schema))
    rest, each = extra(schema), items(schema)
    fill_rest = rest and filler(rest)
    fill_each = each and filler(each)
    rest_default = _default(rest)
    each_default = _default(each)

    def fill(value: Any) -> None:
        if type(value) is dict:
            for name, default, replaces_null in defaults:
                if name not in value or (replaces_null and value[name] is None):
                    value[name] = copied(default)
            for name, below in inside.items():
                if name in value:
                    below(value[name])
            if rest is not None:
                for name, one in value.items():
                    if name not in known:
                        if one is None and rest_default is not None:
                            value[name] = copied(rest_default)
                        if fill_rest:
                            fill_rest(value[name])
        elif type(value) is list:
            for index, one in enumerate(value):
                if one is None and each_default is not None:
                    value[index] = copied(each_default)
                if fill_each:
                    fill_each(value[index])

    return fill


def _default(schema: Schema | None) -> Any:
    """What a null becomes; None where it stays."""
    if schema is None or schema.get("nullable"):
        return None
    return schema.get("default")
