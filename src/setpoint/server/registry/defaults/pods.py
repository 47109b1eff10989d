"""Defaults of pods and of everything that holds a pod's spec.

A pod gets more than a template: what only a running pod needs is left open in templates, so that it can
change with the server.  Everything works in place.
"""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.defaults.images import pull_policy
from setpoint.server.registry.resources import Object

_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def pod(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            _requests_from_limits(container)
            if spec.get("hostNetwork"):
                _host_ports(container)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    status = obj.get("status")
    if status:
        _pod_ips(status)


def template(obj: Object) -> None:
    """A pod's template, wherever it stands."""
    pod_spec(obj.setdefault("spec", {}))


def pod_spec(spec: Object) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    for one in spec.get("volumes") or ():
        volume(one)
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for one in spec.get(containers) or ():
            container(one)


def container(obj: Object) -> None:
    if not obj.get("imagePullPolicy"):
        obj["imagePullPolicy"] = pull_policy(obj.get("image") or "")
    if not obj.get("terminationMessagePath"):
        obj["terminationMessagePath"] = "/dev/termination-log"
    if not obj.get("terminationMessagePolicy"):
        obj["terminationMessagePolicy"] = "File"
    for port in obj.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in obj.get("env") or ():
        _field_selector(variable.get("valueFrom"))
    for name in _PROBES:
        if obj.get(name) is not None:
            _probe(obj[name])
    lifecycle = obj.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            if lifecycle.get(name):
                _http_get(lifecycle[name])


def _probe(probe: Object) -> None:
    _http_get(probe)
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(name):
            probe[name] = value
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _http_get(handler: Object) -> None:
    action = handler.get("httpGet")
    if action is not None:
        if not action.get("path"):
            action["path"] = "/"
        if not action.get("scheme"):
            action["scheme"] = "HTTP"


def _field_selector(source: Object | None) -> None:
    selector = source.get("fieldRef") if source else None
    if selector is not None and not selector.get("apiVersion"):
        selector["apiVersion"] = "v1"


# --- volumes

_REMOTE: Final[dict[str, dict[str, Any]]] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def volume(obj: Object) -> None:
    sources = [name for name, source in obj.items() if name != "name" and source is not None]
    if not sources:
        obj["emptyDir"] = {}
    for name in sources:
        source = obj[name]
        if name in ("secret", "configMap", "downwardAPI", "projected"):
            _with_mode(source)
        elif name == "hostPath" and source.get("type") is None:
            source["type"] = ""
        elif name == "image" and not source.get("pullPolicy"):
            source["pullPolicy"] = pull_policy(source.get("reference") or "")
        elif name == "ephemeral" and source.get("volumeClaimTemplate"):
            claim_spec(source["volumeClaimTemplate"].setdefault("spec", {}))
        else:
            remote(name, source)


def remote(name: str, source: Object) -> None:
    """Volumes of old, which PersistentVolumes have too."""
    for field, value in _REMOTE.get(name, {}).items():
        if source.get(field) is None or source[field] == "":
            source[field] = value


def _with_mode(source: Object) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = _MODE
    for item in source.get("items") or ():
        _field_selector(item)
    for projection in source.get("sources") or ():
        for item in (projection.get("downwardAPI") or {}).get("items") or ():
            _field_selector(item)
        token = projection.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600


def claim_spec(spec: Object) -> None:
    """Of a PersistentVolumeClaim."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


# --- pods only


def _requests_from_limits(container: Object) -> None:
    resources = container.get("resources")
    limits = resources.get("limits") if resources else None
    if resources and limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _host_ports(container: Object) -> None:
    for port in container.get("ports") or ():
        if not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort", 0)


def _pod_ips(status: Object) -> None:
    """The first of the addresses and the one address are the same."""
    one, all_of_them = status.get("podIP"), status.get("podIPs")
    if one and (not all_of_them or all_of_them[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif all_of_them and not one:
        status["podIP"] = all_of_them[0].get("ip", "")
