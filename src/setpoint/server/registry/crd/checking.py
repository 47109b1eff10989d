"""Whether a CEL expression makes sense on the values of a schema, and how it is said to the engine.

The engine evaluates JSON, and knows no schemas; so here every node of an expression gets the type that the
schema gives it, as cel-go's checker would, with its texts.  Where a value in JSON is not yet what its type
says (a time is a string, a number may be an integer, a field has an escaped name), the tree is rewritten so
that it becomes so.

Pure.  Fed by ``cel.py`` with what ``expressions.py`` read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
)
from setpoint.server.registry.crd.formats import is_datetime, is_go_duration
from setpoint.server.registry.crd.patterns import BadPattern, compiled
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    Schema,
    extra,
    items,
    properties,
)
from setpoint.server.registry.crd.signatures import Overload, Type, overloads

DYN: Final = Type("dyn")
BOOL: Final = Type("bool")
STRING: Final = Type("string")
_NULLABLE: Final = frozenset({"null", "timestamp", "duration"})
_TYPE_NAMES: Final = {
    "int": Type("int"), "uint": Type("uint"), "double": Type("double"), "bool": BOOL, "string": STRING,
    "bytes": Type("bytes"), "list": Type("list", (DYN,)), "map": Type("map", (DYN, DYN)),
    "null_type": Type("null"), "type": Type("type", (DYN,)),
    "google.protobuf.Timestamp": Type("timestamp"), "google.protobuf.Duration": Type("duration"),
}  # fmt: skip
_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
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
        self._uses_old = False
        self._types: dict[int, Type] = {}
        self._calls: dict[int, Resolved] = {}
        self._loops: dict[int, Node] = {}
        self._globals = _Scope(names)
        self.issues: list[Issue] = []

    def check(self) -> Checked:
        source = self._parsed.root
        root, type_, _ = self._node(source, self._globals)
        types = {number: self._closed(self._resolved(one)) for number, one in self._types.items()}
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
        if type_.name == "optional" and found is self._globals.names.get("oldSelf"):
            return self._optional_old(node), type_, None
        return self._native(node, type_, schema), type_, schema

    def _optional_old(self, node: Name) -> Node:
        """The engine takes no optional values from outside: it gets a list of none or one."""
        count = Call(self._id(), None, "size", [node])
        is_none = Call(self._id(), None, "_==_", [count, Constant(self._id(), "int", 0)])
        first = Call(self._id(), None, "_[_]", [node, Constant(self._id(), "int", 0)])
        there = Call(self._id(), None, "optional.of", [first])
        return Call(node.id, None, "_?_:_", [is_none, Call(self._id(), None, "optional.none", []), there])

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
        return self._native(made, result, below), result, below

    def _field(
        self, node: Node, type_: Type, schema: Schema | None, name: str
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
        if (expanded := self._expanded(node)) is not None:
            self._loops[node.id] = expanded
            return self._node(expanded, scope)
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
        result = self._resolve(node, candidates, target[1] if target else None, [one[1] for one in arguments])
        self._look_at_literals(node)
        return self._rewritten(made, result, arguments)

    def _rewritten(
        self,
        made: Call,
        result: Type,
        arguments: list[tuple[Node, Type, Schema | None]],
    ) -> tuple[Node, Type, Schema | None]:
        """What the engine does not know of Kubernetes' values is said to it in other words."""
        if made.function in ("_==_", "_!=_", "_+_"):
            schema = arguments[0][2] or arguments[1][2]
            if schema is not None and schema.get(LIST_TYPE) in ("set", "map"):
                return self._on_list(made, schema), result, schema
        if made.function == "_[_]":
            schema = arguments[0][2]
            below = None if schema is None else items(schema) or extra(schema)
            return self._native(made, result, below), result, below
        if made.function == "string" and self._resolved(arguments[0][1]).name.startswith("net."):
            made.function = "@string"
        if made.target is not None and made.function == "ip":
            return Call(made.id, None, "@ip", [made.target]), result, None
        return made, result, None

    def _on_list(self, made: Call, schema: Schema) -> Node:
        """Lists of type set and map are equal in any order, and their sum is a union."""
        keys: list[Node] = [Constant(self._id(), "string", one) for one in schema.get(LIST_KEYS) or ()]
        word = "@same" if made.function != "_+_" else "@union"
        call: Node = Call(self._id(), None, word, [*made.arguments, Items(self._id(), keys)])
        return Call(made.id, None, "!_", [call]) if made.function == "_!=_" else call

    def _optional_select(self, node: Call, name: Constant, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        operand, type_, schema = self._node(node.arguments[0], scope)
        type_ = self._resolved(type_)
        inner = type_.of[0] if type_.name == "optional" else type_
        real, below, result = self._field(node, inner, schema, name.value)
        made = Call(node.id, None, node.function, [operand, Constant(name.id, "string", real)])
        self._calls[node.id] = Resolved(node.function, None, (Overload(None, (DYN, STRING), result),))
        if _needs_care(result) and result.name != "double":  # integers compare with doubles as they are
            self._issue(node, f"'{name.value}' cannot be selected with '?' by this server: use has()")
        return made, Type("optional", (result,)), below

    def _qualified(self, target: Node, function: str, scope: _Scope) -> str:
        """``sets.contains``: a function with a dot in its name, not a call on a value."""
        prefix = _dotted(target)
        if not prefix or scope.find(prefix.partition(".")[0]) is not None:
            return ""
        name = f"{prefix}.{function}"
        return name if overloads(name) else ""

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
            return result
        listed = f"({', '.join(self._shown(one) for one in arguments)})"
        called = listed if target is None else f"{self._shown(target)}.{listed}"
        return self._issue(node, f"found no matching overload for '{node.function}' applied to '{called}'")

    def _look_at_literals(self, node: Call) -> None:
        """Constants that cannot mean anything are found before they are used."""
        arguments = [*([node.target] if node.target is not None else ()), *node.arguments]
        last = arguments[-1] if arguments else None
        if not isinstance(last, Constant) or last.kind != "string":
            return
        wrong = False
        if node.function == "matches" and len(arguments) == 2:
            try:
                compiled(last.value)
            except BadPattern:
                wrong = True
        elif node.function == "duration":
            wrong = not is_go_duration(last.value)
        elif node.function == "timestamp":
            wrong = not is_datetime(last.value)
        if wrong:
            self._issue(last, f"invalid {node.function} argument")

    def _items(self, node: Items, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        element: Type = self._variable()
        made: list[Node] = []
        for place, one in enumerate(node.elements):
            rewritten, type_, _ = self._node(one, scope)
            made.append(rewritten)
            if place in node.optional:
                resolved = self._resolved(type_)
                type_ = resolved.of[0] if resolved.name == "optional" else resolved
            element = self._joined(element, type_, one)
        return Items(node.id, made, node.optional), Type("list", (element,)), None

    def _joined(self, so_far: Type, found: Type, node: Node) -> Type:
        """Literals are of one kind."""
        if self._assign(so_far, found):
            return so_far
        return self._issue(node, f"expected type '{self._shown(so_far)}' but found '{self._shown(found)}'")

    def _entries(self, node: Entries, scope: _Scope) -> tuple[Node, Type, Schema | None]:
        if node.message:
            return node, self._undeclared(node, node.message), None
        key: Type = self._variable()
        value: Type = self._variable()
        made = []
        for one in node.entries:
            if isinstance(one.key, str):
                continue  # only messages have names for keys
            new_key, key_type, _ = self._node(one.key, scope)
            new_value, value_type, _ = self._node(one.value, scope)
            key = self._joined(key, key_type, one.key)
            value = self._joined(value, value_type, one.value)
            made.append(Entry(one.id, new_key, new_value, one.is_optional))
        return Entries(node.id, "", made), Type("map", (key, value)), None

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
        """Loops over places and values, or keys and values: ``self.ports.all(i, port, …)``."""
        if node.target is None or len(node.arguments) not in (3, 4):
            return None
        first, second, *rest = node.arguments
        if not isinstance(first, Name) or not isinstance(second, Name):
            return None
        *filters, body = rest
        if node.function in ("all", "exists", "existsOne") and not filters:
            return self._quantified(node, node.target, (first.name, second.name), body)
        if node.function == "transformList":
            return self._transformed(node, node.target, (first.name, second.name), [*filters, body])
        return None

    def _quantified(self, node: Call, over: Node, names: tuple[str, str], body: Node) -> Node:
        accumulator = "@result"

        def so_far() -> Node:
            return Name(self._id(), accumulator)

        def call(function: str, *arguments: Node) -> Node:
            return Call(self._id(), None, function, list(arguments))

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
        return Loop(node.id, *names, over, accumulator, start, condition, step, result)

    def _transformed(self, node: Call, over: Node, names: tuple[str, str], rest: list[Node]) -> Node:
        *filters, body = rest
        so_far = Name(self._id(), "@result")
        step: Node = Call(self._id(), None, "_+_", [so_far, Items(self._id(), [body])])
        if filters:
            step = Call(self._id(), None, "_?_:_", [filters[0], step, Name(self._id(), "@result")])
        always = Constant(self._id(), "bool", True)
        start = Items(self._id(), [])
        return Loop(node.id, *names, over, "@result", start, always, step, Name(self._id(), "@result"))

    # ── Values that JSON holds otherwise ────────────────────────────────────────────────────────────

    def _native(self, node: Node, type_: Type, schema: Schema | None) -> Node:
        """The value of a node as its type, where JSON has it as something else."""
        if schema is None or not _needs_care(type_):
            return node
        match type_.name:
            case "double":
                made = self._one("double", node)
            case "timestamp" if schema.get("format") == "date":
                midnight = Constant(self._id(), "string", "T00:00:00Z")
                made = self._one("timestamp", Call(self._id(), None, "_+_", [node, midnight]))
            case "bytes":
                made = self._one("@bytes", node)
            case _:
                made = self._one(type_.name, node)
        if not schema.get("nullable"):
            return made
        null = Constant(self._id(), "null", None)
        is_null = Call(self._id(), None, "_==_", [node, null])
        return Call(self._id(), None, "_?_:_", [is_null, Constant(self._id(), "null", None), made])

    def _one(self, function: str, node: Node) -> Node:
        return Call(self._id(), None, function, [node])

    def _id(self) -> int:
        self._next_id += 1
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


def _needs_care(type_: Type) -> bool:
    return type_.name in ("double", "timestamp", "duration", "bytes")


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
