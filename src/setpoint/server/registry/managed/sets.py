"""Sets of fields, in the very form that managedFields has on the wire.

A set is a tree of dicts, keyed by path elements: ``f:name`` is a field, ``k:{"name":"web"}`` an item of a
list by its keys, ``v:"x"`` a member of a set, ``i:0`` an index.  Below an element lies what the set holds
of it::

    {}                                the element is a member, and nothing below it is
    {".": {}, "f:a": {}}              the element is a member, and so is its field a
    {"f:a": {}}                       only the field a is

The outermost dict has no element of its own: there, ``{}`` is the empty set.  Every function keeps to these
three forms (never ``{".": {}}`` alone), and never changes a set that it was given: results share branches
with their operands.

Decides: what sets hold, and how they are read and written.  Nothing here knows of types; ``typed.py`` makes
sets from objects, ``managers.py`` and ``apply.py`` calculate with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from setpoint.server.golang import encoded, parse_int, quoted

Fields: TypeAlias = "dict[str, Fields]"
Path = tuple[str, ...]

EMPTY: Final[Fields] = {}
SELF: Final = "."
_LONGEST_KNOWN: Final = 256  # characters of an element whose rank is kept


class BadFieldsError(ValueError):
    """What was sent as fieldsV1 is none."""


# ── Calculating ─────────────────────────────────────────────────────────────────────────────────────


def union(a: Fields, b: Fields) -> Fields:
    """What either holds."""
    if not a or not b:
        return a or b
    return _joined(a, b)


def union_of(many: Sequence[Fields]) -> Fields:
    """What any of them holds: one walk, where one union after another would walk the first ones each time."""
    if len(many) == 1:
        return many[0]
    found: dict[str, list[Fields]] = {}
    for fields in many:
        for element, below in fields.items():
            found.setdefault(element, []).append(below)
    return {element: _union_of_branches(branches) for element, branches in found.items()}


def difference(a: Fields, b: Fields) -> Fields:
    """What ``a`` holds and ``b`` does not; holding an element says nothing of what is below it."""
    if not b or a.keys().isdisjoint(b.keys()):  # of two views, the smaller is walked
        return a
    return _less(a, b)


def intersection(a: Fields, b: Fields) -> Fields:
    """What both hold."""
    both: Fields = {}
    for element in a.keys() & b.keys():
        shared = _shared(a[element], b[element])
        if shared is not None:
            both[element] = shared
    return both


def without(a: Fields, roots: Fields) -> Fields:
    """``a`` without what ``roots`` holds and everything below it."""
    if a.keys().isdisjoint(roots):
        return a
    rest: Fields = {}
    for element, below in a.items():
        root = roots.get(element)
        if root is None or element == SELF:
            rest[element] = below
        elif root and SELF not in root:
            kept = without(below, root)
            if kept or is_member(below):
                rest[element] = kept
    return _tidy(rest)


def has(fields: Fields, path: Path) -> bool:
    below = fields
    for element in path:
        if element not in below:
            return False
        below = below[element]
    return is_member(below)


def single(path: Path) -> Fields:
    """The set of one path."""
    fields: Fields = {}
    for element in reversed(path):
        fields = {element: fields}
    return fields


def is_member(below: Fields) -> bool:
    """Whether the element above this branch is in the set itself."""
    return not below or SELF in below


def _joined(a: Fields, b: Fields) -> Fields:
    joined = dict(a)
    for element, below in b.items():
        mine = joined.get(element)
        joined[element] = below if mine is None else _joined_branch(mine, below)
    return joined


def _joined_branch(a: Fields, b: Fields) -> Fields:
    if a == b:
        return a
    if a and b:
        return _joined(a, b)
    more = a or b  # the other is a bare member
    return more if SELF in more else {SELF: {}, **more}


def _union_of_branches(branches: Sequence[Fields]) -> Fields:
    joined = union_of(branches)
    has_bare = not all(branches)
    return {SELF: {}, **joined} if joined and has_bare and SELF not in joined else joined


def _less(a: Fields, b: Fields) -> Fields:
    rest: Fields = {}
    for element, below in a.items():
        other = b.get(element)
        if other is None:
            rest[element] = below
        elif element != SELF:
            kept = _less_branch(below, other)
            if kept is not None:
                rest[element] = kept
    return rest


def _less_branch(a: Fields, b: Fields) -> Fields | None:
    if not a:
        return None if is_member(b) else a
    if not b:
        rest = {element: below for element, below in a.items() if element != SELF}
        return rest or None
    return _tidy(rest) if (rest := _less(a, b)) else None


def _shared(a: Fields, b: Fields) -> Fields | None:
    shared = intersection(a, b)
    if is_member(a) and is_member(b):
        shared.pop(SELF, None)
        return {SELF: {}, **shared} if shared else shared
    return shared or None


def _tidy(fields: Fields) -> Fields:
    return {} if len(fields) == 1 and SELF in fields else fields


# ── Elements ────────────────────────────────────────────────────────────────────────────────────────

_decode = msgspec.json.decode


def key_element(keys: dict[str, Any]) -> str:
    """The element of a list's item: its keys with their values, by name."""
    return "k:" + encoded(keys)


def value_element(value: Any) -> str:
    """The element of a member of a list that is a set."""
    return "v:" + encoded(value)


def path_text(path: Path) -> str:
    """A path as messages show it: ``.spec.containers[name="web"].image``."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return "." + rest
    if kind == "k:":
        keys: dict[str, Any] = _decode(rest)
        return "[" + ",".join(f"{name}={_value_text(value)}" for name, value in keys.items()) + "]"
    return f"[={_value_text(_decode(rest))}]" if kind == "v:" else f"[{rest}]"


def _value_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return quoted(value) if isinstance(value, str) else encoded(value)


# ── Order ───────────────────────────────────────────────────────────────────────────────────────────


def paths(fields: Fields) -> Iterator[Path]:
    """The members, in order: those of one level first, then what is below them."""
    elements = [element for element in ordered(fields) if element != SELF]
    for element in elements:
        if is_member(fields[element]):
            yield (element,)
    for element in elements:
        for below in paths(fields[element]):
            yield (element, *below)


def in_order(fields: Fields) -> Fields:
    """The same set, written down in the order of its elements."""
    return {element: in_order(fields[element]) if fields[element] else {} for element in ordered(fields)}


def ordered(fields: Fields) -> Sequence[str]:
    if len(fields) < 2:
        return tuple(fields)
    elements = sorted(fields)
    # By name is right for fields, and "." stands first; items go by the values of their keys.
    return elements if elements[-1][:2] == "f:" else sorted(elements, key=_rank)


def _rank(element: str) -> tuple[Any, ...]:
    return _known_rank(element) if len(element) <= _LONGEST_KNOWN else _read_rank(element)


def _read_rank(element: str) -> tuple[Any, ...]:
    kind, rest = element[:2], element[2:]
    if kind == "k:":
        return 2, [(name, _value_rank(value)) for name, value in _decode(rest).items()]
    if kind == "v:":
        return 3, _value_rank(_decode(rest))
    if kind == "i:":
        return 4, parse_int(rest)
    return (1, rest) if kind == "f:" else (0,)


_known_rank = lru_cache(4096)(_read_rank)


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, encoded(value))


# ── What clients send ───────────────────────────────────────────────────────────────────────────────


def read(raw: Any) -> Fields:
    """A set that a client sent, in its canonical form; elements of an unknown kind are left out."""
    fields = _read_branch(raw)
    fields.pop(SELF, None)
    return fields


def _read_branch(raw: Any) -> Fields:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise BadFieldsError(f"expected an object of fields, not {type(raw).__name__}")
    fields: Fields = {}
    for element, below in raw.items():
        if element == SELF:
            fields[SELF] = {}
        elif (known := _canonical(element)) is not None:
            fields[known] = _read_branch(below)
    return _tidy(fields)


def _canonical(element: str) -> str | None:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return element
    if len(element) < 2 or element[1] != ":":
        raise BadFieldsError(f"{element!r} is no path element")
    try:
        if kind == "k:":
            keys = _decode(rest, type=dict[str, Any])
            return key_element(keys)
        if kind == "v:":
            return value_element(_decode(rest))
        return f"i:{parse_int(rest)}" if kind == "i:" else None
    except ValueError as error:  # msgspec's errors are ValueErrors too
        raise BadFieldsError(f"{element!r} is no path element: {error}") from None
