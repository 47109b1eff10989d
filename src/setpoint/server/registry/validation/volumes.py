"""What is wrong with a pod's volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.claims import check_claim_spec
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.paths import check_descending, check_no_backsteps, check_not_reserved
from setpoint.server.registry.validation.selectors import check_labels
from setpoint.server.registry.validation.variables import VOLUME_FIELDS, check_field_ref, check_resource_ref

Json = dict[str, Any]
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def check_volumes(volumes: list[Json], pod_name: str, path: str, found: Found) -> dict[str, Json]:
    """The volumes that are right, by name."""
    right: dict[str, Json] = {}
    made_for: set[str] = set()  # claims that are made for the pod, by what follows its name
    prefix = f"{pod_name}-"
    if pod_name:
        made_for = {one.get("name", "") for one in volumes if one.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        at, before = f"{path}[{index}]", len(found.errors)
        name = volume.get("name", "")
        _check_source(volume, at, found)
        if not name:
            found.required(f"{at}.name")
        elif errors := texts.label(name):
            found.told(f"{at}.name", name, errors)
        if name in right:
            found.duplicate(f"{at}.name", name)
        if len(found.errors) == before:
            right[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        if made_for and claim.startswith(prefix) and claim.removeprefix(prefix) in made_for:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            found.invalid(f"{at}.persistentVolumeClaim.claimName", claim, detail)
    return right


def _check_source(volume: Json, path: str, found: Found) -> None:
    named = False
    for kind, check in _SOURCES.items():
        source = volume.get(kind)
        if source is None:
            continue
        if named and kind != "emptyDir":
            at = _OTHER_NAMES.get(kind, kind)
            found.forbidden(f"{path}.{at}", "may not specify more than 1 volume type")
            continue
        named = True
        check(source, f"{path}.{_OWN_PATHS.get(kind, kind)}", found)
    if not named:
        found.required(path, "must specify a volume type")


# The real server calls some of them by other names.
_OTHER_NAMES: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_OWN_PATHS: Final = {"gcePersistentDisk": "persistentDisk"}


def _mode(source: Json, field: str, path: str, found: Found) -> None:
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= 0o777:
        found.invalid(f"{path}.{field}", mode, _MODE)


def _empty_dir(source: Json, path: str, found: Found) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and texts.quantity(limit) < 0:
        found.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def check_host_path(source: Json, path: str, found: Found) -> None:
    if not source.get("path"):
        found.required(f"{path}.path")
        return
    check_no_backsteps(source["path"], f"{path}.path", found)
    if source.get("type") is not None:
        found.one_of(f"{path}.type", source["type"], _HOST_PATHS)


def _git(source: Json, path: str, found: Found) -> None:
    if not source.get("repository"):
        found.required(f"{path}.repository")
    check_descending(source.get("directory", ""), f"{path}.directory", found)


def _items(source: Json, path: str, found: Found) -> None:
    for index, item in enumerate(source.get("items") or ()):
        at = f"{path}.items[{index}]"
        if not item.get("key"):
            found.required(f"{at}.key")
        if not item.get("path"):
            found.required(f"{at}.path")
        check_not_reserved(item.get("path", ""), f"{at}.path", found)
        _mode(item, "mode", at, found)


def _secret(source: Json, path: str, found: Found) -> None:
    if not source.get("secretName"):
        found.required(f"{path}.secretName")
    _mode(source, "defaultMode", path, found)
    _items(source, path, found)


def _config_map(source: Json, path: str, found: Found) -> None:
    if not source.get("name"):
        found.required(f"{path}.name")
    _mode(source, "defaultMode", path, found)
    _items(source, path, found)


def check_nfs(source: Json, path: str, found: Found) -> None:
    if not source.get("server"):
        found.required(f"{path}.server")
    where = source.get("path", "")
    if not where:
        found.required(f"{path}.path")
    if not where.startswith("/"):
        found.invalid(f"{path}.path", where, "must be an absolute path")


def _downward(source: Json, path: str, found: Found) -> None:
    _mode(source, "defaultMode", path, found)
    for item in source.get("items") or ():
        _downward_file(item, path, found)


def _downward_file(item: Json, path: str, found: Found) -> None:
    if not item.get("path"):
        found.required(f"{path}.path")
    check_not_reserved(item.get("path", ""), f"{path}.path", found)
    if item.get("fieldRef") is not None:
        check_field_ref(item["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef", found)
        if item.get("resourceFieldRef") is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.invalid(path, "resource", detail)
    elif item.get("resourceFieldRef") is not None:
        check_resource_ref(item["resourceFieldRef"], f"{path}.resourceFieldRef", found, in_volume=True)
    else:
        found.required(path, "one of fieldRef and resourceFieldRef is required")
    _mode(item, "mode", path, found)


def _projected(source: Json, path: str, found: Found) -> None:
    _mode(source, "defaultMode", path, found)
    paths: set[str] = set()

    def taken(where: str, shown: str) -> None:
        if where and where in paths:
            found.invalid(path, shown, "conflicting duplicate paths")
        paths.add(where)

    for index, one in enumerate(source.get("sources") or ()):
        at, kinds = f"{path}.sources[{index}]", 0
        for kind in ("secret", "configMap"):
            if (part := one.get(kind)) is not None:
                kinds += 1
                if not part.get("name"):
                    found.required(f"{at}.{kind}.name")
                _items(part, f"{at}.{kind}", found)
                for item in part.get("items") or ():
                    taken(item.get("path", ""), part.get("name", ""))
        if (part := one.get("downwardAPI")) is not None:
            kinds += 1
            for item in part.get("items") or ():
                _downward_file(item, f"{at}.downwardAPI", found)
                taken(item.get("path", ""), item.get("path", ""))
        if (part := one.get("serviceAccountToken")) is not None:
            kinds += 1
            _token(part, f"{at}.serviceAccountToken", path, found)
        kinds += sum(one.get(kind) is not None for kind in ("clusterTrustBundle", "podCertificate"))
        if kinds > 1:
            found.forbidden(at, "may not specify more than 1 volume type per source")


def _token(part: Json, at: str, path: str, found: Found) -> None:
    seconds = part.get("expirationSeconds")
    if seconds is None:
        found.required(f"{at}.expirationSeconds")
    elif seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        found.invalid(f"{at}.expirationSeconds", seconds, detail)
    elif seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.invalid(f"{at}.expirationSeconds", seconds, detail)
    if not part.get("path"):
        found.required(f"{path}.path")
    else:
        check_not_reserved(part["path"], f"{path}.path", found)


def check_driver(name: str, path: str, found: Found) -> None:
    """The name of a CSI driver."""
    if not name:
        found.required(path)
        return
    if len(name) > 63:
        found.too_long(path, 63)
    found.told(path, name, texts.subdomain(name.lower()))


def _csi(source: Json, path: str, found: Found) -> None:
    check_driver(source.get("driver", ""), f"{path}.driver", found)
    if (ref := source.get("nodePublishSecretRef")) is not None:
        if not ref.get("name"):
            found.required(f"{path}.nodePublishSecretRef.name")
        else:
            found.told(f"{path}.name", ref["name"], texts.subdomain(ref["name"]))


def _ephemeral(source: Json, path: str, found: Found) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        found.required(f"{path}.volumeClaimTemplate")
        return
    metadata = template.get("metadata") or {}
    check_labels(metadata.get("labels"), f"{path}.volumeClaimTemplate.metadata.labels", found)
    check_claim_spec(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec", found)


def _image(source: Json, path: str, found: Found) -> None:
    if not source.get("reference"):
        found.required(f"{path}.reference")
    found.some_of(f"{path}.pullPolicy", source.get("pullPolicy"), ("Always", "IfNotPresent", "Never"))


def _needs(*fields: str) -> Callable[[Json, str, Found], None]:
    """A source of which only some fields are looked at."""

    def check(source: Json, path: str, found: Found) -> None:
        for field in fields:
            if not source.get(field):
                found.required(f"{path}.{field}")

    return check


# In the order in which the real server looks for them.
_SOURCES: Final[dict[str, Callable[[Json, str, Found], None]]] = {
    "emptyDir": _empty_dir,
    "hostPath": check_host_path,
    "gitRepo": _git,
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "secret": _secret,
    "nfs": check_nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("volume"),
    "downwardAPI": _downward,
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs("volumeName"),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
