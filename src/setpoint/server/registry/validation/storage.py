"""What is wrong with claims, volumes and their classes, and with changing them."""

from __future__ import annotations

from typing import Any, Final

from setpoint.api.selectors import label_key_errors
from setpoint.server.golang import same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.types import Type
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.claims import VOLUME_MODES, check_access_modes, check_claim_spec
from setpoint.server.registry.validation.found import IMMUTABLE, NOT_POSITIVE, Found
from setpoint.server.registry.validation.selectors import check_node_selector, check_selector
from setpoint.server.registry.validation.volumes import check_driver, check_host_path, check_nfs

Json = dict[str, Any]
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


# ── PersistentVolumeClaim ───────────────────────────────────────────────────────────────────────────


def check_claim(obj: Object, found: Found) -> None:
    check_claim_spec(obj["spec"], "spec", found)


def _requested(spec: Json) -> str | None:
    amount: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return amount


def check_claim_update(new: Object, old: Object, found: Found) -> None:
    check_claim(new, found)
    now, then = dict(new["spec"]), dict(old["spec"])
    if not then.get("volumeName"):
        then["volumeName"] = now.get("volumeName")
    fresh = (new["metadata"].get("annotations") or {}).get(_BETA_CLASS, "")
    if fresh != (old["metadata"].get("annotations") or {}).get(_BETA_CLASS, ""):
        found.invalid(f"metadata.annotations.{_BETA_CLASS}", fresh, IMMUTABLE)
    if then.get("storageClassName") is None and now.get("storageClassName") is not None:
        then["storageClassName"] = now["storageClassName"]  # a class may come later
    is_bound = (new.get("status") or {}).get("phase") == "Bound"
    if is_bound:
        now["volumeAttributesClassName"] = then.get("volumeAttributesClassName")
        if (now.get("resources") or {}).get("requests") is not None:
            requests = {**now["resources"]["requests"], "storage": _requested(then)}
            now["resources"] = {**now["resources"], "requests": requests}
    spec_type = internals.part_type("", "v1", "PersistentVolumeClaim", "spec")
    if not _same(now, then):
        told = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            f"bound claims\n{internals.difference(then, now, spec_type)}"
        )
        found.forbidden("spec", told)
    _check_size(new, old, found)
    found.unchanged("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def _same(one: Json, other: Json) -> bool:
    """What is not there and what is null are one."""
    return all(same(one.get(name), other.get(name)) for name in {*one, *other})


def _check_size(new: Object, old: Object, found: Found) -> None:
    now, then = _requested(new["spec"]), _requested(old["spec"])
    if now is None or then is None or texts.quantity(now) >= texts.quantity(then):
        return
    has = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if texts.quantity(now) <= texts.quantity(has):
        found.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def check_claim_status(new: Object, old: Object, found: Found) -> None:
    del old
    status = new.get("status") or {}
    for name, value in sorted((status.get("capacity") or {}).items()):
        _check_basic(value, f"status.capacity[{name}]", found)


def _check_basic(value: str, path: str, found: Found) -> None:
    number = texts.quantity(value).value
    if number < 0:
        found.invalid(path, number, "must be a valid resource quantity")


# ── PersistentVolume ────────────────────────────────────────────────────────────────────────────────

_NOT_SOURCES: Final = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)


def _source_type() -> Type:
    """The part of the spec that says what the volume is."""
    spec = internals.part_type("", "v1", "PersistentVolume", "spec")
    return Type(
        "struct", "", fields={name: one for name, one in spec.fields.items() if name not in _NOT_SOURCES}
    )


def check_volume(obj: Object, found: Found) -> None:
    spec = obj["spec"]
    capacity, policy = spec.get("capacity") or {}, spec.get("persistentVolumeReclaimPolicy", "")
    if not spec.get("accessModes"):
        found.required("spec.accessModes")
    check_access_modes(spec.get("accessModes") or [], "spec.accessModes", found)
    if not capacity:
        found.required("spec.capacity")
    if list(capacity) != ["storage"]:
        found.unsupported("spec.capacity", spec.get("capacity"), ("storage",))
    for name, value in capacity.items():
        _check_basic(value, f"spec.capacity[{name}]", found)
        if texts.quantity(value) <= 0:
            found.invalid(f"spec.capacity[{name}]", value, NOT_POSITIVE)
    if policy:
        found.one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            found.required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            check_node_selector(affinity["required"], "spec.nodeAffinity.required", found)
    _check_sources(spec, found)
    host = spec.get("hostPath")
    if host is not None and not host.get("path", "").strip("/") and host.get("path") and policy == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        found.forbidden("spec.persistentVolumeReclaimPolicy", detail)
    if name := spec.get("storageClassName"):
        found.told("spec.storageClassName", name, texts.subdomain(name))
    if (mode := spec.get("volumeMode")) is not None:
        found.one_of("spec.volumeMode", mode, VOLUME_MODES)
    if (name := spec.get("volumeAttributesClassName")) is not None:
        if not name:
            found.required("spec.volumeAttributesClassName", "an empty string is disallowed")
        else:
            found.told("spec.volumeAttributesClassName", name, texts.subdomain(name))
        if spec.get("csi") is None:
            found.required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _check_sources(spec: Json, found: Found) -> None:
    named = ""
    for kind in _source_type().fields:
        source = spec.get(kind)
        if source is None:
            continue
        if named:
            found.forbidden(f"spec.{kind}", "may not specify more than 1 volume type")
            continue
        named = kind
        match kind:
            case "hostPath":
                check_host_path(source, "spec.hostPath", found)
            case "nfs":
                check_nfs(source, "spec.nfs", found)
            case "csi":
                _check_csi(source, found)
            case "local":
                if not source.get("path"):
                    found.required("spec.local.path")
                if spec.get("nodeAffinity") is None:
                    found.required("spec.nodeAffinity", "Local volume requires node affinity")
    if not named:
        found.required("spec", "must specify a volume type")


_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _check_csi(source: Json, found: Found) -> None:
    check_driver(source.get("driver", ""), "spec.csi.driver", found)
    if not source.get("volumeHandle"):
        found.required("spec.csi.volumeHandle")
    for field in _SECRETS:
        if (secret := source.get(field)) is None:
            continue
        for part, rule in (("name", texts.subdomain), ("namespace", texts.label)):
            value = secret.get(part, "")
            if not value:
                found.required(f"spec.csi.{field}.{part}")
            else:
                found.told(f"spec.csi.{field}.{part}", value, rule(value))


def check_volume_update(new: Object, old: Object, found: Found) -> None:
    check_volume(new, found)
    sources = _source_type()
    now = {name: new["spec"].get(name) for name in sources.fields}
    then = {name: old["spec"].get(name) for name in sources.fields}
    if not same(now, then):
        changed = internals.difference(then, now, sources)
        told = f"spec.persistentvolumesource is immutable after creation\n{changed}"
        found.forbidden("spec.persistentvolumesource", told)
    found.unchanged("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


# ── StorageClass ────────────────────────────────────────────────────────────────────────────────────


def check_class(obj: Object, found: Found) -> None:
    provisioner = obj.get("provisioner", "")
    if provisioner:
        found.told("provisioner", provisioner.lower(), texts.qualified(provisioner.lower()))
    _check_parameters(obj.get("parameters") or {}, found)
    if policy := obj.get("reclaimPolicy"):
        found.one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    found.some_of("volumeBindingMode", obj.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))
    for index, term in enumerate(obj.get("allowedTopologies") or ()):
        _check_topology(term, f"allowedTopologies[{index}]", found)
    if not provisioner:
        found.required("provisioner")


def _check_parameters(parameters: dict[str, str], found: Found) -> None:
    if len(parameters) > 512:
        found.too_long("parameters", 512)
    if "" in parameters:
        found.invalid("parameters", "", "field can not be empty.")
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > 256 * 2**10:
        found.too_long("parameters", 256 * 2**10)


def _check_topology(term: Json, path: str, found: Found) -> None:
    keys: set[str] = set()
    for index, one in enumerate(term.get("matchLabelExpressions") or ()):
        at, key, values = (
            f"{path}.matchLabelExpressions[{index}]",
            one.get("key", ""),
            one.get("values") or [],
        )
        if not values:
            found.required(f"{at}.values")
        seen: set[str] = set()
        for place, value in enumerate(values):
            found.unique(f"{at}.values[{place}]", value, seen)
        found.told(f"{at}.key", key, label_key_errors(key))
        found.unique(f"{at}.key", key, keys)


_FIXED: Final = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")


def check_class_update(new: Object, old: Object, found: Found) -> None:
    for field in _FIXED:
        found.unchanged(field, new.get(field), old.get(field), shown=None)


def check_attributes_class(obj: Object, found: Found) -> None:
    driver = obj.get("driverName", "")
    if driver:
        found.told("driverName", driver.lower(), texts.qualified(driver.lower()))
    _check_parameters(obj.get("parameters") or {}, found)
    if not obj.get("parameters"):
        found.required("parameters", "must contain at least one key/value pair")
    if not driver:
        found.required("driverName")


def check_attributes_class_update(new: Object, old: Object, found: Found) -> None:
    for field in ("driverName", "parameters"):
        if not same(new.get(field), old.get(field)):
            found.forbidden(field, f"updates to {field} are forbidden.")
    check_attributes_class(new, found)


# ── CSI ─────────────────────────────────────────────────────────────────────────────────────────────


def check_csi_driver(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    if (policy := spec.get("fsGroupPolicy")) is not None:
        found.one_of("spec.fsGroupPolicy", policy, ("File", "None", "ReadWriteOnceWithFSType"))
    audiences: set[str] = set()
    for index, one in enumerate(spec.get("tokenRequests") or ()):
        at, seconds = f"spec.tokenRequests[{index}]", one.get("expirationSeconds")
        if one.get("audience", "") in audiences:
            found.duplicate(f"{at}.audience", one.get("audience", ""))
            continue
        audiences.add(one.get("audience", ""))
        if seconds is not None and seconds < 600:
            detail = "may not specify a duration less than 10 minutes"
            found.invalid(f"{at}.expirationSeconds", seconds, detail)
    for mode in spec.get("volumeLifecycleModes") or ():
        found.one_of("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))


def check_csi_driver_update(new: Object, old: Object, found: Found) -> None:
    check_csi_driver(new, found)
    now, then = new.get("spec") or {}, old.get("spec") or {}
    found.unchanged("spec.attachedRequired", now.get("attachRequired"), then.get("attachRequired"))
    found.unchanged(
        "spec.volumeLifecycleModes", now.get("volumeLifecycleModes"), then.get("volumeLifecycleModes")
    )


def check_csi_node(obj: Object, found: Found) -> None:
    names: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        path, name, node = f"spec.drivers[{index}]", driver.get("name", ""), driver.get("nodeID", "")
        check_driver(name, f"{path}.name", found)
        if not node:
            found.required(f"{path}.nodeID")
        elif len(node) > 256:
            found.invalid(f"{path}.nodeID", node, "must be 256 characters or less")
        found.not_negative(f"{path}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
        found.unique(f"{path}.name", name, names)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                found.required(path)
            found.unique(path, key, keys)
            found.told(path, key, label_key_errors(key))


def check_csi_node_update(new: Object, old: Object, found: Found) -> None:
    check_csi_node(new, found)
    there = {one.get("name"): one for one in (old.get("spec") or {}).get("drivers") or ()}
    for driver in (new.get("spec") or {}).get("drivers") or ():
        before = there.get(driver.get("name"))
        if before is not None and not same({**driver, "allocatable": None}, {**before, "allocatable": None}):
            bare = {**driver, "allocatable": None}
            shown = internals.shown(bare, "storage.k8s.io", "v1", "CSINode", "spec", "drivers")
            found.invalid("spec.drivers", shown, IMMUTABLE)


def check_attachment(obj: Object, found: Found) -> None:
    spec = obj.get("spec") or {}
    source, attacher = spec.get("source") or {}, spec.get("attacher", "")
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        found.required("spec.source", detail)
    elif name is not None and inline is not None:
        found.forbidden("spec.source", detail)
    elif name == "":
        found.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    node = spec.get("nodeName", "")
    found.told("spec.nodeName", node, texts.subdomain(node))
    if name is not None:
        found.told("spec.source.persistentVolumeName", name, texts.subdomain(name))
    check_driver(attacher, "spec.attacher", found)


def check_attachment_update(new: Object, old: Object, found: Found) -> None:
    check_attachment(new, found)
    found.unchanged("spec", new.get("spec"), old.get("spec"), shown=None)


def check_storage_capacity(obj: Object, found: Found) -> None:
    check_selector(obj.get("nodeTopology"), "nodeTopology", found)
    name = obj.get("storageClassName", "")
    found.told("storageClassName", name, texts.subdomain(name))
    capacity = obj.get("capacity")
    if capacity is not None and texts.quantity(capacity) < 0:
        found.invalid("capacity", capacity, "must be greater than or equal to 0")


def check_storage_capacity_update(new: Object, old: Object, found: Found) -> None:
    for field in ("nodeTopology", "storageClassName"):
        found.unchanged(field, new.get(field), old.get(field))
