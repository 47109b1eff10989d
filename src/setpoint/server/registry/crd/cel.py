"""Rules of a schema (``x-kubernetes-validations``): compiled when a definition is written, evaluated on its
objects.

``rule_issues`` says what is wrong with the rules of one node of a schema; a rule that cannot be compiled
here is refused there, and never ignored.  ``rules`` compiles a whole schema; ``Rules.errors`` evaluates an
object:

1. Every rule is evaluated wherever its node has a value that is not null, with ``self``.
2. A rule that speaks of ``oldSelf`` is evaluated on updates, where the old value can be told; with
   ``optionalOldSelf`` always, and ``oldSelf`` is then an optional.
3. What is wrong with what did not change is excused, except by rules that speak of ``oldSelf``.
4. A rule that has no value on an object refuses the object, with the reason.
5. A message sees the old value itself, even where its rule sees an optional, if any rule of its node speaks
   of ``oldSelf``.
6. What the rules cost on an object is bounded, as Kubernetes bounds it; when it is spent, the rest is not
   evaluated, and the object refused.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from setpoint.server.golang import quoted
from setpoint.server.registry.crd.checking import Checked, Checker, Objects, issues_text
from setpoint.server.registry.crd.fieldpath import InvalidPath, resolved
from setpoint.server.registry.crd.natives import Native, native
from setpoint.server.registry.crd.programs import (
    CompileError,
    EvaluationError,
    OverBudget,
    Program,
    Purse,
    parse,
    program,
)
from setpoint.server.registry.crd.ratcheting import Correlated, by_key, item_key
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    LIST_TYPE,
    RULES,
    Schema,
    child,
    extra,
    items,
    key,
    properties,
    spine,
)
from setpoint.server.registry.crd.signatures import Type
from setpoint.server.registry.crd.spending import OVER_LIMIT
from setpoint.server.registry.crd.values import NONE, Optional
from setpoint.server.statuses import OMITTED, ErrorType, FieldError

_REASONS: Final[dict[str, ErrorType]] = {
    "FieldValueForbidden": "forbidden",
    "FieldValueRequired": "required",
    "FieldValueDuplicate": "duplicate",
}
_LONGEST_MESSAGE: Final = 5 * 1024


# ── One rule ────────────────────────────────────────────────────────────────────────────────────────


class RuleIssue(NamedTuple):
    """What is wrong with a rule, and in which of its fields."""

    word: str  # rule, or messageExpression
    text: str


@dataclass(frozen=True, slots=True)
class _Rule:
    evaluate: Program
    uses_old: bool
    is_optional: bool
    message: str
    told: str  # the message, or the rule itself
    compose: Program | None
    composed: str
    reason: ErrorType
    path: str


class Compiled(NamedTuple):
    rule: _Rule | None
    issues: list[RuleIssue]
    uses_old: bool
    checked: Checked | None = None  # the rule, where it is one
    composed: Checked | None = None  # what composes its message


def compiled(rule: dict[str, Any], schema: Schema, *, is_root: bool) -> Compiled:
    """A rule on the values of a schema."""
    text: str = rule.get("rule") or ""
    issues: list[RuleIssue] = []
    is_optional = bool(rule.get("optionalOldSelf"))
    checked: Checked | None = None
    composed: Checked | None = None
    evaluate = compose = None
    try:
        checked = _checked(text, schema, is_root=is_root, is_optional=is_optional)
        if checked.type.name != "bool":
            issues.append(RuleIssue("rule", "cel expression must evaluate to a bool"))
        else:
            evaluate = program(checked)
    except CompileError as error:
        issues.append(RuleIssue("rule", _uncompiled(error)))
    if evaluate is not None and (message := rule.get("messageExpression")):
        try:
            composed = _checked(message, schema, is_root=is_root, is_optional=is_optional)
            if composed.type.name != "string":
                composed = None
                issues.append(RuleIssue("messageExpression", "messageExpression must evaluate to a string"))
            else:
                compose = program(composed)
        except CompileError as error:
            issues.append(RuleIssue("messageExpression", f"messageExpression compilation failed: {error}"))
    if evaluate is None or checked is None:
        return Compiled(None, issues, uses_old=False)  # and nothing is said of what it would cost
    made = _Rule(
        evaluate=evaluate,
        uses_old=checked.uses_old,
        is_optional=is_optional,
        message=(rule.get("message") or "").strip(),
        told=(rule.get("message") or text).strip(),
        compose=compose,
        composed=rule.get("messageExpression") or "",
        reason=_REASONS.get(rule.get("reason") or "", "invalid"),
        path=_relative(rule.get("fieldPath") or "", schema),
    )
    return Compiled(made, issues, checked.uses_old, checked, composed)


def _uncompiled(error: CompileError) -> str:
    told = str(error)
    return told if told.startswith("program instantiation") else f"compilation failed: {told}"


def _relative(path: str, schema: Schema) -> str:
    if not path:
        return ""
    try:
        return resolved(path, schema).path
    except InvalidPath:
        return ""


def _checked(text: str, schema: Schema, *, is_root: bool, is_optional: bool) -> Checked:
    objects = Objects()
    type_ = objects.type_of(schema, "selfType", is_root=is_root)
    if type_ is None:
        raise CompileError("failed to convert to declType for CEL validation rules")
    old = Type("optional", (type_,)) if is_optional else type_
    checker = Checker(
        parse(text), objects, {"self": (type_, schema), "oldSelf": (old, None if is_optional else schema)}
    )
    checked = checker.check()
    if checker.issues:
        raise CompileError(issues_text(checker.issues, text))
    return checked


# ── All rules of a schema ───────────────────────────────────────────────────────────────────────────


def has_rules(schema: Schema) -> bool:
    return any(one.get(RULES) for one in spine(schema))


def rules(schema: Schema, *, is_root: bool = True) -> Rules | None:
    """Compile a schema; None where it has no rules."""
    return Rules(_nodes(schema, is_root=is_root)) if has_rules(schema) else None


@dataclass(slots=True)
class _Node:
    """The rules at one place of a schema, and the places below that have any."""

    schema: Schema
    rules: list[_Rule]
    broken: list[str]
    native: Native | None = None
    uses_old: bool = False
    fields: dict[str, _Node] = field(default_factory=dict)
    rest: _Node | None = None
    each: _Node | None = None


def _nodes(schema: Schema, *, is_root: bool) -> _Node:
    made = _Node(schema, [], [], native(schema))
    for one in schema.get(RULES) or ():
        found = compiled(one, schema, is_root=is_root)
        if found.rule is not None:
            made.rules.append(found.rule)
        else:
            made.broken += [issue.text for issue in found.issues]
    made.uses_old = any(one.uses_old for one in made.rules)
    for name, below in properties(schema).items():
        if has_rules(below):
            made.fields[name] = _nodes(below, is_root=bool(below.get(EMBEDDED)))
    if (rest := extra(schema)) is not None and has_rules(rest):
        made.rest = _nodes(rest, is_root=bool(rest.get(EMBEDDED)))
    if (inner := items(schema)) is not None and has_rules(inner):
        made.each = _nodes(inner, is_root=bool(inner.get(EMBEDDED)))
    return made


class _Was(NamedTuple):
    """Whether a value is as it was: by itself, or, where it cannot be paired, by what it lies in."""

    here: Correlated | None = None
    above: Correlated | None = None

    @property
    def is_equal(self) -> bool:
        near = self.here or self.above
        return near is not None and near.is_equal

    def key(self, name: str) -> _Was:
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            return _Was()
        return _Was(self.here.key(name), self.here)

    def item(self, place: int) -> _Was:
        return self if self.here is None else _Was(self.here.index(place), self.here)


@dataclass(slots=True)
class _Found:
    errors: list[FieldError] = field(default_factory=list)
    purse: Purse = field(default_factory=Purse)


class _TooDear(Exception):
    """A message."""


class _Enough(Exception):
    """No further rules are evaluated."""


class Rules:
    """The rules of one version."""

    def __init__(self, root: _Node) -> None:
        self._root = root

    def errors(
        self, new: Any, old: Any, correlated: Correlated | None = None, path: str = ""
    ) -> list[FieldError]:
        """What the rules have against a value at ``path``; ``old`` is None where it is new."""
        found = _Found()
        with suppress(_Enough):
            _walk(self._root, _Spot(new, old, path, _Was(correlated)), found)
        return found.errors


class _Spot(NamedTuple):
    """A value, the one that was there before it, and where."""

    new: Any
    old: Any
    path: str
    was: _Was

    def field(self, name: str, path: str) -> _Spot:
        before = self.old.get(name) if type(self.old) is dict else None
        return _Spot(self.new[name], before, path, self.was.key(name))

    def item(self, place: int, before: Any) -> _Spot:
        return _Spot(self.new[place], before, key(self.path, str(place)), self.was.item(place))


def _walk(node: _Node, spot: _Spot, found: _Found) -> None:
    new = spot.new
    if new is None:
        return
    _evaluate(node, spot, found)
    if type(new) is dict:
        if node.rest is not None:
            for name in new:
                if name not in node.fields:
                    _walk(node.rest, spot.field(name, key(spot.path, name)), found)
        for name, below in node.fields.items():
            if name in new:
                _walk(below, spot.field(name, child(spot.path, name)), found)
    elif type(new) is list and node.each is not None:
        is_map = node.schema.get(LIST_TYPE) == "map" and type(spot.old) is list
        paired = by_key(node.schema, spot.old) if is_map else {}
        for place, one in enumerate(new):
            _walk(node.each, spot.item(place, paired.get(item_key(node.schema, one) or "")), found)


def _evaluate(node: _Node, spot: _Spot, found: _Found) -> None:
    kind = node.schema.get("type") or ""
    where = spot.path or "<nil>"
    for broken in node.broken:
        found.errors.append(FieldError("invalid", where, f"rule compile error: {broken}", kind))
    names: dict[str, Any] = {}
    for rule in node.rules:
        if rule.uses_old and spot.old is None and not rule.is_optional:
            continue
        names = names or _names(node, spot)
        try:
            _judge(rule, names, spot, found, kind)
        except OverBudget as error:
            found.errors.append(FieldError("invalid", where, str(error), kind))
            raise _Enough from None


def _names(node: _Node, spot: _Spot) -> dict[str, Any]:
    """What the rules of a node, and their messages, see."""
    names = {"self": spot.new}
    if node.uses_old and spot.old is not None:
        names["oldSelf"] = spot.old
    return names if node.native is None else {name: node.native(one) for name, one in names.items()}


def _with_optional(names: dict[str, Any]) -> dict[str, Any]:
    return {**names, "oldSelf": Optional(names["oldSelf"]) if "oldSelf" in names else NONE}


def _judge(rule: _Rule, names: dict[str, Any], spot: _Spot, found: _Found, kind: str) -> None:
    try:
        if rule.evaluate(_with_optional(names) if rule.is_optional else names, found.purse) is True:
            return
    except EvaluationError as error:
        found.errors.append(_failure(rule, str(error), spot.path or "<nil>", kind))
        if str(error) == OVER_LIMIT:
            raise _Enough from None
        return
    is_excused = not rule.uses_old and spot.was.is_equal
    value = OMITTED if kind in ("object", "array") else spot.new
    path = _at(spot.path, rule.path)
    try:
        message = _message(rule, names, found.purse)
    except _TooDear as error:
        found.errors.append(FieldError("invalid", path, str(error), kind, is_excused=is_excused))
        raise _Enough from None
    found.errors.append(replace(_complaint(rule, path, message, value), is_excused=is_excused))


def _at(path: str, below: str) -> str:
    if not below:
        return path or "<nil>"
    return path + below if below.startswith("[") else child(path, below)


def _complaint(rule: _Rule, path: str, told: str, value: Any) -> FieldError:
    match rule.reason:
        case "forbidden" | "required":
            return FieldError(rule.reason, path, told)
        case "duplicate":
            return FieldError("duplicate", path, value=value)
    return FieldError("invalid", path, told, value)


def _failure(rule: _Rule, error: str, where: str, kind: str) -> FieldError:
    """A rule that has no value."""
    if error == OVER_LIMIT:
        told = (
            f"'{error}': no further validation rules will be run due to call cost exceeds limit "
            f"for rule: {rule.told}"
        )
        return FieldError("invalid", where, told, kind)
    if error.startswith("no such overload"):
        told = (
            f"'{error}': call arguments did not match a supported operator, function or macro signature "
            f"for rule: {rule.told}"
        )
        return FieldError("invalid", where, told, kind)
    return FieldError("invalid", where, f"{error} evaluating rule: {rule.told}", kind)


def _message(rule: _Rule, names: dict[str, Any], purse: Purse) -> str:
    """Raises ``_TooDear``."""
    if rule.compose is not None:
        composed = ""
        try:
            composed = str(rule.compose(names, purse)).strip()
        except EvaluationError as error:
            if str(error) == OVER_LIMIT:
                told = "no further validation rules will be run due to call cost exceeds limit"
                raise _TooDear(f"{told} for messageExpression: {quoted(rule.composed)}") from None
        except OverBudget:
            told = "messageExpression evaluation failed due to running out of cost budget"
            raise _TooDear(f"{told}, no further validation rules will be run") from None
        if composed and "\n" not in composed and len(composed.encode()) <= _LONGEST_MESSAGE:
            return composed
    return rule.message or f"failed rule: {rule.told}"
