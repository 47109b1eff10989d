"""What a user does with an operator, where nobody says: made from the schema of a kind.

Create an object with every required field; change each field of its spec, numbers up and down again, the rest
one by one and then back together; ask for what the operator may choke on, and take that back; delete the
object; create it again under the same name; delete it while the operator is down.

``example`` is the spec to begin with, where the schema says too little (a pattern, a rule).  A field that no
other value comes to mind for is left alone.  Pure; ``usual.py`` puts the lives of several kinds together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from setpoint.testing.proof.plans import Change, Create, Delete, Step

Json: TypeAlias = Any
Schema: TypeAlias = Mapping[str, Any]

_FORMATS = {
    "date-time": "2030-01-01T00:00:00Z",
    "date": "2030-01-01",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "uri": "https://example.com/",
    "uuid": "2f1d5c0e-6f0e-4b69-9a7a-5b0c8f3e7a11",
}
_OTHERS = {
    "date-time": "2031-02-03T04:05:06Z",
    "date": "2031-02-03",
    "email": "another@example.com",
    "hostname": "another.example.com",
    "ipv4": "192.0.2.2",
    "uri": "https://example.com/another",
    "uuid": "8d0b2c44-1c3f-4f0a-8b60-0d8e5c2f9b37",
}
_WRONG = "bad"  # names nothing that there is


def usual_steps(
    crd: Mapping[str, Any],
    example: Mapping[str, Any] | None = None,
    *,
    name: str = "sample",
) -> tuple[Step, ...]:
    """The life of one object, from a definition in wire form."""
    api_version, kind, schema = served(crd)
    spec = dict(example) if example is not None else sample(schema)
    metadata = {"name": name, "namespace": "default"}
    if crd["spec"].get("scope") == "Cluster":
        del metadata["namespace"]
    obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    namespace = metadata.get("namespace", "default")
    create, delete = Create(obj), Delete(api_version, kind, name, namespace)
    changes = [
        Change(api_version, kind, name, {"spec": patch}, namespace, may_fail=may_fail)
        for patch, may_fail in _changes(schema, spec)
    ]
    last = Delete(api_version, kind, name, namespace, while_down=True)
    return (create, *changes, delete, create, last)


def _changes(schema: Schema, spec: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Patches of a spec, in order, and whether each asks for what may not be; in the end it is as it was."""
    patches = list(others(schema, spec))
    for patch in patches:
        yield patch, False
        if _is_number(patch):
            yield undone(patch, spec), False
    rest: dict[str, Any] = {}
    for patch in patches:
        if not _is_number(patch):
            _merge(rest, undone(patch, spec))
    if rest:
        yield rest, False
    if wrong := misoperation(schema, spec):
        yield wrong, True
        yield undone(wrong, spec), False


def _is_number(patch: Json) -> bool:
    """Whether it sets a number: a count of something, as a rule."""
    while isinstance(patch, dict) and len(patch) == 1:
        patch = next(iter(patch.values()))
    return isinstance(patch, int | float) and not isinstance(patch, bool)


def _merge(into: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def undone(patch: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that takes another back."""
    return {
        name: undone(value, spec[name])
        if isinstance(value, dict) and isinstance(spec.get(name), dict)
        else spec.get(name)
        for name, value in patch.items()
    }


def misoperation(schema: Schema, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A patch that the schema allows and the operator may choke on; {} if none comes to mind.

    A text that names nothing; where there is none that may be so, the least of a number.
    """
    numbers: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        if is_fixed(field) or field.get("enum"):
            continue
        value = spec.get(name, sample(field))
        if field.get("type") == "string" and not field.get("format") and value != _WRONG:
            if _allows(field, _WRONG):
                return {name: _WRONG}
        elif field.get("type") in ("integer", "number") and not numbers:
            least = field.get("minimum", 0)
            least += bool(field.get("exclusiveMinimum"))
            numbers = {name: least} if least != value else {}
    return numbers


def served(crd: Mapping[str, Any]) -> tuple[str, str, Schema]:
    """The apiVersion, the kind, and what a spec must look like."""
    spec = crd["spec"]
    version = next(each for each in spec["versions"] if each.get("served", True))
    schema = version["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {})
    return f"{spec['group']}/{version['name']}", spec["names"]["kind"], schema


def sample(schema: Schema) -> Json:
    """Some value that a schema allows: what must be there, and no more."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: sample(properties.get(name, {})) for name in schema.get("required", ())}
        case "array":
            return [sample(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            low = schema.get("minimum", 1 if schema.get("maximum", 1) >= 1 else schema["maximum"])
            return low + 1 if schema.get("exclusiveMinimum") else low
        case "boolean":
            return False
        case "string":
            return _FORMATS.get(schema.get("format", ""), "a" * max(1, schema.get("minLength", 1)))
        case _:
            return {}


def another(schema: Schema, value: Json) -> Json:
    """A value other than this one; the same, if none comes to mind."""
    if schema.get("enum"):
        return next((each for each in schema["enum"] if each != value), value)
    match schema.get("type"):
        case "integer" | "number" if isinstance(value, int | float):
            if value + 1 <= schema.get("maximum", value + 1):
                return value + 1
            return value - 1 if value - 1 >= schema.get("minimum", value - 1) else value
        case "boolean":
            return not value
        case "string" if isinstance(value, str):
            known = _OTHERS.get(schema.get("format", ""))
            candidates = [known] if known else _variants(value) if not schema.get("format") else []
            return next((each for each in candidates if each != value and _allows(schema, each)), value)
        case "array" if isinstance(value, list):
            if len(value) < schema.get("maxItems", len(value) + 1):
                return [*value, sample(schema.get("items", {}))]
            return value[:-1]
        case "object" if isinstance(value, Mapping) and isinstance(
            schema.get("additionalProperties"), Mapping
        ):
            return {**value, "another": sample(schema["additionalProperties"])}
        case _:
            return value


def _variants(value: str) -> Iterator[str]:
    """Texts like this one: longer, or with its last digit or letter exchanged."""
    yield f"{value}b"
    yield f"{value}1"
    for sort, first, second in ((str.isdigit, "1", "2"), (str.isalpha, "b", "c")):
        where = max((number for number, each in enumerate(value) if sort(each)), default=None)
        if where is not None:
            given = value[where]
            other = str((int(given) + 1) % 10) if given.isdigit() else second if given == first else first
            yield value[:where] + other + value[where + 1 :]


def _allows(schema: Schema, value: str) -> bool:
    """Whether a text is as a schema has it; a pattern that this side cannot read allows none."""
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    try:
        return re.search(schema.get("pattern", ""), value) is not None
    except re.error:
        return False


def others(schema: Schema, spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Merge patches that change each field once; of those that may change."""
    for name, field in schema.get("properties", {}).items():
        if is_fixed(field):
            continue
        value = spec.get(name, sample(field))
        if field.get("type") == "object" and field.get("properties") and isinstance(value, Mapping):
            for patch in others(field, value):
                yield {name: patch}
            continue
        changed = another(field, value)
        if changed != value:
            yield {name: changed}


def is_fixed(schema: Schema) -> bool:
    """Whether a rule speaks of the value before: it may not change freely."""
    return any("oldSelf" in rule.get("rule", "") for rule in schema.get("x-kubernetes-validations", ()))
