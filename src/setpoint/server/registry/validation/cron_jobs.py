"""What is wrong with a CronJob."""

from __future__ import annotations

from typing import Any

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import internals
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.jobs import check_job_spec
from setpoint.server.registry.validation.schedules import schedule_error, zone_error

Json = dict[str, Any]


def check_cron_job(obj: Object, found: Found) -> None:
    _check_cron_spec(obj["spec"], None, found)
    name = obj["metadata"].get("name", "")
    if len(name) > 52:
        found.invalid("metadata.name", name, "must be no more than 52 characters")


def check_cron_job_update(new: Object, old: Object, found: Found) -> None:
    _check_cron_spec(new["spec"], old["spec"], found)


def _check_cron_spec(spec: Json, before: Json | None, found: Found) -> None:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if schedule:
        if error := schedule_error(schedule):
            found.invalid("spec.schedule", schedule, error)
        if "TZ" in schedule:
            _check_zone_in_schedule(schedule, zone, before, found)
    found.not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if (
        zone is not None
        and (before is None or before.get("timeZone") != zone)
        and (error := zone_error(zone))
    ):
        found.invalid("spec.timeZone", zone, error)
    found.some_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    check_job_spec(job, "spec.jobTemplate.spec", found)
    if job.get("selector") is not None:
        shown = internals.selector(job["selector"])
        found.invalid("spec.jobTemplate.spec.selector", shown, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        found.unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found.not_negative(f"spec.{field}", spec.get(field))
    if not schedule:
        found.required("spec.schedule")


def _check_zone_in_schedule(schedule: str, zone: str | None, before: Json | None, found: Found) -> None:
    if before is None or "TZ" not in before.get("schedule", ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.invalid("spec.schedule", schedule, detail)
    elif zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.invalid("spec.schedule", schedule, detail)
