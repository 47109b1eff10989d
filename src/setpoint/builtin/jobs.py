"""Runs the pods of a Job until enough of them have ended well, or too many badly.

Each look claims the Job's pods, makes and deletes what ``jobs_steps.py`` decides on, writes what is to be
counted, takes the finalizers from those pods, and writes the counts.  Pods that were the Job's and are left
over when it is gone lose their finalizer too: nobody else would ever remove it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from setpoint.api.patches import StrategicPatch
from setpoint.builtin.jobs_steps import (
    FINALIZER,
    INDEX,
    INDEX_FAILURES,
    Plan,
    View,
    is_finished,
    plan,
    settle,
)
from setpoint.builtin.parts import Parts
from setpoint.builtin.pods import PodControl, PodState, pod_from
from setpoint.builtin.pods_claims import claim, claims_of, selector_of
from setpoint.builtin.pods_means import Means, complete, look_again
from setpoint.client.client import ignore_not_found
from setpoint.controller.controller import Controller
from setpoint.controller.owners import controller_of
from setpoint.controller.predicates import Predicate
from setpoint.controller.result import Request, Result
from setpoint.errors import NotFound
from setpoint.kube.batch.v1 import Job
from setpoint.kube.core.v1 import EnvVar, EnvVarSource, ObjectFieldSelector, Pod

NAME = "job-controller"
_WORKERS = 5
_MANAGED_BY = "kubernetes.io/job-controller"
_INDEX_ENV = "JOB_COMPLETION_INDEX"


class Jobs:
    """The reconciler."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._client = means.client
        self._control = PodControl(means)

    async def reconcile(self, request: Request) -> Result:
        job = await ignore_not_found(self._client.get(Job, request.name, namespace=request.namespace))
        if job is None or job.spec.managed_by not in {None, _MANAGED_BY}:
            return Result()
        more = {"finalizers": [FINALIZER]}
        pods = await claim(self._means, job, selector_of(job), PodState, more=more)
        if is_finished(job) or job.metadata.deletion_timestamp is not None:
            await self._let_go([pod for pod in pods if FINALIZER in (pod.metadata.finalizers or ())])
            return Result()
        view = View(job, pods, self._means.now())
        made = plan(view)
        await self._carry_out(view, made)
        job = await self._write(job, made)
        held = await self._let_go(made.count)
        made.status = job.status
        job.status = settle(view, made, Counter(held))
        if job.status != made.status:
            await self._client.update_status(job)
        self._tell(job, made)
        return look_again(made.wait)

    async def _carry_out(self, view: View, made: Plan) -> None:
        job = view.job
        await self._let_go([pod for pod in made.remove if FINALIZER in (pod.metadata.finalizers or ())])
        gone = await self._control.delete(job, [*made.delete, *made.remove])
        done = await self._control.create(
            job,
            [new_pod(job, index, 0 if index is None else view.failures_of(index)) for index in made.create],
        )
        if done.error is not None:
            missing = len(made.create) - done.count
            made.status.active = max(0, (made.status.active or 0) - missing) or None
        gone.check()
        done.check()

    async def _write(self, job: Job, made: Plan) -> Job:
        if made.status == job.status:
            return job
        job.status = made.status
        return await self._client.update_status(job)

    async def _let_go(self, pods: Sequence[PodState]) -> list[str]:
        """Take the finalizer from pods; the uids of those that could not be."""
        done = await asyncio.gather(*map(self._let_one_go, pods))
        return [pod.metadata.uid or "" for pod, is_done in zip(pods, done, strict=True) if not is_done]

    async def _let_one_go(self, pod: PodState) -> bool:
        patch = StrategicPatch(
            {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        )
        with suppress(NotFound):
            await self._client.patch(pod, patch)
        return True

    def _tell(self, job: Job, made: Plan) -> None:
        for is_bad, reason, note in made.told:
            (self._means.warn if is_bad else self._means.tell)(job, reason, note)


def new_pod(job: Job, index: int | None, failures: int) -> Pod:
    """A pod of the Job, for an index where it has them."""
    pod = pod_from(job.spec.template, job)
    pod.metadata.finalizers = [*(pod.metadata.finalizers or ()), FINALIZER]
    if index is None:
        return pod
    pod.metadata.generate_name = f"{job.metadata.name}-{index}-"
    pod.metadata.labels = {**(pod.metadata.labels or {}), INDEX: str(index)}
    pod.metadata.annotations = {**(pod.metadata.annotations or {}), INDEX: str(index)}
    if job.spec.backoff_limit_per_index is not None:
        pod.metadata.annotations[INDEX_FAILURES] = str(failures)
    pod.spec.hostname = f"{job.metadata.name}-{index}"
    for container in [*pod.spec.containers, *(pod.spec.init_containers or ())]:
        if all(each.name != _INDEX_ENV for each in container.env or ()):
            source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
            container.env = [*(container.env or ()), EnvVar(name=_INDEX_ENV, value_from=source)]
    return pod


# ---- what is left of Jobs that are gone ------------------------------------------------------------


class Leftovers:
    """Takes the finalizer from pods whose Job is gone, or does not want them any more."""

    def __init__(self, means: Means) -> None:
        self._client = means.client

    async def reconcile(self, request: Request) -> None:
        pod = await ignore_not_found(self._client.get(PodState, request.name, namespace=request.namespace))
        if pod is None or FINALIZER not in (pod.metadata.finalizers or ()):
            return
        owner = controller_of(pod)
        if owner is not None and owner.kind == "Job":
            # The server itself is asked: that a Job is not seen yet does not mean that there is none.
            job = await ignore_not_found(self._client.live.get(Job, owner.name, namespace=request.namespace))
            if job is not None and job.metadata.uid == owner.uid and not is_finished(job):
                return
        patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        await ignore_not_found(self._client.patch(pod, StrategicPatch(patch)))


_is_left = Predicate(
    lambda seen: (
        FINALIZER in (seen.snapshot.metadata.finalizers or ())
        and (bool(seen.snapshot.metadata.deletion_timestamp) or seen.snapshot.metadata.controller is None)
    ),
    "carries a Job's finalizer and is being deleted, or has no controller",
)


def add_to(parts: Parts) -> Controller:
    """Have Jobs run."""
    means = Means(NAME, parts)
    left = Means("job-leftovers", parts)
    complete(left.building(2).for_(PodState, when=_is_left), Leftovers(left).reconcile)
    building = claims_of(means.building(_WORKERS).for_(Job), means, Job, PodState)
    return complete(building, Jobs(means).reconcile)
