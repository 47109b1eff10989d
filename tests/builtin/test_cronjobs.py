"""CronJobs: schedules, and the Jobs they start on a server in memory, in virtual time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.model import ObjectMeta
from setpoint.api.patches import MergePatch
from setpoint.builtin import cronjobs, jobs
from setpoint.builtin.cronjobs import due
from setpoint.builtin.cronjobs_schedule import parse
from setpoint.builtin.node_pods import Exits, Outcome, Runs
from setpoint.client.client import Client
from setpoint.kube.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from setpoint.kube.core.v1 import Pod
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import cluster, named, template, told

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2030, 1, 1, 12, 0, 10, tzinfo=UTC)


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "after", "comes"),
    [
        ("*/15 * * * *", at(2030, 1, 1, 12, 1), at(2030, 1, 1, 12, 15)),
        ("0 3 * * *", at(2030, 1, 1, 3, 0), at(2030, 1, 2, 3, 0)),
        ("30 4 1,15 * fri", at(2030, 1, 1, 5), at(2030, 1, 4, 4, 30)),  # either day is enough
        ("0 0 13 * */7", at(2030, 1, 1), at(2030, 1, 13)),  # */7 leaves it open, so both must hold
        ("0 0 29 feb *", at(2030, 1, 1), at(2032, 2, 29)),
        ("59 23 31 12 ?", at(2030, 1, 1), at(2030, 12, 31, 23, 59)),
        ("5-10/5 0 * * *", at(2030, 1, 1, 0, 5), at(2030, 1, 1, 0, 10)),
        ("@weekly", at(2030, 1, 1), at(2030, 1, 6)),
        ("@every 90m", at(2030, 1, 1), at(2030, 1, 1, 1, 30)),
    ],
)
def test_the_next_time_of_a_schedule(text: str, after: datetime, comes: datetime) -> None:
    assert parse(text).next(after) == comes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * * 7",
        "*/0 * * * *",
        "5-1 * * * *",
        "@often",
        "x * * * *",
    ],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_a_day_that_never_comes_has_no_next_time() -> None:
    assert parse("0 0 31 2 *").next(at(2030, 1, 1)) is None


def test_times_are_those_on_the_wall() -> None:
    assert parse("0 9 * * *", BERLIN).next(at(2030, 7, 1, 12)) == at(2030, 7, 2, 7)
    assert parse("0 9 * * *", BERLIN).next(at(2030, 12, 1, 12)) == at(2030, 12, 2, 8)


def test_a_time_that_the_clock_leaps_over_is_left_out_and_one_shown_twice_comes_twice() -> None:
    nightly = parse("30 2 * * *", BERLIN)
    assert nightly.next(at(2030, 3, 31)) == at(2030, 4, 1, 0, 30), "02:30 is not there on the 31st"
    assert nightly.next(at(2030, 10, 27)) == at(2030, 10, 27, 0, 30)
    assert nightly.next(at(2030, 10, 27, 0, 30)) == at(2030, 10, 27, 1, 30)


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    after=st.integers(0, 3 * 365 * 24 * 60),
)
def test_a_daily_time_comes_within_two_days_and_shows_its_hour(minute: int, hour: int, after: int) -> None:
    begun = at(2029, 1, 1) + timedelta(minutes=after)
    comes = parse(f"{minute} {hour} * * *", BERLIN).next(begun)
    assert comes is not None
    assert begun < comes
    assert (comes - begun).total_seconds() <= 2 * 86400
    shown = comes.astimezone(BERLIN)
    assert (shown.hour, shown.minute) == (hour, minute)


def test_of_many_missed_times_the_last_counts_and_is_found_quickly() -> None:
    found = due(parse("* * * * *"), at(2029, 1, 1), NOON)
    assert found.last == at(2030, 1, 1, 12, 0)
    assert found.next == at(2030, 1, 1, 12, 1)
    assert found.missed > 100


# ---- on a server -----------------------------------------------------------------------------------

ADDS = (cronjobs.add_to, jobs.add_to)


def cron(schedule: str = "* * * * *", **spec: Any) -> CronJob:
    template_of_job = JobTemplateSpec(
        metadata=ObjectMeta(labels={"made": "by-cron"}),
        spec=JobSpec(template=template(restart_policy="Never", app="c")),
    )
    return CronJob(
        metadata=named("c"), spec=CronJobSpec(schedule=schedule, job_template=template_of_job, **spec)
    )


async def started(client: Client) -> list[Job]:
    found = await client.list(Job, namespace="default", labels={"made": "by-cron"})
    return [job for job in found if job.metadata.deletion_timestamp is None]


async def read(client: Client) -> CronJob:
    return await client.get(CronJob, "c", namespace="default")


def runs(_: Pod) -> Outcome:
    return Runs()


def fails(_: Pod) -> Outcome:
    return Exits(1)


@pytest.mark.virtual_time
async def test_a_job_is_started_each_time_and_three_are_kept() -> None:
    async with cluster(*ADDS, start=NOON) as client:
        made = await client.create(cron())

        async def first() -> list[Job]:
            return await started(client)

        (job,) = await eventually(first, timeout=90)
        minute = int(at(2030, 1, 1, 12, 1).timestamp()) // 60
        assert job.metadata.name == f"c-{minute}"
        (owner,) = job.metadata.owner_references or []
        assert (owner.kind, owner.uid, owner.controller) == ("CronJob", made.metadata.uid, True)
        stamp = (job.metadata.annotations or {})["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp == "2030-01-01T12:01:00Z"
        await asyncio.sleep(600)
        found = await read(client)
        assert found.status.last_schedule_time == at(2030, 1, 1, 12, 11)
        assert found.status.last_successful_time is not None
        assert len(await started(client)) == 3
        events = await told(client, "CronJob")
        assert ("SuccessfulCreate", f"Created job c-{minute}") in events
        assert ("SawCompletedJob", f"Saw completed job: c-{minute}, condition: Complete") in events
        assert ("SuccessfulDelete", f"Deleted job c-{minute}") in events


@pytest.mark.virtual_time
async def test_forbid_starts_none_while_one_runs() -> None:
    async with cluster(*ADDS, outcome=runs, start=NOON) as client:
        await client.create(cron(concurrency_policy="Forbid"))
        await asyncio.sleep(300)
        assert len(await started(client)) == 1
        found = await read(client)
        assert [each.name for each in found.status.active or ()] == [
            job.metadata.name for job in await started(client)
        ]
        assert "JobAlreadyActive" in {reason for reason, _ in await told(client, "CronJob")}


@pytest.mark.virtual_time
async def test_replace_ends_the_one_that_runs() -> None:
    async with cluster(*ADDS, outcome=runs, start=NOON) as client:
        await client.create(cron(concurrency_policy="Replace"))
        await asyncio.sleep(230)
        (job,) = await started(client)
        assert job.metadata.name == f"c-{int(at(2030, 1, 1, 12, 4).timestamp()) // 60}"


@pytest.mark.virtual_time
async def test_allow_starts_them_side_by_side() -> None:
    async with cluster(*ADDS, outcome=runs, start=NOON) as client:
        await client.create(cron(concurrency_policy="Allow"))
        await asyncio.sleep(230)
        assert len(await started(client)) == 4
        assert len((await read(client)).status.active or ()) == 4


@pytest.mark.virtual_time
async def test_while_suspended_nothing_starts_and_what_was_missed_too_long_ago_is_left_out() -> None:
    async with cluster(*ADDS, start=NOON) as client:
        await client.create(cron("0 * * * *", suspend=True, starting_deadline_seconds=600))
        await asyncio.sleep(3600 + 1800)
        assert not await started(client)
        patch = MergePatch({"spec": {"suspend": False}})
        await client.patch(CronJob, "c", patch, namespace="default")
        await asyncio.sleep(60)
        assert not await started(client), "13:00 is half an hour ago"
        await asyncio.sleep(1800)
        assert len(await started(client)) == 1


@pytest.mark.virtual_time
async def test_a_start_missed_a_moment_ago_is_made_up_for_once() -> None:
    async with cluster(*ADDS, outcome=runs, start=NOON) as client:
        await client.create(cron(suspend=True))
        await asyncio.sleep(600)
        await client.patch(CronJob, "c", MergePatch({"spec": {"suspend": False}}), namespace="default")
        await asyncio.sleep(5)
        assert len(await started(client)) == 1


@pytest.mark.virtual_time
async def test_a_schedule_is_read_in_its_time_zone() -> None:
    async with cluster(*ADDS, start=NOON) as client:
        await client.create(cron("0 9 * * *", time_zone="America/New_York"))
        await asyncio.sleep(3600 * 3)
        (job,) = await started(client)
        stamp = (job.metadata.annotations or {})["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp == "2030-01-01T09:00:00-05:00"


@pytest.mark.virtual_time
async def test_of_jobs_that_fail_one_is_kept() -> None:
    async with cluster(*ADDS, outcome=fails, start=NOON) as client:
        made = cron("*/5 * * * *")
        made.spec.job_template.spec.backoff_limit = 0
        await client.create(made)
        await asyncio.sleep(1800)
        ended = [job for job in await started(client) if job.status.failed]
        assert len(ended) == 1
