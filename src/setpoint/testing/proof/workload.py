"""What a user does with an operator, where nobody says: made from the schema of its first kind.

Create an object with every required field; change each field of its spec once, and back; delete each child
that was made; delete the object; create it again under the same name; delete it.

``example`` is the spec to begin with, where the schema says too little (a pattern, a rule).  Pure.
"""

from __future__ import annotations

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


def usual_steps(
    crd: Mapping[str, Any], example: Mapping[str, Any] | None = None, *, children: tuple[Delete, ...] = ()
) -> tuple[Step, ...]:
    """The life of one object, from a definition in wire form."""
    api_version, kind, schema = served(crd)
    spec = dict(example) if example is not None else sample(schema)
    metadata = {"name": "sample", "namespace": "default"}
    if crd["spec"].get("scope") == "Cluster":
        del metadata["namespace"]
    obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    create, delete = Create(obj), Delete(api_version, kind, "sample")
    changes = [Change(api_version, kind, "sample", {"spec": patch}) for patch in others(schema, spec)]
    return (create, *changes, *children, delete, create, delete)


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
        case "string" if isinstance(value, str) and not schema.get("format") and not schema.get("pattern"):
            return f"{value}b" if len(value) < schema.get("maxLength", len(value) + 1) else value
        case "array" if isinstance(value, list):
            if len(value) < schema.get("maxItems", len(value) + 1):
                return [*value, sample(schema.get("items", {}))]
            return value[:-1]
        case _:
            return value


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
