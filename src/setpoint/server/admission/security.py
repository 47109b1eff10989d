"""PodSecurity: by its labels a namespace says which pods it takes, and about which it warns.

    pod-security.kubernetes.io/enforce: baseline          who does not keep to it is refused
    pod-security.kubernetes.io/enforce-version: v1.37     whose rules (latest, unless said)
    pod-security.kubernetes.io/warn, …/audit              is told, and taken; audit is accepted, not written

Templates of workloads are never refused, only warned about.  Pure; ``security_checks.py`` has the standards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from setpoint.server.admission.attributes import Attributes
from setpoint.server.admission.plugins import SECURITY
from setpoint.server.admission.security_checks import LATEST, Violation, violations
from setpoint.server.registry.resources import Object
from setpoint.server.statuses import FieldError, invalid

_LEVELS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_IGNORED: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)
# Where a workload keeps the template of its pods.
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "podtemplates": ("template",),
    "replicasets.apps": ("spec", "template"),
    "replicationcontrollers": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
}


class Level(NamedTuple):
    name: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.name}:{self.version}"

    @property
    def rank(self) -> int:
        return _LEVELS.index(self.name)

    def violations(self, metadata: Object, spec: Object) -> list[Violation]:
        minor = LATEST if self.version == "latest" else int(self.version.removeprefix("v1."))
        return violations(self.name, minor, metadata, spec)


class Policy(NamedTuple):
    enforce: Level = Level()
    warn: Level = Level()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    errors: list[FieldError] = []

    def read(mode: str, fallback: str) -> Level:
        level, version = labels.get(SECURITY + mode), labels.get(f"{SECURITY}{mode}-version")
        name = level or "privileged"
        if level is not None and level not in _LEVELS:
            name = fallback
            told = f"must be one of {', '.join(_LEVELS)}"
            errors.append(FieldError("invalid", f"metadata.labels[{SECURITY}{mode}]", told, level))
        if version is not None and version != "latest" and _VERSION.fullmatch(version) is None:
            told = 'must be "latest" or "v1.x"'
            errors.append(FieldError("invalid", f"metadata.labels[{SECURITY}{mode}-version]", told, version))
            version = None
        return Level(name, version or "latest")

    enforce = read("enforce", "restricted")
    read("audit", "privileged")
    warn = read("warn", "privileged")
    has_warn = SECURITY + "warn" in labels
    if not has_warn and labels.get(f"{SECURITY}enforce") in _LEVELS and enforce.rank > warn.rank:
        has_version = f"{SECURITY}warn-version" in labels
        warn = Level(enforce.name, warn.version if has_version else enforce.version)
    return Policy(enforce, warn), errors


def judge(asked: Attributes, labels: Mapping[str, str]) -> None:
    """A pod or a workload in a namespace with these labels: refused, or warned about."""
    is_pod = asked.resource.stored == "pods"
    if asked.object is None or asked.operation == "DELETE" or asked.subresource in _IGNORED:
        return
    if not is_pod and asked.subresource:
        return
    policy, _ = policy_of(labels)
    found = asked.object if is_pod else _template(asked.object, asked.resource.stored)
    if found is None or (is_pod and asked.old is not None and not _is_other(asked.object, asked.old)):
        return
    metadata, spec = found.get("metadata") or {}, found.get("spec") or {}
    if is_pod and (against := policy.enforce.violations(metadata, spec)):
        raise asked.refusal(f'violates PodSecurity "{policy.enforce}": {_told(against)}')
    if against := policy.warn.violations(metadata, spec):
        asked.warnings.append(f'would violate PodSecurity "{policy.warn}": {_told(against)}')


def _template(obj: Object, stored: str) -> Object | None:
    found: Object | None = obj
    for step in _TEMPLATES[stored]:
        found = (found or {}).get(step)
    return found


def _told(against: Iterable[Violation]) -> str:
    return ", ".join(f"{one.reason} ({one.detail})" if one.detail else one.reason for one in against)


def _is_other(pod: Object, old: Object) -> bool:
    """Whether it runs other images, or more of them."""

    def images(one: Object, field: str) -> list[str]:
        return [each.get("image", "") for each in one["spec"].get(field) or ()]

    if any(images(pod, field) != images(old, field) for field in ("containers", "initContainers")):
        return True
    before = {one["name"]: one.get("image") for one in old["spec"].get("ephemeralContainers") or ()}
    now = pod["spec"].get("ephemeralContainers") or ()
    return any(one["name"] not in before or before[one["name"]] != one.get("image") for one in now)


# ── Namespaces ──────────────────────────────────────────────────────────────────────────────────────


def judge_namespace(asked: Attributes, pods: Iterable[Object]) -> None:
    """Labels that mean nothing are refused; of pods that a new level would not take, its setter is told."""
    if asked.object is None or asked.operation == "DELETE" or asked.subresource:
        return
    policy, errors = policy_of(asked.object["metadata"].get("labels") or {})
    before, old_errors = policy_of(((asked.old or {}).get("metadata") or {}).get("labels") or {})
    if errors and (asked.operation == "CREATE" or errors != old_errors):
        raise invalid("Namespace", "", asked.name, errors)
    enforce, was = policy.enforce, before.enforce
    if asked.operation == "CREATE" or enforce == was or enforce.name == "privileged":
        return
    if enforce.version == was.version and enforce.rank <= was.rank:
        return
    asked.warnings.extend(_existing(asked.name, enforce, pods))


def _existing(namespace: str, enforce: Level, pods: Iterable[Object]) -> list[str]:
    found: dict[str, list[str]] = {}
    for pod in pods:
        if against := enforce.violations(pod["metadata"], pod["spec"]):
            found.setdefault(", ".join(one.reason for one in against), []).append(pod["metadata"]["name"])
    if not found:
        return []
    told = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforce}"'
    return [told, *sorted(f"{_counted(names)}: {why}" for why, names in found.items())]


def _counted(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other pod{'s' if others > 1 else ''})"
