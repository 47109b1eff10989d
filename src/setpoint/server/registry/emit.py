"""Decides how an object is written, stored and answered: in what order, and which empty values with it.

``emit(obj, type) -> Object``: a new object; parts that need no change are shared with the old one.

As Go's encoder does it, from what ``Field`` says:

1. Fields come in the order of Go's structs (kind and apiVersion first), keys of maps sorted.
2. A field without omitempty is written even when empty: ``"replicas": 0``, ``"rules": null``.  So is a
   struct that is no pointer: ``"status": {}``, and in it whatever is always written.
3. Any other field is left out when empty; behind a pointer only null is empty: ``"replicas": 0`` was said,
   and stays.
4. An empty list or map is as good as none: storage does not tell them apart.

The object has passed ``conform``: its texts are canonical, its fields are those of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from setpoint.server.registry.forms import zero
from setpoint.server.registry.resources import Object
from setpoint.server.registry.types import Field, Type

_Walk = Callable[[Any], Any]
_WALKS: Final[dict[Type, _Walk | None]] = {}  # of shipped types, which live as long as the process


def emit(obj: Object, type: Type) -> Object:  # noqa: A002
    walk = _walk_of(type)
    assert walk is not None, f"{type.name} is no struct"  # noqa: S101
    emitted: Object = walk(obj)
    return emitted


def _walk_of(type: Type) -> _Walk | None:  # noqa: A002
    """What makes the written form of a value; None where that is the value itself."""
    if type in _WALKS:
        return _WALKS[type]
    if type.form == "struct":
        return _struct(type)
    made: _Walk | None = None
    if type.item is not None:
        item = _walk_of(type.item)
        made = {"list": _list, "map": _map, "any": _schema_or}[type.form](item)
    _WALKS[type] = made
    return made


def _struct(type: Type) -> _Walk:  # noqa: A002
    # Of each field: its walk, what is written where nothing was said (or _NEVER), whether empty is left out.
    plan: list[tuple[str, _Walk | None, Any, bool]] = []

    def walk(value: Object) -> Object:
        emitted: Object = {}
        for name, inner, empty, drops_empty in plan:
            said = value.get(name)
            if said is None:
                if empty is not _NEVER:
                    emitted[name] = empty if inner is None or empty is None else inner(empty)
            elif not said and drops_empty:
                if empty is not _NEVER:
                    emitted[name] = empty
            else:
                emitted[name] = said if inner is None else inner(said)
        return emitted

    _WALKS[type] = walk  # before its fields: it may hold itself
    for name, field in type.fields.items():
        plan.append((name, _walk_of(field.type), _empty(field), _drops_empty(field)))
    return walk


def told(obj: Object, type: Type) -> tuple[Object, list[tuple[Object, str]]]:  # noqa: A002
    """As ``emit``, but with the empty lists and maps that were said, where one is written in any case.

    Whoever says them owns them, though they are stored as null.  Also what holds them, and by which name.
    """
    emitted, found = emit(obj, type), []
    for path in _always_written(type):
        holder, into = obj, emitted
        for step in path[:-1]:
            holder, into = holder.get(step) or {}, into.get(step) or {}
        said = holder.get(path[-1])
        if said is not None and not said and path[-1] in into:
            into[path[-1]] = said
            found.append((into, path[-1]))
    return emitted, found


_PATHS: Final[dict[Type, tuple[tuple[str, ...], ...]]] = {}  # of shipped types, as above


def _always_written(type: Type) -> tuple[tuple[str, ...], ...]:  # noqa: A002
    """Where a type has lists and maps that are null where they are empty, outside of other lists and maps."""
    found = _PATHS.get(type)
    if found is None:
        found = _PATHS[type] = tuple(_written_paths(type, (type,)))
    return found


def _written_paths(type: Type, above: tuple[Type, ...]) -> Iterator[tuple[str, ...]]:  # noqa: A002
    for name, field in type.fields.items():
        if field.type.form in ("list", "map") and field.is_emitted_empty:
            yield (name,)
        elif field.type.form == "struct" and field.type not in above:
            for path in _written_paths(field.type, (*above, field.type)):
                yield (name, *path)


_NEVER: Final = object()


def _empty(field: Field) -> Any:
    if not field.is_emitted_empty:
        return _NEVER
    return None if field.is_pointer else zero(field.type)


def _drops_empty(field: Field) -> bool:
    """Whether what is empty is written as if nothing was said."""
    if field.is_pointer or field.type.form == "struct":
        return False
    return field.type.form in ("list", "map") or not field.is_emitted_empty


def _list(item: _Walk | None) -> _Walk | None:
    if item is None:
        return None

    def walk(value: list[Any]) -> list[Any]:
        return [None if inner is None else item(inner) for inner in value]

    return walk


def _map(item: _Walk | None) -> _Walk:
    def walk(value: Object) -> Object:
        keys = sorted(value)
        if item is None:
            return value if keys == list(value) else {key: value[key] for key in keys}
        return {key: None if value[key] is None else item(value[key]) for key in keys}

    return walk


def _schema_or(schema: _Walk | None) -> _Walk:
    """A JSON schema, or something simpler that may hold some."""

    def walk(value: Any) -> Any:
        assert schema is not None, "a schema is a struct"  # noqa: S101
        if isinstance(value, dict):
            return schema(value)
        if isinstance(value, list):
            return [schema(inner) if isinstance(inner, dict) else inner for inner in value]
        return value

    return walk
