"""What is wrong with endpoints, ingresses and network policies."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.golang import same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.jobs import check_domain_path
from setpoint.server.registry.validation.selectors import check_selector
from setpoint.server.registry.validation.services import check_hostname

Json = dict[str, Any]


# ── Endpoints ───────────────────────────────────────────────────────────────────────────────────────


def check_endpoints(obj: Object, found: Found) -> None:
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            found.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for place, one in enumerate(subset.get(field) or ()):
                _check_endpoint_address(one, f"{path}.{field}[{place}]", found)
        ports = subset.get("ports") or []
        for place, port in enumerate(ports):
            _check_endpoint_port(port, len(ports) > 1, f"{path}.ports[{place}]", found)


def check_endpoints_update(new: Object, old: Object, found: Found) -> None:
    if not same(new.get("subsets"), old.get("subsets")):
        check_endpoints(new, found)


def _check_endpoint_address(one: Json, path: str, found: Found) -> None:
    address = one.get("ip", "")
    found.told(f"{path}.ip", address, texts.ip(address))
    if one.get("hostname"):
        found.told(f"{path}.hostname", one["hostname"], texts.label(one["hostname"]))
    if one.get("nodeName") is not None:
        found.told(f"{path}.nodeName", one["nodeName"], texts.subdomain(one["nodeName"]))
    found.told(f"{path}.ip", address, texts.endpoint_ip(address))


def _check_endpoint_port(port: Json, needs_name: bool, path: str, found: Found) -> None:
    name, number = port.get("name", ""), port.get("port", 0)
    if needs_name and not name:
        found.required(f"{path}.name")
    elif name:
        found.told(f"{path}.name", name, texts.label(name))
    found.told(f"{path}.port", number, texts.port(number))
    found.some_of(f"{path}.protocol", port.get("protocol"), texts.PROTOCOLS)
    if port.get("appProtocol") is not None:
        found.told(f"{path}.appProtocol", port["appProtocol"], texts.qualified(port["appProtocol"]))


# ── EndpointSlice ───────────────────────────────────────────────────────────────────────────────────

_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")


def check_slice(obj: Object, found: Found) -> None:
    _check_slice_ports(obj, found)
    _check_slice_endpoints(obj, found)
    _check_slice_type(obj, found)


def check_slice_update(new: Object, old: Object, found: Found) -> None:
    _check_slice_ports(new, found)
    if not same(new.get("endpoints"), old.get("endpoints")):
        _check_slice_endpoints(new, found)
    if new.get("addressType") == old.get("addressType"):
        _check_slice_type(new, found)
    found.unchanged("addressType", new.get("addressType"), old.get("addressType"), shown=None)


def _check_slice_type(obj: Object, found: Found) -> None:
    found.some_of("addressType", obj.get("addressType"), _ADDRESS_TYPES)


def _check_slice_ports(obj: Object, found: Found) -> None:
    names: set[str] = set()
    for index, port in enumerate(obj.get("ports") or ()):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            found.told(f"{path}.name", name, texts.label(name))
        found.unique(f"{path}.name", name, names)
        found.some_of(f"{path}.protocol", port.get("protocol"), texts.PROTOCOLS)
        if port.get("appProtocol") is not None:
            found.told(f"{path}.appProtocol", port["appProtocol"], texts.qualified(port["appProtocol"]))


def _check_slice_endpoints(obj: Object, found: Found) -> None:
    kind, endpoints = obj.get("addressType", ""), obj.get("endpoints") or []
    if len(endpoints) > 1000:
        found.too_many("endpoints", len(endpoints), 1000)
    for index, one in enumerate(endpoints):
        path = f"endpoints[{index}]"
        for place, address in enumerate(one.get("addresses") or ()):
            _check_slice_address(address, kind, f"{path}.addresses", place, found)
        if one.get("nodeName") is not None:
            found.told(f"{path}.nodeName", one["nodeName"], texts.subdomain(one["nodeName"]))
        if one.get("hostname") is not None:
            found.told(f"{path}.hostname", one["hostname"], texts.label(one["hostname"]))
        seen: set[str] = set()
        for place, zone in enumerate((one.get("hints") or {}).get("forZones") or ()):
            found.unique(f"{path}.hints.forZones[{place}].name", zone.get("name", ""), seen)
    for index, one in enumerate(endpoints):
        addresses = one.get("addresses") or []
        if not addresses:
            found.required(f"endpoints[{index}].addresses")
        elif len(addresses) > 100:
            found.too_many(f"endpoints[{index}].addresses", len(addresses), 100)


def _check_slice_address(address: str, kind: str, path: str, place: int, found: Found) -> None:
    at = f"{path}[{place}]"
    if kind == "FQDN":
        _check_domain(address, at, found)
    elif kind in ("IPv4", "IPv6"):
        if errors := texts.ip(address):
            found.told(at, address, errors)
            return
        if (":" in address) != (kind == "IPv6"):
            found.invalid(path, address, f"must be an {kind} address")
        found.told(at, address, texts.endpoint_ip(address))


def _check_domain(name: str, path: str, found: Found) -> None:
    plain = name.removesuffix(".")
    if not plain:
        found.required(path)
    elif errors := texts.subdomain(plain):
        found.invalid(path, plain, ",".join(errors))
    elif "." not in plain:
        found.invalid(path, plain, "should be a domain with at least two segments separated by dots")


# ── Ingress ─────────────────────────────────────────────────────────────────────────────────────────

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_CLASS: Final = "kubernetes.io/ingress.class"


def check_ingress(obj: Object, found: Found) -> None:
    _check_ingress_spec(obj["spec"], found)
    named = (obj["metadata"].get("annotations") or {}).get(_CLASS)
    own = obj["spec"].get("ingressClassName")
    if named is not None and own is not None and named != own:
        detail = "must match `ingressClassName` when both are specified"
        found.invalid(f"annotations.{_CLASS}", named, detail)


def check_ingress_update(new: Object, old: Object, found: Found) -> None:
    del old
    _check_ingress_spec(new["spec"], found)


def _check_ingress_spec(spec: Json, found: Found) -> None:
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        found.invalid("spec", spec.get("rules"), detail)
    if backend is not None:
        _check_backend(backend, "spec.defaultBackend", found)
    for index, rule in enumerate(rules):
        path, host = f"spec.rules[{index}]", rule.get("host", "")
        if host:
            if texts.address(host) is not None:
                found.invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
            found.told(f"{path}.host", host, texts.wildcard(host) if "*" in host else texts.subdomain(host))
        if (http := rule.get("http")) is not None:
            if not http.get("paths"):
                found.required(f"{path}.http.paths")
            for place, one in enumerate(http.get("paths") or ()):
                _check_ingress_path(one, f"{path}.http.paths[{place}]", found)
    for index, tls in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{index}]"
        for place, host in enumerate(tls.get("hosts") or ()):
            found.told(
                f"{path}.hosts[{place}]", host, texts.wildcard(host) if "*" in host else texts.subdomain(host)
            )
        if tls.get("secretName"):
            found.told(f"{path}.secretName", tls["secretName"], texts.subdomain(tls["secretName"]))
    if (name := spec.get("ingressClassName")) is not None:
        found.told("spec.ingressClassName", name, texts.subdomain(name))


def _check_ingress_path(one: Json, path: str, found: Found) -> None:
    kind, where = one.get("pathType"), one.get("path", "")
    if kind is None:
        found.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not where.startswith("/"):
            found.invalid(f"{path}.path", where, "must be an absolute path")
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in where:
                found.invalid(f"{path}.path", where, f"must not contain '{part}'")
        for part in ("/..", "/."):
            if where.endswith(part):
                found.invalid(f"{path}.path", where, f"cannot end with '{part}'")
    elif kind == "ImplementationSpecific":
        if where and not where.startswith("/"):
            found.invalid(f"{path}.path", where, "must be an absolute path")
    else:
        found.unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    _check_backend(one.get("backend") or {}, f"{path}.backend", found)


def _check_backend(backend: Json, path: str, found: Found) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        found.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        _check_reference(resource, f"{path}.resource", found)
    elif service is not None:
        name, port = service.get("name", ""), service.get("port") or {}
        if not name:
            found.required(f"{path}.service.name")
        else:
            found.told(f"{path}.service.name", name, texts.label(name))
        named, number = port.get("name", ""), port.get("number", 0)
        if named and number:
            found.invalid(path, "", "cannot set both port name & port number")
        elif named:
            found.told(f"{path}.service.port.name", named, texts.port_name(named))
        elif number:
            found.told(f"{path}.service.port.number", number, texts.port(number))
        else:
            found.required(path, "port name or number is required")
    else:
        found.invalid(path, "", "resource or service backend is required")


def _check_reference(one: Json, path: str, found: Found) -> None:
    if (group := one.get("apiGroup")) is not None:
        found.told(f"{path}.apiGroup", group, texts.subdomain(group))
    for field in ("kind", "name"):
        value = one.get(field, "")
        if not value:
            found.required(f"{path}.{field}")
        else:
            found.told(f"{path}.{field}", value, texts.path_segment(value))


def check_ingress_status(new: Object, old: Object, found: Found) -> None:
    del old
    ingress = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    for index, one in enumerate(ingress):
        at = f"status.loadBalancer.ingress[{index}]"
        if one.get("ip"):
            found.told(f"{at}.ip", one["ip"], texts.ip(one["ip"]))
        check_hostname(one.get("hostname", ""), f"{at}.hostname", found)


def check_ingress_class(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    controller = spec.get("controller", "")
    if len(controller) > 250:
        found.too_long("spec.controller", 250)
    check_domain_path(controller, "spec.controller", found)
    parameters = spec.get("parameters")
    if parameters is None:
        return
    path, scope, namespace = "spec.parameters", parameters.get("scope"), parameters.get("namespace")
    if (group := parameters.get("apiGroup")) is not None:
        found.told(f"{path}.apiGroup", group, texts.subdomain(group))
    for field in ("kind", "name"):
        value = parameters.get(field, "")
        if value:
            found.told(f"{path}.{field}", value, texts.path_segment(value))
    if scope is None:
        found.required(f"{path}.scope")
    found.one_of(f"{path}.scope", scope or "", ("Cluster", "Namespace"))
    if scope == "Namespace" and namespace is None:
        found.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    if scope == "Cluster" and namespace is not None:
        found.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    for field in ("kind", "name"):
        if not parameters.get(field):
            found.required(f"{path}.{field}")


def check_ingress_class_update(new: Object, old: Object, found: Found) -> None:
    now, then = (new.get("spec") or {}).get("controller"), (old.get("spec") or {}).get("controller")
    found.unchanged("spec.controller", now, then)
    check_ingress_class(new, found)


# ── NetworkPolicy ───────────────────────────────────────────────────────────────────────────────────


def check_policy(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    missing: list[str] = []
    check_selector(spec.get("podSelector"), "spec.podSelector", found)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                _check_policy_port(port, f"{path}.ports[{place}]", found)
            for place, peer in enumerate(rule.get(peers) or ()):
                _check_peer(peer, f"{path}.{peers}[{place}]", missing, found)
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        found.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
    else:
        for index, one in enumerate(types):
            found.one_of(f"spec.policyTypes[{index}]", one, ("Ingress", "Egress"))
    for path in missing:
        found.required(path)


def _check_policy_port(port: Json, path: str, found: Found) -> None:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None:
        found.one_of(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP"))
    if number is None:
        if end is not None:
            found.invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(number, str):
        if end is not None:
            found.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        found.told(f"{path}.port", number, texts.port_name(number))
    else:
        found.told(f"{path}.port", number, texts.port(number))
        if end is not None:
            if end < number:
                found.invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")
            found.told(f"{path}.endPort", end, texts.port(end))


def _check_peer(peer: Json, path: str, missing: list[str], found: Found) -> None:
    kinds = [kind for kind in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(kind) is not None]
    for kind in kinds:
        if kind == "ipBlock":
            _check_block(peer["ipBlock"], f"{path}.ipBlock", missing, found)
        else:
            check_selector(peer[kind], f"{path}.{kind}", found)
    if not kinds:
        found.required(path, "must specify a peer")
    elif "ipBlock" in kinds and len(kinds) > 1:
        found.forbidden(path, "may not specify both ipBlock and another peer")


def _check_block(block: Json, path: str, missing: list[str], found: Found) -> None:
    text = block.get("cidr", "")
    if not text:
        missing.append(f"{path}.cidr")
        return
    found.told(f"{path}.cidr", text, texts.cidr(text))
    whole = texts.network(text)
    if whole is None:
        return
    for index, one in enumerate(block.get("except") or ()):
        at = f"{path}.except[{index}]"
        found.told(at, one, texts.cidr(one))
        part = texts.network(one)
        if part is None:
            continue
        is_within = part.version == whole.version and part.network_address in whole
        if not is_within or whole.prefixlen >= part.prefixlen:
            found.invalid(at, one, "must be a strict subset of `cidr`")
