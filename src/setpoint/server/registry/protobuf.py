"""Reads Kubernetes' protobuf: an envelope that names the kind, and a message that its ``Type`` describes.

- ``read(body) -> Object``: the object as JSON values, with kind and apiVersion from the envelope, or where
  it has none, those that the caller expects;
  ValueError, in Go's words, for what cannot be read.  Of a kind that is not known, nothing but those two.
- ``is_kind(api_version, kind)``: whether there is a built-in type of that name.

The wire format is proto2: a field is a number and a wire type, then its value; what a type does not have is
skipped.  Go writes a scalar that is no pointer even when it is zero: here it is left out again, unless JSON
would write it too.  What comes out still goes through ``conform``, which makes texts canonical.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from struct import unpack_from
from typing import Any, Final

import msgspec

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.resources import Object
from setpoint.server.registry.types import Field, Type

_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# A value as the wire has it: a number, or bytes.
_Wire = int | bytes
_Make = Callable[[_Wire], Any]
_Put = Callable[[Object, _Wire], None]
_Message = Callable[[bytes, Object], None]


def is_kind(api_version: str, kind: str) -> bool:
    return _type_of(api_version, kind) is not None


def read(body: bytes, api_version: str = "", kind: str = "") -> Object:
    if not body.startswith(_MAGIC):
        raise ValueError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if len(body) == len(_MAGIC):
        raise ValueError("empty body")
    envelope = {number: value for number, _, value in _fields(body[len(_MAGIC) :])}
    named = {number: value for number, _, value in _fields(_bytes(envelope.get(1, b"")))}
    api_version = _text(named.get(1, b"")) or api_version
    kind = _text(named.get(2, b"")) or kind
    obj: Object = {"kind": kind, "apiVersion": api_version}
    type_ = _type_of(api_version, kind)
    if type_ is not None:
        try:
            _message_of(type_)(_bytes(envelope.get(2, b"")), obj)
        except RecursionError:
            raise ValueError("proto: nesting too deep") from None
    return obj


def _type_of(api_version: str, kind: str) -> Type | None:
    group, _, version = api_version.rpartition("/")
    try:
        return type_of(group, version, kind)
    except KeyError:
        return None


# --- the wire


def _fields(data: bytes) -> list[tuple[int, int, _Wire]]:
    """The fields of a message, in the order they were written: (number, wire type, value)."""
    found: list[tuple[int, int, _Wire]] = []
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        value: _Wire
        if wire == 2:
            length, at = _varint(data, at)
            value = data[at : at + length]
            at += length
        elif wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
            value = data[at : at + length]
            at += length
        else:
            raise ValueError(f"proto: illegal wireType {wire}")
        if at > end:
            raise ValueError("unexpected EOF")
        found.append((tag >> 3, wire, value))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift > 63:
                raise ValueError("proto: integer overflow")
    except IndexError:
        raise ValueError("unexpected EOF") from None


def _bytes(value: _Wire) -> bytes:
    if isinstance(value, int):
        raise ValueError("proto: wrong wireType = 0 for a message or text")  # noqa: TRY004
    return value


def _number(value: _Wire) -> int:
    if not isinstance(value, int):
        raise ValueError("proto: wrong wireType = 2 for a number")  # noqa: TRY004
    return value


# --- scalars


def _text(value: _Wire) -> str:
    return _bytes(value).decode("utf-8", "replace")


def _int64(value: _Wire) -> int:
    number = _number(value)
    return number - 2**64 if number >= 2**63 else number


def _int32(value: _Wire) -> int:
    number = _number(value) & 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number


def _float(value: _Wire) -> float | int:
    raw = _bytes(value)
    if len(raw) != 8:
        raise ValueError("unexpected EOF")
    number: float = unpack_from("<d", raw)[0]
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124
        raise ValueError("proto: a number that JSON cannot write")
    return number


def _base64(value: _Wire) -> str:
    return base64.b64encode(_bytes(value)).decode()


def _within(value: _Wire) -> dict[int, _Wire]:
    """The fields of a small message that has a meaning of its own."""
    return {number: one for number, _, one in _fields(_bytes(value))}


def _quantity(value: _Wire) -> str:
    return _text(_within(value).get(1, b"")) or "0"


def _int_or_string(value: _Wire) -> int | str:
    said = _within(value)
    return _text(said.get(3, b"")) if said.get(1, 0) == 1 else _int32(said.get(2, 0))


# Characters of a time.  isoformat, because strftime does not pad a year to four digits everywhere.
_SECONDS: Final = len("0001-01-01T00:00:00")
_MICROS: Final = len("0001-01-01T00:00:00.000000")


def _time(value: _Wire) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment.isoformat()[:_SECONDS]}Z"


def _microtime(value: _Wire) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')[:_MICROS]}Z"


def _moment(value: _Wire) -> datetime | None:
    said = _within(value)
    seconds, nanos = _int64(said.get(1, 0)), _int32(said.get(2, 0))
    if seconds == 0 and nanos == 0:
        return None
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise ValueError("proto: a time that JSON cannot write") from None


def _raw(value: _Wire) -> Any:
    """RawExtension, FieldsV1, JSON: text of its own inside a message."""
    text = _bytes(_within(value).get(1, b""))
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"invalid JSON inside of a protobuf message: {error}") from None


_SCALARS: Final[dict[str, _Make]] = {
    "string": _text,
    "int32": _int32,
    "int64": _int64,
    "bool": lambda value: _number(value) != 0,
    "float": _float,
    "bytes": _base64,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "time": _time,
    "microtime": _microtime,
    "duration": lambda value: f"{_int64(_within(value).get(1, 0))}ns",
}


# --- messages, compiled once per type

_MESSAGES: Final[dict[Type, _Message]] = {}


def _message_of(type: Type) -> _Message:  # noqa: A002
    found = _MESSAGES.get(type)
    if found is not None:
        return found
    puts: dict[int, _Put] = {}
    _MESSAGES[type] = made = _message(puts)  # before its fields: it may hold itself
    for field in type.fields.values():
        if field.number:
            _plan(puts, field, field.within)
    return made


def _message(puts: dict[int, _Put]) -> _Message:
    def message(data: bytes, into: Object) -> None:
        for number, _, value in _fields(data):
            put = puts.get(number)
            if put is not None:
                put(into, value)

    return message


def _plan(puts: dict[int, _Put], field: Field, within: tuple[tuple[int, str], ...]) -> None:
    """Where a field is read.  One of an embedded struct is in a message of its own, but ends up beside it."""
    if not within:
        puts[field.number] = _put_of(field)
        return
    (number, _), rest = within[0], within[1:]
    if not number:
        return
    put = puts.get(number)
    if not isinstance(put, _Embedded):
        put = puts[number] = _Embedded()
    _plan(put.puts, field, rest)


class _Embedded:
    """A message whose fields belong to the object around it."""

    def __init__(self) -> None:
        self.puts: dict[int, _Put] = {}
        self._message = _message(self.puts)

    def __call__(self, into: Object, value: _Wire) -> None:
        self._message(_bytes(value), into)


def _put_of(field: Field) -> _Put:
    name, form = field.name, field.type.form
    if form == "map":
        return _put_entry(name, field.type)
    if form == "list" and not field.type.is_message:
        return _put_item(name, field.type)
    make = _make_of(field.type)
    keeps_zero = field.is_pointer or field.is_emitted_empty

    def put(into: Object, value: _Wire) -> None:
        made = make(value)
        if made is None or (not keeps_zero and not made):
            into.pop(name, None)
        else:
            into[name] = made

    return put


def _put_entry(name: str, type: Type) -> _Put:  # noqa: A002
    assert type.item is not None, f"{type.name} is a map of nothing"  # noqa: S101
    make = _make_of(type.item)
    empty: _Wire = 0 if type.item.form in ("int32", "int64", "bool") else b""

    def put(into: Object, value: _Wire) -> None:
        entry = _within(value)
        into.setdefault(name, {})[_text(entry.get(1, b""))] = make(entry.get(2, empty))

    return put


def _put_item(name: str, type: Type) -> _Put:  # noqa: A002
    assert type.item is not None, f"{type.name} is a list of nothing"  # noqa: S101
    make = _make_of(type.item)
    is_number = type.item.form in ("int32", "int64", "bool")

    def put(into: Object, value: _Wire) -> None:
        items = into.setdefault(name, [])
        if is_number and isinstance(value, bytes):  # packed
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                items.append(make(one))
        else:
            items.append(make(value))

    return put


def _make_of(type: Type) -> _Make:  # noqa: A002
    """What makes a value of a type."""
    if type.form == "struct":
        message = _message_of(type)
        return lambda value: _made(message, value)
    if type.form == "list":  # a message of its own
        return lambda value: [_text(one) for number, _, one in _fields(_bytes(value)) if number == 1]
    if type.form == "any":
        return _raw if type.item is None else _schema_or(type)
    return _SCALARS[type.form]


def _made(message: _Message, value: _Wire) -> Object:
    into: Object = {}
    message(_bytes(value), into)
    return into


def _schema_or(type: Type) -> _Make:  # noqa: A002
    """A JSON schema, or something simpler: the order of the two in the message differs."""
    assert type.item is not None, f"{type.name} has no schema"  # noqa: S101
    message = _message_of(type.item)

    def schema_or_bool(value: _Wire) -> Any:
        said = _within(value)
        return _made(message, said[2]) if 2 in said else _number(said.get(1, 0)) != 0

    def schema_or_list(value: _Wire) -> Any:
        fields = _fields(_bytes(value))
        for number, _, one in fields:
            if number == 1:
                return _made(message, one)
        texts = type.name.endswith("StringArray")
        return [_text(one) if texts else _made(message, one) for number, _, one in fields if number == 2]

    return schema_or_bool if type.name.endswith("Bool") else schema_or_list
