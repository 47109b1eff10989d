"""Reads the body of a request: bytes and a media type in, JSON values out.

- ``read(body, content_type, kind) -> Read``: JSON, YAML or Kubernetes' protobuf, and texts about keys that
  YAML has twice.  StatusError 415 for other media types, 400 in Kubernetes' words for what cannot be read;
  ``kind`` is the one that was expected, for the messages.  JSON keys that appear twice are kept apart as
  ``Doubled``, so that ``conform`` can name them.
- ``read_object(body, content_type, group, version, kind) -> Decoded``: the same, of an object of one
  built-in kind: absent kind and apiVersion are filled in, others are refused.  ``conform`` comes next.
- ``read_custom(…)``: of a custom kind, which must say what it is.  No ``Doubled`` is left in it.
- ``read_json(body)``, ``read_yaml(body) -> Read``: the formats alone; ValueError for what cannot be read.
- ``go_kind(value)``: what Go calls a value, for refusals in its words.
- ``no_deeper(value)``: the value itself; ValueError if it nests deeper than ``DEEPEST``.
- ``plain(value) -> (value, texts)``: a value without ``Doubled``, and ``duplicate field "spec.a"`` for each
  key that appeared twice: for readers that have no type.

Promises: what this gives can be written as JSON again; numbers are finite; text is valid Unicode (what is
not is replaced, as Go does it); nothing nests deeper than ``DEEPEST``.  How long a body may be is http's to
say.

Not here: unknown fields and wrong types (``conform.py``); what protobuf means (``protobuf.py``).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from setpoint.server.golang import quoted
from setpoint.server.registry import protobuf
from setpoint.server.registry.doubled import Doubled, plain
from setpoint.server.registry.resources import Decoded, Object
from setpoint.server.registry.syntax import problem
from setpoint.server.statuses import StatusError, bad_request, unsupported_media_type

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
DEEPEST: Final = 250  # Go goes to 10,000; our walkers recurse, and no API object comes near either

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
HEADER: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_GO_KINDS: Final = {
    str: "string",
    bool: "bool",
    list: "array",
    type(None): "null",
    int: "number",
    float: "number",
}


def go_kind(value: Any) -> str:
    """What Go calls a value of JSON, where it says that it is not what it should be."""
    return _GO_KINDS.get(type(value), "object")


class Read(NamedTuple):
    """JSON values, and what fieldValidation has to say already."""

    value: Any
    texts: list[str]


def media_type(content_type: str) -> str:
    """Without parameters; a body of which nothing is said is JSON."""
    return content_type.partition(";")[0].strip().lower() or JSON


def read(body: bytes, content_type: str, kind: str, api_version: str = "") -> Read:
    media = media_type(content_type)
    try:
        if media == JSON:
            return Read(read_json(body), [])
        if media == YAML:
            return read_yaml(body)
        if media == PROTOBUF:
            found = protobuf.read(body, api_version, kind if api_version else "")
            return Read(no_deeper(found, len(body) // 2), [])
    except _NotJson as error:
        raise unrecognized(kind, f"couldn't get version/kind; json parse error: {error}", body) from None
    except ValueError as error:
        raise unrecognized(kind, str(error), body) from None
    raise unsupported_media_type(JSON, YAML, PROTOBUF)


def unrecognized(kind: str, why: str, body: bytes) -> StatusError:
    """400 for a body of which not even the kind is known."""
    if not body:
        summary = "<empty>"
    elif body.startswith(b"{"):
        summary = body[:30].decode("utf-8", "replace") + (" ..." if len(body) > 30 else "")
    else:
        summary = body[:30].hex() + (" ..." if len(body) > 30 else "")
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({summary})")


# --- objects


def read_object(body: bytes, content_type: str, group: str, version: str, kind: str) -> Decoded:
    api_version = f"{group}/{version}" if group else version
    value, texts = read(body, content_type, kind, api_version)
    obj = _an_object({} if value is None else value, kind, body)
    said_version, said_kind = obj.get("apiVersion") or api_version, obj.get("kind") or kind
    if said_version != api_version or said_kind != kind:
        raise _other_kind(said_version, said_kind, (group, kind), body)
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if not obj.get(name):
            obj[name] = value
            if isinstance(obj, Doubled):
                obj.pairs.insert(0, (name, value))
    return Decoded(obj, texts)


def read_custom(body: bytes, content_type: str, group: str, version: str, kind: str) -> Decoded:
    if media_type(content_type) == PROTOBUF:
        raise unsupported_media_type(JSON, YAML)
    value, texts = read(body, content_type, kind)
    obj, doubled = plain(_an_object(value, kind, body))
    for name in ("kind", "apiVersion"):
        if not obj.get(name):
            shown = "Kind" if name == "kind" else name
            raise unrecognized(
                kind, f"Object '{shown}' is missing in '{body.decode('utf-8', 'replace')}'", body
            )
    said = obj["apiVersion"]
    if said != f"{group}/{version}":
        raise bad_request(
            f"the API version in the data ({said}) "
            f"does not match the expected API version ({group}/{version})"
        )
    return Decoded(obj, [*texts, *doubled])


def _an_object(value: Any, kind: str, body: bytes) -> Object:
    """An object whose kind and apiVersion, if it has them, are text."""
    wrong = ""
    if not isinstance(value, dict):
        wrong = f"{go_kind(value)} into Go value of type {HEADER}"
    else:
        for name in ("apiVersion", "kind"):
            if not isinstance(value.get(name), str | None):
                wrong = wrong or f"{go_kind(value[name])} into Go struct field .{name} of type string"
    if wrong:
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {wrong}"
        raise unrecognized(kind, why, body)
    found: Object = value
    return found


def _other_kind(said_version: str, said_kind: str, wanted: tuple[str, str], body: bytes) -> StatusError:
    """400 for an object of another kind, or of one that there is not."""
    group, kind = wanted
    if said_version.count("/") > 1:
        return unrecognized(kind, f"unexpected GroupVersion string: {said_version}", body)
    short = said_version.rpartition("/")[2]
    why = (
        f'no kind "{said_kind}" is registered for version "{said_version}" '
        'in scheme "pkg/runtime/scheme.go:111"'
    )
    if protobuf.is_kind(said_version, said_kind):
        internal = f"{group.partition('.')[0] or 'core'}.{kind}"
        why = f"converting ({short}.{said_kind}) to ({internal}): unknown conversion"
    return bad_request(f'{said_kind} in version "{short}" cannot be handled as a {kind}: {why}')


# --- JSON


class _NotJson(ValueError):
    """Text that is no JSON, in the words of Go's decoder."""


def read_json(body: bytes) -> Any:
    """JSON values; ValueError, in Go's words, for what is no JSON."""
    value = _whole_json(body)
    return _read_slowly(body) if value is None else value


def _whole_json(body: bytes) -> Any:
    """The values of JSON in which nothing is lost or bent; None for any other, and for null."""
    try:
        value = _decode(body)
        # Whoever writes the value again writes a quote for each quote of the body.  If a key was lost, fewer.
        is_whole = body.count(b'"') == _encode(value).count(b'"') and b"\\u0022" not in body
    except RecursionError:
        raise too_deep() from None
    except (msgspec.MsgspecError, ValueError, OverflowError):  # no JSON, or numbers or text that Go bends
        return None
    return no_deeper(value, body.count(b"{") + body.count(b"[")) if is_whole else None


def _read_slowly(body: bytes) -> Any:
    """What is JSON for Go: text with half characters, huge numbers, keys that appear twice."""
    wrong = "" if _is_json(body) else problem(body)
    if wrong:
        raise _NotJson(wrong)
    try:
        value = json.loads(
            _whole(body.decode("utf-8", "replace")),
            object_pairs_hook=_object,
            parse_int=_int,
            parse_float=_float,
            strict=False,
        )
    except RecursionError:
        raise too_deep() from None
    return no_deeper(value, body.count(b"{") + body.count(b"["))


def _is_json(body: bytes) -> bool:
    """Quickly: what msgspec takes, Go takes too; there is more that Go takes."""
    try:
        _decode(body)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return False
    return True


# A pair of surrogates, or half of one, or any other escape.
_ESCAPED: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\."
)


def _whole(text: str) -> str:
    """Half of a pair of surrogates stands for no character; Go puts U+FFFD in its place, and so do we."""
    if "\\u" not in text:
        return text
    return _ESCAPED.sub(lambda match: "\\ufffd" if len(match[0]) == 6 else match[0], text)


def _object(pairs: list[tuple[str, Any]]) -> Object:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Doubled(pairs)


def _int(text: str) -> int | float:
    number = int(text) if len(text) <= 20 else 2**64
    return number if -(2**63) <= number < 2**64 else _float(text)


def _float(text: str) -> float:
    """What is too large for a number is the largest there is: it may stand where nobody reads it."""
    return max(-sys.float_info.max, min(sys.float_info.max, float(text)))


def no_deeper(value: Any, most: int = DEEPEST + 1) -> Any:
    """The value itself, looked at level by level if it may be deep: it holds at most so many others."""
    level = [value] if most > DEEPEST and isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return value
        level = [inner for outer in level for inner in _below(outer) if isinstance(inner, dict | list)]
    if level:
        raise too_deep()
    return value


def _below(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def too_deep() -> ValueError:
    """What is said of it, for who finds out otherwise."""
    return _NotJson("exceeded max depth")


# --- YAML


def read_yaml(body: bytes) -> Read:
    """YAML, which JSON is too; ValueError for what is neither.  Of several documents the first one counts."""
    if body.lstrip().startswith(b"{"):
        value = _whole_json(body)
        if value is not None:
            return Read(value, [])
    from setpoint.api import yaml  # noqa: PLC0415 - large, and most bodies are JSON

    doubled: list[tuple[int, str]] = []
    try:
        value = yaml.load_first(body, doubled)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"yaml: {error}") from None
    return Read(value, [f"line {line}: key {quoted(key)} already set in map" for line, key in doubled])
