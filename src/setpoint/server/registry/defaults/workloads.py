"""Defaults of the groups apps and batch."""

from __future__ import annotations

from typing import Final

from setpoint.server.golang import parse_int
from setpoint.server.registry.defaults.pods import claim_spec, template
from setpoint.server.registry.resources import Object

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_NO_LIMIT: Final = 2**31 - 1


def deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    template(spec.setdefault("template", {}))
    _unless_said(spec, "replicas", 1)
    strategy = spec["strategy"] = spec.get("strategy") or {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
        _unless_said(rolling, "maxUnavailable", "25%")
        _unless_said(rolling, "maxSurge", "25%")
    _unless_said(spec, "revisionHistoryLimit", 10)
    _unless_said(spec, "progressDeadlineSeconds", 600)


def replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    template(spec.setdefault("template", {}))
    _unless_said(spec, "replicas", 1)


def daemon_set(obj: Object) -> None:
    metadata = obj["metadata"] = obj.get("metadata") or {}
    metadata["annotations"] = {TEMPLATE_GENERATION: "0", **(metadata.get("annotations") or {})}
    spec = obj.setdefault("spec", {})
    template(spec.setdefault("template", {}))
    strategy = spec["updateStrategy"] = spec.get("updateStrategy") or {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
        _unless_said(rolling, "maxUnavailable", 1)
        _unless_said(rolling, "maxSurge", 0)
    _unless_said(spec, "revisionHistoryLimit", 10)


def stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    template(spec.setdefault("template", {}))
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        claim_spec(claim.setdefault("spec", {}))
        status = claim.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec["updateStrategy"] = spec.get("updateStrategy") or {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        _unless_said(rolling, "partition", 0)
        _unless_said(rolling, "maxUnavailable", 1)
    retention = spec["persistentVolumeClaimRetentionPolicy"] = (
        spec.get("persistentVolumeClaimRetentionPolicy") or {}
    )
    for when in ("whenDeleted", "whenScaled"):
        if not retention.get(when):
            retention[when] = "Retain"
    _unless_said(spec, "replicas", 1)
    _unless_said(spec, "revisionHistoryLimit", 10)


def job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _job_spec(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    _unless_said(spec, "parallelism", 1)
    _unless_said(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _NO_LIMIT)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    metadata = obj.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels  # the same, not a copy: what is added to one is added to both
    _unless_said(spec, "completionMode", "NonIndexed")
    _unless_said(spec, "suspend", False)
    replaced = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    _unless_said(spec, "podReplacementPolicy", replaced)
    _unless_said(spec, "manualSelector", False)


def cron_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _job_spec(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    _unless_said(spec, "suspend", False)
    _unless_said(spec, "successfulJobsHistoryLimit", 3)
    _unless_said(spec, "failedJobsHistoryLimit", 1)


def _job_spec(spec: Object) -> None:
    """What a job and the template of one have in common."""
    template(spec.setdefault("template", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def job_after_uid(obj: Object) -> None:
    """A job's pods are known by its uid, unless its author selects them by other labels."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    within = spec.setdefault("template", {})
    named = within["metadata"] = within.get("metadata") or {}
    is_shared = not metadata.get("labels") or metadata["labels"] is named.get("labels")
    labels = named["labels"] = dict(named.get("labels") or {})
    uid, name = metadata["uid"], metadata.get("name", "")
    for label, value in (
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
        ("controller-uid", uid),
        ("job-name", name),
    ):
        labels.setdefault(label, value)
    if is_shared:
        metadata["labels"] = dict(labels)
    selector = spec["selector"] = spec.get("selector") or {}
    wanted = selector["matchLabels"] = selector.get("matchLabels") or {}
    wanted.setdefault("batch.kubernetes.io/controller-uid", uid)


def daemon_set_after_uid(obj: Object) -> None:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    count = max(1, parse_int(annotations.get(TEMPLATE_GENERATION, "0")))
    metadata["annotations"] = {**annotations, TEMPLATE_GENERATION: str(count)}


def _unless_said(obj: Object, name: str, value: str | int | bool) -> None:
    if obj.get(name) is None:
        obj[name] = value
