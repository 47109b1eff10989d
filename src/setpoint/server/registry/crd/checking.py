"""Whether a CEL expression makes sense on the values of a schema.

Every node of an expression gets the type that the schema gives it, as cel-go's checker would, with its texts.
The tree is rewritten where a field has an escaped name, and where a macro is not the engine's.

Pure.  Fed by ``cel.py`` with what ``expressions.py`` read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from setpoint.server.registry.crd.costs import Facts, Resolved
from setpoint.server.registry.crd.expressions import (
    Call,
    Constant,
    Entries,
    Entry,
    Items,
    Loop,
    Name,
    Node,
    Parsed,
    Select,
    inside,
)
from setpoint.server.registry.crd.formatting import TAKEN, BadFormat, Clause, clauses, wrong
from setpoint.server.registry.crd.patterns import BadPattern, compiled
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    Schema,
    extra,
    items,
    properties,
)
from setpoint.server.registry.crd.signatures import Overload, Type, overloads
from setpoint.server.registry.crd.values import read_duration, read_timestamp

DYN: Final = Type("dyn")
BOOL: Final = Type("bool")
STRING: Final = Type("string")
_NULLABLE: Final = frozenset({"null", "timestamp", "duration"})
_TYPE_NAMES: Final = {
    "int": Type("int"), "uint": Type("uint"), "double": Type("double"), "bool": BOOL, "string": STRING,
    "bytes": Type("bytes"), "list": Type("list", (DYN,)), "map": Type("map", (DYN, DYN)),
    "null_type": Type("null"), "type": Type("type", (DYN,)),
    "google.protobuf.Timestamp": Type("timestamp"), "google.protobuf.Duration": Type("duration"),
    "optional_type": Type("optional", (DYN,)), "net.IP": Type("net.IP"), "net.CIDR": Type("net.CIDR"),
}  # fmt: skip
_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ACCUMULATOR: Final = "@result"
_SORTED: Final = "@__sortBy_input__"
_QUANTIFIERS: Final = frozenset({"all", "exists", "existsOne", "exists_one"})
_DOUBLE: Final = frozenset({*_QUANTIFIERS, "transformList", "transformMap", "transformMapEntry"})
_META: Final[Schema] = {  # of metadata, what rules see
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}


class Issue(NamedTuple):
    position: int
    text: str


class Checked(NamedTuple):
    """An expression that makes sense."""

    root: Node  # for the engine
    type: Type
    uses_old: bool
    source: Node  # as it was written
    facts: Facts  # about its nodes


def escaped(name: str) -> str | None:
    """How an expression names a field; None if it cannot."""
    if not name or name[0].isdigit():
        return None
    if name in _RESERVED:
        return f"__{name}__"
    if re.fullmatch(r"[a-zA-Z0-9_./-]+", name) is None:
        return None
    return re.sub(r"__|[-./]", lambda found: _ESCAPES[found[0]], name)


# ── The types of a schema ───────────────────────────────────────────────────────────────────────────


class Objects:
    """The objects of a schema, by the names that their types have."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}
        self._fields: dict[str, dict[str, tuple[str, Schema, Type]]] = {}

    def type_of(self, schema: Schema, name: str, *, is_root: bool) -> Type | None:
        """The type of a value; None for what rules cannot see."""
        if schema.get(INT_OR_STRING):
            return DYN
        match schema.get("type"):
            case "array":
                inner = items(schema)
                below = (
                    None
                    if inner is None
                    else self.type_of(inner, f"{name}.@idx", is_root=bool(inner.get(EMBEDDED)))
                )
                return None if below is None else Type("list", (below,))
            case "object":
                rest = extra(schema)
                if rest is not None and not is_root:
                    below = self.type_of(rest, f"{name}.@elem", is_root=bool(rest.get(EMBEDDED)))
                    return None if below is None else Type("map", (STRING, below))
                self._schemas[name] = with_meta(schema) if is_root else schema
                return Type(name)
            case "string":
                formats = {
                    "byte": "bytes",
                    "duration": "duration",
                    "date": "timestamp",
                    "date-time": "timestamp",
                }
                return Type(formats.get(schema.get("format") or "", "string"))
            case "boolean":
                return BOOL
            case "number":
                return Type("double")
            case "integer":
                return Type("int")
        return None

    def is_object(self, type_: Type) -> bool:
        return type_.name in self._schemas

    def is_message(self, name: str) -> bool:
        """Whether an expression may make values of the type of this name: of none, here."""
        del name
        return False

    def schema(self, type_: Type) -> Schema:
        return self._schemas[type_.name]

    def field(self, type_: Type, name: str) -> tuple[str, Schema, Type] | None:
        """The real name, schema and type of an object's field."""
        if type_.name not in self._fields:
            fields = self._fields[type_.name] = {}
            for real, schema in properties(self._schemas[type_.name]).items():
                shown = escaped(real)
                below = self.type_of(schema, f"{type_.name}.{shown}", is_root=bool(schema.get(EMBEDDED)))
                if shown is not None and below is not None:
                    fields[shown] = (real, schema, below)
        known = self._fields[type_.name]
        if name not in known and name in _RESERVED:
            return known.get(f"__{name}__")  # where the parser takes it, there is no doubt what it means
        return known.get(name)


def with_meta(schema: Schema) -> Schema:
    """What every object has, whatever its schema says."""
    text: Schema = {"type": "string"}
    return {
        **schema,
        "properties": {**properties(schema), "kind": text, "apiVersion": text, "metadata": _META},
    }


# ── Checking ────────────────────────────────────────────────────────────────────────────────────────


class _BadArgument(BadFormat):
    def __init__(self, told: str, at: Node) -> None:
        super().__init__(told)
        self.at = at


_GO_NAMES: Final = {
    "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type",
    "optional": "optional_type",
}  # fmt: skip


@dataclass
class _Scope:
    """Names, innermost first; each with its type and the schema that its value comes from."""

    names: dict[str, tuple[Type, Schema | None]] = field(default_factory=dict)
    outer: _Scope | None = None

    def find(self, name: str) -> tuple[Type, Schema | None] | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


class Checker:
    """One expression.  ``issues`` are complete when ``check`` returns."""

    def __init__(
        self,
        parsed: Parsed,
        objects: Objects,
        names: dict[str, tuple[Type, Schema | None]],
        more: Mapping[str, tuple[Overload, ...]] = MappingProxyType({}),
    ) -> None:
        """``more`` are functions that rules of schemas do not have."""
        self._parsed = parsed
        self._more = more
        self._objects = objects
        self._bound: dict[str, Type] = {}
        self._fresh = 0
        self._next_id = 1_000_000
        self._at = 0  # where a macro stands that is expanded
        self._uses_old = False
        self._types: dict[int, Type] = {}
        self._calls: dict[int, Resolved] = {}
        self._loops: dict[int, Node] = {}
        self._globals = _Scope(names)
        self.issues: list[Issue] = []
        self._later: list[Issue] = []  # told only where the types are right

    def check(self) -> Checked:
        source = self._parsed.root
        root, type_, _ = self._node(source, self._globals)
        types = {number: self._closed(self._resolved(one)) for number, one in self._types.items()}
        if not self.issues:
            self._look_at_literal(root, types, is_exempt=False)
            self.issues += self._later
        facts = Facts(types, self._calls, self._loops)
        return Checked(root, self._resolved(type_), self._uses_old, source, facts)

    # Each returns the node for the engine, its type, and the schema of its value where it has one.

    def _node(self, node: Node, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        found = self._understood(node, scope)
        self._types[node.id] = found[1]
        return found

    def _understood(self, node: Node, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        match node:
            case Constant():
                return node, Type(node.kind), None
            case Name():
                return self._name(node, scope)
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case Items():
                return self._items(node, scope)
            case Entries():
                return self._entries(node, scope)
        return self._loop(node, scope)

    def _issue(self, node: Node | Entry, text: str) -> Type:
        self.issues.append(Issue(self._parsed.positions.get(node.id, 0), text))
        return Type("!error!")

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._issue(node, f"undeclared reference to '{name}' (in container '')")

    def _name(self, node: Name, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        found = scope.find(node.name)
        if found is None:
            if node.name in _TYPE_NAMES:
                return node, Type("type", (_TYPE_NAMES[node.name],)), None
            return node, self._undeclared(node, node.name), None
        if found is self._globals.names.get("oldSelf"):
            self._uses_old = True
        type_, schema = found
        return node, type_, schema

    def _select(self, node: Select, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        if (dotted := _dotted(node)) in _TYPE_NAMES and scope.find(dotted.partition(".")[0]) is None:
            return node, Type("type", (_TYPE_NAMES[dotted],)), None
        operand, type_, schema = self._node(node.operand, scope)
        type_ = self._resolved(type_)
        inner = type_.of[0] if type_.name == "optional" else type_
        real, below, result = self._field(node, inner, schema, node.field)
        made = Select(node.id, operand, real, node.is_test)
        if node.is_test:
            return made, BOOL, None
        if type_.name == "optional":
            return made, Type("optional", (result,)), below
        return made, result, below

    def _field(
        self, node: Node | Entry, type_: Type, schema: Schema | None, name: str
    ) -> tuple[str, Schema | None, Type]:
        type_ = self._resolved(type_)
        if self._objects.is_object(type_):
            found = self._objects.field(type_, name)
            return (
                found if found is not None else (name, None, self._issue(node, f"undefined field '{name}'"))
            )
        if type_.name == "map":
            return name, extra(schema) if schema else None, type_.of[1]
        if type_.name in ("dyn", "!error!") or _is_variable(type_):
            return name, None, DYN
        return name, None, self._issue(node, f"type '{self._shown(type_)}' does not support field selection")

    def _call(self, node: Call, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        count = len(self.issues)
        self._at = self._parsed.positions.get(node.id, 0)
        if (expanded := self._expanded(node)) is not None:
            self._loops[node.id] = expanded
            return self._node(expanded, scope)
        if len(self.issues) > count:
            return node, Type("!error!"), None
        if node.function == "_?._" and isinstance(name := node.arguments[1], Constant):
            return self._optional_select(node, name, scope)
        if node.target is not None and (whole := self._qualified(node.target, node.function, scope)):
            return self._call(Call(node.id, None, whole, node.arguments), scope)
        target = self._node(node.target, scope) if node.target is not None else None
        arguments = [self._node(one, scope) for one in node.arguments]
        candidates = (*overloads(node.function), *self._more.get(node.function, ()))
        made = Call(node.id, target[0] if target else None, node.function, [one[0] for one in arguments])
        if not candidates:
            return made, self._undeclared(node, node.function), None
        if node.function in ("_&&_", "_||_"):
            for one, (_, type_, _) in zip(node.arguments, arguments, strict=True):
                if not self._assign(BOOL, type_):
                    self._issue(one, f"expected type 'bool' but found '{self._shown(type_)}'")
            self._calls[node.id] = Resolved(node.function, None, candidates)
            return made, BOOL, None
        result = self._resolve(node, candidates, target[1] if target else None, [one[1] for one in arguments])
        self._look_at_literals(node)
        return made, result, self._schema_below(node, arguments)

    def _schema_below(self, node: Call, arguments: list[tuple[Node, Type, Schema | None]]) -> Schema | None:
        if node.function in ("_[_]", "_[?_]") and (schema := arguments[0][2]) is not None:
            return items(schema) or extra(schema)
        return None

    def _optional_select(self, node: Call, name: Constant, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        operand, type_, schema = self._node(node.arguments[0], scope)
        type_ = self._resolved(type_)
        inner = type_.of[0] if type_.name == "optional" else type_
        real, below, result = self._field(node, inner, schema, name.value)
        made = Call(node.id, None, node.function, [operand, Constant(name.id, "string", real)])
        self._calls[node.id] = Resolved(node.function, None, (Overload(None, (DYN, STRING), result),))
        return made, Type("optional", (result,)), below

    def _qualified(self, target: Node, function: str, scope: _Scope) -> str:
        """``sets.contains``: a function with a dot in its name, not a call on a value."""
        prefix = _dotted(target)
        if not prefix or scope.find(prefix.partition(".")[0]) is not None:
            return ""
        name = f"{prefix}.{function}"
        return name if overloads(name) or name in self._more else ""

    def _resolve(
        self, node: Call, candidates: tuple[Overload, ...], target: Type | None, arguments: list[Type]
    ) -> Type:
        given = [*([target] if target is not None else ()), *arguments]
        if any(self._resolved(one).name == "!error!" for one in given):
            return Type("!error!")
        result: Type | None = None
        fitting: list[Overload] = []
        for one in candidates:
            wanted = [*([one.target] if one.target is not None else ()), *one.arguments]
            if (one.target is None) != (target is None) or len(wanted) != len(given):
                continue
            before = dict(self._bound)
            renamed: dict[str, Type] = {}
            if all(self._assign(self._renewed(a, renamed), b) for a, b in zip(wanted, given, strict=True)):
                found = self._resolved(self._renewed(one.result, renamed))
                result = found if result is None or result == found else DYN
                fitting.append(one)
            else:
                self._bound = before
        if result is not None:
            self._calls[node.id] = Resolved(node.function, node.target, tuple(fitting))
            is_choice = node.function == "_?_:_"
            return DYN if is_choice and DYN in map(self._resolved, arguments[1:]) else result
        listed = f"({', '.join(self._shown(one) for one in arguments)})"
        called = listed if target is None else f"{self._shown(target)}.{listed}"
        return self._issue(node, f"found no matching overload for '{node.function}' applied to '{called}'")

    def _look_at_literals(self, node: Call) -> None:
        """Constants that cannot mean anything are found before they are used."""
        arguments = [*([node.target] if node.target is not None else ()), *node.arguments]
        last = arguments[-1] if arguments else None
        if not isinstance(last, Constant) or last.kind != "string":
            return
        is_wrong = False
        if node.function == "matches" and len(arguments) == 2:
            try:
                compiled(last.value)
            except BadPattern:
                is_wrong = True
        elif node.function == "duration":
            is_wrong = read_duration(last.value) is None
        elif node.function == "timestamp":
            is_wrong = read_timestamp(last.value) is None
        if is_wrong:
            told = f"invalid {node.function} argument"
            self._later.append(Issue(self._parsed.positions.get(last.id, 0), told))

    def _items(self, node: Items, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        element: Type = self._variable()
        made: list[Node] = []
        for place, one in enumerate(node.elements):
            rewritten, type_, _ = self._node(one, scope)
            made.append(rewritten)
            if place in node.optional:
                type_ = self._unwrapped(type_, one)
            element = self._joined(element, type_)
        return Items(node.id, made, node.optional), Type("list", (element,)), None

    def _unwrapped(self, type_: Type, node: Node) -> Type:
        """What an optional element or entry adds."""
        found = self._resolved(type_)
        if found.name == "optional":
            return found.of[0]
        if found.name not in ("dyn", "!error!"):
            told = f"expected type 'optional_type({self._shown(found)})' but found '{self._shown(found)}'"
            self._issue(node, told)
        return found

    def _joined(self, so_far: Type, found: Type) -> Type:
        """Of literals of many kinds nothing is known; ``_look_at_literal`` has something against it."""
        before = dict(self._bound)
        if self._assign(so_far, found):
            return so_far
        self._bound = before
        return DYN

    def _entries(self, node: Entries, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        if node.message:
            return self._message(node, scope)
        key: Type = self._variable()
        value: Type = self._variable()
        made = []
        for one in node.entries:
            if isinstance(one.key, str):
                continue  # only messages have names for keys
            new_key, key_type, _ = self._node(one.key, scope)
            new_value, value_type, _ = self._node(one.value, scope)
            if one.is_optional:
                value_type = self._unwrapped(value_type, one.value)
            key = self._joined(key, key_type)
            value = self._joined(value, value_type)
            made.append(Entry(one.id, new_key, new_value, one.is_optional))
        return Entries(node.id, "", made), Type("map", (key, value)), None

    def _message(self, node: Entries, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        type_ = Type(node.message)
        if not self._objects.is_message(node.message):
            return node, self._undeclared(node, node.message), None
        made = []
        for one in node.entries:
            value, found, _ = self._node(one.value, scope)
            if one.is_optional:
                found = self._unwrapped(found, one.value)
            _, _, wanted = self._field(one, type_, None, str(one.key))
            if not self._assign(wanted, found):
                told = f"expected type of field '{one.key}' is '{self._shown(wanted)}'"
                self._issue(one, f"{told} but provided type is '{self._shown(found)}'")
            made.append(Entry(one.id, one.key, value, one.is_optional))
        return Entries(node.id, node.message, made), type_, None

    # ── Literals ────────────────────────────────────────────────────────────────────────────────────

    def _look_at_literal(self, node: Node, types: Mapping[int, Type], *, is_exempt: bool) -> None:
        """Lists and maps are of one kind, except for ``format``, whose arguments suit its text."""
        match node:
            case Items():
                if not is_exempt:
                    self._look_at_kinds(
                        [(one, place in node.optional) for place, one in enumerate(node.elements)], types
                    )
            case Entries():
                pairs = [(one.key, one) for one in node.entries if not isinstance(one.key, str)]
                if not is_exempt:
                    self._look_at_kinds([(key, False) for key, _ in pairs], types)
                    self._look_at_kinds([(one.value, one.is_optional) for _, one in pairs], types)
            case Call(
                function="format", target=Constant(kind="string", value=text), arguments=[Items() as given]
            ):
                self._look_at_format(node, text, given, types)
        is_exempt = is_exempt or (isinstance(node, Call) and node.function == "format")
        for one in inside(node):
            self._look_at_literal(one, types, is_exempt=is_exempt)

    def _look_at_kinds(self, parts: Sequence[tuple[Node, bool]], types: Mapping[int, Type]) -> None:
        first: Type | None = None
        for node, is_optional in parts:
            type_ = types.get(node.id, DYN)
            if is_optional and type_.of:
                type_ = type_.of[0]
            if first is None:
                first = type_
            elif first != type_:
                told = f"expected type '{first}' but found '{type_}'"
                self._later.append(Issue(self._parsed.positions.get(node.id, 0), told))
                return

    def _look_at_format(self, node: Call, text: str, given: Items, types: Mapping[int, Type]) -> None:
        count = 0
        try:
            for one in clauses(text, len(given.elements)):
                if isinstance(one, str):
                    continue
                count += 1
                self._look_at_clause(one, given.elements[one.place], types)
        except BadFormat as error:
            at = error.at if isinstance(error, _BadArgument) else node
            self._later.append(Issue(self._parsed.positions.get(at.id, 0), str(error)))
            return
        if len(given.elements) > count:
            told = (
                f"too many arguments supplied to string.format (expected {count}, got {len(given.elements)})"
            )
            self._later.append(Issue(self._parsed.positions.get(node.id, 0), told))

    def _look_at_clause(self, clause: Clause, node: Node, types: Mapping[int, Type]) -> None:
        type_ = types.get(node.id, DYN)
        if type_.name != "dyn" and type_.name not in TAKEN[clause.letter.lower()]:
            raise _BadArgument(wrong(clause.letter, _GO_NAMES.get(type_.name, type_.name)), node)
        if clause.letter == "s" and isinstance(node, Items):
            for one in node.elements:
                self._look_at_clause(clause, one, types)
        if clause.letter == "s" and isinstance(node, Entries):
            for entry in node.entries:
                if not isinstance(entry.key, str):
                    self._look_at_clause(clause, entry.key, types)
                self._look_at_clause(clause, entry.value, types)

    def _loop(self, node: Loop, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        over, type_, schema = self._node(node.over, scope)
        type_ = self._resolved(type_)
        start, result, _ = self._node(node.start, scope)
        names: dict[str, tuple[Type, Schema | None]] = {}
        inner = None if schema is None else items(schema) or extra(schema)
        if type_.name == "list":
            first, second = (Type("int"), type_.of[0]) if node.second else (type_.of[0], DYN)
            names[node.variable] = (first, None if node.second else inner)
            names[node.second] = (second, inner)
        elif type_.name == "map":
            names[node.variable] = (type_.of[0], None)
            names[node.second] = (type_.of[1], inner)
        elif type_.name in ("dyn", "!error!") or _is_variable(type_):
            names[node.variable] = names[node.second] = (DYN, None)
        else:
            told = (
                f"expression of type '{self._shown(type_)}' cannot be range of a comprehension "
                "(must be list, map, or dynamic)"
            )
            self._issue(node.over, told)
            names[node.variable] = names[node.second] = (Type("!error!"), None)
        if not node.second:
            names.pop("", None)
        accumulated = _Scope({node.result_variable: (result, None)}, scope)
        inside = _Scope(names, accumulated)
        condition, _, _ = self._node(node.condition, inside)
        step, step_type, _ = self._node(node.step, inside)
        self._assign(result, step_type)
        end, end_type, _ = self._node(node.result, accumulated)
        made = Loop(
            node.id, node.variable, node.second, over, node.result_variable, start, condition, step, end
        )
        return made, self._resolved(end_type), None

    # ── Macros that the engine lacks ────────────────────────────────────────────────────────────────

    def _expanded(self, node: Call) -> Node | None:
        """Loops over places or keys, and values: ``self.ports.all(i, port, …)``; and ``sortBy``."""
        if node.target is None:
            return None
        if node.function == "sortBy" and len(node.arguments) == 2:
            return self._sorted_by(node, node.target)
        if node.function not in _DOUBLE or len(node.arguments) not in (3, 4):
            return None
        first, second, *rest = node.arguments
        names = (self._variable_name(first), self._variable_name(second))
        if "" in names:
            return None
        if names[0] == names[1]:
            self._issue(second, f"duplicate variable name: {names[0]}")
            return None
        *filters, body = rest
        if node.function in _QUANTIFIERS:
            return None if filters else self._quantified(node, node.target, names, body)
        return self._transformed(node, node.target, names, rest)

    def _variable_name(self, node: Node) -> str:
        if isinstance(node, Name):
            return node.name
        self._issue(node, "argument must be a simple name")
        return ""

    def _made(self, function: str, *arguments: Node) -> Node:
        return Call(self._id(), None, function, list(arguments))

    def _so_far(self) -> Node:
        return Name(self._id(), _ACCUMULATOR)

    def _quantified(self, node: Call, over: Node, names: tuple[str, str], body: Node) -> Node:
        call, so_far = self._made, self._so_far
        result: Node = so_far()
        condition: Node = Constant(self._id(), "bool", True)
        if node.function == "all":
            start: Node = Constant(self._id(), "bool", True)
            condition = call("@not_strictly_false", so_far())
            step = call("_&&_", so_far(), body)
        elif node.function == "exists":
            start = Constant(self._id(), "bool", False)
            condition = call("@not_strictly_false", call("!_", so_far()))
            step = call("_||_", so_far(), body)
        else:
            start = Constant(self._id(), "int", 0)
            more = call("_+_", so_far(), Constant(self._id(), "int", 1))
            step = call("_?_:_", body, more, so_far())
            result = call("_==_", so_far(), Constant(self._id(), "int", 1))
        return Loop(node.id, *names, over, _ACCUMULATOR, start, condition, step, result)

    def _transformed(self, node: Call, over: Node, names: tuple[str, str], rest: list[Node]) -> Node:
        *filters, body = rest
        start: Node = Entries(self._id(), "", [])
        if node.function == "transformList":
            start = Items(self._id(), [])
            step = self._made("_+_", self._so_far(), Items(self._id(), [body]))
        elif node.function == "transformMap":
            step = self._made("cel.@mapInsert", self._so_far(), Name(self._id(), names[0]), body)
        else:
            step = self._made("cel.@mapInsert", self._so_far(), body)
        if filters:
            step = self._made("_?_:_", filters[0], step, self._so_far())
        always = Constant(self._id(), "bool", True)
        return Loop(node.id, *names, over, _ACCUMULATOR, start, always, step, self._so_far())

    def _sorted_by(self, node: Call, over: Node) -> Node | None:
        """``l.sortBy(x, key)``: the list has a name, and is sorted by a list of keys."""
        name = self._variable_name(node.arguments[0])
        if not name:
            return None

        def given() -> Node:
            return Name(self._id(), _SORTED)

        key = Items(self._id(), [node.arguments[1]])
        step = self._made("_+_", self._so_far(), key)
        always = Constant(self._id(), "bool", True)
        keys = Loop(
            self._id(), name, "", given(), _ACCUMULATOR, Items(self._id(), []), always, step, self._so_far()
        )
        never = Constant(self._id(), "bool", False)
        ordered = Call(self._id(), given(), "@sortByAssociatedKeys", [keys])
        return Loop(node.id, "#unused", "", Items(self._id(), []), _SORTED, over, never, given(), ordered)

    def _id(self) -> int:
        self._next_id += 1
        self._parsed.positions[self._next_id] = self._at
        return self._next_id

    # ── Types ───────────────────────────────────────────────────────────────────────────────────────

    def _variable(self) -> Type:
        self._fresh += 1
        return Type(f"%{self._fresh}")

    def _renewed(self, type_: Type, renamed: dict[str, Type]) -> Type:
        """An overload's type, with variables of its own."""
        if len(type_.name) == 1 and type_.name.isupper():
            if type_.name not in renamed:
                renamed[type_.name] = self._variable()
            return renamed[type_.name]
        return Type(type_.name, tuple(self._renewed(one, renamed) for one in type_.of)) if type_.of else type_

    def _resolved(self, type_: Type) -> Type:
        while _is_variable(type_) and type_.name in self._bound:
            type_ = self._bound[type_.name]
        return Type(type_.name, tuple(self._resolved(one) for one in type_.of)) if type_.of else type_

    def _shown(self, type_: Type) -> str:
        return str(self._closed(self._resolved(type_)))

    def _closed(self, type_: Type) -> Type:
        if _is_variable(type_):
            return DYN
        return Type(type_.name, tuple(self._closed(one) for one in type_.of)) if type_.of else type_

    def _assign(self, wanted: Type, found: Type) -> bool:
        wanted, found = self._resolved(wanted), self._resolved(found)
        if wanted == found:
            return True
        if _is_variable(wanted):
            self._bound[wanted.name] = found
            return True
        if _is_variable(found):
            self._bound[found.name] = wanted
            return True
        if "dyn" in (wanted.name, found.name) or "!error!" in (wanted.name, found.name):
            return True
        if "null" in (wanted.name, found.name):
            other = found if wanted.name == "null" else wanted
            return other.name in _NULLABLE or self._objects.is_object(other) or "." in other.name
        if wanted.name == found.name == "type":
            return True
        if wanted.name != found.name or len(wanted.of) != len(found.of):
            return False
        return all(self._assign(a, b) for a, b in zip(wanted.of, found.of, strict=True))


def _is_variable(type_: Type) -> bool:
    return type_.name.startswith("%")


def _dotted(node: Node) -> str:
    """``a.b.c`` as text; nothing for anything else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.is_test and (prefix := _dotted(node.operand)):
        return f"{prefix}.{node.field}"
    return ""


def issues_text(issues: list[Issue], source: str) -> str:
    """As cel-go shows what is wrong, each with its line and a caret."""
    return "\n".join(_issue_text(one, source) for one in sorted(issues))


def _issue_text(issue: Issue, source: str) -> str:
    before = source[: issue.position]
    line = before.count("\n")
    column = issue.position - (before.rfind("\n") + 1)
    text = source.split("\n")[line] if source else ""
    return f"ERROR: <input>:{line + 1}:{column + 1}: {issue.text}\n | {text}\n | {'.' * column}^"
