"""Decides how the addresses behind a Service are spread over EndpointSlices.  Pure.

1. All addresses of a slice have the same ports, and there are at most a hundred.
2. As few slices change as can be: an address stays where it is, a new one goes where there is room, a slice
   that is no longer needed is used for what needs a new one.
3. A Service of which nothing is known has one slice of each family, with nothing in it.

``endpointslices.py`` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from setpoint.api.meta import ObjectMeta, OwnerReference
from setpoint.api.times import Time
from setpoint.builtin.endpoints_pods import HEADLESS, TRIGGER, Backend, Family, Port, is_headless
from setpoint.kube.core.v1 import Service
from setpoint.kube.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice

MOST = 100  # endpoints in a slice, as kube-controller-manager
SERVICE = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
_RESERVED = {SERVICE, MANAGED_BY, HEADLESS}


@dataclass(slots=True)
class Plan:
    """What is to be written."""

    created: list[EndpointSlice] = field(default_factory=list)
    updated: list[EndpointSlice] = field(default_factory=list)
    deleted: list[EndpointSlice] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.created or self.updated or self.deleted)


@dataclass(slots=True)
class _Draft:
    """A slice as it will be: an old one, or a new one."""

    ports: tuple[Port, ...] | None  # None: nothing is known of ports yet
    endpoints: list[Endpoint]
    old: EndpointSlice | None = None


def plan(
    service: Service,
    family: Family,
    backends: Sequence[Backend],
    existing: Iterable[EndpointSlice],
    trigger: Time | None,
) -> Plan:
    """What is to be written so that the slices of a family say what is behind a Service."""
    groups: dict[tuple[Port, ...], list[Backend]] = {}
    for backend in backends:
        groups.setdefault(backend.ports, []).append(backend)
    unused = {each.metadata.name or "": each for each in existing}
    drafts: list[_Draft] = []
    for ports, members in groups.items():
        drafts += _drafts(ports, members, unused)
    if not drafts:
        drafts.append(_Draft(None, []))
    for draft in drafts:
        if draft.old is None and unused:
            draft.old = unused.pop(next(iter(unused)))
    found = Plan(deleted=list(unused.values()))
    for draft in drafts:
        wanted = _slice(service, family, draft)
        if draft.old is None:
            _stamp(wanted, trigger)
            found.created.append(wanted)
        elif not _is_same(draft.old, wanted):
            wanted.metadata.name = draft.old.metadata.name
            wanted.metadata.uid = draft.old.metadata.uid
            wanted.metadata.generate_name = draft.old.metadata.generate_name
            wanted.metadata.resource_version = draft.old.metadata.resource_version
            others = {
                name: value
                for name, value in (draft.old.metadata.annotations or {}).items()
                if name != TRIGGER
            }
            wanted.metadata.annotations = others or None
            _stamp(wanted, trigger)
            found.updated.append(wanted)
    return found


def _drafts(
    ports: tuple[Port, ...], members: Sequence[Backend], unused: dict[str, EndpointSlice]
) -> list[_Draft]:
    """Slices for addresses of the same ports; those that are used are taken out of ``unused``."""
    wanted = {(each.uid, each.address): _endpoint(each) for each in members}
    drafts: list[_Draft] = []
    for name, old in list(unused.items()):
        if _ports(old) != ports or not old.endpoints:
            continue
        kept = [wanted.pop(key) for each in old.endpoints if (key := _key(each)) in wanted]
        if kept:
            drafts.append(_Draft(ports, kept, unused.pop(name)))
    left = list(wanted.values())
    for draft in drafts:
        room = MOST - len(draft.endpoints)
        draft.endpoints += left[:room]
        left = left[room:]
    drafts += [_Draft(ports, left[start : start + MOST]) for start in range(0, len(left), MOST)]
    return drafts


def _endpoint(backend: Backend) -> Endpoint:
    return Endpoint(
        addresses=[backend.address],
        conditions=EndpointConditions(
            ready=backend.is_ready, serving=backend.is_serving, terminating=backend.is_terminating
        ),
        hostname=backend.hostname,
        node_name=backend.node,
        target_ref=backend.target,
    )


def _key(endpoint: Endpoint) -> tuple[str, str]:
    uid = endpoint.target_ref.uid if endpoint.target_ref is not None else None
    return (uid or "", endpoint.addresses[0] if endpoint.addresses else "")


def _ports(old: EndpointSlice) -> tuple[Port, ...]:
    return tuple(
        Port(each.name or "", each.port or 0, each.protocol or "TCP", each.app_protocol)
        for each in old.ports or ()
    )


def _slice(service: Service, family: Family, draft: _Draft) -> EndpointSlice:
    name = service.metadata.name or ""
    owner = OwnerReference(
        api_version="v1",
        kind="Service",
        name=name,
        uid=service.metadata.uid or "",
        controller=True,
        block_owner_deletion=True,
    )
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{name}-",
            namespace=service.metadata.namespace,
            labels=labels_of(service),
            owner_references=[owner],
        ),
        address_type=family,
        endpoints=draft.endpoints or None,
        ports=[
            EndpointPort(
                name=each.name, port=each.port, protocol=each.protocol, app_protocol=each.app_protocol
            )
            for each in draft.ports or ()
        ]
        or None,
    )


def labels_of(service: Service) -> dict[str, str]:
    own = {name: value for name, value in (service.metadata.labels or {}).items() if name not in _RESERVED}
    headless = {HEADLESS: ""} if is_headless(service) else {}
    return {**own, SERVICE: service.metadata.name or "", MANAGED_BY: CONTROLLER, **headless}


def _is_same(old: EndpointSlice, new: EndpointSlice) -> bool:
    return (
        (old.endpoints or []) == (new.endpoints or [])
        and _ports(old) == _ports(new)
        and old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
    )


def _stamp(wanted: EndpointSlice, trigger: Time | None) -> None:
    if trigger is not None:
        wanted.metadata.annotations = {**(wanted.metadata.annotations or {}), TRIGGER: trigger.to_wire()}
