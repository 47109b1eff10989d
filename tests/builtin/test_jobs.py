"""Jobs run to their end, good or bad, on a server in memory with a node whose pods end as told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.patches import MergePatch
from setpoint.builtin import jobs, jobs_ttl
from setpoint.builtin.jobs_steps import FINALIZER, read_indexes, write_indexes
from setpoint.builtin.node_pods import Exits, Outcome, Runs
from setpoint.client.client import Client
from setpoint.errors import NotFound
from setpoint.kube.batch.v1 import Job, JobSpec
from setpoint.kube.core.v1 import Pod
from setpoint.testing.waiting import eventually
from tests.builtin.workloads import cluster, conditions, named, pods, template, told

INDEX = "batch.kubernetes.io/job-completion-index"
COMPLETE = {
    "SuccessCriteriaMet": ("True", "CompletionsReached"),
    "Complete": ("True", "CompletionsReached"),
}


def job(**spec: Any) -> Job:
    return Job(metadata=named("j"), spec=JobSpec(template=template(restart_policy="Never", app="j"), **spec))


async def until(client: Client, check: Callable[[Job], bool], timeout: float = 600.0) -> Job:
    async def look() -> Job | None:
        found = await client.get(Job, "j", namespace="default")
        return found if check(found) else None

    return await eventually(look, timeout=timeout)


def is_over(found: Job) -> bool:
    return bool({"Complete", "Failed"} & set(conditions(found)))


def runs(_: Pod) -> Outcome:
    return Runs()


def fails(_: Pod) -> Outcome:
    return Exits(1)


@pytest.mark.virtual_time
async def test_a_job_completes_in_the_states_that_kubernetes_shows() -> None:
    async with cluster(jobs.add_to) as client:
        await client.create(job(completions=3, parallelism=2))
        found = await until(client, is_over)
        status = found.status
        assert conditions(found) == COMPLETE
        assert (status.succeeded, status.failed, status.active, status.terminating, status.ready) == (
            3, None, None, 0, 0,
        )  # fmt: skip
        assert status.uncounted_terminated_pods is not None
        assert status.uncounted_terminated_pods.succeeded is None
        assert status.start_time is not None
        assert status.completion_time is not None
        there = await pods(client)
        assert len(there) == 3
        assert all(pod.metadata.generate_name == "j-" and not pod.metadata.finalizers for pod in there)

        async def all_told() -> bool:
            reasons = Counter(reason for reason, _ in await told(client, "Job"))
            return reasons == {"SuccessfulCreate": 3, "Completed": 1}

        await eventually(all_told)


@pytest.mark.virtual_time
async def test_no_more_pods_run_at_once_than_wanted() -> None:
    async with cluster(jobs.add_to, outcome=runs) as client:
        await client.create(job(completions=5, parallelism=2))
        found = await until(client, lambda found: found.status.ready == 2)
        assert found.status.active == 2
        await asyncio.sleep(60)
        assert len(await pods(client)) == 2


@pytest.mark.virtual_time
async def test_a_job_whose_pods_fail_is_given_up_beyond_its_limit() -> None:
    async with cluster(jobs.add_to, outcome=fails) as client:
        await client.create(job(backoff_limit=2))
        found = await until(client, is_over)
        assert conditions(found) == {
            "FailureTarget": ("True", "BackoffLimitExceeded"),
            "Failed": ("True", "BackoffLimitExceeded"),
        }
        assert found.status.failed == 3
        assert found.status.completion_time is None
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in await told(
            client, "Job"
        )


@pytest.mark.virtual_time
async def test_a_job_that_takes_too_long_is_ended() -> None:
    async with cluster(jobs.add_to, outcome=runs) as client:
        await client.create(job(active_deadline_seconds=30))
        found = await until(client, is_over)
        assert conditions(found)["Failed"] == ("True", "DeadlineExceeded")
        assert (found.status.failed, found.status.active) == (1, None)

        async def gone() -> bool:
            return not await pods(client)

        await eventually(gone)


@pytest.mark.virtual_time
async def test_an_indexed_job_runs_each_index_once() -> None:
    async with cluster(jobs.add_to) as client:
        await client.create(job(completions=4, parallelism=4, completion_mode="Indexed"))
        found = await until(client, is_over)
        assert conditions(found) == COMPLETE
        assert (found.status.completed_indexes, found.status.succeeded) == ("0-3", 4)
        there = await pods(client)
        assert sorted((pod.metadata.annotations or {})[INDEX] for pod in there) == ["0", "1", "2", "3"]
        for pod in there:
            index = (pod.metadata.labels or {})[INDEX]
            assert pod.spec.hostname == f"j-{index}"
            assert (pod.metadata.name or "").startswith(f"j-{index}-")
            assert [each.name for each in pod.spec.containers[0].env or ()] == ["JOB_COMPLETION_INDEX"]


@pytest.mark.virtual_time
async def test_an_index_that_fails_too_often_fails_alone() -> None:
    def outcome(pod: Pod) -> Outcome:
        return Exits(1) if (pod.metadata.annotations or {}).get(INDEX) == "1" else Exits(0)

    async with cluster(jobs.add_to, outcome=outcome) as client:
        await client.create(
            job(completions=3, parallelism=3, completion_mode="Indexed", backoff_limit_per_index=1)
        )
        found = await until(client, is_over)
        assert conditions(found)["Failed"] == ("True", "FailedIndexes")
        assert (found.status.completed_indexes, found.status.failed_indexes) == ("0,2", "1")
        assert found.status.failed == 2


@pytest.mark.virtual_time
async def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async with cluster(jobs.add_to, outcome=runs) as client:
        await client.create(job())
        await until(client, lambda found: found.status.ready == 1)
        await client.patch(Job, "j", MergePatch({"spec": {"suspend": True}}), namespace="default")
        found = await until(
            client, lambda found: conditions(found) == {"Suspended": ("True", "JobSuspended")}
        )
        assert found.status.start_time is None

        async def gone() -> bool:
            return not await pods(client)

        await eventually(gone)
        found = await until(client, lambda found: not found.status.terminating)
        assert found.status.failed is None
        await client.patch(Job, "j", MergePatch({"spec": {"suspend": False}}), namespace="default")
        found = await until(client, lambda found: found.status.ready == 1)
        assert conditions(found) == {"Suspended": ("False", "JobResumed")}
        assert [reason for reason, _ in await told(client, "Job") if not reason.startswith("Succ")] == [
            "Suspended", "Resumed",
        ]  # fmt: skip


@pytest.mark.virtual_time
async def test_pods_of_a_job_that_is_gone_do_not_hang_on_its_finalizer() -> None:
    async with cluster(jobs.add_to, outcome=runs) as client:
        await client.create(job())
        await until(client, lambda found: found.status.ready == 1)
        await client.delete(Job, "j", namespace="default", propagation="Background")
        (pod,) = await pods(client)
        assert pod.metadata.finalizers == [FINALIZER]
        await client.delete(pod)  # as the garbage collector does, which is not here

        async def gone() -> bool:
            return not await pods(client)

        await eventually(gone)


@pytest.mark.virtual_time
async def test_a_job_is_deleted_when_its_time_after_the_end_is_over() -> None:
    async with cluster(jobs.add_to, jobs_ttl.add_to) as client:
        await client.create(job(ttl_seconds_after_finished=100))
        await until(client, is_over)
        await asyncio.sleep(50)
        await until(client, is_over)

        async def leaving() -> bool:
            try:
                found = await client.get(Job, "j", namespace="default")
            except NotFound:
                return True
            return found.metadata.deletion_timestamp is not None

        await eventually(leaving, timeout=120)


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_written_as_they_are_read(indexes: set[int]) -> None:
    assert read_indexes(write_indexes(indexes)) == indexes


def test_three_indexes_in_a_row_are_a_run() -> None:
    assert write_indexes({0, 1, 2, 3, 5, 7, 8}) == "0-3,5,7,8"
