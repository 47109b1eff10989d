"""Makes a Job whenever its schedule says: what Kubernetes' CronJob does, and the tutorial of kubebuilder.

Ported from the description of its behaviour: schedule, suspend, concurrency policy, limits of history, one
Job for each time, named after it.  Two mistakes can be put in, which its authors have made and mended:

``already_exists``
    The Job was made, and the status that says so was not.  The Job is made again, which is refused because it
    is there; that is taken for a failure, so that the status is never written, and no other Job ever made
    (kubernetes/kubernetes#120649).
``blocked``
    Which Jobs are at work is kept in the status, and one is taken off the list when it is seen to be
    finished.  One that is gone before that stays on it, and where the policy is Forbid nothing is ever
    started again (kubernetes/kubernetes#37957).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from setpoint.api import CustomResource, Model, ObjectMeta, Time
from setpoint.builtin.cronjobs_schedule import parse
from setpoint.controller import Result
from setpoint.controller.context import Context
from setpoint.errors import AlreadyExists, RetryLater
from setpoint.kube.batch.v1 import Job, JobSpec
from setpoint.kube.core.v1 import Container, PodSpec, PodTemplateSpec
from setpoint.operator import Operator

Mistake = Literal["", "already_exists", "blocked"]


class TimetableSpec(Model):
    schedule: str = "@daily"
    suspend: bool = False
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class TimetableStatus(Model):
    last_schedule_time: Time | None = None
    active: list[str] = []


class Timetable(CustomResource, group="ported.setpoint.dev", version="v1"):
    spec: TimetableSpec = TimetableSpec()
    status: TimetableStatus = TimetableStatus()


def timetables(mistake: Mistake = "") -> Operator:
    operator = Operator("timetables")

    @operator.controller(Timetable, owns=[Job])
    async def reconcile(table: Timetable, ctx: Context) -> Result:
        jobs = await ctx.list(Job, owned=True)
        finished = {_name(job): _ended(job) for job in jobs if _ended(job)}
        if mistake == "blocked":
            active = [name for name in table.status.active if name not in finished]
        else:
            active = sorted(_name(job) for job in jobs if not _ended(job))
        table.status.active = active
        await clean_up(table, jobs, ctx)
        if table.spec.suspend:
            return Result()
        if mistake != "already_exists":  # what was made says so itself, whether the status does or not
            known = [_scheduled(job) for job in jobs]
            last = max([*known, *filter(None, [table.status.last_schedule_time])], default=None)
            table.status.last_schedule_time = last
        schedule, now = parse(table.spec.schedule), ctx.now()
        since = table.status.last_schedule_time or table.metadata.creation_timestamp or now
        due = None
        following = schedule.next(since)
        while following is not None and following <= now:
            due, following = following, schedule.next(following)
        again = Result() if following is None else Result(requeue_after=(following - now).total_seconds())
        if due is None or (active and table.spec.concurrency_policy == "Forbid"):
            return again
        if table.spec.concurrency_policy == "Replace":
            for job in jobs:
                if not _ended(job):
                    await ctx.delete(job)
        name = await start(table, due, ctx)
        table.status.last_schedule_time = Time.of(due)
        table.status.active = sorted({*active, name})
        return again

    async def start(table: Timetable, due: datetime, ctx: Context) -> str:
        job = _job(table, due)
        ctx.set_controller_reference(job)
        try:
            await ctx.client.create(job)
        except AlreadyExists:
            if mistake == "already_exists":
                raise
            found = await ctx.client.live.get(Job, _name(job), namespace=table.metadata.namespace)
            owners = [owner.uid for owner in found.metadata.owner_references or []]
            if table.metadata.uid not in owners:
                raise RetryLater(5, f"the Job {_name(job)} is of another") from None
        return _name(job)

    async def clean_up(table: Timetable, jobs: list[Job], ctx: Context) -> None:
        for how, limit in (
            ("Complete", table.spec.successful_jobs_history_limit),
            ("Failed", table.spec.failed_jobs_history_limit),
        ):
            ended = sorted((job for job in jobs if _ended(job) == how), key=_name)
            for job in ended[: max(0, len(ended) - limit)]:
                await ctx.delete(job)

    return operator


def _job(table: Timetable, due: datetime) -> Job:
    container = Container(name="work", image="work")
    template = PodTemplateSpec(spec=PodSpec(containers=[container], restart_policy="Never"))
    name = job_name(table.metadata.name or "", due)
    metadata = ObjectMeta(name=name, namespace=table.metadata.namespace)
    return Job(metadata=metadata, spec=JobSpec(template=template))


def job_name(table: str, due: datetime) -> str:
    return f"{table}-{int(due.timestamp()) // 60}"


def _scheduled(job: Job) -> Time:
    """The time that it was made for."""
    return Time.of(datetime.fromtimestamp(int(_name(job).rpartition("-")[2]) * 60, UTC))


def _name(job: Job) -> str:
    return job.metadata.name or ""


def _ended(job: Job) -> str:
    """How it ended: "Complete", "Failed", or "" while it is at work."""
    conditions = [] if job.status is None else job.status.conditions or []
    ended = [each.type for each in conditions if each.status == "True"]
    return next((each for each in ended if each in ("Complete", "Failed")), "")
