"""The timetable survives; and the mistakes that were made in what it is ported from are found."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from setpoint.testing.proof.plans import Change, Create, Delete, Pass, Step
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.report import Report
from setpoint.testing.virtual_time import BEGINNING
from tests.ported.timetable import Mistake, job_name, timetables

API = "ported.setpoint.dev/v1"
JOB = job_name("t", BEGINNING + timedelta(minutes=70))
# More than an hour ahead: that nothing is written an hour later is one of the things that are looked at.
SPEC = {"schedule": "10 1 * * *", "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1}


def finished() -> Step:
    """The Job is done, as the controller of Jobs says it."""
    now = "2030-01-01T01:11:00Z"
    when = {"lastProbeTime": now, "lastTransitionTime": now, "reason": "Done", "message": ""}
    conditions: list[dict[str, Any]] = [
        {"type": each, "status": "True", **when} for each in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}
    return Change("batch/v1", "Job", JOB, {"status": status}, subresource="status")


LIFE: list[Step] = [
    Create(
        {
            "apiVersion": API,
            "kind": "Timetable",
            "metadata": {"name": "t", "namespace": "default"},
            "spec": SPEC,
        }
    ),
    Pass(4300),
    finished(),
    Delete("batch/v1", "Job", JOB),
    Delete(API, "Timetable", "t"),
]


def proven(mistake: Mistake, *only: str, most_of_class: int | None = None) -> Report:
    """What has been scheduled depends on when it was made: a fresh start (O4) is another story."""
    return prove(
        lambda: timetables(mistake),
        steps=LIFE,
        only=only,
        without=["O4"],
        most_of_class=most_of_class,
        most_plans=None if most_of_class else 12,
    )


@pytest.mark.slow
def test_the_timetable_survives() -> None:
    report = proven("", "E1", "E2", "E3", "E4", "E7", "V1", "V2", "V3", "V6", "I1", "S1", most_of_class=2)
    assert report.is_good, str(report)


@pytest.mark.slow
def test_a_job_that_was_made_before_a_crash_is_no_failure() -> None:
    """kubernetes/kubernetes#120649"""
    report = proven("already_exists", "E2")
    assert [each.plan.id for each in report.failures], str(report)
    assert f"create jobs.batch default/{JOB}" in str(report.failures[0].plan)


@pytest.mark.slow
@pytest.mark.parametrize("kills", ["V2"])
def test_a_job_that_was_gone_before_it_was_seen_to_end_blocks_nothing(kills: str) -> None:
    """kubernetes/kubernetes#37957"""
    report = proven("blocked", kills)
    assert report.failures, str(report)
    assert "status.active" in str(report.failures[0].first), str(report)
