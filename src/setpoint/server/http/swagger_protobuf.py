"""The document of ``/openapi/v2`` as protobuf, the one form of it that kubectl and client-go take.

The messages are those of gnostic's ``openapi.v2``: a table of fields for each, in which a map becomes a list
of named entries, and an extension (``x-kubernetes-…``) a piece of YAML.

Pure.  Used by ``openapi.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

_Write = Callable[[Any], bytes]


def written(document: Mapping[str, Any]) -> bytes:
    return _message(_DOCUMENT, document)


# ── The wire ────────────────────────────────────────────────────────────────────────────────────────

_VARINT: Final = 0
_EIGHT: Final = 1
_BYTES: Final = 2


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _field(number: int, value: bytes) -> bytes:
    """One that has a length: text, bytes or a message."""
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


class _Number:
    """How numbers are written, which have no length."""

    def __init__(self, kind: int, write: _Write) -> None:
        self.kind = kind
        self.write = write


_BOOL: Final = _Number(_VARINT, lambda value: _varint(1 if value else 0))
_INT: Final = _Number(_VARINT, lambda value: _varint(int(value) & 2**64 - 1))
_DOUBLE: Final = _Number(_EIGHT, lambda value: struct.pack("<d", float(value)))


def _text(value: Any) -> bytes:
    return str(value).encode()


class _Each:
    """A list: the field comes once for each."""

    def __init__(self, write: _Write) -> None:
        self.write = write


_Fields = Mapping[str, tuple[int, "_Write | _Number | _Each"]]


class _Message:
    """The fields of a message, by their names in JSON; ``extensions`` is the field of all others."""

    def __init__(self, fields: _Fields, extensions: int = 0) -> None:
        self.fields = fields
        self.extensions = extensions


def _message(told: _Message, value: Mapping[str, Any]) -> bytes:
    """Its fields by number, as Go writes them; what is empty is left out."""
    pieces: list[tuple[int, bytes]] = []
    for name, one in value.items():
        known = told.fields.get(name)
        if known is None:
            if told.extensions and name.startswith("x-"):
                pieces.append((told.extensions, _field(told.extensions, _named(name, _any(one)))))
            continue
        number, write = known
        if isinstance(write, _Number):
            if one:
                pieces.append((number, _varint(number << 3 | write.kind) + write.write(one)))
        elif isinstance(write, _Each):
            pieces += ((number, _field(number, write.write(each))) for each in one)
        elif one != "":
            pieces.append((number, _field(number, write(one))))
    return b"".join(piece for _, piece in sorted(pieces, key=lambda piece: piece[0]))


def _of(told: _Message) -> _Write:
    return lambda value: _message(told, value)


def _named(name: str, value: bytes) -> bytes:
    return _field(1, name.encode()) + _field(2, value)


def _map(number: int, write: _Write) -> _Write:
    """A message that holds nothing but named entries."""
    return lambda value: b"".join(_field(number, _named(name, write(one))) for name, one in value.items())


def _texts(value: Any) -> bytes:
    """A message that holds nothing but texts: one, or several."""
    return b"".join(_field(1, _text(one)) for one in (value if isinstance(value, list) else [value]))


def _any(value: Any) -> bytes:
    """Whatever it is, in YAML, of which JSON is a part."""
    return _field(2, msgspec.json.encode(value) + b"\n")


# ── The messages ────────────────────────────────────────────────────────────────────────────────────


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(_SCHEMA, value)


def _additional(value: Any) -> bytes:
    if isinstance(value, dict):
        return _field(1, _schema(value))
    return _varint(2 << 3 | _VARINT) + _varint(1 if value else 0)


def _items(value: Any) -> bytes:
    return b"".join(_field(1, _schema(one)) for one in (value if isinstance(value, list) else [value]))


_EXTERNAL: Final = _Message({"description": (1, _text), "url": (2, _text)}, 3)
_SCHEMA: Final = _Message(
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "title": (3, _text),
        "description": (4, _text),
        "default": (5, _any),
        "multipleOf": (6, _DOUBLE),
        "maximum": (7, _DOUBLE),
        "exclusiveMaximum": (8, _BOOL),
        "minimum": (9, _DOUBLE),
        "exclusiveMinimum": (10, _BOOL),
        "maxLength": (11, _INT),
        "minLength": (12, _INT),
        "pattern": (13, _text),
        "maxItems": (14, _INT),
        "minItems": (15, _INT),
        "uniqueItems": (16, _BOOL),
        "maxProperties": (17, _INT),
        "minProperties": (18, _INT),
        "required": (19, _Each(_text)),
        "enum": (20, _Each(_any)),
        "additionalProperties": (21, _additional),
        "type": (22, _texts),
        "items": (23, _items),
        "properties": (25, _map(1, _schema)),
        "externalDocs": (29, _of(_EXTERNAL)),
        "example": (30, _any),
    },
    31,
)
_REFERENCE: Final = _Message({"$ref": (1, _text), "description": (2, _text)})
_BODY: Final = _Message(
    {
        "description": (1, _text),
        "name": (2, _text),
        "in": (3, _text),
        "required": (4, _BOOL),
        "schema": (5, _schema),
    },
    6,
)
_IN_QUERY: Final = _Message(
    {
        "required": (1, _BOOL),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (6, _text),
        "format": (7, _text),
        "uniqueItems": (20, _BOOL),
    }
)
_IN_PATH: Final = _Message(
    {
        "required": (1, _BOOL),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (5, _text),
        "format": (6, _text),
        "uniqueItems": (19, _BOOL),
    }
)


def _parameter(value: Mapping[str, Any]) -> bytes:
    match value["in"]:
        case "body":
            return _field(1, _message(_BODY, value))
        case "path":
            return _field(2, _field(4, _message(_IN_PATH, value)))
        case _:
            return _field(2, _field(3, _message(_IN_QUERY, value)))


def _parameter_or_reference(value: Mapping[str, Any]) -> bytes:
    if "$ref" in value:
        return _field(2, _message(_REFERENCE, value))
    return _field(1, _parameter(value))


_RESPONSE: Final = _Message(
    {"description": (1, _text), "schema": (2, lambda value: _field(1, _schema(value)))}, 5
)
_OPERATION: Final = _Message(
    {
        "tags": (1, _Each(_text)),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _Each(_text)),
        "consumes": (7, _Each(_text)),
        "parameters": (8, _Each(_parameter_or_reference)),
        "responses": (9, _map(1, lambda value: _field(1, _message(_RESPONSE, value)))),
        "schemes": (10, _Each(_text)),
    },
    13,
)
_PATH: Final = _Message(
    {
        "get": (2, _of(_OPERATION)),
        "put": (3, _of(_OPERATION)),
        "post": (4, _of(_OPERATION)),
        "delete": (5, _of(_OPERATION)),
        "options": (6, _of(_OPERATION)),
        "head": (7, _of(_OPERATION)),
        "patch": (8, _of(_OPERATION)),
        "parameters": (9, _Each(_parameter_or_reference)),
    },
    10,
)
_INFO: Final = _Message({"title": (1, _text), "version": (2, _text), "description": (3, _text)})
_KEY: Final = _Message(
    {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}, 5
)
_DOCUMENT: Final = _Message(
    {
        "swagger": (1, _text),
        "info": (2, _of(_INFO)),
        "paths": (8, _map(2, _of(_PATH))),
        "definitions": (9, _map(1, _schema)),
        "parameters": (10, _map(1, _parameter)),
        "security": (12, _Each(_map(1, _texts))),
        "securityDefinitions": (13, _map(1, lambda value: _field(2, _message(_KEY, value)))),
    }
)
