"""What is wrong with a CustomResourceDefinition, in Kubernetes' words, paths and order.

``errors`` judges a new one, ``update_errors`` one that takes another's place, ``warnings`` says what is odd
but taken.  What all versions share is judged once, under the path where Kubernetes' internal form keeps it:
``spec.validation``, not ``spec.versions[0].schema``.

Pure.  A definition that passes here can be compiled: nothing in this folder fails on it later.
Not here: metadata, but for what a definition's name must be; the words of schemas (``schema_rules.py``); what
is filled in (``defaults/``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from setpoint.server.golang import quoted, same
from setpoint.server.registry.crd import lifecycle
from setpoint.server.registry.crd.fieldpath import InvalidPath, resolved
from setpoint.server.registry.crd.formats import is_recognized
from setpoint.server.registry.crd.gonames import go_versions
from setpoint.server.registry.crd.schema_rules import schema_errors
from setpoint.server.registry.crd.schemas import LIST_TYPE, Schema, everywhere, items
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import IMMUTABLE
from setpoint.server.statuses import FieldError, unsupported

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_REVIEWS: Final = ("v1", "v1beta1")
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_MOST_SELECTABLE: Final = 8
_SELECTABLE: Final = frozenset({"string", "boolean", "integer"})


def errors(crd: Object) -> list[FieldError]:
    """Of a new definition."""
    spec = crd.get("spec") or {}
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    name = crd["metadata"].get("name") or ""
    found: list[FieldError] = []
    if name and name != wanted:
        found.append(FieldError("invalid", "metadata.name", 'must be spec.names.plural+"."+spec.group', name))
    return [
        *found,
        *_spec_errors(spec),
        *_status_errors(crd),
        *_approval_errors(crd, None),
        *_preserving(spec),
    ]


def update_errors(new: Object, old: Object, subresource: str = "") -> list[FieldError]:
    """Of a definition that takes another's place."""
    if subresource == "status":
        accepted = (new.get("status") or {}).get("acceptedNames") or {}
        return _names_errors(accepted, "status.acceptedNames")
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    schemas = {one.get("name"): one.get("schema") for one in before.get("versions") or ()}
    unchanged = frozenset(
        one["name"]
        for one in spec.get("versions") or ()
        if one.get("name") in schemas and same(one.get("schema"), schemas[one["name"]])
    )
    found = _spec_errors(spec, is_established=lifecycle.is_established(old), unchanged=unchanged)
    fixed = ["group", "names.plural"]
    if lifecycle.is_established(old):
        fixed = ["scope", "names.kind", *fixed]
    for path in fixed:
        value = _at(spec, path)
        if value != _at(before, path):
            found.append(FieldError("invalid", f"spec.{path}", IMMUTABLE, value))
    return [*found, *_status_errors(new), *_approval_errors(new, old), *_preserving(spec)]


def _at(spec: dict[str, Any], path: str) -> Any:
    value: Any = spec
    for step in path.split("."):
        value = (value or {}).get(step)
    return value or ""


def _preserving(spec: dict[str, Any]) -> list[FieldError]:
    if not spec.get("preserveUnknownFields"):
        return []
    told = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true "
        "in spec.versions[*].schema instead"
    )
    return [FieldError("invalid", "spec.preserveUnknownFields", told, True)]


def _approval_errors(new: Object, old: Object | None) -> list[FieldError]:
    if not lifecycle.is_protected((new.get("spec") or {}).get("group") or ""):
        return []
    state, told = lifecycle.approval(new)
    if old is not None and lifecycle.approval(old)[0] == state:
        return []
    path = f"metadata.annotations[{lifecycle.APPROVAL}]"
    if state == "MissingAnnotation":
        return [FieldError("required", path, told)]
    if state == "InvalidAnnotation":
        return [FieldError("invalid", path, told, new["metadata"]["annotations"][lifecycle.APPROVAL])]
    return []


# ── The spec ────────────────────────────────────────────────────────────────────────────────────────


def _spec_errors(
    spec: dict[str, Any], *, is_established: bool = False, unchanged: frozenset[str] = frozenset()
) -> list[FieldError]:
    """``unchanged`` are the versions whose schema is as it was."""
    versions: list[dict[str, Any]] = spec.get("versions") or []
    common = _common(versions)
    found = [
        *_group_errors(spec.get("group") or ""),
        *_choice("spec.scope", spec.get("scope"), "Cluster", "Namespaced"),
    ]
    found += [
        FieldError("required", f"spec.versions[{place}].schema.openAPIV3Schema")
        for place, one in enumerate(versions)
        if (one.get("schema") or {}).get("openAPIV3Schema") is None
    ]
    for place, one in enumerate(versions):
        name = one.get("name") or ""
        if wrong := texts.label_1035(name):
            found.append(FieldError("invalid", f"spec.versions[{place}].name", ",".join(wrong), name))
        found += _version_errors(one, f"spec.versions[{place}]", common, is_unchanged=name in unchanged)
    found += _versions_errors(versions, common)
    first = versions[0].get("name") if versions else ""
    if first and (wrong := texts.label_1035(first)):
        found.append(FieldError("invalid", "spec.version", ",".join(wrong), first))
    names = spec.get("names") or {}
    found += [
        FieldError("required", f"spec.names.{word}")
        for word in ("plural", "singular", "kind", "listKind")
        if not names.get(word)
    ]
    found += _names_errors(names, "spec.names")
    if versions:
        found += _shared_errors(versions, common, is_unchanged=first in unchanged)
    return found + _conversion_errors(spec.get("conversion"), is_established=is_established)


def _common(versions: list[dict[str, Any]]) -> frozenset[str]:
    """What is the same in all versions."""
    return frozenset(
        word
        for word in _SHARED
        if all(same(one.get(word) or None, versions[0].get(word) or None) for one in versions)
    )


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [FieldError("required", "spec.group")]
    if wrong := texts.subdomain(group):
        return [FieldError("invalid", "spec.group", ",".join(wrong), group)]
    if "." not in group:
        return [FieldError("invalid", "spec.group", "should be a domain with at least one dot", group)]
    return []


def _choice(path: str, value: str | None, *allowed: str) -> list[FieldError]:
    if not value:
        return [FieldError("required", path)]
    return [] if value in allowed else [unsupported(path, value, allowed)]


def _version_errors(
    version: dict[str, Any], path: str, common: frozenset[str], *, is_unchanged: bool
) -> list[FieldError]:
    found = [
        FieldError("invalid", f"{path}.deprecationWarning", told, version.get("deprecationWarning"))
        for told in _deprecation_errors(version)
    ]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if "schema" not in common and schema is not None:
        has_status = (version.get("subresources") or {}).get("status") is not None
        where = f"{path}.schema.openAPIV3Schema"
        found += schema_errors(schema, where, has_status=has_status, is_unchanged=is_unchanged)
    if "subresources" not in common:
        found += _scale_errors(version.get("subresources"), f"{path}.subresources")
    if "additionalPrinterColumns" not in common:
        found += _columns_errors(version.get("additionalPrinterColumns"), f"{path}.additionalPrinterColumns")
    if "selectableFields" not in common and version.get("selectableFields"):
        found += _selectable_errors(version["selectableFields"], schema, f"{path}.selectableFields")
    return found


def _shared_errors(
    versions: list[dict[str, Any]], common: frozenset[str], *, is_unchanged: bool
) -> list[FieldError]:
    first = versions[0]
    found: list[FieldError] = []
    schema = (first.get("schema") or {}).get("openAPIV3Schema")
    if "schema" in common and schema is not None:
        has_status = any((one.get("subresources") or {}).get("status") is not None for one in versions)
        where = "spec.validation.openAPIV3Schema"
        found += schema_errors(schema, where, has_status=has_status, is_unchanged=is_unchanged)
    if "subresources" in common:
        found += _scale_errors(first.get("subresources"), "spec.subresources")
    if "additionalPrinterColumns" in common:
        found += _columns_errors(first.get("additionalPrinterColumns"), "spec.additionalPrinterColumns")
    if "selectableFields" in common and first.get("selectableFields"):
        if "schema" in common:
            found += _selectable_errors(first["selectableFields"], schema, "spec.selectableFields")
        else:
            told = "may only be set when validations.schema is included"
            found.append(FieldError("invalid", "spec.selectableFields", told, ""))
    return found


def _versions_errors(versions: list[dict[str, Any]], common: frozenset[str]) -> list[FieldError]:
    names = [one.get("name") for one in versions]
    told = []
    if len(set(names)) != len(names):
        told.append("must contain unique version names")
    if sum(bool(one.get("storage")) for one in versions) != 1:
        told.append("must have exactly one version marked as storage version")
    return [FieldError("invalid", "spec.versions", one, go_versions(versions, common)) for one in told]


def _deprecation_errors(version: dict[str, Any]) -> Iterator[str]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(text.encode()) > 256:
        yield "must be <= 256 characters long"
    if not text:
        yield "must not be an empty string"
    for place, one in enumerate(text):
        if not one.isprintable():
            at = len(text[:place].encode())
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            break


def _names_errors(names: dict[str, Any], path: str) -> list[FieldError]:
    found = [
        FieldError("invalid", f"{path}.{word}", ",".join(wrong), names[word])
        for word in ("plural", "singular")
        if names.get(word) and (wrong := texts.label_1035(names[word]))
    ]
    for word in ("kind", "listKind"):
        if names.get(word) and (wrong := texts.label_1035(names[word].lower())):
            told = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            found.append(FieldError("invalid", f"{path}.{word}", told, names[word]))
    found += _labels_errors(names.get("shortNames"), f"{path}.shortNames")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        told = "kind and listKind may not be the same"
        found.append(FieldError("invalid", f"{path}.listKind", told, names["listKind"]))
    return found + _labels_errors(names.get("categories"), f"{path}.categories")


def _labels_errors(labels: list[str] | None, path: str) -> list[FieldError]:
    return [
        FieldError("invalid", f"{path}[{place}]", ",".join(wrong), one)
        for place, one in enumerate(labels or ())
        if (wrong := texts.label_1035(one))
    ]


def _status_errors(crd: Object) -> list[FieldError]:
    status, path = crd.get("status") or {}, "status.storedVersions"
    found = _names_errors(status.get("acceptedNames") or {}, "status.acceptedNames")
    stored: list[str] = status.get("storedVersions") or []
    if not stored:
        return [*found, FieldError("invalid", path, "must have at least one stored version", None)]
    left = {name: place for place, name in enumerate(stored)}
    for one in (crd.get("spec") or {}).get("versions") or ():
        if one.get("storage") and one.get("name") not in left:
            found.append(FieldError("invalid", path, f"must have the storage version {one['name']}", stored))
        left.pop(one.get("name"), None)
    for name, place in left.items():
        told = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
            f"removes {name} from status.storedVersions"
        )
        found.append(FieldError("invalid", f"{path}[{place}]", told, name))
    return found


# ── Columns, scale, selectable fields ───────────────────────────────────────────────────────────────


def _columns_errors(columns: list[dict[str, Any]] | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for place, one in enumerate(columns or ()):
        at, types = f"{path}[{place}]", f"must be one of {','.join(_COLUMN_TYPES)}"
        if not one.get("name"):
            found.append(FieldError("required", f"{at}.name"))
        if not one.get("type"):
            found.append(FieldError("required", f"{at}.type", types))
        elif one["type"] not in _COLUMN_TYPES:
            found.append(FieldError("invalid", f"{at}.type", types, one["type"]))
        if one.get("format") and one["format"] not in _COLUMN_FORMATS:
            told = f"must be one of {','.join(_COLUMN_FORMATS)}"
            found.append(FieldError("invalid", f"{at}.format", told, one["format"]))
        if not one.get("jsonPath"):
            found.append(FieldError("required", f"{at}.JSONPath"))
        else:
            found += _simple_path_errors(one["jsonPath"], f"{at}.JSONPath")
    return found


def _simple_path_errors(text: str, path: str) -> list[FieldError]:
    if text.startswith("."):
        return []
    return [FieldError("invalid", path, "must be a simple json path starting with .", text)]


def _scale_errors(below: dict[str, Any] | None, path: str) -> list[FieldError]:
    scale = (below or {}).get("scale")
    if scale is None:
        return []
    found: list[FieldError] = []
    for word, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, at = scale.get(word) or "", f"{path}.scale.{word}"
        if not text:
            found.append(FieldError("required", at))
        elif wrong := _simple_path_errors(text, at):
            found += wrong
        elif not text.startswith(start):
            found.append(FieldError("invalid", at, f"should be a json path under {start[:-1]}", text))
    if text := scale.get("labelSelectorPath"):
        at = f"{path}.scale.labelSelectorPath"
        if wrong := _simple_path_errors(text, at):
            found += wrong
        elif not text.startswith((".spec.", ".status.")):
            found.append(
                FieldError("invalid", at, "should be a json path under either .spec or .status", text)
            )
    return found


def _selectable_errors(fields: list[dict[str, Any]], schema: Schema | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for place, one in enumerate(fields):
        at, text = f"{path}[{place}].jsonPath", one.get("jsonPath") or ""
        if not text:
            found.append(FieldError("required", at))
            continue
        try:
            target = resolved(text, schema or {}, allows_brackets=False)
        except InvalidPath as error:
            found.append(FieldError("invalid", at, f"is an invalid path: {error}", text))
            continue
        if target.path.split(".")[0] == "metadata":
            found.append(FieldError("invalid", at, "must not point to fields in metadata", text))
        if target.schema is None or target.schema.get("type") not in _SELECTABLE:
            told = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            found.append(FieldError("invalid", at, told, text))
        if target.path in seen:
            found.append(FieldError("duplicate", at, value=text))
        seen.add(target.path)
    if len(seen) > _MOST_SELECTABLE:
        told = f"must have at most {_MOST_SELECTABLE} items"
        found.append(FieldError("too many", path, told, len(seen)))
    return found


# ── Conversion ──────────────────────────────────────────────────────────────────────────────────────


def _conversion_errors(conversion: dict[str, Any] | None, *, is_established: bool) -> list[FieldError]:
    """What a webhook's certificates are is looked at when it is called."""
    del is_established
    if conversion is None:
        return []
    path, strategy = "spec.conversion", conversion.get("strategy")
    found = _choice(f"{path}.strategy", strategy, "None", "Webhook")
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        told = "should not be set when strategy is not set to Webhook"
        if client is not None:
            found.append(FieldError("forbidden", where, told))
        if reviews:
            found.append(FieldError("forbidden", f"{path}.conversionReviewVersions", told))
        return found
    if client is None:
        found.append(FieldError("required", where, "required when strategy is set to Webhook"))
    elif (client.get("url") is None) == (client.get("service") is None):
        found.append(FieldError("required", where, "exactly one of url or service is required"))
    elif client.get("url") is not None:
        found += _url_errors(client["url"], f"{where}.url")
    else:
        found += _service_errors(client["service"], f"{where}.service")
    return found + _reviews_errors(reviews, f"{path}.conversionReviewVersions")


def _url_errors(url: str, path: str) -> list[FieldError]:
    form = "; desired format: https://host[/path]"
    scheme, _, rest = url.partition("://")
    found = []
    if scheme != "https":
        found.append(
            FieldError(
                "invalid", path, f"'https' is the only allowed URL scheme{form}", scheme if rest else ""
            )
        )
    if not rest.partition("/")[0]:
        found.append(FieldError("invalid", path, f"host must be specified{form}", ""))
    return found


def _service_errors(service: dict[str, Any], path: str) -> list[FieldError]:
    found = [
        FieldError("required", f"{path}.{word}", f"service {word} is required")
        for word in ("name", "namespace")
        if not service.get(word)
    ]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        told = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(FieldError("invalid", f"{path}.port", told, port))
    return found


def _reviews_errors(versions: list[str], path: str) -> list[FieldError]:
    if not versions:
        return [FieldError("required", path)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for place, one in enumerate(versions):
        if one in seen:
            found.append(FieldError("invalid", f"{path}[{place}]", "duplicate version", one))
            continue
        seen.add(one)
        found += [FieldError("invalid", f"{path}[{place}]", told, one) for told in texts.label_1035(one)]
    if not seen & set(_REVIEWS):
        found.append(
            FieldError("invalid", path, f"must include at least one of {', '.join(_REVIEWS)}", versions)
        )
    return found


# ── What is odd ─────────────────────────────────────────────────────────────────────────────────────


def warnings(new: Object, old: Object | None) -> list[str]:
    """What is odd but taken; what was odd before is not said again."""
    before = set(_oddities(old)) if old is not None else set[str]()
    return [one for one in _oddities(new) if one not in before]


def _oddities(crd: Object) -> list[str]:
    versions = (crd.get("spec") or {}).get("versions") or []
    schemas = [(one.get("schema") or {}).get("openAPIV3Schema") for one in versions]
    if versions and "schema" in _common(versions):
        schemas = schemas[:1]
    formats: list[str] = []
    sets: set[str] = set()
    for schema in schemas:
        for one in everywhere(schema) if schema is not None else ():
            if (word := one.get("format")) and not is_recognized(word, one.get("type") or ""):
                formats.append(f"unrecognized format {quoted(word)}")
            kind = (items(one) or {}).get("type")
            if one.get(LIST_TYPE) == "set" and kind in ("object", "array"):
                sets.add(
                    f"x-kubernetes-list-type: set for items of type {quoted(kind)} is not supported by "
                    "server-side apply or CEL validation rules"
                )
    return formats + sorted(sets)
