"""THREAT_MODEL.md is true: every test that it names is there, and what needs no server is shown here."""

from __future__ import annotations

import ast
import re

import pytest

from examples.webapp.webapp import operator
from setpoint.metrics import Metrics
from tests.pages import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))


def test_every_test_that_the_threat_model_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "THREAT_MODEL.md").read_text()))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 80
    assert not named - there


def test_every_promise_of_the_threat_model_names_a_test() -> None:
    text = (ROOT / "THREAT_MODEL.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") == 3]
    promises = [row for row in rows if not row.startswith(("| ---", "| promise", "| asset"))]
    assets = text.partition("## Who is there")[0]
    assert not [row for row in promises if "`test_" not in row and row not in assets]


WEAKNESSES = (
    *("no threat model", "transport", "HTTP/2", "authentication", "authorization", "too many rights"),
    *("confused deputies", "requests forged by the server", "secrets in caches", "secrets in logs"),
    *("text that is run", "metrics and debug pages", "requests too large, too many, too slow", "parsers"),
    *("patterns and rules", "paths and keys", "two servers on one directory", "dependencies"),
)


def test_every_usual_weakness_has_its_row_and_its_tests() -> None:
    _, _, section = (ROOT / "THREAT_MODEL.md").read_text().partition("## The usual weaknesses")
    table = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert [name for name, _, _ in cells] == list(WEAKNESSES)
    assert not [name for name, _, tests in cells if not re.fullmatch(r"`test_\w+`(, `test_\w+`)*", tests)]


# ── Nothing that is read is run ─────────────────────────────────────────────────────────────────────

_RUNS = {"eval", "exec", "compile", "__import__"}
_UNPACKS = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


def test_nothing_that_is_read_is_run() -> None:
    for file in SOURCES:
        where = file.relative_to(ROOT)
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {each.partition(".")[0] for each in names} & _UNPACKS, where
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name):
                assert call.func.id not in _RUNS, (where, call.lineno)
            for keyword in call.keywords:
                is_shell = keyword.arg == "shell" and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                )
                assert not is_shell, (where, call.lineno)
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                called = f"{call.func.value.id}.{call.func.attr}"
                assert called not in {"os.system", "os.popen", "asyncio.create_subprocess_shell"}, where
        assert "yaml.unsafe_load" not in file.read_text(), where
        assert "yaml.Loader" not in file.read_text(), where


def test_the_rules_of_an_operator_name_what_they_give() -> None:
    for rule in operator.rules():
        for values in rule.values():
            assert "*" not in values, rule
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"]), rule


def test_labels_name_no_object() -> None:
    families = Metrics().registry._collector_to_names
    labels = {label for family in families for label in getattr(family, "_labelnames", ())}
    assert {"controller", "kind", "host"} <= labels
    assert not labels & {"namespace", "object", "uid", "key"}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-run.lock"])
def test_every_dependency_is_pinned_with_its_hashes(name: str) -> None:
    text = (ROOT / name).read_text().replace("\\\n", " ")
    pinned = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(pinned) > 5
    for line in pinned:
        assert re.match(r"[\w.\[\]-]+==[\w.+!]+", line), line[:80]
        assert "--hash=sha256:" in line, line[:80]
