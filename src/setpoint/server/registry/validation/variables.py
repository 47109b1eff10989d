"""What is wrong with a container's variables, and with what may be named as their source."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.paths import check_no_backsteps

Json = dict[str, Any]

# What the downward API may name, and what each of those may be divided by.
_ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN_FIELDS: Final = frozenset(
    {*_ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_CONTAINER_FIELDS: Final = tuple(
    sorted(
        f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
    )
)
_UNITS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS: Final = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu resource"),
    "memory": (_UNITS, f"{', '.join(_UNITS)} are supported with the memory resource"),
    "ephemeral-storage": (
        _UNITS,
        f"{', '.join(_UNITS)} are supported with the local ephemeral storage resource",
    ),
    "hugepages": (_UNITS, f"{', '.join(_UNITS)} are supported with the hugepages resource"),
}


def check_env(env: list[Json], path: str, found: Found) -> None:
    for index, one in enumerate(env):
        name = one.get("name", "")
        if not name:
            found.required(f"{path}[{index}].name")
        elif errors := texts.env_name(name):
            found.told(f"{path}[{index}].name", name, errors)
        source = one.get("valueFrom")
        if source is not None:
            _check_source(one, source, f"{path}[{index}].valueFrom", found)


def _check_source(one: Json, source: Json, path: str, found: Found) -> None:
    sources = 0
    if (ref := source.get("fieldRef")) is not None:
        sources += 1
        check_field_ref(ref, _ENV_FIELDS, f"{path}.fieldRef", found)
    if (ref := source.get("resourceFieldRef")) is not None:
        sources += 1
        check_resource_ref(ref, f"{path}.resourceFieldRef", found)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (ref := source.get(kind)) is not None:
            sources += 1
            _check_key_ref(ref, f"{path}.{kind}", found)
    if (ref := source.get("fileKeyRef")) is not None:
        sources += 1
        _check_file_ref(ref, f"{path}.fileKeyRef", found)
    if not sources:
        kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        found.invalid(path, "", f"must specify one of: {kinds}")
    elif one.get("value"):
        found.invalid(path, "", "may not be specified when `value` is not empty")
    elif sources > 1:
        found.invalid(path, "", "may not have more than one field specified at a time")


def check_field_ref(ref: Json, supported: tuple[str, ...], path: str, found: Found) -> None:
    if not ref.get("apiVersion"):
        found.required(f"{path}.apiVersion")
        return
    named = ref.get("fieldPath", "")
    if not named:
        found.required(f"{path}.fieldPath")
        return
    base, bracket, key = named.partition("['")
    if bracket and key.endswith("']"):
        key = key[:-2]
        if base not in ("metadata.annotations", "metadata.labels"):
            told = f"error converting fieldPath: field label does not support subscript: {named}"
            found.invalid(f"{path}.fieldPath", named, told)
            return
        found.told(path, key, texts.qualified(key.lower() if base.endswith("annotations") else key))
        return
    if named not in _KNOWN_FIELDS:
        found.invalid(
            f"{path}.fieldPath", named, f"error converting fieldPath: field label not supported: {named}"
        )
    else:
        found.one_of(f"{path}.fieldPath", named, supported)


def check_resource_ref(ref: Json, path: str, found: Found, *, in_volume: bool = False) -> None:
    resource = ref.get("resource", "")
    if in_volume and not ref.get("containerName"):
        found.required(f"{path}.containerName")
    elif not resource:
        found.required(f"{path}.resource")
    elif resource not in _CONTAINER_FIELDS and not resource.startswith(
        ("requests.hugepages-", "limits.hugepages-")
    ):
        found.unsupported(f"{path}.resource", resource, _CONTAINER_FIELDS)
    divisor = ref.get("divisor") or "0"
    if texts.quantity(divisor) == 0:
        return
    kind = resource.partition(".")[2]
    known = _DIVISORS.get("hugepages" if kind.startswith("hugepages-") else kind)
    if known is not None and str(texts.quantity(divisor)) not in known[0]:
        found.invalid(f"{path}.divisor", resource, f"only divisor's values {known[1]}")


def _check_key_ref(ref: Json, path: str, found: Found) -> None:
    found.told(f"{path}.name", ref.get("name", ""), texts.subdomain(ref.get("name", "")))
    key = ref.get("key", "")
    if not key:
        found.required(f"{path}.key")
    else:
        found.told(f"{path}.key", key, texts.config_key(key))


def _check_file_ref(ref: Json, path: str, found: Found) -> None:
    if not ref.get("key"):
        found.required(f"{path}.key")
    else:
        found.told(f"{path}.key", ref["key"], texts.env_name(ref["key"]))
    if not ref.get("volumeName"):
        found.required(f"{path}.volumeName")
    else:
        found.told(f"{path}.volumeName", ref["volumeName"], texts.label(ref["volumeName"]))
    if not ref.get("path"):
        found.required(f"{path}.path")
    else:
        check_no_backsteps(ref["path"], f"{path}.path", found)


def check_env_from(sources: list[Json], path: str, found: Found) -> None:
    for index, one in enumerate(sources):
        at = f"{path}[{index}]"
        if prefix := one.get("prefix"):
            found.told(f"{at}.prefix", prefix, texts.env_name(prefix))
        named = [kind for kind in ("configMapRef", "secretRef") if one.get(kind) is not None]
        for kind in named:
            name = one[kind].get("name", "")
            if not name:
                found.required(f"{at}.{kind}.name")
            else:
                masked = f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name
                found.told(f"{at}.{kind}.name", name, texts.subdomain(masked))
        if not named:
            found.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(named) > 1:
            found.invalid(path, "", "may not have more than one field specified at a time")
