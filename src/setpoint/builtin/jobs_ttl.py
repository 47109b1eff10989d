"""Deletes Jobs some time after they are over, where they say so: ``ttlSecondsAfterFinished``.

The time counts from when the Job was said to be complete or failed.  It is deleted in the foreground, so that
its pods go first, and only if it still is the one that was looked at.
"""

from __future__ import annotations

from datetime import datetime

from setpoint.builtin.jobs_steps import finished
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.result import Request, Result
from setpoint.kube.batch.v1 import Job

NAME = "ttl-after-finished-controller"


def seconds_left(job: Job, now: datetime) -> float | None:
    """For how long a Job that is over is kept; None if it is not over, or is kept for good."""
    over, kept = finished(job), job.spec.ttl_seconds_after_finished
    if over is None or kept is None or over.last_transition_time is None:
        return None
    return over.last_transition_time.timestamp() + kept - now.timestamp()


def add_to(parts: Parts) -> Controller:
    """Have Jobs deleted after their time."""
    means = Means(NAME, parts)

    async def reconcile(request: Request) -> Result:
        job = await ignore_not_found(means.client.get(Job, request.name, namespace=request.namespace))
        if job is None or job.metadata.deletion_timestamp is not None:
            return Result()
        left = seconds_left(job, means.now())
        if left is None or left > 0:
            return look_again(left)
        metadata = job.metadata
        await ignore_not_found(
            means.client.delete(
                job,
                propagation="Foreground",
                uid=metadata.uid or "",
                resource_version=metadata.resource_version or "",
            )
        )
        return Result()

    return complete(means.building(workers=2).for_(Job), reconcile)
