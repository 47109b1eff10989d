"""What is wrong with ``metadata``: names, labels, annotations, finalizers, owners; and with changing it.

Pure.  The rules and the words are Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from setpoint.api.selectors import label_key_errors, label_value_errors
from setpoint.server.golang import quoted
from setpoint.server.registry.resources import NameRule, Object, Resource
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import IMMUTABLE, Found
from setpoint.server.registry.validation.internals import written
from setpoint.server.statuses import FieldError

_MOST_ANNOTATIONS: Final = 256 * 2**10
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

subdomain_errors = texts.subdomain
label_errors = texts.label
label_1035_errors = texts.label_1035
path_segment_errors = texts.path_segment
_NAME_RULES: Final[dict[NameRule, Callable[[str], list[str]]]] = {
    "subdomain": texts.subdomain,
    "label": texts.label,
    "label-1035": texts.label_1035,
    "path segment": texts.path_segment,
}


def metadata_errors(obj: Object, resource: Resource) -> list[FieldError]:
    """Of an object that is new."""
    found = Found()
    metadata, rule = obj["metadata"], _NAME_RULES[resource.strategy.name_rule]
    _check_base(metadata, rule, found)
    _check_name(metadata, rule, found)
    _check_common(metadata, found)
    _check_finalizers(metadata.get("finalizers"), found, is_custom=resource.is_custom)
    return found.errors


def _check_name(metadata: dict[str, Any], rule: Callable[[str], list[str]], found: Found) -> None:
    name = metadata.get("name", "")
    if not name:
        found.required("metadata.name", "name or generateName is required")
    elif errors := rule(name):
        found.told("metadata.name", name, errors)


def common_errors(metadata: dict[str, Any]) -> list[FieldError]:
    """What may be wrong with the metadata of anything, wherever it is."""
    found = Found()
    _check_common(metadata, found)
    _check_finalizers(metadata.get("finalizers"), found, is_custom=True)
    return found.errors


def _check_base(metadata: dict[str, Any], rule: Callable[[str], list[str]], found: Found) -> None:
    if base := metadata.get("generateName"):
        is_open = rule is not texts.path_segment and len(base) > 1 and base.endswith("-")
        found.told("metadata.generateName", base, rule(f"{base[:-2]}a" if is_open else base))


def _check_common(metadata: dict[str, Any], found: Found) -> None:
    """What may be wrong with new and changed metadata alike."""
    if labels := metadata.get("labels"):
        _check_labels(labels, found)
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, "metadata.annotations", found)
    if owners := metadata.get("ownerReferences"):
        _check_owners(owners, found)


def _check_labels(labels: dict[str, str], found: Found) -> None:
    for key, value in labels.items():
        if errors := label_key_errors(key):
            found.told("metadata.labels", key, errors)
        if errors := label_value_errors(value):
            found.told("metadata.labels", value, errors)


def check_annotations(annotations: dict[str, str], path: str, found: Found) -> None:
    size = 0
    for key, value in annotations.items():
        if errors := label_key_errors(key.lower()):
            found.told(path, key, errors)
        size += len(key.encode()) + len(value.encode())
    if size > _MOST_ANNOTATIONS:
        found.too_long(path, _MOST_ANNOTATIONS)


def _check_finalizers(finalizers: list[str] | None, found: Found, *, is_custom: bool) -> None:
    if not finalizers:
        return
    for name in finalizers:
        found.told("metadata.finalizers", name, label_key_errors(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        found.invalid("metadata.finalizers", finalizers, detail)
    if not is_custom:
        for index, name in enumerate(finalizers):
            check_finalizer_stands(name, f"metadata.finalizers[{index}]", found)


def check_finalizer_stands(name: str, path: str, found: Found) -> None:
    """It is one of Kubernetes' own, or names its owner."""
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        found.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def _check_owners(owners: list[dict[str, Any]], found: Found) -> None:
    first = ""
    shown: Any = None  # all of them, written once
    for index, owner in enumerate(owners):
        path, version = f"metadata.ownerReferences[{index}]", owner.get("apiVersion", "")
        if not version:
            found.required(f"{path}.apiVersion", "must not be empty")
        elif version.count("/") > 1 or version.endswith("/"):
            found.invalid(f"{path}.apiVersion", version, "must be <group>/<version> or <version>")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                found.required(f"{path}.{field}", "must not be empty")
        if (version, owner.get("kind")) == ("v1", "Event"):
            found.invalid(path, written(owner), "/v1, Kind=Event is disallowed from being an owner")
        if not owner.get("controller"):
            continue
        this = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if first and not found.is_full:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{first} and {this}"
            )
            shown = shown or written(owners)
            found.invalid("metadata.ownerReferences", shown, detail)
        first = first or this


_TEXTS: Final = ("name", "namespace", "uid")
_FIXED: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def metadata_update_errors(new: Object, old: Object, resource: Resource) -> list[FieldError]:
    """Of an object that takes another's place."""
    found = Found()
    fresh, kept = new["metadata"], old["metadata"]
    finalizers = fresh.get("finalizers") or []
    if kept.get("deletionTimestamp"):
        added = sorted(set(finalizers).difference(kept.get("finalizers") or ()))
        if added:
            shown = ", ".join(quoted(one) for one in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            found.forbidden("metadata.finalizers", detail)
    for name in _FIXED:
        if fresh.get(name) != kept.get(name):
            said = fresh.get(name) or ("" if name in _TEXTS else None)
            found.invalid(f"metadata.{name}", said, IMMUTABLE)
    _check_common(fresh, found)
    if not resource.is_custom:
        if fresh.get("name") != kept.get("name"):
            _check_name(fresh, _NAME_RULES[resource.strategy.name_rule], found)
        if fresh.get("generateName") != kept.get("generateName"):
            _check_base(fresh, _NAME_RULES[resource.strategy.name_rule], found)
        if finalizers != kept.get("finalizers"):
            _check_finalizers(finalizers, found, is_custom=False)
    return found.errors
