"""The conformance files of CEL's specification: they hold, but where ``cel_spec.toml`` says why not."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.conformance.cel_spec import folder, read, table


def test_the_specification_holds_but_for_what_is_listed() -> None:
    where = folder()
    if where is None:
        pytest.skip("Go has not fetched cel.dev/expr: run `make kube`")
    rows = tomllib.loads((Path(__file__).parent / "cel_spec.toml").read_text())["difference"]
    failed = [(name, test) for name, count in table(where).items() for test in count.failed]

    def covers(row: dict[str, str], one: tuple[str, str]) -> bool:
        return row["file"] == one[0] and fnmatchcase(one[1], row["test"])

    assert [one for one in failed if not any(covers(row, one) for row in rows)] == []
    assert [row for row in rows if not any(covers(row, one) for one in failed)] == []


def test_the_text_of_protobuf_is_read() -> None:
    assert read("a { b: \"x\" 'y' c: -1 } a <d: [e]> # f") == {
        "a": [{"b": [b"xy"], "c": ["-1"]}, {"d": ["[e]"]}]
    }
