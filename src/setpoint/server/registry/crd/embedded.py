"""The ``metadata`` of an object, and whole objects inside an object: typed, whatever the schema says.

``conform_metadata`` makes ``metadata`` what ObjectMeta is.  ``coercer`` does the same for every embedded
resource of a schema, and ``embedded_errors`` says what is wrong with them.  Schemas without embedded
resources cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.api.selectors import label_key_errors, label_value_errors
from setpoint.server.golang import shown
from setpoint.server.registry.conform import WrongType, conform
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    META,
    Schema,
    child,
    extra,
    items,
    key,
    properties,
    spine,
)
from setpoint.server.registry.crd.types import object_meta
from setpoint.server.registry.emit import emit
from setpoint.server.registry.validation import texts
from setpoint.server.statuses import FieldError

# Changes a value at a path in place, and gives the paths of what went.  Raises ``WrongType``.
Coerce = Callable[[Any, str], list[str]]
Find = Callable[[Any, str], list[FieldError]]

_PREFIX = 'unknown field "'


def conform_metadata(holder: dict[str, Any], path: str = "metadata") -> list[str]:
    """Make ``holder``'s metadata what ObjectMeta is; the paths of what went.  Raises ``WrongType``."""
    found = holder["metadata"]
    if not isinstance(found, dict):
        said = {list: "array", str: "string", bool: "bool"}.get(type(found), "number")
        raise WrongType(f"json: cannot unmarshal {said} into Go value of type v1.ObjectMeta")
    if _is_plain(found):
        return []
    decoded = conform(dict(sorted(found.items())), object_meta())
    holder["metadata"] = emit(decoded.object, object_meta())
    if holder["metadata"].get("creationTimestamp", "") is None:
        del holder["metadata"]["creationTimestamp"]
    return [f"{path}.{one[len(_PREFIX) : -1]}" for one in decoded.unknown]


_TEXTS = frozenset({"name", "namespace", "generateName", "uid", "resourceVersion"})
_MAPS = frozenset({"labels", "annotations"})


def _is_plain(metadata: dict[str, Any]) -> bool:
    """Most metadata are names and labels, and as they should be."""
    for name, value in metadata.items():
        if name in _TEXTS:
            if type(value) is not str or not value:
                return False
        elif name in _MAPS:
            if type(value) is not dict or not value:
                return False
            for one in value.values():
                if type(one) is not str:
                    return False
        elif name == "generation":
            if type(value) is not int or not value:
                return False
        else:
            return False
    return True


def coercer(schema: Schema) -> Coerce | None:
    """Compile a schema; None where it has no embedded resources."""
    if not any(one.get(EMBEDDED) for one in spine(schema)):
        return None
    is_object = bool(schema.get(EMBEDDED))
    known = {name: found for name, one in properties(schema).items() if (found := coercer(one))}
    rest, inner = extra(schema), items(schema)
    other, each = rest and coercer(rest), inner and coercer(inner)

    def coerce(value: Any, path: str) -> list[str]:
        gone: list[str] = []
        if type(value) is dict:
            if is_object:
                gone += _coerced(value, path)
            for name, below in known.items():
                if name in value:
                    gone += below(value[name], child(path, name))
            if other:
                for name, one in value.items():
                    if name not in known:
                        gone += other(one, key(path, name))
        elif type(value) is list and each:
            for place, one in enumerate(value):
                gone += each(one, key(path, str(place)))
        return gone

    return coerce


def _coerced(value: dict[str, Any], path: str) -> list[str]:
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            raise WrongType(f"{child(path, name)}: Invalid value: {shown(value[name])}: must be a string")
    if "metadata" not in value:
        return []
    if value["metadata"] is None:
        value["metadata"] = {}
    where = child(path, "metadata")
    try:
        return conform_metadata(value, where)
    except WrongType as error:
        raise WrongType(f"{where}: Invalid value: {shown(value['metadata'])}: {error}") from None


def embedded_errors(schema: Schema) -> Find | None:
    """Compile a schema; None where it has no embedded resources."""
    if not any(one.get(EMBEDDED) for one in spine(schema)):
        return None
    is_object = bool(schema.get(EMBEDDED))
    known = {name: found for name, one in properties(schema).items() if (found := embedded_errors(one))}
    rest, inner = extra(schema), items(schema)
    other, each = rest and embedded_errors(rest), inner and embedded_errors(inner)

    def find(value: Any, path: str) -> list[FieldError]:
        errors: list[FieldError] = []
        if type(value) is dict:
            if is_object:
                errors += object_errors(value, path)
            for name, below in known.items():
                if name in value:
                    errors += below(value[name], child(path, name))
            if other:
                for name, one in value.items():
                    if name not in known:
                        errors += other(one, key(path, name))
        elif type(value) is list and each:
            for place, one in enumerate(value):
                errors += each(one, key(path, str(place)))
        return errors

    return find


def object_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with the apiVersion, kind and metadata of an object inside an object."""
    errors = [
        FieldError("required", child(path, name)) for name in ("apiVersion", "kind") if name not in value
    ]
    for name, found in value.items():
        where = child(path, name)
        if name not in META:
            continue
        if name == "metadata":
            errors += _metadata_errors(found, where)
        elif not isinstance(found, str):
            errors.append(FieldError("invalid", where, "must be a string", found))
        elif not found:
            errors.append(FieldError("invalid", where, "must not be empty", found))
        elif name == "apiVersion" and found.count("/") > 1:
            errors.append(FieldError("invalid", where, f"unexpected GroupVersion string: {found}", found))
        elif name == "kind" and (wrong := texts.label_1035(found.lower())):
            told = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            errors.append(FieldError("invalid", where, told, found))
    return errors


def _metadata_errors(metadata: Any, path: str) -> list[FieldError]:
    holder = {"metadata": metadata}
    try:
        conform_metadata(holder)
    except WrongType as error:
        return [FieldError("invalid", path, str(error), metadata)]
    found: dict[str, Any] = holder["metadata"]
    errors = [
        FieldError("invalid", f"{path}.{word}", told, found[word])
        for word in ("generateName", "name")
        for told in texts.path_segment(found.get(word) or "")
    ]
    if namespace := found.get("namespace"):
        errors += [
            FieldError("invalid", f"{path}.namespace", told, namespace) for told in texts.label(namespace)
        ]
    for name, value in (found.get("labels") or {}).items():
        errors += [FieldError("invalid", f"{path}.labels", told, name) for told in label_key_errors(name)]
        errors += [FieldError("invalid", f"{path}.labels", told, value) for told in label_value_errors(value)]
    for name in found.get("annotations") or {}:
        wrong = label_key_errors(name.lower())
        errors += [FieldError("invalid", f"{path}.annotations", told, name) for told in wrong]
    for place, owner in enumerate(found.get("ownerReferences") or ()):
        errors += [
            FieldError("required", f"{path}.ownerReferences[{place}].{word}", "must not be empty")
            for word in ("apiVersion", "kind", "name", "uid")
            if not owner.get(word)
        ]
    for name in found.get("finalizers") or ():
        errors += [FieldError("invalid", f"{path}.finalizers", told, name) for told in label_key_errors(name)]
    return errors
