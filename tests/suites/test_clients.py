"""What suites of pytest say is read as they mean it; a suite comes from where it is told, or is not run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.suites import clients
from tests.suites.clients import SUITES, Suite, Unreachable, read_report, source, version

_REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest">
<testcase classname="tests.e2e.test_a" name="test_fine"/>
<testcase classname="tests.e2e.test_a.TestOne" name="test_fine"/>
<testcase classname="tests.e2e.test_a" name="test_wrong"><failure message="odd">at line 7</failure></testcase>
<testcase classname="tests.e2e.test_a" name="test_unready"><error message="no cluster"/></testcase>
<testcase classname="tests.e2e.test_a" name="test_untidy"/>
<testcase classname="tests.e2e.test_a" name="test_untidy"><error message="it stayed"/></testcase>
<testcase classname="tests.e2e.test_a" name="test_other"><skipped message="not here"/></testcase>
</testsuite></testsuites>
"""
_SAID = """
RERUN tests/e2e/test_a.py::test_wrong
RERUN tests/e2e/test_a.py::TestOne::test_fine - RuntimeError: there is
FAILED tests/e2e/test_a.py::test_wrong
"""


def test_what_fails_before_or_after_a_test_fails_it() -> None:
    found = dict(read_report(_REPORT, _SAID))
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "test_a.test_fine": "passed",
        "TestOne.test_fine": "passed",
        "test_a.test_wrong": "failed",
        "test_a.test_unready": "failed",
        "test_a.test_untidy": "failed",
        "test_a.test_other": "skipped",
    }
    assert found["test_a.test_wrong"][1] == "odd\nat line 7"
    assert found["TestOne.test_fine"][1] == "at another try"
    assert found["test_a.test_fine"][1] == ""
    assert found["test_a.test_other"][1] == "not here"


def test_every_client_is_locked() -> None:
    assert all(version(name)[0].isdigit() for name in SUITES)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite in a git repository here, and no other of its name."""
    place = tmp_path / "repository"
    (place / "e2e").mkdir(parents=True)
    (place / "e2e" / "test_it.py").write_text("def test_it(): ...\n")
    (place / "other.py").touch()
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "someone")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # nothing of the user's
    for command in ("init --quiet", "add .", "commit --quiet --message=first"):
        subprocess.run(["git", *command.split()], cwd=place, check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=place, check=True, capture_output=True, text=True
    ).stdout.strip()
    monkeypatch.setattr(clients, "CACHE", tmp_path / "cache")
    suite = Suite(("e2e",), (), str(tmp_path / "nowhere"), commit)
    monkeypatch.setitem(clients.SUITES, "light-kite", suite)
    monkeypatch.setenv("LIGHT_KITE_GIT", str(place))
    return suite


@pytest.mark.usefixtures("repository")
def test_a_suite_comes_from_the_repository_that_is_named() -> None:
    folder = source("light-kite")
    assert sorted(each.name for each in folder.iterdir()) == [".git", ".whole", "e2e"]
    assert source("light-kite") == folder


@pytest.mark.usefixtures("repository")
def test_a_suite_that_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIGHT_KITE_GIT")
    with pytest.raises(Unreachable, match=r"light-kite: git .* fetch"):
        source("light-kite")
