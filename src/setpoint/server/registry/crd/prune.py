"""Removes what a schema does not know, and names it.

A value is pruned by what it is, not by what its schema says that it should be: an object in the place of a
string loses all its fields.  Nulls that may not be null and have no default go too.

However much goes, only so much of it is named (``Gone``): the first, as they stand in the value.

Feeds from the decoded body, before defaults are filled in; the texts go to fieldValidation.
Not here: the metadata of the object and of objects inside it (``embedded.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    META,
    PRESERVE,
    Schema,
    extra,
    has_extra,
    items,
    properties,
)
from setpoint.server.registry.paths import Told

# Changes the value in place, and gives the paths of what went, each from the value on; None for nothing.
Prune = Callable[[Any], "list[str] | None"]


class Gone(Told):
    """The paths of what went."""

    __slots__ = ()

    def add_below(self, step: str, paths: Iterable[str]) -> None:
        """What went from the value that is one step further."""
        for one in paths:
            if self.is_full:
                break
            self.add(f"{step}{one}" if one[:1] == "[" else f"{step}.{one}")


def pruner(schema: Schema, *, is_root: bool, drops_nulls: bool = True) -> Prune:
    """Compile a schema; a root keeps its apiVersion, kind and metadata."""
    return _Compiler(drops_nulls=drops_nulls).compiled(schema, is_root=is_root, skips=False)


class _Compiler:
    def __init__(self, *, drops_nulls: bool) -> None:
        self._drops_nulls = drops_nulls

    def compiled(self, schema: Schema, *, is_root: bool, skips: bool) -> Prune:
        """``skips``: unknown fields stay here, as in a list whose own schema preserves them."""
        keeps = skips or bool(schema.get(PRESERVE))
        kept = META if is_root or schema.get(EMBEDDED) else frozenset[str]()
        known: dict[str, Prune | None] = {}
        doomed = set[str]()  # null goes
        for name, one in properties(schema).items():
            known[name] = None if name in kept else self.compiled(one, is_root=False, skips=False)
            if self._is_no_null(one):
                doomed.add(name)
        rest = extra(schema)
        other: Prune | None = None
        if has_extra(schema):
            other = self.compiled(rest, is_root=False, skips=False) if rest is not None else _prune_all
        drops_rest = rest is not None and self._is_no_null(rest)
        inner = items(schema)
        each: Prune | None
        if keeps:
            each = None if inner is None else self.compiled(inner, is_root=False, skips=True)
        else:
            each = _prune_all if inner is None else self.compiled(inner, is_root=False, skips=False)
        return _walker(known, other, each, kept, frozenset(doomed), keeps=keeps, drops_rest=drops_rest)

    def _is_no_null(self, schema: Schema) -> bool:
        return self._drops_nulls and not schema.get("nullable") and schema.get("default") is None


def _walker(
    known: dict[str, Prune | None],
    other: Prune | None,
    each: Prune | None,
    kept: frozenset[str],
    doomed: frozenset[str],
    *,
    keeps: bool,
    drops_rest: bool,
) -> Prune:
    def walk(value: Any) -> list[str] | None:
        gone: Gone | None = None
        if type(value) is dict:
            dropped: list[str] | None = None
            for name, one in value.items():
                kind = type(one)
                if name in known:
                    if one is None:
                        if name in doomed:
                            dropped = dropped or []
                            dropped.append(name)
                        continue
                    inner = known[name]
                elif name in kept:
                    continue
                elif other is not None:
                    if one is None and drops_rest:
                        dropped = dropped or []
                        dropped.append(name)
                    inner = other
                elif keeps:
                    continue
                else:
                    dropped = dropped or []
                    dropped.append(name)
                    gone = gone or Gone()
                    gone.add(name)
                    continue
                if inner is not None and (kind is dict or kind is list) and (found := inner(one)):
                    gone = gone or Gone()
                    gone.add_below(name, found)
            if dropped is not None:
                for name in dropped:
                    del value[name]
        elif type(value) is list and each is not None:
            for index, one in enumerate(value):
                kind = type(one)
                if (kind is dict or kind is list) and (found := each(one)):
                    gone = gone or Gone()
                    gone.add_below(f"[{index}]", found)
        return None if gone is None else gone.texts

    return walk


def _prune_all(value: Any) -> list[str] | None:
    """Under no schema at all, every field is unknown."""
    gone = Gone()
    if type(value) is dict:
        gone.add_all(value)
        value.clear()
    elif type(value) is list:
        for index, one in enumerate(value):
            if found := _prune_all(one):
                gone.add_below(f"[{index}]", found)
    return gone.texts or None
