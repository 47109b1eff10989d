"""What is wrong with a pod, and with the template of one.  Changing one is ``pod_changes.py``'s."""

from __future__ import annotations

from typing import Any, Final

from setpoint.api.selectors import label_key_errors
from setpoint.server.golang import parse_int
from setpoint.server.registry.pods import HUGE, amounts_of, together
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.containers import (
    PodFacts,
    check_containers,
    check_ephemeral_containers,
    check_image_is_trimmed,
    check_init_containers,
)
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.metadata import check_annotations
from setpoint.server.registry.validation.resources import ClaimNames, check_pod_name, check_requirements
from setpoint.server.registry.validation.scheduling import check_affinity, check_spread, check_tolerations
from setpoint.server.registry.validation.security import check_app_armor, check_seccomp
from setpoint.server.registry.validation.selectors import check_labels
from setpoint.server.registry.validation.volumes import check_volumes

Json = dict[str, Any]
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
MIRROR: Final = "kubernetes.io/config.mirror"
_SYSCTL: Final = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"


# ── A pod ───────────────────────────────────────────────────────────────────────────────────────────


def check_pod(pod: Object, found: Found) -> None:
    check_own(pod, found)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        found.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        found.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def check_own(pod: Object, found: Found) -> None:
    spec = pod["spec"]
    _check_pod_annotations(pod["metadata"], spec, "metadata.annotations", found)
    check_spec(spec, "spec", found, pod_name=pod["metadata"].get("name", ""), is_pod=True)
    if not spec.get("serviceAccountName"):
        _check_needs_no_account(spec, found)
    found.not_negative("spec.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    for field in ("containers", "initContainers"):
        for index, one in enumerate(spec.get(field) or ()):
            check_image_is_trimmed(one, f"spec.{field}[{index}]", found)


def _check_needs_no_account(spec: Json, found: Found) -> None:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for place, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                at = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                found.forbidden(at, "must not be specified when serviceAccountName is not set")


def _check_pod_annotations(metadata: Json, spec: Json, path: str, found: Found) -> None:
    annotations = metadata.get("annotations")
    if not annotations:
        return
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        found.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    cost = annotations.get(_DELETION_COST)
    if cost is not None:
        try:
            fine = str(parse_int(cost, 32)) == cost
        except ValueError:
            fine = False
        if not fine:
            found.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")


def check_template(template: Json, path: str, found: Found) -> None:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    check_labels(metadata.get("labels"), f"{path}.labels", found)
    check_annotations(metadata.get("annotations") or {}, f"{path}.annotations", found)
    _check_pod_annotations(metadata, spec, f"{path}.annotations", found)
    check_spec(spec, f"{path}.spec", found)
    if spec.get("ephemeralContainers"):
        found.forbidden(
            f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"
        )


def check_pod_template(obj: Object, found: Found) -> None:
    check_template(obj.get("template") or {}, "template", found)


# ── A pod's spec ────────────────────────────────────────────────────────────────────────────────────


def check_spec(spec: Json, path: str, found: Found, *, pod_name: str = "", is_pod: bool = False) -> None:
    containers, inits = spec.get("containers") or [], spec.get("initContainers") or []
    if spec.get("terminationGracePeriodSeconds") is None:
        found.required(f"{path}.terminationGracePeriodSeconds")
    volumes = check_volumes(spec.get("volumes") or [], pod_name, f"{path}.volumes", found)
    facts = PodFacts(spec, volumes)
    if claims := spec.get("resourceClaims"):
        _check_claims(claims, f"{path}.resourceClaims", found)
    check_containers(containers, facts, f"{path}.containers", found)
    if inits:
        check_init_containers(inits, containers, facts, f"{path}.initContainers", found)
    if ephemeral := spec.get("ephemeralContainers"):
        at = f"{path}.ephemeralContainers"
        check_ephemeral_containers(ephemeral, [*containers, *inits], facts, at, found)
    if requirements := spec.get("resources"):
        if requirements.get("claims") is not None:
            found.forbidden(f"{path}.resources.claims", "claims may not be set for Resources at pod-level")
        check_requirements(requirements, facts.claims, f"{path}.resources", found, check_pod_name)
        _check_whole(spec, f"{path}.resources", found)
    if spec.get("hostNetwork"):
        _check_host_ports(containers, f"{path}.containers", found, is_pod=is_pod)
    found.some_of(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    found.some_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    check_labels(spec.get("nodeSelector"), f"{path}.nodeSelector", found)
    if context := spec.get("securityContext"):
        _check_security(context, f"{path}.securityContext", found)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.invalid(f"{path}.shareProcessNamespace", True, detail)
    check_affinity(spec.get("affinity"), f"{path}.affinity", found)
    _check_dns(spec, f"{path}.dnsConfig", found)
    _check_gates(spec, path, found)
    if constraints := spec.get("topologySpreadConstraints"):
        check_spread(constraints, f"{path}.topologySpreadConstraints", found)
    if spec.get("hostUsers") is False:
        for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                found.forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    _check_names(spec, path, found)


def _check_names(spec: Json, path: str, found: Found) -> None:
    """What is left of a spec, one field after the other."""
    for field in ("serviceAccountName", "nodeName"):
        if name := spec.get(field):
            found.told(f"{path}.{field}", name, texts.subdomain(name))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        detail = "must be between 1 and 2147483647, inclusive"
        found.invalid(f"{path}.activeDeadlineSeconds", deadline, detail)
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            found.told(f"{path}.{field}", name, texts.label(name))
    if tolerations := spec.get("tolerations"):
        check_tolerations(tolerations, f"{path}.tolerations", found)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        at = f"{path}.hostAliases[{index}]"
        found.told(f"{at}.ip", alias.get("ip", ""), texts.ip(alias.get("ip", "")))
        for place, name in enumerate(alias.get("hostnames") or ()):
            found.told(f"{at}.hostnames[{place}]", name, texts.subdomain(name))
    for field in ("priorityClassName", "runtimeClassName"):
        if (name := spec.get(field)) or (name == "" and field == "runtimeClassName"):
            found.told(f"{path}.{field}", name, texts.subdomain(name))
    if (policy := spec.get("preemptionPolicy")) is not None:
        found.some_of(f"{path}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    if overhead := spec.get("overhead"):
        check_requirements({"limits": overhead}, ClaimNames(), f"{path}.overhead", found)
    if spec.get("os") is not None:
        _check_os(spec, path, found)


def _check_whole(spec: Json, path: str, found: Found) -> None:
    """What all of a pod asks for is no less than what its containers do."""
    whole = {side: amounts_of(spec, side) for side in ("requests", "limits")}
    for name, amount in together(spec, "requests").items():
        if name in whole["requests"] and amount > whole["requests"][name]:
            detail = f"must be greater than or equal to aggregate container requests of {amount}"
            found.invalid(f"{path}.requests[{name}]", str(whole["requests"][name]), detail)
    for name, amount in together(spec, "limits").items():
        if name.startswith(HUGE) and name in whole["limits"] and amount > whole["limits"][name]:
            detail = f"must be greater than or equal to aggregate container limits of {amount}"
            found.invalid(f"{path}.limits[{name}]", str(whole["limits"][name]), detail)
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in amounts_of(container, "limits").items():
            if name in whole["limits"] and amount > whole["limits"][name]:
                detail = f"must be less than or equal to pod limits of {whole['limits'][name]}"
                found.invalid(f"{path}.containers[{index}][{name}].limits", str(amount), detail)


def _check_claims(claims: list[Json], path: str, found: Found) -> None:
    seen: set[str] = set()
    place = ("", "v1", "Pod", "spec", "resourceClaims")
    for index, claim in enumerate(claims):
        at, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            found.required(f"{at}.name")
        elif name in seen:
            found.duplicate(f"{at}.name", name)
        else:
            found.told(f"{at}.name", name, texts.label(name))
            seen.add(name)
        named = [
            one for one in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(one) is not None
        ]
        if len(named) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.invalid(at, internals.shown(claim, *place), detail)
        if not named:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.invalid(at, internals.shown(claim, *place), detail)
        for field in named:
            found.told(f"{at}.{field}", claim[field], texts.subdomain(claim[field]))


def _check_host_ports(containers: list[Json], path: str, found: Found, *, is_pod: bool) -> None:
    for index, one in enumerate(containers):
        for place, port in enumerate(one.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                at = f"{path}[{index}].ports[{place}].hostPort"
                found.invalid(at, host, "must match `containerPort` when `hostNetwork` is true")


def _check_security(context: Json, path: str, found: Found) -> None:
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        if (number := context.get(field)) is not None:
            found.told(f"{path}.{field}", number, texts.user_id(number))
    for index, number in enumerate(context.get("supplementalGroups") or ()):
        found.told(f"{path}.supplementalGroups[{index}]", number, texts.user_id(number))
    if sysctls := context.get("sysctls"):
        _check_sysctls(sysctls, f"{path}.sysctls", found)
    if (policy := context.get("fsGroupChangePolicy")) is not None:
        found.one_of(f"{path}.fsGroupChangePolicy", policy, ("Always", "OnRootMismatch"))
    check_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", found)
    check_app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", found)
    if (policy := context.get("supplementalGroupsPolicy")) is not None:
        found.one_of(f"{path}.supplementalGroupsPolicy", policy, ("Merge", "Strict"))
    if (policy := context.get("seLinuxChangePolicy")) is not None:
        found.one_of(f"{path}.seLinuxChangePolicy", policy, ("MountOption", "Recursive"))


def _check_sysctls(sysctls: list[Json], path: str, found: Found) -> None:
    seen: set[str] = set()
    for index, one in enumerate(sysctls):
        at, name = f"{path}[{index}].name", one.get("name", "")
        if not name:
            found.required(at)
        elif not all(_is_sysctl_part(part) for part in name.replace("/", ".").split(".")):
            found.invalid(at, name, f"must have at most 253 characters and match regex {_SYSCTL}")
        else:
            found.unique(at, name, seen)


def _is_sysctl_part(part: str) -> bool:
    return not texts.label(part.replace("_", "-")) and "_" not in (part[:1], part[-1:])


def _check_dns(spec: Json, path: str, found: Found) -> None:
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            found.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            found.required(f"{path}.nameservers", detail)
            return
    if config is None:
        return
    searches = config.get("searches") or []
    if len(servers) > 3:
        found.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        found.told(f"{path}.nameservers[{index}]", server, texts.ip(server))
    if len(searches) > 32:
        found.invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        found.invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            plain = search.removesuffix(".")
            found.told(f"{path}.searches[{index}]", plain, texts.subdomain_with_underscores(plain))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            found.required(f"{path}.options[{index}]", "must not be empty")


def _check_gates(spec: Json, path: str, found: Found) -> None:
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        found.told(f"{path}.readinessGates[{index}].conditionType", kind, label_key_errors(kind))
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        at, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        found.told(at, name, label_key_errors(name))
        found.unique(at, name, seen)


_NOT_ON_WINDOWS: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")


def _check_os(spec: Json, path: str, found: Found) -> None:
    name = spec["os"].get("name", "")
    if not name:
        found.required(f"{path}.os.name", "cannot be empty")
    else:
        found.one_of(f"{path}.os", name, ("linux", "windows"))
    if name == "windows":
        for field in _NOT_ON_WINDOWS:
            if spec.get(field) not in (None, False) or (field == "hostUsers" and spec.get(field) is not None):
                found.forbidden(f"{path}.{field}", "cannot be set for a windows pod")


def check_binding(binding: Object, found: Found) -> None:
    target = binding.get("target") or {}
    kind, name = target.get("kind", ""), target.get("name", "")
    if kind not in ("", "Node"):
        found.unsupported("target.kind", kind, ("Node", "<empty>"))
    if not name:
        found.required("target.name")
    elif kind in ("", "Node"):
        found.told("target.name", name, texts.subdomain(name))
