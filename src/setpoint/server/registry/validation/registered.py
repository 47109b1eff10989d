"""What is wrong with what tells of the server itself: APIServices, ranges of addresses, migrations."""

from __future__ import annotations

import base64
from typing import Any

from setpoint.server.golang import quoted
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import IMMUTABLE, Found

Json = dict[str, Any]


# ── APIServices ─────────────────────────────────────────────────────────────────────────────────────


def check_api_service(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    group, version, name = spec.get("group", ""), spec.get("version", ""), obj["metadata"].get("name", "")
    wanted = f"{version}.{group}"
    if name and name != wanted and not texts.path_segment(name):
        found.invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: {quoted(wanted)}')
    if not group and version != "v1":
        found.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    if group:
        found.told("spec.group", group, texts.subdomain(group))
    found.told("spec.version", version, texts.label_1035(version))
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1000)):
        value = spec.get(field, 0)
        if not 0 < value <= most:
            found.invalid(f"spec.{field}", value, f"must be positive and less than {most}")
    _check_service(spec, found)


def _check_service(spec: Json, found: Found) -> None:
    """Who answers: this server, or a Service."""
    bundle, is_open = base64.b64decode(spec.get("caBundle") or ""), bool(spec.get("insecureSkipTLSVerify"))
    service = spec.get("service")
    if service is None:
        if bundle:
            detail = "local APIServices may not have a caBundle"
            found.invalid("spec.caBundle", f"{len(bundle)} bytes", detail)
        if is_open:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            found.invalid("spec.insecureSkipTLSVerify", True, detail)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            found.required(f"spec.service.{field}")
    port = service.get("port", 0)
    if errors := texts.port(port):
        found.invalid("spec.service.port", port, f"port is not valid: {', '.join(errors)}")
    if is_open and bundle:
        found.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def check_api_service_status(new: Object, old: Object, found: Found) -> None:
    del old
    for index, one in enumerate((new.get("status") or {}).get("conditions") or ()):
        path = f"status.conditions[{index}].status"
        found.one_of(path, one.get("status", ""), ("False", "True", "Unknown"))


# ── Addresses ───────────────────────────────────────────────────────────────────────────────────────


def check_address(obj: Object, found: Found) -> None:
    if name := obj["metadata"].get("name", ""):
        address = texts.address(name)
        errors = texts.ip(name)
        if not errors and str(address) != name:
            errors = [f"must be in canonical form ({quoted(str(address))})"]
        found.told("metadata.name", name, errors)
    path, parent = "spec.parentRef", (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        found.required(path)
        return
    if group := parent.get("group"):
        found.told(f"{path}.group", group, texts.subdomain(group))
    for field in ("resource", "name"):
        if value := parent.get(field):
            found.told(f"{path}.{field}", value, texts.path_segment(value))
        else:
            found.required(f"{path}.{field}")
    if namespace := parent.get("namespace"):
        found.told(f"{path}.namespace", namespace, texts.path_segment(namespace))


def check_address_update(new: Object, old: Object, found: Found) -> None:
    parent, before = ((one.get("spec") or {}).get("parentRef") for one in (new, old))
    found.unchanged("spec.parentRef", parent, before, None)  # which shows nothing of it, there too


def check_range(obj: Object, found: Found) -> None:
    _check_ranges(_ranges(obj), found)


def _ranges(obj: Object) -> list[str]:
    return (obj.get("spec") or {}).get("cidrs") or []


def _check_ranges(ranges: list[str], found: Found) -> None:
    path = "spec.cidrs"
    if not ranges:
        found.required(path, "at least one CIDR required")
        return
    if len(ranges) > 2:
        found.invalid(path, {"CIDRs": ranges}, "may only hold up to 2 values")
        return
    networks = [texts.network(one) for one in ranges]
    for index, (one, network) in enumerate(zip(ranges, networks, strict=True)):
        errors = texts.cidr(one)
        if not errors and str(network) != one:
            errors = [f"must be in canonical form ({quoted(str(network))})"]
        found.told(f"{path}[{index}]", one, errors)
    versions = [network.version for network in networks if network is not None]
    if len(versions) == 2 and versions[0] == versions[1]:
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        found.invalid(path, ranges, detail)


def check_range_update(new: Object, old: Object, found: Found) -> None:
    now, then = _ranges(new), _ranges(old)
    if len(now) == len(then):
        for index, (one, other) in enumerate(zip(now, then, strict=True)):
            found.unchanged(f"spec.cidrs[{index}]", one, other)
    elif len(then) == 1 and len(now) == 2:  # a second family
        found.unchanged("spec.cidrs[0]", now[0], then[0])
        _check_ranges(now, found)
    else:
        found.invalid("spec.cidrs", now, IMMUTABLE)


# ── Migrations ──────────────────────────────────────────────────────────────────────────────────────


def check_migration(obj: Object, found: Found) -> None:
    asked = (obj.get("spec") or {}).get("resource") or {}
    path, resource, group = "spec.resource", asked.get("resource", ""), asked.get("group", "")
    if not resource:
        found.required(f"{path}.resource", "resource is required to be set")
    elif errors := texts.label_1035(resource):
        found.invalid(f"{path}.resource", resource, ",".join(errors))
    if group and (errors := texts.subdomain(group)):
        found.invalid(f"{path}.group", group, ",".join(errors))


def check_migration_update(new: Object, old: Object, found: Found) -> None:
    check_migration(new, found)
    asked = (new.get("spec") or {}).get("resource") or {}
    shown = {"Resource": {name: asked.get(name, "") for name in ("group", "resource")}}
    found.unchanged("spec", new.get("spec"), old.get("spec"), shown)
