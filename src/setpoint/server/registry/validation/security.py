"""What is wrong with a security context, a container's or a pod's."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.paths import check_descending

Json = dict[str, Any]

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")


def check_security(context: Json, path: str, found: Found, *, has_host_users: bool) -> None:
    for field in ("runAsUser", "runAsGroup"):
        if (number := context.get(field)) is not None:
            found.told(f"{path}.{field}", number, texts.user_id(number))
    if (mount := context.get("procMount")) is not None:
        found.one_of(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if has_host_users and mount == "Unmasked":
            found.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    check_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", found)
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        shown = internals.shown(context, "", "v1", "Pod", "spec", "containers", "securityContext")
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        found.invalid(path, shown, detail)
    check_app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", found)


def check_seccomp(profile: Json | None, path: str, found: Found) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        found.required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        found.one_of(f"{path}.type", kind, _PROFILES)
    if kind == "Localhost":
        if local is None:
            found.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            check_descending(local, f"{path}.localhostProfile", found)
    elif local is not None:
        shown = internals.shown(profile, "", "v1", "Pod", "spec", "securityContext", "seccompProfile")
        found.invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


def check_app_armor(profile: Json | None, path: str, found: Found) -> None:
    if profile is None:
        return
    kind, local, at = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not kind:
        found.required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        found.unsupported(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if local is not None:
            found.invalid(at, local, "can only be set when AppArmor type is Localhost")
    elif local is None or not local:
        found.required(at, "must be set when AppArmor type is Localhost")
    elif local.strip() != local:
        found.invalid(at, local, "must not be padded with whitespace")
    elif len(local) > 4095:
        found.too_long(at, 4095)
