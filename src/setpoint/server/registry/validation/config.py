"""What is wrong with ConfigMaps, Secrets, Namespaces, Nodes, Events, Leases and RuntimeClasses."""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from setpoint.server.golang import same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.syntax import problem
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import IMMUTABLE, Found
from setpoint.server.registry.validation.metadata import check_finalizer_stands
from setpoint.server.registry.validation.resources import ClaimNames, check_quantity, check_requirements
from setpoint.server.registry.validation.scheduling import check_taints, check_tolerations
from setpoint.server.registry.validation.selectors import check_labels

Json = dict[str, Any]
_MOST: Final = 1 << 20
_FIXED: Final = "field is immutable when `immutable` is set"


def _bytes(text: str) -> int:
    """How many bytes base64 text holds."""
    return len(text) * 3 // 4 - text[-2:].count("=")


# ── ConfigMap, Secret ───────────────────────────────────────────────────────────────────────────────


def check_config_map(obj: Object, found: Found) -> None:
    data, binary, size = obj.get("data") or {}, obj.get("binaryData") or {}, 0
    for key, value in data.items():
        if errors := texts.config_key(key):
            found.told(f"data[{key}]", key, errors)
        if key in binary:
            found.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in binary.items():
        found.told(f"binaryData[{key}]", key, texts.config_key(key))
        size += _bytes(value)
    if size > _MOST:
        found.too_long("[]", _MOST)


def check_config_map_update(new: Object, old: Object, found: Found) -> None:
    _check_fixed(new, old, ("data", "binaryData"), found)
    check_config_map(new, found)


def _check_fixed(new: Object, old: Object, fields: tuple[str, ...], found: Found) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        found.forbidden("immutable", _FIXED)
    for field in fields:
        if not same(new.get(field) or {}, old.get(field) or {}):
            found.forbidden(field, _FIXED)


_NEEDED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def check_secret(obj: Object, found: Found) -> None:
    data, kind, size = obj.get("data") or {}, obj.get("type", ""), 0
    for key, value in data.items():
        if errors := texts.config_key(key):
            found.told(f"data[{key}]", key, errors)
        size += _bytes(value or "")
    if size > _MOST:
        found.too_long("data", _MOST)
    for key in _NEEDED.get(kind, ()):
        if key not in data:
            found.required(f"data[{key}]")
        elif key.startswith(".docker"):
            _check_docker(data[key] or "", f"data[{key}]", found)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found.required("data[username]")
        found.required("data[password]")
    if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        found.required("data[ssh-privatekey]")
    named = (obj["metadata"].get("annotations") or {}).get(_ACCOUNT)
    if kind == "kubernetes.io/service-account-token" and not named:
        found.required(f"metadata.annotations[{_ACCOUNT}]")


def _check_docker(text: str, path: str, found: Found) -> None:
    body = base64.b64decode(text)
    shown = "<secret contents redacted>"
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found.invalid(path, shown, problem(body))
        return
    if value is not None and not isinstance(value, dict):
        kinds = {str: "string", list: "array", bool: "bool"}
        kind = kinds.get(type(value), "number")
        told = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        found.invalid(path, shown, told)


def check_secret_update(new: Object, old: Object, found: Found) -> None:
    found.unchanged("type", new.get("type", ""), old.get("type", ""))
    _check_fixed(new, old, ("data",), found)
    check_secret(new, found)


# ── Namespace, Node ─────────────────────────────────────────────────────────────────────────────────


def check_namespace(obj: Object, found: Found) -> None:
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        found.told("spec.finalizers", name, texts.qualified(name))
        check_finalizer_stands(name, "spec.finalizers", found)


def check_namespace_finalize(new: Object, old: Object, found: Found) -> None:
    del old
    for index, name in enumerate((new.get("spec") or {}).get("finalizers") or ()):
        found.told(f"spec.finalizers[{index}]", name, texts.qualified(name))
        check_finalizer_stands(name, f"spec.finalizers[{index}]", found)


def check_namespace_status(new: Object, old: Object, found: Found) -> None:
    del old
    phase = (new.get("status") or {}).get("phase", "")
    is_going = bool(new["metadata"].get("deletionTimestamp"))
    wanted, word = ("Terminating", "not empty") if is_going else ("Active", "empty")
    if phase != wanted:
        found.invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {word}")


def check_node(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    if taints := spec.get("taints"):
        check_taints(taints, "metadata.taints", found)
    _check_node_amounts(obj, found)
    ranges = spec.get("podCIDRs") or []
    for index, one in enumerate(ranges):
        found.told(f"spec.podCIDRs[{index}]", one, texts.cidr(one))
    if len(ranges) > 1 and (len(ranges) > 2 or len({":" in one for one in ranges}) == 1):
        found.invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")


def _check_node_amounts(obj: Object, found: Found) -> None:
    status = obj.get("status") or {}
    amounts = status.get("capacity") or {}
    for field, these in (("capacity", amounts), ("allocatable", status.get("allocatable") or amounts)):
        for name, value in sorted(these.items()):
            check_quantity(name, value, f"status.{field}.{name}", found)


def check_node_update(new: Object, old: Object, found: Found) -> None:
    now, then = new.get("spec") or {}, old.get("spec") or {}
    _check_node_amounts(new, found)
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate((new.get("status") or {}).get("addresses") or ()):
        this = address.get("type", ""), address.get("address", "")
        if this in seen:
            shown = {"Type": this[0], "Address": this[1]}
            found.duplicate(f"status.addresses[{index}]", shown)
        seen.add(this)
    before = then.get("podCIDRs") or []
    if before and before != (now.get("podCIDRs") or []):
        found.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if taints := now.get("taints"):
        check_taints(taints, "metadata.taints", found)
    old_id, new_id = then.get("providerID", ""), now.get("providerID", "")
    if old_id and new_id != old_id:
        told = "field cannot be modified once set" if new_id else "field cannot be cleared once set"
        found.invalid("spec.providerID", None, told)


# ── Event ───────────────────────────────────────────────────────────────────────────────────────────

_NO_NAMESPACE: Final = "does not match event.namespace"


def _check_event(event: Json, reporter: str, found: Found) -> None:
    """``event`` has the names of version 1."""
    namespace = event["metadata"].get("namespace", "")
    there = (event.get("involvedObject") or {}).get("namespace", "")
    at = "involvedObject.namespace"
    if not event.get("eventTime"):
        if there != namespace if there else namespace not in ("", "default"):
            found.invalid(at, there, _NO_NAMESPACE)
        return
    if not there and namespace not in ("default", "kube-system"):
        found.invalid(at, there, _NO_NAMESPACE)
    name = event.get("reportingComponent", "")
    if not name:
        found.required(reporter)
    found.told(reporter, name, texts.qualified(name))
    for field in ("reportingInstance", "action", "reason"):
        text = event.get(field, "")
        if not text:
            found.required(field)
        if len(text.encode()) > 128:
            found.invalid(field, "", "can have at most 128 characters")
    if len(event.get("message", "").encode()) > 1024:
        found.invalid("message", "", "can have at most 1024 characters")


def check_event(obj: Object, found: Found) -> None:
    _check_event(obj, "reportingComponent", found)


_OLD_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}


def _in_old_names(obj: Object) -> Json:
    return {_OLD_NAMES.get(name, name): value for name, value in obj.items()}


def _check_series(event: Json, found: Found) -> None:
    series = event.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        found.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        found.required("series.lastObservedTime")


def check_new_event(obj: Object, found: Found) -> None:
    """Of events.k8s.io, where more is asked for."""
    event = _in_old_names(obj)
    _check_event(event, "reportingController", found)
    _check_series(event, found)
    if not event.get("eventTime"):
        found.required("eventTime")
    if event.get("type", "") not in ("Normal", "Warning"):
        found.invalid("type", "", f"has invalid value: {event.get('type', '')}")
    source = event.get("source") or {}
    values = {
        "firstTimestamp": event.get("firstTimestamp"),
        "lastTimestamp": event.get("lastTimestamp"),
        "count": event.get("count"),
        "source": source.get("component") or source.get("host"),
    }
    for field, value in values.items():
        if value:
            found.invalid(field, "", "needs to be unset")


_EVENT_FIXED: Final = (
    "reason",
    "message",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def check_new_event_update(new: Object, old: Object, found: Found) -> None:
    now, then = _in_old_names(new), _in_old_names(old)
    _check_event(now, "reportingController", found)
    if not same(now.get("series"), then.get("series")):
        _check_series(now, found)
    for field in _EVENT_FIXED:
        if not same(now.get(field), then.get(field)):
            shown = "reportingController" if field == "reportingComponent" else field
            found.invalid(shown, now.get(field), IMMUTABLE)


def check_event_update(new: Object, old: Object, found: Found) -> None:
    del old
    check_event(new, found)


# ── Lease, RuntimeClass ─────────────────────────────────────────────────────────────────────────────


def check_lease(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        found.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        found.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def check_runtime_class(obj: Object, found: Found) -> None:
    _check_runtime(obj, found)
    handler = obj.get("handler", "")
    if not handler:
        found.required("handler")
    else:
        found.told("handler", handler, texts.label(handler))


def _check_runtime(obj: Object, found: Found) -> None:
    if fixed := (obj.get("overhead") or {}).get("podFixed"):
        check_requirements({"limits": fixed}, ClaimNames(), "overhead", found)
    scheduling = obj.get("scheduling") or {}
    check_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", found)
    check_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations", found)


def check_runtime_class_update(new: Object, old: Object, found: Found) -> None:
    _check_runtime(new, found)
    found.unchanged("handler", new.get("handler"), old.get("handler"), shown=None)
