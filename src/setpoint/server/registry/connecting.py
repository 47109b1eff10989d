"""Connections to what runs: exec, attach, portforward and proxy, up to where somebody would take them.

In a cluster the kubelet of a node does, or a process in a pod; here there is neither.  What comes before is
as there: options are read, admission has its say (the operation CONNECT), the pod and its node are looked up.
Then the answer is that of a server that cannot reach them.

``refused`` says why there is no connection.  Asked by ``http/app.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from setpoint.server.access import Access
from setpoint.server.admission.attributes import Attributes
from setpoint.server.authorization.attributes import Attributes as Authorized
from setpoint.server.golang import quoted
from setpoint.server.registry.facts import type_of
from setpoint.server.registry.logs import Objects, container_of, node_of, place_of
from setpoint.server.registry.requests import Ask
from setpoint.server.registry.resources import Object, Resource
from setpoint.server.registry.validation.texts import Address, address, whole
from setpoint.server.statuses import StatusError, bad_request, forbidden

Query = Mapping[str, Sequence[str]]  # every value of each

_MOST_PORT: Final = 2**16


class Admitting(Protocol):
    """What is needed of admission."""

    def is_idle(self, resource: Resource) -> bool: ...

    async def mutated(self, asked: Attributes, warnings: list[str]) -> tuple[Object, list[str]]: ...

    async def judged(self, asked: Attributes, obj: Object | None, warnings: list[str]) -> list[str]: ...


class Around(Objects, Protocol):
    """What is needed of the registry."""

    @property
    def admission(self) -> Admitting: ...

    @property
    def access(self) -> Access: ...


async def refused(
    ask: Ask, query: Query, below: str, around: Around, *, is_create: bool, is_upgrade: bool
) -> StatusError:
    """Why there is none.  ``below`` is the path behind that of a proxy; ``is_create``: it was posted."""
    if "dryRun" in query:
        return bad_request("dryRun is not supported")
    kind = _kind(ask)
    options = _read(kind, {**query, "path": [below]})
    warnings: list[str] = []
    if not around.admission.is_idle(ask.resource):
        asked = Attributes(
            "CONNECT",
            ask.resource,
            ask.name,
            ask.namespace,
            ask.user,
            options,
            None,
            None,
            ask.subresource,
            body=kind,
        )
        options, warnings = await around.admission.mutated(asked, warnings)
        warnings = await around.admission.judged(asked, options, warnings)
    try:
        _authorize(ask, is_create=is_create, around=around)
        refusal = _unreached(ask, options, is_upgrade=is_upgrade, around=around)
    except StatusError as error:
        refusal = error
    refusal.warnings = tuple(warnings)
    return refusal


# ── What is asked for ───────────────────────────────────────────────────────────────────────────────


def _kind(ask: Ask) -> Resource:
    below = ask.resource.subresource(ask.subresource)
    name = below.kind if below is not None else ""
    return Resource(
        group="",
        version="v1",
        plural=ask.resource.plural,
        kind=name,
        namespaced=ask.resource.namespaced,
        verbs=(),
        type=type_of("", "v1", name),
        strategy=ask.resource.strategy,
    )


def _read(kind: Resource, query: Query) -> Object:
    """The options in a query, without those that say nothing."""
    found: dict[str, Any] = {"kind": kind.kind, "apiVersion": "v1"}
    if "command" in kind.type.fields:
        found["command"] = None  # said also where there is none
    for name, field in kind.type.fields.items():
        values = query.get(name)
        if not values or name in ("kind", "apiVersion"):
            continue
        if field.type.form == "bool":
            value: Any = values[0].lower() not in ("false", "0")
        elif name == "command":
            value = list(values)
        elif name == "ports":
            value = [_port(one) for each in values for one in each.split(",")]
        else:
            value = values[0]
        if value:
            found[name] = value
    return found


def _port(text: str) -> int:
    number = whole(text)
    is_range = text.isascii() and text.isdecimal()
    if number is None or number >= _MOST_PORT:
        why = "value out of range" if is_range else "invalid syntax"
        told = f"strconv.ParseUint: parsing {quoted(text)}: {why}"
        raise bad_request(f"cannot convert to []int32: {told}")
    return number


# ── Who would take it ───────────────────────────────────────────────────────────────────────────────


def _authorize(ask: Ask, *, is_create: bool, around: Around) -> None:
    """Streams are created, by whatever method a client asks for them."""
    if is_create or ask.subresource == "proxy":
        return
    resource, authorizer = ask.resource, around.access.authorizer
    creates = Authorized("create", resource.group, resource.plural, ask.subresource, ask.namespace, ask.name)
    if not authorizer.allows(ask.user, creates):
        why = authorizer.decide(ask.user, creates).reason
        raise forbidden(resource.plural, resource.group, ask.name, why)


def _unreached(ask: Ask, options: Object, *, is_upgrade: bool, around: Around) -> StatusError:
    match ask.resource.plural, ask.subresource:
        case "pods", "proxy":
            return _unreached_pod(ask, around)
        case "pods", _:
            return _unreached_streams(ask, options, is_upgrade=is_upgrade, around=around)
        case "services", _:
            return _unreached_service(ask, around)
    name, port = _named(ask, "node")
    place = place_of(node_of(ask, around, name))
    return _no_service(f"{place.rpartition(':')[0]}:{port}" if port else place)


def _unreached_streams(ask: Ask, options: Object, *, is_upgrade: bool, around: Around) -> StatusError:
    pod = _object(ask, ask.name, around)
    if ask.subresource != "portforward":
        container_of(pod, options.get("container", ""))
    node = pod["spec"].get("nodeName", "")
    if not node:
        return bad_request(f"pod {ask.name} does not have a host assigned")
    place = place_of(node_of(ask, around, node))
    if not is_upgrade:
        return bad_request("Upgrade request required")
    return StatusError(500, "", f"error dialing backend: dial tcp {place}: connect: connection refused")


def _unreached_pod(ask: Ask, around: Around) -> StatusError:
    name, port = _named(ask, "pod")
    pod = _object(ask, name, around)
    found = address(((pod.get("status") or {}).get("podIPs") or [{}])[0].get("ip", ""))
    if found is None or _is_local(found):
        return bad_request("address not allowed")
    ports = [one for each in pod["spec"]["containers"] for one in each.get("ports") or ()]
    default = ports[0]["containerPort"] if ports else 80
    return _no_service(f"{found}:{port or default}")


def _is_local(found: Address) -> bool:
    """What is no address of one host in a network."""
    return found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified


def _unreached_service(ask: Ask, around: Around) -> StatusError:
    name, port = _named(ask, "service")
    number = whole(port)
    if number is not None:
        ports = _object(ask, name, around)["spec"].get("ports") or ()
        if all(one.get("port") != number for one in ports):
            return _unavailable(f"no service port {number} found for service {quoted(name)}")
    return _unavailable(f"no endpoints available for service {quoted(name)}")


def _no_service(place: str) -> StatusError:
    return _unavailable(f"error trying to reach service: dial tcp {place}: connect: connection refused")


def _unavailable(told: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", told)


def _named(ask: Ask, what: str) -> tuple[str, str]:
    """The name and the port of ``name``, ``name:port`` and ``scheme:name:port``."""
    parts = ask.name.split(":")
    scheme, name, port = parts if len(parts) == 3 else ["", *parts, ""][:3]
    if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
        raise bad_request(f"invalid {what} request {quoted(ask.name)}")
    return name, port


def _object(ask: Ask, name: str, around: Around) -> Object:
    found: Object = msgspec.json.decode(
        around.find(msgspec.structs.replace(ask, name=name, subresource="")).data
    )
    return found
