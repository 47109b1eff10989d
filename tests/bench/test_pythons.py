"""Which Python the benches run with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import pythons
from bench.pythons import Python

FAST = Python("/fast", "3.13.1", 0.05)
OURS = Python("/ours", "3.11.7", 0.08)


def test_the_fastest_is_taken_where_that_is_worth_it() -> None:
    assert pythons.choose([FAST, OURS], OURS.executable) == FAST


@pytest.mark.parametrize("seconds", [0.05, 0.054])
def test_ours_stays_where_no_other_is_much_faster(seconds: float) -> None:
    assert pythons.choose([FAST, OURS._replace(seconds=seconds)], OURS.executable) is None
    assert pythons.choose([FAST], FAST.executable) is None


def test_pythons_on_the_path_are_found_and_measured_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python3", "python3.11"):
        (tmp_path / name).symlink_to(sys.executable)
    for name, script in (("python3.12", "exit 1"), ("python3.13", "exit 0"), ("python3.14", "echo '[]'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    (found,) = pythons.here()

    assert found.executable == pythons.own()
    assert found.version == sys.version.split()[0]
    assert found.seconds > 0


def test_what_is_no_python_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no Python 3\.11 or newer"):
        pythons.hand_over(str(tmp_path / "missing"), [])


def test_with_the_python_it_runs_on_already_nothing_is_handed_over() -> None:
    pythons.hand_over(sys.executable, [])  # else this process would be another now


def test_the_report_says_how_much_slower_the_others_are() -> None:
    said = pythons.described([("3.11.2", 0.05), ("3.11.7", 0.08)])
    assert said == "Python 3.11.2 (of the others here, 3.11.7 takes 1.6 times as long)"
    assert pythons.described([("3.11.2", 0.05)]) == "Python 3.11.2"
