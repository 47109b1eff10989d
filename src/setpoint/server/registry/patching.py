"""Performs patches: one door for JSON patches, merge patches and strategic merge patches.

``patched(obj, body, content_type, resource)`` is the patched object, which shares nothing with ``obj``;
``read`` and ``perform`` are its two halves, for who performs a patch again when somebody else was faster, or
wants to know which keys the body had twice (``Patch.doubled``).

The refusals are Kubernetes' own: 415 for a media type that the resource does not take (custom ones have no
strategic merge), 400 for what is no patch, 413 for more than 10,000 operations, 422 for operations that
cannot be performed.  JSON patches are performed as its library does: an index may be negative, ``replace``
of a missing field adds it, what a test compares is compared as it was written (1 is not 1.0).

Not here: server-side apply (``managed/apply.py``); whether the result is an object of its type
(``conform.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple

import msgspec

from setpoint.api.patches import APPLY_CONTENT_TYPE, JsonPatch, MergePatch, StrategicPatch
from setpoint.server.golang import encoded, parse_int, same
from setpoint.server.registry import strategic
from setpoint.server.registry.bodies import go_kind, no_deeper, read_json, too_deep
from setpoint.server.registry.doubled import plain
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.statuses import FieldError, StatusError, bad_request, invalid, unsupported_media_type

MOST_OPERATIONS: Final = 10_000
MOST_COPIED: Final = 3 * 1024 * 1024  # bytes that the copies of one patch may add

Kind = Literal["json", "merge", "strategic"]
_KINDS: Final[dict[str, Kind]] = {
    JsonPatch.content_type: "json",
    MergePatch.content_type: "merge",
    StrategicPatch.content_type: "strategic",
}


class Patch(NamedTuple):
    """A patch that was read from a body."""

    kind: Kind
    value: Any
    doubled: list[str]  # the keys that were there twice, as fieldValidation says it


def patched(obj: Object, body: bytes, content_type: str, resource: Resource) -> Object:
    """``obj`` as the patch leaves it."""
    return perform(read(body, content_type, resource), obj, resource)


def read(body: bytes, content_type: str, resource: Resource) -> Patch:
    """The patch of a body, if the resource takes such patches."""
    kind = _KINDS.get(content_type.partition(";")[0].strip())
    if kind is None or (kind == "strategic" and resource.is_custom):
        raise _other_media(resource)
    try:
        value, doubled = plain(read_json(body))
    except ValueError:
        raise bad_request("invalid JSON patch") from None
    if kind == "json":
        _check_operations(value)
        doubled = [f"json patch {one}" for one in doubled]
    elif value is None and kind == "merge":
        raise bad_request("Invalid JSON Patch")
    elif value is not None and not isinstance(value, dict):
        told = f"json: cannot unmarshal {go_kind(value)} into Go value of type map[string]interface {{}}"
        raise bad_request(told if kind == "strategic" else f"error decoding patch: {told}")
    return Patch(kind, value, doubled)


def perform(patch: Patch, obj: Object, resource: Resource) -> Object:
    """``obj`` as the patch leaves it; the patch may be performed again."""
    if patch.kind == "json":
        return _performed(patch.value or [], obj)
    value: Object = patch.value or {}
    if patch.kind == "merge":
        return _copy(_merged(obj, value))
    merged = _copy(strategic.merged(obj, _copy(value), resource.type))
    if all(isinstance(merged.get(name), str | None) for name in ("kind", "apiVersion")):
        merged |= {name: obj[name] for name in ("kind", "apiVersion") if name in obj}  # not for it to say
    return merged


def _other_media(resource: Resource) -> StatusError:
    if not resource.is_custom:
        return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    return unsupported_media_type(JsonPatch.content_type, MergePatch.content_type, APPLY_CONTENT_TYPE)


def _copy(obj: Object) -> Object:
    return {name: _copied(value) for name, value in obj.items()}


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: below if below.__class__ in _SCALARS else _copied(below) for name, below in value.items()
        }
    if isinstance(value, list):
        return [item if item.__class__ in _SCALARS else _copied(item) for item in value]
    return value


# ── Merge patches ───────────────────────────────────────────────────────────────────────────────────


def _merged(there: Object, patch: Object) -> Object:
    result = dict(there)
    for name, value in patch.items():
        current = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(current, dict):
            result[name] = _merged(current, value) if isinstance(value, dict) else value
        else:
            result[name] = _without_nulls(value)
    return result


def _without_nulls(value: Any) -> Any:
    """Objects lose their nulls, in lists too; a list keeps its own."""
    if isinstance(value, dict):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


# ── JSON patches ────────────────────────────────────────────────────────────────────────────────────


class _CannotError(Exception):
    """An operation cannot be performed; the text is Go's.  Never leaves this file."""


class _TestFailed(_CannotError):
    """What was tested is there, or could be, and is something else."""


def _check_operations(operations: Any) -> None:
    if operations is None:
        return
    if not isinstance(operations, list):
        raise _undecodable(go_kind(operations), "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            if operation is not None:
                raise _undecodable(go_kind(operation), "value of type handlers.jsonPatchOp")
            continue
        for name in ("op", "path", "from"):
            if (said := operation.get(name)) is not None and not isinstance(said, str):
                raise _undecodable(go_kind(said), f"struct field jsonPatchOp.{name} of type string")
    if len(operations) > MOST_OPERATIONS:
        raise StatusError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MOST_OPERATIONS}, got {len(operations)}",
        )


def _undecodable(kind: str, into: str) -> StatusError:
    return bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go {into}")


def _performed(operations: list[Object | None], obj: Object) -> Object:
    document, failed = perform_operations([one or {} for one in operations], obj)
    if failed is not None:
        raise StatusError(
            422, "Invalid", "the server rejected our request due to an error in our request", details={}
        )
    if not isinstance(document, dict):
        why = (
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
        raise invalid("", "", "", [FieldError("invalid", "patch", why, encoded(document))])
    made: Object = document
    return made


class Failure(NamedTuple):
    """Why operations cannot be performed, in Go's words."""

    why: str
    is_test: bool = False  # another value was there than the one that was expected


def perform_operations(operations: list[Object], obj: Object) -> tuple[Any, Failure | None]:
    """What operations leave of a copy of ``obj``, as far as they can be performed."""
    document: Any = copied(obj)
    size = 0
    try:
        for operation in operations:
            document, size = _perform(operation, document, size)
        no_deeper(document)  # step by step it can grow where no body could be so deep
    except _TestFailed as error:
        return document, Failure(str(error), is_test=True)
    except (_CannotError, ValueError) as error:
        return document, Failure(str(error))
    except RecursionError:
        return document, Failure(str(too_deep()))
    return document, None


def copied(value: Any) -> Any:
    return _copied(value)


def _perform(operation: Object, document: Any, copied: int) -> tuple[Any, int]:
    value = _copied(operation.get("value"))
    match kind := operation.get("op"):
        case "add":
            path = _said(operation, "path")
            holder = _held(document, path, f'add operation does not apply: doc is missing path: "{path}"')
            with _telling(f"error in add for path: '{path}'"):
                _add(*holder, value)
        case "remove":
            path = _said(operation, "path")
            holder = _held(document, path, f'remove operation does not apply: doc is missing path: "{path}"')
            with _telling(f"error in remove for path: '{path}'"):
                _remove(*holder)
        case "replace":
            path = _said(operation, "path")
            if not path:
                return _whole(value), copied
            _replace(document, path, value)
        case "move":
            origin = _said(operation, "from")
            holder = _held(
                document, origin, f"move operation does not apply: doc is missing from path: {origin}"
            )
            with _telling(f"error in move for path: '{holder[1]}'"):
                moved = _get(*holder)
                _remove(*holder)
            _add_at(document, _said(operation, "path"), moved, "move")
        case "copy":
            origin = _said(operation, "from")
            holder = _held(
                document, origin, f"copy operation does not apply: doc is missing from path: {origin}"
            )
            with _telling(f"error in copy for from: '{origin}'"):
                taken = _copied(_get(*holder))
            copied += len(msgspec.json.encode(taken))
            if copied > MOST_COPIED:
                raise _CannotError(
                    f"Unable to complete the copy, the accumulated size increase of copy is {copied}, "
                    f"exceeding the limit {MOST_COPIED}"
                )
            _add_at(document, _said(operation, "path"), taken, "copy")
        case "test":
            path = _said(operation, "path")
            if not same(_tested(document, path), value):
                raise _TestFailed(f"testing value {path} failed: test failed")
        case _:
            raise _CannotError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
    return document, copied


def _said(operation: Object, name: str) -> str:
    said = operation.get(name)
    if isinstance(said, str):
        return said
    comma = "," if name == "from" else ""
    why = f"operation{comma} missing {name} field: missing value"
    if said is not None:
        why = f"json: cannot unmarshal {go_kind(said)} into Go value of type string"
    kind = operation["op"]
    if name == "path" and kind in ("add", "remove", "copy"):
        why = "missing value"
    raise _CannotError(f"{kind} operation failed to decode {name}: {why}")


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Why something cannot be done begins with what was being done."""
    try:
        yield
    except _CannotError as error:
        raise _CannotError(f"{what}: {error}") from None


def _held(document: Any, path: str, missing: str) -> tuple[Any, str]:
    """What holds the value at a path, and under which name; ``missing`` is said where nothing does."""
    try:
        return _find(document, path)
    except _CannotError:
        raise _CannotError(f"{missing}: missing value") from None


def _whole(value: Any) -> Any:
    if not isinstance(value, dict | list):
        raise _CannotError("replace operation value must be object or array: %!w(<nil>)")
    return value


def _replace(document: Any, path: str, value: Any) -> None:
    holder, key = _held(document, path, f"replace operation does not apply: doc is missing path: {path}")
    if not isinstance(holder, list):
        holder[key] = value
        return
    try:
        holder[_index(key, len(holder))] = value
    except _CannotError:
        told = f"replace operation does not apply: doc is missing key: {path}"
        raise _CannotError(f"{told}: missing value") from None


def _add_at(document: Any, path: str, value: Any, kind: str) -> None:
    missing = f"{kind} operation does not apply: doc is missing destination path: {path}"
    holder = _held(document, path, missing)
    doing = "error while adding value during copy" if kind == "copy" else f"error in move for path: '{path}'"
    with _telling(doing):
        _add(*holder, value)


def _tested(document: Any, path: str) -> Any:
    if not path:
        return document
    holder = _held(document, path, f"test operation does not apply: is missing path: {path}")
    with _telling(f"error in test for path: '{path}'"):
        return _get(*holder)


def _find(document: Any, path: str) -> tuple[Any, str]:
    """What holds the value at a path, and under which name; the value itself need not be there."""
    _, *steps = path.split("/")
    if not steps:
        raise _CannotError
    holder = document
    for step in steps[:-1]:
        holder = _get(holder, _unescaped(step))
        if not isinstance(holder, dict | list):
            raise _CannotError
    return holder, _unescaped(steps[-1])


def _unescaped(step: str) -> str:
    return re.sub("~[01]", lambda found: "/" if found[0] == "~1" else "~", step) if "~" in step else step


def _get(holder: Any, key: str) -> Any:
    return holder[_index(key, len(holder))] if isinstance(holder, list) else holder.get(key)


def _add(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif key == "-":
        holder.append(value)
    elif not _NUMBER.fullmatch(key):
        with _telling(f"value was not a proper array index: '{key}'"):
            _index(key, 0)
    else:
        holder.insert(_index(key, len(holder) + 1), value)


def _remove(holder: Any, key: str) -> None:
    if isinstance(holder, list):
        del holder[_index(key, len(holder))]
    elif key in holder:
        del holder[key]
    else:
        raise _CannotError(f"Unable to remove nonexistent key: {key}: missing value")


_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def _index(key: str, end: int) -> int:
    """An index below ``end``, counted from the end if negative."""
    try:
        index = parse_int(key, function="Atoi")
    except ValueError as error:
        raise _CannotError(str(error)) from None
    if not -end <= index < end:
        raise _CannotError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + end if index < 0 else index
