"""What a schema in a definition may say: beside being structural, each word in its place, defaults and
rules valid.

``schema_errors`` judges the schema of a version.  Pure; ``definition.py`` asks.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from setpoint.server.golang import same
from setpoint.server.registry.conform import WrongType
from setpoint.server.registry.crd import cel, costs, embedded, prune, validate
from setpoint.server.registry.crd.checking import escaped
from setpoint.server.registry.crd.fieldpath import InvalidPath, resolved
from setpoint.server.registry.crd.gonames import ONLY_AT_ROOT, go_rule, go_schema, is_allowed_at_root
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META,
    PRESERVE,
    RULES,
    Schema,
    copied,
    extra,
    has_extra,
    items,
    key,
    properties,
)
from setpoint.server.registry.crd.structural import structural_errors, unsupported_word
from setpoint.server.registry.paths import Path, Told
from setpoint.server.registry.validation.found import Found
from setpoint.server.statuses import FieldError, unsupported

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_FORBIDDEN: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LINES: Final = re.compile(r"[\n\r]+")


def schema_errors(
    schema: Schema, path: str, *, has_status: bool, is_unchanged: bool = False
) -> list[FieldError]:
    """Of the schema of a version.  The rules of one that is as it was are not too costly one by one."""
    found = _root_errors(schema, path) if has_status else []
    if schema.get("nullable"):
        found.append(FieldError("forbidden", f"{path}.nullable", "nullable cannot be true at the root"))
    unread = unsupported_word(schema)
    shape: list[FieldError] = []
    if not unread:
        shape = structural_errors(schema, path) or _default_errors(schema, path)
    found += shape
    judged = _Judged([], [], costs.Budget())
    context = _Context(checks_rules=not unread and not shape, is_root=True, is_unchanged=is_unchanged)
    _judge(schema, path, context, judged)
    found += judged.schema + judged.rules
    if not found and unread:
        return [FieldError("invalid", path, unread, "")]
    return found + judged.budget.errors(path)


def _root_errors(schema: Schema, path: str) -> list[FieldError]:
    """With a status of its own, a schema says little at its root: the status is judged without it."""
    if schema.get("type") not in (None, "", "object"):
        told = (
            'only "object" is allowed as the type at the root of the schema '
            "if the status subresource is enabled"
        )
        return [FieldError("invalid", f"{path}.type", told, schema["type"])]
    if any(
        value not in (None, "", False, [], {}) and not is_allowed_at_root(word)
        for word, value in schema.items()
    ):
        return [FieldError("invalid", path, ONLY_AT_ROOT, go_schema(schema))]
    return []


# ── Words ───────────────────────────────────────────────────────────────────────────────────────────


class _Judged(NamedTuple):
    """Rules are compiled only where the schema around them is sound, and are told of last."""

    schema: list[FieldError]
    rules: list[FieldError]
    budget: costs.Budget


class _Context(NamedTuple):
    """What lies around a node decides what it may say."""

    checks_rules: bool
    is_root: bool = False
    no_default: str | None = None  # why there may be none
    is_meta: bool = False
    unpaired: str = ""  # the place above which old and new values cannot be told apart
    occurs: int | None = 1  # how often there may be a value; None if nothing bounds that
    is_unchanged: bool = False


def _judge(schema: Schema, path: str, context: _Context, into: _Judged) -> None:
    before = len(into.schema)
    into.schema.extend(_word_errors(schema, path, context))
    inner = context._replace(is_root=False, occurs=_product(context.occurs, costs.multiplies(schema)))
    _judge_inside(schema, path, context, inner, into)
    into.schema.extend(_extension_errors(schema, path))
    _judge_rules(schema, path, context, into, is_sound=len(into.schema) == before)


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _judge_inside(schema: Schema, path: str, context: _Context, inner: _Context, into: _Judged) -> None:
    if has_extra(schema):
        if properties(schema) and schema["additionalProperties"] is not True:
            told = "additionalProperties and properties are mutual exclusive"
            into.schema.append(FieldError("forbidden", f"{path}.additionalProperties", told))
        if (rest := extra(schema)) is not None:
            why = (
                "inside additionalProperties applying to object metadata"
                if inner.is_meta
                else inner.no_default
            )
            _judge(rest, f"{path}.additionalProperties", inner._replace(no_default=why), into)
    for name, one in properties(schema).items():
        below = inner
        if (context.is_root or schema.get(EMBEDDED)) and name in META:
            below = below._replace(is_meta=True)
            if context.is_root:
                below = below._replace(no_default=f"in top-level {name}")
        _judge(one, key(f"{path}.properties", name), below, into)
    nested = inner._replace(checks_rules=False)
    if isinstance(schema.get("not"), dict):
        _judge(schema["not"], f"{path}.not", nested, into)
    for word in ("allOf", "oneOf", "anyOf"):
        for place, one in enumerate(schema.get(word) or ()):
            _judge(one, f"{path}.{word}[{place}]", nested, into)
    for word in ("definitions", "dependencies"):
        for name, one in (schema.get(word) or {}).items():
            if isinstance(one, dict):
                _judge(one, key(f"{path}.{word}", name), nested, into)
    each = schema.get("items")
    below = inner if schema.get(LIST_TYPE) == "map" or inner.unpaired else inner._replace(unpaired=path)
    if isinstance(each, dict):
        _judge(each, f"{path}.items", below, into)
    elif isinstance(each, list):
        for place, one in enumerate(each):
            _judge(one, f"{path}.items[{place}]", below, into)


def _word_errors(schema: Schema, path: str, context: _Context) -> list[FieldError]:
    found: list[FieldError] = []
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        found.append(unsupported(f"{path}.type", kind, _TYPES))
    if schema.get("default") is not None and context.no_default is not None:
        found.append(
            FieldError("forbidden", f"{path}.default", f"must not be set {context.no_default}".strip())
        )
    found += [
        FieldError("forbidden", f"{path}.{word}", f"{word} is not supported")
        for word in _FORBIDDEN
        if schema.get(word)
        or (word in ("additionalItems", "dependencies", "$ref") and schema.get(word) is not None)
    ]
    if kind == "null":
        told = "type cannot be set to null, use nullable as an alternative"
        found.append(FieldError("forbidden", f"{path}.type", told))
    if isinstance(schema.get("items"), list) and schema["items"]:
        told = "items must be a schema object and not an array"
        found.append(FieldError("forbidden", f"{path}.items", told))
    if context.is_meta and schema.get(EMBEDDED):
        found.append(
            FieldError("forbidden", f"{path}.{EMBEDDED}", "must not be used inside of resource meta")
        )
    if schema.get("uniqueItems"):
        told = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(FieldError("forbidden", f"{path}.uniqueItems", told))
    return found


def _extension_errors(schema: Schema, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    kind, each = schema.get("type") or "", items(schema)
    if schema.get(PRESERVE) is False:
        found.append(FieldError("invalid", f"{path}.{PRESERVE}", "must be true or undefined", False))
    map_type, list_type = schema.get(MAP_TYPE), schema.get(LIST_TYPE)
    if map_type is not None:
        found += _wants_type(kind, "object", MAP_TYPE, path)
        if map_type not in ("atomic", "granular"):
            found.append(unsupported(f"{path}.{MAP_TYPE}", map_type, ("atomic", "granular")))
    if list_type is not None and kind != "array":
        found += _wants_type(kind, "array", LIST_TYPE, path)
    elif list_type == "set" and each is not None:
        found += _set_errors(each, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        found.append(unsupported(f"{path}.{LIST_TYPE}", list_type, ("atomic", "set", "map")))
    keys: list[str] = schema.get(LIST_KEYS) or []
    if keys and list_type != "map":
        told, where = f"must be map if {LIST_KEYS} is non-empty", f"{path}.{LIST_TYPE}"
        is_there = list_type is not None
        found.append(
            FieldError("invalid", where, told, list_type) if is_there else FieldError("required", where, told)
        )
    if list_type == "map":
        found += _map_errors(schema, each, keys, path)
    return found + _key_errors(each, list_type, keys, path)


def _wants_type(kind: str, wanted: str, word: str, path: str) -> list[FieldError]:
    if kind == wanted:
        return []
    told = f"must be {wanted} if {word} is specified"
    where = f"{path}.type"
    return [FieldError("invalid", where, told, kind) if kind else FieldError("required", where, told)]


def _set_errors(each: Schema, path: str) -> list[FieldError]:
    told = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if each.get("type") == "array" and each.get(LIST_TYPE) not in (None, "atomic"):
        return [FieldError("invalid", f"{path}.items.{LIST_TYPE}", told, each[LIST_TYPE])]
    if each.get("type") == "object" and each.get(MAP_TYPE) != "atomic":
        return [FieldError("invalid", f"{path}.items.{MAP_TYPE}", told, each.get(LIST_TYPE))]
    return []


def _map_errors(schema: Schema, each: Schema | None, keys: list[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    where = f"{path}.{LIST_KEYS}"
    if not keys:
        found.append(FieldError("required", where, f"must not be empty if {LIST_TYPE} is map"))
    if schema.get("items") is None:
        found.append(FieldError("required", f"{path}.items", f"must have a schema if {LIST_TYPE} is map"))
    if each is None:
        return found
    kind = each.get("type") or ""
    if kind != "object":
        told = f"must be object if parent array's {LIST_TYPE} is map"
        return [*found, FieldError("invalid", f"{path}.items.type", told, kind)]
    seen: set[str] = set()
    for name in keys:
        one = properties(each).get(name)
        if one is None:
            found.append(FieldError("invalid", where, "entries must all be names of item properties", keys))
        elif one.get("type") in ("array", "object"):
            told = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            found.append(FieldError("invalid", f"{key(f'{path}.items.properties', name)}.type", told, kind))
        if name in seen:
            found.append(FieldError("invalid", where, "must not contain duplicate entries", keys))
        seen.add(name)
    return found


def _key_errors(each: Schema | None, list_type: str | None, keys: list[str], path: str) -> list[FieldError]:
    """Items, and the keys that tell them apart, are always there."""
    if each is None or list_type not in ("set", "map"):
        return []
    found: list[FieldError] = []
    if each.get("nullable"):
        told = f"cannot be nullable when {LIST_TYPE} is {list_type}"
        found.append(FieldError("forbidden", f"{path}.items.nullable", told))
    for name in keys if list_type == "map" else ():
        one = properties(each).get(name)
        if one is None:
            continue
        where = key(f"{path}.items.properties", name)
        if name not in (each.get("required") or ()) and one.get("default") is None:
            told = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
            found.append(FieldError("required", f"{where}.default", told))
        if one.get("nullable"):
            told = f"this property is in {LIST_KEYS}, so it cannot be nullable"
            found.append(FieldError("forbidden", f"{where}.nullable", told))
    return found


# ── Rules ───────────────────────────────────────────────────────────────────────────────────────────


def _judge_rules(schema: Schema, path: str, context: _Context, into: _Judged, *, is_sound: bool) -> None:
    rules: list[dict[str, Any]] = schema.get(RULES) or []
    wrong = [
        error
        for place, rule in enumerate(rules)
        for error in _rule_errors(rule, schema, f"{path}.{RULES}[{place}]")
    ]
    into.schema.extend(wrong)
    if wrong or not is_sound or not context.checks_rules:
        return
    is_root = context.is_root or bool(schema.get(EMBEDDED))
    bound = costs.bounds(schema, escaped, is_root=is_root) if rules else None
    for place, rule in enumerate(rules):
        compiled = cel.compiled(rule, schema, is_root=is_root)
        where = f"{path}.{RULES}[{place}]"
        if bound is not None:
            into.rules.extend(_cost_errors(compiled, bound, where, context, into.budget))
        into.rules.extend(_compile_errors(rule, compiled, where, context))


def _rule_errors(rule: dict[str, Any], schema: Schema, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    text, message, expression = (rule.get(word) or "" for word in ("rule", "message", "messageExpression"))
    if not text.strip():
        found.append(FieldError("required", f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        found.append(FieldError("invalid", f"{path}.message", "must be non-empty if specified", message))
    elif _LINES.search(message.strip()):
        found.append(FieldError("invalid", f"{path}.message", "must not contain line breaks", message))
    elif _LINES.search(text.strip()) and not message.strip():
        told = "message must be specified if rule contains line breaks"
        found.append(FieldError("required", f"{path}.message", told))
    if expression and not expression.strip():
        told = "messageExpression must be non-empty if specified"
        found.append(FieldError("required", f"{path}.messageExpression", told))
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        found.append(unsupported(f"{path}.reason", rule["reason"], _REASONS))
    if field := rule.get("fieldPath") or "":
        where = f"{path}.fieldPath"
        if not field.strip():
            found.append(FieldError("invalid", where, "must be non-empty if specified", field))
        if _LINES.search(field):
            found.append(FieldError("invalid", where, "must not contain line breaks", field))
        try:
            resolved(field, schema)
        except InvalidPath:
            found.append(FieldError("invalid", where, "must be a valid path", field))
    return found


def _compile_errors(
    rule: dict[str, Any], compiled: cel.Compiled, path: str, context: _Context
) -> list[FieldError]:
    found = [FieldError("invalid", f"{path}.{one.word}", one.text, go_rule(rule)) for one in compiled.issues]
    if compiled.uses_old:
        if context.unpaired:
            told = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema "
                f"within {context.unpaired}"
            )
            found.append(FieldError("invalid", f"{path}.rule", told, rule["rule"]))
    elif rule.get("optionalOldSelf") is not None:
        told = "may not be set if oldSelf is not used in rule"
        found.append(FieldError("invalid", f"{path}.optionalOldSelf", told, rule["optionalOldSelf"]))
    return found


def _cost_errors(
    compiled: cel.Compiled, bound: costs.Bounds, path: str, context: _Context, budget: costs.Budget
) -> list[FieldError]:
    """A rule costs as often as there may be a value for it; its message, once."""
    found = []
    for word, what, checked in (
        ("rule", "estimated rule cost", compiled.checked),
        ("messageExpression", "estimated messageExpression cost", compiled.composed),
    ):
        if checked is None:
            continue
        cost = costs.estimated(checked.source, checked.facts, bound)
        if word == "rule":
            cost *= costs.occurrences(bound.least) if context.occurs is None else context.occurs
        budget.take(cost, f"{path}.{word}")
        if cost > costs.RULE_LIMIT and not context.is_unchanged:
            told = costs.exceeding(what, cost, costs.RULE_LIMIT)
            found.append(FieldError("forbidden", f"{path}.{word}", told))
    return found


# ── Defaults ────────────────────────────────────────────────────────────────────────────────────────


def _default_errors(schema: Schema, path: str, *, is_root: bool = True) -> list[FieldError]:
    """A default is a value like any other: pruned, and valid."""
    found: list[FieldError] = []
    value = schema.get("default")
    if value is not None:
        found += _value_errors(schema, value, f"{path}.default", is_root=is_root)
    if (each := items(schema)) is not None:
        found += _default_errors(each, f"{path}.items", is_root=False)
    for name, one in properties(schema).items():
        if is_root and name in META:
            continue  # forbidden there, which is said elsewhere
        found += _default_errors(one, key(f"{path}.properties", name), is_root=False)
    return found


def _value_errors(schema: Schema, value: Any, path: str, *, is_root: bool) -> list[FieldError]:
    found: list[FieldError] = []
    pruned = copied(value)
    prune.pruner(schema, is_root=is_root or bool(schema.get(EMBEDDED)), drops_nulls=False)(pruned)
    if not same(pruned, value):
        found.append(FieldError("invalid", path, "must not have unknown fields", value))
    coerce, look = embedded.coercer(schema), embedded.embedded_errors(schema)
    if coerce is not None and look is not None:
        try:
            coerce(copied(value), Path(step=path), Told())
        except WrongType as error:
            where, _, told = str(error).partition(": ")
            return [*found, FieldError("invalid", where, told.removeprefix("Invalid value: "))]
        inside = Found()
        look(value, Path(step=path), inside)
        if inside.errors:
            return found + inside.errors
    if wrong := validate.field_errors(validate.problems(schema, value), path):
        return found + wrong
    rules = cel.rules(schema, is_root=is_root) if cel.has_rules(schema) else None
    if rules is not None:
        found += rules.errors(value, value, path=path) or rules.errors(value, None, path=path)
    return found
