"""The examples survive: a plan of every class of faults, for all of them take their time.

``SETPOINT_PLANS=2000 pytest -s tests/testing/proof/test_examples.py`` tries so many, each example, and says
what came of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from setpoint.testing.proof.plans import Change, Create, Delete, Step
from setpoint.testing.proof.prove import prove
from tests.pages import ROOT

API = "demo.setpoint.dev/v1"
DATABASE = {"version": "17.2"}
JOBS = ("job-controller", "node-stand-in")  # its last backup is a Job
LIFE: tuple[Step, ...] = (
    Create(
        {
            "apiVersion": API,
            "kind": "Database",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": DATABASE,
        }
    ),
    Change(API, "Database", "db", {"spec": {"replicas": 2}}),
    Change(API, "Database", "db", {"spec": {"version": "17.3"}}),
    Delete("v1", "Service", "db"),
    Delete("apps/v1", "StatefulSet", "db"),
    Delete(API, "Database", "db"),
)


PLANS = int(os.environ.get("SETPOINT_PLANS", "0"))
HOW: dict[str, Any] = {"budget": 36_000, "most_plans": PLANS} if PLANS else {"budget": 60, "most_of_class": 1}


def operator_of(folder: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    path: Path = ROOT / "examples" / folder
    monkeypatch.syspath_prepend(str(path))
    sys.modules.pop(folder, None)
    return __import__(folder).operator


def test_the_webapp_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    report = prove(operator_of("webapp", monkeypatch), **HOW)
    print(report)  # noqa: T201 - what came of it, with -s
    assert report.is_good, report


def test_the_database_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    report = prove(
        operator_of("database", monkeypatch),
        steps=LIFE,
        keeps=["persistentvolumeclaims"],
        controllers=JOBS,
        **HOW,
    )
    print(report)  # noqa: T201 - what came of it, with -s
    assert report.is_good, report
