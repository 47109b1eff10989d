"""Programs as users write them run, and pass ``mypy --strict`` and pyright without our configuration."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import setpoint

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


def test_the_programs_pass_pyright_without_an_ignore_that_is_not_needed(tmp_path: Path) -> None:
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyrightconfig.json").write_text('{"reportUnnecessaryTypeIgnoreComment": true}')
    checked = _pyright("--project", str(tmp_path))
    problems = [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in checked["generalDiagnostics"]
    ]
    assert checked["summary"]["filesAnalyzed"] == len(list(PROGRAMS.glob("*.py")))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("door", ["setpoint.operator", "setpoint.testing"])
def test_an_editor_knows_the_type_of_every_public_name(door: str) -> None:
    """``Unknown`` in an editor is a type that pyright cannot infer: no completion, no error found."""
    symbols = _pyright("--verifytypes", door, "--ignoreexternal")["typeCompleteness"]["symbols"]
    assert len(symbols) > 500, "pyright did not find the package"
    unknown = [
        f"{symbol['name']}: {said['message']}"
        for symbol in symbols
        for said in symbol["diagnostics"]
        if re.search(r"\bUnknown\b|has unknown type|Type unknown", said["message"])
    ]
    assert not unknown, "\n".join(unknown)


def _pyright(*arguments: str) -> Any:
    source = str(Path(setpoint.__file__).parents[1])  # an editable install is not found by itself
    found = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",  # it would ask the package registry for a newer one
    }
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *arguments],
        cwd=PROGRAMS,
        env=found,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.startswith("{"), ran.stdout + ran.stderr
    return json.loads(ran.stdout)
