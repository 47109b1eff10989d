"""CEL in admission: what an expression of a policy or a match condition may name, and what it gives.

``Scope`` declares the names (object, oldObject, request, namespaceObject, and, where there are any, params,
variables and the authorizer) and compiles expressions; what cannot be compiled is refused when it is written,
in cel-go's words.  An object has no type here: a name that it has not is found out when it is looked at.

The engine is behind ``registry/crd/engine.py``, and loaded with the first expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from setpoint.server.admission.cel_authorizer import AUTHORIZER, FUNCTIONS, OVERLOADS, RESOURCE
from setpoint.server.registry.crd.checking import DYN, Checker, Objects, issues_text
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
from setpoint.server.registry.crd.programs import (
    CompileError,
    EvaluationError,
    Program,
    Purse,
    parse,
    program,
)
from setpoint.server.registry.crd.schemas import Schema
from setpoint.server.registry.crd.signatures import Type
from setpoint.server.registry.crd.values import plain
from setpoint.server.registry.resources import Object

__all__ = [
    "CompileError",
    "Expression",
    "Scope",
    "Variables",
    "activation",
    "compile_error",
    "compile_text",
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
            raise EvaluationError(f"expression '{self.text}' resulted in error: {error}") from None


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
        if is_patch:
            parsed.root = _plain(parsed.root, parsed)
        checker = Checker(parsed, objects, names, OVERLOADS)
        checked = checker.check()
        if checker.issues:
            raise CompileError(f"compilation failed: {issues_text(checker.issues, text)}")
        found = _closed(checked.type)
        if results and ("null_type" if found.name == "null" else str(found)) not in results:
            raise CompileError(_other_type(results, found))
        return Expression(text, program(checked, FUNCTIONS), found)


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


def _other_type(results: Sequence[str], found: Type) -> str:
    if len(results) == 1:
        return f"must evaluate to {results[0]} but got {found}"
    return f"must evaluate to one of [{' '.join(results)}] but got {found}"


# ── Patches ─────────────────────────────────────────────────────────────────────────────────────────


def patch_expression(text: str, scope: Scope, result: str) -> Expression:
    """One that gives a patch: ``Object{…}`` and ``JSONPatch{…}`` are maps to the engine.

    ``result`` is the type that it must have: Object, or list(JSONPatch).  Raises ``CompileError``.
    """
    found = scope.compile(text, is_patch=True)
    kind = found.type
    if result != "Object":
        kind = kind.of[0] if kind.name == "list" and kind.of else Type("dyn")
    if kind.name != "map":
        raise CompileError(_other_type([result], found.type))
    return found


def _plain(node: Node, parsed: Parsed) -> Node:
    """A tree without messages, and without what only patches have."""
    match node:
        case Select():
            return Select(node.id, _plain(node.operand, parsed), node.field, node.is_test)
        case Call():
            target = None if node.target is None else _plain(node.target, parsed)
            arguments = [_plain(one, parsed) for one in node.arguments]
            is_escape = (
                node.function == "escapeKey" and isinstance(target, Name) and target.name == "jsonpatch"
            )
            if is_escape and len(arguments) == 1:
                return _replaced(_replaced(arguments[0], "~", "~0", parsed), "/", "~1", parsed)
            return Call(node.id, target, node.function, arguments)
        case Items():
            return Items(node.id, [_plain(one, parsed) for one in node.elements], node.optional)
        case Entries():
            return Entries(node.id, "", [_plain_entry(one, parsed, node.message) for one in node.entries])
        case Loop():
            parts = (
                _plain(one, parsed) for one in (node.over, node.start, node.condition, node.step, node.result)
            )
            over, start, condition, step, result = parts
            return Loop(
                node.id,
                node.variable,
                node.second,
                over,
                node.result_variable,
                start,
                condition,
                step,
                result,
            )
    return node


def _plain_entry(entry: Entry, parsed: Parsed, message: str) -> Entry:
    key, value = entry.key, _plain(entry.value, parsed)
    if isinstance(key, str):
        key = Constant(parsed.fresh(), "string", key)
    else:
        key = _plain(key, parsed)
    if message:  # its fields are of many types, which a map's values are not
        value = value if entry.is_optional else Call(parsed.fresh(), None, "dyn", [value])
    return Entry(entry.id, key, value, entry.is_optional)


def _replaced(node: Node, old: str, new: str, parsed: Parsed) -> Node:
    texts: list[Node] = [Constant(parsed.fresh(), "string", one) for one in (old, new)]
    return Call(parsed.fresh(), node, "replace", texts)


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
