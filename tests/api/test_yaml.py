"""The promises of ``api/yaml.py``, one test to each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api import yaml
from setpoint.api.meta import LabelSelector


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None),
        ("", None),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("17", 17),
        ("+1", 1),
        ("017", 15),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000),
        (".5", 0.5),
        ("08", 8.0),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("100m", "100m"),
        ("'17'", "17"),
        ('"yes"', "yes"),
        ("!!str 17", "17"),
        ("<<", "<<"),
        ("=", "="),
        ("123456789012345678901234567890", 1.2345678901234568e29),
    ],
)
def test_a_scalar_is_what_kubernetes_reads_it_as(text: str, value: Any) -> None:
    read = yaml.load(f"a: {text}")["a"]
    assert (read, type(read)) == (value, type(int(value) if value == 8.0 else value))


def test_documents_are_told_apart_and_empty_ones_left_out() -> None:
    assert yaml.load_all("---\na: 1\n---\n# nothing\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]
    assert yaml.load("") is None
    assert yaml.load(b"a: \xc3\xa9") == {"a": "é"}


def test_anchors_are_copied_and_merges_give_way_to_what_is_written() -> None:
    read = yaml.load("x: &x {a: 1, c: [1]}\nw:\n  <<: *x\n  a: 2\nz: *x\n")
    assert read == {"x": {"a": 1, "c": [1]}, "w": {"a": 2, "c": [1]}, "z": {"a": 1, "c": [1]}}
    read["z"]["c"].append(2)
    assert read["x"]["c"] == [1]


def test_the_first_of_several_merged_mappings_has_the_last_word() -> None:
    assert yaml.load("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}")["c"] == {"x": 1, "z": 3}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' is already there"),
        ("1: x", "line 1, column 1: a key must be text; put it in quotes"),
        ("y: 1", "a key must be text"),
        ("? [a]\n: 1", "a key must be text"),
        ("a: .inf", "line 1, column 4: JSON has no .inf"),
        ("a: .nan", "JSON has no .nan"),
        ("a: !!binary aGk=", "leave out the tag"),
        ("a: !!python/object:os.system {}", "has no meaning in JSON"),
        ("a: !custom 1", "leave out the tag"),
        ("a: *b", "no value before this is called &b"),
        ("&a [*a]", "no value before this is called &a"),
        ("a: {<<: 1}", "<< takes a mapping"),
        ("a: [", "line 2, column 1"),
        ("\t- x", "line 1, column 1"),
        ("a: '\x00'", "not YAML text"),
        (b"\xff\xfe\xfa", "not YAML text"),
        ("[" * 200_000, "nests deeper than 100"),
        ("- " * 200_000, "nests deeper than 100"),
        (BOMB, "aliases repeat more than 100,000 values"),
        ("--- 1\n--- 2", "there are 2 YAML documents where one is expected"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_what_json_cannot_say_or_we_could_not_bear_is_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        yaml.load(text)
    assert said in str(refused.value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_what_is_dumped_reads_back_the_same(value: Any) -> None:
    assert yaml.load(yaml.dump({"value": value})) == {"value": value}


@pytest.mark.parametrize(
    "text", ["y", "1e3", "0o17", "1_0", "null", "~", "", "1:30", "2020-01-01", "on", "0x1"]
)
def test_text_that_some_reader_takes_for_something_else_is_put_in_quotes(text: str) -> None:
    assert yaml.dump([text]) == f"- '{text}'\n"


def test_several_lines_are_written_as_they_are() -> None:
    assert yaml.dump({"script": "a\nb\n"}) == "script: |\n  a\n  b\n"


def test_models_are_dumped_in_wire_form_and_several_as_documents() -> None:
    selector = LabelSelector(match_labels={"app": "a"})
    assert yaml.dump(selector) == "matchLabels:\n  app: a\n"
    assert yaml.load_all(yaml.dump_all([selector, {"b": 1}])) == [{"matchLabels": {"app": "a"}}, {"b": 1}]


def test_the_same_value_twice_is_written_twice() -> None:
    shared = {"a": 1}
    assert "&" not in yaml.dump([shared, shared])
