"""A served version of a definition as a ``Resource``: what its objects go through, from body to store.

Decode → prune → default → validate, each compiled once from the schema, when it is first needed.  Objects
are converted between versions by their apiVersion alone (strategy None), and each version shows what its
schema knows of what is stored.

``resources_of`` is what the registry calls when a definition is established or has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

from setpoint.api.selectors import label_key_errors
from setpoint.server.golang import printed, quoted, same
from setpoint.server.registry import facts
from setpoint.server.registry.crd import cel, embedded, fill, jsonpath, lists, prune, quick, validate
from setpoint.server.registry.crd.lifecycle import served_versions, storage_version
from setpoint.server.registry.crd.ratcheting import Correlated
from setpoint.server.registry.crd.scale import Scaled
from setpoint.server.registry.crd.schemas import Schema, properties
from setpoint.server.registry.crd.types import type_of_schema
from setpoint.server.registry.metadata import bump_generation
from setpoint.server.registry.paths import Path, Told
from setpoint.server.registry.resources import (
    Column,
    Decoded,
    Family,
    Object,
    PlainStrategy,
    Resource,
    Subresource,
)
from setpoint.server.registry.served import version_order
from setpoint.server.registry.validation.found import Found
from setpoint.server.statuses import FieldError

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_BELOW: Final = ("get", "patch", "update")
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_BLOCKING: Final = frozenset({"not supported", "required", "too long", "too many", "type"})
_UNCHECKED: Final = FieldError(
    "invalid",
    "<nil>",
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    None,
)


def resources_of(crd: Object) -> list[Resource]:
    """One for each served version, as the definition lists them."""
    members: dict[str, Resource] = {}
    conversion = crd["spec"].get("conversion") or {}
    webhook = conversion.get("webhook") if conversion.get("strategy") == "Webhook" else None
    family = Family(f"{crd['spec']['group']}/{storage_version(crd)}", members, webhook)
    for version in crd["spec"].get("versions") or ():
        made = _resource(crd, version, family)
        members[made.api_version] = made
    served = {version["name"] for version in served_versions(crd)}
    return [one for one in members.values() if one.version in served]


def _resource(crd: Object, version: dict[str, Any], family: Family) -> Resource:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    names = names if names.get("plural") else spec["names"]
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    strategy = CustomStrategy(spec["group"], names["kind"], version, schema)
    subresources = []
    if strategy.has_status:
        subresources.append(Subresource("status", names["kind"], _BELOW))
    if strategy.scaled is not None:
        subresources.append(Subresource("scale", "Scale", _BELOW, group="autoscaling", version="v1"))
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        verbs=_VERBS,
        type=type_of_schema(schema),
        strategy=strategy,
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(subresources),
        columns=_columns(version),
        is_custom=True,
        stored_as=f"{names['plural']}.{spec['group']}",
        deprecation=_deprecation(spec, version),
        family=family,
    )


def _deprecation(spec: dict[str, Any], version: dict[str, Any]) -> str:
    if not version.get("deprecated"):
        return ""
    if said := version.get("deprecationWarning"):
        return str(said)
    group, kind = spec["group"], spec["names"]["kind"]
    told = f"{group}/{version['name']} {kind} is deprecated"
    good = [one["name"] for one in spec["versions"] if one.get("served") and not one.get("deprecated")]
    best = min([version["name"], *good], key=version_order)
    return told if best == version["name"] else f"{told}; use {group}/{best} {kind}"


def _columns(version: dict[str, Any]) -> tuple[Column, ...]:
    """Name, and what the definition adds, as far as it can be read; Age where it adds nothing."""
    found = [_name_column()]
    wanted = version.get("additionalPrinterColumns") or ()
    if not wanted:
        described = next(
            (
                one.description
                for one in _table_columns("customresourcedefinitions")
                if one.name == "Created At"
            ),
            "",
        )
        return (*found, Column("Age", "date", "", described, 0, ".metadata.creationTimestamp"))
    for one in wanted:
        path = one.get("jsonPath") or ""
        try:
            jsonpath.reader(path)
        except jsonpath.Unreadable:
            break
        described = (
            one.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        )
        found.append(
            Column(
                one["name"], one["type"], one.get("format") or "", described, one.get("priority") or 0, path
            )
        )
    return tuple(found)


def _name_column() -> Column:
    return next(
        (one for one in _table_columns("customresourcedefinitions") if one.name == "Name"),
        Column("Name", "string", "name"),
    )


def _table_columns(plural: str) -> tuple[Column, ...]:
    return next((one.columns for one in facts.resources() if one.plural == plural), ())


class CustomStrategy(PlainStrategy):
    """How objects of one version of a custom kind are treated."""

    allows_unconditional_update = False
    has_generation = True

    def __init__(self, group: str, kind: str, version: dict[str, Any], schema: Schema) -> None:
        self._api_version = f"{group}/{version['name']}"
        self._kind = kind
        self._schema = schema
        below = version.get("subresources") or {}
        self.has_status = below.get("status") is not None
        self.scaled = _scaled(below.get("scale"))
        self._selectable = tuple(
            (one["jsonPath"].removeprefix("."), jsonpath.reader(one["jsonPath"]))
            for one in version.get("selectableFields") or ()
        )

    @property
    def scaling(self) -> tuple[str, str, str] | None:
        """Where replicas wanted, replicas found and the selector stand, without leading dots."""
        if self.scaled is None:
            return None
        wanted, found, selector = (one.removeprefix(".") for one in self.scaled)
        return wanted, found, selector

    @property
    def openapi_schema(self) -> Schema:
        """The version's schema as it was written; OpenAPI shows it."""
        return self._schema

    def __repr__(self) -> str:
        return f"<CustomStrategy of {self._kind} {self._api_version}>"

    # Compiled when first needed: most versions of a large definition never are.

    @cached_property
    def _prune(self) -> prune.Prune:
        return prune.pruner(self._schema, is_root=True)

    @cached_property
    def _coerce(self) -> embedded.Coerce | None:
        return embedded.coercer(self._schema)

    @cached_property
    def _fill(self) -> fill.Fill | None:
        return fill.filler(self._schema)

    @cached_property
    def _check(self) -> quick.Check:
        return quick.check(self._schema)

    @cached_property
    def _duplicates(self) -> lists.Find | None:
        return lists.duplicates(self._schema)

    @cached_property
    def _embedded(self) -> embedded.Find | None:
        return embedded.embedded_errors(self._schema)

    @cached_property
    def _rules(self) -> cel.Rules | None:
        return cel.rules(self._schema)

    # ── Reading ─────────────────────────────────────────────────────────────────────────────────────

    def conform(self, obj: Object) -> Decoded:
        """Raises ``WrongType`` where metadata are not what they should be."""
        gone = prune.Gone()
        if obj.get("metadata") is not None:
            gone.add_below("metadata", embedded.conform_metadata(obj))
        else:
            obj.pop("metadata", None)
        gone.add_all(sorted(self._prune(obj) or ()))
        if self._coerce is not None:
            inside = Told()
            self._coerce(obj, Path(), inside)
            gone.add_all(sorted(inside.texts))
        return Decoded(obj, [f'unknown field "{one}"' for one in gone.texts])

    def default(self, obj: Object) -> None:
        if self._fill is not None:
            self._fill(obj)

    def revive(self, obj: Object) -> Object:
        """An object of the store, as this version's schema has it now."""
        self.adopt(obj)
        self.default(obj)
        return obj

    def adopt(self, obj: Object) -> Object:
        kept = obj.get("metadata")
        obj["apiVersion"] = self._api_version
        self._prune(obj)
        obj["metadata"] = kept
        return obj

    # ── Changing ────────────────────────────────────────────────────────────────────────────────────

    def prepare_create(self, obj: Object) -> None:
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            self._keep_all_but_status(new, old)
            return
        if self.has_status:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        if not same(_without_metadata(new), _without_metadata(old)):
            bump_generation(new)

    def _keep_all_but_status(self, new: Object, old: Object) -> None:
        """Only the status changes, and who owns it."""
        status, is_there = new.get("status"), "status" in new
        managed = new["metadata"].get("managedFields")
        version = new["metadata"].get("resourceVersion")
        new.clear()
        new.update(old)
        new["metadata"] = {**old["metadata"]}
        for name, value in (("managedFields", managed), ("resourceVersion", version)):
            if value:
                new["metadata"][name] = value
            else:
                new["metadata"].pop(name, None)
        if is_there:
            new["status"] = status
        else:
            new.pop("status", None)

    # ── Judging ─────────────────────────────────────────────────────────────────────────────────────

    def validate_create(self, obj: Object) -> list[FieldError]:
        if wrong := self._kind_errors(obj):
            return wrong
        errors: list[FieldError] = []
        if not self._check(obj):
            errors += validate.field_errors(validate.problems(self._schema, obj))
        if self.scaled is not None:
            errors += self.scaled.errors(obj)
        errors += _found(self._embedded, obj)
        errors += _found(self._duplicates, obj)
        return self._with_rules(errors, obj, None, None)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        if wrong := self._kind_errors(new):
            return wrong
        errors: list[FieldError] = []
        correlated = Correlated(new, old, self._schema)
        if subresource == "status":
            errors += self._status_errors(new, correlated)
            if self.scaled is not None:
                errors += self.scaled.errors(new, with_spec=False)
        else:
            if not self._check(new):
                errors += validate.field_errors(validate.problems(self._schema, new, correlated=correlated))
            if self.scaled is not None:
                errors += self.scaled.errors(new)
            errors += _found(self._embedded, new)
        if (doubled := _found(self._duplicates, new)) and not _found(self._duplicates, old):
            errors += doubled
        return self._with_rules(errors, new, old, correlated)

    def _kind_errors(self, obj: Object) -> list[FieldError]:
        wanted = (("kind", self._kind), ("apiVersion", self._api_version))
        return [
            FieldError("invalid", name, f"must be {value}", obj.get(name, ""))
            for name, value in wanted
            if obj.get(name) != value
        ]

    def _status_errors(self, new: Object, correlated: Correlated) -> list[FieldError]:
        schema = properties(self._schema).get("status")
        if schema is None or "status" not in new:
            return []
        below = correlated.key("status")
        return validate.field_errors(validate.problems(schema, new["status"], correlated=below), "status")

    def _with_rules(
        self, errors: list[FieldError], new: Object, old: Object | None, correlated: Correlated | None
    ) -> list[FieldError]:
        """Rules are evaluated only on what they can be evaluated on."""
        if self._rules is None:
            return errors
        if any(one.type in _BLOCKING for one in errors):
            return [*errors, _UNCHECKED]
        return errors + self._rules.errors(new, old, correlated)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        there = set((old or {}).get("metadata", {}).get("finalizers") or ())
        added = sorted(set(obj["metadata"].get("finalizers") or ()) - there)
        return [said for one in added for said in _finalizer_warnings(one)]

    # ── Showing ─────────────────────────────────────────────────────────────────────────────────────

    def emit(self, obj: Object) -> Object:
        shown: Object = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
        for name, value in obj.items():
            if name not in ("kind", "apiVersion"):
                shown[name] = _whole(value)
        return shown

    def fields(self, obj: Object) -> dict[str, str]:
        return {name: _field_text(read(obj)) for name, read in self._selectable}

    def selectable_fields(self) -> Sequence[str]:
        return tuple(name for name, _ in self._selectable)


def _scaled(scale: dict[str, Any] | None) -> Scaled | None:
    if scale is None:
        return None
    return Scaled(
        scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""
    )


def _found(find: Callable[[Any, Path, Found], None] | None, obj: Object) -> list[FieldError]:
    found = Found()
    if find is not None:
        find(obj, Path(), found)
    return found.errors


def _without_metadata(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _field_text(found: list[Any]) -> str:
    return "" if not found or found[0] is None else printed(found[0])


def _whole(value: Any) -> Any:
    """A float that is whole is written, and from then on read, as an integer."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if kind is dict:
        for name, one in value.items():
            if type(one) in _HOLDERS:
                value[name] = _whole(one)
    elif kind is list:
        for place, one in enumerate(value):
            if type(one) in _HOLDERS:
                value[place] = _whole(one)
    return value


_HOLDERS: Final = frozenset({dict, list, float})


def _finalizer_warnings(name: str) -> list[str]:
    path = "metadata.finalizers"
    told = [f"{path}: {quoted(name)}: {one}" for one in label_key_errors(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        way = "including a path (/) " if "." in name else ""
        told.append(
            f"{path}: {quoted(name)}: prefer a domain-qualified finalizer name {way}"
            "to avoid accidental conflicts with other finalizer writers"
        )
    return told
