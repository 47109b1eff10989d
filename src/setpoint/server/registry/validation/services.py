"""What is wrong with a Service, and with changing one.  Which address it gets is ``allocation.py``'s."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.selectors import check_labels

Json = dict[str, Any]
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC: Final = ("Cluster", "Local")
_ONLY_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def is_headless(spec: Json) -> bool:
    return spec.get("clusterIPs") == ["None"]


def is_external(spec: Json) -> bool:
    """Whether it can be reached from outside."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check_service(service: Object, found: Found) -> None:
    if _check_addresses(service["spec"], {}, found):
        _check(service, found, {})


def _check(service: Object, found: Found, before: Json) -> None:
    spec = service["spec"]
    ports, kind = spec.get("ports") or [], spec.get("type", "")
    if not ports and not is_headless(spec) and kind != "ExternalName":
        found.required("spec.ports")
    _check_type(spec, kind, found)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _check_port(port, len(ports) > 1, names, f"spec.ports[{index}]", found)
    check_labels(spec.get("selector"), "spec.selector", found)
    _check_affinity(spec, found)
    kept = set(before.get("externalIPs") or ())
    for index, one in enumerate(spec.get("externalIPs") or ()):
        if one in kept:
            continue
        found.told(f"spec.externalIPs[{index}]", one, texts.ip(one) or texts.endpoint_ip(one))
    found.some_of("spec.type", kind, _TYPES)
    _check_ports_once(ports, kind, found)
    _check_balancer(service, kind, before, found)
    _check_traffic(spec, found)


def _check_type(spec: Json, kind: str, found: Found) -> None:
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        found.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            found.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        found.required("spec.externalName")
    else:
        found.told("spec.externalName", name, texts.subdomain(name))


def _check_port(port: Json, needs_name: bool, names: set[str], path: str, found: Found) -> None:
    name, number = port.get("name", ""), port.get("port", 0)
    if needs_name and not name:
        found.required(f"{path}.name")
    elif name:
        found.told(f"{path}.name", name, texts.label(name))
        found.unique(f"{path}.name", name, names)
    found.told(f"{path}.port", number, texts.port(number))
    found.some_of(f"{path}.protocol", port.get("protocol"), texts.PROTOCOLS)
    target = port.get("targetPort", 0)
    found.told(f"{path}.targetPort", target, texts.port_or_name(target))
    if (application := port.get("appProtocol")) is not None:
        found.told(f"{path}.appProtocol", application, texts.qualified(application))


def _check_affinity(spec: Json, found: Found) -> None:
    affinity, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    path = "spec.sessionAffinityConfig"
    found.some_of("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "None" and config is not None:
        found.forbidden(path, "must not be set when session affinity is None")
    if affinity != "ClientIP":
        return
    client = (config or {}).get("clientIP")
    seconds = (client or {}).get("timeoutSeconds")
    for value, at in (
        (config, path),
        (client, f"{path}.clientIP"),
        (seconds, f"{path}.clientIP.timeoutSeconds"),
    ):
        if value is None:
            found.required(at, "when session affinity type is ClientIP")
            return
    if seconds is not None and not 0 < seconds <= 86400:
        detail = "must be greater than 0 and less than 86400"
        found.invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail)


def _check_addresses(spec: Json, before: Json, found: Found) -> bool:
    """Whether they are right: an address is handed out before anything else is looked at."""
    if spec.get("type") == "ExternalName":
        return True
    first, several = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    families, path = spec.get("ipFamilies") or [], "spec.clusterIPs"
    if first:
        if not several:
            found.required(path)
        elif several[0] != first:
            found.invalid(path, several, "first value must match `clusterIP`")
    elif several:
        found.invalid(path, several, "must be empty when `clusterIP` is not specified")
    seen: set[str] = set()
    for index, family in enumerate(families):
        found.one_of(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        found.unique(f"spec.ipFamilies[{index}]", family, seen)
    if (policy := spec.get("ipFamilyPolicy")) is not None:
        found.one_of("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    before_addresses = len(found.errors)
    kept = set(before.get("clusterIPs") or ())
    for index, one in enumerate(several):
        if index == 0 and one == "None":
            if len(several) > 1:
                found.invalid(path, several, "'None' must be the first and only value")
        elif one not in kept:
            found.told(f"{path}[{index}]", one, texts.ip(one))
    are_readable = len(found.errors) == before_addresses
    if len(several) > 2:
        found.invalid(path, several, "may only hold up to 2 values")
    if are_readable and not is_headless(spec):
        _check_families(several, families, found)
    return not found.errors


def _check_families(several: list[str], families: list[str], found: Found) -> None:
    kinds = ["IPv6" if ":" in one else "IPv4" for one in several]
    if len(several) > 1 and len(set(kinds)) == 1:
        detail = "may specify no more than one IP for each IP family"
        found.invalid("spec.clusterIPs", several, detail)
    for index, (kind, family) in enumerate(zip(kinds, families, strict=False)):
        if family in _FAMILIES and kind != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            found.invalid(f"spec.clusterIPs[{index}]", several[index], detail)


def _check_ports_once(ports: list[Json], kind: str, found: Found) -> None:
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                at = f"spec.ports[{index}].nodePort"
                found.forbidden(at, "may not be used when `type` is 'ClusterIP'")
    nodes: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        node = (port.get("protocol", ""), port.get("nodePort", 0))
        if node[1] and node in nodes:
            found.duplicate(f"spec.ports[{index}].nodePort", node[1])
        nodes.add(node)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            bare = {"protocol": key[0], "port": key[1]}
            shown = internals.shown(bare, "", "v1", "Service", "spec", "ports")
            found.duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _check_balancer(service: Object, kind: str, before: Json, found: Found) -> None:
    spec = service["spec"]
    is_balancer = kind == "LoadBalancer"
    annotation = (service["metadata"].get("annotations") or {}).get(_SOURCE_RANGES)
    if ranges := spec.get("loadBalancerSourceRanges"):
        if not is_balancer:
            found.forbidden("spec.LoadBalancerSourceRanges", _ONLY_BALANCER)
        kept = {one.strip() for one in before.get("loadBalancerSourceRanges") or ()}
        for index, one in enumerate(ranges):
            if one.strip() not in kept:
                at = f"spec.LoadBalancerSourceRanges[{index}]"
                found.told(at, one.strip(), texts.cidr(one.strip()))
    elif annotation is not None:
        at = f"metadata.annotations[{_SOURCE_RANGES}]"
        if not is_balancer:
            found.forbidden(at, _ONLY_BALANCER)
        for one in annotation.split(",") if annotation.strip() else ():
            found.told(at, one.strip(), texts.cidr(one.strip()))
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balancer:
        found.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER)
    _check_class(spec, found)


def _check_class(spec: Json, found: Found) -> None:
    name = spec.get("loadBalancerClass")
    if name is None:
        return
    if spec.get("type") != "LoadBalancer":
        found.forbidden("spec.loadBalancerClass", _ONLY_BALANCER)
    else:
        found.told("spec.loadBalancerClass", name, texts.qualified(name))


def _check_traffic(spec: Json, found: Found) -> None:
    policy, port = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0)
    if is_external(spec):
        found.some_of("spec.externalTrafficPolicy", policy, _TRAFFIC)
    elif policy:
        detail = "may only be set for externally-accessible services"
        found.invalid("spec.externalTrafficPolicy", policy, detail)
    if needs_health_check(spec):
        if port:
            found.told("spec.healthCheckNodePort", port, texts.port(port))
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        found.invalid("spec.healthCheckNodePort", port, detail)
    inner = spec.get("internalTrafficPolicy")
    if inner is None:
        if spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
            found.required("spec.internalTrafficPolicy")
    else:
        found.one_of("spec.internalTrafficPolicy", inner, _TRAFFIC)
    if (distribution := spec.get("trafficDistribution")) is not None:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        found.one_of("spec.trafficDistribution", distribution, known)


# ── Changing one ────────────────────────────────────────────────────────────────────────────────────


def check_service_update(new: Object, old: Object, found: Found) -> None:
    spec, before = new["spec"], old["spec"]
    if not _check_addresses(spec, before, found):
        return
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        if not (is_headless(spec) and is_headless(before)):
            _check_kept(spec, before, "clusterIPs", "clusterIP", found)
        if not is_headless(spec) and not is_headless(before):
            _check_kept(spec, before, "ipFamilies", "ipFamily", found)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        name = spec.get("loadBalancerClass")
        if name != before.get("loadBalancerClass"):
            found.invalid("spec.loadBalancerClass", name, "may not change once set")
    _check_class(spec, found)
    if needs_health_check(spec) and needs_health_check(before):
        port = spec.get("healthCheckNodePort", 0)
        if port and port != before.get("healthCheckNodePort", 0):
            found.forbidden("spec.healthCheckNodePort", "field is immutable")
    _check(new, found, before)


def _check_kept(spec: Json, before: Json, field: str, word: str, found: Found) -> None:
    """The first may not change; the second may come and go."""
    now, then = spec.get(field) or [], before.get(field) or []
    path = f"spec.{field}"
    if len(now) == len(then):
        for index, (one, other) in enumerate(zip(now, then, strict=True)):
            if one != other:
                at = f"{path}[{index if field == 'clusterIPs' else 0}]"
                found.invalid(at, now, "may not change once set")
    elif len(now) < len(then):
        if not now:
            found.invalid(f"{path}[0]", now, f"primary {word} can not be unset")
        elif now[0] != then[0]:
            found.invalid(f"{path}[0]", now, "may not change once set")
        if len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
            detail = f"must be set to 'SingleStack' when releasing the secondary {word}"
            found.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)
    elif then and now[0] != then[0]:
        found.invalid(f"{path}[0]", now, "may not change once set")


def check_service_status(new: Object, old: Object, found: Found) -> None:
    del old
    ingress = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if ingress and new["spec"].get("type") != "LoadBalancer":
        found.forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, one in enumerate(ingress):
        at, address, mode = f"status.loadBalancer.ingress[{index}]", one.get("ip"), one.get("ipMode")
        if address:
            found.told(f"{at}.ip", address, texts.ip(address))
        if mode is None:
            if address:
                found.required(f"{at}.ipMode", "must be specified when `ip` is set")
        elif not address:
            found.forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
        else:
            found.one_of(f"{at}.ipMode", mode, ("Proxy", "VIP"))
        check_hostname(one.get("hostname", ""), f"{at}.hostname", found)


def check_hostname(name: str, path: str, found: Found) -> None:
    if name:
        found.told(path, name, texts.subdomain(name))
        if texts.address(name) is not None:
            found.invalid(path, name, "must be a DNS name, not an IP address")
