"""The file of an operator, imported once and again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from setpoint.cli.loading import CannotLoad, load
from tests.cli.operators import OPERATOR, Folder


def word() -> Any:
    return sys.modules["neighbour"].WORD


def test_it_knows_the_files_it_was_made_from(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    loaded = load(folder.operator)
    assert [each.name for each in loaded.operators] == ["greeting-operator"]
    assert loaded.files == {folder.operator, folder.neighbour}
    assert [each["metadata"]["name"] for each in loaded.crds()] == ["greetings.demo.setpoint.dev"]


def test_loaded_again_its_neighbours_are_read_anew_and_what_is_installed_is_not(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    loaded, installed = load(folder.operator), sys.modules["setpoint.kube.core.v1"]
    folder.say("two")
    again = load(folder.operator, loaded)
    assert word() == "two"
    assert again.operators[0] is not loaded.operators[0]
    assert sys.modules["setpoint.kube.core.v1"] is installed
    assert sorted(again.modules) == sorted(loaded.modules) == ["greeting", "neighbour"]


def test_two_saves_of_one_size_within_a_second_are_two(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    loaded = load(folder.operator)
    for number in range(10):
        folder.say(f"w{number}")
        loaded = load(folder.operator, loaded)
        assert word() == f"w{number}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def (", "SyntaxError"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_what_cannot_be_loaded_leaves_everything_as_it_was(tmp_path: Path, text: str, said: str) -> None:
    folder = Folder(tmp_path)
    loaded = load(folder.operator)
    folder.say("two")
    folder.operator.write_text(f"import neighbour\n{text}\n")
    with pytest.raises(CannotLoad, match="could not be imported") as caught:
        load(folder.operator, loaded)
    assert said in caught.value.trace
    assert 'greeting.py", line 2' in caught.value.trace
    assert word() == "one", "the neighbour that runs is the old one"
    assert sys.modules["greeting"] is loaded.modules["greeting"]
    folder.operator.write_text(OPERATOR)
    load(folder.operator, loaded)
    assert word() == "two"


def test_a_file_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    Folder(tmp_path)
    with pytest.raises(
        CannotLoad, match=r"greting\.py: there is no such file; there are: greeting\.py, neigh"
    ):
        load(tmp_path / "greting.py")
