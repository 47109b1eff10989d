"""What ``testing/golden.py`` promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from setpoint.testing.golden import assert_matches

STATE = {"configmaps default/c": {"kind": "ConfigMap", "data": {"b": "1", "a": "2"}}}


def test_a_file_that_is_not_there_fails_and_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"c\.yaml: it is not there; pytest --setpoint-update writes it"):
        assert_matches(STATE, tmp_path / "c.yaml")
    assert not (tmp_path / "c.yaml").exists()


def test_what_was_written_matches_in_whatever_order(tmp_path: Path) -> None:
    file = tmp_path / "new" / "c.yaml"
    assert_matches(STATE, file, update=True)
    assert_matches(STATE, file)
    assert_matches({"configmaps default/c": {"data": {"a": "2", "b": "1"}, "kind": "ConfigMap"}}, file)
    file.write_text('{"configmaps default/c": {"kind": ConfigMap, data: {b: "1", a: "2"}}} # by hand')
    assert_matches(STATE, file)


def test_what_differs_is_shown_and_the_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    assert_matches(STATE, file, update=True)
    kept = file.read_text()
    with pytest.raises(AssertionError) as failure:
        assert_matches({"configmaps default/c": {"kind": "ConfigMap", "data": {"a": "3", "b": "1"}}}, file)
    said = str(failure.value)
    assert "-    a: '2'\n+    a: '3'" in said
    assert "pytest --setpoint-update" in said
    assert file.read_text() == kept
