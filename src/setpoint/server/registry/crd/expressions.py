"""CEL expressions as trees, read from the engine's parser.

The engine speaks protobuf (``cel.expr.ParsedExpr``), which ``read`` reads.  A tree is what ``checking.py``
judges by the schema's types, and what ``evaluating.py`` evaluates.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Constant:
    id: int
    kind: str  # null, bool, int, uint, double, string, bytes
    value: Any


@dataclass(slots=True)
class Name:
    id: int
    name: str


@dataclass(slots=True)
class Select:
    id: int
    operand: Node
    field: str
    is_test: bool = False  # has(operand.field)


@dataclass(slots=True)
class Call:
    id: int
    target: Node | None
    function: str
    arguments: list[Node]


@dataclass(slots=True)
class Items:
    id: int
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True)
class Entry:
    id: int
    key: Node | str  # a name, in a message
    value: Node
    is_optional: bool = False


@dataclass(slots=True)
class Entries:
    id: int
    message: str
    entries: list[Entry]


@dataclass(slots=True)
class Loop:
    """What a macro such as ``all`` becomes."""

    id: int
    variable: str
    second: str
    over: Node
    result_variable: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node = Constant | Name | Select | Call | Items | Entries | Loop


@dataclass(slots=True)
class Parsed:
    """A tree, and where in the text each node stands."""

    root: Node
    positions: dict[int, int] = field(default_factory=dict)


def inside(node: Node) -> Iterator[Node]:
    """What a node is made of."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.arguments
        case Items():
            yield from node.elements
        case Entries():
            for one in node.entries:
                if not isinstance(one.key, str):
                    yield one.key
                yield one.value
        case Loop():
            yield from (node.over, node.start, node.condition, node.step, node.result)


def messages(node: Node) -> Iterator[Entries]:
    """Those that have a type's name."""
    if isinstance(node, Entries) and node.message:
        yield node
    for one in inside(node):
        yield from messages(one)


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────


def read(data: bytes) -> Parsed:
    """From what the engine wrote."""
    message = _fields(_one(_fields(data), 2))
    info = _fields(_one(message, 3))
    positions = {}
    for entry in info.get(4, ()):
        pair = _fields(entry)
        positions[_number(pair, 1)] = _number(pair, 2)
    return Parsed(_node(_one(message, 2)), positions)


def _node(data: bytes) -> Node:
    message = _fields(data)
    number = _number(message, 2)
    if 3 in message:
        return _constant(number, _fields(message[3][0]))
    if 4 in message:
        return Name(number, _text(_fields(message[4][0]), 1))
    if 5 in message:
        inner = _fields(message[5][0])
        return Select(number, _node(_one(inner, 1)), _text(inner, 2), bool(_number(inner, 3)))
    if 6 in message:
        inner = _fields(message[6][0])
        target = _node(inner[1][0]) if 1 in inner else None
        return Call(number, target, _text(inner, 2), [_node(one) for one in inner.get(3, ())])
    if 7 in message:
        inner = _fields(message[7][0])
        optional = frozenset(_packed(inner.get(2, ())))
        return Items(number, [_node(one) for one in inner.get(1, ())], optional)
    if 8 in message:
        inner = _fields(message[8][0])
        return Entries(number, _text(inner, 1), [_entry(one) for one in inner.get(2, ())])
    inner = _fields(_one(message, 9))
    over, start, condition, step, result = (_node(_one(inner, place)) for place in (2, 4, 5, 6, 7))
    return Loop(
        number, _text(inner, 1), _text(inner, 8), over, _text(inner, 3), start, condition, step, result
    )


def _constant(number: int, message: dict[int, list[Any]]) -> Constant:
    if 2 in message:
        return Constant(number, "bool", bool(message[2][0]))
    if 3 in message:
        return Constant(number, "int", _signed(message[3][0]))
    if 4 in message:
        return Constant(number, "uint", message[4][0])
    if 5 in message:
        return Constant(number, "double", struct.unpack("<d", message[5][0])[0])
    if 6 in message:
        return Constant(number, "string", message[6][0].decode())
    if 7 in message:
        return Constant(number, "bytes", message[7][0])
    return Constant(number, "null", None)


def _entry(data: bytes) -> Entry:
    message = _fields(data)
    key: Node | str = _node(message[3][0]) if 3 in message else _text(message, 2)
    return Entry(_number(message, 1), key, _node(_one(message, 4)), bool(_number(message, 5)))


def _fields(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        form = tag & 7
        value: Any
        if form == 0:
            value, place = _varint(data, place)
        elif form == 1:
            value, place = data[place : place + 8], place + 8
        elif form == 2:
            size, place = _varint(data, place)
            value, place = data[place : place + size], place + size
        else:
            value, place = data[place : place + 4], place + 4
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _packed(values: list[Any] | tuple[Any, ...]) -> Iterator[int]:
    for one in values:
        if isinstance(one, int):
            yield one
            continue
        place = 0
        while place < len(one):
            value, place = _varint(one, place)
            yield value


def _one(message: dict[int, list[Any]], number: int) -> bytes:
    found = message.get(number)
    return found[-1] if found else b""


def _number(message: dict[int, list[Any]], number: int) -> int:
    found = message.get(number)
    return _signed(found[-1]) if found else 0


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _text(message: dict[int, list[Any]], number: int) -> str:
    return _one(message, number).decode()
