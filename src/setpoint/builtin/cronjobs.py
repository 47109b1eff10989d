"""Starts a Job whenever a CronJob's schedule says so.

Each look settles what became of the Jobs started before, deletes those that are over beyond the history
limits, and starts the Job of the last time that was missed, if there is one and it is not too late.  Earlier
missed times are skipped.  A Job's name holds its minute, so that one time never starts two.

Then it looks again at the next time.  ``due`` is pure; schedules are read in ``cronjobs_schedule.py``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from setpoint.api.model import ObjectMeta, OwnerReference
from setpoint.api.times import Time
from setpoint.builtin.cronjobs_schedule import Schedule, parse
from setpoint.builtin.jobs_steps import finished
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods import reference
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.result import Request, Result
from setpoint.errors import AlreadyExists, ApiError, NotFound
from setpoint.kube.batch.v1 import CronJob, Job
from setpoint.kube.core.v1 import ObjectReference

NAME: Final = "cronjob-controller"
_WORKERS: Final = 5
_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_TOO_MANY: Final = 100  # missed times, above which something is wrong with the clock or the schedule
_KEPT_SUCCESSFUL, _KEPT_FAILED = 3, 1


# ---- when ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Due:
    """The last time that has come, if any; how many came since the last look; and the next one."""

    last: datetime | None
    missed: int
    next: datetime | None


def due(schedule: Schedule, since: datetime, now: datetime) -> Due:
    """What has come to pass after ``since`` and until ``now``."""
    last: datetime | None = None
    count, moment = 0, schedule.next(since)
    while moment is not None and moment <= now:
        if count > _TOO_MANY:  # only the last of them matters
            last = _last(schedule, now) or moment
            return Due(last, count, schedule.next(last))
        last, count = moment, count + 1
        moment = schedule.next(moment)
    return Due(last, count, moment)


def _last(schedule: Schedule, now: datetime) -> datetime | None:
    """The last time that has come, found without counting all before it."""
    for hours in (1, 24, 24 * 32, 24 * 367, 24 * 367 * 8):
        last, moment = None, schedule.next(now - timedelta(hours=hours))
        while moment is not None and moment <= now:
            last, moment = moment, schedule.next(moment)
        if last is not None:
            return last
    return None


def since_when(cron: CronJob, now: datetime) -> datetime:
    """From when on times count: after the last start, or the beginning; no earlier than is not too late."""
    began = cron.status.last_schedule_time or cron.metadata.creation_timestamp or now
    since = began.astimezone(UTC)
    deadline = cron.spec.starting_deadline_seconds
    return since if deadline is None else max(since, now - timedelta(seconds=deadline))


def is_too_late(cron: CronJob, moment: datetime, now: datetime) -> bool:
    deadline = cron.spec.starting_deadline_seconds
    return deadline is not None and moment + timedelta(seconds=deadline) < now


def surplus(jobs: Sequence[Job], *, kind: str, limit: int) -> list[Job]:
    """The Jobs that ended so, the oldest first, beyond the limit."""
    over = [job for job in jobs if (end := finished(job)) is not None and end.type == kind]
    over.sort(
        key=lambda job: (job.status.start_time or job.metadata.creation_timestamp or _EVER, job.metadata.name)
    )
    return over[: max(0, len(over) - limit)]


_EVER = Time(1970, 1, 1)


# ---- carrying it out -------------------------------------------------------------------------------


class CronJobs:
    """The reconciler."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._client = means.client

    async def reconcile(self, request: Request) -> Result:
        cron = await ignore_not_found(self._client.get(CronJob, request.name, namespace=request.namespace))
        if cron is None:
            return Result()
        jobs = await self._client.list(Job, namespace=request.namespace, owner=cron.metadata.uid)
        before = copy.deepcopy(cron.status)
        await self._settle(cron, jobs)
        wait = None
        if cron.metadata.deletion_timestamp is None:
            await self._clean_up(cron, jobs)
            wait = await self._start_what_is_due(cron)
        if cron.status != before:
            await self._client.update_status(cron)
        return look_again(wait)

    async def _settle(self, cron: CronJob, jobs: Sequence[Job]) -> None:
        """Note which of the Jobs under way are over, or gone."""
        active = {each.uid: each for each in cron.status.active or ()}
        for job in jobs:
            uid, end = job.metadata.uid, finished(job)
            if uid not in active and end is None:
                name = job.metadata.name
                current = await ignore_not_found(
                    self._client.live.get(
                        CronJob, cron.metadata.name or "", namespace=cron.metadata.namespace
                    )
                )
                if current is not None and uid in {each.uid for each in current.status.active or ()}:
                    continue
                self._means.warn(
                    cron, "UnexpectedJob", f"Saw a job that the controller did not create or forgot: {name}"
                )
            elif uid in active and end is not None:
                del active[uid]
                self._means.tell(
                    cron, "SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {end.type}"
                )
                self._note_success(cron, job)
            elif end is not None and end.type == "Complete":
                self._note_success(cron, job)
        known = {job.metadata.uid for job in jobs}
        for uid, each in list(active.items()):
            if uid not in known and await self._is_gone(cron, each):
                self._means.warn(cron, "MissingJob", f"Active job went missing: {each.name}")
                del active[uid]
        cron.status.active = list(active.values()) or None

    @staticmethod
    def _note_success(cron: CronJob, job: Job) -> None:
        done, last = job.status.completion_time, cron.status.last_successful_time
        if done is not None and (last is None or last < done):
            cron.status.last_successful_time = done

    async def _is_gone(self, cron: CronJob, each: ObjectReference) -> bool:
        job = await ignore_not_found(
            self._client.live.get(Job, each.name or "", namespace=cron.metadata.namespace)
        )
        return job is None or job.metadata.uid != each.uid

    async def _clean_up(self, cron: CronJob, jobs: Sequence[Job]) -> None:
        well, badly = cron.spec.successful_jobs_history_limit, cron.spec.failed_jobs_history_limit
        going = [
            *surplus(jobs, kind="Complete", limit=_KEPT_SUCCESSFUL if well is None else well),
            *surplus(jobs, kind="Failed", limit=_KEPT_FAILED if badly is None else badly),
        ]
        for job in going:
            await self._delete(cron, job.metadata.name or "", job.metadata.uid or "")

    async def _start_what_is_due(self, cron: CronJob) -> float | None:
        """Start a Job, if it is time; in how many seconds it is time again."""
        if cron.spec.suspend:
            return None
        schedule = self._schedule(cron)
        if schedule is None:
            return None
        now = self._means.parts.clock.utc()
        come = due(schedule, since_when(cron, now), now)
        wait = None if come.next is None else max(0.0, (come.next - now).total_seconds())
        if come.last is None:
            return wait
        if come.missed > _TOO_MANY:
            self._means.warn(
                cron,
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock "
                "skew",
            )
        if is_too_late(cron, come.last, now):
            said = format_datetime(come.last)
            self._means.warn(cron, "MissSchedule", f"Missed scheduled time to start a job: {said}")
            return wait
        name = job_name(cron, come.last)
        if any(each.name == name for each in cron.status.active or ()):
            return wait
        if await self._may_start(cron):
            await self._start(cron, come.last)
        return wait

    def _schedule(self, cron: CronJob) -> Schedule | None:
        zone: tzinfo = UTC
        if cron.spec.time_zone:
            try:
                zone = ZoneInfo(cron.spec.time_zone)
            except (ZoneInfoNotFoundError, ValueError) as error:
                self._means.warn(
                    cron, "UnknownTimeZone", f'invalid timeZone: "{cron.spec.time_zone}": {error}'
                )
                return None
        try:
            return parse(cron.spec.schedule, zone)
        except ValueError as error:
            self._means.warn(
                cron, "UnparseableSchedule", f'unparseable schedule: "{cron.spec.schedule}" : {error}'
            )
            return None

    async def _may_start(self, cron: CronJob) -> bool:
        active = cron.status.active or []
        if active and cron.spec.concurrency_policy == "Forbid":
            self._means.tell(
                cron,
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid",
            )
            return False
        if active and cron.spec.concurrency_policy == "Replace":
            for each in active:
                await self._delete(cron, each.name or "", each.uid or "")
            cron.status.active = None
        return True

    async def _start(self, cron: CronJob, moment: datetime) -> None:
        wish = new_job(cron, moment)
        try:
            job = await self._client.create(wish)
        except AlreadyExists:
            job = await self._client.live.get(
                Job, wish.metadata.name or "", namespace=wish.metadata.namespace
            )
            if not _is_of(cron, job):
                raise
        except NotFound:
            raise  # its namespace is gone: there is nobody left to tell
        except ApiError as error:
            self._means.warn(cron, "FailedCreate", f"Error creating job: {error.message}")
            raise
        else:
            self._means.tell(cron, "SuccessfulCreate", f"Created job {job.metadata.name}")
        known = [each for each in cron.status.active or () if each.uid != job.metadata.uid]
        started = ObjectReference(
            api_version=job.api_version,
            kind=job.kind,
            name=job.metadata.name,
            namespace=job.metadata.namespace,
            uid=job.metadata.uid,
            resource_version=job.metadata.resource_version,
        )
        cron.status.active = [*known, started] if finished(job) is None else known or None
        cron.status.last_schedule_time = Time.of(moment)

    async def _delete(self, cron: CronJob, name: str, uid: str) -> None:
        try:
            await self._client.delete(
                Job, name, namespace=cron.metadata.namespace, propagation="Background", uid=uid
            )
        except NotFound:
            return
        except ApiError as error:
            self._means.warn(cron, "FailedDelete", f"Deleted job: {error.message}")
            raise
        self._means.tell(cron, "SuccessfulDelete", f"Deleted job {name}")


def _is_of(cron: CronJob, job: Job) -> bool:
    return any(owner.uid == cron.metadata.uid for owner in job.metadata.owner_references or ())


def job_name(cron: CronJob, moment: datetime) -> str:
    return f"{cron.metadata.name}-{int(moment.timestamp()) // 60}"


def new_job(cron: CronJob, moment: datetime) -> Job:
    """The Job of a time."""
    template = cron.spec.job_template
    shown = moment.astimezone(ZoneInfo(cron.spec.time_zone) if cron.spec.time_zone else UTC)
    owner: OwnerReference = reference(cron)
    metadata = ObjectMeta(
        name=job_name(cron, moment),
        namespace=cron.metadata.namespace,
        labels=template.metadata.labels,
        annotations={
            **(template.metadata.annotations or {}),
            _SCHEDULED: shown.isoformat().replace("+00:00", "Z"),
        },
        owner_references=[owner],
    )
    return Job(metadata=metadata, spec=copy.deepcopy(template.spec))


def add_to(parts: Parts) -> Controller:
    """Have CronJobs start their Jobs."""
    means = Means(NAME, parts)
    return complete(means.building(_WORKERS).for_(CronJob).owns(Job), CronJobs(means).reconcile)
