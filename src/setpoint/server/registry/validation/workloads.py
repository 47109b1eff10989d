"""What is wrong with Deployments, ReplicaSets, StatefulSets, DaemonSets and their older relatives."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.golang import same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.claims import check_claim_spec
from setpoint.server.registry.validation.found import IMMUTABLE, NEGATIVE, Found
from setpoint.server.registry.validation.metadata import check_annotations
from setpoint.server.registry.validation.pods import check_template
from setpoint.server.registry.validation.selectors import check_labels, check_selector, is_empty, matches

Json = dict[str, Any]
_NO_MATCH: Final = "`selector` does not match template `labels`"


# ── What they share ─────────────────────────────────────────────────────────────────────────────────


def check_matches(spec: Json, path: str, found: Found) -> None:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not matches(spec.get("selector"), labels):
        found.invalid(f"{path}.template.metadata.labels", labels, _NO_MATCH)


def _check_restarts(template: Json, path: str, owner: str, found: Found) -> None:
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        found.unsupported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        at = f"{path}.spec.activeDeadlineSeconds"
        found.forbidden(at, f"activeDeadlineSeconds in {owner} is not Supported")


def _check_own_selector(spec: Json, kind: str, found: Found) -> bool:
    """Whether it can be said what it selects."""
    selector = spec.get("selector")
    if selector is None:
        found.required("spec.selector")
        return True
    is_readable = check_selector(selector, "spec.selector", found)
    if is_empty(selector):
        found.invalid("spec.selector", internals.selector(selector), f"empty selector is invalid for {kind}")
    return is_readable


def _check_selected_template(spec: Json, found: Found) -> None:
    if not _check_own_selector(spec, "deployment", found):
        found.invalid("spec.selector", internals.selector(spec.get("selector")), "invalid label selector")
        return
    template = spec.get("template") or {}
    if spec.get("selector") is None or not is_empty(spec.get("selector")):
        check_matches(spec, "spec", found)
    check_template(template, "spec.template", found)
    _check_restarts(template, "spec.template", "ReplicaSet", found)


def check_number_or_percent(value: int | str, path: str, found: Found) -> None:
    if isinstance(value, str):
        found.told(path, value, texts.percent(value))
    else:
        found.not_negative(path, value)


def check_at_most_all(value: int | str, path: str, found: Found) -> None:
    if isinstance(value, str) and texts.amount(value) > 100:
        found.invalid(path, value, "must not be greater than 100%")


def _check_counts(status: Json, fields: tuple[str, ...], found: Found) -> None:
    for field in fields:
        found.not_negative(f"status.{field}", status.get(field))


def _check_parts(status: Json, fields: tuple[str, ...], ready: str, found: Found) -> None:
    """No part is more than the whole; what is available is ready."""
    whole = status.get("replicas", 0)
    for field in fields:
        if status.get(field, 0) > whole:
            found.invalid(f"status.{field}", status.get(field, 0), "cannot be greater than status.replicas")
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        found.invalid("status.availableReplicas", available, f"cannot be greater than {ready}")


def _check_collisions(new: Json, old: Json, found: Found) -> None:
    before, now = old.get("collisionCount"), new.get("collisionCount")
    if before is not None and (now is None or now < before):
        found.invalid("status.collisionCount", now or 0, "cannot be decremented")


# ── Deployment ──────────────────────────────────────────────────────────────────────────────────────


def check_deployment(obj: Object, found: Found) -> None:
    spec = obj["spec"]
    found.not_negative("spec.replicas", spec.get("replicas"))
    _check_selected_template(spec, found)
    _check_strategy(spec.get("strategy") or {}, found)
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    found.not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        found.not_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            found.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: Json, found: Found) -> None:
    path, rolling = "spec.strategy.rollingUpdate", strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling is not None:
                found.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate":
            if rolling is None:
                found.required(path, "this should be defaulted and never be nil")
                return
            unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
            check_number_or_percent(unavailable, f"{path}.maxUnavailable", found)
            check_number_or_percent(surge, f"{path}.maxSurge", found)
            if texts.amount(unavailable) == 0 and texts.amount(surge) == 0:
                detail = "may not be 0 when `maxSurge` is 0"
                found.invalid(f"{path}.maxUnavailable", unavailable, detail)
            check_at_most_all(unavailable, f"{path}.maxUnavailable", found)
        case _:
            shown = internals.shown(strategy, "apps", "v1", "Deployment", "spec", "strategy")
            found.unsupported("spec.strategy", shown, ("Recreate", "RollingUpdate"))


def check_same_selector(new: Json, old: Json, found: Found) -> None:
    now = new.get("selector")
    if not same(now, old.get("selector")):
        found.invalid("spec.selector", internals.selector(now), IMMUTABLE)


def check_deployment_update(new: Object, old: Object, found: Found) -> None:
    check_deployment(new, found)
    check_same_selector(new["spec"], old["spec"], found)


_DEPLOYMENT_COUNTS: Final = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def check_deployment_status(new: Object, old: Object, found: Found) -> None:
    status = new.get("status") or {}
    _check_counts(status, _DEPLOYMENT_COUNTS, found)
    _check_parts(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "readyReplicas", found)
    _check_collisions(status, old.get("status") or {}, found)


# ── ReplicaSet, ReplicationController ───────────────────────────────────────────────────────────────


def check_replica_set(obj: Object, found: Found) -> None:
    spec = obj["spec"]
    found.not_negative("spec.replicas", spec.get("replicas"))
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    _check_selected_template(spec, found)


def check_replica_set_update(new: Object, old: Object, found: Found) -> None:
    check_replica_set(new, found)
    check_same_selector(new["spec"], old["spec"], found)


_REPLICA_COUNTS: Final = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)


def check_replicas_status(new: Object, old: Object, found: Found) -> None:
    del old
    status = new.get("status") or {}
    _check_counts(status, _REPLICA_COUNTS, found)
    _check_parts(
        status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), "readyReplicas", found
    )


def check_controller(obj: Object, found: Found) -> None:
    spec = obj["spec"]
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        found.required("spec.selector")
    if template is None:
        found.required("spec.template")
    else:
        labels = (template.get("metadata") or {}).get("labels")
        if any((labels or {}).get(key) != value for key, value in selector.items()):
            found.invalid("spec.template.metadata.labels", labels, _NO_MATCH)
        check_template(template, "spec.template", found)
        _check_restarts(template, "spec.template", "ReplicationController", found)
    found.not_negative("spec.replicas", spec.get("replicas"))
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))


# ── StatefulSet ─────────────────────────────────────────────────────────────────────────────────────


def check_stateful_set(obj: Object, found: Found) -> None:
    spec = obj["spec"]
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        found.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    _check_update_strategy(spec.get("updateStrategy") or {}, found)
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for field in ("whenDeleted", "whenScaled"):
            at = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            found.one_of(at, retention.get(field, ""), ("Retain", "Delete"))
    claims = spec.get("volumeClaimTemplates") or []
    for index, claim in enumerate(claims):
        check_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec", found)
    found.not_negative("spec.replicas", spec.get("replicas"))
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    found.not_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if name := spec.get("serviceName"):
        found.told("spec.serviceName", name, texts.label(name))
    _check_stateful_template(spec, claims, found)
    _check_restarts(spec.get("template") or {}, "spec.template", "StatefulSet", found)


def _check_stateful_template(spec: Json, claims: list[Json], found: Found) -> None:
    if not _check_own_selector(spec, "statefulset", found):
        found.invalid("spec.selector", internals.selector(spec.get("selector")), "")
        return
    template = dict(spec.get("template") or {})
    names = [(one.get("metadata") or {}).get("name", "") for one in claims]
    claimed = set(names)
    own = (template.get("spec") or {}).get("volumes") or []
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in names]
    volumes += [one for one in own if one.get("name") not in claimed]
    template["spec"] = {**(template.get("spec") or {}), "volumes": volumes, "subdomain": "", "hostname": ""}
    if spec.get("selector") is None or not is_empty(spec.get("selector")):
        check_matches(spec, "spec", found)
    check_template(template, "spec.template", found)
    metadata = template.get("metadata") or {}
    check_labels(metadata.get("labels"), "spec.template.labels", found)
    check_annotations(metadata.get("annotations") or {}, "spec.template.annotations", found)


def _check_update_strategy(strategy: Json, found: Found) -> None:
    path, rolling = "spec.updateStrategy.rollingUpdate", strategy.get("rollingUpdate")
    place = ("apps", "v1", "StatefulSet", "spec", "updateStrategy")
    match strategy.get("type", ""):
        case "":
            found.required("spec.updateStrategy")
        case "OnDelete":
            if rolling is not None:
                shown = internals.shown(rolling, *place, "rollingUpdate")
                found.invalid(path, shown, "only allowed for updateStrategy 'RollingUpdate'")
        case "RollingUpdate":
            if rolling is None:
                return
            found.not_negative(f"{path}.partition", rolling.get("partition"))
            unavailable = rolling.get("maxUnavailable")
            if unavailable is not None:
                at = f"{path}.maxUnavailable"
                check_number_or_percent(unavailable, at, found)
                if texts.amount(unavailable) == 0:
                    found.invalid(at, unavailable, "cannot be 0")
                check_at_most_all(unavailable, at, found)
        case _:
            detail = "must be 'RollingUpdate' or 'OnDelete'"
            found.invalid("spec.updateStrategy", internals.shown(strategy, *place), detail)


def check_stateful_set_update(new: Object, old: Object, found: Found) -> None:
    check_stateful_set(new, found)
    spec, before = new["spec"], old["spec"]
    check_same_selector(spec, before, found)
    claims = spec.get("volumeClaimTemplates") or []
    if not same(claims, before.get("volumeClaimTemplates") or []):
        kind = internals.part_type("apps", "v1", "StatefulSet", "spec", "volumeClaimTemplates")
        shown = internals.written([internals.internal(one, kind) for one in claims])
        found.invalid("spec.volumeClaimTemplates", shown, IMMUTABLE)
    for field in ("serviceName", "podManagementPolicy"):
        found.unchanged(f"spec.{field}", spec.get(field), before.get(field))


def check_stateful_set_status(new: Object, old: Object, found: Found) -> None:
    status = new.get("status") or {}
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    _check_counts(status, ("replicas", *parts, "observedGeneration", "collisionCount"), found)
    _check_parts(status, parts, "status.readyReplicas", found)
    _check_collisions(status, old.get("status") or {}, found)


# ── DaemonSet, ControllerRevision ───────────────────────────────────────────────────────────────────


def check_daemon_set(obj: Object, found: Found) -> None:
    spec = obj["spec"]
    template, selector = spec.get("template") or {}, spec.get("selector")
    if check_selector(selector, "spec.selector", found):
        check_matches(spec, "spec", found)
    if selector is not None and is_empty(selector):
        shown = internals.selector(selector)
        found.invalid("spec.selector", shown, "empty selector is invalid for daemonset")
    check_template(template, "spec.template", found)
    _check_restarts(template, "spec.template", "DaemonSet", found)
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    _check_daemon_strategy(spec.get("updateStrategy") or {}, found)
    found.not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _check_daemon_strategy(strategy: Json, found: Found) -> None:
    kind, path = strategy.get("type", ""), "spec.updateStrategy.rollingUpdate"
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = internals.shown(strategy, "apps", "v1", "DaemonSet", "spec", "updateStrategy")
        found.unsupported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete"))
        return
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        found.required(path)
        return
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    for check in (check_number_or_percent, check_at_most_all):
        check(unavailable, f"{path}.maxUnavailable", found)
        check(surge, f"{path}.maxSurge", found)
    if texts.amount(unavailable) and texts.amount(surge):
        found.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    if not texts.amount(unavailable) and not texts.amount(surge):
        found.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def check_daemon_set_update(new: Object, old: Object, found: Found) -> None:
    check_same_selector(new["spec"], old["spec"], found)
    check_daemon_set(new, found)


_DAEMON_COUNTS: Final = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def check_daemon_set_status(new: Object, old: Object, found: Found) -> None:
    status = new.get("status") or {}
    _check_counts(status, _DAEMON_COUNTS, found)
    _check_collisions(status, old.get("status") or {}, found)


def check_revision(obj: Object, found: Found) -> None:
    _check_revision_number(obj, found)
    data = obj.get("data")
    if data is None:
        found.required("data", "data is mandatory")
    elif not isinstance(data, dict):
        found.required("data", "data must be a valid JSON object")


def _check_revision_number(obj: Object, found: Found) -> None:
    if obj.get("revision", 0) < 0:
        found.invalid("revision", obj["revision"], NEGATIVE)


def check_revision_update(new: Object, old: Object, found: Found) -> None:
    _check_revision_number(new, found)
    found.unchanged("data", new.get("data"), old.get("data"))
