"""What ``testing/manifests.py`` takes for objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from setpoint.api import ObjectMeta
from setpoint.kube.core.v1 import ConfigMap
from setpoint.testing.manifests import objects_in

ONE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"


def test_objects_stand_for_themselves_and_a_list_for_what_is_in_it() -> None:
    typed = ConfigMap(metadata=ObjectMeta(name="one"))
    assert objects_in(typed) == [typed]
    assert objects_in(ONE) == [ONE]
    assert objects_in({"apiVersion": "v1", "kind": "List", "items": [ONE, ONE]}) == [ONE, ONE]


@pytest.mark.parametrize(
    "text", [TEXT, f"---\n{TEXT}---\n", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}']
)
def test_text_is_yaml_or_json(text: str) -> None:
    assert objects_in(text) == [ONE]


def test_a_path_begins_in_the_folder_and_may_be_one_of_many_files(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(TEXT)
    (tmp_path / "a.yaml").write_text(TEXT.replace("one", "zero"))
    (tmp_path / "README.md").write_text("no manifest")
    assert objects_in("b.yml", tmp_path) == [ONE]
    assert objects_in(tmp_path / "b.yml") == [ONE]
    names: list[Any] = [each["metadata"]["name"] for each in objects_in(tmp_path) if isinstance(each, dict)]
    assert names == ["zero", "one"]


def test_what_is_no_object_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(f"{TEXT}---\nkind: ConfigMap\n")
    with pytest.raises(ValueError, match=r'bad\.yaml: document 2: an object needs "apiVersion" and "kind"'):
        objects_in(file)
    file.write_text("a: [")
    with pytest.raises(ValueError, match=r"apply .*bad\.yaml: .*line"):
        objects_in(file)
    file.write_text("")
    with pytest.raises(ValueError, match="there is no object in it"):
        objects_in(file)
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "gone.yaml")):
        objects_in("gone.yaml", tmp_path)
