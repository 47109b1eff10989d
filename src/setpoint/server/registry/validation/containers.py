"""What is wrong with a container: its ports, variables, mounts, probes, hooks, security."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.mounts import Volumes, check_mounts
from setpoint.server.registry.validation.probes import check_handler, check_probe
from setpoint.server.registry.validation.resources import ClaimNames, check_requirements
from setpoint.server.registry.validation.security import check_security
from setpoint.server.registry.validation.variables import check_env, check_env_from

Json = dict[str, Any]

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")


class PodFacts:
    """What a container needs to know of its pod."""

    __slots__ = ("claims", "grace", "has_host_users", "restart_policy", "volumes")

    def __init__(self, spec: Json, volumes: Volumes) -> None:
        self.volumes = volumes
        self.claims = ClaimNames(one["name"] for one in spec.get("resourceClaims") or () if one.get("name"))
        self.grace: int | None = spec.get("terminationGracePeriodSeconds")
        self.has_host_users = spec.get("hostUsers") is not False
        self.restart_policy = spec.get("restartPolicy", "")


def check_containers(containers: list[Json], pod: PodFacts, path: str, found: Found) -> None:
    if not containers:
        found.required(path)
        return
    names: set[str] = set()
    for index, one in enumerate(containers):
        at = f"{path}[{index}]"
        check_common(one, pod, at, found)
        found.unique(f"{at}.name", one.get("name", ""), names)
        _check_running(one, pod, at, found)
        _check_restart_policy(one, at, found)
    _check_host_ports(containers, path, found)


def check_init_containers(
    containers: list[Json], regular: list[Json], pod: PodFacts, path: str, found: Found
) -> None:
    names = {one.get("name", "") for one in regular}
    for index, one in enumerate(containers):
        at = f"{path}[{index}]"
        check_common(one, pod, at, found)
        _check_restart_policy(one, at, found)
        name = one.get("name", "")
        if name in names:
            found.duplicate(f"{at}.name", name)
        elif name:
            names.add(name)
        _check_host_ports([one], path, found)
        if one.get("restartPolicy") == "Always":
            _check_running(one, pod, at, found)
            continue
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if one.get(field) is not None:
                found.forbidden(
                    f"{at}.{field}", "may not be set for init containers without restartPolicy=Always"
                )


_NOT_EPHEMERAL: Final = ("ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def check_ephemeral_containers(
    containers: list[Json], others: list[Json], pod: PodFacts, path: str, found: Found
) -> None:
    there = {one.get("name", "") for one in others}
    names = set(there)
    for index, one in enumerate(containers):
        at = f"{path}[{index}]"
        check_common(one, pod, at, found)
        check_image_is_trimmed(one, at, found)
        found.unique(f"{at}.name", one.get("name", ""), names)
        target = one.get("targetContainerName")
        if target and target not in there:
            found.missing(f"{at}.targetContainerName", target)
        for field in _NOT_EPHEMERAL:
            if one.get(field):
                found.forbidden(f"{at}.{field}", "cannot be set for an Ephemeral Container")
        for place, mount in enumerate(one.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    found.forbidden(
                        f"{at}.volumeMounts[{place}].{field}", "cannot be set for an Ephemeral Container"
                    )


def check_image_is_trimmed(container: Json, path: str, found: Found) -> None:
    image = container.get("image", "")
    if image.strip() != image:
        found.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def check_common(one: Json, pod: PodFacts, path: str, found: Found) -> None:
    """What every container must be."""
    name = one.get("name", "")
    if not name:
        found.required(f"{path}.name")
    elif errors := texts.label(name):
        found.told(f"{path}.name", name, errors)
    if not one.get("image"):
        found.required(f"{path}.image")
    found.some_of(f"{path}.terminationMessagePolicy", one.get("terminationMessagePolicy"), _MESSAGE_POLICIES)
    if ports := one.get("ports"):
        _check_ports(ports, f"{path}.ports", found)
    if env := one.get("env"):
        check_env(env, f"{path}.env", found)
    if sources := one.get("envFrom"):
        check_env_from(sources, f"{path}.envFrom", found)
    if one.get("volumeMounts") or one.get("volumeDevices"):
        check_mounts(one, pod.volumes, path, found)
    found.some_of(f"{path}.imagePullPolicy", one.get("imagePullPolicy"), _PULL_POLICIES)
    if requirements := one.get("resources"):
        check_requirements(requirements, pod.claims, f"{path}.resources", found)
    if policies := one.get("resizePolicy"):
        _check_resize_policies(policies, pod, f"{path}.resizePolicy", found)
    if context := one.get("securityContext"):
        check_security(context, f"{path}.securityContext", found, has_host_users=pod.has_host_users)


def _check_running(one: Json, pod: PodFacts, path: str, found: Found) -> None:
    if lifecycle := one.get("lifecycle"):
        at = f"{path}.lifecycle"
        for hook in ("postStart", "preStop"):
            if lifecycle.get(hook) is not None:
                check_handler(lifecycle[hook], pod.grace, f"{at}.{hook}", found)
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = one.get(kind)
        if probe is not None:
            check_probe(probe, kind, pod.grace, f"{path}.{kind}", found)


def _check_restart_policy(one: Json, path: str, found: Found) -> None:
    policy, rules = one.get("restartPolicy"), one.get("restartPolicyRules") or []
    if policy is None:
        if rules:
            found.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    else:
        found.one_of(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        found.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{index}]"
        found.one_of(f"{at}.action", rule.get("action", ""), ("Restart", "RestartAllContainers"))
        codes = rule.get("exitCodes")
        if codes is None:
            found.required(f"{at}.exitCodes", "must be specified")
            continue
        found.one_of(f"{at}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
        if len(codes.get("values") or ()) > 255:
            found.too_many(f"{at}.exitCodes.values", len(codes["values"]), 255)


# ── Ports ───────────────────────────────────────────────────────────────────────────────────────────


def _check_ports(ports: list[Json], path: str, found: Found) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        name = port.get("name", "")
        if name:
            if errors := texts.port_name(name):
                found.told(f"{at}.name", name, errors)
            else:
                found.unique(f"{at}.name", name, names)
        number = port.get("containerPort", 0)
        if not number:
            found.required(f"{at}.containerPort")
        else:
            found.told(f"{at}.containerPort", number, texts.port(number))
        if host := port.get("hostPort"):
            found.told(f"{at}.hostPort", host, texts.port(host))
        found.some_of(f"{at}.protocol", port.get("protocol"), texts.PROTOCOLS)


def _check_host_ports(containers: list[Json], path: str, found: Found) -> None:
    seen: set[str] = set()
    for index, one in enumerate(containers):
        for place, port in enumerate(one.get("ports") or ()):
            if host := port.get("hostPort"):
                used = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{host}"
                found.unique(f"{path}[{index}].ports[{place}].hostPort", used, seen)


def _check_resize_policies(policies: list[Json], pod: PodFacts, path: str, found: Found) -> None:
    seen: set[str] = set()
    for index, one in enumerate(policies):
        found.unique(f"{path}[{index}]", one.get("resourceName", ""), seen)
        found.some_of(path, one.get("resourceName"), ("cpu", "memory"))
        policy = one.get("restartPolicy", "")
        found.some_of(path, policy, ("NotRequired", "RestartContainer"))
        if pod.restart_policy == "Never" and policy != "NotRequired":
            found.invalid(path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
