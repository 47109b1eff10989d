"""Walks objects along their types: which fields an object has, what changed between two, what a merge makes.

The rules are those of structured merge and diff:

1. A scalar, an atomic list and an atomic map are one field each; nothing is known of their insides.
2. The items of a list that is a map are followed by their keys (a key that is left out has its declared
   default), those of a set by their value.  What a list holds twice is one field, without insides.
3. Where the type says nothing (``any``), maps are walked and lists are atomic.
4. Null is nothing: beside a map or a list it stands for an empty one.

Decides: the four walks (``fields_of``, ``compare``, ``merge``, ``remove``), the check that an applied object
fits its type, and what an object of a type has before anybody wrote to it (``zero``).  Values come as they
are emitted, and none is changed; results share parts with what came in.  ``managers.py`` and ``apply.py``
call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from setpoint.api.patches import same
from setpoint.server.golang import printed, quoted
from setpoint.server.registry.managed.sets import SELF, Fields, key_element, path_text, value_element
from setpoint.server.registry.types import NONE, Type
from setpoint.server.statuses import MOST_TOLD

Object = dict[str, Any]

ANY: Final = Type("any")
ABSENT: Final = object()

_ZEROS: Final[dict[str, Any]] = {
    "string": "", "int32": 0, "int64": 0, "float": 0, "bool": False, "duration": "0s", "quantity": "0",
    "int-or-string": 0,
}  # fmt: skip

_COMPOUND: Final = frozenset({"struct", "map", "list", "any"})  # what has insides


def zero(type_: Type) -> Object:
    """An object of this type that nobody has written to: what is emitted although it is empty."""
    return {
        name: zero(field.type)
        if field.type.form == "struct" and not field.is_pointer
        else None
        if field.is_pointer
        else _ZEROS.get(field.type.form)
        for name, field in type_.fields.items()
        if field.is_emitted_empty
    }


def field_type(type_: Type, name: str) -> Type | None:
    """The type of what is under ``name``; None where the type has no such field."""
    if type_.form == "struct":
        field = type_.fields.get(name)
        if field is not None:
            return field.type
        return (type_.item or ANY) if type_.is_open else None
    return type_.item or ANY


def copied(value: Any) -> Any:
    """A value that shares nothing with the one it was made from."""
    if isinstance(value, dict):
        return {name: copied(below) for name, below in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def _below(type_: Type, name: str) -> Type:
    return field_type(type_, name) or ANY


# ── List items ──────────────────────────────────────────────────────────────────────────────────────


class _BadItemError(ValueError):
    """Why an item has no element; never leaves this file."""


def item_element(item: Any, type_: Type) -> str:
    """The path element of an item of a list that is a map or a set."""
    if type_.list_type == "set":
        if isinstance(item, dict):
            raise _BadItemError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise _BadItemError("not supported: associative list with lists as elements")
        if item is None:
            raise _BadItemError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise _BadItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise _BadItemError("associative list with keys may not have non-map elements")
    keys: dict[str, Any] = {}
    for name in type_.map_keys:
        if name in item:
            keys[name] = item[name]
        elif type_.item is not None and (field := type_.item.fields.get(name)) and field.default is not NONE:
            keys[name] = field.default
    if not keys:
        names = " ".join(map(quoted, type_.map_keys))
        raise _BadItemError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _grouped(items: list[Any], type_: Type) -> dict[str, list[Any]]:
    """The items by element; more than one where the list holds something twice."""
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(item_element(item, type_), []).append(item)
    return groups


# ── What an object has ──────────────────────────────────────────────────────────────────────────────


def fields_of(obj: Object, type_: Type) -> Fields:
    """The leaves that an object has, and the items of its lists: what an applier of it owns."""
    return _map_leaves(obj, type_)


def _leaves(value: Any, type_: Type) -> Fields | None:
    """Of a field's value; None if there is nothing to own."""
    form = type_.form
    if isinstance(value, dict):
        if not value or type_.is_atomic:
            return {}
        if form in {"struct", "map", "any"}:
            return _map_leaves(value, type_) or None
    elif isinstance(value, list) and form == "list" and type_.list_type != "atomic":
        return _list_leaves(value, type_) or None
    return {}


def _map_leaves(value: Object, type_: Type) -> Fields:
    declared = type_.fields
    fields: Fields = {}
    for name, item in value.items():
        below = _leaves(item, _below(type_, name))
        if name not in declared:  # a map's key is there by itself, a struct's field is not
            below = _owned(below)
        if below is not None:
            fields["f:" + name] = below
    return fields


def _list_leaves(items: list[Any], type_: Type) -> Fields:
    item_type = type_.item or ANY
    fields: Fields = {}
    for element, group in _grouped(items, type_).items():
        fields[element] = _owned(_leaves(group[0], item_type)) if len(group) == 1 else {}
    return fields


def _owned(below: Fields | None) -> Fields:
    return {SELF: {}, **below} if below and SELF not in below else below or {}


# ── What changed ────────────────────────────────────────────────────────────────────────────────────


class Difference(NamedTuple):
    """What was added or modified, and what was removed."""

    changed: Fields
    removed: Fields


class _Found(NamedTuple):
    """A difference as it is gathered."""

    changed: Fields
    removed: Fields
    is_loose: bool  # equal to Python is not enough: true and 1 differ where a type says nothing

    def below(self) -> _Found:
        return _Found({}, {}, self.is_loose)


def is_custom(type_: Type) -> bool:
    """Whether it is the type of a custom kind: the fields of built-in ones have numbers."""
    metadata = type_.fields.get("metadata")
    return metadata is None or not metadata.number


_META: Final = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
     "managedFields", "resourceVersion"}
)  # fmt: skip


def compare(old: Object, new: Object, type_: Type) -> Difference:
    """The fields that differ, but for those of which nobody keeps an owner: identity, version, type."""
    found = _Found({}, {}, is_custom(type_))
    for name in _names(old, new):
        if name == "apiVersion" or name == "kind":  # noqa: PLR1714 - this is the quick form
            continue
        a, b = old.get(name, ABSENT), new.get(name, ABSENT)
        if name == "metadata":
            a, b = _without_identity(a), _without_identity(b)
        _compare("f:" + name, a, b, _below(type_, name), found)
    return Difference(found.changed, found.removed)


def compare_whole(old: Object, new: Object, type_: Type) -> Difference:
    """The fields that differ, all of them."""
    found = _Found({}, {}, is_custom(type_))
    _compare_maps(old, new, type_, found)
    return Difference(found.changed, found.removed)


def _without_identity(metadata: Any) -> Any:
    if not isinstance(metadata, dict):
        return {}
    return {name: value for name, value in metadata.items() if name not in _META}


def _names(a: Object, b: Object) -> list[str]:
    return [*a, *(name for name in b if name not in a)]


def _compare(element: str, a: Any, b: Any, type_: Type, into: _Found) -> None:
    """Notes under ``element`` what differs between ``a`` and ``b``, of which one may be absent."""
    if a is ABSENT:
        into.changed[element] = _everything(b, type_)
    elif b is ABSENT:
        into.removed[element] = _everything(a, type_)
    elif a is not b:
        form = type_.form
        if form == "any":
            _compare_any(element, a, b, type_, into)
        elif form in {"struct", "map"} and not type_.is_atomic and (a or b):
            if a != b or into.is_loose:
                found = into.below()
                _compare_maps(_as_map(a), _as_map(b), type_, found)
                _keep(element, found, into)
        elif form == "list" and type_.list_type != "atomic" and (a or b):
            if a != b or into.is_loose:
                found = into.below()
                _compare_lists(_as_list(a), _as_list(b), type_, found)
                _keep(element, found, into)
        elif not same(a, b):
            into.changed[element] = {}


def _keep(element: str, below: _Found, into: _Found) -> None:
    if below.changed:
        into.changed[element] = below.changed
    if below.removed:
        into.removed[element] = below.removed


def _compare_maps(a: Object, b: Object, type_: Type, into: _Found) -> None:
    for name, value in a.items():
        _compare("f:" + name, value, b.get(name, ABSENT), _below(type_, name), into)
    for name, value in b.items():
        if name not in a:
            into.changed["f:" + name] = _everything(value, _below(type_, name))


def _compare_lists(a: list[Any], b: list[Any], type_: Type, into: _Found) -> None:
    item_type = type_.item or ANY
    before, after = _grouped(a, type_), _grouped(b, type_)
    for element in [*before, *(one for one in after if one not in before)]:
        mine, theirs = before.get(element, []), after.get(element, [])
        if len(mine) < 2 and len(theirs) < 2:
            _compare(element, mine[0] if mine else ABSENT, theirs[0] if theirs else ABSENT, item_type, into)
        elif len(mine) > 1 and len(theirs) > 1:
            if not same(mine, theirs):
                into.changed[element] = {}
        elif len(mine) > 1:  # no longer held twice: it has insides again
            if theirs:
                into.changed[element] = _everything(theirs[0], item_type)
            into.removed[element] = {}
        else:
            if mine:
                into.removed[element] = _everything(mine[0], item_type)
            into.changed[element] = {}


def _compare_any(element: str, a: Any, b: Any, type_: Type, into: _Found) -> None:
    """Where the type says nothing, the values say what they are; one may turn into another."""
    a_is_map, b_is_map = isinstance(a, dict) and bool(a), isinstance(b, dict) and bool(b)
    if type_.is_atomic or not (a_is_map or b_is_map):
        if not same(a, b):
            into.changed[element] = {}
    elif (a_is_map or not a) and (b_is_map or not b) and not _is_empty_scalar(a) and not _is_empty_scalar(b):
        found = into.below()
        _compare_maps(_as_map(a), _as_map(b), type_, found)
        _keep(element, found, into)
    elif b_is_map:  # something else became a map: the field itself changed, and all below it is new
        into.changed[element] = _everything(b, type_)
    else:
        into.changed[element] = {}
        removed = {name: below for name, below in _everything(a, type_).items() if name != SELF}
        into.removed[element] = removed


def _is_empty_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, dict)


def _everything(value: Any, type_: Type) -> Fields:
    """All that is in a value, itself included: it was added, or removed, as a whole."""
    if not value or type_.is_atomic:
        return {}
    form = type_.form
    fields: Fields
    if isinstance(value, dict) and form in {"struct", "map", "any"}:
        fields = {SELF: {}}
        if form == "map" and type_.item is not None and type_.item.form not in _COMPOUND:
            fields |= {"f:" + name: {} for name in value}
            return fields
        for name, below in value.items():
            fields["f:" + name] = _everything(below, _below(type_, name))
        return fields
    if form == "list" and type_.list_type != "atomic" and isinstance(value, list):
        fields = {SELF: {}}
        item_type = type_.item or ANY
        for element, group in _grouped(value, type_).items():
            fields[element] = _everything(group[0], item_type) if len(group) == 1 else {}
        return fields
    return {}


def _as_map(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# ── Merging what is applied into what is there ──────────────────────────────────────────────────────


def merge(live: Any, applied: Any, type_: Type) -> Any:
    """``live`` with everything that is in ``applied``; nothing is removed.

    The items of lists stand in the order of ``applied``, those that are not in it near where they were.
    """
    if live is ABSENT:
        return applied
    if applied is ABSENT:
        return live
    form = type_.form
    if form == "any":
        if type_.is_atomic:
            return applied
        if not (isinstance(live, dict) and isinstance(applied, dict)):
            return live if live and applied is None and isinstance(live, dict) else applied
        form = "map"
    if form in {"struct", "map"} and not type_.is_atomic and (live or applied):
        merged: Object = {}
        mine, theirs = _as_map(live), _as_map(applied)
        for name, value in mine.items():
            merged[name] = merge(value, theirs.get(name, ABSENT), _below(type_, name))
        for name, value in theirs.items():
            if name not in mine:
                merged[name] = value
        return merged
    if form == "list" and type_.list_type != "atomic" and (live or applied):
        return _merge_lists(_as_list(live), _as_list(applied), type_)
    return applied


def _merge_lists(live: list[Any], applied: list[Any], type_: Type) -> list[Any]:
    item_type = type_.item or ANY
    ours = {item_element(item, type_): item for item in applied}
    there = [item_element(item, type_) for item in live]
    known: dict[str, Any] = {}
    for element, item in zip(there, live, strict=True):
        known[element] = None if element in known else item  # what is there twice is not merged with
    merged: list[Any] = []
    done: set[str] = set()

    def take(element: str) -> None:
        done.add(element)
        merged.append(merge(known.get(element, ABSENT), ours[element], item_type))

    order = list(ours)
    shared = [element for element in order if element in known]
    left = right = at = 0  # in `there`, in `order`, in `shared`: the next shared item that is to come
    while left < len(there) or right < len(order):
        if left < len(there) and right < len(order):
            element = there[left]
            if element == order[right]:
                take(element)
                left, right, at = left + 1, right + 1, at + 1
                continue
            if element in ours and at < len(shared) and shared[at] != element:
                left += 1  # shared, but not the one whose turn it is
                continue
        if left < len(there):
            element = there[left]
            if element not in ours:
                merged.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(order):
            element = order[right]
            take(element)
            right += 1
            if at < len(shared) and shared[at] == element:
                at += 1
    return merged


# ── Removing what is no longer applied ──────────────────────────────────────────────────────────────


def remove(value: Any, fields: Fields, type_: Type) -> Any:
    """``value`` without the fields and items of a set; what loses all it had becomes null."""
    form = type_.form
    if isinstance(value, dict):
        if not value or type_.is_atomic:
            return None
        kept: Object = {}
        for name, item in value.items():
            below = fields.get("f:" + name)
            if below is None:
                kept[name] = item
            elif below and SELF not in below:
                kept[name] = remove(item, below, _below(type_, name))
        return kept or None
    if isinstance(value, list):
        if not value or form != "list" or type_.list_type == "atomic":
            return None
        items = []
        for item in value:
            below = fields.get(item_element(item, type_))
            if below is None:
                items.append(item)
            elif below and SELF not in below:
                items.append(remove(item, below, type_.item or ANY))
        return items or None
    return value


def with_named_members(fields: Fields, type_: Type | None) -> Fields:
    """The set with every declared field on the way to a member as a member itself."""
    if type_ is None:
        return fields
    result: Fields = {}
    for element, below in fields.items():
        if not below:
            result[element] = below
        elif element[0] == "f" and type_.form in {"struct", "map", "any"}:
            named = with_named_members(below, _below(type_, element[2:]))
            if SELF not in named and element[2:] in type_.fields:
                named = {SELF: {}, **named}
            result[element] = named
        elif element[0] == "k" and type_.form == "list":
            result[element] = with_named_members(below, type_.item)
        else:
            result[element] = below
    return result


def fitted(fields: Fields, type_: Type | None) -> Fields:
    """A set that was made when the type was another: what is atomic now is owned as a whole."""
    if type_ is None or not fields or type_.form == "any":
        return fields
    if type_.is_atomic or (type_.form == "list" and type_.list_type == "atomic"):
        return {}
    result: Fields = {}
    for element, below in fields.items():
        if not below:
            result[element] = below
        elif element[0] == "f" and type_.form in {"struct", "map"}:
            result[element] = fitted(below, field_type(type_, element[2:]))
        elif type_.form == "list":
            result[element] = fitted(below, type_.item)
        else:
            result[element] = below
    return result if result != fields else fields


# ── Whether an applied object fits its type ─────────────────────────────────────────────────────────


_Trail = tuple["_Trail | None", str] | None  # a path from its end: what is above, and the last element
_Note = Callable[[_Trail, str], None]


def misfits(obj: Any, type_: Type, *, allow_duplicates: bool = False) -> list[str]:
    """What is wrong with an object, one text to a field, as structured merge and diff words it."""
    wrong: list[str] = []
    left = MOST_TOLD

    def note(trail: _Trail, text: str) -> None:
        nonlocal left
        if left <= 0:
            return
        path: list[str] = []
        while trail is not None:
            trail, element = trail
            path.append(element)
        wrong.append(f"{path_text(tuple(reversed(path)))}: {text}" if path else text)
        left -= len(wrong[-1])

    _check(obj, type_, None, note, allow_duplicates)
    return wrong


def _check(value: Any, type_: Type, trail: _Trail, note: _Note, allow_duplicates: bool) -> None:
    form = type_.form
    if value is None or form == "any":
        return
    if form in {"struct", "map"}:
        if not isinstance(value, dict):
            note(trail, f"expected map, got {_shown(value)}")
            return
        for name, item in value.items():
            below = field_type(type_, name)
            if below is None:
                note((trail, "f:" + name), "field not declared in schema")
                return
            _check(item, below, (trail, "f:" + name), note, allow_duplicates)
    elif form == "list":
        if isinstance(value, list):
            _check_items(value, type_, trail, note, allow_duplicates)
        else:
            note(trail, f"expected list, got {_shown(value)}")
    elif (text := _scalar_misfit(value, form)) is not None:
        note(trail, text)


def _check_items(items: list[Any], type_: Type, trail: _Trail, note: _Note, allow_duplicates: bool) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        element = f"i:{index}"
        if type_.list_type != "atomic":
            try:
                element = item_element(item, type_)
            except _BadItemError as error:
                note(trail, f"element {index}: {error}")
                return
            if element in seen and not allow_duplicates:
                note(trail, f"duplicate entries for key {path_text((element,))}")
            seen.add(element)
        _check(item, type_.item or ANY, (trail, element), note, allow_duplicates)


def _scalar_misfit(value: Any, form: str) -> str | None:
    if form in {"int32", "int64", "float"}:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_go_type(value)}"
    elif form in {"string", "bytes", "duration"}:
        if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_go_value(value)}}}"
    elif form == "bool":
        if not isinstance(value, bool):
            return f"expected boolean, got {_shown(value)}"
    elif isinstance(value, dict | list):
        return f"expected any scalar, got {_shown(value)}"
    return None


def _shown(value: Any) -> str:
    return f"&{{{printed(value)}}}"


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "bool" if isinstance(value, bool) else "string"


def _go_value(value: Any) -> str:
    """A value as Go's ``%#v`` prints it."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        inside = ", ".join(f"{quoted(name)}:{_go_value(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_value, value))}}}"
    return printed(value)
