"""The examples survive: a plan of every class of faults, for all of them take their time.

``SETPOINT_PLANS=2000 pytest -s tests/testing/proof/test_examples.py`` tries so many, each example, and says
what came of them.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from setpoint.api import yaml
from setpoint.testing.proof.kept import read_steps
from setpoint.testing.proof.plans import Create
from setpoint.testing.proof.prove import prove
from setpoint.testing.proof.usual import usual
from setpoint.testing.proof.world import Prepared
from tests.cli.cats import invoke
from tests.pages import ROOT

EXAMPLES = ROOT / "examples"
JOBS = ("job-controller", "node-stand-in")  # its last backup is a Job
LIFE = read_steps(yaml.load((EXAMPLES / "database" / "life.yaml").read_bytes()))

PLANS = int(os.environ.get("SETPOINT_PLANS", "0"))
HOW: dict[str, Any] = {"budget": 36_000, "most_plans": PLANS} if PLANS else {"budget": 60, "most_of_class": 1}


def operator_of(folder: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES / folder))
    sys.modules.pop(folder, None)
    return __import__(folder).operator


@pytest.mark.slow
def test_the_webapp_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    report = prove(operator_of("webapp", monkeypatch), **HOW)
    print(report)  # noqa: T201 - what came of it, with -s
    assert report.is_good, report


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [ROOT / "docs" / "proof.md", EXAMPLES / "README.md"], ids=lambda page: page.name
)
def test_the_command_of_the_pages_finds_nothing(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)  # what fails is kept where it runs
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(
        r"^setpoint (prove examples/database/(?:[^\\\n]|\\\n)+)", page.read_text(), re.MULTILINE
    )
    ran = invoke(*shlex.split(command.replace("\\\n", " ")), "--budget", "5s")
    assert ran.exit_code == 0, ran.output
    assert "ok database-operator" in ran.output


def test_where_nobody_says_what_a_user_does_a_version_is_made_from_its_pattern_and_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = operator_of("database", monkeypatch)
    (create,) = usual(Prepared.of(lambda: operator)).creates
    assert isinstance(create, Create)
    assert create.object["spec"] == {"version": "11.1"}
