"""Which Service has which address and port: handed out once, given back when the Service is gone.

- ``fill`` and ``carry_over`` prepare a Service before it is looked at: what a client may leave out is what it
  was, and what its type no longer has goes.
- ``Allocations.reserve`` hands out what is still missing, after it was found right.

What is taken is held in memory and known from the stored Services at the start.  One family of addresses is
served (IPv4 by default), as by a cluster with one range.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable
from typing import Any, Final

from setpoint.server.registry.facts import type_of
from setpoint.server.registry.resources import Object, Reservation
from setpoint.server.registry.validation.services import is_external, needs_health_check
from setpoint.server.statuses import FieldError, StatusError, internal, invalid

Json = dict[str, Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_NODE_PORTS: Final = range(30000, 32768)
DYNAMIC_PORTS: Final = range(_NODE_PORTS.start + 86, _NODE_PORTS.stop)  # given to who asks for none
_TAKEN: Final = "provided port is already allocated"
_OUTSIDE: Final = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{_NODE_PORTS.start}-{_NODE_PORTS.stop - 1}"
)


# ── Before a Service is looked at ───────────────────────────────────────────────────────────────────


def fill(service: Object) -> None:
    """Of a new Service: its address is its only address."""
    spec = service.setdefault("spec", {})
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _fill_families(spec, {})


def carry_over(new: Object, old: Object) -> None:
    """Of a changed Service: what was allocated stays, and what the new type does not have goes."""
    spec, before = new.setdefault("spec", {}), old["spec"]
    if _has_address(spec) and _has_address(before):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    if _has_node_ports(spec) and _has_node_ports(before):
        _carry_ports(spec, before)
    if needs_health_check(spec) and needs_health_check(before) and not spec.get("healthCheckNodePort"):
        _put(spec, "healthCheckNodePort", before.get("healthCheckNodePort"))
    first, several = spec.get("clusterIP"), spec.get("clusterIPs")
    if first != before.get("clusterIP") and several == before.get("clusterIPs"):
        _put(spec, "clusterIPs", [first] if first else None)
    _fill_families(spec, before)
    _drop(new, old)


def _put(holder: Json, field: str, value: Any) -> None:
    if value is None:
        holder.pop(field, None)
    else:
        holder[field] = value


def _has_address(spec: Json) -> bool:
    return spec.get("type") != "ExternalName"


def _has_node_ports(spec: Json) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _carry_ports(spec: Json, before: Json) -> None:
    """A port keeps its number on the nodes, by its name."""
    ports, were = spec.get("ports") or [], before.get("ports") or []
    used = {one.get("nodePort") for one in ports} & {one.get("nodePort") for one in were}
    known = {one.get("name", ""): one.get("nodePort") for one in were}
    for port in ports:
        number = known.get(port.get("name", ""))
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number


def _fill_families(spec: Json, before: Json) -> None:
    if not _has_address(spec):
        return
    is_selectorless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        default = "RequireDualStack" if is_selectorless else "SingleStack"
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or default
    if not spec.get("ipFamilies"):
        given = [one for one in spec.get("clusterIPs") or () if one not in ("None", "")]
        spec["ipFamilies"] = list(dict.fromkeys(map(_family, given))) or ["IPv4"]
    if is_selectorless and len(spec["ipFamilies"]) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
        spec["ipFamilies"] = [spec["ipFamilies"][0], "IPv6" if spec["ipFamilies"][0] == "IPv4" else "IPv4"]


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def _drop(new: Object, old: Object) -> None:
    """What was there for the old type's sake, and nobody has changed."""
    spec, before = new["spec"], old["spec"]
    gone: list[str] = []
    if _has_address(before) and not _has_address(spec):
        if all(spec.get(one) == before.get(one) for one in ("clusterIP", "clusterIPs")):
            gone += ["clusterIP", "clusterIPs"]
        own = ("ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
        gone += [one for one in own if spec.get(one) == before.get(one)]
    if _has_node_ports(before) and not _has_node_ports(spec) and set(_ports(new)) <= set(_ports(old)):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    was_balancer = before.get("type") == "LoadBalancer" != spec.get("type")
    for field, applied in (
        ("healthCheckNodePort", needs_health_check(before) and not needs_health_check(spec)),
        ("allocateLoadBalancerNodePorts", was_balancer),
        ("loadBalancerClass", was_balancer),
        ("externalTrafficPolicy", is_external(before) and not is_external(spec)),
    ):
        if applied and spec.get(field) == before.get(field):
            gone.append(field)
    for field in gone:
        spec.pop(field, None)
    if spec.get("type") != "LoadBalancer" and new.get("status"):
        new["status"] = {**new["status"], "loadBalancer": {}}


# ── Handing out ─────────────────────────────────────────────────────────────────────────────────────


def dynamic_offsets(network: Network) -> range:
    """Where in the range the addresses begin and end that are given to who asks for none.

    Those below are left to who asks for one (KEP-3070), as long as there are others.
    """
    size = network.num_addresses
    lowest = min(max(16, size // 16), 256) + 1
    return range(lowest if lowest < size - 1 else 2, size - 1)


class Allocations:
    """The addresses and node ports of Services."""

    def __init__(self, network: str = "10.0.0.0/24", source: random.Random | None = None) -> None:
        self._network = ipaddress.ip_network(network)
        self._family = f"IPv{self._network.version}"
        self._random = source or random.Random()  # noqa: S311 - spreads addresses, guards nothing
        self._addresses: set[str] = set()
        self._ports: set[int] = set()

    def __repr__(self) -> str:
        return f"<Allocations of {self._network}: {len(self._addresses)} addresses, {len(self._ports)} ports>"

    def load(self, services: Iterable[Object]) -> None:
        for service in services:
            self._addresses.update(_addresses(service))
            self._ports.update(_ports(service))

    def reserve(self, service: Object, old: Object | None) -> Reservation:
        """Fill in what the Service lacks, and hold it."""
        addresses, ports = set(_addresses(old)), set(_ports(old))
        taken_addresses: set[str] = set()
        taken_ports: set[int] = set()

        def undo() -> None:
            self._addresses.difference_update(taken_addresses)
            self._ports.difference_update(taken_ports)

        def settle() -> None:
            self._addresses.difference_update(addresses.difference(_addresses(service)))
            self._ports.difference_update(ports.difference(_ports(service)))

        try:
            self._check_families(service)
            self._reserve_address(service, addresses, taken_addresses)
            self._reserve_ports(service, ports, taken_ports)
        except StatusError:
            undo()
            raise
        service["spec"] = _in_order(service["spec"])
        return Reservation(undo, settle)

    def release(self, service: Object) -> None:
        self._addresses.difference_update(_addresses(service))
        self._ports.difference_update(_ports(service))

    # ── Addresses ───────────────────────────────────────────────────────────────────────────────────

    def _check_families(self, service: Object) -> None:
        spec = service["spec"]
        if not _has_address(spec) or (spec.get("clusterIP") == "None" and not spec.get("selector")):
            return
        for index, one in enumerate(spec.get("clusterIPs") or ()):
            if one != "None" and _family(one) != self._family:
                told = f"{_family(one)} is not configured on this cluster"
                raise _refused(service, f"spec.clusterIPs[{index}]", spec["clusterIPs"], told)
        if spec.get("ipFamilyPolicy") == "RequireDualStack":
            told = "this cluster is not configured for dual-stack services"
            raise _refused(service, "spec.ipFamilyPolicy", "RequireDualStack", told)
        for index, family in enumerate(spec.get("ipFamilies") or ()):
            if family != self._family:
                told = "not configured on this cluster"
                raise _refused(service, f"spec.ipFamilies[{index}]", family, told)

    def _reserve_address(self, service: Object, had: set[str], taken: set[str]) -> None:
        spec = service["spec"]
        if not _has_address(spec) or spec.get("clusterIP") == "None":
            return
        wanted = spec.get("clusterIP")
        if not wanted:
            wanted = self._free_address(service)
            spec["clusterIP"] = wanted
            spec["clusterIPs"] = [wanted]
        elif wanted not in had:
            self._check_address(service, wanted)
        if wanted not in had:
            self._addresses.add(wanted)
            taken.add(wanted)

    def _check_address(self, service: Object, wanted: str) -> None:
        told, found = "", ipaddress.ip_address(wanted)
        ends = (self._network.network_address, self._network.broadcast_address)
        if found not in self._network or found in ends:
            told = (
                f"the provided IP ({wanted}) is not in the valid range. "
                f"The range of valid IPs is {self._network}"
            )
        elif wanted in self._addresses:
            told = "provided IP is already allocated"
        if told:
            shown = service["spec"]["clusterIPs"]
            raise _refused(service, "spec.clusterIPs", shown, f"failed to allocate IP {wanted}: {told}")

    def _free_address(self, service: Object) -> str:
        base, offsets = int(self._network.network_address), dynamic_offsets(self._network)
        for _ in range(64):
            found = str(ipaddress.ip_address(base + self._random.choice(offsets)))
            if found not in self._addresses:
                return found
        for offset in (*offsets, *range(1, offsets.start)):
            found = str(ipaddress.ip_address(base + offset))
            if found not in self._addresses:
                return found
        name = service["metadata"]["name"]
        raise internal(f'failed to allocate a serviceIP for Service "{name}": range is full')

    # ── Ports ───────────────────────────────────────────────────────────────────────────────────────

    def _reserve_ports(self, service: Object, had: set[int], taken: set[int]) -> None:
        spec = service["spec"]
        if not _has_node_ports(spec):
            return
        is_filled = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        numbers: dict[int, int] = {}  # the same port of two protocols has one number on the nodes
        for index, port in enumerate(spec.get("ports") or []):
            wanted = port.get("nodePort") or numbers.get(port["port"], 0)
            if not wanted:
                if not is_filled:
                    continue
                wanted = self._free_port()
            elif wanted not in had and wanted not in numbers.values():
                told = _TAKEN if wanted in self._ports else "" if wanted in _NODE_PORTS else _OUTSIDE
                if told:
                    raise _refused(service, f"spec.ports[{index}].nodePort", wanted, told)
            numbers[port["port"]] = port["nodePort"] = wanted
            self._take(wanted, had, taken)
        if needs_health_check(spec):
            self._reserve_health_check(spec, had, taken)

    def _reserve_health_check(self, spec: Json, had: set[int], taken: set[int]) -> None:
        wanted = spec.get("healthCheckNodePort")
        if not wanted:
            wanted = spec["healthCheckNodePort"] = self._free_port()
        elif wanted not in had and (wanted in self._ports or wanted not in _NODE_PORTS):
            told = _TAKEN if wanted in self._ports else _OUTSIDE
            raise internal(f"failed to allocate requested HealthCheck NodePort {wanted}: {told}")
        self._take(wanted, had, taken)

    def _take(self, number: int, had: set[int], taken: set[int]) -> None:
        if number not in had and number not in self._ports:
            self._ports.add(number)
            taken.add(number)

    def _free_port(self) -> int:
        free = [one for one in _NODE_PORTS if one not in self._ports]
        if not free:
            raise internal("failed to allocate a nodePort: range is full")
        # Those below are left to who asks for one, as long as there are others.
        return self._random.choice([one for one in free if one in DYNAMIC_PORTS] or free)


def _refused(service: Object, path: str, value: Any, told: str) -> StatusError:
    return invalid("Service", "", service["metadata"]["name"], [FieldError("invalid", path, told, value)])


def _in_order(spec: Json) -> Json:
    """As the type has its fields: what was filled in stands where it belongs."""
    places = {
        name: place for place, name in enumerate(type_of("", "v1", "Service").fields["spec"].type.fields)
    }
    return dict(sorted(spec.items(), key=lambda one: places[one[0]]))


def _addresses(service: Object | None) -> list[str]:
    spec = (service or {}).get("spec") or {}
    return [one for one in spec.get("clusterIPs") or [spec.get("clusterIP")] if one and one != "None"]


def _ports(service: Object | None) -> list[int]:
    spec = (service or {}).get("spec") or {}
    ports = [port["nodePort"] for port in spec.get("ports") or [] if port.get("nodePort")]
    return [*ports, *([spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else [])]
