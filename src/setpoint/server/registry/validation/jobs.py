"""What is wrong with a Job, and with changing one."""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.golang import same
from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals, texts
from setpoint.server.registry.validation.found import IMMUTABLE, Found
from setpoint.server.registry.validation.job_policies import check_failure_policy, check_success_policy
from setpoint.server.registry.validation.pods import check_template
from setpoint.server.registry.validation.selectors import check_selector, matches
from setpoint.server.registry.validation.workloads import check_matches, check_same_selector

Json = dict[str, Any]
_MOST_INDEXED: Final = 100_000
_MOST_PER_INDEX: Final = 10_000


# ── Job ─────────────────────────────────────────────────────────────────────────────────────────────


def check_job(job: Object, found: Found) -> None:
    _check_generated(job, found)
    spec = job["spec"]
    check_job_spec(spec, "spec", found)
    _check_job_selector(spec, found)
    _check_pod_names(job, found)


def _check_generated(job: Object, found: Found) -> None:
    """The labels that tie a Job to its pods are the server's to make."""
    spec = job["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    wanted = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for key, value in wanted.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            found.required(at, f"must be '{value}'")
        elif labels[key] != value:
            found.invalid(at, labels, f"must be '{value}'")
    if check_selector(spec["selector"], "", Found()) and not matches(spec["selector"], wanted):
        found.invalid("spec.selector", internals.selector(spec["selector"]), "`selector` not auto-generated")


def _check_job_selector(spec: Json, found: Found) -> None:
    if spec.get("selector") is None:
        found.required("spec.selector")
    if check_selector(spec.get("selector"), "spec.selector", found):
        check_matches(spec, "spec", found)


def _check_pod_names(job: Object, found: Found) -> None:
    spec, name = job["spec"], job["metadata"].get("name", "")
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        last = f"{name}-{completions - 1}"
        if texts.label(last):
            detail = f"will not able to create pod with invalid DNS label: {last}"
            found.invalid("metadata.name", name, detail)


_NOT_NEGATIVE: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def check_job_spec(spec: Json, path: str, found: Found) -> None:
    for field in _NOT_NEGATIVE:
        found.not_negative(f"{path}.{field}", spec.get(field))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if (manager := spec.get("managedBy")) is not None:
        check_domain_path(manager, f"{path}.managedBy", found)
        if len(manager) > 63:
            found.too_long(f"{path}.managedBy", 63)
    mode = spec.get("completionMode")
    if mode is not None:
        found.one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        _check_indexed(spec, path, found)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                found.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        check_failure_policy(policy, spec, f"{path}.podFailurePolicy", found)
    if (success := spec.get("successPolicy")) is not None:
        if mode != "Indexed":
            shown = internals.shown(success, "batch", "v1", "Job", "spec", "successPolicy")
            found.invalid(f"{path}.successPolicy", shown, "requires indexed completion mode")
        else:
            check_success_policy(success, spec.get("completions") or 0, f"{path}.successPolicy", found)
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        allowed = ("Failed",) if policy is not None else ("Failed", "TerminatingOrFailed")
        found.one_of(f"{path}.podReplacementPolicy", replacement, allowed)
    check_template(spec.get("template") or {}, f"{path}.template", found)
    _check_restart_policy(spec, f"{path}.template.spec.restartPolicy", found)


def _check_restart_policy(spec: Json, path: str, found: Found) -> None:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        found.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        found.unsupported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        found.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _check_indexed(spec: Json, path: str, found: Found) -> None:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        found.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _MOST_INDEXED:
        detail = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
        found.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None and completions is not None and failed > completions:
        found.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MOST_INDEXED:
        detail = f"must be less than or equal to {_MOST_INDEXED}"
        found.invalid(f"{path}.maxFailedIndexes", failed, detail)
    if (completions or 0) <= _MOST_INDEXED or spec.get("backoffLimitPerIndex") is None:
        return
    tail = f"when completions are above {_MOST_INDEXED} and used with backoff limit per index"
    if failed is None:
        detail = f"must be specified when completions is above {_MOST_INDEXED}"
        found.required(f"{path}.maxFailedIndexes", detail)
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
        if value > _MOST_PER_INDEX:
            detail = f"must be less than or equal to {_MOST_PER_INDEX} {tail}"
            found.invalid(f"{path}.{field}", value, detail)


def check_domain_path(text: str, path: str, found: Found) -> None:
    """``example.com/what-it-is``."""
    if not text:
        found.required(path)
        return
    host, _, tail = text.partition("/")
    if not host or not tail:
        found.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    found.told(path, host, texts.subdomain(host))
    found.told(path, tail, texts.http_path(tail))


# ── Changing a Job ──────────────────────────────────────────────────────────────────────────────────


def check_job_update(new: Object, old: Object, found: Found) -> None:
    spec, before = new["spec"], old["spec"]
    check_job_spec(spec, "spec", found)
    _check_job_selector(spec, found)
    if spec.get("completionMode") != "Indexed":
        found.unchanged("spec.completions", spec.get("completions"), before.get("completions"))
    elif spec.get("completions") not in (before.get("completions"), None, spec.get("parallelism")):
        detail = "can only be modified in tandem with spec.parallelism"
        found.invalid("spec.completions", spec["completions"], detail)
    check_same_selector(spec, before, found)
    _check_template_change(spec, before, found)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if not same(spec.get(field), before.get(field)):
            shown = internals.shown(spec.get(field), "batch", "v1", "Job", "spec", field)
            found.invalid(f"spec.{field}", shown, IMMUTABLE)
    _check_pod_names(new, found)


_SCHEDULING: Final = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def _check_template_change(spec: Json, before: Json, found: Found) -> None:
    new, old = spec.get("template") or {}, before.get("template") or {}
    if before.get("suspend"):
        pod, previous = dict(new.get("spec") or {}), dict(old.get("spec") or {})
        for field in _SCHEDULING:  # where a suspended Job will run may still be said
            previous[field] = pod[field] = None
        for kind in ("containers", "initContainers"):
            pod[kind] = [{**one, "resources": None} for one in pod.get(kind) or ()]
            previous[kind] = [{**one, "resources": None} for one in previous.get(kind) or ()]
        if not same(pod, previous):
            shown = internals.shown(new.get("spec") or {}, "batch", "v1", "Job", "spec", "template", "spec")
            found.invalid("spec.template.spec", shown, IMMUTABLE)
    elif not same(new, old):
        shown = internals.shown(new, "batch", "v1", "Job", "spec", "template")
        found.invalid("spec.template", shown, IMMUTABLE)


def _is_true(status: Json, kind: str) -> bool:
    return any(
        one.get("type") == kind and one.get("status") == "True" for one in status.get("conditions") or ()
    )


def check_job_status(new: Object, old: Object, found: Found) -> None:
    spec, status, before = new["spec"], new.get("status") or {}, old.get("status") or {}
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        found.not_negative(f"status.{field}", status.get(field))
    _check_uncounted(status.get("uncountedTerminatedPods") or {}, found)
    complete, failed = _is_true(status, "Complete"), _is_true(status, "Failed")
    is_done = complete or failed
    met, target = _is_true(status, "SuccessCriteriaMet"), _is_true(status, "FailureTarget")
    start, end = status.get("startTime"), status.get("completionTime")
    conditions = "status.conditions"
    if complete and failed:
        found.unnamed(conditions, "cannot set Complete=True and Failed=true conditions")
    if complete and target:
        found.unnamed(conditions, "cannot set Complete=True and FailureTarget=true conditions")
    if end is not None and not complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        found.invalid("status.completionTime", end, detail)
    if end is None and complete:
        found.required("status.completionTime", "completionTime is required for Complete jobs")
    if start and end and end < start:
        found.invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if failed and not target:
        found.unnamed(conditions, "cannot set Failed=True condition without the FailureTarget=true condition")
    if complete and not met:
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        found.unnamed(conditions, detail)
    if status.get("active", 0) > 0 and is_done:
        found.invalid("status.active", status["active"], "active>0 is invalid for finished job")
    if start is None and is_done:
        found.required("status.startTime", "startTime is required for finished job")
    if status.get("completedIndexes") and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        found.invalid("status.completedIndexes", status["completedIndexes"], detail)
    ready = status.get("ready")
    if ready is not None and ready > status.get("active", 0):
        found.invalid("status.ready", ready, "cannot set more ready pods than active")
    if met and failed:
        found.unnamed(conditions, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and target:
        found.unnamed(conditions, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    for kind in ("Failed", "Complete", "FailureTarget"):
        if _is_true(before, kind) and not _is_true(status, kind):
            found.unnamed(conditions, f"cannot disable the terminal {kind}=True condition")
    for field in ("failed", "succeeded"):
        if status.get(field, 0) < before.get(field, 0):
            found.invalid(f"status.{field}", status.get(field, 0), f"cannot decrease the {field} counter")
    if before.get("startTime") and before["startTime"] != start and not spec.get("suspend"):
        found.invalid("status.startTime", start, "field is immutable for unsuspended job once set")


def _check_uncounted(uncounted: Json, found: Found) -> None:
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(kind) or ()):
            at = f"status.uncountedTerminatedPods.{kind}[{index}]"
            if not uid:
                found.invalid(at, uid, "must not be empty")
            else:
                found.unique(at, uid, seen)
