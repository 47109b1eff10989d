"""Performs strategic merge patches: a merge patch that merges lists by the keys of their types.

- A list whose field says ``merge`` is merged by its merge key (objects) or as a set (scalars); every other
  list is replaced.  The result stands in the patch's order, with what only the object has near where it was.
- ``$patch: replace`` and ``$patch: delete`` replace and empty an object, or a list from within, or delete the
  item that has the same key; ``$deleteFromPrimitiveList/x`` takes scalars out of the list ``x``;
  ``$setElementOrder/x`` says the order of ``x``; ``$retainKeys`` the only fields that may stay.

``merged`` changes nothing that it was given but the patch; the result shares parts with both.  It raises
StatusError with Kubernetes' texts: 400 and 422 for directives that make no sense, 500 where Kubernetes
answers 500.  Built-in kinds only: ``patching.py`` sees to that, and calls it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NoReturn

from setpoint.server.golang import printed, quoted
from setpoint.server.registry.types import Field, Type
from setpoint.server.statuses import StatusError, bad_request

Object = dict[str, Any]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"

_BAD_DELETE: Final = "invalid patch format of primitive list"
_BAD_RETAIN: Final = "invalid patch format of retainKeys"
_BAD_ORDER: Final = "invalid patch format of setElementOrder list"


def merged(original: Object, patch: Object, type_: Type) -> Object:
    """``original`` as the patch leaves it."""
    if _DIRECTIVE in patch:
        match patch[_DIRECTIVE]:
            case "replace":
                return {name: value for name, value in patch.items() if name != _DIRECTIVE}
            case "delete":
                return {}
            case other:
                _fail(f"unknown patch type: {printed(other)} in map: {printed(patch)}")
    result = _retained(original, patch)
    _put_in_order(result, patch, type_)
    for key, value in patch.items():
        name, is_deletion = _named(key)
        if value is None:
            result.pop(name, None)
            continue
        there: Any = result.get(name)
        if name not in result or type(there) is not type(value):
            if not is_deletion:
                _put(result, name, _without_nulls(value))
        elif isinstance(value, dict):
            field = _field(type_, name)
            if _strategy(field) == "replace":
                result[name] = value
            else:
                result[name] = merged(there, value, field.type)
        elif isinstance(value, list):
            field = _list_field(type_, name)
            result[name] = _merged_list(there, value, field, is_deletion=is_deletion)
        else:
            result[name] = value
    return result


def _fail(text: str) -> NoReturn:
    raise StatusError(500, "", text)


def _rejected() -> StatusError:
    return StatusError(
        422, "Invalid", "the server rejected our request due to an error in our request", details={}
    )


def _named(key: str) -> tuple[str, bool]:
    """The field that a key of the patch is about, and whether the key is a list of what to delete from it."""
    if not key.startswith(_DELETE):
        return key, False
    return _behind(key, _DELETE, _BAD_DELETE), True


def _behind(key: str, prefix: str, refusal: str) -> str:
    before, slash, name = key.partition("/")
    if not slash or before != prefix:
        raise bad_request(refusal)
    return name


def _put(result: Object, name: str, value: Any) -> None:
    """Sets what was not there, or was something else: directives have nothing to act on."""
    kept, is_kept = _without_directives(value)
    if is_kept:
        result[name] = kept
    else:
        result.pop(name, None)


def _without_directives(value: Any) -> tuple[Any, bool]:
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None, False
        kept = {name: _without_directives(below) for name, below in value.items()}
        return {name: below for name, (below, is_kept) in kept.items() if is_kept}, True
    if isinstance(value, list):
        items = [_without_directives(item) for item in value]
        return [item for item, is_kept in items if is_kept], True
    return value, True


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _retained(original: Object, patch: Object) -> Object:
    """The fields that ``$retainKeys`` lets stay; all of them where it is not given."""
    if _RETAIN not in patch:
        return dict(original)
    keys = patch.pop(_RETAIN)
    if not isinstance(keys, list):
        raise bad_request(_BAD_RETAIN)
    stay = {name for name in keys if isinstance(name, str)}
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE, _ORDER)) and name not in stay:
            raise bad_request(_BAD_RETAIN)
    return {name: value for name, value in original.items() if name in stay}


# ── What the type says ──────────────────────────────────────────────────────────────────────────────


def _field(type_: Type, name: str) -> Field:
    if type_.form != "struct" and not type_.name:
        _fail(f"merging an object in json but data type is not struct, instead is: {_go_kind(type_)}")
    field = type_.fields.get(name)
    if field is None:
        field = next((one for one in type_.fields.values() if one.name.lower() == name.lower()), None)
    if field is None:
        struct = type_.name.rpartition(".")[2]
        _fail(f"unable to find api field in struct {struct} for the json field {quoted(name)}")
    return field


def _list_field(type_: Type, name: str) -> Field:
    field = _field(type_, name)
    if field.type.form != "list":
        _fail(f"expected slice or array type, but got: {_go_kind(type_)}")
    if field.type.item is not None and field.type.item.form == "list":
        _fail("unexpected slice of slice")
    return field


def _strategy(field: Field) -> str:
    return next((one for one in field.patch_strategy if one != "retainKeys"), "")


def _go_kind(type_: Type) -> str:
    return {"list": "slice", "bytes": "slice", "any": "struct", "float": "float64"}.get(
        type_.form, type_.form
    )


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────


def _merged_list(there: list[Any], patch: list[Any], field: Field, *, is_deletion: bool = False) -> list[Any]:
    if _strategy(field) != "merge" and not is_deletion:
        return patch
    if not there and not patch:
        return there
    key = field.merge_key
    if not _holds_maps(there, patch):
        if is_deletion:
            gone = set(map(_token, patch))
            return [item for item in there if _token(item) not in gone]
        items: dict[_Token, Any] = {}
        for item in [*there, *patch]:
            items.setdefault(_token(item), item)
        return _ordered(list(items.values()), patch, there, "")
    item_type = field.type.item
    if not key or item_type is None:
        _fail(f"cannot merge lists without merge key for {_go_kind(item_type or field.type)}")
    there, patch = _with_directives(there, patch, key)
    result = list(there)
    places = _places(result, key)
    for item in patch:
        if key not in item:
            _no_merge_key(item, key)
        token = _token(item[key])
        at = places.setdefault(token, len(result))
        if at == len(result):
            result.append(item)
            continue
        result[at] = merged(result[at], item, item_type)
        if key not in result[at]:  # it was null
            del places[token]
    return _ordered(result, patch, there, key)


def _with_directives(there: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """What is left of both lists when the patch's directives were followed."""
    plain: list[Any] = []
    gone: set[_Token] = set()
    is_replaced = False
    for item in patch:
        match item.get(_DIRECTIVE):
            case None if _DIRECTIVE not in item:
                plain.append(item)
            case "delete":
                if key not in item:
                    _no_merge_key(item, key)
                gone.add(_token(item[key]))
            case "replace":
                is_replaced = True
            case "merge":
                _fail("merging lists cannot yet be specified in the patch")
            case other:
                _fail(f"unknown patch type: {printed(other)} in map: {printed(item)}")
    if is_replaced:
        return plain, []
    return [one for one in there if key not in one or _token(one[key]) not in gone], plain


def _put_in_order(result: Object, patch: Object, type_: Type) -> None:
    """Merges the lists that ``$setElementOrder`` names, in its order, and takes them out of the patch."""
    for key in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            _bad_type("[]interface {}", order)
        name = _behind(key, _ORDER, _BAD_ORDER)
        there, sent = result.get(name, _NONE), patch.get(name, _NONE)
        for value in (there, sent):
            if value is not _NONE and not isinstance(value, list):
                _bad_type("[]interface {}", value)
        field = _list_field(type_, name)
        _check_order([] if sent is _NONE else sent, order, field.merge_key)
        if there is _NONE and sent is _NONE:
            continue
        if sent is _NONE:
            items = there
        elif there is _NONE:
            items, _ = _without_directives(sent)
        else:
            items = _merged_list(there, sent, field)
        live = [] if there is _NONE else there
        _holds_maps(live, [] if sent is _NONE else sent)
        result[name] = _ordered(items, order, live, field.merge_key)
        patch.pop(name, None)


_NONE: Final = object()


def _check_order(sent: list[Any], order: list[Any], key: str) -> None:
    """What is in the patch stands in the same order in the list of the order."""
    if not sent or not order:
        return
    waiting = [item for item in sent if not (key and _is_deletion(item))]
    at = 0
    for element in order:
        while at < len(waiting) and isinstance(waiting[at], dict) and _DIRECTIVE in waiting[at]:
            at += 1
        if at < len(waiting) and _same_item(waiting[at], element, key):
            at += 1
    if at < len(waiting):
        _fail(f"The order in patch list:\n{printed(sent)}\n doesn't match {_ORDER} list:\n{printed(order)}\n")


def _is_deletion(item: Any) -> bool:
    if not isinstance(item, dict):
        _bad_type("map[string]interface {}", item)
    return item.get(_DIRECTIVE) == "delete"


def _same_item(a: Any, b: Any, key: str) -> bool:
    if not key:
        return _equal(a, b)
    for item in (a, b):
        if not isinstance(item, dict):
            _bad_type("map[string]interface {}", item)
        if key not in item:
            _no_merge_key(item, key)
    return _equal(a[key], b[key])


def _ordered(items: list[Any], first: list[Any], live: list[Any], key: str) -> list[Any]:
    """The items that ``first`` names in its order, the others between them as they lay in ``live``."""
    is_named = _finder(first, key)
    named: list[Any] = []
    others: list[Any] = []
    for item in items:
        (named if is_named(item) else others).append(item)
    rank = _ranker(live, key)
    named, others = _sorted(named, _ranker(first, key)), _sorted(others, rank)
    result: list[Any] = []
    at = 0
    for item in named:
        theirs = rank(item)
        while at < len(others) and _is_before(rank(others[at]), theirs):
            result.append(others[at])
            at += 1
        result.append(item)
    return result + others[at:]


def _is_before(mine: int | None, theirs: int | None) -> bool:
    return mine is not None and theirs is not None and mine < theirs


def _sorted(items: list[Any], rank: Callable[[Any], int | None]) -> list[Any]:
    """By rank; what has none goes before what stands there already, as Go's insertion sort leaves it."""
    lowest = math.inf  # of those before
    keyed: list[tuple[float, int, int]] = []
    for at, item in enumerate(items):
        mine = rank(item)
        if mine is None:
            keyed.append((lowest, 0, -at))
        else:
            lowest = min(lowest, mine)
            keyed.append((mine, 1, at))
    return [items[abs(at)] for _, _, at in sorted(keyed)]


def _ranker(order: list[Any], key: str) -> Callable[[Any], int | None]:
    values = [item.get(key) if isinstance(item, dict) else None for item in order] if key else order
    ranks = _first(enumerate(values))
    return lambda item: ranks.get(_token(item.get(key) if key else item))


def _finder(items: list[Any], key: str) -> Callable[[Any], bool]:
    """Whether an item is among these, by its key."""
    if not key:
        there = set(map(_token, items))
        return lambda item: _token(item) in there
    wrong = next((at for at, item in enumerate(items) if not isinstance(item, dict)), None)
    places = _places(items[:wrong], key)

    def find(item: Any) -> bool:
        if not isinstance(item, dict):
            _bad_type("map[string]interface {}", item)
        if key not in item:
            _no_merge_key(item, key)
        if _token(item[key]) in places:
            return True
        if wrong is not None:
            _fail(f"value for key {wrong} is not a map")
        return False

    return find


# ── What is equal ───────────────────────────────────────────────────────────────────────────────────

_Token = tuple[type, Hashable]


def _places(items: list[Any], key: str) -> dict[_Token, int]:
    """Where each key is first."""
    return _first((at, item[key]) for at, item in enumerate(items) if key in item)


def _first(values: Iterable[tuple[int, Any]]) -> dict[_Token, int]:
    found: dict[_Token, int] = {}
    for at, value in values:
        found.setdefault(_token(value), at)
    return found


def _token(value: Any) -> _Token:
    """Equal for what is ``_equal``: looked up, since lists are as long as a body allows."""
    return type(value), _frozen(value)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((name, _frozen(below)) for name, below in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value  # type: ignore[no-any-return]


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _holds_maps(*lists: list[Any]) -> bool:
    """Whether the items are objects; they are all of one sort, and no lists."""
    kinds = {type(item) for items in lists for item in items}
    if list in kinds or type(None) in kinds:
        raise _rejected()
    if len(kinds) > 1:
        _fail(f"list element types are not identical: {printed(list(lists))}")
    if not kinds:
        _fail("no elements in any of the given slices")
    return kinds == {dict}


def _no_merge_key(item: Object, key: str) -> NoReturn:
    _fail(f"map: {printed(item)} does not contain declared merge key: {key}")


def _bad_type(expected: str, value: Any) -> NoReturn:
    kinds = {
        str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}",
        dict: "map[string]interface {}", type(None): "%!s(<nil>)",
    }  # fmt: skip
    _fail(f"expected a {expected}, but received a {kinds[type(value)]}")
