"""What others' suites say is read as they mean it."""

from __future__ import annotations

from typing import Any

from tests.suites.controller_runtime import read_specs, read_tests

_SAID = """\
=== RUN   TestSuite
Running Suite: Client Suite
--- FAIL: TestSuite (1.20s)
=== RUN   TestPlain
--- PASS: TestPlain (0.00s)
=== RUN   TestTable
=== RUN   TestTable/first
    table_test.go:7: it is odd
=== RUN   TestTable/second
--- FAIL: TestTable (0.10s)
    --- FAIL: TestTable/first (0.05s)
    --- SKIP: TestTable/second (0.05s)
"""


def spec(state: str, *texts: str, kind: str = "It", failure: str = "") -> dict[str, Any]:
    return {
        "LeafNodeType": kind,
        "ContainerHierarchyTexts": list(texts[:-1]) or None,
        "LeafNodeText": texts[-1],
        "State": state,
        **({"Failure": {"Message": failure}} if failure else {}),
    }


def test_the_leaves_among_go_tests_count_and_what_runs_specs_does_not() -> None:
    found = dict(read_tests(_SAID))
    assert {name: end for name, (end, _) in found.items()} == {
        "TestPlain": "passed",
        "TestTable/first": "failed",
        "TestTable/second": "skipped",
    }
    assert "it is odd" in found["TestTable/first"][1]


def test_a_spec_is_known_by_all_that_it_stands_in() -> None:
    specs = [
        spec("passed", "Client", "Create", "makes one"),
        spec("failed", "Client", "Create", "refuses one", failure="it did not"),
        spec("timedout", "Client", "hangs"),
        spec("pending", "Client", "waits"),
        spec("passed", "", kind="BeforeSuite"),
    ]
    found = read_specs([{"SpecReports": specs}])
    assert found["Client Create makes one"] == ("passed", "")
    assert found["Client Create refuses one"] == ("failed", "it did not")
    assert found["Client hangs"][0] == "failed"
    assert found["Client waits"][0] == "skipped"
    assert len(found) == 4


def test_entries_of_the_same_name_all_count() -> None:
    found = read_specs([{"SpecReports": [spec("passed", "a", "b"), spec("failed", "a", "b")]}])
    assert [end for end, _ in found.values()] == ["passed", "failed"]


def test_a_suite_that_could_not_begin_has_failed() -> None:
    found = read_specs([{"SpecReports": [spec("failed", "", kind="BeforeSuite", failure="no server")]}])
    assert found == {"BeforeSuite": ("failed", "no server")}
