"""Every program in README.md, docs/ and examples/ is true: it type-checks, and what needs no server runs."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from setpoint.testing import prove
from tests.pages import PAGES, ROOT, blocks, program

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_without_a_server_runs(page: Path) -> None:
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        if block.language == "pycon":
            session = doctest.DocTestParser().get_doctest(block.text, names, page.name, page.name, block.line)
            ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, clear_globs=False)
            names.update(session.globs)
            assert not ran.failed, f"{page.name}, line {block.line}: it does not answer so"
        elif not block.awaits:
            exec(block.compile(), names)


@pytest.mark.slow
def test_what_survives_by_the_page_of_the_proof_does() -> None:
    names: dict[str, Any] = {"__name__": "proof"}
    for block in blocks(ROOT / "docs" / "proof.md"):
        exec(block.compile(), names)
    names["prove"] = partial(prove, most_of_class=1)  # a little of everything
    names["test_it_survives"]()
    names["test_nothing_is_left_outside"]()


@pytest.mark.slow
def test_every_program_in_the_docs_passes_mypy_strict(tmp_path: Path) -> None:
    for page in PAGES:
        (tmp_path / f"{page.stem.lower()}_page.py").write_text(program(page))
    programs = [str(file) for file in [*sorted(tmp_path.glob("*_page.py")), *EXAMPLES]]
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *programs]
    result = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_says_how_to_run_it(example: Path) -> None:
    said = ast.get_docstring(ast.parse(example.read_text())) or ""
    path = example.relative_to(ROOT)
    assert f"python {path}" in said or f"python -m {'.'.join(path.with_suffix('').parts)}" in said


def run(example: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / example)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_example_of_a_kind_prints_its_definition() -> None:
    from setpoint.api import yaml

    definition = yaml.load(run("webapp/webapp.py").stdout)
    assert (definition["kind"], definition["metadata"]["name"]) == (
        "CustomResourceDefinition",
        "webapps.demo.setpoint.dev",
    )


def test_the_example_of_pods_says_what_to_do_where_there_is_no_cluster(tmp_path: Path) -> None:
    ran = run("pods/pods.py", HOME=str(tmp_path))
    assert ran.returncode == 1
    assert "set KUBECONFIG" in ran.stderr
    assert "Traceback" not in ran.stderr
