"""Defaults of the core group, but for pods."""

from __future__ import annotations

import base64
from typing import Final

from setpoint.server.registry.defaults.pods import claim_spec, remote, template
from setpoint.server.registry.resources import Object

_THREE_HOURS: Final = 10800


def service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        _affinity(spec)
    kind = spec["type"] = spec.get("type") or "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    is_outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if is_outside and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in ("ClusterIP", "NodePort", "LoadBalancer") and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def _affinity(spec: Object) -> None:
    client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    if client.get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _THREE_HOURS}}


def secret(obj: Object) -> None:
    if not obj.get("type"):
        obj["type"] = "Opaque"
    written = obj.pop("stringData", None)
    if written:
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in written.items()}
        obj["data"] = {**(obj.get("data") or {}), **coded}


def namespace(obj: Object) -> None:
    metadata = obj.setdefault("metadata", {})
    if metadata.get("name"):
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "kubernetes.io/metadata.name": metadata["name"],
        }
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Active"


def node(obj: Object) -> None:
    status = obj.get("status")
    if status and status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])


def persistent_volume(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    claim_spec(spec)
    host = spec.get("hostPath")
    if host is not None and host.get("type") is None:
        host["type"] = ""
    for name in ("azureDisk", "iscsi", "rbd", "scaleIO"):
        if spec.get(name) is not None:
            remote(name, spec[name])


def persistent_volume_claim(obj: Object) -> None:
    claim_spec(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"


def endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def limit_range(obj: Object) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            item["default"] = {**(item.get("max") or {}), **(item.get("default") or {})}
            item["defaultRequest"] = {
                **(item.get("min") or {}),
                **item["default"],
                **(item.get("defaultRequest") or {}),
            }


def replication_controller(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if spec.get("template") is not None:
        template(spec["template"])
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels:
            spec["selector"] = spec.get("selector") or dict(labels)
            metadata = obj.setdefault("metadata", {})
            metadata["labels"] = metadata.get("labels") or dict(labels)


def pod_template(obj: Object) -> None:
    template(obj.setdefault("template", {}))
