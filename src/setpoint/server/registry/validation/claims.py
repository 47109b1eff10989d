"""What is wrong with what a claim asks for, in a PersistentVolumeClaim and wherever one is described."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import NOT_POSITIVE, Found
from setpoint.server.registry.validation.selectors import check_selector

Json = dict[str, Any]
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")


def check_access_modes(modes: list[str], path: str, found: Found) -> None:
    for mode in modes:
        found.one_of(path, mode, ACCESS_MODES)
    known = set(modes).intersection(ACCESS_MODES)
    if "ReadWriteOncePod" in known and len(known) > 1:
        found.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def check_claim_spec(spec: Json, path: str, found: Found) -> None:
    modes = spec.get("accessModes") or []
    if not modes:
        found.required(f"{path}.accessModes", "at least 1 access mode is required")
    check_selector(spec.get("selector"), f"{path}.selector", found)
    check_access_modes(modes, f"{path}.accessModes", found)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        found.required(f"{path}.resources[storage]")
    elif texts.quantity(storage) <= 0:
        found.invalid(f"{path}.resources[storage]", storage, NOT_POSITIVE)
    for field in ("storageClassName", "volumeMode", "volumeAttributesClassName"):
        value = spec.get(field)
        if field == "volumeMode":
            if value is not None:
                found.one_of(f"{path}.volumeMode", value, VOLUME_MODES)
            _check_sources(spec, path, found)
        elif value:
            found.told(f"{path}.{field}", value, texts.subdomain(value))


def _check_sources(spec: Json, path: str, found: Found) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, one in (("dataSource", source), ("dataSourceRef", reference)):
        if one is None:
            continue
        at, group, kind = f"{path}.{field}", one.get("apiGroup") or "", one.get("kind", "")
        if not one.get("name"):
            found.required(f"{at}.name")
        if not kind:
            found.required(f"{at}.kind")
        if not group and kind != "PersistentVolumeClaim":
            detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            found.invalid(at, kind, detail)
        if group:
            found.told(f"{at}.apiGroup", group, texts.subdomain(group))
    named = ("apiGroup", "kind", "name")
    if source is not None and reference is not None:
        if reference.get("namespace"):
            found.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
        elif any(source.get(field) != reference.get(field) for field in named):
            found.invalid(path, {}, "must match dataSourceRef")
