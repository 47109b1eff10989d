"""The pod security standards: what ``baseline`` and ``restricted`` have against a pod, in Kubernetes' words.

Each check gives a reason and details, or None.  Checks come and change with versions of Kubernetes; a policy
names the one that it means.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from setpoint.server.golang import quoted
from setpoint.server.registry.resources import Object

LATEST: Final = 37  # the minor version whose checks are the newest here


class Violation(NamedTuple):
    reason: str
    detail: str


class Pod(NamedTuple):
    """What is judged: of a pod, or of a template."""

    metadata: Object
    spec: Object
    minor: int  # of the version whose rules apply

    @property
    def containers(self) -> list[Object]:
        fields = ("initContainers", "containers", "ephemeralContainers")
        return [one for field in fields for one in self.spec.get(field) or ()]

    @property
    def security(self) -> Object:
        return self.spec.get("securityContext") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def is_windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_own_users(self) -> bool:
        return self.spec.get("hostUsers") is False


def _own(container: Object) -> Object:
    found: Object = container.get("securityContext") or {}
    return found


def _quote(values: Iterable[str]) -> str:
    return ", ".join(f'"{one}"' for one in values)


def _many(word: str, values: Sequence[str] | set[str], plural: str = "") -> str:
    return word if len(values) == 1 else plural or f"{word}s"


def _named(names: Sequence[str], word: str = "container") -> str:
    return f"{_many(word, names)} {_quote(names)}"


def _setters(is_pod: bool, names: Sequence[str]) -> str:
    return " and ".join([*(["pod"] if is_pod else []), *([_named(names)] if names else [])])


def _those(pod: Pod, is_bad: Callable[[Object], Any]) -> list[str]:
    return [one["name"] for one in pod.containers if is_bad(one)]


# ── Baseline ────────────────────────────────────────────────────────────────────────────────────────

_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_CAPABILITIES: Final = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_SYSCTLS: Final = (
    (0, (
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
    )),
    (27, ("net.ipv4.ip_local_reserved_ports",)),
    (29, (
        "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    )),
    (32, ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")),
    (37, ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat")),
)  # fmt: skip


def _apparmor(pod: Pod) -> Violation | None:
    allowed = ("RuntimeDefault", "Localhost")
    bad: set[str] = set()

    def is_bad(context: Object) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type") in allowed:
            return False
        bad.add(profile.get("type", ""))
        return True

    is_pod = is_bad(pod.security)
    setters = (
        [_setters(is_pod, names)] if (names := _those(pod, lambda one: is_bad(_own(one)))) or is_pod else []
    )
    annotated = sorted(
        f"{name}={quoted(value)}"
        for name, value in pod.annotations.items()
        if name.startswith(_APPARMOR)
        and value
        and value != "runtime/default"
        and not value.startswith("localhost/")
    )
    values = [*sorted(bad), *annotated]
    if annotated:
        setters.append(_many("annotation", annotated))
    if not setters:
        return None
    told = f"{' and '.join(setters)} must not set AppArmor profile type to {_quote(values)}"
    return Violation(_many("forbidden AppArmor profile", values), told)


def _capabilities(pod: Pod) -> Violation | None:
    bad: set[str] = set()

    def is_bad(container: Object) -> bool:
        added = set((_own(container).get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        bad.update(added)
        return bool(added)

    names = _those(pod, is_bad)
    if not names:
        return None
    told = f"{_named(names)} must not include {_quote(sorted(bad))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", told)


def _host_namespaces(pod: Pod) -> Violation | None:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: Pod) -> Violation | None:
    names = [one["name"] for one in pod.spec.get("volumes") or () if one.get("hostPath") is not None]
    return Violation("hostPath volumes", _named(names, "volume")) if names else None


def _host_ports(pod: Pod) -> Violation | None:
    bad: set[str] = set()

    def is_bad(container: Object) -> bool:
        ports = {str(one["hostPort"]) for one in container.get("ports") or () if one.get("hostPort")}
        bad.update(ports)
        return bool(ports)

    names = _those(pod, is_bad)
    if not names:
        return None
    told = f"{_named(names)} {_many('uses', names, 'use')} {_many('hostPort', bad)} {', '.join(sorted(bad))}"
    return Violation("hostPort", told)


def _probe_hosts(pod: Pod) -> Violation | None:
    if pod.minor < 34:
        return None
    bad: set[str] = set()

    def is_bad(container: Object) -> bool:
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get(name) for name in ("postStart", "preStop")]
        hosts = {
            (handler.get(way) or {}).get("host")
            for handler in handlers
            if handler
            for way in ("httpGet", "tcpSocket")
        } - {None, ""}
        bad.update(str(one) for one in hosts)
        return bool(hosts)

    names = sorted(set(_those(pod, is_bad)))
    if not names:
        return None
    told = f"{_named(names)} {_many('uses', names, 'use')} {_many('probe or lifecycle host', bad)}"
    return Violation("probe or lifecycle host", f"{told} {_quote(sorted(bad))}")


def _privileged(pod: Pod) -> Violation | None:
    names = _those(pod, lambda one: _own(one).get("privileged"))
    told = f"{_named(names)} must not set securityContext.privileged=true"
    return Violation("privileged", told) if names else None


def _proc_mount(pod: Pod) -> Violation | None:
    return None if pod.minor >= 35 and pod.has_own_users else _any_proc_mount(pod)


def _any_proc_mount(pod: Pod) -> Violation | None:
    mounts = {
        one["name"]: said
        for one in pod.containers
        if (said := _own(one).get("procMount")) is not None and said != "Default"
    }
    if not mounts:
        return None
    told = f"{_named(list(mounts))} must not set securityContext.procMount to"
    return Violation("procMount", f"{told} {_quote(sorted(set(mounts.values())))}")


def _selinux(pod: Pod) -> Violation | None:
    allowed = {"", "container_t", "container_init_t", "container_kvm_t"}
    allowed |= {"container_engine_t"} if pod.minor >= 31 else set()
    types: set[str] = set()
    said: set[str] = set()

    def is_bad(context: Object) -> bool:
        options = context.get("seLinuxOptions")
        if options is None:
            return False
        kind = options.get("type", "")
        types.update({kind} - allowed)
        said.update(name for name in ("user", "role") if options.get(name))
        return kind not in allowed or bool(options.get("user") or options.get("role"))

    is_pod = is_bad(pod.security)
    names = _those(pod, lambda one: is_bad(_own(one)))
    if not is_pod and not names:
        return None
    data = [f"{_many('type', types)} {_quote(sorted(types))}"] if types else []
    data += [f"{name} may not be set" for name in ("user", "role") if name in said]
    told = f"{_setters(is_pod, names)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Violation("seLinuxOptions", told)


_SECCOMP: Final = ("Localhost", "RuntimeDefault")
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"


def _seccomp(pod: Pod) -> Violation | None:
    if pod.minor < 19:
        return _seccomp_annotations(pod)
    found = _seccomp_said(pod)
    return found[0]


def _seccomp_annotations(pod: Pod) -> Violation | None:
    names = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + one["name"] for one in pod.containers)]
    bad = sorted(
        {
            f"{name}={quoted(value)}"
            for name in names
            if (value := pod.annotations.get(name)) is not None
            and value not in ("runtime/default", "docker/default")
            and not value.startswith("localhost/")
        }
    )
    told = f"forbidden {_many('annotation', bad)} {', '.join(bad)}"
    return Violation("seccompProfile", told) if bad else None


def _seccomp_said(pod: Pod) -> tuple[Violation | None, list[str]]:
    """What is wrong with what is said, and the containers of which nothing is said."""
    bad: set[str] = set()

    def is_bad(context: Object) -> bool:
        profile = context.get("seccompProfile")
        if profile is None or profile.get("type") in _SECCOMP:
            return False
        bad.add(profile.get("type", ""))
        return True

    is_pod = is_bad(pod.security)
    names = _those(pod, lambda one: is_bad(_own(one)))
    is_set = pod.security.get("seccompProfile") is not None and not is_pod
    silent = [] if is_set else _those(pod, lambda one: _own(one).get("seccompProfile") is None)
    if not is_pod and not names:
        return None, silent
    told = (
        f"{_setters(is_pod, names)} must not set securityContext.seccompProfile.type to {_quote(sorted(bad))}"
    )
    return Violation("seccompProfile", told), silent


def _sysctls(pod: Pod) -> Violation | None:
    allowed = {name for since, names in _SYSCTLS if pod.minor >= since for name in names}
    bad = [one["name"] for one in pod.security.get("sysctls") or () if one["name"] not in allowed]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(pod: Pod) -> Violation | None:
    def is_bad(context: Object) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    names = _those(pod, lambda one: is_bad(_own(one)))
    is_pod = is_bad(pod.security)
    if not is_pod and not names:
        return None
    told = f"{_setters(is_pod, names)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", told)


# ── Restricted ──────────────────────────────────────────────────────────────────────────────────────


def _escalation(pod: Pod) -> Violation | None:
    if pod.minor < 8 or (pod.minor >= 25 and pod.is_windows):
        return None
    names = _those(pod, lambda one: _own(one).get("allowPrivilegeEscalation") is not False)
    told = f"{_named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", told) if names else None


def _few_capabilities(pod: Pod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    bad: set[str] = set()

    def of(container: Object, what: str) -> list[str]:
        return list((_own(container).get("capabilities") or {}).get(what) or ())

    def is_bad(container: Object) -> bool:
        added = set(of(container, "add")) - {"NET_BIND_SERVICE"}
        bad.update(added)
        return bool(added)

    details = []
    if undropped := _those(pod, lambda one: "ALL" not in of(one, "drop")):
        details.append(f'{_named(undropped)} must set securityContext.capabilities.drop=["ALL"]')
    if adding := _those(pod, is_bad):
        told = f"{_named(adding)} must not include {_quote(sorted(bad))}"
        details.append(f"{told} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
)  # fmt: skip


def _volumes(pod: Pod) -> Violation | None:
    bad = {
        one["name"]: next((kind for kind in one if kind != "name" and one[kind] is not None), "unknown")
        for one in pod.spec.get("volumes") or ()
        if not any(one.get(kind) is not None for kind in _VOLUMES)
    }
    if not bad:
        return None
    kinds = sorted(set(bad.values()))
    told = f"{_named(list(bad), 'volume')} {_many('uses', list(bad), 'use')}"
    return Violation(
        "restricted volume types", f"{told} {_many('restricted volume type', kinds)} {_quote(kinds)}"
    )


def _not_root(pod: Pod) -> Violation | None:
    if pod.minor >= 35 and pod.has_own_users:
        return None
    is_pod = pod.security.get("runAsNonRoot") is False
    names = _those(pod, lambda one: _own(one).get("runAsNonRoot") is False)
    if is_pod or names:
        told = f"{_setters(is_pod, names)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", told)
    if pod.security.get("runAsNonRoot"):
        return None
    silent = _those(pod, lambda one: _own(one).get("runAsNonRoot") is None)
    told = f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", told) if silent else None


def _not_user_zero(pod: Pod) -> Violation | None:
    if pod.minor < 23 or (pod.minor >= 35 and pod.has_own_users):
        return None
    is_pod = pod.security.get("runAsUser") == 0
    names = _those(pod, lambda one: _own(one).get("runAsUser") == 0)
    if not is_pod and not names:
        return None
    return Violation("runAsUser=0", f"{_setters(is_pod, names)} must not set runAsUser=0")


def _some_seccomp(pod: Pod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    wrong, silent = _seccomp_said(pod)
    if wrong is not None or not silent:
        return wrong
    told = f"pod or {_named(silent)} must set securityContext.seccompProfile.type"
    return Violation("seccompProfile", f'{told} to "RuntimeDefault" or "Localhost"')


# ── All of them ─────────────────────────────────────────────────────────────────────────────────────

_Check = Callable[[Pod], Violation | None]
_BASELINE: Final[tuple[_Check, ...]] = (
    _apparmor, _capabilities, _host_namespaces, _host_paths, _host_ports, _probe_hosts, _privileged,
    _proc_mount, _selinux, _seccomp, _sysctls, _host_process,
)  # fmt: skip
# Since which version a check is there, and which one of the baseline it takes the place of.
_RESTRICTED: Final[tuple[tuple[_Check, int, _Check | None], ...]] = (
    (_escalation, 0, None),
    (_few_capabilities, 22, _capabilities),
    (_any_proc_mount, 35, _proc_mount),
    (_volumes, 0, _host_paths),
    (_not_root, 0, None),
    (_not_user_zero, 0, None),
    (_some_seccomp, 19, _seccomp),
)


def violations(level: str, minor: int, metadata: Object, spec: Object) -> list[Violation]:
    """What a level has against a pod."""
    if level == "privileged":
        return []
    pod = Pod(metadata, spec, min(minor, LATEST))
    checks = list(_BASELINE)
    if level == "restricted":
        more = [row for row in _RESTRICTED if pod.minor >= row[1]]
        replaced = [row[2] for row in more]
        checks = [one for one in checks if one not in replaced] + [row[0] for row in more]
    return [found for check in checks if (found := check(pod)) is not None]
