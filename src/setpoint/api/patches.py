"""Decides what changed between two JSON values, says it as a patch, and performs patches.

JSON Patch (RFC 6902) is ``diff`` and ``apply_patch``; JSON Merge Patch (RFC 7386) is ``merge_diff``
and ``apply_merge``; ``patch_between`` takes the shorter of the two; ``carry`` repeats a change on
another copy of the same document.  The promises:

1. ``apply_patch(diff(a, b), a)`` is ``b``.  So is ``apply_merge(merge_diff(a, b), a)``, unless ``b``
   holds a null where ``a`` holds something else: in a merge patch null means "remove".
2. A patch says only what changed.  An object is never replaced by another object, field by field is
   always how it is said: a field that somebody else added meanwhile is then not lost.
3. List items are followed, not counted: by a natural key (``name``, ``type``, …) where every item has
   one and no two have the same, by content elsewhere.  The removal of the first of ten is one
   operation, and an item that moved is moved.  A list is replaced where that is shorter to say.
4. Nothing passed in is changed, and nothing returned shares a dict or list with it.  A patch that
   fails has done nothing.

Equality is JSON's: ``true`` is not ``1`` (in Python they are equal), and ``1`` is ``1.0``.

Values here are what a JSON parser gives: dict, list, str, int, float, bool, None.  Nothing is known
of kinds or schemas; strategic merge is therefore the server's business, and only its envelope is here.
``client/`` sends these patches; ``api/model.py`` carries a typed difference over to an object's bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

APPLY_CONTENT_TYPE = "application/apply-patch+yaml"  # server-side apply is a verb of its own; JSON is YAML

Op = dict[str, Any]
"""One operation of a JSON Patch: ``op``, ``path``, and by operation ``value`` or ``from``."""

KEYS = ("name", "type", "key", "uid", "mountPath", "containerPort", "port")
"""Fields by which Kubernetes tells list items apart; the first that fits a list is used."""

_MANY = 1000  # removals, additions and moves in one list above which it is replaced: bounds the work


class PatchError(ValueError):
    """A JSON Patch that cannot be performed; the document is as it was."""

    def __init__(self, index: int, path: str, why: str) -> None:
        super().__init__(index, path, why)
        self.index, self.path, self.why = index, path, why

    def __str__(self) -> str:
        return f"patch operation {self.index} at {self.path!r}: {self.why}"


class JsonPatch(msgspec.Struct, frozen=True):
    """A list of operations (RFC 6902), performed all or none, in order."""

    content_type: ClassVar[str] = "application/json-patch+json"
    ops: Sequence[Op]

    def encode(self) -> bytes:
        return _encode(self.ops)


class MergePatch(msgspec.Struct, frozen=True):
    """The fields to set, with null for those to remove; lists are replaced whole (RFC 7386)."""

    content_type: ClassVar[str] = "application/merge-patch+json"
    body: Any

    def encode(self) -> bytes:
        return _encode(self.body)


class StrategicPatch(msgspec.Struct, frozen=True):
    """A merge patch in which the server merges lists by the keys of its types; built-in kinds only."""

    content_type: ClassVar[str] = "application/strategic-merge-patch+json"
    body: Any

    def encode(self) -> bytes:
        return _encode(self.body)


def patch_between(before: Any, after: Any, *, keys: Sequence[str] = KEYS) -> MergePatch | JsonPatch:
    """The shorter of the two patches that say the whole difference; a merge patch if they are equal."""
    operations = JsonPatch(diff(before, after, keys=keys))
    if _holds_null(after):
        return operations
    merge = MergePatch(merge_diff(before, after))
    return merge if len(merge.encode()) <= len(operations.encode()) else operations


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: ``true`` is not ``1``, and ``1`` is ``1.0``."""
    return bool(a == b) and _same_booleans(a, b)  # == runs in C, and already tells most values apart


# ── JSON Patch ──────────────────────────────────────────────────────────────────────────────────────


def diff(a: Any, b: Any, *, keys: Sequence[str] = KEYS) -> list[Op]:
    """The operations that turn ``a`` into ``b``; none if they are the same.

    ``keys`` are the fields by which the items of a list of objects may be told apart.
    """
    ops: list[Op] = []
    _say_difference(a, b, "", keys, ops)
    return ops


def apply_patch(ops: Sequence[Op], document: Any) -> Any:
    """``document`` as the operations leave it; raises PatchError if one of them cannot be performed."""
    document = _copy(document)
    for index, op in enumerate(ops):
        try:
            document = _perform(op, document)
        except _CannotError as error:
            path = op.get("path", "") if isinstance(op, dict) else ""
            raise PatchError(index, str(path), str(error)) from None
    return document


def _say_difference(a: Any, b: Any, path: str, keys: Sequence[str], ops: list[Op]) -> None:
    if isinstance(a, dict) and isinstance(b, dict):
        ops.extend({"op": "remove", "path": f"{path}/{_escape(name)}"} for name in a if name not in b)
        for name, value in b.items():
            below = f"{path}/{_escape(name)}"
            if name in a:
                _say_difference(a[name], value, below, keys, ops)
            else:
                ops.append({"op": "add", "path": below, "value": _copy(value)})
    elif not same(a, b):
        replace: Op = {"op": "replace", "path": path, "value": _copy(b)}
        edits = _list_difference(a, b, path, keys) if isinstance(a, list) and isinstance(b, list) else None
        if edits is None or len(_encode(edits)) >= len(_encode([replace])):
            edits = [replace]
        ops.extend(edits)


def _list_difference(a: list[Any], b: list[Any], path: str, keys: Sequence[str]) -> list[Op] | None:
    """Remove what went, put the rest in order, then change items in place; None: too much to say."""
    sources = _align(a, b, keys)
    kept = set(sources) - {None}
    steady = _longest_rise(sources)
    if len(a) + len(b) - len(kept) - len(steady) > _MANY:
        return None
    ops: list[Op] = [
        {"op": "remove", "path": f"{path}/{i}"} for i in reversed(range(len(a))) if i not in kept
    ]
    current: list[int | None] = [i for i in range(len(a)) if i in kept]
    at = 0  # where in `current` the next item of b belongs: right behind the one before it
    for item, source in zip(b, sources, strict=True):
        if source is None:
            ops.append({"op": "add", "path": f"{path}/{at}", "value": _copy(item)})
            current.insert(at, None)
        elif source in steady:
            at = current.index(source, at)  # items that have yet to move may stand before it
        elif (start := current.index(source)) != at:
            current.pop(start)
            at -= start < at
            ops.append({"op": "move", "from": f"{path}/{start}", "path": f"{path}/{at}"})
            current.insert(at, source)
        at += 1
    for position, (item, source) in enumerate(zip(b, sources, strict=True)):
        if source is not None:
            _say_difference(a[source], item, f"{path}/{position}", keys, ops)
    return ops


class _CannotError(Exception):
    """Why an operation cannot be performed; never leaves this file."""


def _perform(op: Op, document: Any) -> Any:
    if not isinstance(op, dict):
        raise _CannotError(f"an operation is an object, not {_kind(op)}")
    path = _pointer(op, "path")
    match op.get("op"):
        case "add":
            return _add(document, path, _copy(_value(op)))
        case "remove":
            return _remove(document, path)
        case "replace":
            if not path:
                return _copy(_value(op))
            holder, place = _find(document, path)
            holder[place] = _copy(_value(op))
        case "move":
            source = _pointer(op, "from")
            if path[: len(source)] == source and path != source:
                raise _CannotError("a value cannot be moved into itself")
            moved = _get(document, source)
            return document if path == source else _add(_remove(document, source), path, moved)
        case "copy":
            return _add(document, path, _copy(_get(document, _pointer(op, "from"))))
        case "test":
            if not same(_get(document, path), _value(op)):  # the values stay out: they may be secret
                raise _CannotError("the value there is not the one that the test expects")
        case other:
            raise _CannotError(f"there is no operation {other!r} (add, remove, replace, move, copy, test)")
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder = _get(document, path[:-1])
    if isinstance(holder, list):
        holder.insert(len(holder) if path[-1] == "-" else _index(path[-1], len(holder) + 1), value)
    elif isinstance(holder, dict):
        holder[path[-1]] = value
    else:
        raise _CannotError(f"{_kind(holder)} holds no {path[-1]!r}")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise _CannotError("the whole document cannot be removed")
    holder, place = _find(document, path)
    del holder[place]
    return document


def _get(document: Any, path: list[str]) -> Any:
    for step in path:
        document = document[_place(document, step)]
    return document


def _find(document: Any, path: list[str]) -> tuple[Any, str | int]:
    """What holds the value at ``path``, and under which name or index; the value is there."""
    holder = _get(document, path[:-1])
    return holder, _place(holder, path[-1])


def _place(holder: Any, step: str) -> str | int:
    if isinstance(holder, list):
        return _index(step, len(holder))
    if not isinstance(holder, dict):
        raise _CannotError(f"{_kind(holder)} holds no {step!r}")
    if step not in holder:
        raise _CannotError(f"there is no {step!r}")
    return step


def _index(step: str, end: int) -> int:
    if not (step.isascii() and step.isdigit()) or (step[0] == "0" and step != "0"):
        raise _CannotError(f"{step!r} is no index into a list")
    if len(step) > 9 or int(step) >= end:
        raise _CannotError(f"index {step} is past the end of the list")
    return int(step)


def _pointer(op: Op, name: str) -> list[str]:
    """The steps of a JSON Pointer (RFC 6901)."""
    pointer = op.get(name)
    if not isinstance(pointer, str):
        raise _CannotError(f"the operation has no {name!r}")
    if pointer and pointer[0] != "/":
        raise _CannotError(f"{name!r} is {pointer!r}: a path starts with /")
    if "~" not in pointer:
        return pointer.split("/")[1:]
    if "~" in pointer.replace("~0", "").replace("~1", ""):
        raise _CannotError(f"{name!r} is {pointer!r}: ~ is written ~0, and / inside a name ~1")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _value(op: Op) -> Any:
    if "value" not in op:
        raise _CannotError("the operation has no 'value'")
    return op["value"]


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


# ── JSON Merge Patch ────────────────────────────────────────────────────────────────────────────────


def merge_diff(a: Any, b: Any) -> Any:
    """The merge patch from ``a`` to ``b``; ``{}`` if they are the same object.

    A null in ``b`` where ``a`` has something else cannot be said: the patch then removes the field.
    """
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return _copy(b)
    patch: dict[str, Any] = {name: None for name in a if name not in b}
    for name, value in b.items():
        if name not in a or not same(a[name], value):
            patch[name] = merge_diff(a.get(name), value)
    return patch


def apply_merge(patch: Any, document: Any) -> Any:
    """``document`` as the merge patch leaves it."""
    if not isinstance(patch, dict):
        return _copy(patch)
    fields: dict[str, Any] = document if isinstance(document, dict) else {}
    merged: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in patch:
            merged[name] = _copy(value)
        elif patch[name] is not None:
            merged[name] = apply_merge(patch[name], value)
    for name, value in patch.items():
        if name not in fields and value is not None:
            merged[name] = apply_merge(value, None)
    return merged


# ── The same change, elsewhere ──────────────────────────────────────────────────────────────────────


def carry(before: Any, after: Any, onto: Any, *, keys: Sequence[str] = KEYS) -> Any:
    """``onto`` with the change from ``before`` to ``after`` made to it.

    ``onto`` is a fuller copy of ``before``: what it holds besides survives, in list items too.  Where
    it lacks what ``before`` had, what changed is written whole; unlike a patch, this never fails.
    """
    if same(before, after):
        return _copy(onto)
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(onto, dict):
        carried: dict[str, Any] = {}
        for name, value in onto.items():
            if name not in before:
                carried[name] = _copy(after.get(name, value))
            elif name in after:
                carried[name] = carry(before[name], after[name], value, keys=keys)
        for name, value in after.items():
            if name not in onto and not (name in before and same(before[name], value)):
                carried[name] = _copy(value)
        return carried
    if (
        isinstance(before, list)
        and isinstance(after, list)
        and isinstance(onto, list)
        and len(before) == len(onto)
    ):
        return [
            _copy(item) if source is None else carry(before[source], item, onto[source], keys=keys)
            for item, source in zip(after, _align(before, after, keys), strict=True)
        ]
    return _copy(after)


# ── Following list items ────────────────────────────────────────────────────────────────────────────


def _align(a: list[Any], b: list[Any], keys: Sequence[str]) -> list[int | None]:
    """For each item of ``b``, which item of ``a`` it was; None for a new one."""
    key = next((key for key in keys if _tells_apart(key, a) and _tells_apart(key, b)), None)
    ours, theirs = _identities(a, key), _identities(b, key)
    sources: list[int | None] = [None] * len(b)
    start, end = 0, min(len(a), len(b))
    while start < end and ours[start] == theirs[start]:
        sources[start] = start
        start += 1
    back = 0
    while back < end - start and ours[-1 - back] == theirs[-1 - back]:
        back += 1
        sources[len(b) - back] = len(a) - back
    free: defaultdict[Any, deque[int]] = defaultdict(deque)
    for i in range(start, len(a) - back):
        free[ours[i]].append(i)
    for i in range(start, len(b) - back):
        if free[theirs[i]]:
            sources[i] = free[theirs[i]].popleft()
    if key is None:
        _pair_leftovers(len(a), sources)
    return sources


def _pair_leftovers(length: int, sources: list[int | None]) -> None:
    """Items without a key that stand between the same neighbours: taken as the same item, changed."""
    steady = _longest_rise(sources)
    known = set(sources)
    gone = deque(i for i in range(length) if i not in known)
    stays = deque(source for source in sources if source in steady)
    for i, source in enumerate(sources):
        if stays and source == stays[0]:
            stays.popleft()
            while gone and gone[0] < source:
                gone.popleft()
        elif source is None and gone and (not stays or gone[0] < stays[0]):
            sources[i] = gone.popleft()


def _longest_rise(sources: list[int | None]) -> set[int]:
    """The most items that are in the same order on both sides: these stay, the others move."""
    tails: list[int] = []  # tails[n]: the smallest source that ends a rise of n + 1
    before: dict[int, int | None] = {}
    for source in sources:
        if source is not None:
            n = bisect_left(tails, source)
            tails[n : n + 1] = [source]
            before[source] = tails[n - 1] if n else None
    steady: set[int] = set()
    step = tails[-1] if tails else None
    while step is not None:
        steady.add(step)
        step = before[step]
    return steady


def _tells_apart(key: str, items: list[Any]) -> bool:
    """Whether every item is an object that has ``key``, and no two have the same."""
    values = {item[key] for item in items if isinstance(item, dict) and isinstance(item.get(key), str | int)}
    return len(values) == len(items)


def _identities(items: list[Any], key: str | None) -> list[Any]:
    if key is not None:
        return [item[key] for item in items]
    return [_encode_sorted(item) for item in items]


# ── Small parts ─────────────────────────────────────────────────────────────────────────────────────


def _same_booleans(a: Any, b: Any) -> bool:
    """Of two values equal to Python: whether true and 1, or false and 0, were not taken for each other."""
    if isinstance(a, dict):
        return all(_same_booleans(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return all(map(_same_booleans, a, b))
    return isinstance(a, bool) is isinstance(b, bool)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_copy(below) for below in value]
    return value


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))
    if isinstance(value, list):
        return any(map(_holds_null, value))
    return value is None


def _to_wire(value: Any) -> Any:
    """A quantity or a time that an author put into a patch says itself how it is written."""
    if hasattr(value, "to_wire"):
        return value.to_wire()
    raise TypeError(f"a patch holds JSON values, not {type(value).__name__}")


_encode = msgspec.json.Encoder(enc_hook=_to_wire).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=_to_wire, order="sorted").encode
