"""Decides what a Job does next: which pods to make and delete, how its counts stand, and when it is over.

A pod counts once, when it has ended: it carries a finalizer until it is counted, so that none is lost.  Its
uid goes into ``status.uncountedTerminatedPods``, then the finalizer goes, then the count is raised.  Who is
interrupted anywhere in between can tell from the pods and the lists where it was.

A Job is over in two steps: first it is said that it will be (``SuccessCriteriaMet``, ``FailureTarget``), and
when no pod is left, that it is (``Complete``, ``Failed``).

Indexed Jobs have one pod for each index; which are done is written as ``0-3,5``.  Failed pods are made again
after a pause that doubles, from 10 seconds to 10 minutes.

Pure: ``jobs.py`` reads, carries out, and gives the time.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final

from setpoint.api.times import Time
from setpoint.builtin.pods import PodState, has_ended, is_active, is_ready, is_terminating
from setpoint.kube.batch.v1 import (
    Job,
    JobCondition,
    JobStatus,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    UncountedTerminatedPods,
)

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0
_AT_ONCE: Final = 500  # pods that are counted in one look


# ---- indexes ---------------------------------------------------------------------------------------


def read_indexes(text: str | None) -> set[int]:
    """``0-3,5`` → {0, 1, 2, 3, 5}."""
    found = set[int]()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def write_indexes(indexes: Iterable[int]) -> str:
    """{0, 1, 2, 3, 5} → ``0-3,5``."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    # Two in a row are written as two, three and more as a run.
    return ",".join(f"{a}" if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)


def index_of(pod: PodState) -> int | None:
    try:
        return int((pod.metadata.annotations or {})[INDEX])
    except (KeyError, ValueError):
        return None


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


# ---- conditions ------------------------------------------------------------------------------------


def find(status: JobStatus, kind: str) -> JobCondition | None:
    """A condition that holds."""
    return next(
        (each for each in status.conditions or () if each.type == kind and each.status == "True"), None
    )


def is_finished(job: Job) -> bool:
    return finished(job) is not None


def finished(job: Job) -> JobCondition | None:
    return find(job.status, "Complete") or find(job.status, "Failed")


def condition(kind: str, reason: str, message: str, now: Time, status: str = "True") -> JobCondition:
    return JobCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=now,
        last_transition_time=now,
    )


def put(status: JobStatus, new: JobCondition) -> None:
    """Have the status say it; a condition that is there is replaced where it stands."""
    known = list(status.conditions or ())
    for place, each in enumerate(known):
        if each.type == new.type:
            if each.status != new.status or each.reason != new.reason:
                known[place] = new
            break
    else:
        known.append(new)
    status.conditions = known


# ---- a look ----------------------------------------------------------------------------------------


@dataclass
class Plan:
    """What a look does; the status is written before finalizers are removed, and once more after."""

    status: JobStatus
    create: list[int | None] = field(default_factory=list)  # one for each pod: its index, if it has one
    delete: list[PodState] = field(default_factory=list)  # to be deleted, and counted as failed
    remove: list[PodState] = field(default_factory=list)  # to be deleted without being counted
    count: list[PodState] = field(default_factory=list)  # to lose their finalizer, and be counted
    told: list[tuple[bool, str, str]] = field(default_factory=list)  # Events: whether it is bad, reason, note
    has_more: bool = False  # there is more to be counted, in the next look
    wait: float | None = None


@dataclass(frozen=True)
class View:
    """What is known of a Job when it is looked at."""

    job: Job
    pods: Sequence[PodState]
    now: Time

    # What the pods say.

    @cached_property
    def active(self) -> list[PodState]:
        return [pod for pod in self.pods if is_active(pod)]

    @cached_property
    def terminating(self) -> list[PodState]:
        return [pod for pod in self.pods if is_terminating(pod) and not has_ended(pod)]

    @cached_property
    def listed(self) -> set[str]:
        lists = self.job.status.uncounted_terminated_pods or UncountedTerminatedPods()
        return {*(lists.succeeded or ()), *(lists.failed or ())}

    @cached_property
    def ended(self) -> list[PodState]:
        """What has yet to be counted and is in no list."""
        return [
            pod
            for pod in self.pods
            if _is_tracked(pod) and pod.metadata.uid not in self.listed and self._is_over(pod)
        ]

    def _is_over(self, pod: PodState) -> bool:
        return pod.status.phase == "Succeeded" or self.is_failed(pod)

    def is_failed(self, pod: PodState) -> bool:
        if pod.status.phase == "Failed":
            return True
        is_leaving = is_terminating(pod) and pod.status.phase != "Succeeded"
        return is_leaving and not self.waits_for_end

    @property
    def waits_for_end(self) -> bool:
        """Whether a pod that is being deleted is replaced, and counted, only when it has ended."""
        spec = self.job.spec
        return spec.pod_replacement_policy == "Failed" or spec.pod_failure_policy is not None

    # What counts.

    @cached_property
    def succeeded_indexes(self) -> set[int]:
        done = read_indexes(self.job.status.completed_indexes)
        new = {
            index
            for pod in self.pods
            if pod.status.phase == "Succeeded" and (index := index_of(pod)) is not None
        }
        return {each for each in done | new if each < (self.job.spec.completions or 0)}

    @cached_property
    def failed_indexes(self) -> set[int]:
        limit = self.job.spec.backoff_limit_per_index
        if limit is None:
            return set()
        new = {
            index
            for pod in self.pods
            if self.is_failed(pod) and (index := index_of(pod)) is not None
            if failures_before(pod) >= limit or self._rule(pod) == "FailIndex"
        }
        return (read_indexes(self.job.status.failed_indexes) | new) - self.succeeded_indexes

    @cached_property
    def succeeded(self) -> int:
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        lists = self.job.status.uncounted_terminated_pods or UncountedTerminatedPods()
        new = sum(pod.status.phase == "Succeeded" for pod in self.ended)
        return (self.job.status.succeeded or 0) + len(lists.succeeded or ()) + new

    @cached_property
    def failed(self) -> int:
        lists = self.job.status.uncounted_terminated_pods or UncountedTerminatedPods()
        new = sum(self.is_failed(pod) and self._rule(pod) != "Ignore" for pod in self.ended)
        return (self.job.status.failed or 0) + len(lists.failed or ()) + new

    def counts_as_failed(self, pod: PodState) -> bool:
        return self._rule(pod) != "Ignore"

    def _rule(self, pod: PodState) -> str | None:
        """What the failure policy says of a pod that failed."""
        policy = self.job.spec.pod_failure_policy
        if policy is None or not self.is_failed(pod):
            return None
        return next((rule.action for rule in policy.rules if _matches(rule, pod)), None)

    # How it ends.

    def ending(self) -> JobCondition | None:
        """The condition that says that the Job will be over; one that is said already stays."""
        said = find(self.job.status, "FailureTarget") or find(self.job.status, "SuccessCriteriaMet")
        return said or self._failing() or self._succeeding()

    def _failing(self) -> JobCondition | None:
        spec = self.job.spec

        def fails(reason: str, message: str) -> JobCondition:
            return condition("FailureTarget", reason, message, self.now)

        killer = next((pod for pod in self.pods if self._rule(pod) == "FailJob"), None)
        if killer is not None:
            place = next(
                i for i, rule in enumerate(spec.pod_failure_policy.rules if spec.pod_failure_policy else ())
                if _matches(rule, killer)
            )  # fmt: skip
            return fails("PodFailurePolicy", _say_match(killer, place))
        if spec.backoff_limit_per_index is None and (
            self.failed > self._limit or self._restarts_exceed_limit()
        ):
            return fails("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if self._is_late():
            return fails("DeadlineExceeded", "Job was active longer than specified deadline")
        if spec.max_failed_indexes is not None and len(self.failed_indexes) > spec.max_failed_indexes:
            return fails(
                "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
            )
        if self.failed_indexes and len(self.failed_indexes) + len(self.succeeded_indexes) >= (
            spec.completions or 0
        ):
            return fails("FailedIndexes", "Job has failed indexes")
        return None

    def _succeeding(self) -> JobCondition | None:
        spec = self.job.spec
        if is_indexed(self.job) and (rule := self._success_rule()) is not None:
            return condition(
                "SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {rule}", self.now
            )
        if spec.suspend and spec.completions != 0:
            return None
        if spec.completions is None:
            is_done = self.succeeded > 0 and not self.active
        else:
            is_done = self.succeeded >= spec.completions
        if not is_done:
            return None
        message = "Reached expected number of succeeded pods"
        return condition("SuccessCriteriaMet", "CompletionsReached", message, self.now)

    def _success_rule(self) -> int | None:
        policy = self.job.spec.success_policy
        for place, rule in enumerate(policy.rules if policy is not None else ()):
            wanted = (
                self.succeeded_indexes & read_indexes(rule.succeeded_indexes)
                if rule.succeeded_indexes is not None
                else self.succeeded_indexes
            )
            needed = rule.succeeded_count
            if needed is None:
                needed = len(read_indexes(rule.succeeded_indexes))
            if len(wanted) >= needed:
                return place
        return None

    @property
    def _limit(self) -> int:
        return 6 if self.job.spec.backoff_limit is None else self.job.spec.backoff_limit

    def _restarts_exceed_limit(self) -> bool:
        """Whether containers that are restarted in place were so too often."""
        if self.job.spec.template.spec.restart_policy != "OnFailure":
            return False
        restarts: int = sum(
            each.restart_count
            for pod in self.active
            for each in [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
        )
        return restarts > 0 if self._limit == 0 else restarts >= self._limit

    def _is_late(self) -> bool:
        left = self.seconds_to_deadline()
        return left is not None and left <= 0

    def seconds_to_deadline(self) -> float | None:
        deadline, began = self.job.spec.active_deadline_seconds, self.job.status.start_time
        if deadline is None or began is None or self.job.spec.suspend:
            return None
        return began.timestamp() + deadline - self.now.timestamp()

    # Which pods.

    def wanted(self) -> int:
        """How many pods should be active."""
        spec = self.job.spec
        parallelism = 1 if spec.parallelism is None else spec.parallelism
        if spec.completions is None:
            return len(self.active) if self.succeeded else parallelism
        if is_indexed(self.job):
            left = spec.completions - len(self.succeeded_indexes) - len(self.failed_indexes)
        else:
            left = spec.completions - self.succeeded
        return max(0, min(parallelism, left))

    def free_indexes(self) -> list[int]:
        """The indexes that have neither ended nor a pod, the lowest first."""
        busy = {index_of(pod) for pod in self.active}
        if self.waits_for_end:
            busy |= {index_of(pod) for pod in self.terminating}
        taken = busy | self.succeeded_indexes | self.failed_indexes
        return [each for each in range(self.job.spec.completions or 0) if each not in taken]

    def pause(self) -> float:
        """For how many seconds no pod is made, because of those that failed."""
        ends = sorted(
            (ended_at(pod) or self.now, pod.status.phase == "Succeeded")
            for pod in self.pods
            if has_ended(pod)
        )
        row = 0
        for _, is_well in ends:
            row = 0 if is_well else row + 1
        if not row:
            return 0.0
        length = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(row - 1, 20))
        return max(0.0, ends[-1][0].timestamp() + length - self.now.timestamp())

    def failures_of(self, index: int) -> int:
        """How often the pod of an index has failed until now."""
        before = [
            failures_before(pod) + 1 for pod in self.pods if index_of(pod) == index and self.is_failed(pod)
        ]
        return max(before, default=0)


def ended_at(pod: PodState) -> datetime | None:
    times = [
        Time.parse(each.state.terminated.finished_at)
        for each in pod.status.container_statuses or ()
        if each.state.terminated is not None and each.state.terminated.finished_at is not None
    ]
    return max(times, default=None)


def failures_before(pod: PodState) -> int:
    try:
        return int((pod.metadata.annotations or {}).get(INDEX_FAILURES, "0"))
    except ValueError:
        return 0


def _is_tracked(pod: PodState) -> bool:
    return FINALIZER in (pod.metadata.finalizers or ())


def _matches(rule: PodFailurePolicyRule, pod: PodState) -> bool:
    if rule.on_exit_codes is not None:
        return pod.status.phase == "Failed" and _has_exit(rule.on_exit_codes, pod)
    return any(
        pattern.type == each.type and (pattern.status or "True") == each.status
        for pattern in rule.on_pod_conditions or ()
        for each in pod.status.conditions or ()
    )


def _has_exit(wanted: PodFailurePolicyOnExitCodesRequirement, pod: PodState) -> bool:
    for each in [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]:
        done = each.state.terminated
        if done is None or done.exit_code == 0 or wanted.container_name not in {None, each.name}:
            continue
        if (done.exit_code in wanted.values) == (wanted.operator == "In"):
            return True
    return False


def _say_match(pod: PodState, place: int) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for each in pod.status.container_statuses or ():
        done = each.state.terminated
        if done is not None and done.exit_code:
            where = f"Container {each.name} for pod {name}"
            return f"{where} failed with exit code {done.exit_code} matching FailJob rule at index {place}"
    return f"Pod {name} has condition matching FailJob rule at index {place}"


# ---- the plan --------------------------------------------------------------------------------------


def plan(view: View) -> Plan:
    """What this look does."""
    job = view.job
    made = Plan(copy.deepcopy(job.status))
    status = made.status
    _settle_suspension(view, made)
    if not job.spec.suspend and status.start_time is None:
        status.start_time = view.now
    ending = view.ending()
    left = len(view.active)
    if ending is not None:
        is_failure = ending.type == "FailureTarget"
        (made.delete if is_failure else made.remove).extend(view.active)
        put(status, ending)
        left = 0
    elif job.spec.suspend:
        made.remove += view.active
        left = 0
    elif job.metadata.deletion_timestamp is None:
        left = _fill(view, made)
    tracked = [pod for pod in view.pods if _is_tracked(pod)]
    going = {pod.metadata.uid for pod in [*view.ended, *made.delete]} | view.listed
    ended = [pod for pod in tracked if pod.metadata.uid in going]
    made.count, made.has_more = ended[:_AT_ONCE], len(ended) > _AT_ONCE
    status.active = left or None
    status.ready = sum(
        is_ready(pod) for pod in view.active if pod not in made.delete and pod not in made.remove
    )
    status.terminating = len(view.terminating) + (len(view.active) - left if left < len(view.active) else 0)
    _list_ended(view, status, made.count)
    deadline = view.seconds_to_deadline() if ending is None else None
    made.wait = min((each for each in (made.wait, deadline) if each is not None), default=None)
    return made


def _settle_suspension(view: View, made: Plan) -> None:
    job, status = view.job, made.status
    suspended = find(status, "Suspended")
    if job.spec.suspend and suspended is None:
        put(status, condition("Suspended", "JobSuspended", "Job suspended", view.now))
        status.start_time = None
        made.told.append((False, "Suspended", "Job suspended"))
    elif not job.spec.suspend and suspended is not None:
        put(status, condition("Suspended", "JobResumed", "Job resumed", view.now, status="False"))
        status.start_time = view.now
        made.told.append((False, "Resumed", "Job resumed"))


def _fill(view: View, made: Plan) -> int:
    """Make what is missing, delete what is too much; how many pods are active then."""
    wanted, there = view.wanted(), len(view.active)
    if there > wanted:
        made.remove += sorted(view.active, key=is_ready)[: there - wanted]
        return wanted
    missing = wanted - there
    if view.waits_for_end:
        missing = max(0, missing - len(view.terminating))
    pause = view.pause() if missing else 0.0
    if pause > 0:
        made.wait = pause
        return there
    if is_indexed(view.job):
        made.create = list(view.free_indexes()[:missing])
    else:
        made.create = [None] * missing
    return there + len(made.create)


def _list_ended(view: View, status: JobStatus, ended: Sequence[PodState]) -> None:
    """Put what has ended on the lists of what is yet to be counted."""
    lists = copy.deepcopy(status.uncounted_terminated_pods) or UncountedTerminatedPods()
    well, badly = list(lists.succeeded or ()), list(lists.failed or ())
    for pod in ended:
        uid = pod.metadata.uid or ""
        if uid in view.listed:
            continue
        if pod.status.phase == "Succeeded":
            if not is_indexed(view.job):
                well.append(uid)
        elif view.counts_as_failed(pod):
            badly.append(uid)
    status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=well or None, failed=badly or None)
    if is_indexed(view.job):
        status.completed_indexes = write_indexes(view.succeeded_indexes) or None
        status.succeeded = len(view.succeeded_indexes) or None
        if view.job.spec.backoff_limit_per_index is not None:
            status.failed_indexes = write_indexes(view.failed_indexes)


def settle(view: View, made: Plan, uncounted: Counter[str]) -> JobStatus:
    """The status after finalizers were removed; ``uncounted`` are the uids of pods that still carry one."""
    status = copy.deepcopy(made.status)
    lists = status.uncounted_terminated_pods or UncountedTerminatedPods()
    well = [uid for uid in lists.succeeded or () if uid not in uncounted]
    badly = [uid for uid in lists.failed or () if uid not in uncounted]
    status.succeeded = ((status.succeeded or 0) + len(well)) or None
    status.failed = ((status.failed or 0) + len(badly)) or None
    status.uncounted_terminated_pods = UncountedTerminatedPods(
        succeeded=[uid for uid in lists.succeeded or () if uid in uncounted] or None,
        failed=[uid for uid in lists.failed or () if uid in uncounted] or None,
    )
    is_clear = not (
        status.uncounted_terminated_pods.succeeded or status.uncounted_terminated_pods.failed or uncounted
    )
    is_empty = not status.active and not status.terminating and not made.delete and not made.remove
    if is_clear and is_empty and not made.has_more:
        _finish(view, made, status)
    return status


def _finish(view: View, made: Plan, status: JobStatus) -> None:
    well, badly = find(status, "SuccessCriteriaMet"), find(status, "FailureTarget")
    if badly is not None:
        put(status, condition("Failed", badly.reason or "", badly.message or "", view.now))
        made.told.append((True, badly.reason or "", badly.message or ""))
    elif well is not None:
        put(status, condition("Complete", well.reason or "", well.message or "", view.now))
        status.completion_time = view.now
        made.told.append((False, "Completed", "Job completed"))
