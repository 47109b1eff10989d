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

from collections.abc import Callable
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
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE, _ORDER)) and name not in keys:
            raise bad_request(_BAD_RETAIN)
    return {name: value for name, value in original.items() if name in keys}


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
            return [item for item in there if not _holds(patch, item)]
        items: list[Any] = []
        for item in [*there, *patch]:
            if not _holds(items, item):
                items.append(item)
        return _ordered(items, patch, there, "")
    item_type = field.type.item
    if not key or item_type is None:
        _fail(f"cannot merge lists without merge key for {_go_kind(item_type or field.type)}")
    there, patch = _with_directives(there, patch, key)
    result = list(there)
    for item in patch:
        if key not in item:
            _no_merge_key(item, key)
        at = _place(result, key, item[key])
        if at is None:
            result.append(item)
        else:
            result[at] = merged(result[at], item, item_type)
    return _ordered(result, patch, there, key)


def _with_directives(there: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """What is left of both lists when the patch's directives were followed."""
    plain: list[Any] = []
    is_replaced = False
    for item in patch:
        match item.get(_DIRECTIVE):
            case None if _DIRECTIVE not in item:
                plain.append(item)
            case "delete":
                if key not in item:
                    _no_merge_key(item, key)
                there = [one for one in there if not (key in one and _equal(one[key], item[key]))]
            case "replace":
                is_replaced = True
            case "merge":
                _fail("merging lists cannot yet be specified in the patch")
            case other:
                _fail(f"unknown patch type: {printed(other)} in map: {printed(item)}")
    return (plain, []) if is_replaced else (there, plain)


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
    named: list[Any] = []
    others: list[Any] = []
    for item in items:
        if key:
            if not isinstance(item, dict):
                _bad_type("map[string]interface {}", item)
            if key not in item:
                _no_merge_key(item, key)
            (others if _place(first, key, item[key]) is None else named).append(item)
        else:
            (named if _holds(first, item) else others).append(item)
    named, others = _sorted(named, _ranker(first, key)), _sorted(others, _ranker(live, key))
    rank = _ranker(live, key)
    result: list[Any] = []
    while named and others:
        mine, theirs = rank(others[0]), rank(named[0])
        result.append(
            others.pop(0) if mine is not None and theirs is not None and mine < theirs else named.pop(0)
        )
    return result + named + others


def _sorted(items: list[Any], rank: Callable[[Any], int | None]) -> list[Any]:
    """By rank; what has none goes before what stands there already, as Go's insertion sort leaves it."""
    result: list[Any] = []
    for item in items:
        mine = rank(item)
        at = len(result)
        while at > 0:
            theirs = rank(result[at - 1])
            if mine is not None and theirs is not None and mine >= theirs:
                break
            at -= 1
        result.insert(at, item)
    return result


def _ranker(order: list[Any], key: str) -> Callable[[Any], int | None]:
    values = [item.get(key) if isinstance(item, dict) else None for item in order] if key else order

    def rank(item: Any) -> int | None:
        value = item.get(key) if key else item
        return next((at for at, one in enumerate(values) if _equal(one, value)), None)

    return rank


def _place(items: list[Any], key: str, value: Any) -> int | None:
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            _fail(f"value for key {at} is not a map")
        if key in item and _equal(item[key], value):
            return at
    return None


def _holds(items: list[Any], item: Any) -> bool:
    return any(_equal(one, item) for one in items)


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
