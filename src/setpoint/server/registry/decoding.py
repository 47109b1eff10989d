"""From the bytes of a request to an object of its kind: what is read how, and in which words it is refused.

A body (create, update) is refused with 400; what a patch made of an object, with 422 that names the patch; an
apply's intent is read as YAML whatever it is.  ``bodies.py`` knows the formats, the strategy knows the type.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from setpoint.server.golang import encoded
from setpoint.server.registry import bodies
from setpoint.server.registry.conform import WrongType, conform, wrong_type
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.managed.typed import copied
from setpoint.server.registry.requests import Ask, Validation
from setpoint.server.registry.resources import Decoded, Object, Resource
from setpoint.server.registry.types import Type
from setpoint.server.statuses import FieldError, StatusError, bad_request, invalid

_UNRECOGNIZED = "the object provided is unrecognized (must be of type DeleteOptions): "


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


def plain_patched(obj: Object, kind: Resource, old: Object) -> Object:
    """What a patch left of such an object."""
    obj = _of_kind(obj, kind, old)
    try:
        return conform(obj, kind.type).object
    except WrongType as wrong:
        raise wrong_type(wrong, kind.kind, kind.version) from None


def read_options(ask: Ask, type: Type) -> Object:  # noqa: A002 - the word of the whole registry
    """DeleteOptions, from the body."""
    try:
        value = bodies.read(ask.body, ask.content_type, "DeleteOptions").value
    except StatusError as refused:
        if refused.code != 400:
            raise
        told = refused.message.removeprefix(_UNRECOGNIZED).rpartition(" (")[0]
        raise bad_request(told) from None
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


def conform_patched(obj: Object, resource: Resource, old: Object | None = None) -> Decoded:
    """What a patch left of ``old``, as an object of its kind."""
    if not resource.is_custom:
        obj = _of_kind(obj, resource, old)
    try:
        return resource.strategy.conform(obj)
    except WrongType as wrong:
        raise _patch_invalid(obj, old, str(wrong)) from None


def _of_kind(obj: Object, resource: Resource, old: Object | None) -> Object:
    """What says of itself what it is, or leaves its kind out; all else is refused."""
    for name in ("apiVersion", "kind"):
        if not isinstance(said := obj.get(name), str | None):
            told = f"cannot unmarshal {bodies.go_kind(said)} into Go struct field .{name} of type string"
            raise _patch_invalid(obj, old, f"couldn't get version/kind; json parse error: json: {told}")
    if not obj.get("apiVersion"):  # then nothing of it is read
        name = (old or {}).get("metadata", {}).get("name", "")
        told = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        refusal = bad_request(told)
        unread = sorted(set(obj) - {"kind", "apiVersion"})
        refusal.warnings = tuple(f'unknown field "{one}"' for one in unread)
        raise refusal
    obj = obj if obj.get("kind") else {**obj, "kind": resource.kind}
    kind, version = obj["kind"], obj["apiVersion"]
    if (kind, version) == (resource.kind, resource.api_version):
        return obj
    group, _, short = version.rpartition("/")
    try:
        conform(copied(obj), type_of(group, short, kind))
    except KeyError:
        told = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise _patch_invalid(obj, old, told) from None
    except WrongType as wrong:
        raise _patch_invalid(obj, old, str(wrong)) from None
    wanted = f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
    raise _patch_invalid(obj, old, f"converting ({short}.{kind}) to ({wanted}): unknown conversion")


def check_patched(decoded: Decoded, obj: Object, old: Object | None, validation: Validation) -> list[str]:
    if not decoded.unknown or validation == "Ignore":
        return []
    if validation == "Strict":
        raise _patch_invalid(obj, old, "strict decoding error: " + ", ".join(decoded.unknown))
    return list(decoded.unknown)


def _patch_invalid(obj: Object, old: Object | None, told: str) -> StatusError:
    return invalid("", "", "", [FieldError("invalid", "patch", told, _written(obj, old))])


def _written(value: Any, old: Any) -> str:
    """As JSON; what the patch did not touch is in its own order, the rest in that of its names."""
    if isinstance(value, dict):
        names = value if value == old else sorted(value)
        olds = old if isinstance(old, dict) else {}
        return "{" + ",".join(f"{encoded(one)}:{_written(value[one], olds.get(one))}" for one in names) + "}"
    if isinstance(value, list):
        pairs = zip_longest(value, old[: len(value)] if isinstance(old, list) else [])
        return "[" + ",".join(_written(one, before) for one, before in pairs) + "]"
    return encoded(value)


def read_intent(ask: Ask, validation: Validation) -> tuple[Object, list[str]]:
    """What an apply wants, and what is said about how it was written."""
    try:
        value, doubled = bodies.read_yaml(ask.body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: error converting YAML to JSON: {error}") from None
    if not isinstance(value, dict):
        told = "error decoding patch: error unmarshaling JSON: while decoding JSON: "
        raise bad_request(told + _not_a_map(value))
    if doubled and validation == "Strict":
        raise bad_request("error strict decoding YAML: " + ", ".join(doubled))
    metadata = value.get("metadata")
    if metadata is None:
        metadata = value["metadata"] = {}
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    return value, list(doubled) if validation == "Warn" else []


def is_named(intent: Object) -> bool:
    """Whether an intent has metadata that can be looked at before its type is checked."""
    metadata = intent.get("metadata")
    return isinstance(metadata, dict) and all(
        isinstance(metadata.get(name), str | None) for name in ("name", "namespace", "uid")
    )


def _not_a_map(value: Any) -> str:
    return f"json: cannot unmarshal {bodies.go_kind(value)} into Go value of type map[string]interface {{}}"
