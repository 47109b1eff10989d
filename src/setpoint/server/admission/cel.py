"""CEL in admission: what an expression of a policy or a match condition may name, and what it gives.

``Scope`` declares the names (object, oldObject, request, namespaceObject, and, where there are any, params,
variables and the authorizer) and compiles expressions; what cannot be compiled is refused when it is written,
in cel-go's words.  An object has no type here: a name that it has not is found out when it is looked at.
``operations`` and ``configuration`` are what an expression of a mutation comes to: a JSON patch, or what is
to be applied.

The engine is behind ``registry/crd/engine.py``, and loaded with the first expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from setpoint.server.admission.cel_authorizer import AUTHORIZER, FUNCTIONS, OVERLOADS, RESOURCE
from setpoint.server.golang import quoted
from setpoint.server.registry.crd.checking import DYN, STRING, Checker, Objects, issues_text
from setpoint.server.registry.crd.expressions import Call, Entries, Items, Loop, Name, Node, Select
from setpoint.server.registry.crd.functions import FUNCTIONS as _BUILT_IN
from setpoint.server.registry.crd.programs import (
    CompileError,
    EvaluationError,
    Program,
    Purse,
    parse,
    program,
)
from setpoint.server.registry.crd.schemas import Schema
from setpoint.server.registry.crd.signatures import Overload, Type
from setpoint.server.registry.crd.values import Made, Message, UInt, plain, type_name
from setpoint.server.registry.resources import Object

__all__ = [
    "CompileError",
    "Expression",
    "Scope",
    "Variables",
    "activation",
    "compile_error",
    "compile_text",
    "configuration",
    "operations",
    "patch_expression",
    "without_authorizer",
]
_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_LABELS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_NUMBER: Final[Schema] = {"type": "integer"}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


_KIND: Final = _object(group=_TEXT, version=_TEXT, kind=_TEXT)
_RESOURCE: Final = _object(group=_TEXT, version=_TEXT, resource=_TEXT)
_EXTRA: Final[Schema] = {"type": "object", "additionalProperties": _TEXTS}
_REQUEST: Final = _object(
    kind=_KIND,
    resource=_RESOURCE,
    subResource=_TEXT,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=_TEXT,
    name=_TEXT,
    namespace=_TEXT,
    operation=_TEXT,
    userInfo=_object(username=_TEXT, uid=_TEXT, groups=_TEXTS, extra=_EXTRA),
    dryRun={"type": "boolean"},
    options={"x-kubernetes-int-or-string": True},  # of any type
)
_NAMESPACE: Final = _object(
    metadata=_object(
        name=_TEXT,
        generateName=_TEXT,
        namespace=_TEXT,
        labels=_LABELS,
        annotations=_LABELS,
        UID=_TEXT,
        creationTimestamp=_TIME,
        deletionGracePeriodSeconds=_NUMBER,
        deletionTimestamp=_TIME,
        generation=_NUMBER,
        resourceVersion=_TEXT,
        finalizers=_TEXTS,
    ),
    spec=_object(finalizers=_TEXTS),
    status=_object(
        conditions={
            "type": "array",
            "items": _object(status=_TEXT, type=_TEXT, lastTransitionTime=_TIME, message=_TEXT, reason=_TEXT),
        },
        phase=_TEXT,
    ),
)
_VARIABLES: Final = "kubernetes.variables"
_REQUESTED: Final = "authorizer.requestResource"
_OPERATION, _APPLIED = "JSONPatch", "Object"  # messages
_OPERATION_FIELDS: Final = {**dict.fromkeys(("op", "path", "from"), STRING), "value": DYN}
_NO_TYPE: Final = Type("")  # of a field that there is not: cel-go is told that it is there, and of none
_GO_TYPES: Final = {
    bool: "bool", int: "int64", UInt: "uint64", float: "float64", bytes: "[]uint8",
    type(None): "structpb.NullValue", list: "[]interface {}", dict: "map[string]interface {}",
}  # fmt: skip


class Expression(NamedTuple):
    """One that was compiled."""

    text: str
    run: Program
    type: Type

    def __call__(self, data: dict[str, Any], purse: Purse) -> Any:
        """Its value.  Raises ``EvaluationError``, in the words of admission, and ``OverBudget``."""
        try:
            return plain(self.run(data, purse))
        except EvaluationError as error:
            raise self.failed(error) from None

    def made(self, data: dict[str, Any], purse: Purse) -> Any:
        """Its value as CEL has it: a message has the name of its type."""
        try:
            return self.run(data, purse)
        except EvaluationError as error:
            raise self.failed(error) from None

    def failed(self, why: object) -> EvaluationError:
        return EvaluationError(f"expression '{self.text}' resulted in error: {why}")


class Variables(dict[str, Any]):
    """Of a policy: each is evaluated where it is first used, and never again."""

    def __init__(self, expressions: Mapping[str, Expression], data: Object, purse: Purse) -> None:
        super().__init__()
        self._expressions = expressions
        self._data = {**data, "variables": self}
        self._purse = purse

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self and name in self._expressions:
            try:
                self[name] = self._expressions[name].run(self._data, self._purse)
            except EvaluationError as error:
                told = f'composited variable "{name}" fails to evaluate: {error}'
                self[name] = EvaluationError(told)
        return super().get(name, default)


class _Declared(Objects):
    """Objects of schemas, and one whose fields are declared one by one."""

    def __init__(self) -> None:
        super().__init__()
        self._schemas[_VARIABLES] = {}
        self._fields[_VARIABLES] = {}

    def declare(self, name: str, type_: Type) -> None:
        self._fields[_VARIABLES][name] = (name, {}, type_)


class Scope:
    """The names that expressions in one place may use."""

    def __init__(self, *, has_params: bool = False, has_variables: bool = False) -> None:
        """Without variables or parameters an expression that names any is refused."""
        self._has_params = has_params
        self._has_variables = has_variables
        self._objects = _Declared()  # one for all expressions: each would copy all variables

    def declare(self, name: str, type_: Type) -> None:
        """A variable, for the expressions that come after it."""
        self._objects.declare(name, type_)

    def compile(
        self, text: str, *results: str, is_patch: bool = False, has_authorizer: bool = True
    ) -> Expression:
        """``results`` are the types that it may have; any, without them.  Raises ``CompileError``."""
        objects = self._objects
        request = objects.type_of(_REQUEST, "kubernetes.AdmissionRequest", is_root=False) or DYN
        namespace = objects.type_of(_NAMESPACE, "kubernetes.Namespace", is_root=False) or DYN
        names: dict[str, tuple[Type, Schema | None]] = {
            "object": (DYN, None),
            "oldObject": (DYN, None),
            "request": (request, _REQUEST),
            "namespaceObject": (namespace, _NAMESPACE),
        }
        if self._has_params:
            names["params"] = (DYN, None)
        if self._has_variables:
            names["variables"] = (Type(_VARIABLES), None)
        parsed = parse(text)
        if has_authorizer:
            names |= {"authorizer": (AUTHORIZER, None), _REQUESTED: (RESOURCE, None)}
            parsed.root = _with_requested(parsed.root)
        checker = Checker(
            parsed,
            _Patches(objects) if is_patch else objects,
            names,
            _PATCH_OVERLOADS if is_patch else OVERLOADS,
        )
        checked = checker.check()
        if checker.issues:
            raise CompileError(f"compilation failed: {issues_text(checker.issues, text)}")
        found = _closed(checked.type)
        shown = "null_type" if found.name == "null" else str(found)
        if results and shown not in results:
            raise CompileError(_other_type(results, shown))
        return Expression(text, program(checked, _PATCH_FUNCTIONS if is_patch else FUNCTIONS), found)


def _with_requested(node: Node) -> Node:
    """``authorizer.requestResource`` is one name."""
    match node:
        case Select(operand=Name(name="authorizer"), field="requestResource", is_test=False):
            return Name(node.id, _REQUESTED)
        case Select():
            return Select(node.id, _with_requested(node.operand), node.field, node.is_test)
        case Call():
            target = None if node.target is None else _with_requested(node.target)
            return Call(node.id, target, node.function, [_with_requested(one) for one in node.arguments])
        case Items():
            return Items(node.id, [_with_requested(one) for one in node.elements], node.optional)
        case Entries():
            for one in node.entries:
                one.value = _with_requested(one.value)
        case Loop():
            node.over, node.start = _with_requested(node.over), _with_requested(node.start)
            node.condition, node.step = _with_requested(node.condition), _with_requested(node.step)
            node.result = _with_requested(node.result)
    return node


def _closed(type_: Type) -> Type:
    """What nothing is known of is of any type."""
    return DYN if type_.name.startswith("%") else Type(type_.name, tuple(map(_closed, type_.of)))


def _other_type(results: Sequence[str], found: str) -> str:
    if len(results) == 1:
        return f"must evaluate to {results[0]} but got {found}"
    return f"must evaluate to one of [{' '.join(results)}] but got {found}"


# ── Patches ─────────────────────────────────────────────────────────────────────────────────────────


class _Patches(Objects):
    """With what patches are made of: ``JSONPatch{…}``, and ``Object{…}`` with ``Object.spec{…}`` in it.

    Of the fields of an object nothing is known; that a message stands in the field that it is named after is
    looked at when it was made.
    """

    def __init__(self, declared: _Declared) -> None:
        super().__init__()
        self._declared = declared

    def is_message(self, name: str) -> bool:
        return name in (_OPERATION, _APPLIED) or name.startswith(f"{_APPLIED}.")

    def is_object(self, type_: Type) -> bool:
        return self.is_message(type_.name) or self._declared.is_object(type_)

    def field(self, type_: Type, name: str) -> tuple[str, Schema, Type] | None:
        if type_.name == _OPERATION:
            return name, {}, _OPERATION_FIELDS.get(name, _NO_TYPE)
        return (name, {}, DYN) if self.is_message(type_.name) else self._declared.field(type_, name)


def _escaped(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def _added(one: Any, other: Any) -> Any:
    """Of objects in lists that were added nobody looks at the names."""
    found = _BUILT_IN["_+_"](one, other)
    if not (isinstance(found, Made) and one and other):
        return found
    return Made(
        plain(each) if isinstance(each, Message) and each.type_name != _OPERATION else each for each in found
    )


_PATCH_OVERLOADS: Final = {**OVERLOADS, "jsonpatch.escapeKey": (Overload(None, (STRING,), STRING),)}
_PATCH_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **FUNCTIONS,
    "jsonpatch.escapeKey": _escaped,
    "_+_": _added,
}


def patch_expression(text: str, scope: Scope, result: str) -> Expression:
    """One that gives a patch of this type: Object, or list(JSONPatch).  Raises ``CompileError``."""
    return scope.compile(text, result, is_patch=True)


def operations(expression: Expression, data: Object, purse: Purse) -> list[Object]:
    """Those of a JSON patch.  Raises ``EvaluationError`` and ``OverBudget``."""
    return [_operation(one, expression) for one in expression.made(data, purse)]


def _operation(made: Any, expression: Expression) -> Object:
    if not isinstance(made, Message):
        told = f"type conversion error from '{type_name(made)}' to '*mutation.JSONPatchVal'"
        wanted = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
        raise EvaluationError(f"{wanted}: {told}")
    found: Object = {"op": "", "path": ""}
    for name, value in made.items():
        if name not in _OPERATION_FIELDS:
            raise expression.failed(f"unexpected JSONPatchType field: {name}")
        if name == "value":
            if isinstance(value, Message):
                _look_at_names(value)
            found[name] = plain(value)
        elif not isinstance(value, str):
            told = f"unexpected type {_GO_TYPES.get(type(value), 'ref.Val')} for JSONPatchType '{name}' field"
            raise expression.failed(told)
        elif value:
            found[name] = value
    return found


def configuration(expression: Expression, data: Object, purse: Purse) -> Object:
    """What is to be applied.  Raises ``EvaluationError`` and ``OverBudget``."""
    made = expression.made(data, purse)
    if not isinstance(made, Message):
        told = "unsupported return type from ApplyConfiguration expression"
        raise EvaluationError(f"{told}: {type_name(made)}")
    _look_at_names(made)
    found: Object = plain(made)
    return found


def _look_at_names(made: Message) -> None:
    if wrong := list(_misnamed(made, made.type_name)):
        raise EvaluationError("type mismatch: " + "\n".join(wrong))


def _misnamed(value: Any, path: str) -> Iterator[str]:
    """What has not the name of its place; lists and maps have none."""
    if isinstance(value, Message):
        if value.type_name != path:
            told = f"unexpected type name {quoted(value.type_name)}, expected {quoted(path)}"
            yield f"{told}, which matches field name path from root Object type"
        for name, one in value.items():
            yield from _misnamed(one, f"{path}.{name}")
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _misnamed(one, path)


# ── What is told, and seen ──────────────────────────────────────────────────────────────────────────


def compile_error(text: str, scope: Scope, *results: str, has_authorizer: bool = True) -> str:
    """What is wrong with an expression; "" if nothing is."""
    try:
        scope.compile(text, *results, has_authorizer=has_authorizer)
    except CompileError as error:
        return compile_text(error)
    return ""


def compile_text(error: CompileError) -> str:
    told = str(error)
    known = ("compilation failed:", "must evaluate to")
    return told if told.startswith(known) else f"compilation failed: {told}"


def activation(obj: Object | None, old: Object | None, request: Object, namespace: Object | None) -> Object:
    """The values of the names."""
    asked = {name: value for name, value in request.items() if name not in ("uid", "object", "oldObject")}
    about = {name: asked.get(name, "") for name in ("name", "namespace")}
    about |= {"group": asked["requestResource"]["group"], "resource": asked["requestResource"]["resource"]}
    about["subresource"] = asked.get("requestSubResource", "")
    return {
        "object": obj,
        "oldObject": old,
        "request": asked,
        "namespaceObject": namespace,
        "authorizer": {},
        _REQUESTED: about,
    }


def without_authorizer(data: Object) -> Object:
    """The values of the names, where there is nobody to ask what is allowed."""
    return {name: value for name, value in data.items() if name not in ("authorizer", _REQUESTED)}
