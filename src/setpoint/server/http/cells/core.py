"""The cells of the core group's kinds, Pods apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from setpoint.server.http.cells.pods import pod
from setpoint.server.http.cells.reading import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Printer,
    age,
    at,
    balanced,
    condition,
    containers,
    created,
    cut_short,
    is_deleting,
    items,
    joined,
    labels,
    name,
    number,
    text,
)
from setpoint.server.registry.resources import Object

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_ROLE: Final = "node-role.kubernetes.io/"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def component_status(obj: Object, _: datetime) -> Cells:
    found = next((one for one in items(obj, "conditions") if one.get("type") == "Healthy"), None)
    if found is None:
        return [name(obj), "Unknown", "", ""]
    said = "Healthy" if found.get("status") == "True" else "Unhealthy"
    return [name(obj), said, text(found, "message"), text(found, "error")]


def config_map(obj: Object, now: datetime) -> Cells:
    return [name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), created(obj, now)]


def secret(obj: Object, now: datetime) -> Cells:
    return [name(obj), text(obj, "type"), len(obj.get("data") or {}), created(obj, now)]


def service_account(obj: Object, now: datetime) -> Cells:
    return [name(obj), created(obj, now)]


def namespace(obj: Object, now: datetime) -> Cells:
    return [name(obj), text(obj, "status", "phase"), created(obj, now)]


def endpoints(obj: Object, now: datetime) -> Cells:
    found: list[str] = []
    for subset in items(obj, "subsets"):
        addresses = [text(one, "ip") for one in items(subset, "addresses")]
        ports = [number(one, "port") for one in items(subset, "ports")]
        if not ports:
            found += addresses
        found += [_host_port(address, port) for port in ports for address in addresses]
    shown = cut_short(found, len(found), otherwise="") if items(obj, "subsets") else NONE
    return [name(obj), shown, created(obj, now)]


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def event(obj: Object, now: datetime) -> Cells:
    """Of either group: what has another name in events.k8s.io has the same meaning."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    first_seen = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    last_seen = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    count = number(obj, "count") or number(obj, "deprecatedCount") or 1
    first = age(first_seen or obj.get("eventTime"), now)
    last = age(last_seen, now) if last_seen else first
    series = obj.get("series")
    if series is not None:
        last, count = age(at(series, "lastObservedTime"), now), number(series, "count")
    kind, called = text(about, "kind").lower(), text(about, "name")
    controller = text(obj, "reportingComponent") or text(obj, "reportingController")
    component = text(source, "component") or controller
    instance = text(source, "host") or text(obj, "reportingInstance")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{called}" if called else kind,
        text(about, "fieldPath"),
        f"{component}, {instance}" if instance else component,
        (text(obj, "message") or text(obj, "note")).strip(),
        first,
        count,
        name(obj),
    ]


def node(obj: Object, now: datetime) -> Cells:
    ready = condition(obj, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if at(obj, "spec", "unschedulable"):
        status += ",SchedulingDisabled"
    about: Mapping[str, Any] = at(obj, "status", "nodeInfo") or {}
    kernel = text(about, "kernelVersion", otherwise=UNKNOWN)
    if architecture := text(about, "architecture"):
        kernel += f" ({architecture})"
    return [
        name(obj),
        status,
        joined(_roles(at(obj, "metadata", "labels") or {})) or NONE,
        created(obj, now),
        text(about, "kubeletVersion"),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        text(about, "osImage", otherwise=UNKNOWN),
        kernel,
        text(about, "containerRuntimeVersion", otherwise=UNKNOWN),
    ]


def _roles(found: Mapping[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE) for key in found if key.startswith(_ROLE)}
    return sorted((roles | {found.get("kubernetes.io/role", "")}) - {""})


def _node_address(obj: Object, kind: str) -> str:
    found = (one for one in items(obj, "status", "addresses") if one.get("type") == kind)
    return next((text(one, "address") for one in found), NONE)


def persistent_volume(obj: Object, now: datetime) -> Cells:
    claim = at(obj, "spec", "claimRef")
    return [
        name(obj),
        text(obj, "spec", "capacity", "storage", otherwise="0"),
        _modes(items(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        "Terminating" if is_deleting(obj) else text(obj, "status", "phase"),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim is not None else "",
        _storage_class(obj),
        _set(obj, "volumeAttributesClassName"),
        text(obj, "status", "reason"),
        created(obj, now),
        _set(obj, "volumeMode"),
    ]


def persistent_volume_claim(obj: Object, now: datetime) -> Cells:
    is_bound = bool(text(obj, "spec", "volumeName"))
    return [
        name(obj),
        "Terminating" if is_deleting(obj) else text(obj, "status", "phase"),
        text(obj, "spec", "volumeName"),
        text(obj, "status", "capacity", "storage", otherwise="0") if is_bound else "",
        _modes(items(obj, "status", "accessModes")) if is_bound else "",
        _storage_class(obj),
        _set(obj, "volumeAttributesClassName"),
        created(obj, now),
        _set(obj, "volumeMode"),
    ]


def _modes(modes: list[str]) -> str:
    return joined(short for mode, short in _MODES.items() if mode in modes)


def _set(obj: Object, field: str) -> str:
    found = at(obj, "spec", field)
    return UNSET if found is None else str(found)


def _storage_class(obj: Object) -> str:
    annotations = at(obj, "metadata", "annotations") or {}
    if _OLD_CLASS in annotations:
        return str(annotations[_OLD_CLASS])
    return text(obj, "spec", "storageClassName")


def pod_template(obj: Object, _: datetime) -> Cells:
    names, images = containers(items(obj, "template", "spec", "containers"))
    return [name(obj), names, images, labels(at(obj, "template", "metadata", "labels"))]


def resource_quota(obj: Object, now: datetime) -> Cells:
    hard, used = at(obj, "status", "hard") or {}, at(obj, "status", "used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name(obj), joined(requests, ", "), joined(limits, ", "), created(obj, now)]


def service(obj: Object, now: datetime) -> Cells:
    addresses = items(obj, "spec", "clusterIPs")
    return [
        name(obj),
        text(obj, "spec", "type"),
        addresses[0] if addresses else NONE,
        _external(obj),
        joined(_port(one) for one in items(obj, "spec", "ports")) or NONE,
        created(obj, now),
        labels(at(obj, "spec", "selector")),
    ]


def _external(obj: Object) -> str:
    given = items(obj, "spec", "externalIPs")
    match text(obj, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return joined(given) or NONE
        case "LoadBalancer":
            found = balanced(at(obj, "status", "loadBalancer"))
            return joined([*([found] if found else []), *given]) or "<pending>"
        case "ExternalName":
            return text(obj, "spec", "externalName")
    return UNKNOWN


def _port(port: Any) -> str:
    outside = f":{port['nodePort']}" if number(port, "nodePort") else ""
    return f"{number(port, 'port')}{outside}/{text(port, 'protocol')}"


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "ComponentStatus"): component_status,
    ("", "ConfigMap"): config_map,
    ("", "Endpoints"): endpoints,
    ("", "Event"): event,
    ("events.k8s.io", "Event"): event,
    ("", "Namespace"): namespace,
    ("", "Node"): node,
    ("", "PersistentVolume"): persistent_volume,
    ("", "PersistentVolumeClaim"): persistent_volume_claim,
    ("", "Pod"): pod,
    ("", "PodTemplate"): pod_template,
    ("", "ResourceQuota"): resource_quota,
    ("", "Secret"): secret,
    ("", "Service"): service,
    ("", "ServiceAccount"): service_account,
}
