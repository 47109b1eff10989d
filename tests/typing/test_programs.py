"""Programs as users write them run, and pass ``mypy --strict`` without our configuration."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.py")), ids=lambda program: program.stem)
def test_the_program_runs(program: Path) -> None:
    runpy.run_path(str(program))


def test_the_programs_pass_mypy_strict() -> None:
    settings = ["--strict", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'programs'}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, *map(str, sorted(PROGRAMS.glob("*.py")))],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
