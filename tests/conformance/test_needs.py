"""The tables of ``needs.py`` name tests that are there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conformance.needs import NEEDS, NEEDS_SOCKET, SLOW

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("named", [*SLOW, *NEEDS_SOCKET, *(one for tests in NEEDS.values() for one in tests)])
def test_what_is_named_is_there(named: str) -> None:
    file, _, test = named.partition("::")
    tree = ast.parse((FOLDER / file).read_text())
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert not test or test in there
