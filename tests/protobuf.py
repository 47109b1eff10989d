"""Reads protobuf without knowing the messages: enough to see whether two say the same."""

from __future__ import annotations

from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field of a message: its number, and its value as it stands there."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                number, at = _varint(data, at)
                yield key >> 3, number
            case 1:
                yield key >> 3, data[at : at + 8]
                at += 8
            case 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise ValueError("a field ends after its message")
                yield key >> 3, data[at : at + length]
                at += length
            case other:
                raise ValueError(f"a field of wire type {other}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def entries(data: bytes, number: int) -> dict[str, bytes]:
    """The named entries of a map, which are in the field of this number."""
    found = {}
    for field, value in fields(data):
        if field == number and isinstance(value, bytes):
            entry = dict(fields(value))
            name, held = entry[1], entry.get(2, b"")
            assert isinstance(name, bytes)
            assert isinstance(held, bytes)
            found[name.decode()] = held
    return found
