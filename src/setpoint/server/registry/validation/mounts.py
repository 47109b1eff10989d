"""What is wrong with what a container mounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.paths import check_descending

Json = dict[str, Any]
Volumes = Mapping[str, Json]


def check_mounts(one: Json, volumes: Volumes, path: str, found: Found) -> None:
    mounts, devices = one.get("volumeMounts") or [], one.get("volumeDevices") or []
    device_paths = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    mount_paths = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    at_devices = set(device_paths.values())
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, where, at = mount.get("name", ""), mount.get("mountPath", ""), f"{path}.volumeMounts[{index}]"
        if not name:
            found.required(f"{at}.name")
        if name not in volumes:
            found.missing(f"{at}.name", name)
        if not where:
            found.required(f"{at}.mountPath")
        if where in seen:
            found.invalid(f"{at}.mountPath", where, "must be unique")
        seen.add(where)
        if name in device_paths:
            found.invalid(f"{at}.name", name, "must not already exist in volumeDevices")
        if where in at_devices:
            found.invalid(f"{at}.mountPath", where, "must not already exist as a path in volumeDevices")
        _check_below(mount, f"{path}.volumeMounts", at, found)
        _check_propagation(mount, one, f"{path}.volumeMounts", found)
    _check_devices(devices, volumes, mount_paths, f"{path}.volumeDevices", found)


def _check_below(mount: Json, path: str, at: str, found: Found) -> None:
    if below := mount.get("subPath"):
        check_descending(below, f"{path}.subPath", found)
    if expression := mount.get("subPathExpr"):
        if mount.get("subPath"):
            found.invalid(f"{at}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        check_descending(expression, f"{path}.subPathExpr", found)


def _check_propagation(mount: Json, container: Json, path: str, found: Found) -> None:
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        at = f"{path}.mountPropagation"
        found.one_of(at, propagation, ("Bidirectional", "HostToContainer", "None"))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            found.forbidden(at, "Bidirectional mount propagation is available only to privileged containers")
    recursive = mount.get("recursiveReadOnly")
    if recursive is None or recursive == "Disabled":
        return
    at = f"{path}.recursiveReadOnly"
    if recursive not in ("Enabled", "IfPossible"):
        found.unsupported(at, recursive, ("Disabled", "Enabled", "IfPossible"))
        return
    if not mount.get("readOnly"):
        found.forbidden(at, "may only be specified when readOnly is true")
    if propagation not in (None, "None"):
        found.forbidden(at, "may only be specified when mountPropagation is None or not specified")


def _check_devices(
    devices: list[Json], volumes: Volumes, mounts: dict[str, str], path: str, found: Found
) -> None:
    at_mounts = set(mounts.values())
    names: set[str] = set()
    seen: set[str] = set()
    for index, device in enumerate(devices):
        name, where, at = device.get("name", ""), device.get("devicePath", ""), f"{path}[{index}]"
        source = volumes.get(name)
        if not name:
            found.required(f"{at}.name")
        if name in names:
            found.invalid(f"{at}.name", name, "must be unique")
        if source is None:
            found.missing(f"{at}.name", name)
        elif source.get("persistentVolumeClaim") is None and source.get("ephemeral") is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            found.invalid(f"{at}.name", name, detail)
        if not where:
            found.required(f"{at}.devicePath")
        if where in seen:
            found.invalid(f"{at}.devicePath", where, "must be unique")
        if ".." in where.split("/"):
            found.invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')")
        else:
            seen.add(where)
        if name in mounts:
            found.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if where in at_mounts:
            found.invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)
