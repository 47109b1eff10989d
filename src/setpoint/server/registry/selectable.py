"""What field selectors may name, kind by kind, beside ``metadata.name`` and ``metadata.namespace``.

Pure.  A field that an object lacks is empty, or says its zero (``false``, ``0``), as Kubernetes has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from setpoint.server.registry.resources import Object

_EVENT = tuple(
    f"{{about}}.{name}"
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
# Each field with what it says where the object has none.
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "pods": {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.podIPs": "",
        "status.nominatedNodeName": "",
    },
    "nodes": {"spec.unschedulable": "false"},
    "secrets": {"type": ""},
    "services": {"spec.clusterIP": "", "spec.type": ""},
    "namespaces": {"status.phase": ""},
    "jobs.batch": {"status.successful": "0"},
    "replicationcontrollers": {"status.replicas": "0"},
    "replicasets.apps": {"status.replicas": "0"},
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": ""},
}
_ELSEWHERE = {"status.successful": "status.succeeded"}  # the name differs from the field
# An Event of events.k8s.io says some things by other names than one of the core group.
_CORE = {
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
}


def names(stored: str, group: str) -> Sequence[str]:
    if stored == "events":
        about = "regarding" if group else "involvedObject"
        own = ("reason", "reportingController" if group else "reportingComponent", "type")
        return (*(one.format(about=about) for one in _EVENT), *own, *(() if group else ("source",)))
    return tuple(_FIELDS.get(stored, ()))


def fields(stored: str, group: str, obj: Object) -> dict[str, str]:
    if stored == "events":
        event = {_CORE.get(name, name): value for name, value in obj.items()}  # as it is stored: either way
        shown = {name: _core(name) for name in names(stored, group) if name != "source"}
        found = {name: _text(_at(event, core)) for name, core in shown.items()}
        if not group:
            component = _text(_at(event, "source.component"))
            found["source"] = component or _text(event.get("reportingComponent"))
        return found
    return {
        name: _text(_at(obj, _ELSEWHERE.get(name, name))) or empty
        for name, empty in _FIELDS.get(stored, {}).items()
    }


def _core(name: str) -> str:
    first, dot, rest = name.partition(".")
    return f"{_CORE.get(first, first)}{dot}{rest}"


def _at(obj: Object, path: str) -> Any:
    found: Any = obj
    for step in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    if path == "status.podIPs" and found:
        return found[0].get("ip")
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
