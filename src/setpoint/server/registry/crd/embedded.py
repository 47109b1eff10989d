"""The ``metadata`` of an object, and whole objects inside an object: typed, whatever the schema says.

``conform_metadata`` makes ``metadata`` what ObjectMeta is.  ``coercer`` does the same for every embedded
resource of a schema, and ``embedded_errors`` says what is wrong with them.  Schemas without embedded
resources cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from setpoint.api.selectors import label_key_errors, label_value_errors
from setpoint.server.golang import shown
from setpoint.server.registry.conform import WrongType, conform
from setpoint.server.registry.crd.schemas import (
    EMBEDDED,
    META,
    Schema,
    extra,
    items,
    properties,
    spine,
)
from setpoint.server.registry.crd.types import object_meta
from setpoint.server.registry.emit import emit
from setpoint.server.registry.paths import Path, Told
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found

# Changes a value at a path in place, and tells the paths of what went.  Raises ``WrongType``.
Coerce = Callable[[Any, Path, Told], None]
Find = Callable[[Any, Path, Found], None]

_PREFIX = 'unknown field "'


def conform_metadata(holder: dict[str, Any]) -> list[str]:
    """Make ``holder``'s metadata what ObjectMeta is; what went from it.  Raises ``WrongType``."""
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
    return [one[len(_PREFIX) : -1] for one in decoded.unknown]


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

    def coerce(value: Any, path: Path, gone: Told) -> None:
        if type(value) is dict:
            if is_object:
                _coerce(value, path, gone)
            for name, below in known.items():
                if name in value:
                    below(value[name], path.child(name), gone)
            if other:
                for name, one in value.items():
                    if name not in known:
                        other(one, path.key(name), gone)
        elif type(value) is list and each:
            for place, one in enumerate(value):
                each(one, path.key(place), gone)

    return coerce


def _coerce(value: dict[str, Any], path: Path, gone: Told) -> None:
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            where = path.child(name).text
            raise WrongType(f"{where}: Invalid value: {shown(value[name])}: must be a string")
    if "metadata" not in value:
        return
    if value["metadata"] is None:
        value["metadata"] = {}
    below = path.child("metadata")
    try:
        dropped = conform_metadata(value)
    except WrongType as error:
        raise WrongType(f"{below.text}: Invalid value: {shown(value['metadata'])}: {error}") from None
    for one in dropped:
        if gone.is_full:
            break
        gone.add(below.child(one).text)


def embedded_errors(schema: Schema) -> Find | None:
    """Compile a schema; None where it has no embedded resources."""
    if not any(one.get(EMBEDDED) for one in spine(schema)):
        return None
    is_object = bool(schema.get(EMBEDDED))
    known = {name: found for name, one in properties(schema).items() if (found := embedded_errors(one))}
    rest, inner = extra(schema), items(schema)
    other, each = rest and embedded_errors(rest), inner and embedded_errors(inner)

    def find(value: Any, path: Path, found: Found) -> None:
        if found.is_full:
            return
        if type(value) is dict:
            if is_object:
                _judge(value, path, found)
            for name, below in known.items():
                if name in value:
                    below(value[name], path.child(name), found)
            if other:
                for name, one in value.items():
                    if name not in known:
                        other(one, path.key(name), found)
        elif type(value) is list and each:
            for place, one in enumerate(value):
                each(one, path.key(place), found)

    return find


def _judge(value: dict[str, Any], path: Path, found: Found) -> None:
    """The apiVersion, kind and metadata of an object inside an object."""
    for name in ("apiVersion", "kind"):
        if name not in value:
            found.required(path.child(name).text)
    for name, said in value.items():
        if name not in META:
            continue
        if name == "metadata":
            _judge_metadata(said, path.child(name), found)
        elif not isinstance(said, str):
            found.invalid(path.child(name).text, said, "must be a string")
        elif not said:
            found.invalid(path.child(name).text, said, "must not be empty")
        elif name == "apiVersion" and said.count("/") > 1:
            found.invalid(path.child(name).text, said, f"unexpected GroupVersion string: {said}")
        elif name == "kind" and (wrong := texts.label_1035(said.lower())):
            told = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            found.invalid(path.child(name).text, said, told)


def _judge_metadata(metadata: Any, path: Path, found: Found) -> None:
    holder = {"metadata": metadata}
    try:
        conform_metadata(holder)
    except WrongType as error:
        found.invalid(path.text, metadata, str(error))
        return
    made: dict[str, Any] = holder["metadata"]

    def tell(below: str, value: Any, details: Iterable[str]) -> None:
        for detail in details:
            if found.is_full:
                break
            found.invalid(path.below(below).text, value, detail)

    for word in ("generateName", "name"):
        tell(f".{word}", made.get(word), texts.path_segment(made.get(word) or ""))
    if namespace := made.get("namespace"):
        tell(".namespace", namespace, texts.label(namespace))
    for name, value in (made.get("labels") or {}).items():
        tell(".labels", name, label_key_errors(name))
        tell(".labels", value, label_value_errors(value))
    for name in made.get("annotations") or {}:
        tell(".annotations", name, label_key_errors(name.lower()))
    for place, owner in enumerate(made.get("ownerReferences") or ()):
        for word in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(word) and not found.is_full:
                found.required(path.below(f".ownerReferences[{place}].{word}").text, "must not be empty")
    for name in made.get("finalizers") or ():
        tell(".finalizers", name, label_key_errors(name))
