"""The cells of networking.k8s.io and discovery.k8s.io."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from setpoint.server.http.cells.reading import (
    NONE,
    Cells,
    Printer,
    at,
    balanced,
    created,
    cut_short,
    items,
    joined,
    name,
    selector,
    text,
)
from setpoint.server.registry.resources import Object

_IS_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"


def ingress(obj: Object, now: datetime) -> Cells:
    called = at(obj, "spec", "ingressClassName")
    return [
        name(obj),
        NONE if called is None else called,
        _hosts(obj),
        balanced(at(obj, "status", "loadBalancer")),
        "80, 443" if items(obj, "spec", "tls") else "80",
        created(obj, now),
    ]


def _hosts(obj: Object) -> str:
    """The first three; how many more is counted in rules, with a host or without."""
    rules = items(obj, "spec", "rules")
    hosts = [host for rule in rules if (host := text(rule, "host"))]
    if not hosts:
        return "*"
    third = next(
        (n for n, rule in enumerate(rules) if text(rule, "host") == hosts[min(2, len(hosts) - 1)]), 0
    )
    is_cut = len(hosts) >= 3 and len(rules) > third + 1
    return joined(hosts[:3]) + (f" + {len(rules) - 3} more..." if is_cut else "")


def ingress_class(obj: Object, now: datetime) -> Cells:
    annotations = at(obj, "metadata", "annotations") or {}
    given = at(obj, "spec", "parameters")
    shown = NONE
    if given is not None:
        group = at(given, "apiGroup")
        shown = f"{text(given, 'kind')}{'' if group is None else f'.{group}'}/{text(given, 'name')}"
    is_default = annotations.get(_IS_DEFAULT) == "true"
    return [
        name(obj) + (" (default)" if is_default else ""),
        text(obj, "spec", "controller"),
        shown,
        created(obj, now),
    ]


def network_policy(obj: Object, now: datetime) -> Cells:
    return [name(obj), selector(at(obj, "spec", "podSelector")), created(obj, now)]


def service_cidr(obj: Object, now: datetime) -> Cells:
    return [name(obj), joined(items(obj, "spec", "cidrs")), created(obj, now)]


def ip_address(obj: Object, now: datetime) -> Cells:
    parent = at(obj, "spec", "parentRef")
    shown = NONE
    if parent is not None:
        resource = joined(filter(None, (text(parent, "resource"), text(parent, "group"))), ".").lower()
        shown = joined(filter(None, (resource, text(parent, "namespace"), text(parent, "name"))), "/")
    return [name(obj), shown, created(obj, now)]


def endpoint_slice(obj: Object, now: datetime) -> Cells:
    ports = [_port(one) for one in items(obj, "ports")]
    found = [address for one in items(obj, "endpoints") for address in items(one, "addresses")]
    return [
        name(obj),
        text(obj, "addressType"),
        cut_short(ports, len(ports)),
        cut_short(found, len(found)),
        created(obj, now),
    ]


def _port(port: Any) -> str:
    found = at(port, "port")
    if found is None:
        found = at(port, "name")
    return "*" if found is None else str(found)


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("discovery.k8s.io", "EndpointSlice"): endpoint_slice,
    ("networking.k8s.io", "IPAddress"): ip_address,
    ("networking.k8s.io", "Ingress"): ingress,
    ("networking.k8s.io", "IngressClass"): ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): network_policy,
    ("networking.k8s.io", "ServiceCIDR"): service_cidr,
}
