"""From the bytes of a request to an object of its kind: what is read how, and in which words it is refused.

A body (create, update) is refused with 400; what a patch made of an object, with 422 that names the patch; an
apply's intent is read as YAML whatever it is.  ``bodies.py`` knows the formats, the strategy knows the type.
"""

from __future__ import annotations

from typing import Any

from setpoint.server.golang import encoded
from setpoint.server.registry import bodies
from setpoint.server.registry.conform import WrongType, conform, wrong_type
from setpoint.server.registry.requests import Ask, Validation
from setpoint.server.registry.resources import Decoded, Object, Resource
from setpoint.server.registry.types import Type
from setpoint.server.statuses import FieldError, StatusError, bad_request, invalid


def decode(ask: Ask) -> Decoded:
    """The object of a body, of the resource's kind."""
    resource = ask.resource
    reader = bodies.read_custom if resource.is_custom else bodies.read_object
    read = reader(ask.body, ask.content_type, resource.group, resource.version, resource.kind)
    try:
        decoded = resource.strategy.conform(read.object)
    except WrongType as wrong:
        raise wrong_type(wrong, resource.kind, resource.version) from None
    return Decoded(decoded.object, [*read.unknown, *decoded.unknown])


def read_plain(ask: Ask, kind: Resource) -> Object:
    """A body that is not of the resource's own kind: a Binding, an Eviction, a Scale."""
    read = bodies.read_object(ask.body, ask.content_type, kind.group, kind.version, kind.kind)
    try:
        return conform(read.object, kind.type).object
    except WrongType as wrong:
        raise wrong_type(wrong, kind.kind, kind.version) from None


def read_options(ask: Ask, type: Type) -> Object:  # noqa: A002 - the word of the whole registry
    """DeleteOptions, where there is a body at all."""
    if not ask.body:
        return {}
    value = bodies.read(ask.body, ask.content_type, "DeleteOptions").value
    if not isinstance(value, dict):
        raise bodies.unrecognized("DeleteOptions", _not_a_map(value), ask.body)
    kind = value.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = value.get("apiVersion") or "v1"
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    try:
        found = conform(value, type).object
    except WrongType as wrong:
        raise wrong_type(wrong, "DeleteOptions", "v1") from None
    return {name: one for name, one in found.items() if name not in ("kind", "apiVersion")}


# ── Patches ─────────────────────────────────────────────────────────────────────────────────────────


def conform_patched(obj: Object, resource: Resource) -> Decoded:
    """What a patch left, as an object of its kind."""
    try:
        return resource.strategy.conform(obj)
    except WrongType as wrong:
        raise _patch_invalid(obj, str(wrong)) from None


def check_patched(decoded: Decoded, obj: Object, validation: Validation) -> list[str]:
    if not decoded.unknown or validation == "Ignore":
        return []
    if validation == "Strict":
        raise _patch_invalid(obj, "strict decoding error: " + ", ".join(decoded.unknown))
    return list(decoded.unknown)


def _patch_invalid(obj: Object, told: str) -> StatusError:
    return invalid("", "", "", [FieldError("invalid", "patch", told, encoded(obj))])


def read_intent(ask: Ask, validation: Validation) -> tuple[Object, list[str]]:
    """What an apply wants, and what is said about how it was written."""
    try:
        value, doubled = bodies.read_yaml(ask.body)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(value, dict):
        raise bad_request(f"error decoding YAML: {_not_a_map(value)}")
    if doubled and validation == "Strict":
        raise bad_request("error strict decoding YAML: " + ", ".join(doubled))
    if (value.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return value, list(doubled) if validation == "Warn" else []


def _not_a_map(value: Any) -> str:
    kinds = {bool: "bool", list: "array", str: "string", type(None): "null"}
    kind = kinds.get(type(value), "number")
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
