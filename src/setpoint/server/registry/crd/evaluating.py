"""Trees → what evaluates them: each node becomes a function, and counts what it costs as cel-go does.

An evaluator of our own, since the engine's cannot be asked what an evaluation costs, ends every loop
after ten thousand steps, and says what went wrong in words of its own.  The engine reads the text; here
it is evaluated.

What is worth knowing of the costs: a name costs 1 and so does each step below it (``self.a.b``: 3), but
what a ``?:`` chooses is cheaper by its name, and ``has(self.a)`` costs the step alone; constants, and
lists of constants, cost nothing; every other call costs what ``spending.py`` says.

Pure.  Fed by ``programs.py`` with what ``checking.py`` left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from setpoint.server.registry.crd.checking import escaped
from setpoint.server.registry.crd.costs import Facts
from setpoint.server.registry.crd.expressions import (
    Call,
    Constant,
    Entries,
    Entry,
    Items,
    Loop,
    Name,
    Node,
    Select,
)
from setpoint.server.registry.crd.functions import FUNCTIONS
from setpoint.server.registry.crd.patterns import BadPattern, compiled
from setpoint.server.registry.crd.signatures import Overload, Type, overloads
from setpoint.server.registry.crd.spending import Meter, Toil, spent, toil_of
from setpoint.server.registry.crd.values import (
    NONE,
    EvaluationError,
    Made,
    MadeMap,
    Message,
    Optional,
    TypeValue,
    UInt,
    equal,
    key_of,
    keys_of,
    no_overload,
    shown,
    type_name,
)

Run = Callable[[Meter], Any]
_LIST, _MAP, _MESSAGE = 10, 30, 40  # to make one
_MISSING: Final = object()


class PlanError(ValueError):
    """The tree cannot be evaluated, whatever the data are; the text is cel-go's."""


class _Plan(NamedTuple):
    run: Run
    resolve: Run | None = None  # of a name, or of a place below one: without the cost of the name itself
    base: int = 0  # which is this
    value: Any = _MISSING  # of a constant

    @property
    def is_constant(self) -> bool:
        return self.value is not _MISSING


def planned(root: Node, facts: Facts, more: Mapping[str, Callable[..., Any]]) -> Run:
    """Raises ``PlanError``.  ``more`` are functions that only some expressions have."""
    return _Planner(facts, more).plan(root).run


_TYPES: Final = {
    "null_type", "bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "optional_type",
    "google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR", "kubernetes.URL",
    "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.NamedFormat",
}  # fmt: skip
_CONVERSIONS: Final = frozenset({
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
})  # fmt: skip
_SCALARS: Final = frozenset({"bool", "double", "int", "string", "uint"})


def _constant(value: Any) -> _Plan:
    return _Plan(lambda _: value, value=value)


class _Planner:
    def __init__(self, facts: Facts, more: Mapping[str, Callable[..., Any]]) -> None:
        self._facts = facts
        self._more = more
        self._locals: list[str] = []
        self._growing: list[str] = []  # lists and maps that a loop makes, which nobody else sees yet

    def plan(self, node: Node) -> _Plan:
        match node:
            case Constant():
                value = UInt(node.value) if node.kind == "uint" else node.value
                return _constant(value)
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Items():
                return self._items(node)
            case Entries():
                return self._entries(node)
        return self._loop(node)

    def _type(self, node: Node) -> Type:
        return self._facts.types.get(node.id, Type("dyn"))

    # ── Names and places ────────────────────────────────────────────────────────────────────────────

    def _name(self, node: Name) -> _Plan:
        name = node.name
        if name not in self._locals and self._type(node).name == "type" and name in _TYPES:
            return _constant(TypeValue(name))

        def resolve(meter: Meter) -> Any:
            try:
                found = meter.names[name]
            except KeyError:
                raise EvaluationError(f"no such attribute(s): {name}") from None
            if isinstance(found, EvaluationError):
                raise found
            return found

        return _attribute(resolve, 1)

    def _select(self, node: Select) -> _Plan:
        if (dotted := _dotted(node)) in _TYPES and self._type(node).name == "type":
            return _constant(TypeValue(dotted))
        operand = self.plan(node.operand)
        inner, base = (operand.run, 1) if operand.resolve is None else (operand.resolve, operand.base)
        name = node.field
        hides_null = self._is_object(node.operand)
        if node.is_test:
            return _Plan(_tested(inner, name, hides_null=hides_null))
        told = (escaped(name) if hides_null else None) or name  # a field, as expressions name it

        def resolve(meter: Meter) -> Any:
            place = inner(meter)
            if type(place) is dict:
                meter.cost += 1
                found = place.get(name, _MISSING)
                if found is _MISSING or (found is None and hides_null):
                    raise EvaluationError(f"no such key: {told}")
                if isinstance(found, EvaluationError):
                    raise found
                return found
            return _below(meter, place, name, is_optional=False, hides_null=hides_null)

        return _attribute(resolve, base)

    def _is_object(self, node: Node) -> bool:
        """A field of an object that is null is not there; an entry of a map is."""
        type_ = self._type(node)
        if type_.name == "optional" and type_.of:
            type_ = type_.of[0]
        return type_.name not in ("map", "dyn", "list", "optional")

    def _index(self, node: Call, *, is_optional: bool) -> _Plan:
        operand, key = self.plan(node.arguments[0]), self.plan(node.arguments[1])
        inner, base = (operand.run, 1) if operand.resolve is None else (operand.resolve, operand.base)
        find = key.resolve or key.run
        hides_null = node.function == "_?._" and self._is_object(node.arguments[0])

        def resolve(meter: Meter) -> Any:
            place = inner(meter)
            if type(place) is Optional and not place.is_there:
                return place
            return _below(meter, place, find(meter), is_optional=is_optional, hides_null=hides_null)

        return _attribute(resolve, base)

    def _choice(self, node: Call) -> _Plan:
        condition, then, otherwise = (self.plan(one) for one in node.arguments)
        test, first, second = condition.run, then.resolve or then.run, otherwise.resolve or otherwise.run

        def resolve(meter: Meter) -> Any:
            chosen = test(meter)
            if chosen is True:
                return first(meter)
            if chosen is False:
                return second(meter)
            raise EvaluationError("no such overload")

        return _Plan(resolve, resolve, 0)

    # ── Literals ────────────────────────────────────────────────────────────────────────────────────

    def _items(self, node: Items) -> _Plan:
        plans = [self.plan(one) for one in node.elements]
        if all(one.is_constant for one in plans) and not node.optional:
            return _constant(Made(one.value for one in plans))
        parts = [(one.run, place in node.optional) for place, one in enumerate(plans)]

        def run(meter: Meter) -> Any:
            made = Made()
            for each, is_optional in parts:
                value = each(meter)
                if is_optional:
                    if not isinstance(value, Optional):
                        told = "cannot initialize optional list element from non-optional value"
                        raise EvaluationError(f"{told} {shown(value)}")
                    if not value.is_there:
                        continue
                    value = value.value
                made.append(value)
            meter.cost += _LIST
            return made

        return _Plan(run)

    def _entries(self, node: Entries) -> _Plan:
        parts = [self._entry(one) for one in node.entries]
        if not node.message and all(key.is_constant and value.is_constant for key, value, _ in parts):
            made = MadeMap({key_of(key.value): value.value for key, value, _ in parts})
            return _constant(made)
        runs = [(key.run, value.run, is_optional) for key, value, is_optional in parts]
        cost = _MESSAGE if node.message else _MAP

        def run(meter: Meter) -> Any:
            made = Message(node.message) if node.message else MadeMap()
            for key, each, is_optional in runs:
                name, value = key(meter), each(meter)
                if is_optional:
                    if not isinstance(value, Optional):
                        told = f"cannot initialize optional entry '{shown(name)}' from non-optional value"
                        raise EvaluationError(f"{told} {shown(value)}")
                    if not value.is_there:
                        made.pop(key_of(name), None)
                        continue
                    value = value.value
                made[key_of(name)] = value
            meter.cost += cost
            return made

        return _Plan(run)

    def _entry(self, entry: Entry) -> tuple[_Plan, _Plan, bool]:
        key = _constant(entry.key) if isinstance(entry.key, str) else self.plan(entry.key)
        return key, self.plan(entry.value), entry.is_optional

    # ── Loops ───────────────────────────────────────────────────────────────────────────────────────

    def _loop(self, node: Loop) -> _Plan:
        over, start = self.plan(node.over).run, self.plan(node.start)
        inside = [name for name in (node.variable, node.second) if name]
        grows = start.is_constant and isinstance(start.value, Made | MadeMap) and not start.value
        self._locals += [node.result_variable, *inside]
        # One that counts hides the one around it: both call what they make by the same name.
        self._growing.append(node.result_variable if grows else "")
        condition, step = self.plan(node.condition), self.plan(node.step).run
        self._growing.pop()
        del self._locals[len(self._locals) - len(inside) :]
        result = self.plan(node.result).run
        self._locals.pop()
        is_always = condition.is_constant and condition.value is True
        return _Plan(_looped(node, _Parts(over, start, None if is_always else condition.run, step, result)))

    # ── Calls ───────────────────────────────────────────────────────────────────────────────────────

    def _call(self, node: Call) -> _Plan:
        match node.function:
            case "_&&_" | "_||_":
                first, second = (self.plan(one).run for one in node.arguments)
                return _Plan(_logical(first, second, ends=node.function == "_||_"))
            case "_?_:_":
                return self._choice(node)
            case "_[_]":
                return self._index(node, is_optional=False)
            case "_[?_]" | "_?._":
                return self._index(node, is_optional=True)
            case "@not_strictly_false" | "__not_strictly_false__":
                return _Plan(_not_strictly_false(self.plan(node.arguments[0]).run))
            case "or" | "orValue" if node.target is not None:
                first, second = self.plan(node.target).run, self.plan(node.arguments[0]).run
                return _Plan(_alternative(first, second, is_value=node.function == "orValue"))
            case "_+_" if self._is_growing(node):
                return _Plan(_appended(*(self.plan(one).run for one in node.arguments)))
        return self._function(node)

    def _is_growing(self, node: Call) -> bool:
        first = node.arguments[0]
        return isinstance(first, Name) and bool(self._growing) and first.name == self._growing[-1]

    def _function(self, node: Call) -> _Plan:
        name = node.function
        resolved = self._facts.calls.get(node.id)
        fitting = () if resolved is None else resolved.overloads
        nodes = [*([node.target] if node.target is not None else ()), *node.arguments]
        plans = [self.plan(one) for one in nodes]
        call = self._more.get(name) or FUNCTIONS.get(name)
        if call is None:
            raise PlanError(f"no such overload: {name}")
        only = fitting[0] if len(fitting) == 1 else None
        if name in _CONVERSIONS and len(plans) == 1 and plans[0].is_constant:
            return _converted(call, plans[0].value)
        if name in ("matches", "find", "findAll") and len(plans) > 1 and plans[1].is_constant:
            _look_at_pattern(plans[1].value)
        if name == "@in" and only is not None and only.arguments[1].name == "list" and plans[1].is_constant:
            items: list[Any] = plans[1].value
            if not items:
                return _constant(False)
            if all(type_name(one) in _SCALARS for one in items):
                return _Plan(_member(plans[0].run, items))
        if name in _GUARDED and any(self._type(one).name == "dyn" for one in nodes):
            call = _guarded(name, call, tuple(overloads(name)), is_member=node.target is not None)
        runs = [one.run for one in plans]
        cost = spent(name, only)
        called = _Called(name, call, cost, toil_of(name))
        match runs:
            case [one]:
                return _Plan(_unary(called, one))
            case [one, other] if name == "check" and cost is not None:
                return _Plan(_checked(call, one, other, cost([], None)))
            case [one, other]:
                return _Plan(_binary(called, one, other))
        return _Plan(_many(called, runs))


# ── What runs ───────────────────────────────────────────────────────────────────────────────────────


def _attribute(resolve: Run, base: int) -> _Plan:
    def run(meter: Meter) -> Any:
        found = resolve(meter)
        meter.cost += base
        return found

    return _Plan(run if base else resolve, resolve, base)


def _below(meter: Meter, place: Any, key: Any, *, is_optional: bool, hides_null: bool) -> Any:
    """What lies at a key or place; an optional where that was asked for, or where it is inside one."""
    is_inside = type(place) is Optional
    if is_inside:
        if not place.is_there:
            return place
        place = place.value
    found = _at(place, key)
    is_there = found is not _MISSING and not (hides_null and found is None)
    if is_there or not (is_inside or is_optional):
        meter.cost += 1
    if not is_there:
        if is_inside or is_optional:
            return NONE
        told = "index out of bounds" if isinstance(place, list) else "no such key"
        raise EvaluationError(f"{told}: {shown(key)}")
    if isinstance(found, EvaluationError):
        raise found
    return Optional(found) if is_inside or is_optional else found


def _at(place: Any, key: Any) -> Any:
    if isinstance(place, dict):
        if type(place) is dict and not isinstance(key, str):
            raise EvaluationError("no such overload")
        return place.get(key_of(key), _MISSING)
    if isinstance(place, list):
        index = key
        if isinstance(key, float) and key.is_integer():
            index = int(key)
        if isinstance(key, float) and not key.is_integer():
            raise EvaluationError(f"unsupported index value {shown(key)} in list")
        if isinstance(index, bool) or not isinstance(index, int):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if not 0 <= index < len(place):
            return _MISSING
        if type(key) is not int and type(place) is not Made:
            raise EvaluationError(f"unsupported index: {shown(key)}")
        return place[index]
    return _MISSING


def _tested(inner: Run, name: str, *, hides_null: bool) -> Run:
    def run(meter: Meter) -> bool:
        place = inner(meter)
        if type(place) is Optional:
            if not place.is_there:
                return False
            place = place.value
        meter.cost += 1
        found = _at(place, name)
        return found is not _MISSING and not (hides_null and found is None)

    return run


def _logical(first: Run, second: Run, *, ends: bool) -> Run:
    """``ends``: the value that decides alone."""
    goes_on = not ends

    def run(meter: Meter) -> bool:
        error: EvaluationError | None = None
        found: object
        try:
            found = first(meter)
        except EvaluationError as raised:
            error = raised
        else:
            if found is ends:
                return ends
            if found is not goes_on:
                error = EvaluationError("no such overload")
        try:
            found = second(meter)
        except EvaluationError as raised:
            raise error or raised from None
        if found is ends:
            return ends
        if found is not goes_on:
            error = error or EvaluationError("no such overload")
        if error is not None:
            raise error
        return goes_on

    return run


def _not_strictly_false(one: Run) -> Run:
    def run(meter: Meter) -> bool:
        meter.cost += 1
        try:
            found = one(meter)
        except EvaluationError:
            return True
        return found if isinstance(found, bool) else True

    return run


def _alternative(first: Run, second: Run, *, is_value: bool) -> Run:
    def run(meter: Meter) -> Any:
        found = first(meter)
        if not isinstance(found, Optional):
            raise EvaluationError("no such overload")
        if found.is_there:
            return found.value if is_value else found
        return second(meter)

    return run


def _appended(first: Run, second: Run) -> Run:
    """To a list that a loop makes, in its place."""

    def run(meter: Meter) -> Any:
        made, more = first(meter), second(meter)
        meter.cost += 1
        made.extend(more)
        return made

    return run


def _converted(call: Callable[..., Any], value: Any) -> _Plan:
    try:
        return _constant(call(value))
    except EvaluationError as error:
        raise PlanError(str(error)) from None


def _look_at_pattern(pattern: Any) -> None:
    if isinstance(pattern, str):
        try:
            compiled(pattern)
        except BadPattern as error:
            raise PlanError(str(error)) from None


def _member(one: Run, items: list[Any]) -> Run:
    texts = frozenset(one for one in items if isinstance(one, str))
    others = [one for one in items if not isinstance(one, str)]

    def run(meter: Meter) -> bool:
        found = one(meter)
        if isinstance(found, str):
            return found in texts
        meter.toil(len(others))
        return any(equal(each, found) for each in others)

    return run


class _Called(NamedTuple):
    name: str
    call: Callable[..., Any]
    cost: Callable[[list[Any], Any], int] | None  # None for 1
    toil: Toil | None


_UNLIKE: Final = (TypeError, AttributeError)  # a null where its type says that there is none


def _unary(called: _Called, one: Run) -> Run:
    name, call, cost, toil = called

    def run(meter: Meter) -> Any:
        value = one(meter)
        try:
            if toil is not None:
                meter.toil(toil(meter, [value]))
            found = call(value)
        except _UNLIKE:
            raise _unfit(name, value) from None
        meter.cost += 1 if cost is None else cost([value], found)
        return found

    return run


def _binary(called: _Called, one: Run, other: Run) -> Run:
    name, call, cost, toil = called

    def run(meter: Meter) -> Any:
        a, b = one(meter), other(meter)
        try:
            if toil is not None:
                meter.toil(toil(meter, [a, b]))
            found = call(a, b)
        except _UNLIKE:
            raise _unfit(name, a, b) from None
        meter.cost += 1 if cost is None else cost([a, b], found)
        return found

    return run


def _many(called: _Called, runs: list[Run]) -> Run:
    name, call, cost, toil = called

    def run(meter: Meter) -> Any:
        values = [one(meter) for one in runs]
        try:
            if toil is not None:
                meter.toil(toil(meter, values))
            found = call(*values)
        except _UNLIKE:
            raise _unfit(name, *values) from None
        meter.cost += 1 if cost is None else cost(values, found)
        return found

    return run


def _checked(call: Callable[..., Any], one: Run, other: Run, cost: int) -> Run:
    """A question to the authorizer: dear, so that few are asked, and soon answered."""

    def run(meter: Meter) -> Any:
        values = one(meter), other(meter)
        meter.cost += cost
        meter.excuse(cost)
        meter.check()
        return call(*values)

    return run


# ── Loops ───────────────────────────────────────────────────────────────────────────────────────────


class _Parts(NamedTuple):
    over: Run
    start: _Plan
    condition: Run | None  # None where it always holds
    step: Run
    result: Run


def _looped(node: Loop, parts: _Parts) -> Run:
    result_name, first, second = node.result_variable, node.variable, node.second
    over, start, condition, step, result = parts
    fresh = type(start.value) if start.is_constant and isinstance(start.value, Made | MadeMap) else None

    def run(meter: Meter) -> Any:
        names = meter.names
        items = _iterated(meter, over(meter), is_double=bool(second))
        kept = {name: names.get(name, _MISSING) for name in (result_name, first, second) if name}
        try:
            so_far = fresh() if fresh is not None and not start.value else start.run(meter)
            for one in items:
                names[result_name] = so_far
                if second:
                    names[first], names[second] = one
                else:
                    names[first] = one
                if condition is not None and _is_over(condition, meter):
                    break
                try:
                    so_far = step(meter)
                except EvaluationError as error:
                    so_far = error
                meter.work += 1
                if meter.cost > meter.limit or meter.work > meter.pause:
                    meter.check()
            _restore(names, {name: one for name, one in kept.items() if name != result_name})
            names[result_name] = so_far
            return result(meter)
        finally:
            _restore(names, kept)

    return run


def _is_over(condition: Run, meter: Meter) -> bool:
    try:
        return bool(condition(meter) is False)
    except EvaluationError:
        return False


def _restore(names: dict[str, Any], kept: dict[str, Any]) -> None:
    for name, value in kept.items():
        if value is _MISSING:
            names.pop(name, None)
        else:
            names[name] = value


def _iterated(meter: Meter, value: Any, *, is_double: bool) -> list[Any]:
    if isinstance(value, list) and not is_double:
        return value
    if isinstance(value, list | dict):
        meter.toil(len(value))
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, dict):
        keys = keys_of(value)
        return [(key, value[key_of(key)]) for key in keys] if is_double else keys
    raise EvaluationError(f"got '{_go_name(value)}', expected iterable type")


def _go_name(value: Any) -> str:
    return {"int": "types.Int", "string": "types.String", "bool": "types.Bool", "double": "types.Double"}.get(
        type_name(value), "*types.Optional" if isinstance(value, Optional) else type_name(value)
    )


# ── What only the value tells ───────────────────────────────────────────────────────────────────────

# Operators judge their operands themselves.
_GUARDED: Final = frozenset(
    name for name in FUNCTIONS if not name.startswith(("_", "!", "-", "@")) and name not in ("dyn", "type")
)
_UNFIT: Final = {
    **dict.fromkeys(("startsWith", "endsWith", "contains", "matches", "find", "findAll"), "no such overload"),
    "size": "no such overload: size",
}  # where it is not said of what
_SHORT: Final = {
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
    "optional_type": "optional",
}


def _guarded(
    name: str, call: Callable[..., Any], known: tuple[Overload, ...], *, is_member: bool
) -> Callable[..., Any]:
    """A function whose arguments are looked at first."""
    forms = [
        [*([one.target] if one.target is not None else ()), *one.arguments]
        for one in known
        if (one.target is not None) == is_member
    ]

    def guarded(*values: Any) -> Any:
        for form in forms:
            if len(form) == len(values) and all(map(_is_of, form, values)):
                return call(*values)
        raise _unfit(name, *values)

    return guarded


def _unfit(name: str, *values: Any) -> EvaluationError:
    if name == "flatten":
        kind, *more = map(type_name, values)
        return EvaluationError(f"no such overload: {kind}.flatten({', '.join(more)})")
    return EvaluationError(_UNFIT[name]) if name in _UNFIT else no_overload(name, *values)


def _is_of(wanted: Type, value: Any) -> bool:
    if wanted.name == "dyn" or len(wanted.name) == 1:
        return True
    found = type_name(value)
    if _SHORT.get(found, found) != wanted.name:
        return False
    if wanted.name == "list" and value:
        return _is_of(wanted.of[0], value[0])
    return True


def _dotted(node: Node) -> str:
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.is_test and (prefix := _dotted(node.operand)):
        return f"{prefix}.{node.field}"
    return ""
