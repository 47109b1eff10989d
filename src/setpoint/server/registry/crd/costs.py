"""How much a rule may cost at most, judged by its text and by the sizes that its schema allows.

Kubernetes refuses a definition whose rules could take too long on the largest object that fits into a
request, and so do we, with its numbers: a look costs 1, a step over a text 0.1, a match of a pattern the
product of text and pattern, a loop as often as its list may be long.  What the schema does not bound
(``maxItems``, ``maxProperties``, ``maxLength``) is as large as a request can make it.

``estimated`` is the cost of one evaluation; ``Budget`` adds up those of a schema, each as often as its place
can occur, and says which are too much.  Pure.  Fed by ``cel.py`` with what ``checking.py`` found out, and by
``schema_rules.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from setpoint.server.registry.crd.expressions import (
    Call,
    Constant,
    Entries,
    Items,
    Loop,
    Name,
    Node,
    Select,
)
from setpoint.server.registry.crd.schemas import EMBEDDED, INT_OR_STRING, Schema, extra, items, properties
from setpoint.server.registry.crd.signatures import Overload, Type
from setpoint.server.statuses import FieldError

RULE_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000
_REQUEST: Final = 3 * 2**20  # bytes
_ENDLESS: Final = 2**64 - 1
_TEXT: Final = 0.1  # of a step over a text
_PATTERN: Final = 0.25  # of a character of a pattern
_LIST, _MAP, _MESSAGE = 10, 30, 40  # to make one
_FORMAT_NAME: Final = 64
_FORMAT: Final = 128  # characters of what a format of texts is checked by
_SHOWN: Final = 4  # rules that are named where all together are too much


# ── What a schema allows ────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Bounds:
    """Of the values at one place of a schema."""

    most: int = 0  # characters of a text, items of a list, entries of a map
    least: int = 1  # bytes of the shortest JSON
    fields: dict[str, Bounds] = field(default_factory=dict)
    each: Bounds | None = None  # of items, or of a map's values
    key: Bounds | None = None

    def below(self, step: str) -> Bounds | None:
        if step in ("@items", "@values"):
            return self.each
        return self.key if step == "@keys" else self.fields.get(step)


_STRING_BYTES: Final = 2
_FORMATS: Final = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}  # the most, the least
_META_SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}


def bounds(schema: Schema, name: Callable[[str], str | None], *, is_root: bool) -> Bounds | None:
    """None for what rules cannot see; ``name`` is how a rule names a field."""
    if schema.get(INT_OR_STRING):
        return Bounds(_longest(schema), 1)
    match schema.get("type"):
        case "array":
            inner = items(schema)
            each = None if inner is None else bounds(inner, name, is_root=bool(inner.get(EMBEDDED)))
            if each is None:
                return None
            return Bounds(_bound(schema, "maxItems", (_REQUEST - 2) // (each.least + 1)), 2, each=each)
        case "object":
            return _object_bounds(schema, name, is_root=is_root)
        case "string":
            if (shape := schema.get("format") or "") in _FORMATS:
                return Bounds(*_FORMATS[shape])
            if shape == "byte":
                return Bounds(_bound(schema, "maxLength", _REQUEST - 2), _STRING_BYTES)
            return Bounds(_longest(schema), _STRING_BYTES)
        case "boolean":
            return Bounds(0, 4)
        case "number" | "integer":
            return Bounds(0, 1)
    return None


def _object_bounds(schema: Schema, name: Callable[[str], str | None], *, is_root: bool) -> Bounds | None:
    if (rest := extra(schema)) is not None:
        each = bounds(rest, name, is_root=bool(rest.get(EMBEDDED)))
        if each is None:
            return None
        most = _bound(schema, "maxProperties", (_REQUEST - 2) // (each.least + 6))
        return Bounds(most, 2, each=each, key=Bounds(0, _STRING_BYTES))
    known = properties(schema)
    if is_root:
        text: Schema = {"type": "string"}
        known = {**known, "kind": text, "apiVersion": text, "metadata": _META_SCHEMA}
    made = Bounds(0, 2)
    required = schema.get("required") or ()
    for real, one in known.items():
        below = bounds(one, name, is_root=bool(one.get(EMBEDDED)))
        if below is None:
            continue
        if (shown := name(real)) is not None:
            made.fields[shown] = below
        if real in required and one.get("default") is None:
            made.least += len(real.encode()) + below.least + 4
    return made


def _bound(schema: Schema, word: str, otherwise: int) -> int:
    said = schema.get(word)
    return otherwise if said is None else max(0, int(said))


def _longest(schema: Schema) -> int:
    """Bytes of a text; a character is up to four."""
    if schema.get("maxLength") is not None:
        return _bound(schema, "maxLength", 0) * 4
    values = schema.get("enum") or ()
    if values and not schema.get(INT_OR_STRING):
        return max((len(one.encode()) for one in values if isinstance(one, str)), default=0)
    return _REQUEST - 2


def occurrences(least: int) -> int:
    """How often a value of so many bytes fits into a request."""
    return _REQUEST // (least + 1)


def multiplies(schema: Schema) -> int | None:
    """How many values lie below one of this schema, each place counted once; None if that has no bound."""
    match schema.get("type"):
        case "object" if schema.get("additionalProperties") is not None:
            return None if schema.get("maxProperties") is None else _bound(schema, "maxProperties", 0)
        case "array":
            return None if schema.get("maxItems") is None else _bound(schema, "maxItems", 0)
    return 1


# ── What an expression costs ────────────────────────────────────────────────────────────────────────


class Resolved(NamedTuple):
    """A call, as the checker understood it."""

    function: str
    target: Node | None
    overloads: tuple[Overload, ...]


class Facts(NamedTuple):
    """What the checker knows of an expression's nodes, by their ids."""

    types: Mapping[int, Type]
    calls: Mapping[int, Resolved]
    loops: Mapping[int, Node]  # what calls of macros that the parser does not know became


class Size(NamedTuple):
    least: int
    most: int

    def __or__(self, other: object) -> Size:
        assert isinstance(other, Size)  # noqa: S101
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: Size) -> Size:
        return Size(_capped(self.least + other.least), _capped(self.most + other.most))

    def times(self, other: Size) -> Size:
        return Size(_capped(self.least * other.least), _capped(self.most * other.most))


_UNKNOWN: Final = Size(0, _ENDLESS)
_ONE: Final = Size(1, 1)


class _Entry(NamedTuple):
    """The sizes of what is in a list or map."""

    is_list: bool
    key: Size
    value: Size


def _joined(a: _Entry | None, b: _Entry | None) -> _Entry | None:
    if a is None or b is None:
        return None
    return _Entry(a.is_list, a.key | b.key, a.value | b.value)


class _Path(Sequence[str]):
    """A place below a variable: ``self``, ``ports``, ``@items``, ``name``.

    It is lengthened as a slice of Go is, whose room doubles: two that grew out of one share what they added,
    and the later one wins.  cel-go finds the sizes of inner loops so (``o.list.all(i, i == o.name)`` takes
    the longest name for the number of items), and who wants its numbers has to follow.
    """

    __slots__ = ("_length", "_room", "_steps")

    def __init__(self, steps: list[str], length: int, room: int) -> None:
        self._steps, self._length, self._room = steps, length, room

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: Any) -> Any:
        return self._steps[: self._length][place]

    def plus(self, step: str) -> _Path:
        if self._length < self._room:
            self._steps[self._length :] = [step]
            return _Path(self._steps, self._length + 1, self._room)
        return _Path([*self._steps[: self._length], step], self._length + 1, max(1, 2 * self._room))


_NOWHERE: Final = _Path([], 0, 0)


class _Local(NamedTuple):
    """A variable of a loop."""

    path: _Path
    size: Size | None
    entry: _Entry | None


class _Value(NamedTuple):
    """An operand of a call."""

    node: Node
    type: Type
    path: _Path
    size: Size | None
    cost: int


class _Cost(NamedTuple):
    """Of a call, without its operands unless it says so; and how large its result is, where that is known."""

    most: int
    size: Size | None = None


def _capped(value: int) -> int:
    return min(value, _ENDLESS)


def _share(size: int, factor: float) -> int:
    return _capped(math.ceil(float(size) * factor))


def estimated(root: Node, facts: Facts, bound: Bounds) -> int:
    """The most that one evaluation costs; ``bound`` is of what ``self`` may be."""
    return _Estimator(facts, bound).cost(root)


class _Estimator:
    def __init__(self, facts: Facts, bound: Bounds) -> None:
        self._facts = facts
        self._bound = bound
        self._paths: dict[int, _Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> int:
        match node:
            case Constant():
                return 0
            case Name():
                local = self._local(node.name)
                self._paths[node.id] = _NOWHERE.plus(node.name) if local is None else local.path
                return 1
            case Select():
                return self._select(node)
            case Call():
                expanded = self._facts.loops.get(node.id)
                return self._call(node) if expanded is None else self.cost(expanded)
            case Items():
                return self._items(node)
            case Entries():
                return self._map(node)
        return self._bind(node) if _is_bind(node) else self._loop(node)

    def _select(self, node: Select) -> int:
        if self._type(node).name == "type":  # a name with dots
            self._paths[node.id] = _NOWHERE.plus(node.field)
            return 1
        cost = self.cost(node.operand)
        if node.is_test:
            return cost
        kind = self._type(node.operand).name
        is_plain = kind in _WITHOUT_FIELDS
        self._paths[node.id] = self._path(node.operand).plus(node.field)
        return cost if is_plain else _capped(cost + 1)

    def _items(self, node: Items) -> int:
        cost, size = 0, Size(_ENDLESS if node.elements else 0, 0)
        for one in node.elements:
            cost += self.cost(one)
            size |= self._size_or_unknown(one)
        self._entries[node.id] = _Entry(True, _ONE, size)
        return _capped(cost + _LIST)

    def _map(self, node: Entries) -> int:
        cost = 0
        key = value = Size(_ENDLESS if node.entries else 0, 0)
        for one in node.entries:
            cost += (0 if isinstance(one.key, str) else self.cost(one.key)) + self.cost(one.value)
            key |= _UNKNOWN if isinstance(one.key, str) else self._size_or_unknown(one.key)
            value |= self._size_or_unknown(one.value)
        if node.message:
            return _capped(cost + _MESSAGE)
        self._entries[node.id] = _Entry(False, key, value)
        return _capped(cost + _MAP)

    # ── Loops ───────────────────────────────────────────────────────────────────────────────────────

    def _loop(self, node: Loop) -> int:
        cost = self.cost(node.over) + self.cost(node.start)
        so_far = _Local(self._path(node.start), self._size(node.start), self._entry(node.start))
        with self._having({node.result_variable: so_far}):
            with self._having(self._iterated(node)):
                step = self.cost(node.condition) + self.cost(node.step)
            cost += self.cost(node.result)
        often = self._size_or_unknown(node.over)
        if isinstance(node.start, Constant):
            self._keep(node, self._size(node.start))
        elif isinstance(node.start, Items | Entries):
            self._keep(node, often)
            if (entry := self._entry(node.step)) is not None:
                self._entries[node.id] = entry
        return _capped(cost + often.most * _capped(step))

    def _iterated(self, node: Loop) -> dict[str, _Local]:
        entry, path = self._entry(node.over), self._path(node.over)
        is_list = entry.is_list if entry is not None else self._type(node.over).name == "list"
        key_size, value_size = (None, None) if entry is None else (entry.key, entry.value)
        if not node.second:
            step, size = ("@items", value_size) if is_list else ("@keys", key_size)
            return {node.variable: _Local(path.plus(step), size, None)}
        return {
            node.variable: _Local(path.plus("@indices" if is_list else "@keys"), key_size, None),
            node.second: _Local(path.plus("@items" if is_list else "@values"), value_size, None),
        }

    def _bind(self, node: Loop) -> int:
        cost = self.cost(node.over) + self.cost(node.start)
        named = _Local(self._path(node.start), self._size(node.start), self._entry(node.start))
        with self._having({node.result_variable: named}):
            cost += self.cost(node.result)
            self._copy(node, node.result)
        return _capped(cost)

    @contextmanager
    def _having(self, names: dict[str, _Local]) -> Iterator[None]:
        for name, one in names.items():
            self._locals.setdefault(name, []).append(one)
        yield
        for name in names:
            self._locals[name].pop()

    # ── Calls ───────────────────────────────────────────────────────────────────────────────────────

    def _call(self, node: Call) -> int:
        if node.function == "dyn" and node.target is None:
            cost = 1 + self.cost(node.arguments[0])
            self._copy(node, node.arguments[0])
            return _capped(cost)
        resolved = self._facts.calls.get(node.id)
        arguments = [self._value(one) for one in node.arguments]
        if resolved is None or not resolved.overloads:
            return 0
        target = self._value(resolved.target) if resolved.target is not None else None
        most, size = 0, None
        for one in resolved.overloads:
            found = self._overload(node, resolved.function, one, target, arguments)
            most = max(most, found.most)
            if found.size is not None:
                size = found.size if size is None else size | found.size
            if resolved.function == "_[_]" and one.arguments[0].name in ("list", "map"):
                entry = self._entry(node.arguments[0])
                size = None if entry is None else entry.value
                step = "@items" if one.arguments[0].name == "list" else "@values"
                self._paths[node.id] = self._path(node.arguments[0]).plus(step)
            if size is None:
                size = self._size(node)
        self._keep(node, size)
        return _capped(most + (target.cost if target is not None else 0))

    def _overload(
        self, node: Call, function: str, overload: Overload, target: _Value | None, arguments: list[_Value]
    ) -> _Cost:
        """With the cost of the arguments, and without that of the target."""
        costs = [one.cost for one in arguments]
        if function in ("_&&_", "_||_"):
            return _Cost(_capped(sum(costs)))
        if function == "_?_:_":
            _, then, otherwise = arguments
            entry = _joined(self._entry(then.node), self._entry(otherwise.node))
            if entry is not None:
                self._entries[node.id] = entry
            size = (then.size or _UNKNOWN) | (otherwise.size or _UNKNOWN)
            return _Cost(_capped(costs[0] + max(costs[1:])), size)
        if function == "_+_" and overload.arguments[0].name == "list":
            entry = _joined(self._entry(node.arguments[0]), self._entry(node.arguments[1]))
            if entry is not None:
                self._entries[node.id] = entry
        found = _own_cost(_Called(function, overload, target, arguments, self._element))
        return _Cost(_capped(found.most + sum(costs)), found.size)

    def _value(self, node: Node) -> _Value:
        cost = self.cost(node)
        path = self._path(node)
        if path and path[0] in ("@result", "__result__"):
            path = _NOWHERE
        return _Value(node, self._type(node), path, self._size(node), cost)

    def _element(self, value: _Value) -> tuple[Type, Size] | None:
        """What is in a list; None for what is no list."""
        if not value.type.of:
            return None
        path = [*value.path, "@items"] if value.path else []
        return value.type.of[0], self._declared(path) or _UNKNOWN

    # ── Sizes ───────────────────────────────────────────────────────────────────────────────────────

    def _local(self, name: str) -> _Local | None:
        found = self._locals.get(name)
        return found[-1] if found else None

    def _type(self, node: Node) -> Type:
        return self._facts.types.get(node.id, Type("dyn"))

    def _path(self, node: Node) -> _Path:
        if isinstance(node, Name) and (local := self._local(node.name)) is not None:
            return local.path
        return self._paths.get(node.id, _NOWHERE)

    def _declared(self, path: Sequence[str]) -> Size | None:
        """What the schema says of a place, which begins at a variable."""
        if not path:
            return None
        place: Bounds | None = self._bound
        for step in path[1:]:
            place = None if place is None else place.below(step)
        return None if place is None else Size(0, place.most)

    def _size(self, node: Node) -> Size | None:
        if node.id in self._sizes:
            return self._sizes[node.id]
        if (said := _literal_size(node)) is not None:
            return Size(said, said)
        if (declared := self._declared(self._path(node))) is not None:
            self._sizes[node.id] = declared
            return declared
        if _is_scalar(self._type(node)):
            return _ONE
        local = self._local(node.name) if isinstance(node, Name) else None
        return None if local is None else local.size

    def _size_or_unknown(self, node: Node) -> Size:
        return self._size(node) or _UNKNOWN

    def _entry(self, node: Node) -> _Entry | None:
        if node.id in self._entries:
            return self._entries[node.id]
        local = self._local(node.name) if isinstance(node, Name) else None
        return None if local is None else local.entry

    def _keep(self, node: Node, size: Size | None) -> None:
        if size is not None:
            self._sizes[node.id] = size

    def _copy(self, node: Node, other: Node) -> None:
        self._keep(node, self._size(other))
        if (entry := self._entry(other)) is not None:
            self._entries[node.id] = entry


_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_WITHOUT_FIELDS: Final = frozenset({"dyn", "optional", "list", "string", "bytes", "null", "type", *_SCALARS})


def _is_scalar(type_: Type) -> bool:
    return _is_scalar(type_.of[0]) if type_.name == "optional" and type_.of else type_.name in _SCALARS


def _literal_size(node: Node) -> int | None:
    match node:
        case Constant():
            return len(node.value) if node.kind in ("string", "bytes") else 1
        case Items():
            return len(node.elements)
        case Entries() if not node.message:
            return len(node.entries)
    return None


def _is_bind(node: Loop) -> bool:
    is_empty = isinstance(node.over, Items) and not node.over.elements
    is_never = isinstance(node.condition, Constant) and node.condition.value is False
    return is_empty and is_never


# ── What each function costs ────────────────────────────────────────────────────────────────────────


class _Called(NamedTuple):
    function: str
    overload: Overload
    target: _Value | None
    arguments: list[_Value]
    element: Callable[[_Value], tuple[Type, Size] | None]

    def size(self, place: int) -> Size:
        return self.arguments[place].size or _UNKNOWN

    @property
    def own(self) -> Size:
        """Of what it is called on."""
        return _UNKNOWN if self.target is None else self.target.size or _UNKNOWN

    @property
    def first(self) -> Size:
        """Of what it is called on, or else of its first argument."""
        return self.size(0) if self.target is None else self.own


def _own_cost(call: _Called) -> _Cost:
    """Without that of the operands."""
    found = _COSTS.get(call.function)
    return _Cost(1) if found is None else found(call)


def _scan(call: _Called) -> _Cost:
    return _Cost(_share(call.size(0).most, _TEXT))


def _scan_both_ways(call: _Called) -> _Cost:
    return _Cost(_share(call.size(0).most, 2 * _TEXT))


def _changed_text(call: _Called) -> _Cost:
    return _Cost(_share(call.first.most, _TEXT), call.first)


def _compared(call: _Called) -> _Cost:
    """Two values, as long as the shorter one; numbers are compared at once."""
    if call.function not in ("_==_", "_!=_") and call.overload.arguments[0].name not in ("string", "bytes"):
        return _Cost(1)
    a, b = call.arguments[0].type, call.arguments[1].type
    if call.function == "_==_" and a == b and a.name in _AT_ONCE:
        return _Cost(1)
    if call.function == "_==_" and a == b and a.name == "kubernetes.NamedFormat":
        return _Cost(_share(_FORMAT_NAME, _TEXT))
    if call.function == "_==_" and a == b and a.name == "kubernetes.URL":
        return _Cost(_share((call.arguments[1].size or _ONE).most, _TEXT))
    return _Cost(_share(min(call.size(0).most, call.size(1).most), _TEXT))


_AT_ONCE: Final = frozenset({"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"})


def _sum(call: _Called) -> _Cost:
    kind = call.overload.arguments[0].name
    if kind not in ("string", "bytes", "list"):
        return _Cost(1)
    size = call.size(0).plus(call.size(1))
    return _Cost(1 if kind == "list" else _share(size.most, _TEXT), size)


def _contained(call: _Called) -> _Cost:
    return _Cost(call.size(1).most if call.overload.arguments[1].name == "list" else 1)


def _matched(call: _Called) -> _Cost:
    text, pattern = (call.own, call.size(0)) if call.target is not None else (call.size(0), call.size(1))
    return _Cost(_capped(_share(_capped(text.most + 1), _TEXT) * _share(pattern.most, _PATTERN)))


def _found(call: _Called) -> _Cost:
    return _Cost(_matched(call).most, Size(0, call.own.most))


def _searched(call: _Called) -> _Cost:
    return _Cost(_capped(_share(call.own.most, _TEXT) * _share(call.size(0).most, _TEXT)))


def _formatted(call: _Called) -> _Cost:
    return _Cost(_share(call.own.most, _TEXT))


def _to_bytes(call: _Called) -> _Cost:
    if call.overload.arguments[0].name != "string":
        return _Cost(1)
    size = call.size(0)
    return _Cost(_share(size.most, _TEXT), Size(size.least, _capped(size.most * 4)))


def _to_string(call: _Called) -> _Cost:
    if call.overload.arguments[0].name != "bytes":
        return _Cost(1)
    size = call.size(0)
    return _Cost(_share(size.most, _TEXT), Size(size.least // 4, size.most))


def _quoted(call: _Called) -> _Cost:
    size = call.size(0)
    return _Cost(_share(size.most, _TEXT), Size(size.least + 2, _capped(size.most * 2 + 2)))


def _over_items(call: _Called) -> _Cost:
    """Each item once, and every character where these are texts; a text, character by character."""
    element = None if call.target is None else call.element(call.target)
    if element is None:
        return _Cost(_share(call.own.most, _TEXT))
    type_, size = element
    each = 1 + _share(size.most, _TEXT) if type_.name in ("string", "bytes") else 1
    return _Cost(_capped(call.own.most * each))


def _replaced(call: _Called) -> _Cost:
    text, old, new = call.own, call.size(0), call.size(1)
    if old.least == 0:  # nothing is replaced: between all characters
        most = _capped(text.most + 1) * new.most + text.most
    elif new.most <= old.least:
        most = text.most
    else:
        most = _parts(text.most, old.least) * new.most
    if old.most == 0:
        least = _capped(text.least + 1) * new.least + text.least
    elif old.most <= new.least:
        least = text.least
    else:
        least = _parts(text.least, old.most) * new.least
    return _Cost(_share(text.most, 2 * _TEXT), Size(_capped(least), _capped(most)))


def _parts(size: int, part: int) -> int:
    return math.ceil(size / part)


def _split(call: _Called) -> _Cost:
    most = call.own.most
    if len(call.arguments) > 1 and isinstance(limit := call.arguments[1].node, Constant):
        most = limit.value % 2**64 if limit.kind == "int" else most
    return _Cost(_share(call.own.most, 2 * _TEXT), Size(0, most))


def _join(call: _Called) -> _Cost:
    element = None if call.target is None else call.element(call.target)
    size = Size(0, 0) if element is None else call.own.times(element[1])
    if call.arguments:
        between = Size(max(0, call.own.least - 1), max(0, call.own.most - 1))
        size = size.plus(call.size(0).times(between))
    return _Cost(_share(size.most, _TEXT), size)


def _address(call: _Called) -> _Cost:
    return _Cost(1) if call.target is not None else _scan(call)


def _in_network(call: _Called) -> _Cost:
    """Addresses have up to 16 bytes, which are looked at twice; a text is read first."""
    cost = _share(32, _TEXT)
    if call.function == "containsCIDR":
        cost += _share(16, _TEXT) + 1
    if call.overload.arguments[0].name == "string":
        cost += _share(call.size(0).most, _TEXT)
    return _Cost(_capped(cost))


def _made_list(factor: float, size: Size) -> _Cost:
    return _Cost(_capped(_share(size.most, factor) + 1 + _LIST), size)


def _slice(call: _Called) -> _Cost:
    start, end = _number(call.arguments[0], 0), _number(call.arguments[1], call.own.most)
    size = (end - start) % 2**64
    return _made_list(1, Size(size, size))


def _range(call: _Called) -> _Cost:
    size = _number(call.arguments[0], _ENDLESS)
    return _made_list(1, Size(size, size))


def _flatten(call: _Called) -> _Cost:
    depth = _number(call.arguments[0], _ENDLESS) if call.arguments else 1
    return _made_list(float(depth), call.own)


def _reverse(call: _Called) -> _Cost:
    return _made_list(1, call.own)


def _distinct(call: _Called) -> _Cost:
    return _made_list(2, call.own.times(call.own))


def _sort(call: _Called) -> _Cost:
    element = None if call.target is None else call.element(call.target)
    is_text = element is not None and element[0].name in ("string", "bytes")
    return _made_list(2 + _TEXT if is_text else 2, call.own.times(call.own))


def _sort_by(call: _Called) -> _Cost:
    keys = call.arguments[0]
    element = call.element(keys)
    is_text = element is not None and element[0].name in ("string", "bytes")
    return _made_list(2 + _TEXT if is_text else 2, call.size(0).times(call.size(0)))


def _validated(call: _Called) -> _Cost:
    """A format's own pattern is not known: as if it were so long."""
    return _Cost(_share(_share(call.size(0).most, _TEXT), _FORMAT * _PATTERN))


def _number(value: _Value, otherwise: int) -> int:
    node = value.node
    return max(0, node.value) if isinstance(node, Constant) and node.kind == "int" else otherwise


def _of_sets(factor: float) -> Callable[[_Called], _Cost]:
    def cost(call: _Called) -> _Cost:
        return _Cost(_capped(_share(call.size(0).times(call.size(1)).most, factor) + 1))

    return cost


_COSTS: Final[dict[str, Callable[[_Called], _Cost]]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_items),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _changed_text),
    **dict.fromkeys(("find", "findAll"), _found),
    **dict.fromkeys(("startsWith", "endsWith"), _scan),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _scan),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _scan),
    **dict.fromkeys(("containsIP", "containsCIDR"), _in_network),
    "_+_": _sum,
    "@in": _contained,
    "matches": _matched,
    "contains": _searched,
    "format": _formatted,
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quoted,
    "replace": _replaced,
    "split": _split,
    "join": _join,
    "ip": _address,
    "ip.isCanonical": _scan_both_ways,
    "slice": _slice,
    "lists.range": _range,
    "flatten": _flatten,
    "reverse": _reverse,
    "distinct": _distinct,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_by,
    "validate": _validated,
    "sets.contains": _of_sets(1),
    "sets.intersects": _of_sets(1),
    "sets.equivalent": _of_sets(2),
}  # every other one costs 1


# ── All rules of a schema ───────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Budget:
    """What the rules of one schema may cost together."""

    total: int = 0
    dear: list[tuple[int, str]] = field(default_factory=list)

    def take(self, cost: int, path: str) -> None:
        self.total = _capped(self.total + cost)
        if cost >= SCHEMA_LIMIT // 100:
            self.dear.append((cost, path))

    def errors(self, path: str) -> list[FieldError]:
        """What is said of the schema at ``path``, and of the rules that make most of it."""
        if self.total <= SCHEMA_LIMIT:
            return []
        told = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        dearest = sorted(self.dear, key=lambda one: -one[0])[:_SHOWN]
        whole = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [
            *(FieldError("forbidden", one, told) for _, one in dearest),
            FieldError("forbidden", path, exceeding(whole, self.total, SCHEMA_LIMIT)),
        ]


def exceeding(what: str, cost: int, limit: int) -> str:
    """How far a cost is beyond its limit."""
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, "
        "maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
